"""k^(m,n)-anonymity of published trees against brute force, planted faults of every kind, and rows that are malformed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.auditing import verify, verify_kmn
from anon_spark.auditing.guarantees import tree_counting, tree_signatures
from anon_spark.auditing.guarantees.tree_counting import Packing, Signatures, counted, known, merged, pair_number
from anon_spark.auditing.guarantees.tree_signatures import Coding
from anon_spark.auditing.reading.tree_paths import malformed, read_nodes
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.guarantee import KmnAnonymity
from tests.auditing import ward
from tests.auditing.town import frame
from tests.event_log import EventLog
from tests.oracle import tree_example as example
from tests.oracle import tree_oracle as oracle
from tests.oracle.tree_oracle import Dgh, Knowledge, Tree, tree

SECRET = Dgh({"h": {"hs": ["h1", "h2"]}, "d": {"ds": ["d1", "d2"]}, "t": {"ts": ["t1", "t2"]}, "s": ["s1", "s2", "s3"]}, ["s"])
Negations = Sequence[tuple[str, Collection[tuple[str, str]]]]


def counts(
    trees: Sequence[Tree], dgh: Dgh, m: int, n: int, sensitive: Sequence[str] = (), negations: Negations = ()
) -> dict[Knowledge, tuple[int, int]]:
    """K → support, and records with the most frequent sensitive value; all in one task, without Spark."""
    nodes = read_nodes(pa.array([ward.labelled(one, dgh.type_of) for one in trees], ward.PATHS))
    coding = Coding.of(nodes.labels, sensitive, negations, with_secrets=bool(sensitive))
    packing = coding.packing(m)
    signatures = Signatures(*coding.signatures(nodes), np.ones(len(trees), dtype=np.int64))
    return named(known(merged(list(counted(signatures, packing)), packing), packing, n), coding, packing, dgh)


def named(found: Any, coding: Coding, packing: Packing, dgh: Dgh) -> dict[Knowledge, tuple[int, int]]:
    names = [value if name != oracle.NOT else f"{oracle.NOT}{value}" for name, value in coding.names]
    order = list(dgh.tables)
    places = [(low, up) for up in range(packing.m) for low in range(up)]
    columns = [packing.digits(found.keys), found.relations, found.support, found.most]
    result = {}
    for digits, mask, support, most in zip(*(column.tolist() for column in columns), strict=True):
        labels = [str(names[at - 1]) for at in digits if at]
        pairs = []
        for bit, (low, up) in enumerate(places):
            if mask >> bit & 1:
                pairs.append(tuple(sorted((labels[low], labels[up]), key=lambda one: order.index(dgh.type_of[one]))))
        result[Knowledge(tuple(sorted(labels)), tuple(sorted(pairs)))] = (support, most)  # type: ignore[arg-type]
    return result


# --- counting, without Spark -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_counting_is_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = example.random_trees(Random(seed), SECRET, 25)
    m, n = [(3, 2), (4, 6), (2, 1), (1, 0), (3, 0), (5, 3)][seed]
    found = counts(trees, SECRET, m, n, ["s"])
    expected = oracle.supports(trees, m, n, SECRET.secret)
    assert found.pop(Knowledge((), ()))[0] == len(trees)
    assert {one: support for one, (support, _) in found.items()} == expected
    for one in list(expected)[::7]:
        group = [record for record in trees if oracle.matches(record, one)]
        assert found[one][1] == max(sum(value in oracle.items(record) for record in group) for value in SECRET.secret)
    monkeypatch.setattr(tree_counting, "CELLS_AT_ONCE", 7)  # sets and records in many slices
    monkeypatch.setattr(tree_counting, "CHOICES_KEPT", 3)
    again = counts(trees, SECRET, m, n, ["s"])
    assert again.pop(Knowledge((), ()))[0] == len(trees) and again == found


def test_many_labels_and_long_records() -> None:
    """Sets of three labels among a thousand millions take two numbers; a long record is sliced."""
    high, size = 2**30 - 1, 70
    labels = np.arange(high - size + 1, high + 1)
    lists = (np.array([0, size, size + 2]), np.concatenate([labels - 1, labels[:2] - 1]))
    pairs = (np.array([0, 2, 3]), np.array([0, pair_number(size) - 1, 0]))  # first two, last two
    signatures = Signatures(lists, pairs, (np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)), np.array([5, 2]))
    packing = Packing(high, 0, 3)
    assert packing.columns == 2
    found = known(merged(list(counted(signatures, packing)), packing), packing, 1)
    digits = packing.digits(found.keys)
    sizes = (digits > 0).sum(axis=1)
    sets = [1, size, pair_number(size), size * (size - 1) * (size - 2) // 6]
    assert [int(((sizes == at) & (found.relations == 0)).sum()) for at in range(4)] == sets
    both = np.flatnonzero((digits == [labels[0], labels[1], 0]).all(axis=1))
    assert found.support[both].tolist() == [7, 7] and found.relations[both].tolist() == [0, 1]
    assert int((found.relations > 0).sum()) == 2 * (1 + size - 2)


# --- planted faults ----------------------------------------------------------------------------------------------------


def below(trees: Sequence[Tree], dgh: Dgh, k: int, m: int, n: int, negations: Negations = ()) -> set[Knowledge]:
    found = counts(trees, dgh, m, n, (), negations)
    return {one for one, (support, _) in found.items() if support < k and one.labels}


def above(trees: Sequence[Tree], l: int, m: int, n: int) -> set[Knowledge]:  # noqa: E741
    return {one for one, (support, most) in counts(trees, SECRET, m, n, ["s"]).items() if most * l > support}


CROWD = [tree("h1→d1→t1, h2→d2→t2")] * 3
FAULTS: list[tuple[str, list[Tree], tuple[int, int, int], set[Knowledge]]] = [
    ("none", CROWD, (3, 3, 3), set()),
    ("a label", [*CROWD, *[tree("h1→d1, d3")]], (2, 1, 0), {Knowledge(("d3",))}),
    ("two labels", [*CROWD, *[tree("h1")] * 2, *[tree("d3")] * 2, tree("h1, d3")], (2, 2, 0), {Knowledge(("d3", "h1"))}),
    ("a record with fewer labels than m", [*CROWD, tree("d3")], (2, 3, 1), {Knowledge(("d3",))}),  # T-2
    ("a relation", [tree("h1→d1")] * 2 + [tree("h1, d1")], (3, 2, 1), {Knowledge(("d1", "h1"), (("h1", "d1"),))}),
    (
        "two relations",
        [tree("h1→d1, h2→d1"), *[tree("h1→d1, h2")] * 2, *[tree("h2→d1, h1")] * 2],
        (2, 3, 2),
        {Knowledge(("d1", "h1", "h2"), (("h1", "d1"), ("h2", "d1")))},
    ),
    ("two relations, one known", [tree("h1→d1, h2→d1"), *[tree("h1→d1, h2")] * 2, *[tree("h2→d1, h1")] * 2], (2, 3, 1), set()),
]


@pytest.mark.parametrize("at", range(len(FAULTS)))
def test_each_fault_is_found(at: int) -> None:
    _, trees, (k, m, n), expected = FAULTS[at]
    dgh = Dgh({"h": ["h1", "h2"], "d": ["d1", "d2", "d3"], "t": ["t1", "t2"]})
    assert below(trees, dgh, k, m, n) == expected == set(oracle.verify_kmn(trees, k, m, n))


def test_labels_outside_relations_count() -> None:
    """T-4: what the printed check leaves behind."""
    pairs = [("h1", "d1"), ("d1", "t1"), ("h1", "d2"), ("h1", "t1")]
    left = oracle.disassociate(example.LABELS_IGNORED, pairs)
    wanted = Knowledge(("d1", "d2", "h2"), (("h2", "d1"),))
    assert wanted in below(left, example.LETTERS, 3, 3, 1) == set(oracle.verify_kmn(left, 3, 3, 1))
    assert counts(left, example.LETTERS, 3, 1)[wanted][0] == 2


def test_a_relation_is_not_a_chain() -> None:
    """h1⇝d1 and d1⇝t1 may be seen on different paths."""
    trees = [*example.SAME_PATH, tree("h1→d1, d1→t1")]
    every = Knowledge(("d1", "h1", "t1"), (("d1", "t1"), ("h1", "d1")))
    assert counts(trees, example.LETTERS, 3, 3)[every][0] == 3


def test_frequent_sensitive_values() -> None:
    everybody = [tree("h1, s1"), tree("h1, s1"), tree("h1"), tree("h1"), tree("s1")]  # of labels only half have it
    assert above(everybody, 2, 1, 0) == {Knowledge(())}
    related = [*[tree("h1→d1, s1")] * 2, tree("h1→d1"), *[tree("h1, d1")] * 2]
    assert above(related, 2, 2, 1) == {Knowledge(("d1", "h1"), (("h1", "d1"),))}
    assert above(related, 2, 2, 0) == set()
    for trees in (everybody, related):
        assert above(trees, 2, 2, 1) == {one for one, _ in oracle.verify_diversity(trees, 2, 2, 1, SECRET.secret)}


H1, REA = ("H1", [("Hospital", "H1")]), ("Rea", [("Hospital", "Rea")])


def test_absent_labels_are_known() -> None:
    trees = example.NEGATED
    assert below(trees, example.DGH, 2, 2, 0) == set()
    marked = oracle.with_negations(trees, ("H1", "H2"), ["H1"], example.DGH)
    found = below(trees, example.DGH, 2, 2, 0, [H1, REA])  # nobody has Rea, so its absence tells nothing
    assert found == set(oracle.verify_kmn(marked, 2, 2, 0)) and Knowledge(("Flu", "¬H1")) in found
    group = ("General", [("Hospital", "General"), ("Hospital", "H1"), ("Hospital", "H2")])
    assert below(trees, example.DGH, 2, 2, 0, [group]) == set()
    with pytest.raises(ConfigurationError, match="sensitive node type"):
        Coding.of([], ["Hospital"], [H1], with_secrets=True)


def test_what_is_malformed() -> None:
    h1, h2, d1 = ({"class": name[0], "value": name} for name in ("h1", "h2", "d1"))
    none, nobody = {"class": "h", "value": None}, {"class": None, "value": "h1"}
    rows: list[tuple[str, Any]] = [
        ("", [[d1], [none], [h1]]),  # null comes first
        ("", [[h1, d1], [h2, d1]]),
        ("missing", None), ("missing", []), ("missing", [[]]), ("missing", [None]), ("missing", [[nobody]]),
        ("unsorted", [[h2], [h1]]), ("unsorted", [[h1], [h1]]), ("unsorted", [[h1, d1], [h1, d1]]),
        ("inner", [[h1], [h1, d1]]),
        ("repeated", [[h1, d1, h2]]), ("repeated", [[h1, h1]]),
        ("reserved", [[{"class": "h", "value": "¬h1"}]]),
    ]  # fmt: skip
    found = malformed(read_nodes(pa.array([row for _, row in rows], ward.PATHS)))
    kinds = [[name for name, marks in found.items() if marks[at]] for at in range(len(rows))]
    assert kinds == [[kind] if kind else [] for kind, _ in rows]


# --- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_is_brute_force(spark: SparkSession, event_log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    k, l, m, n = 3, 2, 3, 2  # noqa: E741
    trees = example.random_trees(Random(8), SECRET, 40)
    small = oracle.verify_kmn(trees, k, m, n, SECRET.secret)
    frequent = {one for one, _ in oracle.verify_diversity(trees, l, m, n, SECRET.secret)}
    supports = oracle.supports(trees, m, n, SECRET.secret)
    release = ward.trees_table(spark, trees, SECRET.type_of)
    since = event_log.mark()
    found = verify_kmn(release, k, m, n, l, ["s"])
    assert found.name == "3^(3,2)-anonymity with 2-diversity" and not found
    assert found.violations == len({*small, *frequent}) and found.checked == len(supports) + 40
    facts = found.facts
    assert facts["known"] == len(supports) and facts["smallest"] == min(supports.values()) and facts["labels"] == 6
    assert sum(number for *_, number in facts["below_k"]) == len(small) > 0
    assert {of[:2] for of in facts["above_share"]} == {(len(one.labels), len(one.relations)) for one in frequent}
    between = [sum(low <= support <= high for support in supports.values()) for low, high, _ in facts["histogram"]]
    assert between == [number for *_, number in facts["histogram"]] and facts["histogram"][0][:2] == (3, 5)
    assert "of 3 labels and 2 relations" in found.detail
    with pytest.raises(GuaranteeViolated) as raised:
        found.require()
    assert "h1" not in str(raised.value) and "t2" not in event_log.read_text(since)
    assert found.frame is not None
    rows = found.frame.collect()
    shown = set()
    for row in rows:
        labels = [one["value"] for one in row["labels"]]
        pairs = sorted(ordered(labels[a - 1], labels[b - 1]) for a, b in row["relations"])
        shown.add(Knowledge(tuple(sorted(labels)), tuple(pairs)))
    assert shown == {*small, *frequent} and len(rows) == len(shown)
    # many tasks and partitions
    monkeypatch.setattr(tree_signatures, "KEYS_AT_ONCE", 1000)
    again = verify_kmn(release.repartition(5), k, m, n, l, ["s"])
    assert again.facts == facts and again.detail == found.detail


def ordered(one: str, other: str) -> tuple[str, str]:
    """The upper label first."""
    return (one, other) if "hdt".index(one[0]) < "hdt".index(other[0]) else (other, one)


def test_a_table_that_passes(spark: SparkSession) -> None:
    trees = [*CROWD, *[tree("h1")] * 2]
    release = ward.trees_table(spark, trees, example.LETTERS.type_of)
    found = verify(release, KmnAnonymity(3, 2, 1)).require()
    assert found.facts["known"] == len(oracle.supports(trees, 2, 1)) and found.facts["smallest"] == 3
    assert found.facts["histogram"] == [(3, 5, found.facts["known"])] and "all 27 sets" in found.detail
    with pytest.raises(ConfigurationError, match="verify_kmn"):
        verify(release, KmnAnonymity(3, 2, 1, negations=["h1"]))


def test_absence_and_malformed_rows_in_a_table(spark: SparkSession) -> None:
    trees = [*example.NEGATED, *example.NEGATED[:1]]
    rows = [ward.labelled(one, example.DGH.type_of) for one in trees]
    turned = [[{"class": "Disease", "value": "Flu"}, {"class": "Hospital", "value": "H2"}]]
    release = frame(spark, [(row,) for row in [*rows, turned, [], rows[0][::-1]]], ["paths"], [ward.PATHS])
    found = verify_kmn(release, 2, 2, 1, negations=[H1])
    facts = found.facts
    assert (facts["malformed"], facts["missing"], facts["unsorted"], facts["both_orders"]) == (2, 1, 1, 1)
    assert facts["rows"] == 7 and facts["negations"] == 1 and not found and "in both orders" in found.detail
    nothing = verify_kmn(release.limit(0), 2, 2, 1)
    assert not nothing and nothing.violations == 0 and "nothing to publish" in nothing.detail


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((1, 2, 1), {}), ((2, 0, 0), {}), ((2, 2, -1), {}), ((2, 12, 1), {}), ((2, 2, 1), {"l": 2}),
     ((2, 2, 1), {"l": 1, "sensitive_node_types": ["s"]}), ((2, 2, 1), {"column": "path"}), ((2, 2, 1), {"column": "other"})],
)  # fmt: skip
def test_what_cannot_be_verified_is_refused(spark: SparkSession, arguments: Any, options: Any) -> None:
    release = frame(spark, [([[]], ["x"])], ["paths", "other"], [ward.PATHS, pa.list_(pa.string())])
    with pytest.raises(ConfigurationError):
        verify_kmn(release, *arguments, **options)


# --- the guarantee -----------------------------------------------------------------------------------------------------


def test_a_guarantee_says_how_far_it_reaches() -> None:
    plain = KmnAnonymity(20, 3, 2)
    assert str(plain) == "20^(3,2)-anonymity of labels and relations" and plain.unit == "records"
    limits = " ".join(plain.does_not_cover)
    words = ("more than m = 3", "more than n = 2", "The method", "Whole paths", "How often", "right below", "Lost relations")
    assert all(word in limits for word in (*words, "Absent labels", "Shared labels", "Several releases", "Presence"))
    assert "sensitive" not in limits
    unprotected = KmnAnonymity(20, 3, 2, sensitive_node_types=["status"])
    assert "status unprotected" in str(unprotected) and "Give privacy.l" in " ".join(unprotected.does_not_cover)
    assert unprotected == KmnAnonymity(20, 3, 2, sensitive_classes=["status"])  # the older name
    diverse = KmnAnonymity(20, 3, 2, 4, ["status"], ["H1"])
    assert "4-diversity of status" in str(diverse) and "the absence of H1" in str(diverse)
    assert "1 / l" in diverse.covers[-1] and "Give privacy.l" not in " ".join(diverse.does_not_cover)
    assert "other than H1" in " ".join(diverse.does_not_cover)
    assert diverse == KmnAnonymity(20, 3, 2, 4, ("status",), ("H1",)) and hash(diverse) != hash(plain)


@pytest.mark.parametrize(
    "given",
    [*product((1, True, 2.0), (2,), (1,)), (2, 0, 0), (2, 1, -1), (2, 2, 1, 2), (2, 2, 1, 1, ["s"]), (2, 2, 1, None, "s"),
     (2, 2, 1, None, ["s", "s"])],
)  # fmt: skip
def test_a_guarantee_that_protects_nobody_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        KmnAnonymity(*given)
    with pytest.raises(ConfigurationError, match="older name"):
        KmnAnonymity(2, 2, 1, 2, ["s"], sensitive_classes=["t"])
