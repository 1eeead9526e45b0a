"""RPD, dtree and least supports without Spark: the paper's examples and what a published label stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_spark.errors import ConfigurationError, DataError
from anon_spark.metrics.path_dependence import UNKNOWN, LabelReading, record_rpd, refuse_unknown
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, NodeType, TreeSchema
from jobs.reproductions.tree.frequent_subtrees import least_support, projection_of
from jobs.reproductions.tree.subtrees import Paths, longer_paths, rows_of
from jobs.reproductions.tree.subtrees import frequent_paths as paths_by_length

pytestmark = pytest.mark.compiles

Ints = np.typing.NDArray[np.int64]

GROUPS = {  # node types in the order of their rank
    "Hospital": {"General": "H1,H2", "Maternity": "Rea,Gaia"},
    "Disease": {"Lung disease": "Flu,Bronchitis", "Stomach disorder": "Gastritis,Diarrhea"},
    "Treatment": {"Medicine": "Antibiotics,Painkillers", "Surgery": "Neurological,Orthopedic"},
}
NODE = pa.list_(pa.list_(pa.struct([("class", pa.string()), ("value", pa.string())])))


def forest_of(groups: dict[str, dict[str, str]]) -> Forest:
    rows = {
        name: [(leaf, group, "*") for group, leaves in below.items() for leaf in leaves.split(",")]
        for name, below in groups.items()
    }
    schema = TreeSchema(tuple(NodeType(name, name) for name in groups))
    return Forest.of(schema, {name: Hierarchy.from_levels(of) for name, of in rows.items()})


FOREST = forest_of(GROUPS)
RANKS = FOREST.ranks.tolist()
TYPE_OF = {label: FOREST.schema.names[rank] for label, rank in zip(FOREST.labels, RANKS, strict=True) if rank >= 0}


def column(*records: str | None) -> Any:
    """Records as paths of labels: "H1→Flu, H2"; empty for an empty record."""
    lists = [
        None if text is None else [
            [{"class": TYPE_OF.get(label, label), "value": label} for label in path.split("→")]
            for path in text.split(", ")
            if path
        ]
        for text in records
    ]  # fmt: skip
    return pa.array(lists, NODE)


def rpds(records: Any, mode: Any, forest: Forest = FOREST) -> list[float]:
    return [*map(float, record_rpd(LabelReading.of(forest)(records), forest.counts(mode).astype(np.float64)))]


R1 = "Gastritis, H1→Medicine, H2→Lung disease→Medicine"
R2 = "Gastritis, H1→Lung disease→Medicine, H2→Lung disease→Medicine, H2→Medicine"
R4 = "H1→Lung disease→Medicine"


def test_example_1() -> None:
    """The published records of Figure 4: with global level counts as printed, with those of the definition as computed."""
    records = column(R1, R2, R2, R4)
    world, own = rpds(records, "global"), rpds(records, "class")
    assert world[:2] == pytest.approx([235 / 7776, 59 / 2592], rel=1e-14)
    assert [round(value, 2) for value in world[:1]] == [0.03] and round(world[1], 3) == 0.023
    assert own[:2] == pytest.approx([0.107639, 0.083333], abs=5e-7)
    assert np.mean(world) == pytest.approx(0.019033, abs=5e-7) and np.mean(own) == pytest.approx(0.071181, abs=5e-7)


def test_disassociation_may_lower_the_rpd_of_a_record() -> None:
    sizes = {"h": 4, "d": 6, "t": 5}
    forest = Forest.of(
        TreeSchema(tuple(NodeType(name, name) for name in sizes)),
        {name: Hierarchy.from_levels([(f"{name}{at}", "*") for at in range(size)]) for name, size in sizes.items()},
    )
    path = [{"class": label[0], "value": label} for label in ("h2", "d1", "t1")]
    lone = [{"class": "h", "value": "h1"}]
    found = rpds(pa.array([[lone, path], [lone, path[:2], [path[0], path[2]]]], NODE), "class", forest)
    assert found == pytest.approx([0.125694, 0.098611], abs=5e-7)


def test_pseudo_paths() -> None:
    """An empty record, one without list and `*` are guessed with probability 1; a batch that begins inside another."""
    records = column("H1", "", None, "*", "Hospital", "H2→Disease")
    expected = [1 / 4, 1, 1, 1, 1, 1 / 8]
    for start in range(4):
        assert rpds(records.slice(start), "class") == pytest.approx(expected[start:], rel=1e-15)
    assert rpds(column(""), "class") == [1.0] and rpds(column(), "class") == []


def test_labels_by_node_type_and_value() -> None:
    """Equal values of two node types are two nodes, a null is the null leaf; what is in no hierarchy is unknown."""
    forest = Forest.of(
        TreeSchema((NodeType("a", "a"), NodeType("b", "b"))),
        {"a": Hierarchy.from_levels([("x", "g", "*"), ("y", "g", "*")]).with_null(), "b": Hierarchy.from_levels([("x", "*")])},
    )
    asked: list[tuple[str | None, str | None]] = [("a", "x"), ("b", "x"), ("a", "g"), ("a", "a"), ("a", None), ("*", "*")]
    asked += [("b", None), ("b", "y"), ("c", "x"), (None, "x")]  # of no hierarchy
    records = pa.array([[[{"class": name, "value": value} for name, value in asked]]], NODE)
    paths = LabelReading.of(forest)(records)
    found = [None if node == UNKNOWN else forest.labels[node] for node in paths.labels.tolist()]
    assert found == ["a:x", "b:x", "a:g", "a", "a:null", "*", None, None, None, None]
    assert paths.row_offsets.tolist() == [0, 1] and paths.path_offsets.tolist() == [0, 10]
    refuse_unknown(0, "paths")
    with pytest.raises(DataError, match="paths: 4 labels are of no hierarchy"):
        refuse_unknown(4, "paths")


# --- dML² -----------------------------------------------------------------------------------------------------------------


def coded(*paths: str) -> tuple[Ints, Any]:
    numbers = [[FOREST.number(label) for label in path.split("→")] for path in paths]
    codes = [code for path in numbers for code in (~path[0], *path[1:])]
    return np.array([0, len(codes)]), np.array(codes, dtype=np.int32)


def losses(original: Sequence[str], published: Sequence[str]) -> dict[tuple[int, str], tuple[int, int]]:
    """(level, path) → levels raised, relations broken, in one record."""
    projection, source = projection_of(FOREST), coded(*original)

    def count(known: Paths, length: int) -> tuple[Ints, Ints]:
        return np.unique(longer_paths(*source, projection, known, length), return_counts=True)

    paths, _ = paths_by_length(projection, count)
    rows = rows_of(*source, *coded(*published), projection, paths)
    names = list[str]()
    for label, parent in zip(paths.labels.tolist(), paths.parents.tolist(), strict=True):
        names.append((names[parent] + "→" if parent >= 0 else "") + FOREST.labels[label])
    found = zip(rows.items.tolist(), rows.lost.tolist(), rows.broken.tolist(), strict=True)
    return {(int(paths.levels[path]), names[path]): (lost, broken) for path, lost, broken in found}


def dtree(found: dict[tuple[int, str], tuple[int, int]], level: int, *paths: str) -> float:
    lost, broken = (sum(found[level, path][at] for path in paths) for at in range(2))
    relations = sum(path.count("→") for path in paths)
    return 0.5 * lost / FOREST.height / len(paths) + (0.5 * broken / relations if relations else 0)


def test_example_3() -> None:
    raised = losses(["H2→Flu"], ["H2→Lung disease"])
    assert dtree(raised, 0, "H2", "H2→Flu") == pytest.approx(0.083333, abs=5e-7)
    broken = losses(["H2→Flu"], ["H2", "Lung disease"])
    assert dtree(broken, 0, "H2", "H2→Flu") == pytest.approx(0.583333, abs=5e-7)
    assert dtree(broken, 0, "H2") == 0  # no relation
    assert dtree(raised, 1, "General", "General→Lung disease") == 0
    assert dtree(broken, 1, "General", "General→Lung disease") == 0.5
    gone = losses(["H2→Flu"], ["H2"])
    assert gone[0, "H2→Flu"] == (3, 1) and dtree(gone, 2, "Hospital", "Hospital→Disease") == 0.75
    everything = losses(["H2→Flu"], ["*"])
    assert [everything[level, path] for level, path in everything] == [(3 - level, path.count("→")) for level, path in everything]


def test_an_image_is_the_label_itself_where_that_is_published() -> None:
    """Local recoding: one Flu was raised, the other was not; only the relation to the second hospital is left."""
    found = losses(["H1→Flu", "H2→Flu"], ["H1→Lung disease", "H2→Flu"])
    assert found[0, "H1→Flu"] == (0, 1) and found[0, "H2→Flu"] == (0, 0)
    assert found[1, "General→Lung disease"] == (0, 0)


def test_chains_have_all_their_relations() -> None:
    found = losses(["H1→Flu→Antibiotics"], ["H1→Antibiotics", "Flu"])
    assert found[0, "H1→Flu→Antibiotics"] == (0, 1) and found[0, "H1→Flu"] == (0, 1)


@pytest.mark.parametrize(("minsup", "rows", "least"), [(0.07, 100, 7), (0.01, 300, 3), (0.01, 301, 4), (0.5, 1, 1), (1e-9, 5, 1)])
def test_least_support(minsup: float, rows: int, least: int) -> None:
    assert least_support(minsup, rows) == least


@pytest.mark.parametrize("minsup", [0, -0.1, 1.5, float("nan")])
def test_least_support_of_no_share(minsup: float) -> None:
    with pytest.raises(ConfigurationError, match="no share of the records"):
        least_support(minsup, 10)
