"""The tree and the cut in pieces against those in one piece, on random small tables: arrays only, no Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.families.mst.forests import (
    Joins,
    block_distance,
    block_node,
    cut_above,
    cut_inside,
    grown,
    lifted,
    share_of,
    spanning_forest,
    sweeps,
    swept,
)
from anon_spark.families.mst.joins import whole_weights
from anon_spark.families.mst.kernels.dendrogram import NOT_CUT, Leaves, links, members_of
from anon_spark.families.mst.kernels.distances import Levels, levels_of
from anon_spark.families.mst.kernels.spanning import Walk, nearest, tail_edges, walk
from anon_spark.families.mst.partition import Settings, leaves_of, weight_statistics
from anon_spark.kernels.classes import Ints
from anon_spark.model.hierarchy import Hierarchy
from tests.families.mst.cuts import Cut, Tuples, cut_in_one_piece, tuples_of
from tests.families.mst.tables import FLAT, PAIRS, Case, case_of, cases, crowd

pytestmark = pytest.mark.compiles

ZERO_EDGES = st.sampled_from(["include", "exclude"])


class Pieces(NamedTuple):
    """How the work is divided: shares, nodes per batch, and after how many batches distances end it."""

    shares: int
    room: int
    tail_after: int


PIECES = st.builds(
    Pieces, st.sampled_from([1, 2, 5, 40]), st.sampled_from([1, 3, 20, 1000]), st.sampled_from([0, 1, 2, 99])
)


def tids(count: int) -> Ints:
    """Numbers that sort like ranks but are none, as Spark gives them."""
    ranks = np.arange(count)
    return ranks % 3 + (ranks // 3 << 33)


def some_of(leaves: Leaves, chosen: Any) -> Leaves:
    return Leaves._make(of[chosen] for of in leaves)


def cut_in_pieces(tuples: Tuples, options: Settings, pieces: Pieces) -> Cut:
    """What the Spark jobs do, one after the other."""
    levels, count = levels_of(tuples.ladder), tuples.rows.size
    names, component, weight = tids(count), np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    place, share = (
        np.empty(count, dtype=np.int64),
        share_of(tuples.codes, tuples.ladder, block_node(levels), pieces.shares),
    )
    leaves = leaves_of(tuples.rows, options)
    sums: dict[int, list[Any]] = {}
    for number in np.unique(share):
        mine = np.flatnonzero(share == number)
        tree = grown(tuples.codes[:, mine], tuples.ladder, some_of(leaves, mine))
        place[mine[tree.order]], weight[mine[tree.order]] = np.arange(mine.size), links(tree)
        for root in tree.roots.astype(np.int64):
            inside = mine[members_of(tree, np.array([root]))[0]]
            component[inside] = names[inside].min()
            sums[int(names[inside].min())] = [of[root] for of in tree.sums]
    edges = joined(tuples, levels, component, pieces)
    leaf_names = np.array(list(sums))[np.random.default_rng(count).permutation(len(sums))]
    above = Leaves._make(np.array([sums[int(name)][at] for name in leaf_names]) for at in range(4))
    upper, stays = cut_above(leaf_names, above, edges, options.k)
    head, kept = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
    stay = np.empty(count, dtype=np.int64)
    for at, name in enumerate(leaf_names):
        mine = component == name
        head[mine], kept[mine], stay[mine] = upper.head[at], upper.kept[at], stays[at]
    for number in np.unique(share):
        mine = np.flatnonzero((share == number) & (stay != NOT_CUT))
        mine = mine[np.argsort(place[mine])]
        some = some_of(leaves, mine)
        head[mine], kept[mine] = cut_inside(names[mine], some, weight[mine], stay[mine], options.k)
    weights = Counter([*[0] * int((tuples.rows - 1).sum()), *weight[weight > 0].tolist(), *edges.weight.tolist()])
    histogram = {at: weights[at] for at in sorted(weights)}
    is_head = names == head
    statistics = weight_statistics(histogram, block_distance(levels) // 2, options.zero_edges == "include") | {
        "kept": int((kept & is_head).sum()),
        "small": int((~kept & is_head).sum()),
        "identical": int((kept & (tuples.rows >= 2 * options.k)).sum()),
        "rows_kept": int(tuples.rows[kept].sum()),
    }
    return Cut(np.searchsorted(names, head).tolist(), kept.tolist(), statistics)


def joined(tuples: Tuples, levels: Levels, component: Ints, pieces: Pieces) -> Joins:
    order = walk(tuple(levels.heights.tolist()), levels.units)
    start = int(np.searchsorted(2 * order.cost, block_distance(levels)))
    nothing = np.empty(0, dtype=np.int64)
    found, root, batches = [Joins(nothing, nothing, nothing)], component.copy(), 0
    while np.unique(root).size > 1:
        if batches == pieces.tail_after:
            largest = np.bincount(np.unique(root, return_inverse=True)[1]).argmax()
            inside = root == np.unique(root)[largest]
            outside = np.ascontiguousarray(tuples.codes[:, ~inside])
            near, _ = nearest(levels, tuples.codes, inside, outside)
            near_to = np.full(near.size, root[inside][0])
            found.append(Joins(*tail_edges(levels, outside, root[~inside], root[~inside], near, near_to)))
            break
        alike = int(np.searchsorted(order.cost, order.cost[start], side="right")) - start
        stop = whole_weights(order.cost, start, max(pieces.room, alike))
        assert stop == order.cost.size or order.cost[stop - 1] < order.cost[stop]
        forests = []
        for sweep in sweeps(Walk(order.nodes[start:stop], order.cost[start:stop]), levels.heights):
            share = share_of(tuples.codes, tuples.ladder, sweep.top, pieces.shares)
            copies = np.vstack([lifted(tuples.codes, tuples.ladder, sweep.bottom), root, share])
            copies = np.unique(copies, axis=1)
            for number in np.unique(share):
                mine = np.ascontiguousarray(copies[:, copies[-1] == number])
                forests.append(swept(sweep, mine[:-2].astype(np.int32), tuples.ladder, mine[-2]))
        edges, names, roots = spanning_forest(Joins(*(np.concatenate(side) for side in zip(*forests, strict=True))))
        assert (roots <= names).all() and np.isin(roots, roots[roots == names]).all()
        known = np.isin(root, names)
        root[known] = roots[np.searchsorted(names, root[known])]
        found.append(edges)
        start, batches = stop, batches + 1
    return Joins(*(np.concatenate(side) for side in zip(*found, strict=True)))


def check(case: Case, zero_edges: Any, pieces: Pieces) -> None:
    options = Settings(k=case.k, l=case.l, zero_edges=zero_edges)
    tuples = tuples_of(case)
    assert cut_in_pieces(tuples, options, pieces) == cut_in_one_piece(tuples, options)


@settings(max_examples=30)
@given(cases(most_rows=40), ZERO_EDGES, PIECES)
def test_pieces_give_the_whole(case: Case, zero_edges: str, pieces: Pieces) -> None:
    check(case, zero_edges, pieces)


@pytest.mark.parametrize("seed", range(8))
def test_crowds_in_pieces(seed: int) -> None:
    """Hundreds of tuples: blocks of many components, and cuts on both levels."""
    check(crowd(seed, 100 * seed + 20), "include", Pieces(3, 4, 99 if seed % 2 else 1))


def test_flat_hierarchies_have_no_blocks() -> None:
    rows = [(one, other) for one in "abcdef" for other in "abc" for _ in range(1 + (one > "d"))]
    check(case_of([FLAT, FLAT], rows, 3), "include", Pieces(2, 1, 99))


def test_a_cut_from_above_goes_on_inside() -> None:
    """Identical rows press τ of the whole tree below 2, so that components are torn where they would hold together."""
    rows = [(leaf,) for leaf in ("a1", "a2", "a3", "b1", "b2") for _ in range(9)] + [("c1",), ("d1",), ("d2",)]
    case = case_of([PAIRS], rows, 3)
    tuples, options = tuples_of(case), Settings(k=3)
    whole = cut_in_one_piece(tuples, options)
    assert 0 < whole.statistics["tau"] < 1 and len(set(whole.heads)) == 8
    assert cut_in_pieces(tuples, options, Pieces(2, 1, 99)) == whole


def test_tuples_that_agree_share() -> None:
    hierarchies = [Hierarchy.from_levels(PAIRS), Hierarchy.intervals(5, 16, [2, 6])]
    tuples = tuples_of(
        Case(hierarchies, [(f"{one}{two}", at) for one in "abcd" for two in "1234" for at in range(5, 17)], 2)
    )
    share = share_of(tuples.codes, tuples.ladder, (1, 2), 4)
    by_key: dict[tuple[int, ...], set[int]] = {}
    for key, number in zip(lifted(tuples.codes, tuples.ladder, (1, 2)).T.tolist(), share.tolist(), strict=True):
        by_key.setdefault(tuple(key), set()).add(number)
    assert len(by_key) == 8 and all(len(numbers) == 1 for numbers in by_key.values())
    assert set(share.tolist()) <= set(range(4)) and len(set(share.tolist())) > 1
