"""Eight patients of a ward as nested records, their honest release by brute force, and the frames of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anon_spark.columns import LINK
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NodeType, TreeSchema
from tests.auditing.town import Row, frame
from tests.oracle.tree_oracle import Tree, leaf_paths

Label = tuple[str, str | None]
Paths = set[tuple[Label, ...]]

HOSPITAL, DISEASE, TREATMENT, STATUS = "Hospital", "Disease", "Treatment", "Status"
SCHEMA = TreeSchema(
    (
        NodeType(HOSPITAL, "visits.hospital"),
        NodeType(DISEASE, "visits.cases.disease", HOSPITAL),
        NodeType(TREATMENT, "visits.cases.drugs", DISEASE),
        NodeType(STATUS, "status", None, sensitive=True),
    )
)
GROUPS = {
    HOSPITAL: {"General": ["H1", "H2"], "Maternity": ["Rea", "Gaia"]},
    DISEASE: {"Lung disease": ["Flu", "Bronchitis"], "Stomach disorder": ["Gastritis", "Diarrhea"]},
    TREATMENT: {"Medicine": ["Antibiotics", "Painkillers"], "Surgery": ["Neurological", "Orthopedic"]},
}
HIERARCHIES: Mapping[str, Hierarchy] = {
    **{
        name: Hierarchy.from_levels([(leaf, group, "*") for group, leaves in groups.items() for leaf in leaves])
        for name, groups in GROUPS.items()
    },
    STATUS: Hierarchy.from_levels([("HIV", "*"), ("well", "*")]),
}

NODE = pa.struct([("class", pa.string()), ("value", pa.string())])
PATHS = pa.list_(pa.list_(NODE))
CASES = pa.list_(pa.struct([("disease", pa.string()), ("drugs", pa.list_(pa.string()))]))
VISITS = pa.list_(pa.struct([("hospital", pa.string()), ("cases", CASES)]))
SOURCE: dict[str, Any] = {"id": pa.int64(), "visits": VISITS, "status": pa.string(), "weight": pa.float64()}


def visit(hospital: str | None, *cases: tuple[str | None, list[str | None] | None]) -> dict[str, Any]:
    return {"hospital": hospital, "cases": [{"disease": disease, "drugs": drugs} for disease, drugs in cases]}


PATIENTS: list[Row] = [
    (0, [visit("H1", ("Gastritis", ["Antibiotics"])), visit("H2", ("Flu", ["Painkillers", "Painkillers"]))], "well", 60.0),
    (1, [visit("H1", ("Bronchitis", ["Painkillers"])), visit("H2", ("Flu", ["Antibiotics"]), ("Gastritis", []))], "HIV", 61.5),
    (2, [visit("H2", ("Bronchitis", ["Antibiotics"])), visit("H2", ("Gastritis", None))], "well", None),
    (3, [visit("H1", (None, ["Antibiotics", "Orthopedic"])), visit("Rea")], None, 70.0),  # no disease is a disease
    (4, [visit("Gaia", ("Diarrhea", ["Orthopedic", None]))], "well", 71.0),
    (5, [None, visit(None, ("Flu", []))], "HIV", 71.0),  # no visit is none
    (6, [], "well", 80.0),
    (7, None, "HIV", float("nan")),
]
CUT: list[Label] = [
    (HOSPITAL, "H1"), (HOSPITAL, "H2"), (HOSPITAL, "Maternity"), (HOSPITAL, None),
    (DISEASE, "Lung disease"), (DISEASE, "Gastritis"), (DISEASE, "Diarrhea"), (DISEASE, None),
    (TREATMENT, "Medicine"), (TREATMENT, "Surgery"), (TREATMENT, None),
]  # fmt: skip
ROOTS: list[Label] = [(name, name) for name in GROUPS]
EVERYTHING: list[Label] = [("*", "*")]
SD: list[tuple[Label, Label]] = [((HOSPITAL, "H1"), (DISEASE, "Gastritis"))]


def paths_of(rows: Iterable[Row]) -> Paths:
    """All paths of the nested rows of one record, from the top."""
    found: Paths = set()
    for _, visits, status, _ in rows:
        found.add(((STATUS, status),))
        for one in filter(None, visits or []):
            top = ((HOSPITAL, one["hospital"]),)
            found.add(top)
            for case in one["cases"]:
                middle = (*top, (DISEASE, case["disease"]))
                found.add(middle)
                found.update({(*middle, (TREATMENT, drug)) for drug in case["drugs"] or []})
    return found


def leaves_of(rows: Sequence[Row]) -> list[list[int]]:
    """All paths of a record as leaves by node type: -1 without, the number of leaves for null; its status is in every row."""
    found = []
    for path in sorted(paths_of(rows), key=str):
        values = {STATUS: rows[0][2], **dict(path)}
        leaves = [HIERARCHIES[name].leaf_of(values.get(name)) for name in SCHEMA.names]
        nulls = [len(HIERARCHIES[name].keys) if name in values else -1 for name in SCHEMA.names]
        found.append([null if leaf is None else leaf for leaf, null in zip(leaves, nulls, strict=True)])
    return found


def climbed(label: Label, cut: Sequence[Label]) -> Label:
    """The lowest label of the cut above a value."""
    name, value = label
    if name == STATUS:
        return label
    groups = [group for group, leaves in GROUPS[name].items() if value in leaves]
    found, *_ = [one for one in [label, *((name, group) for group in groups), (name, name), ("*", "*")] if one in cut]
    return found


def released(paths: Paths, cut: Sequence[Label], pairs: Sequence[tuple[Label, Label]] = ()) -> Paths:
    """Paths with their labels at the cut, and some pairs taken apart in this order."""
    found: Paths = set()
    for path in paths:
        image = [climbed(label, cut) for label in path]
        found.add(tuple(label for at, label in enumerate(image) if label != ("*", "*") or label not in image[:at]))
    for upper, lower in pairs:
        moved: Paths = set()
        for path in found:
            if upper in path and lower in path[path.index(upper) :]:
                moved.add(tuple(label for label in path if label != lower))
                moved.add((*path[: path.index(upper)], lower))
            else:
                moved.add(path)
        found = {path[:end] for path in moved for end in range(1, len(path) + 1)}
    return found


def written(paths: Paths) -> list[list[dict[str, Any]]]:
    """The root-to-leaf paths as they are published."""
    inner = {path[:-1] for path in paths}
    leaves = [path for path in paths if path not in inner]
    leaves.sort(key=lambda path: [(name, value is not None, value or "") for name, value in path])
    return [[{"class": name, "value": value} for name, value in path] for path in leaves]


def nested(paths: Paths, name: str | None = None, above: tuple[Label, ...] = ()) -> dict[str, Any]:
    """The same as a struct of arrays."""
    found = {}
    for one in SCHEMA.children(name):
        here = sorted(
            (path for path in paths if path[:-1] == above and path[-1][0] == one.name), key=lambda path: path[-1][1] or "null"
        )
        found[one.name] = [{"value": path[-1][1], **nested(paths, one.name, path)} for path in here]
    return found


def nested_kind(name: str | None = None) -> Any:
    fields = [
        (one.name, pa.list_(pa.struct([("value", pa.string()), *nested_kind(one.name)]))) for one in SCHEMA.children(name)
    ]
    return pa.struct(fields) if name is None else fields


def source(spark: SparkSession, rows: Sequence[Row] = PATIENTS, partitions: int | None = None) -> DataFrame:
    return frame(spark, rows, list(SOURCE), list(SOURCE.values()), partitions)


def linked(spark: SparkSession, rows: Sequence[Row], links: Sequence[int], partitions: int | None = None) -> DataFrame:
    """The rows as they were read, each with its link."""
    made = [(*row, link) for row, link in zip(rows, links, strict=True)]
    return frame(spark, made, [*SOURCE, LINK], [*SOURCE.values(), pa.int64()], partitions).drop("id")


def labelled(one: Tree, type_of: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """A tree of plain labels as it is published."""
    paths = [[{"class": type_of[label], "value": label} for label in path] for path in leaf_paths(one)]
    return sorted(paths, key=lambda path: [(node["class"], node["value"]) for node in path])


def trees_table(spark: SparkSession, trees: Iterable[Tree], type_of: Mapping[str, str]) -> DataFrame:
    return frame(spark, [(labelled(one, type_of),) for one in trees], ["paths"], [PATHS])
