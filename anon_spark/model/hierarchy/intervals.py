"""Numbers in intervals: whole numbers with closed intervals above them, or half-open bins of a continuous range."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import numpy as np

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.coding import ROOT
from anon_spark.model.hierarchy.table import Counts, Floats, Kind, LevelTable
from anon_spark.model.hierarchy.values import BinGrid, canonical_number, number_key

Number = int | float | str | Decimal

MAX_LEAVES = 1_000_000
_INT64 = 2**63 - 1


def whole_numbers(start: Number, stop: Number, widths: Sequence[Number]) -> LevelTable:
    """Leaves start, start + 1, …, stop; above them closed intervals '[17, 19]' anchored at start, clipped at stop.

    Losses are hi - lo over stop - start, so a leaf loses nothing.
    """
    low, high = _exact(start, "from"), _exact(stop, "to")
    steps = [_exact(width, "widths") for width in widths]
    if any(number.denominator != 1 for number in (low, high, *steps)):
        raise HierarchyError(
            "intervals: exact intervals need whole numbers in from, to and widths. "
            "Say exact: false for bins of a continuous range."
        )
    if high < low:
        raise HierarchyError("intervals: 'to' lies below 'from'. Swap them.")
    _check_widths(steps)
    if steps and steps[0] == 1:
        raise HierarchyError("intervals: a width of 1 repeats the values themselves. Begin with 2 or more.")
    leaves = _check_count(high - low + 1)
    keys = [str(int(low) + leaf) for leaf in range(leaves)]
    return _build("number", low, high, steps, keys, leaves, 1, closed=True)


def bins(start: Number, stop: Number, widths: Sequence[Number]) -> LevelTable:
    """Leaves are the bins '[33, 38)' of the first width, the last one closed at stop; wider bins above them.

    Losses are widths over stop - start, so even a leaf loses something. Decimals are exact.
    """
    low, high = _exact(start, "from"), _exact(stop, "to")
    steps = [_exact(width, "widths") for width in widths]
    if not steps:
        raise HierarchyError("intervals: bins need at least one width. Add one, or say exact: true for whole numbers.")
    if high <= low:
        raise HierarchyError("intervals: 'to' must lie above 'from'.")
    _check_widths(steps)
    leaves = _check_count(-((low - high) // steps[0]))
    return _build("bins", low, high, steps, None, leaves, steps[0], closed=False)


def _build(
    kind: Kind,
    low: Fraction,
    high: Fraction,
    steps: Sequence[Fraction],
    keys: list[str] | None,
    leaves: int,
    unit: Fraction | int,
    closed: bool,
) -> LevelTable:
    """One level of labels per width over `leaves` leaves of width `unit`, all arithmetic on scaled integers."""
    scale = lcm(low.denominator, high.denominator, *(step.denominator for step in steps))
    first, last = int(low * scale), int(high * scale)
    if max(abs(first), abs(last), last - first) > _INT64:
        raise HierarchyError("intervals: from, to and widths have too many digits together. Round them.")
    order = np.arange(leaves, dtype=np.int64)
    codes: list[Counts] = []
    labels: list[tuple[str, ...]] = []
    spans: list[tuple[list[int], list[int]]] = []
    if keys is not None:
        numbers = list(range(first, last + 1))
        codes.append(order)
        labels.append(tuple(keys))
        spans.append((numbers, numbers))
    for step in steps:
        width, leaves_each = int(step * scale), int(step / unit)
        code = order // leaves_each
        lows = [first + index * width for index in range(int(code[-1]) + 1)]
        highs = [min(lo + width - (1 if closed else 0), last) for lo in lows]
        codes.append(code)
        spans.append((lows, highs))
        closing = [closed or hi == last for hi in highs]
        labels.append(
            tuple(
                f"[{_plain(lo, scale)}, {_plain(hi, scale)}{']' if shut else ')'}"
                for lo, hi, shut in zip(lows, highs, closing, strict=True)
            )
        )
    codes.append(order * 0)
    labels.append((ROOT,))
    spans.append(([first], [last]))
    widths = [[hi - lo for lo, hi in zip(*span, strict=True)] for span in spans]
    # closed intervals keep hi - lo as they are; bins were scaled to integers and take the smallest such scale
    shared = 1 if closed else gcd(*(width for level in widths for width in level))
    table = np.stack(codes).astype(np.int32)
    bounds: tuple[tuple[Floats, Floats], ...] = tuple(
        (np.array([lo / scale for lo in lows]), np.array([hi / scale for hi in highs])) for lows, highs in spans
    )
    grid = None
    if kind == "bins":
        begin, end, width_text = (_plain(int(number * scale), scale) for number in (low, high, steps[0]))
        grid = BinGrid(Decimal(begin), Decimal(end), Decimal(width_text), leaves)
    return LevelTable(
        kind=kind,
        keys=labels[0],
        codes=table,
        labels=tuple(labels),
        leaves_below=tuple(np.bincount(code).astype(np.int64) for code in table),
        weights=tuple(np.array([width // shared for width in level], dtype=np.int64) for level in widths),
        weight_total=(last - first) // shared,
        bounds=bounds,
        bins=grid,
    )


def _exact(value: Number, where: str) -> Fraction:
    text = number_key(value)
    if text is None:
        raise HierarchyError(f"intervals: '{where}' must hold plain numbers.")
    return Fraction(text)


def _plain(number: int, scale: int) -> str:
    """Decimal text of number / scale; scale divides a power of ten because all inputs are decimals."""
    if scale == 1:
        return str(number)
    digits = 0
    while 10**digits % scale:
        digits += 1
    return canonical_number(f"{number * (10**digits // scale)}e-{digits}") or "0"


def _check_widths(steps: Sequence[Fraction]) -> None:
    if any(step <= 0 for step in steps):
        raise HierarchyError("intervals: widths must be positive.")
    for below, above in pairwise(steps):
        if above <= below or (above / below).denominator != 1:
            raise HierarchyError(
                "intervals: each width must be a larger multiple of the one before, as in [5, 10, 20]; "
                "otherwise intervals of two levels would overlap."
            )


def _check_count(leaves: Fraction | int) -> int:
    if leaves > MAX_LEAVES:
        raise HierarchyError(
            f"intervals: {int(leaves):,} leaves are more than {MAX_LEAVES:,}. "
            "Use bins (exact: false) with a larger first width.",
            leaves=int(leaves),
        )
    return int(leaves)
