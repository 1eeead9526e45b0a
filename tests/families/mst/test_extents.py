"""Columns published as extents: ends by brute force, nulls, the audit of a run and of a current release, planted faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark import Hierarchy, MstAnonymizer, MstRecoding
from anon_spark.cli import main
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.families.mst.facts import MstFacts
from anon_spark.model.hierarchy import ends_of
from anon_spark.risk.look_up.levels import EndsOfClasses
from tests.town import JOB, Town, people

AGE = Hierarchy.intervals(0, 39, [5, 20])
LETTER = Hierarchy.from_levels([(letter, "*") for letter in "abc"])
COLUMNS = ("letter", "age")


def table(spark: SparkSession, rows: Sequence[tuple[str, int | None]]) -> DataFrame:
    letters, ages = zip(*rows, strict=True)
    content = {"letter": pa.array(letters), "age": pa.array(ages, pa.int32()), "row": pa.array(range(len(rows)), pa.int64())}
    return spark.createDataFrame(pa.table(content))


def some_rows(seed: int, nulls: bool) -> list[tuple[str, int | None]]:
    draw = np.random.default_rng(seed)
    ages = [None if nulls and draw.random() < 0.1 else int(draw.integers(0, 40)) for _ in range(120)]
    return [("abc"[int(draw.integers(0, 3))], age) for age in ages]


def fitted(df: DataFrame, how: str, **options: Any) -> MstRecoding:
    columns = {"letter": LETTER, "age": AGE}
    return MstAnonymizer(k=4, quasi_identifiers=columns, keep=["row"], publish={"age": how}, **options).fit(df)  # type: ignore[dict-item]


def wanted(ages: Sequence[int | None], how: str) -> Any:
    """What a class of these ages shows, by its definition."""
    if all(age is None for age in ages):
        return None
    if any(age is None for age in ages):
        return None, None
    low, high = min(age for age in ages if age is not None), max(age for age in ages if age is not None)
    return (low, high) if how == "extent" else (low // 5 * 5, high // 5 * 5 + 4)


@pytest.mark.parametrize("how", ["extent", "rounded_extent"])
@pytest.mark.long
def test_a_class_shows_the_ends_of_its_rows(spark: SparkSession, how: str) -> None:
    rows = some_rows(3, nulls=True)
    df = table(spark, rows)
    shown = []
    for partitions in (1, 2, 7) if how == "extent" else (2,):
        recoding = fitted(df.repartition(partitions), how)
        shown.append(sorted(map(tuple, recoding.transform(df).collect()), key=lambda row: row[-1]))
        extents = recoding.measured()
        recoding.close()
    assert all(one == shown[0] for one in shown)
    with_labels = fitted(df, "label")
    labels = {row.row: (row.letter, row.age) for row in with_labels.transform(df).collect()}
    plain = with_labels.measured()
    members: dict[Any, list[int | None]] = defaultdict(list)
    for number, label in labels.items():
        members[label].append(rows[number][1])
    classes: dict[Any, int] = defaultdict(int)
    for letter, extent, number in shown[0]:
        assert letter == labels[number][0]
        assert (extent if extent is None else tuple(extent)) == wanted(members[labels[number]], how)
        classes[letter, extent] += 1
    assert min(classes.values()) >= 4 and len(shown[0]) == len(rows)
    if how == "extent":
        assert extents.measures.glm < plain.measures.glm
        covered = [39 if one == (None, None) else one[1] - one[0] for one in map(tuple, (r[1] or (0, 0) for r in shown[0]))]
        assert extents.extents[0].extent == pytest.approx(sum(covered) / len(rows) / 39)
        gained = (extents.extents[0].label - extents.extents[0].extent) / 2
        assert plain.measures.glm - extents.measures.glm == pytest.approx(gained)
    with_labels.close()


@pytest.mark.long
def test_another_batch_shows_its_own_ends(spark: SparkSession, tmp_path: Path) -> None:
    recoding = fitted(table(spark, some_rows(3, False)), "extent", on_unseen="suppress")
    recoding.save(tmp_path / "recoding.json")
    recoding.close()
    batch = [(letter, age) for letter in "abc" for age in (6, 7, 8) for _ in range(5)]
    released = MstRecoding.load(tmp_path / "recoding.json").transform(table(spark, batch)).collect()
    members: dict[Any, list[int]] = defaultdict(list)
    for row in released:
        members[row.letter, row.age].append(batch[row.row][1])
    assert released
    for (_, extent), ages in members.items():
        assert len(ages) >= 4 and tuple(extent) == (min(ages), max(ages))


ASKED: dict[str, Any] = {
    "family": "mst",
    "privacy": {"k": 5},
    "columns__quasi_identifiers__age": {**JOB["columns"]["quasi_identifiers"]["age"], "publish": "extent"},
}


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    ages = [None if at % 25 == 0 else 20 + (at * 7 + at // 40) % 40 for at in range(200)]
    return Town.founded(spark, tmp_path_factory.mktemp("extents"), people(age=ages))


@pytest.mark.long
def test_a_run_is_audited_and_audited_again(town: Town) -> None:
    report = town.run(**ASKED)
    assert report.status == "published" and all(check.passed for check in report.checks)
    assert isinstance(report.facts, MstFacts)
    assert report.facts.risk.link_attack.worst <= 1 / 5 and report.facts.extents[0].name == "age"
    assert any("exact values of rows" in warning for warning in report.warnings)
    assert town.release.schema["age"].dataType.simpleString() == "struct<lo:bigint,hi:bigint>"
    assert main(["audit", town.job_file(**ASKED)]) == 0
    assert main(["compare", town.job_file(**ASKED), town.job_file(**ASKED)]) != 0


FAULTS = {
    "a wider end": "named_struct('lo', age.lo, 'hi', age.hi + 1)",
    "a narrower end": "named_struct('lo', age.lo, 'hi', greatest(age.hi - 1, age.lo))",
    "no ends": "named_struct('lo', cast(null as long), 'hi', cast(null as long))",
    "texts": "concat(age.lo, '-', age.hi)",
}


@pytest.mark.parametrize("fault", ["a wider end", *(pytest.param(fault, marks=pytest.mark.long) for fault in FAULTS)])
def test_other_ends_are_not_published(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    place = Town.founded(town.spark, tmp_path / "town", people())
    honest = MstRecoding.staged
    monkeypatch.setattr(MstRecoding, "staged", lambda *of: honest(*of).withColumn("age", F.expr(FAULTS[fault])))
    with pytest.raises(GuaranteeViolated, match="truthfulness"):
        place.run(**ASKED)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"levels": "hierarchies/city.csv", "publish": "extent"}, "whole numbers"),
        ({"mask": {}, "publish": "extent"}, "not with mask"),
        ({"intervals": {"from": 20, "to": 60, "widths": [10], "exact": False}, "publish": "extent"}, "leave exact: false out"),
        ({"intervals": {"from": 20, "to": 59, "widths": []}, "publish": "rounded_extent"}, "at least one width"),
    ],
)
def test_what_has_no_extent_is_refused(town: Town, tmp_path: Path, entry: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        town.copied(tmp_path / "town").run(**ASKED | {"columns__quasi_identifiers__age": entry})


def test_other_families_have_no_extents(town: Town, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="publish: should be one of label, range, bounds"):
        town.copied(tmp_path / "town").job(**ASKED | {"family": "lattice"})


def test_ends_of_leaves_and_what_they_cover() -> None:
    low, high = ends_of(AGE, rounded=True)
    assert (low.tolist()[:6], high.tolist()[:6]) == ([0] * 5 + [5], [4] * 5 + [9])
    assert [ends.tolist() for ends in ends_of(AGE.with_null())] == [list(range(40))] * 2
    ends = EndsOfClasses.of(AGE)
    leaves = np.array([ends.leaf(value) for value in (3, 7, None, 99)], dtype=np.int32)
    texts = pa.chunked_array([pa.array(["[0, 3]", "[4, 7]", "[, ]", None, "3", "[-2, 90]"])])
    marks = ends.covering(ends.numbers(texts), leaves).tolist()
    yes, no = True, False
    assert marks == [
        [yes, no, no, no], [no, yes, no, no], [yes] * 4, [no, no, yes, no], [no] * 4, [yes, yes, no, no]
    ]  # fmt: skip
