"""The set_valued family's part of a report: what was lost, what counts are worth, what an attacker gains, order and graph.

Built from numbers, and from items and sensitive values that k rows or more of the release have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_spark.families.set_valued.block import GraphKind
from anon_spark.families.set_valued.facts import (
    CountExample,
    Measures,
    QueryErrors,
    Rebuilt,
    SetValuedFacts,
    UncertainItems,
)
from anon_spark.model.estimate import RULE
from anon_spark.report.columns import crowd_items, distribution_items
from anon_spark.report.formats import NOTHING, counted, percent, seconds, show, wording
from anon_spark.report.items import Bars, Item, Section, Table, Text
from anon_spark.report.plots import range_name
from anon_spark.report.relational import MEASURE_HEAD
from anon_spark.risk.item_sets.relink_facts import Attack, KnownLink, LinkAttack

ERROR_RATE = "error rate (ER): wrong items of a row per item of its record, expected over the draw"
ORDERS = {
    "gray": "sorted by Gray code",
    "gray_tsp": "Gray code, then short tours (as published)",
    "window": "Gray code, improved for whole neighbourhoods",
    "window_nearest": "nearest neighbourhoods, improved",
    "spaced": "nearest neighbourhoods with sensitive values apart",
}
GRAPHS: Mapping[GraphKind, str] = {
    "ring": "ring: neighbourhoods overlap",
    "groups": "groups: disjoint neighbourhoods",
}
REBUILT = {
    "records_looked_at": "records looked at",
    "records_known_in_all_items_by_who_knows_the_order": "records known in all items, by who knows the order of rows",
    "items_known_by_who_knows_the_order": "items known, by who knows the order of rows",
    "records_known_in_all_items_from_the_rows_alone": "records known in all items, from the rows alone",
    "rows_whose_most_similar_row_is_a_neighbour": "rows whose most similar row is a neighbour",
    "more_may_be_known": "more may be known, because the search was cut short",
}
ATTACKS: Mapping[Attack, str] = {"fit": "nearest row that fits", "simulation": "most frequent in own draws"}


def set_valued_sections(facts: SetValuedFacts) -> list[Section]:
    """The sections of a release; the accuracy of counts is left out if no record has items."""
    weak = [Section("Definition only", _weak_items(facts))] if facts.definition_only else []
    counts = []
    if facts.queries is not None:
        counts.append(Section("What counts are worth", _query_items(facts.queries, facts.example)))
    shown = [*distribution_items(facts.distributions, facts.required_k), *_frequent_items(facts)]
    return [
        *weak,
        Section("What was lost", _loss_items(facts.measures, facts.uncertain_items)),
        *([Section("Items and sensitive values before and after", shown)] if shown else []),
        *counts,
        Section("What an attacker gains", _risk_items(facts)),
        Section("Order and graph", _order_items(facts)),
    ]


def _weak_items(facts: SetValuedFacts) -> list[Item]:
    name = "k" if facts.l is None else "l"
    whole = "ring" if facts.graph == "ring" else "group"
    why = (
        "equal sensitive values stand just l places apart, so a ring has only l possible assignments"
        if facts.truth == "shift" and facts.graph == "ring"
        else f"with {name} = {facts.required_k} a {whole} has only two possible assignments"
    )
    words = (
        f"The guarantee holds by its definition only: {why}. Whoever knows which row is one person's knows it of everybody "
        f"in that {whole}. For a release that strangers get, take {name} of 3 or more and truth: spaced."
    )
    return [Text("", [words])]


def _loss_items(measures: Measures, uncertain: Sequence[UncertainItems]) -> list[Item]:
    rows = [
        (ERROR_RATE, measures.er, "items per item", "less"),
        ("uncertain items of a row, mean", measures.uncertain, "items", "fewer"),
        ("greatest number of wrong items of a row, mean", measures.max_errors, "items", "fewer"),
        ("records without items, left out of the error rate", measures.empty, "records", NOTHING),
    ]
    sizes = {range_name(group.least, group.most): group.rows for group in uncertain}
    unit = "rows, by uncertain items of a row; fewer uncertain items are better"
    return [
        Table("", MEASURE_HEAD, rows, "No item is generalized: a row is a record with errors."),
        Bars("Rows by their uncertain items", list(sizes), {"rows": list(sizes.values())}, unit),
    ]


def _frequent_items(facts: SetValuedFacts) -> list[Item]:
    """The most frequent items: how many rows have them for certain, how many perhaps, and how many records have them."""
    if not facts.frequent_items:
        return []
    names = [item.label for item in facts.frequent_items]
    rows = max(1, facts.records)
    series = {
        "source": [item.records / rows for item in facts.frequent_items],
        "release, certainly": [item.certain / rows for item in facts.frequent_items],
        "release, possibly": [item.possible / rows for item in facts.frequent_items],
    }
    note = (
        f"An item is named only if at least {show(facts.required_k)} rows list it. The true count lies between certainly and "
        "possibly."
    )
    unit = "share of records or rows that have the item"
    return [Bars("The most frequent items", names, series, unit, note, as_share=True)]


def _query_items(queries: QueryErrors, example: CountExample | None) -> list[Item]:
    words = (
        f"{show(queries.number)} random queries of each type were answered on the published items (base) and on the "
        "originals. The error of a query is the difference of the two counts as a share of all rows."
    )
    names = [
        f"rows that have {counted(queries.size_present, 'item')} (type I)",
        f"rows that have none of {counted(queries.size_absent, 'item')} (type II)",
    ]
    errors = {
        "if nothing is said": [queries.present_if_nothing_is_said, queries.absent_if_nothing_is_said],
        "on the release": [queries.present, queries.absent],
    }
    items: list[Item] = [
        Text("", [words]),
        Bars("Mean error of a count (QE)", names, errors, "share of all rows; less is better", as_share=True),
    ]
    if example is not None:
        rows = [
            ("certainly", example.lower),
            ("estimated", example.estimate),
            ("possibly", example.upper),
            ("by the base items alone", example.base),
        ]
        note = "The true count is never outside the bounds; anon_spark.count counts like this on any release."
        items.append(Table("Example: how many rows have some frequent item", ("rows that have it", "rows"), rows, note))
    return items


def _risk_items(facts: SetValuedFacts) -> list[Item]:
    risk, crowds = facts.risk, crowd_items(facts.crowds, "items; in the release rows that may be the person's")
    attack = _attack_items(risk.link_attack, crowds)
    return [*attack, *_known_link_items(risk.known_link), *_rebuilt_items(risk.reconstruction)]


def _attack_items(attack: LinkAttack, crowds: Sequence[Item]) -> list[Item]:
    """Each simulated rate next to the promise, and the rule that judges it."""
    words = (
        "Somebody who knows all item sets and the method, but no sensitive value and no draw, guesses which row is whose. "
        "The attack was run against fresh draws on the same graph, never against the published one."
    )
    promise, estimates = attack.promised_at_most, attack.estimates.items()
    judged = [f"{wording(ATTACKS[name])}: {estimate}; promised at most {promise:.4f}." for name, estimate in estimates]
    rule = f"{RULE} With so many draws that is a rate of {attack.refused_from_a_rate_of:.4f}."
    rates = {"rate": [estimate.rate for _, estimate in estimates]}
    unit, note = "share of records whose row was found; less is better", "The thin line is the 95 % interval."
    head = ("attack", "rate, 0 to 1 (less is better)", "standard error", "standard errors above the promise")
    drawn = f"{show(attack.sampled_records)} records, {show(attack.fresh_draws)} fresh draws."
    rows = [(ATTACKS[name], one.rate, one.error, one.errors_above) for name, one in estimates]
    return [
        Text("", [words, *judged, rule]),
        *crowds,
        Bars(
            "Records found by a link attack", [ATTACKS[name] for name, _ in estimates], rates, unit, note, as_share=True,
            limit=(promise, "promised at most"), intervals=[estimate.interval for _, estimate in estimates],
        ),
        Table("Link attack", head, rows, drawn, folded=True),
    ]  # fmt: skip


def _known_link_items(known: KnownLink) -> list[Item]:
    """Rates of an attacker with one known link; empty if no pair of records was tried."""
    words = (
        "One known link: somebody also knows which row is one person's. Nothing is promised then. Measured on fresh draws of "
        "the same graph: how often the row of another record is found, by the place that is most frequent beside the known one."
    )
    kinds = {
        "no link": known.none,
        "the link of a record that shares a row with it": known.neighbour,
        "the link of another record of its block": known.other,
    }
    rows = [
        (kind, estimate.rate, f"{estimate.interval_from:.4f} to {estimate.interval_to:.4f}", estimate.standard_error)
        for kind, estimate in kinds.items()
        if estimate is not None
    ]
    if not rows:
        return []
    if known.none is not None and known.neighbour is not None:
        words += f" A known link lifts the rate of a neighbour from {known.none.rate:.4f} to {known.neighbour.rate:.4f}."
    head = ("known beside all item sets and the graph", "rows found", "95 % interval", "standard error")
    return [Table("What one known link tells (share of rows found; less is better)", head, rows, words)]


def _rebuilt_items(rebuilt: Rebuilt) -> list[Item]:
    words = (
        "Items are not protected. Somebody who knows no item set at all solves for the records that rows stand for: of groups, "
        "where one possibility is left for all records of a group; of rings, by chaining rows that overlap. The share below was "
        "rebuilt so, without any draw. Do not use this family where an item is sensitive."
    )
    rows = [(REBUILT[name], *_rebuilt(value)) for name, value in vars(rebuilt).items()]
    return [Table("Reconstruction of item sets", MEASURE_HEAD, rows, words)]


def _rebuilt(value: float | bool) -> tuple[object, str, str]:
    if isinstance(value, bool):
        return value, "yes or no", "no"
    return (value, "records", NOTHING) if isinstance(value, int) else (percent(value), "share", "less")


def _order_items(facts: SetValuedFacts) -> list[Item]:
    measures, times = facts.measures, facts.statistics
    rows = [
        ("Records", facts.records),
        ("Different items", facts.universe),
        ("Graph", GRAPHS[facts.graph]),
        *([] if facts.truth is None else [("Equal sensitive values kept apart by", facts.truth)]),
        ("Blocks", measures.blocks),
        ("Pairs of a record and a row it may be", measures.edges),
        ("Steps of the random walks", measures.steps),
        ("Time of sorting", seconds(times.seconds_sort)),
        ("Time of cutting into blocks", seconds(times.seconds_blocks)),
        ("Time of orders, graphs and draws", seconds(times.seconds)),
    ]
    orders = [(ORDERS.get(kind, kind), blocks) for kind, blocks in facts.orders.items()]
    note = f"Asked for: {facts.order}. Of the orders tried in a block, the one with the fewest errors is taken."
    return [
        Table("How the rows were made", ("what", "value"), rows, folded=True),
        Table("Order of the records", ("order", "blocks"), orders, note, folded=True),
    ]
