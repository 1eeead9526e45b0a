"""Exact answers of the models for one class, with whole numbers and decimals of growing precision. No compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)

FIRST_DIGITS = 50


def holds(model: Model, counts: Sequence[int], totals: Sequence[int], levels: Any | None) -> bool:
    """Whether a class keeps a model. counts, totals: rows of each value in the class and in the table, by code.

    levels: for the hierarchical distance, the code of each value on each level below the root.
    """
    present = [count for count in counts if count]
    rows, table = sum(counts), sum(totals)
    match model:
        case DistinctL():
            return len(present) >= model.l
        case EntropyL():
            return _entropy_reaches(present, rows, model.l)
        case RecursiveCL():
            present.sort(reverse=True)
            return len(present) >= model.l and present[0] < model.c * sum(present[model.l - 1 :])
        case TCloseness(distance="ordered"):
            return _ordered(counts, totals) <= model.most * (len(totals) - 1) * rows * table
        case TCloseness():
            by_level = [range(len(counts))] if model.distance == "equal" else levels
            assert by_level is not None, "a hierarchical distance comes with its levels"
            far = sum(_apart(counts, totals, codes) for codes in by_level)
            return far <= 2 * model.most * len(by_level) * rows * table
        case BetaLikeness():
            shares = [(Fraction(count, rows), Fraction(total, table)) for count, total in zip(counts, totals, strict=True)]
            more = [(p, q) for p, q in shares if p > q]
            within = all(p - q <= model.most * q for p, q in more)
            return within and (not model.enhanced or all(_is_below_log(p / q - 1, 1 / q) for p, q in more))
        case DeltaDisclosure():
            if len(present) < len(totals):
                return False
            ratios = (Fraction(count * table, total * rows) for count, total in zip(counts, totals, strict=True))
            return all(_log_is_below(max(ratio, 1 / ratio), model.most) for ratio in ratios)


def _apart(counts: Sequence[int], totals: Sequence[int], codes: Sequence[int]) -> int:
    """Σ |p − q| over the codes of one level, times rows of the class and of the table."""
    rows, table = sum(counts), sum(totals)
    apart: dict[int, int] = {}
    for code, count, total in zip(codes, counts, totals, strict=True):
        apart[int(code)] = apart.get(int(code), 0) + count * table - total * rows
    return sum(map(abs, apart.values()))


def _ordered(counts: Sequence[int], totals: Sequence[int]) -> int:
    """Σ |Σ (p − q)| up to each value but the last, times rows of the class and of the table."""
    rows, table = sum(counts), sum(totals)
    far, ahead = 0, 0
    for count, total in list(zip(counts, totals, strict=True))[:-1]:
        ahead += count * table - total * rows
        far += abs(ahead)
    return far


def _entropy_reaches(present: Sequence[int], rows: int, l: Fraction) -> bool:  # noqa: E741 - the papers' name
    """Whether rows^rows ≥ l^rows · Π count^count."""
    # 1. equality, by the exponent of every prime
    exponents: dict[int, int] = {}
    powers = [(rows, rows), (l.denominator, rows), (l.numerator, -rows), *((count, -count) for count in present)]
    for number, power in powers:
        for prime, times in _primes(number).items():
            exponents[prime] = exponents.get(prime, 0) + times * power
    if not any(exponents.values()):
        return True

    # 2. else logarithms differ, and enough digits show how
    def above(logarithm: Callable[[Fraction], Decimal]) -> Decimal:
        terms = sum((count * logarithm(Fraction(count)) for count in present), Decimal(0))
        return rows * (logarithm(Fraction(rows)) - logarithm(l)) - terms

    return _is_positive(above)


@cache
def _primes(number: int) -> dict[int, int]:
    """The prime factors of a number with their exponents."""
    found: dict[int, int] = {}
    prime = 2
    while prime * prime <= number:
        while number % prime == 0:
            found[prime] = found.get(prime, 0) + 1
            number //= prime
        prime += 1
    if number > 1:
        found[number] = found.get(number, 0) + 1
    return found


def _is_below_log(gain: Fraction, inverse: Fraction) -> bool:
    """gain ≤ ln(inverse), for a positive gain: no such logarithm of a fraction is a fraction, so they differ."""
    return inverse > 1 and _is_positive(lambda logarithm: logarithm(inverse) - _decimal(gain))


def _log_is_below(ratio: Fraction, most: Fraction) -> bool:
    """ln(ratio) < most."""
    return ratio == 1 or _is_positive(lambda logarithm: _decimal(most) - logarithm(ratio))


def _is_positive(difference: Callable[[Callable[[Fraction], Decimal]], Decimal]) -> bool:
    """The sign of a difference of logarithms that is not 0, by as many digits as it needs."""
    digits = FIRST_DIGITS
    while True:
        with localcontext() as context:
            context.prec = digits
            found = difference(lambda number: _decimal(number).ln())
            if abs(found) > Decimal(10) ** (20 - digits):  # far above what rounding can add up to
                return found > 0
        digits *= 2


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
