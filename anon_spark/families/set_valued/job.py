"""Jobs of the family `set_valued`: item sets by nonreciprocal recoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from anon_spark.config.job import JobSpec, RolesSpec
from anon_spark.config.spec import ColumnName, Problem, Spec, section, text, texts, whole

PUBLISHED = ("base", "uncertain", "max_errors")
"""The columns of every release of this family; the sensitive one follows."""
TRUTH: Literal["spaced"] = "spaced"
"""How equal labels are kept apart where a job does not say."""


class SetValuedColumnsSpec(RolesSpec):
    """Roles of the columns of a table of item sets."""

    items: ColumnName = Field(description="The column of item sets, array<string>; published as base and uncertain items.")

    @model_validator(mode="before")
    @classmethod
    def _items_are_not_protected(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "sensitive_items" in data:
            raise PydanticCustomError(
                "value_error",
                "{error}",
                {
                    "error": "sensitive_items: the items are not protected by this family, many can be worked out from a "
                    "release; the family relational_transaction is the one for sensitive items"
                },
            )
        return data

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of a release, in their order there."""
        return (*PUBLISHED, *self.sensitive)

    @property
    def label(self) -> str | None:
        """The one sensitive column, where there is one."""
        return self.sensitive[0] if self.sensitive else None


class SetValuedPrivacySpec(Spec):
    """k rows that may be a record's, or l rows with l different sensitive values; one of the two."""

    k: int | None = Field(default=None, ge=2, description="Least number of rows that may be a record's; or give l.")
    l: int | None = Field(  # noqa: E741 - the literature's name
        default=None, ge=2, description="Least number of rows with different sensitive values that may be a record's.")


def _least_and_most(value: object) -> object:
    """YAML has lists; a range of two whole numbers."""
    numbers = tuple(value) if isinstance(value, list | tuple) else ()
    if len(numbers) != 2 or any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        raise ValueError("should be two whole numbers, such as [300, 350]")
    if not 2 <= numbers[0] <= numbers[1]:
        raise ValueError("should be [least, most], each 2 or more")
    return numbers


class SetValuedSpec(Spec):
    """How records are ordered, and how the graph between records and rows is made."""

    order: Literal["window", "gray_tsp", "gray"] = Field(
        default="window", description="window: the least errors; gray_tsp: as published; gray: sorted only, fastest.")
    segment: Annotated[tuple[int, int], BeforeValidator(_least_and_most)] = Field(
        default=(300, 350), description="Least and greatest number of records of a segment that is ordered at a time.")
    graph: Literal["ring", "groups"] = Field(
        default="groups",
        description="groups: disjoint, fewer errors; ring: the paper's, overlapping neighbourhoods, of which more can be told.")
    effort: Literal["none", "normal", "deep"] = Field(
        default="normal",
        description="Of graph groups: how long records are moved between groups so that errors fall; none: not at all.")
    truth: Literal["spaced", "shift", "paper"] | None = Field(
        default=None, description="With l: how equal labels are kept apart; shift keeps l by its definition only.")
    block: int = Field(default=5000, ge=1, description="Least number of records of a block; blocks are separate rings.")

    @field_validator("truth")
    @classmethod
    def _not_for_release(cls, truth: str | None) -> str | None:
        if truth == "paper":
            raise ValueError("paper is for reproduction only: it does not keep l; write spaced")
        return truth


class SetValuedJob(JobSpec):
    """A job of the family `set_valued`."""

    family: Literal["set_valued"] = Field(description="The algorithm family.")
    columns: SetValuedColumnsSpec = Field(
        description="What the columns are for; a column that is not named is not published.")
    privacy: SetValuedPrivacySpec = Field(description="What the release guarantees; the audit checks exactly this.")
    set_valued: SetValuedSpec = Field(
        default=SetValuedSpec(), description="How records are ordered, and which rows may be a record's.")

    unlimited: ClassVar[Mapping[str, str]] = {
        "unique": "a set_valued release has no column beside the items and the sensitive one",
        "homogeneous": "a set_valued release has no classes; demand privacy.l",
    }

    @property
    def degree(self) -> int:
        """k or l, whichever was given."""
        degree = self.privacy.k if self.privacy.k is not None else self.privacy.l
        assert degree is not None, "one of k and l is given"
        return degree

    @property
    def truth(self) -> Literal["spaced", "shift", "paper"]:
        """How equal labels are kept apart."""
        return self.set_valued.truth or TRUTH

    @classmethod
    def roles(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """(role, column) of every column an unchecked job names."""
        items = text(raw, "columns", "items")
        yield from [("items", items)] if items else []
        yield from super().roles(raw)

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """Conflicts between keys: k or l, one sensitive column, no kept columns."""
        yield from super().conflicts(raw, base)
        labels, values = texts(raw, "columns", "sensitive"), whole(raw, "privacy", "l")
        parameters = [name for name in ("k", "l") if section(raw, "privacy").get(name) is not None]
        if len(parameters) != 1 and isinstance(raw.get("privacy"), Mapping):
            yield "privacy", "give k, or l with a sensitive column: one of them"
        if values is not None and not labels:
            yield "privacy.l", "needs columns.sensitive: the column whose values must differ"
        if len(labels) > 1:
            yield "columns.sensitive", f"names {len(labels)} columns; one at most can be moved apart from the items"
        taken = [name for name in labels if name.lower() in PUBLISHED]
        if taken:
            yield "columns.sensitive", f"column {taken[0]} has the name of a column of the release; rename it"
        if section(raw, "columns").get("keep"):
            yield "columns.keep", "a kept column would tell which row is whose; the sensitive column is the only other one"
        if raw.get("on_unseen") == "suppress":
            yield "on_unseen", "suppress has no meaning here: items have no hierarchy; remove it"
        options = section(raw, "set_valued")
        usual = SetValuedSpec()  # a value that equals its default is no statement of the user
        if options.get("effort") not in (None, usual.effort) and options.get("graph", usual.graph) != "groups":
            yield "set_valued.effort", "goes with graph: groups only; remove it"
        if "k" in parameters and options.get("truth") is not None:
            yield "set_valued.truth", "goes with privacy.l only; remove it"


JOB = SetValuedJob
