"""The paper's graph for l-diversity, to reproduce its figures: each record is adjacent to l distinct sensitive values.

A row publishes the value that the chosen assignment moves to it, and these values may coincide. So no guarantee follows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.set_valued.kernels.graphs import Graph
from anon_spark.families.set_valued.kernels.spacing import eligible, stride_graph, stride_order
from anon_spark.families.set_valued.kernels.walks import MORE_WORDS, pick, take_cycle, with_words
from anon_spark.kernels.bitmaps import Sets, Words, hamming
from anon_spark.kernels.classes import Codes, Ints

RESTARTS = 5
STEPS_PER_RECORD = 4
DONE, STUCK = 0, 1
NONE = -1


class Greedy(NamedTuple):
    """A greedy graph: slot r of each original is from round r; `matched` rounds needed a matching.

    With `stride`, `shift_rounds` are the only assignments that keep labels apart.
    """

    graph: Graph
    matched: int
    restarts: int
    stride: bool


def greedy_graph(sets: Sets, labels: Codes, l: int, key: str, block: int) -> Greedy:  # noqa: E741 - the l of l-diversity
    """l assignments, each by closed walks that prefer near and similar slots of new labels; records are in ring order.

    Guarantee: l edges for every original and slot, and the labels of an original's slots differ. A round whose walks get stuck
    is replaced by a perfect matching; if there is none the block restarts, and finally strides along the labels are used.
    Cost: at worst 4 × records² slots examined for each walk.
    """
    records = labels.size
    if not eligible(labels, l):
        raise GuaranteeUnreachable(f"Some label occurs in more than one of {l} records. Lower l.", l=l, records=records)
    for restart in range(1 + RESTARTS):
        slots, matched = np.empty((records, l), dtype=np.int32), 0
        for current in range(l):
            held = greedy_round(sets, labels, slots[:, :current], key, f"greedy {restart} {current}", block)
            if held is None:
                held, matched = allowed_matching(labels, slots[:, :current]), matched + 1
            if held.min() == NONE:
                break
            slots[:, current] = held
        else:
            graph = Graph(np.arange(records + 1) * l, slots.ravel(), np.zeros(records, dtype=np.int32))
            return Greedy(graph, matched, restart, False)
    return Greedy(strided(labels, l), 0, RESTARTS, True)


def strided(labels: Codes, l: int) -> Graph:  # noqa: E741
    """The stride graph between originals and slots in their given order."""
    order = stride_order(labels, l)
    graph = stride_graph(labels.size, l)
    slots = np.empty((labels.size, l), dtype=np.int32)
    slots[order] = order[graph.slots].reshape(labels.size, l)
    return graph._replace(slots=slots.ravel())


def greedy_round(sets: Sets, labels: Codes, earlier: Codes, key: str, purpose: str, block: int) -> Ints | None:
    """One more assignment by closed walks, given the slots of the earlier rounds; None if a walk got stuck."""
    met = labels[earlier]

    def attempt(words: Words) -> tuple[int, Ints] | None:
        outcome, held = walked_round(sets, labels, met, words)
        return None if outcome == MORE_WORDS else (outcome, held)

    outcome, held = with_words(attempt, key, purpose, block, 2 * labels.size)
    return held if outcome == DONE else None


@compiled
def walked_round(sets: Sets, labels: Codes, met: Codes, words: Words) -> tuple[int, Ints]:
    """One round of walks: outcome and slots. met[u]: labels of original u so far. STUCK: no slot left, or too long a walk."""
    records = labels.size
    held, holder = np.arange(records), np.arange(records)
    child, visited = np.empty(records, dtype=np.int64), np.zeros(records, dtype=np.int64)
    waiting, place = np.arange(records), np.arange(records)
    # slots that an original went to in this walk: a chain of steps for each original
    latest, walk_of = np.empty(records, dtype=np.int64), np.zeros(records, dtype=np.int64)
    before = np.empty(STEPS_PER_RECORD * records + 1, dtype=np.int64)
    went = np.empty(STEPS_PER_RECORD * records + 1, dtype=np.int64)
    count, used, number = records, 0, 0
    while count > 0:
        at, used = pick(words, used, count)
        if at == MORE_WORDS:
            return MORE_WORDS, held
        number += 1
        first = waiting[at]
        start = held[first]
        here, steps = start, 0
        while True:
            original = holder[here]
            if walk_of[original] != number:
                walk_of[original], latest[original] = number, NONE
            slot = greedy_pick(sets, labels, met, original, visited, number, latest[original], before, went)
            if slot == NONE or steps == STEPS_PER_RECORD * records:
                return STUCK, held
            before[steps], went[steps] = latest[original], slot
            latest[original] = steps
            steps += 1
            child[here] = slot
            here = np.int64(slot)
            if here == start:
                break
            visited[here] = number
        count = take_cycle(held, holder, child, first, waiting, place, count)
    return DONE, held


@inner
def greedy_pick(
    sets: Sets,
    labels: Codes,
    met: Codes,
    original: int,
    visited: Ints,
    number: int,
    latest: int,
    before: Ints,
    went: Ints,
) -> int:
    """The nearest slot by rank whose label is new to the original; ties: the more similar one, then the one ahead.

    Unvisited slots come first, at any distance (the start is never marked); else the nearest it did not go to before.
    """
    records, resort = labels.size, NONE
    for far in range(records // 2 + 1):
        ahead, behind = (original + far) % records, (original - far) % records
        nearest = NONE
        for side in range(1 if ahead == behind else 2):
            slot = ahead if side == 0 else behind
            if visited[slot] == number or is_met(labels[slot], met, original):
                continue
            if nearest == NONE or hamming(sets, original, slot) < hamming(sets, original, nearest):
                nearest = slot
        if nearest != NONE:
            return int(nearest)
        if resort != NONE:
            continue
        for side in range(1 if ahead == behind else 2):
            slot = ahead if side == 0 else behind
            if is_met(labels[slot], met, original) or went_to(slot, latest, before, went):
                continue
            if resort == NONE or hamming(sets, original, slot) < hamming(sets, original, resort):
                resort = slot
    return int(resort)


@inner
def is_met(label: int, met: Codes, original: int) -> bool:
    for at in range(met.shape[1]):
        if met[original, at] == label:
            return True
    return False


@inner
def went_to(slot: int, latest: int, before: Ints, went: Ints) -> bool:
    while latest != NONE:
        if went[latest] == slot:
            return True
        latest = before[latest]
    return False


def allowed_matching(labels: Codes, earlier: Codes) -> Ints:
    """A perfect matching of originals with slots whose labels are new to them, near ones first; contains -1 if there is none."""
    return matching_of(labels, labels[earlier])


@compiled
def matching_of(labels: Codes, met: Codes) -> Ints:
    """Matching by shortest augmenting paths, one original after the other; NONE from the first original without a path on."""
    records = labels.size
    held, holder = np.full(records, NONE, dtype=np.int64), np.full(records, NONE, dtype=np.int64)
    reached_by, seen = np.empty(records, dtype=np.int64), np.full(records, NONE, dtype=np.int64)
    queue = np.empty(records, dtype=np.int64)
    for newcomer in range(records):
        queue[0] = newcomer
        head, tail, free = 0, 1, NONE
        while head < tail and free == NONE:
            original = queue[head]
            head += 1
            for far in range(2 * (records // 2) + 1):
                step = (far + 1) // 2
                slot = (original + step) % records if far % 2 == 1 else (original - step) % records
                if seen[slot] == newcomer or is_met(labels[slot], met, original):
                    continue
                seen[slot], reached_by[slot] = newcomer, original
                if holder[slot] == NONE:
                    free = slot
                    break
                queue[tail] = holder[slot]
                tail += 1
        if free == NONE:
            return held
        while free != NONE:  # along the path, each original moves to the slot it reached
            original = reached_by[free]
            left = held[original]
            held[original], holder[free] = free, original
            free = left if original != newcomer else NONE
    return held
