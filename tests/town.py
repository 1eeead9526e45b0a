"""A small town for pipeline tests: two hundred invented people in a Delta table, their hierarchies and a job file."""

from __future__ import annotations

import copy
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pyspark.sql import DataFrame, Row, SparkSession

from anon_spark.config import JobSpec
from anon_spark.families.registry import load_job
from anon_spark.report import RunReport
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run

ROWS = 200
CITIES = {"Aldorf": "North", "Bexley": "North", "Carden": "South", "Dunmore": "South"}
LEVEL_TABLES = {
    "city": [f"{city};{region};*" for city, region in CITIES.items()],
    "sex": ["f;*", "m;*"],
}
QUASI = ["age", "sex", "city"]
JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "lattice",
    "input": {"table": "./people"},
    "columns": {
        "identifiers": ["name"],
        "quasi_identifiers": {
            "age": {"intervals": {"from": 20, "to": 59, "widths": [10, 20]}},
            "sex": {"levels": "hierarchies/sex.csv"},
            "city": {"levels": "hierarchies/city.csv"},
        },
        "sensitive": ["disease"],
        "keep": ["weight"],
    },
    "privacy": {"k": 5, "suppression": 0.05},
    "work": "./work",
    "output": {"table": "./release", "runs": "./runs", "report": "report/town.html"},
}
REMOVED = object()


def people(rows: int = ROWS, **columns: list[Any]) -> pa.Table:
    """The townspeople by number; `columns` replaces or adds some. No two columns determine each other."""
    numbers = range(rows)
    cities = list(CITIES)
    content: dict[str, list[Any]] = {
        "person_id": [7000 + number for number in numbers],
        "name": [f"Inhabitant-{number}" for number in numbers],
        "age": [20 + (number * 7 + number // 40) % 40 for number in numbers],
        "sex": ["f" if number % 3 else "m" for number in numbers],
        "city": [cities[(number // 5) % 4 if number % 11 else 0] for number in numbers],
        "disease": [("none", "asthma", "migraine")[number * number % 7 % 3] for number in numbers],
        "weight": [100 + number % 8 for number in numbers],
    }
    return pa.table(content | columns)


def crowded() -> pa.Table:
    """Townspeople of whom one, the only one in Dunmore, has thirty rows; nine rows are without a known city.

    `city_code` gives the city back.
    """
    table = people()
    city: list[str | None] = ["Carden" if name == "Dunmore" else name for name in table.column("city").to_pylist()]
    city[150:180] = ["Dunmore"] * 30
    city[190:199] = [None] * 5 + ["Atlantis"] * 4
    person = [7150 if 150 <= number < 180 else 7000 + number for number in range(ROWS)]
    code = [len(name) * 100 + ord(name[0]) if name else None for name in city]
    return people(city=city, person_id=person, city_code=code)


def messages(text: str) -> list[str]:
    """The lines of the error stream without those of progress."""
    return [line for line in text.splitlines() if not re.match(r"\d+ of \d+  ", line)]


@dataclass(frozen=True)
class Town:
    """A folder with everything a job needs, and what stands in it after a run."""

    spark: SparkSession
    folder: Path

    @classmethod
    def founded(cls, spark: SparkSession, folder: Path, table: pa.Table | None = None) -> Town:
        """The table as version 0 of a Delta table, and the level tables."""
        town = cls(spark, folder)
        town.write(people() if table is None else table)
        (folder / "hierarchies").mkdir(parents=True)
        for name, lines in LEVEL_TABLES.items():
            (folder / "hierarchies" / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return town

    def copied(self, folder: Path) -> Town:
        """The same town elsewhere, tables with their history included: Delta and the job file name places relatively."""
        return Town(self.spark, Path(shutil.copytree(self.folder, folder)))

    def write(self, table: pa.Table) -> None:
        """One more version of the input."""
        frame = self.spark.createDataFrame(table).coalesce(1)
        frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(self.folder / "people"))

    def job_file(self, **changes: object) -> str:
        """A job file with some dotted keys (`__` for a dot) replaced, or left out when REMOVED."""
        job = copy.deepcopy(JOB)
        for path, value in changes.items():
            *parents, last = path.split("__")
            place = job
            for key in parents:
                place = place.setdefault(key, {})
            if value is REMOVED:
                del place[last]
            else:
                place[last] = copy.deepcopy(value)
        file = self.folder / "job.yaml"
        file.write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
        return str(file)

    def job(self, **changes: object) -> JobSpec:
        return load_job(self.job_file(**changes))

    def run(self, **changes: object) -> RunReport:
        """Prepare and run the job with these changes."""
        return run(prepare(self.job(**changes), self.spark))

    @property
    def release(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.folder / "release"))

    @property
    def versions(self) -> int:
        """How many commits the release has beside those of its description; none without a release."""
        commits = [path.read_text() for path in (self.folder / "release" / "_delta_log").glob("*.json")]
        described = '"operation":"SET TBLPROPERTIES","operationParameters":{"properties":"{\\"comment'
        return sum(described not in commit for commit in commits)

    @property
    def runs(self) -> list[Row]:
        """The run log, oldest first."""
        if not (self.folder / "runs").exists():
            return []
        return self.spark.read.format("delta").load(str(self.folder / "runs")).orderBy("started").collect()

    def listing(self) -> dict[str, int]:
        """Every file and folder with its time of change: what a refused job must leave as it was."""
        return {str(path.relative_to(self.folder)): path.stat().st_mtime_ns for path in self.folder.rglob("*")}
