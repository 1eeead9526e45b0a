"""The frequency frame as arrays for the kernels, if they are small enough to be sent with tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import CLASS, MULTIPLICITY, PERSONS, POPULATION, ROWS, TUPLES
from anon_spark.kernels.histograms import Histograms, histograms_of
from anon_spark.kernels.tuples import Ladder, PersonSets, TupleTable
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Node
from anon_spark.primitives.classes.frequencies import Stored, code_columns
from anon_spark.primitives.classes.sensitive import COLUMN, VALUE
from anon_spark.primitives.rounds import collect_small

TRAVEL_BYTES = 32 * 2**20  # most bytes in a task's closure, which pass through the driver
MOST_TUPLES = TRAVEL_BYTES // 8  # rows that `travel_bytes` can let pass: with class values each counts 8 bytes
MOST_SETS = TRAVEL_BYTES // 4


def ladder_of(hierarchies: Sequence[Hierarchy]) -> Ladder:
    """The hierarchies as arrays for tasks."""
    return Ladder(
        tuple(hierarchy.codes for hierarchy in hierarchies), tuple(hierarchy.weights for hierarchy in hierarchies)
    )


def travel_bytes(tuples: int, ladder: Ladder, base: Node, class_values: int, members: int, entries: int = 0) -> int:
    """Size of the arrays of a frequency table on the levels of a base node. entries: sensitive values of all tuples."""
    per_tuple = sum(
        np.min_scalar_type(ladder.cardinality(attribute, level)).itemsize for attribute, level in enumerate(base)
    )
    return tuples * (per_tuple + 16 + 8 * class_values) + 4 * members + 12 * entries + ladder.nbytes


def load_table(files: Stored, ladder: Ladder, base: Node, class_values: int, columns: int) -> TupleTable:
    """Collect a frequency frame whose size was checked; raises if it has grown since. columns: sensitive ones with models."""
    frame = files.frame
    codes = code_columns(len(base))
    narrow = [F.col(code).cast(_narrow(ladder.cardinality(index, base[index]))) for index, code in enumerate(codes)]
    counts = [name for name in (CLASS, POPULATION, PERSONS) if name in frame.columns]
    table = collect_small(frame.select(*narrow, ROWS, *counts), MOST_TUPLES, "Distinct tuples that are counted at once")
    matrix = np.empty((len(base), table.num_rows), dtype=np.int32)
    for index in range(len(base)):
        matrix[index] = _numbers(table, index)
    rows = _numbers(table, len(base))
    persons = _numbers(table, table.num_columns - 1) if PERSONS in counts else None
    population = _numbers(table, table.column_names.index(POPULATION)) if POPULATION in counts else None
    class_counts = None
    if CLASS in counts:
        matrix, tuple_of = _distinct_tuples(matrix)
        class_counts = np.zeros((matrix.shape[1], class_values), dtype=np.int64)
        np.add.at(class_counts, (tuple_of, _numbers(table, len(base) + 1)), rows)
        rows = class_counts.sum(axis=1)
        if persons is not None:
            persons = np.bincount(tuple_of, weights=persons, minlength=rows.size).astype(np.int64)
        if population is not None:
            population = np.bincount(tuple_of, weights=population, minlength=rows.size).astype(np.int64)
    sets, sensitive = _load_sets(files.sets, codes, matrix), _load_values(files.values, codes, matrix, columns)
    return TupleTable(base, matrix, rows, persons, sets, class_counts, sensitive, population)


def _narrow(cardinality: int) -> str:
    return "tinyint" if cardinality <= 2**7 else "smallint" if cardinality <= 2**15 else "int"


def _numbers(table: pa.Table, index: int) -> NDArray[np.int64]:
    return np.asarray(table.column(index).to_numpy()).astype(np.int64)


def _distinct_tuples(matrix: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Distinct columns of a code matrix, and the index of each column among them."""
    distinct, inverse = np.unique(matrix, axis=1, return_inverse=True)
    return np.ascontiguousarray(distinct), inverse.reshape(-1)


def _load_values(
    values: DataFrame | None, codes: Sequence[str], matrix: NDArray[np.int32], columns: int
) -> tuple[Histograms, ...]:
    """The values of each sensitive column by position in the tuple table."""
    if values is None:
        return ()
    table = collect_small(values.select(*codes, COLUMN, VALUE, ROWS), MOST_SETS, "Sensitive values of all tuples")
    members = np.array([_numbers(table, index) for index in range(len(codes))], dtype=np.int32)
    place = _places(matrix, members)
    column, value, rows = (_numbers(table, len(codes) + index) for index in range(3))
    return tuple(
        histograms_of(place[column == at].astype(np.int64), value[column == at], rows[column == at], matrix.shape[1])
        for at in range(columns)
    )


def _places(matrix: NDArray[np.int32], members: NDArray[np.int32]) -> NDArray[np.int32]:
    """The position of tuples, as columns of codes, in the tuple table."""
    _, inverse = _distinct_tuples(np.concatenate([matrix, members], axis=1))
    position = np.empty(matrix.shape[1], dtype=np.int32)
    position[inverse[: matrix.shape[1]]] = np.arange(matrix.shape[1], dtype=np.int32)
    return position[inverse[matrix.shape[1] :]]


def _load_sets(sets: DataFrame | None, codes: Sequence[str], matrix: NDArray[np.int32]) -> PersonSets | None:
    """Sets of tuples as positions in the tuple table."""
    if sets is None:
        return None
    table = collect_small(sets.select(TUPLES, MULTIPLICITY), MOST_SETS, "Sets of tuples of one person").combine_chunks()
    if table.num_rows == 0:
        return None
    lists: Any = table.column(TUPLES).chunk(0)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    flat = lists.values
    members = np.array([flat.field(code).to_numpy() for code in codes], dtype=np.int32)
    return PersonSets(offsets, _places(matrix, members), _numbers(table, 1))
