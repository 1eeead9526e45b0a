"""Nested records as arrays: recoding, counting and synopsis against brute force on sets of paths; no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product
from math import comb, prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.errors import LimitExceeded
from anon_spark.families.tree.kernels import counting as tree_counting
from anon_spark.families.tree.kernels.counting import label_counts, merged, tally
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.synopsis import (
    Synopsis,
    in_preorder,
    merged_synopses,
    record_rpd,
    rpd_a,
    rpd_a_of,
    shares_of,
    split,
    synopsis,
    updated_synopsis,
)
from anon_spark.families.tree.kernels.trees import (
    NONE,
    Trees,
    canonical,
    concatenated,
    disassociated,
    disassociated_uses,
    distinct,
    holders_of,
    holding,
    leaf_paths,
    packed,
    paths_of,
    projected,
    renamed,
    taken,
    trees_of,
    unpacked,
)
from anon_spark.families.tree.kernels.violations import (
    Position,
    Violations,
    all_violations,
    first_violation,
    relation_supports,
)
from anon_spark.kernels.classes import Codes, Ints

pytestmark = pytest.mark.compiles

SEEDS = st.integers(0, 2**32).map(Random)
Path = tuple[int, ...]
Tree = frozenset[Path]  # closed under prefixes
Pair = tuple[int, int]

LABELS = 12
RANK_OF = [2, 0, 1, 3, 0, 2, 1, 0, 2, 1, 3, 0]  # by label: ranks of node types do not follow the order of labels


# --- brute force on sets of paths --------------------------------------------------------------------------------------


def closed(paths: Iterable[Path]) -> Tree:
    return frozenset(path[:end] for path in paths for end in range(1, len(path) + 1))


def leaves(tree: Tree) -> list[Path]:
    return sorted(path for path in tree if not any(other[: len(path)] == path for other in tree if len(other) > len(path)))


def dis(tree: Tree, a: int, b: int) -> Tree:
    """Word for word as specified."""
    paths = set[Path]()
    for path in tree:
        if a in path and b in path and path.index(a) < path.index(b):
            paths |= {tuple(one for one in path if one != b), (*path[: path.index(a)], b)}
        else:
            paths.add(path)
    return closed(paths)


@cache
def relations(tree: Tree) -> frozenset[Pair]:
    return frozenset(pair for path in tree for pair in combinations(path, 2))


@cache
def items(tree: Tree) -> frozenset[int]:
    return frozenset(one for path in tree for one in path)


def somewhere(rng: Random, labels: Sequence[int] = range(LABELS), most: int = 4) -> Tree:
    """A few paths whose node types ascend; now and then none."""
    paths = list[Path]()
    for _ in range(rng.choice([0, 1, 2, 3, most])):
        chosen = sorted(rng.sample(labels, rng.randint(1, min(6, len(labels)))), key=lambda one: RANK_OF[one])
        paths.append(tuple(one for at, one in enumerate(chosen) if at == 0 or RANK_OF[one] > RANK_OF[chosen[at - 1]]))
    return closed(paths)


def table(rng: Random, most: int = 9, labels: int = LABELS) -> list[Tree]:
    few = rng.sample(range(LABELS), labels)
    records = [somewhere(rng, few) for _ in range(rng.randint(1, most))]
    return records + rng.choices(records, k=rng.randint(0, 4))


def pairs_among(rng: Random, most: int) -> list[Pair]:
    possible = [(a, b) for a, b in product(range(LABELS), repeat=2) if RANK_OF[a] < RANK_OF[b]]
    return rng.sample(possible, rng.randint(0, most))


def array(pairs: Sequence[Path]) -> Codes:
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def all_paths(trees: Trees) -> list[list[Path]]:
    return [paths_of(trees, record) for record in range(trees.records)]


def assert_are(trees: Trees, expected: Sequence[Tree]) -> None:
    """These records, in canonical form: the very arrays."""
    wanted = trees_of(expected)
    assert all_paths(trees) == [leaves(tree) for tree in expected]
    assert [own.tolist() for own in as_arrays(trees)] == [own.tolist() for own in as_arrays(wanted)]
    assert [own.dtype for own in as_arrays(trees)] == [np.int64, np.int32, np.int32]


def as_arrays(trees: Trees) -> list[Any]:
    return list(trees)


# --- records -----------------------------------------------------------------------------------------------------------


def shuffled(rng: Random, tree: Tree) -> list[tuple[int, int]]:
    """Label and parent's place of every node, some twice with or without what is below them, in any order that parents lead."""
    nodes, waiting = list[tuple[int, int]](), list[tuple[Path, int]]()
    waiting += [(path, NONE) for path in tree if len(path) == 1]
    while waiting:
        path, parent = waiting.pop(rng.randrange(len(waiting)))
        nodes.append((path[-1], parent))
        below = [other for other in tree if len(other) == len(path) + 1 and other[:-1] == path]
        waiting += [(other, len(nodes) - 1) for other in below]
        if rng.random() < 0.2:
            nodes.append((path[-1], parent))
            waiting += [(other, len(nodes) - 1) for other in below if rng.random() < 0.5]
    return nodes


def with_equal_siblings(rng: Random, records: Sequence[Tree]) -> Trees:
    nodes = [shuffled(rng, tree) for tree in records]
    return Trees.of(
        np.cumsum([0, *map(len, nodes)]),
        np.array([label for one in nodes for label, _ in one], dtype=np.int64),
        np.array([parent for one in nodes for _, parent in one], dtype=np.int64),
    )


@given(SEEDS)
@settings(max_examples=60)
def test_canonical_merges_equal_siblings_in_any_order(rng: Random) -> None:
    records = table(rng)
    raw = with_equal_siblings(rng, records)

    assert_are(canonical(raw), records)
    assert_are(canonical(canonical(raw)), records)


def test_a_record_of_many_nodes_is_merged_as_well() -> None:
    labels = np.random.default_rng(7).permutation(3000)
    raw = Trees.of([0, 6000], np.concatenate([labels, labels]), np.concatenate([np.full(3000, NONE), np.arange(3000)[::-1]]))

    found = canonical(raw)

    assert paths_of(found, 0) == sorted((int(labels[2999 - at]), int(one)) for at, one in enumerate(labels))
    assert found.labels.size == 6000


@given(SEEDS)
@settings(max_examples=60)
def test_projection_is_the_set_of_projected_paths(rng: Random) -> None:
    """Labels of one node type share images, those of sensitive ones are their own, and `*` is above all and nowhere else."""
    records, top = table(rng), LABELS
    sensitive = set(rng.sample(range(4), rng.randint(0, 1)))
    everything = rng.random() < 0.3
    image = [*range(LABELS), top if everything else NONE]
    for label in range(LABELS):
        if RANK_OF[label] not in sensitive:
            alike = [one for one in range(label + 1) if RANK_OF[one] == RANK_OF[label]]
            image[label] = top if everything else rng.choice(alike)

    def of(path: Path) -> Path:
        mapped = [image[one] for one in path]
        return (top, *(one for one in mapped if one != top)) if everything else tuple(mapped)

    expected = [closed([*map(of, tree), *[(top,)] * everything]) for tree in records]
    assert_are(projected(trees_of(records), np.array(image, dtype=np.int32), top), expected)


def test_the_top_holds_one_path_and_the_sensitive_nodes_below_it() -> None:
    image = np.array([9, 9, 9, 3, 9, 9, 9, 9, 9, 9], dtype=np.int32)
    trees = trees_of([[(0, 1, 2), (4, 5), (6,)], [(0, 1, 3), (0, 3), (2,)], [(0, 3, 5)], [(3,)], []])

    assert all_paths(projected(trees, image, 9)) == [[(9,)], [(9, 3)], [(9, 3)], [(9, 3)], [(9,)]]


def test_a_label_above_the_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="above the cut"):
        projected(trees_of([[(0, 1)]]), np.array([0, -1], dtype=np.int32), 9)


@given(SEEDS)
@settings(max_examples=120)
def test_disassociations_act_one_after_the_other(rng: Random) -> None:
    records, pairs = table(rng), pairs_among(rng, 14)
    weights = np.array([rng.randint(1, 5) for _ in records], dtype=np.int64)

    expected, uses = list(records), list[int]()
    for a, b in pairs:
        uses.append(sum(int(w) for w, tree in zip(weights, expected, strict=True) if (a, b) in relations(tree)))
        expected = [dis(tree, a, b) for tree in expected]

    changed, used = disassociated_uses(trees_of(records), array(pairs), weights)
    assert_are(changed, expected)
    assert used.tolist() == uses
    assert_are(disassociated(trees_of(records), array(pairs)), expected)
    assert not any(set(pairs) & relations(closed(paths)) for paths in all_paths(changed))


def test_disassociations_of_the_specification() -> None:
    h1, d1, t1, t2 = 0, 1, 2, 3
    trees = trees_of([[(h1, d1, t1)], [(h1, d1, t1), (h1, t1), (d1, t2)]])
    assert all_paths(disassociated(trees, array([(h1, d1)]))) == [[(h1, t1), (d1,)], [(h1, t1), (d1, t2)]]
    a, b, c, d = range(4)
    chain = trees_of([[(a, b, c, d)]])
    assert paths_of(disassociated(chain, array([(a, b), (b, c)])), 0) == [(a, c, d), (b,)]
    assert paths_of(disassociated(chain, array([(b, c), (a, b)])), 0) == [(a, c), (a, d), (b,)]


@given(SEEDS)
def test_records_are_chosen_joined_and_carried(rng: Random) -> None:
    records = table(rng)
    trees, keep = trees_of(records), np.array([rng.random() < 0.5 for _ in records])
    wanted = np.array([rng.random() < 0.2 for _ in range(LABELS)])

    assert_are(taken(trees, np.flatnonzero(keep)), [tree for tree, kept in zip(records, keep, strict=True) if kept])
    holders = holders_of(trees, LABELS)
    for label, (begin, end) in enumerate(pairwise(holders.offsets.tolist())):
        assert holders.records[begin:end].tolist() == [at for at, tree in enumerate(records) if label in items(tree)]
    wanted_in = [at for at, tree in enumerate(records) if any(wanted[one] for one in items(tree))]
    assert holding(holders, wanted, trees.records).tolist() == wanted_in
    assert_are(concatenated([trees, trees_of([]), trees_of(records[::-1])]), records + records[::-1])
    assert_are(unpacked(packed(trees)), records)
    of_record, of_path, labels = leaf_paths(trees)
    found = [tuple(labels[a:b].tolist()) for a, b in pairwise(of_path)]
    assert [sorted(found[a:b]) for a, b in pairwise(of_record)] == all_paths(trees)
    assert concatenated([]).records == 0
    assert unpacked(packed(trees)).labels.flags.writeable


@given(SEEDS)
def test_distinct_adds_the_weights_of_equal_records(rng: Random) -> None:
    records = table(rng, labels=3)
    weights = [rng.randint(1, 9) for _ in records]
    sums = Counter[Tree]()
    for tree, weight in zip(records, weights, strict=True):
        sums[tree] += weight

    trees, summed = distinct(trees_of(records), np.array(weights, dtype=np.int64))

    assert_are(trees, list(sums))
    assert summed.tolist() == list(sums.values())


def test_records_of_one_hash_stay_apart() -> None:
    """The second nodes are made so that two records of two nodes collide."""
    multiplier, full = 0x9E3779B97F4A7C15, 2**64 - 1

    def step(word: int, node: int) -> int:
        return ((word ^ (word >> 31) ^ (node & full)) * multiplier) & full

    def fold(word: int) -> int:
        return word ^ (word >> 31)

    first, second = step(2, (1 << 32) - 1), step(2, (2 << 32) - 1)
    node = (fold(first) ^ fold(second) ^ (5 << 32)) & full
    assert step(second, node) == step(first, 5 << 32)
    signed = node - (1 << 64) if node >> 63 else node
    label, parent = (signed + (1 << 31)) >> 32, (signed + (1 << 31)) % (1 << 32) - (1 << 31)
    trees = Trees.of([0, 2, 4, 6], np.array([1, 5, 2, label, 1, 5]), np.array([-1, 0, -1, parent, -1, 0]))

    apart, weights = distinct(trees, np.array([1, 10, 100], dtype=np.int64))

    assert apart.labels.tolist() == [1, 5, 2, label]
    assert weights.tolist() == [101, 10]


# --- counting ----------------------------------------------------------------------------------------------------------


def nothing() -> tuple[Ints, Ints]:
    return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)


class Case:
    """Records with weights, the labels that count, those whose absence is known, and sensitive labels."""

    def __init__(self, rng: Random, labels: int = 7, diverse: bool = False) -> None:
        self.records = table(rng, labels=labels)
        self.weights = [rng.randint(1, 3) for _ in self.records]
        secret = set(rng.sample(range(4), 1)) if diverse else set[int]()
        seen = sorted(one for one in range(LABELS) if RANK_OF[one] not in secret and rng.random() < 0.9)
        self.kinds = [one for one in range(LABELS) if RANK_OF[one] in secret]
        self.negated = [[one for one in range(LABELS) if rng.random() < 0.3] for _ in range(rng.choice([0, 0, 1, 2]))]
        self.names = [*seen, *(-1 - at for at in range(len(self.negated)))]  # by slot; ¬ are negative
        self.ranks = np.array([RANK_OF[one] if one >= 0 else -1 for one in self.names], dtype=np.int32)
        self.m = rng.randint(1, 4)
        self.layout = Layout.of(len(self.names), self.m, len(self.kinds))

    def slots(self, tree: Tree) -> list[int]:
        absent = {-1 - at for at, row in enumerate(self.negated) if not items(tree) & set(row)}
        return [slot for slot, name in enumerate(self.names) if name in items(tree) | absent]

    def related(self, tree: Tree, one: int, other: int) -> bool:
        return bool({(self.names[one], self.names[other]), (self.names[other], self.names[one])} & relations(tree))

    def tally(
        self, focus: Sequence[int] = (), m: int | None = None, part: slice = slice(None), trees: Trees | None = None
    ) -> tuple[Ints, Ints]:
        c = len(self.names)
        slots, secrets = np.full(LABELS, -1, dtype=np.int32), np.zeros(LABELS, dtype=np.int32)
        for slot, name in enumerate(self.names):
            if name >= 0:
                slots[name] = slot
        secrets[self.kinds] = np.arange(1, len(self.kinds) + 1)
        negated = np.zeros((len(self.negated), LABELS), dtype=np.bool_)
        for row, named in zip(negated, self.negated, strict=True):
            row[named] = True
        in_focus = np.zeros(c if focus else 0, dtype=np.bool_)
        in_focus[list(focus)] = True
        weights = np.array(self.weights[part], dtype=np.int64)
        trees = trees_of(self.records[part]) if trees is None else trees
        return tally(trees, weights, slots, c, m or self.m, in_focus, negated, secrets)

    def counts(self, focus: Sequence[int] = ()) -> Counter[tuple[Path, int, int]]:
        """By V, mask and secret."""
        sums = Counter[tuple[Path, int, int]]()
        for tree, weight in zip(self.records, self.weights, strict=True):
            kinds = [number for number, one in enumerate(self.kinds, 1) if one in items(tree)]
            for size in range(self.m + 1):
                for chosen in combinations(self.slots(tree), size):
                    if not focus or set(focus) & set(chosen):
                        mask = sum(
                            self.related(tree, chosen[i], chosen[j]) << (comb(j, 2) + i)
                            for i, j in combinations(range(size), 2)
                        )
                        for secret in [0, *kinds]:
                            sums[chosen, mask, secret] += weight
        return sums

    def read(self, keys: Ints, counts: Ints) -> dict[tuple[Path, int, int], int]:
        sizes, slots, masks, secrets = self.layout.sets_of(keys)
        assert all((row[size:] == NONE).all() for row, size in zip(slots, sizes, strict=True))
        return {
            (tuple(row[:size].tolist()), int(mask), int(secret)): int(count)
            for row, size, mask, secret, count in zip(slots, sizes, masks, secrets, counts, strict=True)
        }

    # violations, by definition

    def oriented(self, one: int, other: int) -> Pair:
        return (one, other) if self.ranks[one] < self.ranks[other] else (other, one)

    def relation_support(self, pair: Pair) -> int:
        return sum(w for tree, w in zip(self.records, self.weights, strict=True) if self.related(tree, *pair))

    def is_violating(self, chosen: Path, known: Iterable[Pair], k: int, l: int) -> tuple[bool, bool]:  # noqa: E741
        """Of support, of diversity."""
        known = list(known)
        matching = [
            (tree, weight)
            for tree, weight in zip(self.records, self.weights, strict=True)
            if set(chosen) <= set(self.slots(tree)) and all(self.related(tree, *pair) for pair in known)
        ]
        support = sum(weight for _, weight in matching)
        most = max([sum(w for tree, w in matching if kind in items(tree)) for kind in self.kinds], default=0)
        return 0 < support < k, l > 0 and most * l > support

    def all_knowledge(self, n: int) -> Iterator[Position]:
        """(V, E) with at least one relation, in the order of the sequential search."""
        for size in range(1, self.m + 1):
            for chosen in combinations(range(len(self.names)), size):
                existing = sorted(
                    self.oriented(*pair) for pair in combinations(chosen, 2) if self.relation_support(pair) > 0
                )
                for number in range(1, n + 1):
                    for known in combinations(existing, number):
                        yield size, chosen, number, known


def test_keys_number_all_sets_in_order() -> None:
    layout = Layout.of(5, 4, 2)

    sizes, slots, masks, secrets = layout.sets_of(np.arange(layout.keys, dtype=np.int64))

    read = [
        (int(size), tuple(row[:size].tolist()), int(mask), int(secret))
        for size, row, mask, secret in zip(sizes, slots, masks, secrets, strict=True)
    ]
    assert read == [
        (size, chosen, mask, secret)
        for size in range(5)
        for chosen in combinations(range(5), size)
        for mask in range(1 << comb(size, 2))
        for secret in range(3)
    ]


def test_sets_that_cannot_be_numbered_are_refused() -> None:
    assert Layout.of(100, 6).keys < 2**62
    with pytest.raises(LimitExceeded, match="Lower m") as caught:
        Layout.of(100, 9)
    assert caught.value.facts == {"m": 9, "labels": 100, "sensitive": 0}


@given(SEEDS, st.sampled_from(["pairs", "dense", "sparse", "large"]), st.booleans())
@settings(max_examples=120)
def test_tally_counts_every_set_with_its_relations(rng: Random, way: str, diverse: bool) -> None:
    case = Case(rng, diverse=diverse)
    focus = rng.sample(range(len(case.names)), min(len(case.names), rng.choice([0, 0, 1, 3])))
    if way == "large":  # counts that a dense counter could not hold
        case.weights[0] = 2**33
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_counting, "DENSE_PAIRS", 2**10 if way == "pairs" else 0)
        patch.setattr(tree_counting, "DENSE_KEYS", 0 if way == "sparse" else 2**24)
        patch.setattr(tree_counting, "KEYS_PER_RECORD", 2**24)
        keys, counts = case.tally(focus)

    assert (np.diff(keys) > 0).all()
    assert case.read(keys, counts) == dict(case.counts(focus))
    assert keys.dtype == counts.dtype == np.int64


@given(SEEDS)
@settings(max_examples=60)
def test_equal_siblings_change_no_count(rng: Random) -> None:
    case = Case(rng, diverse=rng.random() < 0.5)
    raw = with_equal_siblings(rng, case.records)

    assert [own.tolist() for own in case.tally(trees=raw)] == [own.tolist() for own in case.tally()]
    weights = np.array(case.weights, dtype=np.int64)
    found, expected = (in_preorder(synopsis(trees, weights)) for trees in (raw, trees_of(case.records)))
    assert [own.tolist() for own in found] == [own.tolist() for own in expected]


@given(SEEDS)
def test_tallies_add_up(rng: Random) -> None:
    """Over parts of the records, over focus and the rest, and sets of fewer labels are the first keys."""
    case = Case(rng, diverse=rng.random() < 0.5)
    keys, counts = case.tally()
    at = rng.randint(0, len(case.records))

    parts = [case.tally(part=slice(0, at)), case.tally(part=slice(at, None)), case.tally(part=slice(0, 0))]
    assert [own.tolist() for own in merged(parts)] == [keys.tolist(), counts.tolist()]
    assert [own.tolist() for own in merged([])] == [[], []]
    fewer = rng.randint(1, case.m)
    few_keys, few_counts = case.tally(m=fewer)
    below = keys < int(case.layout.bases[fewer + 1]) * (case.layout.secrets + 1)
    assert few_keys.tolist() == keys[below].tolist() and few_counts.tolist() == counts[below].tolist()


def test_a_record_of_many_labels_is_counted_whole() -> None:
    """More labels than bits in a word, and more sets than are counted at once."""
    labels = 90
    image = np.arange(labels, dtype=np.int32)
    trees = trees_of([[(at, 45 + at) for at in range(45)]])
    free, negated = np.zeros(0, dtype=np.bool_), np.zeros((0, labels), dtype=np.bool_)

    keys, counts = tally(trees, np.array([3]), image, labels, 3, free, negated, np.zeros(labels, dtype=np.int32))

    layout = Layout.of(labels, 3)
    sizes, slots, masks, _ = layout.sets_of(keys)
    assert (counts == 3).all()
    assert np.bincount(sizes).tolist() == [comb(labels, size) for size in range(4)]
    assert len({tuple(row) for row in slots.tolist()}) == keys.size
    related = slots[(sizes == 2) & (masks == 1), :2]
    assert related.tolist() == [[at, 45 + at] for at in range(45)]
    bits = {(0, 1): 1, (0, 2): 2, (1, 2): 4}
    for row, mask in zip(slots[sizes == 3].tolist(), masks[sizes == 3].tolist(), strict=True):
        assert mask == sum(bit for (i, j), bit in bits.items() if row[j] == row[i] + 45)
    assert label_counts(trees, image).tolist() == [labels]
    assert label_counts(trees, np.where(image < 5, image, NONE).astype(np.int32)).tolist() == [5]


def test_arrays_that_do_not_fit_are_refused_before_they_are_read() -> None:
    trees, ones = trees_of([[(0, 2)]]), np.ones(1, dtype=np.int64)
    slots, none = np.array([0, 1, 2], dtype=np.int32), np.zeros(3, dtype=np.int32)
    free, negated = np.zeros(0, dtype=np.bool_), np.zeros((0, 3), dtype=np.bool_)
    for wrong in (
        (slots[:2], 3, free, negated, none),
        (slots, 2, free, negated, none),
        (slots, 3, free, np.zeros((1, 3), dtype=np.bool_), none),
        (slots, 3, free, negated, none[:1]),
        (slots, 3, np.ones(2, dtype=np.bool_), negated, none),
    ):
        own, c, focus, rows, secrets = wrong
        with pytest.raises(ValueError, match=r"fit|by slot"):
            tally(trees, ones, own, c, 2, focus, rows, secrets)


# --- violations --------------------------------------------------------------------------------------------------------


@given(SEEDS, st.booleans())
@settings(max_examples=40)
def test_violations_are_those_of_the_definition(rng: Random, diverse: bool) -> None:
    case, k, n = Case(rng, labels=6, diverse=diverse), rng.randint(2, 6), rng.randint(0, 4)
    l = rng.choice([2, 3]) if case.kinds else 0  # noqa: E741
    keys, counts = case.tally()
    supports = nothing()[1]

    seen = all_violations(case.layout, keys, counts, k, l, n, supports, case.ranks)

    sets = [chosen for size in range(case.m + 1) for chosen in combinations(range(len(case.names)), size)]
    assert seen.value_violations == sum(case.is_violating(chosen, (), k, l)[0] for chosen in sets if chosen)
    assert seen.diversity_violations == sum(case.is_violating(chosen, (), k, l)[1] for chosen in sets)
    assert (seen.relations, seen.structure_violations) == least_relations(case, k, l, n)
    own = relation_supports(case.layout, keys, counts)
    assert all(
        own[pair] == own[pair[::-1]] == (case.relation_support(pair) if case.m > 1 else 0)
        for pair in combinations(range(len(case.names)), 2)
    )


def least_relations(
    case: Case, k: int, l: int, n: int  # noqa: E741
) -> tuple[dict[tuple[int, int], list[Pair]], dict[tuple[int, int], int]]:
    found = dict[tuple[int, int], set[Pair]]()
    times = Counter[tuple[int, int]]()
    for size, chosen, number, known in case.all_knowledge(n):
        if any(case.is_violating(chosen, known, k, l)):
            least = min(known, key=lambda pair: (case.relation_support(pair), pair))
            found.setdefault((size, number), set()).add(least)
            times[size, number] += 1
    return {size: sorted(pairs) for size, pairs in found.items()}, dict(times)


@given(SEEDS, st.booleans())
@settings(max_examples=40)
def test_the_first_violation_from_any_position(rng: Random, diverse: bool) -> None:
    case, k, n = Case(rng, labels=6, diverse=diverse), rng.randint(2, 6), rng.randint(1, 3)
    l = rng.choice([2, 3]) if case.kinds else 0  # noqa: E741
    keys, counts = case.tally()
    order = list(case.all_knowledge(n))
    violating = [position for position in order if any(case.is_violating(position[1], position[3], k, l))]
    assert order == sorted(order)

    for start in [None, *rng.sample(order, min(6, len(order)))]:
        expected = next((one for one in violating if start is None or one >= start), None)
        one = first_violation(case.layout, keys, counts, k, l, n, nothing()[1], case.ranks, start)
        assert (one and one.position) == expected
        if one is not None:
            assert one.least == min(one.relations, key=lambda pair: (case.relation_support(pair), pair))


@given(SEEDS)
def test_relations_given_from_outside_decide_which_is_least(rng: Random) -> None:
    """As for sets with a focus, whose own counts do not hold all relations."""
    case, k = Case(rng, labels=6), 4
    focus = rng.sample(range(len(case.names)), min(2, len(case.names)))
    supports = relation_supports(Layout.of(len(case.names), 2), *case.tally(m=2))

    seen = all_violations(case.layout, *case.tally(focus), k, 0, 2, supports, case.ranks)

    expected = dict[tuple[int, int], set[Pair]]()
    for size, chosen, number, known in case.all_knowledge(2):
        if set(focus) & set(chosen) and any(case.is_violating(chosen, known, k, 0)):
            least = min(known, key=lambda pair: (case.relation_support(pair), pair))
            expected.setdefault((size, number), set()).add(least)
    assert seen.relations == {size: sorted(pairs) for size, pairs in expected.items()}


# --- the specification's examples --------------------------------------------------------------------------------------


class Example:
    """Records by named labels; numbers ascend as names do, node types by the first letter in this order."""

    def __init__(self, node_types: str, *records: str) -> None:
        trees = [[tuple(path.split(">")) for path in record.split()] for record in records]
        self.names = sorted({name for tree in trees for path in tree for name in path})
        self.ranks = np.array([node_types.index(name[0]) for name in self.names], dtype=np.int32)
        self.trees = trees_of([[tuple(map(self.names.index, path)) for path in tree] for tree in trees])

    def seen(self, m: int, n: int, k: int) -> tuple[Layout, Ints, Ints, Violations]:
        c = len(self.names)
        free, negated = np.zeros(0, dtype=np.bool_), np.zeros((0, c), dtype=np.bool_)
        ones, own = np.ones(self.trees.records, dtype=np.int64), np.arange(c, dtype=np.int32)
        keys, counts = tally(self.trees, ones, own, c, m, free, negated, np.zeros(c, dtype=np.int32))
        layout = Layout.of(c, m)
        return layout, keys, counts, all_violations(layout, keys, counts, k, 0, n, nothing()[1], self.ranks)

    def sequential(self, m: int, n: int, k: int, passes: int) -> list[str]:
        """FixStructure one violation at a time, at most so many passes."""
        given_up = list[str]()
        for _ in range(passes):
            position: Position | None = None
            while True:
                layout, keys, counts, _ = self.seen(m, n, k)
                one = first_violation(layout, keys, counts, k, 0, n, nothing()[1], self.ranks, position)
                if one is None:
                    break
                self.trees, position = disassociated(self.trees, array([one.least])), one.position
                given_up.append(">".join(self.names[label] for label in one.least))
            if position is None:
                break
        return given_up

    def support(self, m: int, labels: str, *known: str) -> int:
        """Of a set with its relations, from all masks that contain them."""
        layout, keys, counts, _ = self.seen(m, 0, 1)
        chosen = [self.names.index(name) for name in sorted(labels.split())]
        wanted = 0
        for pair in known:
            i, j = sorted(chosen.index(self.names.index(name)) for name in pair.split(">"))
            wanted |= 1 << (comb(j, 2) + i)
        sizes, slots, masks, _ = layout.sets_of(keys)
        own = [row[:size].tolist() == chosen for row, size in zip(slots, sizes, strict=True)]
        return int(counts[own & (masks & wanted == wanted)].sum())


def test_labels_without_relation_count_too() -> None:
    """T-4: with m = 3, n = 1 the set d1, d2, h2 with h2 above d1 violates."""
    six = ("h2>d1", "h1>d1 h2>d2>t1", "h1>d2 h2>d1>t1", "h2>d2>t1", "h2>d2>t1", "h1>d2>t1 h2>d1")
    example = Example("hdt", *six)
    for pair in ("h1 d1", "d1 t1", "h1 d2", "h1 t1"):
        example.trees = disassociated(example.trees, array([tuple(map(example.names.index, pair.split()))]))

    assert example.support(3, "d1 d2 h2", "h2>d1") == 2
    assert example.seen(3, 1, 3)[3].structure_violations[3, 1] > 0
    fixed = Example("hdt", *six)
    fixed.sequential(3, 1, 3, passes=9)
    assert fixed.seen(3, 1, 3)[3].relations == {}


def test_one_pass_is_not_enough() -> None:
    """T-5."""
    records = ["h1", "h2>d2>t2", "h2>d1", "h1>d1 h2>d1>t2 h2>d2>t1", "h1>d1>t2 h1>d2>t2 h2>d1>t1"]
    records += ["h1>d1>t2 h1>d2>t1 h2>d2>t2"]
    once, stable = Example("hdt", *records), Example("hdt", *records)

    once.sequential(2, 1, 3, passes=1)
    given_up = stable.sequential(2, 1, 3, passes=9)

    assert once.support(2, "d1 t2", "d1>t2") == 1
    assert stable.seen(2, 1, 3)[3] == Violations(0, 0, {}, {})
    assert "d1>t2" in given_up[-1:]


def test_structure_is_not_monotone_for_two_relations() -> None:
    fine = Example("hd", "h1>d1 h2>d2", "h1>d1 h2 d2", "h2>d2 h1 d1")
    coarse = Example("hd", "h0>d1 h0>d2", "h0>d1 h0 d2", "h0>d2 h0 d1")

    assert fine.seen(3, 2, 2)[3] == Violations(0, 0, {}, {})
    assert coarse.support(3, "h0 d1 d2", "h0>d1", "h0>d2") == 1
    assert coarse.seen(3, 2, 2)[3].structure_violations == {(3, 2): 1}


def test_batch_and_sequential_differ() -> None:
    """T-6: one at a time keeps t1 above u1; the violations of the smallest size name d1 above t1 and above u1 alone."""
    records = ("d1>t1>u1", "t1>u1", "t1>u1", "d1 t1 u1", "d1 t1 u1")
    example = Example("dtu", *records)

    seen = example.seen(3, 1, 2)[3]

    assert {size: [f"{example.names[a]}>{example.names[b]}" for a, b in pairs] for size, pairs in seen.relations.items()} == {
        (2, 1): ["d1>t1", "d1>u1"],
        (3, 1): ["d1>t1", "d1>u1", "t1>u1"],
    }
    assert example.sequential(3, 1, 2, passes=9) == ["d1>t1", "d1>u1"]
    assert example.support(2, "t1 u1", "t1>u1") == 2


CLINIC = [
    ["H1>Gastritis>Antibiotics", "H2>Flu>Painkillers"],
    ["H1>Bronchitis>Painkillers", "H2>Flu>Antibiotics", "H2>Gastritis>Antibiotics"],
    ["H1>Flu>Painkillers", "H2>Bronchitis>Antibiotics", "H2>Gastritis>Antibiotics"],
    ["H1>Flu>Antibiotics"],
]
ABOVE = {"Flu": "Lung", "Bronchitis": "Lung", "Antibiotics": "Medicine", "Painkillers": "Medicine"}
NAMES = sorted({name for record in CLINIC for path in record for name in path.split(">")} | set(ABOVE.values()))


def clinic() -> tuple[Trees, Trees]:
    """The paper's records as reconstructed, and their projection."""
    trees = trees_of([[tuple(map(NAMES.index, path.split(">"))) for path in record] for record in CLINIC])
    image = np.array([*(NAMES.index(ABOVE.get(name, name)) for name in NAMES), NONE], dtype=np.int32)
    return trees, projected(trees, image, len(NAMES))


def counts_of(leaf: int, group: int) -> Ints:
    return np.array([group if name in ABOVE.values() else leaf for name in NAMES], dtype=np.int64)


def supports_by_path(whole: Synopsis) -> dict[str, int]:
    paths = list[str]()
    for label, parent in zip(whole.labels.tolist(), whole.parents.tolist(), strict=True):
        paths.append((paths[parent] + ">" if parent != NONE else "") + NAMES[label])
    return dict(zip(paths, whole.counts.tolist(), strict=True))


def test_the_clinic_as_in_the_specification() -> None:
    trees, images = clinic()
    ones = np.ones(4, dtype=np.int64)
    assert supports_by_path(synopsis(trees, ones))["H2"] == 3
    assert supports_by_path(synopsis(images, ones))["H1>Lung"] == 3
    c = len(NAMES)
    free, negated = np.zeros(0, dtype=np.bool_), np.zeros((0, c), dtype=np.bool_)
    ranks = np.array([0 if name[0] == "H" else 2 if name in ("Medicine", *ABOVE) else 1 for name in NAMES], dtype=np.int32)
    ranks[NAMES.index("Lung")] = 1
    keys, counts = tally(images, ones, np.arange(c, dtype=np.int32), c, 2, free, negated, np.zeros(c, dtype=np.int32))
    seen = all_violations(Layout.of(c, 2), keys, counts, 3, 0, 1, nothing()[1], ranks)
    h1, h2, gastritis, medicine = map(NAMES.index, ("H1", "H2", "Gastritis", "Medicine"))
    supports = relation_supports(Layout.of(c, 2), keys, counts)
    assert seen == Violations(0, 0, {(2, 1): [(h1, gastritis), (h2, gastritis)]}, {(2, 1): 2})
    assert (supports[h1, gastritis], supports[h2, gastritis], supports[gastritis, medicine]) == (1, 2, 3)

    fixed = disassociated(images, array(seen.relations[2, 1]))

    named = [[">".join(NAMES[one] for one in path) for path in paths] for paths in all_paths(fixed)]
    both = ["Gastritis", "H1>Lung>Medicine", "H2>Lung>Medicine", "H2>Medicine"]
    assert named == [["Gastritis", "H1>Medicine", "H2>Lung>Medicine"], both, both, ["H1>Lung>Medicine"]]
    for factors, records, whole, heuristic in (
        (counts_of(12, 6), [235 / 7776, 59 / 2592], 0.019033, 0.00726166),
        (counts_of(4, 2), [0.107639, 0.083333], 0.071181, 0.03495370),
    ):
        own = record_rpd(fixed, factors)
        assert own[:2] == pytest.approx(records, abs=5e-7)
        assert own.mean() == pytest.approx(whole, abs=5e-7)
        assert rpd_a(synopsis(fixed, ones), factors) == pytest.approx(heuristic, abs=5e-9)
    assert synopsis(fixed, ones).labels.size == 9


def test_one_star_costs_as_many_as_there_are_records() -> None:
    stars = trees_of([[(0,)]] * 4)
    factors = np.ones(1)
    assert rpd_a(synopsis(stars, np.array([1, 1, 1, 1])), factors) == 4
    assert record_rpd(stars, factors).tolist() == [1, 1, 1, 1]


def test_disassociation_may_lower_the_rpd_of_a_record() -> None:
    h1, h2, d1, t1 = range(4)
    factors = np.array([4, 4, 6, 5], dtype=np.int64)
    trees = trees_of([[(h1,), (h2, d1, t1)], []])

    assert record_rpd(trees, factors) == pytest.approx([0.125694, 1], abs=5e-7)
    assert record_rpd(disassociated(trees, array([(d1, t1)])), factors) == pytest.approx([0.098611, 1], abs=5e-7)


# --- synopsis ----------------------------------------------------------------------------------------------------------


def support_of_paths(records: Sequence[Tree], weights: Sequence[int]) -> Counter[Path]:
    sums = Counter[Path]()
    for tree, weight in zip(records, weights, strict=True):
        for path in tree:
            sums[path] += weight
    return sums


def exact_rpd_a(sums: Counter[Path], factors: Sequence[int]) -> Fraction:
    ends = leaves(frozenset(sums))
    total = sum(
        Fraction(
            sum(sums[path[: end + 1]] for end in range(len(path))),
            prod((at + 1) * factors[one] for at, one in enumerate(path)),
        )
        for path in ends
    )
    return Fraction(total) / (len(sums) * len(ends))


@given(SEEDS)
@settings(max_examples=60)
def test_synopsis_counts_paths_whole_or_in_parts(rng: Random) -> None:
    records = [tree for tree in table(rng, most=20) if tree] or [closed([(1, 2)])]
    weights = [rng.randint(1, 5) for _ in records]
    factors = [rng.randint(1, 9) for _ in range(LABELS)]
    sums = support_of_paths(records, weights)
    expected = sorted(sums)

    whole = in_preorder(synopsis(trees_of(records), np.array(weights, dtype=np.int64)))

    nodes = trees_of([expected])
    assert whole.labels.tolist() == nodes.labels.tolist() and whole.parents.tolist() == nodes.parents.tolist()
    assert whole.counts.tolist() == [sums[path] for path in expected]
    cost = rpd_a(whole, np.array(factors, dtype=np.float64))
    assert cost == pytest.approx(float(exact_rpd_a(sums, factors)), rel=1e-12)

    # tasks with some of the records each; parts of equal labels together; shares in any order
    tasks = [synopsis(trees_of(records[at::3]), np.array(weights[at::3], dtype=np.int64)) for at in range(3)]
    again = in_preorder(merged_synopses(tasks))
    assert [own.tolist() for own in again] == [own.tolist() for own in whole]
    parts = dict[int, list[Synopsis]]()
    for number, part in [numbered for task in tasks for numbered in split(task, 5)]:
        parts.setdefault(number, []).append(part)
    complete = [merged_synopses(cuts) for cuts in parts.values()]
    assert sum(int(part.counts.sum()) for part in complete) == sum(sums.values())
    rng.shuffle(complete)
    assert rpd_a_of([shares_of(part, np.array(factors)) for part in complete]) == cost


@given(SEEDS)
@settings(max_examples=120)
def test_a_synopsis_is_updated_where_labels_changed(rng: Random) -> None:
    """Labels of one node type share images, some of them others than before."""
    trees = trees_of(table(rng, most=20))
    before: Codes = np.arange(LABELS, dtype=np.int32)
    after = before.copy()
    for image, much in ((before, 0.5), (after, 0.3)):
        for label in range(LABELS):
            if rng.random() < much:
                image[label] = rng.choice([one for one in range(LABELS) if RANK_OF[one] == RANK_OF[label]])
    after = np.where(np.array([rng.random() < 0.6 for _ in range(LABELS)]), before, after).astype(np.int32)
    is_changed = np.zeros(LABELS, dtype=np.bool_)
    is_changed[before[before != after]] = is_changed[after[before != after]] = True
    ones = np.ones(trees.records, dtype=np.int64)

    records = holding(holders_of(trees, LABELS), is_changed[after], trees.records)
    found = updated_synopsis(synopsis(renamed(trees, before), ones), trees, after, is_changed, records)

    expected = in_preorder(synopsis(canonical(renamed(trees, after)), ones))
    assert [own.tolist() for own in in_preorder(found)] == [own.tolist() for own in expected]


def test_an_updated_synopsis_grows_beyond_what_it_was() -> None:
    many = trees_of([[(one, 1000 + other) for other in range(40)] for one in range(60)])
    image: Codes = np.arange(2000, dtype=np.int32)
    image[1000:1040] = 999
    is_changed = np.zeros(2000, dtype=np.bool_)
    is_changed[999:1040] = True
    ones = np.ones(60, dtype=np.int64)

    everyone, itself = np.arange(60), np.arange(2000, dtype=np.int32)
    found = updated_synopsis(synopsis(renamed(many, image), ones), many, itself, is_changed, everyone)

    expected = in_preorder(synopsis(many, ones))
    assert [own.tolist() for own in in_preorder(found)] == [own.tolist() for own in expected]


def test_a_synopsis_grows_beyond_its_first_room() -> None:
    many = trees_of([[(one, 1000 + other) for other in range(40)] for one in range(60)])
    whole = synopsis(many, np.ones(60, dtype=np.int64))
    assert whole.labels.size == 60 * 41 and (whole.counts == 1).all()
    assert rpd_a(whole, np.full(2000, 3.0)) == pytest.approx(2 / (1 * 3 * 2 * 3) / (60 * 41), rel=1e-12)
