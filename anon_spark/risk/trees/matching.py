"""The published trees that fit what is known: labels, relations, absences, and labels outside of a node type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import Ints, Marks
from anon_spark.auditing.reading.tree_paths import Label as PublishedLabel
from anon_spark.auditing.reading.tree_paths import read_nodes, related
from anon_spark.auditing.reading.values import private
from anon_spark.columns import LINK
from anon_spark.risk.trees.drawing import Knowledge, Label, Relation

CELLS_AT_ONCE = 20_000_000  # things that are looked for times rows, in one step
SHOWN = private("paths")

_WHO, _ROWS, _OWN = (private(name) for name in ("known", "fitting", "own"))
_MET = f"{_WHO} int, {_ROWS} long, {_OWN} long"


class Matches(NamedTuple):
    """Rows that fit a K, and how many of these are the target's own."""

    rows: int
    own: int


class Wanted(NamedTuple):
    """The requirements on a row: labels, relations, none of some labels, labels outside of a node type."""

    labels: tuple[Label, ...]
    relations: tuple[Relation, ...]
    absent: tuple[frozenset[Label], ...]
    outside: tuple[tuple[Label, str], ...]


def wanted_in_place(known: Knowledge) -> Wanted:
    """The requirements of any attacker: all that is known and was not cut."""
    return Wanted(known.labels, known.relations, known.absent, ())


def wanted_outside(known: Knowledge) -> Wanted:
    """The requirements of an attacker who knows the method: labels, the lower ones outside the node type that was above."""
    return Wanted(known.labels, (), (), tuple((below, above[0]) for above, below in known.cut_off))


def matches(rows: DataFrame, wanted: Sequence[Wanted], known: Sequence[Knowledge]) -> list[Matches]:
    """Per K, in their order: the rows that fit. rows: LINK, and SHOWN, their paths. Cost: one job; a row per K is collected."""
    targets = np.array([knowledge.target for knowledge in known], dtype=np.int64)

    def meet(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            link = np.asarray(batch.column(LINK), dtype=np.int64)
            number, own_rows = np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
            step = max(1, CELLS_AT_ONCE // max(1, 4 * len(wanted)))
            for start in range(0, batch.num_rows, step):
                mine = link[start : start + step]
                for at, fits in enumerate(fitting(batch.column(SHOWN).slice(start, step), wanted)):
                    number[at] += int(fits.sum())
                    own_rows[at] += int(fits[mine == targets[at]].sum())
            columns: list[Any] = [pa.array(np.arange(len(wanted)), pa.int32()), pa.array(number), pa.array(own_rows)]
            yield pa.RecordBatch.from_arrays(columns, names=[_WHO, _ROWS, _OWN])

    met = [Matches(0, 0)] * len(wanted)
    if wanted:
        for who, number, own_rows in rows.mapInArrow(meet, _MET).groupBy(_WHO).agg(F.sum(_ROWS), F.sum(_OWN)).collect():
            met[who] = Matches(number, own_rows)
    return met


def fitting(paths: Any, wanted: Sequence[Wanted]) -> Iterator[Marks]:
    """Per K: which rows fit. Each label, relation and absence is looked for once."""
    rows = _Rows.of(paths)
    looks: dict[str, Callable[..., Marks]] = {
        "labels": rows.having, "relations": rows.relating, "absent": rows.lacking, "outside": rows.outside
    }  # fmt: skip
    seen: dict[tuple[str, Any], Marks] = {}
    for sought in wanted:
        for kind, look in looks.items():
            seen.update({(kind, what): look(what) for what in getattr(sought, kind) if (kind, what) not in seen})
        yield np.logical_and.reduce([seen[kind, what] for kind in looks for what in getattr(sought, kind)])


class _Rows(NamedTuple):
    """The nodes of some published rows: label and row of each, and the pairs of nodes on one path.

    by_label and by_pair: the labels of nodes and pairs in ascending order, beside the rows that have them.
    """

    number: int
    numbers: Mapping[PublishedLabel, int]
    label: Ints
    row: Ints
    upper: Ints
    lower: Ints
    by_label: tuple[Ints, Ints]
    by_pair: tuple[Ints, Ints]

    @classmethod
    def of(cls, paths: Any) -> _Rows:
        nodes = read_nodes(paths)
        upper, lower = related(nodes)
        label, row = nodes.label, nodes.record
        pairs = label[upper] * len(nodes.labels) + label[lower]
        by_label, by_pair = _sorted(label, row), _sorted(pairs, row[upper])
        numbers = {name: number for number, name in enumerate(nodes.labels)}
        return cls(len(nodes.empty), numbers, label, row, upper, lower, by_label, by_pair)

    def marked(self, rows: Ints) -> Marks:
        marks = np.zeros(self.number, dtype=np.bool_)
        marks[rows] = True
        return marks

    def having(self, label: Label) -> Marks:
        return self.marked(_between(self.by_label, self.numbers.get(label, -1)))

    def lacking(self, labels: Iterable[Label]) -> Marks:
        having = np.zeros(self.number, dtype=np.bool_)
        for label in labels:
            if label in self.numbers:
                having |= self.having(label)
        return ~having

    def relating(self, pair: Relation) -> Marks:
        above, below = (self.numbers.get(label) for label in pair)
        key = -1 if above is None or below is None else above * len(self.numbers) + below
        return self.marked(_between(self.by_pair, key))

    def outside(self, what: tuple[Label, str]) -> Marks:
        """Rows that have a label on a path where nothing of a node type is above it."""
        label, name = what
        numbers = [number for (type_name, _), number in self.numbers.items() if type_name == name]
        of_type = np.isin(self.label, numbers)
        inside = np.zeros(self.row.size, dtype=np.bool_)
        inside[self.lower[of_type[self.upper]]] = True
        return self.marked(self.row[(self.label == self.numbers.get(label, -1)) & ~inside])


def _sorted(keys: Ints, rows: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]


def _between(by: tuple[Ints, Ints], key: int) -> Ints:
    """The rows of a key."""
    first, last = np.searchsorted(by[0], [key, key + 1])
    return by[1][first:last]
