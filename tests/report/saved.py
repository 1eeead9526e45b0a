"""Reports of the demonstration, from the JSON that a run wrote: pages with real numbers, without Spark."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from anon_spark.assessment import Assessment
from anon_spark.assessment.facts import RiskFacts
from anon_spark.families.lattice.facts import LatticeFacts
from anon_spark.families.lattice.sections import lattice_sections
from anon_spark.families.mst.facts import MstFacts
from anon_spark.families.mst.sections import mst_sections
from anon_spark.families.relational_transaction.facts import RelationalTransactionFacts
from anon_spark.families.relational_transaction.sections import relational_transaction_sections
from anon_spark.families.set_valued.facts import SetValuedFacts
from anon_spark.families.set_valued.sections import set_valued_sections
from anon_spark.families.tree.facts import TreeFacts
from anon_spark.families.tree.sections import tree_sections
from anon_spark.model.findings import Finding
from anon_spark.report import Check, RunReport
from anon_spark.risk import KnowledgeRisk

SAVED = Path(__file__).parent / "saved"
FAMILIES: dict[str, tuple[type, Any]] = {
    "lattice": (LatticeFacts, lattice_sections),
    "mst": (MstFacts, mst_sections),
    "relational_transaction": (RelationalTransactionFacts, relational_transaction_sections),
    "set_valued": (SetValuedFacts, set_valued_sections),
    "tree": (TreeFacts, tree_sections),
}


def report_of(family: str) -> RunReport:
    """The report of a run, its pictures drawn anew."""
    told = json.loads((SAVED / f"{family}.json").read_text())
    kind, sections = FAMILIES[family]
    facts = value_of(kind, told["facts"])
    same = {name: told[name] for name in RunReport.__dataclass_fields__ if name in told}
    return RunReport(**{
        **same,
        "started": datetime.fromisoformat(told["started"]),
        "finished": datetime.fromisoformat(told["finished"]),
        "checks": [Check(**check) for check in told["checks"]],
        "findings": [Finding(**finding) for finding in told["findings"]],
        "facts": facts,
        "sections": sections(facts),
    })  # fmt: skip


def assessment() -> Assessment:
    """The risk of a table."""
    told = json.loads((SAVED / "risk.json").read_text())
    made, seconds = datetime.fromisoformat(told["made"]), told["seconds"]
    return Assessment(name=told["table"], facts=value_of(RiskFacts, told["facts"]), made=made, seconds=seconds)


def value_of(kind: Any, told: Any) -> Any:
    """The value of a type that JSON tells: dataclasses, tuples, mappings, unions of one type and None."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if told is None else value_of(next(part for part in parts if part is not NoneType), told)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        names = {field.name: field.metadata.get("json", field.name) for field in dataclasses.fields(kind)}
        return kind(**{name: value_of(hints[name], told[shown]) for name, shown in names.items() if shown in told})
    if origin is tuple:
        kinds = [parts[0]] * len(told) if parts[-1] is Ellipsis else parts
        return tuple(value_of(part, one) for part, one in zip(kinds, told, strict=True))
    if isinstance(told, Mapping) and parts:
        return {value_of(parts[0], name): value_of(parts[1], one) for name, one in told.items()}
    return kind(told) if kind in (int, float) and told is not None else told


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, localns={"KnowledgeRisk": KnowledgeRisk})
