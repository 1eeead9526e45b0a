"""The images of leaves under a cut, and the comparison of a published record with its original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc

from anon_spark.arrays import each_once, is_among
from anon_spark.auditing.guarantees.tree_counting import packed
from anon_spark.auditing.reading.item_sets import Ints, Marks
from anon_spark.auditing.reading.tree_paths import Label, Nodes, related
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NONE, STAR, TreeSchema

EVERYTHING: Label = (STAR, STAR)
Relation = tuple[Label, Label]


@dataclass(frozen=True, eq=False)
class Images:
    """Published labels as numbers, and the number that each leaf becomes; sensitive leaves are published as they are.

    leaves: by rank of a node type, one number per leaf and one more for null, NONE without an image: the lowest label at or above
    the leaf. uncovered and twice: how many leaves have none, and are below several (null aside, unless the hierarchy knows it);
    mixed: how many are below a label and below `*`; unknown: published labels that are none of their node type.
    """

    names: list[Label]
    leaves: list[Ints] = field(repr=False)
    on_chain: Marks = field(repr=False)  # [node type, node type]: whether the second is the first or above it
    hidden: Marks = field(repr=False)  # by rank: whether a node type is sensitive
    ranks: Mapping[str, int] = field(repr=False)
    uncovered: int
    twice: int
    mixed: int
    unknown: int

    @classmethod
    def of(cls, schema: TreeSchema, hierarchies: Mapping[str, Hierarchy], published: Sequence[Label]) -> Images:
        """published: the labels of the cut; those of sensitive node types are added. Cost: one pass over all labels; no Spark."""
        numbers: dict[Label, int] = {}
        for label in published:
            numbers.setdefault(label, len(numbers))
        wanted = set(numbers)
        tables: list[Ints] = []
        uncovered = twice = mixed = 0
        all_labels = {EVERYTHING}
        for node_type in schema:
            hierarchy = hierarchies[node_type.name]
            whole = hierarchy.with_null()
            levels = [*([] if node_type.sensitive else range(1, whole.height + 1))]
            image = np.full(whole.leaf_count, NONE, dtype=np.int64)
            several = np.zeros(whole.leaf_count, dtype=np.bool_)
            for level in [0, *levels]:
                texts: list[Label] = [
                    (node_type.name, node_type.name if level == whole.height else text) for text in whole.labels[level]
                ]
                all_labels.update(texts)
                if node_type.sensitive:
                    for label in texts:
                        numbers.setdefault(label, len(numbers))
                here = np.array([numbers.get(label, NONE) for label in texts], dtype=np.int64)[whole.codes[level]]
                several |= (image != NONE) & (here != NONE) & (here != image)
                image = np.where(image == NONE, here, image)
            asked = slice(None) if hierarchy.has_null else slice(0, -1)
            if EVERYTHING in numbers and not node_type.sensitive:
                several |= image != NONE
                mixed += int((image[asked] != NONE).sum())
                image[:] = numbers[EVERYTHING]
            uncovered += int((image[asked] == NONE).sum())
            twice += int(several[asked].sum())
            tables.append(image)
        chains = [{other.name for other in schema.chain(node_type.name)} for node_type in schema]
        return cls(
            names=list(numbers),
            leaves=tables,
            on_chain=np.array([[name in chain for name in schema.names] for chain in chains], dtype=np.bool_),
            hidden=np.array([node_type.sensitive for node_type in schema], dtype=np.bool_),
            ranks=schema.ranks,
            uncovered=uncovered,
            twice=twice,
            mixed=mixed,
            unknown=len(wanted - all_labels),
        )

    @cached_property
    def everything(self) -> int:
        """The number of `*`, or NONE."""
        return self.names.index(EVERYTHING) if EVERYTHING in self.names else NONE

    def tells(self, numbers: Ints) -> Marks:
        """Whether a number is that of a label which says something: `*` says nothing, wherever it stands."""
        marks: Marks = (numbers != NONE) & (numbers != self.everything)
        return marks

    @property
    def width(self) -> int:
        """Bits of a number, from 0 for none."""
        return len(self.names).bit_length() + 1

    def numbered(self, labels: Sequence[Label]) -> Ints:
        known = {label: at for at, label in enumerate(self.names)}
        return np.array([known.get(label, NONE) for label in labels], dtype=np.int64)

    def relations(self, pairs: Sequence[Relation]) -> Ints:
        """Pairs of labels as one number each, as in `shown_relations`; those with unknown labels cannot occur."""
        pair_numbers = self.numbered_pairs(pairs)
        return np.array([upper << self.width | lower for upper, lower in pair_numbers], dtype=np.int64)

    def numbered_pairs(self, pairs: Sequence[Relation]) -> list[tuple[int, int]]:
        """Pairs of labels as pairs of numbers, in their order; those with unknown labels cannot occur."""
        upper, lower = (self.numbered([pair[at] for pair in pairs]).tolist() for at in (0, 1))
        return [(above, below) for above, below in zip(upper, lower, strict=True) if above >= 0 and below >= 0]


@dataclass(frozen=True, eq=False)
class Originals:
    """The images of some records' values. record: of each row; rows: [row, node type] a published number, or NONE.

    lost: per record whether a value has no image.
    """

    record: Ints
    rows: Ints
    lost: Marks

    @classmethod
    def of(cls, chains: Any, images: Images) -> Originals:
        """chains: an Arrow array of lists of leaves, one number per node type."""
        sizes = np.asarray(pc.list_value_length(chains).fill_null(0), dtype=np.int64)
        flat = pc.list_flatten(pc.list_flatten(chains))
        leaves = np.asarray(flat, dtype=np.int64).reshape(-1, len(images.leaves))
        record = np.repeat(np.arange(sizes.size), sizes)
        rows = np.full(leaves.shape, NONE, dtype=np.int64)
        for rank, table in enumerate(images.leaves):
            known = leaves[:, rank] >= 0
            rows[known, rank] = table[leaves[known, rank]]
        lost = np.zeros(sizes.size, dtype=np.bool_)
        lost[record[((leaves != NONE) & (rows == NONE)).any(axis=1)]] = True
        return cls(record, rows, lost)

    def labels(self, images: Images) -> Ints:
        """Record and label of every label but `*`, as one number, each once."""
        owner = np.broadcast_to(self.record[:, None], self.rows.shape)
        there = images.tells(self.rows)
        return each_once(owner[there] << images.width | self.rows[there])

    def relations(self, images: Images) -> Ints:
        """Record and relation, as one number, each once."""
        keys = [np.zeros(0, dtype=np.int64)]
        for lower in range(self.rows.shape[1]):
            for upper in np.flatnonzero(images.on_chain[lower]).tolist():
                above, below = self.rows[:, upper], self.rows[:, lower]
                both = images.tells(above) & images.tells(below) & (above != below)
                keys.append(((self.record << images.width | above) << images.width | below)[both])
        return each_once(np.concatenate(keys))


Way = tuple[int, ...]  # published numbers from the record down to a node


def disassociated_ways(ways: set[Way], pairs: Sequence[tuple[int, int]]) -> set[Way]:
    """The nodes of a tree, each by its way, after some relations were disassociated one after the other.

    Cutting (a, b): wherever b stands below a, what is below b hangs below b's parent, and b stands beside a.
    """
    for upper, lower in pairs:
        next_ways = set()
        for way in ways:
            if lower in way and upper in way and way.index(upper) < way.index(lower):
                at = way.index(lower)
                way = way[:at] + way[at + 1 :] if at + 1 < len(way) else (*way[: way.index(upper)], lower)
            next_ways.add(way)
        ways = next_ways
    return ways


def other_structure(
    nodes: Nodes, numbers: Ints, originals: Originals, images: Images, pairs: Sequence[tuple[int, int]]
) -> Marks:
    """Per record: whether its published paths differ from those of its tree under the cut, with some relations cut.

    Cost: Python sees every tree, and works on each different one once.
    """
    differs = np.zeros(len(nodes.empty), dtype=np.bool_)
    if images.everything != NONE:
        return differs  # one label says nothing, and has no relation
    chains = [np.flatnonzero(row).tolist() for row in images.on_chain]
    published: list[set[Way]] = [set() for _ in differs]
    begins = np.flatnonzero(np.r_[True, nodes.path[1:] != nodes.path[:-1]]) if nodes.path.size else np.zeros(0, np.int64)
    shown = numbers[nodes.label].tolist()
    for low, high in zip(begins.tolist(), [*begins[1:].tolist(), len(shown)], strict=False):
        published[int(nodes.record[low])].add(tuple(shown[low:high]))
    known: dict[frozenset[Way], set[Way]] = {}
    rows: list[set[Way]] = [set() for _ in differs]
    for owner, row in zip(originals.record.tolist(), originals.rows.tolist(), strict=True):
        rows[owner].add(tuple(row))
    for record, record_rows in enumerate(rows):
        content = frozenset(record_rows)
        if content not in known:
            known[content] = _paths(disassociated_ways(_ways(content, chains), pairs))
        differs[record] = published[record] != known[content]
    return differs


def _ways(rows: frozenset[Way], chains: Sequence[Sequence[int]]) -> set[Way]:
    """The nodes of a record: of every value those above it and itself."""
    return {
        tuple(row[above] for above in chain if row[above] != NONE)
        for row in rows
        for rank, chain in enumerate(chains)
        if row[rank] != NONE
    }


def _paths(ways: set[Way]) -> set[Way]:
    """The ways to leaves."""
    inner = {way[:-1] for way in ways}
    return {way for way in ways if way not in inner}


def shown_labels(nodes: Nodes, numbers: Ints, images: Images) -> Ints:
    """Record and label of every published label but `*`, as one number, each once; unknown labels aside."""
    shown = numbers[nodes.label]
    return each_once((nodes.record << images.width | shown)[images.tells(shown)])


def shown_relations(nodes: Nodes, numbers: Ints, images: Images) -> tuple[Ints, Ints]:
    """Record, and relation as one number, of every pair of known labels on a path."""
    upper, lower = related(nodes)
    above, below = numbers[nodes.label[upper]], numbers[nodes.label[lower]]
    both = images.tells(above) & images.tells(below)
    return nodes.record[upper[both]], (above << images.width | below)[both]


def strange_paths(nodes: Nodes, numbers: Ints, originals: Originals, images: Images) -> Marks:
    """Per record: whether a published path is no part of one of its own paths, or stands in another order of node types."""
    strange = np.zeros(len(nodes.empty), dtype=np.bool_)
    rank = np.array([images.ranks.get(str(name), NONE) for name, _ in nodes.labels], dtype=np.int64)
    informative = images.tells(numbers[nodes.label])
    path, owner, column = nodes.path[informative], nodes.record[informative], rank[nodes.label[informative]]
    if not path.size:
        return strange
    begins = np.r_[True, path[1:] != path[:-1]]
    strange[owner[1:][~begins[1:] & (column[1:] <= column[:-1])]] = True
    # one row per path, by node type
    rows = np.full((int(begins.sum()), len(images.leaves)), NONE, dtype=np.int64)
    rows[np.cumsum(begins) - 1, column] = numbers[nodes.label[informative]]
    record = owner[begins]
    there = rows != NONE
    pattern = packed(list(there.T.astype(np.int64)), [1] * there.shape[1])
    for first in np.unique(pattern, return_index=True)[1].tolist():
        mine, ranks = np.flatnonzero(pattern == pattern[first]), np.flatnonzero(there[first])
        if not images.on_chain[ranks[-1]][ranks].all():
            strange[record[mine]] = True
            continue
        theirs = np.flatnonzero((originals.rows[:, ranks] != NONE).all(axis=1))
        columns = [np.concatenate([record[mine], originals.record[theirs]])]
        columns += [np.concatenate([rows[mine, of], originals.rows[theirs, of]]) for of in ranks.tolist()]
        keys = packed(columns, [len(nodes.empty).bit_length(), *[images.width] * ranks.size])
        strange[record[mine[~is_among(keys[: mine.size], keys[mine.size :])]]] = True
    return strange
