"""MiRaCle (reconstructed): clusters of nested records, each recoded to one tree by generalization and suppression.

join(a, b): children of equal node type are matched at least cost, matched nodes become their lowest common ancestor, unmatched
ones vanish with all below them. Cost of a match: the levels both nodes are raised, and what is lost below them; a node that
vanishes costs h. Distance of two trees: the cost of their join / (h · nodes of both), so from 0 to 1. Matching two nodes always
costs less than losing both, so as many as can be are matched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled
from anon_spark.families.tree.kernels.trees import NONE, Merging, Trees, empty_merging, merge_record
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.tree import Forest

Floats = NDArray[np.float64]

EXACT_CHILDREN = 8  # of a node type on both sides: up to here the best matching, above the cheapest pairs first


class ForestArrays(NamedTuple):
    """The forest as loops need it: by node its parent, level and rank of its type; and h."""

    parents: Codes
    levels: Codes
    ranks: Codes
    height: int


class Room(NamedTuple):
    """Where two trees are compared and joined: made once, for the largest trees.

    left, right: a tree by rows FIRST to BELOW, node x at x + 1, the record's root at 0. Few arrays and no tuples of them are
    handed to the innermost loops: each array costs time in each call.
    """

    left: Ints
    right: Ints
    cost: Ints  # [x, y]: of a match of x and y with all below them
    pairs: Ints  # [3, …]: the children of one node type below x, those below y, and for each of the first its partner
    least: Ints  # [child of x, children of y that are taken]: of what comes from here on
    waiting: Ints  # [3, …]: matched nodes whose children are not yet matched, and where their join stands
    labels: Codes
    parents: Codes
    merging: Merging


FIRST, NEXT, RANK, DEPTH, BELOW = range(5)  # child, sibling, rank of the node type, depth, nodes from this one down
ONE, OTHER, PARTNER = range(3)


def arrays_of(forest: Forest) -> ForestArrays:
    """The arrays of a forest."""
    return ForestArrays(forest.parents, forest.levels, forest.ranks, forest.height)


def empty_room(trees: Trees) -> Room:
    """For the largest record: a join is never larger than either tree."""
    merging = empty_merging(trees)
    room = merging.labels.size
    return Room(
        np.empty((BELOW + 1, room), np.int64),
        np.empty((BELOW + 1, room), np.int64),
        np.empty((room, room), np.int64),
        np.empty((PARTNER + 1, room), np.int64),
        np.empty((EXACT_CHILDREN + 1, 1 << EXACT_CHILDREN), np.int64),
        np.empty((3, room), np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        merging,
    )


@compiled
def read_shape(labels: Codes, parents: Codes, ranks: Codes, tree: Ints) -> None:
    """A tree in preorder as rows."""
    tree[FIRST, 0], tree[NEXT, 0], tree[RANK, 0], tree[DEPTH, 0], tree[BELOW, 0] = 0, 0, NONE, 0, 0
    for at in range(parents.size):
        tree[FIRST, at + 1], tree[BELOW, at + 1] = 0, 1
        tree[RANK, at + 1], tree[DEPTH, at + 1] = ranks[labels[at]], tree[DEPTH, parents[at] + 1] + 1
    for at in range(parents.size - 1, -1, -1):
        above = parents[at] + 1
        tree[NEXT, at + 1] = tree[FIRST, above]
        tree[FIRST, above] = at + 1
        tree[BELOW, above] += tree[BELOW, at + 1]


@compiled
def ancestor(parents: Codes, levels: Codes, one: int, other: int) -> int:
    """The lowest label that is at or above both."""
    while one != other:
        if levels[one] <= levels[other]:
            one = parents[one]
        else:
            other = parents[other]
    return one


@compiled
def join_cost(left_labels: Codes, right_labels: Codes, forest: ForestArrays, room: Room) -> int:
    """Cost of the join of two trees whose shapes are in `room`; leaves there the cost of every match."""
    left, right, cost, pairs, least = room.left, room.right, room.cost, room.pairs, room.least
    above, levels, height = forest.parents, forest.levels, forest.height
    for one in range(left_labels.size, -1, -1):  # children before parents; the roots are the last pair
        for other in range(right_labels.size, -1, -1):
            if left[RANK, one] != right[RANK, other] or left[DEPTH, one] != right[DEPTH, other]:
                continue
            total = np.int64(0)
            if one != 0:
                label, to = left_labels[one - 1], right_labels[other - 1]
                if label != to:
                    total += 2 * levels[ancestor(above, levels, label, to)] - levels[label] - levels[to]
            # what is below them, type by type
            child = left[FIRST, one]
            while child != 0:
                if _is_first(left, left[FIRST, one], child):
                    total += match_type(left[RANK, child], one, other, left, right, cost, pairs, least, height)
                child = left[NEXT, child]
            child = right[FIRST, other]
            while child != 0:
                if not _has_type(left, left[FIRST, one], right[RANK, child]):
                    total += height * right[BELOW, child]
                child = right[NEXT, child]
            cost[one, other] = total
    return int(cost[0, 0])


@compiled
def _is_first(tree: Ints, first: int, child: int) -> bool:
    """Whether no sibling of the same type stands before."""
    while first != child:
        if tree[RANK, first] == tree[RANK, child]:
            return False
        first = tree[NEXT, first]
    return True


@compiled
def _has_type(tree: Ints, child: int, rank: int) -> bool:
    while child != 0:
        if tree[RANK, child] == rank:
            return True
        child = tree[NEXT, child]
    return False


@compiled
def match_type(
    rank: int, one: int, other: int, left: Ints, right: Ints, cost: Ints, pairs: Ints, least: Ints, height: int
) -> int:
    """Match the children of one node type below two nodes; the cost, and in `pairs` the partner of each (NONE: vanishes).

    Ties: the first child of the left tree takes the first it can of the right one, then the second, ...
    """
    count = others = 0
    child = left[FIRST, one]
    while child != 0:
        if left[RANK, child] == rank:
            pairs[ONE, count], pairs[PARTNER, count] = child, NONE
            count += 1
        child = left[NEXT, child]
    child = right[FIRST, other]
    while child != 0:
        if right[RANK, child] == rank:
            pairs[OTHER, others] = child
            others += 1
        child = right[NEXT, child]
    if count > EXACT_CHILDREN or others > EXACT_CHILDREN:
        match_greedily(count, others, cost, pairs)
    elif count == 1 and others == 1:
        pairs[PARTNER, 0] = 0
        return int(cost[pairs[ONE, 0], pairs[OTHER, 0]])
    elif others > 0:
        match_exactly(count, others, left, right, cost, pairs, least, height)
    total = np.int64(0)
    for at in range(others):
        total += height * right[BELOW, pairs[OTHER, at]]
    for at in range(count):
        if pairs[PARTNER, at] == NONE:
            total += height * left[BELOW, pairs[ONE, at]]
        else:
            partner = pairs[OTHER, pairs[PARTNER, at]]
            total += cost[pairs[ONE, at], partner] - height * right[BELOW, partner]
    return int(total)


@compiled
def match_greedily(count: int, others: int, cost: Ints, pairs: Ints) -> None:
    """The cheapest pair of those left, again and again; ties: the first."""
    is_taken = np.zeros(others, dtype=np.bool_)
    for _ in range(min(count, others)):
        first, second, least = -1, -1, np.int64(0)
        for one in range(count):
            for other in range(others):
                price = cost[pairs[ONE, one], pairs[OTHER, other]]
                if pairs[PARTNER, one] == NONE and not is_taken[other] and (first < 0 or price < least):
                    first, second, least = one, other, price
        pairs[PARTNER, first], is_taken[second] = second, True


@compiled
def match_exactly(
    count: int, others: int, left: Ints, right: Ints, cost: Ints, pairs: Ints, least: Ints, height: int
) -> None:
    """Least cost from the last child of the left tree to the first, for every set of partners that are taken already."""
    for taken in range(1 << others):
        least[count, taken] = 0
        for other in range(others):
            if not taken >> other & 1:
                least[count, taken] += height * right[BELOW, pairs[OTHER, other]]
    for one in range(count - 1, -1, -1):
        alone, node = height * left[BELOW, pairs[ONE, one]], pairs[ONE, one]
        for taken in range(1 << others):
            found = least[one + 1, taken] + alone
            for other in range(others):
                if not taken >> other & 1:
                    found = min(found, least[one + 1, taken | 1 << other] + cost[node, pairs[OTHER, other]])
            least[one, taken] = found
    taken = 0
    for one in range(count):
        for other in range(others):
            then = taken | 1 << other
            if then != taken and least[one, taken] == least[one + 1, then] + cost[pairs[ONE, one], pairs[OTHER, other]]:
                pairs[PARTNER, one] = other
                taken = then
                break


class Clusters(NamedTuple):
    """By cluster: where its tree begins and how many nodes it has; members, and the smallest of them.

    The tree of a cluster stands where its first record stood: a join is never larger than that.
    """

    labels: Codes
    parents: Codes
    place: Ints
    size: Ints
    members: Ints
    head: Ints


@compiled
def join(found: Clusters, home: int, right_labels: Codes, right_parents: Codes, forest: ForestArrays, room: Room) -> None:
    """Replace the tree of a cluster by its join with another, in canonical form."""
    begin, end = found.place[home], found.place[home] + found.size[home]
    left_labels = found.labels[begin:end]
    left, right, pairs, waiting = room.left, room.right, room.pairs, room.waiting
    read_shape(left_labels, found.parents[begin:end], forest.ranks, left)
    read_shape(right_labels, right_parents, forest.ranks, right)
    join_cost(left_labels, right_labels, forest, room)
    waiting[0, 0], waiting[1, 0], waiting[2, 0] = 0, 0, NONE
    pending, done = 1, 0
    while done < pending:
        one, other, above = waiting[0, done], waiting[1, done], waiting[2, done]
        done += 1
        child = left[FIRST, one]
        while child != 0:
            if _is_first(left, left[FIRST, one], child):
                rank = left[RANK, child]
                match_type(rank, one, other, left, right, room.cost, pairs, room.least, forest.height)
                at, node = 0, child
                while node != 0:
                    if left[RANK, node] == rank:
                        if pairs[PARTNER, at] != NONE:
                            partner, count = pairs[OTHER, pairs[PARTNER, at]], pending - 1
                            room.labels[count] = ancestor(
                                forest.parents, forest.levels, left_labels[node - 1], right_labels[partner - 1]
                            )
                            room.parents[count] = above
                            waiting[0, pending], waiting[1, pending], waiting[2, pending] = node, partner, count
                            pending += 1
                        at += 1
                    node = left[NEXT, node]
            child = left[NEXT, child]
    found.size[home] = merge_record(
        room.labels[: pending - 1], room.parents[: pending - 1], room.merging, found.labels[begin:end], found.parents[begin:end]
    )


@compiled
def measure(
    found: Clusters,
    among: Ints,
    own_labels: Codes,
    own_parents: Codes,
    forest: ForestArrays,
    room: Room,
    away: Floats,
    every: bool,
) -> int:
    """How far a tree is from each of some clusters, and which is the nearest; -1: there is none.

    Unless every distance is wanted, `away` has for clusters that cannot be the nearest a bound from below.
    """
    nearest = -1
    read_shape(own_labels, own_parents, forest.ranks, room.right)
    for at in range(among.size):
        begin, size = found.place[among[at]], found.size[among[at]]
        nodes = max(size + own_labels.size, 1)  # two empty trees are equal
        away[at] = abs(size - own_labels.size) / nodes  # so many nodes vanish at least
        if not every and nearest >= 0 and away[at] > away[nearest]:
            continue
        labels = found.labels[begin : begin + size]
        read_shape(labels, found.parents[begin : begin + size], forest.ranks, room.left)
        cost = join_cost(labels, own_labels, forest, room)
        away[at] = cost / (forest.height * nodes)  # equal fractions are equal numbers, and others are not
        is_tie = nearest >= 0 and away[at] == away[nearest]
        if nearest < 0 or away[at] < away[nearest] or (is_tie and found.head[among[at]] < found.head[among[nearest]]):
            nearest = at
    return nearest


@compiled
def assign(
    trees: Trees, order: Ints, forest: ForestArrays, k: int, climit: int, threshold: float, found: Clusters, room: Room
) -> tuple[Ints, int, Ints]:
    """One record after the other: the cluster of each, how many clusters there are, and those that are still open."""
    number = np.full(order.size, NONE, dtype=np.int64)
    opened, away = np.empty(climit, dtype=np.int64), np.empty(climit, dtype=np.float64)
    count, clusters = 0, 0
    for record in order:
        begin, end = trees.offsets[record], trees.offsets[record + 1]
        own_labels, own_parents = trees.labels[begin:end], trees.parents[begin:end]
        nearest = measure(found, opened[:count], own_labels, own_parents, forest, room, away, False)
        if nearest >= 0 and (count == climit or away[nearest] <= threshold):
            home = opened[nearest]
            join(found, home, own_labels, own_parents, forest, room)
            found.head[home] = min(found.head[home], record)
            found.members[home] += 1
        else:
            home, nearest = clusters, count
            found.place[home], found.size[home] = begin, end - begin
            found.members[home], found.head[home] = 1, record
            opened[count] = home
            clusters, count = clusters + 1, count + 1
        number[record] = home
        if found.members[home] >= k:
            count -= 1
            opened[nearest] = opened[count]
    return number, clusters, opened[:count]


def clustered(trees: Trees, order: Ints, forest: ForestArrays, k: int, climit: int, threshold: float) -> tuple[Ints, Trees]:
    """The cluster of each record and the tree that all members of a cluster become.

    In the given order a record joins the nearest open cluster if that is not farther than the threshold or there are climit
    of them; else it opens one. A cluster of k is closed. In the end open ones are joined, the nearest two first; a last one
    joins the nearest closed cluster; the trees of joined clusters are made again, record by record in the given order.
    Ties: the cluster with the smallest member.
    Guarantee: of k or more records every cluster has k or more. Cost: records × climit distances; one distance takes the
    pairs of nodes of equal type and depth, and 2^children for each pair of nodes with several children of one type.
    """
    room, count = empty_room(trees), trees.records
    found = Clusters(trees.labels.copy(), trees.parents.copy(), *np.zeros((4, count), dtype=np.int64))
    number, clusters, opened = assign(trees, order, forest, k, climit, threshold, found, room)
    into = _joined_open(found, np.setdiff1d(np.arange(clusters), opened), opened, k, forest, room)
    number = into[number]
    # the trees of changed clusters again, from their records
    changed, started = set(into[into != np.arange(clusters)].tolist()), set[int]()
    for record in order[np.isin(number[order], [*changed])].tolist():
        home, nodes = int(number[record]), slice(trees.offsets[record], trees.offsets[record + 1])
        if home in started:
            join(found, home, trees.labels[nodes], trees.parents[nodes], forest, room)
        else:
            started.add(home)
            found.place[home], found.size[home] = nodes.start, nodes.stop - nodes.start
            found.labels[nodes], found.parents[nodes] = trees.labels[nodes], trees.parents[nodes]
    kept, number = np.unique(number, return_inverse=True)
    size = found.size[kept]
    offsets = np.concatenate([[0], np.cumsum(size)])
    taken = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - found.place[kept], size)
    return number, Trees(offsets, found.labels[taken], found.parents[taken])


def _joined_open(found: Clusters, closed: Ints, opened: Ints, k: int, forest: ForestArrays, room: Room) -> Ints:
    """The cluster that each one ends up in."""
    into = np.arange(closed.size + opened.size)
    left = opened[np.argsort(found.head[opened])]  # the smallest member first: of equal distances the first is taken
    away = np.full((left.size, left.size), np.inf)
    for at in range(left.size):
        away[:at, at] = distances(found, left[:at], left[at], forest, room)[0]
    waiting = np.arange(left.size)
    while waiting.size > 1:
        first, second = divmod(int(away.argmin()), left.size)
        home, gone = left[first], left[second]
        nodes = slice(found.place[gone], found.place[gone] + found.size[gone])
        join(found, home, found.labels[nodes], found.parents[nodes], forest, room)
        found.members[home] += found.members[gone]
        into[into == gone] = home
        for at in (first, second):
            away[at, :], away[:, at] = np.inf, np.inf
        is_closed = found.members[home] >= k
        waiting = waiting[(waiting != second) & ~((waiting == first) & is_closed)]
        if is_closed:
            closed = np.append(closed, home)
        else:
            others = waiting[waiting != first]
            low, high = np.minimum(others, first), np.maximum(others, first)
            away[low, high] = distances(found, left[others], home, forest, room)[0]
    if waiting.size and closed.size:
        last = left[waiting[0]]
        into[into == last] = closed[distances(found, closed, last, forest, room)[1]]
    return into


def distances(found: Clusters, among: Ints, own: int, forest: ForestArrays, room: Room) -> tuple[Floats, int]:
    """How far a cluster is from each of some others, and which is the nearest."""
    nodes, away = slice(found.place[own], found.place[own] + found.size[own]), np.empty(among.size)
    return away, measure(found, among, found.labels[nodes], found.parents[nodes], forest, room, away, True)
