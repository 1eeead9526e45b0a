"""The tree and the cut over many tasks: the parts and numbers of the cut in one piece, however the tuples are spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anon_spark.columns import ROWS
from anon_spark.errors import LimitExceeded
from anon_spark.families.mst import joins, shares
from anon_spark.families.mst.blocks import KEPT, cut_in_blocks, number_tuples
from anon_spark.families.mst.forests import lifted
from anon_spark.families.mst.frames import HEAD, SHARE, TID
from anon_spark.families.mst.partition import Settings
from anon_spark.families.mst.shares import whole_shares
from anon_spark.io.causes import known_cause
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.classes.arrays import ladder_of
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.rounds import Workspace
from tests.families.mst.cuts import Cut, Tuples, cut_in_one_piece, tuples_of
from tests.families.mst.tables import FLAT, PAIRS, Case, case_of
from tests.oracle.mst_oracle import Row


@pytest.fixture
def workspace(spark: SparkSession) -> Iterator[Workspace]:
    with Workspace(spark) as place:
        yield place


def framed(spark: SparkSession, tuples: Tuples, partitions: int) -> DataFrame:
    """The tuples in disorder."""
    order = np.random.default_rng(partitions).permutation(tuples.rows.size)
    columns: dict[str, Any] = dict(zip(code_columns(len(tuples.codes)), tuples.codes[:, order], strict=True))
    columns[ROWS] = tuples.rows[order]
    return spark.createDataFrame(pa.table(columns)).repartition(partitions)


def cut_by_spark(numbered: DataFrame, case: Case, options: Settings, workspace: Workspace) -> Cut:
    parts, statistics = cut_in_blocks(numbered, tuples_of(case).rows.size, case.hierarchies, options, workspace)
    assert parts.columns == [*numbered.columns, HEAD, KEPT]
    found = parts.orderBy(TID).toArrow()
    names = np.array(found.column(TID))
    assert (np.diff(names) > 0).all()
    codes = np.array([found.column(name) for name in code_columns(len(case.hierarchies))])
    tuples = tuples_of(case)
    assert (codes == tuples.codes).all() and (np.array(found.column(ROWS)) == tuples.rows).all()
    return Cut(
        np.searchsorted(names, np.array(found.column(HEAD))).tolist(), np.array(found.column(KEPT)).tolist(), statistics
    )


def check(
    spark: SparkSession, workspace: Workspace, case: Case, zero_edges: Any = "include", partitions: int = 2
) -> Cut:
    options, tuples = Settings(k=case.k, zero_edges=zero_edges), tuples_of(case)
    whole = cut_in_one_piece(tuples, options)
    numbered = number_tuples(framed(spark, tuples, partitions), case.hierarchies, workspace)
    assert cut_by_spark(numbered, case, options, workspace) == whole
    return whole


def scattered() -> Case:
    """A crowd of one block; tuples a whole hierarchy or more from it and from each other, some of them near enough to
    be a part together."""
    random = Random(5)
    hierarchies = [Hierarchy.from_levels(PAIRS), Hierarchy.intervals(0, 39, [5, 20]), Hierarchy.from_levels(FLAT)]
    rows: list[Row] = [(f"a{random.randint(1, 4)}", random.choice([0, 1, 7]), "a") for _ in range(24)]
    rows += [(f"{group}1", 25, name) for group, name in ("bb", "cb", "db", "bc", "cc", "bd")]
    rows += [("d2", 3, "e"), ("d1", 38, "f"), ("c4", 39, "f"), ("c4", 31, "f")]
    return Case(hierarchies, rows, 4)


@pytest.mark.long
def test_parts_from_many_tasks(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two shares, batches of few nodes up to the last outlier."""
    monkeypatch.setattr(shares, "SHARE_TUPLES", 12)
    monkeypatch.setattr(joins, "BATCH_NODES", 6)
    monkeypatch.setattr(joins, "TAIL", 0)
    whole = check(spark, workspace, scattered(), partitions=7)
    assert 0 < sum(whole.kept) < len(whole.kept)


def test_outliers_are_joined_by_distances(spark: SparkSession, workspace: Workspace) -> None:
    """The tail, with limits as they are."""
    case = scattered()
    whole = check(spark, workspace, case, "exclude", partitions=1)
    blocks = lifted(tuples_of(case).codes, ladder_of(case.hierarchies), (1, 2, 0)).T.tolist()
    spans = {
        head: len({tuple(block) for block, of in zip(blocks, whole.heads, strict=True) if of == head})
        for head in whole.heads
    }
    assert max(spans.values()) > 2 and Counter(spans.values())[1] > 2  # parts over several blocks, and parts inside one


@pytest.mark.long
def test_one_block_and_what_no_task_could_hold(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"a{at}", f"b{other}") for at in range(1, 5) for other in range(1, 4) for _ in range(at)]
    case, options = case_of([PAIRS, PAIRS], rows, 2), Settings(k=2)
    tuples = tuples_of(case)
    numbered = number_tuples(framed(spark, tuples, 2), case.hierarchies, workspace)
    assert cut_by_spark(numbered, case, options, workspace) == cut_in_one_piece(tuples, options)
    with monkeypatch.context() as small:
        small.setattr(shares, "SHARE_MAX", 10)
        with pytest.raises(PySparkException) as raised:
            cut_in_blocks(numbered, tuples_of(case).rows.size, case.hierarchies, options, workspace)
        cause = known_cause(raised.value)  # what a run says of it
        assert isinstance(cause, LimitExceeded)
        assert "More than 10 tuples agree one level below the root of every hierarchy, and no more fit" in str(cause)
    monkeypatch.setattr(joins, "COMPONENTS_MAX", 0)
    with pytest.raises(LimitExceeded, match="1 groups of tuples are a whole hierarchy or more apart, at most 0 fit"):
        cut_in_blocks(numbered, tuples_of(case).rows.size, case.hierarchies, options, workspace)


@given(st.lists(st.integers(1, 6), max_size=6), st.lists(st.integers(0, 20), max_size=5))
def test_shares_are_whole_however_they_are_cut_into_batches(sizes: list[int], cuts: list[int]) -> None:
    rows = [share for share, size in enumerate(sizes) for _ in range(size)]
    table = pa.table({SHARE: pa.array(rows, pa.int64()), TID: pa.array(range(len(rows)), pa.int64())})
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = [batch for start, stop in pairwise(ends) for batch in table.slice(start, stop - start).to_batches()]
    most = max(sizes, default=0)

    found = list(whole_shares(batches, most, "are alike"))

    assert [share.column(SHARE).to_pylist() for share in found] == [[share] * size for share, size in enumerate(sizes)]
    assert [tid for share in found for tid in share.column(TID).to_pylist()] == list(range(len(rows)))
    if sizes:
        with pytest.raises(LimitExceeded, match=f"More than {most - 1} tuples are alike"):
            list(whole_shares(batches, most - 1, "are alike"))
