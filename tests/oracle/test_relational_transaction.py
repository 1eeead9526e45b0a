"""The oracle of the family relational_transaction against the specification: Figures 1 and 2, the decisions, the unit cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import inf, isclose, log2, nextafter
from random import Random

import pytest

from tests.oracle.rt_oracle import (
    Category,
    Cluster,
    GenItem,
    Impossible,
    Number,
    Published,
    Query,
    Record,
    Schema,
    Transform,
    aa,
    actual,
    are,
    btd,
    btd_of_cluster,
    by_blocks,
    by_levels,
    by_sets,
    cluster,
    combined,
    eligible,
    estimate,
    excess,
    float_ncp_of_table,
    gray_rank,
    highest_sensitive_share,
    initial_clusters,
    item_probability,
    log2_ul_dom,
    lra_blocks,
    make_cluster,
    mapped,
    merge_order,
    merged_ncp,
    ncp_of_table,
    non_empty,
    publish,
    relational_blocks,
    repair_eligible,
    repair_empty,
    rfirst,
    rmerge,
    rmerge_in_blocks,
    rum_bound,
    seeds,
    set_gen,
    shares_of_delta,
    tfirst,
    ticks,
    tmerge,
    tum_bound,
    ul,
    ul_distance,
    ul_of_clusters,
    ul_of_table,
    union,
    unite,
    verify_kkm,
    verify_klm,
    verify_original,
    vpa,
)

# --- Figure 1(a) ---------------------------------------------------------------------------------------------------------

COUNTRIES = [("eu0", "Europe"), ("eu1", "Europe"), ("Germany", "Europe"), ("Spain", "Europe"), ("Algeria", "Africa")]
ORIGIN = Category([*((country, area, "*") for country, area in COUNTRIES), ("Nigeria", "Africa", "*")])
SCHEMA = Schema([Number(19, 70), ORIGIN, Category([("M", "*"), ("F", "*")])])
AGES, GENDERS = [19, 22, 28, 39, 70, 55], "MMFFFM"
ITEMS, SENSITIVE = ["EFB", "EFD", "BCE", "FD", "E", "AF"], "GHGHGH"
FIGURE = [
    Record(rid, (AGES[rid], ORIGIN.leaves[rid], GENDERS[rid]), frozenset(ITEMS[rid]), frozenset(SENSITIVE[rid]))
    for rid in range(6)
]
SETS = by_sets(2, 2)
FIGURE_1B: dict[str, GenItem] = {"E": ("E",), "F": ("F",)} | dict.fromkeys("ABCD", tuple("ABCD"))

A, B, C, D = ["01", "23", "45"], ["012345"], ["0123", "45"], ["0145", "23"]  # the partitions of Figures 2(a) … 2(d)


def figure(*rids: int | str) -> list[Record]:
    return [FIGURE[int(rid)] for rid in rids]


def clusters_of(partition: Iterable[str]) -> list[Cluster]:
    return [make_cluster(figure(*rids), SCHEMA) for rids in partition]


def partition_of(clusters: Iterable[Cluster]) -> list[str]:
    return ["".join(map(str, found.rids)) for found in clusters]


def sets(text: str) -> set[GenItem]:
    return {tuple(item) for item in text.split()}


def four(value: Fraction | float) -> float:
    return round(float(value), 4)


def images(
    records: Sequence[Record],
    k: int = 2,
    m: int = 2,
    cost: str = "occurrences",
    l: int | None = None,  # noqa: E741
) -> set[GenItem]:
    return set(set_gen(records, k, m, cost, l).values())


FIRST = clusters_of(A)


def as_printed(printed: dict[str, str]) -> Transform:
    """The items of a figure: per cluster the generalized items."""
    by_records = {tuple(figure(*rids)): sets(items) for rids, items in printed.items()}

    def transform(records: Sequence[Record]) -> list[frozenset[GenItem]]:
        image = {item: u for u in by_records[tuple(records)] for item in u}
        return [row.items for row in mapped(records, image)]

    return transform


FIGURE_2: dict[str, tuple[list[str], Transform, float, float, Fraction]] = {
    "a": (A, as_printed({"01": "E F BD", "23": "BCF DE", "45": "AEF"}), 0.5075, 0.3595, Fraction(1, 2)),
    "b": (B, as_printed({"012345": "E F ABCD"}), 0.3213, 1.0, Fraction(3, 4)),
    "c": (C, as_printed({"0123": "E F BCD", "45": "AEF"}), 0.5642, 0.6383, Fraction(2, 3)),
    "d": (D, as_printed({"0145": "E F ABD", "23": "BCF DE"}), 0.2606, 0.7647, Fraction(2, 3)),
}


@pytest.mark.parametrize("name", FIGURE_2)
def test_figure_2(name: str) -> None:
    partition, transform, loss, ncp, share = FIGURE_2[name]
    clusters = clusters_of(partition)
    rows = list(publish(clusters, transform).values())
    assert four(ul_of_table([row.items for row in rows])) == loss
    assert four(ncp_of_table(clusters, SCHEMA)) == four(float_ncp_of_table(clusters, SCHEMA)) == ncp
    assert verify_kkm(rows, 2, 2) == set()
    assert verify_original(FIGURE, rows, SCHEMA, 2, 2) == set()
    assert highest_sensitive_share(rows, 2) == share
    assert (verify_klm(rows, 2, 2, 2) == set()) == (name == "a")  # only 2(a) is (2, 2²)-diverse with l = 2


@pytest.mark.parametrize("name", FIGURE_2)
@pytest.mark.parametrize("cost", ["occurrences", "utility_loss"])
def test_figure_2_by_set_gen(name: str, cost: str) -> None:
    partition, _, loss, _, _ = FIGURE_2[name]
    rows = publish(clusters_of(partition), by_sets(2, 2, cost))
    assert four(ul_of_table([row.items for row in rows.values()])) == loss
    assert verify_kkm(rows.values(), 2, 2) == set()


def test_original_has_no_loss_and_no_guarantee() -> None:
    rows = [Published(SCHEMA.box(record), frozenset((item,) for item in record.items)) for record in FIGURE]
    assert ul_of_table([row.items for row in rows]) == 0
    assert all(SCHEMA.ncp(row.cells) == 0 for row in rows)
    assert {itemset for _, itemset in verify_kkm(rows, 2, 2)} >= {(), (("E",),), (("B",), ("F",))}
    assert four(ul_of_table([row.items for row in rows], singleton=1)) == 0.6032


def test_weight_of_singletons_decides_the_merge() -> None:
    """With weight 1 RMERGE_T would not make the merge of Figure 2(d)."""
    d, c = (SETS(figure(*rids)) for rids in ("0145", "0123"))
    assert [four(ul_of_table(d)), four(ul_of_table(c))] == [0.2296, 0.3462]
    assert [four(ul_of_table(d, singleton=1)), four(ul_of_table(c, singleton=1))] == [0.5285, 0.4118]


def test_figure_1b_is_caught() -> None:
    rows = publish(FIRST, lambda records: [row.items for row in mapped(records, FIGURE_1B)])
    assert four(ul_of_table([row.items for row in rows.values()])) == 0.3213
    e, f, abcd = ("E",), ("F",), tuple("ABCD")
    _, young, old = (found.box for found in FIRST)
    expected = {(young, (e,)), (young, (f,)), (young, (abcd, e)), (young, (abcd, f))}
    expected |= {(old, (e,)), (old, (f,)), (old, (abcd,)), (old, (abcd, f))}
    assert verify_kkm(rows.values(), 2, 2) == expected
    assert {pair for pair in expected if len(pair[1]) == 1} == verify_kkm(rows.values(), 2, 1)
    assert verify_original(FIGURE, list(rows.values()), SCHEMA, 2, 1) == {
        (2, ("E",)),
        (3, ("F",)),
        (4, ("E",)),
        (5, ("A",)),
        (5, ("F",)),
    }


def test_figure_1b_without_relational_values() -> None:
    """It is 2²-anonymous, but not once the sensitive items count as items."""
    rows = mapped(FIGURE, FIGURE_1B)
    assert verify_kkm(rows, 2, 2) == set()
    seen = [row._replace(items=row.items | {(s,) for s in row.sensitive}) for row in rows]
    assert verify_kkm(seen, 2, 2) == {((), (("E",), ("H",))), ((), (("F",), ("G",)))}


# --- SetGen, BTD, UL -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", ["occurrences", "utility_loss"])
def test_set_gen_of_the_figures(cost: str) -> None:
    found = {rids: images(figure(*rids), cost=cost) for rids in ("01", "45", "0123", "0145", "012345")}
    assert found["01"] == sets("E F BD")
    assert found["45"] == sets("AEF")
    assert found["0123"] == sets("E F BCD")
    assert found["0145"] == sets("E F ABD")
    assert found["012345"] == sets("E F ABCD")


def test_set_gen_of_two_and_three() -> None:
    assert images(figure(2, 3)) == sets("BCD EF")
    assert four(ul_of_table(SETS(figure(2, 3)))) == 0.3226
    printed = FIGURE_2["a"][1](figure(2, 3))
    assert ul_of_table(printed) == ul_of_table(SETS(figure(2, 3)))


def test_set_gen_takes_the_least_cost_then_the_smaller_union() -> None:
    # a is rare; b, c, d have 3, 2, 2 records: a∪c and a∪d cost 2·3, a∪b costs 2·4; c comes first
    rows = [Record(rid, (), frozenset(items)) for rid, items in enumerate(["ab", "bcd", "bcd"])]
    assert images(rows, 2, 1) == sets("ac b d")
    # x∪y costs 2·2, then z∪xy 3·3 − 2·2; any of them with w 2·6
    rows = [Record(rid, (), frozenset(items)) for rid, items in enumerate(["xw", "yw", "zw", "w", "w"])]
    assert images(rows, 2, 1) == sets("w xyz")
    # a∪b and a∪z cost 2·4: the first; then z∪ab costs 3·6 − 2·4 and z∪w 2·5, the same: the smaller union
    rows = [Record(rid, (), frozenset(item)) for rid, item in enumerate("aabbzzwww")]
    assert images(rows, 4, 1) == sets("ab wz")


def test_set_gen_with_m_one_and_two() -> None:
    rows = [Record(rid, (), frozenset(items)) for rid, items in enumerate(["ab", "ac", "bc"])]
    assert images(rows, 2, 1) == sets("a b c")
    united = images(rows, 2, 2)
    assert united == sets("ab c")
    by_two = mapped(rows, set_gen(rows, 2, 2))
    by_one = mapped(rows, set_gen(rows, 2, 1))
    assert verify_kkm(by_two, 2, 2) == verify_kkm(by_one, 2, 1) == set()
    assert len(verify_kkm(by_one, 2, 2)) == 3
    assert len(verify_kkm(by_two, 3, 2)) == 2


def test_set_gen_for_diversity_looks_at_smaller_sets_again() -> None:
    rows = [Record(rid, (), frozenset("x"), frozenset("s" if rid < 3 else "")) for rid in range(4)]
    rows += [Record(rid, (), frozenset("y")) for rid in range(4, 8)]
    assert images(rows, 2, 1) == sets("x y")
    assert images(rows, 2, 1, l=2) == sets("xy")
    assert verify_klm(mapped(rows, set_gen(rows, 2, 1, l=2)), 2, 2, 1) == set()
    with pytest.raises(Impossible):
        set_gen(rows[:4], 2, 1, l=2)
    with pytest.raises(Impossible):
        set_gen([Record(0, (), frozenset("x")), Record(1, (), frozenset())], 2, 1)


@pytest.mark.parametrize("cost", ["rarest", "occurrences", "utility_loss"])
@pytest.mark.parametrize("l", [None, 2, Fraction(5, 2)])
def test_set_gen_always_has_the_guarantee(cost: str, l: int | Fraction | None) -> None:  # noqa: E741
    random, tried = Random(3), 0
    while tried < 12:
        rows = [
            Record(
                rid,
                (),
                frozenset(item for item in "abcdef" if random.random() < 0.4),
                frozenset(s for s in "st" if random.random() < 0.2),
            )
            for rid in range(12)
        ]
        if 0 < non_empty(rows) < 3 or (l is not None and not eligible(rows, l)):
            continue
        tried += 1
        found = mapped(rows, set_gen(rows, 3, 2, cost, l))
        assert verify_kkm(found, 3, 2) == set()
        assert l is None or verify_klm(found, 3, l, 2) == set()


def test_btd() -> None:
    pairs = {"01": 4, "02": 4, "03": 8, "04": 4.5, "05": 8, "12": 12.5, "13": 2, "14": 4.5, "15": 8, "23": 30}
    pairs |= {"24": 4.5, "25": 30, "34": 12, "35": 4.5, "45": 12}
    assert {one + other: btd(ITEMS[int(one)], ITEMS[int(other)]) for one, other in combinations("012345", 2)} == pairs
    sizes = {"01": 4, "23": 30, "45": 12, "0123": 30, "0145": 12, "2345": 30, "3": 0}
    assert {rids: btd_of_cluster(figure(*rids)) for rids in sizes} == sizes
    assert btd("", "") == 0
    assert btd("", "ab") == 6


def test_btd_of_a_union_of_unions() -> None:
    for a, b, x in product(["01", "2", "35"], ["4", "23", "05"], ["1", "34", "0"]):
        both, left, right = (btd_of_cluster(figure(*one, *other)) for one, other in ((a, b), (a, x), (b, x)))
        assert btd_of_cluster(figure(*a, *b, *x)) == max(both, left, right)


def test_ul() -> None:
    assert ul(sets("ac bd")) == Fraction(2, 5)
    assert ul(sets("ace bdf")) == Fraction(2, 9)  # coarser, and less
    assert ul(sets("abcdefgh")) == 1
    assert ul([]) == ul(sets("a b c")) == 0
    wide = {tuple(f"{part}{at}" for at in range(90)) for part in "ab"}
    assert ul(wide) == Fraction(2 * (2**90 - 1), 2**180 - 1)
    assert ul_of_table([sets("ac bd"), sets("a"), []]) == Fraction(2, 15)


def test_ul_is_not_monotone() -> None:
    assert four(ul_of_clusters(FIRST[:2], SETS)) == 0.2613
    assert four(ul_of_clusters([union(FIRST[0], FIRST[1], SCHEMA)], SETS)) == 0.3462


def test_ul_over_the_domain() -> None:
    assert isclose(log2_ul_dom([sets("ac bd")], 6), log2(6 / 63))
    assert isclose(log2_ul_dom([sets("ac bd"), sets("a")], 6), log2(3 / 63))
    assert log2_ul_dom([sets("a b")], 6) == -inf
    assert isclose(log2_ul_dom([[tuple(map(str, range(1999)))]], 2000), -1)


# --- NCP -----------------------------------------------------------------------------------------------------------------


def test_ncp() -> None:
    assert [four(SCHEMA.ncp(found.box)) for found in FIRST] == [0.2418, 0.2941, 0.5425]
    assert SCHEMA.ncp(FIRST[0].box) == (Fraction(3, 51) + Fraction(4, 6)) / 3
    assert [SCHEMA.labels(found.box) for found in FIRST] == [
        ((19, 22), "Europe", "M"),
        ((28, 39), "Europe", "F"),
        ((55, 70), "Africa", "*"),
    ]
    assert four(merged_ncp(FIRST[0], FIRST[1], SCHEMA)) == 0.6863
    assert merged_ncp(FIRST[0], FIRST[2], SCHEMA) == 1
    weighted = Schema(SCHEMA.attributes, [Fraction(1, 2), Fraction(1, 2), Fraction(0)])
    assert weighted.ncp(FIRST[2].box) == (Fraction(15, 51) + Fraction(2, 6)) / 2


def test_ncp_of_cells() -> None:
    padded = Category([("a", "a", "*"), ("b", "bc", "*"), ("c", "bc", "*")])
    assert [padded.share(padded.cover(leaves)) for leaves in ("a", "bc", "ab")] == [0, Fraction(2, 3), 1]
    assert padded.labels[padded.cell("a")] == "a"
    assert Number(0, 100).share((19, 20)) == Fraction(1, 100)  # G-10: a range of length 1 is not free
    assert Number(5, 5).share((5, 5)) == 0


# --- CLUSTER, uniting, repairs ---------------------------------------------------------------------------------------------


def drawn(*indices: int) -> Callable[[int], int]:
    left = list(indices)
    return lambda bound: left.pop(0)


LINE = Schema([Number(0, 100)])


def on_line(
    values: Iterable[float], items: Sequence[str] | None = None, sensitive: Sequence[str] | None = None
) -> list[Record]:
    rows = list(values)
    each, secret = items or ["x"] * len(rows), sensitive or [""] * len(rows)
    return [Record(at, (value,), frozenset(each[at]), frozenset(secret[at])) for at, value in enumerate(rows)]


def test_cluster_of_the_figure() -> None:
    """Figure 2(a) from the seeds 0, 2 and 4, and from 5, 3 and 0."""
    for draws in (drawn(0, 0, 0), drawn(5, 3, 0)):
        assert partition_of(cluster(FIGURE, SCHEMA, 2, draws)) == A
    assert partition_of(initial_clusters([FIGURE], SCHEMA, 2, [drawn(1, 1, 1)])) == A
    with pytest.raises(Impossible):
        cluster(FIGURE[:1], SCHEMA, 2, drawn())


def test_seed_is_a_place_among_the_records_left() -> None:
    records = on_line([0, 10, 20, 30, 40, 50])
    bounds = list[int]()

    def draw(bound: int) -> int:
        bounds.append(bound)
        return bound - 1

    assert partition_of(cluster(records[::-1], LINE, 2, draw)) == ["01", "23", "45"]
    assert bounds == [6, 4, 2]
    assert partition_of(cluster(records, LINE, 2, drawn(1, 2, 0))) == [
        "01",
        "25",
        "34",
    ]  # seed 1, then 4 (tie 3: rid), then 2


def test_leftovers_see_those_added_before() -> None:
    # clusters {0, 10} and {50, 60}: [31, 60] is shorter than [0, 31]
    records = on_line([0, 10, 50, 60, 31])
    assert partition_of(cluster(records, LINE, 2, drawn(0, 0))) == ["01", "234"]
    # 90 stretches {70, 71, 72}, so that 40 is nearer to {0, 1, 2}
    assert partition_of(cluster(on_line([0, 1, 2, 70, 71, 72, 40]), LINE, 3, drawn(0, 0))) == ["012", "3456"]
    assert partition_of(cluster(on_line([0, 1, 2, 70, 71, 72, 90, 40]), LINE, 3, drawn(0, 0))) == ["0127", "3456"]


def test_equal_tuples_are_united() -> None:
    records = on_line([5, 5, 5, 5, 9, 9])
    apart = cluster(records, LINE, 2, drawn(0, 0, 0))
    assert partition_of(apart) == ["01", "23", "45"]
    assert partition_of(unite(apart, LINE)) == ["0123", "45"]
    assert partition_of(initial_clusters([records[:2], records[2:]], LINE, 2, [drawn(0), drawn(0, 0)])) == [
        "0123",
        "45",
    ]


def test_empty_transactions() -> None:
    records = on_line([0, 1, 40, 41, 70, 71], ["x", "", "", "", "y", "y"])
    found = cluster(records, LINE, 2, drawn(0, 0, 0))
    assert partition_of(found) == ["01", "23", "45"]
    # {01} has one record with items; so has {0123}; {23} alone would do
    assert partition_of(repair_empty(found, LINE, 2)) == ["012345"]
    full = on_line([0, 1, 40, 41, 70, 71], ["x", "", "x", "", "y", "y"])
    assert partition_of(repair_empty(cluster(full, LINE, 2, drawn(0, 0, 0)), LINE, 2)) == ["0123", "45"]
    none = on_line([0, 1, 40, 41], ["", "", "", ""])
    assert partition_of(repair_empty(cluster(none, LINE, 2, drawn(0, 0)), LINE, 2)) == ["01", "23"]
    assert ul_of_clusters(cluster(none, LINE, 2, drawn(0, 0)), SETS) == 0
    with pytest.raises(Impossible, match="items"):
        repair_empty(cluster(records[:4], LINE, 2, drawn(0, 0)), LINE, 2)


def test_repair_comes_before_delta() -> None:
    """An almost empty far cluster: repaired first, the table is above δ; never published above δ."""
    records = on_line([0, 1, 2, 3, 99, 100], ["x", "x", "x", "x", "x", ""])
    apart = cluster(records, LINE, 2, drawn(0, 0, 0))
    assert float_ncp_of_table(apart, LINE) == 0.01
    initial = initial_clusters([records], LINE, 2, [drawn(0, 0, 0)])
    assert partition_of(initial) == ["01", "2345"]
    assert four(float_ncp_of_table(initial, LINE)) == four((2 * 0.01 + 4 * 0.98) / 6)
    late = rum_bound(initial, LINE, 0.5, SETS)
    assert (late.infeasible, late.published, four(late.least)) == ("initial NCP", None, 0.6567)
    fine = rum_bound(initial, LINE, 0.66, SETS)
    assert fine.published is not None
    assert verify_kkm(fine.published.values(), 2, 2) == set()
    assert float_ncp_of_table(fine.clusters, LINE) <= 0.66
    with pytest.raises(Impossible):
        rfirst(apart, SETS)


def test_eligibility() -> None:
    records = on_line(range(4), ["x", "x", "", ""], ["s", "", "s", ""])
    assert excess(records, 2) == 0
    assert excess(records, 3) == Fraction(2, 3)
    hidden = on_line(range(4), ["x", "", "", ""], ["s", "", "", ""])
    assert excess(hidden, 2) == Fraction(1, 2)  # one of the one record with items
    assert not eligible(hidden, 2)
    assert eligible([], 2)


def test_repair_for_diversity() -> None:
    # {01} is not eligible; the nearest {23} does not help, {45} does
    records = on_line([0, 1, 10, 11, 60, 61], sensitive=["s", "s", "s", "", "", ""])
    found = cluster(records, LINE, 2, drawn(0, 0, 0))
    assert partition_of(repair_eligible(found, LINE, 2)) == ["0145", "23"]
    # no single partner helps: the one with the least excess, then the rest
    worse = on_line([0, 1, 2, 10, 11, 12, 60, 61, 62], sensitive=["s", "s", "s", "s", "s", "", "", "", ""])
    found = cluster(worse, LINE, 3, drawn(0, 0, 0))
    assert partition_of(repair_eligible(found, LINE, Fraction(9, 5))) == ["012345678"]
    with pytest.raises(Impossible, match="eligible"):
        repair_eligible(found, LINE, 2)
    twice = on_line([0, 1, 10, 11, 60, 61, 90, 91], sensitive=["st", "st", "", "s", "t", "t", "", ""])
    found = cluster(twice, LINE, 2, drawn(0, 0, 0, 0))
    assert partition_of(repair_eligible(found, LINE, 2)) == ["0167", "2345"]


# --- Rum-bound -----------------------------------------------------------------------------------------------------------


def test_seed_and_orders() -> None:
    assert partition_of(seeds(FIRST, SCHEMA)) == ["01", "23", "45"]
    seed = FIRST[0]
    assert partition_of(merge_order(seed, FIRST, SCHEMA, "relational")) == ["23", "45"]
    assert partition_of(merge_order(seed, FIRST, SCHEMA, "items")) == ["45", "23"]
    assert partition_of(merge_order(seed, FIRST, SCHEMA, "items", ul_distance(SETS))) == ["45", "23"]
    assert partition_of(merge_order(seed, FIRST, SCHEMA, "both")) == ["23", "45"]  # 3 = 3, smaller u


NCP_C, NCP_D = (float_ncp_of_table(clusters_of(partition), SCHEMA) for partition in (C, D))


@pytest.mark.parametrize(
    ("merge", "delta", "partition"),
    [
        ("relational", 0.6384, C),
        ("relational", 0.65, C),
        ("relational", 0.9999, C),
        ("relational", NCP_C, C),
        ("relational", nextafter(NCP_C, 0), A),
        ("items", 0.7648, D),
        ("items", 0.9999, D),
        ("items", NCP_D, D),
        ("items", nextafter(NCP_D, 0), C),
        ("items", 0.65, C),
        ("items", 0.6384, C),
        ("both", 0.6384, C),
        ("both", 0.65, C),
        ("both", 0.9999, C),
        *((merge, delta, A) for merge in ("relational", "items", "both") for delta in (0.3595, 0.5, 0.6383)),
        *((merge, 1, B) for merge in ("relational", "items", "both")),
    ],
)
def test_rum_bound(merge: str, delta: float, partition: list[str]) -> None:
    for distance in (btd_of_cluster, ul_distance(SETS)):
        result = rum_bound(FIRST, SCHEMA, delta, SETS, merge, distance)
        assert result.infeasible is None and result.published is not None
        assert partition_of(result.clusters) == partition
        assert float_ncp_of_table(result.clusters, SCHEMA) <= delta
        assert verify_kkm(result.published.values(), 2, 2) == set()
        assert verify_original(FIGURE, list(result.published.values()), SCHEMA, 2, 2) == set()


@pytest.mark.parametrize("merge", ["relational", "items", "both"])
def test_delta_below_the_initial_ncp(merge: str) -> None:
    result = rum_bound(FIRST, SCHEMA, 0.3594, SETS, merge)
    assert (result.infeasible, result.published, four(result.initial)) == ("initial NCP", None, 0.3595)
    assert result.least == result.initial == ncp_of_table(FIRST, SCHEMA)


def test_next_seeds() -> None:
    """The seed {01} has nobody near, {23} and {45} have each other."""
    records = on_line([0, 0.5, 60, 61, 62, 63])
    found = unite(cluster(records, LINE, 2, drawn(0, 0, 0)), LINE)
    for merge in ("relational", "items", "both"):
        assert partition_of(rmerge(found, LINE, 0.03, merge)) == ["01", "23", "45"]
        assert partition_of(rmerge(found, LINE, 0.03, merge, exhaustive_seeds=True)) == ["01", "2345"]


def test_ties_of_the_t_order() -> None:
    """R-12: of equal BTD the nearer cluster, not the one with the smaller id."""
    records = on_line([50, 51, 0, 1.5, 60, 62, 90, 93], ["abcdefgh", "x", *("ax" for _ in range(6))])
    found = [make_cluster(records[at : at + 2], LINE) for at in range(0, 8, 2)]
    assert len({btd_of_cluster(found[0].records + other.records) for other in found[1:]}) == 1
    assert partition_of(merge_order(found[0], found, LINE, "items")) == ["45", "67", "23"]
    assert partition_of(merge_order(found[0], found, LINE, "both")) == ["45", "67", "23"]


def test_seed_ties() -> None:
    records = on_line([10, 11, 12, 20, 22, 30, 32])
    found = [make_cluster(rows, LINE) for rows in (records[:3], records[3:5], records[5:])]
    assert partition_of(seeds(found, LINE)) == ["34", "56", "012"]


# --- Tum-bound -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("merge", "sequence", "deltas"),
    [
        ("items", [0.5075, 0.2606, 0.3213], {0.51: A, 0.5: D, 0.3: D, 0.26: None}),
        ("relational", [0.5075, 0.5642, 0.3213], {0.51: A, 0.5: B, 0.33: B, 0.3: None}),
        ("both", [0.5075, 0.5642, 0.3213], {0.51: A, 0.5: B, 0.33: B, 0.3: None}),
    ],
)
def test_tum_bound(merge: str, sequence: list[float], deltas: dict[float, list[str] | None]) -> None:
    whole = tmerge(FIRST, SCHEMA, 0, SETS, merge)
    assert [four(ul_of_clusters(step, SETS)) for step in whole] == sequence
    for delta, partition in deltas.items():
        result = tum_bound(FIRST, SCHEMA, delta, SETS, merge)
        assert four(result.initial) == 0.5075
        if partition is None:
            assert (result.infeasible, result.published, four(result.least)) == ("UL", None, min(sequence))
            assert partition_of(result.clusters) == B  # the last one, whatever was least
        else:
            assert result.infeasible is None and result.published is not None
            assert partition_of(result.clusters) == partition
            assert ul_of_table([row.items for row in result.published.values()]) == result.losses[-1] <= delta


def test_tum_bound_generalizes_even_without_a_merge() -> None:
    result = tum_bound(FIRST, SCHEMA, 0.6, SETS)
    assert result.published is not None
    assert verify_kkm(result.published.values(), 2, 2) == set()
    assert [row.items for row in result.published.values()][:2] == [sets("E F BD")] * 2


# --- baselines, LRA --------------------------------------------------------------------------------------------------------


def test_baselines() -> None:
    by_relation = rfirst(FIRST, SETS)
    assert [row.items for row in by_relation.values()][4:] == [sets("AEF")] * 2
    assert {row.cells for row in by_relation.values()} == {found.box for found in FIRST}
    by_items = tfirst(FIGURE, SCHEMA, 2, SETS)
    assert by_items == publish(clusters_of(B), FIGURE_2["b"][1])


def test_gray_order() -> None:
    order = ["", "c", "bc", "b", "ab", "abc", "ac", "a"]
    assert sorted(order, key=lambda items: gray_rank(items, "abc")) == order
    records = [Record(rid, (0,), frozenset(items)) for rid, items in enumerate(["a", "b", "", "ab", "b"])]
    (only,) = lra_blocks(records, 2)
    assert [record.rid for record in only] == [2, 1, 4, 3, 0]


def test_lra_blocks() -> None:
    def sizes(texts: Sequence[str], k: int, block: int) -> list[int]:
        return [
            len(rows) for rows in lra_blocks([Record(at, (), frozenset(t)) for at, t in enumerate(texts)], k, block)
        ]

    assert sizes(["a"] * 10, 3, 4) == [4, 6]
    assert sizes(["a"] * 11, 3, 4) == [4, 4, 3]
    assert sizes(["", "", "", "a", "b", "a", "b", "a"], 2, 4) == [8]  # three empty ones and one that is not
    assert sizes(["", "", "", "", "a", "b", "a", "b"], 2, 4) == [4, 4]
    assert sizes(["", "", "", "", "", "", "", "a", "b"], 2, 4) == [4, 5]
    assert sizes(["", "", "", "", "", "", "", "a"], 2, 4) == [8]  # the last one joins the one before
    assert sizes([*[""] * 7, *"ababa"], 2, 4) == [4, 8]  # any other the next
    assert sizes([""] * 5, 2, 4) == [5]
    assert sizes(["", "", "", "", "", "", "a", "b"], 2, 4) == [4, 4]
    assert sizes(["a"], 3, 4) == [1]
    assert sizes(["a"] * 1001, 2, 1000) == [1001]


def test_lra_is_right_in_every_block() -> None:
    random = Random(7)
    records = [Record(at, (0,), frozenset(random.sample("abcdefgh", random.randint(0, 3)))) for at in range(40)]
    schema = Schema([Number(0, 1)])
    for inner in (by_sets(3, 2), by_levels(Category([(i, i < "e", "*") for i in "abcdefgh"]), 3, 2)):
        rows = publish([make_cluster(records, schema)], by_blocks(inner, 3, 10)).values()
        assert verify_kkm(rows, 3, 2) == set()
        assert verify_original(records, list(rows), schema, 3, 2) == set()
        split = tfirst(records, schema, 3, inner, 10)
        assert verify_kkm(split.values(), 3, 2) == set()


# --- AA, VPA ---------------------------------------------------------------------------------------------------------------

AB = Category([("a1", "A", "*"), ("a2", "A", "*"), ("b1", "B", "*"), ("b2", "B", "*")])
AA_ROWS = [
    Record(rid, (), frozenset(items.split())) for rid, items in enumerate(["a1 b1 b2", "a2 b1", "a2 b1 b2", "a1 a2 b2"])
]


def test_aa() -> None:
    assert set(aa(AA_ROWS, AB, 2, 2).values()) == {("a1", "a2"), ("b1",), ("b2",)}
    assert set(aa(AA_ROWS, AB, 2, 1).values()) == {("a1",), ("a2",), ("b1",), ("b2",)}
    assert set(vpa(AA_ROWS, AB, 2, 2).values()) == {("a1", "a2"), ("b1",), ("b2",)}
    assert set(aa(AA_ROWS, AB, 5, 1, ceiling=("a1", "a2")).values()) == {("a1",), ("a2",), ("b1",), ("b2",)}
    with pytest.raises(Impossible):
        aa(AA_ROWS, AB, 5, 1)


def test_aa_publishes_all_leaves_below() -> None:
    records = [Record(0, (), frozenset(["a1"])), Record(1, (), frozenset(["b1"]))]
    assert set(aa(records, AB, 2, 1).values()) == {("a1", "a2", "b1", "b2")}
    assert ul_of_table(by_levels(AB, 2, 1)(records)) == 1
    same = [Record(0, (), frozenset(["a1"])), Record(1, (), frozenset(["a2"]))]
    assert by_levels(AB, 2, 1)(same) == [frozenset([("a1", "a2")])] * 2


def test_aa_starts_from_a_cut_and_never_goes_down() -> None:
    start: dict[str, GenItem] = {"b1": ("b1", "b2"), "b2": ("b1", "b2")}
    found = aa(AA_ROWS, AB, 2, 2, start=start)
    assert found["b1"] == found["b2"] == ("b1", "b2")
    assert verify_kkm(mapped(AA_ROWS, found), 2, 2) == set()


def test_aa_ties() -> None:
    """Raising one member is as dear as raising the other: the smaller ancestor."""
    records = [
        Record(rid, (), frozenset(items.split())) for rid, items in enumerate(["a1 b1", "a1 b2", "a2 b1", "a2 b2"])
    ]
    assert set(aa(records, AB, 2, 2).values()) == {("a1", "a2"), ("b1",), ("b2",)}


def test_aa_raises_all_leaves() -> None:
    """a1 → * moves b1 too; {*, b1} would have support 3 and cost less."""
    records = [Record(rid, (), frozenset(items.split())) for rid, items in enumerate(["a1 b1", "b1 b2", "b1 b2", "a1"])]
    assert set(aa(records, AB, 2, 2).values()) == {("a1", "a2", "b1", "b2")}


def test_aa_raises_fewer_members() -> None:
    """{C, b1} and {A, B} cost 18 each; from the second the cut {A, B, c1} would be the end."""
    tree = Category(
        [
            *((i, "A", "C", "*") for i in ("a1", "a2")),
            ("c1", "c1", "C", "*"),
            *((i, "B", "B", "*") for i in ("b1", "b2")),
        ]
    )
    texts = ["a1 b1", "a2 b2", "c1 b1", "c1 b1", "a1", "a2", "b2"]
    records = [Record(rid, (), frozenset(items.split())) for rid, items in enumerate(texts)]
    assert set(aa(records, tree, 2, 2).values()) == {("a1", "a2", "c1"), ("b1", "b2")}


def test_ceiling() -> None:
    records = [Record(rid, (), frozenset([item])) for rid, item in enumerate(["a1", "b1", "b1"])]
    assert aa(records, AB, 2, 1, ceiling=("a1", "a2"))["a1"] == ("a1",)
    assert aa(records, AB, 2, 1)["a1"] == ("a1", "a2", "b1", "b2")
    # s is in all rows of X and in half of those of Y: X is left, Y is not
    tree = Category(
        [*((i, "X", "P", "*") for i in ("x1", "x2")), *((i, "Y", "P", "*") for i in ("y1", "y2")), ("b", "b", "b", "*")]
    )
    rows = [Record(rid, (), frozenset([item]), frozenset("s")) for rid, item in enumerate(["x1", "x2", "y1"] * 2)]
    rows += [Record(rid, (), frozenset(["y2"])) for rid in (6, 7)]
    cut = aa(rows, tree, 2, 1, l=2, ceiling=("x1", "x2", "y1", "y2"))
    assert set(cut.values()) == {("x1",), ("x2",), ("y1", "y2"), ("b",)}


def test_vpa_leaves_to_the_end_what_a_part_cannot_do() -> None:
    texts = ["a1 b1", "a1 b1", "a1 b1", "b1", "b2"]
    records = [Record(rid, (), frozenset(items.split())) for rid, items in enumerate(texts)]
    assert vpa(records, AB, 2, 2) == aa(records, AB, 2, 2)
    assert set(vpa(records, AB, 2, 2).values()) == {("a1",), ("a2",), ("b1", "b2")}
    across = [Record(rid, (), frozenset(items.split())) for rid, items in enumerate(["a1", "b1", "b1", "b1"])]
    assert set(vpa(across, AB, 2, 1).values()) == {("a1", "a2", "b1", "b2")}


@pytest.mark.parametrize("method", ["apriori", "vertical"])
@pytest.mark.parametrize("l", [None, 2])
def test_levels_always_have_the_guarantee(method: str, l: int | None) -> None:  # noqa: E741
    tree = Category(
        [("a", "ab", "abc", "*"), ("b", "ab", "abc", "*"), ("c", "c", "abc", "*"), *((i, "D", "D", "*") for i in "de")]
    )
    random, tried = Random(5), 0
    while tried < 12:
        rows = [
            Record(
                rid,
                (),
                frozenset(i for i in "abcde" if random.random() < 0.4),
                frozenset("s" * (random.random() < 0.3)),
            )
            for rid in range(12)
        ]
        if 0 < non_empty(rows) < 3 or (l is not None and not eligible(rows, l)):
            continue
        tried += 1
        cut = (aa if method == "apriori" else vpa)(rows, tree, 3, 2, l)
        found = mapped(rows, cut)
        assert verify_kkm(found, 3, 2) == set()
        assert l is None or verify_klm(found, 3, l, 2) == set()
        assert all(frozenset(node) in tree.labels and leaf in node for leaf, node in cut.items())
        assert all(set(one).isdisjoint(other) for one, other in combinations(set(cut.values()), 2))


# --- R-10 and R-13 ---------------------------------------------------------------------------------------------------------


def test_relational_blocks() -> None:
    records = on_line([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert [len(block) for block in relational_blocks(records, LINE, 2, 5)] == [5, 5]
    assert [len(block) for block in relational_blocks(records, LINE, 2, 4)] == [5, 5]  # both sides ≥ 2k
    assert [len(block) for block in relational_blocks(records, LINE, 1, 4)] == [2, 3, 2, 3]
    heavy = on_line([0, 1, 5, 5, 5, 5, 5, 5, 8, 9])  # all equal to the median on one side
    assert [[record.rid for record in block] for block in relational_blocks(heavy, LINE, 1, 9)] == [
        [0, 1],
        [2, 3, 4, 5, 6, 7, 8, 9],
    ]
    assert [len(block) for block in relational_blocks(heavy, LINE, 2, 9)] == [10]
    right = on_line([0, 4, 5, 5, 5, 5, 5, 8, 8, 9])
    assert [len(block) for block in relational_blocks(right, LINE, 1, 9)] == [7, 3]


def test_relational_blocks_on_categories() -> None:
    # the cut in the middle would be inside Europe: only between its children or, here, between the areas
    europe = ["eu0"] * 2 + ["Germany"] * 2 + ["Spain"] * 2
    records = [Record(at, (place,), frozenset()) for at, place in enumerate([*europe, "Algeria", "Nigeria"])]
    schema = Schema([ORIGIN])
    blocks = relational_blocks(records, schema, 1, 6)
    assert [{record.values[0] for record in block} for block in blocks] == [
        {"eu0", "Germany", "Spain"},
        {"Algeria", "Nigeria"},
    ]
    inside = relational_blocks(records[:6], schema, 1, 5)
    assert [{record.values[0] for record in block} for block in inside] == [{"eu0"}, {"Germany", "Spain"}]
    assert len(relational_blocks(records, schema, 2, 6)) == 1
    both = [Record(at, (at, place), frozenset()) for at, place in enumerate(["eu0", "Algeria"] * 4)]
    split = relational_blocks(both, Schema([Number(0, 7), ORIGIN]), 1, 4)
    assert [{record.values[1] for record in block} for block in split] == [{"eu0"}, {"Algeria"}]  # the larger drop
    wide = relational_blocks(both, Schema([Number(0, 7), ORIGIN], [Fraction(9, 10), Fraction(1, 10)]), 1, 4)
    assert [[record.rid for record in block] for block in wide] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_shares_of_delta() -> None:
    blocks = [FIRST[:2], FIRST[2:]]
    delta = Fraction(13, 20)
    shares = shares_of_delta(blocks, SCHEMA, delta)
    assert sum(n * share for n, share in zip((4, 2), shares, strict=True)) == 6 * delta
    assert all(share >= ncp_of_table(block, SCHEMA) for block, share in zip(blocks, shares, strict=True))
    assert shares_of_delta(blocks, SCHEMA, ncp_of_table(FIRST, SCHEMA)) == [
        ncp_of_table(block, SCHEMA) for block in blocks
    ]
    assert shares_of_delta(blocks, SCHEMA, Fraction(1)) == [1, 1]
    assert shares_of_delta([clusters_of(B)], SCHEMA, Fraction(1)) == [1]
    assert [four(share) for share in shares] == [0.6, 0.75]


def test_merging_in_blocks_spends_what_is_left() -> None:
    found = rmerge_in_blocks([FIRST[:2], FIRST[2:]], SCHEMA, 0.65)
    assert partition_of(found) == C  # not inside: 0.6863 > 0.6; afterwards
    assert partition_of(rmerge_in_blocks([FIRST[:2], FIRST[2:]], SCHEMA, 0.64)) == C
    assert partition_of(rmerge_in_blocks([FIRST[:2], FIRST[2:]], SCHEMA, 0.6)) == A


# --- verification ----------------------------------------------------------------------------------------------------------


def test_planted_case_of_diversity() -> None:
    """A frequent signature is no excuse: {x} and nothing else."""
    x, y = ("x",), ("y",)
    rows = [Published((), frozenset([x]), frozenset("s" if at < 3 else "")) for at in range(4)]
    rows += [Published((), frozenset([y])) for _ in range(4)]
    assert verify_klm(rows, 2, 2, 1) == {((), (x,))}
    assert verify_kkm(rows, 2, 1) == set()
    assert verify_klm(rows, 2, Fraction(4, 3), 1) == set()
    assert verify_klm(rows, 2, 3, 1) == {((), ()), ((), (x,))}
    apart = [row._replace(cells=(at % 2,)) for at, row in enumerate(rows)]  # two classes: s in 2 of 2 and in 1 of 2
    assert verify_klm(apart, 2, 2, 1) == {((0,), (x,))}


def test_faults_are_found() -> None:
    rows = publish(clusters_of(C), SETS)
    good = list(rows.values())
    swapped = [good[0]._replace(items=frozenset(sets("A E F"))), *good[1:]]
    assert {itemset for _, itemset in verify_kkm(swapped, 2, 1)} == {(("A",),)}
    assert (2, ("C",)) not in verify_original(FIGURE, swapped, SCHEMA, 2, 2)
    assert {rid for rid, _ in verify_original(FIGURE, swapped, SCHEMA, 4, 1)} >= {0, 1, 2, 3}
    moved = [good[0]._replace(cells=SCHEMA.box(FIGURE[0])), *good[1:]]
    assert (SCHEMA.box(FIGURE[0]), ()) in verify_kkm(moved, 2, 2)
    narrow = [row._replace(cells=((20, 39), *row.cells[1:])) if row.cells[0] == (19, 39) else row for row in good]
    assert verify_kkm(narrow, 2, 2) == set()
    assert {rid for rid, _ in verify_original(FIGURE, narrow, SCHEMA, 2, 2)} == {0}
    lost = [*good[:4], *(row._replace(items=frozenset([("E", "F")])) for row in good[4:])]
    assert verify_kkm(lost, 2, 2) == set()
    assert verify_original(FIGURE, lost, SCHEMA, 2, 2) == {(5, ("A",)), (5, ("A", "F"))}


# --- ARE -------------------------------------------------------------------------------------------------------------------


def test_item_probability() -> None:
    assert item_probability(sets("E F BCD"), "E") == 1
    assert item_probability(sets("E F BCD"), "B") == Fraction(4, 7)
    assert item_probability(sets("E F BCD"), "BC") == Fraction(2, 7)
    assert item_probability(sets("EF BCD"), "BE") == Fraction(4, 7) * Fraction(2, 3)
    assert item_probability(sets("E F BCD"), "BA") == 0
    assert item_probability(sets("EF BCD"), "BCE", "uniform") == Fraction(1, 18)
    assert item_probability(sets("EF"), "") == item_probability([], "", "uniform") == 1


def test_are_of_figure_2c() -> None:
    rows = list(publish(clusters_of(C), FIGURE_2["c"][1]).values())
    columns = {0: set(AGES)}
    german, young, pair = Query({1: "Germany"}, frozenset()), Query({0: 28}, frozenset("E")), Query({}, frozenset("BF"))
    assert [actual(FIGURE, query) for query in (german, young, pair)] == [1, 1, 1]
    assert estimate(rows, german, SCHEMA, columns) == 1  # 4 rows of Europe, 4 leaves
    assert estimate(rows, young, SCHEMA, columns) == Fraction(3, 4)  # 3 rows with E, 4 ages in [19, 39]
    assert estimate(rows, pair, SCHEMA, columns) == 3 * Fraction(4, 7)  # records 0, 1 and 3
    assert estimate(rows, pair, SCHEMA, columns, "uniform") == 1
    nobody = Query({1: "Germany"}, frozenset("A"))
    queries = [german, young, pair, nobody]
    assert are(FIGURE, rows, queries, SCHEMA) == (Fraction(0) + Fraction(1, 4) + Fraction(5, 7)) / 3
    assert are(FIGURE, rows, queries, SCHEMA, "uniform") == Fraction(1, 12)
    original = [Published(SCHEMA.box(record), frozenset((item,) for item in record.items)) for record in FIGURE]
    assert are(FIGURE, original, queries, SCHEMA) == are(FIGURE, original, queries, SCHEMA, "uniform") == 0


# --- the whole way -----------------------------------------------------------------------------------------------------------


def test_several_transaction_columns() -> None:
    assert combined({"visits": ["x", "y"], "drugs": ["x"]}) == {"visits.x", "visits.y", "drugs.x"}


@pytest.mark.parametrize("merge", ["relational", "items", "both"])
def test_random_tables(merge: str) -> None:
    """NCP ≤ δ, (k, k^m) and (k, l^m) from the draws to the release; one cluster for δ = 1."""
    random = Random(11)
    schema = Schema([Number(0, 40), ORIGIN])
    records = [
        Record(
            rid,
            (random.randrange(41), random.choice(ORIGIN.leaves)),
            frozenset(item for item in "abcdef" if random.random() < 0.3),
            frozenset("s" * (random.random() < 0.25)),
        )
        for rid in range(30)
    ]
    blocks = relational_blocks(records, schema, 3, 16)
    assert len(blocks) > 1 and sorted(record.rid for block in blocks for record in block) == list(range(30))
    initial = initial_clusters(blocks, schema, 3, [random.randrange] * len(blocks), l=2)
    assert all(eligible(found.records, 2) and len(found) >= 3 for found in initial)
    transform = by_sets(3, 2, l=2)
    start = float_ncp_of_table(initial, schema)
    for delta in (start, (1 + start) / 2):
        result = rum_bound(initial, schema, delta, transform, merge)
        assert result.published is not None
        assert float_ncp_of_table(result.clusters, schema) <= delta
        rows = list(result.published.values())
        assert verify_klm(rows, 3, 2, 2) == set()
        assert verify_original(records, rows, schema, 3, 2) == set()
    assert len(rmerge(initial, schema, 1, merge)) == 1
    assert tum_bound(initial, schema, 0, transform, merge).infeasible == "UL"


def test_ticks() -> None:
    assert ticks(Fraction(1, 3)) == ticks(Fraction(1, 3) + Fraction(1, 10**14)) == 333333333333
    assert ticks(Fraction(1, 3)) != ticks(Fraction(1, 3) + Fraction(1, 10**12))
