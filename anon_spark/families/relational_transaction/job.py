"""Jobs of the family `relational_transaction`: relational values and item sets of the same records, together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from anon_spark.config.hierarchies import KINDS, HierarchySpec
from anon_spark.config.job import JobSpec, RolesSpec
from anon_spark.config.locations import base_of, checked_table, resolve_file
from anon_spark.config.spec import (
    ColumnName,
    ColumnNames,
    Number,
    Problem,
    Spec,
    Text,
    Words,
    in_plain_words,
    section,
    text,
    texts,
    whole,
)
from anon_spark.errors import did_you_mean
from anon_spark.families.relational_transaction.settings import (
    BLOCK_RECORDS,
    DELTA,
    GRAY_BLOCK,
    Bound,
    Cost,
    CutMethod,
    Distance,
    ItemMethod,
    Merge,
    Method,
    Refine,
)

COMBINED = "transactions"
"""What several transaction columns are published as; one keeps its name."""
SENSITIVE = "_sensitive"
"""Behind the name of the published items: the column of the sensitive ones."""
FILES = ("levels", "edges")
OWN = "relational_transaction"
CUT_WORDS = Words({"aa": "apriori", "lra": "local", "vpa": "vertical"})


def _least_and_greatest(value: object) -> object:
    """YAML has lists; a domain is two numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("should be two numbers, such as [1920, 2005]")
    return tuple(value)


def _ascending(domain: tuple[Number, Number]) -> tuple[Number, Number]:
    if domain[0] > domain[1]:
        raise ValueError("should be [least, greatest]")
    return domain


def _above_zero(weight: Number) -> Number:
    if weight <= 0:
        raise ValueError("should be above 0")
    return weight


class RelationalSpec(HierarchySpec):
    """A quasi-identifier: with a hierarchy, as in the other families, or a number whose values become ranges."""

    domain: Annotated[
        tuple[Number, Number], BeforeValidator(_least_and_greatest), AfterValidator(_ascending)
    ] | None = Field(
        default=None,
        description="Of a number without hierarchy: its least and greatest value, for the loss; default: those found.")
    weight: Annotated[Number, AfterValidator(_above_zero)] = Field(
        default=1, description="Share of the column in the relational loss, compared with the others.")

    @model_validator(mode="before")
    @classmethod
    def _section_with_separator(cls, data: Any) -> Any:
        if data is None:
            return {}
        if not isinstance(data, Mapping | HierarchySpec):
            raise ValueError(f"needs a hierarchy, one of: {', '.join(KINDS)}; or {{}} for ranges of a number")
        return data

    @model_validator(mode="after")
    def _exactly_one(self) -> RelationalSpec:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) > 1:
            raise ValueError(f"has {' and '.join(kinds)}; keep one")
        if self.format and self.levels is None:
            raise ValueError("format goes with levels only")
        if self.model_fields_set & {"sep", "header"} and (self.format or not {*kinds} & {*FILES}):
            raise ValueError("sep and header go with a text file of levels or edges only")
        if kinds and self.domain is not None:
            raise ValueError("domain goes with a number without hierarchy; the hierarchy has its own")
        return self

    @property
    def is_range(self) -> bool:
        """Whether it is a number without hierarchy."""
        return all(getattr(self, kind) is None for kind in KINDS)


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("needs at least one entry")
    return names


def _each_once(items: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(items)) < len(items):
        raise ValueError("names an item twice")
    return _some(items)


class RelationalTransactionColumnsSpec(RolesSpec):
    """Roles of the columns of a table with relational values and items."""

    quasi_identifiers: Mapping[ColumnName, RelationalSpec] = Field(
        min_length=1, description="Relational columns, each with its hierarchy, or {} for a number that becomes ranges.")
    transactions: Annotated[ColumnNames, AfterValidator(_some)] = Field(
        description="Columns of item sets, array<string>; several are published as one, with items written column.item.")
    sensitive_items: Mapping[
        ColumnName, Annotated[tuple[Text, ...], Field(strict=False), AfterValidator(_each_once)]
    ] = Field(default={}, description="Sensitive items of each transaction column; published apart, protected by privacy.l.")

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of a release, in their order there."""
        apart = [self.sensitive_column] if self.sensitive_column else []
        return (*self.quasi_identifiers, self.items, *apart, *self.sensitive, *self.keep)

    @property
    def items(self) -> str:
        """The column of generalized items in the release."""
        return self.transactions[0] if len(self.transactions) == 1 else COMBINED

    @property
    def sensitive_column(self) -> str | None:
        """The column of sensitive items in the release, where the job names some."""
        return self.items + SENSITIVE if self.sensitive_items else None

    @property
    def sensitive_names(self) -> frozenset[str]:
        """The names of the sensitive items when the transaction columns are combined into one set."""
        several = len(self.transactions) > 1
        pairs = ((column, item) for column, items in self.sensitive_items.items() for item in items)
        return frozenset(f"{column}.{item}" if several else item for column, item in pairs)

    @property
    def hierarchies(self) -> dict[str, HierarchySpec]:
        """The quasi-identifiers that have one; the others are ranges of numbers."""
        return {name: spec for name, spec in self.quasi_identifiers.items() if not spec.is_range}

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the quasi-identifiers in their order; their sum is 1."""
        weights = [spec.weight for spec in self.quasi_identifiers.values()]
        return tuple(float(weight / sum(weights)) for weight in weights)


class RelationalTransactionPrivacySpec(Spec):
    """(k,k^m)-anonymity, or (k,l^m)-diversity where l is given; no row is suppressed."""

    k: int = Field(ge=2, description="Least number of rows that share relational values and up to m items.")
    m: int = Field(default=2, ge=1, description="How many items of a person an attacker may know.")
    l: int | None = Field(  # noqa: E741 - the literature's name
        default=None, ge=2, description="No sensitive item is in more than 1 / l of the rows that fit.")


ItemBlock = Annotated[int, Field(ge=2)]


class ItemOptions(Spec):
    """How items are generalized, under the names of the anonymizer's options, with the default `sets` written out."""

    item_method: Annotated[ItemMethod, CUT_WORDS] = Field(default="sets", description="How items are generalized.")
    item_block: ItemBlock | None = Field(default=None, description="Records of a block of local or tfirst.")


class ItemsSpec(Spec):
    """How items are generalized: `sets`, or within a hierarchy."""

    format: Literal["delta", "parquet"] | None = Field(
        default=None, description="With levels: it is a table of this format (path or catalog name), not a text file.")
    levels: Text | None = Field(
        default=None, description="Hierarchy of the items, one row per item: item;g1;…;* (column.item for several columns).")
    edges: Text | None = Field(default=None, description="Hierarchy of the items as a text file of child,parent pairs.")
    sep: str | None = Field(
        default=None, min_length=1, max_length=1,
        description="Separator of the file; default: a semicolon for levels, a comma for edges.")
    header: bool = Field(default=False, description="The first line of the file holds names, not items.")
    method: Annotated[CutMethod | None, CUT_WORDS] = Field(
        default=None,
        description="apriori (default): one cut per cluster; local: per block of similar records; vertical: branches first.")
    block: ItemBlock | None = Field(
        default=None, description=f"Records of a block of local or tfirst; default: {GRAY_BLOCK}, at least 4 k.")

    @model_validator(mode="before")
    @classmethod
    def _word(cls, data: Any) -> Any:
        if data == "sets":
            return {}
        if not isinstance(data, Mapping | ItemsSpec):
            raise ValueError("should be sets, or a section with the hierarchy of the items and a method")
        return data

    @field_validator(*FILES)
    @classmethod
    def _resolved(cls, location: str | None, info: ValidationInfo) -> str | None:
        if location is None:
            return None
        if info.data.get("format"):
            return checked_table(location, info)
        base = base_of(info)
        return resolve_file(location, base) if base else location

    @model_validator(mode="after")
    def _one_hierarchy(self) -> ItemsSpec:
        if self.levels is not None and self.edges is not None:
            raise ValueError("has levels and edges; keep one")
        if self.format and self.levels is None:
            raise ValueError("format goes with levels only")
        if (self.sep or self.header) and (self.format or (self.levels is None and self.edges is None)):
            raise ValueError("sep and header go with a text file of levels or edges only")
        return self

    @property
    def hierarchy(self) -> HierarchySpec | None:
        """Where the hierarchy of the items is, if there is one."""
        if self.levels is None and self.edges is None:
            return None
        named = {"format": self.format, "levels": self.levels, "edges": self.edges, "sep": self.sep}
        return HierarchySpec.model_validate(named | ({"header": True} if self.header else {}))

    @property
    def kind(self) -> ItemMethod:
        """The method, with its default filled in."""
        return self.method or ("sets" if self.hierarchy is None else "apriori")

    @property
    def options(self) -> ItemOptions:
        """The anonymizer's options, except the hierarchy."""
        return ItemOptions(item_method=self.kind, item_block=self.block)


class RelationalTransactionSpec(Spec):
    """How clusters are made and merged, and how their items are generalized."""

    method: Method = Field(
        default="bound", description="bound: clusters are merged while delta allows; rfirst, tfirst: the paper's baselines.")
    bound: Annotated[Bound, Words({"rum": "relational", "tum": "items"})] = Field(
        default="relational", description="What delta bounds: the loss of relational values (NCP), or that of items (UL).")
    delta: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description=f"Greatest loss, from 0 to 1, of the kind that bound names; default: {DELTA}.")
    merge: Annotated[Merge, Words({"r": "relational", "t": "items", "rt": "both"})] = Field(
        default="relational",
        description="Which cluster joins: the nearest by relational values, by items, or by both ranks together.")
    distance: Annotated[Distance, Words({"btd": "bits", "ul": "utility_loss"})] = Field(
        default="bits", description="With merge items or both, how items are compared: the loss itself is far slower.")
    refine: Refine = Field(
        default="moves",
        description="moves: first clusters move between merged ones, with bound and merge relational; none: as in the paper.")
    exhaustive_seeds: bool = Field(
        default=False, description="Where a cluster can join no other, try the next; with bound relational only.")
    items: ItemsSpec = Field(
        default=ItemsSpec(), description="sets: free sets of items (default); or a section with a hierarchy of the items.")
    cost: Annotated[Cost, Words({"occ": "occurrences", "ul": "utility_loss"})] = Field(
        default="rarest",
        description="What sets of items are joined by: rarest, those with the fewest occurrences; the others are the paper's.")
    suppress_items: float = Field(
        default=0.0, ge=0, le=1, allow_inf_nan=False,
        description="Share of all item occurrences that may be left out: items of fewer than k records, the rarest first.")
    block: int = Field(default=BLOCK_RECORDS, ge=2, description="Records of a block in which the first clusters are made.")
    allow_unprotected_sensitive: bool = Field(
        default=False, description="Publish sensitive items without privacy.l, outside the guarantee.")


class RelationalTransactionJob(JobSpec):
    """A job of the family `relational_transaction`."""

    family: Literal["relational_transaction"] = Field(description="The algorithm family.")
    columns: RelationalTransactionColumnsSpec = Field(
        description="What the columns are for; a column that is not named is not published.")
    privacy: RelationalTransactionPrivacySpec = Field(
        description="What the release guarantees; the audit checks exactly this.")
    relational_transaction: RelationalTransactionSpec = Field(
        default=RelationalTransactionSpec(),
        description="How clusters are made and merged, and how their items are generalized.")

    @property
    def delta(self) -> float | None:
        """The bound, with its default filled in; none for a method that takes none."""
        clustering = self.relational_transaction
        if clustering.method != "bound":
            return None
        return DELTA if clustering.delta is None else clustering.delta

    @property
    def hierarchy_specs(self) -> Mapping[str, HierarchySpec]:
        """Those of the columns, and that of the items where there is one."""
        items = self.relational_transaction.items.hierarchy
        return {**self.columns.hierarchies, **({} if items is None else {"items": items})}

    @property
    def unprotected_items(self) -> bool:
        """Whether sensitive items are published outside the guarantee."""
        return bool(self.columns.sensitive_items) and self.privacy.l is None

    def content(self) -> dict[str, Any]:
        """As in `JobSpec`, with the default bound, and without what is as if there were no such option: older jobs have none."""
        content = super().content()
        own = content[OWN] | ({} if self.delta is None else {"delta": self.delta})
        for key, before in (("suppress_items", 0.0), ("refine", "none")):
            if own[key] == before:
                del own[key]
        return {**content, OWN: own if self.delta is None else dict(sorted(own.items()))}

    @classmethod
    def roles(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """(role, column) of every column an unchecked job names."""
        yield from ((COMBINED, name) for name in texts(raw, "columns", "transactions"))
        yield from super().roles(raw)

    @classmethod
    def hierarchies(cls, raw: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """(key, section) of every hierarchy an unchecked job names, that of the items included."""
        yield from super().hierarchies(raw)
        yield f"{OWN}.items", section(raw, OWN, "items")

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """Conflicts between keys: names of the release, sensitive items, options that exclude each other."""
        yield from super().conflicts(raw, base)
        yield from _published_names(raw)
        yield from _sensitive_items(raw)
        options = in_plain_words(section(raw, OWN), RelationalTransactionSpec)
        yield from _merging(options)
        yield from _generalizing(options, whole(raw, "privacy", "k"))


def _published_names(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Names that the release would have twice, and items whose column would be ambiguous."""
    columns = texts(raw, "columns", "transactions")
    for name in columns:
        if longer := next((other for other in columns if other.startswith(f"{name}.")), None):
            yield "columns.transactions", f"items of {longer} could be taken for items of {name}: rename one of them"
    if not columns:
        return
    items = columns[0] if len(columns) == 1 else COMBINED
    taken = {items.lower()} if len(columns) > 1 else set()
    taken |= {(items + SENSITIVE).lower()} if section(raw, "columns", "sensitive_items") else set()
    for role, names in {
        "quasi_identifiers": [*section(raw, "columns", "quasi_identifiers")],
        "sensitive": texts(raw, "columns", "sensitive"),
        "keep": texts(raw, "columns", "keep"),
    }.items():
        for name in names:
            if isinstance(name, str) and name.lower() in taken:
                yield f"columns.{role}", f"column {name} has the name of a column of the release; rename it"


def _sensitive_items(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Sensitive items belong to a transaction column, and are protected or published knowingly."""
    where, columns = "columns.sensitive_items", texts(raw, "columns", "transactions")
    listed, values = section(raw, "columns", "sensitive_items"), whole(raw, "privacy", "l")
    for name in listed:
        if isinstance(name, str) and columns and name not in columns:
            yield where, f"column {name} is not one of columns.transactions.{did_you_mean(name, columns)}"
    allowed, flag = section(raw, OWN).get("allow_unprotected_sensitive") is True, f"{OWN}.allow_unprotected_sensitive"
    if values is not None and not section(raw, "columns").get("sensitive_items"):
        yield "privacy.l", "needs columns.sensitive_items: the items that must stay rare among the rows that fit"
    if listed and values is None and section(raw, "privacy").get("l") is None and not allowed:
        yield where, (
            "would be published without protection: give privacy.l (2 or more), or leave them among the other items, "
            f"or say {flag}: true"
        )
    if allowed and values is not None:
        yield flag, "privacy.l protects the sensitive items; remove one of the two"
    if allowed and not listed:
        yield flag, "goes with columns.sensitive_items only; remove it"


def _merging(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Options of a merge that does not happen. A dumped default is not an error."""
    method = options.get("method")
    if method in ("rfirst", "tfirst"):
        stated = {
            "delta": options.get("delta") is not None,
            "bound": options.get("bound") == "items",
            "merge": options.get("merge") in ("items", "both"),
            "distance": options.get("distance") == "utility_loss",
            "exhaustive_seeds": options.get("exhaustive_seeds") is True,
        }
        for key in (key for key, is_stated in stated.items() if is_stated):
            yield f"{OWN}.{key}", f"goes with method: bound only, {method} merges no clusters; remove it"
        if method == "tfirst" and options.get("block") not in (None, BLOCK_RECORDS):
            yield f"{OWN}.block", "tfirst makes blocks of similar item sets: give items.block instead"
        return
    if options.get("distance") == "utility_loss" and options.get("merge") in (None, "relational"):
        yield f"{OWN}.distance", "goes with merge: items or both only; remove it"
    if options.get("exhaustive_seeds") is True and options.get("bound") == "items":
        yield f"{OWN}.exhaustive_seeds", "goes with bound: relational only, with items clusters always merge; remove it"


def _generalizing(options: Mapping[str, Any], k: int | None) -> Iterator[Problem]:
    """Options of the items that exclude each other."""
    items, where = in_plain_words(section(options, "items"), ItemsSpec), f"{OWN}.items"
    in_hierarchy, method = any(text(items, key) for key in FILES), items.get("method")
    if method in ("apriori", "vertical") and not in_hierarchy:
        yield f"{where}.method", f"{method} needs levels or edges: the hierarchy of the items"
    if options.get("cost") == "utility_loss" and (in_hierarchy or method in ("apriori", "vertical")):
        yield f"{OWN}.cost", "goes with sets of items only, a hierarchy has its own cost; remove it"
    if options.get("suppress_items"):
        if in_hierarchy:
            yield f"{OWN}.suppress_items", "goes with sets of items only, a hierarchy has a place for a rare item; remove it"
        if options.get("bound") == "items" and options.get("method") in (None, "bound"):
            yield f"{OWN}.suppress_items", "goes with bound: relational only, merging cannot lower the loss of an item left out"
    size = whole(items, "block")
    if size is not None and method != "local" and options.get("method") != "tfirst":
        yield f"{where}.block", "goes with items.method: local or with method: tfirst only; remove it"
    elif size is not None and k is not None and size < k:
        yield f"{where}.block", f"is {size}, below privacy.k, which is {k}; choose at least that"


JOB = RelationalTransactionJob
