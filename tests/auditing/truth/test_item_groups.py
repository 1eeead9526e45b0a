"""Items of records beside the generalized items of their rows, against the definition on sets."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anon_spark.auditing.truth.item_groups import AMBIGUOUS, IDLE, KINDS, UNCOVERED, groups_of_records

pytestmark = pytest.mark.compiles

ITEMS = ["a", "b", "c", "d"]
OWN = st.none() | st.lists(st.sampled_from(ITEMS), unique=True, max_size=3)
SHOWN = st.none() | st.lists(st.none() | st.lists(st.sampled_from([*ITEMS, None]), max_size=3), max_size=3)


def by_definition(own: list[str] | None, shown: list[list[str | None] | None] | None) -> list[bool]:
    items, groups = set(own or ()), shown or []
    if None in groups:
        return [True] * KINDS
    shared = [items & set(group or ()) for group in groups]
    found = [False] * KINDS
    found[UNCOVERED] = not items <= set().union(*shared)
    found[AMBIGUOUS] = sum(map(len, shared)) > len(items)
    found[IDLE] = not all(shared)
    return found


@given(st.lists(st.tuples(OWN, SHOWN), max_size=6))
@example([(["a"], [["a"], ["a"]]), (["a", "b"], [["a"], ["a", "b"]])])
@example([(["a", "b"], [["a", "a", "b", "c"]])])
def test_faults_are_those_of_the_definition(rows: list[tuple[list[str] | None, list[list[str | None] | None] | None]]) -> None:
    texts = pa.list_(pa.string())
    own = pa.array([["a"], *(row[0] for row in rows)], texts).slice(1)
    shown = pa.array([[["x"]], *(row[1] for row in rows)], pa.list_(texts)).slice(1)
    assert groups_of_records(own, shown).tolist() == [by_definition(*row) for row in rows]
