"""The set_valued family's part of a report: what was lost, what counts are worth, what an attacker gains, order and graph.

From numbers alone: no item and no sensitive value, which are values of records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anon_spark.model.estimate import RULE, Estimate
from anon_spark.report.formats import is_flag, is_number, seconds, show, wording
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.plots import bucket_name, rates_plot, sizes_plot

MEASURES = {
    "er": "error rate (ER): wrong items of a row per item of its record, expected over the draw",
    "uncertain": "uncertain items of a row, mean",
    "max_errors": "greatest number of wrong items of a row, mean",
    "empty": "records without items, left out of the error rate",
}
ORDERS = {
    "gray": "sorted by Gray code",
    "gray_tsp": "Gray code, then short tours (as published)",
    "window": "Gray code, improved for whole neighbourhoods",
    "window_nearest": "nearest neighbourhoods, improved",
    "spaced": "nearest neighbourhoods with sensitive values apart",
}
SHOWN_RATES = {  # of a simulated attack: what it is called in words
    "rate_by_fit": "nearest row that fits",
    "rate_by_simulation": "most frequent in own draws",
    "promised_at_most": "promised at most",
}


def set_valued_sections(facts: Mapping[str, Any]) -> list[Section]:
    """Sections for the facts at hand; a part without facts is left out.

    Facts: required_k, k or l, definition_only, measures, uncertain_items, queries, example, risk, orders, order, graph,
    truth, records, universe, statistics.
    Guarantee: neither an item nor a sensitive value: ValueError if measures, counts or risk hold anything but numbers.
    """
    for part in ("measures", "queries", "example", "risk"):
        _refuse_text(part, facts.get(part) or {})
    sections = []
    if facts.get("definition_only"):
        sections.append(Section("Definition only", _weak_items(facts)))
    if facts.get("measures"):
        sections.append(Section("What was lost", _loss_items(facts["measures"], facts.get("uncertain_items") or ())))
    if facts.get("queries"):
        sections.append(Section("What counts are worth", _query_items(facts["queries"], facts.get("example"))))
    if facts.get("risk"):
        sections.append(Section("What an attacker gains", _risk_items(facts["risk"])))
    if facts.get("orders"):
        sections.append(Section("Order and graph", _order_items(facts)))
    return sections


def _refuse_text(part: str, facts: Mapping[str, Any]) -> None:
    """Text could be an item or a sensitive value: counts and measures only."""
    for name, value in _flat(facts):
        if value is not None and not is_number(value) and not is_flag(value):
            raise ValueError(f"{part}: {name}: a number is needed, not {type(value).__name__}. Report how many, never which.")


def _weak_items(facts: Mapping[str, Any]) -> list[Item]:
    name = "k" if facts.get("l") is None else "l"
    why = (
        "equal sensitive values stand just l places apart, so a ring has only l possible assignments"
        if facts.get("truth") == "shift"
        else f"with {name} = {facts['required_k']} a ring has only two possible assignments"
    )
    words = (
        f"The guarantee holds by its definition only: {why}. Whoever knows which row is one person's knows it of everybody "
        f"in that ring. For a release that strangers get, take {name} of 3 or more and truth: spaced."
    )
    return [Text("", [words])]


def _loss_items(measures: Mapping[str, Any], uncertain: Sequence[Mapping[str, Any]]) -> list[Item]:
    rows = [(MEASURES[name], measures[name]) for name in MEASURES if name in measures]
    items: list[Item] = [Table("", ("measure", "value"), rows, "No item is generalized: a row is a record with errors.")]
    if uncertain:
        told = "; ".join(f"{bucket_name(one)}: {show(one['rows'])} rows" for one in uncertain)
        drawn = sizes_plot(uncertain, "rows", "uncertain items of a row")
        items.append(Picture("Rows by their uncertain items", drawn, f"Bars by number of uncertain items. {told}."))
    return items


def _query_items(queries: Mapping[str, Any], example: Mapping[str, Any] | None) -> list[Item]:
    words = (
        f"{show(queries['number'])} random queries of each type were answered on the published items (base) and on the "
        "originals. The error of a query is the difference of the two counts as a share of all rows."
    )
    bars = {
        f"rows with all {show(queries['size_present'])} items (type I)": float(queries["present"]),
        f"rows with none of {show(queries['size_absent'])} items (type II)": float(queries["absent"]),
    }
    told = "; ".join(f"{name}: {show(error)}" for name, error in bars.items())
    items: list[Item] = [
        Text("", [words]),
        Picture("Mean error of a count (QE)", rates_plot(bars), f"Mean error by type of query. {told}."),
    ]
    if example:
        names = {"lower": "certainly", "estimate": "estimated", "upper": "possibly", "base": "by the base items alone"}
        rows = [(names[name], example[name]) for name in names if name in example]
        note = "The true count is never outside the bounds; families.set_valued.queries counts like this on any release."
        items.append(Table("Example: how many rows have some frequent item", ("rows that have it", "count"), rows, note))
    return items


def _risk_items(risk: Mapping[str, Any]) -> list[Item]:
    items: list[Item] = []
    link, rebuilt = risk.get("link_attack"), risk.get("reconstruction")
    if link:
        words = (
            "Somebody who knows all item sets and the method, but no sensitive value and no draw, guesses which row is whose. "
            "The attack was run against fresh draws on the same graph, never against the published one."
        )
        bars = {words: float(link[name]) for name, words in SHOWN_RATES.items() if link.get(name) is not None}
        told = "; ".join(f"{name}: {show(rate)}" for name, rate in bars.items())
        items.append(Text("", [words, *_judged(link)]))
        if bars:
            drawn = rates_plot(bars, link.get("promised_at_most"))
            items.append(Picture("Share of records found", drawn, f"Share of records whose row was found. {told}."))
        items.append(Table("Link attack", ("measure", "value"), list(_flat(link))))
    if risk.get("known_link"):
        items += _known_link_items(risk["known_link"])
    if rebuilt:
        words = (
            "Items are not protected. Somebody who knows no item set at all chains rows that overlap and solves for the "
            "records; the share below was rebuilt so, without any draw. Do not use this family where an item is sensitive."
        )
        items += [Text("", [words]), Table("Reconstruction of item sets", ("measure", "value"), list(_flat(rebuilt)))]
    others = {name: value for name, value in risk.items() if name not in ("link_attack", "known_link", "reconstruction")}
    if others:
        items.append(Table("", ("measure", "value"), list(_flat(others))))
    return items


def _judged(link: Mapping[str, Any]) -> list[str]:
    """Each simulated rate beside the promise, and the rule by which it is judged."""
    promise, told = link.get("promised_at_most"), []
    for name in ("fit", "simulation"):
        rate = link.get(f"rate_by_{name}")
        if rate is not None and promise is not None and f"standard_error_by_{name}" in link:
            estimate = Estimate(float(rate), link[f"standard_error_by_{name}"], float(promise))
            told.append(f"{wording(SHOWN_RATES[f'rate_by_{name}'])}: {estimate}; promised at most {promise:.4f}.")
    limit = link.get("refused_from_a_rate_of")
    refused = f" With so many draws that is a rate of {limit:.4f}." if limit is not None else ""
    return [*told, RULE + refused] if told else []


def _known_link_items(known: Mapping[str, Mapping[str, Any]]) -> list[Item]:
    names = {
        "none": "no link",
        "neighbour": "the link of a record that shares a row with it",
        "other": "the link of another record of its block",
    }
    words = (
        "One known link: somebody also knows which row is one person's. Nothing is promised then. Measured on fresh draws of "
        "the same graph: how often the row of another record is found, by the place that is most frequent beside the known one."
    )
    rows = [
        (names[kind], one["rate"], f"{one['interval_from']:.4f} to {one['interval_to']:.4f}", one["standard_error"])
        for kind, one in known.items()
    ]
    head = ("known beside all item sets and the graph", "rows found", "95 % interval", "standard error")
    none, near = known.get("none"), known.get("neighbour")
    told = f" A known link lifts the rate of a neighbour from {none['rate']:.4f} to {near['rate']:.4f}." if none and near else ""
    return [Text("", [words + told]), Table("What one known link tells", head, rows)]


def _order_items(facts: Mapping[str, Any]) -> list[Item]:
    measures, statistics = facts.get("measures") or {}, facts.get("statistics") or {}
    graph = {"ring": "ring: neighbourhoods overlap", "groups": "groups: disjoint neighbourhoods"}
    rows = [
        ("Records", facts.get("records")),
        ("Different items", facts.get("universe")),
        ("Graph", graph.get(str(facts.get("graph")), facts.get("graph"))),
        ("Equal sensitive values kept apart by", facts.get("truth")),
        ("Blocks", measures.get("blocks")),
        ("Pairs of a record and a row it may be", measures.get("edges")),
        ("Steps of the random walks", measures.get("steps")),
        ("Time of sorting", _time(statistics.get("seconds_sort"))),
        ("Time of cutting into blocks", _time(statistics.get("seconds_blocks"))),
        ("Time of orders, graphs and draws", _time(statistics.get("seconds"))),
    ]
    orders = [(ORDERS.get(kind, kind), blocks) for kind, blocks in facts["orders"].items()]
    note = f"Asked for: {facts['order']}. Of the orders tried in a block, the one with the fewest errors is taken."
    return [
        Table("", ("what", "value"), [row for row in rows if row[1] is not None]),
        Table("Order of the records", ("order", "blocks"), orders, note if facts.get("order") else ""),
    ]


def _time(value: float | None) -> str | None:
    return None if value is None else seconds(value)


def _flat(nested: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in nested.items():
        told = wording(str(name)) if not above else f"{above}{str(name).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{told}, ")
        else:
            yield told, value
