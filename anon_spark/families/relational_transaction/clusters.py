"""CLUSTER: blocks of similar records, and in each block clusters of k or more."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anon_spark.columns import BLOCK, CLUSTER, LINK
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.relational_transaction.chunks import CHUNK, chunk_order, in_chunks
from anon_spark.families.relational_transaction.kernels import clustering
from anon_spark.families.relational_transaction.kernels.clustering import cluster_block
from anon_spark.families.relational_transaction.records import Attributes, Records
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.kernels.classes import Ints
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tasks import Task, in_groups

BLOCKS_IN_CHUNK = 2**20  # block numbers reserved for each chunk
TOO_LARGE = 4  # times the records of a block: larger blocks that no cut divides are split at random


def initial_clusters(records: Records, settings: Settings, key: str, workspace: Workspace) -> DataFrame:
    """LINK, values, items, BLOCK and CLUSTER of every record.

    Guarantee: every cluster has k records or more. Cost: one shuffle into chunks, one into blocks; a task is quadratic in
    its block.
    """
    if records.rows < settings.k:
        raise GuaranteeUnreachable(
            f"k = {settings.k} is more than the {records.rows:,} rows of the table. Lower k.", rows=records.rows
        )
    chunked, chunks = in_chunks(records, 2 * settings.k)
    narrow = T.StructType([field for field in chunked.schema.fields if field.name != CHUNK])
    blocked = workspace.store(
        in_groups(chunked, CHUNK, _block(records.attributes, settings), _with_long(narrow, BLOCK), chunks, costly=True),
        "blocks",
    )
    blocks = 1 if records.rows <= settings.block_records else 2 * records.rows // settings.block_records  # about
    work, schema = _cluster(records.attributes, settings, key), _with_long(blocked.schema, CLUSTER)
    return workspace.store(in_groups(blocked, BLOCK, work, schema, blocks), "clusters")


def _with_long(schema: T.StructType, name: str) -> T.StructType:
    return T.StructType([*schema.fields, T.StructField(name, T.LongType())])


def _block(attributes: Attributes, settings: Settings) -> Task:
    most = settings.block_records

    def work(table: pa.Table) -> pa.Table:
        first = chunk_order(table.column(CHUNK)[0].as_py()) * BLOCKS_IN_CHUNK
        table = table.drop_columns(CHUNK).sort_by(LINK)
        blocks = taken_apart(clustering.blocks_of(attributes.relation, attributes.values(table), most, 2 * settings.k), most)
        return table.append_column(BLOCK, pa.array(first + blocks, pa.int64()))

    return work


def taken_apart(blocks: Ints, most: int) -> Ints:
    """Blocks with far more than `most` records, split into pieces of about that size: no cut separates their members."""
    sizes = np.bincount(blocks)
    pieces = np.where(sizes > TOO_LARGE * most, -(-sizes // most), 1)
    first = np.cumsum(pieces) - pieces
    order = np.argsort(blocks, kind="stable")
    place = np.empty(blocks.size, dtype=np.int64)  # among the members of its block
    place[order] = np.arange(blocks.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return first[blocks] + place % pieces[blocks]


def _cluster(attributes: Attributes, settings: Settings, key: str) -> Task:
    def work(table: pa.Table) -> pa.Table:
        table = table.sort_by(LINK)
        block = table.column(BLOCK)[0].as_py()
        smallest = cluster_block(attributes.relation, attributes.values(table), settings.k, key, block)
        return table.append_column(CLUSTER, pa.array(np.asarray(table.column(LINK))[smallest], pa.int64()))

    return work
