"""Items of one cluster: packing, SetGen, AA, VPA and UL against brute force and the paper's figures; arrays, no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from random import Random
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark import Hierarchy
from anon_spark.errors import GuaranteeUnreachable, LimitExceeded
from anon_spark.families.relational_transaction.kernels.item_cuts import (
    ItemTree,
    item_tree,
    raised_items,
    vertical_items,
)
from anon_spark.families.relational_transaction.kernels.item_merging import merge_all, merged_items
from anon_spark.families.relational_transaction.settings import Cost
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.transactions import DONE, NONE, Transactions, item_count, packed, united
from anon_spark.kernels.utility import record_losses
from tests.oracle import rt_oracle as oracle
from tests.oracle.rt_oracle import GenItem, Record

pytestmark = pytest.mark.compiles

COSTS = get_args(Cost)
SEEDS = st.integers(0, 2**32).map(Random)
NAMES = "abcdefghijklmnopqrstuvwxyz"


def records_of(rows: Iterable[tuple[Iterable[str], Iterable[str]]]) -> list[Record]:
    return [Record(rid, (), frozenset(items), frozenset(kinds)) for rid, (items, kinds) in enumerate(rows)]


def somewhere(rng: Random, most: int = 14, universe: int = 9) -> list[Record]:
    """Few items, so that sets repeat and supports tie; empty sets among them; no sensitive item in a third of the clusters."""
    names, share = NAMES[: rng.randint(1, universe)], rng.choice([0.2, 0.4, 0.6])
    kinds = "xyz"[: rng.randint(0, 2)]
    rows = [
        ([name for name in names if rng.random() < share], [kind for kind in kinds if rng.random() < 0.3])
        for _ in range(rng.randint(1, most))
    ]
    return records_of(rows + rng.choices(rows, k=rng.randint(0, 4)))


def sparse(rng: Random, names: Sequence[str]) -> list[Record]:
    """Few of many items in each record, some items more often; x in one of six records."""
    return records_of(
        (rng.sample(names[: rng.choice([20, len(names)])], rng.randint(0, 7)), "x" * (at % 6 == 0)) for at in range(90)
    )


def arrays(sets: Sequence[Iterable[int]]) -> tuple[Ints, Ints]:
    rows = [list(row) for row in sets]
    offsets = np.array([0, *accumulate(map(len, rows))], dtype=np.int64)
    return offsets, np.array([code for row in rows for code in row], dtype=np.int64)


def packed_names(records: Sequence[Record]) -> tuple[Transactions, list[str]]:
    """The cluster, and the name of each item number."""
    names = sorted({item for record in records for item in record.items})
    kinds = sorted({kind for record in records for kind in record.sensitive})
    cluster, codes, _, _ = packed(
        *arrays([[names.index(item) for item in record.items] for record in records]),
        *arrays([[kinds.index(kind) for kind in record.sensitive] for record in records]),
    )
    return cluster, [names[code] for code in codes.tolist()]


def images(image: Codes, names: Sequence[str]) -> dict[str, GenItem]:
    members: dict[int, list[str]] = {}
    for item, label in enumerate(image.tolist()):
        members.setdefault(label, []).append(names[item])
    assert all(names[label] == found[0] for label, found in members.items())  # known by the smallest member
    return {name: tuple(members[label]) for name, label in zip(names, image.tolist(), strict=True)}


def set_gen(
    records: Sequence[Record],
    k: int,
    m: int,
    cost: Cost = "occurrences",
    l: int | None = None,  # noqa: E741
) -> dict[str, GenItem]:
    cluster, names = packed_names(records)
    return images(merged_items(cluster, k, m, l, cost), names)


def agree(found: Callable[[], dict[str, GenItem]], expected: Callable[[], dict[str, GenItem]]) -> None:
    """The same images, or both find that there are none."""
    try:
        wanted = expected()
    except oracle.Impossible:
        with pytest.raises(GuaranteeUnreachable):
            found()
    else:
        images = found()
        assert images == {item: wanted[item] for item in images}


# --- packing -----------------------------------------------------------------------------------------------------------


@given(SEEDS)
def test_packed_keeps_every_record(rng: Random) -> None:
    """Codes far apart, in any order, some twice."""
    sets = [[rng.choice([5, 7, 10**12]) for _ in range(rng.randint(0, 4))] for _ in range(rng.randint(1, 12))]
    kinds = [[rng.choice([3, 40]) for _ in range(rng.randint(0, 3))] for _ in sets]

    cluster, codes, kind_codes, row = packed(*arrays(sets), *arrays(kinds))

    rows = [codes[cluster.items[a:b]].tolist() for a, b in pairwise(cluster.offsets)]
    own_kinds = [kind_codes[cluster.sensitive[a:b]].tolist() for a, b in pairwise(cluster.sensitive_offsets)]
    assert [rows[at] for at in row] == [sorted(set(one)) for one in sets]
    assert [own_kinds[at] for at in row] == [sorted(set(one)) for one in kinds]
    pairs = [(tuple(one), tuple(other)) for one, other in zip(rows, own_kinds, strict=True)]
    assert len(set(pairs)) == len(pairs) == cluster.times.size
    assert cluster.times.tolist() == [Counter(row.tolist())[at] for at in range(len(pairs))]
    assert codes.tolist() == sorted({code for one in sets for code in one})


# --- SetGen --------------------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(SEEDS, st.integers(2, 4), st.integers(1, 3), st.sampled_from([None, 2, 3]), st.sampled_from(COSTS))
def test_set_gen_merges_as_the_rules_say(rng: Random, k: int, m: int, l: int | None, cost: Cost) -> None:  # noqa: E741
    records = somewhere(rng)
    agree(lambda: set_gen(records, k, m, cost, l), lambda: oracle.set_gen(records, k, m, cost, l))


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([(2, None), (3, None), (2, 2), (3, 3)]), st.sampled_from(COSTS))
def test_larger_clusters_have_the_guarantee(rng: Random, rule: tuple[int, int | None], cost: Cost) -> None:
    (m, l), k = rule, rng.randint(2, 6)  # noqa: E741
    names = [f"{number:03}" for number in range(300)]  # 9 bits each: sets of three are hashed
    records = sparse(rng, names)

    found = set_gen(records, k, m, cost, l)

    published = oracle.mapped(records, found)
    assert oracle.worst_set(published, k, m, l) is None
    assert all(name in found[name] for name in found)
    identity = {name: (name,) for name in found}
    assert oracle.worst_set(oracle.mapped(records, identity), k, m, l) is not None  # there was something to do


@settings(max_examples=40)
@given(SEEDS, st.integers(2, 3), st.sampled_from([None, 2]), st.sampled_from(COSTS))
def test_nothing_depends_on_numbers_order_or_memory(rng: Random, m: int, l: int | None, cost: Cost) -> None:  # noqa: E741
    """Item numbers with gaps make sets that are hashed, rows change places or come twice, heaps are cleared every time."""
    records = somewhere(rng, 40, 12)
    cluster, names = packed_names(records)
    try:
        image = merged_items(cluster, 3, m, l, cost)
    except GuaranteeUnreachable:
        return
    step = 7000
    order = rng.sample(range(len(records)), len(records))
    shuffled, _ = packed_names([records[at] for at in order])
    singles, _, _, row = packed(
        *arrays([sorted(map(names.index, record.items)) for record in records]),
        *arrays([["xyz".index(kind) for kind in record.sensitive] for record in records]),
    )
    assert singles.times.sum() == row.size
    apart = cluster._replace(items=cluster.items * step)

    assert merged_items(shuffled, 3, m, l, cost).tolist() == image.tolist()
    assert (merged_items(apart, 3, m, l, cost)[::step] // step).tolist() == image.tolist()
    outcome, again = merge_all(cluster, item_count(cluster), 3, m, l or 0, COSTS.index(cost), 0)
    assert (outcome, again.tolist()) == (DONE, image.tolist())


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_united_lists_ascend(sides: list[bool]) -> None:
    """Numbers 0, 1, … fall to one of two lists."""
    lists = [[at for at, side in enumerate(sides) if side == wanted] for wanted in (False, True)]
    following = np.full(len(sides), NONE, dtype=np.int32)
    for one, other in [pair for members in lists for pair in pairwise(members)]:
        following[one] = other
    first = united(following, *(members[0] if members else NONE for members in lists))
    assert first == 0
    assert following.tolist() == [*range(1, len(sides)), NONE]


FIGURE = [
    record._replace(rid=rid)
    for rid, record in enumerate(records_of((items, "") for items in ["EFB", "EFD", "BCE", "FD", "E", "AF"]))
]


@pytest.mark.parametrize("cost", ["occurrences", "utility_loss"])  # the paper's
@pytest.mark.parametrize(
    ("members", "generalized"),
    [((0, 1), "BD"), ((4, 5), "AEF"), ((0, 1, 2, 3), "BCD"), ((0, 1, 4, 5), "ABD"), (range(6), "ABCD")],
)
def test_figure_2(cost: Cost, members: Sequence[int], generalized: str) -> None:
    found = set_gen([FIGURE[at] for at in members], 2, 2, cost)
    assert {item for item in found.values() if len(item) > 1} == {tuple(generalized)}


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ([(0, 1), (2, 3), (4, 5)], 0.5075),
        ([range(6)], 0.3213),
        ([(0, 1, 2, 3), (4, 5)], 0.5642),
        ([(0, 1, 4, 5), (2, 3)], 0.2606),
    ],
)
def test_figure_2_losses(clusters: Sequence[Sequence[int]], expected: float) -> None:
    losses = [loss for members in clusters for loss in losses_of([FIGURE[at] for at in members], 2, 2)]
    assert len(losses) == 6
    assert float(np.mean(losses)) == pytest.approx(expected, abs=5e-5)


def losses_of(records: Sequence[Record], k: int, m: int) -> list[float]:
    cluster, _ = packed_names(records)
    image = merged_items(cluster, k, m, cost="occurrences")
    sizes = np.bincount(image, minlength=image.size)
    return np.repeat(record_losses(cluster.offsets, cluster.items, image, sizes), cluster.times).tolist()


def test_merging_two_clusters_may_raise_the_loss() -> None:
    apart = [*losses_of(FIGURE[:2], 2, 2), *losses_of(FIGURE[2:4], 2, 2)]
    assert np.mean(apart) == pytest.approx(0.2613, abs=5e-5)
    assert np.mean(losses_of(FIGURE[:4], 2, 2)) == pytest.approx(0.3462, abs=5e-5)
    assert np.mean(losses_of([*FIGURE[:2], *FIGURE[4:]], 2, 2)) == pytest.approx(0.2296, abs=5e-5)


def test_two_records_of_figure_2_without_a_best_answer() -> None:
    """The figure merges other items at the same loss."""
    records = FIGURE[2:4]
    assert np.mean(losses_of(records, 2, 2)) == pytest.approx(0.3226, abs=5e-5)
    assert oracle.worst_set(oracle.mapped(records, set_gen(records, 2, 2)), 2, 2) is None


def test_a_frequent_set_may_be_too_sure() -> None:
    records = records_of([*[("x", "s")] * 3, ("x", ""), *[("y", "")] * 4])
    assert set(set_gen(records, 2, 1).values()) == {("x",), ("y",)}
    assert set(set_gen(records, 2, 1, l=2).values()) == {("x", "y")}


def test_a_single_item_is_looked_at_alone_with_m_1() -> None:
    records = records_of([("ab", ""), ("ac", ""), ("bd", ""), ("cd", "")])
    assert set(map(len, set_gen(records, 2, 1).values())) == {1}
    assert max(map(len, set_gen(records, 2, 2).values())) > 1


@pytest.mark.parametrize("rows", [["a", "b", ""], ["a", "", ""]])
def test_too_few_records_with_items(rows: list[str]) -> None:
    cluster, _ = packed_names(records_of((row, "") for row in rows))
    with pytest.raises(GuaranteeUnreachable, match="records have items, fewer than k = 3") as caught:
        merged_items(cluster, 3, 2)
    assert caught.value.facts["filled"] == sum(map(bool, rows))


def test_no_items_are_no_trouble() -> None:
    cluster, _ = packed_names(records_of([("", "x"), ("", "")]))
    assert merged_items(cluster, 5, 2, 2).tolist() == []


def test_too_frequent_among_records_with_items() -> None:
    """x is in half of the records, but in all that have items."""
    records = records_of([("a", "x"), ("b", "x"), ("", ""), ("", "")])
    cluster, _ = packed_names(records)
    assert oracle.too_frequent(oracle.highest_count(oracle.mapped(records, {"a": ("a",), "b": ("b",)})), 4, 2) is False
    with pytest.raises(GuaranteeUnreachable, match="more than 1/2 of the 2 records"):
        merged_items(cluster, 2, 1, 2)


def test_sets_that_fit_into_no_number() -> None:
    row = list(range(0, 70_000, 10_000))
    cluster, _, _, _ = packed(*arrays([row] * 3), *arrays([[]] * 3))
    apart = cluster._replace(items=(cluster.items * 10_000).astype(np.int32))
    assert merged_items(apart, 2, 3).size == 60_001
    with pytest.raises(LimitExceeded, match="Lower m"):
        merged_items(apart, 2, 4)


# --- UL ------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 90), max_size=5), st.booleans())
def test_losses_of_any_size(sizes: list[int], twice: bool) -> None:
    """One record; an image that two of its items share counts once."""
    image = [label for label in range(len(sizes)) for _ in range(2 if twice and sizes[label] > 1 else 1)]
    generalized = [tuple(f"{label}.{number}" for number in range(size)) for label, size in enumerate(sizes)]
    offsets = np.array([0, len(image)], dtype=np.int64)
    items = np.arange(len(image), dtype=np.int32)

    found = record_losses(offsets, items, np.array(image, dtype=np.int32), np.array(sizes, dtype=np.int64))

    assert found.tolist() == [pytest.approx(float(oracle.ul(generalized)), rel=1e-12)]


@pytest.mark.parametrize(
    ("sizes", "expected"), [([2, 2], 0.4), ([3, 3], 2 / 9), ([5000], 1.0), ([5000, 1], 0.5), ([1, 1], 0.0), ([], 0.0)]
)
def test_known_losses(sizes: list[int], expected: float) -> None:
    labels = np.arange(len(sizes), dtype=np.int32)
    found = record_losses(np.array([0, len(sizes)]), labels, labels, np.array(sizes, dtype=np.int64))
    assert found.tolist() == [pytest.approx(expected, rel=1e-12)]


# --- AA and VPA --------------------------------------------------------------------------------------------------------------


def some_levels(rng: Random, leaves: Sequence[str]) -> list[tuple[str, ...]]:
    """A level table: groups of groups, leaves in any order; with labels that are padding and nodes with one child."""
    columns = [list(leaves)]
    groups = {leaf: leaf for leaf in leaves}
    for level in range(1, rng.randint(1, 4)):
        tops = sorted(set(groups.values()))
        name = {top: f"{level}.{rng.randrange(1 + len(tops) // 2)}" for top in tops}
        name = {top: top if rng.random() < 0.2 and top not in leaves else name[top] for top in tops}
        groups = {leaf: name[groups[leaf]] for leaf in leaves}
        columns.append([groups[leaf] for leaf in leaves])
    columns.append(["*"] * len(leaves))
    rows = list(zip(*columns, strict=True))
    rng.shuffle(rows)
    return rows


def on_tree(
    records: Sequence[Record], table: Sequence[tuple[str, ...]]
) -> tuple[Transactions, ItemTree, Codes, list[str]]:
    """The cluster, the tree, the leaf of each item and the leaves' names in order."""
    hierarchy = Hierarchy.from_levels(table)
    cluster, names = packed_names(records)
    tree = item_tree(hierarchy)
    leaves = tree.leaf_of[np.array([hierarchy.keys.index(name) for name in names], dtype=np.int64)]
    return cluster, tree, leaves, sorted(hierarchy.keys)


def generalized(tree: ItemTree, nodes: Codes, leaves: Codes, names: Sequence[str]) -> dict[str, GenItem]:
    pairs = zip(leaves.tolist(), nodes.tolist(), strict=True)
    return {names[leaf]: tuple(names[below] for below in tree.members(node)) for leaf, node in pairs}


@given(SEEDS)
def test_the_tree_has_the_nodes_of_the_hierarchy(rng: Random) -> None:
    table = some_levels(rng, NAMES[: rng.randint(1, 8)])
    tree, category = item_tree(Hierarchy.from_levels(table)), oracle.Category(table)
    names = sorted(category.leaves)
    nodes = [tuple(names[leaf] for leaf in tree.members(node)) for node in range(tree.parent.size)]
    assert sorted(nodes) == sorted(tuple(sorted(node)) for node in category.labels)
    assert sorted(nodes) == [nodes[node] for node in np.argsort(tree.rank)]
    for node, leaves in enumerate(nodes):
        above = sorted(category.ancestors(leaves), key=len)
        assert (nodes[tree.parent[node]] if tree.parent[node] >= 0 else None) == (above[0] if above else None)
    assert [row[0] for row in table] == [names[leaf] for leaf in tree.leaf_of]


@settings(max_examples=300)
@given(SEEDS, st.integers(2, 4), st.integers(1, 3), st.sampled_from([None, 2, 3]), st.booleans())
def test_aa_and_vpa_raise_as_the_rules_say(rng: Random, k: int, m: int, l: int | None, vertical: bool) -> None:  # noqa: E741
    """The hierarchy has leaves that no record has."""
    records, table = somewhere(rng), some_levels(rng, rng.sample(NAMES[:12], 12))
    cluster, tree, own, names = on_tree(records, table)
    cut, brute = (vertical_items, oracle.vpa) if vertical else (raised_items, oracle.aa)
    agree(
        lambda: generalized(tree, cut(cluster, tree, k, m, l, leaves=own), own, names),
        lambda: brute(records, oracle.Category(table), k, m, l),
    )


@settings(max_examples=50)
@given(SEEDS, st.integers(2, 4), st.sampled_from([None, 2]))
def test_aa_from_a_cut(rng: Random, k: int, l: int | None) -> None:  # noqa: E741
    """The cut of a weaker guarantee as a start."""
    records, table = somewhere(rng), some_levels(rng, rng.sample(NAMES[:12], 12))
    category = oracle.Category(table)
    cluster, tree, own, names = on_tree(records, table)
    try:
        begin = oracle.aa(records, category, 2, 1)
    except oracle.Impossible:
        return
    number = {tuple(names[leaf] for leaf in tree.members(node)): node for node in range(tree.parent.size)}
    start = np.array([number[begin[names[leaf]]] for leaf in own.tolist()], dtype=np.int32)
    agree(
        lambda: generalized(tree, raised_items(cluster, tree, k, 2, l, start, own), own, names),
        lambda: oracle.aa(records, category, k, 2, l, begin),
    )


def test_aa_of_the_paper() -> None:
    table = [("a1", "A", "*"), ("a2", "A", "*"), ("b1", "B", "*"), ("b2", "B", "*")]
    rows = [["a1", "b1", "b2"], ["a2", "b1"], ["a2", "b1", "b2"], ["a1", "a2", "b2"]]
    cluster, tree, own, names = on_tree(records_of((row, "") for row in rows), table)
    found = generalized(tree, raised_items(cluster, tree, 2, 2), own, names)
    assert found == {"a1": ("a1", "a2"), "a2": ("a1", "a2"), "b1": ("b1",), "b2": ("b2",)}


def test_members_raised_together_are_paid_once() -> None:
    """Of {a1, a2, b1}, in one record, two members rise to A for 16, one to B for 20."""
    table = [("a1", "A", "*"), ("a2", "A", "*"), ("b1", "B", "*"), ("b2", "B", "*")]
    pairs = [["a1", "b1"], ["a1", "b2"], ["a2", "b1"], ["a2", "b2"]]
    rows = [["a1", "a2", "b1"], ["a1", "a2", "b2"], *pairs, *[["b2"]] * 4]
    cluster, tree, own, names = on_tree(records_of((row, "") for row in rows), table)
    found = generalized(tree, raised_items(cluster, tree, 2, 3), own, names)
    assert set(found.values()) == {("a1", "a2"), ("b1",), ("b2",)}


@settings(max_examples=10)
@given(SEEDS, st.sampled_from([None, 3]), st.booleans())
def test_larger_cuts_have_the_guarantee(rng: Random, l: int | None, vertical: bool) -> None:  # noqa: E741
    names = [f"{number:03}" for number in range(300)]
    table = [(name, name[:2], name[0], "*") for name in names]
    records = sparse(rng, names)
    cluster, tree, own, all_names = on_tree(records, table)
    cut: Any = vertical_items if vertical else raised_items
    found = generalized(tree, cut(cluster, tree, 4, 3, l, leaves=own), own, all_names)
    assert oracle.worst_set(oracle.mapped(records, found), 4, 3, l) is None
    assert set(found.values()) <= {tuple(sorted(node)) for node in oracle.Category(table).labels}


def test_the_root_that_violates_is_no_answer() -> None:
    records = records_of([("a", ""), ("b", ""), ("", "")])
    cluster, tree, own, _ = on_tree(records, [("a", "*"), ("b", "*"), ("c", "*")])
    assert raised_items(cluster, tree, 2, 2, leaves=own).tolist() == [3, 3]
    for cut in (raised_items, vertical_items):
        with pytest.raises(GuaranteeUnreachable):
            cut(cluster, tree, 3, 2, leaves=own)


def test_losses_count_leaves_that_no_record_has() -> None:
    records = records_of([("a", ""), ("b", "")])
    cluster, tree, own, _ = on_tree(records, [("a", "*"), ("b", "*"), ("c", "*")])
    nodes = raised_items(cluster, tree, 2, 1, leaves=own)
    found = record_losses(np.array([0, 2]), np.array([0, 1], dtype=np.int32), nodes, tree.sizes)
    assert found.tolist() == [1.0]
    one_more = record_losses(
        np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array([3, 2], dtype=np.int32), tree.sizes
    )
    assert one_more.tolist() == [pytest.approx(float(Fraction(7, 15)))]
