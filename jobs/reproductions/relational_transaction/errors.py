"""ARE of current releases as arrays: what `metrics.relative_error` computes from frames, without a job for each release.

Shares no code with it; a row of a release counts with the probability that its record matches the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from anon_spark.families.relational_transaction.kernels.relation import Floats, node_levels
from anon_spark.kernels.classes import Ints
from anon_spark.metrics.relative_error import Kind, Query, Workload
from anon_spark.model.hierarchy import Hierarchy
from jobs.benchmarks.relational_transaction.phases import Clustered, Released
from jobs.benchmarks.relational_transaction.records import Table


class Errors(NamedTuple):
    """Mean relative error by kind of query, for both readings of a generalized item."""

    sets: Mapping[Kind, float]
    uniform: Mapping[Kind, float]


def errors_of(start: Clustered, found: Released, workload: Workload, source: Table | None = None) -> Errors:
    """ARE of a release. source: the table that counts are true of, by default the clustered one. Cost: sets × queries."""
    table = source or start.table
    by_kind = {kind: [query for query in workload.queries if query.kind == kind] for kind in workload.kinds}
    off = {kind: _off(start, found, table, own) for kind, own in by_kind.items() if own}
    return Errors(*({kind: float(both[which].mean()) for kind, both in off.items()} for which in range(2)))


def _off(start: Clustered, found: Released, table: Table, queries: Sequence[Query]) -> Floats:
    """|true - estimated| / true of queries of one kind, for both readings."""
    asked = _asked(table, queries)
    true = true_counts(table, queries, asked)
    chances = _chances(start, found, queries)  # cluster × query
    estimates = np.zeros((2, len(queries)))
    for place, (rows, part) in enumerate(found.parts.values()):
        widths = np.diff(part.bounds)
        label = np.full(len(table.universe) + 1, -1, dtype=np.int64)
        label[part.members] = np.repeat(np.arange(widths.size), widths)
        has = np.zeros((rows.size, widths.size + 1), dtype=np.bool_)  # the last column: no label at all
        has[np.repeat(np.arange(rows.size), np.diff(part.offsets)), part.labels] = True
        covering = label[asked]  # query × item
        matching = np.ones((rows.size, len(queries)), dtype=np.bool_)
        for at in range(asked.shape[1]):
            matching &= has[:, covering[:, at]]
        weight = (start.sets.times[rows] @ matching) * chances[place]
        for which, share in enumerate(_item_chances(covering, widths)):
            estimates[which] += weight * share
    return np.abs(true - estimates) / true


def _asked(table: Table, queries: Sequence[Query]) -> Ints:
    """Query × item: the numbers of the items asked for."""
    number = {item: at for at, item in enumerate(table.universe)}
    return np.array([[number[item] for item in query.items] for query in queries], dtype=np.int64).reshape(
        len(queries), -1
    )


def true_counts(table: Table, queries: Sequence[Query], asked: Ints) -> Floats:
    """How many records match each query."""
    has = np.zeros((table.records, len(table.universe)), dtype=np.bool_)
    has[np.repeat(np.arange(table.records), np.diff(table.baskets.offsets)), table.baskets.codes] = True
    counts = []
    for query, items in zip(queries, asked, strict=True):
        matching = has[:, items].all(axis=1)
        for at, key in query.values:
            matching &= table.values[:, at] == value_of(table, at, key)
        counts.append(float(matching.sum()))
    return np.array(counts)


def value_of(table: Table, attribute: int, key: Any) -> float:
    """A number, or the position of the leaf that has this key."""
    given = list(table.attributes.values())[attribute]
    if not isinstance(given, Hierarchy):
        return float(key)
    return float(np.flatnonzero(table.leaf_at(attribute) == given.leaf_of(key))[0])


def _chances(start: Clustered, found: Released, queries: Sequence[Query]) -> Floats:
    """Cluster × query: the chance that a record of the cluster has the values asked for."""
    table, united = start.table, start.summary.united(found.target)
    levels = node_levels(table.relation, united.lo, united.hi)
    chances = np.ones((united.ids.size, len(queries)))
    distinct = [np.unique(table.values[:, at]) for at in range(table.values.shape[1])]
    for number, query in enumerate(queries):
        for at, key in query.values:
            given, value = list(table.attributes.values())[at], value_of(table, at, key)
            if isinstance(given, Hierarchy):
                leaf_at, level = table.leaf_at(at), levels[:, at]
                shown = given.codes[level, leaf_at[united.lo[:, at].astype(np.int64)]]
                own = given.codes[level, leaf_at[int(value)]]
                leaves = np.array([given.leaves_below[up][code] for up, code in zip(level, shown, strict=True)])
                chances[:, number] *= (shown == own) / leaves
            else:
                low, high = united.lo[:, at], united.hi[:, at]
                values = np.searchsorted(distinct[at], high, "right") - np.searchsorted(distinct[at], low)
                chances[:, number] *= ((low <= value) & (value <= high)) / values
    return chances


def _item_chances(covering: Ints, widths: Ints) -> tuple[Floats, Floats]:
    """Per query the chance that a row which has all labels has the items: for all sets alike likely, and one item each."""
    sets, uniform = np.ones(covering.shape[0]), np.ones(covering.shape[0])
    width = np.append(widths, 1).astype(np.float64)[covering]
    for at in range(covering.shape[1]):
        first = (covering[:, :at] != covering[:, at : at + 1]).all(axis=1)
        sets *= np.where(first, 0.5 / (1 - np.exp2(-width[:, at])), 0.5)
        uniform /= width[:, at]
    return sets, uniform
