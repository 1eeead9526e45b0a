"""Releases that were replaced or taken back: which of them time travel still shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.columns import quoted
from anon_spark.io.publication import BEGUN, LOOK_BACK, WITHDRAWN, metadata_of
from anon_spark.io.tables import history, read_version


def earlier_versions(spark: SparkSession, table: str, current: int | None) -> list[int]:
    """The versions of our releases but the current one, newest first, as far as the history tells. Cost: metadata only."""
    ours = ((int(commit["version"]), metadata_of(commit)) for commit in history(spark, table, LOOK_BACK))
    return [version for version, metadata in ours if metadata is not None and version != current and _has_rows(metadata)]


def can_be_read(spark: SparkSession, table: str, version: int, options: Mapping[str, str] | None = None) -> bool:
    """Whether time travel shows rows of a version: its log and its files are there, and Delta does not refuse it as too old.

    Cost: one small job; the value that it reads is forgotten.
    """
    try:
        frame = read_version(spark, table, version, options)
        frame.select(quoted(frame.columns[0])).limit(1).collect()
    except Exception:  # vacuumed, too old, or the log is gone; the text of the error may name files
        return False
    return True


def shown(spark: SparkSession, table: str, versions: Sequence[int]) -> int:
    """How many of these versions, newest first, time travel shows. VACUUM and retention take the oldest first.

    Cost: one small job for each halving.
    """
    return bisect_left(range(len(versions)), True, key=lambda at: not can_be_read(spark, table, versions[at]))


def _has_rows(metadata: Mapping[str, Any]) -> bool:
    return not metadata.get(BEGUN) and not metadata.get(WITHDRAWN)
