"""Results that wait for a few numbers of Spark: several of them are computed by one plan, in one job.

On a small table a plan costs more than the rows it reads. So a check does not collect its numbers at once: it hands over the
frame that holds them, and what follows from them. Whoever needs several results collects all frames together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, quoted

T = TypeVar("T")
U = TypeVar("U")

_NUMBER, _ROW = PREFIX + "number", PREFIX + "row_"  # the last: + number


@dataclass(frozen=True)
class Pending(Generic[T]):
    """A result that follows from the rows of frames, each of which has few."""

    frames: tuple[DataFrame, ...]
    conclude: Callable[[Sequence[list[Row]]], T]

    @classmethod
    def of(cls, frame: DataFrame, conclude: Callable[[list[Row]], T]) -> Pending[T]:
        """The result of one frame."""
        return cls((frame,), lambda rows: conclude(rows[0]))

    @classmethod
    def known(cls, value: T) -> Pending[T]:
        """A result that waits for nothing."""
        return cls((), lambda _: value)

    def then(self, follow: Callable[[T], U]) -> Pending[U]:
        """What follows from the result."""
        return Pending(self.frames, lambda rows: follow(self.conclude(rows)))

    def get(self) -> T:
        """The result now. Cost: one plan; none without frames."""
        return self.conclude(rows_of(self.frames))


def together(*pending: Pending[Any]) -> Pending[tuple[Any, ...]]:
    """Several results as one."""
    ends = [0]
    for one in pending:
        ends.append(ends[-1] + len(one.frames))

    def conclude(rows: Sequence[list[Row]]) -> tuple[Any, ...]:
        parts = zip(pending, ends, ends[1:], strict=False)
        return tuple(one.conclude(rows[start:stop]) for one, start, stop in parts)

    return Pending(tuple(frame for one in pending for frame in one.frames), conclude)


def rows_of(frames: Sequence[DataFrame]) -> list[list[Row]]:
    """The rows of each frame, in its order. Cost: one plan for all, so one job where none of them is shuffled."""
    if len(frames) < 2:
        return [frame.collect() for frame in frames]
    parts = [
        frame.select(
            F.lit(number).alias(_NUMBER),
            F.struct(*(F.col(quoted(name)) for name in frame.columns)).alias(f"{_ROW}{number}"),
        )
        for number, frame in enumerate(frames)
    ]
    collected = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts).collect()
    rows: list[list[Row]] = [[] for _ in frames]
    for row in collected:
        rows[row[_NUMBER]].append(row[f"{_ROW}{row[_NUMBER]}"])
    return rows
