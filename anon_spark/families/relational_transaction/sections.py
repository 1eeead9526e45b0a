"""The relational_transaction family's part of a report: what was lost, what counts are worth, class sizes, an attacker's gain.

Built from numbers only: no item, no value and no label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_spark.families.relational_transaction.facts import CountError, RelationalTransactionFacts
from anon_spark.families.relational_transaction.settings import Bound, ItemMethod, Merge, Method
from anon_spark.model.estimate import EXACT_RULE, Estimate
from anon_spark.report.formats import seconds, show
from anon_spark.report.items import Item, Picture, Section, Table, Text
from anon_spark.report.plots import panels_plot, rates_plot
from anon_spark.report.relational import class_items, refuse_small_classes
from anon_spark.risk import KnowledgeRisk

RELATIONAL_LOSS = "relational loss (NCP), 0 to 1"
KINDS = {(2, 0): "two values", (0, 2): "two items", (1, 1): "a value and an item"}
UL_NOTE = "UL of a row with one generalized item is 1, however small that item is, and so is that of a row with an item left out."
METHODS: Mapping[Method, str] = {
    "rfirst": "rfirst: clusters by relational values, nothing merged",
    "tfirst": "tfirst: blocks by items, whatever the relational values",
}
BOUNDED: Mapping[Bound, str] = {"relational": "relational values (NCP)", "items": "items (UL)"}
ORDERS: Mapping[Merge, str] = {"relational": "by relational values", "items": "by items", "both": "by both"}
ITEM_METHODS: Mapping[ItemMethod, str] = {
    "sets": "free sets",
    "apriori": "cuts of the item hierarchy",
    "local": "cuts of the item hierarchy, by blocks of similar records",
    "vertical": "cuts of the item hierarchy, branch by branch first",
}


def relational_transaction_sections(facts: RelationalTransactionFacts) -> list[Section]:
    """The sections of a release; the accuracy of counts is left out if no record allows a query.

    Guarantee: no label, no class below required_k; ValueError if the facts hold one.
    """
    refuse_small_classes(facts.required_k, facts.class_sizes)
    counts = [Section("What counts are worth", _count_items(facts.relative_error))] if facts.relative_error else []
    return [
        Section("What was lost", _loss_items(facts)),
        *counts,
        Section("Sizes of the published classes", class_items(facts.class_sizes, facts.required_k)),
        Section("What an attacker gains", _risk_items(facts)),
        Section("Clusters and merging", _merging_items(facts)),
    ]


def _loss_items(facts: RelationalTransactionFacts) -> list[Item]:
    measures, suppressed = facts.measures, facts.suppressed_occurrences / max(1, facts.occurrences)
    rows = [
        (RELATIONAL_LOSS, measures.ncp),
        ("loss of items (UL), 0 to 1", measures.ul),
        ("loss of items against the whole domain, as a power of 2", measures.log2_ul_dom),
        ("items that the largest generalized item stands for", measures.largest_item),
        ("share of published items that stand for themselves", measures.kept_items),
        ("rare items that are not published", facts.suppressed_items or None),
        ("their share of all occurrences", suppressed if facts.suppressed_items else None),
        ("clusters", measures.clusters),
        ("records of the smallest cluster", measures.smallest),
        ("records of the largest cluster", measures.largest),
    ]
    bars = {BOUNDED["relational"]: measures.ncp, BOUNDED["items"]: measures.ul}
    values = "; ".join(f"{name}: {show(value)}" for name, value in bars.items())
    line = "" if facts.bound is None else f" The dashed line is delta, the bound on {BOUNDED[facts.bound]}."
    return [
        Picture("Loss of both parts", rates_plot(bars, facts.delta), f"0 loses nothing, 1 everything. {values}.{line}"),
        Table("", ("measure", "value"), _known(rows), UL_NOTE),
    ]


def _count_items(errors: Sequence[CountError]) -> list[Item]:
    names = [KINDS[error.values, error.items] for error in errors]
    words = (
        f"{show(errors[0].queries)} counts of each kind were made up from random records and estimated from the release. "
        "The error is |true − estimated| / true, averaged: 1 is as wrong as saying nothing. A generalized item can be read "
        "in two ways: any non-empty set of its items is as likely, or each item by itself."
    )
    panels = {
        "any set as likely": [error.sets for error in errors],
        "each item by itself": [error.uniform for error in errors],
    }
    both = "; ".join(
        f"{name}: {show(error.sets)} and {show(error.uniform)}" for name, error in zip(names, errors, strict=True)
    )
    return [Text("", [words]), Picture("Mean relative error of a count (ARE)", panels_plot(names, panels), f"{both}.")]


def _risk_items(facts: RelationalTransactionFacts) -> list[Item]:
    attacks = list(facts.risk.knowledge_attack.values())
    words = (
        f"Somebody knows all relational values of a person and some of its items, and looks for rows that fit. Up to m = "
        f"{facts.m} items at least {facts.required_k} rows fit. Beyond that nothing is promised: the other bars show what "
        "more knowledge finds."
    )
    bars = {_knowledge(attack): attack.worst for attack in attacks}
    chances = "; ".join(f"{name}: {show(chance)}" for name, chance in bars.items())
    promise = attacks[0].promise
    head = (
        *("known", "promised", "mean chance", "95 % interval", "worst chance"),
        *("fewest rows", "records below k", "sensitive item learnt"),
    )
    note = f"A sample of {show(attacks[0].records)} records."
    if facts.l is not None:
        note += f" A sensitive item is learnt with at most {show(1 / facts.l)} where it is promised."
    elif facts.sensitive_items:
        note += " Sensitive items are published without protection: nothing limits what is learnt of them."
    return [
        Text("", [words, f"Promised at most: {show(promise)} at worst. {EXACT_RULE}"]),
        Picture("Chance to pick the right row, at worst", rates_plot(bars, promise), f"{chances}."),
        Table("Knowledge attack", head, [_attack_row(attack) for attack in attacks], note),
    ]


def _attack_row(attack: KnowledgeRisk) -> tuple[object, ...]:
    return (
        *(_knowledge(attack), "yes" if attack.promised else "no", attack.success, _interval(attack)),
        *(attack.worst, attack.least, attack.below, attack.share),
    )


def _interval(attack: KnowledgeRisk) -> str | None:
    if attack.error is None:
        return None
    low, high = Estimate(attack.success, attack.error, attack.promise).interval
    return f"{low:.4f} to {high:.4f} (standard error {attack.error:.4f})"


def _knowledge(attack: KnowledgeRisk) -> str:
    return "values and all items" if attack.items is None else f"values and {show(attack.items)} items"


def _merging_items(facts: RelationalTransactionFacts) -> list[Item]:
    statistics = facts.statistics
    rows = [
        ("Records", facts.records),
        ("Different items that are published", facts.universe),
        ("Sensitive items", facts.sensitive_items),
        ("Method", METHODS.get(facts.method)),
        ("Bounded", None if facts.bound is None else f"the loss of {BOUNDED[facts.bound]}"),
        ("Bound (delta)", facts.delta),
        ("Partners of a cluster are chosen", None if facts.merge is None else ORDERS[facts.merge]),
        ("First clusters move between merged ones", "yes" if facts.moves else None),
        ("Items become", ITEM_METHODS[facts.items]),
        ("Clusters before merging", statistics.initial_clusters),
        ("Relational loss before merging (NCP)", statistics.initial_ncp),
        ("Loss of items before merging (UL)", statistics.initial_ul),
        ("Groups that were merged apart", statistics.groups),
        ("Time of reading", seconds(statistics.seconds_reading)),
        ("Time of clusters, merging and items", seconds(statistics.seconds)),
    ]
    return [Table("", ("what", "value"), _known(rows))]


def _known(rows: Sequence[tuple[str, object]]) -> list[tuple[str, object]]:
    """The rows that have a value."""
    return [(name, value) for name, value in rows if value is not None]
