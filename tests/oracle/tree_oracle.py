"""Brute force for the family tree: cuts, projection, disassociation, checks, searches and metrics, as the rules stand.

Written from the specification alone and slow on purpose: it shares nothing with the package. A tree is the prefix-closed
set of its root label paths, a path a tuple of labels; a relation is a pair (a, b) of labels, a above b on some path. A cut
is the tuple of its labels in code-point order. Costs are exact fractions; where they are compared they are rounded to 12
significant digits first (`rank`). Records are lists; the id of a record is its place.

Where the text leaves a choice, this file takes:
- a leaf of a nested hierarchy that lies higher than others is repeated at the bottom of its level table; `Dgh.of_tables`
  takes any other padding;
- sensitive values at the cut {*}: each path becomes `*` followed by its sensitive labels, so every record holds `*`;
- a cut that fails only 1/l is costed and takes its place among the first g (or in the beam) but is never the best;
- `queue_limit`: after each push the cheapest entries stay; `max_cuts`: the cuts a pop evaluates are cut off at the limit,
  `stopped` says that some were left out or the queue was not empty;
- beam: a cut reached from several parents keeps the closed values of all of them, and a cut that failed closes its value
  for every parent. Closed values change how many cuts are evaluated, never the result;
- the attacker of §2(a): for a K with several relations in SD all of them must be seen; relations outside SD are ignored;
- `¬X` is a label like others in "sorted", so by code point it stands behind ASCII labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, combinations, count, pairwise, product
from math import inf, prod
from typing import Any, NamedTuple

Path = tuple[str, ...]
Tree = frozenset[Path]
Relation = tuple[str, str]
Cut = tuple[str, ...]
Nested = Mapping[str, Any] | Sequence[str]  # a node's children: inner nodes and leaves, or leaves alone
STAR, NOT = "*", "¬"


class Infeasible(ValueError):
    """No cut has the guarantee, or the input is no collection of trees."""


class Knowledge(NamedTuple):
    """What an attacker knows: labels and relations between them, both sorted."""

    labels: tuple[str, ...]
    relations: tuple[Relation, ...] = ()


def exact(number: float | Fraction) -> Fraction:
    """0.01 as 1/100."""
    return Fraction(str(number))


# --- §1: trees -------------------------------------------------------------------------------------------------------


def closure(paths: Iterable[Path]) -> Tree:
    """All prefixes of the paths but the empty one."""
    return frozenset(path[:end] for path in paths for end in range(1, len(path) + 1))


def tree(text: str) -> Tree:
    """`a→b→c, a→d` as a tree."""
    return closure(tuple(label.strip() for label in path.split("→")) for path in text.split(","))


def leaf_paths(one: Tree) -> list[Path]:
    """The paths no other path continues, sorted."""
    inner = {path[:-1] for path in one}
    return sorted(path for path in one if path not in inner)


def items(one: Tree) -> frozenset[str]:
    return frozenset(chain.from_iterable(one))


def relations(one: Tree) -> frozenset[Relation]:
    """(a, b) for every a above b on some path."""
    return frozenset(pair for path in one for pair in combinations(path, 2))


# --- metrics §1.2, §3: the hierarchies and their cuts ----------------------------------------------------------------


class Dgh:
    """One hierarchy per node type under the common root `*`; node types in the given order; sensitive ones are in no cut."""

    def __init__(self, node_types: Mapping[str, Nested], sensitive: Collection[str] = ()) -> None:
        self._read({name: _level_table(name, below) for name, below in node_types.items()}, sensitive)

    @classmethod
    def of_tables(cls, tables: Mapping[str, Sequence[Sequence[str]]], sensitive: Collection[str] = ()) -> Dgh:
        """From rows (value, g1, …) per node type, that of its root as last entry or `*` in its place."""
        made = cls.__new__(cls)
        made._read({name: [(*row[:-1], name) for row in rows] for name, rows in tables.items()}, sensitive)
        return made

    def _read(self, tables: Mapping[str, Sequence[Path]], sensitive: Collection[str]) -> None:
        self.tables = tables
        self.sensitive = frozenset(sensitive)
        self.parent: dict[str, str] = {}
        self.level: dict[str, int] = {}
        self.type_of: dict[str, str] = {}
        for name, rows in tables.items():
            assert len({len(row) for row in rows}) == 1, "a level table is a rectangle"
            for row in rows:
                for level, (label, above) in enumerate(pairwise((*row, STAR))):
                    assert label != STAR and not label.startswith(NOT), "reserved"
                    assert self.type_of.setdefault(label, name) == name, f"{label} is in two node types"
                    self.level[label] = min(level, self.level.get(label, level))
                    if above != label:  # else padding
                        assert self.parent.setdefault(label, above) == above, f"{label} has two parents"
        self.children: dict[str, list[str]] = {STAR: [], **{label: [] for label in self.parent}}
        for label, above in self.parent.items():
            self.children[above].append(label)
        self.height = 1 + max(len(rows[0]) - 1 for rows in tables.values())
        self.level[STAR] = self.height

    @cached_property
    def secret(self) -> frozenset[str]:
        """All labels of sensitive node types."""
        return frozenset(label for label, name in self.type_of.items() if name in self.sensitive)

    def below(self, node: str) -> list[str]:
        """The node and all nodes below it, preorder."""
        return [node, *chain.from_iterable(map(self.below, self.children[node]))]

    def leaves(self, node: str) -> list[str]:
        return [one for one in self.below(node) if not self.children[one]]

    def at_level(self, label: str, level: int) -> str:
        """The label's ancestor on a level; what is above the level stays, and the root of a type up to the level below `*`."""
        if level >= self.height:
            return STAR
        if label == STAR or self.level[label] > level:
            return label
        rows = self.tables[self.type_of[label]]
        (found,) = {row[min(level, len(row) - 1)] for row in rows if label in row}
        return found

    def count(self, label: str, level_count: str = "class") -> int:
        """|C(u)|."""
        if label == STAR:
            return 1
        if level_count == "global":
            return sum(level == self.level[label] for node, level in self.level.items() if node != STAR)
        return len({row[self.level[label]] for row in self.tables[self.type_of[label]]})

    # cuts

    def specialize(self, cut: Cut, node: str) -> Cut:
        """The cut with one of its nodes replaced by its children."""
        below = [child for child in self.children[node] if self.type_of[child] not in self.sensitive]
        return tuple(sorted({*cut, *below} - {node}))

    def cuts(self) -> list[Cut]:
        """All cuts, from the recursive definition."""

        def of(node: str) -> Iterator[Path]:
            yield (node,)
            below = [child for child in self.children[node] if self.type_of[child] not in self.sensitive]
            if below:
                yield from (tuple(chain.from_iterable(parts)) for parts in product(*map(list, map(of, below))))

        return [tuple(sorted(cut)) for cut in of(STAR)]

    def number_of_cuts(self, node: str = STAR) -> int:
        below = [child for child in self.children[node] if self.type_of[child] not in self.sensitive]
        return 1 + prod(map(self.number_of_cuts, below)) if below else 1

    def specializations(self, cut: Cut, closed: Collection[str] = ()) -> list[tuple[str, Cut]]:
        """(value, kid) for the values of a cut that can be specialized and are not closed, in the order of the cut."""
        return [(value, self.specialize(cut, value)) for value in cut if value not in closed and self.children[value]]

    def closed_enumeration(self, cut: Cut = (STAR,), closed: frozenset[str] = frozenset()) -> Iterator[Cut]:
        """Every cut once: the kid of v_i never specializes what was closed before or v_1 … v_{i−1}."""
        yield cut
        for value, kid in self.specializations(cut, closed):
            yield from self.closed_enumeration(kid, closed)
            closed = closed | {value}

    @cache  # noqa: B019
    def image(self, cut: Cut) -> Mapping[str, str]:
        """Label → the cut's node at or above it, for the labels that have one; sensitive labels stay."""
        found = {label: label for label in self.secret}
        for node in cut:
            for label in self.below(node):
                if label not in self.secret:
                    assert label not in found, f"{label} is covered twice"
                    found[label] = node
        assert all(leaf in found for leaf in self.leaves(STAR)), "a leaf is not covered"
        return found


def _level_table(name: str, below: Nested) -> list[Path]:
    def chains(node: str, children: Nested) -> Iterator[Path]:
        if not children:
            yield (node,)
        for child in children:
            deeper = children[child] if isinstance(children, Mapping) else ()
            yield from ((*found, node) for found in chains(child, deeper))

    rows = list(chains(name, below))
    height = max(map(len, rows))
    return [(row[0],) * (height - len(row)) + row for row in rows]


def key(cut: Cut) -> tuple[int, Cut]:
    """The canonical key: of equally cheap cuts the most general, then the first by labels."""
    return len(cut), cut


def project(one: Tree, cut: Cut, dgh: Dgh) -> Tree:
    """Labels to cut nodes, equal paths united; T-3: for {*} the single path `*`, before sensitive labels."""
    if cut == (STAR,):
        return closure((STAR, *(label for label in path if label in dgh.secret)) for path in one)
    image = dgh.image(cut)
    return frozenset(tuple(image[label] for label in path) for path in one)


def project_level(one: Tree, level: int, dgh: Dgh) -> Tree:
    """Labels to their ancestors on a level; labels above it stay (metrics §5.3)."""
    return frozenset(tuple(dgh.at_level(label, level) for label in path) for path in one)


# --- §4: disassociation ----------------------------------------------------------------------------------------------


def dis(one: Tree, a: str, b: str) -> Tree:
    """b leaves the paths where it is below a and becomes a leaf beside a."""
    moved: set[Path] = set()
    for path in one:
        if a in path and b in path and path.index(a) < path.index(b):
            moved.add(tuple(label for label in path if label != b))
            moved.add((*path[: path.index(a)], b))
        else:
            moved.add(path)
    return closure(moved)


def disassociate(records: Iterable[Tree], sd: Iterable[Relation]) -> list[Tree]:
    """The disassociations in their order, each on all records."""
    found = list(records)
    for a, b in sd:
        found = [dis(one, a, b) for one in found]
    return found


def synopsis(records: Iterable[Tree]) -> dict[Path, set[int]]:
    """Path → ids of the records that have it."""
    found: dict[Path, set[int]] = defaultdict(set)
    for rid, one in enumerate(records):
        for path in one:
            found[path].add(rid)
    return dict(found)


def id_lists(records: Iterable[Tree]) -> dict[str, set[int]]:
    """Label → ids of the records that have it."""
    found: dict[str, set[int]] = defaultdict(set)
    for rid, one in enumerate(records):
        for label in items(one):
            found[label].add(rid)
    return dict(found)


# --- §2: knowledge and guarantees ------------------------------------------------------------------------------------


def matches(one: Tree, known: Knowledge) -> bool:
    return items(one).issuperset(known.labels) and relations(one).issuperset(known.relations)


def sup(records: Iterable[Tree], labels: Iterable[str], pairs: Iterable[Relation] = ()) -> int:
    known = Knowledge(tuple(labels), tuple(pairs))
    return sum(matches(one, known) for one in records)


def knowledge(one: Tree, m: int, n: int, secret: Collection[str] = ()) -> Iterator[Knowledge]:
    """Every K with 1 … m labels and 0 … n relations that the tree matches; secret labels are never known."""
    found = relations(one)
    for size in range(1, m + 1):
        for labels in combinations(sorted(items(one) - set(secret)), size):
            inside = sorted((a, b) for a, b in found if a in labels and b in labels)
            for number in range(n + 1):
                for pairs in combinations(inside, number):
                    yield Knowledge(labels, pairs)


def supports(records: Iterable[Tree], m: int, n: int, secret: Collection[str] = ()) -> Counter[Knowledge]:
    """sup(K) of every K that some record matches."""
    return Counter(chain.from_iterable(knowledge(one, m, n, secret) for one in records))


def verify_kmn(records: Iterable[Tree], k: int, m: int, n: int, secret: Collection[str] = ()) -> dict[Knowledge, int]:
    """K → support, for every K with 0 < support < k. The guarantee holds iff there is none."""
    return {known: support for known, support in sorted(supports(records, m, n, secret).items()) if support < k}


def verify_diversity(
    records: Sequence[Tree],
    l: float | Fraction,  # noqa: E741
    m: int,
    n: int,
    secret: Collection[str],
) -> dict[tuple[Knowledge, str], tuple[int, int]]:
    """(K, s) → (records of K with s, sup(K)), for every K, also the empty one, where s is in more than sup(K)/l of them."""
    found: dict[tuple[Knowledge, str], tuple[int, int]] = {}
    for known in sorted({Knowledge(()), *supports(records, m, n, secret)}):
        group = [one for one in records if matches(one, known)]
        for value, times in sorted(Counter(chain.from_iterable(items(one) & set(secret) for one in group)).items()):
            if times * exact(l) > len(group):
                found[known, value] = times, len(group)
    return found


def translate(known: Knowledge, cut: Cut, sd: Collection[Relation], dgh: Dgh) -> Knowledge:
    """Original knowledge on the release: labels by the cut, relations without those of SD."""
    image = dgh.image(cut)
    pairs = {(image[a], image[b]) for a, b in known.relations}
    return Knowledge(tuple(sorted({image[label] for label in known.labels})), tuple(sorted(pairs - set(sd))))


def verify_original(
    originals: Sequence[Tree],
    published: Sequence[Tree],
    cut: Cut,
    sd: Sequence[Relation],
    k: int,
    m: int,
    n: int,
    dgh: Dgh,
) -> list[str]:
    """What is wrong with a release beside its originals, records in the same order; at {*} relations are all gone."""
    found: list[str] = []
    image = dgh.image(cut)
    for rid, (one, shown) in enumerate(zip(originals, published, strict=True)):
        wanted = {image[label] for label in items(one)} | ({STAR} if cut == (STAR,) else set())
        if items(shown) != wanted:
            found.append(f"items of {rid}")
        if cut != (STAR,) and not relations(shown) <= {(image[a], image[b]) for a, b in relations(one)}:
            found.append(f"relations of {rid}")
        if relations(shown) & set(sd):
            found.append(f"SD in {rid}")
        for known in knowledge(one, m, n, dgh.secret):
            seen = translate(known, cut, sd, dgh)
            support = sum(matches(other, seen) for other in published)
            if 0 < support < k:
                found.append(f"K of {rid}: {known} has {support}")
    return found


def structure_aware(
    originals: Iterable[Tree],
    published: Sequence[Tree],
    cut: Cut,
    sd: Collection[Relation],
    m: int,
    n: int,
    dgh: Dgh,
) -> dict[Knowledge, int]:
    """§2(a): original K with a relation in SD → published records with V and b below no label of type(a)."""
    image = dgh.image(cut)
    found: dict[Knowledge, int] = {}
    for known in sorted(set(chain.from_iterable(knowledge(one, m, n, dgh.secret) for one in originals))):
        cut_off = [(image[a], image[b]) for a, b in known.relations if (image[a], image[b]) in sd]
        if cut_off:
            labels = {image[label] for label in known.labels}
            found[known] = sum(
                items(shown) >= labels and all(_outside(shown, dgh.type_of[a], b, dgh) for a, b in cut_off)
                for shown in published
            )
    return found


def _outside(shown: Tree, name: str, label: str, dgh: Dgh) -> bool:
    return any(path[-1] == label and all(dgh.type_of[above] != name for above in path[:-1]) for path in shown)


# --- §8, T-9: negations ----------------------------------------------------------------------------------------------


def is_active(node: str, cut: Cut, dgh: Dgh) -> bool:
    """Whether the absence of a node is visible at a cut: the node, or nodes below it, are in the cut."""
    return not set(cut).isdisjoint(dgh.below(node))


def is_absent(one: Tree, node: str, dgh: Dgh) -> bool:
    return items(one).isdisjoint(dgh.below(node))


def with_negations(records: Iterable[Tree], cut: Cut, negations: Collection[str], dgh: Dgh) -> list[Tree]:
    """For checking only: each projected record with a root label ¬X for every active X that it has nothing of."""
    active = [node for node in negations if is_active(node, cut, dgh)]
    return [one | {(NOT + node,) for node in active if is_absent(one, node, dgh)} for one in records]


# --- §6: checks ------------------------------------------------------------------------------------------------------


def value_violations(
    records: Sequence[Tree], k: int, m: int, secret: Collection[str] = ()
) -> dict[tuple[str, ...], int]:
    """ValueCheck: V → |∩ L[v]|, for the sets of at most m labels where this is between 0 and k, both ends excluded."""
    lists = {label: ids for label, ids in id_lists(records).items() if label not in secret}
    found = {}
    for size in range(1, m + 1):
        for labels in combinations(sorted(lists), size):
            common = len(set.intersection(*(lists[label] for label in labels)))
            if 0 < common < k:
                found[labels] = common
    return found


@dataclass
class Structure:
    """The records while FixStructure works on them, with what a StructureCheck looks up."""

    records: list[Tree]
    k: int
    l: Fraction | None = None  # noqa: E741
    secret: frozenset[str] = frozenset()
    printed_check: bool = False  # T-4: start from all ids, so labels outside relations are ignored
    sd: list[Relation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lists = id_lists(self.records)
        self.labels = sorted(set(self.lists) - self.secret)
        self._refresh()

    def _refresh(self) -> None:
        self.pairs: dict[Relation, set[int]] = defaultdict(set)
        for rid, one in enumerate(self.records):
            for a, b in relations(one):
                if a not in self.secret and b not in self.secret:
                    self.pairs[a, b].add(rid)

    def disassociate(self, pair: Relation) -> None:
        self.records = disassociate(self.records, [pair])
        self.sd.append(pair)
        self._refresh()

    def inside(self, labels: Collection[str]) -> list[Relation]:
        """The existing relations between the labels, sorted."""
        return sorted((a, b) for a, b in self.pairs if a in labels and b in labels)

    def violates(self, labels: Iterable[str], pairs: Iterable[Relation]) -> bool:
        """StructureCheck fails: too few records, or a sensitive value in too many of them."""
        ids = set(range(len(self.records)))
        if not self.printed_check:
            ids = ids.intersection(*(self.lists[label] for label in labels))
        ids = ids.intersection(*(self.pairs.get(pair, set()) for pair in pairs))
        if self.l is not None and ids:
            times = [len(ids & self.lists[value]) for value in self.secret if value in self.lists]
            if any(time * self.l > len(ids) for time in times):
                return True
        return 0 < len(ids) < self.k

    def weakest(self, pairs: Iterable[Relation]) -> Relation:
        """The relation with the least support in all records, ties lexicographic."""
        return min(pairs, key=lambda pair: (len(self.pairs[pair]), pair))


def fix_structure(
    records: Sequence[Tree],
    k: int,
    m: int,
    n: int,
    *,
    mode: str = "sequential",
    l: Fraction | None = None,  # noqa: E741
    secret: Collection[str] = (),
    printed_check: bool = False,
    passes: int | None = None,
) -> tuple[list[Tree], list[Relation]]:
    """Records without violating relation sets, and SD in the order it was applied. `passes`: stop after so many."""
    work = Structure(list(records), k, l, frozenset(secret), printed_check)
    one_pass = {"sequential": _sequential_pass, "batch": _batch_round}[mode]
    for done in count():
        if done == passes or not one_pass(work, m, n):
            return work.records, work.sd
    raise AssertionError


def _sequential_pass(work: Structure, m: int, n: int) -> bool:
    before = len(work.sd)
    for size in range(1, m + 1):
        for labels in combinations(work.labels, size):
            for number in range(1, n + 1):
                for pairs in combinations(work.inside(labels), number):
                    if work.violates(labels, pairs):  # a pair cut meanwhile has support 0 and violates nothing
                        work.disassociate(work.weakest(pairs))
    return len(work.sd) > before


def _batch_round(work: Structure, m: int, n: int) -> bool:
    """T-6: all violations of the smallest (|V|, |E|) at once."""
    for size in range(1, m + 1):
        for number in range(1, n + 1):
            found = {
                work.weakest(pairs)
                for labels in combinations(work.labels, size)
                for pairs in combinations(work.inside(labels), number)
                if work.violates(labels, pairs)
            }
            for pair in sorted(found):
                if pair in work.pairs:
                    work.disassociate(pair)
            if found:
                return True
    return False


# --- metrics §5.1, §5.2: costs ---------------------------------------------------------------------------------------


def rpd_of_path(path: Path, dgh: Dgh, level_count: str = "class") -> Fraction:
    return Fraction(1, prod(depth * dgh.count(label, level_count) for depth, label in enumerate(path, 1)))


def rpd_of_record(one: Tree, dgh: Dgh, level_count: str = "class") -> Fraction:
    """Mean over root-to-leaf paths; a record without nodes has the pseudo-path `*`."""
    paths = leaf_paths(one) or [(STAR,)]
    return sum((rpd_of_path(path, dgh, level_count) for path in paths), Fraction(0)) / len(paths)


def rpd(records: Sequence[Tree], dgh: Dgh, level_count: str = "class") -> Fraction:
    return sum((rpd_of_record(one, dgh, level_count) for one in records), Fraction(0)) / len(records)


def rpd_a(records: Iterable[Tree], dgh: Dgh, level_count: str = "class") -> Fraction:
    """On the synopsis tree: nodes and leaves without its root."""
    nodes = synopsis(records)
    leaves = leaf_paths(frozenset(nodes))
    total = Fraction(0)
    for path in leaves:
        held = sum(len(nodes[path[:end]]) for end in range(1, len(path) + 1))
        total += held * rpd_of_path(path, dgh, level_count)
    return total / (len(nodes) * len(leaves))


def twelve_digits(cost: Fraction) -> float:
    return float(f"{float(cost):.11e}")


# --- §7: search ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What is searched for. n is lowered to m(m−1)/2; {*} has the guarantee, or Infeasible is raised."""

    dgh: Dgh
    records: Sequence[Tree]
    k: int
    m: int
    n: int
    l: float | Fraction | None = None  # noqa: E741
    negations: tuple[str, ...] = ()
    cost: str = "rpd_a"  # or rpd
    level_count: str = "class"  # or global
    mode: str = "sequential"  # or batch
    close_unseen: bool = True

    def __post_init__(self) -> None:
        if self.k < 2 or self.m < 1 or self.n < 0:
            raise ValueError("k ≥ 2, m ≥ 1, n ≥ 0")
        object.__setattr__(self, "n", min(self.n, self.m * (self.m - 1) // 2))
        if not all(self.records):
            raise Infeasible("empty records")
        if len(self.records) < self.k:
            raise Infeasible("fewer than k records")
        if self.l is not None and verify_diversity(self.records, self.l, 0, 0, self.dgh.secret):
            raise Infeasible("a sensitive value is in more than |D|/l records")

    @property
    def closed(self) -> frozenset[str]:
        """The values that are closed from the start."""
        if not self.close_unseen:
            return frozenset()
        seen = frozenset().union(*map(items, self.records))
        return frozenset(node for node in self.dgh.below(STAR) if seen.isdisjoint(self.dgh.leaves(node)))


class Evaluation(NamedTuple):
    """A cut and what came of it; nothing is published where ValueCheck failed."""

    cut: Cut
    passed: bool  # ValueCheck: the supports of label sets
    diverse: bool = True  # 1/l for label sets
    sd: tuple[Relation, ...] = ()
    published: tuple[Tree, ...] = ()
    cost: Fraction = Fraction(0)

    @property
    def rank(self) -> tuple[float, tuple[int, Cut]]:
        """What the queue, the kids and the best are compared by."""
        return twelve_digits(self.cost), key(self.cut)


def evaluate(task: Task, cut: Cut) -> Evaluation:
    dgh, secret = task.dgh, task.dgh.secret
    projected = [project(one, cut, dgh) for one in task.records]
    marked = with_negations(projected, cut, task.negations, dgh)
    if value_violations(marked, task.k, task.m, secret):
        return Evaluation(cut, False)
    diverse = task.l is None or not verify_diversity(marked, task.l, task.m, 0, secret)
    limit = None if task.l is None else exact(task.l)
    _, sd = fix_structure(marked, task.k, task.m, task.n, mode=task.mode, l=limit, secret=secret)
    published = disassociate(projected, sd)
    cost = {"rpd_a": rpd_a, "rpd": rpd}[task.cost](published, dgh, task.level_count)
    return Evaluation(cut, True, diverse, tuple(sd), tuple(published), cost)


@dataclass
class Search:
    """A search as it goes: the best so far and the counters."""

    task: Task
    without_dis: bool = False  # OCS: a cut that needs a disassociation is no solution and not expanded
    max_cuts: int | None = None
    seen: list[Evaluation] = field(default_factory=list)  # all evaluated cuts in order
    pops: int = 0
    stopped: bool = False
    best: Evaluation | None = None

    @property
    def evaluated(self) -> int:
        return len(self.seen)

    @property
    def passed(self) -> int:
        """How many evaluated cuts passed ValueCheck."""
        return sum(one.passed for one in self.seen)

    @property
    def found(self) -> Evaluation:
        assert self.best is not None
        return self.best

    def evaluate(self, cuts: Iterable[Cut]) -> list[Evaluation]:
        """As many as max_cuts leaves."""
        made: list[Evaluation] = []
        for cut in cuts:
            if self.max_cuts is not None and self.evaluated >= self.max_cuts:
                self.stopped = True
                break
            one = evaluate(self.task, cut)
            self.seen.append(one)
            made.append(one)
            if self.is_open(one) and one.diverse and (self.best is None or one.rank < self.best.rank):
                self.best = one
        return made

    def is_open(self, one: Evaluation) -> bool:
        """Whether cuts below it are of interest; a cut that fails only 1/l is open (§8)."""
        return one.passed and not (self.without_dis and one.sd)


def acs(
    task: Task,
    *,
    without_dis: bool = False,
    close_failed: bool = False,
    max_cuts: int | None = None,
    order: Callable[[str], Any] | None = None,
) -> Search:
    """Every cut below cuts that pass ValueCheck; with `without_dis` the exhaustive OCS. `order`: of the values of a cut."""
    search = Search(task, without_dis, max_cuts)

    def expand(cut: Cut, closed: frozenset[str]) -> None:
        search.pops += 1
        kids = task.dgh.specializations(cut, closed)
        kids.sort(key=lambda kid: kid[0] if order is None else order(kid[0]))
        made = search.evaluate(kid for _, kid in kids)
        if close_failed:
            closed = closed | {value for (value, _), one in zip(kids, made, strict=False) if not one.passed}
        for (value, kid), one in zip(kids, made, strict=False):
            if search.is_open(one) and not search.stopped:
                expand(kid, closed)
            closed = closed | {value}

    if search.is_open(search.evaluate([(STAR,)])[0]):
        expand((STAR,), task.closed)
    return search


def gcs(
    task: Task,
    g: int,
    *,
    without_dis: bool = False,
    queue_limit: int | None = None,
    max_cuts: int | None = None,
) -> Search:
    """Cheapest cut first, its g cheapest kids join the queue; with `without_dis` this is OCS."""
    if g < 1:
        raise ValueError("g ≥ 1")
    search = Search(task, without_dis, max_cuts)
    queue = [(one, task.closed) for one in search.evaluate([(STAR,)]) if search.is_open(one)]
    while queue and not search.stopped:
        queue.sort(key=lambda entry: entry[0].rank)
        parent, closed = queue.pop(0)
        search.pops += 1
        kids = task.dgh.specializations(parent.cut, closed)
        made = search.evaluate(kid for _, kid in kids)
        tried = list(zip((value for value, _ in kids), made, strict=False))
        closed = closed | {value for value, one in tried if not one.passed}
        fit = sorted(((value, one) for value, one in tried if search.is_open(one)), key=lambda kid: kid[1].rank)
        for value, one in fit[:g]:
            queue.append((one, closed))
            closed = closed | {value}
        if queue_limit is not None:
            queue = sorted(queue, key=lambda entry: entry[0].rank)[:queue_limit]
    search.stopped = search.stopped or bool(queue)
    return search


def ocs(task: Task, g: int, *, queue_limit: int | None = None, max_cuts: int | None = None) -> Search:
    """Generalization only: GCS that rejects every cut that needs a disassociation."""
    return gcs(task, g, without_dis=True, queue_limit=queue_limit, max_cuts=max_cuts)


def ocs_exhaustive(task: Task) -> Search:
    return acs(task, without_dis=True)


def beam(task: Task, width: int, *, max_cuts: int | None = None) -> Search:
    """Per number of specializations the `width` cheapest cuts over all parents; no closed values but failures."""
    if width < 1:
        raise ValueError("width ≥ 1")
    search = Search(task, max_cuts=max_cuts)
    kept = [(one, task.closed) for one in search.evaluate([(STAR,)])]
    while kept and not search.stopped:
        search.pops += len(kept)
        families = [(task.dgh.specializations(parent.cut, closed), closed) for parent, closed in kept]
        fresh = list(dict.fromkeys(kid for kids, _ in families for _, kid in kids))
        made = {one.cut: one for one in search.evaluate(fresh)}
        below: dict[Cut, frozenset[str]] = defaultdict(frozenset)
        for kids, closed in families:
            failed = {value for value, kid in kids if kid in made and not made[kid].passed}
            for _, kid in kids:
                below[kid] |= closed | failed
        fit = sorted((one for one in made.values() if search.is_open(one)), key=lambda one: one.rank)
        kept = [(one, below[one.cut]) for one in fit[:width]]
    return search


# --- metrics §5.3: frequent subtrees ---------------------------------------------------------------------------------


def subtrees(one: Tree) -> Iterator[Tree]:
    """Every non-empty prefix-closed subset of the paths."""

    def parts(above: Path) -> list[Tree]:
        """What can be kept below a path, nothing included."""
        below = sorted(path for path in one if path[:-1] == above)
        choices = [[frozenset(), *(kept | {path} for kept in parts(path))] for path in below]
        return [frozenset(chain.from_iterable(choice)) for choice in product(*choices)]

    return (part for part in parts(()) if part)


def frequent_subtrees(
    records: Sequence[Tree], minsup: float | Fraction = Fraction(1, 100), max_nodes: int | None = None
) -> dict[Tree, int]:
    """Subtree → support, for those in at least minsup·|D| records."""
    found = Counter(chain.from_iterable(map(subtrees, records)))
    least, most = exact(minsup) * len(records), max_nodes or inf
    return {part: held for part, held in found.items() if held >= least and len(part) <= most}


def frequent_by_level(
    records: Sequence[Tree], dgh: Dgh, minsup: float | Fraction = Fraction(1, 100), max_nodes: int | None = None
) -> list[set[Tree]]:
    """FT_0 … FT_{h−1}."""
    levels = [[project_level(one, level, dgh) for one in records] for level in range(dgh.height)]
    return [set(frequent_subtrees(projected, minsup, max_nodes)) for projected in levels]


def ml2_of(original: Sequence[Collection[Tree]], published: Sequence[Collection[Tree]]) -> Fraction:
    """From FT_i(D) and FT_i(D') per level."""
    kept = sum(len(set(before) & set(after)) for before, after in zip(original, published, strict=True))
    return 1 - Fraction(kept, sum(map(len, original)))


def ml2(
    originals: Sequence[Tree],
    published: Sequence[Tree],
    dgh: Dgh,
    minsup: float | Fraction = Fraction(1, 100),
    max_nodes: int | None = None,
) -> Fraction:
    before = frequent_by_level(originals, dgh, minsup, max_nodes)
    return ml2_of(before, frequent_by_level(published, dgh, minsup, max_nodes))


def dtree(part: Tree, level: int, images: Mapping[str, str | None], shown: Tree, dgh: Dgh) -> Fraction:
    """Distance of a level-i subtree to one published record; images: label → published label, None if suppressed.

    `shown` is the published record on level i.
    """
    away = Fraction(0)
    for path in part:
        published = images[path[-1]]
        away += 1 if published is None else Fraction(max(0, dgh.level[published] - level), dgh.height)
    pairs = [(lower[:end][-1], lower[-1]) for lower in part for end in range(1, len(lower))]
    there = relations(shown)
    broken = sum((images[a], images[b]) not in there for a, b in pairs)
    return away / len(part) / 2 + (Fraction(broken, len(pairs)) / 2 if pairs else 0)


def dml2(
    originals: Sequence[Tree],
    published: Sequence[Tree],
    cut: Cut,
    dgh: Dgh,
    minsup: float | Fraction = Fraction(1, 100),
    max_nodes: int | None = None,
) -> Fraction:
    """G-18: dtree per record of D with the subtree, averaged. Records of both in the same order; recoding by a cut."""
    image = dgh.image(cut)
    total, number = Fraction(0), 0
    for level in range(dgh.height):
        before = [project_level(one, level, dgh) for one in originals]
        after = [project_level(one, level, dgh) for one in published]
        images: dict[str, str | None] = {}
        for leaf in dgh.leaves(STAR):
            seen = dgh.at_level(image[leaf], level)
            assert images.setdefault(dgh.at_level(leaf, level), seen) == seen
        for part in frequent_subtrees(before, minsup, max_nodes):
            pairs = zip(before, after, strict=True)
            distances = [dtree(part, level, images, shown, dgh) for one, shown in pairs if part <= one]
            total += sum(distances, Fraction(0)) / len(distances)
            number += 1
    return total / number
