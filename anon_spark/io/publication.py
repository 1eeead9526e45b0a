"""Publication: one Delta commit that says which run made it, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import is_path
from anon_spark.errors import AnonSparkError, ConfigurationError
from anon_spark.io.tables import history, require_free, sql_name

MARK = "anon_spark"
LOOK_BACK = 100  # commits in which a release is looked for below those of maintenance
MAINTENANCE = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL")


@dataclass(frozen=True)
class Published:
    """The newest release of a table: its commit, what that says of the run, and what happened to the table since."""

    version: int
    metadata: Mapping[str, Any]
    latest: int  # the newest version of the table, maintenance included
    changes: tuple[str, ...]  # operations of others since, which may have changed what it holds


def standing_release(spark: SparkSession, table: str) -> Published | None:
    """The release that stands at the output now, changed since or not; None where nothing stands.

    A place that holds anything else is refused.
    """
    commits = history(spark, table, LOOK_BACK)
    if not commits:
        require_free(spark, table, "output.table")
        return None
    since: list[str] = []
    for commit in commits:
        metadata = _metadata(commit.get("userMetadata"))
        if metadata is not None:
            changes = tuple(operation for operation in since if operation not in MAINTENANCE)
            return Published(int(commit["version"]), metadata, int(commits[0]["version"]), changes)
        since.append(str(commit["operation"]))
    raise ConfigurationError(
        f"output.table: {table} holds a table that is no release of anon-spark. It is left alone: choose another place, "
        "or remove it yourself."
    )


def last_release(spark: SparkSession, table: str) -> Published | None:
    """As `standing_release`, for a run that will replace it: an overwrite must not cost anybody their changes."""
    found = standing_release(spark, table)
    if found is not None and found.changes:
        raise ConfigurationError(
            f"output.table: {table} was changed by others since it was published ({len(found.changes)} commits). It is "
            f"left alone: choose another place, or remove it yourself."
        )
    return found


def publish(release: DataFrame, table: str, metadata: Mapping[str, Any], rows: int) -> int:
    """Replace the release by one atomic commit and read back that it is ours; the version it got.

    Guarantee: readers see the old release or the new one. Cost: one write of the release.
    """
    writer = (
        release.write.format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .option("userMetadata", json.dumps({MARK: dict(metadata)}))
    )
    if is_path(table):
        writer.save(table)
    else:
        writer.saveAsTable(sql_name(table))
    newest = history(release.sparkSession, table, 1)[0]
    found = _metadata(newest.get("userMetadata")) or {}
    if found.get("run_id") != metadata["run_id"]:
        raise AnonSparkError(
            f"output.table: the newest commit of {table} is not this run's. Another writer is at work there: run again."
        )
    written = (newest.get("operationMetrics") or {}).get("numOutputRows")
    if written is not None and int(written) != rows:
        raise AnonSparkError(
            f"output.table: version {newest['version']} of {table} has {written} rows instead of the {rows} that were "
            "audited. Remove that version."
        )
    return int(newest["version"])


def _metadata(text: str | None) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text or "")
    except json.JSONDecodeError:
        return None
    mine = found.get(MARK) if isinstance(found, dict) else None
    return mine if isinstance(mine, dict) else None
