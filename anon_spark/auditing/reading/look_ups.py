"""Look-ups of texts in tables that the driver holds. All look-ups of a call share one broadcast, which is a job of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from anon_spark.auditing.reading.values import private, quoted
from anon_spark.engine import runs_in_one_task, small_frame

_WANTED, _HASH, _PLACE, _KEY, _FOUND = (private(f"look_{part}") for part in ("wanted_", "hash", "place", "key", "found"))


class LookUp(NamedTuple):
    """A text of each row, a table of texts (each once) and what is found at each, and the name of the column with that."""

    text: Column
    keys: Sequence[str]
    found: Sequence[Any]
    name: str


def with_found(frame: DataFrame, look_ups: Sequence[LookUp], kind: pa.DataType) -> DataFrame:
    """Append what each look-up finds; null for a text that its table lacks, and for null.

    kind: the type of all that is found. Guarantee: one row in, one row out. The tables travel as a joined frame, or with the
    code of a task, never as literals of a plan.
    Cost: one broadcast, one join per look-up; in a run on a small table one pass of the rows through Arrow. No action.
    """
    if not look_ups:
        return frame
    if runs_in_one_task() and _in_arrow(frame):
        return _looked_up(frame, look_ups, kind)
    return _joined(frame, look_ups, kind)


def _in_arrow(frame: DataFrame) -> bool:
    """Whether Arrow has types for all columns: a kept column may be of any type."""
    try:
        to_arrow_schema(frame.schema)
    except PySparkTypeError:
        return False
    return True


def _looked_up(frame: DataFrame, look_ups: Sequence[LookUp], kind: pa.DataType) -> DataFrame:
    """All look-ups in one step, in Arrow: on few rows a join costs more to plan than to run."""
    wanted = [one.text.alias(f"{_WANTED}{place}") for place, one in enumerate(look_ups)]
    tables = [(pa.array(one.keys, pa.string()), pa.array(one.found, kind)) for one in look_ups]
    kinds = [*(field.dataType for field in frame.schema), *[from_arrow_type(kind)] * len(look_ups)]
    kept, names = len(frame.columns), [f"{_FOUND}_{at}" for at in range(len(kinds))]  # Spark's step takes no name with a dot

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = zip(batch.columns[kept:], tables, strict=True)
            found = (values.take(pc.index_in(text, value_set=keys.cast(text.type))) for text, (keys, values) in texts)
            yield pa.RecordBatch.from_arrays([*batch.columns[:kept], *found], names=names)

    texts = frame.select(*(F.col(quoted(name)).alias(at) for name, at in zip(frame.columns, names, strict=False)), *wanted)
    found = texts.mapInArrow(find, StructType([StructField(*field) for field in zip(names, kinds, strict=True)]))
    return found.toDF(*frame.columns, *(one.name for one in look_ups))


def _joined(frame: DataFrame, look_ups: Sequence[LookUp], kind: pa.DataType) -> DataFrame:
    """A join per look-up. Texts meet by their 64-bit hash first, which Spark probes much faster, and are then compared."""
    table = pa.table(
        {
            _PLACE: pa.array([place for place, one in enumerate(look_ups) for _ in one.keys], pa.int32()),
            _KEY: pa.array([key for one in look_ups for key in one.keys], pa.string()),
            _FOUND: pa.array([found for one in look_ups for found in one.found], kind),
        }
    )
    known = small_frame(frame.sparkSession, table).select(F.xxhash64(_PLACE, _KEY).alias(_HASH), _KEY, _FOUND)
    kept = [F.col(quoted(name)) for name in frame.columns]
    wanted = [f"{_WANTED}{place}" for place in range(len(look_ups))]
    joined = frame.select(*kept, *(one.text.alias(name) for one, name in zip(look_ups, wanted, strict=True)))
    for place, (one, name) in enumerate(zip(look_ups, wanted, strict=True)):
        # the coalesce keeps Spark from making the text a second join key
        same = (F.xxhash64(F.lit(place), name) == F.col(_HASH)) & F.coalesce(F.col(name) == F.col(_KEY), F.lit(False))
        before = [F.col(quoted(column)) for column in joined.columns]
        joined = joined.join(F.broadcast(known), same, "left").select(*before, F.col(_FOUND).alias(one.name))
    return joined.select(*kept, *(F.col(quoted(one.name)) for one in look_ups))
