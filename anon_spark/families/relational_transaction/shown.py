"""Columns before and after: rows by published label or by range of numbers, and the detail that each column lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, quoted
from anon_spark.engine import gathered
from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding
from anon_spark.kernels.classes import Ints
from anon_spark.metrics.glm import general_loss
from anon_spark.model.distributions import label_distribution, of_counts
from anon_spark.model.facts import Distribution, LabelCount
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending, together
from anon_spark.risk.look_up.frequent import frequent_values_to_be

MOST_COUNTED = 1_000  # labels of a column
FEWEST_RANGES = 6  # of a column of numbers

Columns = tuple[tuple[Distribution, ...], Mapping[str, float]]

_AT, _VALUE, _BEFORE, _AFTER, _WIDTH, _LO, _HI = (
    PREFIX + name for name in ("at", "value", "before", "after", "width", "lo", "hi")
)


def columns_to_be(recoding: RelationalTransactionRecoding, release: DataFrame, k: int, small: bool) -> Pending[Columns]:
    """The distribution and the lost detail of every quasi-identifier. Cost: scans of records and release, few rows each."""
    hierarchies = recoding.fitted_hierarchies
    labelled = [name for name, hierarchy in hierarchies.items() if hierarchy is not None]
    frame = recoding.records.frame
    labels = frequent_values_to_be(frame, release, [], k, MOST_COUNTED, only_after=labelled, small=small)
    counted = together(labels, _leaves_to_be(recoding), _numbers_to_be(recoding, release, small))

    def columns(found: tuple[Mapping[str, list[LabelCount]], Mapping[str, Ints], Mapping[str, Columns]]) -> Columns:
        by_label, by_leaf, numbers = found
        shown, lost = list[Distribution](), dict[str, float]()
        for name, hierarchy in hierarchies.items():
            if hierarchy is None:
                of_numbers, lost_numbers = numbers[name]
                shown += [_named(one, k) for one in of_numbers]
                lost |= lost_numbers
            else:
                by_code = _by_code(hierarchy, by_label[name])
                shown.append(label_distribution(name, hierarchy, by_leaf[name], by_code, k, published=recoding.records.rows))
                lost[name] = float(general_loss([hierarchy], [by_code], 0)) if any(rows.any() for rows in by_code) else 0.0
        return tuple(shown), lost

    return counted.then(columns)


def _leaves_to_be(recoding: RelationalTransactionRecoding) -> Pending[Mapping[str, Ints]]:
    """Records by leaf of every hierarchy."""
    attributes = recoding.records.attributes
    places = [at for at, hierarchy in enumerate(attributes.hierarchies) if hierarchy is not None]
    if not places:
        return Pending.known({})
    cells = F.array(*(
        F.struct(F.lit(at).alias(_AT), F.col(attributes.columns[at]).cast("int").alias(_VALUE)) for at in places
    ))  # fmt: skip
    counted = recoding.records.frame.select(F.inline(cells)).groupBy(_AT, _VALUE).agg(F.count(F.lit(1)).alias(_BEFORE))

    def by_leaf(rows: Sequence[Row]) -> Mapping[str, Ints]:
        counts = {}
        for at in places:
            hierarchy, leaf_at = attributes.hierarchies[at], attributes.leaf_at[at]
            assert hierarchy is not None and leaf_at is not None
            counts[attributes.names[at]] = np.zeros(hierarchy.leaf_count, dtype=np.int64)
            for row in rows:
                if row[_AT] == at:
                    counts[attributes.names[at]][leaf_at[row[_VALUE]]] += row[_BEFORE]
        return counts

    return Pending.of(counted, by_leaf)


def _numbers_to_be(recoding: RelationalTransactionRecoding, release: DataFrame, small: bool) -> Pending[Mapping[str, Columns]]:
    """Rows by range of every number without hierarchy; a row of the release is spread evenly over its published range."""
    attributes = recoding.records.attributes
    steps = {
        at: _step(float(attributes.relation.span[at])) for at, hierarchy in enumerate(attributes.hierarchies) if hierarchy is None
    }
    if not steps:
        return Pending.known({})
    before, after = [], []
    for at, step in steps.items():
        lo, hi = (F.col(quoted(attributes.names[at]))[end].cast("double") for end in ("lo", "hi"))
        value = F.floor(F.col(attributes.columns[at]) / step).cast("bigint")
        before.append(_cell(at, F.array(value), F.lit(1), F.lit(0.0), F.lit(0.0)))
        ranges = F.sequence(F.floor(lo / step).cast("bigint"), F.floor(hi / step).cast("bigint"))
        after.append(_cell(at, ranges, F.lit(0), lo, hi))
    cells = recoding.records.frame.select(F.inline(F.array(*before))).unionByName(release.select(F.inline(F.array(*after))))
    width, step_of = F.col(_HI) - F.col(_LO), F.element_at(F.map_from_entries(F.array(*(
        F.struct(F.lit(at), F.lit(step)) for at, step in steps.items()
    ))), F.col(_AT))  # fmt: skip
    each = cells.select(_AT, _BEFORE, _LO, _HI, F.explode(_VALUE).alias(_VALUE))
    covered = F.least(F.col(_HI), (F.col(_VALUE) + 1) * step_of) - F.greatest(F.col(_LO), F.col(_VALUE) * step_of)
    share = F.when(width > 0, covered / width).otherwise(1.0)
    counted = gathered(each, small).groupBy(_AT, _VALUE).agg(
        F.sum(_BEFORE).alias(_BEFORE),
        F.sum(F.when(F.col(_BEFORE) == 0, share).otherwise(0.0)).alias(_AFTER),
        F.sum(F.when(F.col(_BEFORE) == 0, share * width).otherwise(0.0)).alias(_WIDTH),
    )

    def numbers(rows: Sequence[Row]) -> Mapping[str, Columns]:
        found = {}
        for at, step in steps.items():
            mine = sorted((row for row in rows if row[_AT] == at), key=lambda row: int(row[_VALUE]))
            published, span = round(sum(row[_AFTER] for row in mine)), float(attributes.relation.span[at])
            name = attributes.names[at]
            counts = tuple(LabelCount(_range(row[_VALUE], step), row[_BEFORE], round(row[_AFTER])) for row in mine)
            lost = sum(row[_WIDTH] for row in mine) / (span * published) if span and published else 0.0
            whole = Distribution(name, "quasi-identifier", sum(row[_BEFORE] for row in mine), published, counts)
            found[name] = ((whole,), {name: min(1.0, lost)})
        return found

    return Pending.of(counted, numbers)


def _cell(at: int, values: Column, before: Column, lo: Column, hi: Column) -> Column:
    return F.struct(
        F.lit(at).alias(_AT), values.alias(_VALUE), before.alias(_BEFORE), lo.alias(_LO), hi.alias(_HI)
    )


def _range(number: int, step: float) -> str:
    """The name of a range; a thousand is written without comma, as it may be a year."""
    return f"{number * step:g} to below {(number + 1) * step:g}"


def _named(one: Distribution, k: int) -> Distribution:
    """The same, with ranges of at least k rows before and after only."""
    known = [count for count in one.labels if count.before >= k]
    found = of_counts(one.column, one.role, known, k, one.rows_before, one.rows_after)
    return replace(found, estimated=True)


def _by_code(hierarchy: Hierarchy, counted: Sequence[LabelCount]) -> list[Ints]:
    """Rows of the release by level and code, from counts of labels; a label that is repeated stands on its lowest level."""
    place: dict[str | None, tuple[int, int]] = {}
    for level, names in enumerate(hierarchy.labels):
        for code, label in enumerate(names):
            place.setdefault(label, (level, code))
    rows = [np.zeros(len(names), dtype=np.int64) for names in hierarchy.labels]
    for count in counted:
        level, code = place[count.label]
        rows[level][code] += count.after
    return rows


def _step(span: float) -> float:
    """The width of ranges that a person would choose: 1, 2 or 5 times a power of ten."""
    if not span > 0 or not math.isfinite(span):
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / FEWEST_RANGES))
    return max(times * power for times in (1, 2, 5) if times * power <= span / FEWEST_RANGES)
