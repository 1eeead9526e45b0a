"""Jobs of the family `mst`: local recoding by minimum-spanning-tree partitioning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from anon_spark.config.hierarchies import QuasiIdentifierSpec
from anon_spark.config.job import ColumnsSpec, PrivacySpec
from anon_spark.config.models import SensitiveJob, SensitivePrivacySpec
from anon_spark.config.spec import ColumnName, Problem, Spec, section, texts, whole


class DiversitySpec(PrivacySpec):
    """k-anonymity with a budget of suppressed rows, and distinct l-diversity where it is asked for."""

    k: int = Field(ge=2, description="Least number of records in a class.")
    l: int | None = Field(  # noqa: E741 - the literature's name
        default=None, ge=2, description="Least number of distinct values of every sensitive column in a class.")


class MstPrivacySpec(DiversitySpec, SensitivePrivacySpec):
    """k-anonymity and distinct l-diversity, and models of sensitive columns."""


Publish = Literal["label", "extent", "rounded_extent"]
"""What the anonymizer publishes of a class; a run replaces labels by their bounds afterwards."""


class MstColumnSpec(QuasiIdentifierSpec):
    """A quasi-identifier with its hierarchy, and what of a class is published."""

    publish: Literal["label", "range", "bounds", "extent", "rounded_extent"] = Field(  # type: ignore[assignment]
        default="label",
        description="label: one of the hierarchy; range: its bounds as struct<lo,hi>; bounds: as two columns, <name>_lo and "
        "<name>_hi; extent: least and greatest number of the class, both exact values of rows; rounded_extent: both rounded "
        "outwards to the first labels.")

    @model_validator(mode="after")
    def _extent_of_numbers(self) -> MstColumnSpec:
        if self.publish not in ("extent", "rounded_extent"):
            return self
        if self.kind in ("mask", "date", "top"):
            raise ValueError(f"publish: an extent goes with intervals or a file of numbers, not with {self.kind}")
        if self.intervals is not None and not self.intervals.exact:
            raise ValueError("publish: an extent needs the numbers themselves; leave exact: false out")
        if self.publish == "rounded_extent" and self.intervals is not None and not self.intervals.widths:
            raise ValueError("publish: rounded_extent needs at least one width")
        return self


class MstColumnsSpec(ColumnsSpec):
    """Roles of the columns; a number may be published as the extent of its class."""

    quasi_identifiers: Mapping[ColumnName, MstColumnSpec] = Field(
        min_length=1,
        description="Columns to generalize, each with its hierarchy ({} is {top: true}); their order decides ties only.")

    @property
    def publish(self) -> dict[str, Publish]:
        """The columns that are published as the extents of classes, and how."""
        return {
            name: spec.publish
            for name, spec in self.quasi_identifiers.items()
            if spec.publish == "extent" or spec.publish == "rounded_extent"
        }


class MstSpec(Spec):
    """How the tree is cut, how small classes are merged and how the classes are refined."""

    merge: Literal["auto", "greedy", "rounds"] = Field(
        default="rounds",
        description="rounds: all mutual nearest; greedy: always the closest pair, quadratic; auto: greedy for few.")
    refine: Literal["local", "none"] = Field(
        default="local",
        description="local: tuples and classes change places while the loss falls; none: as in the paper.")
    effort: Literal["normal", "deep"] = Field(
        default="normal", description="How long the refinement goes on; deep takes more than twice as long.")
    zero_edges: Literal["include", "exclude"] = Field(
        default="include", description="Whether equal records count in the threshold at which the tree is cut.")


class MstJob(SensitiveJob):
    """A job of the family `mst`."""

    family: Literal["mst"] = Field(description="The algorithm family.")
    columns: MstColumnsSpec = Field(description="What the columns are for; a column that is not named is not published.")
    privacy: MstPrivacySpec = Field(description="What the release guarantees; the audit checks exactly this.")
    mst: MstSpec = Field(default=MstSpec(), description="How the tree is cut, small classes are merged and all classes refined.")

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """Conflicts between keys: l needs a sensitive column and must not exceed k."""
        yield from super().conflicts(raw, base)
        least, values = whole(raw, "privacy", "k"), whole(raw, "privacy", "l")
        if values is not None and not texts(raw, "columns", "sensitive"):
            yield "privacy.l", "needs columns.sensitive: the columns that must stay diverse"
        if least is not None and values is not None and values > least:
            yield "privacy.l", f"is {values}, above privacy.k, which is {least}; a class of k rows cannot hold that many"
        options = section(raw, "mst")
        if options.get("refine") == "none" and options.get("effort") == "deep":
            yield "mst.effort", "goes with refine: local only; remove it"


JOB = MstJob
