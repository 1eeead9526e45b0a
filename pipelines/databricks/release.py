"""One command of anon-spark as a task of a Databricks job: `release.py plan JOB`, `release.py run JOB`.

The task fails where anon-spark does not end with 0, and its error names the exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from anon_spark.cli import main

MEANING = {
    1: "unexpected, or stopped. Look at the output of this task; start the run again.",
    2: "wrong configuration. An engineer must look at the job file and its places.",
    3: "the data do not allow a release. The current release stays. The data office must decide.",
}


class NoRelease(Exception):
    """The command ended with another exit code than 0."""


def task(arguments: Sequence[str]) -> None:
    """Run the command in the session of the platform. Raises NoRelease, with names and counts only."""
    SparkSession.builder.getOrCreate()  # anon-spark takes the session that is there
    code = main(list(arguments))
    if code != 0:
        # an error: nothing says that a task looks at what a function returns
        raise NoRelease(f"anon-spark {arguments[0]} ended with {code}: {MEANING.get(code, MEANING[1])}")


if __name__ == "__main__":
    task(sys.argv[1:])  # no sys.exit: Databricks may take even sys.exit(0) for a failure
