"""The frequency table: one distributed aggregation of the table to its distinct tuples.

Few tuples are held by the driver as arrays, so that what follows from them needs no job. Many stay in files of the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import CLASS, MULTIPLICITY, PERSONS, POPULATION, PREFIX, ROWS, TUPLES, quoted
from anon_spark.engine import beside, small_frame
from anon_spark.errors import DataError
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.guarantee.models import Models
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.primitives.classes.held import NAMELESS, Held, held, held_tuples, tuples_of_persons, with_persons
from anon_spark.primitives.classes.population import refuse_missing, refuse_missing_in, with_population
from anon_spark.primitives.classes.sensitive import held_values, refuse_unordered, stored_values, text_columns
from anon_spark.primitives.encoding import Dictionary, dictionaries, dictionaries_of, fractions, with_codes, with_keys
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.unseen import refuse_unseen

MOST_CLASS_VALUES = 1_000
NOTHING_LEFT = "The policies for nulls and unseen values drop every row: there is nothing to release."


@dataclass(frozen=True)
class Stored:
    """Distinct tuples in files.

    `frame` has the code columns, ROWS, PERSONS (persons with this tuple only) where persons are counted, and CLASS
    where a class column is. `sets` holds the persons with several tuples: arrays of tuples with their multiplicity.
    `values` has the code columns, COLUMN, VALUE and ROWS of sensitive columns with models.
    """

    frame: DataFrame
    sets: DataFrame | None = None
    values: DataFrame | None = None


@dataclass(frozen=True)
class Frequencies:
    """Distinct tuples as leaf codes with their rows, and counts of dropped rows. The tuples are `held` or `stored`.

    sensitive: the columns with models, in the order of the job.
    """

    dictionaries: tuple[Dictionary, ...]
    tuples: int
    rows: int
    persons: int | None
    dropped_nulls: int
    dropped_unseen: int
    class_values: int
    held: Held | None = None
    stored: Stored | None = None
    sensitive: tuple[SensitiveColumn, ...] = ()

    @property
    def hierarchies(self) -> tuple[Hierarchy, ...]:
        return tuple(dictionary.hierarchy for dictionary in self.dictionaries)

    @property
    def files(self) -> Stored:
        """The tuples in files, where they are not held."""
        assert self.stored is not None, "tuples that are held are in no file"
        return self.stored


def in_files(found: Frequencies, workspace: Workspace) -> Frequencies:
    """The same with the codes and rows of its tuples in a file, whether or not the driver holds them."""
    if found.held is None:
        return found
    table = found.held.table
    columns = {name: pa.array(codes) for name, codes in zip(code_columns(len(table.codes)), table.codes, strict=True)}
    frame = small_frame(workspace.spark, pa.table({**columns, ROWS: pa.array(table.rows)}))
    return replace(found, held=None, stored=Stored(workspace.store(frame, "codes")))


def code_columns(attributes: int) -> list[str]:
    """Names of the code columns, by position of the attribute."""
    return [f"{PREFIX}c{position}" for position in range(attributes)]


def count_tuples(
    df: DataFrame,
    hierarchies: Mapping[str, Hierarchy | Rule],
    workspace: Workspace,
    *,
    nulls: str = "value",
    on_unseen: str = "error",
    class_column: str | None = None,
    person: str | None = None,
    models: Models | None = None,
    population: DataFrame | None = None,
) -> Frequencies:
    """Aggregate the table to distinct tuples of leaf codes.

    models: by sensitive column, whose values are counted by tuple. population: a table with the same quasi-identifiers, whose
    rows are counted beside; its tuples that the table lacks have no rows.

    Guarantee: counts are exact; a null is a value of its own or its row is counted as dropped; a value without leaf
    raises (or its row is counted as dropped). Cost: one shuffle of the table (two with persons), then small jobs.
    """
    names, models = list(hierarchies), models or {}
    refuse_unordered(df, models)
    others = [name for name in (class_column, person, *models) if name is not None]
    keyed = with_keys(df, hierarchies, list(dict.fromkeys(others)))
    counts = [F.count(F.lit(1)).alias(ROWS)]
    if population is not None:
        counts = [F.sum(name).alias(name) for name in (ROWS, POPULATION)]
    grouped_by = [F.col(quoted(name)) for name in names]
    if class_column is not None:
        grouped_by.append(F.col(quoted(class_column)).cast("string").alias(CLASS))
    grouped_by.extend(text_columns(keyed, models))
    both = keyed if population is None else with_population(keyed, with_keys(population, hierarchies), names)
    counted = both.groupBy(*grouped_by).agg(*counts)
    raw = counted if workspace.small else workspace.store(counted, "tuples")
    numbers = fractions(df, names)
    tuples = held_tuples(raw, names)
    if tuples is not None:
        entries = dictionaries_of(tuples, hierarchies, nulls, numbers)
        if on_unseen == "error":
            refuse_unseen(entries)
        found = _held(tuples, entries, keyed, nulls, class_column, person, models)
        if found is not None:
            return found
    raw = workspace.store(counted, "tuples") if workspace.small else raw
    entries = dictionaries(raw, hierarchies, nulls, numbers, F.col(ROWS), weight=_weight(raw))
    if on_unseen == "error":
        refuse_unseen(entries)
    return _stored(raw, entries, keyed, workspace, nulls, class_column, person, models)


def _held(
    tuples: pa.Table,
    entries: Sequence[Dictionary],
    keyed: DataFrame,
    nulls: str,
    class_column: str | None,
    person: str | None,
    models: Models,
) -> Frequencies | None:
    """The tuples as arrays; None where persons or class values are too many for that. Cost: one job with persons, else none."""
    found = held(tuples, entries, nulls, MOST_CLASS_VALUES, class_column)
    if found is None:
        return None
    if found.table.size == 0:
        raise DataError(NOTHING_LEFT, rows=0)
    refuse_missing(found.table)
    by_tuple, sensitive = held_values(found, tuples, models, keyed)
    found = replace(found, table=replace(found.table, sensitive=tuple(by_tuple)))
    if person is not None:
        sets = tuples_of_persons(keyed, [entry.name for entry in entries], person)
        if sets is None:
            return None
        _refuse_nameless(int(pc.sum(sets.column(NAMELESS)).as_py() or 0), person)
        found = with_persons(found, sets)
    table = found.table
    class_values = 0 if table.class_counts is None else table.class_counts.shape[1]
    tuples_here, rows = int((table.rows > 0).sum()), int(table.rows.sum())
    counts = (tuples_here, rows, found.persons, found.dropped_nulls, found.dropped_unseen, class_values)
    return Frequencies(tuple(entries), *counts, held=found, sensitive=tuple(sensitive))


def _stored(
    raw: DataFrame,
    entries: Sequence[Dictionary],
    keyed: DataFrame,
    workspace: Workspace,
    nulls: str,
    class_column: str | None,
    person: str | None,
    models: Models,
) -> Frequencies:
    """The tuples in files. Cost: small jobs; with persons one more shuffle of the table."""
    names = [entry.name for entry in entries]
    codes = code_columns(len(names))
    coded = with_codes(raw, entries, [0] * len(names), codes)
    if all(dictionary.is_complete for dictionary in entries) and POPULATION not in raw.columns:
        rows, dropped_nulls, dropped_unseen = int(entries[0].rows.sum()) + entries[0].null_rows, 0, 0
    else:
        rows, dropped_nulls, dropped_unseen = _account(coded, names, codes, nulls)
    if rows == 0:
        raise DataError(NOTHING_LEFT, rows=0)
    kept = coded.where(_all_coded(codes))
    class_values = 0
    if class_column is not None:
        kept, class_values = _with_class_codes(kept, class_column)
    columns = [*codes, *([CLASS] if class_column is not None else [])]
    if all(dictionary.is_injective for dictionary in entries) and not models:
        frame = kept.select(*columns, *_counts(raw))
    else:
        frame = kept.groupBy(*columns).agg(*(F.sum(name).alias(name) for name in _counts(raw)))
    sets, persons = None, None
    if person is not None:
        frame, sets, persons = _with_persons(keyed, frame, entries, person, workspace)
    frame = workspace.store(frame, "codes")
    if POPULATION in raw.columns:
        refuse_missing_in(frame, codes)
    tuples = frame.select(*codes).distinct().count() if class_column is not None else frame.count()
    values: DataFrame | None = None
    sensitive: list[SensitiveColumn] = []
    if models:
        values, sensitive = stored_values(kept.where(F.col(ROWS) > 0), codes, models, keyed)
        values = workspace.store(values, "values")
    counts = (tuples, rows, persons, dropped_nulls, dropped_unseen, class_values)
    return Frequencies(tuple(entries), *counts, stored=Stored(frame, sets, values), sensitive=tuple(sensitive))


def _counts(raw: DataFrame) -> list[str]:
    return [ROWS, *([POPULATION] if POPULATION in raw.columns else [])]


def _weight(raw: DataFrame) -> Column | None:
    """By what a value counts as one that completes a rule: rows of the table and of the population."""
    return F.col(ROWS) + F.col(POPULATION) if POPULATION in raw.columns else None


def _all_coded(codes: Sequence[str]) -> Column:
    condition = F.lit(True)
    for code in codes:
        condition = condition & F.col(code).isNotNull()
    return condition


def _account(coded: DataFrame, names: Sequence[str], codes: Sequence[str], nulls: str) -> tuple[int, int, int]:
    """Rows that stay, that a null drops, and that only an unseen value drops."""
    complete = _all_coded(codes)
    by_null = F.lit(False)
    if nulls == "suppress":  # else null lacks a leaf only if all rows with it are dropped for another reason
        for name, code in zip(names, codes, strict=True):
            by_null = by_null | (F.col(quoted(name)).isNull() & F.col(code).isNull())

    def rows_where(condition: Column) -> Column:
        return F.coalesce(F.sum(F.when(condition, F.col(ROWS))), F.lit(0))

    row = coded.agg(rows_where(complete), rows_where(by_null), rows_where(~complete & ~by_null)).first()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def _with_class_codes(kept: DataFrame, class_column: str) -> tuple[DataFrame, int]:
    """The class column as small integers; null is a class value of its own."""
    what = f"lattice.class_column {class_column}: distinct values"
    values = collect_small(kept.select(CLASS).distinct(), MOST_CLASS_VALUES, what)
    texts = sorted(values.column(CLASS).to_pylist(), key=lambda text: (text is None, text))
    value = PREFIX + "value"
    codes = pa.array(range(len(texts)), pa.int32())
    lookup = small_frame(kept.sparkSession, pa.table({PREFIX + "code": codes, value: pa.array(texts, pa.string())}))
    joined = kept.join(beside(lookup), F.col(CLASS).eqNullSafe(F.col(value)))
    return joined.withColumn(CLASS, F.col(PREFIX + "code")).drop(value, PREFIX + "code"), len(texts)


def _refuse_nameless(rows: int, person: str) -> None:
    if rows:
        raise DataError(
            f"columns.person {person}: {rows:,} rows have no person. Complete the column, or leave those rows out.", rows=rows
        )


def _with_persons(
    keyed: DataFrame, frame: DataFrame, entries: Sequence[Dictionary], person: str, workspace: Workspace
) -> tuple[DataFrame, DataFrame, int]:
    """Persons with one tuple counted at that tuple; the others as distinct sets of tuples with multiplicity."""
    codes = code_columns(len(entries))
    who = F.col(quoted(person))
    _refuse_nameless(keyed.where(who.isNull()).count(), person)
    coded = with_codes(keyed, entries, [0] * len(entries), codes).where(_all_coded(codes))
    by_person = workspace.store(
        coded.groupBy(who).agg(F.array_sort(F.collect_set(F.struct(*codes))).alias(TUPLES)).select(TUPLES), "persons"
    )
    several = F.size(TUPLES) > 1
    only = by_person.where(~several).select(F.col(TUPLES)[0].alias("tuple")).select("tuple.*")
    singles = only.groupBy(*codes).agg(F.count(F.lit(1)).alias(PERSONS))
    sets = workspace.store(by_person.where(several).groupBy(TUPLES).agg(F.count(F.lit(1)).alias(MULTIPLICITY)), "sets")
    # rows and persons as two halves of one sum: a tuple with several class values must not repeat its persons
    groups, counts = [name for name in (*codes, CLASS) if name in frame.columns], _counts(frame)
    lone = singles.withColumns({name: F.lit(0) for name in (CLASS, *counts)}).select(*groups, *counts, PERSONS)
    counted = frame.withColumn(PERSONS, F.lit(0)).select(*groups, *counts, PERSONS).unionByName(lone).groupBy(*groups)
    return counted.agg(*(F.sum(name).alias(name) for name in (*counts, PERSONS))), sets, by_person.count()
