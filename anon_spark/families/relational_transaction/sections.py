"""The relational_transaction family's part of a report: what was lost, what counts are worth, class sizes, an attacker's gain.

Built from numbers, names of columns, and labels and items that the release shows in k rows or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_spark.families.relational_transaction.facts import CountError, RelationalTransactionFacts
from anon_spark.families.relational_transaction.settings import Bound, ItemMethod, Merge, Method
from anon_spark.model.estimate import EXACT_RULE, Estimate
from anon_spark.report.columns import crowd_items, detail_items, distribution_items
from anon_spark.report.formats import NOTHING, counted, percent, seconds, show
from anon_spark.report.items import Bars, Item, Section, Table, Text
from anon_spark.report.relational import MEASURE_HEAD, class_items, refuse_small_classes
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

    Guarantee: no class below required_k; ValueError if the facts hold one.
    """
    refuse_small_classes(facts.required_k, facts.class_sizes)
    counts = [Section("What counts are worth", _count_items(facts.relative_error))] if facts.relative_error else []
    shown = [*distribution_items(facts.distributions, facts.required_k), *_frequent_items(facts)]
    return [
        Section("What was lost", _loss_items(facts)),
        *([Section("Every column before and after", shown)] if shown else []),
        *counts,
        Section("What an attacker gains", _risk_items(facts)),
        Section("Sizes of the published classes", class_items(facts.class_sizes, facts.required_k)),
        Section("Clusters and merging", _merging_items(facts)),
    ]


def _loss_items(facts: RelationalTransactionFacts) -> list[Item]:
    measures, suppressed = facts.measures, facts.suppressed_occurrences / max(1, facts.occurrences)
    rows = [
        (RELATIONAL_LOSS, measures.ncp, "share", "less"),
        ("loss of items (UL), 0 to 1", measures.ul, "share", "less"),
        ("loss of items against the whole domain", measures.log2_ul_dom, "power of 2", "less"),
        ("items that the largest generalized item stands for", measures.largest_item, "items", "less"),
        ("published items that stand for themselves", percent(measures.kept_items), "share of items", "more"),
        ("rare items that are not published", facts.suppressed_items or None, "items", "fewer"),
        ("their share of all occurrences", percent(suppressed) if facts.suppressed_items else None, "share", "less"),
        ("clusters", measures.clusters, "clusters", "more"),
        ("smallest cluster", measures.smallest, "records", NOTHING),
        ("largest cluster", measures.largest, "records", "fewer"),
    ]
    bars = {BOUNDED["relational"]: measures.ncp, BOUNDED["items"]: measures.ul}
    limit = None if facts.bound is None or facts.delta is None else (facts.delta, f"delta, the bound on {BOUNDED[facts.bound]}")
    return [
        Bars(
            "Loss of both parts", list(bars), {"loss": list(bars.values())}, "loss from 0 to 1; less is better",
            most=1.0, limit=limit,
        ),
        *detail_items(facts.detail_lost),
        Table("", MEASURE_HEAD, [row for row in rows if row[1] is not None], UL_NOTE),
    ]  # fmt: skip


def _frequent_items(facts: RelationalTransactionFacts) -> list[Item]:
    """The most frequent items: records that have them, rows that show them by themselves or in a group."""
    if not facts.frequent_items:
        return []
    items, rows = facts.frequent_items, max(1, facts.records)
    series = {
        "source": [item.records / rows for item in items],
        "release, by itself": [item.alone / rows for item in items],
        "release, in a group of items": [item.grouped / rows for item in items],
    }
    note = f"An item is named only if at least {show(facts.required_k)} rows of the release show it."
    return [Bars("The most frequent items", [item.label for item in items], series, "share of rows", note, as_share=True)]


def _count_items(errors: Sequence[CountError]) -> list[Item]:
    names = [KINDS[error.values, error.items] for error in errors]
    words = (
        f"{show(errors[0].queries)} counts of each kind were made up from random records and estimated from the release. "
        "The error is |true − estimated| / true, averaged: 1 is as wrong as saying nothing. A generalized item can be read "
        "in two ways: any non-empty set of its items is as likely, or each item by itself."
    )
    readings = {
        "any set as likely": [error.sets for error in errors],
        "each item by itself": [error.uniform for error in errors],
    }
    unit, silence = "mean relative error; less is better", (1.0, "as wrong as saying nothing")
    return [Text("", [words]), Bars("Mean relative error of a count (ARE)", names, readings, unit, limit=silence)]


def _risk_items(facts: RelationalTransactionFacts) -> list[Item]:
    attacks = list(facts.risk.knowledge_attack.values())
    words = (
        f"Somebody knows all relational values of a person and some of its items, and looks for rows that fit. Up to m = "
        f"{counted(facts.m, 'item')} at least {facts.required_k} rows fit. Beyond that nothing is promised: the other bars show "
        "what more knowledge finds."
    )
    names, promise = [_knowledge(attack) for attack in attacks], attacks[0].promise
    means = [attack.success for attack in attacks]
    intervals = [None if attack.error is None else _ends(attack) for attack in attacks]
    head = (
        *("known", "promised", "mean chance", "95 % interval", "worst chance"),
        *("fewest rows", "records below k", "sensitive item learnt"),
    )
    line = (promise, f"promised at most, with up to {counted(facts.m, 'item')}")
    note = f"A sample of {show(attacks[0].records)} records. Chances go from 0 to 1; less is better, but more rows that fit."
    if facts.l is not None:
        note += f" A sensitive item is learnt with at most {show(1 / facts.l)} where it is promised."
    elif facts.sensitive_items:
        note += " Sensitive items are published without protection: nothing limits what is learnt of them."
    return [
        Text("", [words, f"Promised at most: {percent(promise)} at worst. {EXACT_RULE}"]),
        *crowd_items(facts.crowds, "relational values (items aside)"),
        Bars(
            "Chance to pick the right row, at worst", names, {"chance": [attack.worst for attack in attacks]},
            "chance of the least protected record; less is better", as_share=True, most=1.0, limit=line,
        ),
        Bars(
            "Chance to pick the right row, on average", names, {"chance": means},
            "mean chance; less is better", "The thin line is the 95 % interval.", as_share=True, most=1.0, limit=line,
            intervals=intervals,
        ),
        Table("Knowledge attack", head, [_attack_row(attack) for attack in attacks], note, folded=True),
    ]  # fmt: skip


def _attack_row(attack: KnowledgeRisk) -> tuple[object, ...]:
    return (
        *(_knowledge(attack), "yes" if attack.promised else "no", attack.success, _interval(attack)),
        *(attack.worst, attack.least, attack.below, attack.share),
    )


def _interval(attack: KnowledgeRisk) -> str | None:
    if attack.error is None:
        return None
    low, high = _ends(attack)
    return f"{low:.4f} to {high:.4f} (standard error {attack.error:.4f})"


def _ends(attack: KnowledgeRisk) -> tuple[float, float]:
    return Estimate(attack.success, attack.error, attack.promise).interval


def _knowledge(attack: KnowledgeRisk) -> str:
    return "values and all items" if attack.items is None else f"values and {counted(attack.items, 'item')}"


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
    return [Table("How the clusters were made", ("what", "value"), _known(rows), folded=True)]


def _known(rows: Sequence[tuple[str, object]]) -> list[tuple[str, object]]:
    """The rows that have a value."""
    return [(name, value) for name, value in rows if value is not None]
