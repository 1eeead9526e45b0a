"""Which family suits a table, and with what settings to begin."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import types as T

from anon_spark.errors import ConfigurationError
from anon_spark.suggestion.hierarchies import SuggestedHierarchy
from anon_spark.suggestion.profile import TableProfile
from anon_spark.suggestion.roles import Suggested

K, ITEMS_K, SUPPRESSION = 10, 5, 0.01
NAMES = ("lattice", "mst", "relational_transaction", "set_valued", "tree")
RESERVED = {"value", "class", "nested", "paths"}  # names that a release of trees has itself


@dataclass(frozen=True)
class Node:
    """A node type of a tree: its name, the field it reads, the node types below it."""

    name: str
    field: str
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class SuggestedFamily:
    """A family with its first settings. columns: those that the job names; promise: what `privacy` says, in words."""

    name: str
    why: str
    privacy: Mapping[str, Any]
    promise: str
    columns: Collection[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    tree: tuple[Node, ...] = ()


def suggested_family(
    table: TableProfile,
    suggested: Sequence[Suggested],
    hierarchies: Mapping[str, SuggestedHierarchy],
    wanted: str | None = None,
    k: int | None = None,
) -> SuggestedFamily:
    """The family for these roles; `wanted`: the one that a person asked for. Raises where the columns do not suit it."""
    if wanted is not None and wanted not in NAMES:
        raise ConfigurationError(f"family: should be one of {', '.join(NAMES)}.")
    quasi = [entry.name for entry in suggested if entry.role == "quasi_identifier" and entry.name in hierarchies]
    items = [entry for entry in suggested if entry.role == "items" and _is_text(entry)]
    nested = [entry.name for entry in suggested if entry.role == "nested" and entry.name in hierarchies]
    name = wanted or _by_shape(suggested, quasi, items, nested)
    others = [entry.name for entry in suggested if entry.role in ("identifier", "sensitive", "keep", "person")]
    if name == "tree":
        if not nested and not quasi:
            raise ConfigurationError("No column or field of the table is left to generalize: name the node types yourself.")
        return _tree(suggested, [*quasi, *nested], others, k or K)
    if name == "set_valued":
        if not items:
            raise ConfigurationError("family: set_valued needs a column that is an array of texts, and the table has none.")
        return _set_valued(suggested, items, k or ITEMS_K)
    if not quasi:
        raise ConfigurationError(
            "No column looks as if others could know it of a person. Name some yourself: --quasi age,sex, or quasi=[…]."
        )
    if name == "relational_transaction":
        if not items:
            raise ConfigurationError("family: relational_transaction needs a column that is an array of texts.")
        without = any(entry.column.null_lists for entry in items)
        return SuggestedFamily(
            name, "values and lists of items of the same records", {"k": k or ITEMS_K, "m": 1},
            f"at least {k or ITEMS_K} rows fit all values and one item that somebody knows",
            [*quasi, *(entry.name for entry in items), *others], {"nulls": "suppress"} if without else {},
        )  # fmt: skip
    several = any(entry.role == "person" for entry in suggested)
    why = "one level of detail per column"
    if several:
        why += "; counts persons, who may have several rows"
    if name == "mst":
        why = "one value per column; each class is generalized by itself, which loses least"
    unit = "persons" if several else "rows"
    return SuggestedFamily(
        name, why, {"k": k or K, "suppression": SUPPRESSION},
        f"whoever knows all quasi-identifiers of a person finds at least {k or K} {unit}; at most 1 % of the rows are left out",
        [*quasi, *others],
    )  # fmt: skip


def _by_shape(suggested: Sequence[Suggested], quasi: Sequence[str], items: Sequence[Suggested], nested: Sequence[str]) -> str:
    if nested:
        return "tree"
    if items:
        return "relational_transaction" if quasi else "set_valued"
    # a person with several rows: only lattice counts persons
    return "lattice" if any(entry.role == "person" for entry in suggested) else "mst"


def _is_text(entry: Suggested) -> bool:
    return isinstance(entry.column.leaf.kind, T.StringType)


def _set_valued(suggested: Sequence[Suggested], items: Sequence[Suggested], k: int) -> SuggestedFamily:
    sensitive = [entry.name for entry in suggested if entry.role == "sensitive"][:1]
    identifiers = [entry.name for entry in suggested if entry.role == "identifier"]
    return SuggestedFamily(
        "set_valued", "lists of items and nothing else that others may know", {"k": k},
        f"which row is a person's cannot be told with more than 1 / {k}; the items themselves are not protected",
        [items[0].name, *sensitive, *identifiers], {"nulls": "suppress"} if items[0].column.null_lists else {},
    )  # fmt: skip


def _tree(suggested: Sequence[Suggested], fields: Sequence[str], others: Sequence[str], k: int) -> SuggestedFamily:
    """The columns beside each other; of each array its least varied field, the other fields and inner arrays below that."""
    leaves = {entry.name: entry.column.leaf for entry in suggested}
    varied = {entry.name: entry.column.distinct for entry in suggested}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in fields:
        leaf = leaves[name]
        groups.setdefault(leaf.path[:-1] if leaf.arrays else (), []).append(name)
    names = _node_names(fields)

    def node(group: tuple[str, ...]) -> Node:
        first, *rest = sorted(groups[group], key=lambda name: (varied[name], name))
        inner = [other for other in groups if other and other != group and _above(other) == group]
        children = (*(Node(names[name], name) for name in rest), *(node(other) for other in inner))
        return Node(names[first], first, children)

    def _above(group: tuple[str, ...]) -> tuple[str, ...]:
        around = [other for other in groups if other and other != group and group[: len(other)] == other]
        return max(around, key=len, default=())

    top = tuple(Node(names[name], name) for name in groups.get((), []))
    outer = tuple(node(group) for group in groups if group and _above(group) == ())
    allowed = [name for name in others if name not in {entry.name for entry in suggested if entry.role == "sensitive"}]
    return SuggestedFamily(
        "tree", "nested records", {"k": k, "m": 2, "n": 1},
        f"at least {k} records fit two values, one below the other, that somebody knows", [*fields, *allowed],
        {"tree": {"width": 4}}, (*top, *outer),
    )  # fmt: skip


def _node_names(fields: Sequence[str]) -> dict[str, str]:
    """A name for each node type: the last part of its field, longer where two fields share it."""
    names: dict[str, str] = {}
    for field_name in fields:
        parts = field_name.split(".")
        for length in range(1, len(parts) + 1):
            name = "_".join(parts[-length:])
            taken = {known.lower() for known in names.values()} | RESERVED
            if name.lower() not in taken:
                break
        else:
            name = f"{'_'.join(parts)}_{len(names) + 1}"
        names[field_name] = name
    return names
