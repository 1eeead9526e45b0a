"""Records linked to a staged release: whether they are the source's, and the verdict on records and their rows.

Every check that uses a link relies on the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import item_set
from anon_spark.auditing.reading.values import hashed, quoted
from anon_spark.auditing.truth.full_domain import said_of_types
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.pending import Pending, together

NECESSARY = "Necessary conditions only: which record became which row is not known without the run's private link."


def verify_linked(source: DataFrame, linked: DataFrame, items: str, kept: Sequence[str]) -> Verdict:
    """Whether `linked` holds the records of the source that have a list of items, and no others.

    Guarantee: passed iff their number and the sum of 64-bit hashes of item sets and kept values are the same. Cost: one job.
    """
    return linked_check(source, linked, items, kept).get()


def linked_check(source: DataFrame, linked: DataFrame, items: str, kept: Sequence[str]) -> Pending[Verdict]:
    """As `verify_linked`, its counts not collected yet."""
    listed = source.where(F.col(quoted(items)).isNotNull())

    def judged(found: tuple[tuple[int, int], tuple[int, int]]) -> Verdict:
        (records, mark), (linked_records, linked_mark) = found
        same = records == linked_records and mark == linked_mark
        violations = 0 if same else max(1, abs(records - linked_records))
        passed = f"the graph is about the {records} records of the source."
        detail = passed if same else _other_records("graph", linked_records, records)
        return Verdict("records", same, violations, records, detail, kind=Kind.TRUTH)

    return together(_content(listed, items, kept), _content(linked, items, kept)).then(judged)


def _content(frame: DataFrame, items: str, kept: Sequence[str]) -> Pending[tuple[int, int]]:
    """Rows, and the sum of the hashes of their item sets and kept values."""
    sets = frame.select(item_set(items).alias(items), *(F.col(quoted(name)) for name in kept))
    mark = hashed(sets, [items, *kept]).cast("decimal(20,0)")
    totals = sets.agg(F.count(F.lit(1)).alias("rows"), F.coalesce(F.sum(mark), F.lit(0)).alias("mark"))
    return Pending.of(totals, lambda found: (int(found[0]["rows"]), int(found[0]["mark"])))


def verdict_of_records(
    counts: Mapping[str, int],
    fault_texts: Mapping[str, str],
    more_texts: Mapping[str, str],
    faulty: int,
    records: int,
    in_scope: int,
    other: Sequence[str],
) -> Verdict:
    """The verdict on records that were compared with their rows, by their links.

    counts: by kind of fault, first those in `fault_texts`, which are counted in records, then any others, among them
    `repeated` (links) and `other_records`; more_texts: what is said of these, but for the last two; faulty: records with any
    fault; in_scope: how many records the source has; other: unchanged columns of another type. Cost: none, plain numbers.
    """
    texts = {
        **{name: f"{counts[name]} of {records} records {text}." for name, text in fault_texts.items()},
        **more_texts,
        "repeated": f"{counts['repeated']} links occur more than once, or are null.",
        "other_records": _other_records("release", records, in_scope),
    }
    parts = [*(texts[name] for name, number in counts.items() if number), *said_of_types(other)]
    if not records:
        parts.append("there are no records.")
    return Verdict(
        kind=Kind.TRUTH,
        name="truthfulness",
        passed=not parts,
        violations=faulty + sum(number for name, number in counts.items() if name not in fault_texts) + len(other),
        checked=records,
        detail=" ".join(parts) or f"all {records} records have one row each, and it is true of them.",
        facts={**counts, "records": records},
    )


def _other_records(what: str, records: int, in_scope: int) -> str:
    end = "." if records != in_scope else ", and their content differs."
    return f"the {what} is about {records} records, the source has {in_scope} in scope{end}"
