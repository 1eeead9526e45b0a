"""The published classes that cover each tuple of a table, whatever levels their labels are on.

Tuples are told apart from classes column by column: what is left of both after each column is joined by the next one. So the
cost follows the pairs that agree so far, never all pairs of tuples and classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.auditing.reading.labels import Labels
from anon_spark.auditing.reading.sampling import chunk_of, every_chunk
from anon_spark.auditing.reading.values import private
from anon_spark.columns import ROWS
from anon_spark.engine import gathered, runs_in_one_task
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.risk.look_up.classes import label_columns
from anon_spark.risk.look_up.levels import EndsOfClasses

TUPLE, CLASS = private("tuple"), private("class")  # 64-bit hashes of values, and of labels
TUPLES_AT_ONCE = 20_000  # tuples that meet a part of the classes in one worker, about
CLASSES_AT_ONCE = 200_000  # classes of such a part, about
PAIRS_AT_ONCE = 4_000_000  # pairs of a tuple and a class that are held in one step, about

_PART, _CHUNK = private("part"), private("chunk")
_NOWHERE = -1

Ints = NDArray[np.int64]


def leaf_columns(count: int) -> list[str]:
    """The names of a tuple's leaves, by position."""
    return [private(f"leaf_{at}") for at in range(count)]


def covering_classes(
    tuples: DataFrame, classes: DataFrame, hierarchies: Mapping[str, Hierarchy], extents: Collection[str], rows: int
) -> DataFrame:
    """TUPLE, CLASS and the tuple's ROWS for every tuple and every class that covers it.

    tuples: TUPLE, its leaves (`leaf_columns`; null is one more leaf) and ROWS, each once; classes: CLASS and its labels
    (`label_columns`), each once; extents: columns whose labels are texts of two ends; rows: how many the table has, about.
    Guarantee: a class covers a tuple iff each of its labels is the leaf's or lies above it, and each extent holds its number. A
    text that is no label covers nothing.
    Cost: one shuffle of tuples and one of classes, each sent to every part of the other; no action.
    """
    parts, chunks = 1 + rows // TUPLES_AT_ONCE, 1 + rows // CLASSES_AT_ONCE
    names = list(hierarchies)
    columns = [_Column.of(hierarchy, name in extents) for name, hierarchy in hierarchies.items()]
    known = tuples.select(
        TUPLE, *leaf_columns(len(names)), ROWS, chunk_of(F.col(TUPLE), parts).alias(_PART), every_chunk(chunks).alias(_CHUNK)
    )
    shown = classes.select(
        CLASS, *label_columns(len(names)), every_chunk(parts).alias(_PART), chunk_of(F.col(CLASS), chunks).alias(_CHUNK)
    )
    small = runs_in_one_task()
    return (
        gathered(known, small)
        .groupBy(_PART, _CHUNK)
        .cogroup(gathered(shown, small).groupBy(_PART, _CHUNK))
        .applyInArrow(_covered(columns), f"{TUPLE} long, {CLASS} long, {ROWS} long")
    )


@dataclass(frozen=True, eq=False)
class _Column:
    """A column's labels as numbers: those of each leaf by level, where each counts once, and of published texts.

    numbers: [level, leaf], _NOWHERE where a level only repeats a label; ends: of a column that shows extents.
    """

    texts: pa.StringArray
    numbers: Ints
    ends: EndsOfClasses | None

    @classmethod
    def of(cls, hierarchy: Hierarchy, shows_ends: bool) -> _Column:
        labels = Labels.of(hierarchy)
        levels = np.arange(len(labels.numbers))[:, None]
        once = np.where(labels.levels[labels.numbers] == levels, labels.numbers, _NOWHERE).astype(np.int64)
        return cls(pa.array(labels.texts, pa.string()), once, EndsOfClasses.of(hierarchy) if shows_ends else None)

    def shown(self, texts: pa.ChunkedArray[pa.StringScalar]) -> tuple[Ints, NDArray[np.float64] | None]:
        """The number of each published label, and its ends; of ends, that of the lowest label above both."""
        if self.ends is None:
            found = pc.index_in(texts, value_set=self.texts).fill_null(_NOWHERE)
            return found.to_numpy().astype(np.int64), None
        ends = self.ends.numbers(texts)
        return np.array([self._above(*of_class) for of_class in ends.tolist()], dtype=np.int64), ends

    def _above(self, low: float, high: float, other: float) -> int:
        assert self.ends is not None
        if other == 2:
            return int(self.numbers[-1, 0])
        values = self.ends.values[: self.ends.hierarchy.leaf_count]
        null = values.size - 1
        at = [null, null] if other == 1 else [int(place[0]) if (place := np.flatnonzero(values == end)).size else -1
                                              for end in (low, high)]  # fmt: skip
        if min(at) < 0:
            return _NOWHERE
        both = np.flatnonzero((self.numbers[:, at[0]] == self.numbers[:, at[1]]) & (self.numbers[:, at[0]] != _NOWHERE))
        return int(self.numbers[both[0], at[0]])

    def hold(self, ends: NDArray[np.float64], leaves: Ints) -> NDArray[np.bool_]:
        """Pair by pair, whether ends hold the number of a leaf."""
        assert self.ends is not None
        value, null = self.ends.values[leaves], leaves == self.ends.hierarchy.leaf_count - 1
        low, high, other = ends.T
        return np.asarray(((low <= value) & (value <= high)) | ((other == 1) & null) | (other == 2))


def _covered(columns: Sequence[_Column]) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Some tuples and some classes → the pairs of which the class covers the tuple."""

    def covered(tuples: pa.Table, classes: pa.Table) -> pa.Table:
        count = len(columns)
        leaves = np.array([tuples[name].to_numpy() for name in leaf_columns(count)], dtype=np.int64)
        found = [column.shown(classes[name]) for column, name in zip(columns, label_columns(count), strict=True)]
        hashes, of_class = tuples[TUPLE].to_numpy(), classes[CLASS].to_numpy()
        pairs = list(_pairs(columns, leaves, [numbers for numbers, _ in found]))
        tuple_at, class_at = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), dtype=np.int64)
        for at, (column, (_, ends)) in enumerate(zip(columns, found, strict=True)):
            if ends is not None:
                held = column.hold(ends[class_at], leaves[at][tuple_at])
                tuple_at, class_at = tuple_at[held], class_at[held]
        rows = tuples[ROWS].to_numpy()
        return pa.table({TUPLE: hashes[tuple_at], CLASS: of_class[class_at], ROWS: rows[tuple_at]})

    return covered


def _pairs(columns: Sequence[_Column], leaves: Ints, shown: Sequence[Ints]) -> list[Ints]:
    """(tuple, class) by position, in blocks of tuples that keep what is held small."""
    # the beginnings of the classes' labels, column by column, as a tree: of each the one before it and the label that is added
    nodes = np.zeros(shown[0].size, dtype=np.int64)
    trees: list[Ints] = []
    for column, numbers in zip(columns, shown, strict=True):
        keys = np.where((numbers == _NOWHERE) | (nodes == _NOWHERE), _NOWHERE, nodes * len(column.texts) + numbers)
        tree = each_once(keys[keys != _NOWHERE])
        nodes = np.where(keys == _NOWHERE, _NOWHERE, np.searchsorted(tree, keys))
        trees.append(tree)
    order = np.argsort(nodes, kind="stable")
    starts = np.searchsorted(nodes[order], np.arange(trees[-1].size + 1))
    found, start, step = [], 0, leaves.shape[1]
    while start < leaves.shape[1]:
        block = leaves[:, start : start + step]
        reached = _reached(columns, block, trees)
        if reached is None and step > 1:
            step = max(1, step // 8)
            continue
        assert reached is not None
        tuple_at, node = reached
        counts = starts[node + 1] - starts[node]  # classes of the same labels may differ in their ends
        at = np.repeat(starts[node] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        found.append(np.stack([np.repeat(tuple_at, counts) + start, order[at]]))
        start += step
    return found


def _reached(columns: Sequence[_Column], leaves: Ints, trees: Sequence[Ints]) -> tuple[Ints, Ints] | None:
    """(tuple, last node) of every way through the tree that covers a tuple; None if too many at once, unless it is one tuple."""
    tuple_at, node = np.arange(leaves.shape[1]), np.zeros(leaves.shape[1], dtype=np.int64)
    for column, tree, leaf in zip(columns, trees, leaves, strict=True):
        if tuple_at.size * len(column.numbers) > PAIRS_AT_ONCE and leaves.shape[1] > 1:
            return None
        ways: list[tuple[Ints, Ints]] = []
        for of_level in column.numbers:
            number = of_level[leaf[tuple_at]]
            keys = node * len(column.texts) + number
            place = np.minimum(np.searchsorted(tree, keys), max(0, tree.size - 1))
            there = (number != _NOWHERE) & (tree[place] == keys) if tree.size else np.zeros(keys.size, dtype=np.bool_)
            ways.append((tuple_at[there], place[there]))
        tuple_at, node = (np.concatenate(part) for part in zip(*ways, strict=True))
    return tuple_at, node
