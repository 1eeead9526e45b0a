"""Nested records as the audit reads them: fields by dotted path through arrays of structs, the rows of a person together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.reading.recode import KEPT, NULL, STATUS, Climb, with_codes
from anon_spark.auditing.reading.values import hashed, private, quoted, require_columns
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NodeType, TreeSchema

RECORD, CHAINS, CONTENT, LEAST, GREATEST = (
    private(name) for name in ("record", "chains", "content", "least_mark", "greatest_mark")
)
ABSENT, UNKNOWN = -1, -2  # instead of a leaf

_HASH, _MARK, _WAY = private("hash"), private("kept_mark"), private("way")
_ELEMENT, _AT = "element", "at"


def require_tree(frame: DataFrame, schema: TreeSchema, hierarchies: Mapping[str, Hierarchy], where: str) -> None:
    """Raise unless every node type has a hierarchy and its field is there. Cost: none, reads the schema."""
    without = [name for name in schema.names if name not in hierarchies]
    if without:
        raise ConfigurationError(f"Node types without a hierarchy: {', '.join(without)}.")
    require_columns(frame, list(dict.fromkeys(node_type.steps[0] for node_type in schema)), where)
    for node_type in schema:
        _Place.of(frame.schema, node_type)


def records_of(
    frame: DataFrame, schema: TreeSchema, hierarchies: Mapping[str, Hierarchy], record: Column, keep: Sequence[str]
) -> DataFrame:
    """One row per record: RECORD, STATUS, CHAINS, CONTENT, and LEAST and GREATEST of the marks of its kept values.

    record: the column that identifies a record. CHAINS: lists with one number per node type: the leaf of its value, the
    number of leaves for null, ABSENT or UNKNOWN; the values of one path are in one list. An element that is null as a whole
    is no value; a null inside an element is a value. STATUS: the bits of all values. CONTENT: a hash of all values, whatever
    the order of arrays and rows.
    Cost: two broadcast joins per node type at most, one shuffle of unfolded rows by record; no action.
    """
    places = [_Place.of(frame.schema, node_type) for node_type in schema]
    rows = unfolded_values(frame, schema, record, keep)
    rows = rows.withColumn(_HASH, hashed(rows, [*map(raw_column, range(len(places))), *map(there_column, range(len(places)))]))
    ordered = [hierarchies[node_type.name] for node_type in schema]
    climbs = [
        Climb(raw_column(rank), raw_column(rank), hierarchy, 0, _status(rank)) for rank, hierarchy in enumerate(ordered)
    ]
    rows = with_codes(rows.select("*", *(F.lit(KEPT).alias(climb.status) for climb in climbs)), climbs)
    leaves, faults = [], []
    for rank, hierarchy in enumerate(ordered):
        there, fault = F.col(there_column(rank)), F.col(_status(rank))
        leaf = F.when(fault == NULL, F.lit(len(hierarchy.keys))).otherwise(F.coalesce(F.col(raw_column(rank)), F.lit(UNKNOWN)))
        leaves.append(F.when(there, leaf).otherwise(F.lit(ABSENT)).cast("int"))
        faults.append(F.when(there, fault).otherwise(F.lit(KEPT)))
    bits = reduce(lambda left, right: left.bitwiseOR(right), faults)
    return (
        rows.select(RECORD, F.array(*leaves).alias(CHAINS), bits.alias(STATUS), _HASH, _MARK)
        .groupBy(RECORD)
        .agg(
            F.bit_or(STATUS).alias(STATUS),
            F.collect_set(CHAINS).alias(CHAINS),
            F.xxhash64(F.sort_array(F.collect_list(_HASH))).alias(CONTENT),
            F.min(_MARK).alias(LEAST),
            F.max(_MARK).alias(GREATEST),
        )
    )


def unfolded_values(frame: DataFrame, schema: TreeSchema, record: Column, keep: Sequence[str] = ()) -> DataFrame:
    """One row per innermost element: RECORD, a mark of kept values, and by rank of node type its value and its presence."""
    places = [_Place.of(frame.schema, node_type) for node_type in schema]
    return _unfolded(frame.select("*", record.alias(RECORD), hashed(frame, keep).alias(_MARK)), places)


def raw_column(rank: int) -> str:
    return private(f"raw_{rank}")


def there_column(rank: int) -> str:
    return private(f"there_{rank}")


def _status(rank: int) -> str:
    return private(f"status_{rank}")


def _array(way: int, depth: int) -> str:
    return private(f"array_{way}_{depth}")


@dataclass(frozen=True)
class _Place:
    """The place of the values of a node type: the arrays on the way, each by the names that lead to it, then the last names."""

    arrays: tuple[tuple[str, ...], ...]
    value: tuple[str, ...]
    kind: T.DataType

    @classmethod
    def of(cls, table: T.StructType, node_type: NodeType) -> _Place:
        arrays: list[tuple[str, ...]] = []
        names: list[str] = []
        kind: T.DataType = table
        for step in node_type.steps:
            if not isinstance(kind, T.StructType) or step not in kind.names:
                raise ConfigurationError(
                    f"Field {node_type.field} of node type {node_type.name} not found: nothing is called {step} there."
                )
            names.append(step)
            kind = kind[step].dataType
            while isinstance(kind, T.ArrayType):
                arrays.append(tuple(names))
                names, kind = [], kind.elementType
        if isinstance(kind, (T.StructType, T.MapType)):
            raise ConfigurationError(
                f"Field {node_type.field} of node type {node_type.name} is no value but {kind.simpleString()}."
            )
        return cls(tuple(arrays), tuple(names), kind)


def _longest(places: Sequence[_Place]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """The ways through arrays that are not the beginning of another one."""
    ways = {place.arrays for place in places}
    yield from sorted(way for way in ways if not any(way != other and way == other[: len(way)] for other in ways))


def _unfolded(frame: DataFrame, places: Sequence[_Place]) -> DataFrame:
    """One row per innermost element of every way through arrays: the values of the node types on it, and whether they exist.

    In one pass, so that rows have the same numbers on all ways; another read may have another order.
    """
    ways = list(_longest(places))
    frame = frame.select("*", F.explode(F.array(*map(F.lit, range(len(ways))))).alias(_WAY))
    for way, arrays in enumerate(ways):
        for depth, names in enumerate(arrays):
            array = F.when(F.col(_WAY) == way, _inside(way, depth, names))
            wrapped = F.transform(array, lambda element, at: F.struct(element.alias(_ELEMENT), at.alias(_AT)))
            frame = frame.select("*", F.explode_outer(wrapped).alias(_array(way, depth)))
    columns = [F.col(RECORD), F.col(_MARK)]
    for rank, place in enumerate(places):
        value, there = F.lit(None).cast(_plain(place.kind)), F.lit(False)
        for way, arrays in enumerate(ways):
            if place.arrays == arrays[: len(place.arrays)]:
                way_value, is_there = _value(way, place)
                value = F.when(F.col(_WAY) == way, way_value.cast(_plain(place.kind))).otherwise(value)
                there = F.when(F.col(_WAY) == way, is_there).otherwise(there)
        columns += [value.alias(raw_column(rank)), there.alias(there_column(rank))]
    return frame.select(*columns)


def _value(way: int, place: _Place) -> tuple[Column, Column]:
    """The value of a node type that is on a way, and whether there is one."""
    depth, there = len(place.arrays), F.lit(True)
    if depth:
        there = F.isnotnull(_array(way, depth - 1))
        there = there & F.isnotnull(_inside(way, depth, ())) if place.value else there
    return _inside(way, depth, place.value), there


def _plain(kind: T.DataType) -> T.DataType:
    """Texts are compared byte by byte."""
    return T.StringType() if isinstance(kind, T.StringType) else kind


def _inside(way: int, depth: int, names: Sequence[str]) -> Column:
    """A field of the row (depth 0), or of the element that was unfolded at a depth of a way."""
    if depth == 0:
        first, rest = F.col(quoted(names[0])), names[1:]
    else:
        first, rest = F.col(_array(way, depth - 1)).getField(_ELEMENT), names
    return reduce(lambda column, name: column.getField(name), rest, first)
