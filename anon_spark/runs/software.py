"""Versions of the software that made a release."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pyspark


def versions() -> dict[str, str]:
    """Versions of anon-spark, pyspark and delta-spark, where known: a platform may have its own Spark and Delta."""
    installed = {}
    for name, otherwise in (("anon-spark", "not installed"), ("pyspark", pyspark.__version__), ("delta-spark", "")):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = otherwise
    return {name: text for name, text in installed.items() if text}
