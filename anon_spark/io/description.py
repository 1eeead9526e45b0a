"""The description of a release as a table: what was promised, in the place where catalogs and `DESCRIBE DETAIL` show it."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from anon_spark.io.publication import output_of
from anon_spark.io.tables import sql_name

OURS = "Anonymized by anon-spark"  # how each of our descriptions begins
DETAILS, COMMENT = "# Detailed Table Information", "Comment"  # as DESCRIBE TABLE EXTENDED writes them
_SPECIAL = re.compile(r"['\\$]")  # ends a text, escapes, or begins a variable that Spark would fill in


def describe(spark: SparkSession, table: str, version: int, text: str) -> None:
    """Give a table the description of its newest release. A description that others wrote stays.

    version: of the release that the text describes; where a later one was published meanwhile, nothing is written. It is a
    commit of its own behind the release, because Delta takes no description with the rows of a table that is named by a path.
    Cost: metadata only; where the text differs a look at the history, and a commit.
    """
    current = description_of(spark, table)
    if current == text or not (current or OURS).startswith(OURS):
        return
    release = output_of(spark, table).release
    if release is not None and release.version == version:
        spark.sql(f"COMMENT ON TABLE {sql_name(table)} IS {_literal(text)}").collect()


def description_of(spark: SparkSession, table: str) -> str | None:
    """The description of a table, None where it has none.

    Cost: metadata only. DESCRIBE DETAIL would read the list of files, too.
    """
    rows = [(row["col_name"], row["data_type"]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {sql_name(table)}").collect()]
    names = [name for name, _ in rows]
    details = dict(rows[names.index(DETAILS) :]) if DETAILS in names else {}  # a column may be called Comment, too
    return details.get(COMMENT)


def _literal(text: str) -> str:
    """A text in SQL."""
    return "'" + _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "'"
