"""Facts of the tree family: counts and names of node types, never which relations were disassociated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from anon_spark.families.tree.settings import Cost, Search
from anon_spark.model.facts import CrowdRange, Distribution, Facts, FitStatistics, json_name
from anon_spark.risk import StructureRisk, TreeKnowledge


@dataclass(frozen=True)
class CutSearch(FitStatistics):
    """How the cut was found.

    loss: of the cut that was chosen, by the cost that cuts are compared by; cuts: how many there are, as text, because that may
    be too large a number for JSON; passed_value_check: cuts whose label sets hold; pops: cuts that were specialized; stopped_by:
    the budget that ended the search; disassociations and labels: of the chosen cut; trail: (cuts judged, loss), each time a
    better cut was found; counted: where, on the `driver` or in `tasks`; rounds: of counting.
    """

    search: Search
    cost: Cost
    loss: float
    cuts: str
    evaluated: int
    passed_value_check: int
    pops: int
    stopped_by: str | None
    disassociations: int
    labels: int
    trail: tuple[tuple[int, float], ...]
    counted: str
    rounds: int
    seconds_reading: float


@dataclass(frozen=True)
class NodeTypeCut:
    """A node type and what the cut made of it.

    values: how many there are; labels: how many the cut has on each level, from the original values on. All are 0 where the
    node type went into the root. Without the fitted table, values and height are None and there are no labels.
    """

    name: str = field(metadata=json_name("class"))
    parent: str | None
    sensitive: bool
    values: int | None
    height: int | None
    labels: tuple[int, ...]

    @property
    def label_count(self) -> int:
        """The labels of the cut on all levels."""
        return sum(self.labels)


@dataclass(frozen=True)
class NodeTypePair:
    """How many relations between labels of two node types were disassociated."""

    upper: str
    lower: str
    pairs: int


@dataclass(frozen=True)
class TreeFit(Facts):
    """The cut, the relations that were disassociated, and the search.

    partial: some labels have others below them. records, nodes and merged_siblings are None without the fitted table;
    merged_siblings also where records were dropped.
    """

    required_k: int
    m: int
    n: int
    l: int | None  # noqa: E741 - the literature's name
    disassociated: tuple[NodeTypePair, ...]
    negations: int
    partial: bool
    nested: bool
    node_types: tuple[NodeTypeCut, ...] = field(metadata=json_name("classes"))
    search: CutSearch
    records: int | None
    nodes: int | None
    merged_siblings: int | None

    @property
    def disassociated_relations(self) -> int:
        """How many relations were disassociated, over all node types."""
        return sum(pair.pairs for pair in self.disassociated)


@dataclass(frozen=True)
class Measures:
    """The loss of the release, and RPD_a where cuts were compared by it.

    ncp: how many other values a published one could be, as a share of those of its node type; the mean over all values.
    relations_kept: of all pairs of values of a record, one above the other, the share that is still so; None without any.
    """

    rpd: float
    rpd_a: float | None
    ncp: float
    relations_kept: float | None


@dataclass(frozen=True)
class Published:
    """How the values of a node type are published: the shares of all records' values, and their mean NCP."""

    name: str = field(metadata=json_name("class"))
    exact: float
    group: float
    root: float
    ncp: float


@dataclass(frozen=True)
class SupportRange:
    """How many sets of labels and relations are shared by a number of records in a range."""

    least: int = field(metadata=json_name("from"))
    most: int = field(metadata=json_name("to"))
    sets: int


@dataclass(frozen=True)
class KnowledgeAttack:
    """What an attacker finds who knows so much of a record; see TreeKnowledge.

    Supports below k are not listed; `below` says how many there are.
    """

    labels: int
    relations: int
    negated: int
    level: int | None
    promised: bool
    drawn: int
    nothing: int
    below: int
    least: int
    mean: float
    lost: int
    found: int

    @classmethod
    def of(cls, outcome: TreeKnowledge) -> KnowledgeAttack:
        return cls(**{part.name: getattr(outcome, part.name) for part in fields(cls)})

    @property
    def share_below(self) -> float:
        """Of what was drawn, the share that fits fewer than k records, but some."""
        return self.below / max(1, self.drawn)


@dataclass(frozen=True)
class AttackerGain:
    """What attackers gain: by knowledge of a record, numbered; by the method, where relations were disassociated."""

    knowledge_attack: Mapping[str, KnowledgeAttack]
    structure_attack: StructureRisk | None


@dataclass(frozen=True)
class TreeFacts(TreeFit):
    """The fit, with its loss, the supports that the audit counted, and what attackers gain; highest_share: with l."""

    measures: Measures
    published: tuple[Published, ...]
    supports: tuple[SupportRange, ...]
    highest_share: float | None
    risk: AttackerGain
    distributions: tuple[Distribution, ...] = ()
    crowds: tuple[CrowdRange, ...] = ()  # of records that are the same as a whole, of which the guarantee says nothing

    def summary(self) -> list[str]:
        """The cut by node type, and how many relations were disassociated."""
        shown = "; ".join(f"{one.name} {one.exact:.0%} exactly, {one.group:.0%} in groups" for one in self.published)
        lost = f"Chance to guess a path (RPD) {self.measures.rpd:.2e}; lower is better."
        return [
            f"{self.search.evaluated:,} cuts judged; values are published so: {shown}.",
            f"{self.disassociated_relations} relations were disassociated. {lost}",
        ]
