"""The risk of a table, or of a table and its release side by side: `anon-spark risk TABLE [RELEASE] --quasi age,sex,zip`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from anon_spark.assessment import Assessment, RiskFacts, assess
from anon_spark.assessment.pages import RiskPage
from anon_spark.config import InputSpec, is_path, is_uri, relation
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.io.nesting import reads_little
from anon_spark.io.places import require_writable
from anon_spark.io.tables import Snapshot
from anon_spark.model.findings import by_level
from anon_spark.report.formats import percent, show
from anon_spark.report.run_report import versioned
from anon_spark.runs.named_tables import columns_of, format_of, pair_of, read_named, table_of


@dataclass(frozen=True)
class Request:
    """What a command asks for, checked as far as that needs no Spark."""

    table: InputSpec
    release: InputSpec | None
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    person: str | None
    population: float | InputSpec | None

    @property
    def reads_little(self) -> bool:
        """Whether all tables have few bytes, so that a session should start fast."""
        return reads_little(self.table) and (self.release is None or reads_little(self.release))


def asked(options: argparse.Namespace) -> Request:
    """The request of a command line. Raises ConfigurationError; needs no Spark."""
    settings = dict(pair_of(text) for text in options.option)
    table = table_of(options.table, options.format, settings, "TABLE")
    release = None
    if options.release is not None:
        kind = format_of(options.release, options.format)
        release = table_of(options.release, kind, settings if kind == table.format else {}, "RELEASE")
    if options.output is not None:
        _refuse_place(options.output, table, release)
    quasi = columns_of(options.quasi)
    if not quasi:
        raise ConfigurationError("--quasi: name at least one column that somebody may know of a person, as in age,sex,zip.")
    population = _population(options.population, options.format, settings)
    return Request(table, release, quasi, columns_of(options.sensitive), options.person, population)


def measured(request: Request, spark: SparkSession) -> RiskPage:
    """The assessment of the table, or of both tables side by side. Cost: that of `assess`, for each table."""
    population = request.population
    everybody = read_named(spark, population, "--population").frame if isinstance(population, InputSpec) else population
    before = _assessed(request, read_named(spark, request.table, "TABLE"), "TABLE", everybody)
    if request.release is None:
        return before
    if isinstance(everybody, DataFrame):  # a release writes its values otherwise than the population does
        everybody = None
    return before.beside(_assessed(request, read_named(spark, request.release, "RELEASE"), "RELEASE", everybody))


def lines(page: RiskPage) -> Iterator[str]:
    """The measurement in a few lines, for a terminal."""
    for name, facts in page.tables.items():
        several = len(page.tables) > 1
        if several:
            yield f"{name}:"
        yield from (f"{'  ' if several else ''}{line}" for line in _lines(facts))
    for finding in by_level(page.findings):
        yield f"  {finding.level:6}  {finding.text}"
    for text in page.warnings:
        yield f"  left out  {text}"


def _lines(facts: RiskFacts) -> Iterator[str]:
    found = facts.look_up
    yield facts.sentence()
    unique = f"{show(found.unique_rows)} unique ({percent(found.unique_share)})"
    yield f"{show(found.rows)} rows in {show(found.classes)} classes, {unique}"
    above = ", ".join(f"{percent(share)} above {threshold:g}" for threshold, share in found.above.items())
    yield f"prosecutor: highest {show(found.highest)}, average {show(found.average)}; {above}"
    yield f"marketer: {percent(found.marketer)} expected to be found"
    if facts.population is not None:
        population = facts.population
        yield f"journalist: highest {show(population.highest_chance)}, average {show(population.average_chance)}"
        chosen = population.uniques.chosen
        trust = "" if population.uniques.holds else "; not to be relied on"
        yield f"unique in the population: {percent(population.unique_share)} ({chosen or 'no model has a solution'}{trust})"
    if facts.counted_population is not None:
        counted = facts.counted_population
        yield f"journalist: highest {show(counted.highest_chance)}, average {show(counted.average_chance)}"
        yield f"unique in the population: {show(counted.unique)} people, {show(counted.unique_rows)} rows of the table"
    if facts.column_sets is not None:
        for smallest in facts.column_sets.smallest():
            sets = "; ".join(f"{' + '.join(one.columns)} ({percent(one.unique_share)})" for one in smallest.strongest[:3])
            yield f"single out more than {percent(smallest.share)}: {sets or 'no set of columns does'}"
    for one in facts.disclosure:
        yield (
            f"{one.column}: least l {one.least_l}, entropy l {show(one.entropy_l)}, t {show(one.t_equal)}, β {show(one.beta)}, "
            f"{percent(one.one_value_share)} of the rows in classes with one value"
        )


# -- what is checked before Spark starts -----------------------------------------------------------------------------


def _population(text: str | None, kind: str | None, settings: dict[str, str]) -> float | InputSpec | None:
    """A number, or the table of the population."""
    try:
        return None if text is None else float(text.replace("_", ""))
    except ValueError:
        pass
    assert text is not None, "without a population there is no text"
    return table_of(text, format_of(text, kind), settings, "--population")


def _refuse_place(page: str, table: InputSpec, release: InputSpec | None) -> None:
    """Refuse a page that cannot be written, or that would lie in one of the tables."""
    if is_uri(page):
        raise ConfigurationError("--output: a page is a file on the driver. Give a path without scheme.")
    path = Path(page).absolute()
    if path.is_dir() or path.suffix != ".html":
        raise ConfigurationError(f"--output: {page} cannot be written. Give a path that ends in .html.")
    require_writable(str(path.parent), "--output", page)
    for what, spec in (("TABLE", table), ("RELEASE", release)):
        if spec is None or not is_path(spec.table):
            continue
        overlap = relation(str(path), spec.table if is_uri(spec.table) else str(Path(spec.table).absolute()))
        if overlap is not None:
            raise ConfigurationError(f"--output: {overlap} {what}. Choose a place apart from it.")


# -- what is read ----------------------------------------------------------------------------------------------------


def _assessed(request: Request, table: Snapshot, what: str, population: float | DataFrame | None) -> Assessment:
    name = versioned(table.table, table.version) or table.table
    try:
        return assess(table.frame, request.quasi, request.sensitive, request.person, population, name=name)
    except (ConfigurationError, DataError) as error:
        if request.release is None:
            raise
        raise type(error)(f"{what}: {error}", **error.facts) from error
