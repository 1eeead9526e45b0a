"""Facts of the set_valued family about a fit and a release: an item or sensitive value only if k rows or more show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anon_spark.families.set_valued.block import GraphKind, Order, Truth
from anon_spark.model.facts import JSON_NAME, CrowdRange, Distribution, Facts, FitStatistics
from anon_spark.risk import Reconstruction
from anon_spark.risk.item_sets.relink_facts import KnownLink, LinkAttack


@dataclass(frozen=True)
class FitTimes(FitStatistics):
    """Seconds of orders, graphs and draws; of sorting the records; of cutting them into blocks."""

    seconds_sort: float
    seconds_blocks: float


@dataclass(frozen=True)
class Measures:
    """Losses of a release, and statistics of its blocks.

    er: the error rate expected over all assignments, None where no record has items; empty: records without items;
    steps: of the random walks; edges: pairs of a record and a row it may be; uncertain, max_errors: means over the rows.
    """

    er: float | None
    empty: int
    blocks: int
    steps: int
    edges: int
    uncertain: float
    max_errors: float


@dataclass(frozen=True)
class Measured:
    """Measures of a release, and how many blocks have each order."""

    measures: Measures
    orders: Mapping[str, int]


@dataclass(frozen=True)
class UncertainItems:
    """How many rows have a number of uncertain items in a range."""

    least: int = field(metadata={JSON_NAME: "from"})
    most: int = field(metadata={JSON_NAME: "to"})
    rows: int


@dataclass(frozen=True)
class QueryErrors:
    """Mean errors of random counts, as shares of all rows: on the base items, and if only the number of rows is known.

    present: of rows that have all items of a query; absent: of rows that have none of them; number: queries of each type,
    with so many items.
    """

    number: int
    size_present: int
    size_absent: int
    present: float
    absent: float
    present_if_nothing_is_said: float
    absent_if_nothing_is_said: float


@dataclass(frozen=True)
class CountExample:
    """The count of rows with a frequent item: an estimate with its bounds, and the count on the base items."""

    estimate: float
    lower: int
    upper: int
    base: int


@dataclass(frozen=True)
class FrequentItem:
    """An item that at least k rows have for certain: records of the source with it, rows that have it certainly, and possibly."""

    label: str
    records: int
    certain: int
    possible: int


@dataclass(frozen=True)
class CountsWorth:
    """Accuracy of counts; no queries if no record has items, no example if no base has items."""

    uncertain_items: tuple[UncertainItems, ...]
    queries: QueryErrors | None
    example: CountExample | None


@dataclass(frozen=True)
class Rebuilt:
    """Shares of records, items and rows that can be reconstructed without knowing any item set; see `Reconstruction`."""

    records_looked_at: int
    records_known_in_all_items_by_who_knows_the_order: float
    items_known_by_who_knows_the_order: float
    records_known_in_all_items_from_the_rows_alone: float
    rows_whose_most_similar_row_is_a_neighbour: float
    more_may_be_known: bool

    @classmethod
    def of(cls, solved: Reconstruction) -> Rebuilt:
        """From the reconstruction of some blocks."""
        return cls(
            records_looked_at=solved.records,
            records_known_in_all_items_by_who_knows_the_order=solved.known_share,
            items_known_by_who_knows_the_order=solved.known_bits_share,
            records_known_in_all_items_from_the_rows_alone=solved.chained_share,
            rows_whose_most_similar_row_is_a_neighbour=solved.next_share,
            more_may_be_known=not solved.exact,
        )


@dataclass(frozen=True)
class SetValuedRisk:
    """Gain of an attacker: rows found, which the gate has judged; rows found with one known link; item sets reconstructed."""

    link_attack: LinkAttack
    known_link: KnownLink
    reconstruction: Rebuilt


@dataclass(frozen=True)
class SetValuedFit(Facts):
    """The settings, the size of the table, and the duration of the steps.

    required_k: k or l; truth: None without l; universe: different items.
    """

    required_k: int
    k: int | None
    l: int | None  # noqa: E741 - the literature's name
    order: Order
    graph: GraphKind
    truth: Truth | None
    records: int
    universe: int
    statistics: FitTimes


@dataclass(frozen=True)
class SetValuedFacts(CountsWorth, Measured, SetValuedFit):
    """The fit, with losses, the accuracy of counts and what an attacker gains.

    definition_only: whether the guarantee holds by its definition only, because one known link reveals a whole ring or group.
    """

    definition_only: bool
    risk: SetValuedRisk
    frequent_items: tuple[FrequentItem, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    crowds: tuple[CrowdRange, ...] = ()

    def summary(self) -> list[str]:
        """The utility of the release, and what an attacker gains."""
        example, error = self.example, self.measures.er
        rate, promise = self.risk.link_attack.rate_by_fit, self.risk.link_attack.promised_at_most
        rebuilt = self.risk.reconstruction
        known = f"{rebuilt.records_known_in_all_items_by_who_knows_the_order:.1%}"
        more = " or more" if rebuilt.more_may_be_known else ""
        how = "by who knows the order of rows" if self.graph == "ring" else "from the rows alone"
        lines = [] if error is None else [f"Error rate {error:.4f}: wrong items of a row per item of its record."]
        if example is not None:
            bounds = f"{example.lower:,} to {example.upper:,}, estimated {example.estimate:,.1f}"
            lines.append(f"Rows with the most frequent item: {bounds}.")
        return [
            *lines,
            f"A simulated link attack finds {rate:.4f} of the rows, promised at most {promise:.4f}.",
            f"The items are not protected: {known}{more} of the records can be worked out {how}.",
        ]
