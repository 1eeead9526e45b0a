"""Distributions of published columns before and after, and sizes of crowds: counts for a report. No Spark.

Guarantee: a label is listed only if at least k rows of the release have it, or a label below it. Where a label is not listed or a
row was left out, counts of the source are rounded to multiples of k: no difference of two counts tells of fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anon_spark.model.facts import CrowdRange, Distribution, LabelCount, SizeRange
from anon_spark.model.hierarchy import Hierarchy

Ints = NDArray[np.int64]
Crowds = tuple[Mapping[int, int], int]  # rows by doublings of k of their crowd's size, -1 below k; rows in crowds of one

MOST_LABELS = 24
MOST_WIDER = 0.5  # share of rows with a wider label, above which coarser labels are listed
LONGEST_LABEL = 60
MOST_DOUBLINGS = 5  # of k, before the last range of crowds


def label_distribution(
    column: str,
    hierarchy: Hierarchy,
    source: Ints,
    shown: Sequence[Ints],
    k: int,
    often: Ints | None = None,
    published: int | None = None,
) -> Distribution:
    """The distribution of a column that is published as labels of its hierarchy.

    source: rows of the source by leaf; shown: rows of the release by level and code; often: by leaf, how many rows or persons
    have it, for the example; published: rows of the release, if not all of them were counted.
    """
    before, after = int(source.sum()), sum(int(counts.sum()) for counts in shown)
    level = _level(hierarchy, shown, k, after)
    inside = _inside(hierarchy, shown, level)
    in_source = np.bincount(hierarchy.codes[level], source, hierarchy.cardinality(level)).astype(np.int64)
    example = _example(hierarchy, source if often is None else often, shown, k)
    counted = [
        LabelCount(hierarchy.labels[level][code], int(in_source[code]), int(inside[code])) for code in range(inside.size)
    ]
    wider = after - int(inside.sum())
    return of_counts(column, "quasi-identifier", counted, k, before, published or after, wider, example)


def of_counts(
    column: str,
    role: str,
    counted: Iterable[LabelCount],
    k: int,
    rows_before: int,
    rows_after: int,
    wider: int = 0,
    example: tuple[str, str] | None = None,
) -> Distribution:
    """The distribution of counted labels, which may be incomplete. Their order is kept, the most frequent are listed."""
    known = [count for count in counted if count.before or count.after]
    frequent = sorted((count for count in known if count.after >= k), key=lambda count: -count.after)[:MOST_LABELS]
    listed = [count for count in known if count in frequent]
    rest_before = max(0, rows_before - sum(count.before for count in listed))
    rest_after = max(0, rows_after - wider - sum(count.after for count in listed))
    exact = rest_before == 0 and rest_after == 0 and rows_before == rows_after
    step = 1 if exact else k
    shown = tuple(LabelCount(_cut(count.label), _rounded(count.before, step), count.after) for count in listed)
    others = None if exact else LabelCount("others", _rounded(rest_before, step), rest_after)
    return Distribution(column, role, _rounded(rows_before, 1), rows_after, shown, others, wider, step, example)


def crowds_of(k: int, before: Mapping[int, int], alone: int, after: Sequence[SizeRange]) -> tuple[CrowdRange, ...]:
    """Shares of rows by the size of their crowd.

    before: rows of the source by doublings of k, -1 for crowds below k; alone: rows in crowds of one; after: published classes,
    in ranges that begin at k and double. k = 1 is read as 2.
    """
    k = max(2, k)
    of_release = {(size_range.least // k).bit_length() - 1: size_range.rows for size_range in after}
    return crowds_between(k, (before, alone), (of_release, of_release.get(-1, 0)))


def crowds_between(k: int, *before_and_after: Crowds) -> tuple[CrowdRange, ...]:
    """Shares of rows by the size of their crowd, of a release that may have crowds below k, too."""
    k = max(2, k)
    sizes, alone = [of for of, _ in before_and_after], [rows for _, rows in before_and_after]
    most = min(MOST_DOUBLINGS, max([0, *sizes[0], *sizes[1]]))

    def crowd(least: int, upper: int | None, rows: Sequence[int]) -> CrowdRange:
        before, after = (count / (sum(of.values()) or 1) for count, of in zip(rows, sizes, strict=True))
        return CrowdRange(least, upper, before, after)

    ranges = [crowd(1, 1, alone)]
    if k > 2:
        ranges.append(crowd(2, k - 1, [of.get(-1, 0) - single for of, single in zip(sizes, alone, strict=True)]))
    for doublings in range(most + 1):
        last = doublings == most
        rows = [sum(count for at, count in of.items() if at == doublings or (last and at > most)) for of in sizes]
        ranges.append(crowd(k << doublings, None if last else (k << (doublings + 1)) - 1, rows))
    return tuple(ranges)


def rows_by_doublings(sizes: Ints, rows: Ints, k: int) -> tuple[dict[int, int], int]:
    """What `crowds_of` reads of a table: rows by doublings of k of their crowd's size, and rows in crowds of one."""
    k = max(2, k)
    doublings = np.full(sizes.size, -1, dtype=np.int64)
    large = sizes >= k
    doublings[large] = np.floor(np.log2(sizes[large] // k)).astype(np.int64)
    kinds, place = np.unique(doublings, return_inverse=True)
    sums = np.bincount(place.reshape(-1), rows, kinds.size).astype(np.int64)
    return dict(zip(kinds.tolist(), sums.tolist(), strict=True)), int(rows[sizes == 1].sum())


def _level(hierarchy: Hierarchy, shown: Sequence[Ints], k: int, rows: int) -> int:
    """The finest level whose labels are few and not narrower than those of most rows."""
    fits = []
    for level in range(hierarchy.height + 1):
        inside = _inside(hierarchy, shown, level)
        wider = 1 - int(inside.sum()) / max(1, rows)
        if wider < 1 and 1 < int((inside >= k).sum()) <= MOST_LABELS:
            if wider <= MOST_WIDER:
                return level
            fits.append((wider, level))
    if fits:
        return min(fits)[1]
    present = [level for level, counts in enumerate(shown) if counts.sum()]
    return max(present, default=hierarchy.height)


def _inside(hierarchy: Hierarchy, shown: Sequence[Ints], level: int) -> Ints:
    """Rows of the release by label of a level: those that show it, or a label below it."""
    inside = np.zeros(hierarchy.cardinality(level), dtype=np.int64)
    for below in range(level + 1):
        above = np.zeros(hierarchy.cardinality(below), dtype=np.int64)
        above[hierarchy.codes[below]] = hierarchy.codes[level]
        np.add.at(inside, above, np.asarray(shown[below], dtype=np.int64))
    return inside


def _example(hierarchy: Hierarchy, often: Ints, shown: Sequence[Ints], k: int) -> tuple[str, str] | None:
    """A value of at least k rows and its label: the most frequent that is wider than the value, the widest only if no other is.

    None where most rows show the value itself.
    """
    if hierarchy.kind == "bins" or 2 * int(np.sum(shown[0])) > sum(int(np.sum(counts)) for counts in shown):
        return None  # the leaves are ranges already, or there is nothing to explain
    for level in (*range(1, hierarchy.height), hierarchy.height):
        counts = np.asarray(shown[level])
        if not counts.sum():
            continue
        leaves = np.flatnonzero((hierarchy.codes[level] == int(counts.argmax())) & (often >= k))
        leaves = leaves[leaves < len(hierarchy.keys)]  # the null leaf has no value
        if leaves.size:
            leaf, label = int(leaves[often[leaves].argmax()]), hierarchy.labels[level][int(counts.argmax())]
            value = str(hierarchy.keys[leaf])
            if label is not None and label != value:
                return str(_cut(value)), str(_cut(label))
    return None


def _cut(label: str | None) -> str | None:
    return label if label is None or len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def _rounded(count: int, step: int) -> int:
    return count if step == 1 else (count + step // 2) // step * step
