"""Query error QE: how far counts on published base sets are from those on the original sets, as a share of the records.

Type I counts the rows that have all items of a query, type II those that have none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.primitives.rounds import collect_small
from anon_spark.primitives.tables import require_columns

MOST_ITEMS = 1_000_000  # distinct items that reach the driver to draw queries from
CELLS_AT_ONCE = 1 << 25  # rows × items of queries that one step handles

Item = str | int
Items = tuple[Item, ...]
Presence = npt.NDArray[np.bool_]

_QUERY, _ITEM = PREFIX + "query", PREFIX + "item"


class Workload(NamedTuple):
    """Item sets for type I and for type II."""

    present: Sequence[Items]
    absent: Sequence[Items]


class QueryError(NamedTuple):
    """Mean of |C_o - C_a| / n over the queries of each type."""

    present: float
    absent: float


def draw_queries(items: Sequence[Item], number: int, size: int, seed: int) -> list[Items]:
    """Random item sets without replacement, uniform over `items`; the order of `items` does not matter."""
    if size > len(items):
        raise ConfigurationError(f"Queries of {size} items cannot be drawn from {len(items)}. Ask for smaller ones.")
    known, draw = sorted(items, key=lambda item: (str(type(item)), item)), Random(seed)
    return [tuple(draw.sample(known, size)) for _ in range(number)]


def distinct_items(frame: DataFrame, items: str) -> list[Item]:
    """All items that occur, sorted. Cost: one scan and one groupBy; they reach the driver."""
    require_columns(frame, [items])
    every = frame.select(F.explode(quoted(items)).alias(_ITEM)).where(F.isnotnull(_ITEM)).distinct()
    listed: list[Any] = collect_small(every, MOST_ITEMS, "Distinct items").column(_ITEM).to_pylist()
    return sorted(listed)


def query_error(
    original: DataFrame, release: DataFrame, workload: Workload, items: str = "items", base: str = "base"
) -> QueryError:
    """QE of a release against the original, per type of query (0 for a type without queries).

    Cost: one job and one scan for each of the two frames, whatever the number of queries; no join.
    """
    true = matching_rows(original, items, workload)
    return error_between(true, matching_rows(release, base, workload).counts, workload)


def error_between(true: Matching, answers: npt.NDArray[np.int64], workload: Workload) -> QueryError:
    """QE of some answers to all queries, type I first."""
    if true.rows == 0:
        raise DataError("The query error of a table without rows is not defined.")
    off = np.abs(true.counts - answers) / true.rows
    kinds = off[: len(workload.present)], off[len(workload.present) :]
    return QueryError(*(float(errors.mean()) if errors.size else 0.0 for errors in kinds))


def error_of_silence(true: Matching, workload: Workload) -> QueryError:
    """QE of answers that use only the number of rows: no row has the items (type I), every row lacks them (type II)."""
    answers = np.zeros(true.counts.size, dtype=np.int64)
    answers[len(workload.present) :] = true.rows
    return error_between(true, answers, workload)


class Matching(NamedTuple):
    """How many rows match each query of a workload, type I first; and how many rows there are."""

    counts: npt.NDArray[np.int64]
    rows: int


def matching_rows(frame: DataFrame, items: str, workload: Workload) -> Matching:
    """Answer all queries in one pass. Cost: one scan; rows × items of all queries in Arrow tasks; no shuffle of rows."""
    require_columns(frame, [items])
    queries = len(workload.present) + len(workload.absent)
    counted = frame.select(F.col(quoted(items)).alias(_QUERY)).mapInArrow(_counted(workload), f"{_QUERY} int, {ROWS} long")
    sums = counted.groupBy(_QUERY).agg(F.sum(ROWS).alias(ROWS))
    table = collect_small(sums, queries + 1, "Queries")
    counts = np.zeros(queries + 1, dtype=np.int64)
    counts[table.column(_QUERY).to_numpy()] = table.column(ROWS).to_numpy()
    return Matching(counts[:-1], int(counts[-1]))


def _counted(workload: Workload) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Batches of item sets → matching rows per query, and the number of rows after the last query."""
    known = distinct([*workload.present, *workload.absent])
    present, absent = (places(queries, known) for queries in workload)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matching = np.zeros(len(present) + len(absent) + 1, dtype=np.int64)
        for lists in (part.column(0) for batch in batches for part in pieces(batch, len(known))):
            has = presence(lists, known)
            every = [has[at].all(axis=0) for at in present]
            none = [~has[at].any(axis=0) for at in absent]
            matching += np.array([*map(np.count_nonzero, (*every, *none)), len(lists)])
        yield pa.RecordBatch.from_pydict({_QUERY: np.arange(matching.size, dtype=np.int32), ROWS: matching})

    return count


def distinct(queries: Iterable[Sequence[Item]]) -> list[Item]:
    """The items of all queries, each once."""
    return list(dict.fromkeys(item for query in queries for item in query))


def places(queries: Iterable[Sequence[Item]], known: Sequence[Item]) -> list[npt.NDArray[np.int64]]:
    """Queries as positions among the known items."""
    at = {item: place for place, item in enumerate(known)}
    return [np.array([at[item] for item in query], dtype=np.int64) for query in queries]


def pieces(batch: pa.RecordBatch, items: int) -> Iterator[pa.RecordBatch]:
    """A batch in as many parts as keep rows × items small."""
    rows = max(1, CELLS_AT_ONCE // max(1, items))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def presence(lists: Any, known: Sequence[Item]) -> Presence:
    """[item, row] of an Arrow column of item lists: whether the row has the item. A null list has none."""
    at = pc.index_in(lists.flatten(), value_set=pa.array(known, lists.type.value_type))
    has = np.zeros((len(known), len(lists)), dtype=np.bool_)
    met = at.is_valid().to_numpy(zero_copy_only=False)
    has[at.drop_null().to_numpy(), pc.list_parent_indices(lists).to_numpy()[met]] = True
    return has
