"""Synthetic populations with known uniques, and estimates from samples of them. numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon_spark.assessment.population.estimates import estimated_uniques
from jobs.markdown import table

SHAPES = ("uniform", "zipf", "mixture", "gamma", "census")
FRACTIONS = (0.01, 0.05, 0.1, 0.3)
PEOPLE = 1_000_000
CLOSE = 0.3  # an estimate that claims to hold is at most so far off

People = NDArray[np.int64]


def drawn(shape: str, people: int, seed: int) -> People:
    """The class of each person. uniform: as many equally likely classes as people; zipf: exponent 1.5; mixture: 70 % in few large
    classes, 25 % in medium ones, 5 % nearly alone; gamma: unequal classes; census: five independent columns.
    """
    rng = np.random.default_rng(seed)
    if shape == "uniform":
        return rng.integers(0, people, people)
    if shape == "zipf":
        return np.minimum(rng.zipf(1.5, people), 10**9)
    if shape == "mixture":
        large, medium = int(0.7 * people), int(0.25 * people)
        parts = [
            rng.integers(0, people // 500, large),
            rng.integers(0, 3 * people // 10, medium) + 10**9,
            rng.integers(0, 10 * people, people - large - medium) + 2 * 10**9,
        ]
        return np.concatenate(parts)
    if shape == "gamma":
        weights = rng.gamma(0.2, size=people // 2)
        return rng.choice(people // 2, people, p=weights / weights.sum()).astype(np.int64)
    classes = np.zeros(people, dtype=np.int64)
    for values, exponent in ((100, 0.3), (2, 0.0), (16, 0.8), (people // 1000, 0.9), (7, 0.5)):
        weights = 1 / np.arange(1, values + 1) ** exponent
        classes = classes * values + rng.choice(values, people, p=weights / weights.sum())
    return classes


def histogram(classes: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes of classes, ascending, and how many classes have each."""
    sizes, count = np.unique(np.unique(classes, return_counts=True)[1], return_counts=True)
    return sizes.astype(np.float64), count.astype(np.float64)


def simulated(people: int = PEOPLE, fractions: Sequence[float] = FRACTIONS, seed: int = 1) -> list[dict[str, Any]]:
    """Estimates with their errors, for every shape and fraction."""
    found = []
    for shape in SHAPES:
        population = drawn(shape, people, seed)
        true = int((np.unique(population, return_counts=True)[1] == 1).sum())
        rng = np.random.default_rng(seed + 1)
        for fraction in fractions:
            estimate = estimated_uniques(*histogram(population[rng.random(people) < fraction]), fraction)
            found.append({"shape": shape, "fraction": fraction, "true": true, "estimate": estimate})
    return found


def simulation_text(found: Sequence[dict[str, Any]]) -> str:
    """The simulation as Markdown, with a verdict that is computed."""
    rows = []
    for one in found:
        estimate, true = one["estimate"], one["true"]
        numbers = (estimate.zayatz, estimate.slide_negative_binomial, estimate.pitman, estimate.estimate)
        errors = ["–" if number is None else f"{number / true - 1:+.0%}" for number in numbers]
        claims = "yes" if estimate.holds else "no"
        rows.append([one["shape"], f"{one['fraction']:.0%}", f"{true:,}", *errors[:3], estimate.chosen, errors[3], claims])
    claimed = [one for one in found if one["estimate"].holds]
    kept = [one for one in claimed if abs(one["estimate"].estimate / one["true"] - 1) <= CLOSE]
    head = ["population", "sample", "uniques", "Zayatz", "slide neg. bin.", "Pitman", "chosen", "its error", "claims to hold"]
    return "\n\n".join(
        [
            f"### Uniques of populations of {PEOPLE:,} people (simulated; relative errors)",
            f"Of {len(found)} samples, {len(claimed)} have an estimate that claims to hold; **{len(kept)} of these are within "
            f"{CLOSE:.0%}**.",
            table(head, rows),
        ]
    )
