"""Publication of a release: one Delta commit, with the run that made it, on top of the version which that run saw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.config import is_path
from anon_spark.errors import ConfigurationError, PublicationRefused
from anon_spark.io.tables import delta_detail, history, require_free, sql_name

MARK = "anon_spark"
BEGUN = "begun"  # mark of an empty commit that creates a catalog table: no release
NUMBER = "anon_spark_number"  # key under which our commits on a table are counted
WITHDRAWN = "withdrawn"  # mark of an empty commit that replaces a release which was not as audited
LOOK_BACK = 1_000  # how many commits are searched for the newest release
# operations that keep every row and value of a table, as Delta writes them; COMMENT ON TABLE is a SET TBLPROPERTIES. A change of
# a column can be its comment, place or a wider type: the audit looks at places and types itself
MAINTENANCE = (
    "OPTIMIZE", "OPTIMIZE CHECKPOINT", "REORG", "REORG TABLE UPGRADE UNIFORM", "VACUUM START", "VACUUM END", "COMPUTE STATS",
    "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "CHANGE COLUMN", "CHANGE COLUMNS", "ADD CONSTRAINT", "DROP CONSTRAINT",
    "CLUSTER BY", "UPGRADE PROTOCOL", "DROP FEATURE", "REMOVE COLUMN MAPPING", "ROW TRACKING BACKFILL",
    "ROW TRACKING UNBACKFILL", "DOMAIN METADATA CLEANUP", "Empty Commit", "Deletion Vector Tombstones",
)  # fmt: skip
RESTORE = "RESTORE"
RETENTION = "interval 3650 days"  # how long Delta keeps commits: by them the next run recognises the table as ours
SERIES, INCREMENT = "series", "increment"  # keys of the metadata of an increment: the id of its series, and its number
WRITER = "anon-spark"  # application id of Delta transactions: of two runs on one state Delta accepts one

Commit = Mapping[str, Any]


@dataclass(frozen=True)
class Published:
    """The newest release of a table: its commit, what that says of the run, and what happened to the table since."""

    version: int
    metadata: Mapping[str, Any]
    latest: int  # the newest version of the table, maintenance included
    changes: tuple[str, ...]  # operations of others since, which may have changed what it holds


@dataclass(frozen=True)
class Output:
    """The state of the output: the newest version of its table (None where there is no table), and the newest release."""

    latest: int | None
    release: Published | None
    # of our next commit: runs that saw the same release share it, and Delta accepts it once
    number: int = field(default=0, compare=False)
    # metadata of the newest increment that was ever committed, also of one that was undone; None: no series
    series: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def increment(self) -> int:
        """The number of the newest increment; 0 where there is none."""
        return 0 if self.series is None else int(self.series[INCREMENT])


@dataclass(frozen=True)
class Appending:
    """A commit that adds an increment to a series instead of replacing the release."""

    series: str
    increment: int


def output_of(spark: SparkSession, table: str) -> Output:
    """The output as it is now, also where others changed it. A place with another table is refused. Cost: metadata only."""
    commits = history(spark, table, LOOK_BACK)
    if not commits:
        require_free(spark, table, "output.table")
        return Output(None, None)
    output = _output(commits)
    if output is None:
        raise ConfigurationError(
            f"output.table: {table} holds a table that is no release of anon-spark. It is left alone: choose another place, "
            "or remove it yourself."
        )
    return output


def output_before(spark: SparkSession, table: str, version: int) -> Output:
    """The output as it was before a version was committed."""
    commits = history(spark, table, LOOK_BACK)
    older = [commit for commit in commits if int(commit["version"]) < version]
    return (_output(older) if older else None) or Output(version - 1 if older else None, None, _next_number(commits))


def _output(commits: Sequence[Commit]) -> Output | None:
    """The output that commits, newest first, make; None where none of them is ours."""
    latest = int(commits[0]["version"])
    since: list[str] = []
    for commit in in_force(commits):
        metadata = metadata_of(commit)
        if metadata is not None:
            changes = tuple(operation for operation in since if operation not in MAINTENANCE)
            nothing = metadata.get(BEGUN) or metadata.get(WITHDRAWN)
            release = None if nothing and not changes else Published(int(commit["version"]), metadata, latest, changes)
            return Output(latest, release, _next_number(commits), _newest_increment(commits))
        since.append(str(commit["operation"]))
    return None


def _newest_increment(commits: Sequence[Commit]) -> Mapping[str, Any] | None:
    return next((metadata for commit in commits if SERIES in (metadata := metadata_of(commit) or {})), None)


def _next_number(commits: Sequence[Commit]) -> int:
    """The number of our next commit: one more than any so far, also withdrawn ones; early ones count by their version."""
    ours = (commit for commit in commits if metadata_of(commit) is not None)
    return max((int(_user_metadata(commit).get(NUMBER, commit["version"])) + 1 for commit in ours), default=0)


def output_for_run(spark: SparkSession, table: str) -> Output:
    """As `output_of`, for a run that will replace it; refuses an output that others changed."""
    output = output_of(spark, table)
    if output.release is not None and output.release.changes:
        raise ConfigurationError(
            f"output.table: {table} was changed by others since it was published ({len(output.release.changes)} commits). It "
            "is left alone: choose another place, or remove it yourself."
        )
    return output


def unchanged(spark: SparkSession, table: str, seen: Output) -> Output:
    """The output now, which must be what the run saw; maintenance that keeps its rows is no change. Cost: metadata only."""
    try:
        current = output_for_run(spark, table)
    except ConfigurationError as error:
        raise PublicationRefused(f"{error} That happened while this run was at work: nothing of it was published.") from error
    newest, before = current.release, seen.release
    same = (newest is None) == (before is None) and (
        newest is None or before is None or newest.version == before.version
    )
    if not same or (current.latest is None) != (seen.latest is None):
        raise PublicationRefused(
            f"output.table: {table} was published or changed by others while this run was at work. Nothing of this run was "
            "published: run again."
        )
    return current


def publish(
    release: DataFrame, table: str, metadata: Mapping[str, Any], seen: Output, appending: Appending | None = None
) -> int:
    """Replace the release, or add an increment to it, by one atomic commit on top of what was seen just before.

    Returns its version. Guarantee: readers see the old state or the new one. Of several runs that saw the same state one is
    published, the others raise PublicationRefused: they share a number that Delta accepts once. If somebody else committed
    meanwhile, their version is restored and this run is refused. Cost: one write of the rows.
    """
    spark = release.sparkSession
    _write(release, table, metadata, seen, appending)
    commits = history(spark, table, LOOK_BACK)
    version = _version_in(commits, str(metadata["run_id"]))
    if version is None:
        raise PublicationRefused(
            f"output.table: another run published to {table} meanwhile. Nothing of this run was published: run again."
        )
    first = 0 if seen.latest is None else seen.latest + 1
    between = [commit for commit in commits if first <= int(commit["version"]) < version]
    if any(_changes_rows(commit) for commit in between):
        _restore(spark, table, version - 1)
        raise PublicationRefused(
            f"output.table: somebody else wrote to {table} at the same moment. Their version was put back, nothing of this "
            "run is published. Let one job write there."
        )
    return version


def withdraw(spark: SparkSession, table: str, version: int, before: Output) -> None:
    """Withdraw a published version: the release before it is the newest again, or an empty table where there was none.

    Delta keeps the withdrawn version readable until VACUUM. Cost: a commit.
    """
    release = before.release
    if release is not None:
        # maintenance after the release kept its rows: the description of the table, for one, stands again, too
        _restore(spark, table, release.version if release.changes else release.latest)
        return
    empty = read_back(spark, table, version).limit(0)
    number = _next_number(history(spark, table, LOOK_BACK))
    _write(empty, table, {WITHDRAWN: True, "run_id": None}, Output(version, None, number))


def read_back(spark: SparkSession, table: str, version: int) -> DataFrame:
    """A version of the release, lazily."""
    reader = spark.read.format("delta").option("versionAsOf", str(version))
    return reader.load(table) if is_path(table) else reader.table(sql_name(table))


def rows_of_commit(spark: SparkSession, table: str, version: int) -> DataFrame:
    """The rows that a commit added, lazily: those in the files that its version has and the version before it lacks.

    Cost: the names of the files of both versions on the driver; of other files nothing is read, but in a table with column
    mapping, whose files only Delta can read.
    """
    at = read_back(spark, table, version)
    if version == 0:
        return at
    added = sorted(set(at.inputFiles()) - set(read_back(spark, table, version - 1).inputFiles()))
    detail = delta_detail(spark, table) or {}
    if "columnMapping" in (detail.get("tableFeatures") or ()):
        return at.where(F.col("_metadata.file_path").isin(added))
    return spark.read.schema(at.schema).parquet(*(unquote(file) for file in added)) if added else at.limit(0)


def begin(release: DataFrame, table: str, run_id: str, seen: Output) -> Output:
    """Create a catalog table by an empty commit of ours: what a killed write leaves is then inside a table.

    Cost: a commit where there is no table, else nothing.
    """
    if is_path(table) or seen.latest is not None:
        return seen
    _write(release.limit(0), table, {BEGUN: True, "run_id": run_id}, seen)
    return output_for_run(release.sparkSession, table)


def releases(spark: SparkSession, table: str, look_back: int) -> Iterator[Mapping[str, Any]]:
    """The metadata of the runs that published, from the commits, newest first; withdrawn ones included."""
    for commit in history(spark, table, look_back):
        metadata = metadata_of(commit)
        if metadata is not None and not metadata.get(BEGUN) and not metadata.get(WITHDRAWN):
            yield metadata


def in_force(commits: Sequence[Commit]) -> Iterator[Commit]:
    """The commits in force, newest first: those that a RESTORE undid are left out."""
    back_to: int | None = None
    for commit in commits:
        version = int(commit["version"])
        if back_to is not None and version > back_to:
            continue
        target = (commit.get("operationParameters") or {}).get("version")
        if commit.get("operation") == RESTORE and str(target).isdigit():
            back_to = int(str(target))
            continue
        yield commit


def metadata_of(commit: Commit) -> Mapping[str, Any] | None:
    """The metadata of the run that made a commit; None for a commit of others."""
    mine = _user_metadata(commit).get(MARK)
    return mine if isinstance(mine, dict) else None


def _user_metadata(commit: Commit) -> Mapping[str, Any]:
    try:
        content = json.loads(commit.get("userMetadata") or "")
    except json.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {}


def _write(
    frame: DataFrame, table: str, metadata: Mapping[str, Any], on: Output, appending: Appending | None = None
) -> None:
    writer = (
        frame.write.format("delta")
        .option("userMetadata", json.dumps({MARK: dict(metadata), NUMBER: on.number}))
        .option("delta.logRetentionDuration", RETENTION)  # taken when the table begins
    )
    if appending is None:
        writer = writer.mode("overwrite").option("overwriteSchema", "true")
        writer = writer.option("txnAppId", WRITER).option("txnVersion", str(on.number))
    else:
        writer = writer.mode("append").option("txnAppId", appending.series).option("txnVersion", str(appending.increment))
    if is_path(table):
        writer.save(table)
    else:
        writer.saveAsTable(sql_name(table))


def _restore(spark: SparkSession, table: str, version: int) -> None:
    spark.sql(f"RESTORE TABLE {sql_name(table)} TO VERSION AS OF {int(version)}").collect()


def runs_in_history(spark: SparkSession, table: str) -> tuple[dict[str, int], int | None]:
    """The runs that committed, undone ones included, each with its version; and the oldest version that the history has.

    No table: none, and None.
    """
    commits = history(spark, table, LOOK_BACK)
    found = {str(run): int(commit["version"]) for commit in commits if (run := _run_of(commit)) is not None}
    return found, min((int(commit["version"]) for commit in commits), default=None)


def increments(spark: SparkSession, table: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The increments that stand in the release, oldest first: the version and the metadata of each.

    Cost: all commits of the table on the driver.
    """
    newest = history(spark, table, 1)
    commits = history(spark, table, int(newest[0]["version"]) + 1) if newest else []
    found = [(int(commit["version"]), metadata_of(commit) or {}) for commit in in_force(commits)]
    return [(version, metadata) for version, metadata in reversed(found) if SERIES in metadata]


def version_of(spark: SparkSession, table: str, run_id: str) -> int | None:
    """The version that a run published; None where it published none, as far as the history reaches."""
    return _version_in(history(spark, table, LOOK_BACK), run_id)


def _version_in(commits: Sequence[Commit], run_id: str) -> int | None:
    return next((int(commit["version"]) for commit in commits if _run_of(commit) == run_id), None)


def is_undone(spark: SparkSession, table: str, version: int) -> bool:
    """Whether a version of ours was undone by a RESTORE, or followed by another one of ours."""
    ours = (commit for commit in in_force(history(spark, table, LOOK_BACK)) if metadata_of(commit) is not None)
    return next((int(commit["version"]) for commit in ours), None) != version


def _run_of(commit: Commit) -> Any:
    metadata = metadata_of(commit) or {}
    return None if metadata.get(BEGUN) or metadata.get(WITHDRAWN) else metadata.get("run_id")


def _changes_rows(commit: Commit) -> bool:
    metadata = metadata_of(commit)
    return not metadata.get(BEGUN) if metadata is not None else str(commit["operation"]) not in MAINTENANCE
