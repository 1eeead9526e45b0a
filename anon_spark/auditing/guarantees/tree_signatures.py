"""A survey of a table of published trees: its labels, its faults, and its records as numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.auditing.guarantees.tree_counting import Packing, pair_number
from anon_spark.auditing.reading.item_sets import Ints, Lists
from anon_spark.auditing.reading.tree_paths import (
    CLASS,
    VALUE,
    Label,
    Nodes,
    malformed,
    read_nodes,
    related,
    require_paths,
)
from anon_spark.auditing.reading.values import exact, private
from anon_spark.columns import ROWS
from anon_spark.errors import ConfigurationError, LimitExceeded
from anon_spark.model.tree import NONE, NOT

KEYS_AT_ONCE = 1 << 20  # sets of labels that one task holds, about
MOST_TASKS = 1_000
MOST_LABELS = 1_000_000

_KIND, _NUMBER = private("kind"), private("number")
_LABEL, _SIZE, _FAULT, _ORDER = "label", "size", "fault", "order"  # what a survey row is about


def published_labels(release: DataFrame, column: str = "paths") -> list[Label]:
    """The labels of a release. Cost: one job."""
    require_paths(release, column)
    return Survey.of(release.select(exact(release, column)), (), 0, 1, with_secrets=False).labels


@dataclass(frozen=True)
class Survey:
    """The labels of a release, and its records: how many, how many by fault, node types in both orders, tasks to count in."""

    labels: list[Label]
    rows: int
    faults: Mapping[str, int]
    both_orders: int
    tasks: int

    @classmethod
    def of(cls, paths: DataFrame, sensitive: Collection[str], negations: int, m: int, with_secrets: bool) -> Survey:
        """Cost: one job; as many rows on the driver as there are labels, and a few."""
        kinds = f"{_KIND} string, {CLASS} string, {VALUE} string, {_NUMBER} long, {ROWS} long"
        rows = (
            paths.mapInArrow(_surveying(frozenset(sensitive)), kinds)
            .groupBy(_KIND, CLASS, VALUE, _NUMBER)
            .agg(F.sum(ROWS).alias(ROWS))
            .limit(MOST_LABELS + 1)
            .toArrow()
            .to_pylist()
        )
        if len(rows) > MOST_LABELS:
            raise LimitExceeded(f"The release has more than {MOST_LABELS} labels, or no labels at all but texts.")
        orders = {(row[CLASS], row[VALUE]) for row in rows if row[_KIND] == _ORDER}
        sizes = {row[_NUMBER]: row[ROWS] for row in rows if row[_KIND] == _SIZE}
        sets = sum(times * sum(comb(size + negations, of) for of in range(m + 1)) for size, times in sizes.items())
        return cls(
            labels=[(row[CLASS], row[VALUE]) for row in rows if row[_KIND] == _LABEL],
            rows=sum(sizes.values()),
            faults={row[CLASS]: row[ROWS] for row in rows if row[_KIND] == _FAULT},
            both_orders=sum((below, above) in orders for above, below in orders) // 2,
            tasks=min(MOST_TASKS, 1 + (1 + with_secrets) * sets // KEYS_AT_ONCE),
        )


def _surveying(sensitive: frozenset[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def survey(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            nodes = read_nodes(batch.column(0))
            faults = malformed(nodes)
            rows: list[tuple[str, str | None, str | None, int, int]] = []
            rows += [(_LABEL, of, value, 0, 1) for of, value in nodes.labels]
            rows += [(_FAULT, name, None, 0, int(marks.sum())) for name, marks in faults.items() if marks.any()]
            rows.append((_FAULT, "malformed", None, 0, int(np.logical_or.reduce(list(faults.values())).sum())))
            plain = np.array([of not in sensitive for of, _ in nodes.labels], dtype=np.bool_)
            record, label = _distinct(nodes)
            sizes = np.bincount(record[plain[label]], minlength=batch.num_rows)
            rows += [(_SIZE, None, None, size, times) for size, times in _tally(sizes)]
            rows += [(_ORDER, above, below, 0, 1) for above, below in _orders(nodes)]
            kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64())
            columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
            yield pa.RecordBatch.from_arrays(columns, names=[_KIND, CLASS, VALUE, _NUMBER, ROWS])

    return survey


def _distinct(nodes: Nodes) -> tuple[Ints, Ints]:
    """Record and label of every label that a record has, each once, ascending."""
    width = max(1, len(nodes.labels))
    keys = each_once(nodes.record * width + nodes.label)
    return keys // width, keys % width


def _tally(numbers: Ints) -> list[tuple[int, int]]:
    known, times = np.unique(numbers, return_counts=True)
    return list(zip(known.tolist(), times.tolist(), strict=True))


def _orders(nodes: Nodes) -> set[tuple[str | None, str | None]]:
    """Pairs of different node types, the first above the second on some path."""
    upper, lower = related(nodes)
    width = max(1, len(nodes.labels))
    pairs = each_once(nodes.label[upper] * width + nodes.label[lower]).tolist()
    type_pairs = {(nodes.labels[pair // width][0], nodes.labels[pair % width][0]) for pair in pairs}
    return {(above, below) for above, below in type_pairs if above != below}


@dataclass(frozen=True)
class Coding:
    """Numbers for labels and absences, from 0, and other numbers for sensitive values."""

    labels: Mapping[Label, int]
    secrets: Mapping[Label, int]
    absent: Sequence[tuple[str, frozenset[Label]]]

    @classmethod
    def of(
        cls,
        labels: Iterable[Label],
        sensitive: Collection[str],
        negations: Sequence[tuple[str, Collection[Label]]],
        with_secrets: bool,
    ) -> Coding:
        """with_secrets: whether sensitive values are to be counted; in no case are they labels."""
        strange = sum(any(of in sensitive for of, _ in below) for _, below in negations)
        if strange:
            raise ConfigurationError(f"{strange} negations are of a sensitive node type; an attacker knows nothing of these.")
        texts = sorted(labels, key=lambda label: [(text is not None, text or "") for text in label])
        plain = [label for label in texts if label[0] not in sensitive]
        hidden = [label for label in texts if with_secrets and label[0] in sensitive]
        # an absence that all records share tells nothing
        absent = [(name, frozenset(below)) for name, below in negations if not frozenset(below).isdisjoint(plain)]
        return cls({label: at for at, label in enumerate(plain)}, {label: at for at, label in enumerate(hidden)}, absent)

    @property
    def names(self) -> list[Label]:
        """The label or absence of each number."""
        return [*self.labels, *((NOT, name) for name, _ in self.absent)]

    def packing(self, m: int) -> Packing:
        return Packing(len(self.names), len(self.secrets), m)

    def signatures(self, nodes: Nodes) -> tuple[Lists, Lists, Lists]:
        """Per record: labels, related pairs by their places, sensitive values."""
        number, width = len(nodes.empty), max(1, len(nodes.labels))
        plain = np.array([self.labels.get(name, NONE) for name in nodes.labels], dtype=np.int64)
        hidden = np.array([self.secrets.get(name, NONE) for name in nodes.labels], dtype=np.int64)
        distinct, which = np.unique(nodes.record * width + nodes.label, return_inverse=True)
        record, label = distinct // width, distinct % width
        # 1. labels; those of a batch stand in the same order as all labels
        shown = plain[label] >= 0
        begin = np.searchsorted(record[shown], np.arange(number + 1))
        place = np.where(shown, np.cumsum(shown) - 1 - begin[record], NONE)[which.reshape(-1)]
        # 2. pairs of them on a path
        upper, lower = related(nodes)
        upper, lower = (side[(place[upper] >= 0) & (place[lower] >= 0)] for side in (upper, lower))
        low, high = np.minimum(place[upper], place[lower]), np.maximum(place[upper], place[lower])
        most = pair_number(int(np.diff(begin).max(initial=0))) + 1
        pairs = each_once((nodes.record[upper] * most + high * (high - 1) // 2 + low)[low < high])
        # 3. what a record has nothing of, after its labels
        records, labels = [record[shown]], [plain[label[shown]]]
        for at, (_, below) in enumerate(self.absent):
            there = np.array([name in below for name in nodes.labels], dtype=np.bool_)
            records.append(np.flatnonzero(np.bincount(record[there[label]], minlength=number) == 0))
            labels.append(np.full(records[-1].size, len(self.labels) + at))
        order = np.lexsort((np.concatenate(labels), np.concatenate(records))) if self.absent else slice(None)
        owner = np.concatenate(records)[order]
        secret = hidden[label] >= 0
        return (
            (np.searchsorted(owner, np.arange(number + 1)), np.concatenate(labels)[order]),
            (np.searchsorted(pairs, np.arange(number + 1) * most), pairs % most),
            (np.searchsorted(record[secret], np.arange(number + 1)), hidden[label[secret]]),
        )
