"""The only place that materializes: Parquet in a directory that one run owns and deletes.

Nothing here caches or checkpoints: what was stored is read from files that every worker sees, so a lost executor
loses no data, and nothing survives the run.
"""

from __future__ import annotations

import atexit
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError, LimitExceeded

R = TypeVar("R")

PROBES = 16  # files by which a cluster shows that its workers and the driver mean the same place


class Workspace:
    """A private directory below `root`, made on first use, removed by `close` (or at the end of a `with` block)."""

    def __init__(self, spark: SparkSession, root: str | None = None) -> None:
        self._spark = spark
        if root is None:
            root = _temporary_root(spark)
        name = f"anon-spark-{uuid4().hex}"
        self.path = f"{root.rstrip('/')}/{name}"
        self._stored = 0

    def store(self, frame: DataFrame, name: str) -> DataFrame:
        """Write the frame and read it back: its lineage ends here. Cost: one job, one write."""
        self._stored += 1
        path = f"{self.path}/{self._stored:03d}-{name}"
        if self._stored == 1:
            _private_directory(self.path)
            if not _is_local(self._spark):
                self._require_shared()
        frame.write.mode("error").parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)

    def close(self) -> None:
        """Delete everything stored. Frames that read it must not be used afterwards."""
        filesystem, path = _filesystem(self.path)
        if filesystem.get_file_info(path).type != fs.FileType.NotFound:
            filesystem.delete_dir(path)

    def _require_shared(self) -> None:
        """Refuse a place that workers and driver see differently: raw data would stay there when the run is over."""
        probe = f"{self.path}/000-probe"
        self._spark.range(0, PROBES, 1, PROBES).write.parquet(probe)  # numbers of nobody
        filesystem, path = _filesystem(probe)
        found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
        seen = sum(info.extension == "parquet" for info in found)
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
    """What a fit returns that keeps private files: in the workspace given, else in one of its own.

    Its own is removed when the fit fails, by the recoding's `close`, or at the end of the program: a frame that
    `transform` returned may still read it when the recoding is garbage.
    """
    if workspace is not None:
        return fit(workspace)
    own = Workspace(spark, workdir)
    try:
        recoding = fit(own)
    except BaseException:
        own.close()
        raise
    atexit.register(own.close)
    return recoding


def collect_small(frame: DataFrame, limit: int, what: str) -> pa.Table:
    """All rows of a frame that is bounded by configuration; more than `limit` raises and says what overflowed."""
    table = frame.limit(limit + 1).toArrow()
    if table.num_rows > limit:
        raise LimitExceeded(f"{what}: more than {limit:,}, too many for the driver.", limit=limit)
    return table


def usable(spark: SparkSession, root: str | None) -> None:
    """Refuse a working directory that cannot be managed from here, before anything is written."""
    _filesystem(root if root is not None else _temporary_root(spark))


def _is_local(spark: SparkSession) -> bool:
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def _temporary_root(spark: SparkSession) -> str:
    if not _is_local(spark):
        raise ConfigurationError(
            "On a cluster the private working directory must be named: give `work:` in the job file or workdir= in the "
            "API, a place that all workers see."
        )
    return tempfile.gettempdir()


def _filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    if "://" not in uri and not uri.startswith("file:"):
        return fs.LocalFileSystem(), str(Path(uri).absolute())
    try:
        filesystem, path = fs.FileSystem.from_uri(re.sub(r"^s3[an]:", "s3:", uri))  # Hadoop's names of the same store
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigurationError(
            f"work: {uri.split(':', 1)[0]}: cannot be managed from here. Use a local, hdfs, s3, gs or abfs path."
        ) from error
    return filesystem, path


def _private_directory(uri: str) -> None:
    filesystem, path = _filesystem(uri)
    try:
        if isinstance(filesystem, fs.LocalFileSystem):
            Path(path).mkdir(mode=0o700, parents=True)  # what is stored here is personal data
        else:
            filesystem.create_dir(path, recursive=True)
    except OSError as error:
        raise ConfigurationError(
            f"work: {uri.rpartition('/')[0]} is not a folder that can be written to. Choose another place."
        ) from error
