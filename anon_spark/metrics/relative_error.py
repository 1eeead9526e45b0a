"""Average relative error ARE: how far counts on a release of relational values and items are from the true ones.

A query counts the records that have x relational values and all of y items. On the release a row counts with the probability
that its record matches: 1 / leaves of a published node, 1 / (distinct original values in a published range), and for a
generalized item u that covers q of the queried items 2^(|u| - q) / (2^|u| - 1) (all its non-empty sets equally likely:
"sets") or 1 / |u| each ("uniform"). With "sets" a large u counts 1/2 or more, so ARE is far above 1 for coarse items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, reduce
from math import fsum
from operator import itemgetter, mul
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, is_reserved, quoted
from anon_spark.engine import crossed, runs_in_one_task, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.metrics.query_error import distinct, pieces, places, presence
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending, together
from anon_spark.primitives.encoding import fractions, with_keys
from anon_spark.primitives.rounds import collect_small
from anon_spark.primitives.tables import require_columns
from anon_spark.primitives.tasks import MOST_TASKS, shared_tasks

Kind = tuple[int, int]
Relational = Mapping[str, Hierarchy | None]  # None: a number without hierarchy, published as a range
Floats = npt.NDArray[np.float64]

KINDS: tuple[Kind, ...] = ((2, 0), (0, 2), (1, 1))  # relational values, items
MORE = 4  # times the rows that are needed of each kind are looked at for all kinds at once
MOST_ENDS = 1_000_000  # distinct ends of published ranges that reach the driver: at most two per cluster

_ATTRIBUTE = PREFIX + "attribute_"  # + position: key of a hierarchy, or a number
_ITEMS, _SENSITIVE, _TIMES, _DRAWN, _LEAST = (PREFIX + name for name in ("items", "sensitive", "times", "drawn", "least"))
_QUERY, _AT, _VALUE, _BUCKET = (PREFIX + name for name in ("query", "at", "value", "bucket"))
_MODES = ("sets", "uniform")


class Query(NamedTuple):
    """values: (attribute, key of its value) pairs; items: texts. Both are of a real record: never to be published."""

    kind: Kind
    values: tuple[tuple[int, Any], ...]
    items: tuple[str, ...]


class Workload(NamedTuple):
    """Queries of all kinds; a kind that no row allows has no queries."""

    kinds: tuple[Kind, ...]
    queries: tuple[Query, ...]


class RelativeError(NamedTuple):
    """Mean of |true - estimated| / true by kind of query, for both readings of a generalized item; and how many queries."""

    sets: dict[Kind, float]
    uniform: dict[Kind, float]
    queries: dict[Kind, int]


def draw_workload(
    source: DataFrame,
    relational: Relational,
    items: str,
    sensitive: Iterable[str] = (),
    *,
    kinds: Sequence[Kind] = KINDS,
    queries: int = 100,
    seed: int = 1,
) -> Workload:
    """Queries of each kind, made from random rows with enough items (sensitive ones excluded); so each counts one row or more.

    A table with fewer such rows gives several queries per row.
    Guarantee: the same for the same rows and seed, however they are partitioned; every row is equally likely.
    Cost: one job with one shuffle by content, another one for a kind that few rows allow; MORE times `queries` rows per kind
    reach the driver.
    """
    keyed = _keyed(source, relational, items)
    names = [name for name in keyed.columns if name != _ITEMS]
    not_drawn = pa.table({_SENSITIVE: pa.array([[*sorted(sensitive), None]], pa.list_(pa.string()))})
    apart = small_frame(source.sparkSession, not_drawn)
    shown = F.sort_array(F.array_except(_ITEMS, _SENSITIVE)).alias(_ITEMS)
    content = crossed(keyed, apart).select(*names, shown)
    if not runs_in_one_task():  # in so many tasks: Spark would join them into few, by what they read and not by their work
        content = content.repartition(shared_tasks(source.sparkSession, MOST_TASKS), *names, _ITEMS)
    # equal rows are numbered, so that each of them can be drawn
    numbered = content.groupBy(*names, _ITEMS).agg(F.count(F.lit(1)).alias(_TIMES)).withColumn(
        _TIMES, F.explode(F.sequence(F.lit(1), F.col(_TIMES).cast("int")))
    )
    parts = [part for name in names for part in (F.isnull(name), F.col(name))]
    possible = [at for at, (x, _) in enumerate(kinds) if x <= len(names)]
    # rows with too few items have no hash: they come last
    hashes = {
        at: F.when(F.size(_ITEMS) >= kinds[at][1], F.xxhash64(F.lit(f"{seed} {at}"), *parts, _ITEMS, _TIMES)) for at in possible
    }
    drawn = _drawn(numbered, hashes, [*names, _ITEMS, _TIMES], queries)
    sampled: list[Query] = []
    for at in possible:
        candidates = drawn[at]
        sampled += [
            _query(candidates[number % len(candidates)], names, kinds[at], f"{seed} {at} {number}")
            for number in range(queries)
            if candidates
        ]
    return Workload(tuple(kinds), tuple(sampled))


def _drawn(
    numbered: DataFrame, hashes: Mapping[int, Column], ties: Sequence[str], most: int
) -> dict[int, list[dict[str, Any]]]:
    """Of each kind the rows with the smallest hashes, at most so many, in their order; rows without a hash are not drawn.

    The rows whose smallest hash of any kind is the smallest hold those of every kind, if they are some more; a kind of which
    they do not hold enough for certain is asked for alone. Cost: one job, and one for each such kind.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for asked in ([*hashes], *([at] for at in hashes)):
        if found.keys() >= set(asked):
            continue
        wanted = most if len(asked) == 1 else MORE * most * len(asked)
        least = F.least(*(F.col(f"{_DRAWN}{at}") for at in (*asked, asked[0])))  # of two columns at least
        hashed = numbered.select("*", *(hashes[at].alias(f"{_DRAWN}{at}") for at in asked)).withColumn(_LEAST, least)
        first = hashed.orderBy(F.asc_nulls_last(_LEAST), *ties).limit(wanted)
        rows = collect_small(first, wanted, "Rows that queries are made of").to_pylist()
        bound = rows[-1][_LEAST] if len(rows) == wanted else None  # none: all rows with a hash are there
        for at in asked:
            of_kind = sorted((row for row in rows if row[f"{_DRAWN}{at}"] is not None), key=itemgetter(f"{_DRAWN}{at}"))
            if len(asked) == 1 or bound is None or sum(row[f"{_DRAWN}{at}"] < bound for row in of_kind) >= most:
                found[at] = of_kind[:most]
    return found


def relative_error(
    source: DataFrame,
    release: DataFrame,
    workload: Workload,
    relational: Relational,
    items: str,
    published: str | None = None,
) -> RelativeError:
    """ARE of a release against the rows it was made of, for all queries of a workload at once.

    relational: the quasi-identifiers in the order of the workload's; items: the column of item sets of the source, as one
    set; published: that of generalized items (default: of the same name). A query that no row of the source answers is left
    out.
    Guarantee: the same for any partitioning, to 12 digits. Cost: one job for the source, one for the release, rows × queries
    in Arrow tasks (300 queries: some 8 seconds of a core per million rows); with ranges two more jobs, which bring the
    different ends of ranges to the driver (MOST_ENDS at most) and from the source only how many distinct values lie between.
    """
    return relative_error_to_be(source, release, workload, relational, items, published).get()


def relative_error_to_be(
    source: DataFrame,
    release: DataFrame,
    workload: Workload,
    relational: Relational,
    items: str,
    published: str | None = None,
) -> Pending[RelativeError]:
    """As `relative_error`, the answers not collected yet; the two jobs for ranges are done."""
    published = published or items
    require_columns(release, [*relational, published])
    keyed = _keyed(source, relational, items)
    true = _answers(keyed.mapInArrow(_counting(workload), f"{_QUERY} int, {ROWS} double"), [ROWS], workload)
    # 1. the chance of an original value given a published one
    numbers = [at for at, hierarchy in enumerate(relational.values()) if hierarchy is None and _asks(workload, at)]
    spreads = _spreads(keyed, release, list(relational), numbers)
    chances = {
        (at, key): _chances(hierarchy, key, name in fractions(source, [name]))
        for at, (name, hierarchy) in enumerate(relational.items())
        if hierarchy is not None
        for key in {key for query in workload.queries for where, key in query.values if where == at}
    }
    # 2. the rows of the release
    shown = release.select(
        *(
            _shown(name, hierarchy).alias(f"{_ATTRIBUTE}{at}")
            for at, (name, hierarchy) in enumerate(relational.items())
        ),
        F.col(quoted(published)).alias(_ITEMS),
    )
    schema = f"{_QUERY} int, {', '.join(f'{mode} double' for mode in _MODES)}"
    estimates = _answers(shown.mapInArrow(_estimating(workload, chances, spreads), schema), _MODES, workload)
    return together(true, estimates).then(lambda found: _error(workload, found[0][ROWS], found[1]))


def _error(workload: Workload, true: Floats, estimates: Mapping[str, Floats]) -> RelativeError:
    """The mean errors of the estimated answers."""
    off = {mode: np.abs(true - estimates[mode])[true > 0] / true[true > 0] for mode in _MODES}
    kind_of = [query.kind for query, count in zip(workload.queries, true, strict=True) if count > 0]
    means = {
        mode: {
            kind: float(f"{fsum(errors) / len(errors):.12g}")
            for kind in workload.kinds
            if (errors := [error for query_kind, error in zip(kind_of, off[mode], strict=True) if query_kind == kind])
        }
        for mode in _MODES
    }
    return RelativeError(means["sets"], means["uniform"], {kind: kind_of.count(kind) for kind in workload.kinds})


def _keyed(source: DataFrame, relational: Relational, items: str) -> DataFrame:
    """The relational values as keys of their hierarchies or as numbers, and the items."""
    require_columns(source, [*relational, *([] if is_reserved(items) else [items])])  # several columns as one: our name
    if not relational:
        raise ConfigurationError("Relational columns: none was given.")
    hierarchies = {name: hierarchy for name, hierarchy in relational.items() if hierarchy is not None}
    others = [name for name in relational if name not in hierarchies]
    keyed = with_keys(source, hierarchies, [*others, items])
    columns = [
        F.col(quoted(name)) if name in hierarchies else F.col(quoted(name)).cast("double") for name in relational
    ]
    named = [column.alias(f"{_ATTRIBUTE}{at}") for at, column in enumerate(columns)]
    return keyed.select(*named, F.col(quoted(items)).alias(_ITEMS))


def _query(row: Mapping[str, Any], names: Sequence[str], kind: Kind, stream: str) -> Query:
    """x of the values and y of the items of a row."""
    draw = Random(stream)
    attributes = sorted(draw.sample(range(len(names)), kind[0]))
    values = tuple((at, row[names[at]]) for at in attributes)
    return Query(kind, values, tuple(sorted(draw.sample(row[_ITEMS], kind[1]))))


def _asks(workload: Workload, at: int) -> bool:
    return any(where == at for query in workload.queries for where, _ in query.values)


def _shown(name: str, hierarchy: Hierarchy | None) -> Column:
    """A published label, or the two ends of a range as numbers."""
    column = F.col(quoted(name))
    if hierarchy is not None:
        return column
    return F.struct(*(column.getField(end).cast("double").alias(end) for end in ("lo", "hi")))


def _answers(frame: DataFrame, names: Sequence[str], workload: Workload) -> Pending[dict[str, Floats]]:
    """The results of the tasks, summed by query."""

    def totals(rows: Sequence[Row]) -> dict[str, Floats]:
        found = {name: np.zeros(len(workload.queries)) for name in names}
        for row in rows:
            for name in names:
                found[name][row[_QUERY]] = row[name]
        return found

    return Pending.of(frame.groupBy(_QUERY).agg(*(F.sum(name).alias(name) for name in names)), totals)


def _counting(workload: Workload) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Batches of source rows → how many match each query."""
    known = distinct(query.items for query in workload.queries)
    asked = places((query.items for query in workload.queries), known)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(len(asked))
        for rows in (piece for batch in batches for piece in pieces(batch, len(known))):
            has = presence(rows.column(_ITEMS), known)

            @cache
            def equal(at: int, key: Any, rows: pa.RecordBatch = rows) -> npt.NDArray[np.bool_]:
                column: Any = rows.column(f"{_ATTRIBUTE}{at}")
                same = (
                    pc.is_null(column)
                    if key is None
                    else pc.equal(column, pa.scalar(key, column.type)).fill_null(False)
                )
                matching: npt.NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
                return matching

            for number, (query, items) in enumerate(zip(workload.queries, asked, strict=True)):
                matches = has[items].all(axis=0)
                for at, key in query.values:
                    matches &= equal(at, key)
                counts[number] += np.count_nonzero(matches)
        yield pa.RecordBatch.from_pydict({_QUERY: np.arange(counts.size, dtype=np.int32), ROWS: counts})

    return count


class _Spread(NamedTuple):
    """Ends of the published ranges of a number, and how many distinct values lie up to each end and gap: gaps at even places."""

    ends: Floats
    upto: npt.NDArray[np.int64]

    def within(self, low: Floats, high: Floats) -> npt.NDArray[np.int64]:
        """How many distinct values lie in each range."""
        first, last = (np.searchsorted(self.ends, end) for end in (low, high))
        inside: npt.NDArray[np.int64] = self.upto[2 * last + 1] - self.upto[2 * first]
        return inside


def _spreads(keyed: DataFrame, release: DataFrame, names: Sequence[str], numbers: Sequence[int]) -> dict[int, _Spread]:
    """For each number that is asked for: how many distinct values of the source its published ranges hold."""
    if not numbers:
        return {}
    ranges = [
        F.struct(F.lit(at).alias(_AT), F.col(quoted(names[at])).getField(end).cast("double").alias(_VALUE))
        for at in numbers
        for end in ("lo", "hi")
    ]
    table = collect_small(release.select(F.inline_outer(F.array(*ranges))).distinct(), MOST_ENDS, "Different ends of ranges")
    number, value = (table.column(name).to_numpy() for name in (_AT, _VALUE))
    ends = {at: np.sort(value[number == at]) for at in numbers}

    def bucketed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            attributes, values = (column.to_numpy() for column in batch.columns)
            bucket = np.zeros(len(attributes), dtype=np.int64)
            for at, border in ends.items():
                selected = attributes == at
                left, right = (np.searchsorted(border, values[selected], side) for side in ("left", "right"))
                bucket[selected] = left + right  # 2i: in the gap before end i; 2i + 1: that end
            yield pa.RecordBatch.from_pydict({_AT: attributes, _BUCKET: bucket})

    values = [F.struct(F.lit(at).alias(_AT), F.col(f"{_ATTRIBUTE}{at}").alias(_VALUE)) for at in numbers]
    distinct_values = keyed.select(F.inline_outer(F.array(*values))).where(F.isnotnull(_VALUE)).distinct()
    counted = distinct_values.mapInArrow(bucketed, f"{_AT} int, {_BUCKET} long").groupBy(_AT, _BUCKET).count()
    table = collect_small(counted, 2 * MOST_ENDS + len(numbers), "Gaps between ends of ranges")
    number, bucket, count = (column.to_numpy() for column in table.columns)
    return {
        at: _Spread(
            border,
            np.cumsum(np.bincount(bucket[number == at], count[number == at], 2 * len(border) + 1).astype(np.int64)),
        )
        for at, border in ends.items()
    }


def _chances(hierarchy: Hierarchy, key: Any, fractional: bool) -> dict[str | None, float]:
    """Label → 1 / leaves below it, for the labels above a value; a value that the hierarchy does not know has none."""
    if hierarchy.bins is not None and key is not None:
        leaf = key if key >= 0 else None  # its key is its bin number
    else:
        leaf = hierarchy.leaf_of(Decimal(key) if fractional and key is not None else key)
    if leaf is None:
        return {}
    codes = [(level, int(hierarchy.codes[level, leaf])) for level in range(hierarchy.height + 1)]
    return {hierarchy.labels[level][code]: 1 / int(hierarchy.leaves_below[level][code]) for level, code in codes}


def _estimating(
    workload: Workload, chances: Mapping[tuple[int, Any], Mapping[str | None, float]], spreads: Mapping[int, _Spread]
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Batches of published rows → expected matches of each query, for both modes."""
    known = distinct(query.items for query in workload.queries)
    asked = places((query.items for query in workload.queries), known)

    def estimate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        expected = np.zeros((len(_MODES), len(asked)))
        for rows in (piece for batch in batches for piece in pieces(batch, 8 * len(known))):
            covering, size = _covering(rows.column(_ITEMS), known)
            chance = _chance_of(rows, chances, spreads)
            is_covered = covering >= 0
            for number, (query, items) in enumerate(zip(workload.queries, asked, strict=True)):
                by_value = [chance(at, key) for at, key in query.values]
                if not items.size:
                    expected[:, number] += float(reduce(mul, by_value, np.ones(len(rows))).sum())
                    continue
                matching = np.flatnonzero(is_covered[items].all(axis=0))
                weight = reduce(mul, (of_row[matching] for of_row in by_value), np.ones(matching.size))
                for mode, share in enumerate(_item_chances(covering[items][:, matching], size)):
                    expected[mode, number] += float((weight * share).sum())
        numbers = np.arange(len(asked), dtype=np.int32)
        yield pa.RecordBatch.from_pydict({_QUERY: numbers, **dict(zip(_MODES, expected, strict=True))})

    return estimate


def _covering(lists: Any, known: Sequence[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """[item, row]: the number of the generalized item that covers it, -1 for none; and the sizes of those."""
    inner = lists.flatten()
    row_of, group_of = (pc.list_parent_indices(level).to_numpy() for level in (lists, inner))
    at = pc.index_in(inner.flatten(), value_set=pa.array(known, pa.string()))
    met = at.is_valid().to_numpy(zero_copy_only=False)
    covering = np.full((len(known), len(lists)), -1, dtype=np.int32)
    covering[at.drop_null().to_numpy(), row_of[group_of[met]]] = group_of[met]
    return covering, inner.value_lengths().fill_null(0).to_numpy().astype(np.int64)


def _item_chances(covering: npt.NDArray[np.int32], size: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """[item, row] of the items of one query, all covered → chance that a row has them, for sets and uniform."""
    sets, uniform = np.ones((2, covering.shape[1]))
    for place, group in enumerate(covering):
        first = (covering[:place] != group).all(axis=0)  # of its generalized item
        sets *= np.where(first, 0.5 / (1 - np.exp2(-size[group].astype(np.float64))), 0.5)
        uniform /= size[group]
    return sets, uniform


def _chance_of(
    rows: pa.RecordBatch, chances: Mapping[tuple[int, Any], Mapping[str | None, float]], spreads: Mapping[int, _Spread]
) -> Callable[[int, Any], Floats]:
    """(attribute, key) → chance that the record of each row has that value."""

    @cache
    def labels(at: int) -> tuple[list[Any], Any]:
        column: Any = rows.column(f"{_ATTRIBUTE}{at}").dictionary_encode()
        known = column.dictionary.to_pylist()
        return [*known, None], column.indices.fill_null(len(known)).to_numpy()

    @cache
    def ranges(at: int) -> tuple[Floats, Floats, Floats]:
        column: Any = rows.column(f"{_ATTRIBUTE}{at}")
        low, high = (part.to_numpy() for part in column.flatten())
        return low, high, 1 / np.maximum(spreads[at].within(low, high), 1)

    @cache
    def chance(at: int, key: Any) -> Floats:
        if at in spreads:
            low, high, share = ranges(at)
            return np.where((low <= key) & (key <= high), share, 0.0)
        known, index = labels(at)
        of_label = np.array([chances[at, key].get(label, 0.0) for label in known])
        by_row: Floats = of_label[index]
        return by_row

    return chance
