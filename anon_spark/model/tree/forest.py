"""All values of all node types with their hierarchies under one root: the nodes a cut is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy import Hierarchy, refuse_ambiguous
from anon_spark.model.tree.schema import NOT, STAR, TreeSchema

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
LevelCount = Literal["class", "global"]
Cut = tuple[int, ...]
"""The labels of a release: numbers of nodes, ascending, which is the code-point order of their labels.

A value becomes the lowest of these nodes above or at it. In a full cut no node is below another; in a partial one a node with
others below it stands for the values that these leave over. No node is without such values.
"""

NULL = "null"
NONE = -1


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of all hierarchies, numbered in the code-point order of their labels, so that numbers compare as labels.

    The hierarchy of a node type ends in its root, labelled with the type's name, and `*` stands above all these roots.
    Where labels of different node types are equal, every label but a root's is written `type:value`; `values` holds
    what is published. Guarantee: labels are distinct; a padded label is one node on its lowest level.
    """

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    values: tuple[str | None, ...] = field(repr=False)  # null: the null leaf
    ranks: Codes = field(repr=False)  # rank of a node's type, NONE for *
    parents: Codes = field(repr=False)  # NONE for *
    levels: Codes = field(repr=False)  # leaf 0, root of a node type its own height, * the height of all
    leaf_nodes: tuple[Codes, ...] = field(repr=False)  # by rank: leaf code → node
    tables: tuple[npt.NDArray[np.int32], ...] = field(repr=False)  # by rank: [level, leaf code] → node

    @classmethod
    def of(cls, schema: TreeSchema, hierarchies: Mapping[str, Hierarchy]) -> Forest:
        """From one hierarchy per node type. Raises HierarchyError for reserved or ambiguous labels."""
        refuse_ambiguous(hierarchies)
        return _numbered(schema, hierarchies)

    @property
    def size(self) -> int:
        return len(self.labels)

    @cached_property
    def top(self) -> int:
        """Number of `*`."""
        return int(np.flatnonzero(self.ranks == NONE)[0])

    @property
    def height(self) -> int:
        """h: 1 + the largest height of a hierarchy."""
        return int(self.levels[self.top])

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """By node: the nodes right below it, ascending. Of `*` these are the roots of all node types, sensitive or not."""
        below: list[list[int]] = [[] for _ in self.labels]
        for node, parent in enumerate(self.parents.tolist()):
            if parent != NONE:
                below[parent].append(node)
        return tuple(map(tuple, below))

    @cached_property
    def is_sensitive(self) -> npt.NDArray[np.bool_]:
        """By node: whether its type is sensitive, so that its leaves are published as they are."""
        sensitive = np.array([node_type.sensitive for node_type in self.schema], dtype=np.bool_)
        return np.where(self.ranks == NONE, False, sensitive[self.ranks])

    def number(self, label: str) -> int:
        """Number of the node with this label. Raises KeyError."""
        return self._numbers[label]

    def node_of(self, type_name: str, value: str | None) -> int | None:
        """The node that is published as this node type and value; `*` is both for the top. None when there is none."""
        return self._published.get((type_name, value))

    def published(self, node: int) -> tuple[str, str | None]:
        """Node type and value as they are published."""
        rank = int(self.ranks[node])
        return (STAR if rank == NONE else self.schema.names[rank]), self.values[node]

    @cached_property
    def _published(self) -> dict[tuple[str, str | None], int]:
        return {self.published(node): node for node in range(self.size)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def below(self, node: int) -> list[int]:
        """The node and all nodes below it."""
        nodes = [node]
        for inner in nodes:  # grows while it is walked
            nodes += self.children[inner]
        return nodes

    def at_level(self, level: int) -> Codes:
        """By node: its ancestor on the level; a node above it stays, the root of a type stays on every level below the top."""
        if level >= self.height:
            return np.full(self.size, self.top, dtype=np.int32)
        image = np.arange(self.size, dtype=np.int32)
        for table in self.tables:
            target = table[min(level, table.shape[0] - 1)]
            for row in table[: min(level, table.shape[0] - 1) + 1]:
                lower = self.levels[row] <= self.levels[target]
                image[row[lower]] = target[lower]
        return image

    def counts(self, mode: LevelCount = "class") -> Ints:
        """By node u: |C(u)|, the labels on u's level of its type ("class"), or on that level of all types; 1 for `*`."""
        if mode == "global":
            on_level = np.bincount(self.levels)
            counts = on_level[self.levels].astype(np.int64)
        else:
            counts = np.ones(self.size, dtype=np.int64)
            for rank, table in enumerate(self.tables):
                sizes = np.array([len(np.unique(row)) for row in table], dtype=np.int64)
                of_type = self.ranks == rank
                counts[of_type] = sizes[self.levels[of_type]]
        counts[self.top] = 1
        return counts

    # -- cuts ---------------------------------------------------------------------------------------------------

    @property
    def most_general(self) -> Cut:
        """The cut {*}."""
        return (self.top,)

    def specialized(self, cut: Cut, node: int) -> Cut:
        """The cut with a node replaced by its children; those of `*` are the roots of node types that are not sensitive."""
        below = [child for child in self.children[node] if not self.is_sensitive[child]]
        return tuple(sorted([*(other for other in cut if other != node), *below]))

    def can_specialize(self, node: int) -> bool:
        return bool(self.children[node])

    def with_children(self, cut: Cut, node: int, children: Iterable[int]) -> Cut:
        """The cut with some children of one of its nodes added; without the node, if these leave no value over to it."""
        rest = {leaf for leaf, image in enumerate(self.image(cut).tolist()) if image == node and not self.children[leaf]}
        added = list(children)
        for child in added:
            rest.difference_update(self.below(child))
        return tuple(sorted([*(other for other in cut if other != node or rest), *added]))

    def left_below(self, cut: Cut, node: int) -> list[int]:
        """The children of a node of the cut that have values below them which the node stands for."""
        image = self.image(cut)
        below = [child for child in self.children[node] if not self.is_sensitive[child]]
        return [child for child in below if any(image[inner] == node and not self.children[inner] for inner in self.below(child))]

    def image(self, cut: Cut) -> Codes:
        """By node: the lowest node of the cut above or at it, NONE for nodes above the cut; sensitive leaves are their own.

        Raises ValueError when a leaf is below no node of the cut.
        """
        image = self._covering(cut)
        if any((image[leaves] == NONE).any() for leaves in self.leaf_nodes):
            raise ValueError("a value is below no node of the cut")
        return image

    def _covering(self, cut: Cut) -> Codes:
        image = np.full(self.size, NONE, dtype=np.int32)
        for node in sorted(cut, key=lambda node: -self.levels[node]):  # a lower node comes later, and takes what is below it
            image[self.below(node)] = node
        sensitive = np.flatnonzero(self.is_sensitive)
        image[sensitive] = sensitive
        return image

    def ncp(self, cut: Cut) -> npt.NDArray[np.float64]:
        """By node of the cut: how many other values it could be, as a share of those of its node type; 1 for `*`.

        NaN for sensitive values, which are published as they are, and for nodes that are not of the cut.
        """
        leaves = np.concatenate(self.leaf_nodes)
        counts = np.bincount(self.image(cut)[leaves], minlength=self.size)
        others = np.array([max(1, nodes.size - 1) for nodes in self.leaf_nodes], dtype=np.float64)[self.ranks]
        ncp = np.where(self.is_sensitive, np.nan, (counts - 1) / others)
        ncp[counts == 0] = np.nan
        if counts[self.top]:
            ncp[self.top] = 1.0
        return ncp

    def is_full(self, cut: Cut) -> bool:
        """Whether no node of the cut is below another one."""
        return not any(other in cut for node in cut for other in self.below(node)[1:])

    def only_inside(self, cut: Cut, node: int) -> npt.NDArray[np.bool_]:
        """By node: whether it is a label of the cut all of whose values lie below the given node (or are it)."""
        image, leaves = self._covering(cut), np.concatenate(self.leaf_nodes)
        leaves = leaves[image[leaves] != NONE]
        inside, only = np.zeros((2, self.size), dtype=np.bool_)
        inside[self.below(node)] = True
        only[image[leaves[inside[leaves]]]] = True
        only[image[leaves[~inside[leaves]]]] = False
        return only

    def key(self, cut: Cut) -> tuple[int, Cut]:
        """Order of cuts of equal cost: the most general first, then by labels."""
        return len(cut), cut

    def cuts(self) -> int:
        """How many cuts there are."""
        return 1 + prod(self._cuts_below(root) for root in self.children[self.top] if not self.is_sensitive[root])

    def _cuts_below(self, node: int) -> int:
        below = self.children[node]
        return 1 + prod(map(self._cuts_below, below)) if below else 1

    def cut_of(self, labels: Iterable[str]) -> Cut:
        """A cut by its labels."""
        return tuple(sorted(map(self.number, labels)))

    def named(self, nodes: Iterable[int]) -> list[str]:
        return [self.labels[node] for node in nodes]


def _numbered(schema: TreeSchema, hierarchies: Mapping[str, Hierarchy]) -> Forest:
    # 1. nodes of each type: a label on several levels for the same leaves is one node
    raw: list[tuple[int, str | None, int]] = [(NONE, STAR, 0)]  # rank, value, level; * is node 0 here
    parents = [NONE]
    tables: list[npt.NDArray[np.int32]] = []
    for rank, node_type in enumerate(schema):
        hierarchy = hierarchies[node_type.name]
        table = np.zeros_like(hierarchy.codes)
        known: dict[tuple[str | None, int], int] = {}
        for level in range(hierarchy.height, -1, -1):
            for leaf, code in enumerate(hierarchy.codes[level].tolist()):
                is_root = level == hierarchy.height
                value = node_type.name if is_root else hierarchy.labels[level][code]
                above = 0 if is_root else int(table[level + 1, leaf])
                if not is_root and raw[above][1] == value and raw[above][0] == rank and not _is_root(raw, parents, above):
                    table[level, leaf] = above  # padding: the same label one level lower
                    raw[above] = (rank, value, level)
                    continue
                number = known.setdefault((value, above), len(raw))
                if number == len(raw):
                    raw.append((rank, value, level))
                    parents.append(above)
                table[level, leaf] = number
        tables.append(table)
    raw[0] = (NONE, STAR, 1 + max(hierarchies[name].height for name in schema.names))
    # 2. labels, distinct over all node types
    roots = {number for number, parent in enumerate(parents) if parent == 0}
    labels = _labels(raw, roots, schema)
    # 3. numbers in the order of labels
    order = sorted(range(len(raw)), key=lambda number: labels[number])
    place = np.empty(len(raw), dtype=np.int32)
    place[order] = np.arange(len(raw), dtype=np.int32)
    renumbered = tuple(place[table] for table in tables)
    for table in renumbered:
        table.setflags(write=False)
    return Forest(
        schema,
        dict(hierarchies),
        tuple(labels[number] for number in order),
        tuple(raw[number][1] for number in order),
        np.array([raw[number][0] for number in order], dtype=np.int32),
        np.array([NONE if parents[number] == NONE else place[parents[number]] for number in order], dtype=np.int32),
        np.array([raw[number][2] for number in order], dtype=np.int32),
        tuple(table[0] for table in renumbered),
        renumbered,
    )


def _is_root(raw: Sequence[Any], parents: Sequence[int], number: int) -> bool:
    return parents[number] in (0, NONE)


def _labels(raw: Sequence[tuple[int, str | None, int]], roots: set[int], schema: TreeSchema) -> list[str]:
    plain = [NULL if value is None else value for _, value, _ in raw]
    for (rank, _, _), label in zip(raw[1:], plain[1:], strict=True):
        if label == STAR or label.startswith(NOT):
            raise HierarchyError(
                f"Node type {schema.names[rank]}: {STAR} and a leading {NOT} are reserved; rename the value or write it "
                "otherwise."
            )
    names = schema.names
    for number, ((rank, value, _), _) in enumerate(zip(raw, plain, strict=True)):
        if number and number not in roots and value == names[rank]:
            raise HierarchyError(
                f"Node type {value}: one of its values is named as the type, which stands for all of them. Rename one."
            )
    if len(set(plain)) == len(plain):
        return plain
    written = [
        label if number == 0 or number in roots else f"{names[rank]}:{label}"
        for number, ((rank, _, _), label) in enumerate(zip(raw, plain, strict=True))
    ]
    twice = sum(times > 1 for times in Counter(written).values())
    if twice:
        raise HierarchyError(
            f"{twice} labels stand for two values even when they are written type:value. Rename a node type or its values.",
            ambiguous=twice,
        )
    return written
