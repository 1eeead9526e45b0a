"""Where things are: nothing that is written may touch what is read, or anything else that is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anon_spark.config import is_path, is_uri, relation, resolve_file, resolve_table
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import parse_job

BASE = Path("/jobs/here")


@pytest.mark.parametrize(("text", "uri"), [
    ("s3://bucket/x", True), ("s3://bucket", True), ("hdfs:///x", True), ("file:/x", True), ("file:///x", True),
    ("abfss://c@a.dfs.core.windows.net/x", True), ("/x", False), ("x/y", False), ("c:/x", False), ("a.b", False),
])
def test_uris(text: str, uri: bool) -> None:
    assert is_uri(text) == uri


@pytest.mark.parametrize(("text", "file", "table"), [
    ("people", "/jobs/here/people", "people"),
    ("a.b.c", "/jobs/here/a.b.c", "a.b.c"),
    ("./people", "/jobs/here/people", "/jobs/here/people"),
    ("../x/", "/jobs/x", "/jobs/x"),
    ("/data//x", "/data/x", "/data/x"),
    ("s3://b/x/../y", "s3://b/x/../y", "s3://b/x/../y"),
    ("file:/x", "file:/x", "file:/x"),
])
def test_resolution(text: str, file: str, table: str) -> None:
    assert resolve_file(text, BASE) == file
    assert resolve_table(text, BASE) == table
    assert resolve_table(table, Path("/other")) == table   # resolving twice changes nothing
    assert is_path(text) == ("/" in text)


SAME, INSIDE, CONTAINS = "is the same place as", "lies inside", "contains"


@pytest.mark.parametrize(("one", "other", "expected"), [
    ("/a/b", "/a/b", SAME), ("/a/b/", "/a//b", SAME), ("/a/c/../b", "/a/b", SAME), ("/a/b/c", "/a/b", INSIDE),
    ("/a", "/a/b/c", CONTAINS), ("/", "/a", CONTAINS), ("/a/b", "/a/bc", None), ("/a/b", "/a/c", None),
    ("file:/a", "/a", SAME), ("file:///a/b", "file:/a", INSIDE), ("file://localhost/a", "/a", SAME),
    ("FILE:/a", "/a", SAME),
    ("s3://b/a", "s3a://b/a", SAME), ("s3://b/a", "s3://c/a", None), ("s3://b/a", "/a", None),
    ("s3://b", "s3://b/a", CONTAINS),
    ("hdfs://nn/a", "hdfs:///a", SAME), ("hdfs://nn/a", "/a", SAME), ("hdfs://n1/a", "hdfs://n2/a", None),
    ("hdfs://nn/a", "file:/a", None), ("/a/*.csv", "/a/out", CONTAINS), ("/a/out", "/a/year=*/x", INSIDE),
    ("db.t", "DB.T", SAME), ("t", "default.t", SAME), ("spark_catalog.default.t", "`t`", SAME), ("db.t", "db.t2", None),
    ("a.b.c", "b.c", None), ("db.t", "/db/t", None),
])
def test_relation(one: str, other: str, expected: str | None) -> None:
    assert relation(one, other) == expected
    turned = {INSIDE: CONTAINS, CONTAINS: INSIDE}
    assert relation(other, one) == turned.get(expected or "", expected)


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert relation(str(tmp_path / "link" / "x"), str(tmp_path / "real")) == INSIDE
    assert relation(str(tmp_path / "link"), f"file:{tmp_path}/real") == SAME


def refusal(**places: str) -> list[str]:
    job: dict[str, Any] = {
        "anon_spark": 1, "family": "lattice", "privacy": {"k": 2},
        "input": {"table": places.get("input", "./in/people")},
        "columns": {"quasi_identifiers": {"zip": {"levels": places.get("levels", "h/zip.csv")}}},
        "output": {"table": places.get("table", "./out/release"), "runs": places.get("runs", "./out/runs"),
                   "report": places.get("report", "out/report.html")},
        "work": places.get("work", "work"),
    }
    try:
        parse_job(job, BASE)
    except ConfigurationError as error:
        return str(error).splitlines()
    return []


LEVELS = "columns.quasi_identifiers.zip.levels"


@pytest.mark.parametrize(("places", "touching"), [
    ({}, None),
    ({"table": "./in/people"}, f"output.table: {SAME} input.table"),
    ({"table": "/jobs/here/in/../in/people/"}, f"output.table: {SAME} input.table"),
    ({"table": "file:/jobs/here/in/people"}, f"output.table: {SAME} input.table"),
    ({"table": "./in/people/x"}, f"output.table: {INSIDE} input.table"),
    ({"table": "./in"}, f"output.table: {CONTAINS} input.table"),
    ({"input": "db.people", "table": "DB.people"}, f"output.table: {SAME} input.table"),
    ({"runs": "./in/people"}, f"output.runs: {SAME} input.table"),
    ({"runs": "./out/release"}, f"output.runs: {SAME} output.table"),
    ({"runs": "./out/release/runs"}, f"output.runs: {INSIDE} output.table"),
    ({"table": "db.t", "runs": "default.db.t"}, None),
    ({"table": "db.t", "runs": "spark_catalog.db.t"}, f"output.runs: {SAME} output.table"),
    ({"report": "in/people/report.html"}, f"output.report: {INSIDE} input.table"),
    ({"report": "out/release/report.html"}, f"output.report: {INSIDE} output.table"),
    ({"input": "./in/people.json", "report": "in/people.html"}, f"output.report: {SAME} input.table"),
    ({"work": "in"}, f"work: {CONTAINS} input.table"),
    ({"work": "in/people/_work"}, f"work: {INSIDE} input.table"),
    ({"work": "out/release/_work"}, f"work: {INSIDE} output.table"),
    ({"work": "h"}, f"work: {CONTAINS} {LEVELS}"),
    ({"table": "./h"}, f"output.table: {CONTAINS} {LEVELS}"),
    ({"input": "s3://b/in", "report": "s3://b/in/x.html"}, f"output.report: {INSIDE} input.table"),
])
def test_places_that_touch(places: dict[str, str], touching: str | None) -> None:
    expected = [f"{touching}; choose a place apart from it"] if touching else []
    assert refusal(**places) == expected


def test_a_folder_around_everything_names_all_it_endangers() -> None:
    lines = refusal(work=".")
    assert "work: contains the job file; choose a place apart from it" in lines
    assert {line.split()[2] for line in lines} >= {"input.table;", "output.table;", "output.runs;", "output.report;"}
