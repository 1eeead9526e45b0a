"""Jobs of the family `mst`: local recoding by minimum-spanning-tree partitioning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from anon_spark.config.job import PrivacySpec, QuasiIdentifierJob
from anon_spark.config.spec import Problem, Spec, section, texts, whole


class MstPrivacySpec(PrivacySpec):
    """k-anonymity with a budget of suppressed rows, and distinct l-diversity where it is asked for."""

    k: int = Field(ge=2, description="Least number of records in a class.")
    l: int | None = Field(  # noqa: E741 - the literature's name
        default=None, ge=2, description="Least number of distinct values of every sensitive column in a class.")


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


class MstJob(QuasiIdentifierJob):
    """A job of the family `mst`."""

    family: Literal["mst"] = Field(description="The algorithm family.")
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
