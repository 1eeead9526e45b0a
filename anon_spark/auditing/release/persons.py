"""The persons behind a release: they are not published, so they are looked up in the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.recode import KEPT, NULL, UNSEEN, Climb, with_labels
from anon_spark.auditing.reading.values import exact, private, quoted, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.engine import not_broadcast
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending


def with_persons(
    source: DataFrame,
    release: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    person: str,
    nulls: str,
    unchanged: Sequence[str] = (),
) -> DataFrame:
    """The source's rows whose class the release shows: published quasi-identifiers, unchanged columns, and the person.

    recoded: quasi-identifier → (hierarchy, level); nulls: what the run did with a null quasi-identifier.
    Guarantee: for a truthful release these are exactly the rows it was made from, so its classes can be counted in
    persons; for another one, see `verify_recoding`.
    Cost: one pass over the rows for the labels and one join with the classes of the release; no action.
    """
    names = list(recoded)
    require_columns(source, [*names, *unchanged, person], "source")
    require_columns(release, names, "release")
    others = (*unchanged, person)
    kept = _named("kept", others)
    status, raw, labels = private("status"), _named("raw", names), _named("label", names)
    rows = source.select(
        *(exact(source, name).alias(raw[at]) for at, name in enumerate(names)),
        *(F.col(quoted(name)).alias(kept[at]) for at, name in enumerate(others)),
        F.lit(KEPT).alias(status),
    )
    rows = with_labels(rows, [Climb(raw[at], labels[at], *goal, status) for at, goal in enumerate(recoded.values())])
    dropped = UNSEEN | NULL if nulls == "suppress" else UNSEEN
    rows = rows.where(F.col(status).bitwiseAND(F.lit(dropped)) == 0).select(
        *(F.col(labels[at]).alias(name) for at, name in enumerate(names)),
        *(F.col(kept[at]).alias(name) for at, name in enumerate(others)),
    )
    shown = release.select(*(exact(release, name).alias(labels[at]) for at, name in enumerate(names))).distinct()
    same = [F.col(quoted(name)).eqNullSafe(F.col(labels[at])) for at, name in enumerate(names)]
    return rows.join(not_broadcast(shown), reduce(and_, same), "left_semi")


def verify_one_row_each(source: DataFrame, person: str) -> Verdict:
    """Whether every person of the source has one row, so that a class of k rows is a class of k persons.

    Guarantee: passed iff no person, compared byte by byte, has two rows, and every row has a person: a row without one
    cannot be told from a second row of somebody. Rows that a policy drops are looked at, too.
    violations counts persons with several rows, and the rows without a person; checked counts persons. There is no frame
    of violations: it would hold identities.
    Cost: one job, one scan of the source and one shuffle of its persons; one row reaches the driver.
    """
    return one_row_each_check(source, person).get()


def one_row_each_check(source: DataFrame, person: str) -> Pending[Verdict]:
    """As `verify_one_row_each`, its counts not collected yet."""
    require_columns(source, [person], "source")
    who, rows = private("who"), private("rows")
    persons = source.select(exact(source, person).alias(who)).groupBy(who).agg(F.count(F.lit(1)).alias(rows))
    known = F.isnotnull(who)
    counts = persons.agg(
        F.count(F.when(known, F.lit(1))).alias("persons"),
        F.count(F.when(known & (F.col(rows) > 1), F.lit(1))).alias("several"),
        F.coalesce(F.sum(F.when(~known, F.col(rows))), F.lit(0)).alias("nobody"),
    )
    return Pending.of(counts, lambda found: _verdict(found[0]))


def _verdict(counts: Row) -> Verdict:
    texts = {
        "several": f"{counts['several']} of {counts['persons']} persons of the source have several rows.",
        "nobody": f"{counts['nobody']} rows of the source have no person.",
    }
    faults = [text for name, text in texts.items() if counts[name]]
    return Verdict(
        kind=Kind.PERSONS,
        name="persons",
        passed=not faults,
        violations=counts["several"] + counts["nobody"],
        checked=counts["persons"],
        detail=" ".join(faults) or f"all {counts['persons']} persons of the source have one row: a class counts persons.",
        facts={
            "persons": counts["persons"],
            "several_rows": counts["several"],
            "rows_without_person": counts["nobody"],
        },
    )


def _named(what: str, names: Sequence[str]) -> list[str]:
    return [private(f"{what}_{at}") for at in range(len(names))]
