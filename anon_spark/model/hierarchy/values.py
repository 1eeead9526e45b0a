"""Keys of source values, by which their leaves are found: the grammar of docs/values.md, in plain Python.

33, 33.0, Decimal("33.00") and the texts "33", "33.0", "3.3e1" are one number; a timestamp is its calendar day; a
truth value is the text 'true' or 'false'. A value without key is unseen: never guessed, never rounded. The audit has its
own implementation in Spark expressions (auditing/reading/spelling.py): change both together, and the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from anon_spark.errors import HierarchyError

_SPACE = r"[ \t\n\x0B\f\r]*"
NUMBER = rf"{_SPACE}([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{{1,6}}))?{_SPACE}"  # with a digit before any e
_SPELLED = re.compile(NUMBER)
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9][ -~]*)?")
MAX_DIGITS = 400  # more than any double needs; keeps '1e999999' from becoming a megabyte
BORDER_DIGITS = 18  # of a border of bins, before the point and after it


def canonical_number(text: str) -> str | None:
    """The canonical spelling of a number: '33.00', '+33', '3.3e1' are '33'; None if it is no finite number.

    Guarantee: two texts have the same spelling iff they are the same number, exactly (no rounding to doubles).
    """
    match = _SPELLED.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, exponent = match.group(1), match.group(2), match.group(3) or "", match.group(4)
    if not whole and not fraction:
        return None
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) - len(fraction)
    kept = digits.rstrip("0")
    power += len(digits) - len(kept)
    if not kept:
        return "0"
    if len(kept) + abs(power) > MAX_DIGITS:
        return None
    if power >= 0:
        plain = kept + "0" * power
    elif len(kept) > -power:
        plain = f"{kept[:power]}.{kept[power:]}"
    else:
        plain = "0." + "0" * (-power - len(kept)) + kept
    return f"-{plain}" if sign == "-" else plain


def is_truth(value: object) -> bool:
    """Whether a value is a truth value, which Python would otherwise count as the number 0 or 1."""
    return isinstance(value, (bool, np.bool_))


def number_key(value: object) -> str | None:
    """Canonical number of a number or of a text that spells one; None for everything else, NaN included."""
    if is_truth(value):
        return None
    if isinstance(value, str):
        return canonical_number(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, (Decimal, Real)):
        return canonical_number(str(value))
    return None


def is_number(value: object) -> bool:
    """Whether a value is a number by type (a text that spells one is not)."""
    return isinstance(value, (Real, Decimal)) and not is_truth(value)


def calendar_day(value: object) -> str | None:
    """ISO day of a date, a timestamp or a text that starts with one ('2020-03-01 12:00:00'); else None.

    After the day of a text may stand T or a space, then a digit, then printable ASCII characters only. A timestamp with a
    zone is the day it shows in that zone.
    """
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    match = _DAY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        return date.fromisoformat(match.group(1)).isoformat()
    except ValueError:
        return None


def text_key(value: object) -> str | None:
    """The text by which a value that is no number is looked up: itself, 'true'/'false', an ISO day or timestamp."""
    if isinstance(value, str):
        return value
    if is_truth(value):
        return "true" if value else "false"
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
        return text.rstrip("0") if value.microsecond and value.tzinfo is None else text
    if isinstance(value, date):
        return value.isoformat()
    return None


@dataclass(frozen=True)
class BinGrid:
    """Half-open bins of equal width over [start, stop]; the last one is closed (and may be narrower)."""

    start: Decimal
    stop: Decimal
    width: Decimal
    count: int

    def __post_init__(self) -> None:
        scaled = [Fraction(border) * 10**BORDER_DIGITS for border in (self.start, self.stop, self.width)]
        if any(border.denominator != 1 or abs(border) >= 10 ** (2 * BORDER_DIGITS) for border in scaled):
            raise HierarchyError(
                f"intervals: from, to and widths of bins may have {BORDER_DIGITS} digits before the point and "
                f"{BORDER_DIGITS} after it. Round them."
            )

    def index(self, value: object) -> int | None:
        """Bin of a number, computed exactly (0.3 with width 0.1 is in [0.3, 0.4)); None outside [start, stop]."""
        key = number_key(value)
        if key is None:
            return None
        number, start = Fraction(key), Fraction(self.start)
        if not start <= number <= Fraction(self.stop):
            return None
        return min(int((number - start) // Fraction(self.width)), self.count - 1)
