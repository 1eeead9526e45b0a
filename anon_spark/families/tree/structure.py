"""ValueCheck and FixStructure of one cut, written as the paper does; the counting is done elsewhere.

Each evaluation is a generator: it yields a question about the records under a cut and some disassociations, and goes on
with the answer. So the cuts of one step of a search are evaluated side by side, with one Spark job per round for all.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from anon_spark.families.tree.settings import Cost, Settings
from anon_spark.model.tree import Cut, Forest

Pair = tuple[int, int]  # nodes (a, b): a is an ancestor of b
Size = tuple[int, int]  # |V|, |E|


@dataclass(frozen=True)
class Question:
    """Count the records under a cut after disassociations.

    sizes: label sets of up to so many labels. focus: only sets with one of these nodes (None: all). supports: of relations,
    as far as known. after: ask for the first violation behind this position, in the order of §6 (sequential mode). listed: ask
    for the label sets themselves that fewer than k records hold.
    """

    cut: Cut
    pairs: tuple[Pair, ...]
    sizes: int
    focus: frozenset[int] | None = None
    supports: dict[Pair, int] = field(default_factory=dict)
    after: Position | None = None
    listed: bool = False


class Position(NamedTuple):
    """A label set and relations inside it, both sorted; compared in the order of §6."""

    size: int
    labels: tuple[int, ...]
    relations: int
    pairs: tuple[Pair, ...]


START = Position(0, (), 0, ())


@dataclass(frozen=True)
class Answer:
    """What was counted: violations of support or diversity."""

    values: int  # label sets without relations that fewer than k records hold
    diversity: int  # label sets without relations, the empty one included, of which a sensitive value is in too many
    sizes: dict[Size, list[Pair]]  # by (|V|, |E|): the relations to give up, least support first in their set
    supports: dict[Pair, int]  # of the relations among the sets that were counted
    used: tuple[int, ...]  # records that each disassociation changed, of those with a label in focus
    first: tuple[Position, Pair] | None = None
    rare: Rare | None = None


@dataclass(frozen=True)
class Rare:
    """Label sets that fewer than k records hold: the first ones by size and labels; without negations in them.

    times: in how many of all of them a label is. supports: of single labels.
    """

    sets: list[tuple[int, ...]]
    times: dict[int, int]
    supports: dict[int, int]


@dataclass(frozen=True)
class CostQuestion:
    """The loss of a cut with its disassociations."""

    cut: Cut
    pairs: tuple[Pair, ...]
    cost: Cost | None = None  # None: that of the search
    before: Cut | None = None  # a cut that differs in few labels, and of which others ask as well


@dataclass(frozen=True)
class Solution:
    """A cut as it was judged.

    fits: ValueCheck holds, so it may be specialized. valid: it may be published, with `pairs` disassociated in their order.
    clean: no relation had to be given up.
    """

    cut: Cut
    fits: bool
    valid: bool
    clean: bool
    pairs: tuple[Pair, ...] = ()
    cost: float = float("inf")


Evaluation = Generator[Question | CostQuestion, Any, Solution]


@dataclass(frozen=True)
class Step:
    """A cut to be judged: the one given, or what it becomes when one of its nodes is specialized.

    clean: the given cut gave up no relation. whole: all children of the node are shown, also where cuts are partial.
    """

    cut: Cut
    node: int | None = None
    clean: bool = False
    whole: bool = False


def evaluation(step: Step, forest: Forest, settings: Settings, incremental: bool = True) -> Evaluation:
    """Judge a cut: ValueCheck, FixStructure, loss.

    Sets without a fresh label were counted for the cut before: by monotonicity they need no second ValueCheck, and if that
    cut was clean no second StructureCheck. Diversity is not monotone, so with l every set is counted; so is it with negations,
    where `incremental` is not given.
    """
    # 1. the cut, and ValueCheck
    counted: Answer | None
    if step.node is not None and settings.cuts == "partial" and not step.whole and step.node != forest.top:
        cut, fresh, counted = yield from partly_specialized(step.cut, step.node, forest, settings, incremental)
        if counted is None:
            return Solution(cut, fits=False, valid=False, clean=False)
        focus = fresh if incremental and settings.l is None else None
    else:
        cut, focus = step.cut, None
        if step.node is not None:
            cut = forest.specialized(step.cut, step.node)
            focus = frozenset(cut).difference(step.cut) if incremental and settings.l is None else None
        counted = yield Question(cut, (), settings.m, focus)
        if counted.values:
            return Solution(cut, fits=False, valid=False, clean=False)
    # 2. StructureCheck of what is new
    clean = not counted.sizes and (focus is None or step.clean)
    pairs: tuple[Pair, ...] = ()
    if settings.relations and not clean:
        if settings.without_disassociation and counted.sizes:
            return Solution(cut, fits=True, valid=False, clean=False)
        # 3. FixStructure
        fixed = sequentially_fixed if settings.mode == "sequential" else fixed_structure
        pairs = yield from fixed(cut, settings)
    # 4. loss
    cost = yield CostQuestion(cut, pairs, before=None if step.node is None else step.cut)
    return Solution(cut, True, counted.diversity == 0, not pairs, pairs, rounded(cost))


def rounded(loss: float) -> float:
    """Without the digits in which sums depend on how records are spread."""
    return float(f"{loss:.12g}")


# --- partial cuts -------------------------------------------------------------------------------------------------------


Specialized = tuple[Cut, frozenset[int], Answer | None]  # the cut, its labels with other records than before, its count


def partly_specialized(
    cut: Cut, node: int, forest: Forest, settings: Settings, incremental: bool
) -> Generator[Question, Answer, Specialized]:
    """Show the children of a node, then hide those again that are too rare, or in label sets that are (T-13).

    What is hidden stays with the node. No answer: not even one child can be shown.
    """
    candidates = forest.left_below(cut, node)

    def question(shown: set[int], sizes: int) -> Question:
        focus = frozenset(shown | {node}) if incremental and settings.l is None else None
        specialized = forest.with_children(cut, node, shown)
        if focus is not None and node not in specialized:
            focus = focus - {node}
        return Question(specialized, (), sizes, focus, listed=True)

    def rare(answer: Answer) -> Rare:
        assert answer.rare is not None
        return answer.rare

    # 1. children that fewer than k records have, and those that leave too little to the node
    shown = set(candidates)
    supports: dict[int, int] = {}
    while shown:
        counted = rare((yield question(shown, 1)))
        supports |= {child: counted.supports.get(child, 0) for child in shown.difference(supports)}
        few = {child for child in shown if supports[child] < settings.k}
        shown -= few
        if not few and not 0 < counted.supports.get(node, 0) < settings.k:
            break
        if not few:
            shown.remove(min(shown, key=lambda child: (supports[child], child)))
    # 2. label sets that fewer than k records have
    while shown:
        asked = question(shown, settings.m)
        answer = yield asked
        if not rare(answer).sets:
            return asked.cut, frozenset(shown | {node}).intersection(asked.cut), answer
        shown -= hidden(rare(answer), shown, supports)
    # 3. one child alone
    for child in sorted(candidates, key=lambda child: (-supports[child], child)):
        if supports[child] >= settings.k:
            asked = question({child}, settings.m)
            answer = yield asked
            if not rare(answer).sets:
                return asked.cut, frozenset({child, node}).intersection(asked.cut), answer
    return cut, frozenset(), None


def hidden(found: Rare, shown: set[int], supports: dict[int, int]) -> set[int]:
    """The children to hide after one count: of each rare set, the one that is in most rare sets for its support."""
    gone: set[int] = set()
    for labels in found.sets:
        if gone.intersection(labels):
            continue
        inside = shown.intersection(labels)
        if inside:
            gone.add(min(inside, key=lambda child: (-Fraction(found.times[child], supports[child]), child)))
        elif shown - gone:
            gone.add(min(shown - gone, key=lambda child: (supports[child], child)))
    return gone


# --- relations ------------------------------------------------------------------------------------------------------------


def fixed_structure(cut: Cut, settings: Settings) -> Generator[Question, Answer, tuple[Pair, ...]]:
    """FixStructure in rounds (T-6): give up the relations of all violations of the smallest size at once, until none is left.

    A disassociation (a, b) takes relations from b only, so after a round only sets with such a b are counted again, and all
    sets once more where these show nothing at or below the size reached.
    """
    pairs: tuple[Pair, ...] = ()
    settled = 0
    supports: dict[Pair, int] = {}
    reached: Size = (0, 0)
    sizes, focus = 2, None
    while True:
        counted = yield Question(cut, pairs, sizes, focus, supports)
        # of the last round, leave out those whose support had become 0 before their turn
        last = zip(pairs[settled:], counted.used[settled:], strict=True)
        pairs = pairs[:settled] + tuple(pair for pair, used in last if used)
        settled = len(pairs)
        supports = _updated(supports, counted.supports, focus)
        smallest = min(counted.sizes, default=None)
        if smallest is not None and (focus is None or smallest <= reached):
            reached = smallest
            given_up = sorted(counted.sizes[smallest])
            pairs += tuple(given_up)
            sizes, focus = 2, frozenset(b for _, b in given_up)  # first their relations, with new supports
        elif sizes < settings.m:
            sizes, focus = settings.m, focus if reached > (2, 1) else None
        elif focus is not None and settings.m > 2:
            focus = None
        else:
            return pairs


def sequentially_fixed(cut: Cut, settings: Settings) -> Generator[Question, Answer, tuple[Pair, ...]]:
    """FixStructure as printed, repeated until stable (T-5): one violation, one disassociation."""
    pairs: tuple[Pair, ...] = ()
    changed = True
    while changed:
        changed, after = False, START
        while True:
            counted = yield Question(cut, pairs, settings.m, after=after)
            if counted.first is None:
                break
            after, pair = counted.first
            pairs, changed = (*pairs, pair), True
    return pairs


def _updated(known: dict[Pair, int], counted: dict[Pair, int], focus: frozenset[int] | None) -> dict[Pair, int]:
    """Supports of relations after a count of all sets, or of those with a label in focus."""
    if focus is None:
        return counted
    return {pair: support for pair, support in known.items() if not focus.intersection(pair)} | counted
