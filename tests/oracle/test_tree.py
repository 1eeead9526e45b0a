"""The oracle of the family tree against the specification: the golden example, the counterexamples, the decisions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from tests.oracle.tree_example import (
    BATCHES,
    BEST,
    DGH,
    FIGURE_4,
    FIGURE_4_PUBLISHED,
    FIGURE_4_SD,
    LABELS_IGNORED,
    LETTERS,
    NEGATED,
    NODE_TYPES,
    NOT_MONOTONE,
    RECORDS,
    SAME_PATH,
    STRUCTURE_AWARE,
    TWO_PASSES,
    TYPE_ROOTS,
    random_trees,
)
from tests.oracle.tree_oracle import (
    NOT,
    STAR,
    Cut,
    Dgh,
    Evaluation,
    Infeasible,
    Knowledge,
    Relation,
    Search,
    Task,
    Tree,
    acs,
    beam,
    closure,
    dis,
    disassociate,
    dml2,
    dtree,
    evaluate,
    fix_structure,
    frequent_by_level,
    frequent_subtrees,
    gcs,
    id_lists,
    is_absent,
    is_active,
    items,
    knowledge,
    leaf_paths,
    matches,
    ml2,
    ml2_of,
    ocs,
    ocs_exhaustive,
    project,
    project_level,
    relations,
    rpd,
    rpd_a,
    rpd_of_record,
    structure_aware,
    subtrees,
    sup,
    supports,
    synopsis,
    tree,
    twelve_digits,
    value_violations,
    verify_diversity,
    verify_kmn,
    verify_original,
    with_negations,
)

PAPER = Task(DGH, RECORDS, k=3, m=2, n=1, close_unseen=False)
LEAVES: Cut = tuple(sorted(DGH.leaves(STAR)))
LETTER_LEAVES: Cut = tuple(sorted(LETTERS.leaves(STAR)))


def projected(cut: Cut, records: list[Tree] = RECORDS, dgh: Dgh = DGH) -> list[Tree]:
    return [project(one, cut, dgh) for one in records]


def pairs(text: str) -> list[Relation]:
    """`a⇝b, c⇝d`."""
    found = [tuple(pair.strip().split("⇝")) for pair in text.split(",")]
    return [(a, b) for a, b in found]


# --- §12: hierarchy and cuts -----------------------------------------------------------------------------------------


def test_the_hierarchy_of_the_example() -> None:
    assert DGH.height == 3 and len(LEAVES) == 12
    assert sorted(map(DGH.level.__getitem__, DGH.below(STAR))) == [0] * 12 + [1] * 6 + [2] * 3 + [3]
    assert (DGH.parent["Flu"], DGH.parent["Lung disease"], DGH.parent["Disease"]) == ("Lung disease", "Disease", STAR)
    assert DGH.type_of["Flu"] == DGH.type_of["Disease"] == "Disease"
    assert [DGH.at_level("Flu", level) for level in range(4)] == ["Flu", "Lung disease", "Disease", STAR]
    assert DGH.at_level("Medicine", 0) == "Medicine"  # above the level: it stays


def test_closed_values_generate_each_of_the_126_cuts_once() -> None:
    listed = list(DGH.closed_enumeration())
    assert len(listed) == DGH.number_of_cuts() == 126
    assert sorted(listed) == sorted(DGH.cuts()) and len(set(listed)) == 126
    assert [DGH.number_of_cuts(name) for name in NODE_TYPES] == [5, 5, 5]


def test_the_children_of_c1_have_four_three_and_two_specializations() -> None:
    closed: set[str] = set()
    numbers = []
    for value, kid in DGH.specializations(TYPE_ROOTS):
        numbers.append(len(DGH.specializations(kid, closed)))
        closed.add(value)
    assert numbers == [4, 3, 2]


def test_a_cut_covers_every_leaf_once() -> None:
    for cut in DGH.cuts():
        assert set(DGH.image(cut).values()) == set(cut)
    with pytest.raises(AssertionError, match="twice"):
        DGH.image((*TYPE_ROOTS, "Flu"))
    with pytest.raises(AssertionError, match="not covered"):
        DGH.image(TYPE_ROOTS[1:])


# --- §12: attack, synopsis, FixStructure -----------------------------------------------------------------------------


def test_the_attack_matches_only_r3() -> None:
    attack = Knowledge(("Antibiotics", "Flu", "H1", "H2"), (("H1", "Flu"), ("H2", "Antibiotics")))
    assert [matches(one, attack) for one in RECORDS] == [False, False, True, False]
    assert sup(RECORDS, attack.labels) == 3  # the labels alone


def test_synopsis_nodes() -> None:
    assert synopsis(RECORDS)["H2",] == {0, 1, 2} == id_lists(RECORDS)["H2"]
    assert synopsis(projected(FIGURE_4))["H1", "Lung disease"] == {1, 2, 3}


@pytest.mark.parametrize("mode", ["sequential", "batch"])
def test_fix_structure_of_figure_4(mode: str) -> None:
    recoded = projected(FIGURE_4)
    assert verify_kmn(recoded, 3, 2, 1) == {
        Knowledge(("Gastritis", "H1"), (("H1", "Gastritis"),)): 1,
        Knowledge(("Gastritis", "H2"), (("H2", "Gastritis"),)): 2,
    }
    published, sd = fix_structure(recoded, 3, 2, 1, mode=mode)
    assert sd == FIGURE_4_SD and published == FIGURE_4_PUBLISHED
    assert verify_kmn(published, 3, 2, 1) == {}
    assert verify_original(RECORDS, published, FIGURE_4, sd, 3, 2, 1, DGH) == []


def test_costs_of_figure_4() -> None:
    exact = [rpd_of_record(one, DGH, "global") for one in FIGURE_4_PUBLISHED]
    assert exact == [Fraction(235, 7776), Fraction(59, 2592), Fraction(59, 2592), Fraction(1, 2592)]
    assert [round(float(rpd_of_record(one, DGH)), 6) for one in FIGURE_4_PUBLISHED[:2]] == [0.107639, 0.083333]
    assert round(float(rpd(FIGURE_4_PUBLISHED, DGH, "global")), 6) == 0.019033
    assert round(float(rpd(FIGURE_4_PUBLISHED, DGH)), 6) == 0.071181
    assert round(float(rpd_a(FIGURE_4_PUBLISHED, DGH, "global")), 8) == 0.00726166
    assert round(float(rpd_a(FIGURE_4_PUBLISHED, DGH)), 8) == 0.03495370
    nodes = frozenset(synopsis(FIGURE_4_PUBLISHED))
    assert (len(nodes), len(leaf_paths(nodes))) == (9, 5)


def test_costs_of_the_most_general_cuts() -> None:
    for level_count, of_roots in {"global": 0.02469136, "class": 0.66666667}.items():
        assert rpd_a(projected((STAR,)), DGH, level_count) == len(RECORDS)
        assert round(float(rpd_a(projected(TYPE_ROOTS), DGH, level_count)), 8) == of_roots
    assert projected((STAR,)) == [frozenset({(STAR,)})] * 4  # T-3


# --- §12: search -----------------------------------------------------------------------------------------------------


def counters(search: Search) -> tuple[int, int, int]:
    assert len({one.cut for one in search.seen}) == search.evaluated  # no cut twice
    assert search.found.cut == BEST and search.found.sd == () and not search.stopped
    return search.evaluated, search.passed, search.pops


@pytest.mark.parametrize("level_count", ["global", "class"])
@pytest.mark.parametrize("mode", ["sequential", "batch"])
def test_searches_with_the_rules_of_the_paper(level_count: str, mode: str) -> None:
    task = replace(PAPER, level_count=level_count, mode=mode)
    assert counters(acs(task))[:2] == (79, 76)
    assert counters(acs(task, close_failed=True))[:2] == (77, 76)
    assert counters(ocs_exhaustive(task))[0] == 57
    assert [counters(gcs(task, g))[::2] for g in (1, 2, 3)] == [(28, 10), (68, 52), (76, 71)]
    assert [counters(ocs(task, g))[::2] for g in (1, 2, 3)] == [(28, 9), (68, 39), (76, 51)]


def test_searches_that_close_unseen_values() -> None:
    task = replace(PAPER, close_unseen=True)
    assert task.closed == {"Maternity", "Rea", "Gaia", "Diarrhea", "Surgery", "Neurological", "Orthopedic"}
    assert counters(acs(task))[:2] == (31, 28)
    assert counters(ocs_exhaustive(task))[0] == 25
    assert [counters(gcs(task, g))[0] for g in (1, 2, 3)] == [18, 28, 29]


def test_acs_in_the_order_of_the_hierarchy_evaluates_77_cuts() -> None:
    written = Dgh({name: NODE_TYPES[name] for name in ("Disease", "Treatment", "Hospital")}).below(STAR)
    assert acs(PAPER, order=written.index).evaluated == 77


def test_the_best_cut_is_the_most_general_of_four() -> None:
    search = acs(replace(PAPER, level_count="global"))
    assert round(float(search.found.cost), 8) == 0.00057870
    tied = [one.cut for one in search.seen if one.passed and one.rank[0] == search.found.rank[0]]
    free = [("Maternity",), ("Gaia", "Rea")], [("Surgery",), ("Neurological", "Orthopedic")]
    others = set(BEST) - {"Maternity", "Surgery"}
    assert sorted(tied) == sorted(tuple(sorted({*others, *a, *b})) for a in free[0] for b in free[1])
    assert acs(PAPER).found.cost == Fraction(1, 64)
    for level_count in ("global", "class"):
        assert acs(replace(PAPER, cost="rpd", level_count=level_count)).found.cut == BEST


def test_the_best_of_all_126_cuts_without_any_search() -> None:
    every = [evaluate(PAPER, cut) for cut in DGH.cuts()]
    assert min((one for one in every if one.passed), key=lambda one: one.rank).cut == BEST
    assert sum(one.passed for one in every) == 76  # monotone: no passing cut is out of reach


# --- §3: projection, monotony ----------------------------------------------------------------------------------------


def test_the_structural_part_is_not_monotone_for_two_relations() -> None:
    assert verify_kmn(NOT_MONOTONE, 2, 3, 2) == {}
    coarser = projected(LETTERS.specialize(("d", "h", "t", "u"), "h"), NOT_MONOTONE, LETTERS)
    assert verify_kmn(coarser, 2, 3, 2) == {}  # d1 and d2 are one now
    cut = tuple(sorted({*LETTER_LEAVES, "hs"} - {"h1", "h2"}))
    known = Knowledge(("d1", "d2", "hs"), (("hs", "d1"), ("hs", "d2")))
    assert verify_kmn(projected(cut, NOT_MONOTONE, LETTERS), 2, 3, 2) == {known: 1}
    assert verify_kmn(projected(cut, NOT_MONOTONE, LETTERS), 2, 3, 1) == {}


def test_projection_unites_equal_siblings_with_their_subtrees() -> None:
    two = tree("H1→Flu→Antibiotics, H1→Bronchitis→Painkillers")
    assert project(two, FIGURE_4, DGH) == tree("H1→Lung disease→Medicine")
    assert project(tree("H1→Flu, H2→Gastritis"), TYPE_ROOTS, DGH) == tree("Hospital→Disease")


# --- §4: disassociation ----------------------------------------------------------------------------------------------


def test_the_examples_of_dis() -> None:
    assert dis(tree("h1→d1→t1"), "h1", "d1") == tree("h1→t1, d1")
    assert dis(tree("h1→d1→t1, h1→t1, d1→t2"), "h1", "d1") == tree("h1→t1, d1→t2")
    assert dis(tree("x→a→y→b→z"), "a", "b") == tree("x→a→y→z, x→b")  # keeps the ancestors of a, loses what is between


def test_disassociations_do_not_commute() -> None:
    one = tree("a→b→c→d")
    assert disassociate([one], pairs("a⇝b, b⇝c")) == [tree("a→c→d, b")]
    assert disassociate([one], pairs("b⇝c, a⇝b")) == [tree("a→c, a→d, b")]


def test_dis_removes_relations_and_nothing_else() -> None:
    random = Random(4)
    for one in random_trees(random, LETTERS, 60, paths=4):
        for a, b in relations(one):
            changed = dis(one, a, b)
            assert items(changed) == items(one) and (a, b) not in relations(changed)
            assert relations(changed) < relations(one) and changed == closure(changed)
            assert changed == dis(closure(leaf_paths(one)), a, b)
            assert dis(changed, a, b) == changed


# --- §6: checks ------------------------------------------------------------------------------------------------------


def test_t2_all_sizes_are_checked() -> None:
    records = [tree("h1→d1"), tree("h2→d1→t1"), tree("h2→d1→t1")]
    violations = verify_kmn(records, 2, 3, 0)
    assert Knowledge(("h1",)) in violations and all(len(known.labels) < 3 for known in violations)
    assert value_violations(records, 2, 3) == {("h1",): 1, ("d1", "h1"): 1}


def test_t4_the_printed_check_ignores_labels() -> None:
    assert value_violations(LABELS_IGNORED, 3, 3) == {}
    unsafe, sd = fix_structure(LABELS_IGNORED, 3, 3, 1, printed_check=True)
    assert sd == pairs("h1⇝d1, d1⇝t1, h1⇝d2, h1⇝t1")
    assert verify_kmn(unsafe, 3, 3, 1)[Knowledge(("d1", "d2", "h2"), (("h2", "d1"),))] == 2
    safe, sd = fix_structure(LABELS_IGNORED, 3, 3, 1)
    assert verify_kmn(safe, 3, 3, 1) == {} and len(sd) == 7


def test_t5_one_pass_is_not_enough() -> None:
    once, first = fix_structure(TWO_PASSES, 3, 2, 1, passes=1)
    assert verify_kmn(once, 3, 2, 1) == {Knowledge(("d1", "t2"), (("d1", "t2"),)): 1}
    stable, sd = fix_structure(TWO_PASSES, 3, 2, 1)
    assert sd == [*first, ("d1", "t2")] == pairs("d1⇝t1, h1⇝d2, d2⇝t1, d2⇝t2, h1⇝t1, h1⇝t2, h2⇝t1, d1⇝t2")
    assert verify_kmn(stable, 3, 2, 1) == {}


def test_t6_batches() -> None:
    for mode in ("sequential", "batch"):
        published, sd = fix_structure(BATCHES, 2, 3, 1, mode=mode)
        assert sd == pairs("d1⇝t1, d1⇝u1") and sup(published, (), [("t1", "u1")]) == 2
        assert verify_kmn(published, 2, 3, 1) == {}
    at_once = sorted({known.relations[0] for known in verify_kmn(BATCHES, 2, 3, 1)})  # by |E| alone
    assert sup(disassociate(BATCHES, at_once), (), [("t1", "u1")]) == 0


def test_t6_batch_and_sequential_can_differ_for_one_relation() -> None:
    sequential = fix_structure(LABELS_IGNORED, 3, 3, 1)[1]
    published, batch = fix_structure(LABELS_IGNORED, 3, 3, 1, mode="batch")
    assert sequential == pairs("h1⇝d1, d1⇝t1, h1⇝d2, h1⇝t1, h2⇝d1, h2⇝d2, h2⇝t1")
    assert batch == pairs("d1⇝t1, h1⇝d1, h1⇝d2, h1⇝t1, d2⇝t1, h2⇝d1, h2⇝d2, h2⇝t1")
    assert verify_kmn(published, 3, 3, 1) == {}


@pytest.mark.parametrize("mode", ["sequential", "batch"])
def test_the_least_supported_relation_of_all_records_goes(mode: str) -> None:
    # both relations together hold once; h1⇝d1 is in four records, in two of them with t1; h1⇝t1 is in three
    records = [tree("h1→d1, h1→t1"), tree("h1→d1, t1"), *[tree("h1→t1, d1")] * 2, *[tree("h1→d1")] * 2]
    assert verify_kmn(records, 2, 3, 2) == {Knowledge(("d1", "h1", "t1"), (("h1", "d1"), ("h1", "t1"))): 1}
    published, sd = fix_structure(records, 2, 3, 2, mode=mode)
    assert sd == [("h1", "t1")] and verify_kmn(published, 2, 3, 2) == {}


@pytest.mark.parametrize("mode", ["sequential", "batch"])
def test_a_relation_that_went_with_another_is_not_disassociated_again(mode: str) -> None:
    records = [tree("a→b→c"), *[tree("a, b, c")] * 2]
    assert len(verify_kmn(records, 2, 2, 1)) == 3
    assert fix_structure(records, 2, 2, 1, mode=mode)[1] == pairs("a⇝b, a⇝c")  # b⇝c went with a⇝b


def test_sup_is_what_is_counted_per_record() -> None:
    records = random_trees(Random(7), LETTERS, 12)
    for known, support in supports(records, 3, 2).items():
        assert support == sup(records, known.labels, known.relations) > 0
    labels_alone = {known.labels: support for known, support in verify_kmn(records, 3, 3, 0).items()}
    assert labels_alone == value_violations(records, 3, 3) != {}


def test_keys_per_record() -> None:
    """§9: the numbers of knowledge keys of a record of one order and of the largest record."""
    item = "n→m{0}→f{1}→b{1}, n→m{0}→f{1}→q{1}"
    small = tree(", ".join(["n→m0→p0", *(item.format(0, number) for number in range(3))]))
    assert len(items(small)) == 12
    for (m, n), keys in {(3, 0): 298, (6, 0): 2509, (3, 2): 742, (6, 2): 39589}.items():
        assert sum(1 for _ in knowledge(small, m, n)) == keys
    two = [f"n→m{order}→p{order}, " + item.format(order, f"{order}{number}") for order in "01" for number in "012"]
    large = tree(", ".join(two))
    assert len(items(large)) == 23 and sum(1 for _ in knowledge(large, 3, 2)) == 3650


# --- §2: guarantees, attackers ---------------------------------------------------------------------------------------


def test_the_structure_aware_attacker() -> None:
    published, sd = fix_structure(STRUCTURE_AWARE, 2, 2, 1)
    assert sd == [("h1", "d1")] and verify_kmn(published, 2, 2, 1) == {}
    known = Knowledge(("d1", "h1"), (("h1", "d1"),))
    assert structure_aware(STRUCTURE_AWARE, published, LETTER_LEAVES, sd, 2, 1, LETTERS) == {known: 1}
    found = structure_aware(RECORDS, FIGURE_4_PUBLISHED, FIGURE_4, FIGURE_4_SD, 2, 1, DGH)
    assert set(found.values()) == {3} and len(found) == 2


def test_the_structure_aware_attacker_counts_original_knowledge() -> None:
    originals = [tree("h1→d1, h2"), tree("h2→d2, h1"), tree("h1, h2, d1"), tree("h1, h2, d2")]
    cut = tuple(sorted({*LETTER_LEAVES, "ds"} - {"d1", "d2"}))
    sd = [("h1", "ds"), ("h2", "ds")]
    published = disassociate(projected(cut, originals, LETTERS), sd)
    found = structure_aware(originals, published, cut, sd, 2, 1, LETTERS)
    assert found == {Knowledge(("d1", "h1"), (("h1", "d1"),)): 4, Knowledge(("d2", "h2"), (("h2", "d2"),)): 4}


def test_of_several_relations_in_sd_all_must_be_seen() -> None:
    originals = [tree("h1→d1, h1→t1"), tree("h1, d1, h2→t1")]
    sd = pairs("h1⇝d1, h1⇝t1")
    found = structure_aware(originals, disassociate(originals, sd), LETTER_LEAVES, sd, 3, 2, LETTERS)
    both = Knowledge(("d1", "h1", "t1"), tuple(sd))
    assert found[both] == 1  # the second shows d1 outside a hospital, but not t1
    assert found[Knowledge(both.labels, (("h1", "d1"),))] == 2


def test_a_chain_is_not_covered_by_its_pairs() -> None:
    known = Knowledge(("d1", "h1", "t1"), (("d1", "t1"), ("h1", "d1"), ("h1", "t1")))
    assert [matches(one, known) for one in SAME_PATH] == [True, True]
    assert [("h1", "d1", "t1") in one for one in SAME_PATH] == [True, False]


def test_the_verifier_of_originals_finds_what_is_planted() -> None:
    def wrong(published: list[Tree], sd: list[Relation] = FIGURE_4_SD, k: int = 3) -> list[str]:
        return verify_original(RECORDS, published, FIGURE_4, sd, k, 2, 1, DGH)

    assert wrong(FIGURE_4_PUBLISHED) == []
    assert "items of 3" in wrong([*FIGURE_4_PUBLISHED[:3], tree("H1→Lung disease")])
    invented = tree("Gastritis, H1→Lung disease→Medicine, H2→Medicine")
    assert "relations of 0" in wrong([invented, *FIGURE_4_PUBLISHED[1:]])
    assert "SD in 0" in wrong(projected(FIGURE_4))
    assert any(text.startswith("K of 0") for text in wrong(projected(FIGURE_4), []))
    assert any(text.startswith("K of 3") for text in wrong(FIGURE_4_PUBLISHED, k=5))


def test_every_evaluated_cut_of_random_records_has_the_guarantee() -> None:
    random = Random(20)
    for _ in range(4):
        records = random_trees(random, DGH, 14, paths=2)
        for mode in ("sequential", "batch"):
            task = Task(DGH, records, k=2, m=3, n=2, mode=mode)
            for one in gcs(task, 1).seen:
                if one.passed:
                    assert verify_kmn(one.published, 2, 3, 2) == {}
                    assert verify_original(records, one.published, one.cut, one.sd, 2, 3, 2, DGH) == []
                else:
                    assert any(not known.relations for known in verify_kmn(projected(one.cut, records), 2, 3, 2))


# --- §7: search ------------------------------------------------------------------------------------------------------


def test_a_failed_value_check_fails_for_all_specializations() -> None:
    records = random_trees(Random(3), DGH, 12)
    passes = {cut: not value_violations(projected(cut, records), 3, 2) for cut in DGH.cuts()}
    assert 1 < sum(passes.values()) < 126
    for cut, fine in passes.items():
        assert not any(passes[kid] for _, kid in DGH.specializations(cut) if not fine)


def test_generalization_only_is_exact_for_one_relation() -> None:
    random = Random(5)
    for _ in range(3):
        task = Task(DGH, random_trees(random, DGH, 12), k=2, m=2, n=1, close_unseen=False)
        every = [evaluate(task, cut) for cut in DGH.cuts()]
        best = min((one for one in every if one.passed and not one.sd), key=lambda one: one.rank)
        assert ocs_exhaustive(task).found == best == ocs(task, 100).found
        assert acs(task).found == min((one for one in every if one.passed), key=lambda one: one.rank)
        assert gcs(task, 100).found == beam(task, 1000).found == acs(task).found


def test_without_relations_gcs_and_ocs_coincide() -> None:
    task = replace(PAPER, n=0)
    for g in (1, 2):
        assert gcs(task, g).seen == ocs(task, g).seen


def test_the_queue_grows_like_fibonacci_numbers_when_nothing_fails() -> None:
    def pops(types: int) -> int:
        dgh = Dgh({f"c{number}": [f"v{number}"] for number in range(types)})
        one = closure((f"v{number}",) for number in range(types))
        return gcs(Task(dgh, [one, one], k=2, m=1, n=0), 2).pops

    assert [pops(types) - 1 for types in range(1, 8)] == [2, 4, 7, 12, 20, 33, 54]


def test_beam() -> None:
    assert counters(beam(PAPER, 1)) == (28, 27, 10)  # width 1 is g = 1
    assert counters(beam(PAPER, 2)) == (42, 41, 17)
    inner = sum(bool(DGH.children[node]) for node in DGH.below(STAR))  # specializations to the finest cut
    assert all(beam(PAPER, width).pops <= width * inner for width in (1, 2, 3))
    assert beam(PAPER, 1000).passed == 76


def test_limits_stop_with_the_best_so_far() -> None:
    for limited in (gcs(PAPER, 2, max_cuts=9), beam(PAPER, 2, max_cuts=9), acs(PAPER, max_cuts=9)):
        assert limited.evaluated == 9 and limited.stopped
        assert limited.found == min((one for one in limited.seen if one.passed), key=lambda one: one.rank)
    assert not gcs(PAPER, 2, max_cuts=68).stopped and gcs(PAPER, 2, max_cuts=67).stopped
    short = gcs(PAPER, 2, queue_limit=1)
    assert short.evaluated < gcs(PAPER, 2).evaluated and not short.stopped
    assert [one.cut for one in short.seen] == [one.cut for one in gcs(PAPER, 1, queue_limit=1).seen]
    assert gcs(PAPER, 2, queue_limit=1000).evaluated == 68


def test_costs_that_agree_to_twelve_digits_are_equal() -> None:
    assert twelve_digits(Fraction(2, 3)) == 0.666666666667
    almost = Fraction(2, 3) - Fraction(1, 10**14)
    general, special = Evaluation((STAR,), True, cost=Fraction(2, 3)), Evaluation(("b", "c"), True, cost=almost)
    assert general.rank < special.rank < Evaluation(("b", "d"), True, cost=Fraction(2, 3)).rank
    assert special.rank < Evaluation(("A", "B", "C"), True, cost=Fraction(2, 3)).rank  # the number of nodes comes first
    assert Evaluation(("a", "b"), True, cost=Fraction(2, 3) - Fraction(1, 10**9)).rank < general.rank


def test_parameters() -> None:
    for k, m, n in ((1, 2, 1), (3, 0, 0), (3, 2, -1)):
        with pytest.raises(ValueError, match="k ≥ 2"):
            replace(PAPER, k=k, m=m, n=n)
    assert replace(PAPER, n=9).n == 1 and replace(PAPER, m=1).n == 0
    with pytest.raises(ValueError, match="g ≥ 1"):
        gcs(PAPER, 0)
    with pytest.raises(Infeasible, match="fewer"):
        replace(PAPER, k=5)
    with pytest.raises(Infeasible, match="empty"):
        replace(PAPER, records=[*RECORDS, frozenset()])


# --- §8: l-diversity, negations --------------------------------------------------------------------------------------

SECRET = Dgh({"A": ["a1", "a2"], "B": ["b1", "b2"], "S": ["s1", "s2"]}, sensitive=["S"])


def test_sensitive_node_types_are_in_no_cut_and_no_knowledge() -> None:
    assert SECRET.number_of_cuts() == len(SECRET.cuts()) == 5 and SECRET.specialize((STAR,), STAR) == ("A", "B")
    one = tree("a1→b1→s1")
    assert project(one, ("A", "B"), SECRET) == tree("A→B→s1") and project(one, (STAR,), SECRET) == tree("*→s1")
    assert all("s1" not in known.labels for known in knowledge(one, 3, 2, SECRET.secret))
    assert verify_kmn([one, tree("a1→b1")], 2, 3, 3, SECRET.secret) == {}
    assert dis(one, "a1", "b1") == tree("a1→s1, b1")


def test_the_share_of_a_sensitive_value() -> None:
    records = [tree("a1→s1"), tree("a1→s2"), tree("a2"), tree("a2→s1, a2→s2")]
    assert verify_diversity(records, 2, 1, 0, SECRET.secret) == {}
    assert verify_diversity([*records, tree("a1→s1")], 2, 1, 0, SECRET.secret) == {
        (Knowledge(()), "s1"): (3, 5),
        (Knowledge(("a1",)), "s1"): (2, 3),
    }
    only_empty = [tree("s1"), tree("s1"), tree("a1")]
    assert verify_diversity(only_empty, 2, 2, 1, SECRET.secret) == {(Knowledge(()), "s1"): (2, 3)}


def test_a_sensitive_value_in_too_many_records_is_infeasible() -> None:
    records = [tree("a1→s1"), tree("a1→s1"), tree("a2"), tree("a2")]
    assert Task(SECRET, records, k=2, m=1, n=0, l=2).l == 2
    with pytest.raises(Infeasible, match="sensitive"):
        Task(SECRET, records, k=2, m=1, n=0, l=3)


def test_diversity_is_not_monotone_so_a_cut_that_fails_only_it_is_expanded() -> None:
    records = [tree("a1, a2"), tree("a1→s1"), tree("a2→s1"), tree("b1"), tree("b1")]
    task = Task(SECRET, records, k=2, m=1, n=0, l=2)
    roots = evaluate(task, ("A", "B"))
    assert roots.passed and not roots.diverse  # s1 is in two of the three records with A
    for search in (acs(task), gcs(task, 1), gcs(task, 2), beam(task, 1)):
        assert search.found.cut == ("a1", "a2", "b1", "b2")
        assert not any(one.diverse for one in search.seen if "A" in one.cut)
        assert verify_diversity(search.found.published, 2, 1, 0, SECRET.secret) == {}


def test_a_cheaper_cut_that_fails_diversity_is_not_the_best() -> None:
    task = Task(SECRET, [*[tree("a1→s1")] * 2, *[tree("a2")] * 2], k=2, m=1, n=0, l=2)
    for search in (acs(task), gcs(task, 2), ocs(task, 2), beam(task, 2)):
        cheapest = min((one for one in search.seen if one.passed), key=lambda one: one.rank)
        assert cheapest.cut == ("B", "a1", "a2") and search.found.cut == (STAR,)  # as cheap as {A, B}, more general


@pytest.mark.parametrize("mode", ["sequential", "batch"])
def test_a_relation_with_a_skewed_sensitive_value_is_disassociated(mode: str) -> None:
    records = [*[tree("a1→b1→s1")] * 2, tree("a1→b1→s2"), *[tree("a1, b1→s2")] * 2, tree("a1, b1")]
    known = Knowledge(("a1", "b1"), (("a1", "b1"),))
    assert verify_diversity(records, 2, 2, 1, SECRET.secret) == {(known, "s1"): (2, 3)}
    assert fix_structure(records, 2, 2, 1, mode=mode, secret=SECRET.secret)[1] == []
    published, sd = fix_structure(records, 2, 2, 1, mode=mode, l=Fraction(2), secret=SECRET.secret)
    assert sd == [("a1", "b1")] and published[0] == tree("a1→s1, b1")
    assert verify_diversity(published, 2, 2, 1, SECRET.secret) == {}


def test_absence_counts_as_knowledge() -> None:
    assert value_violations(NEGATED, 2, 2) == {}
    marked = with_negations(NEGATED, LEAVES, ["H1", "Rea"], DGH)
    assert [sorted(label for label in items(one) if label.startswith(NOT)) for one in marked] == [
        ["¬Rea"],
        ["¬Rea"],
        ["¬H1", "¬Rea"],
    ]
    violations = value_violations(marked, 2, 2)
    assert violations == {("¬H1",): 1, ("Flu", "¬H1"): 1, ("H2", "¬H1"): 1, ("¬H1", "¬Rea"): 1}
    assert relations(marked[2]) == relations(NEGATED[2])


def test_a_negation_is_active_at_and_above_the_cut_and_is_remedied_by_generalizing_it() -> None:
    assert [is_active("General", cut, DGH) for cut in (LEAVES, TYPE_ROOTS, (STAR,))] == [True, False, False]
    assert is_active("Hospital", TYPE_ROOTS, DGH) and is_active("Hospital", LEAVES, DGH)
    assert is_absent(tree("Flu"), "Hospital", DGH) and not is_absent(tree("H1→Flu"), "Hospital", DGH)
    task = Task(DGH, NEGATED, k=2, m=2, n=1)
    assert {"H1", "H2"} <= set(acs(task).found.cut)
    guarded = replace(task, negations=("H1", "Rea"))
    for search in (acs(guarded), gcs(guarded, 2), beam(guarded, 2)):
        cut, published = search.found.cut, search.found.published
        assert "General" in cut and not any(NOT in label for one in published for label in items(one))
        assert verify_kmn(with_negations(published, cut, ["H1", "Rea"], DGH), 2, 2, 1) == {}


def test_a_negation_beside_a_relation_is_remedied_by_disassociation() -> None:
    # ({Flu, H1, ¬H2}, {H1⇝Flu}) holds once, every label set at least twice
    records = [tree("H1→Flu"), tree("H1, Flu"), *[tree("H1→Flu, H2")] * 2]
    assert fix_structure(records, 2, 3, 1)[1] == []
    found = evaluate(Task(DGH, records, k=2, m=3, n=1, negations=("H2",)), LEAVES)
    assert found.passed and found.sd == (("H1", "Flu"),) and found.published[0] == tree("H1, Flu")


# --- metrics §5 ------------------------------------------------------------------------------------------------------


def test_disassociation_can_lower_the_rpd_of_a_record() -> None:
    sizes = {"h": 4, "d": 6, "t": 5}
    flat = Dgh({name: [f"{name}{number}" for number in range(1, size + 1)] for name, size in sizes.items()})
    one = tree("h1, h2→d1→t1")
    assert dis(one, "d1", "t1") == tree("h1, h2→d1, h2→t1")
    assert round(float(rpd_of_record(one, flat)), 6) == 0.125694
    assert round(float(rpd_of_record(dis(one, "d1", "t1"), flat)), 6) == 0.098611
    assert rpd_of_record(frozenset(), flat) == rpd_of_record(tree(STAR), flat) == 1


def test_hierarchies_of_unequal_height() -> None:
    dgh = Dgh({"A": {"g": {"f": ["x", "y"]}, "z": {}}, "B": ["p", "q"]})
    assert dgh.tables["A"] == [("x", "f", "g", "A"), ("y", "f", "g", "A"), ("z", "z", "z", "A")]
    assert dgh.height == 4 and {label: dgh.level[label] for label in "xzfgABp*"} == dict(
        zip("xzfgABp*", (0, 0, 1, 2, 3, 1, 0, 4), strict=True)
    )
    assert [dgh.at_level("z", level) for level in range(5)] == ["z", "z", "z", "A", STAR]
    assert [dgh.at_level("p", level) for level in range(5)] == ["p", "B", "B", "B", STAR]
    # class: z counts on each of its levels; global: the labels whose level it is, so f and B on level 1
    assert [dgh.count(label) for label in "xzfgABp*"] == [3, 3, 2, 2, 1, 1, 2, 1]
    assert [dgh.count(label, "global") for label in "xzfgABp*"] == [5, 5, 2, 1, 1, 2, 5, 1]
    assert dgh.number_of_cuts() == len(set(dgh.closed_enumeration())) == 1 + 4 * 2
    high = Dgh.of_tables({"A": [("x", "f", "f", "*"), ("z", "z", "g", "*")]})
    assert (high.level["f"], high.level["g"], high.parent["f"], high.parent["z"]) == (1, 2, "A", "g")
    with pytest.raises(AssertionError, match="two parents"):
        Dgh.of_tables({"A": [("x", "f", "g", "*"), ("y", "f", "i", "*")]})


def test_subtrees_are_the_prefix_closed_subsets() -> None:
    one = tree("a→b→c, a→d")
    found = list(subtrees(one))
    every = [frozenset(path for bit, path in enumerate(sorted(one)) if number >> bit & 1) for number in range(1, 16)]
    assert sorted(map(sorted, found)) == sorted(sorted(part) for part in every if part == closure(part))
    assert len(found) == 6
    assert frequent_subtrees([one, tree("a→d"), tree("d")], Fraction(2, 3)) == {tree("a"): 2, tree("a→d"): 2}
    assert len(frequent_subtrees([tree("a")] + [tree("b")] * 99, 0.01)) == 2  # 1% of 100 records is one record
    assert set(frequent_subtrees([one], 1, max_nodes=1)) == {tree("a")}


def test_example_2() -> None:
    part = [project_level(tree("H2→Flu"), level, DGH) for level in range(3)]
    assert part == [tree("H2→Flu"), tree("General→Lung disease"), tree("Hospital→Disease")]
    lost = [project_level(tree("H2→Lung disease"), level, DGH) for level in range(3)]
    assert ml2_of([{one} for one in part], [{one} for one in lost]) == Fraction(1, 3)
    assert ml2([tree("H2→Flu")], [tree("H2→Lung disease")], DGH) == Fraction(1, 6)  # with the three single nodes


def test_example_3() -> None:
    images: dict[str, str | None] = {"H2": "H2", "Flu": "Lung disease"}
    part = tree("H2→Flu")
    assert round(float(dtree(part, 0, images, tree("H2→Lung disease"), DGH)), 6) == 0.083333
    assert round(float(dtree(part, 0, images, tree("H2, Lung disease"), DGH)), 6) == 0.583333
    assert dtree(tree("H2"), 0, {"H2": None}, frozenset(), DGH) == Fraction(1, 2)  # suppressed, no relation
    assert dtree(tree("Flu"), 2, {"Flu": "Lung disease"}, tree("Disease"), DGH) == 0  # below the level: nothing lost


def test_lost_subtrees_of_whole_releases() -> None:
    for minsup in (0.25, 0.5, 0.75):
        assert ml2(RECORDS, RECORDS, DGH, minsup) == dml2(RECORDS, RECORDS, LEAVES, DGH, minsup) == 0
        assert ml2(RECORDS, projected((STAR,)), DGH, minsup) == 1
    # at {*} a node of level i is (3 − i)/3 away and the relation is broken
    away = [[Fraction(3 - level, 6), Fraction(3 - level, 6) + Fraction(1, 2)] for level in range(3)]
    assert dml2([tree("H2→Flu")], [tree(STAR)], (STAR,), DGH) == sum(map(sum, away), Fraction(0)) / 6


def test_lost_subtrees_of_figure_4() -> None:
    """In three of the four records: {H1, H2} and its parts; all parts of General→{Lung→Medicine, Stomach→Medicine}; a chain."""
    assert [len(level) for level in frequent_by_level(RECORDS, DGH, 0.75)] == [3, 9, 3]
    assert ml2(RECORDS, FIGURE_4_PUBLISHED, DGH, 0.75) == Fraction(6, 15)  # those with Stomach disorder below General
    broken = sum(Fraction(*share) for share in ((1, 1), (1, 2), (1, 4), (2, 3), (2, 4), (2, 6)))  # BR/R of these six
    assert dml2(RECORDS, FIGURE_4_PUBLISHED, FIGURE_4, DGH, 0.75) == broken / 2 / 15 == Fraction(13, 120)


def test_relations_lost_in_some_records_only() -> None:
    originals = [tree("h1→d1"), tree("h1→d1, h2")]
    published = [tree("h1, d1"), tree("h1→d1, h2")]
    # in both records, on every level: a hospital, and a hospital with a disease, whose relation one of the two lost
    assert dml2(originals, published, LETTER_LEAVES, LETTERS, 1) == Fraction(1, 4) / 2
    assert ml2(originals, published, LETTERS, 1) == Fraction(1, 2)
