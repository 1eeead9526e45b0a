"""Draws per row, independent of tasks: each is a hash of (number of the row or person, seed, purpose).

A table made of them depends on its arguments alone, never on partitions, executors or retries. A weighted draw is one
look-up in Walker's alias table, whatever the number of values: long CASE chains outgrow what the JVM compiles.
Weights are literals in the plan: they describe an invented world, not records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

Weights = Mapping[Any, int]  # value (text or whole number) → its share of the sum
Case = tuple[Column, Weights]  # the weights that hold where the condition does

GRAIN = 1_000_000  # a share is exact to a millionth


class Draws:
    """Streams of draws, one per (unit, purpose); `unit` is the column that numbers the rows or persons."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def word(self, unit: str, purpose: str) -> Column:
        """64 bits, as a bigint."""
        stream = int.from_bytes(sha256(f"{self.seed} {purpose}".encode()).digest()[:8], "big", signed=True)
        return F.xxhash64(F.col(unit), F.lit(stream))

    def below(self, unit: str, purpose: str, bound: int) -> Column:
        """An integer from 0 to bound - 1."""
        return F.pmod(self.word(unit, purpose), F.lit(bound)).cast("int")

    def chance(self, unit: str, purpose: str, share: float) -> Column:
        """True for that share of the units."""
        return self.below(unit, purpose, GRAIN) < round(share * GRAIN)

    def pick(self, unit: str, purpose: str, otherwise: Weights, *cases: Case) -> Column:
        """A value, by the weights of the first case that holds, else by `otherwise`."""
        tables = [weights for _, weights in cases] + [otherwise]
        values = list(dict.fromkeys(value for weights in tables for value in weights))
        filled = [alias_table([weights.get(value, 0) for value in values]) for weights in tables]
        word = self.word(unit, purpose)
        slot = F.pmod(word, F.lit(len(values))).cast("int")
        if cases:  # the tables are concatenated
            starts = [(condition, F.lit(at * len(values))) for at, (condition, _) in enumerate(cases)]
            slot = slot + first_of(starts, F.lit(len(cases) * len(values)))
        fine = F.pmod(F.shiftrightunsigned(word, 24), F.lit(GRAIN))
        missed = fine >= F.get(constants([share for shares, _ in filled for share in shares]), slot)
        pairs = [values[index] for _, others in filled for here, other in enumerate(others) for index in (here, other)]
        return F.get(constants(pairs), 2 * slot + missed.cast("int"))

    def one_of(self, unit: str, purpose: str, values: Sequence[str]) -> Column:
        """A value, all equally likely."""
        return F.get(constants(values), self.below(unit, purpose, len(values)))


def shares(text: str) -> dict[str, int]:
    """Weights from "value share, value share"."""
    pairs = (part.strip().rsplit(" ", 1) for part in text.split(","))
    return {value: int(share) for value, share in pairs}


def alias_table(weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """Walker's alias table: slot i stands for itself with share[i] of GRAIN, else for other[i]."""
    total, size = sum(weights), len(weights)
    left = [weight * size for weight in weights]  # each slot holds `total` in the end
    share, other = [GRAIN] * size, list(range(size))
    small = [i for i in range(size) if left[i] < total]
    large = [i for i in range(size) if left[i] > total]
    while small:
        poor, rich = small.pop(), large[-1]
        share[poor], other[poor] = left[poor] * GRAIN // total, rich
        left[rich] -= total - left[poor]
        if left[rich] <= total:
            large.pop()
            if left[rich] < total:
                small.append(rich)
    return share, other


def first_of(branches: Sequence[tuple[Column, Column]], otherwise: Column) -> Column:
    """CASE WHEN over (condition, value) pairs."""
    if not branches:
        return otherwise
    (condition, value), *rest = branches
    case = F.when(condition, value)
    for condition, value in rest:
        case = case.when(condition, value)
    return case.otherwise(otherwise)


def constants(values: Sequence[str | int]) -> Column:
    """An array that is the same in every row."""
    if all(isinstance(value, int) for value in values):
        return F.expr(f"array({', '.join(map(str, values))})")
    return F.array(*(F.lit(value) for value in values))
