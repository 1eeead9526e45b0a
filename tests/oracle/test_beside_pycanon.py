"""The brute force of the models beside pycanon, where that is right. Skipped where it is not installed.

pycanon pins exact versions of numpy, pandas and others, so it is no dependency: `pip install --no-deps pycanon` is enough here.
What differs, by their definition or by rounding:

| measure | pycanon | here |
| --- | --- | --- |
| entropy l | rounded down to a whole number, after rounding of floats: two equal halves give 1 | exp of the entropy: two give 2 |
| recursive (c, l) | the least whole c, for the smallest number of values of any class | any c, any l |
| δ-disclosure | values that a class lacks are left out | a class that lacks a value fails |
| enhanced β-likeness | the table's β is the smaller of β and the least −ln q of any value | each value has its own bound |
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pycanon = pytest.importorskip("pycanon.anonymity")

TABLES = st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 4), st.sampled_from("xyz")), min_size=4, max_size=20)


def shares(values: list[object], of: list[object]) -> list[Fraction]:
    return [Fraction(values.count(value), len(values)) for value in sorted(set(of), key=str)]


def measures(rows: list[tuple[str, int, str]]) -> dict[str, float]:
    """By the definitions, in plain Python."""
    found: dict[str, list[float]] = {"l": [], "entropy": [], "t": [], "ordered": [], "beta": []}
    words: list[object] = [word for _, _, word in rows]
    numbers = sorted({number for _, number, _ in rows})
    for one in {name for name, _, _ in rows}:
        inside: list[object] = [word for name, _, word in rows if name == one]
        p, q = shares(inside, words), shares(words, words)
        found["l"].append(len(set(inside)))
        found["entropy"].append(exp(-sum(float(share) * log(share) for share in p if share)))
        found["t"].append(float(sum(abs(mine - whole) for mine, whole in zip(p, q, strict=True)) / 2))
        gains = [(mine - whole) / whole for mine, whole in zip(p, q, strict=True) if mine > whole]
        found["beta"].append(float(max(gains, default=0)))
        ahead, far = Fraction(0), Fraction(0)
        of_class = [number for name, number, _ in rows if name == one]
        for number in numbers[:-1]:
            every = sum(other == number for _, other, _ in rows)
            ahead += Fraction(of_class.count(number), len(of_class)) - Fraction(every, len(rows))
            far += abs(ahead)
        found["ordered"].append(float(far / (len(numbers) - 1)) if len(numbers) > 1 else 0.0)
    return {name: min(values) if name in ("l", "entropy") else max(values) for name, values in found.items()}


@settings(max_examples=100, deadline=None)
@given(TABLES)
def test_models_agree_with_pycanon(rows: list[tuple[str, int, str]]) -> None:
    table = pd.DataFrame(rows, columns=["class", "number", "word"])
    mine = measures(rows)
    assert pycanon.l_diversity(table, ["class"], ["word"]) == mine["l"]
    assert pycanon.entropy_l_diversity(table, ["class"], ["word"]) in {int(mine["entropy"] + off) for off in (-1e-9, 1e-9)}
    assert pycanon.t_closeness(table, ["class"], ["word"]) == pytest.approx(mine["t"])
    if table["number"].nunique() > 1:
        assert pycanon.t_closeness(table, ["class"], ["number"]) == pytest.approx(mine["ordered"])
    assert pycanon.basic_beta_likeness(table, ["class"], ["word"]) == pytest.approx(mine["beta"])
