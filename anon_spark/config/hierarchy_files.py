"""Hierarchies that a job names, as far as they need no Spark: rules written in the job, and text files."""

from __future__ import annotations

from anon_spark.config.hierarchies import (
    DateSpec,
    EdgesSource,
    HierarchySpec,
    IntervalsSpec,
    MaskSpec,
    Source,
    TopSource,
)
from anon_spark.config.job import JobSpec
from anon_spark.errors import ConfigurationError, HierarchyError
from anon_spark.model.hierarchy import Hierarchy, Rule

QUASI = "columns.quasi_identifiers"


def check_files(job: JobSpec) -> None:
    """Load every hierarchy that needs no Spark, so that a fault is found in a moment. Raises ConfigurationError."""
    for name, spec in job.hierarchy_specs.items():
        where = job.family if name not in job.columns.hierarchies else "columns.tree" if job.family == "tree" else QUASI
        with_place(f"{where}.{name}", spec)


def with_place(place: str, spec: HierarchySpec) -> Hierarchy | Rule | None:
    """The hierarchy as in `without_spark`; a fault names its place in the job."""
    try:
        return without_spark(spec.source())
    except HierarchyError as error:
        raise HierarchyError(f"{place}: {error}", **error.facts) from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error}", **error.facts) from error


def without_spark(source: Source) -> Hierarchy | Rule | None:
    """The hierarchy, checked; a rule where the values are needed to complete it; None for a table, which Spark reads."""
    if isinstance(source, IntervalsSpec):
        return Hierarchy.intervals(source.start, source.stop, source.widths, exact=source.exact)
    if isinstance(source, MaskSpec):
        return Hierarchy.mask(keep=source.keep, length=source.length, alphabet=source.alphabet)
    if isinstance(source, DateSpec):
        if source.start is None or source.stop is None:
            return Hierarchy.dates(source.levels)
        return Hierarchy.dates(source.levels, source.start, source.stop)
    if isinstance(source, TopSource):
        return Hierarchy.top()
    try:
        if isinstance(source, EdgesSource):
            return Hierarchy.edges_csv(source.location, source.sep, source.header)
        if source.is_table:
            return None
        if source.location.endswith(".json"):
            return Hierarchy.load(source.location)
        return Hierarchy.from_csv(source.location, source.sep, source.header)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{source.location} cannot be read. Check the path; it must be UTF-8 text.") from error
