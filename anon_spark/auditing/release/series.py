"""Checks of an increment of a series: its rows are those of the people who were not published, and the ledger has its people.

Persons are hashed here once more, by the definition alone: SHA-256 of the salt, a colon and the person as text (bytes as
hexadecimal digits).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from anon_spark.auditing.reading.values import exact, private, quoted, require_columns
from anon_spark.auditing.release.content import contents_to_be
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.engine import crossed, small_frame
from anon_spark.pending import Pending, together

_MARK, _SALT, _KNOWN, _TIMES = (private(name) for name in ("mark", "series_salt", "is_known", "times"))


def marked(frame: DataFrame, person: str, salt: str) -> DataFrame:
    """Append the mark of every row's person, a hexadecimal text; null where there is no person. No action."""
    require_columns(frame, [person], "source")
    who = exact(frame, person)
    text = F.hex(who) if isinstance(frame.schema[person].dataType, BinaryType) else who.cast("string")
    salted = crossed(frame, small_frame(frame.sparkSession, pa.table({_SALT: [salt]})))  # a literal would be in the event log
    digest = F.upper(F.sha2(F.concat(F.col(_SALT), F.lit(":"), text), 256))
    return salted.select(*(F.col(quoted(name)) for name in frame.columns), digest.alias(_MARK))


def increment_check(
    source: DataFrame, person: str, salt: str, published: DataFrame, increment: DataFrame
) -> Pending[tuple[Verdict, str]]:
    """Whether an increment has the rows of the people who were not published, and no others; and the digest of its rows.

    published: one column of hashes, as bytes; increment: columns of the source, the person among them.
    Guarantee: passed iff the rows are the same multiset, up to a hash of 128 bits. Cost: one scan of source, ledger and
    increment, one join by person.
    """
    (hashes,) = published.columns
    known = published.select(F.hex(hashes).alias(_MARK)).groupBy(_MARK).agg(F.lit(True).alias(_KNOWN))
    rows = marked(source, person, salt).join(known, _MARK, "left").where(F.isnull(_KNOWN))

    def judged(found: tuple[list[str], list[str]]) -> tuple[Verdict, str]:
        (expected,), (there,) = found
        same = expected == there
        detail = "the increment has the rows of exactly the people who were not published before."
        if not same:
            detail = "the increment does not have the rows of exactly the people who were not published before."
        return Verdict("increment", same, int(not same), 1, detail, kind=Kind.SERIES), there

    columns = increment.columns
    return together(contents_to_be(rows, columns), contents_to_be(increment, columns)).then(judged)


def entered_check(held: DataFrame, person: str, salt: str, entered: DataFrame, published: int) -> Pending[Verdict]:
    """Whether the ledger got exactly the people of whom rows are published, each once.

    held: the source's rows that the release holds, as the audit found them; entered: one column of hashes, as bytes; published:
    how many rows the release has.
    Guarantee: passed iff `held` has that many rows, every row has a person, and their hashes are those of `entered`, as a
    multiset up to 128 bits. Cost: one scan of each, one shuffle of persons.
    """
    (hashes,) = entered.columns
    marks = marked(held, person, salt).select(_MARK)
    counts = marks.agg(F.count(F.lit(1)).alias("rows"), F.count_if(F.isnull(_MARK)).alias("nobody"))
    expected = contents_to_be(marks.distinct(), [_MARK])
    found = contents_to_be(entered.select(F.hex(hashes).alias(_MARK)), [_MARK])
    number = Pending.of(entered.agg(F.count(F.lit(1))), lambda rows: int(rows[0][0]))

    def judged(results: tuple[Row, list[str], list[str], int]) -> Verdict:
        rows, of_rows, of_ledger, persons = results
        faults = []
        if rows["rows"] != published:
            faults.append(f"the release has {published} rows, the people in it have {rows['rows']}.")
        if rows["nobody"]:
            faults.append(f"{rows['nobody']} published rows have no person.")
        if of_rows != of_ledger:
            faults.append("the people who were entered are not those of the published rows.")
        detail = " ".join(faults) or f"{persons} persons of {published} published rows were entered, each once."
        return Verdict("ledger", not faults, len(faults), persons, detail, {"persons": persons}, kind=Kind.SERIES)

    return together(Pending.of(counts, lambda found: found[0]), expected, found, number).then(judged)


def once_each_check(persons: DataFrame, sealed: bool) -> Pending[Verdict]:
    """Whether nobody is twice in a ledger. persons: one column of hashes; sealed: whether it is the ledger of the last commit."""
    (hashes,) = persons.columns
    times = persons.groupBy(F.hex(hashes).alias(_MARK)).agg(F.count(F.lit(1)).alias(_TIMES))
    counts = times.agg(F.count(F.lit(1)).alias("persons"), F.count_if(F.col(_TIMES) > 1).alias("several"))

    def judged(rows: Sequence[Row]) -> Verdict:
        row = rows[0]
        faults = [f"{row['several']} persons were published in several increments."] if row["several"] else []
        if not sealed:
            faults.append("it is not the ledger that the last increment was published with: it was edited.")
        detail = " ".join(faults) or f"{row['persons']} persons were published, each in one increment."
        return Verdict("ledger", not faults, len(faults), row["persons"], detail, {"persons": row["persons"]}, kind=Kind.SERIES)

    return Pending.of(counts, judged)
