"""One published record for people: its paths as nested JSON or XML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

Node = Any  # a Row or a mapping with the fields class and value


def as_json(paths: Sequence[Sequence[Node]], indent: int | None = 2) -> str:
    """The record as JSON: every node with its type (`class`), value and the nodes below it."""
    return json.dumps(_below(paths, 0), indent=indent, ensure_ascii=False)


def as_xml(paths: Sequence[Sequence[Node]]) -> str:
    """The record as XML: <node class value> inside <record>; a null value has no attribute."""
    record = ElementTree.Element("record")
    _append(record, _below(paths, 0))
    ElementTree.indent(record)
    return ElementTree.tostring(record, encoding="unicode")


def _below(paths: Sequence[Sequence[Node]], depth: int) -> list[dict[str, Any]]:
    grouped: dict[tuple[str, str | None], list[Sequence[Node]]] = {}
    for path in paths:
        if len(path) > depth:
            grouped.setdefault((path[depth]["class"], path[depth]["value"]), []).append(path)
    nodes = []
    for (name, value), inner in grouped.items():
        node: dict[str, Any] = {"class": name, "value": value}
        below = _below(inner, depth + 1)
        nodes.append({**node, "below": below} if below else node)
    return nodes


def _append(element: ElementTree.Element, nodes: Sequence[dict[str, Any]]) -> None:
    for node in nodes:
        attributes = {"class": node["class"]} | ({} if node["value"] is None else {"value": node["value"]})
        _append(ElementTree.SubElement(element, "node", attributes), node.get("below", []))
