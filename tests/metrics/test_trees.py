"""RPD, ML², dML² and MiRaCle on frames, against the oracle of the family tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated
from anon_spark.families.tree.kernels.trees import taken, trees_of
from anon_spark.families.tree.records import LABELS, PARENTS
from anon_spark.kernels.randomness import stream
from anon_spark.metrics.path_dependence import rpd
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, NodeType, TreeSchema
from anon_spark.primitives.rounds import Workspace
from jobs.reproductions.tree.frequent_subtrees import frequent_subtrees
from jobs.reproductions.tree.miracle import TREE_SCHEMA, miracle, require_groups
from jobs.reproductions.tree.miracle_kernel import arrays_of, clustered
from jobs.reproductions.tree.multi_level import multi_level_loss
from tests.oracle import tree_oracle as oracle
from tests.oracle.tree_example import DGH, FIGURE_4_PUBLISHED, random_trees
from tests.oracle.tree_oracle import Tree, tree

SCHEMA = f"{LINK} long, paths array<array<struct<class:string,value:string>>>"
FOREST = Forest.of(
    TreeSchema(tuple(NodeType(name, name) for name in DGH.tables)),
    {name: Hierarchy.from_levels([(*row[:-1], "*") for row in rows]) for name, rows in DGH.tables.items()},
)


def frame_of(spark: SparkSession, records: Sequence[Tree | None], first: int = 0) -> DataFrame:
    """The records' paths from root to leaf; LINK counts on from `first`."""
    rows = [
        (
            first + place,
            None
            if one is None
            else [[(DGH.type_of.get(label, label), label) for label in path] for path in oracle.leaf_paths(one)],
        )
        for place, one in enumerate(records)
    ]
    return spark.createDataFrame(rows, SCHEMA)


def test_rpd(spark: SparkSession) -> None:
    published = frame_of(spark, FIGURE_4_PUBLISHED)
    for mode, printed in (("global", 0.019033), ("class", 0.071181)):
        found = rpd(published.repartition(3), FOREST, mode)  # type: ignore[arg-type]
        assert found == pytest.approx(float(oracle.rpd(FIGURE_4_PUBLISHED, DGH, mode)), rel=1e-11)
        assert found == pytest.approx(printed, abs=5e-7)
    others = frame_of(spark, [frozenset(), None, tree("*"), tree("H1")]).withColumnRenamed("paths", "a b")
    assert rpd(others, FOREST, column="a b") == pytest.approx((3 + 1 / 4) / 4, rel=1e-11)


def test_rpd_of_what_is_no_release(spark: SparkSession) -> None:
    records = frame_of(spark, [tree("H1→Flu, H2→Plague")])
    with pytest.raises(DataError, match="paths: 1 labels are of no hierarchy") as error:
        rpd(records, FOREST)
    assert "Plague" not in str(error.value)
    with pytest.raises(DataError, match="without rows"):
        rpd(records.limit(0), FOREST)
    with pytest.raises(ConfigurationError, match="not found: path"):
        rpd(records, FOREST, column="path")


@pytest.mark.long
def test_example_2_and_records_that_are_missing(spark: SparkSession, workdir: Path) -> None:
    """Three subtrees on the leaf level, two of them preserved. The third record is not published: it has lost everything."""
    records = [tree("H2→Flu→Antibiotics"), tree("H2→Flu→Antibiotics"), tree("Rea→Diarrhea")]
    published = [tree("H2→Flu→Medicine")] * 2
    original, release = frame_of(spark, records).repartition(3), frame_of(spark, published)
    with Workspace(spark, str(workdir)) as workspace:
        found = multi_level_loss(original, release, FOREST, minsup=0.3, workspace=workspace)
    # on each level a chain of three and, of the third record, one of two; on the top level that is part of the first
    assert (found.frequent, found.preserved, found.capped) == ((5, 5, 3), (2, 3, 3), False)
    assert found.ml2 == pytest.approx(1 - 8 / 13, rel=1e-12)
    # one label of three raised by one level of three; what is gone: 1/2 for a node, 1 for a chain, in one of three at the top
    assert found.dml2 == pytest.approx((1 / 18 + 2 * (1 / 2 + 1) + (1 / 2 + 1) / 3) / 13, rel=1e-12)


def test_what_cannot_be_linked(spark: SparkSession) -> None:
    records = frame_of(spark, [tree("H1→Flu"), tree("H2")])
    published = records.unionByName(frame_of(spark, [tree("H1"), tree("H2")], first=1))  # 0, 1, 1, 2
    with pytest.raises(DataError, match="2 published rows are of no record, or of one that has another"):
        multi_level_loss(records, published, FOREST)
    with pytest.raises(ConfigurationError, match="published table has no column _link"):
        multi_level_loss(records, records.drop(LINK), FOREST)


@pytest.mark.long
def test_frequent_subtrees(spark: SparkSession) -> None:
    records = random_trees(Random(2), DGH, 30, paths=2)
    found = frequent_subtrees(frame_of(spark, records).repartition(3), FOREST, minsup=0.1, max_nodes=2)
    expected = {
        (level, part): support
        for level in range(DGH.height)
        for part, support in oracle.frequent_subtrees(
            [oracle.project_level(one, level, DGH) for one in records], 0.1, 2
        ).items()
    }
    assert found.named(FOREST) == expected and found.capped


@pytest.mark.long
def test_miracle(spark: SparkSession, workdir: Path) -> None:
    """However the rows are spread, the clusters are those of runs in the order of signatures."""
    records = random_trees(Random(4), DGH, 90)
    trees = trees_of([[tuple(map(FOREST.number, path)) for path in one] for one in records])
    ends = zip(trees.offsets[:-1].tolist(), trees.offsets[1:].tolist(), strict=True)
    rows = [
        (3 * place, trees.labels[begin:end].tolist(), trees.parents[begin:end].tolist())
        for place, (begin, end) in enumerate(ends)
    ]
    table = spark.createDataFrame(rows, TREE_SCHEMA)
    with Workspace(spark, str(workdir)) as workspace:
        recoded = miracle(table.repartition(3), FOREST, 5, "key", workspace, partition=20)
        found = {row[LINK]: (row[LABELS], row[PARENTS]) for row in recoded.collect()}
        with pytest.raises(DataError, match="k = 91 is more than the 90 records"):
            miracle(table, FOREST, 91, "key", workspace)
        with pytest.raises(ConfigurationError, match="one cluster or more, and a share"):
            miracle(table, FOREST, 5, "key", workspace, climit=0)
        with pytest.raises(ConfigurationError, match="one cluster or more, and a share"):
            miracle(table, FOREST, 5, "key", workspace, threshold=1.1)
    by_signature = sorted(range(90), key=lambda place: (signature(records[place]), place))
    expected = {}
    for part in range(4):
        run = np.array(sorted(place for at, place in enumerate(by_signature) if at * 4 // 90 == part))
        order = np.argsort(stream("key", "miracle", part, run.size), kind="stable")
        number, merged = clustered(taken(trees, run), order, arrays_of(FOREST), 5, 150, 0.1)
        for place, home in zip(run.tolist(), number.tolist(), strict=True):
            nodes = slice(merged.offsets[home], merged.offsets[home + 1])
            expected[3 * place] = merged.labels[nodes].tolist(), merged.parents[nodes].tolist()
    assert found == expected
    groups = Counter((tuple(labels), tuple(parents)) for labels, parents in found.values())
    assert min(groups.values()) >= 5 and len(groups) > 3
    for link, labels, _ in rows:  # nothing but ancestors of own labels
        assert all(any(label in chain(own) for own in labels) for label in found[link][0])


def signature(one: Tree) -> list[int]:
    """Nodes of each type; then, type by type, the groups right below its root, as numbers."""
    labels = [path[-1] for path in one]
    of_type = {name: [label for label in labels if DGH.type_of[label] == name] for name in DGH.tables}
    groups = [sorted(FOREST.number(DGH.parent[label]) for label in of) for of in of_type.values()]
    return [*map(len, of_type.values()), *(number for of in groups for number in of)]


def chain(node: int) -> list[int]:
    return [node, *(chain(int(FOREST.parents[node])) if FOREST.parents[node] >= 0 else [])]


def test_groups_are_counted_again(spark: SparkSession) -> None:
    """Equal labels below other parents are another tree."""
    rows = [(0, [1, 2, 3], [-1, 0, 0]), (1, [1, 2, 3], [-1, 0, 0]), (2, [1, 2, 3], [-1, 0, 1])]
    recoded = spark.createDataFrame(rows, TREE_SCHEMA)
    require_groups(recoded.where(F.col(LINK) < 2), 2)
    with pytest.raises(GuaranteeViolated, match="1 groups of equal trees have fewer than k = 2"):
        require_groups(recoded, 2)
