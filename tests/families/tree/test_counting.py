"""Questions about few records: what is counted without recoding them is what they would show when recoded."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.families.tree.counting import Asked, Indexed, Promise, Slots, counted
from anon_spark.families.tree.kernels import counting as kernel
from anon_spark.families.tree.kernels.pairs import DENSE_PAIRS
from anon_spark.families.tree.kernels.trees import NONE, renamed, trees_of
from anon_spark.kernels.classes import Codes, Ints

pytestmark = pytest.mark.compiles

LABELS = 9  # 6 and 7 are groups of [0, 1] and [2, 3]
TOP = 8
NOTHING: Ints = np.zeros(0, dtype=np.int64)


def slots_of(image: Codes) -> Slots:
    nodes = np.unique(image[image != NONE]).astype(np.int32)
    slots: Codes = np.full(LABELS, NONE, dtype=np.int32)
    slots[nodes] = np.arange(nodes.size, dtype=np.int32)
    return Slots(image, nodes, slots, np.zeros(nodes.size, dtype=np.int32), np.zeros((0, LABELS), dtype=np.bool_))


def unchanged() -> Codes:
    image: Codes = np.arange(LABELS, dtype=np.int32)
    image[TOP] = NONE
    return image


def question(image: Codes, focus: np.ndarray, sizes: int) -> Asked:
    return Asked(slots_of(image), TOP, np.zeros((0, 2), dtype=np.int32), sizes, focus, (NOTHING,) * 3, None)


def promise(labels: int = LABELS) -> Promise:
    return Promise(2, 0, 1, np.zeros(labels, dtype=np.int32))


@given(st.integers(0, 2**32).map(Random), st.sampled_from([1, 2, 3]), st.booleans())
def test_what_is_counted_is_what_recoded_records_hold(rng: Random, sizes: int, focused: bool) -> None:
    paths = [(0,), (1,), (0, 2), (1, 3), (0, 2, 4), (1, 2, 5), (3, 4), (5,)]
    trees = trees_of([rng.sample(paths, rng.randint(0, 4)) for _ in range(rng.randint(1, 12))])
    image = unchanged()
    for group, values in ((6, (0, 1)), (7, (2, 3))):
        if rng.random() < 0.6:
            image[list(values)] = group
            image[group] = group
    slots = slots_of(image)
    focus = np.array([focused and rng.random() < 0.4 for _ in range(slots.count if focused else 0)], dtype=np.bool_)
    if focused and not focus.any():
        focus[rng.randrange(focus.size)] = True

    found = counted(Indexed.of(trees, LABELS), question(image, focus, sizes), promise())

    # the general kernel, over records that are recoded
    ones, none = np.ones(trees.records, dtype=np.int64), np.zeros(LABELS, dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "DENSE_PAIRS", 0)
        keys, counts = kernel.tally(
            renamed(trees, image), ones, slots.slots, slots.count, sizes, focus, slots.negated, none
        )
    assert found.keys.tolist() == keys.tolist() and found.counts.tolist() == counts.tolist()
    assert slots.count <= DENSE_PAIRS


def test_labels_that_are_none_of_the_forest_are_refused() -> None:
    for labels in (1, 2):
        with pytest.raises(ValueError, match="none of the forest"):
            Indexed.of(trees_of([[(0, 2)]]), labels)
    assert Indexed.of(trees_of([]), 0).trees.records == 0


def test_a_label_above_the_cut_is_refused_where_it_occurs() -> None:
    image = unchanged()
    image[3] = NONE
    everything = np.zeros(0, dtype=np.bool_)
    slots = question(unchanged(), everything, 1).slots
    asked = Asked(
        Slots(image, slots.nodes, slots.slots, slots.ranks, slots.negated),
        TOP, np.zeros((0, 2), dtype=np.int32), 1, everything, (NOTHING,) * 3, None,
    )  # fmt: skip
    assert counted(Indexed.of(trees_of([[(0, 2)]]), LABELS), asked, promise()).counts.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="above the cut"):
        counted(Indexed.of(trees_of([[(0, 2)], [(1, 3)]]), LABELS), asked, promise())
