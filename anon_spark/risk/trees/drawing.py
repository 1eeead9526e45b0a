"""Random knowledge of an attacker on nested records: labels, relations and absences, drawn from records as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from random import Random
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructType

from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import STAR, NodeType, TreeSchema

Label = tuple[str, str | None]  # node type and value; the value null is the null leaf
Relation = tuple[Label, Label]  # the upper one first
EVERYTHING: Label = (STAR, STAR)


def stream(key: str, purpose: str, link: int) -> Random:
    """A random stream that depends on key, purpose and link alone."""
    return Random(blake2b(repr((key, purpose, link)).encode()).digest())


@dataclass(frozen=True)
class Original:
    """A record as it was: its labels and relations, sensitive node types left out, in a fixed order."""

    labels: tuple[Label, ...]
    relations: tuple[Relation, ...]


def original(
    rows: Iterable[Mapping[str, Any]], kind: StructType, schema: TreeSchema, hierarchies: Mapping[str, Hierarchy]
) -> Original:
    """The original from the nested rows of a record. An element that is null as a whole is no value; a null inside one is."""
    labels: set[Label] = set()
    relations: set[Relation] = set()
    reading = _Reading(kind, schema, hierarchies)
    for row in rows:
        for path in reading.paths(row, None, (), {}):
            plain = [label for label in path if not schema[label[0]].sensitive]
            labels.update(plain)
            relations.update(combinations(plain, 2))
    return Original(tuple(sorted(labels, key=_order)), tuple(sorted(relations, key=lambda pair: [*map(_order, pair)])))


def _order(label: Label) -> tuple[str, bool, str]:
    return label[0], label[1] is not None, label[1] or ""


@dataclass(frozen=True)
class _Reading:
    """The settings by which nested rows are read."""

    kind: StructType
    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]

    def paths(
        self, row: Mapping[str, Any], name: str | None, above: tuple[Label, ...], chosen: Mapping[int, Any]
    ) -> Iterator[tuple[Label, ...]]:
        """The paths below a node. chosen: the elements that the node is in, by the depth of their arrays."""
        for node_type in self.schema.children(name):
            for value, inside in self._values(row, self.kind, node_type.steps, chosen, 0):
                path = (*above, (node_type.name, _leaf(value, self.hierarchies[node_type.name])))
                yield path
                yield from self.paths(row, node_type.name, path, inside)

    def _values(
        self, value: Any, kind: DataType, steps: Sequence[str], chosen: Mapping[int, Any], depth: int
    ) -> Iterator[tuple[Any, Mapping[int, Any]]]:
        """The values of a field, each with the elements that it is in; the arrays of a node type begin with its parent's."""
        if isinstance(kind, ArrayType):
            for element in [chosen[depth]] if depth in chosen else value or []:
                if element is not None or not steps:
                    yield from self._values(element, kind.elementType, steps, {**chosen, depth: element}, depth + 1)
        elif isinstance(kind, StructType) and steps:
            inner = None if value is None else value[steps[0]]
            yield from self._values(inner, kind[steps[0]].dataType, steps[1:], chosen, depth)
        else:
            yield value, chosen


def _leaf(value: Any, hierarchy: Hierarchy) -> str | None:
    """The label of a value on level 0; the hierarchy knows every value of a published record."""
    leaf = None if value is None or value != value else hierarchy.leaf_of(value)
    return None if leaf is None else hierarchy.labels[0][hierarchy.codes[0, leaf]]


# -- the cut --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Publication:
    """The public facts of the method: the hierarchies, the cut and the disassociated relations."""

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]
    cut: frozenset[Label]
    disassociated: frozenset[Relation]

    def image(self, label: Label) -> Label:
        """The published label of a value."""
        name, value = label
        if EVERYTHING in self.cut:
            return EVERYTHING
        candidates = self._above[name].get(value, [label, (name, name)])
        return next((candidate for candidate in candidates if candidate in self.cut), label)

    def translated(self, pair: Relation) -> Relation:
        return self.image(pair[0]), self.image(pair[1])

    @cached_property
    def _above(self) -> dict[str, dict[str | None, list[Label]]]:
        """By node type and value: the value and all above it."""
        return {node_type.name: self._paths(node_type) for node_type in self.schema if not node_type.sensitive}

    def _paths(self, node_type: NodeType) -> dict[str | None, list[Label]]:
        hierarchy = self.hierarchies[node_type.name]
        by_value: dict[str | None, list[Label]] = {}
        for leaf in range(hierarchy.leaf_count):
            texts = [hierarchy.labels[level][hierarchy.codes[level, leaf]] for level in range(hierarchy.height)]
            by_value[texts[0]] = [*((node_type.name, text) for text in texts), (node_type.name, node_type.name)]
        return by_value

    def absences(self, level: int) -> dict[Label, frozenset[Label]]:
        """The nodes on a level (a lower hierarchy: its root), and for each its values and the labels that tell of no others."""
        by_node: dict[Label, set[Label]] = {}
        outside: dict[Label, set[Label]] = {}  # by label: the nodes of the level that its values are below
        for paths in self._above.values():
            for path in paths.values():
                node, image = path[min(level, len(path) - 1)], self.image(path[0])
                by_node.setdefault(node, set()).update([path[0], image])
                outside.setdefault(image, set()).add(node)
        return {
            node: frozenset(label for label in below if outside.get(label, {node}) == {node}) for node, below in by_node.items()
        }


# -- drawing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Knowledge:
    """The knowledge of an attacker on a target, in published labels, and its relations that the method cut."""

    target: int
    labels: tuple[Label, ...]
    relations: tuple[Relation, ...]
    cut_off: tuple[Relation, ...]
    absent: tuple[frozenset[Label], ...] = ()  # published labels that a record must not have, by negation


def drawn(record: Original, target: int, m: int, n: int, publication: Publication, random: Random) -> Knowledge | None:
    """Random knowledge of a record: up to n relations and m labels in all; None for a record without labels."""
    if not record.labels:
        return None
    labels: list[Label] = []
    relations: list[Relation] = []
    for pair in random.sample(record.relations, len(record.relations)):
        more = [label for label in pair if label not in labels]
        if len(relations) < n and len(labels) + len(more) <= m:
            labels += more
            relations.append(pair)
    others = [label for label in record.labels if label not in labels]
    labels += random.sample(others, min(len(others), max(0, m - len(labels))))
    return translated(labels, relations, target, publication)


def drawn_about(
    pair: Relation, record: Original, target: int, m: int, publication: Publication, random: Random
) -> Knowledge:
    """Random knowledge of a record with this relation, and labels up to m."""
    others = [label for label in record.labels if label not in pair]
    labels = [*pair, *random.sample(others, min(len(others), max(0, m - 2)))]
    return translated(labels, [pair], target, publication)


def translated(
    labels: Iterable[Label], relations: Iterable[Relation], target: int, publication: Publication
) -> Knowledge:
    """Knowledge in published labels; disassociated relations are known, but not looked for."""
    images = dict.fromkeys(publication.image(label) for label in labels)
    pairs = dict.fromkeys(publication.translated(pair) for pair in relations)
    known_pairs = [(above, below) for above, below in pairs if above != below]
    return Knowledge(
        target,
        tuple(images),
        tuple(pair for pair in known_pairs if pair not in publication.disassociated),
        tuple(pair for pair in known_pairs if pair in publication.disassociated),
    )


def drawn_absences(
    record: Original, nodes: Mapping[Label, frozenset[Label]], number: int, random: Random
) -> list[frozenset[Label]]:
    """The labels of nodes of which the record has nothing, so that its own row still fits."""
    labels = set(record.labels)
    free = [below for below in nodes.values() if labels.isdisjoint(below)]
    return random.sample(free, min(number, len(free)))
