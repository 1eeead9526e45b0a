"""Link attack: someone who knows a person's true quasi-identifiers looks the person up in the release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.risk.cells import cell, content_hash

_PERSON, _HASH, _FOUND, _SIZE = PREFIX + "known", PREFIX + "hash", PREFIX + "found", PREFIX + "size"
_SPREAD = 64  # how many more tuples than needed may pass the hash filter; the smallest hashes of them are kept


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
    names = list(recoded)
    rows = source.count() if rows is None else rows
    known = [cell(source, name).alias(f"{PREFIX}{at}") for at, name in enumerate(names)]
    columns = [f"{PREFIX}{at}" for at in range(len(names))]
    bits = max(0, math.floor(math.log2(max(1.0, rows / (_SPREAD * tuples)))))
    mask = F.lit((1 << bits) - 1).cast("long")
    hashed = source.select(*known).withColumn(_HASH, content_hash([F.col(name) for name in columns]))
    sample = (
        hashed.where(F.col(_HASH).bitwiseAND(mask) == 0)
        .groupBy(_HASH, *columns)
        .agg(F.count(F.lit(1)).alias(ROWS))
        .orderBy(_HASH, *columns)
        .limit(tuples)
    )
    fields = ", ".join(f"{name} string" for name in columns)
    lookups = sample.mapInArrow(
        _lookups([(hierarchy, level) for hierarchy, level in recoded.values()]),
        f"{_PERSON} long, {ROWS} long, {fields}",
    ).withColumn(_HASH, content_hash([F.col(name) for name in columns]))

    labels = [cell(release, name).cast("string").alias(f"{PREFIX}label_{at}") for at, name in enumerate(names)]
    classes = release.select(*labels).groupBy(*(f"{PREFIX}label_{at}" for at in range(len(names)))).agg(
        F.count(F.lit(1)).alias(_SIZE)
    )
    classes = classes.withColumn(_FOUND, content_hash([F.col(f"{PREFIX}label_{at}") for at in range(len(names))]))
    same = reduce(
        lambda left, right: left & right,
        (F.col(f"{PREFIX}{at}").eqNullSafe(F.col(f"{PREFIX}label_{at}")) for at in range(len(names))),
        F.col(_HASH) == F.col(_FOUND),
    )
    persons = lookups.join(classes, same, "left").groupBy(_PERSON).agg(F.max(ROWS).alias(ROWS), F.min(_SIZE).alias(_SIZE))
    found = persons.agg(
        F.count(F.lit(1)).alias("tuples"),
        F.coalesce(F.sum(ROWS), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.when(F.isnotnull(_SIZE), F.col(ROWS))), F.lit(0)).alias("found"),
        F.coalesce(F.max(1 / F.col(ROWS)), F.lit(0.0)).alias("before_worst"),
        F.coalesce(F.sum(F.col(ROWS) / F.col(_SIZE)), F.lit(0.0)).alias("after_sum"),
        F.coalesce(F.max(1 / F.col(_SIZE)), F.lit(0.0)).alias("after_worst"),
        *squares(F.coalesce(1 / F.col(_SIZE), F.lit(0.0))),
    ).collect()[0]
    sampled = found["rows"]
    return LinkRisk(
        tuples=found["tuples"],
        rows=sampled,
        found=found["found"],
        before_expected=found["tuples"] / sampled if sampled else 0.0,
        before_worst=found["before_worst"],
        # rounded: sums of doubles depend on their order in the last digits
        after_expected=float(f"{found['after_sum'] / sampled:.12g}") if sampled else 0.0,
        after_worst=found["after_worst"],
        after_error=error_of_ratio(found, found["after_sum"]),
    )


def squares(chance: Column) -> list[Column]:
    """Sums of sampled tuples with their rows, by which `error_of_ratio` tells how sure a mean over rows is."""
    weight = F.col(ROWS).cast("double") * F.col(ROWS)
    sums = {"squares": weight * chance * chance, "cross": weight * chance, "weights": weight}
    return [F.coalesce(F.sum(value), F.lit(0.0)).alias(name) for name, value in sums.items()]


def error_of_ratio(found: Row, total: float) -> float | None:
    """Standard error of total / rows where whole tuples were sampled; None for fewer than two."""
    if found["tuples"] < 2:
        return None
    rate = total / found["rows"]
    spread = max(0.0, found["squares"] - 2 * rate * found["cross"] + rate**2 * found["weights"])
    return float(f"{math.sqrt(spread) / found['rows']:.6g}")


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
            names = [_PERSON, ROWS, *(f"{PREFIX}{at}" for at in range(len(recoding)))]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    return generalize
