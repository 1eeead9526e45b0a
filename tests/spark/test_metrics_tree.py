"""RPD, ML², dML² and MiRaCle on frames, against the oracle of the family tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated
from anon_spark.families.tree.miracle import TREE_SCHEMA, miracle, require_groups
from anon_spark.families.tree.records import LABELS, PARENTS
from anon_spark.kernels.trees import trees_of
from anon_spark.metrics.frequent_subtrees import frequent_subtrees
from anon_spark.metrics.multi_level import multi_level_loss
from anon_spark.metrics.path_dependence import rpd
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, TreeClass, TreeSchema
from anon_spark.primitives.rounds import Workspace
from tests.oracle import tree_oracle as oracle
from tests.oracle.tree_example import DGH, FIGURE_4, FIGURE_4_PUBLISHED, RECORDS, random_trees
from tests.oracle.tree_oracle import Tree, tree

SCHEMA = f"{LINK} long, paths array<array<struct<class:string,value:string>>>"
FOREST = Forest.of(
    TreeSchema(tuple(TreeClass(name, name) for name in DGH.tables)),
    {name: Hierarchy.from_levels([(*row[:-1], "*") for row in rows]) for name, rows in DGH.tables.items()},
)


def frame_of(spark: SparkSession, records: Sequence[Tree | None], first: int = 0) -> DataFrame:
    """The records' paths from root to leaf; LINK counts on from `first`."""
    rows = [
        (
            first + place,
            None
            if one is None
            else [[(DGH.class_of.get(label, label), label) for label in path] for path in oracle.leaf_paths(one)],
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


def test_losses_of_figure_4(spark: SparkSession, workdir: str) -> None:
    with Workspace(spark, str(workdir)) as workspace:
        original, published = frame_of(spark, RECORDS), frame_of(spark, FIGURE_4_PUBLISHED)
        found = multi_level_loss(original, published.repartition(2), FOREST, 0.5, 4, workspace=workspace)
    assert found.ml2 == pytest.approx(float(oracle.ml2(RECORDS, FIGURE_4_PUBLISHED, DGH, 0.5, 4)), rel=1e-12)
    assert found.dml2 == pytest.approx(float(oracle.dml2(RECORDS, FIGURE_4_PUBLISHED, FIGURE_4, DGH, 0.5, 4)), rel=1e-12)
    before, after = (oracle.frequent_by_level(of, DGH, 0.5, 4) for of in (RECORDS, FIGURE_4_PUBLISHED))
    assert found.frequent == tuple(map(len, before)) and found.capped
    assert found.preserved == tuple(len(set(one) & set(other)) for one, other in zip(before, after, strict=True))
    assert 0 < found.dml2 < found.ml2 < 1


def test_example_2_and_records_that_are_missing(spark: SparkSession) -> None:
    """Three subtrees on the leaf level, two of them preserved. The third record is not published: it has lost everything."""
    records = [tree("H2→Flu→Antibiotics"), tree("H2→Flu→Antibiotics"), tree("Rea→Diarrhea")]
    published = [tree("H2→Flu→Medicine")] * 2
    found = multi_level_loss(frame_of(spark, records), frame_of(spark, published), FOREST, minsup=0.3)
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


def test_miracle(spark: SparkSession, workdir: str) -> None:
    records = random_trees(Random(4), DGH, 90)
    trees = trees_of([[tuple(map(FOREST.number, path)) for path in one] for one in records])
    ends = zip(trees.offsets[:-1].tolist(), trees.offsets[1:].tolist(), strict=True)
    rows = [
        (3 * place, trees.labels[begin:end].tolist(), trees.parents[begin:end].tolist())
        for place, (begin, end) in enumerate(ends)
    ]
    table = spark.createDataFrame(rows, TREE_SCHEMA)
    with Workspace(spark, str(workdir)) as workspace:
        first, again = (
            {row[LINK]: (tuple(row[LABELS]), tuple(row[PARENTS])) for row in found.collect()}
            for found in (
                miracle(table.repartition(parts), FOREST, 5, "key", workspace, partition=20) for parts in (1, 3)
            )
        )
        with pytest.raises(DataError, match="k = 91 is more than the 90 records"):
            miracle(table, FOREST, 91, "key", workspace)
        for wrong in ({"climit": 0}, {"threshold": 1.1}):
            with pytest.raises(ConfigurationError, match="one cluster or more, and a share"):
                miracle(table, FOREST, 5, "key", workspace, **wrong)  # type: ignore[arg-type]
    assert first == again and sorted(first) == [row[0] for row in rows]
    assert min(Counter(first.values()).values()) >= 5 and len(set(first.values())) > 3
    for link, labels, _ in rows:  # nothing but ancestors of own labels
        assert all(any(label in chain(own) for own in labels) for label in first[link][0])


def chain(node: int) -> list[int]:
    return [node, *(chain(int(FOREST.parents[node])) if FOREST.parents[node] >= 0 else [])]


def test_groups_are_counted_again(spark: SparkSession) -> None:
    """Equal labels below other parents are another tree."""
    rows = [(0, [1, 2, 3], [-1, 0, 0]), (1, [1, 2, 3], [-1, 0, 0]), (2, [1, 2, 3], [-1, 0, 1])]
    recoded = spark.createDataFrame(rows, TREE_SCHEMA)
    require_groups(recoded.where(F.col(LINK) < 2), 2)
    with pytest.raises(GuaranteeViolated, match="1 groups of equal trees have fewer than k = 2"):
        require_groups(recoded, 2)
