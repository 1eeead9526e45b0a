"""The command line: exit codes, one line per problem that says what to do, and nothing written where nothing may be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.cli import main
from anon_spark.errors import ConfigurationError
from anon_spark.io.tables import history
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.runs.duration import expectation
from anon_spark.runs.plan import Plan
from tests.published import ASKED, PublishedTown
from tests.town import CITIES, LEVEL_TABLES, REMOVED, Town, messages, people

QUASI = "columns.quasi_identifiers"
VALUES = {*CITIES, "Inhabitant", "asthma", "migraine", "Atlantis"}  # of records: never in a message

HIERARCHIES = {
    "twice.csv": "Aldorf;North;*\nBexley;North;*\nAldorf;South;*\n",
    "gap.csv": "Aldorf;North;*\nBexley;;*\n",
    "torn.csv": "Aldorf;Hill;North;*\nBexley;Hill;South;*\n",
    "empty.csv": "\n",
    "cycle.csv": "Aldorf,North\nNorth,South\nSouth,North\n",
    "twice_edges.csv": "Aldorf,North\nAldorf,South\nNorth,*\nSouth,*\n",
}


def quasi(**spec: object) -> dict[str, Any]:
    """The job with this hierarchy for city."""
    return {"columns__quasi_identifiers": {"city": spec}}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    # the job file
    "unknown key": ({"privacy__kk": 3}, "privacy.kk: unknown key. Did you mean: k?"),
    "k below 2": ({"privacy__k": 1}, "privacy.k: is 1, which protects nobody; give at least 2, or map_k"),
    "suppression too large": ({"privacy__suppression": 1.0}, "privacy.suppression: should be below 1"),
    "suppression negative": ({"privacy__suppression": -0.1}, "privacy.suppression: should be at least 0"),
    "a text for a number": ({"privacy__k": "ten"}, "privacy.k: should be a whole number"),
    "a text for a list": ({"columns__sensitive": "disease"}, "columns.sensitive: should be a list"),
    "a list for a section": ({"columns": ["age"]}, "columns: should be a section of keys"),
    "required key": ({"output__runs": REMOVED}, "output.runs: is required"),
    "other format": ({"anon_spark": 2}, "anon_spark: should be 1, the version of this format"),
    "choice below k": ({"lattice": {"choose": {"k": 3}}}, "lattice.choose.k: is 3, below privacy.k, which is 5; "),
    "two roles": ({"columns__keep": ["age"]}, "columns.keep: column age is in quasi_identifiers already; a column has one role"),
    # columns
    "missing column": ({"columns__keep": ["wieght"]}, "Columns not found: wieght. Did you mean: weight?"),
    "an array to generalize": (
        {"columns__quasi_identifiers": {"tags": {"mask": {}}}},
        f"{QUASI}.tags: a column of type array<string> has no hierarchy. Use a text, number, truth value, date or timestamp.",
    ),
    "a map to keep": ({"columns__keep": ["traits"]}, "Column traits: a map or variant cannot be published, "),
    # places
    "output inside input": ({"output__table": "./people/release"}, "output.table: lies inside input.table; choose a place apart"),
    "output is input": ({"output__table": "./people"}, "output.table: is the same place as input.table; choose a place apart"),
    "work inside input": ({"work": "./people/work"}, "work: lies inside input.table; choose a place apart"),
    "output occupied": ({"output__table": "./letters"}, "output.table: FOLDER/letters holds something that is no Delta table."),
    "output of others": ({"output__table": "./others"}, "output.table: FOLDER/others holds a table that is no release of anon-"),
    "run log occupied": ({"output__runs": "./letters"}, "output.runs: FOLDER/letters holds something that is no Delta table."),
    "run log of others": ({"output__runs": "./others"}, "output.runs: FOLDER/others is not a run log of anon-spark. Choose an"),
    "run log nowhere": ({"output__runs": "noschema.runs"}, "output.runs: noschema.runs is a name of the catalog, and the catal"),
    "report below a file": ({"output__report": "letters/a.txt/town.html"}, "output.report: FOLDER/letters/a.txt/town.html can"),
    "report elsewhere": ({"output__report": "s3://bucket/town.html"}, "output.report: a report is a file on the driver. Give a "),
    "work nowhere": ({"work": "nostore://work"}, "work: nostore: cannot be managed from here. Use a local, hdfs, s3, gs or "),
    "work below a file": ({"work": "letters/a.txt"}, "work: FOLDER/letters/a.txt cannot be written (Not a directory). "),
    "output not writable": ({"output__table": "/proc/nowhere/release"}, "output.table: /proc/nowhere/release cannot be written"),
    "report not writable": ({"output__report": "/proc/nowhere/town.html"}, "output.report: /proc/nowhere/town.html cannot be "),
    "bare name": ({"output__table": "release"}, "output.table: release is a name of the catalog, and the catalog of this sess"),
    "unreadable path": ({"input__table": "./nothing"}, "input.table: no Delta table at FOLDER/nothing. Check the name, or give "),
    "unreadable csv": ({"input": {"table": "./no.csv", "format": "csv"}}, "input.table: no readable csv table at FOLDER/no.csv."),
    "version": ({"input__version": 9}, "input.version: version 9 of FOLDER/people cannot be read; the latest is 0."),
    # hierarchies
    "no file": (quasi(levels="hierarchies/no.csv"), f"{QUASI}.city: Cannot read the hierarchy FOLDER/hierarchies/no.csv: "),
    "no table": (quasi(levels="./no", format="parquet"), f"{QUASI}.city: no readable parquet table at FOLDER/no. Check the name"),
    "two parents": (quasi(levels="hierarchies/twice.csv"), f"{QUASI}.city: 1 value listed again with different parents (line 3)"),
    "gap": (quasi(levels="hierarchies/gap.csv"), f"{QUASI}.city: 1 row with an empty label between others (line 2). Fill the"),
    "not nested": (quasi(levels="hierarchies/torn.csv"), f"{QUASI}.city: "),
    "no values": (quasi(levels="hierarchies/empty.csv"), f"{QUASI}.city: The hierarchy has no rows: give one row per value"),
    "cycle": (quasi(edges="hierarchies/cycle.csv"), f"{QUASI}.city: "),
    "two parents by edges": (quasi(edges="hierarchies/twice_edges.csv"), f"{QUASI}.city: "),
    "widths": (quasi(intervals={"from": 0, "to": 9, "widths": [2, 3]}), f"{QUASI}.city.intervals: widths should ascend, each a"),
    "no such level": ({"lattice": {"choose": {"node": [0, 7, 0]}}}, "lattice.choose.node: sex has levels 0 to 1, not 7."),
}


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town where nothing was published, with columns that have no hierarchy, and places that belong to others."""
    rows = 20
    traits = pa.array([[("height", number)] for number in range(rows)], pa.map_(pa.string(), pa.int64()))
    table = people(rows).append_column("tags", pa.array([["a", "b"]] * rows)).append_column("traits", traits)
    founded = Town.founded(spark, tmp_path_factory.mktemp("cli") / "town", table)
    for name, content in HIERARCHIES.items():
        (founded.folder / "hierarchies" / name).write_text(content)
    (founded.folder / "letters").mkdir()
    (founded.folder / "letters" / "a.txt").write_text("dear")
    spark.range(1).write.format("delta").save(f"{founded.folder}/others")
    return founded


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on stderr; nothing on stdout, no stack trace, no value of a record."""
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert not {value for value in VALUES if value in shown.err}
    assert shown.out == ""
    told = messages(shown.err)
    assert told[0].startswith("anon-spark: ")
    return [told[0].removeprefix("anon-spark: "), *told[1:]]


# --- exit 2: found before a row is read, nothing written at all


@pytest.mark.parametrize("case", WRONG)
def test_wrong_configuration(town: Town, capsys: pytest.CaptureFixture[str], case: str) -> None:
    changes, message = WRONG[case]
    file = town.job_file(**changes)
    before = town.listing()

    code = main(["run", file])

    (line,) = said(capsys)
    assert line.startswith(message.replace("FOLDER", str(town.folder)))
    assert code == 2
    assert town.listing() == before


@pytest.mark.parametrize("command", ["plan", "audit"])
def test_other_commands_refuse_alike(town: Town, capsys: pytest.CaptureFixture[str], command: str) -> None:
    file = town.job_file(columns__keep=["wieght"])
    before = town.listing()

    assert main([command, file]) == 2

    (line,) = said(capsys)
    missing = "Columns not found: wieght. Did you mean: weight?"
    assert line.startswith(missing) if command == "plan" else line.startswith("output.table: nothing is published at ")
    assert town.listing() == before


def test_every_problem_has_its_line(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", town.job_file(privacy__k=1, privacy__kk=1), "--set", "nulls=drop"]) == 2

    assert sorted(said(capsys)) == [
        "nulls: should be one of value, suppress",
        "privacy.k: is 1, which protects nobody; give at least 2, or map_k with a population",
        "privacy.kk: unknown key. Did you mean: k?",
    ]


def test_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "torn.yaml").write_text("family: [lattice\n")
    messages = {
        "missing.yaml": f"{tmp_path}/missing.yaml: no such job file; check the path",
        ".": f"{tmp_path}/.: is a folder; name the job file in it",
        "empty.yaml": "empty.yaml: is empty; see conf/ for an example of a job",
        "torn.yaml": "torn.yaml, line 2, column 1: is not YAML: ",
    }
    for file, message in messages.items():
        assert main(["run", f"{tmp_path}/{file}"]) == 2
        (line,) = said(capsys)
        assert line.startswith(message)
    with pytest.raises(SystemExit) as caught:
        main(["rnu"])
    assert caught.value.code == 2


def test_debug_shows_where(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        main(["run", f"{tmp_path}/missing.yaml", "--debug"])


def test_texts_of_query_errors_are_not_logged(town: Town, capfd: pytest.CaptureFixture[str]) -> None:
    main(["plan", town.job_file(input__version=9)])  # pyspark would log every error of a query that it hands over

    assert len(messages(capfd.readouterr().err)) == 1
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        assert PySparkLogger.getLogger(name).disabled
    quiet = Path(__file__).resolve().parents[2] / "anon_spark" / "machine" / "quiet.properties"
    assert "%ex{none}" in quiet.read_text()  # nor does Spark itself write texts of exceptions


# --- exit 3: the data do not allow it; nothing published, one row in the run log

IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "empty table": ({"input__version": 1}, "The input table is empty: there is nothing to release."),
    "unseen values": (
        {"columns__quasi_identifiers": {"city": {"levels": "hierarchies/some.csv"}}},
        "Values that the hierarchies do not know: city: 1 value in 5 rows. Complete the hierarchy, or set on_unseen: suppress. "
        "--show-values FILE writes them to a private file.",
    ),
}
BARE: dict[str, Any] = {  # one attribute, nothing else to publish
    "columns__quasi_identifiers": {"city": {"levels": "hierarchies/city.csv"}},
    "columns__sensitive": [],
    "columns__keep": [],
    "input__version": 0,
    "privacy": {"k": 3},
}


@pytest.fixture(scope="module")
def poor(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Twenty people in version 0, nobody in version 1; `some.csv` does not know Dunmore."""
    founded = Town.founded(spark, tmp_path_factory.mktemp("poor") / "town", people(20))
    founded.write(people(20).slice(0, 0))
    lines = [line for line in LEVEL_TABLES["city"] if not line.startswith("Dunmore")]
    (founded.folder / "hierarchies" / "some.csv").write_text("\n".join(lines))
    return founded


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_data(poor: Town, capsys: pytest.CaptureFixture[str], case: str) -> None:
    changes, message = IMPOSSIBLE[case]
    file, rows = poor.job_file(**BARE | changes), len(poor.runs)

    assert main(["run", file, "--quiet"]) == 3
    assert said(capsys) == [message]
    assert not (poor.folder / "release").exists()
    (row,) = poor.runs[rows:]
    assert (row.status, row.message, row.output_version) == ("failed", message, None)
    page = (poor.folder / "report" / "town.html").read_text()
    assert "NOT PUBLISHED" in page and row.run_id in page
    assert not (poor.folder / "work").exists() or list((poor.folder / "work").iterdir()) == []


# --- plan


def test_plan_counts_and_writes_nothing(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    file = town.job_file(privacy__k=2)
    before = town.listing()

    assert main(["plan", file]) == 0

    assert town.listing() == before
    folder = town.folder
    assert capsys.readouterr().out.splitlines() == [
        f"input: {folder}/people at version 0",
        "guarantee: 2-anonymity on age, sex, city (counting rows)",
        "rows: 20",
        "distinct tuples: 20",
        "lattice nodes: 24",
        "rows with unseen values: 0",
        "null cells: 0",
        "published columns: age, sex, city, disease, weight",
        f"a run would take: {expectation('lattice', 20, town.spark)}",
        f"would write: release {folder}/release (version 0, at most 20 rows)",
        f"would write: run log {folder}/runs (one row)",
        f"would write: report {folder}/report/town.html (with .json and .md beside it)",
    ]


def test_plan_refuses_what_a_run_would(poor: Town, capsys: pytest.CaptureFixture[str]) -> None:
    changes, message = IMPOSSIBLE["unseen values"]
    file = poor.job_file(**BARE | changes)
    before = poor.listing()
    assert main(["plan", file]) == 3
    assert said(capsys) == [message]
    assert poor.listing() == before

    assert main(["plan", poor.job_file(**BARE, privacy__k=21)]) == 3  # a run of this kind: see tests/e2e
    assert said(capsys) == ["k = 21 is more than the 20 rows of the table. Lower k."]
    persons = poor.job_file(**BARE, columns__person="weight", privacy__k=9)  # as if weight said who it is
    assert main(["plan", persons]) == 3
    assert said(capsys) == ["k = 9 is more than the 8 persons of the table. Lower k."]


def test_plan_says_what_is_published_already() -> None:
    known = Plan("town.people", None, "5-anonymity", {"rows": 1200}, ["age"], ["release town.release"], already_published=True)

    assert known.lines() == [
        "input: town.people",
        "guarantee: 5-anonymity",
        "rows: 1,200",
        "published columns: age",
        "would write: release town.release",
        "already published from these rows: a run would recognise it and write no release",
    ]


# --- audit


def test_audit_verifies_what_stands(published: PublishedTown, capsys: pytest.CaptureFixture[str]) -> None:
    town = published.town
    file = town.job_file(**ASKED)
    before = town.listing()

    assert main(["audit", file]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"\. .*", ".", line.strip()) for line in lines] == [
        "publication: passed.",
        "metadata: passed.",
        "columns: passed.",
        "5-anonymity: passed.",  # of rows, in the release
        "5-anonymity: passed.",  # of persons, in the rows it was made from
        "truthfulness: passed.",
        "row accounting: passed.",
        f"verified: {town.folder}/release",
    ]
    assert town.listing() == before

    assert main(["audit", town.job_file(**quasi(levels="hierarchies/city.csv"))]) == 2
    (line,) = said(capsys)
    assert line == "The current release has other quasi-identifiers than the job. Audit it with the job that made it."


def test_audit_detects_tampering(published: PublishedTown, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    town = published.town.copied(tmp_path / "town")
    place = f"{town.folder}/release"
    metadata = history(town.spark, place, 9)[-1]["userMetadata"]
    changed = town.release.withColumn("disease", F.lit("none"))

    def faults(frame: DataFrame, k: int, **options: str) -> list[str]:
        """The checks that fail once the release was replaced by `frame`."""
        kept = town.spark.createDataFrame(frame.toArrow())  # not read while it is overwritten
        kept.write.format("delta").mode("overwrite").options(overwriteSchema="true", **options).save(place)
        assert main(["audit", town.job_file(**ASKED, privacy__k=k)]) == 3
        shown = capsys.readouterr()
        assert len(messages(shown.err)) == 1 and not {value for value in VALUES if value in shown.err + shown.out}
        return [line.split(":")[0].strip() for line in shown.out.splitlines() if "FAILED" in line]

    # who forges the commit is caught by the content; k is what the job asks for, not what the release says of itself
    assert faults(changed, 150, userMetadata=metadata) == ["150-anonymity", "150-anonymity", "truthfulness"]
    assert faults(changed.drop("city"), 5) == ["publication", "columns"]
    assert town.versions == 3  # it was only looked at


# --- hierarchy


def test_hierarchy_is_shown_and_saved(town: Town, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "{intervals: {from: 0, to: 19, widths: [5, 10]}}"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("hierarchy: 20 values, 3 levels above them, labels per level: 20, 4, 2, 1\n")
    assert "[10, 14]" in shown

    source = str(town.folder / "hierarchies" / "city.csv")
    for end in ("csv", "json"):
        target = str(tmp_path / f"saved.{end}")
        assert main(["hierarchy", source, "--save", target]) == 0
        assert capsys.readouterr().out.endswith(f"saved: {target}\n")
        again = Hierarchy.from_csv(target) if end == "csv" else Hierarchy.load(target)
        assert again.labels == Hierarchy.from_csv(source).labels

    assert main(["hierarchy", town.job_file(), "--column", "sex"]) == 0
    assert capsys.readouterr().out.startswith("sex: 2 values, 1 levels above them, labels per level: 2, 1\n")
    (tmp_path / "zips.txt").write_text("13051\n13053\n14850\n")
    assert main(["hierarchy", "{mask: {keep: left}}", "--values", f"{tmp_path}/zips.txt"]) == 0
    assert capsys.readouterr().out.startswith("hierarchy: 3 values, 5 levels above them, labels per level: 3, 2, 2, 2, 1, 1\n")
    (tmp_path / "edges.tsv").write_text("child\tparent\nx\tA\ny\tA\n")
    assert main(["hierarchy", f"{tmp_path}/edges.tsv", "--edges", "--header", "--sep", "\t"]) == 0
    assert capsys.readouterr().out.startswith("edges: 2 values, ")


def test_hierarchy_from_a_table_of_the_job(town: Town, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"value": ["x", "y"], "group": ["A", "A"]}), tmp_path / "levels.parquet")

    assert main(["hierarchy", town.job_file(**quasi(levels=f"{tmp_path}/levels.parquet", format="parquet"))]) == 0

    assert capsys.readouterr().out.startswith("city: 2 values, ")


def test_hierarchy_faults(town: Town, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = town.folder / "hierarchies"
    job = town.job_file()
    before = town.listing()
    faults: dict[tuple[str, ...], str] = {
        (f"{folder}/no.csv",): f"Cannot read the hierarchy {folder}/no.csv: ",
        (f"{folder}/twice.csv",): "1 value listed again with different parents (line 3). Keep one row per value.",
        ("{intervals: {from: 0, to: 19, widths: [5, 7]}}",): "hierarchy: intervals: widths should ascend, each a multiple ",
        ("{interval: {from: 0}}",): "hierarchy: interval: unknown key. Did you mean: intervals?",
        ("{intervals: {from: 0",): "hierarchy, line 1, column ",
        ("{mask: {}}",): "hierarchy: this rule is completed by the values of a column. Give them with --values FILE.",
        ("{mask: {}}", "--values", f"{folder}/no.txt"): f"--values: {folder}/no.txt cannot be read. Check the path; ",
        (job, "--column", "zip"): "--column: the job has no hierarchy named zip.",
        (job, "--save", f"{tmp_path}/all.csv"): "--save: the job has several hierarchies. Name one of them with --column.",
        (f"{folder}/city.csv", "--column", "city"): "--column goes with a job file only.",
    }
    for arguments, message in faults.items():
        assert main(["hierarchy", *arguments]) == 2, arguments
        lines = said(capsys)
        assert lines[0].startswith(message), arguments
    assert main(["hierarchy", f"{folder}/sex.csv", "--save", f"{folder}/no/sex.csv"]) == 2
    assert f"anon-spark: --save: {folder}/no/sex.csv cannot be written. Check the folder." in capsys.readouterr().err
    assert town.listing() == before and list(tmp_path.iterdir()) == []
