"""Crowds of whole records against brute force: with relations that were disassociated, and with sensitive values hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark import TreeSchema
from anon_spark.families.tree.crowds import record_crowds_to_be
from anon_spark.families.tree.kernels.trees import paths_of
from anon_spark.families.tree.publication import Recode
from anon_spark.families.tree.records import Roles, read_records, source_of, trees_in
from anon_spark.model.distributions import crowds_between, rows_by_doublings
from anon_spark.primitives.rounds import Workspace
from tests.families.tree.test_family import HIERARCHIES, SCHEMA, TREES, TYPE, nested
from tests.oracle.tree_oracle import Tree

CUTS = {
    "fine": "Diarrhea, Gastritis, H1, H2, Lung disease, Maternity, Medicine, Surgery",
    "coarse": "Hospital, Disease, Treatment",
}


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    """Forty patients, the first ten of them eight times."""
    trees = [tree for number, tree in enumerate(TREES) for _ in range(8 if number < 10 else 1)]
    return spark.createDataFrame([(f"p{number}", nested(tree)) for number, tree in enumerate(trees)], TYPE)


def sizes(records: Sequence[Tree], hidden: set[str], k: int) -> tuple[dict[int, int], int]:
    """How many records are the same, hidden labels put together."""
    masked = [frozenset(tuple("?" if label in hidden else label for label in path) for path in record) for record in records]
    counts = np.array(list(Counter(masked).values()), dtype=np.int64)
    return rows_by_doublings(counts, counts, k)


@pytest.mark.parametrize("sensitive", [False, True])
@pytest.mark.parametrize("cut", CUTS)
def test_crowds_are_those_of_equal_records(spark: SparkSession, table: DataFrame, sensitive: bool, cut: str) -> None:
    k, types = 4, list(SCHEMA.node_types)
    schema = TreeSchema((*types[:2], replace(types[2], sensitive=sensitive)))
    roles = Roles(schema, HIERARCHIES)
    with Workspace(spark) as workspace:
        records = read_records(source_of(table.repartition(3), roles, workspace), roles, "value", "error", 64, workspace)
        forest = records.forest
        treatments = {label for label, hidden in zip(forest.labels, forest.is_sensitive.tolist(), strict=True) if hidden}
        labels = set(CUTS[cut].split(", ")) - treatments
        pairs = [(forest.number("H1"), forest.number("Lung disease"))] if cut == "fine" else []
        recode = Recode.of(forest, forest.cut_of(labels), pairs)
        found = record_crowds_to_be(records, recode, k).get()
        trees = trees_in(records.frame.toArrow())

    def records_of(of: object) -> list[Tree]:
        paths = [paths_of(of, at) for at in range(trees.records)]  # type: ignore[arg-type]
        named = [[tuple(forest.labels[node] for node in path) for path in record] for record in paths]
        return [frozenset(path[:end] for path in record for end in range(1, len(path) + 1)) for record in named]

    before, after = (sizes(records_of(of), treatments, k) for of in (trees, recode(trees)))
    assert found == crowds_between(k, before, after) and before != after
    if cut == "fine":
        assert found[0].after > 0  # nothing is promised of whole records
