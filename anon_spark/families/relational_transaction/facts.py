"""Facts of the relational_transaction family about a fit and a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anon_spark.families.relational_transaction.settings import Bound, Distance, ItemMethod, Merge, Method
from anon_spark.model.facts import CrowdRange, Distribution, Facts, FitStatistics, SizeRange

if TYPE_CHECKING:  # tasks of the fit import this module: they need no attacks
    from anon_spark.risk import KnowledgeRisk


@dataclass(frozen=True, kw_only=True)
class Merging:
    """The start of merging: the number of groups, and the bounded loss; None if it does not apply.

    initial_ncp: with a bound on NCP; initial_ul, and least_ul, the least of all steps: with a bound on UL.
    """

    groups: int | None = None
    initial_ncp: float | None = None
    initial_ul: float | None = None
    least_ul: float | None = None


@dataclass(frozen=True, kw_only=True)
class Clustering(Merging):
    """How many clusters there are, and how many there were before merging (None: blocks by items, nothing to merge)."""

    initial_clusters: int | None = None
    clusters: int


@dataclass(frozen=True, kw_only=True)
class ClusterStatistics(Clustering, FitStatistics):
    """How the fit went: the clusters, and the seconds of reading, which `seconds` does not include."""

    seconds_reading: float


@dataclass(frozen=True)
class ClusterMeasures:
    """NCP of the relational values and UL of the items, both from 0 to 1; clusters, and the smallest and largest size."""

    ncp: float
    ul: float
    clusters: int
    smallest: int
    largest: int


@dataclass(frozen=True)
class ReleaseMeasures(ClusterMeasures):
    """Also the measures of the items; see anon_spark.metrics.utility_loss.

    log2_ul_dom: loss against the whole domain, None where nothing is generalized; largest_item: items that the largest
    generalized item stands for; kept_items: share of published items that stand for themselves.
    """

    log2_ul_dom: float | None
    largest_item: int
    kept_items: float


@dataclass(frozen=True)
class CountError:
    """Mean relative error of counts of one kind: rows that have so many relational values and items.

    sets, uniform: by how a generalized item is read, see anon_spark.metrics.relative_error; queries: how many counts.
    """

    values: int
    items: int
    sets: float
    uniform: float
    queries: int


@dataclass(frozen=True)
class FrequentItem:
    """An item that at least k rows show: records of the source that have it, rows that show it alone, and in a group."""

    label: str
    records: int
    alone: int
    grouped: int


@dataclass(frozen=True)
class RelationalTransactionRisk:
    """What an attacker gains: by how many items are known, and from classes with one value of a sensitive column."""

    knowledge_attack: Mapping[str, KnowledgeRisk]
    sensitive_value_shared_by_whole_class: Mapping[str, float]


@dataclass(frozen=True)
class RelationalTransactionFit(Facts):
    """The settings, the table that was read, and how the fit went.

    bound, delta, merge, distance: None if the method does not use them; moves: whether first clusters moved between merged
    ones; items: how they are generalized; universe, sensitive_items: how many different ones are published;
    suppressed_items: how many are left out because fewer than k records have them, and suppressed_occurrences in how many
    records, of all occurrences of items that are not sensitive.
    """

    required_k: int
    m: int
    l: int | None  # noqa: E741 - the literature's name
    bound: Bound | None
    delta: float | None
    merge: Merge | None
    distance: Distance | None
    moves: bool
    method: Method
    items: ItemMethod
    records: int
    universe: int
    sensitive_items: int
    suppressed_items: int
    suppressed_occurrences: int
    occurrences: int
    statistics: ClusterStatistics


@dataclass(frozen=True)
class RelationalTransactionFacts(RelationalTransactionFit):
    """The fit, with losses, the accuracy of counts, counts of the audit and what an attacker gains.

    highest_share: the largest share of a sensitive item among rows that fit; None without l. detail_lost: by column, from 0 to
    1; crowds: by relational values alone.
    """

    measures: ReleaseMeasures
    class_sizes: tuple[SizeRange, ...]
    highest_share: float | None
    relative_error: tuple[CountError, ...]
    risk: RelationalTransactionRisk
    distributions: tuple[Distribution, ...] = ()
    crowds: tuple[CrowdRange, ...] = ()
    detail_lost: Mapping[str, float] = field(default_factory=dict)
    frequent_items: tuple[FrequentItem, ...] = ()

    def summary(self) -> list[str]:
        """The losses of values and items, and the success of attacks."""
        measures, attacks = self.measures, list(self.risk.knowledge_attack.values())
        promised, all_items = attacks[0], attacks[-1]
        allowed = f" (allowed: {self.delta})"
        of_values, of_items = (allowed if self.bound == bounded else "" for bounded in ("relational", "items"))
        lost = f"{self.suppressed_occurrences:,} of {self.occurrences:,} occurrences"
        return [
            *([f"{self.suppressed_items:,} rare items are not published: {lost}."] if self.suppressed_items else []),
            f"{measures.clusters:,} clusters of {measures.smallest:,} to {measures.largest:,} records.",
            f"Loss of values {measures.ncp:.4f}{of_values}, of items {measures.ul:.4f}{of_items}; from 0 to 1.",
            f"Who knows all values and {promised.items} items picks the right row with {promised.worst:.4f} at most.",
            f"Who knows all items is outside the guarantee: {all_items.worst:.4f} at most, {all_items.success:.4f} on average.",
        ]
