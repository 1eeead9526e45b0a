"""Classes of a release in a population table: k-map and δ-presence, the population's classes counted afresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StringType

from anon_spark.auditing.guarantees.k_anonymity import classes_by_size, size_facts
from anon_spark.auditing.reading.completion import completed
from anon_spark.auditing.reading.recode import KEPT, STATUS, Climb, with_codes, with_labels, with_scope
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import exact, private, quoted, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.engine import gathered, runs_in_one_task
from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee import KAnonymity
from anon_spark.model.guarantee.attributes import checked_presence
from anon_spark.model.guarantee.models import Number
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.hierarchy.rules import portable
from anon_spark.pending import Pending, together

POPULATION = private("population")  # how many rows of the population a class has

_COUNT = DecimalType(18, 0)


def completed_with_population(
    source: DataFrame,
    population: DataFrame,
    columns: Mapping[str, str],
    hierarchies: Mapping[str, Hierarchy | Rule],
    nulls: str,
) -> dict[str, Hierarchy]:
    """The hierarchies of a job as they apply to source and population, by quasi-identifier.

    columns: quasi-identifier → column of the population. Guarantee: levels and labels are those of `completed` for the source
    alone; a rule also knows the population's values, as far as it can read them (a mask: those not longer than the source's).
    Cost: twice that of `completed`.
    """
    _check_columns(population, list(hierarchies), columns)
    fitted = completed(source, hierarchies, nulls)
    rules = portable(hierarchies, [fitted[name] for name in hierarchies])
    known = completed(_renamed(population, columns, list(hierarchies)), rules, nulls)
    return {
        name: rule if isinstance(rule, Hierarchy) else rule.build([*fitted[name].keys, *known[name].keys])
        for name, rule in rules.items()
    }


def verify_population(
    release: DataFrame,
    population: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    columns: Mapping[str, str],
    map_k: int | None = None,
    presence: tuple[Number, Number] | None = None,
    source: DataFrame | None = None,
    nulls: str = "value",
) -> tuple[Verdict, ...]:
    """Whether the classes of the release are frequent enough, and not too frequent, among those of the population.

    recoded: quasi-identifier → (hierarchy, level), by which the population is recoded, too (`completed_with_population`);
    columns: quasi-identifier → column of the population; nulls: what the run does with a null quasi-identifier.
    Verdicts, of what is asked for: with a source, whether each of its combinations of quasi-identifiers in scope is in the
    population; map_k: each published class has at least so many rows of the population; presence (least, most): rows of the
    release over rows of the population of each published class, both bounds allowed.
    Guarantee: decided in integers. A row of the population that has a value unknown to its hierarchy, or under `suppress` a
    null, is in no class. Published classes are whole (`verify_recoding`), so the rows of the release are those of the table.
    An empty release is not passed.
    Cost: one job, one scan of each table, shuffles of distinct tuples and classes; about 70 rows reach the driver.
    """
    return population_check(release, population, recoded, columns, map_k, presence, source, nulls).get()


def population_check(
    release: DataFrame,
    population: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    columns: Mapping[str, str],
    map_k: int | None = None,
    presence: tuple[Number, Number] | None = None,
    source: DataFrame | None = None,
    nulls: str = "value",
) -> Pending[tuple[Verdict, ...]]:
    """As `verify_population`, its counts not collected yet."""
    names = list(recoded)
    if nulls not in ("value", "suppress"):
        raise ConfigurationError("nulls must be 'value' or 'suppress'.")
    if not names:
        raise ConfigurationError("A population needs at least one quasi-identifier, none was given.")
    if map_k is None and presence is None and source is None:
        raise ConfigurationError("Nothing to verify: give map_k, presence or the source.")
    require_columns(release, names, "release")
    _check_columns(population, names, columns)
    people = _renamed(population, columns, names)
    checks = []
    if source is not None:
        require_columns(source, names, "source")
        checks.append(_coverage(source, people, {name: hierarchy for name, (hierarchy, _) in recoded.items()}, nulls))
    if map_k is not None or presence is not None:
        classes = _classes(release, people, recoded, nulls)
        if map_k is not None:
            checks.append(_map(classes, KAnonymity(map_k, names)))
        if presence is not None:
            checks.append(_presence(classes, *checked_presence(presence)))
    return together(*checks)


def _check_columns(population: DataFrame, names: Sequence[str], columns: Mapping[str, str]) -> None:
    if set(columns) != set(names):
        raise ConfigurationError("population.columns must name a column for each quasi-identifier, and for nothing else.")
    require_columns(population, list(columns.values()), "population")


def _renamed(population: DataFrame, columns: Mapping[str, str], names: Sequence[str]) -> DataFrame:
    """The population with the names of the quasi-identifiers."""
    return population.select(*(F.col(quoted(columns[name])).alias(name) for name in names))


def _tuples(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Distinct raw tuples with ROWS and a STATUS for the look-ups to fill. Cost: one shuffle."""
    raw = [exact(frame, name).alias(_raw(at)) for at, name in enumerate(names)]
    grouped = gathered(frame, runs_in_one_task()).select(*raw).groupBy(*(_raw(at) for at in range(len(names))))
    return grouped.agg(F.count(F.lit(1)).alias(ROWS)).withColumn(STATUS, F.lit(KEPT))


def _classes(release: DataFrame, people: DataFrame, recoded: Mapping[str, tuple[Hierarchy, int]], nulls: str) -> DataFrame:
    """The published classes: their values, ROWS in the release, POPULATION."""
    names = list(recoded)
    climbs = [Climb(_raw(at), _label(at), *goal) for at, goal in enumerate(recoded.values())]
    labels, none = [_label(at) for at in range(len(names))], F.lit(0).cast("long")
    there = with_scope(with_labels(_tuples(people, names), climbs), nulls).where(F.col(STATUS) == KEPT)
    keys = [exact(release, name).cast(StringType()).alias(label) for name, label in zip(names, labels, strict=True)]
    shown = gathered(release, runs_in_one_task()).select(*keys, F.lit(1).cast("long").alias(ROWS), none.alias(POPULATION))
    both = shown.unionByName(there.select(*labels, none.alias(ROWS), F.col(ROWS).alias(POPULATION)))
    sums = [F.sum(ROWS).alias(ROWS), F.sum(POPULATION).alias(POPULATION)]
    published = gathered(both, runs_in_one_task()).groupBy(*labels).agg(*sums).where(F.col(ROWS) > 0)
    return published.toDF(*names, ROWS, POPULATION)


def _coverage(source: DataFrame, people: DataFrame, hierarchies: Mapping[str, Hierarchy], nulls: str) -> Pending[Verdict]:
    """Whether each combination of the source in scope is in the population, compared leaf by leaf."""
    names, none = list(hierarchies), F.lit(0).cast("long")
    climbs = [Climb(_raw(at), _label(at), hierarchy, 0) for at, hierarchy in enumerate(hierarchies.values())]
    leaves = [_label(at) for at in range(len(names))]
    one, other = (with_scope(with_codes(_tuples(frame, names), climbs), nulls) for frame in (source, people))
    in_scope = one.where(F.col(STATUS) == KEPT).select(*leaves, STATUS, ROWS, none.alias(POPULATION))
    both = in_scope.unionByName(other.select(*leaves, STATUS, none.alias(ROWS), F.col(ROWS).alias(POPULATION)))
    sums = [F.sum(ROWS).alias(ROWS), F.sum(POPULATION).alias(POPULATION)]
    combined = gathered(both, runs_in_one_task()).groupBy(*leaves, STATUS).agg(*sums)
    ours, missing = F.col(ROWS) > 0, (F.col(ROWS) > 0) & (F.col(POPULATION) == 0)
    totals = combined.agg(
        total(ours, F.lit(1)).alias("combinations"),
        total(ours, F.col(ROWS)).alias("rows"),
        total(missing, F.lit(1)).alias("missing"),
        total(missing, F.col(ROWS)).alias("rows_missing"),
        total(F.lit(True), F.col(POPULATION)).alias("population"),
        total(F.col(STATUS) != KEPT, F.col(POPULATION)).alias("population_in_no_class"),
    )
    return Pending.of(totals, lambda rows: _covered(rows[0]))


def _covered(totals: Row) -> Verdict:
    missing, number = totals["missing"], totals["combinations"]
    if not number:
        detail = "no row of the source is in scope."
    elif missing:
        detail = (
            f"{missing} of {number} combinations of the source are not in the population "
            f"({totals['rows_missing']} of {totals['rows']} rows)."
        )
    else:
        detail = f"all {number} combinations of the source are in the population ({totals['population']} rows)."
    names = ("combinations", "rows", "missing", "rows_missing", "population", "population_in_no_class")
    return Verdict(
        kind=Kind.PROMISE,
        name="population",
        passed=number > 0 and not missing,
        violations=missing,
        checked=number,
        detail=detail,
        facts={name: totals[name] for name in names},
    )


def _map(classes: DataFrame, guarantee: KAnonymity) -> Pending[Verdict]:
    """Whether each class has map_k rows of the population; sizes are counted as those of k-anonymity."""
    size, map_k = F.col(POPULATION), guarantee.k

    def conclude(buckets: Sequence[Row]) -> Verdict:
        facts = size_facts(buckets, guarantee)
        number, smallest = facts["classes"], facts["smallest"]
        failing = number - sum(classes_in for _, _, classes_in, _ in facts["histogram"])
        if not number:
            detail = "the release is empty, there is nothing to publish."
        elif failing:
            detail = (
                f"{failing} of {number} classes have fewer than {map_k} rows of the population "
                f"({facts['rows_in_violation']} of {facts['rows']} rows, fewest {smallest})."
            )
        else:
            detail = f"all {number} classes have at least {map_k} rows of the population (fewest {smallest})."
        facts["map_k"] = facts.pop("k")
        return _concluded(f"{map_k}-map", number, failing, detail, facts, classes.where(size < map_k))

    return Pending.of(classes_by_size(classes, size, map_k), conclude)


def _presence(classes: DataFrame, least: Fraction, most: Fraction) -> Pending[Verdict]:
    """Whether the share of each class that is in the table keeps both bounds."""
    share, outside = F.col(ROWS) / F.col(POPULATION), ~(_at_least(least) & _at_most(most))
    known = F.col(POPULATION) > 0
    totals = classes.agg(
        F.count(F.lit(1)).alias("classes"),
        total(F.lit(True), F.col(ROWS)).alias("rows"),
        F.min(F.when(known, share)).alias("least"),
        F.max(F.when(known, share)).alias("most"),
        total(~known, F.lit(1)).alias("unknown"),
        total(outside, F.lit(1)).alias("violations"),
        total(outside, F.col(ROWS)).alias("rows_in_violation"),
    )

    def conclude(rows: Sequence[Row]) -> Verdict:
        found = rows[0].asDict()
        number, failing = found["classes"], found.pop("violations")
        bounds = f"from {float(least):g} to {float(most):g}"
        extent = "" if found["least"] is None else f", shares from {found['least']:g} to {found['most']:g}"
        if not number:
            detail = "the release is empty, there is nothing to publish."
        elif failing:
            detail = (
                f"{failing} of {number} classes have a share of the population's rows that is not {bounds} "
                f"({found['rows_in_violation']} of {found['rows']} rows{extent})."
            )
        else:
            detail = f"all {number} classes have a share of the population's rows {bounds} ({found['rows']} rows{extent})."
        facts = {**found, "least_allowed": float(least), "most_allowed": float(most)}
        return _concluded(f"({float(least):g}, {float(most):g})-presence", number, failing, detail, facts, classes.where(outside))

    return Pending.of(totals, conclude)


def _concluded(name: str, classes: int, failing: int, detail: str, facts: dict[str, Any], frame: DataFrame) -> Verdict:
    return Verdict(
        kind=Kind.PROMISE,
        name=name,
        passed=classes > 0 and not failing,
        violations=failing,
        checked=classes,
        detail=detail,
        facts=facts,
        frame=frame,
    )


def _at_least(bound: Fraction) -> Column:
    return _times(ROWS, bound.denominator) >= _times(POPULATION, bound.numerator)


def _at_most(bound: Fraction) -> Column:
    return _times(ROWS, bound.denominator) <= _times(POPULATION, bound.numerator)


def _times(count: str, factor: int) -> Column:
    """A product of integers that no 64 bits hold."""
    return F.col(count).cast(_COUNT) * F.lit(Decimal(factor)).cast(_COUNT)


def _raw(at: int) -> str:
    return private(f"raw_{at}")


def _label(at: int) -> str:
    return private(f"label_{at}")
