"""One look at every block says yes just where the verifiers that count faults find none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.auditing import verify_compatible, verify_graph, verify_labels
from anon_spark.auditing.guarantees import nonreciprocal_blocks as blocks
from anon_spark.auditing.guarantees.draw import taken_rounds
from anon_spark.auditing.guarantees.nonreciprocal_blocks import Promise, Sound, looked_at, sound_blocks
from anon_spark.columns import BASE, CHOSEN, LINK, MAX_ERRORS, PART, ROUND, SLOT, UNCERTAIN
from tests.auditing.guarantees.test_nonreciprocal import HONEST, ITEMS, LABEL, Case, K, changed, honest

PROMISE = Promise(K, ITEMS, LABEL)
NAMES = pa.list_(pa.string())
Row = tuple[Any, ...]
EDGE = ((SLOT, 2, pa.int32()), (ROUND, 3, pa.int32()), (CHOSEN, 4, pa.bool_()), (PART, 5, pa.int32()))


def block_of(case: Case, number: int) -> tuple[pa.Table, pa.Table]:
    """What a task gets of one block: edges and records, and rows."""
    edges = [edge for edge in case.edges if edge[1] == number]
    members = {edge[0] for edge in edges if edge[4]}
    held = [record for record in case.linked if record[0] in members]
    rows = [row for row in case.staged if row[4] == number]

    def labels(values: list[Any]) -> list[int]:
        return [int(np.int64(hash(("label", value)) & 0x7FFFFFFF)) for value in values]

    def records(values: list[Any], kind: Any) -> Any:
        return pa.array([None] * len(edges) + values, kind)

    own = labels([record[2] for record in held])
    left: dict[str, Any] = {
        blocks._PLACE: pa.array([number] * (len(edges) + len(held)), pa.int64()),
        LINK: pa.array([edge[0] for edge in edges] + [record[0] for record in held], pa.int64()),
        **{name: pa.array([edge[at] for edge in edges] + [None] * len(held), kind) for name, at, kind in EDGE},
        blocks._ITEMS: records([record[1] for record in held], NAMES),
        blocks._LABEL: records(own, pa.int64()),
        blocks._WRITTEN: records(own, pa.int64()),
        blocks._HASH: records([record[0] for record in held], pa.int64()),
    }
    shown = labels([row[3] for row in rows])
    right: dict[str, Any] = {
        SLOT: pa.array([row[5] for row in rows], pa.int32()),
        BASE: pa.array([row[0] for row in rows], NAMES),
        UNCERTAIN: pa.array([row[1] for row in rows], NAMES),
        MAX_ERRORS: pa.array([row[2] for row in rows], pa.int64()),
        blocks._LABEL: pa.array(shown, pa.int64()),
        blocks._WRITTEN: pa.array(shown, pa.int64()),
        blocks._CERTAIN: pa.array([sorted(set(row[0]) - set(row[1])) for row in rows], NAMES),
    }
    return pa.table(left), pa.table(right)


def is_sound(case: Case, promise: Promise = PROMISE) -> bool:
    """Whether all blocks are, by arrays alone."""
    numbers = {edge[1] for edge in case.edges} | {row[4] for row in case.staged}
    found = [looked_at(*block_of(case, number), promise).to_pylist()[0] for number in sorted(numbers)]
    sizes = sum(block["records"] for block in found)
    return bool(found) and not any(block["faulty"] for block in found) and sizes == len(case.linked)


def swapped(rows: list[Row], one: int, other: int, cell: int) -> list[Row]:
    """The rows after two of them exchanged a cell."""
    first, second = rows[one][cell], rows[other][cell]
    return changed(changed(rows, one, **{f"c{cell}": second}), other, **{f"c{cell}": first})


def without(rows: list[Row], at: int) -> list[Row]:
    return rows[:at] + rows[at + 1 :]


def other_label(case: Case) -> int:
    """A row of the block of the first one, with another label."""
    first = case.staged[0]
    return next(at for at, row in enumerate(case.staged) if row[4] == first[4] and row[3] != first[3])


def unsure(case: Case) -> int:
    return next(at for at, row in enumerate(case.staged) if row[2] > 0)


FAULTS: dict[str, Callable[[Case], Case]] = {
    "an edge less": lambda case: replace(case, edges=without(case.edges, 3)),
    "an edge twice": lambda case: replace(case, edges=[*case.edges, case.edges[0]]),
    "an edge to another slot": lambda case: replace(case, edges=changed(case.edges, 0, c2=5)),
    "an edge to no slot": lambda case: replace(case, edges=changed(case.edges, 0, c2=99)),
    "an edge of nobody": lambda case: replace(case, edges=changed(case.edges, 0, c0=99_999)),
    "an edge of another part": lambda case: replace(case, edges=changed(case.edges, 0, c5=7)),
    "an edge of another round": lambda case: replace(case, edges=changed(case.edges, 0, c3=2)),
    "a round that is not there": lambda case: replace(case, edges=changed(case.edges, 0, c3=9)),
    "a null": lambda case: replace(case, edges=changed(case.edges, 0, c3=None)),
    "two rounds mixed": lambda case: replace(case, edges=swapped(case.edges, 0, 13, 3)),
    "another round chosen by one": lambda case: replace(case, edges=swapped(case.edges, 0, 13, 4)),
    "no record": lambda case: replace(case, linked=without(case.linked, 4)),
    "no row": lambda case: replace(case, staged=without(case.staged, 4)),
    "a record twice": lambda case: replace(case, linked=[*case.linked, case.linked[0]]),
    "a row twice": lambda case: replace(case, staged=[*case.staged, case.staged[0]]),
    "labels exchanged": lambda case: replace(case, staged=swapped(case.staged, 0, other_label(case), 3)),
    "an item more": lambda case: replace(case, staged=changed(case.staged, 0, c0=["i9", *case.staged[0][0]])),
    "an error less": lambda case: replace(case, staged=changed(case.staged, unsure(case), c2=0)),
}


def test_an_honest_graph_is_sound() -> None:
    assert is_sound(HONEST)
    assert is_sound(honest(l=3), replace(PROMISE, l=3)) and not is_sound(HONEST, replace(PROMISE, l=3))
    assert not is_sound(HONEST, replace(PROMISE, degree=K + 1))
    assert not is_sound(Case([], [], []))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault: str) -> None:
    assert not is_sound(FAULTS[fault](HONEST)), fault


def test_the_key_must_have_chosen_the_rounds() -> None:
    """Of all keys some choose round 1 in a ring of K rounds, and just these are accepted."""
    block = block_of(HONEST, 0)
    accepted = [not looked_at(*block, replace(PROMISE, key=str(key))).to_pylist()[0]["faulty"] for key in range(30)]
    assert accepted == [taken_rounds(str(key), 0, [K]) == [1] for key in range(30)] and 0 < sum(accepted) < 30


def test_one_look_at_whole_tables_says_what_the_counts_say(spark: SparkSession) -> None:
    link = HONEST.edges[0][0]
    strange = [(9_999, *edge[1:]) if edge[0] == link else edge for edge in HONEST.edges]
    cases = [
        HONEST,
        FAULTS["an edge of another round"](HONEST),
        replace(HONEST, edges=strange),  # somebody else in place of a record
        replace(HONEST, linked=[(9_999, *row[1:]) if row[0] == link else row for row in HONEST.linked]),
    ]
    for case in cases:
        frames = case.frames(spark)
        found = sound_blocks(*frames, PROMISE).get()
        counted = (verify_graph(*frames, K), verify_labels(*frames, LABEL), verify_compatible(*frames, ITEMS))
        assert (found is not None) == all(verdict.passed for verdict in counted)
        assert found is None or found == Sound(31, 4, counted[2].checked)
