"""Exact decisions of models whose measures are logarithms, for classes that floats cannot tell from the limit.

Numbers of rows are integers and limits are fractions. A class at an entropy limit is found by prime numbers; in all other
cases the two sides differ, and decimals of growing precision decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

_FIRST_DIGITS = 40
_REMEMBERED = 100_000  # many classes are equally spread


@lru_cache(maxsize=_REMEMBERED)
def entropy_holds(counts: tuple[int, ...], least: Fraction) -> bool:
    """Whether exp(−Σ p ln p) ≥ least, that is n^n ≥ least^n Π c^c. counts: rows by value, in any order.

    Cost: no such power is computed; numbers are factored only if 40 digits cannot tell the sides apart.
    """
    rows, times = sum(counts), Counter(counts)

    def terms() -> list[Decimal]:
        values = [-(count * number) * Decimal(count).ln() for count, number in times.items()]
        limit = [rows * Decimal(least.denominator).ln(), -rows * Decimal(least.numerator).ln()]
        return [rows * Decimal(rows).ln(), *limit, *values]

    return _sign(terms, lambda: _equal_powers(rows, times, least)) >= 0


@lru_cache(maxsize=_REMEMBERED)
def gain_holds(count: int, rows: int, whole_count: int, whole_rows: int) -> bool:
    """Whether (p − q) / q ≤ −ln q, or p ≤ q, for p = count / rows and q = whole_count / whole_rows > 0.

    The sides are never equal: ln q of a fraction below 1 is no fraction.
    """
    gain = Fraction(count * whole_rows, rows * whole_count) - 1
    if gain <= 0:
        return True

    def terms() -> list[Decimal]:
        return [Decimal(whole_rows).ln(), -Decimal(whole_count).ln(), Decimal(-gain.numerator) / gain.denominator]

    return _sign(terms) > 0


@lru_cache(maxsize=_REMEMBERED)
def ratio_holds(count: int, rows: int, whole_count: int, whole_rows: int, most: Fraction) -> bool:
    """Whether |ln(p / q)| < most, for p = count / rows and q = whole_count / whole_rows, all of them above 0.

    The sides are never equal: a logarithm of a fraction other than 1 is no fraction.
    """
    above, below = count * whole_rows, rows * whole_count
    if above == below:
        return most > 0
    larger, smaller = max(above, below), min(above, below)

    def terms() -> list[Decimal]:
        return [Decimal(most.numerator) / most.denominator, Decimal(smaller).ln(), -Decimal(larger).ln()]

    return _sign(terms) > 0


def _sign(terms: Callable[[], Sequence[Decimal]], is_zero: Callable[[], bool] | None = None) -> int:
    """The sign of a sum. terms: its terms, each with at most two roundings; is_zero: asked at most once."""
    digits = _FIRST_DIGITS
    while True:
        with localcontext() as context:
            context.prec = digits
            parts = terms()
            total = sum(parts, Decimal(0))
            # each rounding, of a term or of a sum up to it, is off by at most 5 units behind the last digit
            doubt = 20 * len(parts) ** 2 * max(abs(part) for part in parts) * Decimal(10) ** -digits
            if abs(total) > doubt:
                return 1 if total > 0 else -1
        if is_zero is not None and digits == _FIRST_DIGITS and is_zero():
            return 0
        digits *= 2


def _equal_powers(rows: int, times: Counter[int], least: Fraction) -> bool:
    """Whether n^n = least^n Π c^c: every prime number divides both sides equally often."""
    primes = _primes([rows, *times])
    # each prime of the numerator divides n, and each of the denominator some c, if the sides are equal
    if any(_without(number, primes) != 1 for number in (least.numerator, least.denominator)):
        return False
    return all(
        rows * (_power(rows, prime) + _power(least.denominator, prime) - _power(least.numerator, prime))
        == sum(number * count * _power(count, prime) for count, number in times.items())
        for prime in primes
    )


def _primes(numbers: Iterable[int]) -> list[int]:
    """The prime numbers that divide any of some numbers. Cost: a square root of steps for each."""
    primes: list[int] = []
    for number in numbers:
        rest, divisor = _without(number, primes), 2
        while divisor * divisor <= rest:
            if rest % divisor == 0:
                primes.append(divisor)
                rest = _without(rest, [divisor])
            divisor += 1 if divisor == 2 else 2
        if rest > 1:
            primes.append(rest)
    return primes


def _without(number: int, primes: Iterable[int]) -> int:
    for prime in primes:
        number //= prime ** _power(number, prime)
    return number


def _power(number: int, prime: int) -> int:
    """How often a prime number divides a number."""
    power = 0
    while number % prime == 0:
        number //= prime
        power += 1
    return power
