"""Whether the rows of a group leave one possibility for its records: what an attacker can work out without knowing any."""

from __future__ import annotations


def is_unique(size: int, absent: int, present: int, errors: int) -> bool:
    """Whether a group's records, as a multiset, follow from what it publishes.

    size: of the group; absent, present: uncertain items outside and inside the base; errors: the most items in which a record
    differs from the base. Every uncertain item differs from the base in one record at least, and in at most half of them (inside
    the base: in fewer than half). False also where no records fit.
    """
    items = absent + present
    if items == 0:
        return errors == 0
    most = [limit for count, limit in ((absent, size // 2), (present, (size - 1) // 2)) if count]
    if min(most) < 1 or not 1 <= errors <= items <= size * errors:
        return False
    if errors == 1 and items == size:
        return True  # one item for each record
    if items < size * errors and max(most) > 1:
        return False  # an item may go to one record more, which has room for it
    # every item differs in one record alone: all in the same, or each in another
    return errors == 1 or (errors == items and items < size * errors)
