"""Nested values that are published beside paths: whether both say the same, read in Arrow.

Spark interprets functions of every element of an array, which took most of an audit of trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anon_spark.auditing.reading.item_sets import Ints, Marks
from anon_spark.auditing.reading.tree_paths import VALUE, Label, order_of_label, read_nodes
from anon_spark.errors import ConfigurationError
from anon_spark.model.tree import NONE, TreeSchema


def require_nested(release: DataFrame, name: str, schema: TreeSchema) -> None:
    """Raise unless a column is a struct with an array per node type below the record, its elements structs of `value` and the
    node types below. Cost: none, reads the schema."""
    if release.schema[name].dataType.simpleString() != _kind(schema).simpleString():
        raise ConfigurationError(f"Column {name} of the release must be {_kind(schema).simpleString()}.")


def _kind(schema: TreeSchema, name: str | None = None) -> T.StructType:
    below = []
    for child in schema.children(name):
        fields = [T.StructField(VALUE, T.StringType()), *_kind(schema, child.name).fields]
        below.append(T.StructField(child.name, T.ArrayType(T.StructType(fields))))
    return T.StructType(below)


def same_as_paths(nested: Any, paths: Any, schema: TreeSchema) -> Marks:
    """Per record: whether its nested values have just these paths, in the order of a sorted array, and sorted arrays.

    nested and paths: Arrow arrays of the published columns. In nested arrays null stands where the text `null` would. A missing
    array is a fault; a missing element is one whose value is null, and below it arrays are missing. Cost: one pass; Python sees
    each distinct label once.
    """
    values, shown = _Values(schema, len(nested)), read_nodes(paths)
    values.add(None, nested, np.arange(len(nested)), np.full(len(nested), NONE))
    whole, own = np.asarray(pc.list_value_length(paths).fill_null(NONE)), values.leaves()
    starts = np.flatnonzero(np.diff(shown.path, prepend=NONE))
    record, rank = shown.record[starts], _ranks([*values.labels, *shown.labels])
    numbers = [np.bincount(part, minlength=len(nested)) for part in (own.record, record)]
    is_same: Marks = ~values.wrong & (numbers[0] == whole) & (numbers[1] == whole)
    # equally many paths: side by side, each in the order that it should have
    width = max(own.labels.shape[1], int(np.diff(np.append(starts, shown.path.size)).max(initial=0)))
    rows = [np.zeros((count, width), dtype=np.int64) for count in (own.record.size, starts.size)]
    rows[0][:, : own.labels.shape[1]] = np.where(own.labels == NONE, 0, rank[own.labels])
    number = np.cumsum(np.diff(shown.path, prepend=NONE) > 0) - 1  # of the path of each node
    rows[1][number, np.arange(shown.path.size) - starts[number]] = rank[len(values.labels) + shown.label]
    order = np.lexsort((*rows[0].T[::-1], own.record))
    kept = [rows[0][order][is_same[own.record[order]]], rows[1][is_same[record]]]
    differs = (kept[0] != kept[1]).any(axis=1)
    is_same[record[is_same[record]][differs]] = False
    return is_same


def _ranks(labels: Sequence[Label]) -> Ints:
    """The place of each label in the order of a sorted array, from 1; the same for equal ones."""
    places = {label: place for place, label in enumerate(sorted(set(labels), key=order_of_label), start=1)}
    return np.array([places[label] for label in labels], dtype=np.int64)


class _Leaves(NamedTuple):
    """The values that have none below them: record, and numbers of labels from the root down, then NONE."""

    record: Ints
    labels: Ints


class _Values:
    """The values of nested records: record, value above, label and depth of each. wrong: records with a fault."""

    def __init__(self, schema: TreeSchema, records: int) -> None:
        self.schema = schema
        self.wrong: Marks = np.zeros(records, dtype=np.bool_)
        self.labels: list[Label] = []
        self.count = 0
        self.parts: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, name: str | None, structs: Any, record: Ints, above: Ints, depth: int = 0) -> None:
        """Those below some structs: of records (NONE), or the values with these numbers."""
        for child in self.schema.children(name):
            lists = pc.struct_field(structs, child.name)
            self.wrong[record[np.asarray(pc.is_null(lists))]] = True
            owner = np.repeat(np.arange(len(lists)), np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64))
            elements = pc.list_flatten(lists)
            values = pc.struct_field(elements, VALUE).dictionary_encode()
            texts = [*values.dictionary.to_pylist(), None]
            code = np.asarray(pc.fill_null(values.indices, len(texts) - 1), dtype=np.int64)
            order = _ranks([(child.name, "null" if text is None else text) for text in texts])[code]
            falls = (owner[1:] == owner[:-1]) & (order[1:] < order[:-1])
            self.wrong[record[owner[1:][falls]]] = True
            number = np.arange(self.count, self.count + owner.size)
            self.parts.append((record[owner], above[owner], len(self.labels) + code, np.full(owner.size, depth)))
            self.labels += [(child.name, text) for text in texts]
            self.count += owner.size
            self.add(child.name, elements, record[owner], number, depth + 1)

    def leaves(self) -> _Leaves:
        record, above, label, depth = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        is_leaf: Marks = np.ones(self.count, dtype=np.bool_)
        is_leaf[above[above != NONE]] = False
        at = np.flatnonzero(is_leaf)
        labels = np.full((at.size, int(depth.max(initial=NONE)) + 1), NONE, dtype=np.int64)
        owners = record[at]
        row = np.arange(at.size)
        while row.size:
            labels[row, depth[at]] = label[at]
            row, at = row[above[at] != NONE], above[at][above[at] != NONE]
        return _Leaves(owners, labels)
