"""Jobs of the family `lattice`: full-domain generalization, chosen from a Pareto front of k against loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from anon_spark.config.models import (
    PopulationPrivacySpec,
    PopulationSpec,
    SensitiveJob,
    population_conflicts,
)
from anon_spark.config.spec import ColumnName, Problem, Spec, section, text, texts, whole

CHOICES = ("k", "max_loss", "node", "knee")


class ChooseSpec(Spec):
    """Which point of the front becomes the release: exactly one of the four."""

    k: int | None = Field(default=None, ge=1, description="The point of least loss with at least this k.")
    max_loss: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description="The point of greatest k with at most this loss, from 0 to 1.")
    node: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False)] | None = Field(
        default=None, description="This node: one level per quasi-identifier, in their order.")
    knee: Literal[True] | None = Field(default=None, description="The knee of the front; also written choose: knee.")

    @model_validator(mode="before")
    @classmethod
    def _word(cls, data: Any) -> Any:
        if isinstance(data, Mapping | ChooseSpec):
            return data
        if data == "knee":
            return {"knee": True}
        raise ValueError("should be {k: …}, {max_loss: …}, {node: […]} or knee")

    @model_validator(mode="after")
    def _exactly_one(self) -> ChooseSpec:
        chosen = [name for name in CHOICES if getattr(self, name) is not None]
        if len(chosen) != 1:
            raise ValueError("needs exactly one of: k, max_loss, node, knee")
        return self

    @property
    def kind(self) -> Literal["k", "max_loss", "node", "knee"]:
        """Which of the four it is."""
        if self.k is not None:
            return "k"
        if self.max_loss is not None:
            return "max_loss"
        return "node" if self.node is not None else "knee"


def _depth(value: object) -> object:
    if value in ("best", "worst") or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError("should be a whole number of at least 1, best or worst")


class LatticeSpec(Spec):
    """How the lattice is searched and what is taken from its front."""

    search: Literal["exact", "poka", "exhaustive"] = Field(
        default="exact", description="exact: the true front from bounds; poka: the paper's; exhaustive: every node.")
    depth: Annotated[int | Literal["best", "worst"], BeforeValidator(_depth)] | None = Field(
        default=None, description="poka only: depth of its search, a number, best or worst; default: mean height.")
    refine: bool = Field(default=True, description="poka only: with the repair for equal k; false: as printed.")
    loss: Literal["glm", "dm", "cm"] = Field(
        default="glm", description="Generalized loss, discernibility, or classification (needs class_column).")
    class_column: ColumnName | None = Field(default=None, description="cm only: the label, from sensitive or keep.")
    max_nodes: int = Field(
        default=100_000, ge=1,
        description="exact, beyond 5 million nodes: end the search for privacy.k after so many evaluated nodes.")
    max_seconds: float = Field(
        default=600, gt=0, allow_inf_nan=False,
        description="exact, beyond 5 million nodes: end the search after so many seconds. The report states the gap.")
    choose: ChooseSpec | None = Field(
        default=None, description="Which point of the front to publish; default: {k: privacy.k}.")
    levels: Literal["keep", "refit"] | None = Field(
        default=None,
        description="output.mode: append only. keep (its default): the levels of the first increment, people of small classes "
        "wait; refit: every increment is searched anew.")


class LatticeJob(SensitiveJob):
    """A job of the family `lattice`.

    Guarantee: the chosen point has at least privacy.k, because a smaller choice is refused here already.
    """

    family: Literal["lattice"] = Field(description="The algorithm family.")
    privacy: PopulationPrivacySpec = Field(description="What the release guarantees; the audit checks exactly this.")
    population: PopulationSpec | None = Field(
        default=None, description="A table of everybody who could be in the input, for privacy.map_k and privacy.presence.")
    lattice: LatticeSpec = Field(default=LatticeSpec(), description="How to search the lattice and what to choose.")

    @property
    def choice(self) -> ChooseSpec:
        """The choice, with its default filled in."""
        return self.lattice.choose or ChooseSpec(k=self.privacy.k)

    def content(self) -> dict[str, Any]:
        """As in `JobSpec`, with the default choice written out."""
        content = super().content()
        content["lattice"]["choose"] = self.choice.model_dump(mode="json", by_alias=True, exclude_none=True)
        return content

    @property
    def keeps_levels(self) -> bool:
        """Whether later increments of a series take the levels of the first."""
        return self.output.appends and self.lattice.levels != "refit"

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """Conflicts between keys, those of the lattice included."""
        yield from super().conflicts(raw, base)
        yield from population_conflicts(raw)
        options = section(raw, "lattice")
        yield from _class_column(raw, options)
        if options.get("levels") is not None and section(raw, "output").get("mode") != "append":
            yield "lattice.levels", "goes with output.mode: append only; remove it"
        if options.get("search") in (None, "exact", "exhaustive"):
            # a dumped default is not an error: only other values are
            if options.get("depth") is not None:
                yield "lattice.depth", "goes with search: poka only; remove it"
            if options.get("refine") is False:
                yield "lattice.refine", "goes with search: poka only; remove it"
        chosen, least = whole(options, "choose", "k"), whole(raw, "privacy", "k")
        if chosen is not None and least is not None and chosen < least:
            yield "lattice.choose.k", f"is {chosen}, below privacy.k, which is {least}; choose at least that"
        node, columns = section(options, "choose").get("node"), section(raw, "columns", "quasi_identifiers")
        if isinstance(node, list | tuple) and columns and len(node) != len(columns):
            yield "lattice.choose.node", f"has {len(node)} levels for {len(columns)} quasi-identifiers; give one each"


def _class_column(raw: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of class_column: CM needs it, and it must be a column that the release shows anyway."""
    name = text(options, "class_column")
    if options.get("loss") == "cm" and options.get("class_column") is None:
        yield "lattice.class_column", "is required with loss: cm"
    elif options.get("loss") in (None, "glm", "dm") and name:
        yield "lattice.class_column", "goes with loss: cm only; remove it"
    elif name and name in section(raw, "columns", "quasi_identifiers"):
        yield "lattice.class_column", f"column {name} is a quasi-identifier; choose one of sensitive or keep"
    elif name and name not in texts(raw, "columns", "sensitive") + texts(raw, "columns", "keep"):
        yield "lattice.class_column", f"column {name} should be one of columns.sensitive or columns.keep"


JOB = LatticeJob
