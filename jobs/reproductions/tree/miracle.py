"""MiRaCle (reconstructed): the baseline that clusters nested records and publishes one tree for all members of a cluster.

Local recoding by generalization and suppression; the cited algorithm is not printed, so results are labelled "MiRaCle
(reconstructed)". Sensitive node types are recoded like all others. Departure: a partition takes whole runs of records in the
order of signatures, not whole signatures, so that it is bounded above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import BLOCK, LINK, PREFIX, SLOT
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated
from anon_spark.families.tree.kernels.trees import Trees, taken
from anon_spark.families.tree.records import LABELS, PARENTS, trees_in
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.randomness import stream
from anon_spark.model.tree import Forest
from anon_spark.primitives.ranking import ranked
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tasks import BatchTask, Task, in_groups, number_lists
from jobs.reproductions.tree.miracle_kernel import ForestArrays, arrays_of, clustered

CLIMIT = 150
THRESHOLD = 0.1
PARTITION_RECORDS = 5_000
ORDER = "miracle"  # purpose of the secret draws

TREE_SCHEMA = f"{LINK} long, {LABELS} array<int>, {PARENTS} array<int>"

_SIGNATURE, _TIE = PREFIX + "signature", PREFIX + "tie"


def miracle(
    records: DataFrame,
    forest: Forest,
    k: int,
    key: str,
    workspace: Workspace,
    climit: int = CLIMIT,
    threshold: float = THRESHOLD,
    partition: int = PARTITION_RECORDS,
) -> DataFrame:
    """LINK, LABELS and PARENTS of every record, its tree replaced by that of its cluster, which may be empty.

    Guarantee: every published tree is that of k or more records; counted again before it is returned. The same for the same
    records and key, however they are spread. Cost: one global sort, one shuffle into partitions of `partition` (or k, if that
    is more) to less than twice as many records; in a task records × climit distances, some 3 microseconds each for records of
    12 nodes: two minutes of a core for 250,000 records.
    """
    if climit < 1 or not 0 <= threshold <= 1:
        raise ConfigurationError(f"climit = {climit}, threshold = {threshold}: give one cluster or more, and a share.")
    rows = records.count()
    if rows < k:
        raise DataError(f"k = {k} is more than the {rows:,} records of the table. Lower k.", rows=rows)
    signed = records.select(LINK, LABELS, PARENTS).mapInArrow(_signing(forest), f"{TREE_SCHEMA}, {_SIGNATURE} array<int>")
    partitions = max(1, rows // max(partition, k))
    placed = ranked(signed.withColumn(_TIE, F.col(LINK)), [_SIGNATURE, _TIE], workspace, SLOT)
    blocked = placed.withColumn(BLOCK, F.expr(f"{SLOT} * {partitions} div {rows}")).drop(SLOT)
    work = _clustering(arrays_of(forest), k, key, climit, threshold)
    recoded = workspace.store(in_groups(blocked, BLOCK, work, TREE_SCHEMA, partitions), "miracle")
    require_groups(recoded, k)
    return recoded


def require_groups(recoded: DataFrame, k: int) -> None:
    """Raise unless every tree is that of k or more records. Cost: one shuffle by tree."""
    few = recoded.groupBy(LABELS, PARENTS).count().where(F.col("count") < k).agg(F.count(F.lit(1)), F.sum("count"))
    groups, rows = few.collect()[0]
    if groups:
        raise GuaranteeViolated(
            f"MiRaCle: {groups:,} groups of equal trees have fewer than k = {k} records.", groups=groups, rows=rows
        )


def signatures(trees: Trees, ranks: Codes, images: Codes) -> tuple[Ints, Codes]:
    """By which records that are alike stand together: nodes of each type, then type by type the values on top of it."""
    node_types = int(ranks.max()) + 1
    record = np.repeat(np.arange(trees.records), trees.sizes)
    rank, image = ranks[trees.labels], images[trees.labels]
    offsets = np.concatenate([[0], np.cumsum(trees.sizes + node_types)])
    found = np.empty(offsets[-1], dtype=np.int32)
    heads = offsets[:-1, None] + np.arange(node_types)
    counts = np.bincount(record * node_types + rank, minlength=trees.records * node_types)
    found[heads] = counts.reshape(-1, node_types)
    is_value = np.ones(found.size, dtype=np.bool_)
    is_value[heads] = False
    found[is_value] = image[np.lexsort((image, rank, record))]
    return offsets, found


def top_values(forest: Forest) -> Codes:
    """By node: the node at or above it that stands right below the root of its type; the root itself for a root."""
    images = np.arange(forest.size, dtype=np.int32)
    for node in np.argsort(-forest.levels, kind="stable").tolist():
        above = int(forest.parents[node])
        if node != forest.top and above != forest.top and forest.parents[above] != forest.top:
            images[node] = images[above]
    return images


def _signing(forest: Forest) -> BatchTask:
    ranks, images = forest.ranks, top_values(forest)

    def sign(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = signatures(trees_in(pa.Table.from_batches([batch])), ranks, images)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, number_lists(*found)], names=[LINK, LABELS, PARENTS, _SIGNATURE]
            )

    return sign


def _clustering(forest: ForestArrays, k: int, key: str, climit: int, threshold: float) -> Task:
    def work(table: pa.Table) -> pa.Table:
        table = table.sort_by(LINK)
        order = np.argsort(stream(key, ORDER, table.column(BLOCK)[0].as_py(), table.num_rows), kind="stable")
        number, found = clustered(trees_in(table), order, forest, k, climit, threshold)
        trees = taken(found, number)
        lists = [number_lists(trees.offsets, of) for of in (trees.labels, trees.parents)]
        return pa.Table.from_arrays([table.column(LINK), *lists], names=[LINK, LABELS, PARENTS])

    return work
