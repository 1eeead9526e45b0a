"""Report items of models of sensitive columns: what each costs, and how the published classes keep it."""

from __future__ import annotations

from collections.abc import Sequence

from anon_spark.model.facts import ModelSpread
from anon_spark.report.formats import show
from anon_spark.report.items import Bars, Item, Table, Text

Cost = tuple[str, str, float | None, float | None]  # column, model, least loss with it alone, and without any


def model_items(spreads: Sequence[ModelSpread], costs: Sequence[Cost]) -> list[Item]:
    """Text, a table of costs, and of each model the classes by its measure. Only published classes are counted."""
    words = [
        "A class holds the published rows that look alike in every quasi-identifier. Each model limits how the values of a "
        "sensitive column may be spread there. Every class keeps every model: the audit counted them again."
    ]
    items: list[Item] = [Text("", words)]
    if costs:
        rows = [(column, model, _shown(loss), _shown(without)) for column, model, loss, without in costs]
        note = "The least loss with the chosen k: under this model alone, and under none. All models together may cost more."
        items.append(Table("What each model costs alone", ("column", "model", "loss with it", "loss without"), rows, note))
    rows_of_limits = [(spread.column, spread.model, spread.limit, _shown(spread.worst)) for spread in spreads]
    items.append(Table("Limits and the classes nearest to them", ("column", "model", "limit", "worst class"), rows_of_limits))
    for spread in spreads:
        counts = {_range(least, most): classes for least, most, classes, _ in spread.ranges}
        title = f"{spread.column}: classes by their measure of {spread.model}"
        items.append(Bars(title, list(counts), {"classes": list(counts.values())}, "classes, by measure of the class"))
    return items


def _shown(value: float | None) -> str:
    return "–" if value is None else show(value)


def _range(least: float, most: float | None) -> str:
    return f"from {show(least)}" if most is None else f"{show(least)} to {show(most)}"
