"""The parts of a job file that every family shares, and the rules between them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from posixpath import splitext
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from anon_spark.config.hierarchies import HierarchySpec, Presented, QuasiIdentifierSpec
from anon_spark.config.limits import LimitsSpec
from anon_spark.config.locations import (
    FileLocation,
    TableLocation,
    collisions,
    is_path,
    relation,
    resolve_file,
    resolve_table,
)
from anon_spark.config.spec import HASHED, ColumnName, ColumnNames, Problem, Spec, section, text, texts

_PINNED_ELSEWHERE = {"versionasof", "timestampasof", "path", "readchangefeed", "readchangedata"}
_DELTA_TIME_TRAVEL = re.compile(r"@(v\d+|\d{17})/?$")


def _option(value: object) -> object:
    """An option as text for Spark, because YAML has true and 5."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _options(options: Mapping[str, str]) -> Mapping[str, str]:
    if any(name.lower() in _PINNED_ELSEWHERE for name in options):
        raise ValueError("path, versions and change feeds cannot be options; use the keys table and version")
    return dict(sorted(options.items()))


class InputSpec(Spec):
    """The table to anonymize."""

    format: Literal["delta", "parquet", "csv", "json"] = Field(default="delta", description="Format of the table.")
    table: TableLocation = Field(description="The source: a catalog name, or a path when it contains a slash.")
    version: int | None = Field(
        default=None, ge=0, description="Delta version to read; default: the latest, resolved once and recorded.")
    options: Annotated[Mapping[str, Annotated[str, BeforeValidator(_option)]], AfterValidator(_options)] = Field(
        default={}, description="Options of Spark's reader, such as header and sep of a csv.")

    @field_validator("table")
    @classmethod
    def _one_spelling(cls, table: str, info: ValidationInfo) -> str:
        form = info.data.get("format")
        if form == "delta" and is_path(table) and _DELTA_TIME_TRAVEL.search(table):
            raise ValueError("give the version under the key version, not in the path")
        if form not in (None, "delta") and not is_path(table) and table.lower().endswith(f".{form}"):
            raise ValueError("without a slash it is a catalog name; write ./ before a file")
        return table

    @model_validator(mode="after")
    def _version_is_delta(self) -> Self:
        if self.version is not None and self.format != "delta":
            raise ValueError(f"version goes with format delta only, not with {self.format}")
        return self


def _one_step(name: str) -> str:
    if "." in name:
        raise ValueError("should have no dot: its columns are named behind one")
    return name


def _sorted(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """The section sorted by key, because the order of tables and keys does not matter."""
    return dict(sorted(section.items()))


NestName = Annotated[ColumnName, AfterValidator(_one_step)]
Tables = TypeAliasType("Tables", "Mapping[NestName, NestSpec]")


class NestSpec(InputSpec):
    """A table whose rows become the elements of an array, in the row of the table above that has their key."""

    on: Annotated[Mapping[ColumnName, ColumnName], AfterValidator(_sorted)] = Field(
        min_length=1, description="The keys that belong together: column of the table above, then column of this one.")
    nest: Annotated[Tables, AfterValidator(_sorted)] = Field(
        default={}, description="Tables nested into this one, written the same way.")


class NestedInputSpec(InputSpec):
    """The table to anonymize, other tables nested into it as arrays where the job names some."""

    nest: Annotated[Mapping[NestName, NestSpec], AfterValidator(_sorted)] = Field(
        default={}, description="Tables nested into the input, each under the name of the array that it becomes.")


class RolesSpec(Spec):
    """Roles of columns in every family; a column that is not named is not published."""

    person: ColumnName | None = Field(
        default=None, description="Unit of protection: classes count distinct persons, not rows; never published.")
    identifiers: ColumnNames = Field(default=(), description="Columns that must never be published.")
    sensitive: ColumnNames = Field(default=(), description="Columns published unchanged that say something sensitive.")
    keep: ColumnNames = Field(default=(), description="Other columns published unchanged.")

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of a release, in their order there."""
        return (*self.sensitive, *self.keep)

    @property
    def hierarchies(self) -> Mapping[str, HierarchySpec]:
        """The hierarchies that the columns name, in their order."""
        return {}


class ColumnsSpec(RolesSpec):
    """Roles of the columns of a table whose quasi-identifiers are generalized."""

    quasi_identifiers: Mapping[ColumnName, QuasiIdentifierSpec] = Field(
        min_length=1,
        description="Columns to generalize, each with its hierarchy ({} is {top: true}); their order is that of a node.")

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of a release, in their order there."""
        return (*(name for of_one in self.shown_as.values() for name in of_one), *self.sensitive, *self.keep)

    @property
    def presented(self) -> dict[str, Presented]:
        """The quasi-identifiers of which the bounds of labels are published, and how."""
        return {name: how for name, spec in self.quasi_identifiers.items() if (how := spec.presented) is not None}

    @property
    def shown_as(self) -> dict[str, list[str]]:
        """The published columns of each quasi-identifier."""
        two = [name for name, how in self.presented.items() if how == "bounds"]
        return {name: [f"{name}_lo", f"{name}_hi"] if name in two else [name] for name in self.quasi_identifiers}

    @property
    def hierarchies(self) -> Mapping[str, HierarchySpec]:
        """The hierarchies that the columns name, in their order."""
        return self.quasi_identifiers


class KSpec(Spec):
    """k-anonymity."""

    k: int = Field(ge=2, description="Least number of records (persons, if columns.person is named) in a class.")


class PrivacySpec(KSpec):
    """k-anonymity with a budget of suppressed rows."""

    suppression: float = Field(
        default=0.0, ge=0, lt=1, allow_inf_nan=False,
        description="Greatest share of rows that may be left out, from 0 to below 1.")

    def budget(self, rows: int) -> int:
        """How many of `rows` may be suppressed: the exact share, rounded down."""
        return math.floor(Fraction(str(self.suppression)) * rows)


def _html(location: str) -> str:
    if not location.lower().endswith(".html"):
        raise ValueError("should end in .html")
    return location


class OutputSpec(Spec):
    """The places that a run writes to."""

    table: TableLocation = Field(description="The release, a Delta table: catalog name, or path with a slash.")
    runs: TableLocation = Field(description="The run log, a Delta table: one row per run, also for runs that failed.")
    report: Annotated[FileLocation, AfterValidator(_html)] | None = Field(
        default=None, description="HTML report, with a .json beside it; default: none.")
    dictionary: TableLocation | None = Field(
        default=None,
        description="Data dictionary of the release, a Delta table; default: as .dictionary.json beside the report.")
    mode: Literal["replace", "append"] = Field(
        default="replace",
        description="replace: a release takes the place of the one before; append: people who were not published yet are added.")
    ledger: TableLocation | None = Field(
        default=None, description="append only, required: who was published, a private Delta table of salted hashes.")
    increment: ColumnName | None = Field(
        default=None, description="append only: a published column of this name gets the number of the increment.")

    @property
    def appends(self) -> bool:
        """Whether the release is a series: every run adds the people who were not published yet."""
        return self.mode == "append"


class JobSpec(Spec):
    """A job of any family. A family extends it with its own columns, privacy and section.

    Guarantee: roles of columns are disjoint, and written places do not overlap other places of the job.
    """

    anon_spark: Literal[1] = Field(description="Version of this format.")
    family: str = Field(description="The algorithm family.")
    input: InputSpec = Field(description="The table to anonymize.")
    columns: RolesSpec = Field(description="What the columns are for; a column that is not named is not published.")
    on_unseen: Literal["error", "suppress"] = Field(
        default="error", description="What to do with a value that its hierarchy does not know.")
    nulls: Literal["value", "suppress"] = Field(
        default="value", description="Whether null is one more value of its own, or its rows are left out.")
    limits: LimitsSpec | None = Field(
        default=None, description="What may be found in a release that passed every check; more is refused.")
    work: FileLocation | None = Field(
        default=None, description="Private folder all workers see; default: a temporary one, on a local master only.")
    output: OutputSpec = Field(description="What the run writes.")

    nests: ClassVar[bool] = False
    """Whether the family reads several tables, nested into each other."""

    unlimited: ClassVar[Mapping[str, str]] = {}
    """Limits that say nothing of the family's releases, and why."""

    _base: Path | None = PrivateAttr(None)

    def model_post_init(self, context: Any, /) -> None:
        """Remember the folder of the job file, which is no key of it."""
        self._base = context.get("base") if isinstance(context, dict) else None

    @property
    def base(self) -> Path:
        """The folder of the job file; the current folder for a job without file."""
        return self._base or Path.cwd()

    @property
    def hierarchy_specs(self) -> Mapping[str, HierarchySpec]:
        """Every hierarchy of the job by the name of its column or node type."""
        return self.columns.hierarchies

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns that the job reads inside nested tables, as dotted names."""
        return ()

    def content(self) -> dict[str, Any]:
        """The whole job as plain JSON values: defaults filled in, places resolved, quasi-identifiers in their order.

        It is hashed, so options with papers' words hold these (see `Words`).
        """
        content = self.model_dump(mode="json", by_alias=True, exclude_none=True, context=HASHED)
        if not self.output.appends:
            del content["output"]["mode"]  # jobs of older versions keep their hash
        return content

    @classmethod
    def roles(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """(role, column) of every column an unchecked job names; a family with other roles extends it."""
        person = text(raw, "columns", "person")
        yield from [("person", person)] if person else []
        yield from (("identifiers", name) for name in texts(raw, "columns", "identifiers"))
        yield from (("quasi_identifiers", name) for name in section(raw, "columns", "quasi_identifiers")
                    if isinstance(name, str))
        for role in ("sensitive", "keep"):
            yield from ((role, name) for name in texts(raw, "columns", role))

    @classmethod
    def hierarchies(cls, raw: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """(key, section) of every hierarchy an unchecked job names; a family with others extends it."""
        for name, hierarchy in section(raw, "columns", "quasi_identifiers").items():
            yield f"columns.quasi_identifiers.{name}", hierarchy

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """Conflicts between keys. Reads the unchecked job, so that conflicts are reported together with other faults."""
        seen: dict[str, str] = {}
        for role, name in cls.roles(raw):
            earlier = seen.setdefault(name.lower(), role)   # Spark ignores the case of names
            if earlier != role:
                yield f"columns.{role}", f"column {name} is in {earlier} already; a column has one role"
        for role in dict.fromkeys(role for role, _ in cls.roles(raw)):
            names = [name.lower() for other, name in cls.roles(raw) if other == role]
            for name in dict.fromkeys(name for name in names if names.count(name) > 1):
                yield f"columns.{role}", f"column {name} is named twice"
        for name, spec in section(raw, "columns", "quasi_identifiers").items():
            taken = [f"{name}_{end}" for end in ("lo", "hi") if f"{name}_{end}".lower() in seen]
            if section(spec).get("publish") == "bounds" and taken:
                key = f"columns.quasi_identifiers.{name}.publish"
                yield key, f"{taken[0]} is a column already; rename it, or publish a range"
        yield from _of_a_series(raw)
        if not cls.nests and "nest" in section(raw, "input"):
            yield "input.nest", "goes with a family of nested records only; join the tables into one first"
        for name, why in cls.unlimited.items():
            if section(raw, "limits").get(name) is not None:
                yield f"limits.{name}", f"{why}; remove it"
        yield from _touching(raw, base, cls.hierarchies(raw))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        faults = list(self.conflicts(self.model_dump(by_alias=True), self._base))
        if faults:
            lines = "\n".join(f"{path}: {what}" for path, what in faults)
            raise PydanticCustomError("conflict", "{lines}", {"lines": lines})
        return self


class QuasiIdentifierJob(JobSpec):
    """A job of a family whose tables have quasi-identifiers with hierarchies, and nothing else to generalize."""

    columns: ColumnsSpec = Field(description="What the columns are for; a column that is not named is not published.")
    privacy: KSpec = Field(description="What the release guarantees; the audit checks exactly this.")


def _of_a_series(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """What `output.mode: append` needs, and what goes with it only."""
    output = section(raw, "output")
    if output.get("mode", "replace") == "append":
        if output.get("ledger") is None:
            yield "output.ledger", "is required by output.mode: append; name a private place for the table of who was published"
        if text(raw, "columns", "person") is None:
            yield "columns.person", "is required by output.mode: append, which publishes everybody once"
        if section(raw, "limits").get("republication") is not None:
            yield "limits.republication", "goes with output.mode: replace only, an increment replaces nothing; remove it"
        if section(raw, "input").get("format", "delta") != "delta":
            yield "input.format", "should be delta with output.mode: append: every increment is made of one version"
        return
    for key in ("ledger", "increment"):
        if output.get(key) is not None:
            yield f"output.{key}", "goes with output.mode: append only; remove it, or append"


def _touching(
    raw: Mapping[str, Any], base: Path | None, hierarchies: Iterable[tuple[str, object]]
) -> Iterator[Problem]:
    """Places of an unchecked job that are equal or contain each other."""
    here = base or Path.cwd()
    written = [(f"output.{key}", resolve_table(place, here))
               for key in ("table", "runs", "dictionary", "ledger") if (place := text(raw, "output", key))]
    if report := text(raw, "output", "report"):
        page = resolve_file(report, here)
        written += [("output.report", page), *(("output.report", splitext(page)[0] + end) for end in (".json", ".md"))]
    if work := text(raw, "work"):
        written += [("work", resolve_file(work, here))]
    read = [(key, resolve_table(place, here)) for part in ("input", "population")
            for key, place in _read_tables(section(raw, part), part)]
    for where, hierarchy in hierarchies:
        for key in ("levels", "edges"):
            if place := text(hierarchy, key):
                resolve = resolve_table if text(hierarchy, "format") else resolve_file
                read += [(f"{where}.{key}", resolve(place, here))]
    yield from collisions(written, read)
    if base:
        folder = str(base)
        for key, place in written:
            if relation(place, folder) in ("contains", "is the same place as"):
                yield key, "contains the job file; choose a place apart from it"


def _read_tables(raw: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """(key, place) of the input and of the tables nested into it, of an unchecked job."""
    if place := text(raw, "table"):
        yield f"{where}.table", place
    for name, below in section(raw, "nest").items():
        yield from _read_tables(section(below), f"{where}.nest.{name}")
