"""Value ↔ integer code: every quasi-identifier value finds its leaf once, through a dictionary of distinct values.

A column is first turned into a *key* (a long for whole-number types, else text; null stays null and NaN becomes null),
distinct keys are looked up in the hierarchy in plain Python, and the result is joined back. So the rules by which a
value meets its leaf stand in one place, `Hierarchy.leaf_of`, and no value is ever a literal in a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.model.hierarchy import DateRule, Hierarchy, Rule
from anon_spark.primitives.bins import OUTSIDE, WHOLE, with_bins
from anon_spark.primitives.rounds import collect_small

FRACTIONS = (T.FloatType, T.DoubleType, T.DecimalType)
MOST_VALUES = 1_000_000
UNSEEN = -1

POSITION = PREFIX + "position"
TEXT = PREFIX + "text"
THERE = PREFIX + "there"


@dataclass(frozen=True)
class Dictionary:
    """The distinct keys of one column with the leaf of each (UNSEEN where the hierarchy knows none) and its rows."""

    name: str
    hierarchy: Hierarchy
    key_type: str
    keys: list[Any]
    leaves: NDArray[np.int32]
    rows: NDArray[np.int64]
    null_rows: int

    @property
    def unseen_values(self) -> int:
        return int((self.leaves == UNSEEN).sum())

    @property
    def unseen_rows(self) -> int:
        return int(self.rows[self.leaves == UNSEEN].sum())

    @property
    def is_complete(self) -> bool:
        """Whether every row has a leaf, so that no policy drops one."""
        return self.unseen_values == 0 and (self.null_rows == 0 or self.hierarchy.has_null)

    def rows_by_leaf(self) -> NDArray[np.int64]:
        """Rows of each leaf, the null leaf included; those without a leaf are left out."""
        counts = np.zeros(self.hierarchy.leaf_count, dtype=np.int64)
        seen = self.leaves != UNSEEN
        np.add.at(counts, self.leaves[seen], self.rows[seen])
        if self.hierarchy.has_null:
            counts[-1] = self.null_rows
        return counts

    @property
    def is_injective(self) -> bool:
        """Whether no two keys share a leaf, so that distinct key tuples are distinct code tuples."""
        seen = self.leaves[self.leaves != UNSEEN]
        return len(np.unique(seen)) == len(seen)


def with_keys(df: DataFrame, hierarchies: Mapping[str, Hierarchy | Rule], others: Sequence[str] = ()) -> DataFrame:
    """The quasi-identifiers as keys, with the other columns as they are. No action."""
    grids = {name: h.bins for name, h in hierarchies.items() if isinstance(h, Hierarchy) and h.bins is not None}
    keys = {name: _key(df, name, hierarchy).alias(name) for name, hierarchy in hierarchies.items()}
    keys.update({name: F.col(quoted(name)) for name in grids})
    return with_bins(df, grids).select(*keys.values(), *(F.col(quoted(name)) for name in others))


def fractions(df: DataFrame, names: Iterable[str]) -> frozenset[str]:
    """Columns whose keys are texts of numbers and must be looked up as numbers."""
    return frozenset(name for name in names if isinstance(df.schema[name].dataType, FRACTIONS))


def dictionaries(
    keyed: DataFrame,
    hierarchies: Mapping[str, Hierarchy | Rule],
    nulls: str,
    numbers: Collection[str] = (),
    count: Column | None = None,
    present: Mapping[str, str] | None = None,
) -> list[Dictionary]:
    """Distinct keys of every quasi-identifier, looked up in its hierarchy; rules are built for the values seen.

    A hierarchy gets its null leaf where the column has nulls and the policy keeps them. `numbers` names the columns of
    `fractions`; `count` says how many rows a row of `keyed` stands for; `present` names, by quasi-identifier, the column that
    says whether a row has such a value at all.
    Cost: one job; as many rows on the driver as there are distinct values (at most MOST_VALUES in all).
    """
    names = list(hierarchies)
    texts = F.array(*(F.col(quoted(name)).cast("string") for name in names))
    each = keyed.select(
        F.posexplode(texts).alias(POSITION, TEXT),
        (count if count is not None else F.lit(1)).alias(ROWS),
        *([F.array(*(F.col(present[name]) for name in names)).alias(THERE)] if present else []),
    )
    values = (
        (each.where(F.col(THERE)[F.col(POSITION)]) if present else each)
        .groupBy(POSITION, TEXT)
        .agg(F.sum(ROWS).alias(ROWS))
    )
    what = "Distinct values of the quasi-identifiers (round a column, or give it intervals with exact: false)"
    table = collect_small(values, MOST_VALUES, what)
    if table.num_rows == 0:
        raise DataError("The input table is empty: there is nothing to release.", rows=0)
    found: dict[int, list[tuple[str | None, int]]] = {position: [] for position in range(len(names))}
    for position, text, rows in zip(*(table.column(index).to_pylist() for index in range(3)), strict=True):
        found[position].append((text, rows))
    return [
        _dictionary(name, hierarchies[name], _parser(keyed, name, numbers), found[position], nulls)
        for position, name in enumerate(names)
    ]


def with_codes(
    keyed: DataFrame, dictionaries_: Sequence[Dictionary], levels: Sequence[int], codes: Sequence[str]
) -> DataFrame:
    """Append each quasi-identifier's code on its level; a value without leaf gets a null code.

    A null is the hierarchy's null leaf if it has one, else null as well.
    Cost: one broadcast join per column that is not at its root; no action.
    """
    coded = keyed
    for dictionary, level, code in zip(dictionaries_, levels, codes, strict=True):
        hierarchy = dictionary.hierarchy
        if level == hierarchy.height and dictionary.is_complete:
            coded = coded.withColumn(code, F.lit(0))
            continue
        key, frame = F.col(quoted(dictionary.name)), _code_frame(keyed.sparkSession, dictionary, level, code)
        same = key == F.col(TEXT)
        if dictionary.key_type == "string":  # Spark probes a long much faster than a text: hashes meet first
            same = (F.xxhash64(key) == F.xxhash64(TEXT)) & F.coalesce(same, F.lit(False))
        coded = coded.join(F.broadcast(frame), same, "left").drop(TEXT)
        if hierarchy.has_null:
            null_code = int(hierarchy.codes[level][-1])
            coded = coded.withColumn(code, F.when(key.isNull(), F.lit(null_code)).otherwise(F.col(code)))
    return coded


def with_labels(
    coded: DataFrame, hierarchies: Sequence[Hierarchy], levels: Sequence[int], codes: Sequence[str], names: Sequence[str]
) -> DataFrame:
    """Append the label of each code on its level under the names given; the null leaf's label is null.

    Cost: one broadcast join per column; no action.
    """
    labelled = coded
    for hierarchy, level, code, name in zip(hierarchies, levels, codes, names, strict=True):
        labels = hierarchy.labels[level]
        table = pa.table({TEXT: pa.array(range(len(labels)), pa.int32()), name: pa.array(labels, pa.string())})
        frame = coded.sparkSession.createDataFrame(table)
        labelled = labelled.join(F.broadcast(frame), F.col(code) == F.col(TEXT), "left").drop(TEXT)
    return labelled


def _code_frame(spark: SparkSession, dictionary: Dictionary, level: int, code: str) -> DataFrame:
    """Rows (key, code on the level) of the keys that have a leaf, to be joined in."""
    seen = np.flatnonzero(dictionary.leaves != UNSEEN)
    key_type = pa.int64() if dictionary.key_type == "bigint" else pa.string()
    columns: dict[str, Any] = {
        TEXT: pa.array([dictionary.keys[index] for index in seen], key_type),
        code: pa.array(dictionary.hierarchy.codes[level][dictionary.leaves[seen]], pa.int32()),
    }
    return spark.createDataFrame(pa.table(columns))


def _key(df: DataFrame, name: str, hierarchy: Hierarchy | Rule) -> Column:
    column, kind = F.col(quoted(name)), df.schema[name].dataType
    if isinstance(kind, WHOLE):
        return column.cast("bigint")
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(~F.isnan(column), (column + F.lit(0.0)).cast("string"))  # -0.0 + 0.0 is 0.0
    has_days = isinstance(hierarchy, DateRule) or (isinstance(hierarchy, Hierarchy) and hierarchy.kind == "date")
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)) and has_days:
        return column.cast("date").cast("string")
    if isinstance(kind, T.StringType):
        # Python reads no text that is not UTF-8
        return F.make_valid_utf8(F.collate(column, "UTF8_BINARY") if kind.collation != "UTF8_BINARY" else column)
    if isinstance(kind, (T.BooleanType, T.DateType, T.DecimalType, T.TimestampType, T.TimestampNTZType)):
        return column.cast("string")
    raise ConfigurationError(
        f"columns.quasi_identifiers.{name}: a column of type {kind.simpleString()} has no hierarchy. "
        "Use a text, number, truth value, date or timestamp."
    )


def _parser(keyed: DataFrame, name: str, numbers: Collection[str]) -> Callable[[str], Any]:
    if isinstance(keyed.schema[name].dataType, T.LongType):
        return int
    return Decimal if name in numbers else str


def _dictionary(
    name: str,
    hierarchy: Hierarchy | Rule,
    parse: Callable[[str], Any],
    found: list[tuple[str | None, int]],
    nulls: str,
) -> Dictionary:
    known = sorted((text, rows) for text, rows in found if text is not None)
    null_rows = sum(rows for text, rows in found if text is None)
    if not isinstance(hierarchy, Hierarchy):
        if not known and null_rows:
            raise DataError(f"Column {name} holds nulls only: leave it out of the quasi-identifiers.", rows=null_rows)
        hierarchy = hierarchy.build(text for text, _ in known)
    values = [parse(text) for text, _ in known]
    if hierarchy.bins is not None:
        leaves = [UNSEEN if index == OUTSIDE else index for index in values]
    else:
        leaves = [_leaf(hierarchy, value) for value in values]
    if null_rows and nulls == "value":
        hierarchy = hierarchy.with_null()
    return Dictionary(
        name,
        hierarchy,
        "bigint" if parse is int else "string",
        values if parse is int else [text for text, _ in known],
        np.array(leaves, dtype=np.int32),
        np.array([rows for _, rows in known], dtype=np.int64),
        null_rows,
    )


def _leaf(hierarchy: Hierarchy, key: Any) -> int:
    leaf = hierarchy.leaf_of(key)
    return UNSEEN if leaf is None else leaf
