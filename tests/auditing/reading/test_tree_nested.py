"""Nested values beside paths, against their definition in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anon_spark.auditing.reading.tree_nested import same_as_paths
from anon_spark.model.tree import NodeType, TreeSchema

SCHEMA = TreeSchema(
    (NodeType("a", "a"), NodeType("b", "b", "a"), NodeType("c", "c", "b"), NodeType("d", "d", "a"), NodeType("e", "e"))
)
NODE = pa.struct([("class", pa.string()), ("value", pa.string())])
PATHS = pa.list_(pa.list_(NODE))
Values = dict[str, Any] | None  # of a struct: a list per node type


def kind(name: str | None = None) -> Any:
    fields = [(child.name, pa.list_(pa.struct([("value", pa.string()), *kind(child.name)]))) for child in SCHEMA.children(name)]
    return pa.struct(fields)


def paths_of(values: Values, name: str | None = None) -> list[list[tuple[str, str | None]]] | None:
    """All paths; None where an array is missing."""
    found = []
    for child in SCHEMA.children(name):
        elements = None if values is None else values[child.name]
        if elements is None:
            return None
        for element in elements:
            here = (child.name, None if element is None else element["value"])
            below = paths_of(element, child.name)
            if below is None:
                return None
            found += [[here, *path] for path in below] or [[here]]
    return found


def is_sorted(values: Values, name: str | None = None) -> bool:
    for child in SCHEMA.children(name):
        elements = (values or {}).get(child.name) or []
        texts = ["null" if one is None or one["value"] is None else one["value"] for one in elements]
        if texts != sorted(texts, key=str.encode) or not all(is_sorted(one, child.name) for one in elements):
            return False
    return True


def order(path: Sequence[tuple[str | None, str | None]]) -> list[Any]:
    return [[(text is not None, (text or "").encode()) for text in label] for label in path]


def by_definition(values: Values, paths: list[list[tuple[str | None, str | None]]] | None) -> bool:
    own = paths_of(values)
    return own is not None and is_sorted(values) and paths == sorted(own, key=order)


TEXTS = st.sampled_from(["x", "y", "z", "null", "é", None])


def text_of(values: Values) -> bytes:
    value = None if values is None else values["value"]
    return ("null" if value is None else str(value)).encode()


def structs(name: str | None = None) -> st.SearchStrategy[Values]:
    fields = {child.name: lists(child.name) for child in SCHEMA.children(name)}
    return st.fixed_dictionaries(fields if name is None else {"value": TEXTS, **fields})


def lists(name: str) -> st.SearchStrategy[Any]:
    sorted_lists = st.lists(structs(name), max_size=2).map(lambda of: sorted(of, key=text_of))
    loose = st.none() | st.lists(st.none() | structs(name), max_size=2)
    return st.one_of(*[sorted_lists] * 9, loose)


@st.composite
def records(draw: st.DrawFn) -> tuple[Values, Any]:
    values = draw(structs())
    own = paths_of(values)
    paths: Any = None if own is None else sorted(own, key=order)
    if draw(st.integers(0, 3)) == 0:  # something else
        label = st.tuples(st.sampled_from(["a", "b", "e", "f", None]), TEXTS)
        paths = draw(st.none() | st.permutations(paths or []) | st.lists(st.lists(label, max_size=3), max_size=3))
    return values, paths


def named_label(label: tuple[str | None, str | None]) -> dict[str, str | None]:
    return {"class": label[0], "value": label[1]}


def told(rows: Sequence[tuple[Values, Any]]) -> list[bool]:
    """With a row before them, cut off again: arrays may begin anywhere."""
    nested = [{"a": [{"value": "x", "b": [], "d": []}], "e": []}, *(values for values, _ in rows)]
    paths = [[[("a", "x")]], *(paths for _, paths in rows)]
    named = [None if of is None else [None if path is None else list(map(named_label, path)) for path in of] for of in paths]
    arrays = pa.array(nested, kind()).slice(1), pa.array(named, PATHS).slice(1)
    return list(map(bool, same_as_paths(*arrays, SCHEMA)))


@given(st.lists(records(), max_size=5))
@example([({"a": [], "e": []}, []), ({"a": [], "e": []}, None), ({"a": [], "e": []}, [[]])])
@example([({"a": [], "e": [{"value": "x"}, {"value": "x"}]}, [[("e", "x")], [("e", "x")]])])
@example([({"a": [], "e": [None]}, [[("e", None)]])])
@example([({"a": [], "e": [{"value": "y"}, {"value": "x"}]}, [[("e", "x")], [("e", "y")]])])
@example([({"a": [], "e": [{"value": "null"}, {"value": None}]}, [[("e", None)], [("e", "null")]])])
@example([({"a": [None], "e": []}, [[("a", None)]]), ({"a": [{"value": "x", "b": [], "d": None}], "e": []}, [[("a", "x")]])])
def test_the_same_is_said_by_definition(rows: list[tuple[Values, Any]]) -> None:
    assert told(rows) == [by_definition(*row) for row in rows]


@pytest.mark.parametrize("empty", [[], None])
def test_a_path_without_nodes_is_none_of_them(empty: list[Any] | None) -> None:
    values = {"a": [], "e": [{"value": "x"}]}
    assert told([(values, [empty]), (values, [empty, [("e", "x")]]), (values, [[("e", "x")]])]) == [False, False, True]
    assert told([(values, [[("e", "x")], [("e", "y")]]), (values, []), (values, [[("e", "x")]])]) == [False, False, True]


def test_rows_without_a_struct_say_nothing() -> None:
    nested, paths = pa.array([None, {"a": [], "e": []}], kind()), pa.array([[], []], PATHS)
    assert same_as_paths(nested, paths, SCHEMA).tolist() == [False, True]


@pytest.mark.parametrize("rows", [1, 3])
def test_paths_of_one_record_do_not_stand_in_for_those_of_another(rows: int) -> None:
    one, other = {"a": [], "e": [{"value": "x"}]}, {"a": [], "e": [{"value": "y"}]}
    swapped = [(one, [[("e", "y")]]), (other, [[("e", "x")]])] * rows
    assert told(swapped) == [False, False] * rows
    more = [(one, [[("e", "x")], [("e", "y")]]), (other, [])] * rows
    assert told(more) == [False, False] * rows
