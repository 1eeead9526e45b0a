"""Crowds of whole records: how many records have the same values in the same places, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import ROWS
from anon_spark.families.crowds import crowds_to_be
from anon_spark.families.tree.kernels.trees import Trees, canonical, renamed
from anon_spark.families.tree.publication import Recode
from anon_spark.families.tree.records import LABELS, PARENTS, Records, trees_in
from anon_spark.kernels.classes import Codes
from anon_spark.model.distributions import crowds_between
from anon_spark.model.facts import CrowdRange
from anon_spark.model.tree import Forest
from anon_spark.pending import Pending, together
from anon_spark.primitives.tasks import number_lists

TREE = f"{LABELS} array<int>, {PARENTS} array<int>"


def record_crowds_to_be(records: Records, recode: Recode, k: int) -> Pending[tuple[CrowdRange, ...]]:
    """Records by how many are the same: as they were, and as they are published. Kept columns are not looked at.

    Of a sensitive value only its node type counts: it is what an attacker wants to learn. Cost: two passes over the records,
    each with a shuffle of the distinct ones of a task; a few rows reach the driver.
    """
    trees, hidden = records.frame.select(LABELS, PARENTS), without_values(records.forest)
    before = trees if not records.forest.is_sensitive.any() else _changed(trees, lambda of: canonical(renamed(of, hidden)))
    after = _changed(trees, lambda of: canonical(renamed(recode(of), hidden)))
    counted = together(*(crowds_to_be(_alike(frame), k) for frame in (before, after)))
    return counted.then(lambda crowds: crowds_between(k, *crowds))


def without_values(forest: Forest) -> Codes:
    """By node: itself, or the root of its node type where that is sensitive."""
    image = np.arange(forest.size, dtype=np.int32)
    for root in forest.children[forest.top]:
        if forest.is_sensitive[root]:
            image[forest.ranks == forest.ranks[root]] = root
    return image


def _alike(trees: DataFrame) -> DataFrame:
    """Distinct trees with their number of records. Equal records have equal arrays, because trees are canonical."""
    return trees.groupBy(LABELS, PARENTS).agg(F.count(F.lit(1)).alias(ROWS))


def _changed(trees: DataFrame, change: Callable[[Trees], Trees]) -> DataFrame:
    def changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            of = change(trees_in(pa.Table.from_batches([batch])))
            lists = [number_lists(of.offsets, of.labels), number_lists(of.offsets, of.parents)]
            yield pa.RecordBatch.from_arrays(lists, names=[LABELS, PARENTS])

    return trees.mapInArrow(changed, TREE)
