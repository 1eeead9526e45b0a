"""The published trees that fit what is known: labels, relations, absences, and labels outside of a node type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import Ints, Marks
from anon_spark.auditing.reading.tree_paths import Label as PublishedLabel
from anon_spark.auditing.reading.tree_paths import read_nodes, related
from anon_spark.auditing.reading.values import private
from anon_spark.columns import LINK
from anon_spark.risk.trees.drawing import Knowledge, Label, Relation

ROWS_AT_ONCE = 2**14
WORDS_AT_ONCE = 2**17  # of bits for rows, in one step
WORD = 64
BITS_OF = np.unpackbits(np.arange(2**16, dtype=np.uint16).view(np.uint8).reshape(-1, 2), axis=1).sum(axis=1, dtype=np.uint8)
NOTHING = 0  # number of what every row has
SHOWN = private("paths")
Words = NDArray[np.uint64]

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


@dataclass(frozen=True)
class Sought:
    """All that several K look for, each once, and which of it each K needs.

    needs: [place, K], numbers of `things`, NOTHING where a K needs no more.
    """

    things: list[tuple[str, Any]]
    needs: Ints

    @classmethod
    def of(cls, wanted: Sequence[Wanted]) -> Sought:
        numbers: dict[tuple[str, Any], int] = {}
        rows = [
            [numbers.setdefault((kind, what), len(numbers) + 1) for kind in Wanted._fields for what in getattr(one, kind)]
            for one in wanted
        ]
        needs = np.full((max(map(len, rows), default=0), len(rows)), NOTHING, dtype=np.int64)
        for at, row in enumerate(rows):
            needs[: len(row), at] = row
        return cls(list(numbers), needs)

    @property
    def number(self) -> int:
        """How many K there are."""
        return int(self.needs.shape[1])

    def fitting(self, paths: Any) -> Iterator[tuple[int, Words]]:
        """Which rows fit, as bits: the first K of a block, and [K, word]. Cost: a look at each thing, words for each K."""
        rows = _Rows.of(paths)
        looks: dict[str, Callable[..., Marks]] = {
            "labels": rows.having, "relations": rows.relating, "absent": rows.lacking, "outside": rows.outside
        }  # fmt: skip
        bits = np.zeros((len(self.things) + 1, -(-rows.number // WORD)), dtype=np.uint64)
        bits[NOTHING] = _as_words(np.ones(rows.number, dtype=np.bool_))
        for number, (kind, what) in enumerate(self.things, start=1):
            bits[number] = _as_words(looks[kind](what))
        block = max(1, WORDS_AT_ONCE // max(1, bits.shape[1]))
        for first in range(0, self.number, block):
            fits = np.repeat(bits[[NOTHING]], min(block, self.number - first), axis=0)
            for needs in self.needs[:, first : first + block]:
                fits &= bits[needs]
            yield first, fits


def _as_words(marks: Marks) -> Words:
    padded = np.zeros(-(-marks.size // WORD) * WORD, dtype=np.bool_)
    padded[: marks.size] = marks
    return np.packbits(padded, bitorder="little").view(np.uint64)


def matches(rows: DataFrame, wanted: Sequence[Wanted], known: Sequence[Knowledge]) -> list[Matches]:
    """Per K, in their order: the rows that fit. rows: LINK, and SHOWN, their paths. Cost: one job; a row per K is collected."""
    targets = np.array([knowledge.target for knowledge in known], dtype=np.int64)
    sought = Sought.of(wanted)

    def meet(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, own_rows = np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = batch.slice(start, ROWS_AT_ONCE)
                asked, place = _own(np.asarray(part.column(LINK), dtype=np.int64), targets)
                for first, fits in sought.fitting(part.column(SHOWN)):
                    number[first : first + len(fits)] += BITS_OF[fits.view(np.uint16)].sum(axis=1, dtype=np.int64)
                    mine = (asked >= first) & (asked < first + len(fits))
                    words, bit = fits[asked[mine] - first, place[mine] // WORD], (place[mine] % WORD).astype(np.uint64)
                    np.add.at(own_rows, asked[mine], (words >> bit & np.uint64(1)).astype(np.int64))
        columns: list[Any] = [pa.array(np.arange(len(wanted)), pa.int32()), pa.array(number), pa.array(own_rows)]
        yield pa.RecordBatch.from_arrays(columns, names=[_WHO, _ROWS, _OWN])

    met = [Matches(0, 0)] * len(wanted)
    if wanted:
        for who, number, own_rows in rows.mapInArrow(meet, _MET).groupBy(_WHO).agg(F.sum(_ROWS), F.sum(_OWN)).collect():
            met[who] = Matches(number, own_rows)
    return met


def _own(links: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """The K whose target is among these rows, and where."""
    order = np.argsort(links, kind="stable")
    first, last = (np.searchsorted(links[order], targets, side) for side in ("left", "right"))
    asked = np.repeat(np.arange(targets.size), last - first)
    starts = np.cumsum(last - first) - (last - first)
    return asked, order[np.arange(asked.size) - starts[asked] + first[asked]]


def holding_any(paths: Any, sought: Sought) -> Marks:
    """Which rows fit some K."""
    held = np.zeros(-(-len(paths) // WORD), dtype=np.uint64)
    for _, fits in sought.fitting(paths):
        held |= np.bitwise_or.reduce(fits, axis=0)
    return np.unpackbits(held.view(np.uint8), bitorder="little")[: len(paths)].astype(np.bool_)


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
