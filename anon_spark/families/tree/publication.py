"""A cut and its disassociations applied to trees: the published paths, and nested values where nothing was disassociated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from anon_spark.columns import LINK, quoted
from anon_spark.families.tree.kernels.trees import Trees, disassociated, leaf_paths, projected
from anon_spark.families.tree.records import LABELS, PARENTS, trees_in
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.tree import STAR, Cut, Forest, TreeSchema
from anon_spark.primitives.tasks import in_batches

PATHS, NESTED = "paths", "nested"
NODE_STRUCT = T.StructType([T.StructField("class", T.StringType()), T.StructField("value", T.StringType())])
PATHS_TYPE = T.ArrayType(T.ArrayType(NODE_STRUCT))


@dataclass(frozen=True)
class Recode:
    """Recodes trees: labels to the cut, then the disassociations in their order."""

    image: Codes
    top: int
    pairs: Codes  # [p, 2]

    @classmethod
    def of(cls, forest: Forest, cut: Cut, pairs: Sequence[tuple[int, int]] = ()) -> Recode:
        return cls(forest.image(cut), forest.top, np.array(pairs, dtype=np.int32).reshape(-1, 2))

    def __call__(self, trees: Trees) -> Trees:
        return disassociated(projected(trees, self.image, self.top), self.pairs)


@dataclass(frozen=True)
class Writing:
    """Writes trees of node numbers as published values."""

    schema: TreeSchema
    type_names: tuple[str, ...]  # by node
    values: tuple[str | None, ...]  # by node
    ranks: Codes = field(repr=False)  # of a node's type

    @classmethod
    def of(cls, forest: Forest) -> Writing:
        names = forest.schema.names
        type_names = tuple(STAR if rank < 0 else names[rank] for rank in forest.ranks.tolist())
        return cls(forest.schema, type_names, forest.values, forest.ranks)

    def paths(self, trees: Trees) -> Any:
        """An Arrow array of lists of paths, one list per tree."""
        of_record, of_path, labels = leaf_paths(trees)
        fields = [self._taken(self.type_names, labels), self._taken(self.values, labels)]
        nodes = pa.StructArray.from_arrays(fields, ["class", "value"])
        return _listed(of_record, _listed(of_path, nodes))

    def nested(self, trees: Trees) -> Any:
        """An Arrow array of structs: a list per node type below the record, and so on down."""
        record = np.repeat(np.arange(trees.records), trees.sizes)
        parents = np.where(trees.parents < 0, -1, trees.parents + trees.offsets[:-1][record])
        return self._below(None, trees, np.arange(trees.records), record, parents)

    def _below(self, name: str | None, trees: Trees, owners: Ints, record: Ints, parents: Ints) -> Any:
        """The fields below nodes (or records) in their order, which is a preorder."""
        arrays, names = [], []
        place = np.full(max(int(trees.labels.size), trees.records) + 1, -1, dtype=np.int64)
        place[owners] = np.arange(owners.size)
        for child in self.schema.children(name):
            nodes = np.flatnonzero(self.ranks[trees.labels] == self.schema.ranks[child.name])
            above = place[record[nodes] if name is None else parents[nodes]]
            offsets = np.concatenate([[0], np.cumsum(np.bincount(above, minlength=owners.size))])
            inner = self._below(child.name, trees, nodes, record, parents)
            value = self._taken(self.values, trees.labels[nodes])
            fields = [] if inner is None else list(inner.flatten())
            inner_names = [] if inner is None else [inner.type.field(at).name for at in range(inner.type.num_fields)]
            arrays.append(_listed(offsets, pa.StructArray.from_arrays([value, *fields], ["value", *inner_names])))
            names.append(child.name)
        return pa.StructArray.from_arrays(arrays, names) if arrays else None

    def nested_type(self, name: str | None = None) -> T.StructType:
        """The type of `nested`, or of the fields below a node type."""
        return T.StructType(
            [
                T.StructField(
                    child.name,
                    T.ArrayType(T.StructType([T.StructField("value", T.StringType()), *self.nested_type(child.name).fields])),
                )
                for child in self.schema.children(name)
            ]
        )

    @staticmethod
    def _taken(names: Sequence[str | None], labels: NDArray[Any]) -> Any:
        return pa.array(names, pa.string()).take(pa.array(labels))


def published_rows(
    trees: DataFrame, forest: Forest, recode: Recode, nested: bool, keep: Sequence[str] = (), linked: bool = False
) -> DataFrame:
    """The rows of a release, in the order of the trees: paths, nested where it is wanted, the kept columns, LINK if linked.

    Guarantee: every array is sorted. Cost: one pass; no action.
    """
    writing = Writing.of(forest)
    others = [*keep, *([LINK] if linked else [])]
    frame = trees.select(LABELS, PARENTS, *map(quoted, others))
    schema = T.StructType(
        [
            T.StructField(PATHS, PATHS_TYPE),
            *([T.StructField(NESTED, writing.nested_type())] if nested else []),
            *(frame.schema[name] for name in others),
        ]
    )

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kinds = [to_arrow_type(field.dataType) for field in schema]
        for batch in batches:
            table = pa.Table.from_batches([batch])
            recoded = recode(trees_in(table))
            arrays = [writing.paths(recoded), *([writing.nested(recoded)] if nested else [])]
            arrays += [table.column(name).combine_chunks() for name in others]
            cast = [array.cast(kind) for array, kind in zip(arrays, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(cast, names=schema.names)

    rows = in_batches(frame, write, schema)
    return rows.withColumn(PATHS, F.sort_array(PATHS))


def _listed(offsets: Ints, values: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
