"""Link attack: someone who knows a person's true quasi-identifiers looks the person up in the release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.sampling import TUPLE, sampled_tuples, tuple_columns
from anon_spark.auditing.reading.values import content_hash, private
from anon_spark.columns import ROWS
from anon_spark.engine import not_broadcast
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending
from anon_spark.risk.look_up.chances import error_of_ratio, sampled_sums, squares
from anon_spark.risk.look_up.classes import SIZE, label_columns, published_sizes

_HASH, _FOUND = private("hash"), private("found")


@dataclass(frozen=True)
class LinkRisk:
    """Success of the attack on a sample of source rows, as chances between 0 and 1.

    tuples and rows: sampled quasi-identifier tuples and the source rows that have them; found: how many of these rows
    have a fitting class in the release; before: with the raw table; after: with the release. expected: for a random
    sampled row; worst: for the least protected one. A row without a fitting class (suppressed) cannot be linked.
    """

    tuples: int
    rows: int
    found: int
    before_expected: float
    before_worst: float
    after_expected: float
    after_worst: float
    after_error: float | None = field(default=None, compare=False)  # standard error of after_expected, over tuples


def link_attack(
    source: DataFrame,
    release: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    tuples: int = 1000,
    rows: int | None = None,
) -> LinkRisk:
    """Simulate the attack: generalize the known values of sampled rows, find them among the published rows, pick one.

    recoded: quasi-identifier → (hierarchy, level); tuples: most tuples to sample; rows: how many the source has, when known.
    The attacker looks for the values as the release should show them, and as they are: a row that escaped
    generalization is found by its raw values, and a class below k shows as a success above 1/k. Of two fitting classes
    the smaller is taken. Rows are what is counted: persons with several rows are at higher risk than stated.
    Guarantee: the sample is chosen by content (whole tuples), so the numbers do not depend on partitions.
    Cost: one job (and a count if `rows` is not given): one scan of the source, one scan and groupBy of the release; at most
    `tuples` tuples are generalized, in Arrow; one row reaches the driver.
    """
    rows = source.count() if rows is None else rows
    return link_attack_to_be(source, release, recoded, rows, tuples).get()


def link_attack_to_be(
    source: DataFrame,
    release: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    rows: int,
    tuples: int = 1000,
    classes: DataFrame | None = None,
) -> Pending[LinkRisk]:
    """As `link_attack`, its sums not collected yet. rows: how many the source has, about; the sample hangs on it.

    classes: those of the release with their ROWS, where they are counted already.
    """
    names = list(recoded)
    columns = tuple_columns(len(names))
    fields = ", ".join(f"{name} string" for name in columns)
    lookups = (
        sampled_tuples(source, names, tuples, rows)
        .mapInArrow(_lookups(list(recoded.values())), f"{TUPLE} long, {ROWS} long, {fields}")
        .withColumn(_HASH, content_hash([F.col(name) for name in columns]))
    )
    labels = [F.col(name) for name in label_columns(len(names))]
    sizes = published_sizes(release, names, classes).withColumn(_FOUND, content_hash(labels))
    same = reduce(
        lambda left, right: left & right,
        (F.col(column).eqNullSafe(label) for column, label in zip(columns, labels, strict=True)),
        F.col(_HASH) == F.col(_FOUND),
    )
    found = lookups.join(not_broadcast(sizes), same, "left")
    persons = found.groupBy(TUPLE).agg(F.max(ROWS).alias(ROWS), F.min(SIZE).alias(SIZE))
    sums = persons.agg(
        *sampled_sums(F.isnotnull(SIZE)),
        F.coalesce(F.sum(F.col(ROWS) / F.col(SIZE)), F.lit(0.0)).alias("after_sum"),
        F.coalesce(F.max(1 / F.col(SIZE)), F.lit(0.0)).alias("after_worst"),
        *squares(F.coalesce(1 / F.col(SIZE), F.lit(0.0))),
    )
    return Pending.of(sums, lambda found: _risk(found[0]))


def _risk(sums: Row) -> LinkRisk:
    sampled = sums["rows"]
    return LinkRisk(
        tuples=sums["tuples"],
        rows=sampled,
        found=sums["found"],
        before_expected=sums["tuples"] / sampled if sampled else 0.0,
        before_worst=sums["before_worst"],
        # rounded: sums of doubles depend on their order in the last digits
        after_expected=float(f"{sums['after_sum'] / sampled:.12g}") if sampled else 0.0,
        after_worst=sums["after_worst"],
        after_error=error_of_ratio(sums, sums["after_sum"]),
    )


def _lookups(
    recoding: list[tuple[Hierarchy, int]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Sampled tuples (hash, values, rows) → what the attacker looks for: the generalized tuple, then the raw one."""

    def shown(value: object, hierarchy: Hierarchy, level: int) -> str | None:
        if value is None or value != value:  # NaN is missing too
            return None if level < hierarchy.height else hierarchy.labels[level][0]
        leaf = hierarchy.leaf_of(value)
        if leaf is None:
            return str(value)
        return hierarchy.labels[level][int(hierarchy.codes[level, leaf])]

    def generalize(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[list[object]] = []
            for person, *values, count in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                cells = list(zip(values, recoding, strict=True))
                general = [shown(value, hierarchy, level) for value, (hierarchy, level) in cells]
                raw = [shown(value, hierarchy, 0) for value, (hierarchy, _) in cells]
                rows += [[person, count, *wanted] for wanted in ([general] if general == raw else [general, raw])]
            width = 2 + len(recoding)
            columns = [[row[at] for row in rows] for at in range(width)]
            kinds = [pa.int64(), pa.int64(), *[pa.string()] * len(recoding)]
            names = [TUPLE, ROWS, *tuple_columns(len(recoding))]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    return generalize
