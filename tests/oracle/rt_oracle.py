"""Brute force for the family relational_transaction: clusters, merges, item generalization and checks, as the rules stand.

Written from the specification alone and slow on purpose: it shares nothing with the package. A record has a rid, one value
per relational attribute, its items and, apart from them, its sensitive items. A level table is a list of tuples
(value, g1, …, '*'). A generalized item is the sorted tuple of the items it stands for, so comparing tuples is comparing
lexicographically. NCP, UL and BTD are exact fractions; costs that are compared with each other are rounded to 12 decimal
digits first (`ticks`). Only the tests against δ are made on floats: NCP(D) by `math.fsum` over the clusters.

Where the text leaves a choice, this file takes:
- a seed is the `draw(n)`-th (from 0) of the n records that are left, in the order of their rids;
- AA: the last tie is between the chosen ancestors, as a sorted array of their sorted leaf arrays (of the whole hierarchy);
- LRA: a block with too few non-empty rows joins the next one, the last block the one before;
- R-10: "nearest to the median" is the cut whose left side is nearest to half the records, the smaller left side first
  (for a number this is one of the two ends of the median's run); equal drops: the first attribute.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from math import fsum, inf, log2
from typing import Any, NamedTuple

GenItem = tuple[str, ...]
ItemSet = tuple[GenItem, ...]  # sorted
Cell = Hashable  # the leaves below a node as a frozenset, or (lo, hi)
Box = tuple[Any, ...]  # one cell per attribute
Draw = Callable[[int], int]  # bound → index below it
LevelTable = Sequence[tuple[Any, ...]]


class Impossible(ValueError):
    """No generalization of this input has the guarantee."""


class Record(NamedTuple):
    rid: int
    values: tuple[Any, ...]
    items: frozenset[str]
    sensitive: frozenset[str] = frozenset()


class Published(NamedTuple):
    cells: Box
    items: frozenset[GenItem]
    sensitive: frozenset[str] = frozenset()


Transform = Callable[[Sequence[Record]], list[frozenset[GenItem]]]  # 𝒯 of one cluster: the items of each record


def combined(columns: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """Several transaction attributes as one set."""
    return frozenset(f"{name}.{item}" for name, items in columns.items() for item in items)


def ticks(cost: Fraction | int) -> int:
    """A cost in units of the 12th decimal digit."""
    return round(cost * 10**12)


# --- metrics §3.6: relational values and NCP -------------------------------------------------------------------------


class Category:
    """A hierarchy; a cell is the set of leaves below a node, so padding and labels play no part."""

    def __init__(self, table: LevelTable) -> None:
        self.leaves = [row[0] for row in table]
        self.labels: dict[frozenset[Any], Any] = {}  # node → its label on the lowest level, low nodes first
        for level in range(len(table[0])):
            below = defaultdict(set)
            for row in table:
                below[row[level]].add(row[0])
            for label, leaves in below.items():
                self.labels.setdefault(frozenset(leaves), label)

    def cell(self, value: Any) -> frozenset[Any]:
        return self.cover([value])

    def cover(self, leaves: Iterable[Any]) -> frozenset[Any]:
        """The lowest node above all of them."""
        wanted = frozenset(leaves)
        return min((node for node in self.labels if node >= wanted), key=len)

    def join(self, cells: Iterable[frozenset[Any]]) -> frozenset[Any]:
        return self.cover(chain.from_iterable(cells))

    def covers(self, cell: frozenset[Any], value: Any) -> bool:
        return value in cell

    def share(self, cell: frozenset[Any]) -> Fraction:
        return Fraction(len(cell), len(self.leaves)) if len(cell) > 1 else Fraction(0)

    def float_share(self, cell: frozenset[Any]) -> float:
        return len(cell) / len(self.leaves) if len(cell) > 1 else 0.0

    def ancestors(self, node: Collection[Any]) -> list[GenItem]:
        """The proper ones, as sorted tuples."""
        return [tuple(sorted(above)) for above in self.labels if above > frozenset(node)]

    def children(self, node: frozenset[Any]) -> list[frozenset[Any]]:
        """In the order of the level table."""
        inside = [other for other in self.labels if other < node]
        largest = [one for one in inside if not any(one < other for other in inside)]
        return sorted(largest, key=lambda child: min(self.leaves.index(leaf) for leaf in child))


class Number:
    """Free ranges in a domain; a cell is (lo, hi)."""

    def __init__(self, dom_lo: float, dom_hi: float) -> None:
        self.dom_lo, self.dom_hi = dom_lo, dom_hi

    def cell(self, value: Any) -> tuple[Any, Any]:
        return value, value

    def join(self, cells: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
        lows, highs = zip(*cells, strict=True)
        return min(lows), max(highs)

    def covers(self, cell: tuple[Any, Any], value: Any) -> bool:
        return bool(cell[0] <= value <= cell[1])

    def share(self, cell: tuple[Any, Any]) -> Fraction:
        width = Fraction(self.dom_hi) - Fraction(self.dom_lo)
        return (Fraction(cell[1]) - Fraction(cell[0])) / width if width else Fraction(0)

    def float_share(self, cell: tuple[Any, Any]) -> float:
        width = self.dom_hi - self.dom_lo
        return float((cell[1] - cell[0]) / width) if width else 0.0


class Schema:
    """The relational attributes and their weights."""

    def __init__(self, attributes: Sequence[Category | Number], weights: Sequence[Fraction] | None = None) -> None:
        self.attributes = list(attributes)
        self.weights = list(weights or [Fraction(1, len(attributes))] * len(attributes))
        assert len(self.weights) == len(self.attributes) and sum(self.weights) == 1

    def box(self, record: Record) -> Box:
        return tuple(attribute.cell(value) for attribute, value in zip(self.attributes, record.values, strict=True))

    def join(self, boxes: Iterable[Box]) -> Box:
        """𝒢: the closest common generalization."""
        columns = zip(*boxes, strict=True)
        return tuple(attribute.join(column) for attribute, column in zip(self.attributes, columns, strict=True))

    def generalize(self, records: Iterable[Record]) -> Box:
        return self.join(map(self.box, records))

    def ncp(self, box: Box) -> Fraction:
        parts = zip(self.attributes, self.weights, box, strict=True)
        return sum((weight * attribute.share(cell) for attribute, weight, cell in parts), Fraction(0))

    def float_ncp(self, box: Box) -> float:
        """The same in floats, added in the order of the attributes: what δ is compared with."""
        total = 0.0
        for attribute, weight, cell in zip(self.attributes, self.weights, box, strict=True):
            total += float(weight) * attribute.float_share(cell)
        return total

    def labels(self, box: Box) -> tuple[Any, ...]:
        """As published: a label, or (lo, hi)."""
        pairs = zip(self.attributes, box, strict=True)
        return tuple(attribute.labels[cell] if isinstance(attribute, Category) else cell for attribute, cell in pairs)

    def covers(self, box: Box, values: Sequence[Any]) -> bool:
        return all(a.covers(cell, value) for a, cell, value in zip(self.attributes, box, values, strict=True))


@dataclass(frozen=True)
class Cluster:
    """Records in the order of their rids, and their generalized tuple."""

    records: tuple[Record, ...]
    box: Box

    @property
    def id(self) -> int:
        return self.records[0].rid

    @property
    def rids(self) -> tuple[int, ...]:
        return tuple(record.rid for record in self.records)

    def __len__(self) -> int:
        return len(self.records)


def make_cluster(records: Iterable[Record], schema: Schema) -> Cluster:
    members = tuple(sorted(records, key=lambda record: record.rid))
    return Cluster(members, schema.generalize(members))


def union(one: Cluster, other: Cluster, schema: Schema) -> Cluster:
    return make_cluster(one.records + other.records, schema)


def merged(clusters: Sequence[Cluster], one: Cluster, other: Cluster, schema: Schema) -> list[Cluster]:
    """The clusters after one merge, in the order of their ids."""
    rest = [cluster for cluster in clusters if cluster is not one and cluster is not other]
    return sorted([*rest, union(one, other, schema)], key=lambda cluster: cluster.id)


def merged_ncp(one: Cluster, other: Cluster, schema: Schema) -> Fraction:
    return schema.ncp(schema.join([one.box, other.box]))


def ncp_of_table(clusters: Sequence[Cluster], schema: Schema) -> Fraction:
    """Exactly."""
    total = sum((len(cluster) * schema.ncp(cluster.box) for cluster in clusters), Fraction(0))
    return total / sum(map(len, clusters))


def float_ncp_of_table(clusters: Sequence[Cluster], schema: Schema) -> float:
    """As it is compared with δ."""
    return fsum(len(cluster) * schema.float_ncp(cluster.box) for cluster in clusters) / sum(map(len, clusters))


# --- metrics §3.7: UL ----------------------------------------------------------------------------------------------------


def _loss(items: Iterable[GenItem], singleton: int = 0) -> int:
    return sum((2 ** len(item) - 1) * (singleton if len(item) == 1 else 1) for item in items)


def ul(items: Collection[GenItem], singleton: int = 0) -> Fraction:
    """Of a record; `singleton` is the weight of items that stand for themselves."""
    return Fraction(_loss(items, singleton), 2 ** sum(map(len, items)) - 1) if items else Fraction(0)


def ul_of_table(rows: Sequence[Collection[GenItem]], singleton: int = 0) -> Fraction:
    return sum((ul(items, singleton) for items in rows), Fraction(0)) / len(rows)


def log2_ul_dom(rows: Sequence[Collection[GenItem]], domain: int) -> float:
    """log2 of the mean UL_dom of the rows (of one row: of its own), −inf for no loss."""
    loss = Fraction(sum(map(_loss, rows)), len(rows) * (2**domain - 1))
    return log2(loss.numerator) - log2(loss.denominator) if loss else -inf


# --- §3.4: BTD -----------------------------------------------------------------------------------------------------------


def btd(one: Collection[str], other: Collection[str]) -> Fraction:
    a, b = set(one), set(other)
    return Fraction(len(a ^ b) + 1, len(a & b) + 1) * len(a | b)


def btd_of_cluster(records: Sequence[Record]) -> Fraction:
    """The largest over all pairs."""
    return max((btd(a.items, b.items) for a, b in combinations(records, 2)), default=Fraction(0))


# --- §2: supports and the 1/l condition ----------------------------------------------------------------------------------


def too_frequent(with_item: int, rows: int, l: Fraction | int | None) -> bool:  # noqa: E741 - the l of l-diversity
    """More than 1/l of the rows."""
    return l is not None and with_item * Fraction(l) > rows


def support(rows: Iterable[Published], itemset: Iterable[GenItem]) -> int:
    wanted = set(itemset)
    return sum(wanted <= row.items for row in rows)


def highest_count(rows: Iterable[Published], itemset: Iterable[GenItem] = ()) -> int:
    """Of the rows with the itemset, those with the most frequent sensitive item."""
    wanted = set(itemset)
    return max(Counter(s for row in rows if wanted <= row.items for s in row.sensitive).values(), default=0)


def holds(rows: Sequence[Published], itemset: Iterable[GenItem], k: int, l: Fraction | int | None) -> bool:  # noqa: E741
    count, wanted = support(rows, itemset), set(itemset)
    return count >= k and not too_frequent(highest_count(rows, wanted), count, l)


def occurring(rows: Iterable[Published], size: int) -> dict[ItemSet, list[Published]]:
    """The itemsets of this size that some row has, each with its rows."""
    found = defaultdict(list)
    for row in rows:
        for itemset in combinations(sorted(row.items), size):
            found[itemset].append(row)
    return found


def worst_set(
    rows: Sequence[Published],
    k: int,
    m: int,
    l: Fraction | int | None = None,  # noqa: E741
    left: Collection[ItemSet] = (),
) -> ItemSet | None:
    """J: of the smallest size that has a violating set the one with the least support, ties lexicographic.

    Asking again from size 1 after every change is what the l-variant needs; without l it finds nothing new there.
    """
    for size in range(1, m + 1):
        bad = [
            (len(having), itemset)
            for itemset, having in occurring(rows, size).items()
            if itemset not in left and (len(having) < k or too_frequent(highest_count(having), len(having), l))
        ]
        if bad:
            return min(bad)[1]
    return None


def mapped(records: Iterable[Record], image: Mapping[str, GenItem]) -> list[Published]:
    """The records with the images of their items; no relational values."""
    return [Published((), frozenset(image[item] for item in record.items), record.sensitive) for record in records]


# --- §3.3: SetGen --------------------------------------------------------------------------------------------------------


def set_gen(
    records: Sequence[Record],
    k: int,
    m: int,
    cost: str = "occurrences",
    l: Fraction | int | None = None,  # noqa: E741
) -> dict[str, GenItem]:
    """The image of every item of the cluster."""
    occurrences = Counter(item for record in records for item in record.items)
    image: dict[str, GenItem] = {item: (item,) for item in occurrences}

    def weight(item: GenItem) -> int:
        return len(item) * sum(occurrences[member] for member in item) if len(item) > 1 else 0

    def after(u: GenItem, v: GenItem) -> dict[str, GenItem]:
        both = tuple(sorted(u + v))
        return image | dict.fromkeys(both, both)

    def price(u: GenItem, v: GenItem) -> int:
        if cost == "occurrences":
            return weight(tuple(sorted(u + v))) - weight(u) - weight(v)
        if cost == "rarest":
            return sum(occurrences[member] for member in u + v)
        assert cost == "utility_loss"
        return ticks(sum((ul(row.items) for row in mapped(records, after(u, v))), Fraction(0)))

    while (bad := worst_set(mapped(records, image), k, m, l)) is not None:
        merges = [(u, v) for u in bad for v in set(image.values()) if v != u]
        if not merges:
            raise Impossible("one generalized item is left and still violates")
        image = after(*min(merges, key=lambda pair: (price(*pair), len(pair[0] + pair[1]), sorted(pair[0] + pair[1]))))
    return image


# --- §3.3: AA, VPA, LRA --------------------------------------------------------------------------------------------------


def aa(
    records: Sequence[Record],
    tree: Category,
    k: int,
    m: int,
    l: Fraction | int | None = None,  # noqa: E741
    start: Mapping[str, GenItem] | None = None,
    ceiling: Collection[str] | None = None,
) -> dict[str, GenItem]:
    """The cut: the image of every leaf. With a ceiling nothing rises above that node, and what still violates is left."""
    cut: dict[str, GenItem] = {leaf: (leaf,) for leaf in tree.leaves} | dict(start or {})
    occurrences = Counter(item for record in records for item in record.items)
    left = set[ItemSet]()

    def raises(member: GenItem) -> list[GenItem]:
        return [member, *(node for node in tree.ancestors(member) if ceiling is None or set(node) <= set(ceiling))]

    def after(targets: Iterable[GenItem]) -> dict[str, GenItem]:
        raised = dict(cut)
        for node in targets:
            for leaf in node:
                raised[leaf] = max(raised[leaf], node, key=len)  # both are above the leaf; never downwards
        return raised

    def order(bad: ItemSet, targets: ItemSet) -> tuple[int, int, list[GenItem]]:
        raised = after(targets)
        loss = sum(times * len(raised[item]) for item, times in occurrences.items() if len(raised[item]) > 1)
        chosen = [node for member, node in zip(bad, targets, strict=True) if node != member]
        return loss, len(chosen), sorted(set(chosen))

    while (bad := worst_set(mapped(records, cut), k, m, l, left)) is not None:
        kept = list[ItemSet]()
        for targets in product(*map(raises, bad)):
            raised = after(targets)
            if targets != bad and holds(mapped(records, raised), {raised[member[0]] for member in bad}, k, l):
                kept.append(targets)
        if kept:
            best = min(kept, key=lambda targets: order(bad, targets))
            cut = after(best)
        elif ceiling is not None:
            left.add(bad)
        else:
            raise Impossible("the root still violates")
    return cut


def vpa(
    records: Sequence[Record],
    tree: Category,
    k: int,
    m: int,
    l: Fraction | int | None = None,  # noqa: E741
) -> dict[str, GenItem]:
    """AA below every child of the root, then AA on everything from there."""
    cut = dict[str, GenItem]()
    for part in tree.children(frozenset(tree.leaves)):
        projection = [record._replace(items=record.items & part) for record in records]
        found = aa(projection, tree, k, m, l, ceiling=part)
        cut |= {leaf: found[leaf] for leaf in part}
    return aa(records, tree, k, m, l, start=cut)


def gray_rank(items: Collection[str], universe: Sequence[str]) -> int:
    """The rank of the bitmap read as a reflected Gray code, the first item of the universe as its highest bit."""
    rank, bit = 0, 0
    for item in universe:
        bit ^= item in items
        rank = 2 * rank + bit
    return rank


def lra_blocks(records: Sequence[Record], k: int, block: int | None = None) -> list[list[Record]]:
    """Consecutive rows of the Gray order; every block has ≥ k rows, of them none or ≥ k with items."""
    size = block if block is not None else max(1000, 4 * k)
    universe = sorted({item for record in records for item in record.items})
    rows = sorted(records, key=lambda record: (gray_rank(record.items, universe), record.rid))
    blocks = [rows[at : at + size] for at in range(0, len(rows), size)]

    def join(at: int) -> None:
        blocks[at : at + 2] = [blocks[at] + blocks[at + 1]]

    if len(blocks) > 1 and len(blocks[-1]) < k:
        join(len(blocks) - 2)
    while len(blocks) > 1 and (few := [at for at, rows in enumerate(blocks) if 0 < non_empty(rows) < k]):
        join(min(few[0], len(blocks) - 2))
    return blocks


def by_sets(k: int, m: int, cost: str = "occurrences", l: Fraction | int | None = None) -> Transform:  # noqa: E741
    """𝒯 = SetGen."""
    return lambda records: [row.items for row in mapped(records, set_gen(records, k, m, cost, l))]


def by_levels(
    tree: Category,
    k: int,
    m: int,
    l: Fraction | int | None = None,  # noqa: E741
    method: str = "apriori",
) -> Transform:
    """𝒯 = AA or VPA."""
    cut = {"apriori": aa, "vertical": vpa}[method]
    return lambda records: [row.items for row in mapped(records, cut(records, tree, k, m, l))]


def by_blocks(inner: Transform, k: int, block: int | None = None) -> Transform:
    """𝒯 = LRA: the inner one in every block."""

    def transform(records: Sequence[Record]) -> list[frozenset[GenItem]]:
        found = dict[int, frozenset[GenItem]]()
        for rows in lra_blocks(records, k, block):
            found |= zip((record.rid for record in rows), inner(rows), strict=True)
        return [found[record.rid] for record in records]

    return transform


# --- §3.2: CLUSTER and R-10 ------------------------------------------------------------------------------------------------


def cluster(records: Sequence[Record], schema: Schema, k: int, draw: Draw) -> list[Cluster]:
    """⌊n/k⌋ clusters, not yet united and not repaired; `draw(n)` picks the seed among the n left, in the order of rids."""
    if len(records) < k:
        raise Impossible("fewer than k records")
    remaining = sorted(records, key=lambda record: record.rid)
    found = list[Cluster]()
    while len(remaining) >= k:
        seed = remaining.pop(draw(len(remaining)))

        def distance(record: Record, seed: Record = seed) -> tuple[int, int]:
            return ticks(schema.ncp(schema.generalize([seed, record]))), record.rid

        nearest = sorted(remaining, key=distance)[: k - 1]
        found.append(make_cluster([seed, *nearest], schema))
        remaining = [record for record in remaining if record not in nearest]
    for record in remaining:
        alone = make_cluster([record], schema)
        home = min(found, key=lambda near: (ticks(merged_ncp(near, alone, schema)), near.id))
        found = merged([*found, alone], home, alone, schema)
    return sorted(found, key=lambda cluster: cluster.id)


def unite(clusters: Iterable[Cluster], schema: Schema) -> list[Cluster]:
    """One cluster per generalized tuple."""
    same = defaultdict[Box, list[Record]](list)
    for found in clusters:
        same[found.box].extend(found.records)
    return sorted((make_cluster(records, schema) for records in same.values()), key=lambda cluster: cluster.id)


def cuts(records: Sequence[Record], schema: Schema, at: int, k: int) -> Iterator[tuple[list[Record], list[Record]]]:
    """The allowed cut of a block on one attribute, if there is any."""
    attribute = schema.attributes[at]
    values = [record.values[at] for record in records]
    if isinstance(attribute, Category):
        runs: list[Collection[Any]] = list(attribute.children(attribute.cover(values)))
    else:
        runs = [{value} for value in sorted(set(values))]
    ways = list[tuple[int, int, list[Record], list[Record]]]()
    for end in range(1, len(runs)):
        low = set(chain.from_iterable(runs[:end]))
        left = [record for record in records if record.values[at] in low]
        right = [record for record in records if record.values[at] not in low]
        if min(len(left), len(right)) >= 2 * k:
            ways.append((abs(2 * len(left) - len(records)), len(left), left, right))
    if ways:
        _, _, left, right = min(ways, key=lambda way: way[:2])
        yield left, right


def relational_blocks(records: Sequence[Record], schema: Schema, k: int, most: int = 5000) -> list[list[Record]]:
    """R-10: blocks of at most `most` records where an allowed cut exists."""
    if len(records) <= most:
        return [list(records)]
    halves = [half for at in range(len(schema.attributes)) for half in cuts(records, schema, at, k)]
    if not halves:
        return [list(records)]

    def loss(half: tuple[list[Record], list[Record]]) -> int:
        return ticks(ncp_of_table([make_cluster(side, schema) for side in half], schema))

    return [block for side in min(halves, key=loss) for block in relational_blocks(side, schema, k, most)]


# --- R-3 and R-4 -----------------------------------------------------------------------------------------------------------


def non_empty(records: Iterable[Record]) -> int:
    return sum(bool(record.items) for record in records)


def repair_empty(clusters: Sequence[Cluster], schema: Schema, k: int) -> list[Cluster]:
    """R-3: afterwards every cluster has none or ≥ k records with items."""
    if 0 < sum(non_empty(found.records) for found in clusters) < k:
        raise Impossible("fewer than k records have items")
    found = sorted(clusters, key=lambda cluster: cluster.id)
    while few := [one for one in found if 0 < non_empty(one.records) < k]:
        one = few[0]
        others = [other for other in found if other is not one]
        near = min(others, key=lambda other: (ticks(merged_ncp(one, other, schema)), other.id))
        found = merged(found, one, near, schema)
    return found


def excess(records: Sequence[Record], l: Fraction | int) -> Fraction:  # noqa: E741
    """By how many records the most frequent sensitive item exceeds 1/l, of all records or of those with items."""
    worst = Fraction(0)
    for rows in (records, [record for record in records if record.items]):
        counts = Counter(s for record in rows for s in record.sensitive)
        worst = max(worst, max(counts.values(), default=0) - len(rows) / Fraction(l))
    return worst


def eligible(records: Sequence[Record], l: Fraction | int) -> bool:  # noqa: E741
    return excess(records, l) == 0


def repair_eligible(clusters: Sequence[Cluster], schema: Schema, l: Fraction | int) -> list[Cluster]:  # noqa: E741
    """R-4: afterwards every cluster is l-eligible."""
    if not eligible([record for found in clusters for record in found.records], l):
        raise Impossible("the table is not l-eligible")
    found = sorted(clusters, key=lambda cluster: cluster.id)
    while bad := [one for one in found if not eligible(one.records, l)]:
        one = bad[0]

        def order(other: Cluster, one: Cluster = one) -> tuple[Fraction, int, int]:
            return excess(one.records + other.records, l), ticks(merged_ncp(one, other, schema)), other.id

        found = merged(found, one, min((other for other in found if other is not one), key=order), schema)
    return found


def initial_clusters(
    blocks: Sequence[Sequence[Record]],
    schema: Schema,
    k: int,
    draws: Sequence[Draw],
    l: Fraction | int | None = None,  # noqa: E741
) -> list[Cluster]:
    """CLUSTER in every block with its own draws, united and repaired over the whole table."""
    found = [one for block, draw in zip(blocks, draws, strict=True) for one in cluster(block, schema, k, draw)]
    found = repair_empty(unite(found, schema), schema, k)
    return found if l is None else repair_eligible(found, schema, l)


# --- §4: merging -------------------------------------------------------------------------------------------------------------

Distance = Callable[[Sequence[Record]], Fraction | int]


def ul_distance(transform: Transform) -> Distance:
    """distance = "utility_loss": UL of 𝒯 of the union."""
    return lambda records: ticks(ul_of_table(transform(records)))


def seeds(clusters: Iterable[Cluster], schema: Schema) -> list[Cluster]:
    """The seed first, then those that exhaustive_seeds tries after it."""
    return sorted(clusters, key=lambda cluster: (ticks(schema.ncp(cluster.box)), len(cluster), cluster.id))


def merge_order(
    seed: Cluster, clusters: Iterable[Cluster], schema: Schema, merge: str, distance: Distance = btd_of_cluster
) -> list[Cluster]:
    """The other clusters in the order in which they are tried (merge "relational": only the first of them)."""
    others = [other for other in clusters if other is not seed]
    loss = {other.id: (ticks(merged_ncp(seed, other, schema)), other.id) for other in others}
    by_relation = sorted(others, key=lambda other: loss[other.id])
    if merge == "relational":
        return by_relation
    by_items = sorted(others, key=lambda other: (distance(seed.records + other.records), *loss[other.id]))
    if merge == "items":
        return by_items
    assert merge == "both"
    u = {other.id: at for at, other in enumerate(by_relation, start=1)}
    v = {other.id: at for at, other in enumerate(by_items, start=1)}
    return sorted(others, key=lambda other: (u[other.id] + v[other.id], u[other.id]))


def rmerge(
    clusters: Sequence[Cluster],
    schema: Schema,
    delta: float,
    merge: str = "relational",
    distance: Distance = btd_of_cluster,
    exhaustive_seeds: bool = False,
) -> list[Cluster]:
    """Merge while NCP(D) ≤ δ."""
    found = sorted(clusters, key=lambda cluster: cluster.id)

    def step() -> list[Cluster] | None:
        for seed in seeds(found, schema)[: None if exhaustive_seeds else 1]:
            order = merge_order(seed, found, schema, merge, distance)
            for other in order[:1] if merge == "relational" else order:
                after = merged(found, seed, other, schema)
                if float_ncp_of_table(after, schema) <= delta:
                    return after
        return None

    while after := step():
        found = after
    return found


def tmerge(
    clusters: Sequence[Cluster],
    schema: Schema,
    delta: float,
    transform: Transform,
    merge: str = "relational",
    distance: Distance = btd_of_cluster,
) -> list[list[Cluster]]:
    """The clusters at the start and after every merge, up to the first with UL ≤ δ or to one cluster."""
    steps = [sorted(clusters, key=lambda cluster: cluster.id)]
    while float(ul_of_clusters(steps[-1], transform)) > delta and len(steps[-1]) > 1:
        seed = seeds(steps[-1], schema)[0]
        first = merge_order(seed, steps[-1], schema, merge, distance)[0]
        steps.append(merged(steps[-1], seed, first, schema))
    return steps


def shares_of_delta(blocks: Sequence[Sequence[Cluster]], schema: Schema, delta: Fraction) -> list[Fraction]:
    """R-13: the bound of every super-block; Σ n_b·δ_b = n·δ."""
    before = ncp_of_table([one for block in blocks for one in block], schema)
    own = [ncp_of_table(block, schema) for block in blocks]
    return own if before == 1 else [ncp + (1 - ncp) * (delta - before) / (1 - before) for ncp in own]


def rmerge_in_blocks(
    blocks: Sequence[Sequence[Cluster]],
    schema: Schema,
    delta: float,
    merge: str = "relational",
    distance: Distance = btd_of_cluster,
) -> list[Cluster]:
    """R-13: RMERGE in every super-block with its share of δ, then the plain loop over what is left."""
    shares = shares_of_delta(blocks, schema, Fraction(delta))
    pairs = zip(blocks, shares, strict=True)
    inside = [one for block, share in pairs for one in rmerge(block, schema, float(share), merge, distance)]
    return rmerge(inside, schema, delta, merge, distance)


def move_initial(parts: list[list[Cluster]], schema: Schema) -> bool:
    """R-15: initial clusters, by id, go where Σ records · NCP falls most, until none does. parts: changed, by id of the first."""

    def cost(part: Sequence[Cluster]) -> int:
        return sum(map(len, part)) * ticks(schema.ncp(schema.join([one.box for one in part]))) if part else 0

    once = False
    for _ in range(20):
        again = False
        for one in sorted((one for part in parts for one in part), key=lambda cluster: cluster.id):
            home = next(part for part in parts if one in part)
            rest = [other for other in home if other is not one]
            if not rest:
                continue
            paid = [(cost([*part, one]) - cost(part), at) for at, part in enumerate(parts) if part is not home]
            if not paid:
                continue
            least, at = min(paid)
            records = sum(map(len, home)) + sum(map(len, parts[at])) + len(one)
            if cost(home) - cost(rest) - least > 2 * records:
                home.remove(one)
                parts[at].append(one)
                once = again = True
        if not again:
            break
    return once


def refined(
    initial: Sequence[Cluster], found: Sequence[Cluster], schema: Schema, delta: float, exhaustive_seeds: bool = False
) -> list[Cluster]:
    """R-15: moves and further merging in turns, six times at most."""
    current = list(found)
    for _ in range(6):
        current.sort(key=lambda cluster: cluster.id)
        parts = [[one for one in initial if set(one.records) <= set(cluster.records)] for cluster in current]
        if not move_initial(parts, schema):
            break
        moved = [make_cluster([record for one in part for record in one.records], schema) for part in parts]
        current = rmerge(moved, schema, delta, exhaustive_seeds=exhaustive_seeds)
    return current


# --- §4: frameworks and baselines ---------------------------------------------------------------------------------------------


def ul_of_clusters(clusters: Iterable[Cluster], transform: Transform) -> Fraction:
    return ul_of_table([items for found in clusters for items in transform(found.records)])


def publish(clusters: Iterable[Cluster], transform: Transform) -> dict[int, Published]:
    """rid → published row."""
    rows = dict[int, Published]()
    for found in clusters:
        for record, items in zip(found.records, transform(found.records), strict=True):
            rows[record.rid] = Published(found.box, items, record.sensitive)
    return dict(sorted(rows.items()))


@dataclass(frozen=True)
class Result:
    """A release, or the reason why there is none with the least loss that was seen."""

    clusters: list[Cluster]
    published: dict[int, Published] | None
    initial: Fraction  # loss of the initial clusters: NCP of Rum-bound, UL of Tum-bound
    least: Fraction
    infeasible: str | None = None
    losses: tuple[Fraction, ...] = ()  # Tum-bound: UL at the start and after every merge


def rum_bound(
    initial: Sequence[Cluster],
    schema: Schema,
    delta: float,
    transform: Transform,
    merge: str = "relational",
    distance: Distance = btd_of_cluster,
    exhaustive_seeds: bool = False,
    moves: bool = False,
) -> Result:
    """From the initial clusters (CLUSTER and REPAIR)."""
    before = ncp_of_table(initial, schema)
    if float_ncp_of_table(initial, schema) > delta:
        return Result(list(initial), None, before, before, "initial NCP")
    found = rmerge(initial, schema, delta, merge, distance, exhaustive_seeds)
    if moves:
        found = refined(initial, found, schema, delta, exhaustive_seeds)
    return Result(found, publish(found, transform), before, before)


def tum_bound(
    initial: Sequence[Cluster],
    schema: Schema,
    delta: float,
    transform: Transform,
    merge: str = "relational",
    distance: Distance = btd_of_cluster,
) -> Result:
    """From the initial clusters (CLUSTER and REPAIR)."""
    steps = tmerge(initial, schema, delta, transform, merge, distance)
    losses = tuple(ul_of_clusters(step, transform) for step in steps)
    if float(losses[-1]) > delta:
        return Result(steps[-1], None, losses[0], min(losses), "UL", losses)
    return Result(steps[-1], publish(steps[-1], transform), losses[0], min(losses), losses=losses)


def rfirst(initial: Sequence[Cluster], transform: Transform) -> dict[int, Published]:
    return publish(initial, transform)


def tfirst(
    records: Sequence[Record], schema: Schema, k: int, transform: Transform, block: int | None = None
) -> dict[int, Published]:
    if len(records) < k:
        raise Impossible("fewer than k records")
    return publish([make_cluster(rows, schema) for rows in lra_blocks(records, k, block)], transform)


# --- §2: verification, over all itemsets ------------------------------------------------------------------------------------


def classes(rows: Iterable[Published]) -> dict[Box, list[Published]]:
    found = defaultdict(list)
    for row in rows:
        found[row.cells].append(row)
    return found


def itemsets(rows: Sequence[Published], m: int) -> Iterator[tuple[ItemSet, list[Published]]]:
    """Every occurring set of at most m generalized items, the empty one too, with the rows that have it."""
    for size in range(m + 1):
        yield from occurring(rows, size).items()


def verify_kkm(rows: Iterable[Published], k: int, m: int) -> set[tuple[Box, ItemSet]]:
    """Class and itemset of every violation; the empty itemset for a class below k."""
    return {
        (cells, itemset)
        for cells, members in classes(rows).items()
        for itemset, having in itemsets(members, m)
        if len(having) < k
    }


def verify_klm(rows: Iterable[Published], k: int, l: Fraction | int, m: int) -> set[tuple[Box, ItemSet]]:  # noqa: E741
    """The same with the itemsets among whose rows a sensitive item is too frequent."""
    return {
        (cells, itemset)
        for cells, members in classes(rows).items()
        for itemset, having in itemsets(members, m)
        if len(having) < k or too_frequent(highest_count(having), len(having), l)
    }


def highest_sensitive_share(rows: Iterable[Published], m: int) -> Fraction:
    """The highest P(sensitive item | class, at most m items)."""
    return max(
        Fraction(highest_count(having), len(having))
        for members in classes(rows).values()
        for _, having in itemsets(members, m)
    )


def verify_original(
    records: Iterable[Record], rows: Sequence[Published], schema: Schema, k: int, m: int
) -> set[tuple[int, tuple[str, ...]]]:
    """rid and known items of every original that fewer than k published rows may stand for."""
    bad = set[tuple[int, tuple[str, ...]]]()
    for record in records:
        near = [row for row in rows if schema.covers(row.cells, record.values)]
        for size in range(m + 1):
            for known in combinations(sorted(record.items), size):
                if sum(all(any(item in u for u in row.items) for item in known) for row in near) < k:
                    bad.add((record.rid, known))
    return bad


# --- metrics §4.3: ARE --------------------------------------------------------------------------------------------------------


class Query(NamedTuple):
    values: Mapping[int, Any]  # attribute → value
    items: frozenset[str]


def actual(records: Iterable[Record], query: Query) -> int:
    return sum(
        query.items <= record.items and all(record.values[at] == value for at, value in query.values.items())
        for record in records
    )


def item_probability(items: Iterable[GenItem], asked: Collection[str], mode: str = "sets") -> Fraction:
    """p_Y of a row."""
    found, covered = Fraction(1), 0
    for item in items:
        q = len(set(item) & set(asked))
        covered += q
        if q and mode == "sets":
            found *= Fraction(2 ** (len(item) - q), 2 ** len(item) - 1)
        elif q:
            found *= Fraction(1, len(item)) ** q
    return found if covered == len(asked) else Fraction(0)


def estimate(
    rows: Iterable[Published], query: Query, schema: Schema, columns: Mapping[int, Collection[Any]], mode: str = "sets"
) -> Fraction:
    """`columns`: the distinct original values of the asked numeric attributes."""
    total = Fraction(0)
    for row in rows:
        found = item_probability(row.items, query.items, mode)
        for at, value in query.values.items():
            attribute, cell = schema.attributes[at], row.cells[at]
            if not attribute.covers(cell, value):
                found = Fraction(0)
            elif isinstance(attribute, Category):
                found /= len(cell)
            else:
                found /= sum(attribute.covers(cell, other) for other in columns[at])
        total += found
    return total


def are(
    records: Sequence[Record],
    rows: Sequence[Published],
    queries: Iterable[Query],
    schema: Schema,
    mode: str = "sets",
) -> Fraction:
    """The mean relative error over the queries that some record answers; mode "sets" or "uniform"."""
    columns = {at: {record.values[at] for record in records} for at in range(len(schema.attributes))}
    errors = list[Fraction]()
    for query in queries:
        if act := actual(records, query):
            errors.append(abs(act - estimate(rows, query, schema, columns, mode)) / act)
    return sum(errors, Fraction(0)) / len(errors)
