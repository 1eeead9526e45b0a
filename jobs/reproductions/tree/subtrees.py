"""Frequent subtrees: records as rows of path numbers, sets of paths as a trie, and what a release loses of each set.

A path is a sequence of labels from the root of a record, projected to one level; its number is above its parent's. A subtree
is an ascending set of paths that holds the parent of each, so without its last path it is a subtree again: the subtrees of
all sizes are the nodes of one trie. A record comes as the labels of its paths one after the other, the first of each path
as its complement ~label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.errors import LimitExceeded
from anon_spark.kernels.classes import Codes, Ints

ROOT = -1
FEW = 16  # children of a node that are looked through one by one
MOST_SETS = 2_000_000  # frequent sets and candidates of one size: they reach the driver and every task


class Projection(NamedTuple):
    """The forest as loops need it; images[i]: the ancestor of each node on level i."""

    images: Codes
    parents: Codes
    levels: Codes
    height: int


class Paths(NamedTuple):
    """Paths by number: the parent's number (ROOT: none), the last label, the level of the projection, the length.

    keys: sorted, one per path; numbers: which one it is.
    """

    parents: Codes
    labels: Codes
    levels: Codes
    depths: Codes
    keys: Ints
    numbers: Codes


class Trie(NamedTuple):
    """Sets of paths by size, then by their paths: the node of a set without its last path (ROOT: none), and that path.

    The children of node x are first[x] to first[x + 1], those of the root 0 to first[0].
    """

    bases: Ints
    items: Codes
    first: Ints


class Rows(NamedTuple):
    """Ascending path numbers of each record on each level: of its original, and of what is published (`shown`).

    lost: levels that a path's last label was raised, all of them if it is gone; broken: its relations to the labels before
    it that are gone.
    """

    offsets: Ints
    items: Codes
    lost: Codes
    broken: Codes
    shown_offsets: Ints
    shown: Codes


def trie_of(bases: Ints, items: Codes) -> Trie:
    """From nodes in the order of a trie."""
    return Trie(bases, items, np.searchsorted(bases, np.arange(items.size + 1)).astype(np.int64))


def _with_candidates(trie: Trie, bases: Ints, items: Codes) -> Trie:
    """A trie of candidates, one path larger than sets of this one, and of these only what leads to them."""
    needed = np.zeros(trie.items.size + 1, dtype=np.bool_)
    needed[bases] = True
    for node in range(trie.items.size - 1, -1, -1):
        if needed[node]:
            needed[trie.bases[node]] = True  # of a single path: the place after the last node
    kept = np.flatnonzero(needed[:-1])
    place = np.full(trie.items.size + 1, ROOT, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    return trie_of(
        np.concatenate([place[trie.bases[kept]], place[bases]]), np.concatenate([trie.items[kept], items])
    )


def _by_parent(paths: Paths) -> tuple[Codes, Ints]:
    """Paths by parent, single labels left out, and where those of each parent begin."""
    order = np.argsort(paths.parents, kind="stable").astype(np.int32)
    longer = order[np.count_nonzero(paths.parents == ROOT) :]
    return longer, np.searchsorted(paths.parents[longer], np.arange(paths.parents.size + 1)).astype(np.int64)


def frequent_paths(projection: Projection, count: Callable[[Paths, int], tuple[Ints, Ints]]) -> tuple[Paths, Ints]:
    """Paths longer and longer, as long as `count` finds any, and how many records have each.

    count: (known paths, length) → keys of the frequent paths of this length whose parents are known, ascending, and counts.
    """
    none = np.zeros(0, dtype=np.int32)
    paths, supports = Paths(none, none, none, none, np.zeros(0, dtype=np.int64), none), np.zeros(0, dtype=np.int64)
    while True:
        keys, rows = count(paths, 1 + int(paths.depths.max(initial=0)))
        if not keys.size:
            return paths, supports
        paths, supports = _with_keys(paths, keys, projection), np.concatenate([supports, rows])


def _with_keys(paths: Paths, keys: Ints, projection: Projection) -> Paths:
    """The paths, and numbered on those one longer that have these keys."""
    levels, nodes = projection.images.shape
    above, labels = keys // nodes, (keys % nodes).astype(np.int32)
    number = paths.labels.size + np.arange(keys.size, dtype=np.int32)
    if not paths.labels.size:
        parents, level = np.full(keys.size, ROOT, dtype=np.int32), above.astype(np.int32)
        depth = np.ones(keys.size, dtype=np.int32)
    else:
        parents = (above - levels).astype(np.int32)
        level, depth = paths.levels[parents], paths.depths[parents] + np.int32(1)
    every = np.concatenate([paths.keys, keys])
    order = np.argsort(every)
    return Paths(
        np.concatenate([paths.parents, parents]),
        np.concatenate([paths.labels, labels]),
        np.concatenate([paths.levels, level]),
        np.concatenate([paths.depths, depth]),
        every[order],
        np.concatenate([paths.numbers, number])[order],
    )


class FrequentSets(NamedTuple):
    """All frequent sets with their supports; is_capped: larger candidates than allowed were left uncounted."""

    trie: Trie
    supports: Ints
    is_capped: bool


def frequent_sets(
    paths: Paths, path_supports: Ints, count: Callable[[Trie, int], Ints], least: int, max_nodes: int
) -> FrequentSets:
    """Sets of paths size by size, that `count` finds in at least `least` records.

    count: (trie, c) → how many records hold each of its last c sets. Guarantee: all frequent sets of up to max_nodes paths.
    """
    longer, first_longer = _by_parent(paths)
    single = np.flatnonzero(paths.parents == ROOT).astype(np.int32)
    trie, supports = trie_of(np.full(single.size, ROOT, dtype=np.int64), single), path_supports[single]
    begin, size = 0, 1
    while True:  # the trie holds all frequent sets of up to `size` paths, the largest from node `begin` on
        # 1. sets of one more path, all of whose parts are frequent
        bases, items = candidates(trie, begin, paths, first_longer, longer, MOST_SETS + 1)
        if items.size + trie.items.size > MOST_SETS:
            raise LimitExceeded(
                f"Subtrees of up to {size + 1} nodes: more than {MOST_SETS:,}. Raise minsup or lower max_nodes.",
                limit=MOST_SETS,
            )
        if size == max_nodes or not items.size:
            return FrequentSets(trie, supports, bool(items.size))
        # 2. keep those in enough records
        counts = count(_with_candidates(trie, bases, items), items.size)
        kept = counts >= least
        begin, size = trie.items.size, size + 1
        trie = trie_of(np.concatenate([trie.bases, bases[kept]]), np.concatenate([trie.items, items[kept]]))
        supports = np.concatenate([supports, counts[kept]])


@compiled
def _place(keys: Ints, count: int, key: int) -> int:
    """Where a key stands among the first, or -1."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < count and keys[low] == key else -1


@compiled
def _first_from(items: Codes, low: int, high: int, path: int) -> int:
    """The first place from low on with this path or a later one; high: there is none."""
    if high - low <= FEW:
        while low < high and items[low] < path:
            low += 1
        return low
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < path:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _distinct(numbers: Ints, begin: int, end: int) -> int:
    """Sort the numbers from begin to end, each once; where they end now. Cost: small for the few of one record."""
    gap = (end - begin) // 2
    while gap > 0:
        for at in range(begin + gap, end):
            number, place = numbers[at], at
            while place >= begin + gap and numbers[place - gap] > number:
                numbers[place] = numbers[place - gap]
                place -= gap
            numbers[place] = number
        gap //= 2
    kept = begin
    for at in range(begin, end):
        if at == begin or numbers[at] != numbers[kept - 1]:
            numbers[kept] = numbers[at]
            kept += 1
    return kept


@compiled
def longer_paths(offsets: Ints, codes: Codes, projection: Projection, paths: Paths, depth: int) -> Ints:
    """Keys of the paths of length `depth` whose parents are known, once per record and level."""
    levels, nodes = projection.images.shape
    found = np.empty(levels * codes.size, dtype=np.int64)
    count = 0
    for record in range(offsets.size - 1):
        for level in range(levels):
            begin, above, length = count, np.int64(0), 0
            for at in range(offsets[record], offsets[record + 1]):
                code = np.int64(codes[at])
                if code < 0:
                    code, above, length = ~code, np.int64(level), 0
                length += 1
                if above < 0 or length > depth:
                    continue
                key = above * nodes + projection.images[level, code]
                if length == depth:
                    found[count] = key
                    count += 1
                else:
                    known = _place(paths.keys, paths.keys.size, key)
                    above = np.int64(-1) if known < 0 else levels + np.int64(paths.numbers[known])
            count = _distinct(found, begin, count)
    return found[:count]


@compiled
def _known_paths(codes: Codes, level: int, projection: Projection, paths: Paths, found: Ints) -> int:
    """Numbers of the paths of one record on a level, ascending, each once; how many there are."""
    levels, nodes = projection.images.shape
    above, count = np.int64(-1), 0
    for at in range(codes.size):
        code = np.int64(codes[at])
        if code < 0:
            code, above = ~code, np.int64(level)
        if above < 0:
            continue
        known = _place(paths.keys, paths.keys.size, above * nodes + projection.images[level, code])
        if known < 0:
            above = np.int64(-1)
        else:
            found[count] = paths.numbers[known]
            above = levels + found[count]
            count += 1
    return _distinct(found, 0, count)


@compiled
def rows_of(
    offsets: Ints, codes: Codes, shown_offsets: Ints, shown: Codes, projection: Projection, paths: Paths
) -> Rows:
    """A row per record and level. Cost: levels × nodes of a record × (lookup of a path + height × length of a path)."""
    levels, nodes = projection.images.shape
    records = offsets.size - 1
    starts, shown_starts = np.zeros(records * levels + 1, dtype=np.int64), np.zeros(records * levels + 1, dtype=np.int64)
    items, lost = np.empty(levels * codes.size, dtype=np.int32), np.empty(levels * codes.size, dtype=np.int32)
    broken, visible = np.empty(levels * codes.size, dtype=np.int32), np.empty(levels * shown.size, dtype=np.int32)
    most = 1
    for record in range(records):
        most = max(most, offsets[record + 1] - offsets[record], shown_offsets[record + 1] - shown_offsets[record])
    found, met = np.empty(most, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    longest, length = 1, 0
    for code in shown:
        length = 1 if code < 0 else length + 1
        longest = max(longest, length)
    chain, relations = np.empty(longest, dtype=np.int64), np.empty(most * longest, dtype=np.int64)
    count, shown_count, row = 0, 0, 0
    for record in range(records):
        own = codes[offsets[record] : offsets[record + 1]]
        published = shown[shown_offsets[record] : shown_offsets[record + 1]]
        for level in range(levels):
            # 1. labels and relations that are published
            pairs, length = 0, 0
            for code in published:
                length = 0 if code < 0 else length
                label = np.int64(projection.images[level, ~code if code < 0 else code])
                met[label] = row
                for before in range(length):
                    relations[pairs] = chain[before] * nodes + label
                    pairs += 1
                chain[length] = label
                length += 1
            pairs = _distinct(relations, 0, pairs)
            # 2. the original's paths, and what became of them
            for at in range(_known_paths(own, level, projection, paths, found)):
                path = found[at]
                image = _image(projection.parents, met, row, paths.labels[path])
                gone = 0
                above = paths.parents[path]
                while above != ROOT:
                    over = _image(projection.parents, met, row, paths.labels[above])
                    if image < 0 or over < 0 or _place(relations, pairs, over * nodes + image) < 0:
                        gone += 1
                    above = paths.parents[above]
                items[count], broken[count] = path, gone
                lost[count] = projection.height if image < 0 else max(0, projection.levels[image] - level)
                count += 1
            # 3. the paths that are published
            for at in range(_known_paths(published, level, projection, paths, found)):
                visible[shown_count] = found[at]
                shown_count += 1
            row += 1
            starts[row], shown_starts[row] = count, shown_count
    return Rows(starts, items[:count], lost[:count], broken[:count], shown_starts, visible[:shown_count])


@compiled
def _image(parents: Codes, met: Ints, row: int, label: int) -> int:
    """The label, or the lowest one above it, that the row publishes; -1: none."""
    at = np.int64(label)
    while at >= 0 and met[at] != row:
        at = np.int64(parents[at])
    return int(at)


@compiled
def add_supports(trie: Trie, offsets: Ints, items: Codes, supports: Ints) -> None:
    """Count for every set of a trie the rows that hold it. Cost: the sets a row holds, and their children looked at."""
    depths = _depth(trie)
    low, high = np.empty(depths + 1, dtype=np.int64), np.empty(depths + 1, dtype=np.int64)
    at = np.empty(depths + 1, dtype=np.int64)
    for row in range(offsets.size - 1):
        last, depth = offsets[row + 1], 0
        low[0], high[0], at[0] = 0, trie.first[0], offsets[row]
        while depth >= 0:
            node = _next_child(trie.items, items, low, high, at, depth, last)
            if node < 0:
                depth -= 1
                continue
            supports[node] += 1
            if trie.first[node + 1] > trie.first[node]:
                depth += 1
                low[depth], high[depth], at[depth] = trie.first[node], trie.first[node + 1], at[depth - 1]


@compiled
def add_losses(trie: Trie, rows: Rows, lost: Ints, broken: Ints) -> None:
    """Sum for every set of a trie what its paths lost in the rows that hold it."""
    depths = _depth(trie)
    low, high = np.empty(depths + 1, dtype=np.int64), np.empty(depths + 1, dtype=np.int64)
    at = np.empty(depths + 1, dtype=np.int64)
    raised, cut = np.zeros(depths + 2, dtype=np.int64), np.zeros(depths + 2, dtype=np.int64)
    for row in range(rows.offsets.size - 1):
        last, depth = rows.offsets[row + 1], 0
        low[0], high[0], at[0] = 0, trie.first[0], rows.offsets[row]
        while depth >= 0:
            node = _next_child(trie.items, rows.items, low, high, at, depth, last)
            if node < 0:
                depth -= 1
                continue
            place = at[depth] - 1
            raised[depth + 1] = raised[depth] + rows.lost[place]
            cut[depth + 1] = cut[depth] + rows.broken[place]
            lost[node] += raised[depth + 1]
            broken[node] += cut[depth + 1]
            if trie.first[node + 1] > trie.first[node]:
                depth += 1
                low[depth], high[depth], at[depth] = trie.first[node], trie.first[node + 1], at[depth - 1]


@compiled
def _depth(trie: Trie) -> int:
    """Paths of the largest set."""
    node, depth = trie.items.size - 1, 0
    while node >= 0:
        node = trie.bases[node]
        depth += 1
    return depth


@compiled
def _next_child(known: Codes, items: Codes, low: Ints, high: Ints, at: Ints, depth: int, last: int) -> int:
    """The next child of a node whose path the row has; what was looked at is passed over. -1: there is none."""
    node, place = low[depth], at[depth]
    while place < last and node < high[depth]:
        path = items[place]
        node = _first_from(known, node, high[depth], path)
        place += 1
        if node < high[depth] and known[node] == path:
            low[depth], at[depth] = node + 1, place
            return int(node)
    return -1


@compiled
def _child(trie: Trie, node: int, path: int) -> int:
    """The set with one more path, or -1."""
    high = trie.first[node + 1]
    place = _first_from(trie.items, 0 if node < 0 else trie.first[node], high, path)
    return place if place < high and trie.items[place] == path else -1


@compiled
def candidates(
    trie: Trie, begin: int, paths: Paths, first_longer: Ints, longer: Codes, most: int
) -> tuple[Ints, Codes]:
    """Sets one larger than those from node `begin` on, which are all of the largest size: (set, path that is added), sorted.

    longer: paths by parent, from first_longer[parent] on. Guarantee: a set is named once, and exactly if it holds the parent
    of each path and is in the trie without any path that no other continues. Ends at `most`.
    Cost: candidates × size² × log(children).
    """
    total, size = trie.items.size, _depth(trie)
    members = np.empty(size + 1, dtype=np.int64)
    bases, items = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int32)
    count = 0
    for node in range(begin, total):
        if count >= most:
            break
        path, up = np.int64(trie.items[node]), np.int64(node)
        for at in range(size - 1, -1, -1):
            members[at] = trie.items[up]
            up = trie.bases[up]
        # the next paths of the same smaller set, and those that continue the last path, both ascending
        sibling, last_sibling = np.int64(node) + 1, trie.first[trie.bases[node] + 1]
        child, last_child = first_longer[path], first_longer[path + 1]
        while sibling < last_sibling or child < last_child:
            if child == last_child or (sibling < last_sibling and trie.items[sibling] < longer[child]):
                added = np.int64(trie.items[sibling])
                sibling += 1
            else:
                added = np.int64(longer[child])
                child += 1
            if paths.levels[added] != paths.levels[path]:
                continue
            members[size] = added
            if not _has_all_parts(trie, paths, members):
                continue
            if count == items.size:
                wider, wide = np.empty(2 * count, dtype=np.int64), np.empty(2 * count, dtype=np.int32)
                for at in range(count):
                    wider[at], wide[at] = bases[at], items[at]
                bases, items = wider, wide
            bases[count], items[count] = node, added
            count += 1
    return bases[:count], items[:count]


@compiled
def _has_all_parts(trie: Trie, paths: Paths, members: Ints) -> bool:
    """Whether the set is in the trie without any one of its paths that no other continues; not looked at: the last two."""
    for out in range(members.size - 2):
        is_end = True
        for at in range(out + 1, members.size):
            if paths.parents[members[at]] == members[out]:
                is_end = False
                break
        if not is_end:
            continue
        node = -1
        for at in range(members.size):
            if at != out:
                node = _child(trie, node, members[at])
                if node < 0:
                    return False
    return True
