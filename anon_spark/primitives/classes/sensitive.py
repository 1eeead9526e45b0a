"""Values of sensitive columns by tuple, for the models of a job: coded, counted, and held as arrays or in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import PREFIX, ROWS
from anon_spark.errors import ConfigurationError, DataError, LimitExceeded
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.histograms import Histograms, histograms_of
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.guarantee.models import MOST_VALUES, Model, Models, TCloseness
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.bins import WHOLE
from anon_spark.primitives.classes.held import DROPPED, HASH, Held
from anon_spark.primitives.encoding import FRACTIONS, key_column
from anon_spark.primitives.look_ups import LookUp, with_found
from anon_spark.primitives.rounds import collect_small

TEXT = PREFIX + "text_"  # + position among the sensitive columns: a value as text, null as it is
COLUMN = PREFIX + "column"  # position among the sensitive columns
VALUE = PREFIX + "value"  # code of a value
REMOVED = PREFIX + "removed"  # rows of a class that no node below can keep
MISSING = -1
VALUES_OF = "Distinct values of the columns with models ({}), which must be binned first (round numbers, group rare values)"
DAYS = (T.DateType, T.TimestampType, T.TimestampNTZType)


def text_columns(df: DataFrame, models: Models) -> list[Column]:
    """The sensitive columns as texts; NaN as null. No action."""
    return [key_column(df, name, None, "privacy.sensitive").cast("string").alias(f"{TEXT}{at}") for at, name in enumerate(models)]


def refuse_unordered(df: DataFrame, models: Models) -> None:
    """Refuse an ordered distance between values that have no order. Cost: none, reads the schema."""
    for name, of_column in models.items():
        kind = df.schema[name].dataType
        ordered = any(isinstance(model, TCloseness) and model.distance == "ordered" for model in of_column)
        if ordered and not isinstance(kind, (*WHOLE, *FRACTIONS, *DAYS)):
            raise ConfigurationError(
                f"privacy.sensitive.{name}.t.distance: ordered needs numbers or dates, the column is {kind.simpleString()}. "
                "Use equal, or a hierarchy."
            )


def held_values(found: Held, tuples: pa.Table, models: Models, df: DataFrame) -> tuple[list[Histograms], list[SensitiveColumn]]:
    """The values of tuples that the driver holds, by tuple and in all. No Spark."""
    places = found.tuple_of[np.searchsorted(found.hashes, tuples.column(HASH).to_numpy())].astype(np.int64)
    rows = tuples.column(ROWS).to_numpy().astype(np.int64)
    known = (places != DROPPED) & (rows > 0)
    by_tuple, columns = [], []
    for at, (name, of_column) in enumerate(models.items()):
        coded: Any = tuples.column(f"{TEXT}{at}").combine_chunks().dictionary_encode("encode")
        places_of_texts = coded.indices.to_numpy()
        totals = np.zeros(len(coded.dictionary), dtype=np.int64)
        np.add.at(totals, places_of_texts[known], rows[known])
        column, codes = sensitive_column(name, of_column, df, coded.dictionary.to_pylist(), totals)
        by_tuple.append(histograms_of(places[known], codes[places_of_texts[known]], rows[known], found.table.size))
        columns.append(column)
    return by_tuple, columns


def stored_values(
    coded: DataFrame, keys: Sequence[str], models: Models, df: DataFrame
) -> tuple[DataFrame, list[SensitiveColumn]]:
    """KEYS, COLUMN, VALUE and ROWS of every value of every tuple, lazily, and the columns. Cost: one job for the values.

    coded: rows in scope with the keys, the texts and ROWS.
    """
    texts = F.array(*(F.col(f"{TEXT}{at}") for at in range(len(models))))
    each = coded.select(F.posexplode_outer(texts).alias(COLUMN, VALUE), ROWS)
    counted = each.groupBy(COLUMN, VALUE).agg(F.sum(ROWS).alias(ROWS))
    table = collect_small(counted, MOST_VALUES * len(models), VALUES_OF.format(", ".join(models)))
    position, rows = table.column(COLUMN).to_numpy(), table.column(ROWS).to_numpy().astype(np.int64)
    columns, look_ups, known = [], [], []
    for at, (name, of_column) in enumerate(models.items()):
        mine = np.flatnonzero(position == at)
        values = table.column(VALUE).take(mine).to_pylist()
        column, codes = sensitive_column(name, of_column, df, values, rows[mine])
        text, code = F.col(f"{TEXT}{at}"), f"{VALUE}_{at}"
        pairs = [(value, int(number)) for value, number in zip(values, codes, strict=True) if value is not None]
        look_ups.append(LookUp(text, [value for value, _ in pairs], [number for _, number in pairs], code))
        null = next((int(number) for value, number in zip(values, codes, strict=True) if value is None), MISSING)
        known.append(F.when(text.isNull(), F.lit(null)).otherwise(F.col(code)).alias(code))
        columns.append(column)
    found = with_found(coded, look_ups, pa.int32()).select(*keys, ROWS, F.array(*known).alias(VALUE))
    values_of_rows = found.select(*keys, ROWS, F.posexplode_outer(VALUE).alias(COLUMN, VALUE))
    return values_of_rows.groupBy(*keys, COLUMN, VALUE).agg(F.sum(ROWS).alias(ROWS)), columns


def failing_classes(values: DataFrame, keys: Sequence[str], columns: Sequence[SensitiveColumn]) -> DataFrame:
    """The keys of classes that fail a model of one of the columns, each once, and the rows that must go at least (REMOVED).

    values: keys, COLUMN, VALUE and ROWS. Cost: two shuffles of the values; a class has at most MOST_VALUES in each column.
    """
    by_value = values.groupBy(*keys, COLUMN, VALUE).agg(F.sum(ROWS).alias(ROWS))
    by_class = by_value.groupBy(*keys, COLUMN).agg(F.collect_list(F.struct(VALUE, ROWS)).alias(VALUE))
    kept = [column.portable() for column in columns]

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            column, lists = batch.column(COLUMN).to_numpy(), batch.column(VALUE)
            removed = np.zeros(batch.num_rows, dtype=np.int64)
            for at, sensitive in enumerate(kept):
                mine = np.flatnonzero(column == at)
                if mine.size:
                    removed[mine] = sensitive.least_removed(_histograms(lists.take(mine)))
            judged = pa.RecordBatch.from_arrays(
                [*(batch.column(key) for key in keys), pa.array(removed)], names=[*keys, REMOVED]
            )
            yield judged.filter(pa.array(removed > 0))

    schema = T.StructType([*by_value.select(*keys).schema.fields, T.StructField(REMOVED, T.LongType())])
    return by_class.mapInArrow(judge, schema).groupBy(*keys).agg(F.max(REMOVED).alias(REMOVED))


def _histograms(lists: Any) -> Histograms:
    entries = lists.flatten()
    starts = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())]).astype(np.int64)
    values, rows = entries.field(VALUE).to_numpy(), entries.field(ROWS).to_numpy()
    return Histograms(starts, values.astype(np.int32), rows.astype(np.int64))


def sensitive_column(
    name: str, models: tuple[Model, ...], df: DataFrame, texts: Sequence[str | None], totals: Ints
) -> tuple[SensitiveColumn, Ints]:
    """The column with its values in order (null last), and the code of each text; MISSING for one without rows in scope."""
    present = [at for at, total in enumerate(totals.tolist()) if total]
    if len(present) > MOST_VALUES:
        raise LimitExceeded(
            f"privacy.sensitive.{name}: {len(present):,} distinct values, a model takes at most {MOST_VALUES:,}. Bin the column "
            "first (round numbers, group rare values).", values=len(present),
        )  # fmt: skip
    kind = df.schema[name].dataType
    parse = int if isinstance(kind, WHOLE) else Decimal if isinstance(kind, FRACTIONS) else str
    keys = {at: parse(text) if (text := texts[at]) is not None else None for at in present}
    order = sorted(present, key=lambda at: (keys[at] is None, keys[at] if keys[at] is not None else 0))
    codes = np.full(len(texts), MISSING, dtype=np.int64)
    codes[order] = np.arange(len(order))
    levels = None
    for model in models:
        if isinstance(model, TCloseness) and model.hierarchy is not None:
            levels = _levels(name, model, [texts[at] for at in order], [keys[at] for at in order])
    return SensitiveColumn(models, totals[order], levels), codes


def _levels(name: str, model: TCloseness, texts: Sequence[str | None], keys: Sequence[Any]) -> Any:
    """The code of each value on each level below the root of the distance's hierarchy."""
    hierarchy = model.hierarchy
    if not isinstance(hierarchy, Hierarchy):
        assert hierarchy is not None, "only a hierarchical distance has levels"
        hierarchy = hierarchy.build([text for text in texts if text is not None])
    if None in texts:
        hierarchy = hierarchy.with_null()
    leaves = [hierarchy.leaf_of(key) for key in keys]
    unknown = sum(leaf is None for leaf in leaves)
    if unknown:
        raise DataError(
            f"privacy.sensitive.{name}.t.distance: the hierarchy does not know {unknown} values of the column. Complete it.",
            unknown=unknown,
        )
    return np.ascontiguousarray(hierarchy.codes[: max(hierarchy.height, 1)][:, np.array(leaves, dtype=np.int64)], dtype=np.int32)
