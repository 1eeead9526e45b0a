"""Risk of any table: how well people in it can be told apart, and what their class tells of sensitive columns.

It only reads: raw tables, releases of this package, releases of others. Every table is aggregated once to its distinct tuples of
quasi-identifiers, as hashes; chances, sets of columns and estimates for the population follow from these. A second aggregation
counts the sensitive values of each class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from time import perf_counter

import numpy as np
from pyspark.sql import DataFrame

from anon_spark.assessment.column_sets import ColumnSets, column_sets
from anon_spark.assessment.disclosure import Disclosure, disclosure
from anon_spark.assessment.facts import RiskFacts
from anon_spark.assessment.pages import Assessment, BeforeAndAfter
from anon_spark.assessment.population import PopulationFacts, population_facts
from anon_spark.assessment.population.table import counted_population
from anon_spark.assessment.question import Question, question_of
from anon_spark.assessment.sizes import Sizes, look_up
from anon_spark.assessment.tuples import HELD_BYTES, Tuples, read_tuples
from anon_spark.model.guarantee.models import MOST_VALUES

__all__ = ["Assessment", "BeforeAndAfter", "RiskFacts", "assess"]


def assess(
    df: DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    person: str | None = None,
    population: float | DataFrame | None = None,
    *,
    name: str = "the table",
    sets: bool = True,
    held_bytes: int = HELD_BYTES,
) -> Assessment:
    """The risk of a table for somebody who knows the quasi-identifiers of a person; shows itself in a notebook.

    quasi: columns that somebody may know; sensitive: columns that nobody should learn; person: a column that tells persons
    apart, so that a class counts persons; population: the fraction of a population that the table is, the population's number of
    people, or a table of it with the same columns and a row for each person; name: of the table, for the page; sets: whether
    every set of columns is looked at; held_bytes: up to which the driver holds distinct tuples, and as much again of the counts
    of their sensitive values.
    Guarantee: reads only. Counts are exact up to collisions of 64-bit hashes, the same for every partitioning and wherever the
    tuples are held. No value of a record is in the result, nor in an error.
    Cost: one groupBy of the quasi-identifiers, one of (class, value) for all sensitive columns, a small job for each of these
    columns, and one job with a population table. Tuples that are too many for the driver are counted by one job more, and their
    sets of columns by another.
    """
    everybody = population if isinstance(population, DataFrame) else None
    question = question_of(df, quasi, sensitive, person, None if isinstance(population, DataFrame) else population)
    seconds: dict[str, float] = {}
    with _timed(seconds, "tuples"):
        tuples = read_tuples(df, question, held_bytes)
        sizes = tuples.sizes()
        fraction = question.fraction(tuples.people)
        wildcards, left_out = _wildcards(tuples, question)
    estimated = None
    if fraction is not None:
        with _timed(seconds, "population"):
            estimated = _population(sizes, fraction, tuples.people)
    crowds = None
    if everybody is not None:
        with _timed(seconds, "population"):
            crowds = counted_population(df, everybody, question)
    counted = None
    if sets:
        with _timed(seconds, "column_sets"):
            counted = column_sets(tuples.column_sets(), question.quasi, sizes.total_rows)
    with _timed(seconds, "sensitive_columns"):
        disclosed = disclosure(df, question, sizes.total_rows, sizes.total_classes, held_bytes)
    facts = RiskFacts(
        quasi=question.quasi,
        sensitive=question.sensitive,
        person=question.person,
        people=tuples.people,
        look_up=look_up(sizes),
        null_rows=tuples.null_rows,
        wildcards=None if wildcards is None else look_up(wildcards),
        population=estimated,
        counted_population=crowds,
        column_sets=counted,
        disclosure=tuple(disclosed),
        left_out=(*left_out, *_too_many(disclosed), *_few_sets(counted)),
    )
    return Assessment(name=name, facts=facts, made=datetime.now(UTC), seconds=seconds)


def _wildcards(tuples: Tuples, question: Question) -> tuple[Sizes | None, list[str]]:
    """Sizes with nulls as wildcards; or why they are left out."""
    if not tuples.null_rows:
        return None, []
    if question.person is not None:
        return None, ["Nulls as wildcards are left out where persons are counted: a person may agree in several ways."]
    sizes = tuples.with_wildcards()
    return sizes, [] if sizes is not None else ["Nulls as wildcards are left out: too many combinations of columns are null."]


def _population(sizes: Sizes, fraction: float, people: int) -> PopulationFacts:
    of_size, classes, rows = (array.astype(np.float64) for array in (sizes.sizes, sizes.classes, sizes.rows))
    return population_facts(of_size, classes, rows, fraction, people)


def _too_many(disclosed: Sequence[Disclosure]) -> list[str]:
    return [
        f"{one.column}: t, β and δ are left out, because the column has more than {MOST_VALUES:,} distinct values. Bin it "
        "first, for instance into ranges of numbers."
        for one in disclosed
        if one.values is None
    ]


def _few_sets(counted: ColumnSets | None) -> list[str]:
    if counted is None or counted.complete:
        return []
    return ["Sets of more than three columns are left out: there would be more than 4,096 sets. Name fewer columns to see all."]


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    started = perf_counter()
    yield
    seconds[step] = perf_counter() - started
