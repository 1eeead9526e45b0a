"""The ledger of a series: who was published and in which increment, as salted hashes in a private Delta table.

It has a row for the series (its salt, the type of the persons), one row per published person, and one row per increment that was
confirmed. No value of a record is in it. The id of a series is a digest of its salt: it is in the public commits of the release,
so a ledger with another salt is noticed, and tells nothing about the salt.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, quoted
from anon_spark.config import is_path, is_uri
from anon_spark.engine import crossed, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.io.causes import is_conflict, is_first_commit
from anon_spark.io.retries import retried
from anon_spark.io.tables import history, read_version, require_free, sql_name
from anon_spark.primitives.persons import as_text
from anon_spark.primitives.rounds import collect_small

SERIES, PERSON, CONFIRMED = "series", "person", "confirmed"  # kinds of rows
HASH = PREFIX + "person_hash"
SALT = PREFIX + "salt"
MOST_RUNS = 100_000
_FIELDS: list[tuple[str, Any]] = [
    ("kind", pa.string()),
    ("person", pa.binary()),  # salted hash
    ("run_id", pa.string()),
    ("increment", pa.int64()),
    ("input_version", pa.int64()),
    ("release_version", pa.int64()),  # the newest of the release when the run was about to publish; null: there was none
    ("salt", pa.string()),
    ("person_type", pa.string()),
    ("written", pa.timestamp("us", "UTC")),
]
SCHEMA = pa.schema(_FIELDS)
_KEYS = ("kind", "run_id", "increment", "input_version", "release_version", "salt", "person_type")


@dataclass(frozen=True)
class Entry:
    """A run in the ledger: the increment that it was about to publish, how many persons, and whether that was confirmed."""

    run_id: str
    increment: int
    input_version: int | None
    release_version: int | None
    persons: int
    confirmed: bool


@dataclass(frozen=True)
class Ledger:
    """A ledger at one version."""

    spark: SparkSession = field(repr=False, compare=False)
    table: str
    version: int
    salt: str = field(repr=False)
    person_type: str
    entries: tuple[Entry, ...]  # by increment

    @property
    def series(self) -> str:
        """The public id of the series."""
        return sha256(f"anon-spark series {self.salt}".encode()).hexdigest()[:32]

    def seal(self, digest: str) -> str:
        """A public mark of a digest of the ledger: it tells nothing to whoever does not know the salt."""
        return sha256(f"anon-spark ledger {self.salt} {digest}".encode()).hexdigest()

    @property
    def salt_frame(self) -> DataFrame:
        """The salt as one row to join, because a literal would appear in the event log."""
        return small_frame(self.spark, pa.table({SALT: [self.salt]}))

    def persons(self, without: Collection[str] = ()) -> DataFrame:
        """The published persons, without those of some runs: HASH and `increment`, lazily."""
        rows = read_version(self.spark, self.table, self.version).where(F.col("kind") == PERSON)
        counted = rows.where(~F.col("run_id").isin(sorted(without))) if without else rows
        return counted.select(F.col("person").alias(HASH), "increment")

    def hashed(self, frame: DataFrame, person: str) -> DataFrame:
        """Append HASH, null where there is no person. Cost: a join of one row."""
        text = as_text(frame, person)
        digest = F.when(F.isnotnull(quoted(person)), F.unhex(F.sha2(F.concat_ws(":", SALT, text), 256)))
        return crossed(frame, self.salt_frame).withColumn(HASH, digest).drop(SALT)


def create_ledger(spark: SparkSession, table: str, person_type: str) -> None:
    """Create a ledger with a fresh salt. Of several runs that do so at once one wins, and all use its ledger.

    Guarantee: a local folder is readable by its owner only. Cost: one commit.
    """
    if is_path(table) and not is_uri(table):
        Path(table).mkdir(mode=0o700, parents=True, exist_ok=True)
    row = {"kind": SERIES, "salt": secrets.token_hex(32), "person_type": person_type, "written": datetime.now(UTC)}
    frame = small_frame(spark, pa.Table.from_pylist([row], schema=SCHEMA)).coalesce(1)
    writer = frame.write.format("delta").mode("errorifexists").option("delta.logRetentionDuration", "interval 3650 days")
    try:
        writer.save(table) if is_path(table) else writer.saveAsTable(sql_name(table))
    except Exception as error:
        if not (is_conflict(error) or is_first_commit(error)) and not history(spark, table, 1):
            raise


def open_ledger(spark: SparkSession, table: str) -> Ledger | None:
    """The ledger as it is now, None where there is no table. Another table there is refused.

    Cost: metadata, and one small job: a row per run reaches the driver.
    """
    newest = history(spark, table, 1)
    if not newest:
        require_free(spark, table, "output.ledger")
        return None
    version = int(newest[0]["version"])
    frame = read_version(spark, table, version)
    if frame.columns != SCHEMA.names:
        raise ConfigurationError(f"output.ledger: {table} is no ledger of anon-spark. Choose another place.")
    counted = frame.groupBy(*_KEYS).agg(F.count(F.lit(1)).alias("rows"))
    rows = collect_small(counted, MOST_RUNS, "Runs in the ledger").to_pylist()
    heads = [row for row in rows if row["kind"] == SERIES]
    if len(heads) != 1 or heads[0]["rows"] != 1 or not heads[0]["salt"]:
        raise ConfigurationError(
            f"output.ledger: {table} should have one row of kind series with the salt; it was edited or is damaged. Restore it "
            "(RESTORE TABLE … TO VERSION AS OF …), or begin a new series with another output.table and output.ledger."
        )
    confirmed = {row["run_id"] for row in rows if row["kind"] == CONFIRMED}
    entries = tuple(
        Entry(
            row["run_id"], row["increment"], row["input_version"], row["release_version"], row["rows"],
            row["run_id"] in confirmed,
        )
        for row in sorted(rows, key=lambda row: (row["increment"] or 0, row["run_id"] or ""))
        if row["kind"] == PERSON
    )  # fmt: skip
    return Ledger(spark, table, version, heads[0]["salt"], heads[0]["person_type"], entries)


def enter(
    ledger: Ledger, persons: DataFrame, run_id: str, increment: int, input_version: int | None, release_version: int | None
) -> int:
    """Write the persons of an increment that is about to be published, not confirmed yet. persons: HASH, one row each.

    release_version: the newest of the release, None where there is none.
    Returns the version of the ledger that holds them. Cost: one commit.
    """
    rows = persons.select(
        F.lit(PERSON).alias("kind"),
        F.col(HASH).alias("person"),
        F.lit(run_id).alias("run_id"),
        F.lit(increment).cast("bigint").alias("increment"),
        F.lit(input_version).cast("bigint").alias("input_version"),
        F.lit(release_version).cast("bigint").alias("release_version"),
        F.lit(None).cast("string").alias("salt"),
        F.lit(None).cast("string").alias("person_type"),
        F.lit(datetime.now(UTC)).alias("written"),
    )
    _append(ledger, rows)
    return int(history(ledger.spark, ledger.table, 1)[0]["version"])


def confirm(ledger: Ledger, runs: Sequence[tuple[str, int]]) -> None:
    """Confirm that runs published their increments: (run id, number). Cost: one commit; none for no run."""
    if not runs:
        return
    now = datetime.now(UTC)
    rows = [{"kind": CONFIRMED, "run_id": run, "increment": number, "written": now} for run, number in runs]
    _append(ledger, small_frame(ledger.spark, pa.Table.from_pylist(rows, schema=SCHEMA)).coalesce(1))


def forget(ledger: Ledger, runs: Sequence[str]) -> None:
    """Remove the persons of runs that did not publish and never can. Cost: one commit; none for no run."""
    if runs:
        listed = ", ".join("'" + run.replace("'", "") + "'" for run in runs)
        statement = f"DELETE FROM {sql_name(ledger.table)} WHERE kind = '{PERSON}' AND run_id IN ({listed})"
        retried(lambda: ledger.spark.sql(statement).collect())


def _append(ledger: Ledger, rows: DataFrame) -> None:
    writer = rows.write.format("delta").mode("append")
    table = ledger.table
    retried(lambda: writer.save(table) if is_path(table) else writer.saveAsTable(sql_name(table)))
