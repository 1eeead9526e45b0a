"""Python workers that do not read Spark's archives for every task: the value of `spark.python.daemon.module`.

Spark puts pyspark.zip and a jar of thousands of classes on the path of its workers, and before each task Python reads their
tables of contents again: 0.1 s of a core, more than a small task takes. Where pyspark is installed as files, the
archives are of no use. Needs this package on every node, installed, not sent along with a job.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import PurePath

MODULE = "anon_spark.workers"
JARS = "spark-"
ARCHIVES = ("pyspark", "py4j")


def without_archives(path: Sequence[str]) -> list[str]:
    """The path without Spark's jar, and without archives of modules that it also has as files."""
    without_jar = [entry for entry in path if not (entry.endswith(".jar") and PurePath(entry).name.startswith(JARS))]
    files = [
        entry for entry in without_jar if not (entry.endswith(".zip") and PurePath(entry).name.startswith(ARCHIVES))
    ]
    return files if all(PathFinder.find_spec(name, files) for name in ARCHIVES) else without_jar


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    sys.path_importer_cache.clear()  # made again for what is left

    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]
