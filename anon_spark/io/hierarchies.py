"""Hierarchies from where a job names them: a text file, a table, or a rule written in the job itself."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import quoted
from anon_spark.config import HierarchySpec, LevelsSource, is_path
from anon_spark.config.hierarchy_files import without_spark
from anon_spark.errors import ConfigurationError, HierarchyError
from anon_spark.io.tables import sql_name
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.primitives.rounds import collect_small

MOST_LEAVES = 1_000_000


def load_hierarchies(
    specs: Mapping[str, HierarchySpec], spark: SparkSession | None, where: str = "columns.quasi_identifiers"
) -> dict[str, Hierarchy | Rule]:
    """The hierarchy of every column or node type (`where` says); a fault names it. Cost: the files are read on the driver."""
    hierarchies: dict[str, Hierarchy | Rule] = {}
    for name, spec in specs.items():
        try:
            hierarchies[name] = load_hierarchy(spec, spark)
        except HierarchyError as error:
            raise HierarchyError(f"{where}.{name}: {error}", **error.facts) from error
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}.{name}: {error}", **error.facts) from error
    return hierarchies


def load_hierarchy(spec: HierarchySpec, spark: SparkSession | None = None) -> Hierarchy | Rule:
    """One hierarchy, checked; a rule where the values themselves are needed to complete it."""
    source = spec.source()
    found = without_spark(source)
    if found is not None:
        return found
    assert isinstance(source, LevelsSource), "only tables need Spark"
    return _from_table(source, spark)


def _from_table(source: LevelsSource, spark: SparkSession | None) -> Hierarchy:
    if spark is None:
        raise ConfigurationError(f"{source.location} is a table: give a Spark session to read it.")
    reader = spark.read.format(source.format or "delta")
    try:
        frame = (
            reader.load(source.location) if is_path(source.location) else spark.read.table(sql_name(source.location))
        )
        texts = frame.select(*(F.col(quoted(name)).cast("string") for name in frame.columns))
    except Exception as error:  # also what Hadoop and the readers throw, which Spark hands on as it is
        raise ConfigurationError(f"no readable {source.format} table at {source.location}. Check the name.") from error
    table = collect_small(texts, MOST_LEAVES, "Rows of a hierarchy table")
    columns = [column.to_pylist() for column in table.columns]
    # the order of a table's rows is nobody's promise: sorted, so that codes do not depend on it
    rows = sorted(zip(*columns, strict=True), key=lambda row: [text or "" for text in row])
    return Hierarchy.from_levels(["" if text is None else text for text in row] for row in rows)
