"""Distributions for a report: what is named, what is joined, what is rounded, and crowds."""

from __future__ import annotations

import numpy as np
import pytest

from anon_spark.model.distributions import MOST_LABELS, crowds_of, label_distribution, of_counts, rows_by_doublings
from anon_spark.model.facts import CrowdRange, LabelCount, SizeRange
from anon_spark.model.hierarchy import Hierarchy

TOWNS = Hierarchy.from_levels(
    [("Aldorf", "North", "*"), ("Bexley", "North", "*"), ("Carden", "South", "*"), ("Dunmore", "South", "*")]
)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_labels_of_one_level_are_counted_before_and_after() -> None:
    found = label_distribution("town", TOWNS, ints(30, 10, 20, 0), [ints(0, 0, 0, 0), ints(40, 20), ints(0)], 5)

    assert found.labels == (LabelCount("North", 40, 40), LabelCount("South", 20, 20))
    assert (found.rows_before, found.rows_after, found.others, found.wider, found.rounded_to) == (60, 60, None, 0, 1)
    assert found.example == ("Aldorf", "North")  # the most frequent value of the most frequent label


def test_rows_with_a_wider_label_are_told_apart() -> None:
    found = label_distribution("town", TOWNS, ints(30, 10, 20, 0), [ints(20, 0, 0, 0), ints(10, 20), ints(10)], 5)

    assert found.labels == (LabelCount("North", 40, 30), LabelCount("South", 20, 20)) and found.wider == 10


def test_a_label_of_fewer_than_k_rows_is_never_named_and_counts_are_rounded() -> None:
    found = label_distribution("town", TOWNS, ints(33, 12, 2, 1), [ints(31, 12, 0, 0), ints(0, 0), ints(0)], 5)

    assert found.labels == (LabelCount("Aldorf", 35, 31), LabelCount("Bexley", 10, 12)) and found.rounded_to == 5
    assert found.others == LabelCount("others", 5, 0)  # 3 rows: no difference of two counts tells of fewer than k
    assert found.example is None  # values are published as they were


def test_rows_that_were_not_counted_are_others() -> None:
    shown = [ints(30, 0, 0, 0), ints(0, 0), ints(0)]
    found = label_distribution("town", TOWNS, ints(30, 10, 20, 0), shown, 5, published=60)
    assert found.rows_after == 60 and found.others == LabelCount("others", 30, 30) and found.wider == 0


def test_no_example_of_a_rare_value() -> None:
    shown = [ints(0, 0, 0, 0), ints(12, 0), ints(0)]
    assert label_distribution("town", TOWNS, ints(4, 4, 0, 0), shown, 5).example is None
    assert label_distribution("town", TOWNS, ints(9, 9, 0, 0), shown, 5, often=ints(1, 1, 0, 0)).example is None


def test_a_column_that_is_lost_has_one_label() -> None:
    found = label_distribution("town", TOWNS, ints(30, 10, 20, 0), [ints(0, 0, 0, 0), ints(0, 0), ints(60)], 5)
    assert found.labels == (LabelCount("*", 60, 60),) and found.example == ("Aldorf", "*")


def test_many_values_are_cut_to_the_most_frequent() -> None:
    counted = [LabelCount(str(at), 100 + at, 100 + at) for at in range(40)]
    rows = sum(count.after for count in counted)
    found = of_counts("code", "kept", counted, 10, rows, rows)
    assert len(found.labels) == MOST_LABELS and found.labels[-1].label == "39" and found.labels[0].label == "16"
    assert found.others is not None and found.others.after == sum(100 + at for at in range(16))
    (short,) = of_counts("text", "kept", [LabelCount("x" * 200, 50, 50)], 10, 50, 50).labels
    assert short.label is not None and len(short.label) == 60


@pytest.mark.parametrize("k", [2, 5, 10])
def test_crowds_before_and_after_have_the_same_ranges(k: int) -> None:
    sizes, rows = ints(1, 1, 2, k, 3 * k, 50 * k), ints(1, 1, 2, k, 3 * k, 50 * k)
    before, alone = rows_by_doublings(sizes, rows, k)

    found = crowds_of(k, before, alone, [SizeRange(k, 2 * k - 1, 2, 2 * k), SizeRange(64 * k, 128 * k - 1, 1, 98 * k)])

    assert found[0] == CrowdRange(1, 1, 2 / rows.sum(), 0.0)
    assert [crowd.least for crowd in found if crowd.least >= k] == [k << at for at in range(6)] and found[-1].most is None
    assert sum(crowd.before for crowd in found) == pytest.approx(1) and sum(crowd.after for crowd in found) == pytest.approx(1)
    assert found[-1].after == pytest.approx(0.98) and all(crowd.after == 0 for crowd in found if crowd.least < k)


def test_crowds_of_a_release_that_a_population_protects() -> None:
    before, alone = rows_by_doublings(ints(1, 3), ints(1, 3), 1)
    found = crowds_of(1, before, alone, [SizeRange(1, 1, 2, 2), SizeRange(2, 3, 1, 2)])
    assert [(crowd.least, crowd.before, crowd.after) for crowd in found] == [(1, 0.25, 0.5), (2, 0.75, 0.5)]
