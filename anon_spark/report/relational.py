"""What the reports of tables with quasi-identifiers share: class sizes, what an attacker gains, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anon_spark.model.estimate import EXACT_RULE
from anon_spark.report.formats import is_flag, is_number, show, wording
from anon_spark.report.items import Item, Picture, Table, Text
from anon_spark.report.plots import bucket_name, class_size_plot


def refuse_small_classes(required_k: int, facts: Mapping[str, Any]) -> None:
    """A class below k must not show, not even as a number."""
    small = sum(bucket["from"] < required_k for bucket in facts.get("class_sizes") or ())
    if small:
        raise ValueError(f"class_sizes: {small} ranges start below k = {required_k}. Count published classes only.")


def refuse_labels(facts: Mapping[str, Any]) -> None:
    """Text could be a value of the table: counts and measures only."""
    counted = [(f"attributes.{one['name']}.labels", one.get("labels")) for one in facts.get("attributes") or ()]
    measured = [(f"risk: {name}", value) for name, value in _flat(facts.get("risk") or {})]
    for where, value in counted + measured:
        if value is not None and not is_number(value) and not is_flag(value):
            raise ValueError(f"{where}: a number is needed, not {type(value).__name__}. Report how many, never which.")


def class_items(buckets: Sequence[Mapping[str, Any]], required_k: int) -> list[Item]:
    classes = sum(bucket["classes"] for bucket in buckets)
    told = "; ".join(f"{bucket_name(one)}: {show(one['classes'])} classes, {show(one['rows'])} rows" for one in buckets)
    rows = [(bucket_name(one), one["classes"], one["rows"]) for one in buckets]
    words = (
        f"A class is the set of published rows that look alike in every quasi-identifier. None of the {show(classes)} "
        f"classes is smaller than {required_k:,}."
    )
    return [
        Text("", [words]),
        Picture("Classes and rows by size", class_size_plot(buckets), f"Bars by size of the class. {told}."),
        Table("", ("size of the class", "classes", "rows in them"), rows),
    ]


def risk_items(risk: Mapping[str, Any]) -> list[Item]:
    single = [(wording(name), value) for name, value in risk.items() if not isinstance(value, Mapping)]
    tables = {"": single} if single else {}
    for name, value in risk.items():
        if isinstance(value, Mapping):
            tables[wording(name)] = list(_flat(value))
    words = "Numbers for somebody who knows every quasi-identifier of a person and looks that person up in the release."
    told = [words, EXACT_RULE] if "link_attack" in risk else [words]
    return [Text("", told), *(Table(title, ("measure", "value"), rows) for title, rows in tables.items())]


def _flat(nested: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in nested.items():
        told = f"{above}{wording(str(name)) if not above else str(name).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{told}, ")
        else:
            yield told, value
