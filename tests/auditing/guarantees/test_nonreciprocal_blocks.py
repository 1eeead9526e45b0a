"""One look at every block says yes just where the verifiers that count faults find none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import verify_compatible, verify_graph, verify_labels
from anon_spark.auditing.guarantees import nonreciprocal_blocks as blocks
from anon_spark.auditing.guarantees.draw import taken_rounds
from anon_spark.auditing.guarantees.nonreciprocal_blocks import Promise, Sound, looked_at, sound_blocks
from anon_spark.columns import BASE, BLOCK, LINK, MAX_ERRORS, PART, SLOT, SLOTS, TAKEN, UNCERTAIN
from tests.auditing.guarantees.test_nonreciprocal import HONEST, ITEMS, LABEL, Case, K, changed, honest

PROMISE = Promise(K, ITEMS, LABEL)
NAMES = pa.list_(pa.string())
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Blocks:
    """A case with its graph in lists: (link, block, part, slots by round, the round that is published)."""

    linked: list[Row]
    staged: list[Row]
    graph: list[Row]

    @classmethod
    def of(cls, case: Case) -> Blocks:
        held: dict[tuple[int, int, int], list[Row]] = {}
        for link, block, slot, number, chosen, part in case.edges:
            held.setdefault((link, block, part), []).append((number, slot, chosen))
        lists = {owner: sorted(edges) for owner, edges in held.items()}
        taken = {owner: next(edge[0] for edge in edges if edge[2]) for owner, edges in lists.items()}
        graph = [(*owner, [edge[1] for edge in edges], taken[owner]) for owner, edges in lists.items()]
        return cls(case.linked, case.staged, graph)

    def graph_frame(self, spark: SparkSession) -> DataFrame:
        schema = f"{LINK} long, {BLOCK} long, {PART} int, {SLOTS} array<int>, {TAKEN} int"
        return spark.createDataFrame(self.graph, schema)


SOUND = Blocks.of(HONEST)


def block_of(case: Blocks, number: int) -> tuple[pa.Table, pa.Table]:
    """What a task gets of one block: records with their slots, and rows."""
    members = [
        (*node, record)
        for node in case.graph
        if node[1] == number
        for record in [one for one in case.linked if one[0] == node[0]] or [(None, None, None)]
    ]
    rows = [row for row in case.staged if row[4] == number]

    def labels(values: list[Any]) -> list[int]:
        return [int(np.int64(hash(("label", value)) & 0x7FFFFFFF)) for value in values]

    own = labels([member[5][2] for member in members])
    left: dict[str, Any] = {
        blocks._PLACE: pa.array([number] * len(members), pa.int64()),
        LINK: pa.array([member[0] for member in members], pa.int64()),
        PART: pa.array([member[2] for member in members], pa.int32()),
        SLOTS: pa.array([member[3] for member in members], pa.list_(pa.int32())),
        TAKEN: pa.array([member[4] for member in members], pa.int32()),
        blocks._ITEMS: pa.array([member[5][1] for member in members], NAMES),
        blocks._LABEL: pa.array(own, pa.int64()),
        blocks._WRITTEN: pa.array(own, pa.int64()),
        blocks._HASH: pa.array([member[5][0] for member in members], pa.int64()),
    }
    shown = labels([row[3] for row in rows])
    right: dict[str, Any] = {
        SLOT: pa.array([row[5] for row in rows], pa.int32()),
        BASE: pa.array([row[0] for row in rows], NAMES),
        UNCERTAIN: pa.array([row[1] for row in rows], NAMES),
        MAX_ERRORS: pa.array([row[2] for row in rows], pa.int64()),
        blocks._LABEL: pa.array(shown, pa.int64()),
        blocks._WRITTEN: pa.array(shown, pa.int64()),
    }
    return pa.table(left), pa.table(right)


def is_sound(case: Blocks, promise: Promise = PROMISE) -> bool:
    """Whether all blocks are, by arrays alone."""
    numbers = {node[1] for node in case.graph} | {row[4] for row in case.staged}
    found = [looked_at(*block_of(case, number), promise).to_pylist()[0] for number in sorted(numbers)]
    sizes = sum(block["records"] for block in found)
    return bool(found) and not any(block["faulty"] for block in found) and sizes == len(case.linked)


def swapped(rows: list[Row], one: int, other: int, cell: int) -> list[Row]:
    """The rows after two of them exchanged a cell."""
    first, second = rows[one][cell], rows[other][cell]
    return changed(changed(rows, one, **{f"c{cell}": second}), other, **{f"c{cell}": first})


def without(rows: list[Row], at: int) -> list[Row]:
    return rows[:at] + rows[at + 1 :]


def other_label(case: Blocks) -> int:
    """A row of the block of the first one, with another label."""
    first = case.staged[0]
    return next(at for at, row in enumerate(case.staged) if row[4] == first[4] and row[3] != first[3])


def unsure(case: Blocks) -> int:
    return next(at for at, row in enumerate(case.staged) if row[2] > 0)


def node(case: Blocks, slots: Callable[[list[int]], Sequence[int | None] | None]) -> Blocks:
    """The case after the slots of the first record changed."""
    return replace(case, graph=changed(case.graph, 0, c3=slots(case.graph[0][3])))


FAULTS: dict[str, Callable[[Blocks], Blocks]] = {
    "an edge less": lambda case: node(case, lambda slots: slots[:-1]),
    "an edge twice": lambda case: node(case, lambda slots: [*slots[:-1], slots[0]]),
    "an edge more": lambda case: node(case, lambda slots: [*slots, slots[0]]),
    "an edge to another slot": lambda case: node(case, lambda slots: [(slots[0] + 5) % 9, *slots[1:]]),
    "an edge to no slot": lambda case: node(case, lambda slots: [99, *slots[1:]]),
    "no edges": lambda case: node(case, lambda slots: []),
    "no list of edges": lambda case: node(case, lambda slots: None),
    "a null among the edges": lambda case: node(case, lambda slots: [None, *slots[1:]]),
    "two rounds mixed": lambda case: node(case, lambda slots: [slots[1], slots[0], *slots[2:]]),
    "edges of nobody": lambda case: replace(case, graph=changed(case.graph, 0, c0=99_999)),
    "a record of another part": lambda case: replace(case, graph=changed(case.graph, 0, c2=7)),
    "another round chosen by one": lambda case: replace(case, graph=changed(case.graph, 0, c4=0)),
    "a round that is not there": lambda case: replace(case, graph=changed(case.graph, 0, c4=99)),
    "no round": lambda case: replace(case, graph=changed(case.graph, 0, c4=None)),
    "edges of a record twice": lambda case: replace(case, graph=[*case.graph, case.graph[0]]),
    "no record": lambda case: replace(case, linked=without(case.linked, 4)),
    "no row": lambda case: replace(case, staged=without(case.staged, 4)),
    "a record twice": lambda case: replace(case, linked=[*case.linked, case.linked[0]]),
    "a row twice": lambda case: replace(case, staged=[*case.staged, case.staged[0]]),
    "labels exchanged": lambda case: replace(case, staged=swapped(case.staged, 0, other_label(case), 3)),
    "an item more": lambda case: replace(case, staged=changed(case.staged, 0, c0=["i9", *case.staged[0][0]])),
    "an error less": lambda case: replace(case, staged=changed(case.staged, unsure(case), c2=0)),
    "an item named twice": lambda case: replace(case, linked=changed(case.linked, 0, c1=2 * case.linked[0][1])),
    "a null in a base": lambda case: replace(case, staged=changed(case.staged, 0, c0=[None, *case.staged[0][0]])),
    "no list": lambda case: replace(case, staged=changed(case.staged, 0, c1=None)),
}


def test_an_honest_graph_is_sound() -> None:
    assert is_sound(SOUND)
    assert is_sound(Blocks.of(honest(l=3)), replace(PROMISE, l=3)) and not is_sound(SOUND, replace(PROMISE, l=3))
    assert not is_sound(SOUND, replace(PROMISE, degree=K + 1))
    assert not is_sound(Blocks([], [], []))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault: str) -> None:
    assert not is_sound(FAULTS[fault](SOUND)), fault


def test_the_key_must_have_chosen_the_rounds() -> None:
    """Of all keys some choose round 1 in a ring of K rounds, and just these are accepted."""
    block = block_of(SOUND, 0)
    accepted = [not looked_at(*block, replace(PROMISE, key=str(key))).to_pylist()[0]["faulty"] for key in range(30)]
    assert accepted == [taken_rounds(str(key), 0, [K]) == [1] for key in range(30)] and 0 < sum(accepted) < 30


def test_one_look_at_whole_tables_says_what_the_counts_say(spark: SparkSession) -> None:
    link = HONEST.edges[0][0]
    strange = [(9_999, *edge[1:]) if edge[0] == link else edge for edge in HONEST.edges]
    cases = [
        HONEST,
        replace(HONEST, staged=FAULTS["labels exchanged"](SOUND).staged),
        replace(HONEST, edges=strange),  # somebody else in place of a record
        replace(HONEST, linked=[(9_999, *row[1:]) if row[0] == link else row for row in HONEST.linked]),
    ]
    for case in cases:
        frames = case.frames(spark)
        found = sound_blocks(*frames[:2], Blocks.of(case).graph_frame(spark), PROMISE).get()
        counted = (verify_graph(*frames, K), verify_labels(*frames, LABEL), verify_compatible(*frames, ITEMS))
        assert (found is not None) == all(verdict.passed for verdict in counted)
        assert found is None or found == Sound(31, 4, counted[2].checked)
