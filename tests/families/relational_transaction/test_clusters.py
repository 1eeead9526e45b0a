"""Relational values, R-10 blocks and CLUSTER of relational_transaction against brute force: arrays only, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.errors import DataError
from anon_spark.families.relational_transaction.kernels.clustering import blocks_of, cluster_block, clusters
from anon_spark.families.relational_transaction.kernels.relation import (
    Floats,
    Relation,
    node_levels,
    own_penalties,
    penalties,
    published,
    relation_of,
)
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.randomness import uniform
from anon_spark.model.hierarchy import Hierarchy
from tests.families.mst.tables import level_table, trees
from tests.oracle import rt_oracle as oracle
from tests.oracle.rt_oracle import Category, Number, Record, Schema

pytestmark = pytest.mark.compiles

Attribute = Hierarchy | tuple[float, float]

ORIGINS = [(name, "Europe", "*") for name in ("eu0", "eu1", "Germany", "Spain")]
ORIGINS += [(name, "Africa", "*") for name in ("Algeria", "Nigeria")]


@dataclass(frozen=True)
class Table:
    """Records and their attributes; the rid of a record is its place."""

    attributes: list[Attribute]
    records: list[Record]
    weights: list[Fraction] | None = None

    @property
    def schema(self) -> Schema:
        kinds = [Category(level_table(of)) if isinstance(of, Hierarchy) else Number(*of) for of in self.attributes]
        return Schema(kinds, self.weights)

    @property
    def relation(self) -> Relation:
        return self._coded()[0]

    @property
    def values(self) -> Floats:
        """As the package takes them."""
        return np.column_stack(
            [
                [float(record.values[at] if places is None else places[record.values[at]]) for record in self.records]
                for at, places in enumerate(self.places)
            ]
        )

    @property
    def places(self) -> list[dict[Any, int] | None]:
        """Per hierarchy the position of each value."""
        found = list[dict[Any, int] | None]()
        for attribute, position in zip(self.attributes, self._coded()[1], strict=True):
            if isinstance(attribute, Hierarchy):
                assert position is not None and sorted(position.tolist()) == list(range(attribute.leaf_count))
                rows = level_table(attribute)
                found.append({row[0]: place for row, place in zip(rows, position.tolist(), strict=True)})
            else:
                assert position is None
                found.append(None)
        return found

    def _coded(self) -> tuple[Relation, list[Any]]:
        return relation_of(self.attributes, None if self.weights is None else [float(of) for of in self.weights])


def figure_1() -> Table:
    """The six records of the paper's first figure, without the sensitive items."""
    ages, genders, items = (19, 22, 28, 39, 70, 55), "MMFFFM", ("EFB", "EFD", "BCE", "FD", "E", "AF")
    records = [
        Record(rid, (ages[rid], ORIGINS[rid][0], genders[rid]), frozenset(items[rid])) for rid in range(len(ORIGINS))
    ]
    return Table([(19, 70), Hierarchy.from_levels(ORIGINS), Hierarchy.from_levels([("M", "*"), ("F", "*")])], records)


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    if draw(st.booleans()):
        return draw(trees())
    return draw(st.sampled_from([(-3.0, 12.0), (0.0, 7.0), (0.1, 0.7), (5.0, 5.0)]))


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 40, least_rows: int = 2) -> Table:
    """Up to four attributes; values, items and sensitive items come from a seed, so that they do not all repeat."""
    found = [draw(attributes()) for _ in range(draw(st.integers(1, 4)))]
    weights = None
    if draw(st.booleans()):
        parts = [draw(st.integers(1, 5)) for _ in found]
        weights = [Fraction(part, sum(parts)) for part in parts]
        if sum(map(float, weights)) > 1:  # the package rounds these down
            weights = None
    return Table(
        found,
        records_of(
            found,
            draw(st.integers(least_rows, most_rows)),
            Random(draw(st.integers(0, 2**32))),
            draw(st.sampled_from([0.0, 0.3, 0.7])),
            draw(st.sampled_from([0.0, 0.3, 0.8])),
        ),
        weights,
    )


def records_of(
    attributes: Sequence[Attribute], count: int, random: Random, repeat: float = 0.2, empty: float = 0.2
) -> list[Record]:
    records = list[Record]()
    for rid in range(count):
        values = tuple(_value(attribute, random) for attribute in attributes)
        if records and random.random() < repeat:
            values = random.choice(records).values
        items = frozenset(random.choices("abcdefgh", [8, 7, 5, 4, 3, 2, 1, 1], k=random.choice([1, 1, 2, 3, 5])))
        sensitive = frozenset(item for item in "XYZ" if random.random() < 0.2)
        records.append(Record(rid, values, frozenset() if random.random() < empty else items, sensitive))
    return records


def _value(attribute: Attribute, random: Random) -> Any:
    if isinstance(attribute, Hierarchy):
        return random.choice(level_table(attribute))[0]
    lo, hi = attribute
    return min(hi, lo + random.randrange(8) / 7 * (hi - lo))


def drawn(key: str, block: int, count: int, k: int) -> oracle.Draw:
    """The package's draws, handed out one by one; the bounds must be those of the oracle."""
    bounds = [count - k * at for at in range(count // k)]
    draws = iter(zip(bounds, uniform(key, "cluster", block, np.array(bounds)).tolist(), strict=True))

    def draw(bound: int) -> int:
        expected, found = next(draws)
        assert bound == expected
        return int(found)

    return draw


# --- relational values ----------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(tables(), st.randoms(use_true_random=False))
def test_what_unions_lose(table: Table, random: Random) -> None:
    """To the last bit, since δ is compared without tolerance; and the labels of what would be published."""
    schema, relation, values = table.schema, table.relation, table.values
    parts = [random.sample(table.records, min(random.choice([1, 2, 5]), len(table.records))) for _ in range(12)]
    lo = np.array([values[[record.rid for record in part]].min(axis=0) for part in parts])
    hi = np.array([values[[record.rid for record in part]].max(axis=0) for part in parts])
    boxes = [schema.generalize(part) for part in parts]

    assert own_penalties(relation, lo, hi).tolist() == [schema.float_ncp(box) for box in boxes]
    for at in (0, 5):
        unions = [schema.join([boxes[at], box]) for box in boxes]
        assert penalties(relation, lo, hi, lo[at], hi[at]).tolist() == [schema.float_ncp(box) for box in unions]

    level, shown = node_levels(relation, lo, hi), published(relation, lo, hi)
    for at, attribute in enumerate(table.attributes):
        places = table.places[at]
        if not isinstance(attribute, Hierarchy) or places is None:
            continue
        leaves = [row[0] for row in level_table(attribute)]
        leaf_at = {place: leaves.index(value) for value, place in places.items()}
        for row, box in enumerate(boxes):
            code = attribute.codes[level[row, at], leaf_at[int(lo[row, at])]]
            below = {leaf for number, leaf in enumerate(leaves) if attribute.codes[level[row, at], number] == code}
            assert below == box[at]
            runs = sorted(places[leaf] for leaf in below)
            assert all(after == before + 1 for before, after in pairwise(runs))
    for one, other in zip(range(11), range(1, 12), strict=True):
        assert (shown[one] == shown[other]).all() == (boxes[one] == boxes[other])


def test_shares_are_those_of_the_domain() -> None:
    """A mask knows ten digits where the table has two leaves, a leaf alone loses nothing, and null is one more leaf."""
    codes = Hierarchy.from_levels([("a", "v", "*"), ("b", "v", "*"), ("c", "w", "*")])
    relation, (position,) = relation_of([codes.with_null()])
    assert position is not None
    places = position.astype(np.float64)[:, None]
    lost = penalties(relation, places, places, places[0], places[0])
    assert lost.tolist() == [0, 2 / 4, 1, 1]
    assert own_penalties(relation, places, places).tolist() == [0, 0, 0, 0]
    relation, _ = relation_of([Hierarchy.mask(["10", "12", "30"])])
    places = np.array([[0.0], [1.0], [2.0]])
    assert penalties(relation, places, places, places[0], places[0]).tolist() == [0, 10 / 100, 1]


@pytest.mark.parametrize("count", [9, 11, 21, 57])
def test_the_widest_union_loses_1_at_most(count: int) -> None:
    """1/9 added nine times is above 1: a bound of 1 would refuse the last merge."""
    assert sum([1 / count] * count) > 1
    relation, _ = relation_of([(0.0, 1.0)] * count)
    assert own_penalties(relation, np.zeros((1, count)), np.ones((1, count))) <= 1
    assert np.allclose(relation.weight, 1 / count, rtol=1e-15)


# --- blocks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=30)
@given(tables(most_rows=60, least_rows=12), st.integers(1, 4), st.integers(1, 20))
def test_blocks_are_those_of_brute_force(table: Table, k: int, most: int) -> None:
    found = blocks_of(table.relation, table.values, most, 2 * k)
    blocks = oracle.relational_blocks(table.records, table.schema, k, most)
    assert found.tolist() == [at for _, at in sorted((one.rid, at) for at, block in enumerate(blocks) for one in block)]


@pytest.mark.long
def test_blocks_of_a_crowd() -> None:
    """Enough records for several cuts of each kind."""
    kinds: list[Attribute] = [(0.0, 7.0), Hierarchy.from_levels(ORIGINS), Hierarchy.intervals(5, 16, [2, 6])]
    table = Table(kinds, records_of(kinds, 400, Random(3), repeat=0.0))
    found = blocks_of(table.relation, table.values, 40, 6)
    blocks = oracle.relational_blocks(table.records, table.schema, 3, 40)
    assert len(blocks) > 10 and max(map(len, blocks)) <= 40
    for number, block in enumerate(blocks):
        assert np.flatnonzero(found == number).tolist() == [record.rid for record in block]


def test_equal_values_stay_on_one_side() -> None:
    """0 × 3, 5 × 4, 9 × 3: the two cuts are as near to the middle, the lower is taken; three are too few for a side of 4."""
    relation, _ = relation_of([(0.0, 9.0)])
    values = np.array([0.0, 5, 9, 5, 0, 5, 9, 5, 0, 9])[:, None]
    assert blocks_of(relation, values, 9, 3).tolist() == [0, 1, 1, 1, 0, 1, 1, 1, 0, 1]
    assert blocks_of(relation, values, 4, 3).tolist() == [0, 1, 2, 1, 0, 1, 2, 1, 0, 2]
    assert blocks_of(relation, values, 9, 4).tolist() == [0] * 10


def test_categories_are_cut_between_children() -> None:
    """Never inside Africa, although the middle of the records lies there."""
    table = Table([Hierarchy.from_levels(ORIGINS)], [])
    places = table.places[0]
    assert places is not None
    values = np.array([[float(places[name])] for name in ["eu0"] * 3 + ["Algeria"] * 3 + ["Nigeria"] * 3])
    assert blocks_of(table.relation, values, 6, 3).tolist() == [0] * 3 + [1] * 6
    assert blocks_of(table.relation, values, 5, 3).tolist() == [0] * 3 + [1] * 3 + [2] * 3


# --- CLUSTER --------------------------------------------------------------------------------------------------------------


def partition(smallest: Ints) -> list[tuple[int, ...]]:
    """Clusters by their smallest member, which must be a member."""
    assert (smallest[smallest] == smallest).all()
    return [tuple(np.flatnonzero(smallest == head).tolist()) for head in np.unique(smallest)]


@settings(max_examples=80)
@given(tables(), st.integers(1, 9), st.text(max_size=3), st.integers(0, 9))
def test_clusters_are_those_of_brute_force(table: Table, k: int, key: str, block: int) -> None:
    k, count = min(k, len(table.records)), len(table.records)
    truth = oracle.cluster(table.records, table.schema, k, drawn(key, block, count, k))
    found = cluster_block(table.relation, table.values, k, key, block)
    assert partition(found) == [one.rids for one in truth]


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_a_crowd(seed: int) -> None:
    """Several hundred records: ties at every seed, leftovers whose cluster gets a smaller id."""
    kinds: list[Attribute] = [(0.0, 7.0), Hierarchy.from_levels(ORIGINS), Hierarchy.intervals(5, 16, [2, 6])]
    table = Table(kinds, records_of(kinds, 199, Random(seed)))
    truth = oracle.cluster(table.records, table.schema, 20, drawn("key", seed, 199, 20))
    found = partition(cluster_block(table.relation, table.values, 20, "key", seed))
    assert found == [one.rids for one in truth]
    assert len(found) == 9 and sum(map(len, found)) == 199


def test_clusters_depend_on_key_and_block() -> None:
    table = Table([(0.0, 7.0)], records_of([(0.0, 7.0)], 40, Random(1), repeat=0.0))
    ways = [cluster_block(table.relation, table.values, 3, key, block).tolist() for key, block in (("a", 0), ("a", 1), ("b", 0))]
    assert ways[0] != ways[1] != ways[2] != ways[0]
    assert ways[0] == cluster_block(table.relation, table.values, 3, "a", 0).tolist()


def test_equal_penalties_are_ties() -> None:
    """0.1 + 0.2 and 0.3 + 0 differ in the last bit: the smaller record is the nearest, not the one with the luckier sum."""
    relation, _ = relation_of([(0.0, 1.0), (0.0, 1.0)])
    values = np.array([[0.1, 0.2], [0.3, 0.0], [0.0, 0.0], [1.0, 1.0]])
    lost = penalties(relation, values, values, values[2], values[2])
    assert lost[0] > lost[1]
    assert clusters(relation, values, 2, np.array([2, 0])).tolist() == [0, 1, 0, 1]


def test_too_few_records_are_refused() -> None:
    table = figure_1()
    assert cluster_block(table.relation, table.values, 6, "", 0).tolist() == [0] * 6
    with pytest.raises(DataError, match="6 records are fewer than k = 7"):
        cluster_block(table.relation, table.values, 7, "", 0)
