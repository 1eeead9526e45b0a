"""The distinct tuples of a table: held by the driver if they are few, else left in Spark. Both give the same counts."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame

from anon_spark.assessment.column_sets import Counted
from anon_spark.assessment.held import HeldTuples
from anon_spark.assessment.question import Question
from anon_spark.assessment.reading import entries_frame, hash_columns
from anon_spark.assessment.sizes import Sizes
from anon_spark.assessment.spread import SpreadTuples
from anon_spark.columns import ROWS
from anon_spark.errors import DataError

HELD_BYTES = 40 * 2**20  # below the 64m that a small driver accepts as a result


class Tuples(Protocol):
    """Counts of distinct tuples; `people`: rows, or persons; `nameless` rows have no person, `null_rows` a null in a tuple."""

    @property
    def people(self) -> int: ...
    @property
    def nameless(self) -> int: ...
    @property
    def null_rows(self) -> int: ...
    def sizes(self) -> Sizes: ...
    def column_sets(self) -> Counted: ...
    def with_wildcards(self) -> Sizes | None: ...


def read_tuples(df: DataFrame, question: Question, held_bytes: int = HELD_BYTES) -> Tuples:
    """The tuples of a table. Raises DataError for an empty one, and for rows without a person.

    Cost: one job with one groupBy of the quasi-identifiers; where the tuples are too many, a second one.
    """
    frame, columns = entries_frame(df, question), len(question.quasi)
    needed = frame if question.person is not None else frame.select(*hash_columns(columns), ROWS)
    most = held_bytes // (8 * len(needed.columns))
    table = needed.limit(most + 1).toArrow()
    if table.num_rows == 0:
        raise DataError("The table is empty: there is nobody whose risk could be measured.", rows=0)
    held = HeldTuples.of(table, columns)
    tuples: Tuples = held if table.num_rows <= most else SpreadTuples.of(frame, held, question.person is not None)
    if tuples.nameless:
        raise DataError(
            f"person {question.person}: {tuples.nameless:,} rows have no person. Complete the column, or leave those rows out.",
            rows=tuples.nameless,
        )
    return tuples
