"""Look-ups of texts in tables that the driver holds. All look-ups of a call share one broadcast, which is a job of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import private, quoted
from anon_spark.engine import small_frame

_WANTED, _HASH, _PLACE, _KEY, _FOUND = (private(f"look_{part}") for part in ("wanted_", "hash", "place", "key", "found"))


class LookUp(NamedTuple):
    """A text of each row, a table of texts (each once) and what is found at each, and the name of the column with that."""

    text: Column
    keys: Sequence[str]
    found: Sequence[Any]
    name: str


def with_found(frame: DataFrame, look_ups: Sequence[LookUp], kind: pa.DataType) -> DataFrame:
    """Append what each look-up finds; null for a text that its table lacks, and for null.

    kind: the type of all that is found. Guarantee: one row in, one row out. Texts meet by their 64-bit hash first, which Spark
    probes much faster, and are then compared. The tables travel as a joined frame, never as literals of a plan.
    Cost: one broadcast, one join per look-up; no action.
    """
    if not look_ups:
        return frame
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
