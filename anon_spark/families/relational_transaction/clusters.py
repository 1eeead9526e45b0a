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

    Guarantee: every cluster has k records or more. Cost: one shuffle into chunks; a task holds a chunk, and takes time by the
    square of each block in it.
    """
    if records.rows < settings.k:
        raise GuaranteeUnreachable(
            f"k = {settings.k} is more than the {records.rows:,} rows of the table. Lower k.", rows=records.rows
        )
    chunked, chunks = in_chunks(records, 2 * settings.k)
    narrow = [field for field in chunked.schema.fields if field.name != CHUNK]
    schema = T.StructType([*narrow, *(T.StructField(name, T.LongType()) for name in (BLOCK, CLUSTER))])
    work = _clustered(records.attributes, settings, key)
    return workspace.store(in_groups(chunked, CHUNK, work, schema, chunks, costly=True), "clusters")


def _clustered(attributes: Attributes, settings: Settings, key: str) -> Task:
    most, k = settings.block_records, settings.k

    def work(table: pa.Table) -> pa.Table:
        first = chunk_order(table.column(CHUNK)[0].as_py()) * BLOCKS_IN_CHUNK
        table = table.drop_columns(CHUNK).sort_by(LINK)
        values, link = attributes.values(table), np.asarray(table.column(LINK))
        block_of = first + taken_apart(clustering.blocks_of(attributes.relation, values, most, 2 * k), most)
        cluster_of = np.empty_like(link)
        order = np.argsort(block_of, kind="stable")  # in each block by LINK
        for members in np.split(order, np.flatnonzero(np.diff(block_of[order])) + 1):
            smallest = cluster_block(attributes.relation, values[members], k, key, int(block_of[members[0]]))
            cluster_of[members] = link[members[smallest]]
        return table.append_column(BLOCK, pa.array(block_of)).append_column(CLUSTER, pa.array(cluster_of))

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
