"""Brute force for partial cuts (tree §15, T-12 and T-13): label sets, their specialization, loss and searches.

Written from the specification alone and slow on purpose, like `tree_oracle`, whose trees, checks and costs it uses. A label
set is the tuple of its labels in code-point order. Its type is `Cut`, but a label may have other labels below it: it then
stands for its rest, the leaves that no label below it covers.

Where the text leaves a choice, this file takes:
- every label of a set has a non-empty rest, so also a class root leaves the set when its rest is empty;
- sensitive leaves are their own image and their own rest, and no label of a set;
- an added label with support 0 is hidden like other rare ones, and no label with support < k is tried alone: T-13 hides
  it first, although an unseen label alone would pass;
- a violating set without an added label hides one even if another one was hidden before in the same round;
- x = `*` is not repaired: all class roots without a violating set, or None. A class root may have support 0;
- values are the nodes of the records (a label on two paths counts twice). NCP in a class of one leaf is 0;
- exactly / group / root go by the label, not by the size of its rest: a group with one leaf left is a group, a leaf that is
  its own class root is exact, and `*` counts as root;
- relations lost: see `relations_lost`;
- beam: ways to the same set of values are compared before they are specialized. So if the first way is closed (None), the
  second is not tried, and its value stays open. A kid has the closed values of its first parent only;
- only label sets that exist count as evaluated, a None does not;
- as in `tree_oracle`: a label set that fails only 1/l is costed and expanded but is never the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from tests.oracle.tree_oracle import (
    NOT,
    STAR,
    Cut,
    Dgh,
    Evaluation,
    Search,
    Task,
    Tree,
    closure,
    disassociate,
    exact,
    fix_structure,
    id_lists,
    items,
    relations,
    rpd,
    rpd_a,
    value_violations,
    verify_diversity,
)

# --- T-12: label sets ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def image(labels: Cut, dgh: Dgh) -> Mapping[str, str]:
    """Leaf → the lowest label at or above it; sensitive leaves stay."""
    images: dict[str, str] = {}
    for leaf in dgh.leaves(STAR):
        node = leaf
        while node not in labels and node not in dgh.secret:
            node = dgh.parent[node]
        images[leaf] = node
    return images


@lru_cache(maxsize=4096)
def rest(label: str, labels: Cut, dgh: Dgh) -> frozenset[str]:
    """The leaves that a label stands for."""
    return frozenset(leaf for leaf, shown in image(labels, dgh).items() if shown == label)


def project(one: Tree, labels: Cut, dgh: Dgh) -> Tree:
    """Values to labels, equal paths united; T-3: for {*} the single path `*`, before sensitive labels."""
    if labels == (STAR,):
        return closure((STAR, *(label for label in path if label in dgh.secret)) for path in one)
    images = image(labels, dgh)
    return frozenset(tuple(images[value] for value in path) for path in one)


def with_negations(records: Iterable[Tree], labels: Cut, negations: Collection[str], dgh: Dgh) -> list[Tree]:
    """For checking only: each projected record with a root label ¬X for every active X that none of its labels excludes."""

    def excludes(label: str, node: str) -> bool:
        return rest(label, labels, dgh) <= set(dgh.leaves(node))

    active = [node for node in negations if any(excludes(label, node) for label in labels)]
    return [
        one | {(NOT + node,) for node in active if not any(excludes(label, node) for label in items(one))}
        for one in records
    ]


# --- T-13: specialization --------------------------------------------------------------------------------------------


def candidates(labels: Cut, node: str, dgh: Dgh) -> list[str]:
    """The children of a label that have a leaf of its rest below them, sorted."""
    covered = rest(node, labels, dgh)
    return sorted(child for child in dgh.children[node] if not covered.isdisjoint(dgh.leaves(child)))


def exposed(labels: Cut, node: str, added: Iterable[str], dgh: Dgh) -> Cut:
    """The label set with labels added below one of its nodes, which leaves the set if its rest is empty."""
    grown = tuple(sorted({*labels, *added}))
    return grown if rest(node, grown, dgh) else tuple(label for label in grown if label != node)


def violating_sets(
    records: Iterable[Tree], labels: Cut, k: int, m: int, dgh: Dgh, negations: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """The sets of at most m labels, active ¬X among them, with 0 < support < k, in the order (size, labels)."""
    projected = [project(one, labels, dgh) for one in records]
    violating = value_violations(with_negations(projected, labels, negations, dgh), k, m, dgh.secret)
    return sorted(violating, key=lambda known: (len(known), known))


def specialize(
    records: Sequence[Tree], labels: Cut, node: str, k: int, m: int, dgh: Dgh, negations: Collection[str] = ()
) -> Cut | None:
    """The label set that exposes what k^m allows of the children of a label; None if the label is closed.

    The label set itself must have k^m-anonymity on labels.
    """
    children = candidates(labels, node, dgh)

    def violations(added: Iterable[str]) -> list[tuple[str, ...]]:
        return violating_sets(records, exposed(labels, node, added, dgh), k, m, dgh, negations)

    def supports_with(added: Iterable[str]) -> Counter[str]:
        """Label → number of records that hold it."""
        kid = exposed(labels, node, added, dgh)
        return Counter({label: len(ids) for label, ids in id_lists(project(one, kid, dgh) for one in records).items()})

    if node == STAR:
        return None if violations(children) else exposed(labels, node, children, dgh)
    support = supports_with(children)  # of a child it is the same for all label sets that hold it
    # 1. hide rare labels, then more while what is left of x is rare
    added = [label for label in children if support[label] >= k]
    while added and 0 < supports_with(added)[node] < k:
        added.remove(weakest(added, support))
    # 2. repair rounds: each hides at least one added label, and without them the parent is left, which passed
    while added and (violating := violations(added)):
        added = repaired(added, violating, support)
    if added:
        return exposed(labels, node, added, dgh)
    # 3. each candidate alone
    for label in sorted(children, key=lambda label: (-support[label], label)):
        if support[label] >= k and not violations([label]):
            return exposed(labels, node, [label], dgh)
    return None


def weakest(added: Iterable[str], support: Mapping[str, int]) -> str:
    """The label of least support, ties by label."""
    return min(added, key=lambda label: (support[label], label))


def repaired(added: Collection[str], violating: Sequence[tuple[str, ...]], support: Mapping[str, int]) -> list[str]:
    """One repair round: the added labels that are left."""
    times = Counter(label for known in violating for label in known)  # at the start of the round
    left = list(added)
    for known in violating:
        if any(label in added and label not in left for label in known):
            continue  # it holds a label hidden in this round
        inside = [label for label in known if label in left]
        if inside:
            left.remove(min(inside, key=lambda label: (-Fraction(times[label], support[label]), label)))
        elif left:
            left.remove(weakest(left, support))
    return left


# --- §15: loss -------------------------------------------------------------------------------------------------------


def values_of(records: Iterable[Tree], dgh: Dgh) -> Iterator[str]:
    """The value of every node that is not sensitive."""
    return (path[-1] for one in records for path in one if path[-1] not in dgh.secret)


def ncp(records: Iterable[Tree], labels: Cut, dgh: Dgh) -> Fraction:
    """Mean of (|rest| − 1)/(leaves of the class − 1), 1 for `*`, over all values; 0 if all values are sensitive."""
    losses: list[Fraction] = []
    for value in values_of(records, dgh):
        label = image(labels, dgh)[value]
        others = len(dgh.leaves(dgh.type_of[value])) - 1
        shown_as_one = Fraction(len(rest(label, labels, dgh)) - 1, max(1, others))
        losses.append(Fraction(1) if label == STAR else shown_as_one)
    return sum(losses, Fraction(0)) / max(1, len(losses))


def relations_lost(records: Iterable[Tree], published: Iterable[Tree], labels: Cut, dgh: Dgh) -> Fraction:
    """The share of relations of the records that the published records no longer have, records in the same order.

    Counted are the pairs (record, relation of `rel` of the original record), so a relation of two values counts once per
    record however many paths show it, and those with a sensitive value count too. A relation is kept if the published
    record has a relation between the images of its two values, on whatever path. So {*} loses all relations but those of a
    value and a sensitive value below it. Without relations nothing is lost.
    """
    images = image(labels, dgh)
    pairs = list(zip(records, published, strict=True))
    kept = [(images[a], images[b]) in relations(shown) for one, shown in pairs for a, b in relations(one)]
    return Fraction(kept.count(False), max(1, len(kept)))


class Shares(NamedTuple):
    """How the values of a class are published; the sum is 1."""

    exactly: Fraction
    as_group: Fraction
    as_root: Fraction


def shares(records: Iterable[Tree], labels: Cut, dgh: Dgh) -> dict[str, Shares]:
    """Class → shares of its values, for the classes that are not sensitive and occur in the records."""
    kinds: dict[str, list[str]] = {}
    for value in values_of(records, dgh):
        name, label = dgh.type_of[value], image(labels, dgh)[value]
        kind = "exactly" if label == value else "as_root" if label in (name, STAR) else "as_group"
        kinds.setdefault(name, []).append(kind)
    return {
        name: Shares(*(Fraction(seen.count(kind), len(seen)) for kind in Shares._fields))
        for name, seen in kinds.items()
    }


# --- §7: search ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartialTask(Task):
    """What is searched for; `cost` may also be ncp."""

    mode: str = "batch"

    def cost_of(self, labels: Cut, published: Sequence[Tree]) -> Fraction:
        if self.cost == "ncp":
            lost = relations_lost(self.records, published, labels, self.dgh)
            return (ncp(self.records, labels, self.dgh) + lost) / 2
        return {"rpd_a": rpd_a, "rpd": rpd}[self.cost](published, self.dgh, self.level_count)


def evaluate(task: PartialTask, labels: Cut) -> Evaluation:
    """ValueCheck and 1/l on labels, the disassociated relations, the published records and their cost."""
    dgh, secret = task.dgh, task.dgh.secret
    if violating_sets(task.records, labels, task.k, task.m, dgh, task.negations):
        return Evaluation(labels, False)
    projected = [project(one, labels, dgh) for one in task.records]
    marked = with_negations(projected, labels, task.negations, dgh)
    diverse = task.l is None or not verify_diversity(marked, task.l, task.m, 0, secret)
    limit = None if task.l is None else exact(task.l)
    _, sd = fix_structure(marked, task.k, task.m, task.n, mode=task.mode, l=limit, secret=secret)
    published = disassociate(projected, sd)
    return Evaluation(labels, True, diverse, tuple(sd), tuple(published), task.cost_of(labels, published))


@dataclass
class PartialSearch(Search):
    """A search over label sets as it goes; most_rpd: label sets with a higher RPD are not the best."""

    task: PartialTask
    most_rpd: Fraction | None = None

    def evaluate(self, cuts: Iterable[Cut]) -> list[Evaluation]:
        """As many as max_cuts leaves."""
        made: list[Evaluation] = []
        for labels in cuts:
            if self.max_cuts is not None and self.evaluated >= self.max_cuts:
                self.stopped = True
                break
            one = evaluate(self.task, labels)
            self.seen.append(one)
            made.append(one)
            better = self.best is None or one.rank < self.best.rank
            allowed = self.most_rpd is None or self.rpd_of(one) <= self.most_rpd
            if self.is_open(one) and one.diverse and better and allowed:
                self.best = one
        return made

    def rpd_of(self, one: Evaluation) -> Fraction:
        return rpd(one.published, self.task.dgh, self.task.level_count)


class Way(NamedTuple):
    """A label set of a search, the values specialized on the way to it, and the values closed below it, those included."""

    one: Evaluation
    specialized: frozenset[str]
    closed: frozenset[str]

    def open_values(self, dgh: Dgh) -> list[str]:
        return [value for value in self.one.cut if value not in self.closed and dgh.children[value]]


def kids_of(search: PartialSearch, parent: Way, values: Iterable[str]) -> list[Way]:
    """The kids of a label set by some of its values, in their order; values that failed are closed for all kids."""
    task, labels = search.task, parent.one.cut
    kids = {
        value: specialize(task.records, labels, value, task.k, task.m, task.dgh, task.negations) for value in values
    }
    made = {one.cut: one for one in search.evaluate(kid for kid in kids.values() if kid is not None)}
    failed = {value for value, kid in kids.items() if kid is None or (kid in made and not made[kid].passed)}
    fit = [
        (value, made[kid])
        for value, kid in kids.items()
        if kid is not None and kid in made and search.is_open(made[kid])
    ]
    return [Way(one, parent.specialized | {value}, parent.closed | failed | {value}) for value, one in fit]


def gcs(task: PartialTask, g: int, *, without_dis: bool = False, max_cuts: int | None = None) -> PartialSearch:
    """Cheapest label set first, its g cheapest kids join the queue; with `without_dis` this is OCS."""
    search = PartialSearch(task, without_dis, max_cuts)
    queue = [Way(one, frozenset(), task.closed) for one in search.evaluate([(STAR,)]) if search.is_open(one)]
    while queue and not search.stopped:
        queue.sort(key=lambda way: way.one.rank)
        parent = queue.pop(0)
        search.pops += 1
        kids = sorted(kids_of(search, parent, parent.open_values(task.dgh)), key=lambda way: way.one.rank)
        earlier: frozenset[str] = frozenset()  # the values of kids 1 … i−1
        for kid in kids[:g]:
            queue.append(kid._replace(closed=kid.closed | earlier))
            earlier |= kid.specialized - parent.specialized
    search.stopped = search.stopped or bool(queue)
    return search


def beam(task: PartialTask, width: int, *, max_cuts: int | None = None) -> PartialSearch:
    """Per number of specializations the `width` cheapest label sets over all parents; no closed values but failures.

    First over full cuts, then below the best of them. With RPD_a, no label set is the best whose RPD is above that one's.
    """
    search = PartialSearch(task, max_cuts=max_cuts)
    kept = [(one, task.closed) for one in search.evaluate([(STAR,)])]
    start = kept[0][0]
    while kept and not search.stopped:
        search.pops += len(kept)
        families = [(task.dgh.specializations(one.cut, closed), closed) for one, closed in kept]
        fresh = dict.fromkeys(kid for kids, _ in families for _, kid in kids)
        made = {one.cut: one for one in search.evaluate(fresh)}
        closed_below = {
            kid: closed | {value for value, other in kids if other in made and not made[other].passed}
            for kids, closed in reversed(families)  # of the first parent, where there are several
            for _, kid in kids
        }
        fit = sorted((one for one in made.values() if search.is_open(one)), key=lambda one: one.rank)
        kept = [(one, closed_below[one.cut]) for one in fit[:width]]
    if search.best is not None and task.cost == "rpd_a":
        search.most_rpd = search.rpd_of(search.best)
    beam_below(search, search.best or start, width)
    return search


def beam_below(search: PartialSearch, start: Evaluation, width: int) -> None:
    """The beam over label sets below one."""
    task = search.task
    kept = [Way(start, frozenset(), task.closed)]
    while kept and not search.stopped:
        search.pops += len(kept)
        met: set[frozenset[str]] = set()  # sets of specialized values; those of other generations have other sizes
        kids: list[Way] = []
        for parent in kept:
            fresh = [value for value in parent.open_values(task.dgh) if parent.specialized | {value} not in met]
            met.update(parent.specialized | {value} for value in fresh)
            kids += kids_of(search, parent, fresh)
        kept = sorted(kids, key=lambda way: way.one.rank)[:width]
