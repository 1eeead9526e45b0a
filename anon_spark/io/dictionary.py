"""The table of a data dictionary: replaced as a whole with every release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import is_path
from anon_spark.errors import ConfigurationError
from anon_spark.io.publication import MARK, metadata_of
from anon_spark.io.tables import history, require_free, sql_name

WHAT = "dictionary"  # mark of our commits


def check_dictionary(spark: SparkSession, table: str) -> None:
    """Refuse a place that holds another table, before anything is written. Writes nothing."""
    commits = history(spark, table, 1)
    if not commits:
        require_free(spark, table, "output.dictionary")
    elif not (metadata_of(commits[0]) or {}).get(WHAT):
        raise ConfigurationError(
            f"output.dictionary: {table} is no dictionary of anon-spark. It is left alone: choose another place."
        )


def write_dictionary(entries: DataFrame, table: str, metadata: Mapping[str, Any]) -> None:
    """Replace the dictionary in one commit that names the run."""
    mark = json.dumps({MARK: {WHAT: True, "run_id": metadata.get("run_id")}})
    writer = entries.write.format("delta").mode("overwrite").option("overwriteSchema", "true").option("userMetadata", mark)
    if is_path(table):
        writer.save(table)
    else:
        writer.saveAsTable(sql_name(table))
