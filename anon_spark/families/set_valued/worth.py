"""Utility of a release for analysts: sizes of the uncertainty, the error of random counts, one count with its bounds.

Items are counted, never named.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import BASE, MAX_ERRORS, UNCERTAIN
from anon_spark.families.set_valued.facts import CountExample, CountsWorth, QueryErrors, UncertainItems
from anon_spark.families.set_valued.queries import count
from anon_spark.families.set_valued.recoding import SetValuedRecoding
from anon_spark.metrics.query_error import Workload, draw_queries, error_between, error_of_silence, matching_rows

QUERIES = 100
PRESENT, ABSENT = 1, 5  # items of a query of each type
QUERY_SEED = 1


def counts_worth(recoding: SetValuedRecoding, items: str) -> CountsWorth:
    """How uncertain the rows are, and how accurate counts on them. Cost: five jobs."""
    release, universe = recoding.slots.select(BASE, UNCERTAIN, MAX_ERRORS), recoding.records.universe
    sizes = _uncertain_items(release)
    if not universe:
        return CountsWorth(sizes, None, None)
    linked = recoding.evidence()["linked"]
    return CountsWorth(sizes, _query_errors(linked, items, release, universe), _example(release))


def _uncertain_items(release: DataFrame) -> tuple[UncertainItems, ...]:
    """Rows by their number of uncertain items: 0, then from a power of two to the next."""
    size = F.size(UNCERTAIN)
    power = F.when(size > 0, F.floor(F.log2(size))).otherwise(-1)
    counted = release.groupBy(power.cast("int").alias("power")).count().orderBy("power").collect()
    return tuple(
        UncertainItems(2**at if at >= 0 else 0, 2 ** (at + 1) - 1 if at >= 0 else 0, rows) for at, rows in counted
    )


def _query_errors(linked: DataFrame, items: str, release: DataFrame, universe: Sequence[str]) -> QueryErrors:
    """Mean errors of fixed random queries on the published base items."""
    present, absent = min(PRESENT, len(universe)), min(ABSENT, len(universe))
    workload = Workload(
        draw_queries(universe, QUERIES, present, QUERY_SEED), draw_queries(universe, QUERIES, absent, QUERY_SEED + 1)
    )
    true = matching_rows(linked, items, workload)
    error = error_between(true, matching_rows(release, BASE, workload).counts, workload)
    silence = error_of_silence(true, workload)
    return QueryErrors(QUERIES, present, absent, error.present, error.absent, silence.present, silence.absent)


def _example(release: DataFrame) -> CountExample | None:
    """The count of rows with the most frequent base item."""
    frequent = release.select(F.explode(BASE).alias("item")).groupBy("item").count().orderBy(F.desc("count"), "item").head()
    if frequent is None:
        return None
    answer = count(release, [frequent[0]])
    return CountExample(answer.estimate, answer.lower, answer.upper, base=frequent[1])
