"""The promise of a nonreciprocal recoding, by its private graph: rounds are perfect matchings, sensitive values moved.

The frames: `linked`, the records that are recoded, with LINK; `staged`, the release with BLOCK and SLOT; `edges`, with
LINK, BLOCK, SLOT, ROUND, CHOSEN and PART. No verdict has a frame: it would reveal the links. `truth/nonreciprocal` checks
whether rows are true of their records.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.sums import FAULTY, fault_sums
from anon_spark.auditing.reading.values import exact, private, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import BLOCK, CHOSEN, LINK, PART, ROUND, ROWS, SLOT

_EDGES, _PARTNERS, _PLACES, _ROUNDS = (private(name) for name in ("edges", "partners", "places", "rounds"))
_FIRST, _LAST, _TAKEN, _SIDE = (private(name) for name in ("first", "last", "taken", "side"))
_LABEL, _SHOWN, _LABELS = (private(name) for name in ("label", "shown", "labels"))
_WRITTEN = "_written"
_LABEL_FAULTS = ("unlinked", "not_moved", "alike")
_EDGE = [LINK, BLOCK, SLOT, ROUND, CHOSEN, PART]
_END_TEXTS = {
    "unknown": "are in the graph, and not in the table",
    "repeated": "are in the table more than once",
    "few": "have too few edges",
    "doubled": "have an edge twice",
    "scattered": "have edges in several parts",
    "rounds": "are not in each round once",
    "chosen": "do not have exactly one chosen edge",
}
_NO_PART_FAULTS = {"uneven": 0, "choices": 0, "incomplete": 0}
_PART_TEXTS = {"uneven": "parts have unequal numbers of edges", "choices": "parts do not have exactly one chosen round"}


def verify_graph(linked: DataFrame, staged: DataFrame, edges: DataFrame, degree: int) -> Verdict:
    """Whether the graph and its rounds are what the promise of 1 / degree rests on.

    Guarantee: passed iff every record and every slot is there once, has at least `degree` edges, as many as all others
    of its part, none twice, one in each round 0, 1, … of that part and one that is chosen, and each part has one chosen
    round. So every round is a perfect matching of its part, rounds share no edge, and all of a part moves together. That
    the round was chosen at random no table can show.
    violations counts faults of records, slots and parts (one may have several); checked counts records, slots, parts.
    Cost: one job; three shuffles of the edges (by record, slot and part); one row reaches the driver.
    """
    require_columns(linked, [LINK], "linked records")
    require_columns(staged, [BLOCK, SLOT], "staged release")
    require_columns(edges, _EDGE, "edges")
    sides = _ends(linked, edges, [LINK], F.struct(BLOCK, SLOT)).unionByName(
        _ends(staged, edges, [BLOCK, SLOT], F.struct(LINK))
    )
    faults = _end_faults(degree)
    has_edges = F.col(_EDGES) > 0
    places = sides.groupBy(BLOCK, PART).agg(
        F.min(F.when(has_edges, F.col(_EDGES))).alias(_FIRST),
        F.max(_EDGES).alias(_LAST),
        F.count_if(F.col(_SIDE) == LINK).alias("records"),
        F.count_if(F.col(_SIDE) == SLOT).alias("slots"),
        *(
            F.count_if((F.col(_SIDE) == side) & fault).alias(f"{side}_{name}")
            for side in (LINK, SLOT)
            for name, fault in faults.items()
        ),
    )
    incomplete = reduce(or_, [F.isnull(name) for name in _EDGE])
    parts = edges.groupBy(BLOCK, PART).agg(
        F.size(F.collect_set(F.when(F.col(CHOSEN), F.col(ROUND)))).alias(_ROUNDS), F.count_if(incomplete).alias("incomplete")
    )
    counted = places.agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in places.columns if name not in (BLOCK, PART, _FIRST, _LAST)),
        F.count_if(F.col(_FIRST) < F.col(_LAST)).alias("uneven"),
    )
    chosen = parts.agg(
        F.count(F.lit(1)).alias("parts"),
        F.count_if(F.col(_ROUNDS) != 1).alias("choices"),
        F.coalesce(F.sum("incomplete"), F.lit(0)).alias("incomplete"),
    )
    return _graph_verdict(counted.crossJoin(chosen).collect()[0], degree)


def sound_graph(records: int, parts: int, degree: int) -> Verdict:
    """The verdict on a graph without faults."""
    ends = {f"{side}_{name}": 0 for side in (LINK, SLOT) for name in _END_TEXTS}
    return _graph_verdict({**ends, "records": records, "slots": records, "parts": parts, **_NO_PART_FAULTS}, degree)


def _graph_verdict(counts: Mapping[str, int] | Row, degree: int) -> Verdict:
    amounts = {LINK: f"{counts['records']} records", SLOT: f"{counts['slots']} slots"}
    messages = [
        f"{counts[f'{side}_{name}']} of {amounts[side]} {text}."
        for side in (LINK, SLOT)
        for name, text in _END_TEXTS.items()
        if counts[f"{side}_{name}"]
    ]
    for name, text in _PART_TEXTS.items():
        if counts[name]:
            messages.append(f"{counts[name]} of {counts['parts']} {text}.")
    if counts["incomplete"]:
        messages.append(f"{counts['incomplete']} edges have a null.")
    if not counts["records"]:
        messages.append("there are no records.")
    facts = {
        name: counts[f"{LINK}_{name}"] + counts[f"{SLOT}_{name}"] for name in _END_TEXTS
    } | {name: counts[name] for name in ("uneven", "choices", "incomplete", "records", "slots", "parts")}
    violations = sum(facts[name] for name in (*_END_TEXTS, "uneven", "choices", "incomplete"))
    return Verdict(
        kind=Kind.PROMISE,
        name="graph",
        passed=not messages,
        violations=violations,
        checked=counts["records"] + counts["slots"] + counts["parts"],
        detail=" ".join(messages)
        or f"{amounts[LINK]} and as many slots in {counts['parts']} parts have {degree} or more edges each, in disjoint rounds.",
        facts=facts,
    )


def verify_labels(
    linked: DataFrame,
    staged: DataFrame,
    edges: DataFrame,
    sensitive: str,
    l: int | None = None,  # noqa: E741 - the literature's name
) -> Verdict:
    """Whether each slot shows the sensitive value of its chosen record; with l, whether a record's slots show l values.

    Guarantee: passed iff there are records, the value of every record is that of the slot of its one chosen edge, and
    (with l) the values of all its slots are pairwise distinct and at least l. Null is a value, text is compared byte by
    byte. violations counts records, checked counts records. Cost: one job; the edges are shuffled twice (by slot, by
    record), records and rows once; one row reaches the driver.
    """
    require_columns(linked, [LINK, sensitive], "linked records")
    require_columns(staged, [BLOCK, SLOT, sensitive], "staged release")
    require_columns(edges, [LINK, BLOCK, SLOT, CHOSEN], "edges")
    labels = linked.select(LINK, *_label(linked, sensitive, _LABEL))
    shown = staged.select(BLOCK, SLOT, *_label(staged, sensitive, _SHOWN))
    by_record = (
        edges.join(shown, [BLOCK, SLOT], "left")
        .groupBy(LINK)
        .agg(
            F.count(F.lit(1)).alias(_EDGES),
            F.count(_SHOWN).alias(_PARTNERS),
            F.size(F.collect_set(_SHOWN)).alias(_LABELS),
            F.count_if(CHOSEN).alias(_TAKEN),
            *(F.max(F.when(F.col(CHOSEN), F.col(name))).alias(name) for name in (_SHOWN, _SHOWN + _WRITTEN)),
        )
    )
    compared = labels.join(by_record, LINK, "full")
    few = F.col(_LABELS) < F.greatest(F.col(_EDGES), F.lit(l)) if l is not None else F.lit(False)
    faults = {
        "unlinked": F.isnull(_LABEL) | F.isnull(_EDGES) | (F.col(_TAKEN) != 1) | (F.col(_PARTNERS) < F.col(_EDGES)),
        "not_moved": ~F.col(_LABEL).eqNullSafe(F.col(_SHOWN))
        | ~F.col(_LABEL + _WRITTEN).eqNullSafe(F.col(_SHOWN + _WRITTEN)),
        "alike": F.coalesce(few, F.lit(True)),
    }
    known = {name: F.coalesce(fault, F.lit(True)) for name, fault in faults.items()}
    return _labels_verdict(compared.agg(F.count(F.lit(1)).alias("records"), *fault_sums(known)).collect()[0], l)


def sound_labels(records: int, l: int | None) -> Verdict:  # noqa: E741 - the literature's name
    """The verdict on sensitive values without faults."""
    return _labels_verdict({"records": records, FAULTY: 0, **dict.fromkeys(_LABEL_FAULTS, 0)}, l)


def _labels_verdict(counts: Mapping[str, int] | Row, l: int | None) -> Verdict:  # noqa: E741 - the literature's name
    records = counts["records"]
    texts = {
        "unlinked": "have no one chosen slot",
        "not_moved": "do not find their sensitive value in the chosen slot",
        "alike": f"have slots with the same sensitive value, or fewer than {l}",
    }
    parts = [f"{counts[name]} of {records} records {text}." for name, text in texts.items() if counts[name]]
    if not records:
        parts = ["there are no records."]
    distinct = "" if l is None else f", and the slots of a record show {l} or more, all different"
    return Verdict(
        kind=Kind.PROMISE,
        name="labels",
        passed=not parts,
        violations=counts[FAULTY],
        checked=records,
        detail=" ".join(parts) or f"all {records} sensitive values moved with the assignment{distinct}.",
        facts={"l": l, "records": records, **{name: counts[name] for name in _LABEL_FAULTS}},
    )


# -- steps ----------------------------------------------------------------------------------------------------------


def _ends(table: DataFrame, edges: DataFrame, keys: list[str], partner: Column) -> DataFrame:
    """One row per record (or slot) of the table or of an edge: what its edges are like. Cost: one shuffle of edges."""
    names = {_PARTNERS: partner, _PLACES: F.struct(BLOCK, PART), ROUND: F.col(ROUND), _TAKEN: F.col(CHOSEN)}
    looks = [value.alias(name) for name, value in names.items()]
    ends = edges.select(*keys, F.lit(0).alias(ROWS), F.lit(1).alias(_EDGES), *looks)
    rows = table.select(
        *keys,
        F.lit(1).alias(ROWS),
        F.lit(0).alias(_EDGES),
        *(F.lit(None).cast(ends.schema[name].dataType).alias(name) for name in names),
    )
    place = F.min(_PLACES)
    return rows.unionByName(ends).groupBy(*keys).agg(
        F.lit(keys[-1]).alias(_SIDE),
        F.sum(ROWS).alias(ROWS),
        F.sum(_EDGES).alias(_EDGES),
        F.size(F.collect_set(_PARTNERS)).alias(_PARTNERS),
        F.size(F.collect_set(_PLACES)).alias(_PLACES),
        F.size(F.collect_set(ROUND)).alias(_ROUNDS),
        F.min(ROUND).alias(_FIRST),
        F.max(ROUND).alias(_LAST),
        F.count_if(_TAKEN).alias(_TAKEN),
        place[BLOCK].alias("block"),
        place[PART].alias("part"),
    ).select(
        _SIDE, ROWS, _EDGES, _PARTNERS, _PLACES, _ROUNDS, _FIRST, _LAST, _TAKEN,
        F.col("block").alias(BLOCK), F.col("part").alias(PART),
    )  # fmt: skip


def _end_faults(degree: int) -> Mapping[str, Column]:
    """Kind of fault → whether a record or slot of `_ends` has it."""
    edges, has_edges = F.col(_EDGES), F.col(_EDGES) > 0
    rounds = (F.col(_ROUNDS) == edges) & (F.col(_FIRST) == 0) & (F.col(_LAST) == edges - 1)
    return {
        "unknown": F.col(ROWS) == 0,
        "repeated": F.col(ROWS) > 1,
        "few": edges < degree,
        "doubled": has_edges & (F.col(_PARTNERS) < edges),
        "scattered": F.col(_PLACES) > 1,
        "rounds": has_edges & ~F.coalesce(rounds, F.lit(False)),
        "chosen": F.col(_TAKEN) != 1,
    }


def _label(frame: DataFrame, sensitive: str, name: str) -> list[Column]:
    """A sensitive value, and how it is written: -0.0 is not 0.0 to a reader, although they count as one."""
    value = exact(frame, sensitive)
    return [F.struct(value.alias("value")).alias(name), F.struct(value.cast("string").alias("text")).alias(name + _WRITTEN)]
