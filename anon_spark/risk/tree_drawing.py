"""What an attacker may know of nested records: labels, relations and absences, drawn from records as they were."""

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
from anon_spark.model.tree import STAR, TreeClass, TreeSchema

Label = tuple[str, str | None]  # class and value; the value null is the null leaf
Relation = tuple[Label, Label]  # the upper one first
EVERYTHING: Label = (STAR, STAR)


def stream(key: str, purpose: str, link: int) -> Random:
    """Random numbers that depend on nothing else."""
    return Random(blake2b(repr((key, purpose, link)).encode()).digest())


@dataclass(frozen=True)
class Original:
    """A record as it was: its labels and relations, sensitive classes left out, in a fixed order."""

    labels: tuple[Label, ...]
    relations: tuple[Relation, ...]


def original(
    rows: Iterable[Mapping[str, Any]], kind: StructType, schema: TreeSchema, hierarchies: Mapping[str, Hierarchy]
) -> Original:
    """From the nested rows of one record. An element that is null as a whole is none; a value that is null is one."""
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
    """How nested rows are read."""

    kind: StructType
    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]

    def paths(
        self, row: Mapping[str, Any], name: str | None, above: tuple[Label, ...], chosen: Mapping[int, Any]
    ) -> Iterator[tuple[Label, ...]]:
        """The paths below a node. chosen: the elements that the node is in, by the depth of their arrays."""
        for one in self.schema.children(name):
            for value, inside in self._values(row, self.kind, one.steps, chosen, 0):
                path = (*above, (one.name, _leaf(value, self.hierarchies[one.name])))
                yield path
                yield from self.paths(row, one.name, path, inside)

    def _values(
        self, value: Any, kind: DataType, steps: Sequence[str], chosen: Mapping[int, Any], depth: int
    ) -> Iterator[tuple[Any, Mapping[int, Any]]]:
        """The values of a field, each with the elements that it is in; the arrays of a class begin with its parent's."""
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
    """What the hierarchy calls a value; a published record has none that it does not know."""
    leaf = None if value is None or value != value else hierarchy.leaf_of(value)
    return None if leaf is None else hierarchy.labels[0][hierarchy.codes[0, leaf]]


# -- the cut --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Publication:
    """What everybody may know of the method: the hierarchies, the cut and the relations that were cut."""

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]
    cut: frozenset[Label]
    disassociated: frozenset[Relation]

    def image(self, label: Label) -> Label:
        """The published label of a value."""
        name, value = label
        if EVERYTHING in self.cut:
            return EVERYTHING
        return next((one for one in self._above[name].get(value, [label, (name, name)]) if one in self.cut), label)

    def translated(self, one: Relation) -> Relation:
        return self.image(one[0]), self.image(one[1])

    @cached_property
    def _above(self) -> dict[str, dict[str | None, list[Label]]]:
        """By class and value: the value and all above it."""
        return {one.name: self._paths(one) for one in self.schema if not one.sensitive}

    def _paths(self, one: TreeClass) -> dict[str | None, list[Label]]:
        hierarchy = self.hierarchies[one.name]
        found: dict[str | None, list[Label]] = {}
        for leaf in range(hierarchy.leaf_count):
            texts = [hierarchy.labels[level][hierarchy.codes[level, leaf]] for level in range(hierarchy.height)]
            found[texts[0]] = [*((one.name, text) for text in texts), (one.name, one.name)]
        return found

    def absences(self, level: int) -> dict[Label, frozenset[Label]]:
        """The nodes on a level (a lower class: its root), and for each the values and labels of the cut at or below it."""
        found: dict[Label, set[Label]] = {}
        for paths in self._above.values():
            for path in paths.values():
                at = min(level, len(path) - 1)
                below = [label for label in path[: at + 1] if label in self.cut]
                found.setdefault(path[at], set()).update([path[0], *below])
        return {node: frozenset(below) for node, below in found.items()}


# -- drawing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Knowledge:
    """What an attacker knows of a target, in published labels, and which of its relations were cut by the method."""

    target: int
    labels: tuple[Label, ...]
    relations: tuple[Relation, ...]
    cut_off: tuple[Relation, ...]
    absent: tuple[frozenset[Label], ...] = ()  # published labels that a record must not have, by negation


def drawn(one: Original, target: int, m: int, n: int, publication: Publication, random: Random) -> Knowledge | None:
    """Up to n relations of a record that go with m labels, and labels up to m; None for a record without labels."""
    if not one.labels:
        return None
    labels: list[Label] = []
    relations: list[Relation] = []
    for pair in random.sample(one.relations, len(one.relations)):
        more = [label for label in pair if label not in labels]
        if len(relations) < n and len(labels) + len(more) <= m:
            labels += more
            relations.append(pair)
    others = [label for label in one.labels if label not in labels]
    labels += random.sample(others, min(len(others), max(0, m - len(labels))))
    return translated(labels, relations, target, publication)


def drawn_about(
    pair: Relation, one: Original, target: int, m: int, publication: Publication, random: Random
) -> Knowledge:
    """One relation of a record, and labels up to m."""
    others = [label for label in one.labels if label not in pair]
    labels = [*pair, *random.sample(others, min(len(others), max(0, m - 2)))]
    return translated(labels, [pair], target, publication)


def translated(
    labels: Iterable[Label], relations: Iterable[Relation], target: int, publication: Publication
) -> Knowledge:
    """Labels to the cut; relations that were cut are known, but not looked for."""
    images = dict.fromkeys(publication.image(label) for label in labels)
    pairs = dict.fromkeys(publication.translated(pair) for pair in relations)
    told = [(above, below) for above, below in pairs if above != below]
    return Knowledge(
        target,
        tuple(images),
        tuple(pair for pair in told if pair not in publication.disassociated),
        tuple(pair for pair in told if pair in publication.disassociated),
    )


def drawn_absences(
    one: Original, nodes: Mapping[Label, frozenset[Label]], number: int, random: Random
) -> list[frozenset[Label]]:
    """The labels of nodes of which the record has nothing, so that its own row still fits."""
    own = set(one.labels)
    free = [below for below in nodes.values() if own.isdisjoint(below)]
    return random.sample(free, min(number, len(free)))
