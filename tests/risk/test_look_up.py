"""Risk as plain numbers: an attack that must succeed on the raw table, must not on the release, and would show a leak."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from anon_spark.auditing.reading.classes import published_classes
from anon_spark.errors import ConfigurationError
from anon_spark.risk import Homogeneity, Uniqueness, homogeneity, link_attack, uniqueness
from anon_spark.risk.look_up.link import link_attack_to_be
from tests.auditing.town import PEOPLE, QUASI, frame, honest, recoding, town


def test_uniqueness_before_and_after(spark: SparkSession) -> None:
    found = uniqueness(town(spark), frame(spark, honest()), QUASI)
    sizes = Counter(row[:2] for row in PEOPLE)
    assert found.before == Uniqueness(20, len(sizes), sum(1 for size in sizes.values() if size == 1))
    assert found.after == Uniqueness(18, 4, 0)
    assert found.after.share == 0.0 and found.before.share > 0.5
    assert Uniqueness(0, 0, 0).share == 0.0


def test_the_link_attack_succeeds_on_the_source_and_not_on_the_release(spark: SparkSession) -> None:
    sizes = Counter(row[:2] for row in PEOPLE)
    for partitions in (1, 2, 7):
        release = frame(spark, honest(), partitions=partitions)
        found = link_attack(town(spark, partitions=partitions), release, recoding())
        assert (found.tuples, found.rows, found.found) == (len(sizes), 20, 18)
        assert found.before_expected == len(sizes) / 20 and found.before_worst == 1.0
        assert found.after_expected == pytest.approx(4 / 20) and found.after_worst == pytest.approx(1 / 3)


def test_the_link_attack_shows_a_small_class_and_a_row_that_escaped(spark: SparkSession) -> None:
    small = link_attack(town(spark), frame(spark, honest(k=2)), recoding())  # the class of two is published
    assert small.after_worst == 0.5 and small.found == 20
    raw = [*honest()[1:], ("20", "13051", "flu", 60.0)]
    assert link_attack(town(spark), frame(spark, raw), recoding()).after_worst == 1.0


def test_classes_that_the_audit_counted_are_those_of_the_release(spark: SparkSession) -> None:
    raw = [*honest()[1:], ("20", "13051", "flu", 60.0), (None, "13051", "flu", 61.0)]
    for rows in (honest(), raw):
        release = frame(spark, rows)
        counted = published_classes(release, QUASI)
        found = link_attack_to_be(town(spark), release, recoding(), 20, classes=counted).get()
        assert found == link_attack(town(spark), release, recoding(), rows=20)


def test_the_sample_is_bounded(spark: SparkSession) -> None:
    found = link_attack(town(spark), frame(spark, honest()), recoding(), tuples=5, rows=20)
    assert found.tuples == 5


def test_homogeneity_is_what_k_anonymity_does_not_cover(spark: SparkSession) -> None:
    disease, weight = homogeneity(frame(spark, honest()), QUASI, ["disease", "weight"])
    assert disease == Homogeneity("disease", 18, 4, 8, 2)  # all flu in one class, all cold in another
    assert weight == Homogeneity("weight", 18, 4, 7, 2)  # one weight for all; null for all
    assert disease.share == 8 / 18
    assert homogeneity(frame(spark, honest()), QUASI, []) == []
    with pytest.raises(ConfigurationError, match="Did you mean: disease"):
        homogeneity(frame(spark, honest()), QUASI, ["diseas"])
