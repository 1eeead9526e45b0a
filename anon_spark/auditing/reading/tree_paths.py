"""Published paths as arrays: the labels and relations of nested records, and whether the paths are well formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StringType, StructType

from anon_spark.auditing.reading.item_sets import Ints, Marks
from anon_spark.auditing.reading.values import require_columns
from anon_spark.errors import ConfigurationError
from anon_spark.model.tree import NOT

CLASS, VALUE = "class", "value"
PATHS = f"array<array<struct<{CLASS}:string,{VALUE}:string>>>"
Label = tuple[str | None, str | None]  # node type and value; the value null is the null leaf

FAULTS = {
    "missing": "have no path, a path without a node, or a node without a type",
    "unsorted": "have paths that are not sorted, or one twice",
    "inner": "have a path that is only the beginning of another",
    "repeated": "have a node type twice on a path",
    "reserved": "have a label that begins with the sign for absence",
}


def require_paths(release: DataFrame, name: str) -> None:
    """Raise unless the column holds paths. Cost: none, reads the schema."""
    require_columns(release, [name], "release")
    kind = release.schema[name].dataType
    node = kind.elementType.elementType if isinstance(kind, ArrayType) and isinstance(kind.elementType, ArrayType) else None
    if (
        not isinstance(node, StructType)
        or node.names != [CLASS, VALUE]
        or not all(isinstance(field.dataType, StringType) for field in node.fields)
    ):
        raise ConfigurationError(f"Column {name} of the release must be {PATHS}.")


class Nodes(NamedTuple):
    """The nodes of all paths of some records, one after the other: record, path and label of each, as numbers.

    labels: what the numbers of labels stand for, in the order of a sorted array; empty: per record whether something is
    missing in it.
    """

    record: Ints
    path: Ints
    label: Ints
    labels: list[Label]
    empty: Marks


def read_nodes(paths: Any) -> Nodes:
    """The nodes of an Arrow array of paths. Cost: one pass; Python sees each distinct label once."""
    of_record = np.asarray(pc.list_value_length(paths).fill_null(0), dtype=np.int64)
    inner = pc.list_flatten(paths)
    of_path = np.asarray(pc.list_value_length(inner).fill_null(0), dtype=np.int64)
    nodes = pc.list_flatten(inner)
    record_of_path = np.repeat(np.arange(len(of_record)), of_record)
    record = np.repeat(record_of_path, of_path)
    node_types, values = (pc.struct_field(nodes, name).dictionary_encode() for name in (CLASS, VALUE))
    codes = [
        np.asarray(pc.fill_null(encoded.indices, len(encoded.dictionary)), dtype=np.int64)
        for encoded in (node_types, values)
    ]
    known, number = np.unique(codes[0] * (len(values.dictionary) + 1) + codes[1], return_inverse=True)
    names = [[*encoded.dictionary.to_pylist(), None] for encoded in (node_types, values)]
    labels: list[Label] = [
        (names[0][at // (len(values.dictionary) + 1)], names[1][at % (len(values.dictionary) + 1)]) for at in known.tolist()
    ]
    order = sorted(range(len(labels)), key=lambda at: order_of_label(labels[at]))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels))
    empty = of_record == 0
    empty[record_of_path[of_path == 0]] = True
    empty[record[codes[0] == len(node_types.dictionary)]] = True
    path = np.repeat(np.arange(len(of_path)), of_path)
    return Nodes(record, path, rank[number.reshape(-1)], [labels[at] for at in order], empty)


def order_of_label(label: Label) -> list[tuple[bool, bytes]]:
    """By this, labels have the order of a sorted array."""
    return [(text is not None, (text or "").encode()) for text in label]


def related(nodes: Nodes) -> tuple[Ints, Ints]:
    """All pairs of nodes on one path: places of the upper and of the lower one."""
    starts = np.flatnonzero(np.r_[True, nodes.path[1:] != nodes.path[:-1]]) if nodes.path.size else np.zeros(0, np.int64)
    sizes = np.diff(np.append(starts, nodes.path.size))
    after = np.repeat(starts + sizes, sizes) - np.arange(nodes.path.size) - 1  # how many nodes come after one
    upper = np.repeat(np.arange(nodes.path.size), after)
    first = np.cumsum(after) - after
    return upper, upper + 1 + np.arange(upper.size) - np.repeat(first, after)


def malformed(nodes: Nodes) -> dict[str, Marks]:
    """Kind of fault → per record whether it has it."""
    number = len(nodes.empty)
    faults = {name: np.zeros(number, dtype=np.bool_) for name in FAULTS}
    faults["missing"] |= nodes.empty
    if not nodes.path.size:
        return faults
    starts = np.flatnonzero(np.r_[True, nodes.path[1:] != nodes.path[:-1]])
    sizes = np.diff(np.append(starts, nodes.path.size))
    place = np.arange(nodes.path.size) - np.repeat(starts, sizes)
    # one row per path, 0 after its end
    rows = np.zeros((starts.size, int(sizes.max())), dtype=np.int64)
    rows[np.repeat(np.arange(starts.size), sizes), place] = nodes.label + 1
    owner = nodes.record[starts]
    both = owner[1:] == owner[:-1]
    differ = rows[1:] != rows[:-1]
    first = np.where(differ.any(axis=1), differ.argmax(axis=1), 0)
    above, below = (np.take_along_axis(part, first[:, None], axis=1)[:, 0] for part in (rows[:-1], rows[1:]))
    faults["unsorted"][owner[1:][both & (above >= below)]] = True
    faults["inner"][owner[1:][both & ((above == 0) ^ (below == 0))]] = True
    ranks = {name: at for at, name in enumerate(dict.fromkeys(name for name, _ in nodes.labels))}
    rank_of = np.array([ranks[name] for name, _ in nodes.labels], dtype=np.int64)[nodes.label]
    upper, lower = related(nodes)
    faults["repeated"][nodes.record[upper[rank_of[upper] == rank_of[lower]]]] = True
    faults["reserved"][nodes.record[np.array(_reserved(nodes.labels))[nodes.label]]] = True
    return faults


def _reserved(labels: Sequence[Label]) -> list[bool]:
    return [any((text or "").startswith(NOT) for text in label) for label in labels]
