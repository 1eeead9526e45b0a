"""SetGen and BTD in the plain form: everything is counted anew for every merge, and every pair of item sets is looked at.

Compiled like the package's own kernels, so that a comparison is one of algorithms. Shares no code with them.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.families.relational_transaction.kernels.bit_distance import Distances, ItemLists
from anon_spark.kernels.bitmaps import Words, bitmaps, ones
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.transactions import Transactions

NOBODY = -1


def plain_merged_items(cluster: Transactions, k: int, m: int) -> Codes:
    """The smallest member of each item's generalized item, for m = 1 or 2, cost by occurrences, without l.

    Cost: per merge all rows, and a matrix of the generalized items.
    """
    items = int(cluster.items.max(initial=-1)) + 1
    return merge_plainly(cluster.offsets, cluster.items, cluster.times, items, k, min(m, 2))


@compiled
def merge_plainly(offsets: Ints, items: Codes, times: Ints, count: int, k: int, m: int) -> Codes:
    image = np.arange(count).astype(np.int32)
    occurrences = np.zeros(count, dtype=np.int64)
    for row in range(times.size):
        for at in range(offsets[row], offsets[row + 1]):
            occurrences[items[at]] += times[row]
    single = occurrences.copy()
    width = np.ones(count, dtype=np.int64)
    for size in range(1, m + 1):
        while True:
            one, other = rarest(offsets, items, times, image, count, k, size)
            if one == NOBODY:
                break
            keep, gone = cheapest(image, single, width, occurrences, one, other)
            if keep == NOBODY:
                break
            for item in range(count):
                if image[item] == gone:
                    image[item] = keep
            width[keep] += width[gone]
            occurrences[keep] += occurrences[gone]
    return image


@compiled
def rarest(offsets: Ints, items: Codes, times: Ints, image: Codes, count: int, k: int, size: int) -> tuple[int, int]:
    """The set of one or two generalized items with the least support below k, ties by its order."""
    support = np.zeros((count, count if size > 1 else 1), dtype=np.int64)
    labels = np.empty(count, dtype=np.int64)
    for row in range(times.size):
        found = 0
        for at in range(offsets[row], offsets[row + 1]):
            label = image[items[at]]
            is_new = True
            for place in range(found):
                is_new &= labels[place] != label
            if is_new:
                labels[found] = label
                found += 1
        for place in range(found):
            if size == 1:
                support[labels[place], 0] += times[row]
            for after in range(place + 1, found if size > 1 else 0):
                low, high = min(labels[place], labels[after]), max(labels[place], labels[after])
                support[low, high] += times[row]
    least, one, other = np.int64(k), NOBODY, NOBODY
    for low in range(support.shape[0]):
        for high in range(support.shape[1]):
            if 0 < support[low, high] < least:
                least, one, other = support[low, high], low, high if size > 1 else low
    return one, other


@compiled
def cheapest(image: Codes, single: Ints, width: Ints, occurrences: Ints, one: int, other: int) -> tuple[int, int]:
    """The merge of a member of the set that adds least to Σ size · occurrences; ties: fewer items, then their order."""
    best, best_width, keep, gone = 0, 0, NOBODY, NOBODY
    for place in range(2 if one != other else 1):
        member = one if place == 0 else other
        for label in range(image.size):
            if label == member or image[label] != label or single[label] == 0:
                continue
            wide = width[member] + width[label]
            price = wide * (occurrences[member] + occurrences[label])
            for part in (member, label):
                if width[part] > 1:
                    price -= width[part] * occurrences[part]
            is_better = keep == NOBODY or price < best or (price == best and wide < best_width)
            if not is_better and price == best and wide == best_width:
                for item in range(image.size):
                    mine = image[item] == member or image[item] == label
                    known = image[item] == keep or image[item] == gone
                    if mine != known:  # the first item that only one of the unions has
                        is_better = mine
                        break
            if is_better:
                best, best_width, keep, gone = price, wide, min(member, label), max(member, label)
    return keep, gone


def plain_distances(lists: ItemLists) -> Distances:
    """BTD of the union of every two clusters, on the diagonal their own. Cost: all pairs of item sets, bitmaps of all items."""
    items = lists.items.astype(np.int32)
    return all_pairs(lists.clusters, bitmaps(lists.sets, items, int(items.max(initial=-1)) + 1))


@compiled
def all_pairs(clusters: Ints, bits: Words) -> Distances:
    count = clusters.size - 1
    found = np.zeros((count, count))
    for one in range(count):
        for other in range(one, count):
            most = 0.0
            for first in range(clusters[one], clusters[one + 1]):
                for second in range(first + 1 if one == other else clusters[other], clusters[other + 1]):
                    both, either = 0, 0
                    for word in range(bits.shape[1]):
                        both += ones(bits[first, word] & bits[second, word])
                        either += ones(bits[first, word] | bits[second, word])
                    most = max(most, (either - both + 1) * either / (both + 1))
            found[one, other] = most
    distances = np.empty((count, count), dtype=np.float32)
    for one in range(count):
        for other in range(one, count):
            most = max(found[one, other], found[one, one], found[other, other])
            distances[one, other] = distances[other, one] = most
    return distances
