"""The family `mst` on Spark: fit, release, batches, runs from a job file, what is refused and what never escapes."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark import Hierarchy, MstAnonymizer, MstRecoding, Recoding
from anon_spark.cli import main
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated, HierarchyError
from anon_spark.families.mst.facts import MstFacts
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.families.mst.pipeline import MstPipeline
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace
from tests.event_log import EventLog
from tests.town import CITIES, REMOVED, Town, people

HIERARCHIES = {
    "age": Hierarchy.intervals(20, 59, [10, 20]),
    "sex": Hierarchy.from_levels([("f", "*"), ("m", "*")]),
    "city": Hierarchy.from_levels([(city, region, "*") for city, region in CITIES.items()]),
}
MST: dict[str, Any] = {
    "family": "mst",
    "privacy": {"k": 5, "l": 2},
    "columns__person": "person_id",
    "mst": {"merge": "greedy"},
}
Label = tuple[str | None, ...]


def anonymizer(**changes: Any) -> MstAnonymizer:
    as_printed = {"merge": "auto", "refine": "none"}
    return MstAnonymizer(**{"k": 5, "quasi_identifiers": HIERARCHIES, "sensitive": ["disease"], **as_printed, **changes})


def labels(frame: DataFrame) -> Counter[Label]:
    return Counter(tuple(row) for row in frame.select(*HIERARCHIES).collect())


@pytest.fixture(scope="module")
def townspeople(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(people())


@pytest.fixture(scope="module")
def fitted(townspeople: DataFrame) -> MstRecoding:
    return anonymizer().fit(townspeople)


def expected(table: pa.Table, k: int) -> Counter[Label]:
    """The release by the kernels alone, tuple by tuple, without Spark."""
    counted = Counter(zip(*(table.column(name).to_pylist() for name in HIERARCHIES), strict=True))
    hierarchies = list(HIERARCHIES.values())
    codes = np.array([[h.leaf_of(one[at]) for one in counted] for at, h in enumerate(hierarchies)], dtype=np.int32)
    found = partition(codes, np.array(list(counted.values()), dtype=np.int64), hierarchies, Settings(k, merge="auto"))
    published: Counter[Label] = Counter()
    for number, rows, leaves in zip(found.class_of, counted.values(), codes.T, strict=True):
        levels = found.levels[number]
        label = tuple(
            h.labels[level][h.codes[level, leaf]] for h, level, leaf in zip(hierarchies, levels, leaves, strict=True)
        )
        published[label] += rows
    return published


def test_the_fitted_table_is_released_whole_and_as_partitioned(
    spark: SparkSession, townspeople: DataFrame, fitted: MstRecoding
) -> None:
    wanted = expected(people(), 5)
    assert min(wanted.values()) >= 5 and sum(wanted.values()) == 200
    assert labels(fitted.transform(townspeople)) == wanted
    assert fitted.transform(townspeople).columns == [*HIERARCHIES, "disease"]
    for partitions in (1, 7):
        again = anonymizer().fit(townspeople.repartition(partitions))
        assert again.classes == fitted.classes
        again.close()
    with Workspace(spark) as workspace:
        own = anonymizer().fit(townspeople, workspace)
        assert labels(own.staged(townspeople, key_frame(spark, "key"))) == wanted
        assert own.measured().measures.cavg == pytest.approx(200 / len(wanted) / 5)


def test_what_is_saved_holds_classes_only_and_covers_a_batch(
    spark: SparkSession, fitted: MstRecoding, townspeople: DataFrame, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "recoding.json")
    loaded = Recoding.load(tmp_path / "recoding.json")
    assert isinstance(loaded, MstRecoding) and loaded.classes == fitted.classes
    assert loaded.classes == sorted(map(list, expected(people(), 5)))

    # a batch takes the covering class of least loss, here computed by trying all
    batch = people(rows=120)
    weight = {name: h.weight_total for name, h in HIERARCHIES.items()}

    def loss(label: Label) -> tuple[Any, ...]:
        nodes = []
        for (name, h), text in zip(HIERARCHIES.items(), label, strict=True):
            level = next(at for at in range(h.height + 1) if text in h.labels[at])
            nodes.append((level, h.labels[level].index(text), h.weights[level][h.labels[level].index(text)] / weight[name]))
        return (round(sum(node[2] for node in nodes), 9), [n[0] for n in nodes], [n[1] for n in nodes])

    def covers(label: Label, values: tuple[Any, ...]) -> bool:
        paths = [
            {h.labels[at][h.codes[at, h.leaf_of(value)]] for at in range(h.height + 1)}
            for h, value in zip(HIERARCHIES.values(), values, strict=True)
        ]
        return all(text in path for text, path in zip(label, paths, strict=True))

    wanted: Counter[Label] = Counter()
    for values in zip(*(batch.column(name).to_pylist() for name in HIERARCHIES), strict=True):
        fitting = [tuple(label) for label in loaded.classes if covers(tuple(label), values)]
        assert fitting
        wanted[min(fitting, key=loss)] += 1
    frame = spark.createDataFrame(batch)
    assert labels(loaded.transform(frame)) == Counter({label: rows for label, rows in wanted.items() if rows >= 5})

    # a tuple that no class covers
    cities = Hierarchy.from_levels([(city, region, "*") for city, region in (CITIES | {"Eastwick": "East"}).items()])
    narrow = anonymizer(quasi_identifiers={"city": cities}).fit(townspeople)
    assert {tuple(row) for row in narrow.classes} == {(city,) for city in CITIES}
    stranger = spark.createDataFrame(people(rows=20, city=["Eastwick"] * 3 + ["Aldorf"] * 17))
    with pytest.raises(DataError, match=r"^1 tuples in 3 rows fit none of the published classes"):
        narrow.transform(stranger)
    narrow.close()


@pytest.mark.long
def test_private_files_go_with_the_recoding(townspeople: DataFrame, workdir: Path) -> None:
    recoding = anonymizer(workdir=str(workdir)).fit(townspeople)
    assert list(workdir.iterdir())
    recoding.close()
    assert list(workdir.iterdir()) == []
    with pytest.raises(DataError):
        anonymizer(workdir=str(workdir), k=201).fit(townspeople)
    assert list(workdir.iterdir()) == []
    # a frame is still readable when nobody holds its recoding any more
    release = anonymizer(workdir=str(workdir), person="person_id").fit(townspeople).transform(townspeople)
    gc.collect()
    assert release.count() == 200


def test_k_rows_of_one_person_in_a_batch_are_no_crowd(fitted: MstRecoding, townspeople: DataFrame) -> None:
    with_person = replace(fitted, person="person_id")
    assert with_person.transform(townspeople).count() == 200
    with pytest.raises(DataError, match=r"^columns.person person_id: 1 persons have several rows"):
        with_person.transform(townspeople.unionByName(townspeople.where("person_id = 7003")))


def test_what_cannot_be(townspeople: DataFrame) -> None:
    with pytest.raises(DataError, match=r"^k = 201 is more than the 200 rows of the table. Lower k.$"):
        anonymizer(k=201).fit(townspeople)
    with pytest.raises(DataError, match=r"^Column disease has 3 distinct values, l = 4 asks for more. Lower l.$"):
        anonymizer(l=4).fit(townspeople)
    with pytest.raises(DataError, match=r"^columns.person weight: 8 persons have several rows"):
        anonymizer(person="weight").fit(townspeople)
    ambiguous = Hierarchy.from_levels([("a", "x", "x", "*"), ("b", "y", "x", "*")])
    with pytest.raises(HierarchyError, match="Labels stand for different sets of values on two levels"):
        anonymizer(quasi_identifiers={"city": ambiguous})
    for wrong in ({"k": 1}, {"l": 6}, {"l": 2, "sensitive": []}, {"merge": "some"}, {"zero_edges": "no"}, {"refine": "much"}):
        with pytest.raises(ConfigurationError):
            anonymizer(**wrong)


@pytest.mark.long
def test_everybody_in_one_class(spark: SparkSession) -> None:
    for rows, k in ((5, 5), (12, 5)):
        same = spark.createDataFrame(people(rows=rows, age=[30] * rows, sex=["f"] * rows, city=["Carden"] * rows))
        recoding = anonymizer(k=k).fit(same)
        assert recoding.classes == [["30", "f", "Carden"]]
        recoding.close()
    few = spark.createDataFrame(people(rows=5))
    recoding = anonymizer(k=5).fit(few)
    assert len(recoding.classes) == 1
    recoding.close()


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    return Town.founded(spark, tmp_path_factory.mktemp("mst") / "town")


def test_a_run_publishes_what_the_audit_verified(town: Town, event_log: EventLog) -> None:
    mark = event_log.mark()
    report = town.run(**MST)

    assert report.status == "published"
    assert [check.name for check in report.checks] == [
        "columns", "5-anonymity", "distinct 2-diversity", "truthfulness", "persons", "row accounting", "input",
        "row order",
    ]  # fmt: skip
    assert all(check.passed for check in report.checks)
    release = town.release
    assert release.columns == [*HIERARCHIES, "disease", "weight"]
    by_class: dict[Label, list[str]] = {}
    for row in release.collect():
        by_class.setdefault(tuple(row)[:3], []).append(row.disease)
    assert min(len(rows) for rows in by_class.values()) >= 5 and min(len(set(rows)) for rows in by_class.values()) >= 2
    assert sum(map(len, by_class.values())) == 200
    assert isinstance(report.facts, MstFacts)
    assert report.facts.risk.link_attack.worst <= 1 / 5
    assert 0 < report.facts.measures.glm < 1
    page = (town.folder / "report" / "town.html").read_text(encoding="utf-8")
    assert all(title in page for title in ("What was lost", "Share of rows on each level", "Edges of the spanning tree"))
    logged = event_log.read_text(since=mark)
    assert not any(value in logged for value in ("Inhabitant", "Carden", "migraine")) and "Inhabitant" not in page
    assert all(count.after >= 5 for shown in report.facts.distributions for count in shown.labels)
    assert list((town.folder / "work").iterdir()) == []


@pytest.mark.long
def test_a_release_is_audited_later(town: Town) -> None:
    town.run(**MST)  # recognised, if the test above ran
    assert main(["audit", town.job_file(**MST)]) == 0


@pytest.mark.long
def test_a_release_that_is_not_what_it_says_is_not_published(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = town.copied(tmp_path / "town")
    before = place.versions
    honest = MstRecoding.staged

    def moved(self: MstRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        return honest(self, df, key).replace({"North": "South"}, subset=["city"])

    monkeypatch.setattr(MstRecoding, "staged", moved)
    with pytest.raises(GuaranteeViolated, match="truthfulness"):
        place.run(**MST | {"privacy": {"k": 4}, "mst": {"refine": "none"}})
    assert place.versions == before
    assert [row.status for row in place.runs][-1] == "failed"


def test_jobs_that_are_refused_before_a_row_is_read(town: Town, tmp_path: Path) -> None:
    place = town.copied(tmp_path / "town")
    (place.folder / "hierarchies" / "city.csv").write_text("Aldorf;x;x;*\nBexley;y;x;*\nCarden;z;y;*\nDunmore;z;y;*\n")
    listing = place.listing()
    with pytest.raises(HierarchyError, match="city: 2 on levels 1 and 2"):
        place.run(**MST)
    with pytest.raises(ConfigurationError, match=r"privacy.suppression: "):
        place.job(**MST | {"privacy": {"k": 5, "suppression": 1}})
    with pytest.raises(ConfigurationError, match=r"lattice: unknown key"):
        place.job(**MST, lattice={"search": "exact"}, mst__merge=REMOVED)
    assert {name for name, _ in place.listing().items()} - set(listing) <= {"job.yaml"}


def test_pipeline_says_what_it_promises(town: Town) -> None:
    job = town.job(**MST)
    guarantee = MstPipeline.of(job, town.spark).guarantee  # type: ignore[arg-type]
    assert "5-anonymity" in str(guarantee) and "2-diversity" in str(guarantee)
    assert guarantee.k == 5 and guarantee.covers and guarantee.does_not_cover
