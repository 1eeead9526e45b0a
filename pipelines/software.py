"""What made a release."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pyspark


def versions() -> dict[str, str]:
    """Versions of what made the release, as far as they are told: a platform has a Spark and a Delta of its own."""
    found = {}
    for name, otherwise in (("anon-spark", "not installed"), ("pyspark", pyspark.__version__), ("delta-spark", "")):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = otherwise
    return {name: text for name, text in found.items() if text}
