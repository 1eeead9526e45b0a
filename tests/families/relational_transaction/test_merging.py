"""BTD, repairs, RMERGE and TMERGE of relational_transaction against brute force: arrays only, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from math import nextafter
from random import Random
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.relational_transaction.kernels import moves
from anon_spark.families.relational_transaction.kernels.bit_distance import (
    Distances,
    ItemLists,
    diameters,
    distances_within,
    union_distances,
)
from anon_spark.families.relational_transaction.kernels.relation import Floats, relation_of
from anon_spark.families.relational_transaction.merging import (
    BoundUnreachable,
    Merges,
    Summary,
    block_deltas,
    equal_tuples,
    rmerge,
    table_ncp,
    tmerge,
)
from anon_spark.families.relational_transaction.refinement import refined
from anon_spark.families.relational_transaction.repair import repaired
from anon_spark.families.relational_transaction.settings import Merge
from anon_spark.kernels.classes import Ints
from anon_spark.model.hierarchy import Hierarchy
from tests.families.relational_transaction.test_clusters import ORIGINS, Attribute, Table, figure_1, records_of, tables
from tests.oracle import rt_oracle as oracle
from tests.oracle.rt_oracle import Cluster, Record, Schema

pytestmark = pytest.mark.compiles

ORDERS = st.sampled_from(get_args(Merge))
SENSITIVE = "XYZ"
Grouping = list[tuple[int, ...]]


def summary_of(table: Table, clusters: Sequence[Cluster]) -> Summary:
    values = table.values
    rows = [values[list(one.rids)] for one in clusters]
    filled = [[record for record in one.records if record.items] for one in clusters]

    def counts(of: Sequence[Sequence[Record]]) -> Ints:
        return np.array([[sum(item in one.sensitive for one in part) for item in SENSITIVE] for part in of])

    return Summary(
        np.array([one.id for one in clusters]),
        np.array([len(one) for one in clusters]),
        np.array([len(part) for part in filled]),
        np.array([row.min(axis=0) for row in rows]),
        np.array([row.max(axis=0) for row in rows]),
        counts([one.records for one in clusters]),
        counts(filled),
    )


def lists_of(groups: Sequence[Sequence[Record]]) -> ItemLists:
    sets = [list({tuple(sorted(map(ord, one.items))) for one in group}) for group in groups]
    flat = [of for group in sets for of in group]
    return ItemLists(
        np.cumsum([0, *map(len, sets)]),
        np.cumsum([0, *map(len, flat)]),
        np.array([item for of in flat for item in of], dtype=np.int32),
    )


def distances_of(clusters: Sequence[Cluster]) -> Distances:
    return distances_within(lists_of([one.records for one in clusters]))


def members_of(clusters: Sequence[Cluster], indices: Ints) -> list[Record]:
    return sorted((record for at in indices for record in clusters[at].records), key=lambda record: record.rid)


def losses_of(clusters: Sequence[Cluster], transform: oracle.Transform) -> Callable[[Sequence[Ints]], Floats]:
    """distance "utility_loss" as a caller would give it."""
    return lambda unions: np.array([oracle.ul_of_table(transform(members_of(clusters, one))) for one in unions], dtype=float)


def loss_of(clusters: Sequence[Cluster], transform: oracle.Transform) -> Callable[[Ints], float]:
    def found(indices: Ints) -> float:
        records = members_of(clusters, indices)
        return float(oracle.ul_of_table(transform(records)) * len(records))

    return found


def grouping(clusters: Sequence[Cluster], target: Ints) -> Grouping:
    """Rids of the clusters that are left; each must stand at its smallest."""
    assert (target[target] == target).all() and (target <= np.arange(target.size)).all()
    return [
        tuple(record.rid for record in members_of(clusters, np.flatnonzero(target == head))) for head in np.unique(target)
    ]


def rids(clusters: Sequence[Cluster]) -> Grouping:
    return [one.rids for one in clusters]


def clusters_of(table: Table, k: int, seed: int) -> list[Cluster]:
    return oracle.cluster(table.records, table.schema, min(k, len(table.records)), Random(seed).randrange)


@st.composite
def clustered(draw: st.DrawFn, most_rows: int = 26) -> tuple[Table, list[Cluster], int]:
    """A table, clusters of k of its records or more, k."""
    table, k = draw(tables(most_rows, 6)), draw(st.integers(2, 4))
    return table, clusters_of(table, k, draw(st.integers(0, 99))), k


def between(clusters: Sequence[Cluster], schema: Schema, part: float) -> float:
    initial = oracle.float_ncp_of_table(clusters, schema)
    return initial + part * (1 - initial)


# --- BTD ------------------------------------------------------------------------------------------------------------------


def btd(*groups: Sequence[Record]) -> float:
    """Of a union; equal sets stand once, as they do in the lists."""
    distinct = {one.items: one for group in groups for one in group}
    return float(oracle.btd_of_cluster(list(distinct.values())))


@settings(max_examples=60)
@given(st.lists(st.lists(st.frozensets(st.sampled_from("abcdefghij")), min_size=1, max_size=6), min_size=1, max_size=8))
def test_distances_are_those_of_all_pairs(sets: list[list[frozenset[str]]]) -> None:
    groups = [[Record(0, (), items) for items in group] for group in sets]
    lists = lists_of(groups)
    own = diameters(lists)
    assert own.tolist() == [btd(group) for group in groups]
    found = union_distances(lists, own, lists, own)
    within = distances_within(lists)
    assert within.dtype == found.dtype == np.float32
    assert np.array_equal(np.diag(within), own.astype(np.float32)) and np.array_equal(within, within.T)
    for one, other in combinations(range(len(groups)), 2):
        # two clusters of one and the same set: it is a pair here, which no order can tell from 0
        alone = len({record.items for record in groups[one] + groups[other]}) == 1
        truth = oracle.btd(groups[one][0].items, groups[one][0].items) if alone else btd(groups[one], groups[other])
        assert found[one, other] == found[other, one] == within[one, other] == np.float32(float(truth))


def sets_in_common(rng: np.random.Generator) -> list[list[set[int]]]:
    """One item in all sets but a few; any numbers; an odd cluster that is large, and one that is empty."""
    sizes = rng.integers(1, 9, 40)
    groups = [[{7} | set(rng.integers(0, 30, rng.integers(0, 6)).tolist()) for _ in range(size)] for size in sizes]
    groups[3] = [set(rng.integers(0, 10**9, 40).tolist()) for _ in range(30)]
    groups[4] = [set()]
    return groups


def rare_sets(rng: np.random.Generator) -> list[list[set[int]]]:
    """Few sets in a cluster, so that all of them count, and more items than a word has bits, shared now and then."""
    return [[set(rng.integers(0, 300, 12).tolist()) for _ in range(1 + at % 2)] for at in range(40)]


@pytest.mark.parametrize("made", [sets_in_common, rare_sets])
def test_distances_across_lists_of_their_own(made: Callable[[np.random.Generator], list[list[set[int]]]]) -> None:
    groups = made(np.random.default_rng(2))

    def lists(parts: list[list[set[int]]]) -> ItemLists:
        flat = [sorted(of) for part in parts for of in part]
        items = np.array([item for of in flat for item in of])
        return ItemLists(np.cumsum([0, *map(len, parts)]), np.cumsum([0, *map(len, flat)]), items)

    def far(sets: list[set[int]]) -> float:
        pairs = list(combinations(sets, 2))
        return max([(len(a ^ b) + 1) * len(a | b) / (len(a & b) + 1) for a, b in pairs], default=0.0)

    left, right = lists(groups[:15]), lists(groups[15:])
    found = union_distances(left, diameters(left), right, diameters(right))
    assert found.shape == (15, 25)
    truth = [[far(one + other) for other in groups[15:]] for one in groups[:15]]
    assert np.array_equal(found, np.array(truth, dtype=np.float32))


def test_distances_of_the_paper() -> None:
    table = figure_1()
    pairs = "01:4 02:4 03:8 04:4.5 05:8 12:12.5 13:2 14:4.5 15:8 23:30 24:4.5 25:30 34:12 35:4.5 45:12"
    pairs += " 01:4 23:30 45:12 0123:30 0145:12 2345:30"
    for names, value in (pair.split(":") for pair in pairs.split()):
        assert diameters(lists_of([[table.records[int(at)] for at in names]])).tolist() == [float(value)]
    halves = distances_of(halved(table))
    assert halves.tolist() == [[4, 30, 12], [30, 30, 30], [12, 30, 12]]


# --- uniting and repairs --------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(clustered())
def test_clusters_that_publish_the_same_are_one(case: tuple[Table, list[Cluster], int]) -> None:
    table, clusters, _ = case
    summary, truth = summary_of(table, clusters), oracle.unite(clusters, table.schema)
    target = equal_tuples(summary, table.relation)
    assert grouping(clusters, target) == rids(truth)
    after, expected = summary.united(target), summary_of(table, truth)
    for name in ("ids", "sizes", "filled", "lo", "hi", "sensitive", "sensitive_filled"):
        assert np.array_equal(getattr(after, name), getattr(expected, name)), name


def test_equal_tuples_far_apart_are_united() -> None:
    """The same node above different leaves: the runs differ, the published label does not."""
    origin = Hierarchy.from_levels(ORIGINS)
    names = ["eu0", "Spain", "Algeria", "Nigeria", "eu1", "Germany"]
    table = Table([origin], [Record(at, (name,), frozenset("a")) for at, name in enumerate(names)])
    clusters = [oracle.make_cluster(table.records[at : at + 2], table.schema) for at in (0, 2, 4)]
    assert equal_tuples(summary_of(table, clusters), table.relation).tolist() == [0, 1, 0]


@settings(max_examples=100)
@given(clustered(), st.sampled_from([None, 2, 3, Fraction(5, 2)]))
def test_repairs_are_those_of_brute_force(case: tuple[Table, list[Cluster], int], l: Any) -> None:  # noqa: E741
    table, clusters, k = case
    number = None if l is None else float(l)
    try:
        truth = oracle.repair_empty(clusters, table.schema, k)
        truth = truth if l is None else oracle.repair_eligible(truth, table.schema, l)
    except oracle.Impossible:
        with pytest.raises(GuaranteeUnreachable):
            repaired(summary_of(table, clusters), table.relation, k, number)
        return
    summary = summary_of(table, clusters)
    target = repaired(summary, table.relation, k, number)
    assert grouping(clusters, target) == rids(truth)
    after = summary.united(target)
    assert ((after.filled == 0) | (after.filled >= k)).all()
    if number is not None:
        assert (after.sensitive * number <= after.sizes[:, None]).all()
        assert (after.sensitive_filled * number <= after.filled[:, None]).all()


def one_number(*clusters: tuple[float, int, int, int, int]) -> tuple[Summary, Any]:
    """Clusters at one value each: value, records, filled, records with the sensitive item, filled ones with it."""
    of = np.array(clusters, dtype=float)
    counts = of[:, 1:].astype(np.int64)
    table = Table([(0.0, 100.0)], [])
    summary = Summary(
        np.arange(len(of)) * 7, counts[:, 0], counts[:, 1], of[:, :1], of[:, :1], counts[:, 2:3], counts[:, 3:4]
    )
    return summary, table.relation


def test_empty_transactions_find_the_nearest() -> None:
    """One filled record of five goes to the nearest, which is also too poor, and on with it; no items at all are fine."""
    summary, relation = one_number((0, 5, 1, 0, 0), (10, 5, 1, 0, 0), (30, 5, 5, 0, 0), (90, 5, 0, 0, 0))
    assert repaired(summary, relation, 3).tolist() == [0, 0, 0, 3]
    none, relation = one_number((0, 5, 0, 0, 0), (10, 5, 0, 0, 0))
    assert repaired(none, relation, 3).tolist() == [0, 1]
    few, relation = one_number((0, 5, 1, 0, 0), (10, 5, 1, 0, 0))
    with pytest.raises(GuaranteeUnreachable, match="Only 2 of 10 records have items that are not sensitive, fewer than k = 3"):
        repaired(few, relation, 3)


def test_sensitive_items_find_a_cluster_that_helps() -> None:
    """The nearest would leave too much, the next one helps; without help the one that leaves least is taken."""
    near, relation = one_number((0, 4, 4, 3, 3), (10, 4, 4, 2, 2), (40, 4, 4, 1, 1), (41, 4, 4, 0, 0))
    assert repaired(near, relation, 2, 2).tolist() == [0, 1, 0, 3]
    worse, relation = one_number((0, 4, 4, 4, 4), (10, 4, 4, 2, 2), (40, 6, 6, 2, 2), (90, 6, 6, 2, 2))
    assert repaired(worse, relation, 2, 2).tolist() == [0, 1, 0, 0]
    # of all records one half, of those with other items more
    filled, relation = one_number((0, 8, 4, 3, 3), (50, 8, 8, 0, 0))
    assert repaired(filled, relation, 2, 2).tolist() == [0, 0]
    without, relation = one_number((0, 8, 4, 3, 2), (50, 8, 8, 0, 0))
    assert repaired(without, relation, 2, 2).tolist() == [0, 1]
    beyond, relation = one_number((0, 8, 8, 6, 6), (50, 4, 4, 1, 1))
    with pytest.raises(GuaranteeUnreachable, match="1 sensitive item occurs in more than one of l = 2 records"):
        repaired(beyond, relation, 2, 2)


# --- RMERGE ---------------------------------------------------------------------------------------------------------------


@settings(max_examples=120)
@given(clustered(), ORDERS, st.floats(0, 0.999), st.booleans())
def test_rmerge_is_that_of_brute_force(
    case: tuple[Table, list[Cluster], int], order: Merge, part: float, exhaustive: bool
) -> None:
    table, clusters, _ = case
    clusters = oracle.unite(clusters, table.schema)
    delta = between(clusters, table.schema, part)
    truth = oracle.rmerge(clusters, table.schema, delta, order, exhaustive_seeds=exhaustive)
    found = rmerge(summary_of(table, clusters), table.relation, delta, order, distances_of(clusters), None, exhaustive)
    check_merges(found, clusters, truth, table.schema)
    assert found.ncp <= delta


def check_merges(found: Merges, clusters: Sequence[Cluster], truth: Sequence[Cluster], schema: Schema) -> None:
    assert grouping(clusters, found.target) == rids(truth)
    assert found.ncp == oracle.float_ncp_of_table(truth, schema) == found.ncps[-1]
    assert len(found.pairs) == len(clusters) - len(truth) == found.ncps.size - 1
    assert np.array_equal(found.after(len(found.pairs)), found.target)
    assert np.allclose(found.ncps[0], oracle.float_ncp_of_table(clusters, schema))


@settings(max_examples=25)
@given(clustered(14), ORDERS, st.floats(0.2, 1), st.booleans())
def test_rmerge_by_loss_of_items(
    case: tuple[Table, list[Cluster], int], order: Merge, part: float, exhaustive: bool
) -> None:
    table, clusters, k = case
    transform, delta = oracle.by_sets(2, 1), between(clusters, table.schema, part)
    clusters = oracle.repair_empty(clusters, table.schema, k) if filled(table) >= k else clusters
    assume(oracle.float_ncp_of_table(clusters, table.schema) <= delta and filled(table) >= k)
    distance = oracle.ul_distance(transform)
    truth = oracle.rmerge(clusters, table.schema, delta, order, distance, exhaustive)
    losses = losses_of(clusters, transform)
    found = rmerge(summary_of(table, clusters), table.relation, delta, order, None, losses, exhaustive)
    check_merges(found, clusters, truth, table.schema)


def filled(table: Table) -> int:
    return sum(bool(record.items) for record in table.records)


@pytest.mark.parametrize("order", get_args(Merge))
def test_rmerge_of_a_crowd(order: Merge) -> None:
    """Some forty clusters, several δ: seeds that fail, seeds that are opened again, ties of all kinds."""
    kinds: list[Attribute] = [(0.0, 7.0), Hierarchy.from_levels(ORIGINS), Hierarchy.intervals(5, 16, [2, 6])]
    table = Table(kinds, records_of(kinds, 90, Random(8), repeat=0.0))
    clusters = oracle.unite(clusters_of(table, 2, 3), table.schema)
    assert len(clusters) > 38
    for part, exhaustive in ((0.15, True), (0.4, False), (0.4, True), (0.7, False)):
        delta = between(clusters, table.schema, part)
        truth = oracle.rmerge(clusters, table.schema, delta, order, exhaustive_seeds=exhaustive)
        found = rmerge(summary_of(table, clusters), table.relation, delta, order, distances_of(clusters), None, exhaustive)
        check_merges(found, clusters, truth, table.schema)


def numbers(*clusters: tuple[float, float, int]) -> tuple[Summary, Any]:
    """Clusters of one number: from, to, records."""
    of = np.array(clusters)
    sizes, none = of[:, 2].astype(np.int64), np.zeros((len(of), 0), dtype=np.int64)
    summary = Summary(np.arange(len(of)), sizes, sizes, of[:, :1], of[:, 1:2], none, none)
    return summary, Table([(-50.0, 50.0)], []).relation


def test_a_seed_that_failed_looks_again() -> None:
    """By relational values only the nearest is tried: when it has gone into a union, another one is."""
    # 0 fails with 1, which is large; 1 takes 2; now 4 is nearer to 0 than the union; 3 and 4, alone, fail with each other
    summary, relation = numbers((0, 0, 2), (10, 10, 100), (11, 11, 100), (-12, -12, 100), (-10.9, -10.5, 2))
    found = rmerge(summary, relation, 3 / 304, "relational", exhaustive_seeds=True)
    assert found.pairs.tolist() == [[1, 2], [0, 4]] and found.target.tolist() == [0, 1, 1, 3, 0]
    assert not rmerge(summary, relation, 3 / 304, "relational").pairs.size


def test_a_seed_that_failed_and_was_taken_looks_again() -> None:
    """0 fails with 1, which is large, and is taken by 2; then the union takes 3, which alone fails with 4, which is large."""
    summary, relation = numbers(
        (0, 0, 2), (10.49, 10.49, 100), (-10.5, -10.4, 2), (-20.95, -20, 2), (-21.2, -21.1, 1000)
    )
    found = rmerge(summary, relation, table_ncp(summary, relation) + 3 / 1106, "relational", exhaustive_seeds=True)
    assert found.pairs.tolist() == [[2, 0], [0, 3]]


def halved(table: Table) -> list[Cluster]:
    return [oracle.make_cluster(table.records[at : at + 2], table.schema) for at in (0, 2, 4)]


ONE, TWO_C, TWO_D = [(0, 1, 2, 3, 4, 5)], [(0, 1, 2, 3), (4, 5)], [(0, 1, 4, 5), (2, 3)]


@pytest.mark.parametrize(
    ("order", "delta", "groups"),
    [
        *[(order, delta, [(0, 1), (2, 3), (4, 5)]) for order in ("relational", "items", "both") for delta in (0.3595, 0.6383)],
        *[("relational", delta, TWO_C) for delta in (0.6384, 0.65, 0.9999)],
        *[("both", delta, TWO_C) for delta in (0.6384, 0.65, 0.9999)],
        *[("items", delta, TWO_C) for delta in (0.6384, 0.65, 0.7646)],
        *[("items", delta, TWO_D) for delta in (0.7648, 0.9999)],
        *[(order, 1.0, ONE) for order in ("relational", "items", "both")],
    ],
)
def test_rmerge_of_the_paper(order: Merge, delta: float, groups: Grouping) -> None:
    table = figure_1()
    clusters = halved(table)
    found = rmerge(summary_of(table, clusters), table.relation, delta, order, distances_of(clusters))
    assert grouping(clusters, found.target) == groups
    first = {"relational": 1, "both": 1, "items": 2 if groups != TWO_C else 1}[order]
    assert [tuple(pair) for pair in found.pairs[:1]] == [(0, first)] * (len(groups) < 3)


def test_losses_of_the_paper() -> None:
    """Rounded as the figures are; the order by UL chooses as the one by BTD does."""
    table = figure_1()
    clusters = halved(table)
    summary = summary_of(table, clusters)
    assert round(table_ncp(summary, table.relation), 4) == 0.3595
    losses = losses_of(clusters, oracle.by_sets(2, 2))
    assert np.round(losses([np.array([0, 2]), np.array([0, 1])]), 4).tolist() == [0.2296, 0.3462]
    for delta, groups, ncp in ((0.65, TWO_C, 0.6383), (0.77, TWO_D, 0.7647)):
        found = rmerge(summary, table.relation, delta, "items", None, losses)
        assert (grouping(clusters, found.target), round(found.ncp, 4)) == (groups, ncp)


def test_a_bound_below_the_first_clusters() -> None:
    table = figure_1()
    summary = summary_of(table, halved(table))
    initial = table_ncp(summary, table.relation)
    assert not rmerge(summary, table.relation, initial, "relational").pairs.size
    with pytest.raises(BoundUnreachable, match=r"Ask for a delta of at least 0\.3595") as refused:
        rmerge(summary, table.relation, nextafter(initial, 0), "relational")
    assert refused.value.facts["least"] == refused.value.facts["initial"] == initial


@pytest.mark.parametrize("order", get_args(Merge))
def test_the_bound_has_no_tolerance(order: Merge) -> None:
    """A merge that reaches δ exactly is done; one that is a last bit above is not."""
    table = figure_1()
    clusters = halved(table)
    summary = summary_of(table, clusters)
    full = rmerge(summary, table.relation, 1.0, order, distances_of(clusters))
    reached = table_ncp(summary.united(full.after(1)), table.relation)
    assert len(rmerge(summary, table.relation, reached, order, distances_of(clusters)).pairs) == 1
    below = rmerge(summary, table.relation, nextafter(reached, 0), order, distances_of(clusters))
    assert not any(table_ncp(summary.united(below.after(at)), table.relation) >= reached for at in range(1 + len(below.pairs)))


@settings(max_examples=40)
@given(clustered(), ORDERS, st.integers(4, 30), st.booleans())
def test_no_union_is_larger_than_a_task_takes(
    case: tuple[Table, list[Cluster], int], order: Merge, most: int, exhaustive: bool
) -> None:
    table, clusters, _ = case
    summary = summary_of(table, clusters)
    found = rmerge(summary, table.relation, 1.0, order, distances_of(clusters), None, exhaustive, most)
    sizes = summary.united(found.target).sizes
    largest = max(summary.sizes)
    assert (sizes <= max(most, largest)).all()
    if exhaustive:  # nothing that fits is left apart
        assert sizes.size == 1 or sum(sorted(sizes)[:2]) > most
    wide = rmerge(summary, table.relation, 1.0, order, distances_of(clusters), None, exhaustive, len(table.records))
    assert not wide.target.any()


def test_progress_is_told() -> None:
    table, told = figure_1(), list[tuple[int, int, str]]()
    clusters = halved(table)
    summary, distances = summary_of(table, clusters), distances_of(clusters)
    rmerge(summary, table.relation, 1.0, "items", distances, progress=lambda *args: told.append(args))
    rmerge(summary, table.relation, 1.0, "relational", progress=lambda *args: told.append(args))  # tells at its end
    assert told == [(done, 2, "merges of clusters") for done in (1, 2, 2)]


# --- TMERGE ---------------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(clustered(18), ORDERS, st.sampled_from(["bits", "utility_loss"]), st.sampled_from([0.0, 0.2, 0.5, 0.8]))
def test_tmerge_is_that_of_brute_force(
    case: tuple[Table, list[Cluster], int], order: Merge, kind: str, delta: float
) -> None:
    table, clusters, k = case
    assume(filled(table) >= k)
    clusters = oracle.repair_empty(clusters, table.schema, k)
    transform = oracle.by_sets(2, 1)
    distance = oracle.btd_of_cluster if kind == "bits" else oracle.ul_distance(transform)
    truth = oracle.tum_bound(clusters, table.schema, delta, transform, order, distance)
    summary = summary_of(table, clusters)
    distances = distances_of(clusters) if kind == "bits" else None
    losses = losses_of(clusters, transform) if kind == "utility_loss" else None

    def run() -> Merges:
        return tmerge(summary, table.relation, delta, order, distances, losses, loss_of(clusters, transform))

    if truth.infeasible:
        with pytest.raises(BoundUnreachable) as refused:
            run()
        assert refused.value.facts["least"] == pytest.approx(float(truth.least), abs=1e-12)
        assert refused.value.facts["initial"] == pytest.approx(float(truth.initial), abs=1e-12)
        return
    found = run()
    check_merges(found, clusters, truth.clusters, table.schema)
    assert np.allclose(found.losses, np.array(truth.losses, dtype=float), atol=1e-12)


@pytest.mark.parametrize(
    ("order", "path", "bounds"),
    [
        ("items", [0.5075, 0.2606, 0.3213], {0.51: 0, 0.5: 1, 0.3: 1, 0.26: 0.2606}),
        ("relational", [0.5075, 0.5642, 0.3213], {0.51: 0, 0.5: 2, 0.3: 0.3213}),
        ("both", [0.5075, 0.5642, 0.3213], {0.51: 0, 0.5: 2, 0.3: 0.3213}),
    ],
)
def test_tmerge_of_the_paper(order: Merge, path: list[float], bounds: dict[float, float]) -> None:
    """UL after every merge, how many merges each δ takes, and the least UL where none is enough: not the last one."""
    table = figure_1()
    clusters = halved(table)
    summary, of = summary_of(table, clusters), loss_of(clusters, oracle.by_sets(2, 2))
    whole = tmerge(summary, table.relation, None, order, distances_of(clusters), None, of)
    assert np.round(whole.losses, 4).tolist() == path and whole.ncp == 1
    for delta, merges in bounds.items():
        if isinstance(merges, int):
            found = tmerge(summary, table.relation, delta, order, distances_of(clusters), None, of)
            assert len(found.pairs) == merges and np.array_equal(found.target, whole.after(merges))
            assert np.array_equal(found.losses, whole.losses[: merges + 1])
        else:
            with pytest.raises(BoundUnreachable, match="the least of 3 steps is") as refused:
                tmerge(summary, table.relation, delta, order, distances_of(clusters), None, of)
            assert round(refused.value.facts["least"], 4) == merges


# --- R-13 -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(clustered(), st.floats(0, 1), st.integers(1, 4))
def test_blocks_share_the_bound(case: tuple[Table, list[Cluster], int], part: float, count: int) -> None:
    table, clusters, _ = case
    blocks = [clusters[at::count] for at in range(min(count, len(clusters)))]
    delta = between(clusters, table.schema, part)
    sizes = np.array([sum(map(len, block)) for block in blocks])
    ncps = np.array([oracle.float_ncp_of_table(block, table.schema) for block in blocks])
    found = block_deltas(sizes, ncps, delta)
    truth = oracle.shares_of_delta(blocks, table.schema, Fraction(delta))
    assert np.allclose(found, np.array(truth, dtype=float), atol=1e-12)
    assert (found >= ncps).all()
    assert sizes @ found == pytest.approx(len(table.records) * delta)
    after = list[Cluster]()
    for block, bound in zip(blocks, found, strict=True):
        merges = rmerge(summary_of(table, block), table.relation, float(bound), "items", distances_of(block), None, True)
        after += [oracle.make_cluster([table.records[at] for at in one], table.schema) for one in grouping(block, merges.target)]
    assert oracle.float_ncp_of_table(after, table.schema) <= delta


def test_blocks_cannot_share_too_little() -> None:
    sizes, ncps = np.array([10, 30]), np.array([0.2, 0.6])
    assert block_deltas(sizes, ncps, 0.75).tolist() == pytest.approx([0.6, 0.8])
    assert block_deltas(sizes, ncps, 0.5).tolist() == [0.2, 0.6]
    assert block_deltas(sizes, ncps, 1.0).tolist() == block_deltas(sizes, np.ones(2), 1.0).tolist() == [1, 1]
    with pytest.raises(BoundUnreachable):
        block_deltas(sizes, ncps, 0.4999)
    assert block_deltas(sizes[:1], ncps[:1], 0.2).tolist() == [0.2]  # to the last bit
    with pytest.raises(BoundUnreachable):
        block_deltas(sizes[:1], ncps[:1], nextafter(0.2, 0))


# --- moves ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(clustered(most_rows=40), st.floats(0, 1), st.booleans())
def test_moves_are_those_of_brute_force(found: tuple[Table, list[Cluster], int], part: float, every_seed: bool) -> None:
    table, clusters, _ = found
    delta = between(clusters, table.schema, part)
    summary = summary_of(table, clusters)
    merged = rmerge(summary, table.relation, delta, "relational", exhaustive_seeds=every_seed)
    target = refined(summary, table.relation, delta, merged.target, every_seed)
    by_brute_force = oracle.rmerge(clusters, table.schema, delta, exhaustive_seeds=every_seed)
    expected = oracle.refined(clusters, by_brute_force, table.schema, delta, every_seed)
    assert sorted(grouping(clusters, target)) == sorted(rids(expected))
    assert table_ncp(summary.united(target), table.relation) <= max(delta, merged.ncp)


def test_two_mixed_clusters_are_sorted_out_and_room_is_kept() -> None:
    """Numbers near 0 and near 100 in both: they part, unless a cluster would get too many records."""
    lo = np.array([[0.0], [100.0], [1.0], [99.0], [2.0]])
    relation, _ = relation_of([(0.0, 100.0)])
    sizes = np.full(5, 3)
    for most, left in ((15, [0, 1, 0, 1, 0]), (8, [0, 0, 1, 1, 1])):
        cluster = np.array([0, 0, 1, 1, 1])
        done = moves.moved(relation, lo, lo, sizes, cluster, most, moves.WORK)
        assert cluster.tolist() in (left, [1 - of for of in left]) and (done == 0) == (most == 8)
    cluster = np.array([0, 0, 1, 1, 1])
    assert moves.moved(relation, lo, lo, sizes, cluster, 15, 0) == 1  # no more work is allowed than begun
    cluster, crowd = np.array([0, 0, 1, 1, 1]), np.full(5, 2**40)  # no sum is too large for a whole number
    assert moves.moved(relation, lo, lo, crowd, cluster, 2**50, moves.WORK) > 0
    assert cluster[0] == cluster[2] == cluster[4] != cluster[1] == cluster[3]
