"""Classes with too few sensitive values, and values that only look different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import verify, verify_l_diversity
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.guarantee import KAnonymity, LDiversity
from tests.auditing.town import Row, frame

NAMES = ["a.b", "zip", "disease", "salary"]
QUASI, SENSITIVE = NAMES[:2], NAMES[2:]
KINDS: list[pa.DataType] = [pa.string(), pa.string(), pa.string(), pa.float64()]
NAN = float("nan")

ROWS: list[Row] = [
    *((*group, disease, 1.0 * at) for group in (("x", "u"),) for at, disease in enumerate(("flu", "cold", "gout", "flu"))),
    *(("x", None, disease, salary) for disease, salary in (("flu", 1.0), ("cold", None), (None, 3.0))),  # null is a value
    *(("y", "u", disease, salary) for disease, salary in (("flu", 1.0), ("cold", NAN), ("gout", None))),  # NaN is null
    *(("z", "u", disease, salary) for disease, salary in (("flu", 0.0), ("flu", -0.0), ("flu", 5.0), ("flu", 6.0))),
]


def table(spark: SparkSession, rows: Sequence[Row], partitions: int | None = None) -> DataFrame:
    return frame(spark, rows, NAMES, KINDS, partitions)


def test_every_class_is_counted_in_every_column(spark: SparkSession) -> None:
    found = [verify_l_diversity(table(spark, ROWS, at), QUASI, SENSITIVE, 3) for at in (1, 2, 7)]
    verdict = found[0]
    assert all((other.facts, other.detail) == (verdict.facts, verdict.detail) for other in found)
    assert not verdict.passed and (verdict.violations, verdict.checked) == (2, 4)
    assert verdict.name == "distinct 3-diversity"
    assert verdict.facts["columns"] == {
        "disease": {"smallest": 1, "violations": 1},
        "salary": {"smallest": 2, "violations": 1},
    }
    assert (verdict.facts["smallest"], verdict.facts["rows_in_violation"], verdict.facts["rows"]) == (1, 7, 14)
    assert verdict.facts["average"] == (3 + 3 + 2 + 1) / 4
    assert verdict.frame is not None
    assert sorted(tuple(row) for row in verdict.frame.collect()) == [("y", "u", 3, 3, 2), ("z", "u", 4, 1, 3)]
    with pytest.raises(GuaranteeViolated, match="2 of 4 classes have fewer than 3 values in disease, salary") as raised:
        verdict.require()
    assert "flu" not in str(raised.value)


def test_exactly_l_passes_and_an_empty_release_does_not(spark: SparkSession) -> None:
    release = table(spark, ROWS[:7])
    assert verify(release, KAnonymity(3, QUASI), LDiversity(3, QUASI, SENSITIVE)).require().checked == 4
    failed = verify(release, LDiversity(4, QUASI, ["disease"]))  # the salaries of the first class would do
    assert not failed.passed and failed.violations == 2
    nothing = verify_l_diversity(release.where("zip = 'none'"), QUASI, SENSITIVE, 2)
    assert not nothing.passed and nothing.violations == 0 and "empty" in nothing.detail


def test_values_that_are_equal_to_their_collation_are_one_and_classes_are_not_joined_texts(spark: SparkSession) -> None:
    rows = [("x:", "y", "flu", 1.0), ("x", ":y", "cold", 2.0), ("x:", "y", "FLU", 2.0), ("x", ":y", "flu", 3.0)]
    release = table(spark, rows).withColumn("disease", F.collate("disease", "UTF8_LCASE"))
    verdict = verify_l_diversity(release, QUASI, SENSITIVE, 2)
    assert (verdict.checked, verdict.violations) == (2, 1) and verdict.facts["columns"]["salary"]["smallest"] == 2


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    release = table(spark, ROWS[:1])
    with pytest.raises(ConfigurationError, match="Did you mean: disease"):
        verify_l_diversity(release, QUASI, ["disese"], 2)
    with pytest.raises(ConfigurationError, match="Column disease: a map"):
        mapped = F.array(F.create_map(F.lit("k"), F.col("disease")))
        verify_l_diversity(release.withColumn("disease", mapped), QUASI, SENSITIVE, 2)


@pytest.mark.parametrize(
    ("l", "columns", "sensitive"),
    [(1, ["a"], ["s"]), (0, ["a"], ["s"]), (True, ["a"], ["s"]), (2.0, ["a"], ["s"]), ("2", ["a"], ["s"]), (2, [], ["s"]),
     (2, ["a"], []), (2, "a", ["s"]), (2, ["a"], "s"), (2, ["a", "a"], ["s"]), (2, ["a"], ["s", "s"]), (2, ["a", "s"], ["s"])],
)  # fmt: skip
def test_a_guarantee_that_protects_nothing_is_refused(l: Any, columns: Any, sensitive: Any) -> None:  # noqa: E741
    with pytest.raises(ConfigurationError):
        LDiversity(l, columns, sensitive)


def test_a_guarantee_is_a_value_that_says_how_far_it_reaches() -> None:
    guarantee = LDiversity(3, ["age", "zip"], ["disease"])
    assert guarantee == LDiversity(3, ("age", "zip"), ("disease",)) != LDiversity(3, ["age", "zip"], ["salary"])
    assert hash(guarantee) == hash(LDiversity(3, ("age", "zip"), ["disease"]))
    assert str(guarantee) == "distinct 3-diversity of disease on age, zip" and "at least l values" in guarantee.covers[0]
    limits = " ".join(guarantee.does_not_cover)
    assert all(word in limits for word in ("Probabilistic", "far more likely", "Similar values", "Presence", "releases"))
