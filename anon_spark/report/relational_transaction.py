"""The relational_transaction family's part of a report: what was lost, what counts are worth, class sizes, an attacker's gain.

From numbers alone: no item, no value and no label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anon_spark.model.estimate import EXACT_RULE, Estimate
from anon_spark.report.formats import seconds, show
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.plots import panels_plot, rates_plot
from anon_spark.report.relational import class_items, refuse_labels, refuse_small_classes

MEASURES = {
    "ncp": "relational loss (NCP), 0 to 1",
    "ul": "loss of items (UL), 0 to 1",
    "log2_ul_dom": "loss of items against the whole domain, as a power of 2",
    "largest_item": "items that the largest generalized item stands for",
    "kept_items": "share of published items that stand for themselves",
    "clusters": "clusters",
    "smallest": "records of the smallest cluster",
    "largest": "records of the largest cluster",
}
KINDS = {(2, 0): "two values", (0, 2): "two items", (1, 1): "a value and an item"}
METHODS = {
    "rfirst": "rfirst: clusters by relational values, nothing merged",
    "tfirst": "tfirst: blocks by items, whatever the relational values",
    "rum": "the relational loss NCP",
    "tum": "the loss of items UL",
    "r": "by relational values",
    "t": "by items",
    "rt": "by both",
    "sets": "free sets",
    "aa": "cuts of the item hierarchy",
    "lra": "cuts of the item hierarchy, by blocks of similar records",
    "vpa": "cuts of the item hierarchy, branch by branch first",
}


def relational_transaction_sections(facts: Mapping[str, Any]) -> list[Section]:
    """Sections for the facts at hand; a part without facts is left out.

    Facts: required_k, m, l, measures, relative_error, class_sizes, highest_share, risk, method, bound, delta, merge, items,
    records, universe, sensitive_items, statistics.
    Guarantee: no label, no class below required_k; ValueError if the facts hold one.
    """
    required_k = int(facts["required_k"])
    refuse_small_classes(required_k, facts)
    refuse_labels(facts)
    sections = []
    if facts.get("measures"):
        sections.append(Section("What was lost", _loss_items(facts)))
    if facts.get("relative_error"):
        sections.append(Section("What counts are worth", _count_items(facts["relative_error"])))
    if facts.get("class_sizes"):
        sections.append(Section("Sizes of the published classes", class_items(facts["class_sizes"], required_k)))
    if (facts.get("risk") or {}).get("knowledge_attack"):
        sections.append(Section("What an attacker gains", _risk_items(facts)))
    sections.append(Section("Clusters and merging", _merging_items(facts)))
    return sections


def _loss_items(facts: Mapping[str, Any]) -> list[Item]:
    measures = facts["measures"]
    rows = [(MEASURES[name], measures[name]) for name in MEASURES if measures.get(name) is not None]
    bars = {"relational values (NCP)": float(measures["ncp"]), "items (UL)": float(measures["ul"])}
    bounded = {"rum": "relational values (NCP)", "tum": "items (UL)"}.get(str(facts.get("bound")))
    told = "; ".join(f"{name}: {show(value)}" for name, value in bars.items())
    note = f" The dashed line is delta, the bound on {bounded}." if bounded else ""
    return [
        Picture("Loss of both parts", rates_plot(bars, facts.get("delta")), f"0 loses nothing, 1 everything. {told}.{note}"),
        Table("", ("measure", "value"), rows, "UL of a row with one generalized item is 1, however small that item is."),
    ]


def _count_items(errors: Sequence[Mapping[str, Any]]) -> list[Item]:
    names = [KINDS.get((one["values"], one["items"]), f"{one['values']} values, {one['items']} items") for one in errors]
    words = (
        f"{show(errors[0]['queries'])} counts of each kind were made up from random records and estimated from the release. "
        "The error is |true − estimated| / true, averaged: 1 is as wrong as saying nothing. A generalized item can be read "
        "in two ways: any non-empty set of its items is as likely, or each item by itself."
    )
    panels = {
        "any set as likely": [float(one["sets"]) for one in errors],
        "each item by itself": [float(one["uniform"]) for one in errors],
    }
    told = "; ".join(
        f"{name}: {show(one['sets'])} and {show(one['uniform'])}" for name, one in zip(names, errors, strict=True)
    )
    return [Text("", [words]), Picture("Mean relative error of a count (ARE)", panels_plot(names, panels), f"{told}.")]


def _risk_items(facts: Mapping[str, Any]) -> list[Item]:
    attacks = list(facts["risk"]["knowledge_attack"].values())
    words = (
        f"Somebody knows all relational values of a person and some of its items, and looks for rows that fit. Up to m = "
        f"{facts['m']} items at least {facts['required_k']} rows fit. Beyond that nothing is promised: the other bars show what "
        "more knowledge finds."
    )
    bars = {_known(one): float(one["worst"]) for one in attacks}
    told = "; ".join(f"{name}: {show(rate)}" for name, rate in bars.items())
    promise = next((one["promise"] for one in attacks), None)
    rows = [
        (
            _known(one),
            "yes" if one["promised"] else "no",
            *(one["success"], _interval(one), one["worst"], one["least"], one["below"], one["share"]),
        )
        for one in attacks
    ]
    head = (
        *("known", "promised", "mean chance", "95 % interval", "worst chance"),
        *("fewest rows", "records below k", "sensitive item learnt"),
    )
    note = f"A sample of {show(attacks[0]['records'])} records."
    if facts.get("l") is not None:
        note += f" A sensitive item is learnt with at most {show(1 / facts['l'])} where it is promised."
    elif facts.get("sensitive_items"):
        note += " Sensitive items are published without protection: nothing limits what is learnt of them."
    return [
        Text("", [words, f"Promised at most: {show(promise)} at worst. {EXACT_RULE}"]),
        Picture("Chance to pick the right row, at worst", rates_plot(bars, promise), f"{told}."),
        Table("Knowledge attack", head, rows, note),
    ]


def _interval(attack: Mapping[str, Any]) -> str | None:
    error = attack.get("error")
    if error is None:
        return None
    low, high = Estimate(attack["success"], error, attack["promise"]).interval
    return f"{low:.4f} to {high:.4f} (standard error {error:.4f})"


def _known(attack: Mapping[str, Any]) -> str:
    return "values and all items" if attack["items"] is None else f"values and {show(attack['items'])} items"


def _merging_items(facts: Mapping[str, Any]) -> list[Item]:
    statistics = facts.get("statistics") or {}
    rows = [
        ("Records", facts.get("records")),
        ("Different items", facts.get("universe")),
        ("Sensitive items", facts.get("sensitive_items")),
        ("Method", METHODS.get(str(facts.get("method")))),
        ("Bounded", METHODS.get(str(facts.get("bound")))),
        ("Bound (delta)", facts.get("delta")),
        ("Partners of a cluster are chosen", METHODS.get(str(facts.get("merge")))),
        ("Items become", METHODS.get(str(facts.get("items")))),
        ("Clusters before merging", statistics.get("initial_clusters")),
        ("Relational loss before merging (NCP)", statistics.get("initial_ncp")),
        ("Loss of items before merging (UL)", statistics.get("initial_ul")),
        ("Groups that were merged apart", statistics.get("groups")),
        ("Time of reading", _time(statistics.get("seconds_reading"))),
        ("Time of clusters, merging and items", _time(statistics.get("seconds"))),
    ]
    return [Table("", ("what", "value"), [row for row in rows if row[1] is not None])]


def _time(value: float | None) -> str | None:
    return None if value is None else seconds(value)
