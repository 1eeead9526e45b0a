"""The only place that materializes: Parquet in a directory that one run owns and deletes.

Nothing here caches or checkpoints: what was stored is read from files that every worker sees, so a lost executor
loses no data, and nothing survives the run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError, LimitExceeded


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
        frame.write.mode("error").parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)

    def close(self) -> None:
        """Delete everything stored. Frames that read it must not be used afterwards."""
        filesystem, path = _filesystem(self.path)
        if filesystem.get_file_info(path).type != fs.FileType.NotFound:
            filesystem.delete_dir(path)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def collect_small(frame: DataFrame, limit: int, what: str) -> pa.Table:
    """All rows of a frame that is bounded by configuration; more than `limit` raises and says what overflowed."""
    table = frame.limit(limit + 1).toArrow()
    if table.num_rows > limit:
        raise LimitExceeded(f"{what}: more than {limit:,}, too many for the driver.", limit=limit)
    return table


def usable(root: str) -> None:
    """Refuse a working directory that cannot be managed from here, before anything is written."""
    _filesystem(root)


def _temporary_root(spark: SparkSession) -> str:
    master = spark.conf.get("spark.master", "") or ""
    if not master.startswith("local"):
        raise ConfigurationError(
            "On a cluster the private working directory must be named: give `work:` in the job file or workdir= in the "
            "API, a place that all workers see."
        )
    return tempfile.gettempdir()


def _filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    if "://" not in uri and not uri.startswith("file:"):
        return fs.LocalFileSystem(), str(Path(uri).absolute())
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigurationError(
            f"work: {uri.split(':', 1)[0]}: cannot be managed from here. Use a local, hdfs, s3, gs or abfs path."
        ) from error
    return filesystem, path


def _private_directory(uri: str) -> None:
    filesystem, path = _filesystem(uri)
    if isinstance(filesystem, fs.LocalFileSystem):
        Path(path).mkdir(mode=0o700, parents=True)  # what is stored here is personal data
    else:
        filesystem.create_dir(path, recursive=True)
