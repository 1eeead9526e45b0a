"""The Delta Lake that belongs to the installed Spark, and its jars. Needs neither Spark nor Java."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from anon_spark.errors import ConfigurationError

EXTENSIONS = "spark.sql.extensions"
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "spark.sql.catalog.spark_catalog"
CATALOG_CLASS = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
RELEASE = "4.4.0"  # of Delta Lake, where delta-spark is not installed to name one: the one that was tested
JARS = "spark.jars"
PACKAGES = "spark.jars.packages"


def with_delta(settings: Mapping[str, str]) -> dict[str, str]:
    """`settings` with Delta's extension and catalog, unless extensions are already configured."""
    if EXTENSIONS in settings:
        return dict(settings)
    return {**settings, EXTENSIONS: EXTENSION, CATALOG: CATALOG_CLASS}


def with_jars(settings: Mapping[str, str]) -> dict[str, str]:
    """`settings` with Delta's jars: the files set-up has left, else the Maven coordinate, for Spark to fetch.

    Jars and packages already in `settings` stay.
    """
    files = jar_files()
    name, added = (JARS, [str(file) for file in files]) if files else (PACKAGES, [coordinate()])
    return {**settings, name: ",".join(filter(None, [settings.get(name), *added]))}


def jar_files() -> list[Path]:
    """The jars set-up has left; none unless they are those of the installed versions."""
    if not (jar_folder() / main_jar()).is_file():
        return []
    return sorted(jar_folder().glob("*.jar"))


def jar_folder() -> Path:
    """The folder where set-up leaves the jars: inside the Python environment."""
    return Path(sys.prefix) / "share" / "anon-spark" / "jars"


def coordinate() -> str:
    """Maven coordinate of the Delta Lake built for the installed Spark."""
    return f"io.delta:delta-spark_{spark_line()}_2.13:{_installed('delta-spark') or RELEASE}"


def main_jar() -> str:
    """File name, as Spark's Ivy writes it, of the jar that `coordinate` names."""
    group, artifact, release = coordinate().split(":")
    return f"{group}_{artifact}-{release}.jar"


def spark_line() -> str:
    """Major and minor version of the installed Spark: "4.1"."""
    match = re.match(r"\d+\.\d+", _installed("pyspark") or "")
    if match is None:
        raise ConfigurationError(
            "No Spark is installed here, or its version cannot be read. On a machine without Spark: "
            "pip install 'anon-spark[local]'. On a platform, use the session that it gives."
        )
    return match[0]


def _installed(package: str) -> str | None:
    """The version of an installed package; a platform's own Spark and Delta are no packages."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
