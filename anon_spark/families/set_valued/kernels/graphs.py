"""Graphs of one block: originals and slots 0 … n - 1, and edges to the slots an original may be published as."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.kernels.bitmaps import Sets, Words, flips, width_of
from anon_spark.kernels.classes import Codes, Ints


class Graph(NamedTuple):
    """The slots of original u are slots[offsets[u] : offsets[u + 1]]; `part` numbers the rings or groups.

    Inside a part every original and every slot has the same number of edges, the part's degree.
    """

    offsets: Ints
    slots: Codes
    part: Codes


class Fields(NamedTuple):
    """The published fields of each slot: items of more than half of its originals, items on which they differ, most errors."""

    base: Words
    uncertain: Words
    errors: Ints


def ring_graph(records: int, k: int) -> Graph:
    """Ring graph: original i to slots i, i + 1, … i + k - 1, round the ring."""
    slots = (np.arange(records)[:, None] + np.arange(k)[None, :]) % records
    return Graph(np.arange(records + 1) * k, slots.ravel().astype(np.int32), np.zeros(records, dtype=np.int32))


def groups_graph(sizes: Ints) -> Graph:
    """Graph of groups of neighbouring originals: each original to all slots of its group."""
    part = np.repeat(np.arange(sizes.size), sizes)
    degree = sizes[part]
    offsets = np.concatenate([[0], np.cumsum(degree)])
    first = (np.cumsum(sizes) - sizes)[part]
    slots = np.arange(offsets[-1]) - np.repeat(offsets[:-1], degree) + np.repeat(first, degree)
    return Graph(offsets, slots.astype(np.int32), part.astype(np.int32))


@compiled
def published_fields(sets: Sets, graph: Graph) -> Fields:
    """The fields of every slot; ties of a vote go to "absent". Cost: edges × items of a record."""
    records, words = graph.part.size, sets.bits.shape[1]
    base, uncertain = np.zeros((records, words), dtype=np.uint64), np.zeros((records, words), dtype=np.uint64)
    errors = np.zeros(records, dtype=np.int64)
    offsets, originals = originals_by_slot(graph)
    counts = np.zeros(words * 64, dtype=np.int32)
    for slot in range(records):
        members = originals[offsets[slot] : offsets[slot + 1]]
        for record in members:
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                counts[sets.items[at]] += 1
        for record in members:
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                item = sets.items[at]
                bit = np.uint64(1) << np.uint64(item & 63)
                if 2 * counts[item] > members.size:
                    base[slot, item >> 6] |= bit
                if counts[item] < members.size:
                    uncertain[slot, item >> 6] |= bit
        width = width_of(base[slot])
        for record in members:
            errors[slot] = max(errors[slot], flips(sets, record, base[slot], width))
        for record in members:
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                counts[sets.items[at]] = 0
    return Fields(base, uncertain, errors)


@compiled
def originals_by_slot(graph: Graph) -> tuple[Ints, Codes]:
    """The edges of the graph, slot by slot."""
    records = graph.part.size
    offsets = np.zeros(records + 1, dtype=np.int64)
    for edge in range(graph.slots.size):
        offsets[graph.slots[edge] + 1] += 1
    for slot in range(records):
        offsets[slot + 1] += offsets[slot]
    fill = offsets[:-1].copy()
    originals = np.empty(graph.slots.size, dtype=np.int32)
    for original in range(records):
        for edge in range(graph.offsets[original], graph.offsets[original + 1]):
            originals[fill[graph.slots[edge]]] = original
            fill[graph.slots[edge]] += 1
    return offsets, originals


@compiled
def flips_by_edge(sets: Sets, graph: Graph, base: Words) -> Ints:
    """In how many items the original of each edge differs from the base of its slot."""
    widths = np.empty(graph.part.size, dtype=np.int64)
    for slot in range(widths.size):
        widths[slot] = width_of(base[slot])
    flipped = np.empty(graph.slots.size, dtype=np.int64)
    for original in range(graph.part.size):
        for edge in range(graph.offsets[original], graph.offsets[original + 1]):
            slot = graph.slots[edge]
            flipped[edge] = flips(sets, original, base[slot], widths[slot])
    return flipped


def error_rate(sets: Sets, graph: Graph, base: Words) -> float:
    """ER: over the originals that have items, the mean share of flipped bits in their slots."""
    size, degree = np.diff(sets.offsets), np.diff(graph.offsets)
    flipped = np.add.reduceat(flips_by_edge(sets, graph, base), graph.offsets[:-1])
    has_items = size > 0
    return float(np.mean(flipped[has_items] / (size[has_items] * degree[has_items]))) if has_items.any() else 0.0
