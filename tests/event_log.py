"""The event log of the suite's session, to be searched for values that escaped."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession


class EventLog(os.PathLike[str]):
    """The event log of the suite's session: every plan, setting and description Spark has written down so far."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    @property
    def path(self) -> Path:
        """The one uncompressed file."""
        (path,) = (entry for entry in self.folder.iterdir() if entry.name.startswith(("local-", "app-")))
        return path

    def __fspath__(self) -> str:
        return str(self.path)

    def mark(self) -> int:
        """Where the log ends now; hand it to `read_text` to see only what comes after."""
        self._drain()
        return self.path.stat().st_size

    def read_text(self, since: int = 0) -> str:
        """Everything logged after `since`, once all events that are under way have arrived."""
        self._drain()
        return self.path.read_bytes()[since:].decode("utf-8", errors="replace")

    def _drain(self) -> None:
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
