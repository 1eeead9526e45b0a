"""The lattice family's part of a report: front, levels, class sizes, search, what an attacker gains.

Built from numbers, names of columns, and labels that the release shows in k rows or more. A class below k is refused, because
the report must not show what the release hides.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon_spark.families.lattice.facts import LOSS_NAMES, LatticeFacts, Search
from anon_spark.model.facts import FrontPoint
from anon_spark.report.columns import detail_items, distribution_items
from anon_spark.report.formats import percent, seconds, show
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.models import model_items
from anon_spark.report.plots import front_plot
from anon_spark.report.relational import class_items, refuse_small_classes, risk_items

MOST_ROWS = 60  # of the front in the table; the JSON beside the page holds all


def lattice_sections(facts: LatticeFacts) -> list[Section]:
    """The sections of a release.

    Guarantee: no class below required_k; ValueError if the facts hold one.
    """
    if facts.chosen.k < facts.required_k:
        raise ValueError(f"chosen.k is {facts.chosen.k}, required is {facts.required_k}: such a node cannot be chosen.")
    refuse_small_classes(facts.required_k, facts.class_sizes)
    shown = distribution_items(facts.distributions, facts.required_k)
    return [
        Section("How far each attribute was generalized", _attribute_items(facts)),
        *([Section("Every column before and after", shown)] if shown else []),
        Section("What an attacker gains", risk_items(facts.risk, facts.crowds)),
        *_model_sections(facts),
        Section("Levels of the series", _kept_items(facts))
        if facts.others_wait
        else Section("What each k costs", _front_items(facts)),
        Section("Sizes of the published classes", class_items(facts.class_sizes, facts.required_k)),
        Section("Search", _search_items(facts.search)),
    ]


def _model_sections(facts: LatticeFacts) -> list[Section]:
    if not facts.models:
        return []
    costs = [(cost.column, cost.model, cost.loss, cost.without) for cost in facts.model_costs]
    return [Section("What protects the sensitive values", model_items(facts.models, costs))]


def _kept_items(facts: LatticeFacts) -> list[Item]:
    """The levels that were kept, beside those that a search of this increment alone would choose."""
    words = [
        "The levels are those of the first increment, so labels can be compared over the whole series. People of classes that "
        f"are smaller than k = {facts.required_k:,} wait for a later increment."
    ]
    points = [("kept, published", facts.chosen), *([("refit", facts.refit)] if facts.refit is not None else [])]
    if facts.refit is None:
        words.append("No other levels were searched, or none reaches k with these rows alone.")
    rows = [
        (name, facts.search.rows - point.suppressed_rows, point.suppressed_rows, point.loss, show(point.node))
        for name, point in points
    ]
    columns = ("levels", "rows published (more is better)", "rows that wait", "loss with waiting rows (less is better)", "node")
    note = "A refit is lattice.levels: refit. Its labels would be of other levels than those published before."
    return [Text("", words), Table("What a refit would change", columns, rows, note)]


def _front_items(facts: LatticeFacts) -> list[Item]:
    points = list(facts.front)
    listed = any(point == facts.chosen for point in points)
    if not listed:  # a node named by the user may lie off the front
        points.append(facts.chosen)
    points.sort(key=lambda point: (-point.k, point.loss, point.node))
    at = next(i for i, point in enumerate(points) if point == facts.chosen)
    picked = _picked(len(points), at)
    rows = [_front_row(points[i], i == at, facts.required_k) for i in picked]
    note = f"Levels in the order {', '.join(attribute.name for attribute in facts.attributes)}. "
    if len(picked) < len(points):
        note += f"{len(picked)} of {len(points)} points; all are in the JSON file."
    plot = front_plot(points, at, facts.required_k, LOSS_NAMES[facts.loss])
    return [
        Text("", _front_words(facts, listed)),
        Picture("Loss against k", plot, _front_alt(points, at, facts.required_k)),
        Table(
            "Points of the front",
            ("", "k (more protects)", "loss (less is better)", "suppressed rows", "classes", "levels"),
            rows,
            note.strip(),
            marked=[row for row, i in enumerate(picked) if i == at],
            folded=True,
        ),
    ]


def _front_row(point: FrontPoint, chosen: bool, required_k: int) -> tuple[object, ...]:
    mark = "◆ chosen" if chosen else "" if point.k >= required_k else "below k"
    return mark, point.k, point.loss, point.suppressed_rows, point.classes, show(point.node)


def _front_words(facts: LatticeFacts, listed: bool) -> list[str]:
    chosen = facts.chosen
    chosen_words = (
        f"Chosen: k = {show(chosen.k)} (required {facts.required_k:,}), loss {show(chosen.loss)}, "
        f"{show(chosen.suppressed_rows)} rows suppressed, {show(chosen.classes)} classes."
    )
    if facts.search.least_loss is not None:
        return [
            f"The lattice has {show(facts.search.nodes)} nodes, too many for a whole front: one k alone was searched.",
            chosen_words,
            gap_words(chosen.loss, facts.search.least_loss),
        ]
    words = [
        f"Each of the {len(facts.front)} points is a way to generalize that no other found beats: none has at least its k at a "
        "smaller loss. Further right protects more, further down keeps more detail.",
        chosen_words,
    ]
    if not listed:
        words.append("The chosen node is none of these points; it is drawn and listed beside them.")
    if not facts.search.complete:
        words.append("The search is a heuristic: the true front may have points that are not shown.")
    return words


def gap_words(loss: float, least_loss: float) -> str:
    """How far the loss can be above the optimum, in words."""
    if loss <= least_loss:
        return "No node loses less: this is the optimum."
    return (
        f"It is proven that no node with this k loses less than {least_loss:.6f}: the loss is within "
        f"{(loss - least_loss) / loss:.1%} of the optimum. More lattice.max_nodes or max_seconds may lower this."
    )


def _front_alt(points: Sequence[FrontPoint], at: int, required_k: int) -> str:
    return (
        f"Step plot of {len(points)} points from k = {show(points[-1].k)} at loss {show(points[-1].loss)} "
        f"to k = {show(points[0].k)} at loss {show(points[0].loss)}; k below {required_k:,} is shaded. "
        f"Chosen: k = {show(points[at].k)} at loss {show(points[at].loss)}."
    )


def _picked(count: int, chosen: int) -> list[int]:
    """At most MOST_ROWS indexes, evenly spread, both ends and the chosen one among them."""
    if count <= MOST_ROWS:
        return list(range(count))
    spread = {round(step * (count - 1) / (MOST_ROWS - 1)) for step in range(MOST_ROWS)}
    if chosen not in spread:
        inner = sorted(spread)[1:-1]
        spread.remove(min(inner, key=lambda i: abs(i - chosen)))
        spread.add(chosen)
    return sorted(spread)


def _attribute_items(facts: LatticeFacts) -> list[Item]:
    rows = [(one.name, f"{one.level} of {one.height}", one.labels) for one in facts.attributes]
    note = "Level 0 is the original value (better for readers), the last level makes all values alike."
    return [
        *detail_items(facts.detail_lost),
        Table("Level reached", ("column", "level", "different labels there"), rows, note),
    ]


def _whole(search: Search) -> str:
    if search.least_loss is not None:
        return "one k only"
    return "complete: no point is missing" if search.complete else "points may be missing"


def _search_items(search: Search) -> list[Item]:
    rows = [
        ("Search", search.name),
        ("Front", _whole(search)),
        ("Nodes of the lattice", search.nodes),
        ("Nodes evaluated", search.evaluated),
        ("Share evaluated", percent(search.evaluated / search.nodes)),
        ("Batches", search.batches),
        ("Distinct tuples", search.tuples),
        ("Time", seconds(search.seconds)),
    ]
    return [Table("How the search went", ("what", "value"), rows, folded=True)]
