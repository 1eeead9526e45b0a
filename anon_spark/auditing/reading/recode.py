"""The audit's own recoding: source values climb a hierarchy through joins built here from the bare hierarchy.

Nothing is shared with the code that makes the release. A value finds its leaf as docs/values.md says, by Spark
expressions: numbers by their one plain spelling, days as ISO text, everything else byte by byte. Keys, labels and bin
borders travel as joined frames, never as literals of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, IntegralType, NumericType

from anon_spark.auditing.reading.look_ups import LookUp, with_found
from anon_spark.auditing.reading.spelling import BEYOND, FLOOR, day_text, floor_of, number_text, plain_text
from anon_spark.auditing.reading.values import private, quoted
from anon_spark.engine import crossed, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy

KEPT, NULL, UNSEEN = 0, 1, 2  # bits of a row's status: nothing wrong, holds a null, holds an unseen value
STATUS = private("status")

_NULL_CODE = -1
_NUMERIC, _FOUND = private("numeric_"), private("found_")  # + position
_START, _STOP, _WIDTH, _LAST = (private(name) for name in ("start_", "stop_", "width_", "last_"))  # + position


class Climb(NamedTuple):
    """A column `raw` that is replaced by `name`, its label or code on a level; `status` is the column that gets its bits."""

    raw: str
    name: str
    hierarchy: Hierarchy
    level: int
    status: str = STATUS


def with_labels(frame: DataFrame, climbs: Sequence[Climb]) -> DataFrame:
    """Replace columns by labels on levels; set the bit NULL or UNSEEN of a status where there is no label.

    A null stays null below the top and becomes the root there; what its bit means, the caller decides.
    Guarantee: one row in, one row out. Cost: as `with_found`, and a broadcast more for bins; no action.
    """
    goals = []
    for climb in climbs:
        _check_level(climb.hierarchy, climb.level)
        labels = climb.hierarchy.labels[climb.level]
        of_null = labels[0] if climb.level == climb.hierarchy.height else None
        goals.append(([labels[code] for code in climb.hierarchy.codes[climb.level]], F.lit(of_null).cast("string")))
    return _climbed(frame, climbs, goals, pa.string())


def with_codes(frame: DataFrame, climbs: Sequence[Climb]) -> DataFrame:
    """As `with_labels`, but the integers that the hierarchy gives the labels: lighter to count by.

    A null has a code of its own below the top and the root's code there.
    """
    goals = []
    for climb in climbs:
        _check_level(climb.hierarchy, climb.level)
        of_null = F.lit(0 if climb.level == climb.hierarchy.height else _NULL_CODE)
        goals.append(([int(code) for code in climb.hierarchy.codes[climb.level]], of_null))
    return _climbed(frame, climbs, goals, pa.int32())


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
    frame: DataFrame, climbs: Sequence[Climb], goals: Sequence[tuple[Sequence[Any], Column]], kind: pa.DataType
) -> DataFrame:
    """Replace each `raw` by what its goal says of the leaf of its value, or of null; null when it is unseen."""
    kinds = {climb.raw: frame.schema[climb.raw].dataType for climb in climbs}
    replaced, statuses = {climb.raw for climb in climbs}, {climb.status for climb in climbs}
    others = [F.col(quoted(name)) for name in frame.columns if name not in replaced | statuses]
    bins = {place: climb.hierarchy for place, climb in enumerate(climbs) if climb.hierarchy.kind == "bins"}
    found = _with_bins(frame, {place: (F.col(quoted(climbs[place].raw)), kinds[climbs[place].raw]) for place in bins}, bins)
    look_ups = []
    for place, (climb, (of_leaf, _)) in enumerate(zip(climbs, goals, strict=True)):
        value, raw_kind, hierarchy = F.col(quoted(climb.raw)), kinds[climb.raw], climb.hierarchy
        if place in bins:
            text, known = _bin(place).cast("string"), [(str(leaf), leaf) for leaf in range(len(hierarchy.keys))]
        elif hierarchy.kind == "number" or (hierarchy.kind == "text" and isinstance(raw_kind, NumericType)):
            text = value.cast("string") if isinstance(raw_kind, IntegralType) else number_text(value, raw_kind)
            known = hierarchy.dictionary(True)
        elif hierarchy.kind == "date":
            text, known = day_text(value, raw_kind), hierarchy.dictionary(False)
        else:
            text, known = plain_text(value, raw_kind), hierarchy.dictionary(False)
        pairs = list(known)
        look_ups.append(
            LookUp(text, [key for key, _ in pairs], [of_leaf[leaf] for _, leaf in pairs], f"{_FOUND}{place}")
        )
    found = with_found(found, look_ups, kind)
    shown, bits = [], {name: [F.col(quoted(name))] for name in statuses}
    for place, (climb, (_, of_null)) in enumerate(zip(climbs, goals, strict=True)):
        value, looked_up = F.col(quoted(climb.raw)), F.col(f"{_FOUND}{place}")
        is_fraction = isinstance(kinds[climb.raw], (DoubleType, FloatType))
        missing = F.isnull(value) | F.isnan(value) if is_fraction else F.isnull(value)
        fault = F.when(missing, F.lit(NULL)).when(F.isnull(looked_up), F.lit(UNSEEN)).otherwise(F.lit(KEPT))
        shown.append(F.when(missing, of_null).otherwise(looked_up).alias(climb.name))
        bits[climb.status].append(fault)
    settled = [reduce(Column.bitwiseOR, faults).alias(name) for name, faults in bits.items()]
    return found.select(*others, *shown, *settled)


def _with_bins(
    frame: DataFrame, values: Mapping[int, tuple[Column, DataType]], bins: Mapping[int, Hierarchy]
) -> DataFrame:
    """Append, for each place, the borders of its bins and the floor of its value. Cost: a broadcast of one row."""
    if not bins:
        return frame
    borders: dict[str, Any] = {}
    for place, hierarchy in bins.items():
        grid = hierarchy.bins
        if grid is None:
            raise ConfigurationError("A hierarchy of kind bins carries no bins. Build it with Hierarchy.intervals.")
        for name, border in ((_START, grid.start), (_STOP, grid.stop), (_WIDTH, grid.width)):
            borders[f"{name}{place}"] = pa.array([border], pa.decimal128(36, 18))
        borders[f"{_LAST}{place}"] = pa.array([grid.count - 1], pa.int64())
    floors = [
        floor_of(number_text(value, kind)).alias(f"{_NUMERIC}{place}") for place, (value, kind) in values.items()
    ]
    return crossed(frame, small_frame(frame.sparkSession, pa.table(borders))).select("*", *floors)


def _bin(place: int) -> Column:
    """The number of the half-open bin a value falls in, by exact decimal division; the last bin is closed."""
    numeric, start, stop = F.col(f"{_NUMERIC}{place}"), F.col(f"{_START}{place}"), F.col(f"{_STOP}{place}")
    floor = numeric[FLOOR]
    # borders have no more digits than the floor: a number is at or above one when its floor is
    inside = (floor >= start) & ((floor < stop) | ((floor == stop) & ~numeric[BEYOND]))
    offset = F.expr(f"(`{_NUMERIC}{place}`.{FLOOR} - `{_START}{place}`) div `{_WIDTH}{place}`")
    return F.when(inside, F.least(offset, F.col(f"{_LAST}{place}")))
