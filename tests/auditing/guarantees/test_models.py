"""Models of attribute disclosure on Spark: the golden table, a table against the oracle, planted faults, and odd values.

pycanon's numbers are compared in tests/oracle/test_models.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import Verdict, rows_in_scope, verify, verify_models
from anon_spark.auditing.guarantees.models import models_check
from anon_spark.engine import in_one_task
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated, LimitExceeded
from anon_spark.model.guarantee import AttributeProtection, KAnonymity
from anon_spark.model.guarantee.models import (
    MOST_VALUES,
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy
from tests.auditing.town import PEOPLE, Row, frame, recoding, town
from tests.event_log import EventLog
from tests.oracle.models_oracle import class_counts, holds, measured
from tests.oracle.test_models import GOLDEN

NAMES = ["class.of", "salary", "disease"]
KINDS: list[pa.DataType] = [pa.string(), pa.float64(), pa.string()]
KEY = NAMES[:1]
NAN = float("nan")
TREE = Hierarchy.from_levels([("flu", "mild", "*"), ("cold", "mild", "*"), ("gout", "grave", "*"), ("hiv", "grave", "*")])
LEVELS = {labels[0]: list(labels) for labels in TREE.rows()}

OF_DISEASE: tuple[Model, ...] = (
    *(DistinctL(l) for l in (2, 3)),  # noqa: E741
    *(EntropyL(l) for l in (2, 2.5)),  # noqa: E741
    *(RecursiveCL(c, l) for c, l in ((2, 2), (3, 3))),  # noqa: E741
    *(TCloseness(most) for most in (Fraction(1, 3), 0.2)),
    TCloseness(0.25, "hierarchical", TREE),
    *(BetaLikeness(1, enhanced) for enhanced in (False, True)),
    DeltaDisclosure(0.7),
)
OF_SALARY: tuple[Model, ...] = (
    TCloseness(Fraction(11, 32), "ordered"), TCloseness(0.2, "ordered"), EntropyL(3), BetaLikeness(2),
)  # fmt: skip


def table(spark: SparkSession, rows: Sequence[Row], partitions: int | None = None) -> DataFrame:
    return frame(spark, rows, NAMES, KINDS, partitions)


def by_model(verdicts: Sequence[Verdict]) -> dict[tuple[str, str], Verdict]:
    return {(verdict.facts["column"], verdict.facts["model"]): verdict for verdict in verdicts}


def failing(verdict: Verdict) -> dict[Any, tuple[int, float]]:
    return {} if verdict.frame is None else {row[0]: (row[1], row[2]) for row in verdict.frame.collect()}


def test_the_golden_table(spark: SparkSession, event_log: EventLog) -> None:
    since = event_log.mark()
    release = table(spark, GOLDEN)
    verdicts = by_model(verify_models(release, release, KEY, {"disease": OF_DISEASE, "salary": OF_SALARY}))
    assert {name: round(verdict.facts["worst"], 6) for name, verdict in verdicts.items()} == {
        ("disease", "distinct 2-diversity"): 2,
        ("disease", "distinct 3-diversity"): 2,
        ("disease", "entropy 2-diversity"): 1.889882,
        ("disease", "entropy 2.5-diversity"): 1.889882,
        ("disease", "recursive (2, 2)-diversity"): 2,
        ("disease", "recursive (3, 3)-diversity"): 2,
        ("disease", "0.333333-closeness (equal distance)"): 0.333333,
        ("disease", "0.2-closeness (equal distance)"): 0.333333,
        ("disease", "0.25-closeness (hierarchical distance)"): 0.25,
        ("disease", "1-likeness"): 1,
        ("disease", "enhanced 1-likeness"): 1,
        ("disease", "0.7-disclosure privacy"): 0.405465,
        ("salary", "0.34375-closeness (ordered distance)"): 0.34375,
        ("salary", "0.2-closeness (ordered distance)"): 0.34375,
        ("salary", "entropy 3-diversity"): 2.828427,
        ("salary", "2-likeness"): 3,
    }
    holding = {name for (column, name), verdict in verdicts.items() if verdict.passed and column == "disease"}
    assert holding == {
        "distinct 2-diversity", "0.333333-closeness (equal distance)", "0.25-closeness (hierarchical distance)", "1-likeness",
        "enhanced 1-likeness",
    }  # fmt: skip
    delta = verdicts["disease", "0.7-disclosure privacy"]
    assert (delta.violations, delta.facts["unbounded"], delta.facts["rows_in_violation"]) == (2, 2, 8)
    assert delta.facts["histogram"] == [(0.35, 0.525, 1, 4)] and "2 classes lack values of the whole table" in delta.detail
    close = verdicts["disease", "0.2-closeness (equal distance)"]
    assert close.facts["histogram"] == [(0.0, 0.1, 1, 4), (0.2, 0.3, 1, 5), (0.3, 0.4, 1, 3)]
    assert {key: (rows, round(value, 6)) for key, (rows, value) in failing(close).items()} == {
        "B": (5, 0.266667), "C": (3, 0.333333),
    }  # fmt: skip
    assert close.frame is not None and close.frame.columns == ["class.of", "_anon_rows", "_anon_measure"]
    with pytest.raises(GuaranteeViolated, match=r"2 of 3 classes fail .8 of 12 rows, greatest distance 0.333333, limit 0.2"):
        close.require()
    assert not any(word in event_log.read_text(since) for word in ("flu", "hiv"))


def random_rows(random: Random, classes: str, size: int) -> list[Row]:
    diseases, salaries = ("flu", "flu", "cold", "gout", "hiv", None), (0.0, -0.0, 1.0, 2.5, 2.5, 1e9, None, NAN)
    return [(random.choice(classes), random.choice(salaries), random.choice(diseases)) for _ in range(size)]


def counted(value: Any) -> Any:
    """A value as models count it: NaN is null."""
    return None if value != value else value


def test_every_model_agrees_with_the_oracle_whatever_the_partitions(spark: SparkSession) -> None:
    random = Random(1)
    rows = random_rows(random, "ABCDEFG", 60) + [(None, 1.0, "flu"), (None, 2.5, "flu")]
    source = rows + random_rows(random, "XY", 10)
    models = {"disease": OF_DISEASE, "salary": OF_SALARY}
    runs = [verify_models(table(spark, rows, n), table(spark, source, n), KEY, models) for n in (1, 2, 7)]
    with in_one_task(True):
        runs.append(models_check(table(spark, rows, 1), table(spark, source, 1), KEY, models).get())
    verdicts = runs[0]
    for other in runs[1:]:
        assert [(one.facts, one.detail, one.violations) for one in other] == [
            (one.facts, one.detail, one.violations) for one in verdicts
        ]
    pairs = [(name, at, model) for name, at in (("disease", 2), ("salary", 1)) for model in models[name]]
    assert len(pairs) == len(verdicts) and len({verdict.passed for verdict in verdicts}) == 2
    for (_, at, model), verdict in zip(pairs, verdicts, strict=True):
        whole = Counter(counted(row[at]) for row in source)
        classes = class_counts([row[0] for row in rows], [counted(row[at]) for row in rows])
        fails = {key: sum(counts.values()) for key, counts in classes.items() if not holds(counts, whole, model, LEVELS)}
        measures = [measured(counts, whole, model, LEVELS) for counts in classes.values()]
        finite = [measure for measure in measures if measure is not None]
        worst = (min if model.key in ("l", "entropy_l") else max)(finite, default=None)
        assert (verdict.violations, verdict.checked) == (len(fails), len(classes)), verdict
        assert verdict.facts["rows_in_violation"] == sum(fails.values()) and verdict.facts["rows"] == len(rows)
        assert verdict.facts["worst"] == (worst if worst is None else pytest.approx(worst, abs=1e-9))
        assert verdict.facts["unbounded"] == len(measures) - len(finite)
        assert sum(number for _, _, number, _ in verdict.facts["histogram"]) == len(finite)


BASE = {"flu": 6, "cold": 6, "gout": 4, "hiv": 4}
PLANTED: dict[Model, dict[str, int]] = {  # model → rows by disease of the class that fails it
    DistinctL(4): {"flu": 7, "cold": 7, "gout": 6},
    EntropyL(3): {"flu": 14, "cold": 2, "gout": 2, "hiv": 2},
    RecursiveCL(1, 2): {"flu": 10, "cold": 4, "gout": 3, "hiv": 3},  # a tie, and < is asked for
    TCloseness(0.15): {"flu": 3, "cold": 9, "gout": 2, "hiv": 6},
    TCloseness(0.05, "hierarchical", TREE): {"flu": 3, "cold": 3, "gout": 7, "hiv": 7},
    BetaLikeness(0.5): {"flu": 6, "cold": 4, "gout": 2, "hiv": 8},
    BetaLikeness(10, enhanced=True): {"flu": 1, "cold": 1, "gout": 1, "hiv": 27},
    DeltaDisclosure(1): {"flu": 6, "cold": 7, "gout": 6, "hiv": 1},
}


def test_each_model_finds_its_planted_class(spark: SparkSession) -> None:
    groups = {f"base{at}": BASE for at in range(40)} | {f"planted{at}": counts for at, counts in enumerate(PLANTED.values())}
    # salaries are 0 to 3 everywhere but in the first planted class: it has the highest
    rows: list[Row] = []
    for key, counts in groups.items():
        diseases = [disease for disease, number in counts.items() for _ in range(number)]
        rows += [(key, 3.0 if key == "planted0" else at % 4.0, disease) for at, disease in enumerate(diseases)]
    models: dict[str, tuple[Model, ...]] = {"disease": tuple(PLANTED), "salary": (TCloseness(0.2, "ordered"),)}
    *verdicts, in_order = verify_models(table(spark, rows), table(spark, rows), KEY, models)
    assert set(failing(in_order)) == {"planted0"}
    whole = Counter(row[2] for row in rows)
    for at, (model, verdict) in enumerate(zip(PLANTED, verdicts, strict=True)):
        assert not verdict.passed and verdict.checked == len(groups)
        found = set(failing(verdict))
        assert f"planted{at}" in found and "base0" not in found
        assert found == {key for key, counts in groups.items() if not holds(counts, whole, model, LEVELS)}


def test_ties_hold_and_a_release_alone_says_so(spark: SparkSession) -> None:
    release = table(spark, [(key, salary, "flu" if salary < 1 else "cold") for key in "AB" for salary in (0.0, 1.0, 2.0, -1.0)])
    models = {"disease": (EntropyL(2), TCloseness(0), BetaLikeness(0.001)), "salary": (EntropyL(4), TCloseness(0, "ordered"))}
    verdicts = verify_models(release, None, KEY, models)
    assert all(verdict.passed for verdict in verdicts)
    alone = ["no source was given" in verdict.detail for verdict in verdicts]
    assert alone == [False, True, True, False, True]
    assert [verdict.facts["compared_with"] for verdict in verdicts] == [None, "release", "release", None, "release"]
    guarantee = AttributeProtection(KAnonymity(4, KEY), models)
    assert verify(release, guarantee).require().checked == 12
    with pytest.raises(ConfigurationError, match="verify_population"):
        verify(release, AttributeProtection(KAnonymity(4, KEY), models, map_k=10))


def test_the_source_decides_what_the_whole_table_is(spark: SparkSession) -> None:
    rows = [("A", 1.0, "flu"), ("A", 1.0, "cold"), ("B", 1.0, "flu"), ("B", 1.0, "cold")]
    models: dict[str, tuple[Model, ...]] = {"disease": (TCloseness(0.1), BetaLikeness(1), DistinctL(2), DeltaDisclosure(1))}
    passed = [verdict.passed for verdict in verify_models(table(spark, rows), table(spark, rows), KEY, models)]
    assert passed == [True, True, True, True]
    suppressed = table(spark, rows + [("C", 1.0, "gout")] * 2)
    passed = [verdict.passed for verdict in verify_models(table(spark, rows), suppressed, KEY, models)]
    assert passed == [False, True, True, False]
    # a value of the release that no source row has: an invention, which is no different from another one
    invented = verify_models(table(spark, [*rows, ("A", 1.0, "new"), ("A", 1.0, "other")]), table(spark, rows), KEY, models)
    assert [verdict.violations for verdict in invented] == [1, 1, 0, 1]
    assert "1 classes have values that the whole table lacks" in invented[0].detail
    only = verify_models(table(spark, [("A", 1.0, "new"), ("A", 1.0, "other")]), table(spark, rows), KEY, models)
    assert not any(only)
    nothing = verify_models(table(spark, rows).where("salary > 5"), table(spark, rows), KEY, models)
    assert not any(nothing) and all("empty" in verdict.detail and verdict.violations == 0 for verdict in nothing)


def test_what_is_one_value(spark: SparkSession) -> None:
    rows = [("A", 0.0, "flu"), ("A", -0.0, "FLU"), ("B", None, "flu"), ("B", NAN, "cold"), ("C", 1.0, None), ("C", 2.0, "x")]
    models: dict[str, tuple[Model, ...]] = {"disease": (DistinctL(2), EntropyL(2)), "salary": (DistinctL(2),)}
    plain = table(spark, rows)
    assert [verdict.violations for verdict in verify_models(plain, None, KEY, models)] == [0, 0, 2]
    collated = plain.withColumn("disease", F.collate("disease", "UTF8_LCASE"))
    for source in (None, collated, plain):  # the release says what is equal
        verdicts = verify_models(collated, source, KEY, models)
        assert [verdict.violations for verdict in verdicts] == [1, 1, 2]
        assert set(failing(verdicts[0])) == {"A"} and set(failing(verdicts[2])) == {"A", "B"}
    with pytest.raises(ConfigurationError, match="has a collation"):
        verify_models(collated, None, KEY, {"disease": (TCloseness(0.5, "hierarchical", TREE),)})
    # classes are told apart byte by byte, and their values may be nested
    nested = plain.withColumn("class.of", F.struct(F.collate("disease", "UTF8_LCASE").alias("v"), F.array("salary").alias("w")))
    assert verify_models(nested, None, KEY, {"disease": (DistinctL(2),)})[0].checked == 6
    lists = plain.withColumn("disease", F.array("disease"))
    assert [verdict.violations for verdict in verify_models(lists, None, KEY, {"disease": (DistinctL(2),)})] == [0]


def test_dates_are_in_order_and_rules_are_built_from_the_source(spark: SparkSession) -> None:
    first = date(2020, 1, 1)
    rows: list[Row] = [(key, first + timedelta(days=day), zip_code) for key, day, zip_code in (
        ("A", 0, "13051"), ("A", 1, "13052"), ("B", 9, "14850"), ("B", 8, None), ("C", 0, "13051"), ("C", 9, "14850"),
    )]  # fmt: skip
    release = frame(spark, rows, ["class", "day", "zip"], [pa.string(), pa.date32(), pa.string()])
    mask, dates = Hierarchy.mask(), Hierarchy.dates(["month", "year"])
    models: dict[str, tuple[Model, ...]] = {
        "day": (TCloseness(0, "ordered"), TCloseness(0, "hierarchical", dates)),
        "zip": (TCloseness(0, "hierarchical", mask),),
    }
    verdicts = verify_models(release, None, ["class"], models)
    codes = ("13051", "13052", "14850")
    zips = {code: [*(code[: 5 - level] + "*" * level for level in range(5)), "*"] for code in codes}
    days = {row[1]: [row[1], "2020-01", "2020", "*"] for row in rows}
    for verdict, at, levels in zip(verdicts, (1, 1, 2), (None, days, zips), strict=True):
        model = TCloseness(0, "ordered") if levels is None else TCloseness(0, "hierarchical", mask)
        whole = Counter(row[at] for row in rows)
        expected = {
            key: measured(counts, whole, model, levels)
            for key, counts in class_counts([row[0] for row in rows], [row[at] for row in rows]).items()
        }
        assert {key: value for key, (_, value) in failing(verdict).items()} == pytest.approx(
            {key: value for key, value in expected.items() if value}
        )
    with pytest.raises(DataError, match="does not know 1 values, in 2 rows"):
        known = Hierarchy.mask(["13051", "13052"])
        verify_models(release, None, ["class"], {"zip": (TCloseness(0, "hierarchical", known),)})


def test_rows_that_a_policy_drops_are_not_in_scope(spark: SparkSession) -> None:
    source = town(spark, [*PEOPLE, (99, "13051", "gout", 1.0), (None, "13051", "hiv", 1.0), (21, None, "mumps", 1.0)])
    hierarchies = recoding()
    value = rows_in_scope(source, hierarchies, "value")
    assert value.columns == source.columns and value.count() == len(PEOPLE) + 2
    bare = {name: hierarchy for name, (hierarchy, _) in hierarchies.items()}
    dropped = rows_in_scope(source, bare, "suppress", ["disease"])
    assert Counter(row[0] for row in dropped.collect()) == Counter(row[2] for row in PEOPLE)
    assert [value.schema[name].dataType for name in value.columns] == [source.schema[name].dataType for name in source.columns]
    with pytest.raises(ConfigurationError, match="nulls must be"):
        rows_in_scope(source, hierarchies, "drop")


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    release = table(spark, GOLDEN[:2])
    refused: list[tuple[str, Any, dict[str, Any]]] = [
        ("Did you mean: disease", KEY, {"disese": (DistinctL(2),)}),
        ("Did you mean: class.of", ["class_of"], {"disease": (DistinctL(2),)}),
        ("both sensitive and", KEY, {"class.of": (DistinctL(2),)}),
        ("without a model: disease", KEY, {"disease": ()}),
        ("No sensitive column", KEY, {}),
        ("at least one quasi-identifier", [], {"disease": (DistinctL(2),)}),
        ("ordered is for numbers and dates, not for string", KEY, {"disease": (TCloseness(0.5, "ordered"),)}),
    ]
    for message, columns, models in refused:
        with pytest.raises(ConfigurationError, match=message):
            verify_models(release, None, columns, models)
    with pytest.raises(ConfigurationError, match="another type than in the source: salary"):
        verify_models(release, release.withColumn("salary", F.lit("1")), KEY, {"salary": (DistinctL(2),)})
    with pytest.raises(ConfigurationError, match="Column disease: a map"):
        mapped = release.withColumn("disease", F.create_map(F.lit("k"), F.col("disease")))
        verify_models(mapped, None, KEY, {"disease": (DistinctL(2),)})


def test_more_values_than_can_be_compared(spark: SparkSession) -> None:
    number = F.col("id")
    many = spark.range(2 * MOST_VALUES + 2).select(
        F.lit("A").alias("class"), (number % 2).alias("few"), number.alias("many"), (number % MOST_VALUES).alias("most")
    )
    models: dict[str, tuple[Model, ...]] = {name: (DistinctL(2),) for name in ("few", "most")}
    assert all(verify_models(many, None, ["class"], models))
    with pytest.raises(LimitExceeded, match=f"Column many has more than {MOST_VALUES} distinct values.*Bin it"):
        verify_models(many, None, ["class"], {**models, "many": (DistinctL(2),)})
