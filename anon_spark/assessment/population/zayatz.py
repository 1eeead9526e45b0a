"""Zayatz's estimator of population uniques (Estimation of the number of unique population elements using a sample, 1991)."""

from __future__ import annotations

import math

import numpy as np

from anon_spark.assessment.population.special import Reals, log_gamma_ratio


def zayatz_uniques(sizes: Reals, classes: Reals, population: float) -> float | None:
    """Classes of one record in a population of so many, by Bayes' rule: a record that is alone in the sample may have been
    drawn from a class of any size, and these sizes are taken to be spread in the population as in the sample.

    That is nearly true of a large sample; a small one has too many small classes, and the estimate is too high.
    """
    records, total = float(sizes @ classes), float(classes.sum())
    single = float(classes[sizes == 1].sum())
    if single == 0:
        return 0.0
    if population < records or total == 0:
        return None
    drawn = np.array([_one_of(size, records, population) for size in sizes.tolist()])
    alone = single / total * _one_of(1, records, population) / float(classes / total @ drawn)
    return single * alone * population / records


def _one_of(size: float, records: float, population: float) -> float:
    """The chance that a sample holds just one record of a class of this size: size · C(N − size, n − 1) / C(N, n)."""
    others = population - records - size + 1  # outside the sample and outside the class
    if others < 0:
        return 0.0
    # n / N for the one record, and for each of the others the chance to be outside the sample
    outside = log_gamma_ratio(others + 1, size - 1) - log_gamma_ratio(population - size + 1, size - 1)
    return size * records / population * math.exp(outside)
