"""Samples for the demonstrations of the families: synthetic tables, and the job files in conf/ that read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Sample:
    """A synthetic table: its name in conf/, its generator, and its share of the rows that a demonstration asks for."""

    table: str
    make: Callable[[SparkSession, int], DataFrame]
    share: float = 1.0
    fewest: int = 1

    def write(self, spark: SparkSession, folder: Path, rows: int) -> None:
        """Write it as a Delta table into a folder."""
        sample = self.make(spark, max(self.fewest, int(rows * self.share)))
        sample.write.format("delta").mode("overwrite").save(str(folder.absolute() / self.table))


def copy_jobs(folder: Path) -> Path:
    """The job files of conf/ and their hierarchies, copied to `folder`/conf, where they read and write tables of `folder`."""
    jobs = folder / "conf"
    shutil.copytree(_conf() / "hierarchies", jobs / "hierarchies", dirs_exist_ok=True)
    for job in sorted(_conf().glob("*.yaml")):
        text = job.read_text(encoding="utf-8")
        (jobs / job.name).write_text(text.replace("../demo/", "../").replace("conf/", f"{jobs}/"), encoding="utf-8")
    return jobs


def _conf() -> Path:
    """conf/ of the installed package, or of the repository."""
    package = Path(__file__).resolve().parents[1]
    return next(place for place in (package / "conf", package.parent / "conf") if place.is_dir())
