"""Normalized average class size CAVG: how many times larger than k the classes are on average."""

from __future__ import annotations

from fractions import Fraction


def average_size(rows: int, classes: int, k: int) -> Fraction:
    """rows / (classes · k), 1 at best without suppression.

    rows: all rows of the input; suppressed rows are in no class, so they make the average worse.
    """
    return Fraction(rows, classes * k)
