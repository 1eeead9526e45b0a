"""The only place that materializes: Parquet in a directory that one run owns and deletes.

Nothing here caches or checkpoints: what was stored is read from files that every worker sees, so a lost executor
loses no data, and nothing survives the run.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from time import sleep
from types import TracebackType
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anon_spark.engine import gathered, runs_here
from anon_spark.errors import ConfigurationError, LimitExceeded
from anon_spark.primitives.plain import bare_schema, without_metadata
from anon_spark.primitives.stores import PRIVATE, Store, private_folder, remains, sweep, user_root

R = TypeVar("R")

SETTLING, PAUSE = 30, 0.1  # how often, and seconds between
PROBES = 16  # files that show whether workers and driver see the same place


class Workspace:
    """A private directory below `root`, made on first use, removed by `close` (or at the end of a `with` block).

    small: whether the table of the run is so small that one task can hold it; then it is one partition.
    """

    def __init__(self, spark: SparkSession, root: str | None = None, small: bool = False) -> None:
        self.spark = spark
        self.small = small
        if root is None:
            root = _temporary_root(spark)
        self._name = uuid4().hex
        self._root = root
        self.path = f"{root.rstrip('/')}/{PRIVATE}{self._name}"
        self._stored = 0
        self._frames: dict[str, DataFrame] = {}
        self._paths: dict[str, str] = {}

    def store(self, frame: DataFrame, name: str) -> DataFrame:
        """Write the frame and read it back, without metadata: its lineage ends here. Cost: one job, one write."""
        self._stored += 1
        path = f"{self.path}/{self._stored:03d}-{name}"
        if self._stored == 1:
            self._make()
        without_metadata(frame).write.mode("error").parquet(path)
        stored = self.spark.read.schema(bare_schema(frame.schema)).parquet(path)
        self._frames[name], self._paths[name] = gathered(stored, self.small), path  # Spark cannot know that it has one file
        return self._frames[name]

    def stored(self, name: str) -> DataFrame:
        """The frame last stored under a name."""
        return self._frames[name]

    def stored_together(self, names: Sequence[str], schema: StructType) -> DataFrame:
        """The rows of several frames that have these columns, as last stored: one scan, where a union would have many."""
        return gathered(self.spark.read.schema(bare_schema(schema)).parquet(*(self._paths[name] for name in names)), self.small)

    def close(self) -> None:
        """Delete everything stored. Frames that read it must not be used afterwards."""
        Store.of(self.path).remove()

    def close_for_good(self, times: int = SETTLING) -> None:
        """Delete everything repeatedly for some seconds, because cancelled tasks may still write."""
        for _ in range(times):
            self.close()
            sleep(PAUSE)

    def _make(self) -> None:
        """Make the private folder, with a note of its owner."""
        try:
            private_folder(Store.of(self._root), self._name)
        except OSError as error:
            raise ConfigurationError(
                f"work: {self._root} is not a folder that can be written to. Choose another place."
            ) from error
        if not _is_local(self.spark):
            self._require_shared()

    def _require_shared(self) -> None:
        """Refuse a place that workers and driver see differently: raw data would stay there when the run is over."""
        probe = f"{self.path}/000-probe"
        self.spark.range(0, PROBES, 1, PROBES).write.parquet(probe)  # no personal data
        seen = sum(name.endswith(".parquet") for name in Store.of(probe).names())
        if seen < PROBES:
            raise ConfigurationError(
                f"work: of {PROBES} files that the workers wrote there the driver sees {seen}. Give a place that all of "
                "them see, with its scheme: hdfs://…, s3a://…, or file:/… for a shared mount."
            )

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fitted(spark: SparkSession, workdir: str | None, workspace: Workspace | None, fit: Callable[[Workspace], R]) -> R:
    """The recoding of a fit that keeps private files: in the given workspace, else in a private one.

    The private one is removed if the fit fails, by the recoding's `close`, or at the end of the program: a frame from
    `transform` may still read it when the recoding is garbage.
    """
    if workspace is not None:
        return fit(workspace)
    private = Workspace(spark, workdir)
    try:
        recoding = fit(private)
    except BaseException:
        private.close()
        raise
    atexit.register(private.close)
    return recoding


def collect_small(frame: DataFrame, limit: int, what: str) -> pa.Table:
    """All rows of a frame that is bounded by configuration; more than `limit` raises and says what overflowed."""
    table = frame.limit(limit + 1).toArrow()
    if table.num_rows > limit:
        raise LimitExceeded(f"{what}: more than {limit:,}, too many for the driver.", limit=limit)
    return table


def usable(spark: SparkSession, root: str | None) -> None:
    """Refuse a working directory that cannot be managed from here, before anything is written."""
    Store.of(root if root is not None else _temporary_root(spark))


def sweep_work(spark: SparkSession, root: str | None) -> tuple[int, list[str]]:
    """Remove the folders that dead runs of this user left in `root` and among the temporary files of this machine.

    Returns how many held stored frames, and the owners of those that may still be in use elsewhere.
    """
    place = Store.of(root if root is not None else _temporary_root(spark))
    swept = sweep(place)
    sweep(Store.of(str(user_root())))
    return swept, [str(left.owner) for left in remains(place) if not left.is_here]


def _is_local(spark: SparkSession) -> bool:
    return runs_here(spark)


def _temporary_root(spark: SparkSession) -> str:
    if not _is_local(spark):
        raise ConfigurationError(
            "On a cluster the private working directory must be named: give `work:` in the job file or workdir= in the "
            "API, a place that all workers see."
        )
    return f"file:{user_root()}"  # with its scheme: the default file system of a local session need not be this machine's
