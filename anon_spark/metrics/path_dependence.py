"""RPD of nested records: the chance to guess each published path; lower for deeper paths with finer labels.

RPD of a path u_1 → … → u_n: 1 / Π i · |C(u_i)|, C(u) the labels on the level of u. Of a record: the mean over its paths from
the root to the leaves, 1 for a record without any. Of a release: the mean over its records. Lower is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.errors import DataError
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.tree import STAR, Forest
from anon_spark.model.tree.forest import LevelCount
from anon_spark.primitives.tables import require_columns
from anon_spark.primitives.tasks import BatchTask

UNKNOWN = -1  # a published label that the forest does not have

_SUM, _UNKNOWN = PREFIX + "sum", PREFIX + "unknown"


class LabelPaths(NamedTuple):
    """Paths of some rows: row r has those from row_offsets[r] on, path p the labels from path_offsets[p] on."""

    row_offsets: Ints
    path_offsets: Ints
    labels: Codes


@dataclass(frozen=True, eq=False)
class LabelReading:
    """From published pairs of node type and value to the numbers of a forest's nodes."""

    node_types: tuple[str, ...]
    values: tuple[str | None, ...]
    nodes: npt.NDArray[np.int32] = field(repr=False)  # [node type, value] → node; the last of both is unknown

    @classmethod
    def of(cls, forest: Forest) -> LabelReading:
        node_types, values = (*forest.schema.names, STAR), tuple(dict.fromkeys(forest.values))
        place = {value: at for at, value in enumerate(values)}
        nodes = np.full((len(node_types) + 1, len(values) + 1), UNKNOWN, dtype=np.int32)
        for node, (rank, value) in enumerate(zip(forest.ranks.tolist(), forest.values, strict=True)):
            nodes[rank if rank >= 0 else len(node_types) - 1, place[value]] = node
        return cls(node_types, values, nodes)

    def __call__(self, paths: Any) -> LabelPaths:
        """The numbers in an Arrow column of array<array<struct<class, value>>>; a row without list has no paths."""
        inner = paths.flatten()
        nodes = inner.flatten()
        rank = self._places(pc.struct_field(nodes, "class"), self.node_types)
        value = self._places(pc.struct_field(nodes, "value"), self.values)
        return LabelPaths(_offsets(paths), _offsets(inner), self.nodes[rank, value])

    @staticmethod
    def _places(texts: Any, known: tuple[str | None, ...]) -> Any:
        places = pc.index_in(texts.cast(pa.string()), value_set=pa.array(known, pa.string()))
        return places.fill_null(len(known)).to_numpy(zero_copy_only=False)


def _offsets(lists: Any) -> Ints:
    """Where each list begins among all elements; a null has none."""
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def rpd(release: DataFrame, forest: Forest, level_count: LevelCount = "class", column: str = "paths") -> float:
    """RPD of a release with a column array<array<struct<class, value>>> of the paths from the root to the leaves.

    level_count: |C(u)| counts the labels of u's node type on its level ("class"), or of all node types ("global"); 1 for `*`.
    Guarantee: the same for any partitioning, to 12 digits. Cost: one scan in Arrow tasks; one row per task is summed.
    """
    require_columns(release, [column])
    tasks = release.select(quoted(column)).mapInArrow(
        _summed(LabelReading.of(forest), forest.counts(level_count)), f"{_SUM} double, {ROWS} long, {_UNKNOWN} long"
    )
    total, rows, unknown = tasks.agg(F.sum(_SUM), F.sum(ROWS), F.sum(_UNKNOWN)).collect()[0]
    if not rows:
        raise DataError("The RPD of a table without rows is not defined.")
    refuse_unknown(int(unknown), column)
    return float(f"{total / rows:.12g}")


def refuse_unknown(labels: int, column: str) -> None:
    """Raise if a table has labels that its hierarchies do not know."""
    if labels:
        raise DataError(f"{column}: {labels:,} labels are of no hierarchy. Give those of the release.", labels=labels)


def _summed(reading: LabelReading, counts: Ints) -> BatchTask:
    """Batches of records → one row: the sum of their RPD, how many they are, how many labels are unknown."""
    sizes = np.append(counts.astype(np.float64), 1.0)  # the last one for the unknown

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums, rows, unknown = list[float](), 0, 0
        for batch in batches:
            paths = reading(batch.column(0))
            sums.append(fsum(record_rpd(paths, sizes).tolist()))
            rows += batch.num_rows
            unknown += int(np.count_nonzero(paths.labels == UNKNOWN))
        yield pa.RecordBatch.from_pydict({_SUM: [fsum(sums)], ROWS: [rows], _UNKNOWN: [unknown]})

    return work


def record_rpd(paths: LabelPaths, sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """RPD of each row; sizes: |C(u)| by label."""
    lengths = np.diff(paths.path_offsets)
    row = np.repeat(np.arange(paths.row_offsets.size - 1), np.diff(paths.row_offsets))
    begins, owner = paths.path_offsets[:-1][lengths > 0], row[lengths > 0]  # a path without labels is none
    depth = 1 + np.arange(paths.labels.size) - np.repeat(paths.path_offsets[:-1], lengths)
    by_row = np.ones(paths.row_offsets.size - 1)
    if begins.size:
        guesses = 1 / np.multiply.reduceat(depth * sizes[paths.labels], begins)
        number = np.bincount(owner, minlength=by_row.size)
        total = np.bincount(owner, weights=guesses, minlength=by_row.size)
        by_row[number > 0] = total[number > 0] / number[number > 0]
    return by_row
