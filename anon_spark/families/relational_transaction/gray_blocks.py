"""LRA: records in the order of Gray codes of their items, cut into blocks that are generalized separately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import BLOCK, CLUSTER, LINK, PREFIX, ROWS
from anon_spark.engine import beside
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.relational_transaction.records import CODES, SECRETS, Records
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.gray import gray_keys
from anon_spark.primitives.blocks import MOST_BLOCKS, renumbered
from anon_spark.primitives.ranking import ranked
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tasks import BatchTask, number_lists

GRAY, RANK = PREFIX + "gray", PREFIX + "rank"


def gray_clusters(records: Records, settings: Settings, workspace: Workspace) -> DataFrame:
    """The records with CLUSTER: blocks of the Gray order, whatever the relational values.

    Guarantee: a cluster has k records or more, 0 or at least k with items, and with l no sensitive item is too frequent.
    Cost: one global sort, one rewrite; a row per block (and sensitive item) reaches the driver.
    """
    keyed = records.narrow.mapInArrow(_keyed(len(records.universe)), _keyed_schema(records.narrow))
    ordered = ranked(keyed.withColumn(PREFIX + "tie", F.col(LINK)), [GRAY, PREFIX + "tie"], workspace, RANK)
    blocked = workspace.store(
        ordered.withColumn(BLOCK, F.expr(f"{RANK} div {settings.gray_records}")).drop(RANK), "gray-blocks"
    )
    filled = F.size(CODES) > 0
    sizes = collect_small(
        blocked.groupBy(BLOCK).agg(F.count(F.lit(1)).alias(ROWS), F.count_if(filled)).orderBy(BLOCK), MOST_BLOCKS, "Blocks"
    )
    rows, full = (np.asarray(sizes.column(at), dtype=np.int64) for at in (1, 2))
    secrets = _secret_counts(blocked, records, rows.size)
    targets = joined_until_sound(rows, full, secrets, settings.k, settings.l)
    joined = renumbered(blocked, BLOCK, range(rows.size), targets.tolist())
    first = joined.groupBy(BLOCK).agg(F.min(LINK).alias(CLUSTER))
    return workspace.store(joined.join(beside(first), BLOCK), "gray-clusters")


def joined_until_sound(rows: Ints, filled: Ints, secrets: Ints, k: int, l: int | None) -> Ints:  # noqa: E741
    """The first block of each block's union: consecutive blocks are joined until together they can be generalized.

    secrets: (all records, those with items) × blocks × sensitive items.
    """
    target = np.arange(rows.size)
    first = 0
    for block in range(rows.size):
        target[block] = first
        joined = slice(first, block + 1)
        if sound(int(rows[joined].sum()), int(filled[joined].sum()), secrets[:, joined].sum(axis=1), k, l):
            first = block + 1
    if first < rows.size:  # the remaining blocks join the last sound union
        if first == 0:
            raise GuaranteeUnreachable(
                f"Even all records together cannot keep the guarantee: of {int(rows.sum()):,} rows {int(filled.sum()):,} have "
                "items, or a sensitive item is on too many of them. Lower k or l."
            )
        target[first:] = target[first - 1]
    return target


def sound(rows: int, filled: int, secrets: Ints, k: int, l: int | None) -> bool:  # noqa: E741
    """Whether some generalization of these records keeps the guarantee (R-3, R-4); secrets: by kind and sensitive item."""
    if rows < k or 0 < filled < k:
        return False
    if l is None or not secrets.size:
        return True
    return bool((secrets[0] * l <= rows).all() and (secrets[1] * l <= filled).all())


def gray_order(offsets: Ints, codes: Codes, universe: int) -> Ints:
    """Records of one task in the order of Gray codes; ties keep their order."""
    longer, keys = gray_keys(offsets, codes, universe + 1)
    lists = [tuple(keys[longer[at] : longer[at + 1]].tolist()) for at in range(offsets.size - 1)]
    return np.array(sorted(range(len(lists)), key=lists.__getitem__), dtype=np.int64)


def _secret_counts(blocked: DataFrame, records: Records, blocks: int) -> NDArray[np.int64]:
    counts = np.zeros((2, blocks, len(records.secrets)), dtype=np.int64)
    exploded = blocked.select(BLOCK, F.explode(SECRETS).alias("secret"), (F.size(CODES) > 0).alias("filled"))
    counted = exploded.groupBy(BLOCK, "secret").agg(F.count(F.lit(1)), F.count_if("filled"))
    table = collect_small(counted, MOST_BLOCKS, "Sensitive items by block")
    block, secret, every, filled = (np.asarray(column, dtype=np.int64) for column in table.columns)
    counts[0, block, secret], counts[1, block, secret] = every, filled
    return counts


def _keyed(universe: int) -> BatchTask:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lists: Any = batch.column(CODES)
            offsets = lists.offsets.to_numpy().astype(np.int64)
            keys = number_lists(*gray_keys(offsets - offsets[0], np.asarray(lists.flatten()).astype(np.int32), universe + 1))
            yield pa.RecordBatch.from_arrays([*batch.columns, keys], names=[*batch.schema.names, GRAY])

    return work


def _keyed_schema(narrow: DataFrame) -> T.StructType:
    return T.StructType([*narrow.schema.fields, T.StructField(GRAY, T.ArrayType(T.IntegerType()))])
