"""Mistakes that people make in the first hour: one message that says what to do, the right exit code, no stack trace."""

from __future__ import annotations

import csv
import stat
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import pytest
import yaml
from pyspark.sql import SparkSession

import anon_spark as an
from anon_spark.cli import main
from anon_spark.errors import ConfigurationError

AGE = {"intervals": {"from": 20, "to": 69, "widths": [5, 10]}}
FILES = {
    "sex.csv": "f;*\nm;*\n", "city.csv": "Bonn;West;*\nUlm;South;*\n", "comma.csv": "Bonn,West,*\nUlm,South,*\n",
    "two.csv": "Bonn;West;*\nBonn;South;*\nUlm;South;*\n", "tab.yaml": "anon_spark: 1\n\tfamily: lattice\n", "list.yaml": "- 1\n",
}  # fmt: skip
QUASI = "columns__quasi_identifiers__"

WITHOUT_SPARK: dict[str, tuple[dict[str, Any], str]] = {
    "misspelled key": ({"columns__quasi_identifer": {"a": {}}}, "unknown key. Did you mean: quasi_identifiers?"),
    "key of another family": ({"columns__transactions": ["x"]}, "It belongs to relational_transaction, not to lattice"),
    "k as a word": ({"privacy__k": "ten"}, "privacy.k: should be a whole number"),
    "misspelled family": ({"family": "latice"}, "Did you mean: lattice?"),
    "no hierarchy file": ({QUASI + "sex": {"levels": "sexes.csv"}}, "columns.quasi_identifiers.sex: Cannot read the hierarchy"),
    "another separator": ({QUASI + "city": {"levels": "comma.csv"}}, "Say sep: ','"),
    "two parents": ({QUASI + "city": {"levels": "two.csv"}}, "listed again with different parents (line 2)"),
    "start and end": ({QUASI + "born": {"date": {"levels": ["year"], "start": "2020-01-01"}}}, "Known here: levels, from, to."),
    "widths that do not nest": ({QUASI + "age": {"intervals": {"from": 0, "to": 99, "widths": [5, 12]}}}, "each a multiple"),
    "bounds of words": ({QUASI + "sex": {"publish": "range"}}, "goes with intervals or dates, not with top"),
    "release in the input": ({"output__table": "./people.csv/out"}, "choose a place apart from it"),
    "file without ./": ({"input__table": "people.csv"}, "write ./ before a file"),
    "two roles": ({"columns__keep": ["age"]}, "a column has one role"),
}
WITH_SPARK: dict[str, tuple[dict[str, Any], int, str]] = {
    "misspelled column": ({"columns__sensitive": ["il"]}, 2, "Did you mean: ill? The table has: id, age, sex, city, ill."),
    "separated by ;": ({"input__table": "./semi.csv"}, 2, 'semicolons, names in the first line: say input.options: {sep: ";"}'),
    "no header": ({"input__options": {}}, 2, 'say input.options: {header: "true"}'),
    "spaces": ({QUASI + "city": {"levels": "city.csv"}}, 3, "1 value in 100 rows. city: it matches after trimming spaces."),
    "outside": ({QUASI + "age": {"intervals": {"from": 20, "to": 59, "widths": [5]}}}, 3, "age: 40 rows lie outside from–to."),
    "too much k": ({"privacy__k": 5000}, 3, "k = 5000 is more than the 200 rows of the table. Lower k."),
    "no table": ({"input__table": "./nothing.csv"}, 2, "Check the path, the format and the rights."),
}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A folder with a table, hierarchies and a job; the job with some dotted keys changed."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": row, "age": 20 + row % 50, "sex": "fm"[row % 2], "city": ["Bonn", "Ulm "][row % 2], "ill": "abc"[row % 3]}
        for row in range(200)
    ]
    for name, sep in (("people.csv", ","), ("semi.csv", ";")):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=sep)
            writer.writeheader()
            writer.writerows(rows)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def changed(**changes: object) -> str:
        content: dict[str, Any] = {
            "anon_spark": 1, "family": "lattice",
            "input": {"table": "./people.csv", "format": "csv", "options": {"header": True}},
            "columns": {"quasi_identifiers": {"age": AGE, "sex": {"levels": "sex.csv"}}, "sensitive": ["ill"]},
            "privacy": {"k": 5}, "output": {"table": "./release", "runs": "./runs"},
        }  # fmt: skip
        for path, value in changes.items():
            *parents, last = path.split("__")
            place = content
            for key in parents:
                place = place.setdefault(key, {})
            place[last] = value
        Path("job.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return "job.yaml"

    return changed


@pytest.mark.parametrize("mistake", WITHOUT_SPARK)
def test_a_fault_of_job_or_hierarchy_is_found_at_once(
    job: Callable[..., str], capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    changes, message = WITHOUT_SPARK[mistake]
    started = perf_counter()
    assert main(["run", job(**changes)]) == 2
    assert perf_counter() - started < 1  # and no JVM is there that could have been asked
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said and not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "jobs.yaml"], "no such job file; check the path"), (["plan", "tab.yaml"], "line 2, column 1: is not YAML"),
        (["plan", "list.yaml"], "should be a section of keys"), (["plan", "job.yaml", "--set", "k 5"], "should be key=value"),
        (["hierarchy", "sex.csv", "--by", "prefix"], "--steps: give whole numbers"),
        (["init", "people.csv", "--option", "header"], "give KEY=VALUE"), (["hierarchy", "two.csv"], "different parents"),
    ],
)  # fmt: skip
def test_a_fault_of_the_command_is_found_at_once(
    job: Callable[..., str], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    job()
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said


@pytest.mark.parametrize("mistake", WITH_SPARK)
def test_a_fault_of_the_table_says_what_to_do(
    spark: SparkSession, job: Callable[..., str], capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    changes, code, message = WITH_SPARK[mistake]
    assert main(["plan", job(**changes), "--quiet"]) == code
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said and "Bonn" not in said


def test_unknown_values_reach_a_private_file_on_request(
    spark: SparkSession, job: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("values.csv").touch(mode=0o644)
    assert main(["plan", job(**{QUASI + "city": {"levels": "city.csv"}}), "--show-values", "values.csv"]) == 3
    assert "Ulm" not in capsys.readouterr().err
    assert Path("values.csv").read_text(encoding="utf-8") == "city;Ulm ;100\n"
    assert stat.S_IMODE(Path("values.csv").stat().st_mode) == 0o600


def test_steps_are_told_one_per_line(spark: SparkSession, job: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", job()]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told == ["1 of 3  starting Spark", "2 of 3  checking the job and the table", "3 of 3  counting"]
    assert main(["plan", job(), "--quiet"]) == 0 and not capsys.readouterr().err


def test_arguments_of_python_are_checked_with_advice(spark: SparkSession) -> None:
    table, ages = spark.createDataFrame([(1, "a")], "age int, ill string"), an.Hierarchy.intervals(0, 9, [5])
    lattice: Any = an.LatticeAnonymizer
    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: lattice(k=2, quasi_identifiers=["age"]), "give a mapping of columns to hierarchies"),
        (lambda: lattice(k=2, quasi_identifiers={"age": {"from": 0}}), "age needs a Hierarchy, not dict"),
        (lambda: lattice(k=2, quasi_identifiers={"age": ages}, sensitive="ill"), r"such as \['ill'\]"),
        (lambda: lattice(k=2, quasi_identifiers={"age": ages}, person=["ill"]), "the name of one column"),
        (lambda: lattice(k=2, quasi_identifiers={"age": ages}).fit("people.csv"), "Read it first"),
        (lambda: lattice(k=2, quasi_identifiers={"age": ages}).fit([1, 2]), "not list"),
        (lambda: lattice(k=2, quasi_identifiers={"aeg": ages}).fit(table), "Did you mean: age"),
    ]
    for faulty, advice in mistakes:
        with pytest.raises(ConfigurationError, match=advice):
            faulty()
    with pytest.warns(UserWarning, match="goes through Spark"):
        release = an.LatticeAnonymizer(k=2, quasi_identifiers={"age": ages}).fit_transform(pd.DataFrame({"age": [1, 1, 2]}))  # type: ignore[arg-type]
    assert release.count() >= 2


def test_values_show_themselves(spark: SparkSession) -> None:
    table = spark.createDataFrame([(age,) for age in [1, 1, 2, 2, 7, 8, 8]], "age int")
    anonymizer = an.LatticeAnonymizer(k=2, quasi_identifiers={"age": an.Hierarchy.intervals(0, 9, [5])})
    recoding = anonymizer.fit(table)
    assert "10 values, 2 levels above" in anonymizer._repr_html_()
    assert "not verified yet" in recoding._repr_html_() and "age 1 of 2" in recoding._repr_html_()
    assert recoding.plot()._repr_html_().startswith("<div") and "choices of k" in repr(recoding.plot())
    verdict = an.verify(recoding.transform(table), an.KAnonymity(2, ("age",)))
    assert "✓ passed" in verdict._repr_html_()
