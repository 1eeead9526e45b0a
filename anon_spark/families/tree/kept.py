"""What a release keeps of its records: values as they were, as a group, as the root of their node type; relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX
from anon_spark.families.tree.kernels.kept import kept_relations
from anon_spark.families.tree.kernels.trees import Trees, disassociated, projected
from anon_spark.families.tree.publication import Recode
from anon_spark.families.tree.records import LABELS, PARENTS, Records, trees_in
from anon_spark.kernels.classes import Codes
from anon_spark.model.tree import Cut, Forest

Floats = NDArray[np.float64]
EXACT, GROUP, ROOT = range(3)
KEPT, RELATIONS, NODE = (PREFIX + name for name in ("kept", "relations", "node"))


@dataclass(frozen=True)
class NodeTypeKept:
    """The values of one node type in all records: published as they were, as a group, as the root or in `*`; their mean NCP."""

    exact: int
    groups: int
    root: int
    ncp: float

    @property
    def values(self) -> int:
        return self.exact + self.groups + self.root

    def share(self, number: int) -> float:
        """So many of the values, as a share of all."""
        return number / max(1, self.values)


@dataclass(frozen=True)
class Kept:
    """What is kept, by node type; NCP over all values; how many pairs of values, one above the other, are still so."""

    node_types: dict[str, NodeTypeKept]
    ncp: float
    relations_kept: int
    relations: int


def kept_of(records: Records, cut: Cut, recode: Recode) -> Kept:
    """Cost: one pass over the records, one row per value of the hierarchies on the driver at most."""
    forest = records.forest

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        times, kept, pairs = np.zeros(forest.size, dtype=np.int64), 0, 0
        for batch in batches:
            trees = trees_in(pa.Table.from_batches([batch]))
            times += np.bincount(trees.labels, minlength=times.size)
            more, all_ = relations_in(trees, recode)
            kept, pairs = kept + more, pairs + all_
        nodes = np.flatnonzero(times)
        columns = [np.append(nodes, -1), np.append(times[nodes], pairs), np.append(np.zeros_like(nodes), kept)]
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], names=[NODE, RELATIONS, KEPT])

    schema = f"{NODE} long, {RELATIONS} long, {KEPT} long"
    counted = records.frame.select(LABELS, PARENTS).mapInArrow(count, schema)
    rows = counted.groupBy(NODE).agg(F.sum(RELATIONS), F.sum(KEPT)).collect()
    times, kept, pairs = np.zeros(forest.size, dtype=np.int64), 0, 0
    for node, number, more in rows:
        if node < 0:
            kept, pairs = int(more), int(number)
        else:
            times[node] = number
    return Kept(*by_node_type(forest, cut, recode.image, times), kept, pairs)


def relations_in(trees: Trees, recode: Recode) -> tuple[int, int]:
    """How many relations of some records are kept, and how many there are."""
    return kept_relations(trees, recode.image, recode.top, recode(trees))


def by_node_type(forest: Forest, cut: Cut, image: Codes, times: NDArray[np.int64]) -> tuple[dict[str, NodeTypeKept], float]:
    """How the values are published, by node type, and NCP of all. times: of each node, in how many records' nodes it is."""
    ncp, how = forest.ncp(cut), kinds_of(forest, image)
    found, lost, values = {}, 0.0, 0
    for rank, node_type in enumerate(forest.schema):
        if node_type.sensitive:
            continue
        leaves = forest.leaf_nodes[rank]
        exact, groups, root = (int(times[leaves[how[leaves] == kind]].sum()) for kind in (EXACT, GROUP, ROOT))
        own = float(times[leaves] @ ncp[image[leaves]])
        count = exact + groups + root
        found[node_type.name] = NodeTypeKept(exact, groups, root, own / max(1, count))
        lost, values = lost + own, values + count
    return found, lost / max(1, values)


def kinds_of(forest: Forest, image: Codes) -> Codes:
    """By leaf: whether it is published as it was, as a group, or as the root of its node type or `*`."""
    roots = np.zeros(forest.size, dtype=np.bool_)
    roots[[forest.top, *forest.children[forest.top]]] = True
    kinds = np.where(roots[image], ROOT, GROUP).astype(np.int32)
    kinds[image == np.arange(forest.size)] = EXACT
    return kinds


def sums_of(trees: Trees, image: Codes, top: int, pairs: Codes, ncp: Floats) -> Floats:
    """Over some records: NCP of all values, how many they are, relations that are kept, and all."""
    told = ncp[image[trees.labels]]
    counts = ~np.isnan(told)  # sensitive values are not generalized
    kept, relations = kept_relations(trees, image, top, disassociated(projected(trees, image, top), pairs))
    return np.array([told[counts].sum(), counts.sum(), kept, relations], dtype=np.float64)


def share_lost(sums: Floats) -> float:
    """Half the mean NCP, and half the share of relations that are lost."""
    ncp, values, kept, relations = map(float, sums)
    return 0.5 * ncp / max(1.0, values) + (0.5 * (1 - kept / relations) if relations else 0.0)
