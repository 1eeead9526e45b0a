"""Distinct tuples that the driver holds as arrays: few enough that nothing that follows from them needs a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.columns import CLASS, MULTIPLICITY, POPULATION, PREFIX, ROWS, TUPLES, quoted
from anon_spark.errors import LimitExceeded
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.tuples import PersonSets, TupleTable
from anon_spark.primitives.encoding import UNSEEN, Dictionary, codes_of

HASH = PREFIX + "hash"  # of the values of a tuple, before they are coded
NAMELESS = PREFIX + "nameless"
MOST_CELLS = 2**20  # values of all tuples together
MOST_COUNTS = 2**22  # of class values by tuple
MOST_MEMBERS = 2**21  # tuples of persons who have several
DROPPED = -1


@dataclass(frozen=True, eq=False)
class Held:
    """Distinct tuples of leaf codes, and how to find that of a row.

    hashes: of the distinct tuples before they were coded, ascending; tuple_of: the place of each in the table, or DROPPED by a
    policy; table: codes, rows, and where they are counted persons and class values.
    """

    hashes: Ints
    tuple_of: Codes
    table: TupleTable
    dropped_nulls: int = 0
    dropped_unseen: int = 0
    persons: int | None = None


def tuple_hash(names: Sequence[str]) -> Column:
    """64 bits of the values of a tuple; null is a value."""
    return F.xxhash64(*(part for name in names for part in (F.isnull(quoted(name)), F.col(quoted(name)))))


def few(frame: DataFrame, most: int) -> pa.Table | None:
    """The rows of a frame if there are at most so many. Cost: one job."""
    table = frame.limit(most + 1).toArrow()
    return table if table.num_rows <= most else None


def held_tuples(raw: DataFrame, names: Sequence[str]) -> pa.Table | None:
    """The distinct tuples with HASH, ROWS and maybe CLASS, if they are few and each has a hash of its own. Cost: one job."""
    table = few(raw.withColumn(HASH, tuple_hash(names)), MOST_CELLS // len(names))
    if table is None:
        return None
    places = [table.column(name).combine_chunks().dictionary_encode("encode").indices.to_numpy() for name in names]
    distinct = np.unique(np.stack(places), axis=1).shape[1] if table.num_rows else 0
    return table if distinct == len(each_once(table.column(HASH).to_numpy())) else None


def held(tuples: pa.Table, entries: Sequence[Dictionary], nulls: str, most_values: int, class_column: str | None) -> Held | None:
    """The tuples by their codes; None where class values by tuple are too many to be held. No Spark."""
    codes = np.stack(codes_of(tuples, entries))
    rows = tuples.column(ROWS).to_numpy().astype(np.int64)
    known = (codes != UNSEEN).all(axis=0)
    by_null = np.zeros_like(known)
    if nulls == "suppress":  # else null lacks a leaf only if all rows with it are dropped for another reason
        for entry, column in zip(entries, codes, strict=True):
            by_null |= tuples.column(entry.name).is_null().to_numpy() & (column == UNSEEN)
    distinct, tuple_of_row = np.unique(codes[:, known], axis=1, return_inverse=True)
    place = np.full(known.size, DROPPED, dtype=np.int32)
    place[known] = tuple_of_row.reshape(-1)
    counts = np.zeros(distinct.shape[1], dtype=np.int64)
    np.add.at(counts, place[known], rows[known])
    table = TupleTable((0,) * len(entries), np.ascontiguousarray(distinct, dtype=np.int32), counts)
    if class_column is not None:
        values = _class_codes(tuples, known, most_values, class_column)
        if counts.size * (int(values.max(initial=0)) + 1) > MOST_COUNTS:
            return None
        by_class = np.zeros((counts.size, int(values.max(initial=-1)) + 1), dtype=np.int64)
        np.add.at(by_class, (place[known], values), rows[known])
        table = replace(table, class_counts=by_class)
    if POPULATION in tuples.column_names:
        population = np.zeros_like(counts)
        there = place != DROPPED
        np.add.at(population, place[there], tuples.column(POPULATION).to_numpy().astype(np.int64)[there])
        table = replace(table, population=population)
    hashes, first = np.unique(tuples.column(HASH).to_numpy(), return_index=True)
    return Held(hashes, place[first], table, int(rows[by_null & ~known].sum()), int(rows[~by_null & ~known].sum()))


def _class_codes(tuples: pa.Table, known: NDArray[np.bool_], most: int, class_column: str) -> Ints:
    """The values of the class column as small integers; null is a value of its own, the last."""
    texts = tuples.column(CLASS).filter(pa.array(known)).to_pylist()
    ordered = sorted(set(texts), key=lambda text: (text is None, text))
    if len(ordered) > most:
        raise LimitExceeded(f"lattice.class_column {class_column}: distinct values: more than {most:,}, too many for the driver.")
    number = {text: at for at, text in enumerate(ordered)}
    return np.array([number[text] for text in texts], dtype=np.int64)


def tuples_of_persons(keyed: DataFrame, names: Sequence[str], person: str) -> pa.Table | None:
    """Sets of tuples, as HASH, that persons have, with MULTIPLICITY and the NAMELESS rows, if they are few. Cost: one job."""
    who = F.col(quoted(person))
    by_person = keyed.groupBy(who.alias(PREFIX + "who")).agg(
        F.array_sort(F.collect_set(tuple_hash(names))).alias(TUPLES), F.count(F.lit(1)).alias(ROWS)
    )
    nameless = F.coalesce(F.sum(F.when(F.isnull(PREFIX + "who"), F.col(ROWS))), F.lit(0)).alias(NAMELESS)
    sets = by_person.groupBy(TUPLES).agg(F.count(F.lit(1)).alias(MULTIPLICITY), nameless)
    table = few(sets, MOST_CELLS)
    if table is None or pc.sum(pc.list_value_length(table.column(TUPLES))).as_py() > MOST_MEMBERS:
        return None
    return table


def with_persons(of_rows: Held, sets: pa.Table) -> Held:
    """The tuples with persons: those with one tuple counted there, the others as sets of tuples. No Spark."""
    lists: Any = sets.column(TUPLES).combine_chunks()
    offsets, members = lists.offsets.to_numpy(), lists.flatten().to_numpy()
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets))
    place = of_rows.tuple_of[np.searchsorted(of_rows.hashes, members)]
    pairs = np.unique(np.stack([owner[place != DROPPED], place[place != DROPPED]]), axis=1)
    times = sets.column(MULTIPLICITY).to_numpy().astype(np.int64)
    sizes = np.bincount(pairs[0], minlength=len(lists))
    alone = sizes[pairs[0]] == 1
    persons = np.zeros(of_rows.table.size, dtype=np.int64)
    np.add.at(persons, pairs[1][alone], times[pairs[0][alone]])
    several = np.flatnonzero(sizes > 1)
    person_sets = None
    if several.size:
        starts = np.concatenate([[0], np.cumsum(sizes[several])])
        person_sets = PersonSets(starts.astype(np.int64), pairs[1][~alone].astype(np.int32), times[several])
    table = replace(of_rows.table, persons=persons, sets=person_sets)
    return replace(of_rows, table=table, persons=int(times[sizes > 0].sum()))
