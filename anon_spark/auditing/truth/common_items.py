"""The fields of a nonreciprocal recoding, computed afresh: what the records behind a row have in common."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from anon_spark.auditing.reading.item_sets import Ints, Lists

AT_ONCE = 1 << 22  # items of records that are counted at once, about


def loose_rows(
    records: Lists, record: Ints, row: Ints, base: Lists, uncertain: Lists, most: Ints, items: int
) -> int:
    """The number of rows that do not say exactly what the records of their edges (record[e], row[e]) share.

    Cost: edges × items of a record, in pieces of whole rows.
    """
    order = np.argsort(row, kind="stable")
    record, row = record[order], row[order]
    sizes = np.diff(records[0])
    ends = np.cumsum(sizes[record])
    pieces = np.unique(row[np.searchsorted(ends, np.arange(0, ends[-1] if ends.size else 0, AT_ONCE), side="right")])
    borders = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), np.searchsorted(row, pieces), [row.size]]))
    wrong = 0
    for low, high in pairwise(borders.tolist()):
        wrong += _loose_of(records, record[low:high], row[low:high], base, uncertain, most, max(1, items))
    return wrong


def _loose_of(records: Lists, record: Ints, row: Ints, base: Lists, uncertain: Lists, most: Ints, items: int) -> int:
    known, place, edges = np.unique(row, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    edge, item = _taken(records, record)
    pairs, counts = np.unique(place[edge] * items + item, return_counts=True)  # of a row and an item: records that have it
    of = edges[pairs // items]
    wrong = np.zeros(known.size, dtype=np.bool_)
    for expected, shown in ((pairs[2 * counts > of], base), (pairs[counts < of], uncertain)):
        owner, listed = _taken(shown, known)
        wrong[np.setxor1d(expected, np.unique(owner * items + listed)) // items] = True
    owner, listed = _taken(base, known)
    in_base = np.isin(place[edge] * items + item, owner * items + listed)
    shared = np.bincount(edge[in_base], minlength=record.size)
    errors = np.diff(records[0])[record] + np.diff(base[0])[row] - 2 * shared
    largest = np.zeros(known.size, dtype=np.int64)
    np.maximum.at(largest, place, errors)
    return int((wrong | (largest != most[known])).sum())


def _taken(lists: Lists, rows: Ints) -> tuple[Ints, Ints]:
    """The numbers of some lists, each with the position of its list among those taken."""
    sizes = np.diff(lists[0])[rows]
    owner = np.repeat(np.arange(rows.size), sizes)
    inside = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return owner, lists[1][np.repeat(lists[0][:-1][rows], sizes) + inside]
