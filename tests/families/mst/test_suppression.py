"""Tuples that are left out after refinement: within the budget, k and l stay, the loss falls; through a job and its audit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from anon_spark import Hierarchy, MstAnonymizer
from anon_spark.cli import main
from anon_spark.columns import ROWS
from anon_spark.families.mst.frames import VALUES, leaf_columns, level_columns
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.families.mst.refinement import refined_levels
from anon_spark.families.mst.suppression import GROUP, STEP, levels_without, steps_of, within_budget
from anon_spark.kernels.classes import Codes
from tests.families.mst.tables import FLAT, PAIRS, Arrays, Case, arrays_of, case_of, cases
from tests.families.mst.test_refinement import check_kept, loss, refining, sensitive_of, values_of
from tests.town import Town, people

pytestmark = pytest.mark.compiles


def block(arrays: Arrays, level: Codes) -> pa.Table:
    """The tuples of a block as a task sees them."""
    count, values = arrays.codes.shape[0], values_of(arrays)
    lists = [
        pa.array([[value for value in one if value >= 0] for one in values[:, at].tolist()], pa.list_(pa.int32()))
        for at in range(values.shape[1])
    ]
    columns = [*(pa.array(codes) for codes in arrays.codes), *(pa.array(of.astype(np.int32)) for of in level.T)]
    names = [*leaf_columns(count), *level_columns(count), ROWS, *(f"{VALUES}{at}" for at in range(len(lists)))]
    return pa.Table.from_arrays([*columns, pa.array(arrays.rows), *lists], names=names)


def left_after(case: Case, arrays: Arrays, level: Codes, budget: int) -> tuple[Codes, NDArray[np.bool_]]:
    """Levels and what stays, as the family does it for one block."""
    asked, table = refining(case, arrays), block(arrays, level)
    step, group = steps_of(asked, table)
    rows: dict[int, int] = {}
    for at in np.flatnonzero(step):
        rows[int(group[at])] = rows.get(int(group[at]), 0) + int(arrays.rows[at])
    chosen = within_budget(np.array(list(rows), dtype=np.int64), np.array(list(rows.values()), dtype=np.int64), budget)
    marked = table.append_column(STEP, pa.array(step)).append_column(GROUP, pa.array(group))
    return levels_without(asked, marked, chosen)


def charged(case: Case, arrays: Arrays, level: Codes, stays: NDArray[np.bool_]) -> Fraction:
    """The loss of what stays, and 1 per attribute of every row that does not."""
    rest = Arrays(arrays.tuples, arrays.codes[:, stays], arrays.rows[stays], None)
    return loss(case, rest, level[stays]) + int(arrays.rows[~stays].sum()) * len(case.hierarchies)


def start(case: Case, arrays: Arrays) -> Codes:
    """Classes that satisfy k and l."""
    parts = partition(arrays.codes, arrays.rows, case.hierarchies, Settings(case.k))
    level = parts.levels[parts.class_of]
    return refined_levels(refining(case, arrays, 0), arrays.codes.T, level, arrays.rows, sensitive_of(arrays))


@settings(max_examples=40)
@given(st.one_of(cases(most_rows=40), cases(most_rows=40, diverse=True)), st.integers(0, 40))
def test_the_budget_k_and_l_are_kept_and_the_loss_falls(case: Case, budget: int) -> None:
    arrays = arrays_of(case)
    before = start(case, arrays)
    after, stays = left_after(case, arrays, before, budget)
    assert arrays.rows[~stays].sum() <= budget
    values = None if arrays.values is None else arrays.values[stays]
    check_kept(case, Arrays(arrays.tuples, arrays.codes[:, stays], arrays.rows[stays], values), after[stays])
    everything = np.ones(stays.size, dtype=np.bool_)
    whole, less = charged(case, arrays, before, everything), charged(case, arrays, after, stays)
    assert less <= whole and (less < whole) == (not stays.all())
    if budget == 0:
        assert stays.all() and (after == before).all()


@settings(max_examples=40)
@given(cases(most_rows=30))
def test_nothing_more_could_go_by_one_level_of_one_attribute(case: Case) -> None:
    """Brute force over the steps by their definition, after all that the budget could allow."""
    arrays = arrays_of(case)
    level, stays = left_after(case, arrays, start(case, arrays), len(case.rows))
    classes: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for at in np.flatnonzero(stays).tolist():
        nodes = zip(case.hierarchies, level[at].tolist(), arrays.codes[:, at].tolist(), strict=True)
        classes.setdefault(tuple((up, int(of.codes[up, leaf])) for of, up, leaf in nodes), []).append(at)
    now = charged(case, arrays, level, stays)
    # what stays of two classes may show the same labels: they were told apart when the steps were weighed
    for label, members in classes.items():
        for attribute, (up, _) in enumerate(label):
            if up == 0 or arrays.rows[members].sum() >= 2 * case.k:
                continue
            codes = case.hierarchies[attribute].codes[up - 1, arrays.codes[attribute, members]]
            for child in set(codes.tolist()):
                rest = [at for at, code in zip(members, codes.tolist(), strict=True) if code == child]
                if arrays.rows[rest].sum() >= case.k:
                    fewer = stays.copy()
                    fewer[[at for at in members if at not in rest]] = False
                    lower = level.copy()
                    for other, hierarchy in enumerate(case.hierarchies):
                        leaves = arrays.codes[other, rest]
                        lower[rest, other] = next(
                            at for at in range(hierarchy.height + 1) if len(set(hierarchy.codes[at, leaves].tolist())) == 1
                        )
                    assert charged(case, arrays, lower, fewer) >= now


def test_one_odd_row_goes_where_the_others_gain_more() -> None:
    case = case_of([FLAT], [("a",)] * 5 + [("b",)], 4)
    arrays = arrays_of(case)
    level = np.ones((2, 1), dtype=np.int32)
    assert left_after(case, arrays, level, 0)[1].all()
    after, stays = left_after(case, arrays, level, 1)
    assert stays.tolist() == [True, False] and after[0, 0] == 0


def test_a_later_step_is_not_taken_without_the_ones_before_it() -> None:
    case = case_of([PAIRS], [("a1",)] * 20 + [("a2",)] + [("b1",)] * 3, 2)
    arrays = arrays_of(case)
    level = np.full((3, 1), 2, dtype=np.int32)
    stays = {budget: left_after(case, arrays, level, budget)[1].tolist() for budget in (1, 3, 4)}
    assert stays == {1: [True, True, True], 3: [True, True, False], 4: [True, False, False]}


def test_groups_are_taken_by_gain_and_one_that_is_too_large_is_passed_over() -> None:
    groups, rows = np.array([7, 9, 8]), np.array([2, 3, 5])
    taken = {budget: within_budget(groups, rows, budget).tolist() for budget in (0, 2, 3, 5, 8, 10)}
    assert taken == {0: [], 2: [7], 3: [9], 5: [9, 7], 8: [9, 8], 10: [9, 8, 7]}


@pytest.mark.long
@pytest.mark.spark
def test_the_same_rows_stay_for_any_partitions(spark: SparkSession) -> None:
    hierarchies = {
        "letter": Hierarchy.from_levels([(letter, "*") for letter in "abcdefgh"]),
        "age": Hierarchy.intervals(0, 39, [5, 20]),
    }
    rows = [("abcdefgh"[at % 7], at % 20) for at in range(280)] + [("h", 39)]
    table = spark.createDataFrame(pa.table({"letter": [one for one, _ in rows], "age": [str(age) for _, age in rows]}))
    shown = []
    for partitions in (1, 2, 7):
        recoding = MstAnonymizer(k=2, quasi_identifiers=hierarchies, suppression=0.01).fit(table.repartition(partitions))
        shown.append(sorted(tuple(row) for row in recoding.transform(table).collect()))
        assert recoding.left_out()["suppressed"] == len(rows) - len(shown[-1]) == 1
        assert len(recoding.classes) == 140  # the class of the one that was left out is published without it
        recoding.close()
    assert shown[0] == shown[1] == shown[2] and ("h", "39") not in shown[0]


@pytest.mark.long
@pytest.mark.spark
def test_a_job_counts_what_it_left_out_and_its_release_is_audited_later(spark: SparkSession, tmp_path: Path) -> None:
    table = people(201, age=[20 + 4 * (at // 20) for at in range(200)] + [59], city=["Aldorf"] * 200 + ["Dunmore"],
                   sex=["f"] * 200 + ["m"], disease=["asthma", "none"] * 100 + ["gout"])  # fmt: skip
    town = Town.founded(spark, tmp_path, table)
    asked = {"family": "mst", "privacy": {"k": 20, "l": 2, "suppression": 0.01}}
    report = town.run(**asked)
    assert report.status == "published" and report.accounting["suppressed"] == 1
    assert town.release.count() == 200 and "1 rows suppressed." in "\n".join(report.facts.summary())
    assert town.release.where("disease = 'gout'").isEmpty()
    assert main(["audit", town.job_file(**asked)]) == 0
    # more rows are missing than the budget allows
    town.release.limit(180).write.format("delta").mode("overwrite").save(str(tmp_path / "release"))
    assert main(["audit", town.job_file(**asked)]) == 3
