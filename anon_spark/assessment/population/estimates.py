"""Uniques of the population by three models, the choice among them, and whether the chosen one holds on the table itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anon_spark.assessment.population.crowds import expected_chance
from anon_spark.assessment.population.pitman import pitman_uniques
from anon_spark.assessment.population.slide import slide_uniques
from anon_spark.assessment.population.special import Reals
from anon_spark.assessment.population.zayatz import zayatz_uniques

ZAYATZ, SLIDE, PITMAN = "Zayatz", "slide negative binomial", "Pitman"
SMALL_FRACTION = 0.1  # up to which Pitman's model is chosen
TRUSTED = 0.25  # largest relative error, by both checks together, with which an estimate is said to hold
AGREEING = 0.3  # largest relative difference to Pitman's model where another was chosen
FEWEST = 30  # uniques of the thinned table below which the check says nothing

NOT_COVERED = (
    "The table is taken for a simple random sample of its population: whoever is in the population was as likely to get into "
    "the table as anybody else. Patients, customers and volunteers are no such sample of a country, and no estimate holds then.",
    "Estimates say how many people are unique, not who. A record that is unique in the table may be known to be in it.",
)


@dataclass(frozen=True)
class Uniques:
    """Estimated people who are alone with their values in the population; None where a model has no solution.

    chosen: by the sampling fraction, as Dankar et al. (2012) found best: up to 0.1 Pitman's model, above the smaller of
    Zayatz's and the slide negative binomial's; where the chosen one has no solution, Zayatz's. None if there is no estimate.
    error: of the chosen one, relative, when a part of the table of the same fraction has to tell the uniques of the table;
    spread: how far it moves with two standard errors of the numbers of pairs and triples, on which every model hangs; holds:
    whether both together are at most TRUSTED, and where another than Pitman's model was chosen, that one agrees.
    """

    zayatz: float | None
    slide_negative_binomial: float | None
    pitman: float | None
    chosen: str | None
    estimate: float | None
    error: float | None = None
    spread: float | None = None
    holds: bool = False


@dataclass(frozen=True)
class PopulationFacts:
    """What follows from the size of the population: chances of a record there, and people who are unique there.

    highest, average: of 1 / F over the records of the table, F being the expected crowd in the population.
    unique_share: the estimated uniques, of all people of the population, a person once for each combination of values.
    """

    fraction: float
    size: float
    highest_chance: float
    average_chance: float
    unique_share: float | None
    uniques: Uniques


def population_facts(sizes: Reals, classes: Reals, records: Reals, fraction: float, people: int) -> PopulationFacts:
    """The facts for a table of people whose classes have these sizes: how many classes, and how many records, each size has.

    Cost: arithmetic on distinct sizes, some hundredths of a second.
    """
    chances = expected_chance(sizes, fraction)
    uniques, combinations = estimated_uniques(sizes, classes, fraction), float(sizes @ classes) / fraction
    return PopulationFacts(
        fraction=fraction,
        size=people / fraction,
        highest_chance=float(chances.max()),
        average_chance=float(records @ chances / records.sum()),
        unique_share=None if uniques.estimate is None else uniques.estimate / combinations,
        uniques=uniques,
    )


def estimated_uniques(sizes: Reals, classes: Reals, fraction: float) -> Uniques:
    """Uniques of the population by every model, the chosen one, and its error on the table itself."""
    if fraction >= 1:
        alone = float(classes[sizes == 1].sum())
        return Uniques(alone, alone, alone, "the table is the population", alone, 0.0, 0.0, True)
    by_model = _by_model(sizes, classes, fraction)
    chosen = _choice(by_model, fraction)
    estimate = None if chosen is None else by_model[chosen]
    error = None if chosen is None else _error_on_itself(sizes, classes, fraction)
    spread = None if chosen is None or not estimate else _spread(sizes, classes, fraction, chosen, estimate)
    return Uniques(
        by_model[ZAYATZ], by_model[SLIDE], by_model[PITMAN], chosen, estimate, error, spread,
        holds=estimate == 0 or _holds(by_model, chosen, error, spread),
    )  # fmt: skip


def _holds(by_model: dict[str, float | None], chosen: str | None, error: float | None, spread: float | None) -> bool:
    if chosen is None or error is None or spread is None or abs(error) + spread > TRUSTED:
        return False
    pitman, estimate = by_model[PITMAN], by_model[chosen]
    return not pitman or estimate is None or abs(estimate / pitman - 1) <= AGREEING


def _spread(sizes: Reals, classes: Reals, fraction: float, chosen: str, estimate: float) -> float | None:
    """The relative change of the estimate if the sample had two standard errors more or fewer pairs and triples.

    Pairs tell how many classes there are, triples how unequal they are. None where a changed sample has no estimate.
    """
    squares = 0.0
    for size in (2, 3):
        error = math.sqrt(max(1.0, float(classes[sizes == size].sum())))
        changes = []
        for shift in (-2 * error, 2 * error):
            shifted = _estimate(chosen, *_changed(sizes, classes, size, shift), fraction)
            if shifted is None:
                return None
            changes.append(abs(shifted / estimate - 1))
        squares += max(changes) ** 2
    return math.sqrt(squares)


def _changed(sizes: Reals, classes: Reals, size: int, shift: float) -> tuple[Reals, Reals]:
    """So many more classes of a size, and as many fewer of one record that the records stay; none falls below 0."""
    counts = dict(zip(sizes.tolist(), classes.tolist(), strict=True))
    before = counts.get(size, 0.0)
    counts[size] = max(0.0, before + shift)
    counts[1.0] = max(0.0, counts.get(1.0, 0.0) - size * (counts[size] - before))
    kept = sorted(key for key, count in counts.items() if count > 0)
    return np.array(kept), np.array([counts[key] for key in kept])


def _by_model(sizes: Reals, classes: Reals, fraction: float) -> dict[str, float | None]:
    return {name: _estimate(name, sizes, classes, fraction) for name in (ZAYATZ, SLIDE, PITMAN)}


def _estimate(name: str, sizes: Reals, classes: Reals, fraction: float) -> float | None:
    """Uniques of the population by one model."""
    if not (sizes == 1).any():
        return 0.0
    if name == SLIDE:
        return slide_uniques(sizes, classes, fraction)
    model = zayatz_uniques if name == ZAYATZ else pitman_uniques
    return model(sizes, classes, float(sizes @ classes) / fraction)


def _choice(by_model: dict[str, float | None], fraction: float) -> str | None:
    preferred = [PITMAN] if fraction <= SMALL_FRACTION else [ZAYATZ, SLIDE]
    solved = {name: value for name in preferred if (value := by_model[name]) is not None}
    if solved:
        return min(solved, key=lambda name: solved[name])
    return ZAYATZ if by_model[ZAYATZ] is not None else None


def _error_on_itself(sizes: Reals, classes: Reals, fraction: float) -> float | None:
    """The relative error if the same choice had to tell the table's own uniques from a part of it of the same fraction.

    The part is the expected one, without chance: of a class of size j it has k records with the binomial chance. None where the
    part would be too small to say anything.
    """
    alone = float(classes[sizes == 1].sum())
    thin_sizes, thin_classes = thinned(sizes, classes, fraction)
    if alone == 0:
        return 0.0
    if thin_classes.size == 0 or thin_classes[0] < FEWEST:
        return None
    by_model = _by_model(thin_sizes, thin_classes, fraction)
    chosen = _choice(by_model, fraction)
    estimate = None if chosen is None else by_model[chosen]
    return None if estimate is None else estimate / alone - 1


def thinned(sizes: Reals, classes: Reals, fraction: float) -> tuple[Reals, Reals]:
    """Expected classes by size if each record stays with this chance; sizes without a thousandth of a class are left out."""
    spread = np.sqrt(sizes * fraction * (1 - fraction))
    most = int((sizes * fraction + 8 * spread + 12).max())
    expected = np.zeros(most + 1)
    for size, count, width in zip(sizes.tolist(), classes.tolist(), spread.tolist(), strict=True):
        low, high = int(max(0, size * fraction - 8 * width - 1)), int(min(size, size * fraction + 8 * width + 12))
        expected[low : high + 1] += count * _binomial(size, low, high, fraction)
    there = np.flatnonzero(expected[1:] >= 1e-3) + 1
    return there.astype(np.float64), expected[there]


def _binomial(size: float, low: int, high: int, fraction: float) -> Reals:
    """The chances that low … high of `size` records stay: the first by gamma functions, each next one by its ratio."""
    first = math.lgamma(size + 1) - math.lgamma(low + 1) - math.lgamma(size - low + 1)
    first += low * math.log(fraction) + (size - low) * math.log1p(-fraction)
    kept = np.arange(low, high, dtype=np.float64)
    steps = np.log((size - kept) / (kept + 1)) + math.log(fraction) - math.log1p(-fraction)
    return np.asarray(np.exp(first + np.concatenate([[0.0], np.cumsum(steps)])))
