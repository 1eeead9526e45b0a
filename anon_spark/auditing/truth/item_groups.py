"""Generalized items beside the items of the records they are published of, compared in Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon_spark.auditing.reading.item_sets import Ints, Marks, offsets_of
from anon_spark.compiled import compiled

KINDS = 3
UNCOVERED, AMBIGUOUS, IDLE = range(KINDS)


def groups_of_records(own: Any, shown: Any) -> Marks:
    """[row, kind of fault]: an item of the record is in no inner list; one is in several; an inner list has none of its items.

    own: lists of the records' items, each once, none null; shown: lists of inner lists. A null inner list is every fault.
    """
    inner = pc.list_flatten(shown)
    items = pa.concat_arrays([pc.list_flatten(own).cast(pa.string()), pc.list_flatten(inner).cast(pa.string())])
    encoded = items.dictionary_encode(null_encoding="encode")
    own_of, inner_of, items_of = (offsets_of(_sizes(lists)) for lists in (own, shown, inner))
    missing = np.asarray(inner.is_null())
    codes = np.asarray(encoded.indices, dtype=np.int64)
    return faults(own_of, inner_of, items_of, codes[: own_of[-1]], codes[own_of[-1] :], missing, len(encoded.dictionary))


def _sizes(lists: Any) -> Ints:
    return np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)


def faults(*arrays: Any) -> Marks:
    """`compare` as a plain function, which tasks find by name: a compiled one sent to a task is compiled again."""
    return compare(*arrays)


@compiled
def compare(own_of: Ints, inner_of: Ints, items_of: Ints, own: Ints, items: Ints, missing: Marks, names: int) -> Marks:
    """The faults of rows: row r has the inner lists inner_of[r] … inner_of[r + 1] - 1, and these have items[items_of[…]]."""
    found = np.zeros((own_of.size - 1, KINDS), dtype=np.bool_)
    having = np.full(names, -1, dtype=np.int64)  # the last row whose record has the item
    held_in = np.full(names, -1, dtype=np.int64)  # the last inner list with it
    for row in range(own_of.size - 1):
        for at in range(own_of[row], own_of[row + 1]):
            having[own[at]] = row
        covered, held = 0, 0
        for inner in range(inner_of[row], inner_of[row + 1]):
            if missing[inner]:
                found[row, :] = True
            shared = 0
            for at in range(items_of[inner], items_of[inner + 1]):
                item = items[at]
                if having[item] == row and held_in[item] != inner:
                    covered += held_in[item] < inner_of[row]
                    shared += 1
                    held_in[item] = inner
            held += shared
            found[row, IDLE] |= shared == 0
        size = own_of[row + 1] - own_of[row]
        found[row, UNCOVERED] |= covered < size
        found[row, AMBIGUOUS] |= held > size
    return found
