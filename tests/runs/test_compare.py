"""Releases of both families side by side: measures by their definitions, and everything that must not be compared."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.cli import main
from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.families.lattice.facts import LatticeFacts
from anon_spark.families.mst.facts import MstFacts
from anon_spark.families.registry import load_job
from anon_spark.metrics.published import recoded_of
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.report import RunReport
from anon_spark.runs.audit import CurrentRelease
from anon_spark.runs.compare import _candidate, _refuse_different, compare
from tests.event_log import EventLog
from tests.town import CITIES, QUASI, Town, people

K = 5
CITY = [None if at % 23 == 0 else city for at, city in enumerate(people().column("city").to_pylist())]
FULL: dict[str, Any] = {"output__report": "lattice.html"}
LOCAL: dict[str, Any] = {
    "family": "mst",
    "privacy": {"k": K, "l": 2},
    "columns__person": "person_id",
    "output__table": "./local",
    "output__report": "mst.html",
}
Tuple = tuple[Any, ...]


@dataclass(frozen=True)
class Both:
    """A town with a release of each family, and what their runs said."""

    town: Town
    files: Mapping[str, str]
    reports: Mapping[str, RunReport]

    def job(self, family: str, *overrides: str) -> JobSpec:
        return load_job(self.files[family], overrides)


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Both:
    town = Town.founded(spark, tmp_path_factory.mktemp("compare") / "town", people(city=CITY))
    files, reports = {}, {}
    for family, changes in {"lattice": FULL, "mst": LOCAL}.items():
        reports[family] = town.run(**changes)
        files[family] = str(shutil.copy(town.folder / "job.yaml", town.folder / f"{family}.yaml"))
    return Both(town, files, reports)


# --- the measures in plain Python


def leaves(column: str) -> dict[Any, set[Any]]:
    """Label → the values below it, the null leaf included."""
    if column == "age":
        labels = ["*", *(f"[{low}, {low + wide - 1}]" for wide in (10, 20) for low in range(20, 60, wide))]
        spans = {label: set(range(*_span(label, 1))) for label in labels}
        return spans | {str(age): {age} for age in range(20, 60)}
    if column == "sex":
        return {"f": {"f"}, "m": {"m"}, "*": {"f", "m"}}
    regions = {region: {city for city, of in CITIES.items() if of == region} for region in CITIES.values()}
    return {city: {city} for city in CITIES} | regions | {None: {None}, "*": {*CITIES, None}}


def _span(label: str, more: int = 0) -> tuple[int, int]:
    low, high = (20, 59) if label == "*" else map(int, re.findall(r"\d+", label))
    return low, high + more


def losses(column: str, label: Any) -> tuple[float, float, float]:
    """GLM, IL and NCP of a cell."""
    below, domain = len(leaves(column)[label]), len(leaves(column)["*"])
    if column == "age":
        low, high = _span(label) if below > 1 else (0, 0)
        return ((high - low) / 39,) * 3
    return (below - 1) / (domain - 1), (below - 1) / domain, below / domain if below > 1 else 0.0


def by_definition(source: list[Tuple], release: list[Tuple]) -> dict[str, float]:
    rows, classes = len(source), Counter(release)
    suppressed = rows - len(release)
    cells = [losses(column, label) for row in release for column, label in zip(QUASI, row, strict=True)]
    glm, il, ncp = (sum(cell[at] for cell in cells) for at in range(3))
    below = {shown: [leaves(column)[label] for column, label in zip(QUASI, shown, strict=True)] for shown in classes}
    chances, smallest = [], []
    for known in source:
        fits = [classes[shown] for shown, of in below.items() if all(v in b for v, b in zip(known, of, strict=True))]
        chances.append(1 / sum(fits) if fits else 0.0)
        smallest.append(1 / min(fits) if fits else 0.0)
    return {
        "published_rows": len(release),
        "suppressed_rows": suppressed,
        "classes": len(classes),
        "smallest_class": min(classes.values()),
        "glm": (glm + suppressed * len(QUASI)) / (rows * len(QUASI)),
        "il": il / len(release),
        "ncp": ncp / (len(QUASI) * len(release)),
        "dm": sum(size**2 for size in classes.values()) + rows * suppressed,
        "cavg": rows / (len(classes) * K),
        "attack_expected": sum(chances) / rows,
        "attack_worst": max(chances),
        "attack_class_expected": sum(smallest) / rows,
        "attack_class_worst": max(smallest),
    }


@pytest.mark.long
def test_both_families_are_measured_by_the_definitions(
    both: Both, spark: SparkSession, event_log: EventLog, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mark, before = event_log.mark(), both.town.listing()
    page = tmp_path / "new" / "both.html"

    assert main(["compare", both.files["lattice"], both.files["mst"], "--report", str(page)]) == 0

    shown, logged = capsys.readouterr().out, event_log.read_text(since=mark)
    assert both.town.listing() == before
    said = json.loads(page.with_suffix(".json").read_text())
    table = people(city=CITY)
    source = list(zip(*(table.column(name).to_pylist() for name in QUASI), strict=True))
    names = {"lattice": "release", "mst": "local"}
    found = {release["family"]: release for release in said["releases"]}
    for family, place in names.items():
        rows = spark.read.format("delta").load(f"{both.town.folder}/{place}").select(*QUASI).collect()
        wanted = by_definition(source, [tuple(row) for row in rows])
        assert found[family]["name"] == place
        assert found[family]["measures"] == pytest.approx(wanted, rel=1e-9), family
    # what the runs said of themselves, who knew levels and assignment
    lattice, mst = both.reports["lattice"].facts, both.reports["mst"].facts
    assert isinstance(lattice, LatticeFacts) and isinstance(mst, MstFacts)
    suppressed = both.reports["lattice"].accounting["suppressed"]
    assert found["lattice"]["measures"]["glm"] == pytest.approx(lattice.chosen.loss, rel=1e-12)
    assert found["lattice"]["measures"]["suppressed_rows"] == suppressed > 0
    measures = vars(mst.measures)
    assert {name: found["mst"]["measures"][name] for name in measures} == pytest.approx(measures, rel=1e-12)
    # local recoding is what it is for
    assert found["mst"]["measures"]["glm"] < found["lattice"]["measures"]["glm"]
    assert [line.split() for line in shown.splitlines()[:3]] == [
        ["release", "release", "local"], ["family", "lattice", "mst"], ["k", "5", "5"],
    ]  # fmt: skip
    text = page.read_text() + page.with_suffix(".md").read_text()
    assert "VERIFIED" in text and "general loss (GLM)" in text and page.read_text().count('class="asr-bars"') == 6
    values = {*CITIES, *CITIES.values(), "Inhabitant", "asthma"}
    assert not {value for value in values if value in text + shown + json.dumps(said) + logged}


@pytest.mark.long
def test_what_cannot_be_compared_is_refused_before_a_row_is_read(both: Both, spark: SparkSession, tmp_path: Path) -> None:
    full, local = both.job("lattice"), both.job("mst")
    before = both.town.listing()

    def refused(message: str, *jobs: JobSpec, report: str | None = None) -> None:
        with pytest.raises(ConfigurationError, match=message):
            compare(jobs, spark, report)

    refused("at least two job files", full)
    refused(r"output\.table: .*/release is named by several jobs", full, full)
    refused(r"nothing is published at .*/nowhere yet", full, both.job("mst", "output.table=./nowhere"))
    refused("local: the current release was made with another k than the job says", full, both.job("mst", "privacy.k=4"))
    refused("release: the current release was made with another family", both.job("mst", "output.table=./release"), local)
    fewer = both.job("mst", "columns.quasi_identifiers={sex: {levels: hierarchies/sex.csv}}")
    refused(r"release and local cannot be compared: columns\.quasi_identifiers differ in age, city", full, fewer)
    other = both.job("mst", "columns.quasi_identifiers.age.intervals.widths=[20]")
    refused("they have different hierarchies of age", full, other)
    refused("nulls is value in one job and suppress in the other", full, both.job("mst", "nulls=suppress"))
    inside = f"{both.town.folder}/local/both.html"
    refused(r"--report: lies inside output\.table of a job", full, local, report=inside)
    refused(r"--report: is the same place as output\.report", full, local, report=f"{both.town.folder}/mst.html")
    refused("--report: .* cannot be written", full, local, report=str(tmp_path))
    refused("--report: a report is a file on the driver", full, local, report="s3://bucket/both.html")

    one, two = (_candidate(name, CurrentRelease.of(job, spark)) for name, job in (("release", full), ("local", local)))
    _refuse_different(one, two)
    later = replace(two, current=replace(two.current, source=replace(two.current.source, version=1)))
    with pytest.raises(ConfigurationError, match=r"people at version 0; .*people at version 1\)\. Run both jobs on one"):
        _refuse_different(one, later)
    elsewhere = replace(two, current=replace(two.current, source=replace(two.current.source, table_id="another")))
    with pytest.raises(ConfigurationError, match="they come from different tables"):
        _refuse_different(one, elsewhere)
    assert both.town.listing() == before


@pytest.mark.long
def test_a_release_that_does_not_pass_its_audit_is_not_compared(
    both: Both, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = both.town.copied(tmp_path / "town")
    jobs = [load_job(town.folder / f"{family}.yaml") for family in ("mst", "lattice")]
    local = f"{town.folder}/local"
    again = spark.createDataFrame(spark.read.format("delta").load(local).limit(1).toArrow())
    again.write.format("delta").mode("append").save(local)
    measured: list[object] = []
    monkeypatch.setattr("anon_spark.runs.compare.recoded_of", lambda *given: measured.append(given))

    with pytest.raises(GuaranteeViolated, match=r"/local does not pass its audit, nothing is compared\. publication: FAILED"):
        compare(jobs, spark, tmp_path / "both.html")

    assert measured == [] and not (tmp_path / "both.html").exists()


def test_labels_must_say_what_they_stand_for(spark: SparkSession) -> None:
    release = spark.createDataFrame(pa.table({"city": ["x", "x", "y"]}))
    unclear = Hierarchy.from_levels([("x", "north", "x", "*"), ("y", "south", "x", "*")])
    with pytest.raises(ConfigurationError, match="1 labels of city mean different values on two levels"):
        recoded_of(release, {"city": unclear}, 3)
