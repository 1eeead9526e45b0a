"""Brute force for the family set_valued: orders, graphs, walks, publication, exactly as the rules stand.

Written from the specification alone and slow on purpose: it shares nothing with the package. A record is a frozenset of
items 1..b, an order a list of record numbers, a ring the records of one block by rank. On a ring, originals and slots are
both numbered by rank; a graph has one set of slots per original, an assignment one slot per original. Rates are exact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from math import comb
from random import Random
from typing import Any, NamedTuple

Record = frozenset[int]
Order = list[int]
Graph = Sequence[Collection[int]]  # post(i): the slots of original i
Assignment = list[int]  # the slot of original i
Label = Any  # hashable; strides sort them
Choose = Callable[[Sequence[int]], int]

SPAN = 325
MOST_SWEEPS = 20
OTHER_STARTS = 5


def hamming(one: Record, other: Record) -> int:
    return len(one ^ other)


# --- §3.1: Gray order ------------------------------------------------------------------------------------------------


def gray_codes(b: int) -> list[str]:
    """All bitmaps of b bits in the order of the reflected code: the definition."""
    if b == 0:
        return [""]
    shorter = gray_codes(b - 1)
    return ["0" + code for code in shorter] + ["1" + code for code in reversed(shorter)]


def gray_rank(record: Record, b: int) -> int:
    """The binary number whose j-th bit is the parity of the items 1..j."""
    rank, parity = 0, 0
    for item in range(1, b + 1):
        parity ^= item in record
        rank = 2 * rank + parity
    return rank


def gray_key(record: Record, b: int) -> list[int]:
    """[−p1, +p2, −p3, …] and a sentinel."""
    key = [item if at % 2 else -item for at, item in enumerate(sorted(record))]
    return [*key, b + 1 if len(record) % 2 else -(b + 1)]


def gray_order(records: Sequence[Record], b: int, rids: Sequence[int] | None = None) -> Order:
    """Record numbers by Gray rank; equal sets by rid (their number, when none is given)."""
    return sorted(range(len(records)), key=lambda at: (gray_rank(records[at], b), rids[at] if rids is not None else at))


def renumbered(records: Sequence[Record], item_order: str) -> list[Record]:
    """N-1: items numbered 1..b by id, or by falling or rising frequency; equally frequent ones by id."""
    count = Counter(item for record in records for item in record)
    sign = {"input": 0, "freq_desc": -1, "freq_asc": 1}[item_order]
    place = {item: at for at, item in enumerate(sorted(count, key=lambda item: (sign * count[item], item)), start=1)}
    return [frozenset(place[item] for item in record) for record in records]


# --- §3.2: segments --------------------------------------------------------------------------------------------------


def hops(records: Sequence[Record], order: Sequence[int]) -> list[int]:
    """h_1 … h_(n−1)."""
    return [hamming(records[one], records[other]) for one, other in pairwise(order)]


def smallest_segment(n: int, low: int, high: int) -> int:
    """N-3: `low`, or what it is lowered to when n is no sum of sizes in [low, high]."""
    if any(s * low <= n <= s * high for s in range(1, n + 1)):
        return low
    return n // -(-n // high)


def segmentation(h: Sequence[int], low: int, high: int) -> tuple[int, list[int]]:
    """C(n) and the sizes of the segments, by the recurrence; h_j is h[j − 1]."""
    n = len(h) + 1
    if n <= high:
        return 0, [n]
    low = smallest_segment(n, low, high)
    cost, back = {0: 0}, dict[int, int]()
    for i in range(1, n + 1):
        ways = [(cost[j] + (h[j - 1] if j else 0), j) for j in range(max(0, i - high), i - low + 1) if j in cost]
        if ways:
            cost[i], back[i] = min(ways)
    sizes, i = list[int](), n
    while i:
        sizes.append(i - back[i])
        i = back[i]
    return cost[n], sizes[::-1]


def segmentation_by_enumeration(h: Sequence[int], low: int, high: int) -> tuple[int, list[int]]:
    """The same over all ways to cut: the cheapest; among those the last cut as early as can be, then the one before."""
    n = len(h) + 1
    if n <= high:
        return 0, [n]
    low = smallest_segment(n, low, high)

    def cuts(end: int) -> Iterator[list[int]]:  # the cuts before `end`, last one first
        for j in range(end):
            if low <= end - j <= high:
                yield from ([j, *before] for before in cuts(j)) if j else [[]]

    cost, found = min((sum(h[j - 1] for j in way), way) for way in cuts(n))
    return cost, [other - one for one, other in pairwise([0, *reversed(found), n])]


def segments(order: Sequence[int], sizes: Sequence[int]) -> list[Order]:
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [list(order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


# --- §3.3: paths with fixed ends ---------------------------------------------------------------------------------------


def path_length(records: Sequence[Record], order: Sequence[int]) -> int:
    return sum(hops(records, order))


def cycle_length(records: Sequence[Record], order: Sequence[int]) -> int:
    return path_length(records, [*order, order[0]])


def shortest_path(records: Sequence[Record], segment: Sequence[int]) -> int:
    """Length of the best path from the first to the last record, over all permutations of the inner ones."""
    first, *inner, last = segment
    return min(path_length(records, [first, *way, last]) for way in permutations(inner))


def nearest_neighbour(records: Sequence[Record], segment: Sequence[int]) -> Order:
    """The start of N-4: from the first record always to the nearest inner one, ties by place; the last one stays last."""
    if len(segment) < 4:
        return list(segment)
    path, inner = [segment[0]], list(segment[1:-1])
    while inner:
        path.append(min(inner, key=lambda at: hamming(records[path[-1]], records[at])))
        inner.remove(path[-1])
    return [*path, segment[-1]]


def improving_moves(records: Sequence[Record], path: Sequence[int]) -> Iterator[Order]:
    """Shorter paths one move away, ends fixed: 2-opt, or a chain of 1–3 moved without turning it."""
    n = len(path)
    ways = [[*path[:i], *reversed(path[i:j]), *path[j:]] for i in range(1, n - 1) for j in range(i + 2, n)]
    for i, j in ((i, j) for i, j in combinations(range(1, n), 2) if j - i <= 3):
        rest = [*path[:i], *path[j:]]
        ways += [[*rest[:at], *path[i:j], *rest[at:]] for at in range(1, len(rest))]
    yield from (way for way in ways if path_length(records, way) < path_length(records, path))


# --- §3.4: window order ------------------------------------------------------------------------------------------------


def window_flips(records: Sequence[Record], order: Sequence[int], k: int) -> int:
    """W of a cyclic order: the slots' minority votes, one window of k for each rank."""
    n = len(order)
    windows = (Counter(item for back in range(k) for item in records[order[(end - back) % n]]) for end in range(n))
    return sum(min(c, k - c) for count in windows for c in count.values())


def window_cost(records: Sequence[Record], placed: Sequence[int], record: int, k: int) -> int:
    """Σ (k − t)·H to the t-th last record placed, t < k."""
    last = range(1, min(k - 1, len(placed)) + 1)
    return sum((k - t) * hamming(records[record], records[placed[-t]]) for t in last)


def window_nearest(records: Sequence[Record], order: Sequence[int], k: int) -> Order:
    """WNN from the first record of the (Gray) order; ties by place in it."""
    placed, left = [order[0]], list(order[1:])
    while left:
        placed.append(min(left, key=lambda at: window_cost(records, placed, at, k)))
        left.remove(placed[-1])
    return placed


def moved(order: Sequence[int], a: int, gap: int) -> Order:
    """The record of rank a stands behind that of rank `gap` (so at the end, for the gap between last and first)."""
    record, before = order[a], order[gap % len(order)]
    rest = [*order[:a], *order[a + 1 :]]
    return [*rest[: rest.index(before) + 1], record, *rest[rest.index(before) + 1 :]]


def allowed_gaps(a: int, n: int, k: int, span: int = SPAN) -> list[int]:
    """The gaps B (0..n−1) for the record of rank a, in the order in which ties are settled.

    The conditions are cyclic: with d = (B − a) mod n, both d ≥ k − 1 and d ≤ n − k (which is B ≤ a − k, one turn on), and
    d or n − d is at most `span`. Taken apart ("or") they would admit moves whose change is not additive. Ties: smallest d,
    that is the next gap forward.
    """
    return [(a + d) % n for d in range(k - 1, n - k + 1) if min(d, n - d) <= span]


def move_change(records: Sequence[Record], order: Sequence[int], k: int, a: int, gap: int) -> int:
    """The change of W, by counting it anew."""
    return window_flips(records, moved(order, a, gap), k) - window_flips(records, order, k)


def window_or_opt(
    records: Sequence[Record], order: Sequence[int], k: int, span: int = SPAN, most_sweeps: int = MOST_SWEEPS
) -> Order:
    """Step 2. A sweep takes each record once, in the ring order found at its beginning, wherever moves have put it since.

    The best gap is applied at once if W falls; of equally good gaps the first of `allowed_gaps`. The end: a sweep without
    any move, or with a gain below 0.5 % of W at its beginning (that sweep's moves stay), or `most_sweeps` sweeps.
    """
    order = list(order)
    for _ in range(most_sweeps):
        before = window_flips(records, order, k)
        for record in list(order):
            a = order.index(record)
            changes = [(move_change(records, order, k, a, gap), gap) for gap in allowed_gaps(a, len(order), k, span)]
            change, gap = min(changes, key=lambda entry: entry[0], default=(0, 0))
            if change < 0:
                order = moved(order, a, gap)
        gain = before - window_flips(records, order, k)
        if gain == 0 or 200 * gain < before:
            break
    return order


def best_order(records: Sequence[Record], candidates: Sequence[Sequence[int]], k: int) -> int:
    """Step 3: which candidate has the smallest ER as a ring; ties: first."""

    def er(order: Sequence[int]) -> Fraction:
        ring = [records[at] for at in order]
        graph = ring_graph(len(ring), k)
        return error_rate(ring, published(ring, graph), graph).rate

    return min(range(len(candidates)), key=lambda at: er(candidates[at]))


# --- N-12: blocks ------------------------------------------------------------------------------------------------------


def blocks(parts: Sequence[Sequence[int]], k: int, block_size: int = 5000) -> list[Order]:
    """Segments gathered into blocks; "half as many" is half of max(block_size, 10·k), not of what the block has."""
    limit, remaining = max(block_size, 10 * k), sum(map(len, parts))
    found, block = list[Order](), Order()
    for part in parts:
        block = [*block, *part]
        remaining -= len(part)
        if len(block) >= limit and 2 * remaining >= limit:
            found.append(block)
            block = []
    return [*found, block]


def eligible(labels: Sequence[Label], g: int) -> bool:
    """Every label at most floor(n/g) times."""
    return all(count <= len(labels) // g for count in Counter(labels).values())


def merged_blocks(found: Sequence[Sequence[int]], labels: Sequence[Label], g: int) -> list[Order]:
    """The first block that is not eligible joins the next one (the last: the one before) until all are."""
    merged = [list(block) for block in found]
    while bad := [at for at, block in enumerate(merged) if not eligible([labels[row] for row in block], g)]:
        if len(merged) == 1:
            raise ValueError(f"some label occurs more than n/{g} times")
        at = min(bad[0], len(merged) - 2)
        merged[at : at + 2] = [merged[at] + merged[at + 1]]
    return merged


# --- §4: graphs --------------------------------------------------------------------------------------------------------


def ring_graph(n: int, k: int) -> list[set[int]]:
    if not 1 <= k <= n:
        raise ValueError(f"k = {k} needs at least k records, not {n}")
    return [{(i + c) % n for c in range(k)} for i in range(n)]


def preimages(graph: Graph) -> list[list[int]]:
    """pre(j) of every slot."""
    return [[i for i, post in enumerate(graph) if j in post] for j in range(len(graph))]


def is_regular(graph: Graph, k: int) -> bool:
    return all(len(post) == k for post in graph) and all(len(pre) == k for pre in preimages(graph))


def are_partition(assignments: Sequence[Assignment], graph: Graph) -> bool:
    """Every assignment is a bijection, and together they use every edge once."""
    bijective = all(sorted(chosen) == list(range(len(graph))) for chosen in assignments)
    used = Counter(edge for chosen in assignments for edge in enumerate(chosen))
    return bijective and used == Counter((i, slot) for i, post in enumerate(graph) for slot in post)


def perfect_matchings(graph: Graph) -> Iterator[Assignment]:
    """All of them, by trying every slot for every original."""

    def extend(chosen: Assignment) -> Iterator[Assignment]:
        if len(chosen) == len(graph):
            yield chosen
        else:
            for slot in sorted(set(graph[len(chosen)]) - set(chosen)):
                yield from extend([*chosen, slot])

    return extend([])


def groups(order: Sequence[int], k: int) -> list[Order]:
    """Disjoint runs of k records of the order; the last one takes what is left and has up to 2k − 1."""
    if len(order) < k:
        raise ValueError(f"k = {k} needs at least k records, not {len(order)}")
    starts = range(0, len(order) - k + 1, k)
    return [list(order[at : at + k if at + 2 * k <= len(order) else len(order)]) for at in starts]


def are_groups(found: Sequence[Sequence[int]], order: Sequence[int], k: int) -> bool:
    """The order cut into runs of k to 2k − 1; where it is cut is free."""
    return [at for group in found for at in group] == list(order) and all(k <= len(group) < 2 * k for group in found)


def groups_graph(sizes: Sequence[int]) -> list[set[int]]:
    """Complete inside each group; originals and slots numbered by place in the order."""
    return [set(run) for run in _runs(sizes) for _ in run]


def group_shifts(size: int) -> list[Assignment]:
    """The assignments of one group: as many as it has records, its cyclic shifts."""
    return [[(i + c) % size for i in range(size)] for c in range(size)]


def groups_assignment(sizes: Sequence[int], shifts: Sequence[int]) -> Assignment:
    """One assignment of all groups: a shift for each, chosen independently."""
    return [run[(at + c) % len(run)] for run, c in zip(_runs(sizes), shifts, strict=True) for at in range(len(run))]


def _runs(sizes: Sequence[int]) -> list[range]:
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


# --- §5.1: labels ------------------------------------------------------------------------------------------------------


def published_labels(labels: Sequence[Label], chosen: Assignment) -> list[Label]:
    """λ of every slot: the label of the original that truly has it."""
    found = dict(zip(chosen, labels, strict=True))
    return [found[slot] for slot in range(len(labels))]


def colliding(graph: Graph, shown: Sequence[Label]) -> list[int]:
    """The originals that see some label twice among their slots."""
    return [i for i, post in enumerate(graph) if len({shown[slot] for slot in post}) < len(post)]


def distinct_labels(group: Sequence[int], labels: Sequence[Label]) -> bool:
    return len({labels[at] for at in group}) == len(group)


def is_spaced(order: Sequence[int], labels: Sequence[Label], g: int) -> bool:
    """Any g cyclically consecutive records have g labels (so a ring of fewer than g records is not spaced)."""
    n = len(order)
    return all(len({labels[order[(i + c) % n]] for c in range(g)}) == g for i in range(n))


def _apart(order: Sequence[int], labels: Sequence[Label], g: int) -> bool:
    """Records of one label are at least g apart on the ring, however short it is."""
    pairs = ((i, j) for i, j in combinations(range(len(order)), 2) if labels[order[i]] == labels[order[j]])
    return all(min(j - i, len(order) - j + i) >= g for i, j in pairs)


def spaced_ring(
    records: Sequence[Record],
    order: Sequence[int],
    labels: Sequence[Label],
    l: int,  # noqa: E741 - the l of l-diversity
    g: int,
    start: int,
    repair: bool = True,
) -> Order | None:
    """§5.1 step 2 from one start record; None when stuck (after the repair). `order` is the block's Gray order.

    Open in the text, settled here: of equally urgent labels with equally many records left, the nearest record of any of
    them; equally near records by Gray rank. Left-overs go label by label (most first, then by Gray rank) into the gap of
    least change of W for k = l, ties to the smallest B.
    """
    n = len(order)
    placed, left = [start], [at for at in order if at != start]
    while left:
        t, remaining = len(placed), Counter(labels[at] for at in left)
        first = {labels[at]: place for place, at in reversed(list(enumerate(placed)))}
        last = {labels[at]: place for place, at in enumerate(placed)}
        allowed = [y for y in remaining if y not in last or (t - last[y] >= g and n - t + first[y] >= g)]
        urgent = [y for y in allowed if remaining[y] * g >= n - t]
        most = max((remaining[y] for y in urgent), default=0)
        choice = [y for y in urgent if remaining[y] == most] or allowed
        fitting = [at for at in left if labels[at] in choice]
        if not fitting:
            return repaired_ring(records, order, labels, l, g, placed) if repair else None
        placed.append(min(fitting, key=lambda at: window_cost(records, placed, at, l)))
        left.remove(placed[-1])
    return placed


def repaired_ring(
    records: Sequence[Record],
    order: Sequence[int],
    labels: Sequence[Label],
    l: int,  # noqa: E741
    g: int,
    placed: Sequence[int],
) -> Order | None:
    """What to do when stuck: the longest prefix that is a spaced ring, and the left-overs inserted; None if one has no gap."""
    ring = list(placed)
    while not _apart(ring, labels, g):
        ring.pop()
    over: dict[Label, list[int]] = defaultdict(list)
    for at in order:
        if at not in ring:
            over[labels[at]].append(at)
    for record in (at for rest in sorted(over.values(), key=len, reverse=True) for at in rest):
        n = len(ring)
        near = [{labels[ring[rank % n]] for rank in range(gap - g + 2, gap + g)} for gap in range(n)]
        ways = [[*ring[: gap + 1], record, *ring[gap + 1 :]] for gap in range(n) if labels[record] not in near[gap]]
        if not ways:
            return None
        ring = min(ways, key=lambda way: window_flips(records, way, l))
    return ring


def spaced_ring_of_any_start(
    records: Sequence[Record],
    order: Sequence[int],
    labels: Sequence[Label],
    l: int,  # noqa: E741
    g: int,
    rng: Random,
) -> Order | None:
    """A random start record and, when stuck, up to five others; then the caller merges the block with the next."""
    starts = rng.sample(list(order), min(len(order), 1 + OTHER_STARTS))
    rings = (spaced_ring(records, order, labels, l, g, start) for start in starts)
    return next((ring for ring in rings if ring is not None), None)


def shifts(n: int, m: int) -> list[Assignment]:
    """A_c(i) = i + c: the only assignments for g = l."""
    return [[(i + c) % n for i in range(n)] for c in range(m)]


def stride_assignments(labels: Sequence[Label], l: int) -> list[Assignment]:  # noqa: E741
    """§5.3: shifts by floor(n/l) along the ranks sorted by label, ties by rank."""
    if not eligible(labels, l):
        raise ValueError(f"some label occurs more than n/{l} times")
    n = len(labels)
    ranks = sorted(range(n), key=lambda i: (labels[i], i))
    place = {rank: at for at, rank in enumerate(ranks)}
    return [[ranks[(place[i] + t * (n // l)) % n] for i in range(n)] for t in range(l)]


# --- §6: random disjoint assignments -----------------------------------------------------------------------------------


class Walk(NamedTuple):
    """Slots from the start to the start, and the steps it took to find them (backtracking counts)."""

    slots: list[int]
    steps: int


class Walks(NamedTuple):
    assignments: list[Assignment]
    steps: int


Walker = Callable[[Graph, Assignment, int, Choose], Walk]


def closed_walk(available: Graph, held: Assignment, first: int, choose: Choose) -> Walk:
    """A walk from the slot of `first` that repeats no edge and prefers what it has not visited, until it is closed."""
    holder, start = _holders(held), held[first]
    walk, traversed, visited = [start], set[tuple[int, int]](), {start}
    while True:
        u = holder[walk[-1]]
        own = set() if u == first else {held[u]}  # N-9
        cand = [slot for slot in sorted(set(available[u]) - own) if (u, slot) not in traversed]
        fresh = [slot for slot in cand if slot == start or slot not in visited]
        slot = choose(fresh or cand)
        traversed.add((u, slot))
        walk.append(slot)
        if slot == start:
            return Walk(walk, len(walk) - 1)
        visited.add(slot)


def wmc_walk(
    available: Graph,
    held: Assignment,
    first: int,
    choose: Choose,
    dead_marks: bool = True,
    budget: int | None = None,
) -> Walk:
    """The baseline: no slot twice; at a dead end one step back (a step, too), and another edge.

    With dead marks a slot that was left is never tried again in this walk; without, only from the same visit.
    """
    holder, start = _holders(held), held[first]
    path, tried, visited, steps = [start], [set[int]()], {start}, 0
    while True:
        u = holder[path[-1]]
        own = set() if u == first else {held[u]}
        cand = sorted(
            slot for slot in set(available[u]) - own - tried[-1] if slot == start or slot not in visited
        )  # fmt: skip
        steps += 1
        if budget is not None and steps > budget:
            raise TimeoutError(f"not closed within {budget} steps")
        if not cand:
            left = path.pop()
            tried.pop()
            if not dead_marks:
                visited.remove(left)
            continue
        slot = choose(cand)
        tried[-1].add(slot)
        if slot == start:
            return Walk([*path, start], steps)
        path.append(slot)
        tried.append(set())
        visited.add(slot)


def erase_loops(walk: Sequence[int]) -> list[int]:
    """The cycle of last exits, from the start to the start."""
    child = dict(pairwise(walk))  # a later exit overwrites an earlier one
    cycle = [walk[0], child[walk[0]]]
    while cycle[-1] != walk[0]:
        cycle.append(child[cycle[-1]])
    return cycle


def taken(held: Assignment, cycle: Sequence[int]) -> Assignment:
    """Along the cycle everyone takes the slot of the next; the others keep theirs."""
    holder, after = _holders(held), list(held)
    for slot, following in pairwise(cycle):
        after[holder[slot]] = following
    return after


def disjoint_assignments(graph: Graph, rng: Random, walker: Walker = closed_walk) -> Walks:
    """All m assignments of an m-regular graph, one random perfect matching of the unused edges after the other."""
    available = [set(post) for post in graph]
    found, steps = list[Assignment](), 0
    for _ in range(len(available[0])):
        held, open_ = list(range(len(graph))), set(range(len(graph)))
        while open_:
            walk = walker(available, held, rng.choice(sorted(open_)), rng.choice)
            steps += walk.steps
            cycle = erase_loops(walk.slots)
            open_ -= {_holders(held)[slot] for slot in cycle}
            held = taken(held, cycle)
        for i, slot in enumerate(held):
            available[i].remove(slot)
        found.append(held)
    return Walks(found, steps)


def random_assignment(graph: Graph, rng: Random) -> Assignment:
    """α: one of all m, uniformly."""
    return rng.choice(disjoint_assignments(graph, rng).assignments)


def first_assignments(graph: Graph) -> dict[tuple[int, ...], Fraction]:
    """How likely each matching is to be A_1, over all random choices of the closed walks of the first round."""
    n = len(graph)

    def closed(held: Assignment, first: int) -> Iterator[tuple[list[int], Fraction]]:
        """Every walk there is, with its probability: replay the choices made so far, branch at the next one."""
        waiting = [(list[int](), Fraction(1))]
        while waiting:
            script, chance = waiting.pop()
            replay, offered = iter(script), list[int]()

            def choose(cand: Sequence[int], replay: Iterator[int] = replay, offered: list[int] = offered) -> int:
                known = next(replay, None)
                if known is None:
                    offered.extend(cand)
                    raise LookupError
                return known

            try:
                yield closed_walk(graph, held, first, choose).slots, chance
            except LookupError:
                waiting += [([*script, slot], chance / len(offered)) for slot in offered]

    states = {(tuple(range(n)), frozenset(range(n))): Fraction(1)}
    found = defaultdict[tuple[int, ...], Fraction](Fraction)
    while states:
        following = defaultdict[tuple[tuple[int, ...], frozenset[int]], Fraction](Fraction)
        for (held, open_), chance in states.items():
            for first in open_:
                for walk, share in closed(list(held), first):
                    cycle = erase_loops(walk)
                    after = tuple(taken(list(held), cycle))
                    left = open_ - {_holders(list(held))[slot] for slot in cycle}
                    following[after, left] += chance * share / len(open_)
            if not open_:
                found[held] += chance
        states = dict(following)
    return dict(found)


def _holders(held: Assignment) -> dict[int, int]:
    return {slot: i for i, slot in enumerate(held)}


# --- §5.2, §5.3: the paper's l-diversity -------------------------------------------------------------------------------


def greedy_pick(
    ring: Sequence[Record],
    labels: Sequence[Label],
    u: int,
    start: int,
    visited: Collection[int],
    barred: Collection[int],
    met: Collection[Label],
) -> int | None:
    """`barred`: slots of u in earlier rounds or already traversed by u in this walk; `met`: S_u."""
    n, resort = len(ring), None
    for j in range(n // 2 + 1):
        both = dict.fromkeys([(u + j) % n, (u - j) % n])  # forward first: min keeps it on a tie
        cand = [slot for slot in both if slot not in barred and labels[slot] not in met]
        if not cand:
            continue
        fresh = [slot for slot in cand if slot == start or slot not in visited]
        slot = min(fresh or cand, key=lambda slot: hamming(ring[u], ring[slot]))
        if fresh:
            return slot
        if resort is None:
            resort = slot
    return resort


def greedy_round(
    ring: Sequence[Record],
    labels: Sequence[Label],
    used: Sequence[Collection[int]],
    rng: Random,
) -> Assignment | None:
    """One more assignment by closed walks of greedyPick; None when a pick fails or a walk takes 4n steps unclosed."""
    n = len(ring)
    met = [{labels[slot] for slot in slots} for slots in used]
    held, open_ = list(range(n)), set(range(n))
    while open_:
        first = rng.choice(sorted(open_))
        holder, start = _holders(held), held[first]
        walk, visited, traversed = [start], {start}, defaultdict[int, set[int]](set)
        while len(walk) == 1 or walk[-1] != start:
            u = holder[walk[-1]]
            slot = greedy_pick(ring, labels, u, start, visited, set(used[u]) | traversed[u], met[u])
            if slot is None or len(walk) > 4 * n:
                return None
            traversed[u].add(slot)
            visited.add(slot)
            walk.append(slot)
        cycle = erase_loops(walk)
        open_ -= {holder[slot] for slot in cycle}
        held = taken(held, cycle)
    return held


def allowed_matching(labels: Sequence[Label], used: Sequence[Collection[int]]) -> Assignment | None:
    """N-8: a perfect matching of the round's allowed graph by augmenting paths, nearer slots tried first."""
    n = len(labels)
    met = [{labels[slot] for slot in slots} for slots in used]
    holder: dict[int, int] = {}

    def augment(u: int, seen: set[int]) -> bool:
        for slot in dict.fromkeys((u + sign * j) % n for j in range(n // 2 + 1) for sign in (1, -1)):
            if slot not in seen and slot not in used[u] and labels[slot] not in met[u]:
                seen.add(slot)
                if slot not in holder or augment(holder[slot], seen):
                    holder[slot] = u
                    return True
        return False

    if not all(augment(u, set()) for u in range(n)):
        return None
    return [slot for _, slot in sorted((u, slot) for slot, u in holder.items())]


@dataclass(frozen=True)
class GreedyGraph:
    """The l assignments whose union is the graph, and what it took."""

    assignments: list[Assignment]
    matched: int = 0  # rounds of the last attempt that needed a matching
    restarts: int = 0
    stride: bool = False

    @property
    def graph(self) -> list[set[int]]:
        return [set(slots) for slots in zip(*self.assignments, strict=True)]


def greedy_graph(ring: Sequence[Record], labels: Sequence[Label], l: int, rng: Random) -> GreedyGraph:  # noqa: E741
    """§5.2 and §5.3: greedy rounds, else a matching, else a restart (five), else strides."""
    if len(set(labels)) < 2 or not eligible(labels, l):
        raise ValueError(f"some label occurs more than n/{l} times")
    for restart in range(1 + OTHER_STARTS):
        used: list[set[int]] = [set() for _ in ring]
        found, matched = list[Assignment](), 0
        while len(found) < l:
            chosen = greedy_round(ring, labels, used, rng)
            if chosen is None:
                chosen, matched = allowed_matching(labels, used), matched + 1
            if chosen is None:
                break
            found.append(chosen)
            for slots, slot in zip(used, chosen, strict=True):
                slots.add(slot)
        if len(found) == l:
            return GreedyGraph(found, matched, restart)
    return GreedyGraph(stride_assignments(labels, l), restarts=OTHER_STARTS, stride=True)


@dataclass(frozen=True)
class PaperResult:
    graph: list[set[int]]
    assignments: list[Assignment]
    chosen: Assignment
    labels: list[Label]  # published, per slot
    violating: Fraction  # share of the records that see some published label twice


def paper_pipeline(ring: Sequence[Record], labels: Sequence[Label], l: int, rng: Random) -> PaperResult:  # noqa: E741
    """truth="paper": greedy graph, its assignments drawn anew by closed walks (strides: kept), one chosen uniformly."""
    greedy = greedy_graph(ring, labels, l, rng)
    graph = greedy.graph
    found = greedy.assignments if greedy.stride else disjoint_assignments(graph, rng).assignments
    chosen = rng.choice(found)
    shown = published_labels(labels, chosen)
    return PaperResult(graph, found, chosen, shown, Fraction(len(colliding(graph, shown)), len(ring)))


# --- §7, §2: publication and compatibility -----------------------------------------------------------------------------


class Slot(NamedTuple):
    base: Record
    dist: Record
    t: int


def vote(members: Sequence[Record]) -> Record:
    """The majority bitmap; ties → 0."""
    count = Counter(item for record in members for item in record)
    return frozenset(item for item, times in count.items() if 2 * times > len(members))


def slot_of(members: Sequence[Record]) -> Slot:
    """The published fields of the slot with these preimages."""
    base = vote(members)
    dist = frozenset.union(*members) - frozenset.intersection(*members)
    return Slot(base, dist, max(hamming(base, record) for record in members))


def published(ring: Sequence[Record], graph: Graph) -> list[Slot]:
    members: list[list[Record]] = [[] for _ in ring]
    for record, post in zip(ring, graph, strict=True):
        for slot in post:
            members[slot].append(record)
    return [slot_of(of) for of in members]


def is_compatible(record: Record, slot: Slot) -> bool:
    errors = record ^ slot.base
    return errors <= slot.dist and len(errors) <= slot.t


def compatible_originals(records: Sequence[Record], slot: Slot) -> set[int]:
    return {at for at, record in enumerate(records) if is_compatible(record, slot)}


def is_k_compatible(records: Sequence[Record], release: Sequence[Slot], k: int) -> bool:
    """Every original has k compatible slots, every slot k compatible originals."""
    fits = [compatible_originals(records, slot) for slot in release]
    count = Counter(at for of in fits for at in of)
    return all(len(of) >= k for of in fits) and all(count[at] >= k for at in range(len(records)))


def is_well_formed(slot: Slot) -> bool:
    """All that can be checked on the published table alone."""
    return 0 <= slot.t <= len(slot.dist) and (slot.t >= 1) == bool(slot.dist)


def worlds(slot: Slot) -> Iterator[Record]:
    """All item sets a published row may stand for."""
    for errors in range(slot.t + 1):
        yield from (slot.base ^ frozenset(flipped) for flipped in combinations(sorted(slot.dist), errors))


def possible_worlds(slot: Slot) -> int:
    return sum(comb(len(slot.dist), errors) for errors in range(slot.t + 1))


# --- count queries on a release ----------------------------------------------------------------------------------------


class Query(NamedTuple):
    present: Record
    absent: Record = frozenset()

    def matches(self, record: Record) -> bool:
        return self.present <= record and not self.absent & record


class Answer(NamedTuple):
    """Bounds over the possible worlds of each row, and the sum of the shares of worlds that match."""

    lower: int
    upper: int
    estimate: Fraction


def share_of_worlds(slot: Slot, query: Query) -> Fraction:
    """By enumeration."""
    return Fraction(sum(query.matches(world) for world in worlds(slot)), possible_worlds(slot))


def share_by_formula(slot: Slot, query: Query) -> Fraction:
    """The same without enumeration: some items must be flipped, others must not, the rest is free."""
    flips = (query.present - slot.base) | (query.absent & slot.base)
    if query.present & query.absent or not flips <= slot.dist:
        return Fraction(0)
    free = len(slot.dist - query.present - query.absent)
    matching = sum(comb(free, errors) for errors in range(slot.t - len(flips) + 1))
    return Fraction(matching, possible_worlds(slot))


def row_match(slot: Slot, query: Query) -> str:
    """Whether the row matches: "yes" in all its possible worlds, "no" in none, or "maybe"."""
    found = {query.matches(world) for world in worlds(slot)}
    return "maybe" if len(found) == 2 else "yes" if True in found else "no"


def answer(release: Iterable[Slot], query: Query) -> Answer:
    rows = [(row_match(slot, query), share_of_worlds(slot, query)) for slot in release]
    lower, upper = sum(match == "yes" for match, _ in rows), sum(match != "no" for match, _ in rows)
    return Answer(lower, upper, sum((share for _, share in rows), Fraction(0)))


# --- §8: CAHD ----------------------------------------------------------------------------------------------------------


def cahd(
    records: Sequence[Record], order: Sequence[int], labels: Sequence[Label], p: int, alpha: int = 3
) -> list[list[int]]:
    """The groups, the last one being what is left (if anything); equally near candidates at equal ranks: the one before."""
    if not eligible(labels, p):
        raise ValueError(f"some label occurs more than n/{p} times")
    count, free, found = Counter(labels), list(order), list[list[int]]()
    rank = {at: place for place, at in enumerate(order)}

    def candidates(t: int) -> list[int]:
        near, seen = list[int](), {labels[t]}
        at = free.index(t)
        for direction in (reversed(free[:at]), free[at + 1 :]):
            accepted = 0
            for other in direction:
                if accepted < alpha * p and labels[other] not in seen:
                    near.append(other)
                    seen.add(labels[other])
                    accepted += 1
        return near

    for t in order:
        if t not in free:
            continue
        near = candidates(t)
        if len(near) < p - 1:
            continue
        by_distance = sorted(near, key=lambda at: (hamming(records[t], records[at]), abs(rank[t] - rank[at]), rank[at]))
        group = [t, *by_distance[: p - 1]]
        rest = count - Counter(labels[at] for at in group)
        if max(rest.values(), default=0) * p <= len(free) - p:
            found.append(group)
            count = rest
            free = [at for at in free if at not in group]
    return [*found, free] if free else found


def group_bases(records: Sequence[Record], found: Iterable[Sequence[int]]) -> dict[int, Record]:
    """Publication for comparison: every member gets its group's majority bitmap."""
    return {at: vote([records[member] for member in group]) for group in found for at in group}


# --- error rate and query error ----------------------------------------------------------------------------------------


class ErrorRate(NamedTuple):
    rate: Fraction
    empty: int  # records without items, left out of the mean


def error_rate(ring: Sequence[Record], release: Sequence[Slot], graph: Graph) -> ErrorRate:
    """ER over all slots of each record; with one slot for each ([[slot], …]) it is ER_true of that assignment."""
    return _mean_error(ring, [[release[slot].base for slot in post] for post in graph])


def group_error_rate(records: Sequence[Record], bases: Mapping[int, Record]) -> ErrorRate:
    return _mean_error(records, [[bases[at]] for at in range(len(records))])


def _mean_error(records: Sequence[Record], bases: Sequence[Sequence[Record]]) -> ErrorRate:
    rates = [
        Fraction(sum(hamming(record, base) for base in of), len(of) * len(record))
        for record, of in zip(records, bases, strict=True)
        if record
    ]
    return ErrorRate(sum(rates, Fraction(0)) / len(rates) if rates else Fraction(0), len(records) - len(rates))


def draw_queries(records: Sequence[Record], number: int, size: int, rng: Random) -> list[Record]:
    """Item sets without replacement, uniform over the distinct items of the original data."""
    items = sorted(frozenset[int]().union(*records))
    return [frozenset(rng.sample(items, size)) for _ in range(number)]


def query_error(records: Sequence[Record], bases: Sequence[Record], query: Query) -> Fraction:
    """QE of one query: type I has only items present, type II only items absent."""
    true, shown = (sum(query.matches(record) for record in table) for table in (records, bases))
    return Fraction(abs(true - shown), len(records))


def mean_query_error(records: Sequence[Record], bases: Sequence[Record], queries: Sequence[Query]) -> Fraction:
    return sum((query_error(records, bases, query) for query in queries), Fraction(0)) / len(queries)
