"""The mst family's part of a report: what was lost, levels side by side, class sizes, the tree, what an attacker gains.

Built from numbers, names of columns, and labels that the release shows in k rows or more, as in the lattice family's part.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon_spark.families.mst.facts import ExtentShare, Measures, MstFacts, PartitionStatistics
from anon_spark.model.facts import LevelShares
from anon_spark.report.columns import detail_items, distribution_items
from anon_spark.report.formats import percent, seconds, show
from anon_spark.report.items import Bars, Item, Picture, Section, Table, Text
from anon_spark.report.models import model_items
from anon_spark.report.plots import weights_plot
from anon_spark.report.relational import MEASURE_HEAD, class_items, refuse_small_classes, risk_items

MEASURES = {
    "glm": "general loss (GLM), 0 to 1",
    "il": "information loss of the paper (IL), 0 to the number of attributes",
    "ncp": "normalized certainty penalty (NCP), 0 to 1",
    "dm": "discernibility (DM)",
    "cavg": "average class size over k (CAVG), at least 1",
}
UNITS = {
    "glm": "share, 0 to 1", "il": "sum of shares", "ncp": "share, 0 to 1", "dm": "rows squared", "cavg": "times k, from 1",
}  # fmt: skip


def mst_sections(facts: MstFacts) -> list[Section]:
    """The sections of a release.

    Guarantee: no class below required_k; ValueError if the facts hold one.
    """
    refuse_small_classes(facts.required_k, facts.class_sizes)
    shown = distribution_items(facts.distributions, facts.required_k)
    return [
        Section("How far each attribute was generalized", [*_level_items(facts.levels), *_extent_items(facts.extents)]),
        *([Section("Every column before and after", shown)] if shown else []),
        Section("What an attacker gains", risk_items(facts.risk, facts.crowds)),
        *([Section("What protects the sensitive values", model_items(facts.models, ()))] if facts.models else []),
        Section("What was lost", _measure_items(facts.measures)),
        Section("Sizes of the published classes", class_items(facts.class_sizes, facts.required_k)),
        Section("Tree, split, merge and refinement", _partition_items(facts.partition)),
    ]


def _measure_items(measures: Measures) -> list[Item]:
    rows = [(MEASURES[name], value, UNITS[name], "less") for name, value in vars(measures).items()]
    return [Table("", MEASURE_HEAD, rows, "0 loses nothing, except for DM and CAVG, which count class sizes.")]


def _level_items(levels: Sequence[LevelShares]) -> list[Item]:
    words = (
        "Local recoding: rows of one class share their levels, two classes need not. Level 0 is the original value, the "
        "last level makes all values alike."
    )
    names = [attribute.name for attribute in levels]
    parts = {
        "as it was": [attribute.shares[0] for attribute in levels],
        "generalized": [sum(attribute.shares[1:-1]) for attribute in levels],
        "lost (last level)": [attribute.shares[-1] if len(attribute.shares) > 1 else 0.0 for attribute in levels],
    }
    losses = {attribute.name: attribute.loss for attribute in levels if attribute.loss is not None}
    by_level = [(attribute.name, " · ".join(percent(share) for share in attribute.shares)) for attribute in levels]
    unit = "share of rows; more as it was is better"
    return [
        Text("", [words]),
        *detail_items(losses),
        Bars("How the rows show each column", names, parts, unit, as_share=True, stacked=True, most=1.0),
        Table("Share of rows on each level", ("column", "level 0 · level 1 · … · last level"), by_level, folded=True),
    ]


def _extent_items(extents: Sequence[ExtentShare]) -> list[Item]:
    if not extents:
        return []
    rows = [(extent.name, extent.label, extent.extent) for extent in extents]
    words = (
        "Published as extents, so a class shows the least and greatest value of its rows (rounded, if the job says so). The "
        "levels above are those of the labels that the extents replace."
    )
    head = ("column", "mean share of the domain: label", "extent")
    return [Table("Extents", head, rows, words)]


def _partition_items(partition: PartitionStatistics) -> list[Item]:
    rows = [
        ("Distinct tuples", partition.tuples),
        ("Threshold at which the whole tree is cut", partition.tau),
        ("It isolates every distinct tuple", "yes" if partition.tau_below_min_weight else "no"),
        ("Classes from the split", partition.kept),
        ("Parts below k, to be merged", partition.small),
        ("Merged by", partition.merge),
        *([] if partition.rounds is None else [("Rounds", partition.rounds)]),
        *([] if partition.blocks is None else [("Blocks in which classes were refined", partition.blocks)]),
        *([("Rows suppressed", partition.suppressed)] if partition.suppressed else []),
        *((f"Time of the {name}", seconds(spent)) for name, spent in partition.steps.items()),
    ]
    items: list[Item] = [Table("How the classes were made", ("what", "value"), rows, folded=True)]
    if partition.weights:
        edges = sorted(partition.weights.items())
        counted = f"{show(len(edges))} different weights; {show(sum(count for _, count in edges))} edges."
        items.append(Picture("Edges of the spanning tree by weight", weights_plot(edges), counted))
    return items
