"""The tree family's part of a report: what was lost, what holds, what attackers gain, how the cut was found.

From numbers and names of classes alone: no value, no label of a hierarchy, and not which relations were taken apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anon_spark.model.estimate import EXACT_RULE
from anon_spark.report.formats import seconds, show
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.plots import bucket_name, rates_plot, shares_plot, sizes_plot, trail_plot
from anon_spark.report.relational import refuse_labels

MEASURES = {"rpd": "chance to guess a path (RPD), 0 to 1", "rpd_a": "what cuts were compared by (RPD_a)"}
SEARCHES = {
    "beam": "beam: the cheapest cuts of every generation",
    "gcs": "gcs: the cheapest cut of a queue first",
    "ocs": "ocs: as gcs, no relation is ever taken apart",
    "acs": "acs: all cuts",
}
RULE_OF_THREE = "Where none of so many draws was found, the true share is below 3 / drawn with 95 %."
AWARE = (
    "Somebody who knows the schema can look for a value that stands without the class that was above it: such a value lost a "
    "relation. The guarantee does not cover that. Counted: knowledge with a relation that was taken apart, and how often fewer "
    "than k records show it that way."
)


def tree_sections(facts: Mapping[str, Any]) -> list[Section]:
    """Sections for the facts at hand; a part without facts is left out.

    Facts: required_k, m, n, l, measures, classes, disassociated, supports, highest_share, risk, search, records, nodes,
    merged_siblings, nested, negations. Guarantee: no label and no support below required_k; ValueError if the facts hold one.
    """
    required_k = int(facts["required_k"])
    small = sum(bucket["from"] < required_k for bucket in facts.get("supports") or ())
    if small:
        raise ValueError(f"supports: {small} ranges start below k = {required_k}. Count what the audit verified only.")
    refuse_labels(facts)
    sections = []
    if facts.get("measures"):
        sections.append(Section("What was lost", _loss_items(facts)))
    if facts.get("supports"):
        sections.append(Section("What many records share", _support_items(facts)))
    if (facts.get("risk") or {}).get("knowledge_attack"):
        sections.append(Section("What an attacker gains", _risk_items(facts)))
    sections.append(Section("How the cut was found", _search_items(facts)))
    return sections


def _loss_items(facts: Mapping[str, Any]) -> list[Item]:
    measures = facts["measures"]
    classes = [one for one in facts["classes"] if not one["sensitive"] and sum(one.get("labels") or ())]
    shares = [
        {"name": one["class"], "shares": [number / sum(one["labels"]) for number in one["labels"]]} for one in classes
    ]
    rows = [
        (one["class"], one["values"], sum(one["labels"]) or "in *", one["labels"][0], "yes" if one["sensitive"] else "no")
        for one in facts["classes"]
        if one.get("labels")
    ]
    pairs = [(one["upper"], one["lower"], one["pairs"]) for one in facts["disassociated"]]
    taken = sum(one["pairs"] for one in facts["disassociated"])
    words = (
        f"{show(taken)} relations between labels were taken apart in all records: the lower value stands beside the upper one "
        "there, without what hung below it. A true relation may be missing from a record; none was invented."
        if taken
        else "No relation was taken apart: the release also holds the records as nested values."
        if facts.get("nested")
        else "No relation was taken apart."
    )
    items: list[Item] = [
        Table("", ("measure", "value"), [(MEASURES[name], measures[name]) for name in MEASURES if measures.get(name) is not None])
    ]
    if shares:
        told = "; ".join(f"{one['class']}: {show(sum(one['labels']))} for {show(one['values'])} values" for one in classes)
        items.append(Picture("Labels of the cut by level", shares_plot(shares), f"From values as they were on. {told}."))
    items.append(Table("Classes", ("class", "values", "labels in the cut", "of them values as they were", "sensitive"), rows))
    items.append(Text("", [words]))
    if pairs:
        items.append(Table("Relations taken apart", ("upper class", "lower class", "pairs of labels"), pairs))
    return items


def _support_items(facts: Mapping[str, Any]) -> list[Item]:
    buckets = facts["supports"]
    words = (
        f"Every set of up to m = {facts['m']} labels that occurs in a record, with any n = {facts['n']} or fewer relations among "
        f"them, was counted in the release by the audit: each is in at least {facts['required_k']} records."
    )
    told = "; ".join(f"{bucket_name(one)} records: {show(one['sets'])}" for one in buckets)
    picture = sizes_plot(buckets, "sets", "records that share a set of labels and relations")
    items: list[Item] = [Text("", [words]), Picture("How many records share what may be known", picture, f"{told}.")]
    if facts.get("highest_share") is not None:
        share = f"The most frequent sensitive value has a share of {show(facts['highest_share'])} among records that fit."
        items.append(Text("", [f"{share} At most {show(1 / facts['l'])} is promised."]))
    return items


def _risk_items(facts: Mapping[str, Any]) -> list[Item]:
    risk = facts["risk"]
    attacks = list(risk["knowledge_attack"].values())
    words = (
        "Somebody draws knowledge from true records and looks for published records that fit. What is promised leaves none, or "
        f"{facts['required_k']} and more; the other rows show what more knowledge finds."
    )
    bars = {_known(one): float(one["below"]) / max(float(one["drawn"]), 1.0) for one in attacks}
    told = "; ".join(f"{name}: {show(rate)}" for name, rate in bars.items())
    rows = [
        (_known(one), "yes" if one["promised"] else "no", one["drawn"], one["nothing"], one["below"], one["least"], one["lost"])
        for one in attacks
    ]
    few = f"fit 1 to {facts['required_k'] - 1}"
    head = ("known", "promised", "drawn", "fit no record", few, "fewest that fit", "without the person")
    items: list[Item] = [
        Text("", [words, f"Promised within the promise: 0. {RULE_OF_THREE} {EXACT_RULE}"]),
        Picture("Share of what was drawn that fits fewer than k records, but some", rates_plot(bars), f"{told}."),
        Table("Knowledge attack", head, rows),
    ]
    aware = risk.get("structure_attack")
    if aware:
        items += [
            Text("", [AWARE]),
            Table("Structure-aware attacker", ("measure", "value"), [(name.replace("_", " "), aware[name]) for name in aware]),
        ]
    return items


def _known(attack: Mapping[str, Any]) -> str:
    kind = "groups" if attack.get("level") else "values"
    absent = f", {show(attack['negated'])} {kind} absent" if attack.get("negated") else ""
    return f"{show(attack['labels'])} values, {show(attack['relations'])} relations{absent}"


def _search_items(facts: Mapping[str, Any]) -> list[Item]:
    search = facts.get("search") or {}
    trail: Sequence[tuple[int, float]] = [(int(cut), float(loss)) for cut, loss in search.get("trail") or ()]
    rows = [
        ("Records", facts.get("records")),
        ("Values in them", facts.get("nodes")),
        ("Equal siblings that were put together", facts.get("merged_siblings")),
        ("Search", SEARCHES.get(str(search.get("search")))),
        ("Cuts there are", _many(search.get("cuts"))),
        ("Cuts judged", search.get("evaluated")),
        ("Cuts whose label sets hold", search.get("passed_value_check")),
        ("Rounds of counting", search.get("rounds")),
        ("Counted", {"driver": "where the search ran", "tasks": "in tasks"}.get(str(search.get("counted")))),
        ("Stopped early", {"max_cuts": "by max_cuts", "max_seconds": "by max_seconds"}.get(str(search.get("stopped_by")))),
        ("Time of reading", _time(search.get("seconds_reading"))),
        ("Time of the search", _time(search.get("seconds"))),
    ]
    items: list[Item] = []
    if trail:
        told = f"From {show(trail[0][1])} for everything alike to {show(trail[-1][1])}."
        items.append(Picture("Best loss by cuts judged", trail_plot(trail, max(int(search["evaluated"]), trail[-1][0])), told))
    items.append(Table("", ("what", "value"), [row for row in rows if row[1] is not None]))
    return items


def _many(cuts: str | None) -> str | None:
    """A number that may be too large to write out."""
    if cuts is None:
        return None
    return show(int(cuts)) if len(cuts) <= 9 else f"about 10^{len(cuts) - 1}"


def _time(value: float | None) -> str | None:
    return None if value is None else seconds(value)
