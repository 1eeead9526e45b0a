"""Models as plain values that can be saved, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy, Rule

_KINDS = {kind.key: kind for kind in (DistinctL, EntropyL, RecursiveCL, TCloseness, BetaLikeness, DeltaDisclosure)}


def model_content(model: Model) -> dict[str, Any]:
    """The model as JSON values; numbers as texts of fractions, so that none is rounded."""
    content = {field.name: getattr(model, field.name) for field in fields(model)}
    hierarchy = content.pop("hierarchy", None)
    plain: dict[str, Any] = {name: str(value) if isinstance(value, Fraction) else value for name, value in content.items()}
    if hierarchy is not None:
        plain["hierarchy"] = {"rule": isinstance(hierarchy, Rule), "content": hierarchy.to_dict()}
    return {"model": model.key, **plain}


def model_of(content: Mapping[str, Any]) -> Model:
    """The model that was saved."""
    plain = {name: value for name, value in content.items() if name not in ("model", "hierarchy")}
    plain.update({name: Fraction(value) for name, value in plain.items() if isinstance(value, str) and name != "distance"})
    saved = content.get("hierarchy")
    if saved is not None:
        plain["hierarchy"] = (Rule if saved["rule"] else Hierarchy).from_dict(saved["content"])
    return _KINDS[content["model"]](**plain)
