"""The node types of a nested record and how they hang together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from anon_spark.errors import ConfigurationError, did_you_mean

STAR = "*"
"""Label of the common root above all node types."""
NOT = "¬"
"""Prefix of a label: the record has nothing of it."""
TAKEN = ("value", "class", "nested", "paths")
"""Names inside a release that no node type can have."""


@dataclass(frozen=True)
class NodeType:
    """One kind of value: the field its values come from, and the node type that its nodes hang below (None: the record)."""

    name: str
    field: str
    parent: str | None = None
    sensitive: bool = False

    @property
    def steps(self) -> tuple[str, ...]:
        """The field as names from the outermost to the value."""
        return tuple(self.field.split("."))


TreeClass = NodeType
"""The older name of NodeType."""


@dataclass(frozen=True)
class TreeSchema:
    """The node types, parents before children. The rank of a node type is its place, so ranks ascend along every path.

    Guarantee: names are distinct and not reserved, every parent is named before, at least one node type is not sensitive.
    """

    node_types: tuple[NodeType, ...]

    def __post_init__(self) -> None:
        seen: list[str] = []
        for node_type in self.node_types:
            name, parent = node_type.name, node_type.parent
            if name in seen:
                raise ConfigurationError(f"columns.tree: node type {name} is named twice; it has one place in a tree.")
            if name == STAR or name.startswith(NOT):
                raise ConfigurationError(f"columns.tree: {STAR} and a leading {NOT} are reserved; rename node type {name}.")
            if name.lower() in TAKEN:
                raise ConfigurationError(f"columns.tree: {', '.join(TAKEN)} are reserved; rename node type {name}.")
            if parent is not None and parent not in seen:
                hint = did_you_mean(parent, seen)
                raise ConfigurationError(f"columns.tree.{name}: its parent {parent} is not named before it.{hint}")
            seen.append(name)
        if all(node_type.sensitive for node_type in self.node_types):
            raise ConfigurationError("columns.tree: every node type is sensitive; at least one must not be.")

    def __iter__(self) -> Iterator[NodeType]:
        return iter(self.node_types)

    def __getitem__(self, name: str) -> NodeType:
        return self.node_types[self.ranks[name]]

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """Rank of each node type by name."""
        return {node_type.name: rank for rank, node_type in enumerate(self.node_types)}

    @property
    def names(self) -> list[str]:
        return [node_type.name for node_type in self.node_types]

    @property
    def sensitive(self) -> list[str]:
        """Names of the sensitive node types."""
        return [node_type.name for node_type in self.node_types if node_type.sensitive]

    def chain(self, name: str) -> list[NodeType]:
        """The node types from the record down to this one."""
        node_type = self[name]
        return [*([] if node_type.parent is None else self.chain(node_type.parent)), node_type]

    def children(self, name: str | None) -> list[NodeType]:
        """The node types right below this one (None: below the record)."""
        return [node_type for node_type in self.node_types if node_type.parent == name]
