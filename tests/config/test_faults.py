"""Job files that are wrong: one error, one line per fault, the path in front, nothing of the content in it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from anon_spark.config import HierarchySpec
from anon_spark.errors import ConfigurationError
from anon_spark.families.lattice.job import LatticeJob
from anon_spark.families.registry import load_job, parse_job

JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "lattice",
    "input": {"table": "warehouse.people"},
    "columns": {
        "person": "id",
        "identifiers": ["name"],
        "quasi_identifiers": {"age": {"intervals": {"from": 0, "to": 100, "widths": [5, 10]}}, "zip": {"mask": {}}},
        "sensitive": ["disease"],
        "keep": ["weight"],
    },
    "privacy": {"k": 10},
    "lattice": {},
    "output": {"table": "warehouse.release", "runs": "warehouse.runs"},
}
ABSENT = object()
AVAILABLE = "available: lattice, mst, relational_transaction, set_valued, tree"
QUASI = "columns.quasi_identifiers"
RESERVED = "names starting with _anon_, and _link, are reserved; rename the column"
DEPTH = "should be a whole number of at least 1, best or worst"
ASCEND = ".intervals: widths should ascend, each a multiple of the one before"
UNITS = ".date.levels: should be units among week, month, quarter, year, decade, century."
DAY = ".date.from: should be a day, such as 1970-01-01"


def with_value(path: str, value: object) -> dict[str, Any]:
    job = copy.deepcopy(JOB)
    *parents, last = path.split(".")
    place = job
    for key in parents:
        place = place.setdefault(key, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return job


def refusal(job: dict[str, Any], base: Path = Path("/jobs")) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_job(job, base)
    assert caught.value.exit_code == 2
    lines = str(caught.value).splitlines()
    assert caught.value.facts["problems"] == lines
    return lines


FAULTS: list[tuple[str, object, str]] = [
    # unknown keys: path and nearest
    ("columns.quasi_identifers", {}, "columns.quasi_identifers: unknown key. Did you mean: quasi_identifiers?"),
    ("colums", {}, "colums: unknown key. Did you mean: columns?"),
    ("privacy.K", 3, "privacy.K: unknown key. Known here: k, suppression, sensitive, map_k, presence."),
    ("k", 3, "k: unknown key. Did you mean: privacy.k?"),
    (f"{QUASI}.age.intervals.form", 3, f"{QUASI}.age.intervals.form: unknown key. Did you mean: from?"),
    (f"{QUASI}.age.level", 3, f"{QUASI}.age.level: unknown key. Did you mean: levels?"),
    ("lattice.choose", {"maxloss": 0.1}, "lattice.choose.maxloss: unknown key. Did you mean: max_loss?"),
    ("input.nst", {}, "input.nst: unknown key. Known here: format, table, version, options."),
    ("input.nest", {}, "input.nest: goes with a family of nested records only; join the tables into one first"),
    # head
    ("anon_spark", ABSENT, "anon_spark: is required"),
    ("anon_spark", 2, "anon_spark: should be 1, the version of this format"),
    ("anon_spark", True, "anon_spark: should be 1, the version of this format"),
    ("anon_spark", "1", "anon_spark: should be 1, the version of this format"),
    ("family", ABSENT, f"family: is required; {AVAILABLE}."),
    ("family", "latice", f"family: unknown family; {AVAILABLE}. Did you mean: lattice?"),
    ("family", 5, f"family: unknown family; {AVAILABLE}."),
    # required
    ("input", ABSENT, "input: is required"),
    ("input.table", ABSENT, "input.table: is required"),
    ("input.table", None, "input.table: is required"),
    ("columns", ABSENT, "columns: is required"),
    (QUASI, ABSENT, f"{QUASI}: is required"),
    (QUASI, {}, f"{QUASI}: needs at least one entry"),
    ("privacy", ABSENT, "privacy: is required"),
    ("privacy.k", ABSENT, "privacy.k: is required"),
    ("output", ABSENT, "output: is required"),
    ("output.table", ABSENT, "output.table: is required"),
    ("output.runs", ABSENT, "output.runs: is required"),
    # types
    ("input", "people", "input: should be a section of keys"),
    ("columns", ["a"], "columns: should be a section of keys"),
    (QUASI, ["a"], f"{QUASI}: should be a section of keys"),
    ("lattice", "poka", "lattice: should be a section of keys"),
    ("columns.keep", "weight", "columns.keep: should be a list"),
    ("columns.keep", [True], "columns.keep[0]: should be text; put it in quotes"),
    ("columns.keep", ["a", ["b"]], "columns.keep[1]: should be text"),
    ("columns.keep", [" "], "columns.keep[0]: should not be empty"),
    ("input.table", 5, "input.table: should be text; put it in quotes"),
    ("output.table", "", "output.table: should not be empty"),
    ("output.table", "a\nb/c", "output.table: contains a line break or a control character"),
    ("on_unseen", "supress", "on_unseen: should be one of error, suppress. Did you mean: suppress?"),
    ("nulls", True, "nulls: should be one of value, suppress"),
    ("input.format", "orc", "input.format: should be one of delta, parquet, csv, json"),
    # privacy
    ("privacy.k", 1, "privacy.k: is 1, which protects nobody; give at least 2, or map_k with a population"),
    ("privacy.k", True, "privacy.k: should be a whole number"),
    ("privacy.k", 2.0, "privacy.k: should be a whole number"),
    ("privacy.k", "10", "privacy.k: should be a whole number"),
    ("privacy.suppression", 1, "privacy.suppression: should be below 1"),
    ("privacy.suppression", -0.1, "privacy.suppression: should be at least 0"),
    ("privacy.suppression", float("nan"), "privacy.suppression: should be a finite number"),
    ("privacy.suppression", True, "privacy.suppression: should be a number"),
    ("privacy.suppression", "1%", "privacy.suppression: should be a number"),
    # roles
    ("columns.keep", ["age"], "columns.keep: column age is in quasi_identifiers already; a column has one role"),
    ("columns.keep", ["Age"], "columns.keep: column Age is in quasi_identifiers already; a column has one role"),
    ("columns.keep", ["w", "W"], "columns.keep: column w is named twice"),
    ("columns.identifiers", ["id"], "columns.identifiers: column id is in person already; a column has one role"),
    ("columns.sensitive", ["name"], "columns.sensitive: column name is in identifiers already; a column has one role"),
    (f"{QUASI}.ID", {"mask": {}}, f"{QUASI}: column ID is in person already; a column has one role"),
    (f"{QUASI}.AGE", {"mask": {}}, f"{QUASI}: column age is named twice"),
    ("columns.keep", ["_anon_x"], f"columns.keep[0]: {RESERVED}"),
    ("columns.person", "_LINK", f"columns.person: {RESERVED}"),
    (f"{QUASI}._anon_rows", {"mask": {}}, f"{QUASI}._anon_rows: {RESERVED}"),
    # input
    ("input", {"table": "./a", "format": "csv", "version": 3},
     "input: version goes with format delta only, not with csv"),
    ("input.version", -1, "input.version: should be at least 0"),
    ("input.version", "latest", "input.version: should be a whole number"),
    ("input.options", {"versionAsOf": 3},
     "input.options: path, versions and change feeds cannot be options; use the keys table and version"),
    ("input.options", {"sep": [1]}, "input.options.sep: should be text"),
    ("input.table", "data/people@v12", "input.table: give the version under the key version, not in the path"),
    ("input.table", "delta.`/data/people`", "input.table: write the path alone, without format and quotes"),
    ("input", {"table": "people.csv", "format": "csv"},
     "input.table: without a slash it is a catalog name; write ./ before a file"),
    ("output.report", "reports/people.pdf", "output.report: should end in .html"),
    # lattice
    ("lattice.search", "exhaustiv",
     "lattice.search: should be one of exact, poka, exhaustive. Did you mean: exhaustive?"),
    ("lattice.loss", "lm", "lattice.loss: should be one of glm, dm, cm. Did you mean: glm?"),
    ("lattice", {"search": "poka", "depth": 0}, f"lattice.depth: {DEPTH}"),
    ("lattice", {"search": "poka", "depth": True}, f"lattice.depth: {DEPTH}"),
    ("lattice", {"search": "poka", "depth": "bset"}, f"lattice.depth: {DEPTH}"),
    ("lattice.depth", 3, "lattice.depth: goes with search: poka only; remove it"),
    ("lattice.refine", False, "lattice.refine: goes with search: poka only; remove it"),
    ("lattice.loss", "cm", "lattice.class_column: is required with loss: cm"),
    ("lattice.class_column", "disease", "lattice.class_column: goes with loss: cm only; remove it"),
    ("lattice", {"loss": "cm", "class_column": "age"},
     "lattice.class_column: column age is a quasi-identifier; choose one of sensitive or keep"),
    ("lattice", {"loss": "cm", "class_column": "name"},
     "lattice.class_column: column name should be one of columns.sensitive or columns.keep"),
    ("lattice.choose", {"k": 9}, "lattice.choose.k: is 9, below privacy.k, which is 10; choose at least that"),
    ("lattice.choose", {"k": True}, "lattice.choose.k: should be a whole number"),
    ("lattice.choose", {"max_loss": 1.5}, "lattice.choose.max_loss: should be at most 1"),
    ("lattice.choose", {"max_loss": float("inf")}, "lattice.choose.max_loss: should be a finite number"),
    ("lattice.choose", {"node": [1]}, "lattice.choose.node: has 1 levels for 2 quasi-identifiers; give one each"),
    ("lattice.choose", {"node": [1, -1]}, "lattice.choose.node[1]: should be at least 0"),
    ("lattice.choose", {"node": [1, True]}, "lattice.choose.node[1]: should be a whole number"),
    ("lattice.choose", {"node": 3}, "lattice.choose.node: should be a list"),
    ("lattice.choose", {}, "lattice.choose: needs exactly one of: k, max_loss, node, knee"),
    ("lattice.choose", {"k": 10, "max_loss": 0.1}, "lattice.choose: needs exactly one of: k, max_loss, node, knee"),
    ("lattice.choose", "knees", "lattice.choose: should be {k: …}, {max_loss: …}, {node: […]} or knee"),
    ("lattice.choose", 10, "lattice.choose: should be {k: …}, {max_loss: …}, {node: […]} or knee"),
]


@pytest.mark.parametrize(("path", "value", "line"), FAULTS, ids=[f"{n}-{fault[0]}" for n, fault in enumerate(FAULTS)])
def test_a_fault_is_one_line(path: str, value: object, line: str) -> None:
    assert refusal(with_value(path, value)) == [line]


KINDS = "levels, edges, intervals, mask, date, top"
HIERARCHIES: list[tuple[object, str]] = [
    ("h.csv", f": needs a hierarchy, one of: {KINDS}"),
    ({"header": True}, f": needs one of: {KINDS}"),
    ({"levels": "h.csv", "mask": {}}, ": has levels and mask; keep one"),
    ({"levels": ""}, ".levels: should not be empty"),
    ({"levels": ["h.csv"]}, ".levels: should be text"),
    ({"levels": "h.csv", "sep": ""}, ".sep: should not be empty"),
    ({"levels": "h.csv", "sep": ";;"}, ".sep: should be a single character"),
    ({"levels": "h.csv", "header": "no"}, ".header: should be true or false"),
    ({"levels": "h", "format": "csv"}, ".format: should be one of delta, parquet"),
    ({"levels": "h", "format": "delta", "sep": ","}, ": sep and header go with a text file of levels or edges only"),
    ({"mask": {}, "sep": ","}, ": sep and header go with a text file of levels or edges only"),
    ({"mask": {}, "header": False}, ": sep and header go with a text file of levels or edges only"),
    ({"edges": "e.csv", "format": "delta"}, ": format goes with levels only"),
    ({"mask": {"keep": "middle"}}, ".mask.keep: should be one of left, right"),
    ({"mask": {"length": 0}}, ".mask.length: should be at least 1"),
    ({"mask": {"alphabet": 1}}, ".mask.alphabet: should be at least 2"),
    ({"mask": "left"}, ".mask: should be a section of keys"),
    ({"intervals": {"from": 0, "widths": [2]}}, ".intervals.to: is required"),
    ({"intervals": {"from": 5, "to": 5, "widths": [2]}}, ".intervals: from should be below to"),
    ({"intervals": {"from": 0, "to": 9, "widths": [0]}}, ".intervals: widths should be above 0"),
    ({"intervals": {"from": 0, "to": 9, "widths": [-4, 2]}}, ".intervals: widths should be above 0"),
    ({"intervals": {"from": 0, "to": 9, "widths": [2, 5]}}, ASCEND),
    ({"intervals": {"from": 0, "to": 9, "widths": [4, 2]}}, ASCEND),
    ({"intervals": {"from": 0, "to": 9, "widths": [2, 2]}}, ASCEND),
    ({"intervals": {"from": 0, "to": 9, "widths": [1, 2]}},
     ".intervals: a width of 1 repeats the values themselves; begin with 2 or more"),
    ({"intervals": {"from": 0, "to": 9, "widths": [], "exact": False}},
     ".intervals: widths needs at least one entry with exact: false"),
    ({"intervals": {"from": 0, "to": 9, "widths": [2.5]}},
     ".intervals: from, to and widths should be whole numbers; for others say exact: false"),
    ({"intervals": {"from": 0, "to": 9, "widths": [True]}}, ".intervals.widths[0]: should be a number"),
    ({"intervals": {"from": "0", "to": 9, "widths": [2]}}, ".intervals.from: should be a number"),
    ({"intervals": {"from": 0, "to": float("inf"), "widths": [2]}}, ".intervals.to: should be a finite number"),
    ({"intervals": {"from": 0, "to": 9, "widths": 2}}, ".intervals.widths: should be a list"),
    ({"date": []}, ".date.levels: needs at least one unit"),
    ({"date": "month"}, ".date: should be a section of keys"),
    ({"date": ["months"]}, UNITS + " Did you mean: month?"),
    ({"date": ["day", "month"]}, UNITS + " The day is level 0 already."),
    ({"date": ["week", "month"]}, ".date.levels: a week nests in no other unit; use week alone"),
    ({"date": ["year", "month"]}, ".date.levels: units should go from fine to coarse, each once"),
    ({"date": ["year", "year"]}, ".date.levels: units should go from fine to coarse, each once"),
    ({"date": {"levels": ["year"], "from": "2020-01-01"}}, ".date: from and to go together"),
    ({"date": {"levels": ["year"], "from": "2020-01-02", "to": "2020-01-01"}}, ".date: from should not be after to"),
    ({"date": {"levels": ["year"], "from": "2020", "to": "2020-01-01"}}, DAY),
    ({"date": {"levels": ["year"], "from": 2020, "to": "2020-01-01"}}, DAY),
]


@pytest.mark.parametrize(("hierarchy", "line"), HIERARCHIES, ids=[str(index) for index in range(len(HIERARCHIES))])
def test_a_wrong_hierarchy(hierarchy: object, line: str) -> None:
    assert refusal(with_value(f"{QUASI}.age", hierarchy)) == [f"{QUASI}.age{line}"]


def test_all_faults_come_at_once_also_those_between_keys() -> None:
    job = with_value("privacy.k", 1)
    job["colums"] = {}
    job["family"] = "latice"
    job["columns"]["keep"] = ["age", "_link"]
    job["columns"]["quasi_identifiers"]["zip"] = {"mask": {"keep": "up"}}
    job["lattice"] = {"choose": {"node": [1]}, "loss": "cm"}
    job["output"] = {"table": "warehouse.people", "runs": "warehouse.people"}
    assert {line.partition(":")[0] for line in refusal(job)} == {
        "family", "colums", "privacy.k", "columns.keep", "columns.keep[1]", f"{QUASI}.zip.mask.keep",
        "lattice.choose.node", "lattice.class_column", "output.table", "output.runs"}


SECRET = "S3cr3t-value"


@pytest.mark.parametrize("path", [
    "anon_spark", "family", "input", "input.format", "input.version", "columns", QUASI, f"{QUASI}.age",
    "privacy", "privacy.k", "privacy.suppression", "nulls", "lattice", "lattice.search", "lattice.choose",
    "lattice.depth", f"{QUASI}.age.intervals", f"{QUASI}.age.intervals.from", f"{QUASI}.zip.mask.keep",
])
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"k": [SECRET]}, [[{"from": SECRET}]]])
def test_no_value_is_repeated(path: str, value: object) -> None:
    assert all(SECRET not in line for line in refusal(with_value(path, value)))


@pytest.mark.parametrize("path", [
    "input", "input.table", "input.options", "columns", "columns.person", "columns.identifiers", QUASI, f"{QUASI}.age",
    "privacy", "lattice", "lattice.choose", "lattice.class_column", "output", "output.table", "output.report", "work",
])
@pytest.mark.parametrize("value", [5, 1.5, True, "", "\0", [], [[]], [5], {"": 5}, {"a": {}}, {5: 5}, {"k": []}])
def test_nonsense_never_escapes_as_another_error(path: str, value: object) -> None:
    try:
        parse_job(with_value(path, value), Path("/jobs"))
    except ConfigurationError as error:
        assert str(error).count("\n") + 1 == len(error.facts["problems"])


def test_direct_use_of_the_specs_checks_the_same() -> None:
    with pytest.raises(ValueError, match=r"lattice\.choose\.k: is 9"):
        LatticeJob.model_validate(with_value("lattice.choose", {"k": 9}))
    with pytest.raises(ValueError, match="keep one"):
        HierarchySpec.model_validate({"mask": {}, "levels": "x"})


# the file itself

TEXTS = [
    ("", "job.yaml: is empty; see conf/ for an example of a job"),
    ("# nothing\n", "job.yaml: is empty; see conf/ for an example of a job"),
    ("- a\n", "job.yaml: should be a section of keys, starting with anon_spark: 1"),
    ("a: [1\n", "job.yaml, line 2, column 1: is not YAML: expected ',' or ']', but got '<stream end>'"),
    ("a: 1\nb: 2\na: 3\n", "job.yaml, line 3: key a is given twice, first in line 1"),
    ("a: {b: 1, b: 2}\nc: {d: 1, 'd': 2}\n",
     "job.yaml, line 1: key b is given twice, first in line 1\n"
     "job.yaml, line 2: key d is given twice, first in line 2"),
    ("no: 1\n", "job.yaml, line 1: a key should be text; put it in quotes"),
    ("? [a]\n: 1\n", "job.yaml, line 1, column 3: is not YAML: found unhashable key"),
    ("a: !!python/object/apply:os.system [ls]\n",
     "job.yaml, line 1, column 4: is not YAML: could not determine a constructor for the tag "
     "'tag:yaml.org,2002:python/object/apply:os.system'"),
    ("a: 2024-02-30\n",
     "job.yaml: a value cannot be read, such as a day that does not exist or an anchor inside itself"),
    ("a: &a [*a]\n",
     "job.yaml: a value cannot be read, such as a day that does not exist or an anchor inside itself"),
    ("a: 1\n---\nb: 1\n", "job.yaml, line 2, column 1: is not YAML: but found another document"),
    ("a: \x07\n", "job.yaml: is not YAML: it contains characters that YAML does not allow"),
]


@pytest.mark.parametrize(("content", "message"), TEXTS, ids=[str(index) for index in range(len(TEXTS))])
def test_what_is_no_job_file(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_job(file)
    assert str(caught.value) == message


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("a: " + "[" * 2000, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_job(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such job file; check the path"):
        load_job(tmp_path / "none.yaml")
    with pytest.raises(ConfigurationError, match="is a folder"):
        load_job(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        load_job(tmp_path / "binary.yaml")


@pytest.mark.parametrize(("override", "message"), [
    ("output.tabel=x", "output.tabel: unknown key. Did you mean: table?"),
    ("ouput.table=x", "ouput: unknown key. Did you mean: output?"),
    ("privacy.k=1", "privacy.k: is 1, which protects nobody; give at least 2, or map_k with a population"),
    ("privacy.k", "--set: should be key=value with a dotted key, such as output.table=people"),
    ("=5", "--set: should be key=value with a dotted key, such as output.table=people"),
    ("privacy..k=5", "--set: should be key=value with a dotted key, such as output.table=people"),
    ("columns.keep.first=x", "--set columns.keep.first: first is not a key of a section"),
    ("privacy.k.x=5", "--set privacy.k.x: x is not a key of a section"),
    ("columns.keep=[a",
     "--set columns.keep, line 1, column 3: is not YAML: expected ',' or ']', but got '<stream end>'"),
    ("privacy={k: 3, k: 4}", "--set privacy, line 1: key k is given twice, first in line 1"),
])
def test_wrong_overrides(tmp_path: Path, override: str, message: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(JOB), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_job(file, [override])
    assert str(caught.value) == message
