"""The mst family's part of a report: what was lost, levels side by side, class sizes, the tree, what an attacker gains.

From numbers and names of columns alone, as in the lattice family's part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anon_spark.report.formats import seconds, show
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.plots import shares_plot, weights_plot
from anon_spark.report.relational import class_items, refuse_labels, refuse_small_classes, risk_items

MEASURES = {
    "glm": "general loss (GLM), 0 to 1",
    "il": "information loss of the paper (IL), 0 to the number of attributes",
    "ncp": "normalized certainty penalty (NCP), 0 to 1",
    "dm": "discernibility (DM)",
    "cavg": "average class size over k (CAVG), at least 1",
}


def mst_sections(facts: Mapping[str, Any]) -> list[Section]:
    """Sections for the facts at hand; a part without facts is left out.

    Facts: required_k, l, partition, measures, levels, class_sizes, risk.
    Guarantee: no label of a hierarchy, no class below required_k; ValueError if the facts hold one.
    """
    required_k = int(facts["required_k"])
    refuse_small_classes(required_k, facts)
    refuse_labels(facts)
    sections = []
    if facts.get("measures"):
        sections.append(Section("What was lost", _measure_items(facts["measures"])))
    if facts.get("levels"):
        sections.append(Section("How far each attribute was generalized", _level_items(facts["levels"])))
    if facts.get("class_sizes"):
        sections.append(Section("Sizes of the published classes", class_items(facts["class_sizes"], required_k)))
    if facts.get("risk"):
        sections.append(Section("What an attacker gains", risk_items(facts["risk"])))
    if facts.get("partition"):
        sections.append(Section("Tree, split and merge", _partition_items(facts["partition"])))
    return sections


def _measure_items(measures: Mapping[str, Any]) -> list[Item]:
    rows = [(MEASURES[name], measures[name]) for name in MEASURES if name in measures]
    return [Table("", ("measure", "value"), rows, "0 loses nothing, except for DM and CAVG, which count class sizes.")]


def _level_items(levels: Sequence[Mapping[str, Any]]) -> list[Item]:
    told = "; ".join(f"{one['name']}: {', '.join(show(share) for share in one['shares'])}" for one in levels)
    words = (
        "Local recoding: rows of one class share their levels, two classes need not. Level 0 is the original value, the "
        "last level makes all values alike."
    )
    return [
        Text("", [words]),
        Picture("Share of rows on each level", shares_plot(levels), f"Shares of rows by level, from level 0. {told}."),
    ]


def _partition_items(found: Mapping[str, Any]) -> list[Item]:
    steps = found.get("steps") or {}
    rows = [
        ("Distinct tuples", found.get("tuples")),
        ("Threshold at which the whole tree is cut", found.get("tau")),
        ("It isolates every distinct tuple", {True: "yes", False: "no"}.get(found.get("tau_below_min_weight"))),  # type: ignore[arg-type]
        ("Classes from the split", found.get("kept")),
        ("Parts below k, to be merged", found.get("small")),
        ("Merged by", found.get("merge")),
        ("Rounds", found.get("rounds")),
        *((f"Time of the {name}", seconds(spent)) for name, spent in steps.items()),
    ]
    items: list[Item] = [Table("", ("what", "value"), [row for row in rows if row[1] is not None])]
    weights = found.get("weights")
    if weights:
        edges = sorted((int(weight), count) for weight, count in weights.items())
        told = f"{show(len(edges))} different weights; {show(sum(count for _, count in edges))} edges."
        items.append(Picture("Edges of the spanning tree by weight", weights_plot(edges), told))
    return items
