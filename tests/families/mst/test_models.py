"""Models of sensitive columns in the classes of mst: kernels against exact arithmetic, then a whole fit on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from anon_spark import Hierarchy, MstAnonymizer, MstRecoding, Recoding
from anon_spark.columns import ROWS
from anon_spark.errors import ConfigurationError, DataError, GuaranteeUnreachable
from anon_spark.families.mst.frames import COUNTS, VALUES, histograms_in, leaf_columns, level_columns, values_of
from anon_spark.families.mst.job import MstJob
from anon_spark.families.mst.kernels.counts import count_in, lack
from anon_spark.families.mst.kernels.keeping import taken_lack
from anon_spark.families.mst.models import counts_of, distinct_values, refuse_unreachable, weighed
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.families.mst.refinement import Refining, Sensitive, blocks_of, refined_levels
from anon_spark.families.mst.sensitive import held_counts
from anon_spark.families.mst.suppression import GROUP, STEP, levels_without, steps_of, within_budget
from anon_spark.families.registry import load_job
from anon_spark.kernels.classes import Codes
from anon_spark.kernels.exact_models import holds
from anon_spark.kernels.histograms import histograms_of
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.primitives.classes import held
from tests.families.lattice.test_models import LEVELS, column, models
from tests.families.mst.tables import Arrays, Case, arrays_of, cases, crowd
from tests.families.mst.test_refinement import classes_of, loss
from tests.town import CITIES, people

pytestmark = pytest.mark.compiles

CONF = Path(__file__).resolve().parents[3] / "conf"


@dataclass(frozen=True)
class Table:
    """A case with sensitive columns: the value codes of each row and the models, by column."""

    case: Case
    codes: list[list[int]]
    columns: list[SensitiveColumn]

    @property
    def arrays(self) -> Arrays:
        return arrays_of(self.case)

    @property
    def asked(self) -> dict[str, tuple[Model, ...]]:
        return {str(at): of.models for at, of in enumerate(self.columns)}

    @property
    def places(self) -> list[int]:
        """The tuple of each row."""
        number = {row: at for at, row in enumerate(self.arrays.tuples)}
        return [number[row] for row in self.case.rows]

    def keeps(self, tuples: Sequence[int]) -> bool:
        """Whether a class of these tuples keeps every model, by exact arithmetic."""
        inside = set(tuples)
        for codes, of in zip(self.codes, self.columns, strict=True):
            counted = Counter(code for code, place in zip(codes, self.places, strict=True) if place in inside)
            counts = [counted[code] for code in range(of.width)]
            if not all(holds(model, counts, of.totals.tolist(), of.levels) for model in of.models):
                return False
        return True

    @property
    def weighing(self) -> list[int]:
        """The columns with models that weigh values."""
        return [at for at in range(len(self.columns)) if str(at) in weighed(self.asked)]

    @property
    def models(self) -> list[SensitiveColumn]:
        return [replace(self.columns[at], models=weighed(self.asked)[str(at)]) for at in self.weighing]

    @property
    def lists(self) -> dict[str, Any]:
        """The sensitive values of the tuples as they stand in a frame."""
        size, places = self.arrays.rows.size, np.array(self.places)
        lists: dict[str, Any] = {}
        for position, (name, most) in enumerate(distinct_values(None, list(self.asked), self.asked).items()):
            sets: list[set[int]] = [set() for _ in range(size)]
            for place, code in zip(self.places, self.codes[int(name)], strict=True):
                sets[place].add(code)
            lists[f"{VALUES}{position}"] = pa.array([sorted(of)[:most] for of in sets], pa.list_(pa.int32()))
        if self.weighing:
            one = np.ones(places.size, dtype=np.int64)
            by_column = [histograms_of(places, np.array(self.codes[at]), one, size) for at in self.weighing]
            lists[COUNTS] = held_counts(by_column, self.models)
        return lists

    @property
    def sensitive(self) -> Sensitive:
        lists, least = self.lists, self.refining().distinct
        if not lists:
            return Sensitive(np.zeros((self.arrays.rows.size, 0, 0), dtype=np.int32))
        frame = pa.table(lists)
        return Sensitive(values_of(frame, least), histograms_in(frame) if self.weighing else None)

    def refining(self, sweeps: int = 2, block_tuples: int = 8_000) -> Refining:
        least = tuple(distinct_values(None, list(self.asked), self.asked).values())
        asked = (max(least, default=None), len(least), sweeps, 2, block_tuples, 10**6)
        return Refining(self.case.hierarchies, len(self.case.rows), self.case.k, *asked, least=least, models=self.models)


def table_of(case: Case, values: Sequence[Sequence[int]], asked: Sequence[Sequence[Model]]) -> Table:
    coded = [column(of, models) for of, models in zip(values, asked, strict=True)]
    return Table(case, [codes for codes, _ in coded], [of for _, of in coded])


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 40) -> Table:
    """A small table of which the whole keeps its models."""
    case = draw(cases(most_rows=most_rows))
    values, asked = [], []
    random = Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 2))):
        values.append([random.choice([0, 0, 0, 1, 1, 2, 3]) for _ in case.rows])
        asked.append(draw(st.lists(models(), min_size=1, max_size=2)))
    table = table_of(case, values, asked)
    assume(table.keeps(range(table.arrays.rows.size)))
    return table


def merged(table: Table) -> Codes:
    """The levels of every tuple after merging for k alone."""
    parts = partition(table.arrays.codes, table.arrays.rows, table.case.hierarchies, Settings(table.case.k))
    return parts.levels[parts.class_of]


def refined(table: Table, level: Codes, sweeps: int) -> Codes:
    arrays = table.arrays
    return refined_levels(table.refining(sweeps), arrays.codes.T, level, arrays.rows, table.sensitive)


def check(table: Table, level: Codes, stays: Sequence[int] | None = None) -> None:
    """Every class of the tuples that stay has k rows and keeps the models."""
    for tuples in classes_of(table.case, table.arrays, level).values():
        inside = tuples if stays is None else [one for one in tuples if one in stays]
        if inside:
            assert table.arrays.rows[inside].sum() >= table.case.k
            assert table.keeps(inside)


# --- kernels ----------------------------------------------------------------------------------------------------------------


def loosened(model: Model) -> Model:
    """The same with a limit that is a little wider."""
    little = Fraction(1, 10**6)
    match model:
        case EntropyL():
            return EntropyL(model.l - little)
        case RecursiveCL():
            return RecursiveCL(model.c + little, model.l)
        case TCloseness():
            return TCloseness(model.most + little, model.distance, model.hierarchy)
        case BetaLikeness():
            return BetaLikeness(model.most + little, model.enhanced)
        case DeltaDisclosure():
            return DeltaDisclosure(model.most + little)
        case DistinctL():
            return model


@settings(max_examples=300)
@given(st.data())
def test_what_the_kernels_keep_is_kept_exactly(data: st.DataObject) -> None:
    """And what they do not keep fails, or is a tie with the limit."""
    classes = data.draw(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=8))
    counts = np.array(classes, dtype=np.int64)
    present = counts.sum(axis=0) > 0
    counts, levels = counts[:, present], np.ascontiguousarray(LEVELS[:, present])
    model = data.draw(models().filter(lambda one: not isinstance(one, DistinctL)))
    of = SensitiveColumn((model,), counts.sum(axis=0), levels)
    places, values = np.nonzero(counts)
    by_class = histograms_of(places, values, counts[places, values], len(counts))
    kernel = counts_of([of], by_class)
    for place, one in enumerate(counts.tolist()):
        count_in(kernel, place)
        missing = taken_lack(kernel)
        assert not kernel.room.any()
        kept = missing == 0
        exactly = holds(model, one, of.totals.tolist(), levels)
        assert not kept or exactly
        if exactly and not kept:  # a tie with the limit
            looser = counts_of([replace(of, models=(loosened(model),))], by_class)
            count_in(looser, place)
            assert taken_lack(looser) == 0


def test_equal_counts_are_exact() -> None:
    for counts, least, expected in ((3, 2, True), (3, Fraction(2) + Fraction(1, 10**12), False), (5, 2, True)):
        halves = histograms_of(np.array([0, 0]), np.array([0, 1]), np.array([counts, counts]), 1)
        kernel = counts_of([SensitiveColumn((EntropyL(least),), np.array([counts, counts]))], halves)
        count_in(kernel, 0)
        assert (lack(kernel) == 0) == expected


@settings(max_examples=60)
@given(tables(), st.integers(0, 2**32))
def test_every_class_keeps_the_models_whatever_the_order_of_tuples(table: Table, seed: int) -> None:
    before = merged(table)
    joined, after = refined(table, before, 0), refined(table, before, 2)
    check(table, joined)
    check(table, after)
    assert loss(table.case, table.arrays, after) <= loss(table.case, table.arrays, joined)
    arrays, sensitive = table.arrays, table.sensitive
    order = np.random.default_rng(seed).permutation(arrays.rows.size)
    if table.lists:
        asked = table.refining()
        sensitive = asked.sensitive_in(pa.table(table.lists).take(order))
        again = refined_levels(asked, arrays.codes.T[order], before[order], arrays.rows[order], sensitive)
        assert (again == after[order]).all()


@settings(max_examples=40)
@given(tables(), st.integers(0, 40))
def test_what_is_left_of_a_class_keeps_the_models(table: Table, budget: int) -> None:
    arrays, asked, level = table.arrays, table.refining(), refined(table, merged(table), 0)
    count = arrays.codes.shape[0]
    columns = [*(pa.array(codes) for codes in arrays.codes), *(pa.array(of.astype(np.int32)) for of in level.T)]
    block = pa.Table.from_arrays(
        [*columns, pa.array(arrays.rows), *table.lists.values()],
        names=[*leaf_columns(count), *level_columns(count), ROWS, *table.lists],
    )
    step, group = steps_of(asked, block)
    rows: Counter[int] = Counter()
    for at in np.flatnonzero(step):
        rows[int(group[at])] += int(arrays.rows[at])
    chosen = within_budget(np.array(list(rows), dtype=np.int64), np.array(list(rows.values()), dtype=np.int64), budget)
    after, stays = levels_without(asked, block.append_column(STEP, pa.array(step)).append_column(GROUP, pa.array(group)), chosen)
    assert arrays.rows[~stays].sum() <= budget
    check(table, np.where(stays[:, None], after, level), np.flatnonzero(stays).tolist())


CROWDS: dict[str, Sequence[Sequence[Model]]] = {
    "entropy": [[EntropyL(2.5)]],
    "t and recursive": [[TCloseness(Fraction(1, 4))], [RecursiveCL(2, 2)]],
    "ordered t and l": [[TCloseness(Fraction(1, 5), "ordered"), DistinctL(3)], [DistinctL(2)]],
    "beta": [[BetaLikeness(2)]],
}


@pytest.mark.parametrize("name", CROWDS)
def test_blocks_keep_the_models_before_they_are_refined(name: str) -> None:
    """Values that depend on the first attribute, so that a block by itself may fail."""
    case, random = replace(crowd(1), k=2), Random(3)
    likely = {"a": [0, 0, 1, 2], "b": [0, 1, 2, 3], "c": [1, 2, 3], "d": [3, 3, 2, 0]}
    values = [[random.choice(likely[str(row[0])[0]]) for row in case.rows] for _ in CROWDS[name]]
    table = table_of(case, values, CROWDS[name])
    assert table.keeps(range(table.arrays.rows.size))
    arrays, level, asked = table.arrays, merged(table), table.refining(block_tuples=40)
    block = blocks_of(asked, arrays.codes.T, level, table.sensitive)
    after, frame = level.copy(), pa.table(table.lists)
    for number in range(int(block.max()) + 1):
        own = np.flatnonzero(block == number)
        assert table.keeps(own.tolist())
        sensitive = asked.sensitive_in(frame.take(own))
        after[own] = refined_levels(asked, arrays.codes.T[own], level[own], arrays.rows[own], sensitive)
    assert block.max() > 0
    check(table, after)


GOLDEN = {0: "9adc143fcf7f690f", 1: "523e1a6e4268a281", 2: "0bbdf9d49b2fd845"}  # levels as before there were models


@pytest.mark.parametrize("seed", range(3))
def test_distinct_l_alone_is_refined_as_before(seed: int) -> None:
    case, random = crowd(seed), Random(seed)
    values = [[random.choice([0, 0, 0, 1, 2]) for _ in case.rows] for _ in range(2)]
    table = table_of(case, values, [[DistinctL(2)], [DistinctL(2)]])
    after = refined(table, merged(table), 4)
    check(table, after)
    assert sha256(after.astype(np.int32).tobytes()).hexdigest()[:16] == GOLDEN[seed]


def test_what_a_table_cannot_reach_is_said() -> None:
    totals = np.array([6, 3, 1])
    reached: dict[Model, str] = {
        EntropyL(3): r"no release keeps entropy 3-diversity; the whole table has 2\.45\d*\. Lower entropy_l\.",
        RecursiveCL(1, 2): r"with l = 2 the whole table needs a c above 1\.5\. Raise recursive\.c\.",
        RecursiveCL(1, 4): r"the column has 3 distinct values\. Lower recursive\.l\.",
    }
    for model, message in reached.items():
        with pytest.raises(GuaranteeUnreachable, match=message):
            refuse_unreachable({"disease": SensitiveColumn((model,), totals)})
    refuse_unreachable({"disease": SensitiveColumn((EntropyL(2), RecursiveCL(2, 2), TCloseness(0)), totals)})


# --- jobs and fits ------------------------------------------------------------------------------------------------------------


def test_models_of_a_job() -> None:
    job = load_job(CONF / "mst.yaml")
    some = load_job(CONF / "mst.yaml", ["privacy.sensitive={disease: {entropy_l: 1.5, t: {max: 0.2}}}"])
    assert isinstance(some, MstJob) and some.privacy.models({}) == {"disease": (EntropyL(1.5), TCloseness(0.2))}
    assert "sensitive" not in job.content()["privacy"]
    with pytest.raises(ConfigurationError, match=r"^privacy\.sensitive\.nobody: is no sensitive column"):
        load_job(CONF / "mst.yaml", ["privacy.sensitive={nobody: {l: 2}}"])
    with pytest.raises(ConfigurationError, match=r"privacy\.sensitive\.\w+: needs a model: l, entropy_l"):
        load_job(CONF / "mst.yaml", ["privacy.sensitive={disease: {}}"])
    with pytest.raises(ConfigurationError, match=r"privacy\.sensitive\.\w+\.t\.distance"):
        load_job(CONF / "mst.yaml", ["privacy.sensitive={disease: {t: {max: 0.2, distance: far}}}"])


HIERARCHIES = {
    "age": Hierarchy.intervals(20, 59, [10, 20]),
    "sex": Hierarchy.from_levels([("f", "*"), ("m", "*")]),
    "city": Hierarchy.from_levels([(city, region, "*") for city, region in CITIES.items()]),
}
ASKED: dict[str, tuple[Model, ...]] = {
    "disease": (EntropyL(2), DistinctL(2)),
    "weight": (TCloseness(Fraction(3, 10), "ordered"),),
}


def anonymizer(**changes: Any) -> MstAnonymizer:
    options: dict[str, Any] = {"k": 5, "quasi_identifiers": HIERARCHIES, "sensitive": ["disease", "weight"], "models": ASKED}
    return MstAnonymizer(**{**options, **changes})


def check_release(rows: Sequence[tuple[Any, ...]], source: pa.Table) -> None:
    """Classes of (labels, disease, weight) keep k and the models against the shares of the source."""
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[:3], []).append(row[3:])
    for members in found.values():
        assert len(members) >= 5
        for at, (name, of) in enumerate(ASKED.items()):
            totals: Counter[Any] = Counter(source.column(name).to_pylist())
            counts = Counter(member[at] for member in members)
            ordered = sorted(totals)
            for model in of:
                assert holds(model, [counts[value] for value in ordered], [totals[value] for value in ordered], None)


@pytest.mark.long
def test_a_fit_keeps_the_models_for_any_partitions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = people()
    frame, shown = spark.createDataFrame(source), []
    for partitions in (1, 2, 7):
        if partitions == 7:
            monkeypatch.setattr(held, "MOST_CELLS", 0)  # tuples and their values in files
        recoding = anonymizer().fit(frame.repartition(partitions))
        assert isinstance(recoding, MstRecoding)
        shown.append(sorted(tuple(row) for row in recoding.transform(frame).collect()))
        if partitions == 1:
            recoding.save(tmp_path / "recoding.json")
        recoding.close()
    assert shown[0] == shown[1] == shown[2] and len(shown[0]) == source.num_rows
    check_release(shown[0], source)
    # a batch: classes that fail are left out
    loaded = Recoding.load(tmp_path / "recoding.json")
    assert isinstance(loaded, MstRecoding) and loaded.models == ASKED
    batch = people(rows=120)
    released = [tuple(row) for row in loaded.transform(spark.createDataFrame(batch)).collect()]
    assert 0 < len(released) < 120
    check_release(released, batch)


def test_what_cannot_be(spark: SparkSession) -> None:
    frame = spark.createDataFrame(people())
    with pytest.raises(GuaranteeUnreachable, match=r"^privacy\.sensitive\.disease: no release keeps entropy 3-diversity"):
        anonymizer(models={"disease": [EntropyL(3)]}).fit(frame)
    with pytest.raises(DataError, match=r"^Column disease has 3 distinct values, l = 4 asks for more. Lower l.$"):
        anonymizer(models={"disease": [DistinctL(4)]}).fit(frame)
    with pytest.raises(ConfigurationError, match=r"^privacy\.sensitive\.disease\.t\.distance: ordered needs numbers or dates"):
        anonymizer(models={"disease": [TCloseness(0.5, "ordered")]}).fit(frame)
    with pytest.raises(ConfigurationError, match=r"^models: nobody is no sensitive column"):
        anonymizer(models={"nobody": [EntropyL(2)]})
