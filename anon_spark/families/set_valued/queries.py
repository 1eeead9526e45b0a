"""Counts on a release with bounds, from `base`, `uncertain` and `max_errors`.

A published row stands for one record that differs from `base` in at most `max_errors` of the items in `uncertain`, and in
no other: these are its possible worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX
from anon_spark.errors import ConfigurationError
from anon_spark.metrics.query_error import Item, distinct, pieces, places, presence
from anon_spark.primitives.rounds import collect_small
from anon_spark.primitives.tables import require_columns

BASE, UNCERTAIN, MAX_ERRORS = "base", "uncertain", "max_errors"
SUMS_KEPT = 1 << 14  # numbers of worlds that a task remembers

_QUERY = PREFIX + "query"
_SCHEMA = f"{_QUERY} int, estimate double, lower long, upper long"


class Query(NamedTuple):
    """Rows that have all items of `present` and none of `absent`."""

    present: Sequence[Item] = ()
    absent: Sequence[Item] = ()


class Answer(NamedTuple):
    """How many records match: an estimate, and the bounds."""

    estimate: float
    lower: int
    upper: int


def count(release: DataFrame, present: Sequence[Item] = (), absent: Sequence[Item] = ()) -> Answer:
    """Estimate how many records have all items of `present` and none of `absent`; see `counts`."""
    row = counts(release, [Query(present, absent)]).iloc[0]
    return Answer(float(row["estimate"]), int(row["lower"]), int(row["upper"]))


def counts(release: DataFrame, queries: Sequence[Query]) -> pd.DataFrame:
    """Answer several queries in one pass: a row per query with present, absent, estimate, lower, upper.

    lower: rows that match in all their possible worlds; upper: in at least one; estimate: the sum over the rows of the
    share of their worlds that match.
    Guarantee: the count on the records behind the release lies between lower and upper. Reason: the drawn assignment pairs
    every record with one row and uses every row once, and the record is a possible world of its row. So a record matches
    if all worlds of its row do, and only if at least one does. The sensitive value of a row belongs to the same record, so
    this also holds among the rows with a given sensitive value. Records left out of the release (nulls suppressed) are not
    counted. Each row attains its bounds; all rows together may not. The estimate is no promise: it assumes that the worlds
    of a row are equally likely.
    Cost: one scan; rows × items of the queries in Arrow tasks; numbers of worlds are exact integers of any
    size, so the estimate is accurate to the last digits for thousands of uncertain items.
    """
    require_columns(release, [BASE, UNCERTAIN, MAX_ERRORS])
    for query in queries:
        if any(isinstance(items, str) for items in query):
            raise ConfigurationError("The items of a query are a list; for one item give a list of one.")
    answered = release.select(BASE, UNCERTAIN, MAX_ERRORS).mapInArrow(_answered(queries), _SCHEMA)
    sums = [F.sum(name).alias(name) for name in Answer._fields]
    table = collect_small(answered.groupBy(_QUERY).agg(*sums), len(queries), "Queries").to_pandas()
    answers = table.set_index(_QUERY).reindex(range(len(queries)), fill_value=0)
    asked = {name: [list(getattr(query, name)) for query in queries] for name in Query._fields}
    return pd.DataFrame(
        asked
        # rounded: sums of doubles depend on their order in the last digits
        | {"estimate": [float(f"{value:.12g}") for value in answers["estimate"]]}
        | {name: answers[name].astype("int64").to_numpy() for name in ("lower", "upper")}
    )


def _answered(queries: Sequence[Query]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    known = distinct(items for query in queries for items in query)
    present, absent = (places([getattr(query, name) for query in queries], known) for name in Query._fields)

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shares: list[list[float]] = [[] for _ in queries]
        lower, upper = np.zeros((2, len(queries)), dtype=np.int64)
        for rows in (piece for batch in batches for piece in pieces(batch, 2 * len(known))):
            release = _Rows.of(rows, known)
            for at, (has, lacks) in enumerate(zip(present, absent, strict=True)):
                counted = release.answer(np.unique(has), np.unique(lacks))
                shares[at].append(counted.estimate)
                lower[at] += counted.lower
                upper[at] += counted.upper
        estimates = np.array([fsum(query_shares) for query_shares in shares])
        numbers = np.arange(len(queries), dtype=np.int32)
        yield pa.RecordBatch.from_pydict({_QUERY: numbers, "estimate": estimates, "lower": lower, "upper": upper})

    return answer


class _Rows(NamedTuple):
    """Published rows: which of the known items are in `base` and in `uncertain`, and how many may be wrong.

    kind: the number of a row's pair (items in `uncertain`, most errors) among the different ones.
    """

    base: Any
    uncertain: Any
    errors: Any
    kind: Any
    kinds: list[list[int]]

    @classmethod
    def of(cls, rows: pa.RecordBatch, known: Sequence[Item]) -> _Rows:
        columns: list[Any] = rows.columns
        width, errors = columns[1].value_lengths().fill_null(0).to_numpy(), columns[2].to_numpy()
        kinds, kind = np.unique(np.stack([width, errors]), axis=1, return_inverse=True)
        base, uncertain = (presence(lists, known) for lists in columns[:2])
        return cls(base, uncertain, errors, kind.ravel(), kinds.T.tolist())

    def answer(self, has: Any, lacks: Any) -> Answer:
        if np.intersect1d(has, lacks).size:
            return Answer(0.0, 0, 0)
        wrong = np.vstack([~self.base[has], self.base[lacks]])  # items that must differ from the base
        unsure = self.uncertain[np.concatenate([has, lacks])]
        flips, asked = wrong.sum(axis=0), unsure.sum(axis=0)
        possible = ~(wrong & ~unsure).any(axis=0) & (flips <= self.errors)
        certain = possible & (flips == 0) & ((asked == 0) | (self.errors == 0))
        # rows with the same share of matching worlds are counted together
        maybe, most = possible & ~certain, len(wrong) + 1
        alike, times = np.unique((self.kind[maybe] * most + asked[maybe]) * most + flips[maybe], return_counts=True)
        shares = []
        for number, row in zip(times.tolist(), alike.tolist(), strict=True):
            width, errors = self.kinds[row // most**2]
            matching = worlds(width - row // most % most, errors - row % most)
            shares.append(number * (matching / worlds(width, errors)))
        sure = int(np.count_nonzero(certain))
        return Answer(sure + fsum(shares), sure, int(np.count_nonzero(possible)))


@lru_cache(SUMS_KEPT)
def worlds(items: int, errors: int) -> int:
    """In how many ways at most `errors` of the items can be wrong: Σ of binomials, exactly."""
    total = term = 1
    for wrong in range(1, min(items, errors) + 1):
        term = term * (items - wrong + 1) // wrong
        total += term
    return total
