"""Jobs of the family `tree`: records that are trees of values, by one cut through the hierarchies of all node types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypeAliasType

from anon_spark.columns import PREFIX, is_publishable, is_reserved
from anon_spark.config.hierarchies import HierarchySpec
from anon_spark.config.job import JobSpec, NestedInputSpec, RolesSpec
from anon_spark.config.spec import Problem, Spec, Text, section, text, texts, whole
from anon_spark.families.tree.settings import MAX_LABELS, SEARCH, WIDTH, Cost, Cuts, Search
from anon_spark.model.tree import NOT, STAR, TAKEN, NodeType, TreeSchema
from anon_spark.model.tree.forest import LevelCount

PATHS, NESTED = "paths", "nested"
"""The columns of a release; the second is there where no relation was disassociated."""
OWN = "tree"


def _type_name(name: str) -> str:
    if name == STAR or name.startswith(NOT) or is_reserved(name.lower()):
        raise ValueError(f"{STAR}, a leading {NOT} or {PREFIX}, and _link are reserved; rename the node type")
    if name.lower() in TAKEN:
        raise ValueError(f"{', '.join(TAKEN)} are names inside a release, and reserved; rename the node type")
    if not is_publishable(name):
        raise ValueError("a node type is a field of `nested`, whose name can have no space and none of , ; { } ( ) =; rename it")
    return name


def _steps(field: str) -> str:
    steps = field.split(".")
    if not all(step.strip() for step in steps):
        raise ValueError("should be names with one dot between them, such as orders.items.brand")
    if any(is_reserved(step.lower()) for step in steps):
        raise ValueError(f"names starting with {PREFIX}, and _link, are reserved; rename the column")
    return field


def _label(label: str) -> str:
    if label == STAR or label.startswith(NOT):
        raise ValueError(f"should be a value or a group as it is written, without {NOT}; {STAR} is everything")
    return label


def _above_zero(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("should be above 0")
    return seconds


def _each_once(labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(labels)) < len(labels):
        raise ValueError("names a value or group twice")
    return labels


NodeTypeName = Annotated[Text, AfterValidator(_type_name)]
FieldPath = Annotated[Text, AfterValidator(_steps)]
Label = Annotated[Text, AfterValidator(_label)]
NodeTypes = TypeAliasType("NodeTypes", "Mapping[NodeTypeName, NodeTypeSpec]")


class NodeTypeSpec(HierarchySpec):
    """One node type: the field its values come from, their hierarchy, and the node types that hang below."""

    field: FieldPath = Field(
        description="Where the values come from: a column, or what lies inside arrays and structs, with dots between.")
    sensitive: bool = Field(
        default=False, description="Its values are published as they are, protected by privacy.l; nobody else knows them.")
    children: NodeTypes = Field(default={}, description="Node types that hang below this one, written the same way.")


class TreeColumnsSpec(RolesSpec):
    """Roles of the columns of a table of nested records."""

    tree: Mapping[NodeTypeName, NodeTypeSpec] = Field(
        min_length=1, description="The node types right below the record, each with its field, hierarchy and children.")

    @property
    def hierarchies(self) -> dict[str, HierarchySpec]:
        """The hierarchy of every node type, in the order of the schema."""
        return {name: spec for name, spec, _ in _preorder(self.tree)}

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of a release, in their order there; `nested` is left out where a relation was disassociated."""
        return (PATHS, NESTED, *self.keep)


def _preorder(
    node_types: Mapping[str, NodeTypeSpec], parent: str | None = None
) -> Iterator[tuple[str, NodeTypeSpec, str | None]]:
    for name, spec in node_types.items():
        yield name, spec, parent
        yield from _preorder(spec.children, name)


class TreePrivacySpec(Spec):
    """k^(m,n)-anonymity, and that no sensitive value is frequent among the records that fit where l is given."""

    k: int = Field(ge=2, description="Least number of records that share up to m values and n relations.")
    m: int = Field(default=3, ge=1, le=11, description="How many values of a record an attacker may know.")
    n: int = Field(
        default=2, ge=0, description="How many relations (one value above another) between them; m (m - 1) / 2 at most.")
    l: int | None = Field(  # noqa: E741 - the literature's name
        default=None, ge=2, description="No sensitive value is in more than 1 / l of the records that fit.")

    @property
    def effective_n(self) -> int:
        """n, or the number of pairs of m values where that is less: the guarantee is the same."""
        return min(self.n, self.m * (self.m - 1) // 2)

    @property
    def lowered(self) -> str | None:
        """Message where the job's n is more than m values can have; else None."""
        if "n" not in self.model_fields_set or self.n == self.effective_n:
            return None
        most = self.effective_n
        return f"privacy.n is {self.n}; {self.m} values have {most} relations at most, so n = {most} is used: nothing is lost."


class TreeSpec(Spec):
    """How the cut is searched and what it costs."""

    search: Search = Field(
        default=SEARCH,
        description="gcs: the paper's greedy search; beam: bounded; acs: all cuts; ocs: greedy, disassociates no relation.")
    g: int = Field(default=2, ge=1, description="gcs and ocs: how many specializations of a cut are followed.")
    width: int = Field(default=WIDTH, ge=1, description="beam: how many cuts of a generation are followed.")
    queue_limit: int | None = Field(
        default=None, ge=1, description="gcs and ocs: greatest number of cuts that wait; default: no limit.")
    max_cuts: int | None = Field(
        default=None, ge=1, description="Stop after so many cuts with the best one so far; default: no limit.")
    max_seconds: Annotated[float, AfterValidator(_above_zero)] | None = Field(
        default=None, allow_inf_nan=False,
        description="Stop after so many seconds with the best one so far; default: no limit.")
    negations: Annotated[tuple[Label, ...], Field(strict=False), AfterValidator(_each_once)] = Field(
        default=(), description="Values or groups of which an attacker may know that a record has none; they count in m.")
    cuts: Cuts = Field(
        default="partial",
        description="partial: rare values stay in their group while others are shown; full: all values of a group or none.")
    cost: Cost = Field(
        default="rpd_a",
        description="What cuts are compared by: rpd_a from counts of paths; rpd exactly, slower; ncp: values and relations lost.")
    level_count: LevelCount = Field(
        default="class", description="Which values a value may be mistaken for: those of its level in its node type, or in all.")
    close_unseen: bool = Field(
        default=True, description="Leave groups none of whose values occurs as they are; false multiplies the cuts.")
    max_labels: int = Field(default=MAX_LABELS, ge=1, description="Greatest number of distinct values of a record in a cut.")
    allow_unprotected_sensitive: bool = Field(
        default=False, description="Publish sensitive node types without privacy.l, outside the guarantee.")


class TreeJob(JobSpec):
    """A job of the family `tree`."""

    nests: ClassVar[bool] = True
    unlimited: ClassVar[Mapping[str, str]] = {"homogeneous": "a tree release has no classes of rows; demand privacy.l"}

    family: Literal["tree"] = Field(description="The algorithm family.")
    input: NestedInputSpec = Field(description="The table to anonymize, with the tables nested into it.")
    columns: TreeColumnsSpec = Field(
        description="What the columns are for; a column that is not named is not published.")
    privacy: TreePrivacySpec = Field(description="What the release guarantees; the audit checks exactly this.")
    tree: TreeSpec = Field(default=TreeSpec(), description="How the cut is searched and what it costs.")

    @property
    def schema(self) -> TreeSchema:  # type: ignore[override]  # pydantic's own is deprecated
        """The node types, parents before children, in the order they are written."""
        specs = _preorder(self.columns.tree)
        return TreeSchema(tuple(NodeType(name, spec.field, parent, spec.sensitive) for name, spec, parent in specs))

    @property
    def fields(self) -> tuple[str, ...]:
        """The field of every node type, as dotted names."""
        return tuple(node_type.field for node_type in self.schema)

    def content(self) -> dict[str, Any]:
        """As in `JobSpec`, with the n that holds."""
        content = super().content()
        content["privacy"]["n"] = self.privacy.effective_n
        return content

    @classmethod
    def roles(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """(role, column) of every column an unchecked job names; of a field, the column that holds it."""
        holding = (field.split(".")[0] for stated in _stated(raw) if (field := text(stated.section, "field")))
        yield from ((OWN, name) for name in {name.lower(): name for name in holding}.values())
        yield from super().roles(raw)

    @classmethod
    def hierarchies(cls, raw: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """(key, section) of every hierarchy an unchecked job names."""
        yield from ((stated.path, stated.section) for stated in _stated(raw))

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """What is wrong between keys: node types and fields, nested tables, sensitive node types, options of another search."""
        yield from super().conflicts(raw, base)
        if section(raw, "columns").get("sensitive"):
            yield "columns.sensitive", "a node type is sensitive here, not a column: say sensitive: true of it in columns.tree"
        if "quasi_identifiers" in section(raw, "columns"):
            yield "columns.quasi_identifiers", "is not known here: name node types in columns.tree, with field and hierarchy"
        for name in texts(raw, "columns", "keep"):
            if name.lower() in (PATHS, NESTED):
                yield "columns.keep", f"column {name} has the name of a column of the release; rename it"
        yield from _named_twice(raw)
        yield from _nesting(raw)
        yield from _sensitive(raw)
        yield from _searching(section(raw, OWN))


# -- rules between keys of an unchecked job ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stated:
    """A node type as an unchecked job states it."""

    path: str
    name: str
    section: Mapping[str, Any]
    parent: _Stated | None

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple((text(self.section, "field") or "").split("."))


def _stated(raw: Mapping[str, Any]) -> Iterator[_Stated]:
    yield from _below(section(raw, "columns", "tree"), "columns.tree", None)


def _below(node_types: Mapping[str, Any], where: str, parent: _Stated | None) -> Iterator[_Stated]:
    for name, content in node_types.items():
        if isinstance(name, str) and isinstance(content, Mapping):
            stated = _Stated(f"{where}.{name}", name, content, parent)
            yield stated
            yield from _below(section(content, "children"), f"{stated.path}.children", stated)


def _named_twice(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """A node type is one place of the tree, a field is read by one node type, and what holds fields is no value itself."""
    seen: set[str] = set()
    readers: dict[tuple[str, ...], str] = {}
    for stated in _stated(raw):
        if stated.name.lower() in seen:
            yield stated.path, f"node type {stated.name} is named twice; a node type has one place in the tree"
        seen.add(stated.name.lower())
        steps = tuple(step.lower() for step in stated.steps)
        if steps == ("",):
            continue
        key = f"{stated.path}.field"
        if reader := readers.get(steps):
            yield key, f"node type {reader} reads this field already; a field is one node type"
        elif reader := next((name for other, name in readers.items() if _begins(other, steps)), None):
            yield key, f"holds the field of node type {reader}, so it is no value; name what lies inside it"
        elif reader := next((name for other, name in readers.items() if _begins(steps, other)), None):
            yield key, f"lies inside the field of node type {reader}, which is no value then"
        readers.setdefault(steps, stated.name)


def _begins(steps: tuple[str, ...], start: tuple[str, ...]) -> bool:
    return steps[: len(start)] == start


def _nesting(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems with nested tables: they are arrays, and a value hangs below values of its own element."""
    arrays = dict(_arrays(section(raw, "input", "nest"), "input.nest", ()))
    for stated in _stated(raw):
        parent = stated.parent
        if stated.steps in arrays:
            yield f"{stated.path}.field", "is a nested table; name a column of it behind a dot"
        elif parent is not None:
            array = max((steps for steps in arrays if _begins(parent.steps, steps)), key=len, default=())
            if not _begins(stated.steps, array):
                inside = ".".join(array)
                yield f"{stated.path}.field", f"should begin with {inside}: node type {parent.name}, above it, is in {inside}"
    for steps, key in arrays.items():
        if section(raw, "columns", "tree") and not any(_begins(stated.steps, steps) for stated in _stated(raw)):
            yield key, f"no node type of columns.tree reads a field of {'.'.join(steps)}; remove it"


def _arrays(
    nest: Mapping[str, Any], where: str, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, table in nest.items():
        if isinstance(name, str):
            yield (*above, name), f"{where}.{name}"
            yield from _arrays(section(table, "nest"), f"{where}.{name}.nest", (*above, name))


def _sensitive(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Sensitive node types are protected or published knowingly, and something else is there to be known."""
    node_types = list(_stated(raw))
    sensitive = [stated for stated in node_types if stated.section.get("sensitive") is True]
    if sensitive and len(sensitive) == len(node_types):
        yield "columns.tree", "every node type is sensitive; at least one must not be"
    allowed, flag = section(raw, OWN).get("allow_unprotected_sensitive") is True, f"{OWN}.allow_unprotected_sensitive"
    values = whole(raw, "privacy", "l")
    if values is not None and node_types and not sensitive:
        yield "privacy.l", "needs a node type with sensitive: true, whose values must stay rare among the records that fit"
    if values is None and section(raw, "privacy").get("l") is None and not allowed:
        for stated in sensitive:
            yield f"{stated.path}.sensitive", (
                "would be published without protection: give privacy.l (2 or more), or remove it so that the node type is "
                f"generalized, or say {flag}: true"
            )
    if allowed and values is not None:
        yield flag, "privacy.l protects the sensitive node types; remove one of the two"
    if allowed and not sensitive:
        yield flag, "goes with a node type with sensitive: true only; remove it"


def _searching(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Options of another search. A value that equals its default is no statement of the user."""
    defaults = TreeSpec()
    set_keys = [key for key in TreeSpec.model_fields if options.get(key) not in (None, (), [], getattr(defaults, key))]
    search = options.get("search") or SEARCH
    goes_with = dict.fromkeys(("g", "queue_limit"), ("gcs", "ocs")) | {"width": ("beam",)}
    for key in set_keys:
        if key in goes_with and search not in goes_with[key]:
            yield f"{OWN}.{key}", f"goes with search: {' or '.join(goes_with[key])} only; remove it"


JOB = TreeJob
