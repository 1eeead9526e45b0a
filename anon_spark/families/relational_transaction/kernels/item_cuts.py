"""AA and VPA: the items of one cluster are raised in their hierarchy until every set of at most m is frequent.

A cut assigns every item a node above it; items below a chosen node share it. A set that too few records have decides the
raise: of all replacements of its members by ancestors that make it frequent, the cheapest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.arrays import write
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.transactions import (
    DONE,
    KEY_BITS,
    MANY_SETS,
    NONE,
    TOO_LARGE,
    UNREACHABLE,
    Images,
    Transactions,
    add_violating,
    bits_of,
    fault_of,
    images_of,
    item_count,
    join,
    members_of,
    next_set,
    no_sets,
    taken_rows,
    widest,
)
from anon_spark.model.hierarchy import Hierarchy

MOST_WAYS = 1 << 22


class ItemTree(NamedTuple):
    """An item hierarchy as nodes: leaves 0 … n-1 ascending by name, then the inner nodes from low to high, the root last.

    Labels of the same leaves are one node. The leaves below a node, ascending, are
    below[offsets[node] : offsets[node + 1]]; `rank` orders nodes by these. leaf_of: the leaf of a row of the level table.
    """

    parent: Codes
    offsets: Ints
    below: Codes
    rank: Codes
    leaf_of: Codes

    @property
    def sizes(self) -> Ints:
        """How many leaves each node has."""
        return np.diff(self.offsets)

    def members(self, node: int) -> Codes:
        """The leaves below a node, which are its published form."""
        return self.below[self.offsets[node] : self.offsets[node + 1]]


class Branches(NamedTuple):
    """The part of the tree that a cluster needs: the nodes above its items, renumbered.

    The cluster's items below a node are below[offsets[node] : offsets[node + 1]]. `label` orders nodes by their smallest leaf.
    """

    parent: Codes
    size: Ints
    label: Ints
    rank: Codes
    offsets: Ints
    below: Codes


def item_tree(hierarchy: Hierarchy) -> ItemTree:
    """The nodes of a hierarchy without null leaf. Cost: its level table, and a sort of its nodes by their leaves."""
    order = np.array(sorted(range(len(hierarchy.keys)), key=hierarchy.keys.__getitem__), dtype=np.int64)
    leaf_of = np.empty(order.size, dtype=np.int32)
    leaf_of[order] = np.arange(order.size, dtype=np.int32)
    node = np.arange(order.size)  # of each leaf, on the level reached
    members, parents = [np.array([leaf]) for leaf in node], [NONE] * order.size
    for level in range(1, hierarchy.height + 1):
        codes = hierarchy.codes[level, order]
        for group in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]):
            if group.size == members[node[group[0]]].size:
                continue
            for child in set(node[group].tolist()):
                parents[child] = len(members)
            node[group] = len(members)
            members.append(group)
            parents.append(NONE)
    rank = np.empty(len(members), dtype=np.int32)
    rank[sorted(range(len(members)), key=lambda number: members[number].tolist())] = np.arange(len(members))
    offsets = np.concatenate([[0], np.cumsum([group.size for group in members])]).astype(np.int64)
    return ItemTree(np.array(parents, dtype=np.int32), offsets, np.concatenate(members).astype(np.int32), rank, leaf_of)


def raised_items(
    cluster: Transactions,
    tree: ItemTree,
    k: int,
    m: int,
    l: int | None = None,  # noqa: E741 - the l of l-diversity
    start: Codes | None = None,
    leaves: Codes | None = None,
) -> Codes:
    """AA: the node of each item. leaves: the leaf of each item, ascending (default: its number); start: a cut to begin from.

    Guarantee: every set of at most m nodes that some record has is in at least k records, and with l no sensitive item is
    in more than 1/l of these; the same for any order of the rows. The caller checks records without items.
    Raises GuaranteeUnreachable if the root violates, LimitExceeded if sets are too large.
    Cost: per raise the rows of the set's branches below the root, and the rows of the raised nodes.
    """
    return cut_of(cluster, tree, k, m, l, start, leaves, False)


def vertical_items(
    cluster: Transactions,
    tree: ItemTree,
    k: int,
    m: int,
    l: int | None = None,  # noqa: E741
    leaves: Codes | None = None,
) -> Codes:
    """VPA: AA inside each subtree below the root, at most up to its top; then AA on all items from that cut."""
    leaf_of_item = np.arange(item_count(cluster), dtype=np.int32) if leaves is None else leaves
    part = leaf_of_item.copy()
    for _ in range(tree.parent.size):
        above = tree.parent[part]
        if (inside := (above != NONE) & (above != tree.parent.size - 1)).any():
            part[inside] = above[inside]
        else:
            break
    start = leaf_of_item.copy()
    for child in np.unique(part):
        in_part = np.flatnonzero(part == child)
        if in_part.size > 1:
            start[in_part] = cut_of(projected(cluster, in_part), tree, k, m, l, None, leaf_of_item[in_part], True)
    return cut_of(cluster, tree, k, m, l, start, leaf_of_item, False)


def projected(cluster: Transactions, items: Ints) -> Transactions:
    """The rows with at least one of the items, reduced to these items and renumbered."""
    number = np.full(item_count(cluster), NONE, dtype=np.int32)
    number[items] = np.arange(items.size, dtype=np.int32)
    kept = number[cluster.items] != NONE
    counts = np.concatenate([[0], np.cumsum(kept)])[cluster.offsets]
    rows = np.flatnonzero(np.diff(counts))
    offsets = np.concatenate([counts[rows], counts[-1:]])
    sensitive = taken_rows(cluster.sensitive_offsets, cluster.sensitive, rows)
    return Transactions(offsets, number[cluster.items[kept]], cluster.times[rows], *sensitive)


def cut_of(
    cluster: Transactions,
    tree: ItemTree,
    k: int,
    m: int,
    l: int | None,  # noqa: E741
    start: Codes | None,
    leaves: Codes | None,
    below_root: bool,
) -> Codes:
    """The node of each item; below_root: never raise to the root, and leave sets that still violate."""
    leaf_of_item = np.arange(item_count(cluster), dtype=np.int32) if leaves is None else leaves
    branches, nodes = branches_above(tree, leaf_of_item, below_root)
    first = leaf_of_item if start is None else start
    begin, from_nodes = np.searchsorted(nodes, leaf_of_item), np.searchsorted(nodes, first)
    outcome, cut = raise_all(cluster, branches, begin, from_nodes, k, m, l or 0, below_root)
    if outcome != DONE:
        raise fault_of(outcome, cluster, k, m, l)
    node_of_item: Codes = nodes[cut].astype(np.int32)
    return node_of_item


def branches_above(tree: ItemTree, leaves: Codes, below_root: bool) -> tuple[Branches, Ints]:
    """The nodes above these leaves, and their numbers in the tree."""
    item, node = np.arange(leaves.size), leaves.astype(np.int64)
    items, reached = [item], [node]
    while node.size:
        above = tree.parent[node].astype(np.int64)
        up = (above != NONE) & (not below_root or above != tree.parent.size - 1)
        item, node = item[up], above[up]
        items.append(item)
        reached.append(node)
    nodes, numbers = np.unique(np.concatenate(reached), return_inverse=True)
    order = np.lexsort((np.concatenate(items), numbers.ravel()))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(numbers.ravel(), minlength=nodes.size))])
    above = tree.parent[nodes].astype(np.int64)
    parent = np.where(np.isin(above, nodes), np.searchsorted(nodes, above), NONE).astype(np.int32)
    _, label = np.unique(tree.below[tree.offsets[nodes]], return_inverse=True)
    size = tree.sizes[nodes]
    below = np.concatenate(items)[order].astype(np.int32)
    return Branches(parent, size, label.ravel().astype(np.int64), tree.rank[nodes], offsets, below), nodes


# --- the loop ----------------------------------------------------------------------------------------------------------


@compiled
def raise_all(
    cluster: Transactions, tree: Branches, leaf: Ints, start: Ints, k: int, m: int, diversity: int, leave: bool
) -> tuple[int, Ints]:
    """The whole loop: outcome and cut. Every item begins at its leaf and is raised to `start` before anything is counted."""
    items = leaf.size
    labels = 0
    for node in range(tree.label.size):
        labels = max(labels, tree.label[node] + 1)
    images = images_of(cluster, tree.label[leaf], labels)
    bits, stamp = bits_of(labels), 0
    occurrences = np.zeros(items, dtype=np.int64)
    for row in range(cluster.times.size):
        for at in range(cluster.offsets[row], cluster.offsets[row + 1]):
            occurrences[cluster.items[at]] += cluster.times[row]
    cut, node_at = leaf.copy(), np.full(labels, NONE, dtype=np.int64)
    for item in range(items):
        node_at[tree.label[leaf[item]]] = leaf[item]
    for item in range(items):
        if cut[item] != start[item]:
            raise_to(images, tree, cut, node_at, start[item], stamp)
    heap, limit, size = no_sets(), MANY_SETS, 0
    while True:
        set_size, key = next_set(heap, images.changed, bits)
        if set_size == 0:  # all sizes so far are done
            size += 1
            if size > m or size > widest(images.sizes):
                return DONE, cut
            if size * bits > KEY_BITS:
                return TOO_LARGE, cut
            for label in range(labels):
                if images.first[label] != NONE:
                    limit = add_violating(heap, limit, images, label, size, True, bits, k, diversity, stamp)
            continue
        chains, length = chains_of(tree, node_at[members_of(key, set_size, bits)])
        outcome, targets = cheapest_raise(images, tree, chains, length, cut, occurrences, k, diversity)
        if outcome == UNREACHABLE and leave:
            continue
        if outcome != DONE:
            return outcome, cut
        stamp += 1
        for place in range(targets.size):
            raise_to(images, tree, cut, node_at, targets[place], stamp)
        for place in range(targets.size):
            for again in range(1 if diversity > 0 else size, size + 1):
                label = tree.label[targets[place]]
                limit = add_violating(heap, limit, images, label, again, False, bits, k, diversity, stamp)


@inner
def raise_to(images: Images, tree: Branches, cut: Ints, node_at: Ints, node: int, stamp: int) -> None:
    """Assign the node to all items below it."""
    label = tree.label[node]
    for at in range(tree.offsets[node], tree.offsets[node + 1]):
        item = tree.below[at]
        old = tree.label[cut[item]]
        cut[item] = node
        if old != label and images.first[old] != NONE:
            join(images, label, old, stamp)
    node_at[label] = node
    images.changed[label] = stamp


@inner
def chains_of(tree: Branches, nodes: Ints) -> tuple[Ints, Ints]:
    """Each node followed by its ancestors, and the length of each chain."""
    length, most = np.zeros(nodes.size, dtype=np.int64), 0
    for place in range(nodes.size):
        node = nodes[place]
        while node != NONE:
            length[place] += 1
            node = np.int64(tree.parent[node])
        most = max(most, length[place])
    chains = np.full((nodes.size, most), NONE, dtype=np.int64)
    for place in range(nodes.size):
        node = nodes[place]
        for step in range(length[place]):
            chains[place, step] = node
            node = np.int64(tree.parent[node])
    return chains, length


@inner
def cheapest_raise(
    images: Images, tree: Branches, chains: Ints, length: Ints, cut: Ints, occurrences: Ints, k: int, diversity: int
) -> tuple[int, Ints]:
    """The nodes to raise to; ties: fewer members raised, then the order of the nodes they are raised to."""
    members = length.size
    ways = 1
    for place in range(members):
        ways *= length[place]
        if ways > MOST_WAYS:
            return TOO_LARGE, length
    support = rows_by_way(images, tree, chains, length, ways, diversity > 0)
    price = prices(tree, chains, length, cut, occurrences)
    chosen, reached = np.zeros(members, dtype=np.int64), np.zeros(members, dtype=np.int64)
    order, best_order = np.empty(members, dtype=np.int64), np.empty(members, dtype=np.int64)
    best, best_raised, best_reached = 0, NONE, reached.copy()
    for way in range(1, ways):
        rest, raised = way, 0
        for place in range(members - 1, -1, -1):
            chosen[place] = rest % length[place]
            rest //= length[place]
            raised += chosen[place] > 0
        follow(chains, length, chosen, reached)
        at, cost = 0, 0
        for place in range(members):
            at = at * length[place] + reached[place]
            if is_first(chains, reached, place):
                cost += price[place, reached[place]]
        if support[0, at] < k or not is_diverse(support, at, diversity):
            continue
        if best_raised != NONE and (cost > best or (cost == best and raised > best_raised)):
            continue
        target_order(tree.rank, chains, chosen, order)
        if best_raised == NONE or cost < best or raised < best_raised or is_before(order, best_order):
            best, best_raised = cost, raised
            best_order[:], best_reached[:] = order, reached
    if best_raised == NONE:
        return UNREACHABLE, length
    targets, count = np.empty(members, dtype=np.int64), 0
    for place in range(members):
        if best_reached[place] > 0 and is_first(chains, best_reached, place):
            targets[count] = chains[place, best_reached[place]]
            count += 1
    return DONE, targets[:count]


@inner
def rows_by_way(images: Images, tree: Branches, chains: Ints, length: Ints, ways: int, diverse: bool) -> Ints:
    """For every choice of one node per chain: the records with items below all of them, in total and per sensitive item.
    The last node of a chain is above all items."""
    members, rows = length.size, images.sizes.size
    support = np.zeros((1 + images.kinds if diverse else 1, ways), dtype=np.int64)
    lowest = np.empty((members, rows), dtype=np.int32)  # the first step of the chain that covers the row
    for place in range(members):
        lowest[place, :] = length[place] - 1
        for step in range(length[place] - 1):
            node = chains[place, step]
            for below in range(tree.offsets[node], tree.offsets[node + 1]):
                item = tree.below[below]
                for at in range(images.row_starts[item], images.row_starts[item] + images.row_counts[item]):
                    row = images.rows[at]
                    lowest[place, row] = min(lowest[place, row], step)
    for row in range(rows):
        if images.sizes[row] == 0:
            continue
        way = 0
        for place in range(members):
            way = way * length[place] + lowest[place, row]
        support[0, way] += images.times[row]
        if diverse:
            for at in range(images.sensitive_offsets[row], images.sensitive_offsets[row + 1]):
                support[1 + images.sensitive[at], way] += images.times[row]
    stride = 1
    for place in range(members - 1, -1, -1):  # a higher node has the rows of the lower ones
        for way in range(ways):
            if way // stride % length[place] > 0:
                for kind in range(support.shape[0]):
                    support[kind, way] += support[kind, way - stride]
        stride *= length[place]
    return support


@inner
def prices(tree: Branches, chains: Ints, length: Ints, cut: Ints, occurrences: Ints) -> Ints:
    """Increase of Σ occurrences · leaves if all items below a node of a chain are raised to it."""
    price = np.zeros(chains.shape, dtype=np.int64)
    for place in range(length.size):
        for step in range(1, length[place]):
            node = chains[place, step]
            for at in range(tree.offsets[node], tree.offsets[node + 1]):
                item = tree.below[at]
                current = tree.size[cut[item]]
                price[place, step] += occurrences[item] * (tree.size[node] - (current if current > 1 else 0))
    return price


@inner
def follow(chains: Ints, length: Ints, chosen: Ints, reached: Ints) -> None:
    """The node each member ends at: the highest chosen node above it."""
    write(chosen, reached)
    for place in range(length.size):
        if chosen[place] == 0:
            continue
        node = chains[place, chosen[place]]
        for other in range(length.size):
            for step in range(reached[other] + 1, length[other]):
                if chains[other, step] == node:
                    reached[other] = step
                    break


@inner
def is_first(chains: Ints, reached: Ints, place: int) -> bool:
    """Whether no earlier member ends at the same node."""
    for before in range(place):
        if chains[before, reached[before]] == chains[place, reached[place]]:
            return False
    return True


@inner
def is_diverse(support: Ints, way: int, diversity: int) -> bool:
    for kind in range(1, support.shape[0]):
        if support[kind, way] * diversity > support[0, way]:
            return False
    return True


@inner
def target_order(rank: Codes, chains: Ints, chosen: Ints, order: Ints) -> None:
    """The ranks of the distinct target nodes, ascending; the rest is NONE, which sorts before all ranks."""
    order[:] = NONE
    count = 0
    for place in range(chosen.size):
        if chosen[place] == 0:
            continue
        value = np.int64(rank[chains[place, chosen[place]]])
        at = 0
        while at < count and order[at] < value:
            at += 1
        if at < count and order[at] == value:
            continue
        for after in range(count, at, -1):
            order[after] = order[after - 1]
        order[at] = value
        count += 1


@inner
def is_before(order: Ints, other: Ints) -> bool:
    for place in range(order.size):
        if order[place] != other[place]:
            return bool(order[place] < other[place])
    return False
