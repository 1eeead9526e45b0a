"""The audit's own recoding: source values climb a hierarchy through joins built here from the bare hierarchy.

Nothing is shared with the code that makes the release. A value finds its leaf as docs/values.md says, by Spark
expressions: numbers by their one plain spelling, days as ISO text, everything else byte by byte. Keys, labels and bin
borders travel as joined frames, never as literals of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, IntegralType, NumericType

from anon_spark.auditing.reading.spelling import BEYOND, FLOOR, day_text, floor_of, number_text, plain_text
from anon_spark.auditing.reading.values import private
from anon_spark.engine import small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy

KEPT, NULL, UNSEEN = 0, 1, 2  # bits of a row's status: nothing wrong, holds a null, holds an unseen value
STATUS = private("status")

_NULL_CODE = -1
_KEY, _WANTED, _FOUND, _NUMERIC = (private(name) for name in ("key", "wanted", "found", "numeric"))
_START, _STOP, _WIDTH, _LAST = (private(name) for name in ("start", "stop", "width", "last"))


def with_recoded(frame: DataFrame, raw: str, label: str, status: str, hierarchy: Hierarchy, level: int) -> DataFrame:
    """Replace `raw` by `label`, its label on `level`; set the bit NULL or UNSEEN of `status` where there is no label.

    A null stays null below the top and becomes the root there; what its bit means, the caller decides.
    Guarantee: one row in, one row out. Cost: one broadcast join with the hierarchy; no action.
    """
    _check_level(hierarchy, level)
    labels = [hierarchy.labels[level][code] for code in hierarchy.codes[level]]
    of_null = F.lit(hierarchy.labels[-1][0] if level == hierarchy.height else None).cast("string")
    return _climbed(frame, raw, label, status, hierarchy, labels, pa.string(), of_null)


def with_code(frame: DataFrame, raw: str, code: str, status: str, hierarchy: Hierarchy, level: int) -> DataFrame:
    """As `with_recoded`, but `code` is the integer the hierarchy gives the label: lighter to count by.

    A null has a code of its own below the top and the root's code there. `with_label` gives the text.
    """
    _check_level(hierarchy, level)
    codes = [int(code_of_leaf) for code_of_leaf in hierarchy.codes[level]]
    of_null = F.lit(0 if level == hierarchy.height else _NULL_CODE)
    return _climbed(frame, raw, code, status, hierarchy, codes, pa.int32(), of_null)


def with_label(frame: DataFrame, code: str, label: str, hierarchy: Hierarchy, level: int) -> DataFrame:
    """Replace `code` by the label it stands for on `level`; the code of null, and no code at all, become null.

    Cost: one broadcast join with the labels of the level; no action.
    """
    _check_level(hierarchy, level)
    others = [name for name in frame.columns if name != code]
    named = ((at, text) for at, text in enumerate(hierarchy.labels[level]) if text is not None)
    looked_up = _lookup(frame, F.col(code).cast("long"), named, pa.int64(), pa.string(), _FOUND)
    return looked_up.select(*others, F.col(_FOUND).alias(label))


def with_scope(tuples: DataFrame, nulls: str) -> DataFrame:
    """Settle the status of looked-up tuples: KEPT is in scope, NULL and UNSEEN were dropped by policy (both: NULL)."""
    unseen = F.when(F.col(STATUS).bitwiseAND(UNSEEN) != 0, F.lit(UNSEEN)).otherwise(F.lit(KEPT))
    with_null = F.col(STATUS).bitwiseAND(NULL) != 0
    return tuples.withColumn(
        STATUS, F.when(with_null, F.lit(NULL)).otherwise(unseen) if nulls == "suppress" else unseen
    )


def source_totals() -> list[Column]:
    """Counts by a settled STATUS: all rows of the source, those in scope, and those dropped by each policy."""
    rows = {"in_scope": KEPT, "dropped_nulls": NULL, "dropped_unseen": UNSEEN}
    counts = [F.count_if(F.col(STATUS) == status).alias(name) for name, status in rows.items()]
    return [F.count(F.lit(1)).alias("source"), *counts]


def _check_level(hierarchy: Hierarchy, level: int) -> None:
    if not 0 <= level <= hierarchy.height:
        raise ConfigurationError(f"Level {level} does not exist: the hierarchy has levels 0 to {hierarchy.height}.")


def _climbed(
    frame: DataFrame,
    raw: str,
    name: str,
    status: str,
    hierarchy: Hierarchy,
    of_leaf: Sequence[Any],
    target: pa.DataType,
    of_null: Column,
) -> DataFrame:
    """Replace `raw` by `name`: what `of_leaf` says of the leaf of its value; `of_null` for a null, null when unseen."""
    kind = frame.schema[raw].dataType
    others = [other for other in frame.columns if other not in (raw, status)]
    value, looked_up = F.col(raw), F.col(_FOUND)
    if hierarchy.kind == "bins":
        frame, key = _bin(frame, value, kind, hierarchy)
        frame = _lookup(frame, key, enumerate(of_leaf[: len(hierarchy.keys)]), pa.int64(), target, _FOUND)
    elif hierarchy.kind == "number" or (hierarchy.kind == "text" and isinstance(kind, NumericType)):
        texts = [(text, of_leaf[leaf]) for text, leaf in hierarchy.dictionary(True)]
        if isinstance(kind, IntegralType):
            numbers = ((Decimal(text), goal) for text, goal in texts)
            whole = ((int(number), goal) for number, goal in numbers if number == int(number) and -(2**63) <= number < 2**63)
            frame = _lookup(frame, value.cast("long"), whole, pa.int64(), target, _FOUND)
        else:
            frame = _lookup(frame, number_text(value, kind), texts, pa.string(), target, _FOUND)
    else:
        key = day_text(value, kind) if hierarchy.kind == "date" else plain_text(value, kind)
        texts = [(text, of_leaf[leaf]) for text, leaf in hierarchy.dictionary(False)]
        frame = _lookup(frame, key, texts, pa.string(), target, _FOUND)
    missing = F.isnull(value) | F.isnan(value) if isinstance(kind, (DoubleType, FloatType)) else F.isnull(value)
    fault = F.when(missing, F.lit(NULL)).when(F.isnull(looked_up), F.lit(UNSEEN)).otherwise(F.lit(KEPT))
    return frame.select(
        *others, F.when(missing, of_null).otherwise(looked_up).alias(name), F.col(status).bitwiseOR(fault).alias(status)
    )


def _lookup(
    frame: DataFrame, key: Column, pairs: Iterable[tuple[Any, Any]], kind: pa.DataType, target: pa.DataType, column: str
) -> DataFrame:
    """Append `column`: what is paired with the row's key, null when there is nothing.

    Texts meet by their 64-bit hash first, which Spark probes much faster than strings, and are then compared.
    """
    keys: list[Any] = []
    goals: list[Any] = []
    for known, goal in pairs:
        keys.append(known)
        goals.append(goal)
    table = pa.table({_KEY: pa.array(keys, kind), column: pa.array(goals, target)})
    kept = [*frame.columns, column]
    same = F.col(_WANTED) == F.col(_KEY)
    if pa.types.is_string(kind):  # the coalesce keeps Spark from making the text a second join key
        same = (F.xxhash64(_WANTED) == F.xxhash64(_KEY)) & F.coalesce(same, F.lit(False))
    leaves = F.broadcast(small_frame(frame.sparkSession, table))
    return frame.withColumn(_WANTED, key).join(leaves, same, "left").select(*kept)


def _bin(frame: DataFrame, value: Column, kind: DataType, hierarchy: Hierarchy) -> tuple[DataFrame, Column]:
    """The number of the half-open bin a value falls in, by exact decimal division; the last bin is closed."""
    grid = hierarchy.bins
    if grid is None:
        raise ConfigurationError("A hierarchy of kind bins carries no bins. Build it with Hierarchy.intervals.")
    borders = pa.table(
        {
            _START: pa.array([grid.start], pa.decimal128(36, 18)),
            _STOP: pa.array([grid.stop], pa.decimal128(36, 18)),
            _WIDTH: pa.array([grid.width], pa.decimal128(36, 18)),
            _LAST: pa.array([grid.count - 1], pa.int64()),
        }
    )
    frame = frame.crossJoin(F.broadcast(small_frame(frame.sparkSession, borders)))
    frame = frame.withColumn(_NUMERIC, floor_of(number_text(value, kind)))
    floor, stop = F.col(_NUMERIC)[FLOOR], F.col(_STOP)
    # borders have no more digits than the floor: a number is at or above one when its floor is
    inside = (floor >= F.col(_START)) & ((floor < stop) | ((floor == stop) & ~F.col(_NUMERIC)[BEYOND]))
    offset = F.expr(f"(`{_NUMERIC}`.{FLOOR} - `{_START}`) div `{_WIDTH}`")
    return frame, F.when(inside, F.least(offset, F.col(_LAST)))
