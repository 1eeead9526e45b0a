"""Where the values of each node type stand in a nested table, and the table unfolded to one row per innermost element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import LINK, PREFIX, quoted
from anon_spark.errors import ConfigurationError, did_you_mean
from anon_spark.model.tree import NodeType, TreeSchema

AT = PREFIX + "at_"  # + depth: an element of the array at that depth
INDEX = PREFIX + "index_"  # + depth: its place, null where there is none
PRESENT = PREFIX + "present_"  # + rank: whether the row has a node of that type

Steps = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """The arrays to unfold, outermost first, each by its steps from the element before, and the value inside the last."""

    arrays: tuple[Steps, ...]
    value: Steps
    kind: T.DataType


def places_of(table: T.StructType, schema: TreeSchema) -> dict[str, Place]:
    """Find every node type in the schema of a table. Raises ConfigurationError; reads nothing.

    Guarantee: the arrays of a node type begin with those of its parent, so every value hangs below one value of the parent.
    """
    places = {node_type.name: _place(table, node_type) for node_type in schema}
    for node_type in schema:
        name, parent = node_type.name, node_type.parent
        above = () if parent is None else places[parent].arrays
        if places[name].arrays[: len(above)] != above:
            raise ConfigurationError(
                f"columns.tree: node type {name} is below {parent}, but its field {node_type.field} does not lie inside the "
                f"array of {schema[str(parent)].field}. Exchange the node types, or put {name} elsewhere."
            )
    return places


def _place(table: T.StructType, node_type: NodeType) -> Place:
    name, path = node_type.name, node_type.field
    arrays: list[Steps] = []
    since: list[str] = []
    kind: T.DataType = table
    for depth, step in enumerate(node_type.steps):
        if not isinstance(kind, T.StructType):
            raise ConfigurationError(f"columns.tree.{name}: {path} goes through a {kind.simpleString()}; give fields.")
        if step not in kind.names:
            rest = ".".join(node_type.steps[depth:])
            if any("." in inner and f"{rest}.".startswith(f"{inner}.") for inner in kind.names):
                raise ConfigurationError(
                    f"columns.tree.{name}: field {step} not found. A dot goes one field deeper: a column or field with a dot "
                    "in its name cannot be given. Rename it, in a view for instance."
                )
            raise ConfigurationError(f"columns.tree.{name}: field {step} not found.{did_you_mean(step, kind.names)}")
        kind = kind[step].dataType
        since.append(step)
        while isinstance(kind, T.ArrayType):
            arrays.append(tuple(since))
            since, kind = [], kind.elementType
    if isinstance(kind, (T.StructType, T.MapType, T.BinaryType, T.VariantType)):
        raise ConfigurationError(
            f"columns.tree.{name}: {path} is {kind.simpleString()}; give a field of text, number, truth value or date."
        )
    return Place(tuple(arrays), tuple(since), kind)


def unfolded(table: DataFrame, schema: TreeSchema, places: Mapping[str, Place]) -> DataFrame:
    """LINK, a column per node type and PRESENT + rank: every value stands in some row beside those above it.

    Arrays side by side are unfolded apart, not multiplied. Cost: no shuffle; as many rows as innermost elements.
    """
    branches = [_branch(table, schema, places, arrays) for arrays in _longest(places)]
    return reduce(DataFrame.unionByName, branches)


def _longest(places: Mapping[str, Place]) -> Iterator[tuple[Steps, ...]]:
    """The chains of arrays that are part of no other."""
    chains = {place.arrays for place in places.values()}
    yield from sorted(
        chain for chain in chains if not any(chain != other and other[: len(chain)] == chain for other in chains)
    )


def _branch(
    table: DataFrame, schema: TreeSchema, places: Mapping[str, Place], arrays: tuple[Steps, ...]
) -> DataFrame:
    frame = table
    for depth, steps in enumerate(arrays, start=1):
        frame = frame.select("*", F.posexplode_outer(_inside(depth - 1, steps)).alias(f"{INDEX}{depth}", f"{AT}{depth}"))
    values: list[Column] = []
    for rank, name in enumerate(schema.names):
        place = places[name]
        inside = place.arrays == arrays[: len(place.arrays)]
        depth = len(place.arrays)
        value = _inside(depth, place.value) if inside else F.lit(None)
        values += [
            value.cast(place.kind).alias(name),
            (_present(depth, place) if inside else F.lit(False)).alias(f"{PRESENT}{rank}"),
        ]
    return frame.select(LINK, *values)


def _inside(depth: int, steps: Sequence[str]) -> Column:
    """A field of the element at a depth; depth 0 is the row."""
    if depth == 0:
        first, rest = F.col(quoted(steps[0])), steps[1:]
    else:
        first, rest = F.col(f"{AT}{depth}"), steps
    return reduce(lambda column, step: column.getField(step), rest, first)


def _present(depth: int, place: Place) -> Column:
    """Whether the element is there; an element that is null as a whole is none, a value that is null is one."""
    if depth == 0:
        return F.lit(True)
    there = F.col(f"{INDEX}{depth}").isNotNull()
    return there & F.col(f"{AT}{depth}").isNotNull() if place.value else there


def elements(places: Mapping[str, Place]) -> Column:
    """How many values a row of the table holds over all node types, before equal siblings are merged."""
    return reduce(lambda total, place: total + _size(0, place.arrays, None), places.values(), F.lit(0).cast("bigint"))


def _size(depth: int, arrays: tuple[Steps, ...], element: Column | None) -> Column:
    if not arrays:
        return F.lit(1).cast("bigint")
    steps = arrays[0]
    if element is None:
        array = _inside(0, steps)
    else:
        array = reduce(lambda column, step: column.getField(step), steps, element)
    sizes = F.transform(array, lambda inner: _size(depth + 1, arrays[1:], inner))
    return F.coalesce(F.aggregate(sizes, F.lit(0).cast("bigint"), lambda total, size: total + size), F.lit(0).cast("bigint"))
