"""Nesting of tables: the rows of one become elements of an array in the rows of another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType, IntegralType, MapType, StructType, VariantType

from anon_spark.columns import PREFIX, quoted
from anon_spark.config import InputSpec, NestedInputSpec, NestSpec
from anon_spark.errors import ConfigurationError
from anon_spark.io.tables import SMALL_BYTES, Snapshot, has_few_bytes, read_snapshot
from anon_spark.primitives.plain import without_metadata
from anon_spark.primitives.tables import require_columns

KEY = PREFIX + "key_"  # + place: a column of the key, named apart from the columns of either table
ABOVE, BELOW = PREFIX + "above", PREFIX + "below"
Fields = Sequence[tuple[str, ...]]
Nesting = TypeVar("Nesting", NestedInputSpec, NestSpec)


def read_input(spark: SparkSession, spec: InputSpec, fields: Sequence[str]) -> Snapshot:
    """The input table at its pinned version, with its nested tables at theirs.

    fields: what the job reads, as dotted names; of a nested table only these and its keys are read.
    Guarantee: a single table is what `read_snapshot` returns. With nested tables the id holds the ids and versions of all,
    and there is a version only if all have one. Arrays are sorted, so they do not depend on the order of rows. No column has
    metadata: what curators wrote there is not for readers of a release.
    Cost: metadata only; reading the frame shuffles every nested table and the table above it once.
    """
    outermost = _plain(read_snapshot(spark, spec))
    if not isinstance(spec, NestedInputSpec) or not spec.nest:
        return outermost
    parts = {"input": outermost}
    frame = _nested(spark, outermost.frame, spec.nest, [tuple(field.split(".")) for field in fields], "input", parts)
    origins = {key: [part.table_id or part.table, part.version] for key, part in parts.items()}
    versioned = all(part.version is not None for part in parts.values())
    return Snapshot(
        frame=frame,
        table=_table_names(parts, versioned),
        version=outermost.version if versioned else None,
        table_id=json.dumps(origins, separators=(",", ":")),
        location=outermost.location,
        parts=parts,
        small=all(part.small for part in parts.values()),
    )


def reads_little(spec: InputSpec | NestSpec) -> bool:
    """Whether a run on an input is so short that its session should start fast: all tables have few bytes. Needs no Spark."""
    nested = spec.nest if isinstance(spec, (NestedInputSpec, NestSpec)) else {}
    return has_few_bytes(spec.table, SMALL_BYTES[spec.format]) and all(map(reads_little, nested.values()))


def as_published(spec: InputSpec, metadata: Mapping[str, Any]) -> InputSpec:
    """The input at the versions that the commit of a release names, for an audit.

    Raises ConfigurationError where the release was made of other tables than the job names.
    """
    if not isinstance(spec, NestedInputSpec) or not spec.nest:
        return spec.model_copy(update={"version": metadata.get("input_version")})
    versions = _versions(metadata.get("input_id"))
    pinned = _at(spec, "input", versions)
    if versions:
        raise ConfigurationError("input.nest: the current release was made of more tables than the job names.")
    return pinned


def nesting_notes(source: Snapshot, spec: InputSpec) -> list[str]:
    """Messages on nested rows that are left out because no row above has their key, and on keys that several rows have.

    Counts only. Cost: one job per nested table, with one shuffle of its keys and one of those above; none without nesting.
    """
    nest = spec.nest if isinstance(spec, NestedInputSpec) else {}
    return [note for key, nested, above in _pairs(nest, "input") for note in _notes(source.parts, key, nested, above)]


def with_elements(
    above: DataFrame, below: DataFrame, name: str, on: Mapping[str, str], columns: Sequence[str]
) -> DataFrame:
    """Append the rows of `below` with a row's key as an array of structs of `columns`, sorted; empty where there are none.

    Guarantee: rows of `above` unchanged, also those that share a key or have none: null is no key.
    Cost: one shuffle of each by the key; no action.
    """
    keys = [F.col(quoted(theirs)).alias(f"{KEY}{place}") for place, theirs in enumerate(on.values())]
    element = F.struct(*(F.col(quoted(column)).alias(column) for column in columns))
    grouped = (
        below.select(*keys, element.alias(BELOW))
        .groupBy(*(F.col(f"{KEY}{place}") for place in range(len(on))))
        .agg(F.sort_array(F.collect_list(BELOW)).alias(BELOW))
    )
    same = [F.col(quoted(mine)) == F.col(f"{KEY}{place}") for place, mine in enumerate(on)]
    none = F.array().cast(grouped.schema[BELOW].dataType)
    joined = above.join(grouped, same, "left")
    return joined.select(*(F.col(quoted(column)) for column in above.columns), F.coalesce(BELOW, none).alias(name))


def _plain(table: Snapshot) -> Snapshot:
    return replace(table, frame=without_metadata(table.frame))


# -- reading --------------------------------------------------------------------------------------------------------


def _nested(
    spark: SparkSession,
    above: DataFrame,
    nest: Mapping[str, NestSpec],
    fields: Fields,
    where: str,
    parts: dict[str, Snapshot],
) -> DataFrame:
    for name, spec in nest.items():
        key = f"{where}.nest.{name}"
        below = [field[1:] for field in fields if field[0] == name and len(field) > 1]
        columns = list(dict.fromkeys(field[0] for field in below))
        parts[key] = _plain(read_snapshot(spark, spec, key))
        frame = _nested(spark, parts[key].frame, spec.nest, below, key, parts)
        _refuse(above, frame, name, spec.on, columns, key)
        above = with_elements(above, frame, name, spec.on, columns)
    return above


def _refuse(
    above: DataFrame, below: DataFrame, name: str, on: Mapping[str, str], columns: Sequence[str], key: str
) -> None:
    """Refuse what cannot be joined or sorted. Types of keys must agree: a text that Spark reads as a number may fail late."""
    if name.lower() in map(str.lower, above.columns):
        raise ConfigurationError(f"{key}: the table above has a column {name} already. Choose another name.")
    for frame, names, what in ((above, [*on], f"{key}.on"), (below, [*on.values()], f"{key}.on"), (below, columns, key)):
        try:
            require_columns(frame, names)
        except ConfigurationError as error:
            raise ConfigurationError(f"{what}: {error}", **error.facts) from None
    for mine, theirs in on.items():
        kinds = (above.schema[mine].dataType, below.schema[theirs].dataType)
        if kinds[0] != kinds[1] and not all(isinstance(kind, (IntegralType, DecimalType)) for kind in kinds):
            named = zip((mine, theirs), kinds, strict=True)
            types = " and ".join(f"{column} is {kind.simpleString()}" for column, kind in named)
            raise ConfigurationError(f"{key}.on: {types}. Give keys of one type.")
    for column in columns:
        if _without_order(below.schema[column].dataType):
            raise ConfigurationError(f"{key}: column {column} holds a map or variant, which cannot be nested.")


def _without_order(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _without_order(kind.elementType)
    if isinstance(kind, StructType):
        return any(_without_order(part.dataType) for part in kind.fields)
    return isinstance(kind, (MapType, VariantType))


def _table_names(parts: Mapping[str, Snapshot], versioned: bool) -> str:
    """The tables as text for people; the outermost version is left out where the whole has one."""
    outermost, *others = (
        part.table if part.version is None or (versioned and key == "input") else f"{part.table} at version {part.version}"
        for key, part in parts.items()
    )
    arrays = (key.removeprefix("input.nest.").replace(".nest.", ".") for key in list(parts)[1:])
    return f"{outermost} ({'; '.join(f'{array}: {table}' for array, table in zip(arrays, others, strict=True))})"


# -- versions of a release --------------------------------------------------------------------------------------------


def _versions(origins: object) -> dict[str, int | None]:
    try:
        return {key: version for key, (_, version) in json.loads(str(origins)).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _at(spec: Nesting, key: str, versions: dict[str, int | None]) -> Nesting:
    """The spec with the versions of its table and of those below it; removes these from `versions`."""
    if key not in versions:
        raise ConfigurationError(f"{key}: the current release was not made of this table. Run the job again.")
    version = versions.pop(key)
    nest = {name: _at(below, f"{key}.nest.{name}", versions) for name, below in spec.nest.items()}
    return spec.model_copy(update={"version": version, "nest": nest})


# -- notes on the keys ------------------------------------------------------------------------------------------------


def _pairs(nest: Mapping[str, NestSpec], where: str) -> Iterator[tuple[str, NestSpec, str]]:
    """(key, table, key of the table above it) of every nested table."""
    for name, spec in nest.items():
        key = f"{where}.nest.{name}"
        yield key, spec, where
        yield from _pairs(spec.nest, key)


def _notes(parts: Mapping[str, Snapshot], key: str, spec: NestSpec, above: str) -> Iterator[str]:
    mine = _counted(parts[above].frame, [*spec.on], "above", ABOVE)
    theirs = _counted(parts[key].frame, [*spec.on.values()], "below", BELOW)
    names = [f"{KEY}{place}" for place in range(len(spec.on))]
    both = mine.join(theirs, [F.col(f"above.{name}") == F.col(f"below.{name}") for name in names], "full")
    lone = F.coalesce(F.sum(F.when(F.col(ABOVE).isNull(), F.col(BELOW))), F.lit(0))
    shared = F.count_if(reduce(and_, (F.col(f"above.{name}").isNotNull() for name in names), F.col(ABOVE) > 1))
    left_out, several = both.agg(lone, shared).collect()[0]
    if left_out:
        yield f"{key}: {left_out:,} rows are left out, because no row of the table above has their key."
    if several:
        yield f"{key}.on: {several:,} keys stand in several rows of the table above; what is nested is in each of these."


def _counted(frame: DataFrame, columns: Sequence[str], alias: str, count: str) -> DataFrame:
    """Rows by key; null is a key here, so that its rows are counted."""
    keys = [F.col(quoted(column)).alias(f"{KEY}{place}") for place, column in enumerate(columns)]
    return frame.groupBy(*keys).agg(F.count(F.lit(1)).alias(count)).alias(alias)

