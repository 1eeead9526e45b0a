"""The fields of a nonreciprocal recoding, computed afresh: what the records behind a row have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.auditing.reading.item_sets import Ints, Lists, Marks, offsets_of
from anon_spark.compiled import compiled, inner


class Faults(NamedTuple):
    """Edges whose record and row differ in an item that is not uncertain; others that differ in too many; rows that do not say
    exactly what their records share."""

    outside: int
    too_many: int
    loose: int


def faults_of(records: Lists, record: Ints, row: Ints, base: Lists, uncertain: Lists, most: Ints, items: int) -> Faults:
    """The faults of rows and of their edges (record[e], row[e]); all lists are sets. A row without edges has none.

    Cost: edges × items of a record.
    """
    rows = most.size
    behind = offsets_of(np.bincount(row, minlength=rows)), record[np.argsort(row, kind="stable")]
    return Faults(*row_faults(records, behind, base, uncertain, most, max(1, items)))


@compiled
def row_faults(
    records: Lists, behind: Lists, base: Lists, uncertain: Lists, most: Ints, items: int
) -> tuple[int, int, int]:
    """As `faults_of`. behind: the records of each row."""
    having = np.zeros(items, dtype=np.int64)
    in_base, in_uncertain = np.zeros(items, dtype=np.bool_), np.zeros(items, dtype=np.bool_)
    outside, too_many, loose = 0, 0, 0
    for row in range(most.size):
        members = behind[1][behind[0][row] : behind[0][row + 1]]
        if members.size == 0:
            continue
        mark(base, row, in_base, True)
        mark(uncertain, row, in_uncertain, True)
        width, certain, largest = base[0][row + 1] - base[0][row], 0, 0
        for at in range(base[0][row], base[0][row + 1]):
            certain += not in_uncertain[base[1][at]]
        for record in members:
            of_base, of_certain, strange = 0, 0, 0
            for at in range(records[0][record], records[0][record + 1]):
                item = records[1][at]
                having[item] += 1
                of_base += in_base[item]
                of_certain += in_base[item] and not in_uncertain[item]
                strange += not in_base[item] and not in_uncertain[item]
            errors = records[0][record + 1] - records[0][record] + width - 2 * of_base
            largest = max(largest, errors)
            if strange > 0 or of_certain < certain:
                outside += 1
            elif errors > most[row]:
                too_many += 1
        loose += largest != most[row] or not says_exactly(records, members, base, uncertain, row, having, in_base, in_uncertain)
        mark(base, row, in_base, False)
        mark(uncertain, row, in_uncertain, False)
        for record in members:
            for at in range(records[0][record], records[0][record + 1]):
                having[records[1][at]] = 0
    return outside, too_many, loose


@inner
def mark(lists: Lists, row: int, marks: Marks, value: bool) -> None:
    """Mark the items of a list, or take the marks off."""
    for at in range(lists[0][row], lists[0][row + 1]):
        marks[lists[1][at]] = value


@inner
def says_exactly(
    records: Lists, members: Ints, base: Lists, uncertain: Lists, row: int, having: Ints, in_base: Marks, in_uncertain: Marks
) -> bool:
    """Whether base has just the items of more than half of the members, and uncertain just those of some but not of all."""
    for record in members:
        for at in range(records[0][record], records[0][record + 1]):
            item = records[1][at]
            if in_base[item] != (2 * having[item] > members.size) or in_uncertain[item] != (having[item] < members.size):
                return False
    for lists in (base, uncertain):
        for at in range(lists[0][row], lists[0][row + 1]):
            if having[lists[1][at]] == 0:
                return False
    return True
