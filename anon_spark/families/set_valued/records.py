"""Records of a table in Gray order: items as numbers, a rank for each record, segments and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import BLOCK, KEY, LINK, PREFIX, quoted
from anon_spark.engine import crossed, has_null
from anon_spark.errors import ConfigurationError, DataError, GuaranteeUnreachable
from anon_spark.families.set_valued.block import Settings
from anon_spark.families.set_valued.kernels import segments
from anon_spark.families.set_valued.kernels.segments import block_starts, eligible_starts, segment_starts
from anon_spark.families.set_valued.kernels.spacing import SHIFT, SPACED, largest_l
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.gray import gray_keys
from anon_spark.primitives.ranking import ranked
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tasks import as_expected, number_lists

ITEMS = PREFIX + "items"  # the distinct items of a record, as they came
CODES = PREFIX + "codes"  # the same as numbers, ascending
GRAY = PREFIX + "gray"
TIE = PREFIX + "tie"
LABEL = PREFIX + "label"  # a hash of the sensitive value
VALUE = PREFIX + "value"  # the sensitive value itself
BEGINS = PREFIX + "begins"  # whether a record begins a segment
CHUNK = PREFIX + "chunk"

MOST_ITEMS = 1_000_000
CHUNK_RECORDS = 2**20
CHUNK_MAX = 2**23  # most records of a chunk that is enlarged because of its labels


@dataclass(frozen=True)
class Records:
    """The records in Gray order: LINK is the rank; ITEMS, CODES, and VALUE and LABEL where a column is sensitive."""

    frame: DataFrame
    universe: list[str]  # items by number
    rows: int
    dropped_nulls: int
    empty: int
    duplicates: int  # records that name an item twice


def read_records(
    df: DataFrame, items: str, sensitive: str | None, nulls: str, key: DataFrame, workspace: Workspace
) -> Records:
    """Check the table and put its records into Gray order; the key alone orders equal sets.

    Cost: one job for the checks, one for the distinct items, one global sort.
    """
    rows, dropped, empty, duplicates = _checked(df, items, nulls)
    values = [F.col(quoted(sensitive)).alias(VALUE)] if sensitive is not None else []
    known = df.where(F.col(quoted(items)).isNotNull())
    sets = known.select(F.sort_array(F.array_distinct(plain_items(items))).alias(ITEMS), *values)
    universe = _universe(sets)
    coded = sets.mapInArrow(_coding(universe), _coded_schema(sets))
    content: list[Column] = [F.col(CODES)]
    if sensitive is not None:
        content += [F.isnull(VALUE), F.col(VALUE)]
        coded = coded.withColumn(LABEL, F.xxhash64(F.isnull(VALUE), F.col(VALUE)))
    tied = crossed(coded, key.select(KEY)).withColumn(TIE, F.xxhash64(KEY, *content)).drop(KEY)
    return Records(ranked(tied, [GRAY, TIE], workspace), universe, rows, dropped, empty, duplicates)


def refuse_labels(records: Records, settings: Settings) -> None:
    """Raise if no order can keep l: too few rows, or a label on too many of them."""
    if records.rows < settings.degree:
        name = "k" if settings.k is not None else "l"
        raise GuaranteeUnreachable(
            f"{name} = {settings.degree} is more than the {records.rows:,} rows of the table. Lower {name}.",
            rows=records.rows,
        )
    if settings.l is None:
        return
    most = records.frame.groupBy(LABEL).count().agg(F.max("count")).collect()[0][0]
    refuse_frequent_value(settings.l, settings.truth, int(most), records.rows)


def refuse_frequent_value(l: int, truth: str, most: int, rows: int) -> None:  # noqa: E741 - the papers' name
    """Refuse l where the most frequent sensitive value, on `most` of the rows, cannot be spread."""
    spacing = 2 * l - 1 if truth == "spaced" else l
    if most * spacing <= rows:
        return
    possible = largest_l(np.array([most]), rows, SPACED if truth == "spaced" else SHIFT)
    advice = f"The largest l that is possible is {possible}." if possible > 1 else "No l above 1 is possible."
    raise GuaranteeUnreachable(
        f"l = {l} allows a sensitive value on {rows // spacing:,} rows at most, one is on {most:,}. {advice}",
        rows=most,
        largest_l=possible,
    )


def in_blocks(records: Records, settings: Settings, workspace: Workspace) -> DataFrame:
    """LINK, CODES, VALUE, LABEL with BLOCK and BEGINS. Cost: one shuffle; chunks of about 2^20 records in tasks.

    Chunks are cut separately, so their borders are borders of segments and blocks.
    """
    chunks = max(1, round(records.rows / CHUNK_RECORDS))
    while True:
        stored = workspace.store(_blocked(records, settings, chunks), "blocks")
        if settings.l is None or stored.where(F.col(BLOCK).isNull()).isEmpty():
            return stored
        if chunks == 1 or 2 * records.rows > CHUNK_MAX * chunks:  # half as many chunks must still fit their tasks
            raise GuaranteeUnreachable("The sensitive values cannot be spread over the table. Lower l.", rows=records.rows)
        chunks = (chunks + 1) // 2  # some chunk has too many records of one label: make chunks larger


def plain_items(name: str) -> Column:
    """The items as plain texts: under a collation two different items would count as one."""
    return F.col(quoted(name)).cast(T.ArrayType(T.StringType()))


def _checked(df: DataFrame, items: str, nulls: str) -> tuple[int, int, int, int]:
    """Counts: kept rows, rows without a list, empty lists, lists with an item twice. Refuses other types than lists of items."""
    kind = df.schema[items].dataType
    if not (isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StringType)):
        raise ConfigurationError(f"columns.items {items} is {kind.simpleString()}: give a column of array<string>.")
    column = plain_items(items)
    counts = df.agg(
        F.count_if(column.isNotNull()),
        F.count_if(column.isNull()),
        F.count_if(F.size(column) == 0),
        F.count_if(F.size(F.array_distinct(column)) < F.size(column)),
        F.count_if(has_null(column)),
    ).collect()[0]
    rows, without, empty, duplicates, holes = (int(value) for value in counts)
    if without and nulls != "suppress":
        raise DataError(
            f"columns.items {items}: {without:,} rows have no list. An empty list is a record without items; to leave "
            "these rows out, set nulls: suppress.",
            rows=without,
        )
    if holes:
        raise DataError(f"columns.items {items}: {holes:,} rows have a null among their items. Remove it.", rows=holes)
    return rows, without, empty, duplicates


def _universe(sets: DataFrame) -> list[str]:
    """All items in their order: numbers numerically, other names by code point."""
    distinct = sets.select(F.explode(ITEMS).alias("item")).distinct()
    names = [str(name) for name in collect_small(distinct, MOST_ITEMS, "Distinct items").column(0).to_pylist()]
    if all(name.isascii() and name.isdigit() for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _coding(universe: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Task that replaces items by numbers and adds the key by which item sets sort like Gray codes."""
    known = pa.array(universe, pa.string())
    last = len(universe) + 1

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lists: Any = batch.column(0)
            offsets = lists.offsets.to_numpy() - lists.offsets[0].as_py()
            numbers = np.asarray(pc.index_in(lists.flatten(), value_set=known)).astype(np.int32)
            row = np.repeat(np.arange(batch.num_rows), np.diff(offsets))
            codes = numbers[np.lexsort((numbers, row))]
            arrays = [*batch.columns, number_lists(offsets, codes), number_lists(*gray_keys(offsets, codes, last))]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, CODES, GRAY])

    return work


def _coded_schema(sets: DataFrame) -> T.StructType:
    numbers = T.ArrayType(T.IntegerType())
    return T.StructType([*sets.schema.fields, T.StructField(CODES, numbers), T.StructField(GRAY, numbers)])


def _blocked(records: Records, settings: Settings, chunks: int) -> DataFrame:
    rows, spacing, least, most = records.rows, settings.spacing, *settings.segment
    records_of_block, labelled = settings.block_records, settings.l is not None
    names = [name for name in (LINK, CODES, VALUE, LABEL) if name in records.frame.columns]
    spread = records.frame.select(*names, F.expr(f"{LINK} * {chunks} div {rows}").alias(CHUNK))

    def work(table: pa.Table) -> pa.Table:
        number = table.column(CHUNK)[0].as_py()
        table = table.drop_columns(CHUNK).sort_by(LINK).combine_chunks()
        lists: Any = table.column(CODES).combine_chunks()
        offsets = lists.offsets.to_numpy().astype(np.int64)
        starts = segment_starts(segments.steps_between(offsets, lists.values.to_numpy()), least, most)
        blocks: Ints | None = block_starts(starts, table.num_rows, records_of_block)
        if labelled and blocks is not None:
            blocks = eligible_starts(blocks, table.column(LABEL).to_numpy(), spacing)
        begins = np.zeros(table.num_rows, dtype=bool)
        begins[starts] = True
        if blocks is None:
            numbered = pa.nulls(table.num_rows, pa.int64())
        else:
            sizes = np.diff(blocks, append=table.num_rows)
            numbered = pa.array(np.repeat(number * rows + np.arange(blocks.size), sizes), pa.int64())
        return as_expected(table.append_column(BLOCK, numbered).append_column(BEGINS, pa.array(begins)), schema)

    kept = records.frame.select(*names).schema.fields
    schema = T.StructType([*kept, T.StructField(BLOCK, T.LongType()), T.StructField(BEGINS, T.BooleanType())])
    return spread.repartition(chunks, CHUNK).groupBy(CHUNK).applyInArrow(work, schema)
