"""The lattice family's part of a report: front, levels, class sizes, search, what an attacker gains.

From numbers and names of columns alone. A fact that carries a label, or a class below k, is refused: better no
report than one that shows what the release hides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anon_spark.report.formats import seconds, show
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.plots import front_plot, levels_plot, loss_plot
from anon_spark.report.relational import class_items, refuse_labels, refuse_small_classes, risk_items

MOST_ROWS = 60  # of the front in the table; the JSON beside the page holds all

LOSS_NAMES = {
    "glm": "general loss (GLM), 0 to 1",
    "dm": "discernibility loss (DM)",
    "cm": "classification loss (CM), 0 to 1",
}


def lattice_sections(facts: Mapping[str, Any]) -> list[Section]:
    """Sections for the facts at hand; a part without facts is left out, so a failed run still reports what it knows.

    Facts: loss, required_k, chosen, front, attributes, search, class_sizes, risk.
    Guarantee: no label of a hierarchy, no class below required_k; ValueError if the facts hold one.
    """
    required_k = int(facts["required_k"])
    _refuse_small_classes(required_k, facts)
    refuse_labels(facts)
    front, attributes = facts.get("front") or (), facts.get("attributes") or ()
    sections = []
    if front:
        sections.append(Section("What each k costs", _front_items(facts, front, required_k)))
    if attributes:
        sections.append(Section("How far each attribute was generalized", _attribute_items(attributes)))
    if facts.get("class_sizes"):
        sections.append(Section("Sizes of the published classes", class_items(facts["class_sizes"], required_k)))
    if facts.get("risk"):
        sections.append(Section("What an attacker gains", risk_items(facts["risk"])))
    if facts.get("search"):
        sections.append(Section("Search", _search_items(facts["search"])))
    return sections


def _refuse_small_classes(required_k: int, facts: Mapping[str, Any]) -> None:
    chosen = facts.get("chosen")
    if chosen and chosen["k"] < required_k:
        raise ValueError(f"chosen.k is {chosen['k']}, required is {required_k}: such a node cannot be chosen.")
    refuse_small_classes(required_k, facts)


def _front_items(facts: Mapping[str, Any], front: Sequence[Mapping[str, Any]], required_k: int) -> list[Item]:
    chosen = facts.get("chosen")
    points = sorted(front, key=lambda point: (-point["k"], point["loss"], tuple(point["node"])))
    at = next((i for i, point in enumerate(points) if chosen and list(point["node"]) == list(chosen["node"])), None)
    if chosen and at is None:  # a node the user named need not lie on the front
        points.append(chosen)
        points.sort(key=lambda point: (-point["k"], point["loss"], tuple(point["node"])))
        at = points.index(chosen)
    loss_name = LOSS_NAMES.get(facts["loss"], facts["loss"])
    drawn = [{**point, "suppressed": point.get("suppressed_rows")} for point in points]
    picked = _picked(len(points), at)
    rows = [_front_row(points[i], i == at, required_k) for i in picked]
    names = ", ".join(attribute["name"] for attribute in facts.get("attributes") or ())
    note = f"Levels in the order {names}. " if names else ""
    if len(picked) < len(points):
        note += f"{len(picked)} of {len(points)} points; all are in the JSON file."
    return [
        Text("", _front_words(facts, len(front), required_k)),
        Picture("Loss against k", front_plot(drawn, at, required_k, loss_name), _front_alt(points, at, required_k)),
        Table(
            "Points of the front",
            ("", "k", "loss", "suppressed rows", "classes", "levels"),
            rows,
            note.strip(),
            marked=[row for row, i in enumerate(picked) if i == at],
        ),
    ]


def _front_row(point: Mapping[str, Any], chosen: bool, required_k: int) -> tuple[Any, ...]:
    mark = "◆ chosen" if chosen else "" if point["k"] >= required_k else "below k"
    node = show(tuple(point["node"]))
    return mark, point["k"], point["loss"], point.get("suppressed_rows"), point.get("classes"), node


def _front_words(facts: Mapping[str, Any], count: int, required_k: int) -> list[str]:
    chosen, search = facts.get("chosen"), facts.get("search") or {}
    words = [
        f"Each of the {count} points is a way to generalize that no other found beats: none has at least its k at a "
        "smaller loss. Further right protects more, further down keeps more detail."
    ]
    if chosen:
        words.append(
            f"Chosen: k = {show(chosen['k'])} (required {required_k:,}), loss {show(chosen['loss'])}, "
            f"{show(chosen.get('suppressed_rows'))} rows suppressed, {show(chosen.get('classes'))} classes."
        )
        if all(list(point["node"]) != list(chosen["node"]) for point in facts["front"]):
            words.append("The chosen node is none of these points; it is drawn and listed beside them.")
    else:
        words.append("No node was chosen.")
    if search.get("complete") is False:
        words.append("The search is a heuristic: the true front may have points that are not shown.")
    return words


def _front_alt(points: Sequence[Mapping[str, Any]], at: int | None, required_k: int) -> str:
    told = (
        f"Step plot of {len(points)} points from k = {show(points[-1]['k'])} at loss {show(points[-1]['loss'])} "
        f"to k = {show(points[0]['k'])} at loss {show(points[0]['loss'])}; k below {required_k:,} is shaded."
    )
    if at is None:
        return told
    return f"{told} Chosen: k = {show(points[at]['k'])} at loss {show(points[at]['loss'])}."


def _picked(count: int, chosen: int | None) -> list[int]:
    """At most MOST_ROWS indexes, evenly spread, both ends and the chosen one among them."""
    if count <= MOST_ROWS:
        return list(range(count))
    spread = {round(step * (count - 1) / (MOST_ROWS - 1)) for step in range(MOST_ROWS)}
    if chosen is not None and chosen not in spread:
        inner = sorted(spread)[1:-1]
        spread.remove(min(inner, key=lambda i: abs(i - chosen)))
        spread.add(chosen)
    return sorted(spread)


def _attribute_items(attributes: Sequence[Mapping[str, Any]]) -> list[Item]:
    measured = [attribute for attribute in attributes if attribute.get("loss") is not None]
    told = "; ".join(f"{one['name']} {one['level']} of {one['height']}" for one in attributes)
    items: list[Item] = [Picture("Level reached", levels_plot(attributes), f"Level of each attribute: {told}.")]
    if measured:
        lost = "; ".join(f"{one['name']} {show(one['loss'])}" for one in measured)
        items.append(Picture("Detail lost", loss_plot(measured), f"Loss of each attribute, 0 to 1: {lost}."))
    rows = [(one["name"], one["level"], one["height"], one.get("labels"), one.get("loss")) for one in attributes]
    note = "Level 0 is the original value, the last level makes all values alike."
    items.append(Table("", ("attribute", "level", "of", "labels at this level", "loss"), rows, note))
    return items


def _search_items(search: Mapping[str, Any]) -> list[Item]:
    nodes, evaluated, spent = search.get("nodes"), search.get("evaluated"), search.get("seconds")
    share = f"{evaluated / nodes:.1%}" if nodes and evaluated is not None else None
    whole = {True: "complete: no point is missing", False: "points may be missing"}
    rows = [
        ("Search", search.get("name")),
        ("Front", whole.get(search["complete"]) if "complete" in search else None),
        ("Nodes of the lattice", nodes),
        ("Nodes evaluated", evaluated),
        ("Share evaluated", share),
        ("Batches", search.get("batches")),
        ("Distinct tuples", search.get("tuples")),
        ("Time", None if spent is None else seconds(spent)),
    ]
    return [Table("", ("what", "value"), [row for row in rows if row[1] is not None])]
