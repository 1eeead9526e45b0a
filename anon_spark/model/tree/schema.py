"""The classes of a nested record and how they hang together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from anon_spark.errors import ConfigurationError, did_you_mean

STAR = "*"
"""Label of the common root above all classes."""
NOT = "¬"
"""Before a label: the knowledge that nothing of it is there."""
TAKEN = ("value", "class", "nested", "paths")
"""Names inside a release that no class can have."""


@dataclass(frozen=True)
class TreeClass:
    """One class of nodes: the field its values come from, and the class its nodes hang below (None: the record)."""

    name: str
    field: str
    parent: str | None = None
    sensitive: bool = False

    @property
    def steps(self) -> tuple[str, ...]:
        """The field as names from the outermost to the value."""
        return tuple(self.field.split("."))


@dataclass(frozen=True)
class TreeSchema:
    """The classes, parents before children; the rank of a class is its place, so ranks ascend along every path.

    Guarantee: names are distinct and not reserved, every parent is named before, at least one class is not sensitive.
    """

    classes: tuple[TreeClass, ...]

    def __post_init__(self) -> None:
        seen: list[str] = []
        for one in self.classes:
            if one.name in seen:
                raise ConfigurationError(f"columns.tree: class {one.name} is named twice; a class occurs once in a tree.")
            if one.name == STAR or one.name.startswith(NOT):
                raise ConfigurationError(f"columns.tree: {STAR} and a leading {NOT} are reserved; rename class {one.name}.")
            if one.name.lower() in TAKEN:
                raise ConfigurationError(f"columns.tree: {', '.join(TAKEN)} are reserved; rename class {one.name}.")
            if one.parent is not None and one.parent not in seen:
                hint = did_you_mean(one.parent, seen)
                raise ConfigurationError(f"columns.tree.{one.name}: its parent {one.parent} is not named before it.{hint}")
            seen.append(one.name)
        if all(one.sensitive for one in self.classes):
            raise ConfigurationError("columns.tree: every class is sensitive; at least one must not be.")

    def __iter__(self) -> Iterator[TreeClass]:
        return iter(self.classes)

    def __getitem__(self, name: str) -> TreeClass:
        return self.classes[self.ranks[name]]

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """Rank of each class by name."""
        return {one.name: rank for rank, one in enumerate(self.classes)}

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.classes]

    @property
    def sensitive(self) -> list[str]:
        return [one.name for one in self.classes if one.sensitive]

    def chain(self, name: str) -> list[TreeClass]:
        """The classes from the record down to this one."""
        one = self[name]
        return [*([] if one.parent is None else self.chain(one.parent)), one]

    def children(self, name: str | None) -> list[TreeClass]:
        """The classes right below this one (None: below the record)."""
        return [one for one in self.classes if one.parent == name]
