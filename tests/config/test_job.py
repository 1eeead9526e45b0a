"""Job files that are right: what they become, what is filled in, what `--set` changes."""

from __future__ import annotations

import copy
import csv
import datetime
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import Field, ValidationError

from anon_spark.config import (
    ColumnsSpec,
    DateSpec,
    EdgesSource,
    HierarchySpec,
    IntervalsSpec,
    JobSpec,
    LevelsSource,
    MaskSpec,
    PrivacySpec,
    config_hash,
    loading,
)
from anon_spark.config.spec import Spec
from anon_spark.errors import ConfigurationError
from anon_spark.families.lattice.job import ChooseSpec, LatticeJob
from anon_spark.families.mst.job import MstJob
from anon_spark.families.registry import NAMES, jobs, known_keys, load_job, parse_job
from anon_spark.model.hierarchy import Hierarchy

CONF = Path(__file__).parents[2] / "conf"
JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "lattice",
    "input": {"table": "warehouse.people"},
    "columns": {"quasi_identifiers": {"age": {"intervals": {"from": 0, "to": 100, "widths": [5, 10, 20]}},
                                      "zip": {"mask": {"keep": "left"}}}},
    "privacy": {"k": 10},
    "output": {"table": "warehouse.release", "runs": "warehouse.runs"},
}


def written(folder: Path, job: dict[str, Any]) -> Path:
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
    return file


def lattice_job(job: dict[str, Any], base: Path = Path("/jobs")) -> LatticeJob:
    parsed = parse_job(job, base)
    assert isinstance(parsed, LatticeJob)
    return parsed


def changed(**sections: Any) -> dict[str, Any]:
    return copy.deepcopy(JOB) | sections


def test_the_example_is_a_job_and_its_files_are_there() -> None:
    job = load_job(CONF / "lattice.yaml")
    assert isinstance(job, LatticeJob)
    assert list(job.columns.quasi_identifiers) == [
        "age", "workclass", "education", "marital", "race", "sex", "country", "salary"]
    assert job.columns.published[-2:] == ("salary", "disease")
    heights = {"workclass": 3, "education": 3, "marital": 3, "race": 1, "sex": 1, "country": 4, "salary": 1}
    for name, height in heights.items():
        source = job.columns.quasi_identifiers[name].source()
        assert isinstance(source, LevelsSource) and not source.is_table
        with open(source.location, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter=source.sep))
        assert {len(row) for row in rows} == {height + 1}
        assert {row[-1] for row in rows} == {"*"}
        assert len({row[0] for row in rows}) == len(rows)


def test_the_example_describes_the_synthetic_census() -> None:
    census = pytest.importorskip("anon_spark.samples.census")
    job = load_job(CONF / "lattice.yaml")
    assert isinstance(job, LatticeJob)
    named = {*job.columns.published, *job.columns.identifiers, job.columns.person}
    assert named == set(census.COLUMNS) - {"education_num", "weight"}
    for name, hierarchy in census.census_hierarchies().items():
        source = job.columns.quasi_identifiers[name].source()
        if isinstance(source, LevelsSource):
            assert set(Hierarchy.from_csv(source.location, source.sep).rows()) == set(hierarchy.rows())
        else:
            assert isinstance(source, IntervalsSpec)
            assert Hierarchy.intervals(source.start, source.stop, source.widths, source.exact) == hierarchy


@pytest.mark.parametrize("family", NAMES)
def test_the_examples_mention_every_key(family: str) -> None:
    text = "".join((CONF / f"{name}.yaml").read_text(encoding="utf-8") for name in {"lattice", family})
    assert [path for path in known_keys(family) if path.split(".")[-1] not in text] == []


def test_the_example_of_mst() -> None:
    job = load_job(CONF / "mst.yaml")
    assert isinstance(job, MstJob)
    assert (job.privacy.k, job.privacy.l, job.mst.merge, job.mst.zero_edges) == (10, 2, "rounds", "include")
    assert (job.mst.refine, job.mst.effort) == ("local", "normal")
    with pytest.raises(ConfigurationError, match=r"^mst.effort: goes with refine: local only"):
        load_job(CONF / "mst.yaml", ["mst.refine=none", "mst.effort=deep"])
    with pytest.raises(ConfigurationError, match=r"^privacy.l: is 11, above privacy.k, which is 10"):
        load_job(CONF / "mst.yaml", ["privacy.l=11"])
    with pytest.raises(ConfigurationError, match=r"^privacy.l: needs columns.sensitive"):
        load_job(CONF / "mst.yaml", ["privacy.l=2", "columns.sensitive=[]"])
    with pytest.raises(ConfigurationError, match=r"^privacy.suppression: "):
        load_job(CONF / "mst.yaml", ["privacy.suppression=1"])
    some = load_job(CONF / "mst.yaml", ["privacy.suppression=0.1"])
    assert isinstance(some, MstJob) and some.privacy.budget(25) == 2


def test_defaults() -> None:
    job = lattice_job(JOB)
    assert (job.on_unseen, job.nulls, job.work) == ("error", "value", None)
    assert (job.input.format, job.input.version, job.input.options) == ("delta", None, {})
    assert (job.lattice.search, job.lattice.loss, job.lattice.refine, job.lattice.depth) == ("exact", "glm", True, None)
    assert job.choice == ChooseSpec(k=10) and job.choice.kind == "k"
    assert job.privacy.suppression == 0 and job.output.report is None
    assert job.base == Path("/jobs")


def test_a_key_without_value_is_not_given(tmp_path: Path) -> None:
    empty = changed(work=None, lattice=None, on_unseen=None)
    empty["columns"] |= {"person": None, "keep": None}
    assert parse_job(empty, tmp_path) == parse_job(JOB, tmp_path)


def test_specs_cannot_change() -> None:
    job = lattice_job(JOB)
    with pytest.raises(ValidationError):
        setattr(job.privacy, "k", 2)  # noqa: B010
    with pytest.raises(ValidationError):
        setattr(job, "work", "x")  # noqa: B010


def test_a_job_can_be_copied_and_pickled() -> None:
    job = lattice_job(JOB)
    assert pickle.loads(pickle.dumps(job)) == job == copy.deepcopy(job)


@pytest.mark.parametrize(("share", "rows", "budget"), [
    (0.01, 30162, 301), (0.29, 100, 29), (0.57, 100, 57), (0.1, 10, 1), (0.0, 10**12, 0), (1e-05, 100_000, 1),
    (0.999, 1000, 999), (0.3, 0, 0), (0.1, 9, 0), (0.07, 10**18, 7 * 10**16),
])
def test_the_budget_is_exact(share: float, rows: int, budget: int) -> None:
    assert PrivacySpec(k=2, suppression=share).budget(rows) == budget   # int(0.29 * 100) is 28


def test_places_are_relative_to_the_job_file(tmp_path: Path) -> None:
    job = changed(work="_work", input={"table": "in/people"},
                  output={"table": "../out/release", "runs": "s3://bucket/runs", "report": "people.html"})
    job["columns"]["quasi_identifiers"] |= {
        "job": {"edges": "job.csv"}, "country": {"levels": "file:/h/country.csv"},
        "city": {"levels": "tables/city", "format": "delta"}, "street": {"levels": "ref.street", "format": "parquet"}}
    loaded = load_job(written(tmp_path, job))
    assert isinstance(loaded, LatticeJob)
    assert loaded.base == tmp_path
    assert loaded.work == str(tmp_path / "_work")
    assert loaded.input.table == str(tmp_path / "in/people")
    assert loaded.output.table == str(tmp_path.parent / "out/release")
    assert loaded.output.runs == "s3://bucket/runs"
    assert loaded.output.report == str(tmp_path / "people.html")
    columns = loaded.columns.quasi_identifiers
    assert columns["job"].edges == str(tmp_path / "job.csv")
    assert columns["country"].levels == "file:/h/country.csv"
    assert columns["city"].levels == str(tmp_path / "tables/city")
    assert columns["street"].levels == "ref.street"


@pytest.mark.parametrize(("given", "source"), [
    ({"levels": "/h.csv"}, LevelsSource("/h.csv", ";", False, None)),
    ({"levels": "/h.csv", "sep": ",", "header": True}, LevelsSource("/h.csv", ",", True, None)),
    ({"levels": "ref.h", "format": "delta"}, LevelsSource("ref.h", ";", False, "delta")),
    ({"edges": "/e.csv"}, EdgesSource("/e.csv", ",", False)),
    ({"edges": "/e.csv", "sep": "\t"}, EdgesSource("/e.csv", "\t", False)),
    ({"mask": {}}, MaskSpec(keep="left", length=None, alphabet=10)),
    ({"mask": {"keep": "right", "length": 5, "alphabet": 26}}, MaskSpec(keep="right", length=5, alphabet=26)),
])
def test_sources(given: dict[str, Any], source: object) -> None:
    hierarchy = HierarchySpec.model_validate(given)
    assert hierarchy.source() == source
    assert hierarchy.kind in given


def test_intervals_are_exact_numbers() -> None:
    spec = HierarchySpec.model_validate({"intervals": {"from": 0.1, "to": 2, "widths": [0.1, 0.3], "exact": False}})
    source = spec.source()
    assert isinstance(source, IntervalsSpec)
    assert (source.start, source.stop, source.widths) == (Decimal("0.1"), 2, (Decimal("0.1"), Decimal("0.3")))
    whole = IntervalsSpec.model_validate({"from": 17.0, "to": 90, "widths": []})
    assert whole.start == 17 and isinstance(whole.start, int)


@pytest.mark.parametrize("given", [
    ["month", "year"], {"levels": ["month", "year"]},
])
def test_dates_as_a_list_or_a_section(given: object) -> None:
    source = HierarchySpec.model_validate({"date": given}).source()
    assert isinstance(source, DateSpec)
    assert (source.levels, source.start, source.stop) == (("month", "year"), None, None)


@pytest.mark.parametrize("day", ["2024-02-29", datetime.date(2024, 2, 29)])
def test_a_day_as_yaml_reads_it_or_as_text(day: object) -> None:
    spec = DateSpec.model_validate({"levels": ["week"], "from": day, "to": "2024-03-01"})
    assert spec.start == datetime.date(2024, 2, 29)


@pytest.mark.parametrize(("choose", "kind"), [
    ({"k": 10}, "k"), ({"max_loss": 0}, "max_loss"), ({"max_loss": 1.0}, "max_loss"),
    ({"node": [0, 3]}, "node"), ("knee", "knee"),
])
def test_choices(choose: object, kind: str) -> None:
    assert lattice_job(changed(lattice={"choose": choose})).choice.kind == kind


@pytest.mark.parametrize("depth", [1, 7, "best", "worst"])
def test_depths(depth: object) -> None:
    assert lattice_job(changed(lattice={"search": "poka", "depth": depth, "refine": False})).lattice.depth == depth


def test_class_column() -> None:
    job = changed(lattice={"loss": "cm", "class_column": "disease"})
    job["columns"]["sensitive"] = ["disease"]
    assert lattice_job(job).lattice.class_column == "disease"


def test_options_become_texts() -> None:
    job = changed(input={"table": "./a.csv", "format": "csv", "options": {"sep": ";", "header": True, "maxColumns": 5}})
    assert lattice_job(job).input.options == {"header": "true", "maxColumns": "5", "sep": ";"}


def test_overrides_win_and_are_yaml(tmp_path: Path) -> None:
    file = written(tmp_path, JOB)
    job = load_job(file, ["output.table=../other/x", "privacy.k=25", "privacy.suppression=1e-2", "columns.keep=[a, b]",
                          "lattice.choose=knee", "work=", "columns.quasi_identifiers.age.intervals.to=90",
                          "privacy.k=30"])
    assert isinstance(job, LatticeJob)
    assert job.output.table == str(tmp_path.parent / "other/x")
    assert (job.privacy.k, job.privacy.suppression, job.columns.keep) == (30, 0.01, ("a", "b"))
    assert job.choice.kind == "knee"
    intervals = job.columns.quasi_identifiers["age"].intervals
    assert intervals is not None and intervals.stop == 90


def test_an_override_touches_one_use_of_an_anchor(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("""
anon_spark: 1
family: lattice
input: {table: a.b}
columns:
  quasi_identifiers:
    one: &same {intervals: {from: 0, to: 9, widths: [2]}}
    two: *same
    three: {<<: *same}
privacy: {k: 2}
output: {table: a.c, runs: a.d}
""", encoding="utf-8")
    job = load_job(file, ["columns.quasi_identifiers.one.intervals.to=5"])
    assert isinstance(job, LatticeJob)
    stops = [spec.intervals.stop for spec in job.columns.quasi_identifiers.values() if spec.intervals]
    assert stops == [5, 9, 9]


def test_hash_follows_the_meaning() -> None:
    base = config_hash(lattice_job(JOB))
    assert len(base) == 64 and base == config_hash(lattice_job(dict(reversed(JOB.items()))))
    assert base == config_hash(lattice_job(changed(nulls="value", lattice={"choose": {"k": 10}})))
    assert base != config_hash(lattice_job(changed(privacy={"k": 11})))
    swapped = changed()
    swapped["columns"]["quasi_identifiers"] = dict(reversed(JOB["columns"]["quasi_identifiers"].items()))
    assert base != config_hash(lattice_job(swapped))   # a node lists its levels in this order
    local = changed(output={"table": "./release", "runs": "a.runs"})
    assert config_hash(lattice_job(local, Path("/a"))) != config_hash(lattice_job(local, Path("/b")))


def test_hash_is_stable() -> None:
    """Releases carry it, so another process must come to the same."""
    text = "from tests.config.test_job import *; import sys; sys.stdout.write(config_hash(lattice_job(JOB)))"
    run = subprocess.run([sys.executable, "-c", text], env={"PYTHONHASHSEED": "1"}, capture_output=True, text=True,
                         check=True, cwd=CONF.parent)
    assert run.stdout == config_hash(lattice_job(JOB))


def test_every_key_is_explained() -> None:
    keys = known_keys()
    assert {"anon_spark", "privacy.k", "columns.quasi_identifiers.<column>.intervals.from", "lattice.choose.node",
            "input.options", "output.report", "work"} <= set(keys)
    assert [path for path, doc in keys.items() if not doc.rstrip(".").partition(": ")[2]] == []
    assert keys["privacy.k"].startswith("whole number, required")
    assert keys["lattice.loss"].startswith("glm | dm | cm, default glm")


def test_no_spark_is_needed() -> None:
    text = "import sys, anon_spark.families.registry as known; known.jobs(); sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], cwd=CONF.parent, check=False).returncode == 0


def test_a_new_family_is_a_job_and_a_name_in_the_registry() -> None:
    class TreeSection(Spec):
        search: Literal["gcs", "beam"] = Field(default="gcs", description="How cuts are searched.")

    class TreeJob(JobSpec):
        family: Literal["tree"] = Field(description="The algorithm family.")
        columns: ColumnsSpec = Field(description="Roles.")
        privacy: PrivacySpec = Field(description="The guarantee.")
        tree: TreeSection = Field(default=TreeSection(), description="How to search.")
    known: dict[str, type[JobSpec]] = {**jobs(), "tree": TreeJob}
    job = loading.parse_job(known, changed(family="tree", tree={"search": "beam"}), Path("/jobs"))
    assert isinstance(job, TreeJob) and job.tree.search == "beam"
    assert "tree.search" in loading.known_keys(known) and "tree.search" not in loading.known_keys(known, "lattice")
    with pytest.raises(ConfigurationError, match=r"^tree.serch: unknown key. Did you mean: search\?$"):
        loading.parse_job(known, changed(family="tree", tree={"serch": "beam"}), Path("/jobs"))
    del known["mst"]
    with pytest.raises(ConfigurationError, match=r"^family: unknown family; available: lattice, relational_transaction, "):
        loading.parse_job(known, changed(family="mst"), Path("/jobs"))
