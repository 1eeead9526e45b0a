"""The lattice family on Spark: fit, front, choice, release, second batches, storage; and the faults seen elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark import Hierarchy, LatticeAnonymizer, LatticeRecoding, Recoding
from anon_spark.errors import ConfigurationError, DataError, GuaranteeUnreachable, LimitExceeded
from anon_spark.families.lattice.exhaustive import exhaustive_front
from anon_spark.families.lattice.poka import Poka
from anon_spark.model.front import nondominated
from anon_spark.model.hierarchy import Rule
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.primitives.rounds import Workspace
from tests.event_log import EventLog
from tests.families.lattice.tables import Row, scores_of

ANONYMIZER = "anon_spark.families.lattice.anonymizer"
BASE = 913_700_000_000_000  # numbers nobody else writes into an event log
ROWS = 90
TREES: dict[str, Hierarchy | Rule] = {
    "zip code": Hierarchy.mask(alphabet=36),  # a rule: its values are known from the table only
    "no.": Hierarchy.intervals(BASE, BASE + 11, [3, 6]),
    "j`ob": Hierarchy.from_levels([(f"Zqjob{n}", f"Zqgroup{n // 3}", "Zqall") for n in range(6)]),
    "score": Hierarchy.intervals("9137000.125", "9137001.125", ["0.25", "0.5"], exact=False),
}
SETTINGS: dict[str, Any] = {
    "k": 4, "quasi_identifiers": TREES, "sensitive": ["illness"], "keep": ["weight"], "suppression": 0.1,
}  # fmt: skip
PUBLISHED = ["zip code", "no.", "j`ob", "score", "illness", "weight"]


def town(spark: SparkSession, partitions: int = 2, **changes: list[Any]) -> DataFrame:
    """Ninety people; zip code and job have nulls. Text and labels begin with Zq, so that they are found anywhere."""
    numbers = range(ROWS)
    content: dict[str, list[Any]] = {
        "name": [f"Zqname{n}" for n in numbers],
        "zip code": [None if n % 17 == 5 else f"Zq{n % 3}{n % 2 if n % 3 else 7}" for n in numbers],
        "no.": [BASE + (n * n + n // 9) % 12 for n in numbers],
        "j`ob": [None if n == 50 else f"Zqjob{(n // 7) % 6}" for n in numbers],
        "score": [9137000.125 + (n % 5) / 4 for n in numbers],
        "illness": [f"Zqill{n * n % 7 % 3}" for n in numbers],
        "weight": [100 + n for n in numbers],
        "person": [f"Zqperson{n if n > 11 and n % 17 != 5 else 0}" for n in numbers],
    }
    table = pa.table({name: pa.array(values) for name, values in (content | changes).items()})
    return spark.createDataFrame(table).repartition(partitions)


def _keys(tree: Hierarchy) -> list[str | None]:
    return [*tree.keys, *([None] if tree.has_null else [])]


@dataclass(frozen=True)
class Plain:
    """The town in plain Python: leaf texts of the rows, hierarchies as fitted, what is published beside them."""

    trees: list[Hierarchy]
    rows: list[Row]
    others: list[tuple[Any, ...]]
    persons: list[str]

    def release(self, node: tuple[int, ...], k: int, by_person: bool = False) -> Counter[tuple[Any, ...]]:
        """The published rows, by definition."""
        climbs = [
            {key: tree.labels[level][tree.codes[level][leaf]] for leaf, key in enumerate(_keys(tree))}
            for tree, level in zip(self.trees, node, strict=True)
        ]
        labels = [tuple(climb[value] for climb, value in zip(climbs, row, strict=True)) for row in self.rows]
        members: dict[tuple[Any, ...], set[Any]] = {}
        for at, label in enumerate(labels):
            members.setdefault(label, set()).add(self.persons[at] if by_person else at)
        return Counter(
            (*label, *other) for label, other in zip(labels, self.others, strict=True) if len(members[label]) >= k
        )


@pytest.fixture(scope="module")
def plain(source: DataFrame) -> Plain:
    found = source.toArrow().to_pylist()
    scores = TREES["score"]
    assert isinstance(scores, Hierarchy)
    leaf = {row["score"]: scores.keys[scores.leaf_of(row["score"]) or 0] for row in found}
    rows: list[Row] = [
        (row["zip code"], str(row["no."]), row["j`ob"], leaf[row["score"]]) for row in found
    ]
    trees = []
    for at, tree in enumerate(TREES.values()):
        values = {row[at] for row in rows}
        built = tree if isinstance(tree, Hierarchy) else tree.build(value for value in values if value is not None)
        trees.append(built.with_null() if None in values else built)
    others = [(row["illness"], row["weight"]) for row in found]
    return Plain(trees, rows, others, [row["person"] for row in found])


def counted(release: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in release.collect())


@dataclass(frozen=True)
class Run:
    recoding: LatticeRecoding
    release: DataFrame
    log: str


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> DataFrame:
    return town(spark)


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(spark, str(tmp_path_factory.mktemp("lattice"))) as found:
        yield found


@pytest.fixture(scope="module")
def run(spark: SparkSession, source: DataFrame, workspace: Workspace, event_log: EventLog) -> Run:
    """One fit and one shuffled release, kept as rows; and what Spark wrote down meanwhile."""
    start = event_log.mark()
    recoding = LatticeAnonymizer(**SETTINGS).fit(source, workspace)
    release = shuffled(recoding.transform(source), key_frame(spark, "Zqkey"), recoding.published)
    kept = workspace.store(release, "release")
    return Run(recoding, kept, event_log.read_text(since=start))


# --- fit, front, release -----------------------------------------------------------------------------------------------


def test_front_is_the_true_front(run: Run, plain: Plain) -> None:
    scores = scores_of(plain.rows, plain.trees, ROWS // 10, "glm")
    truth = exhaustive_front(scores)
    assert list(run.recoding.points) == truth
    assert run.recoding.denominator == scores.loss.denominator
    chosen = [point for point in truth if point.k >= 4][-1]
    assert run.recoding.chosen == chosen
    assert chosen.suppressed > 0  # or the tests below would say nothing about suppression
    front = run.recoding.front
    assert list(front.columns) == ["node", "k", "loss", "suppressed_rows", "classes", "chosen"]
    assert front.k.is_monotonic_decreasing
    assert front.loss.is_monotonic_decreasing
    assert front[front.chosen].node.tolist() == [list(chosen.node)]
    assert run.recoding.loss == pytest.approx(chosen.loss / scores.loss.denominator)
    assert run.recoding.levels == dict(zip(TREES, chosen.node, strict=True))


def test_release_is_every_row_on_its_level_without_small_classes(run: Run, plain: Plain) -> None:
    expected = plain.release(run.recoding.node, run.recoding.k)
    assert counted(run.release) == expected
    assert sum(expected.values()) == ROWS - run.recoding.chosen.suppressed
    assert run.release.columns == run.recoding.published == PUBLISHED
    assert [field.dataType.simpleString() for field in run.release.schema] == ["string"] * 5 + ["bigint"]


def test_staged_release_and_facts_are_the_same(run: Run, source: DataFrame) -> None:
    assert counted(run.recoding.staged(source, key_frame(source.sparkSession, "any"))) == counted(run.release)
    recoded = run.recoding.recoded()
    assert {name: level for name, (_, level) in recoded.items()} == run.recoding.levels
    assert [tree.has_null for tree, _ in recoded.values()] == [True, False, True, False]
    facts = run.recoding.facts()
    assert facts.chosen.k == run.recoding.k
    assert [attribute.name for attribute in facts.attributes] == list(TREES)
    assert sum(a.loss for a in facts.attributes) / len(TREES) == pytest.approx(run.recoding.loss)
    assert "Zq" not in repr(facts)
    assert facts.search.evaluated <= facts.search.nodes == 5 * 4 * 3 * 3


@pytest.mark.long
def test_seven_partitions_give_the_same_recoding_and_release(spark: SparkSession, run: Run, workdir: Path) -> None:
    """Pitfall 16: nothing depends on the order of rows, tasks or sets; and the fit leaves nothing behind."""
    turned = town(spark, 7).orderBy(F.col("weight").desc())
    again = LatticeAnonymizer(**SETTINGS, workdir=str(workdir)).fit(turned)
    assert list(workdir.iterdir()) == []

    def without_time(recoding: LatticeRecoding) -> LatticeRecoding:
        return replace(recoding, statistics=replace(recoding.statistics, seconds=0), fitted=None)

    assert without_time(again) == without_time(run.recoding)
    release = shuffled(again.transform(turned), key_frame(spark, "Zqkey"), again.published)
    assert [tuple(row) for row in release.collect()] == [tuple(row) for row in run.release.collect()]


def test_persons_are_counted_and_nobody_hides_in_the_own_crowd(
    source: DataFrame, plain: Plain, workdir: Path, event_log: EventLog
) -> None:
    """With a class column as well, so that every private column passes through; none of them is written down."""
    start = event_log.mark()
    settings = SETTINGS | {"loss": "cm", "class_column": "illness", "search": "exhaustive", "person": "person"}
    by_zip = {"node": [0, 3, 2, 2]}  # the five rows without a zip code are one person's: more than k rows, one person
    recoding = LatticeAnonymizer(**settings, choose=by_zip, workdir=str(workdir)).fit(source)
    labels = [illness for illness, _ in plain.others]
    scores = scores_of(plain.rows, plain.trees, ROWS // 10, "cm", labels, plain.persons)
    assert list(recoding.points) == exhaustive_front(scores)
    assert recoding.points[0].k == len(set(plain.persons)) < ROWS
    assert (recoding.k >= 4, recoding.chosen.suppressed) == (True, 5)
    lower = replace(recoding, chosen=replace(recoding.chosen, k=4))
    assert counted(lower.transform(source)) == plain.release(recoding.node, 4, by_person=True)
    assert list(workdir.iterdir()) == []
    assert "Zq" not in event_log.read_text(since=start)


# --- choice and search, over the counts of the one fit -------------------------------------------------------------------


@pytest.fixture
def refit(run: Run, source: DataFrame, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fit again with other settings; the distinct tuples are those already counted."""
    assert run.recoding.fitted is not None
    frequencies: Frequencies = run.recoding.fitted.frequencies
    monkeypatch.setattr(f"{ANONYMIZER}.count_tuples", lambda *_, **__: frequencies)

    def fit(**changes: Any) -> LatticeRecoding:
        return LatticeAnonymizer(**(SETTINGS | changes)).fit(source, workspace)

    return fit


def test_choice_by_k_loss_node_and_knee(run: Run, refit: Any) -> None:
    points = list(run.recoding.points)
    largest = points[0]
    assert refit(choose={"k": largest.k}).chosen == largest
    middle = points[len(points) // 2]
    assert refit(k=2, choose={"max_loss": middle.loss / run.recoding.denominator + 1e-9}).chosen == middle
    off_front = refit(choose={"node": [4, 3, 2, 1]})
    assert off_front.node == (4, 3, 2, 1)
    assert off_front.k >= 4
    assert refit(choose="knee").chosen in points
    assert refit(choose={"knee": True}).chosen == refit(choose="knee").chosen


def test_poka_returns_what_it_visited(run: Run, refit: Any, plain: Plain) -> None:
    scores = scores_of(plain.rows, plain.trees, ROWS // 10, "glm")
    visited = Poka(scores, scores.lattice.average_height).visit()
    found = refit(search="poka")
    assert list(found.points) == nondominated(visited)
    assert (found.statistics.evaluated, found.statistics.complete) == (scores.evaluated, False)
    literal = scores_of(plain.rows, plain.trees, ROWS // 10, "dm")
    assert list(refit(search="poka", depth=1, refine=False, loss="dm").points) == nondominated(
        Poka(literal, 1, refine=False).visit()
    )


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"k": 91}, DataError, "k = 91 is more than the 90 rows"),
        ({"choose": {"k": 91}}, GuaranteeUnreachable, "k = 91 cannot be reached: even the most general node has k = 90"),
        ({"choose": {"max_loss": 0.0}}, GuaranteeUnreachable, "the least loss with k of at least 4 is 0"),
        ({"choose": {"node": [9, 0, 0, 0]}}, ConfigurationError, r"outside the lattice, whose heights are \[4, 3, 2, 2\]"),
        ({"choose": {"node": [0, 0, 0]}}, ConfigurationError, "outside the lattice"),
        ({"choose": {"node": [0, 0, 0, 0]}}, GuaranteeUnreachable, "choose.node reaches k = 1, privacy.k asks for 4"),
        ({"choose": {"kk": 3}}, ConfigurationError, "choose.kk: unknown key"),
        ({"choose": {"k": 3, "max_loss": 0.5}}, ConfigurationError, "exactly one of"),
        ({"choose": {}}, ConfigurationError, "exactly one of"),
        ({"sensitive": ["ilness"]}, ConfigurationError, "Columns not found: ilness. Did you mean: illness?"),
        ({"keep": ["_anon_rows"]}, ConfigurationError, "Columns not found: _anon_rows"),
    ],
)
def test_what_cannot_be_fitted(changes: dict[str, Any], error: type[Exception], says: str, refit: Any) -> None:
    with pytest.raises(error, match=says):
        refit(**changes)


def test_a_lattice_that_the_driver_cannot_hold_is_refused(refit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon_spark.model.lattice.MOST_NODES", 179)
    for changes in ({"search": "exhaustive"}, {"search": "poka"}, {"loss": "dm"}, {"choose": "knee"}):
        with pytest.raises(LimitExceeded, match="The lattice has 180 nodes, at most 179"):
            refit(**changes)


def test_in_a_lattice_too_large_for_a_front_one_k_is_searched(
    run: Run, refit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon_spark.model.lattice.MOST_NODES", 179)
    found = refit()
    assert found.chosen.loss == run.recoding.chosen.loss
    assert found.statistics.least_loss == found.loss
    assert (list(found.points), found.statistics.complete) == ([found.chosen], False)
    hasty = refit(max_nodes=1)
    assert hasty.node == (4, 3, 2, 2)  # the top is always tried
    assert hasty.statistics.least_loss is not None
    assert hasty.statistics.least_loss <= found.loss < hasty.loss
    with pytest.raises(GuaranteeUnreachable, match="k = 91 cannot be reached: even the most general node has k = 90"):
        refit(choose={"k": 91})


def test_reserved_names_are_refused(spark: SparkSession) -> None:
    table = spark.createDataFrame([("x",)], "_link string")
    with pytest.raises(ConfigurationError, match="Reserved column names: _link"):
        LatticeAnonymizer(k=2, quasi_identifiers={"_link": TREES["j`ob"]}).fit(table)


# --- another batch ---------------------------------------------------------------------------------------------------


def pair(spark: SparkSession, recoding: LatticeRecoding, size: int, **values: Any) -> DataFrame:
    """A batch of `size` equal rows of the town, with some values replaced."""
    row = {"zip code": "Zq11", "no.": BASE, "j`ob": "Zqjob1", "score": 9137000.125, "illness": "x", "weight": 1}
    return spark.createDataFrame(pa.table({name: [value] * size for name, value in (row | values).items()}))


def test_unseen_values_of_a_batch_are_an_error_or_left_out(spark: SparkSession, run: Run) -> None:
    """Pitfall 11: never the top term, never an IndexError; the message counts and does not tell."""
    k = run.recoding.k
    known, odd = pair(spark, run.recoding, k), pair(spark, run.recoding, k, **{"j`ob": "Zqnew", "no.": BASE + 12})
    with pytest.raises(DataError, match=rf"no\.: 1 value in {k} rows; j`ob: 1 value in {k} rows") as error:
        run.recoding.transform(known.union(odd))
    assert "Zq" not in str(error.value)
    assert str(BASE + 12) not in str(error.value)
    found = counted(replace(run.recoding, on_unseen="suppress").transform(known.union(odd)))
    assert list(found.values()) == [k]
    assert all(label in (None, "*") or label[0] in "Z[" for (row, _) in found.items() for label in row[:4])


def test_a_batch_is_released_with_new_mask_values_new_nulls_and_without_small_classes(
    spark: SparkSession, run: Run
) -> None:
    k = run.recoding.k
    fresh = pair(spark, run.recoding, k, **{"zip code": "ab9"})  # another value of at most four symbols
    nulls = pair(spark, run.recoding, k, **{"no.": None}).withColumn("no.", F.lit(None).cast("bigint"))
    small = pair(spark, run.recoding, k - 1, **{"zip code": None})
    batch = fresh.unionByName(nulls).unionByName(small.withColumn("zip code", F.lit(None).cast("string")))
    found = counted(run.recoding.transform(batch))
    zip_level, number_level = run.recoding.node[0], run.recoding.node[1]
    zips = {(row[0], row[1]) for row in found}
    number = run.recoding.recoded()["no."][0].labels[number_level][0]
    masked = {0: "ab9", 1: "ab9*", 2: "ab**", 3: "a***", 4: "*"}[zip_level]
    old = {0: "Zq11", 1: "Zq1*", 2: "Zq**", 3: "Z***", 4: "*"}[zip_level]
    small_shows = zip_level == 4  # then the null is '*' like everybody
    assert zips == {(masked, number), (old, None if number_level < 3 else "*")}
    assert sum(found.values()) == 2 * k + (k - 1 if small_shows else 0)
    dropping = replace(run.recoding, nulls="suppress")
    assert sum(counted(dropping.transform(batch)).values()) == k


def test_a_batch_without_a_column_is_refused_by_name(run: Run, source: DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="Columns not found: score"):
        run.recoding.transform(source.drop("score"))


# --- storage ---------------------------------------------------------------------------------------------------------


def test_a_saved_recoding_recodes_alike_and_holds_no_value_of_the_table(
    spark: SparkSession, run: Run, source: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "recoding.json"
    run.recoding.save(path)
    loaded = Recoding.load(path)
    assert isinstance(loaded, LatticeRecoding)
    assert loaded.content() == run.recoding.content()
    assert counted(loaded.transform(source)) == counted(run.release)
    with pytest.raises(ConfigurationError, match="fit again"):
        loaded.staged(source, key_frame(spark, "any"))
    text = path.read_text()
    raw = source.toArrow().to_pydict()
    assert "Zqgroup1" in text  # a given hierarchy is kept as it is
    for name in ("name", "zip code", "illness", "person"):
        assert not [value for value in raw[name] if value is not None and value in text], name
    assert "Zq1" not in text.replace("Zqjob1", "")  # nor a masked one


# --- faults seen in published software ----------------------------------------------------------------------------------


def test_no_value_escapes_into_the_event_log(run: Run) -> None:
    """Fit, transform, shuffle and write: no value, label, border or key is a literal of a plan or a description."""
    assert len(run.log) > 100_000
    for marker in ("Zq", str(BASE)[:12], "9137000", "9137001"):
        assert marker not in run.log, marker


def test_pitfall_1_and_2_rows_with_nulls_are_published_as_a_class_or_counted(run: Run, plain: Plain) -> None:
    with_null = sum(None in row for row in plain.rows)
    expected = plain.release(run.recoding.node, run.recoding.k)
    assert with_null > 0
    assert counted(run.release) == expected  # raw nulls never beside raw values: all on the chosen levels
    assert sum(expected.values()) + run.recoding.chosen.suppressed == ROWS


def test_pitfall_12_suppressed_rows_are_absent_not_stars(run: Run, plain: Plain) -> None:
    release = counted(run.release)
    assert sum(release.values()) == ROWS - run.recoding.chosen.suppressed
    top = ("*",) * len(TREES)
    if run.recoding.node != tuple(tree.height for tree in plain.trees):
        assert not [row for row in release if row[: len(TREES)] == top]
    sizes = Counter(row[: len(TREES)] for row in release.elements())
    assert min(sizes.values()) == run.recoding.k  # k is the size of a class that stays
    assert len(sizes) == run.recoding.chosen.classes
