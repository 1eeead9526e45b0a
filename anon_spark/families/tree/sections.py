"""The tree family's part of a report: what was lost, what holds, what attackers gain, how the cut was found.

From numbers, names of node types, and values of unchanged columns that k records or more have: no label of a node, and not
which relations were disassociated.
"""

from __future__ import annotations

import math

from anon_spark.families.tree.facts import KnowledgeAttack, TreeFacts
from anon_spark.model.estimate import EXACT_RULE, INTERVAL_ERRORS
from anon_spark.report.columns import crowd_items, detail_items, distribution_items
from anon_spark.report.formats import NOTHING, counted, seconds, show
from anon_spark.report.items import Bars, Item, Picture, Section, Table, Text
from anon_spark.report.plots import range_name, trail_plot
from anon_spark.report.relational import MEASURE_HEAD

MEASURES = {
    "rpd": "chance to guess a path (RPD), 0 to 1",
    "rpd_a": "what cuts were compared by (RPD_a)",
    "ncp": "how many other values a published one could be (NCP), 0 to 1",
    "relations_kept": "relations that are kept, as a share",
}
UNITS = {"rpd": ("chance", "less"), "rpd_a": ("chance", "less"), "ncp": ("share", "less"), "relations_kept": ("share", "more")}
STRUCTURE = {
    "relations": ("relations that were disassociated", "relations", "fewer"),
    "drawn": ("pieces of knowledge with one of them", "pieces", NOTHING),
    "seen": ("of these, some record shows it that way", "pieces", "fewer"),
    "exposed": ("of these, fewer than k records do", "pieces", "fewer"),
    "least": ("fewest records that show it that way", "records", "more"),
    "found": ("exposed, and the person is among these records", "pieces", "fewer"),
}
OTHERS = (
    "A label that has other published labels below it stands for the values that these leave over: any of its group, but none "
    "that has a label of its own."
)
SEARCHES = {
    "beam": "beam: the cheapest cuts of every generation",
    "gcs": "gcs: the cheapest cut of a queue first",
    "ocs": "ocs: as gcs, no relation is ever disassociated",
    "acs": "acs: all cuts",
}
COUNTED = {"driver": "where the search ran", "tasks": "in tasks"}
KNOWLEDGE_NOTE = "Pieces of knowledge that were drawn; fewer that fit 1 to k - 1 records are better."
PROMISED = "Promised: no knowledge within m and n fits 1 to k - 1 records."
RULE_OF_THREE = "Where none of so many draws was found, the true share is below 3 / drawn with 95 %."
AWARE = (
    "Somebody who knows the schema can look for a value that stands without the node type that was above it: such a value lost "
    "a relation. The guarantee does not cover that. Counted: knowledge with a relation that was disassociated, and how often "
    "fewer than k records show it that way."
)


def tree_sections(facts: TreeFacts) -> list[Section]:
    """The sections of a release.

    Guarantee: no support below required_k; ValueError if the facts hold one.
    """
    small = sum(supports.least < facts.required_k for supports in facts.supports)
    if small:
        raise ValueError(f"supports: {small} ranges start below k = {facts.required_k}. Count what the audit verified only.")
    shown = distribution_items(facts.distributions, facts.required_k)
    return [
        Section("What was lost", _loss_items(facts)),
        *([Section("Every unchanged column before and after", shown)] if shown else []),
        Section("What an attacker gains", _risk_items(facts)),
        Section("What many records share", _support_items(facts)),
        Section("How the cut was found", _search_items(facts)),
    ]


def _loss_items(facts: TreeFacts) -> list[Item]:
    measures = [(MEASURES[name], value, *UNITS[name]) for name, value in vars(facts.measures).items() if value is not None]
    names = [one.name for one in facts.published]
    parts = {
        "as they were": [one.exact for one in facts.published],
        "as a group": [one.group for one in facts.published],
        "as the root": [one.root for one in facts.published],
    }
    title, unit = "How the values of each node type are published", "share of values; more as they were is better"
    items: list[Item] = [
        Text("", [*([OTHERS] if facts.partial else []), _relation_words(facts)]),
        *detail_items({one.name: one.ncp for one in facts.published}, "node type", "values"),
        Bars(title, names, parts, unit, as_share=True, stacked=True, most=1.0),
        Table("", MEASURE_HEAD, measures),
    ]
    rows = [
        (cut.name, cut.values, cut.label_count or "in *", cut.labels[0], "yes" if cut.sensitive else "no")
        for cut in facts.node_types
    ]
    head = ("node type", "values", "labels in the cut", "of them values as they were", "sensitive")
    items.append(Table("Node types", head, rows))
    if facts.disassociated:
        pairs = [(pair.upper, pair.lower, pair.pairs) for pair in facts.disassociated]
        items.append(Table("Relations disassociated", ("upper node type", "lower node type", "pairs of labels"), pairs))
    return items


def _relation_words(facts: TreeFacts) -> str:
    if facts.disassociated_relations:
        return (
            f"Disassociated in all records: {counted(facts.disassociated_relations, 'relation')} between labels. The lower value "
            "stands beside the upper one there, without what hung below it. A true relation may be missing from a record; "
            "none was invented."
        )
    if facts.nested:
        return "No relation was disassociated: the release also holds the records as nested values."
    return "No relation was disassociated."


def _support_items(facts: TreeFacts) -> list[Item]:
    words = (
        f"Every set of up to m = {facts.m} labels that occurs in a record, with any n = {facts.n} or fewer relations among "
        f"them, was counted in the release by the audit: each is in at least {facts.required_k} records."
    )
    sets = {range_name(supports.least, supports.most): supports.sets for supports in facts.supports}
    unit = "sets, by records that share the set; more records are better"
    bars = Bars("How many records share what may be known", list(sets), {"sets": list(sets.values())}, unit)
    items: list[Item] = [Text("", [words]), bars]
    if facts.highest_share is not None and facts.l is not None:
        share = f"The most frequent sensitive value has a share of {show(facts.highest_share)} among records that fit."
        items.append(Text("", [f"{share} At most {show(1 / facts.l)} is promised."]))
    return items


def _risk_items(facts: TreeFacts) -> list[Item]:
    attacks, aware = list(facts.risk.knowledge_attack.values()), facts.risk.structure_attack
    words = (
        "Somebody draws knowledge from true records and looks for published records that fit. What is promised leaves none, or "
        f"{facts.required_k} and more; the other rows show what more knowledge finds."
    )
    rates = [attack.share_below for attack in attacks]
    names = [f"{_known(attack)} ({'promised' if attack.promised else 'not promised'})" for attack in attacks]
    rows = [
        (_known(row), "yes" if row.promised else "no", row.drawn, row.nothing, row.below, row.least, row.lost)
        for row in attacks
    ]
    few = f"fit 1 to {facts.required_k - 1}"
    head = ("known", "promised", "drawn", "fit no record", few, "fewest records that fit", "without the person")
    items: list[Item] = [
        Text("", [words, *([AWARE] if aware is not None else []), f"{PROMISED} {RULE_OF_THREE} {EXACT_RULE}"]),
        Bars(
            "Knowledge that fits fewer than k records, but some", names, {"share": rates},
            "share of what was drawn; less is better", "The thin line is the 95 % interval.", as_share=True, most=1.0,
            intervals=[_interval(attack) for attack in attacks],
        ),
    ]
    items += crowd_items(facts.crowds, "values in the same places", "records", _crowd_note(facts))
    if aware is not None:
        seen = [(STRUCTURE[name][0], value, *STRUCTURE[name][1:]) for name, value in vars(aware).items()]
        items.append(Table("Structure-aware attacker", MEASURE_HEAD, seen))
    return [*items, Table("Knowledge attack", head, rows, KNOWLEDGE_NOTE, folded=True)]


def _crowd_note(facts: TreeFacts) -> str:
    """What the sizes of crowds say here: in this family they are not what is promised."""
    secret = " Of sensitive values only the node type counts." if any(one.sensitive for one in facts.node_types) else ""
    return (
        f"These are whole records: a record is found by somebody who knows all of it and is alone with it. That is more than "
        f"the {counted(facts.m, 'value')} and {counted(facts.n, 'relation')} of the promise, so crowds in the release may be "
        f"smaller than {facts.required_k}, also for nearly all records. What is promised is in the bars above.{secret}"
    )


def _interval(attack: KnowledgeAttack) -> tuple[float, float]:
    """The 95 % interval of the share (Wilson), which holds for few draws and for none that was found."""
    drawn, share = max(1, attack.drawn), attack.share_below
    square = INTERVAL_ERRORS**2 / drawn
    middle, half = share + square / 2, INTERVAL_ERRORS * math.sqrt(share * (1 - share) / drawn + square / (4 * drawn))
    low = 0.0 if attack.below == 0 else max(0.0, (middle - half) / (1 + square))
    return low, min(1.0, (middle + half) / (1 + square))


def _known(attack: KnowledgeAttack) -> str:
    absent = f", {counted(attack.negated, 'group' if attack.level else 'value')} absent" if attack.negated else ""
    return f"{counted(attack.labels, 'value')}, {counted(attack.relations, 'relation')}{absent}"


def _search_items(facts: TreeFacts) -> list[Item]:
    search = facts.search
    rows = [
        ("Records", facts.records),
        ("Values in them", facts.nodes),
        *([] if facts.merged_siblings is None else [("Equal siblings that were put together", facts.merged_siblings)]),
        ("Search", SEARCHES[search.search]),
        ("Cuts there are", _many(search.cuts)),
        ("Cuts judged", search.evaluated),
        ("Cuts whose label sets hold", search.passed_value_check),
        ("Rounds of counting", search.rounds),
        ("Counted", COUNTED[search.counted]),
        *([("Stopped early", f"by {search.stopped_by}")] if search.stopped_by else []),
        ("Time of reading", seconds(search.seconds_reading)),
        ("Time of the search", seconds(search.seconds)),
    ]
    (_, first), (last_at, last) = search.trail[0], search.trail[-1]
    words = f"From {show(first)} for everything alike to {show(last)}."
    return [
        Picture("Best loss by cuts judged", trail_plot(search.trail, max(search.evaluated, last_at)), words),
        Table("How the search went", ("what", "value"), rows, folded=True),
    ]


def _many(cuts: str) -> str:
    """A number that may be too large to write out."""
    return show(int(cuts)) if len(cuts) <= 9 else f"about 10^{len(cuts) - 1}"
