"""The suggested job as a commented YAML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anon_spark.suggestion.families import Node, SuggestedFamily
from anon_spark.suggestion.hierarchies import SuggestedHierarchy
from anon_spark.suggestion.roles import Role, Suggested

FOLDER = "hierarchies"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def job_text(
    suggested: Sequence[Suggested],
    hierarchies: Mapping[str, SuggestedHierarchy],
    family: SuggestedFamily,
    source: Mapping[str, Any],
) -> str:
    """The job file. source: the keys of `input`."""
    return "\n".join(_lines(suggested, hierarchies, family, source)) + "\n"


def file_name(column: str, taken: Sequence[str] = ()) -> str:
    """The name of a column's level table."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", column).strip("_").lower() or "column"
    name, number = f"{plain}.csv", 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}.csv"
    return name


def file_names(hierarchies: Mapping[str, SuggestedHierarchy]) -> dict[str, str]:
    """The files of all columns that have a level table."""
    files: dict[str, str] = {}
    for column, hierarchy in hierarchies.items():
        if hierarchy.rows is not None:
            files[column] = file_name(column, list(files.values()))
    return files


def _lines(
    suggested: Sequence[Suggested],
    hierarchies: Mapping[str, SuggestedHierarchy],
    family: SuggestedFamily,
    source: Mapping[str, Any],
) -> Iterator[str]:
    yield "# Suggested by `anon-spark init` after a look at the table. It cannot know who knows what of your people: read every"
    yield "# role and its reason, change what you know better, then"
    yield "#   anon-spark plan job.yaml       checks everything, counts, writes nothing"
    yield "#   anon-spark run  job.yaml       anonymizes, audits, publishes"
    yield "# profile.html and hierarchies/ contain values of the table: keep them private."
    yield ""
    yield "anon_spark: 1"
    yield f"family: {family.name}  # {family.why}"
    yield ""
    yield "input:"
    for key, value in source.items():
        yield f"  {key}: {_value(value)}"
    yield ""
    yield "columns:  # a column that is not named is not published"
    yield from _columns(suggested, hierarchies, family)
    left_out = [entry for entry in suggested if entry.role == "left_out"]
    if left_out:
        yield "  # Not published:"
        yield from (f"  #   {_one_line(entry.name)}: {entry.reason}" for entry in left_out)
    yield ""
    yield f"privacy: {_value(family.privacy)}  # {family.promise}"
    for key, settings in family.options.items():
        yield f"{key}: {_value(settings)}"
    yield ""
    yield "output:  # each may be a catalog name instead, as in warehouse.people_release"
    yield "  table: ./release      # Delta, written in one commit after the audit has passed"
    yield "  runs: ./runs          # Delta, one row per run"
    yield "  report: report.html   # for the person who decides whether the release is handed out"


def _columns(
    suggested: Sequence[Suggested], hierarchies: Mapping[str, SuggestedHierarchy], family: SuggestedFamily
) -> Iterator[str]:
    files = file_names(hierarchies)

    def of(role: Role) -> list[Suggested]:
        return [entry for entry in suggested if entry.role == role and entry.name in family.columns]

    for entry in of("person"):
        yield f"  person: {_name(entry.name)}  # {entry.reason}"
    if identifiers := of("identifier"):
        yield "  identifiers:  # never published; the audit refuses a release that holds one"
        yield from (f"    - {_name(entry.name)}  # {_reason(entry)}" for entry in identifiers)
    if family.tree:
        yield "  tree:  # the values of a record as they hang below each other"
        for node in family.tree:
            yield from _node(node, hierarchies, files, "    ")
    quasi = [] if family.tree else of("quasi_identifier")
    if quasi:
        yield "  quasi_identifiers:  # what others may know of a person, each with its hierarchy"
    for entry in quasi:
        hierarchy = hierarchies[entry.name]
        yield f"    # {_reason(entry)}; {hierarchy.why}"
        yield f"    {_name(entry.name)}: {_value(_key(entry.name, hierarchy, files))}"
    items = [_name(entry.name) for entry in of("items")]
    if items and family.name == "set_valued":
        yield f"  items: {items[0]}"
    elif items:
        yield f"  transactions: [{', '.join(items)}]  # lists of items; m of them may be known"
    unchanged: tuple[Role, ...] = ("sensitive", "keep")
    for role in unchanged:
        named = of(role)
        if named:
            yield f"  {role}:  # published unchanged"
            yield from (f"    - {_name(entry.name)}  # {_reason(entry)}" for entry in named)


def _node(node: Node, hierarchies: Mapping[str, SuggestedHierarchy], files: Mapping[str, str], space: str) -> Iterator[str]:
    yield f"{space}{_name(node.name)}:"
    yield f"{space}  field: {_name(node.field)}"
    for key, value in _key(node.field, hierarchies[node.field], files).items():
        yield f"{space}  {key}: {_value(value)}"
    if node.children:
        yield f"{space}  children:"
        for child in node.children:
            yield from _node(child, hierarchies, files, f"{space}    ")


def _key(column: str, hierarchy: SuggestedHierarchy, files: Mapping[str, str]) -> Mapping[str, Any]:
    return {"levels": f"{FOLDER}/{files[column]}"} if column in files else hierarchy.key


def _reason(entry: Suggested) -> str:
    return entry.reason if entry.confidence == "high" else f"{entry.reason} ({entry.confidence} confidence)"


def _name(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def _value(value: Any) -> str:
    """A value in YAML's flow form."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_name(str(key))}: {_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _name(value) if isinstance(value, str) else str(value)


def _one_line(text: str) -> str:
    return " ".join(text.split())
