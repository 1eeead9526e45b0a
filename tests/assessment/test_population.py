"""Estimates for the population against simulation, and chances in the population against their definition. No Spark."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from anon_spark.assessment.population.crowds import expected_chance
from anon_spark.assessment.population.estimates import PITMAN, estimated_uniques, population_facts, thinned
from anon_spark.assessment.population.special import Reals, digamma, digamma_of, log_gamma_ratio
from anon_spark.assessment.population.zayatz import zayatz_uniques
from jobs.benchmarks.risk.populations import SHAPES, drawn, histogram

PEOPLE = 100_000


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.3])
def test_estimates_that_claim_to_hold_do(shape: str, fraction: float) -> None:
    people = drawn(shape, PEOPLE, seed=1)
    uniques = int((np.unique(people, return_counts=True)[1] == 1).sum())
    rng = np.random.default_rng(2)

    estimate = estimated_uniques(*histogram(people[rng.random(PEOPLE) < fraction]), fraction)

    assert estimate.chosen is not None
    assert estimate.estimate is not None
    assert not estimate.holds or abs(estimate.estimate / uniques - 1) <= 0.3


def test_some_estimates_claim_to_hold() -> None:
    holding = []
    for shape in SHAPES:
        people = drawn(shape, PEOPLE, seed=3)
        sample = people[np.random.default_rng(4).random(PEOPLE) < 0.1]
        holding.append(estimated_uniques(*histogram(sample), 0.1).holds)
    assert any(holding)


def test_without_uniques_nobody_is_unique_in_the_population() -> None:
    estimate = estimated_uniques(np.array([3.0, 4.0, 5.0]), np.array([1.0, 1.0, 1.0]), 0.1)

    assert (estimate.estimate, estimate.holds) == (0.0, True)


def test_no_two_alike_leave_nothing_to_fit() -> None:
    estimate = estimated_uniques(np.array([1.0]), np.array([50.0]), 0.1)

    assert (estimate.pitman, estimate.slide_negative_binomial, estimate.holds) == (None, None, False)
    assert estimate.chosen == "Zayatz"


def test_whole_population_is_counted() -> None:
    facts = population_facts(np.array([1.0, 2.0]), np.array([3.0, 2.0]), np.array([3.0, 4.0]), 1.0, 7)

    assert (facts.uniques.estimate, facts.highest_chance, facts.size) == (3.0, 1.0, 7.0)
    assert facts.average_chance == pytest.approx(5 / 7)


def test_zayatz_by_hand() -> None:
    """Ten of 100 people: six classes of one and two of two; P(f = 1 | F = 2) = 2 · C(98, 9) / C(100, 10) = 2 / 11."""
    one, two = 0.1, 2 * math.comb(98, 9) / math.comb(100, 10)
    alone = 6 / 8 * one / (6 / 8 * one + 2 / 8 * two)

    assert zayatz_uniques(np.array([1.0, 2.0]), np.array([6.0, 2.0]), 100) == pytest.approx(6 * alone * 10)


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.5, 0.9])
def test_chance_in_the_population_is_the_expected_one(fraction: float) -> None:
    sizes = np.array([1.0, 2.0, 7.0, 300.0, 10_000.0, 20_000.0])

    assert expected_chance(sizes, fraction) == pytest.approx(_integral(sizes, fraction), rel=1e-7)


def _integral(sizes: Reals, fraction: float) -> list[float]:
    """∫₀¹ π y^(f−1) / (π + (1 − π) y) dy, by y = z^(1/f) and Gauss–Legendre in pieces."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    edges = np.concatenate([[0.0], np.geomspace(1e-14, 1, 60)])
    found = []
    for size in sizes.tolist():
        total = 0.0
        for low, high in pairwise(edges.tolist()):
            z = (high - low) / 2 * nodes + (high + low) / 2
            total += float((high - low) / 2 * weights @ (fraction / (fraction + (1 - fraction) * z ** (1 / size))))
        found.append(total / size)
    return found


def test_special_functions() -> None:
    euler = 0.5772156649015329
    assert digamma(1.0) == pytest.approx(-euler, rel=1e-14)
    assert digamma_of(np.array([0.5, 1.0, 25.0])) == pytest.approx(
        [-euler - 2 * math.log(2), -euler, sum(1 / n for n in range(1, 25)) - euler], rel=1e-14
    )
    assert log_gamma_ratio(2e6, 3.0) == pytest.approx(math.log(2e6) + math.log(2e6 + 1) + math.log(2e6 + 2), rel=1e-12)
    assert log_gamma_ratio(2.5, 2.0) == pytest.approx(math.log(2.5 * 3.5))


def test_thinning_keeps_the_expected_records() -> None:
    sizes, classes = np.array([1.0, 5.0, 900.0]), np.array([1000.0, 400.0, 30.0])

    thin_sizes, thin_classes = thinned(sizes, classes, 0.2)

    assert thin_sizes @ thin_classes == pytest.approx(0.2 * (sizes @ classes), rel=1e-3)
    assert thin_classes[0] == pytest.approx(0.2 * 1000 + 400 * 5 * 0.2 * 0.8**4, rel=1e-6)


def test_choice_follows_the_fraction() -> None:
    people = drawn("zipf", PEOPLE, seed=5)
    rng = np.random.default_rng(6)
    chosen = {
        fraction: estimated_uniques(*histogram(people[rng.random(PEOPLE) < fraction]), fraction).chosen for fraction in (0.1, 0.2)
    }

    assert chosen[0.1] == PITMAN
    assert chosen[0.2] != PITMAN
