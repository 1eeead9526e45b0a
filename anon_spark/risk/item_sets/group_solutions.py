"""Whether the rows of a group leave one possibility for its records: what an attacker can work out without knowing any."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby

MOST_STEPS = 20_000


class _TooLong(Exception):
    pass


@cache
def is_unique(size: int, absent: int, present: int, errors: int) -> bool | None:
    """Whether a group's records, as a multiset, follow from what it publishes; None if that takes too long to say.

    size: of the group; absent, present: uncertain items outside and inside the base; errors: the most items in which a record
    differs from the base. Every uncertain item differs from the base in one record at least, and in at most half of them (inside
    the base: in fewer than half).
    """
    steps = iter(range(MOST_STEPS))
    limits = [size // 2] * absent + [(size - 1) // 2] * present
    try:
        solutions = _solutions([()] * size, limits, 0, errors, steps)
        return next(solutions, None) is not None and next(solutions, None) is None
    except _TooLong:
        return None


Records = list[tuple[int, ...]]  # the items in which each record differs from the base, sorted


def _solutions(records: Records, limits: list[int], item: int, errors: int, steps: Iterator[int]) -> Iterator[Records]:
    """All ways to give the items from this one on to records; every multiset of records once."""
    if next(steps, None) is None:
        raise _TooLong
    left = len(limits) - item
    if max(map(len, records)) + left < errors:
        return
    if left == 0:
        yield records
        return
    alike = [list(same) for _, same in groupby(records)]  # which of equal records gets the item makes no difference
    for counts in _shares([len(same) for same in alike], limits[item]):
        if sum(counts) == 0 or any(count and len(same[0]) == errors for count, same in zip(counts, alike, strict=True)):
            continue
        given = [
            (*record, item) if at < count else record
            for count, same in zip(counts, alike, strict=True)
            for at, record in enumerate(same)
        ]
        yield from _solutions(sorted(given), limits, item + 1, errors, steps)


def _shares(room: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """How many records of each kind get an item, at most so many together."""
    if not room:
        yield ()
        return
    for count in range(min(room[0], most) + 1):
        for rest in _shares(room[1:], most - count):
            yield (count, *rest)
