"""Level tables of the samples, as files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from anon_spark.model.hierarchy import Hierarchy


def write_level_tables(folder: Path, hierarchies: Mapping[str, Hierarchy]) -> None:
    """Level tables as ARX writes them, of every hierarchy that is not a plain interval."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, hierarchy in hierarchies.items():
        if hierarchy.kind == "text":
            with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter=";").writerows(hierarchy.rows())
