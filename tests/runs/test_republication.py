"""A release that replaces another one: numbers as a brute-force attacker's, findings, limits, and what cannot be measured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.cli import main
from anon_spark.io.publication import metadata_of
from anon_spark.io.tables import history
from anon_spark.report import RunReport
from anon_spark.runs import republication as measuring
from anon_spark.runs import run as running
from anon_spark.runs.plan import plan
from anon_spark.runs.preparation import prepare
from tests.often import often
from tests.oracle.republication_oracle import Numbers, Release, by_content, by_person, on_any_level, on_levels
from tests.town import CITIES, QUASI, Town, messages, people

FAMILIES: dict[str, dict[str, Any]] = {
    "lattice": {"columns__person": "person_id", "columns__keep": []},
    "mst": {"family": "mst", "columns__person": "person_id", "columns__keep": [], "privacy": {"k": 5}},
}
AGES = {age: (str(age), f"[{age // 10 * 10}, {age // 10 * 10 + 9}]", "[20, 39]" if age < 40 else "[40, 59]", "*")
        for age in range(20, 60)}  # fmt: skip
PATHS: list[dict[Any, tuple[Any, ...]]] = [
    dict(AGES), {sex: (sex, "*") for sex in "fm"}, {city: (city, region, "*") for city, region in CITIES.items()}
]  # fmt: skip

MOVES = {"Aldorf": "Carden", "Bexley": "Aldorf", "Carden": "Dunmore", "Dunmore": "Bexley"}


def changed(table: pa.Table, times: int) -> pa.Table:
    """3 % of the people change: some leave, some come, some move and fall ill."""
    columns = table.to_pydict()
    first = 20 * times
    for at in range(first, first + 2):  # others take their places
        columns["person_id"][at] += 5000 * times
        columns["name"][at] += " II"
    for at in range(first + 2, first + 5):
        columns["city"][at] = MOVES[columns["city"][at]]
        columns["disease"][at] = {"none": "asthma", "asthma": "migraine", "migraine": "none"}[columns["disease"][at]]
    newcomer = people(rows=1, person_id=[9000 + times], name=[f"Newcomer-{times}"], age=[33], city=["Dunmore"])
    return pa.concat_tables([pa.table(columns, schema=table.schema), newcomer.cast(table.schema)])


def release_of(town: Town, at: int, source: int) -> Release:
    """A version of the release as the attacker sees it, with the people behind it."""

    def read(table: str, version: int) -> DataFrame:
        return town.spark.read.format("delta").option("versionAsOf", str(version)).load(str(town.folder / table))

    (commit,) = (one for one in history(town.spark, str(town.folder / "release"), 100) if one["version"] == at)
    levels = (metadata_of(commit) or {}).get("levels")
    rows = [(row.person_id, (row.age, row.sex, row.city), (row.disease,)) for row in read("people", source).collect()]
    shown = [((row.age, row.sex, row.city), (row.disease,)) for row in read("release", at).collect()]
    covers = on_any_level(PATHS) if levels is None else on_levels(PATHS, [levels[name] for name in QUASI])
    return Release(rows, shown, covers)


def numbers(report: RunReport) -> Numbers:
    found = report.republication
    ones = tuple(found["one_value"].values())
    return Numbers(
        found["compared"], found["hidden"], found["least_candidates"], found["few_candidates"], ones,
        found["newcomers"], found["hidden_newcomers"], found["least_newcomers"], found["few_newcomers"],
    )  # fmt: skip


def versions_of(reports: Sequence[RunReport]) -> list[int]:
    """Of the releases: there are commits between them, which describe the table."""
    return [report.output_version for report in reports if report.output_version is not None]


def kinds(report: RunReport) -> list[str]:
    return [finding.level for finding in report.findings if finding.kind == "republication"]


@pytest.fixture(scope="module", params=often(FAMILIES, set()))
def replaced_twice(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Town, str, list[RunReport]]:
    family = FAMILIES[request.param]
    town = Town.founded(spark, tmp_path_factory.mktemp(request.param) / "town")
    reports, table = [town.run(**family)], people()
    for times in (1, 2):
        table = changed(table, times)
        town.write(table)
        reports.append(town.run(**family))
    return town, request.param, reports


def test_numbers_are_those_of_a_brute_force_attacker(replaced_twice: tuple[Town, str, list[RunReport]]) -> None:
    town, _, (first, *replacing) = replaced_twice
    assert first.republication == {} and kinds(first) == [] and "republication" not in first.timings

    versions = versions_of([first, *replacing])
    for at, report in enumerate(replacing, start=1):
        older, newer = release_of(town, versions[at - 1], at - 1), release_of(town, versions[at], at)
        wanted = by_person(older, newer, 5, 1)
        assert numbers(report) == wanted
        assert wanted.compared > 150 and wanted.newcomers + wanted.newcomers_hidden == 3 and wanted.newcomers_below
        assert report.republication["unexplained"] == 0 and kinds(report) == ["look"]
        (found,) = (one for one in report.findings if one.kind == "republication")
        assert found.share == max(
            wanted.below / wanted.compared, wanted.newcomers_below / wanted.newcomers, wanted.one_value[0] / wanted.compared
        )
        assert f"replaces version {versions[at - 1]}," in found.text and "output.mode: append" in found.text
        assert ("1 earlier release besides" in found.text) == (at == 2)
        logged = json.loads(town.runs[at].metrics)
        assert logged["republication"]["few_newcomers"] == wanted.newcomers_below and "attributes" not in logged["republication"]


def test_the_report_shows_them_without_a_value(replaced_twice: tuple[Town, str, list[RunReport]]) -> None:
    town, _, (_, _, last) = replaced_twice
    page = (town.folder / "report" / "town.html").read_text()
    content = json.loads((town.folder / "report" / "town.json").read_text())

    assert "Two releases together" in page and "fewest candidates of one of them" in page
    assert content["republication"] == last.republication and content["verdict"].startswith("Published, but look at")
    shown = json.dumps([section for section in content["sections"] if section["title"] == "Two releases together"])
    said = " ".join(one.text for one in last.findings if one.kind == "republication")
    assert not [value for value in (*CITIES, "asthma", "migraine", "7021") if value in shown + said]


def test_a_rerun_measures_nothing(
    replaced_twice: tuple[Town, str, list[RunReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    town, family, _ = replaced_twice
    monkeypatch.setattr(measuring, "told_together", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr(measuring, "republication", lambda *_: pytest.fail("measured"))

    report = town.run(**FAMILIES[family])

    assert report.status == "already_published" and report.republication == {} and kinds(report) == []


def test_a_limit_refuses_and_nothing_is_published(
    replaced_twice: tuple[Town, str, list[RunReport]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town, family, _ = replaced_twice
    limited = town.copied(tmp_path / "town")
    limited.write(changed(people(), 3))
    before = limited.versions

    assert main(["run", limited.job_file(**FAMILIES[family], limits={"republication": 0.01}), "--quiet"]) == 3

    (said,) = messages(capsys.readouterr().err)
    assert "limits.republication allows 0.01." in said and "candidates" in said and "raise the limit" in said
    assert limited.versions == before and limited.runs[-1].status == "failed"
    assert json.loads(limited.runs[-1].metrics)["republication"]["compared"] > 150  # the numbers are kept
    assert json.loads((limited.folder / "report" / "town.json").read_text())["sections"] == []


def test_a_plan_tells_that_a_release_will_be_replaced(replaced_twice: tuple[Town, str, list[RunReport]]) -> None:
    town, family, reports = replaced_twice
    planned = plan(prepare(town.job(**FAMILIES[family] | {"privacy": {"k": 6}}), town.spark))
    (note,) = (one for one in planned.findings if one.kind == "republication")
    assert note.level == "note" and f"replaces version {versions_of(reports)[-1]} " in note.text

    assert not [one for one in plan(prepare(town.job(**FAMILIES[family]), town.spark)).findings if one.kind == "republication"]


@pytest.mark.long
def test_without_persons_equal_rows_are_a_guess(spark: SparkSession, tmp_path: Path) -> None:
    town = Town.founded(spark, tmp_path / "town")
    changes: dict[str, Any] = {"columns__keep": []}
    town.run(**changes)
    town.write(changed(people(), 1))
    report = town.run(**changes, limits={"republication": 1})

    wanted = by_content(release_of(town, 0, 0), release_of(town, versions_of([report])[0], 1), 5, 1)
    assert numbers(report) == wanted and report.republication["by_content"]
    (found,) = (one for one in report.findings if one.kind == "republication")
    assert "which is a guess" in found.text and "rows are in both" in found.text


@pytest.mark.long
def test_a_release_of_the_same_people_that_tells_nothing_more_is_a_note(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town.founded(spark, tmp_path / "town")
    fixed: dict[str, Any] = {**FAMILIES["lattice"], "lattice": {"choose": {"node": [2, 1, 2]}}}
    with monkeypatch.context() as patched:  # a first release costs nothing
        patched.setattr(running, "told_together", lambda *_: pytest.fail("nothing is replaced"))
        town.run(**fixed)
    report = town.run(**fixed, limits={"republication": 0, "unique": 1})

    assert report.status == "published" and kinds(report) == ["note"]
    assert report.republication["compared"] == 200 and report.republication["least_candidates"] == 100


def lose(place: str) -> Callable[[Town], None]:
    def lost(town: Town) -> None:
        for file in (town.folder / place).glob("*.parquet"):
            file.unlink()

    return lost


def lose_input(town: Town) -> None:
    """The files of version 0 of the input are vacuumed; the new version has its own."""
    lose("people")(town)
    town.write(changed(people(), 1))


def other_table(town: Town) -> None:
    shutil.rmtree(town.folder / "people")
    town.write(changed(people(), 1))


def other_hierarchy(town: Town) -> None:
    """Bexley moves to the other half of the country, under the same names."""
    lines = ["Aldorf;North;*", "Bexley;South;*", "Carden;South;*", "Dunmore;North;*"]
    (town.folder / "hierarchies" / "city.csv").write_text("\n".join(lines) + "\n")
    town.write(changed(people(), 1))


def other_column(town: Town) -> None:
    town.write(people(disease=[number % 3 for number in range(200)]))


UNKNOWN: dict[str, tuple[Callable[[Town], None], dict[str, Any], str | None]] = {
    "input vacuumed": (lose_input, {}, "the files of version 0 of the input, of which it was made, are gone"),
    "another table": (other_table, {}, "it was made of another table"),
    "another hierarchy": (other_hierarchy, {}, "do not follow from its input by the hierarchies of this job"),
    "another type": (other_column, {}, "columns of its input were missing then, or had another type: disease"),
    "other columns": (lambda _: None, {"columns__sensitive": []}, "it has other columns than this one"),
    "another family": (lambda _: None, FAMILIES["mst"], "it was made by the family lattice"),
    "release vacuumed": (lose("release"), {"privacy__k": 6}, None),
}


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    founded = Town.founded(spark, tmp_path_factory.mktemp("unknown") / "town")
    founded.run(**FAMILIES["lattice"], lattice={"choose": {"node": [1, 1, 1]}})
    return founded


@pytest.mark.parametrize("case", often(UNKNOWN, {"input vacuumed"}))
def test_what_cannot_be_measured_is_a_look_and_refused_under_a_limit(
    town: Town, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    happen, changes, why = UNKNOWN[case]
    other = town.copied(tmp_path / "town")
    happen(other)
    asked = {**FAMILIES["lattice"], "lattice": {"choose": {"node": [1, 1, 1]}}, **changes}
    if "family" in changes:
        del asked["lattice"]

    if why is None:
        assert kinds(other.run(**asked, limits={"republication": 0})) == []  # nothing is left of it
        return
    assert main(["run", other.job_file(**asked, limits={"republication": 1}), "--quiet"]) == 3
    assert "limits.republication allows 1, and a share that is unknown is refused." in capsys.readouterr().err
    assert other.versions == town.versions
    (found,) = (one for one in json.loads(other.runs[-1].findings) if one["kind"] == "republication")
    assert (found["level"], found["share"]) == ("look", None)
    assert why in found["text"] and "version 0, which can still be read" in found["text"]
    assert not [value for value in (*CITIES, "asthma") if value in found["text"]]


@pytest.mark.long
@pytest.mark.compiles
def test_families_without_such_numbers_say_so(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records of items are drawn anew by every release."""
    town = Town.founded(spark, tmp_path / "town", baskets())
    town.run(**BASKETS)
    town.write(baskets(61))
    assert main(["plan", town.job_file(**BASKETS, limits={"republication": 0})]) == 3
    assert "stop: limits.republication allows 0, and a share that is unknown" in capsys.readouterr().out
    report = town.run(**BASKETS)
    (found,) = (one for one in report.findings if one.kind == "republication")
    assert found.level == "look" and "for this family such numbers are not defined" in found.text


BASKETS: dict[str, Any] = {
    "family": "set_valued",
    "columns": {"items": "items", "sensitive": ["disease"]},
    "privacy": {"k": 3},
}


def baskets(rows: int = 60) -> pa.Table:
    items = [[f"item-{number % 7}", f"item-{number % 5}"] for number in range(rows)]
    return people(rows=rows).append_column("items", pa.array(items))
