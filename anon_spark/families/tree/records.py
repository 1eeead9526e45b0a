"""From a nested table to trees of numbers: checked, coded, equal siblings merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.arrays import each_once
from anon_spark.columns import LINK, PREFIX, quoted
from anon_spark.errors import DataError, GuaranteeUnreachable
from anon_spark.families.tree.fields import PRESENT, Place, elements, places_of, unfolded
from anon_spark.families.tree.kernels.trees import Trees, canonical
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.tree import Forest, TreeSchema
from anon_spark.primitives.encoding import MOST_VALUES, Dictionary, dictionaries, with_codes, with_keys
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tables import require_columns
from anon_spark.primitives.tasks import BatchTask, lists_of, number_lists
from anon_spark.primitives.unseen import refuse_unseen

LABELS, PARENTS = PREFIX + "labels", PREFIX + "parents"  # a tree: numbers of its nodes, places of their parents
ROWS = PREFIX + "rows"  # the rows of one person
CHAINS = PREFIX + "chains"  # codes by rank of node type, of each unfolded row of a record
CODE = PREFIX + "code_"
STATE = PREFIX + "state"
ABSENT, NULL, UNSEEN = -1, -2, -3
KEPT, DROPPED_NULL, DROPPED_UNSEEN, EMPTY = range(4)


@dataclass(frozen=True)
class Roles:
    """The node types with their hierarchies, the columns that are kept, and the person whose rows are one record."""

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy | Rule]
    keep: Sequence[str] = ()
    person: str | None = None

    @property
    def named(self) -> list[str]:
        """The columns of the table that are read, without the person."""
        return [*dict.fromkeys([*(node_type.steps[0] for node_type in self.schema), *self.keep])]

    @property
    def inner_schema(self) -> TreeSchema:
        """The node types in `source_of`'s frame: where persons are put together, they are inside an array of their rows."""
        if self.person is None:
            return self.schema
        return TreeSchema(tuple(replace(node_type, field=f"{ROWS}.{node_type.field}") for node_type in self.schema))


@dataclass(frozen=True)
class Records:
    """The trees of a table, one row each: LINK, LABELS, PARENTS and the kept columns."""

    frame: DataFrame
    forest: Forest
    count: int
    nodes: int
    merged: int | None  # values that were equal siblings; None: not counted, because records were dropped
    most_labels: int
    occurring: list[int]  # leaves that occur
    dropped_nulls: int
    dropped_unseen: int

    def often(self, l: int) -> int:  # noqa: E741 - the literature's name
        """How many sensitive values are in more than 1 / l of the records. Cost: one job."""
        sensitive = F.array(*(F.lit(node) for node in self.occurring if self.forest.is_sensitive[node]))
        values = self.frame.select(F.explode(F.array_distinct(F.array_intersect(LABELS, sensitive))).alias(LABELS))
        return values.groupBy(LABELS).count().where(F.col("count") * l > self.count).count()


def check_table(df: DataFrame, roles: Roles) -> None:
    """Refuse columns and fields that are not there or cannot be values. Cost: none, reads the schema."""
    dotted = [name for name in df.columns if "." in name]
    unknown = [node_type.field for node_type in roles.schema if node_type.steps[0] not in df.columns]
    if any(f"{field}.".startswith(f"{name}.") for field in unknown for name in dotted):
        places_of(df.schema, roles.schema)  # says what a dot means, which a missing column does not
    require_columns(df, [*roles.named, *([roles.person] if roles.person else [])])
    places_of(df.schema, roles.schema)


def source_of(df: DataFrame, roles: Roles, workspace: Workspace) -> DataFrame:
    """The columns that are read, one row per record, with LINK: its private number. Cost: one job, one write.

    The rows of a person are put together, in no order.
    """
    columns = [F.col(quoted(name)) for name in roles.named]
    if roles.person is None:
        rows = df.select(*columns)
    else:
        whose = F.col(quoted(roles.person))
        strangers = df.where(whose.isNull()).limit(1).count()
        if strangers:
            raise DataError(f"columns.person {roles.person}: some rows have none. Give every row a person.", rows=strangers)
        kept = [F.any_value(quoted(name)).alias(name) for name in roles.keep]
        rows = df.groupBy(whose.alias(LINK)).agg(F.collect_list(F.struct(*columns)).alias(ROWS), *kept).drop(LINK)
        if roles.keep:
            several = rows.where(F.size(ROWS) > 1).limit(1).count()
            if several:
                raise DataError("columns.keep: a person has several rows, so a kept column has several values. Leave it out.")
    return workspace.store(rows.withColumn(LINK, F.monotonically_increasing_id()), "source")


def dictionaries_of(df: DataFrame, roles: Roles, nulls: str, on_unseen: str) -> list[Dictionary]:
    """The distinct values of each node type, looked up in its hierarchy.

    Every row counts as a record of its own. Cost: two jobs at most.
    """
    linked = df.withColumn(LINK, F.monotonically_increasing_id())
    places = places_of(linked.schema, roles.schema)
    return _dictionaries(unfolded(linked, roles.schema, places), roles.schema, places, roles, nulls, on_unseen)[1]


def _dictionaries(
    flat: DataFrame, schema: TreeSchema, places: Mapping[str, Place], roles: Roles, nulls: str, on_unseen: str
) -> tuple[DataFrame, list[Dictionary]]:
    """The unfolded rows with keys instead of values, and the dictionaries of these."""
    hierarchies = {name: roles.hierarchies[name] for name in schema.names}
    present = {name: f"{PRESENT}{rank}" for rank, name in enumerate(schema.names)}
    keyed = with_keys(flat, hierarchies, [LINK, *present.values()])
    numbers = [name for name, place in places.items() if isinstance(place.kind, T.FractionalType)]
    entries = dictionaries(keyed, hierarchies, nulls, numbers, present=present, record=LINK)
    if on_unseen == "error":
        refuse_unseen(entries)
    return keyed, entries


def read_records(source: DataFrame, roles: Roles, nulls: str, on_unseen: str, max_labels: int, workspace: Workspace) -> Records:
    """Code the values, build the trees, apply the policies. source: what `source_of` made.

    Cost: a job for the distinct values, one shuffle of the unfolded rows by record, one write and two small jobs.
    """
    schema = roles.inner_schema
    places = places_of(source.schema, schema)
    # 1. values to leaves
    keyed, entries = _dictionaries(unfolded(source, schema, places), schema, places, roles, nulls, on_unseen)
    codes = [f"{CODE}{rank}" for rank in range(len(entries))]
    coded = with_codes(keyed, entries, [0] * len(entries), codes)
    forest = Forest.of(roles.schema, {entry.name: entry.hierarchy for entry in entries})
    # 2. one row per record: a list of chains of codes
    chain = F.array(*(_code(name, codes[rank], f"{PRESENT}{rank}", nulls) for rank, name in enumerate(schema.names)))
    chains = coded.select(LINK, chain.alias(CHAINS)).groupBy(LINK).agg(F.collect_set(CHAINS).alias(CHAINS))
    built = chains.mapInArrow(_building(forest), f"{LINK} bigint, {LABELS} array<int>, {PARENTS} array<int>, {STATE} int")
    if roles.keep:
        built = built.join(source.select(LINK, *map(quoted, roles.keep)), LINK)
    trees = workspace.store(built, "trees")
    # 3. what the policies keep
    counted = _counted(trees, source, places, max_labels)
    _refuse(counted, max_labels)
    kept = trees.where(F.col(STATE) == KEPT).drop(STATE)
    occurring = kept.select(F.explode(LABELS).alias(LABELS)).distinct()
    leaves = collect_small(occurring, MOST_VALUES, "Distinct values of all node types")
    return Records(
        frame=kept,
        forest=forest,
        count=counted["kept"],
        nodes=counted["nodes"] or 0,
        merged=None if counted["nulls"] + counted["unseen"] else counted["values"] - counted["all_nodes"],
        most_labels=counted["labels"] or 0,
        occurring=np.sort(leaves.column(0).to_numpy()).tolist(),
        dropped_nulls=counted["nulls"],
        dropped_unseen=counted["unseen"],
    )


def trees_in(table: pa.Table) -> Trees:
    """The trees of some rows."""
    offsets, labels = lists_of(table, LABELS)
    _, parents = lists_of(table, PARENTS)
    return Trees(offsets, labels, parents)


def _code(name: str, code: str, present: str, nulls: str) -> Column:
    """The leaf's code; ABSENT, NULL that is to be dropped, or UNSEEN.

    Where nulls are kept, null has no leaf only if every record that has it is dropped for something else.
    """
    missing = F.when(F.col(quoted(name)).isNull() & F.lit(nulls == "suppress"), NULL).otherwise(UNSEEN)
    return F.when(F.col(present), F.coalesce(F.col(code), missing)).otherwise(ABSENT)


def _building(forest: Forest) -> BatchTask:
    above = np.array(
        [-1 if node_type.parent is None else forest.schema.ranks[node_type.parent] for node_type in forest.schema],
        dtype=np.int64,
    )
    leaf_nodes = forest.leaf_nodes

    def build(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield built(batch)

    def built(batch: pa.RecordBatch) -> pa.RecordBatch:
        offsets, codes = _matrix(batch.column(CHAINS), len(above))
        record = np.repeat(np.arange(batch.num_rows), np.diff(offsets))
        state = np.full(batch.num_rows, KEPT, dtype=np.int32)
        state[each_once(record[(codes == UNSEEN).any(axis=1)])] = DROPPED_UNSEEN
        state[each_once(record[(codes == NULL).any(axis=1)])] = DROPPED_NULL
        is_there = (codes >= 0) & (state == KEPT)[record][:, None]
        place = (np.cumsum(is_there.ravel()) - 1).reshape(is_there.shape)
        labels = np.empty_like(codes)
        for rank, nodes in enumerate(leaf_nodes):
            labels[:, rank] = nodes[np.where(is_there[:, rank], codes[:, rank], 0)]
        parents = np.where(above < 0, -1, place[:, np.maximum(above, 0)])
        sizes = np.bincount(record, weights=is_there.sum(axis=1), minlength=batch.num_rows).astype(np.int64)
        starts: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        first = np.broadcast_to(starts[record][:, None], is_there.shape)[is_there]
        parent_places = parents[is_there]
        inside: Codes = np.where(parent_places < 0, -1, parent_places - first).astype(np.int32)
        trees = canonical(Trees(starts, labels[is_there].astype(np.int32), inside))
        state[(np.diff(trees.offsets) == 0) & (state == KEPT)] = EMPTY
        return pa.RecordBatch.from_arrays(
            [
                batch.column(LINK),
                number_lists(trees.offsets, trees.labels),
                number_lists(trees.offsets, trees.parents),
                pa.array(state),
            ],
            names=[LINK, LABELS, PARENTS, STATE],
        )

    return build


def _matrix(chains: Any, node_types: int) -> tuple[Ints, Codes]:
    """Offsets of the records into the chains, and the chains as a matrix."""
    offsets: Ints = np.asarray(chains.offsets).astype(np.int64)
    flat = chains.flatten().flatten()
    return offsets - offsets[0], np.asarray(flat).astype(np.int32).reshape(-1, node_types)


def _counted(trees: DataFrame, source: DataFrame, places: Mapping[str, Place], max_labels: int) -> dict[str, Any]:
    kept, labels = F.col(STATE) == KEPT, F.size(F.array_distinct(LABELS))
    counts = trees.agg(
        F.count_if(kept).alias("kept"),
        F.count_if(F.col(STATE) == DROPPED_NULL).alias("nulls"),
        F.count_if(F.col(STATE) == DROPPED_UNSEEN).alias("unseen"),
        F.count_if(F.col(STATE) == EMPTY).alias("empty"),
        F.sum(F.when(kept, F.size(LABELS))).alias("nodes"),
        F.coalesce(F.sum(F.size(LABELS)), F.lit(0)).alias("all_nodes"),
        F.max(F.when(kept, labels)).alias("labels"),
        F.count_if(kept & (labels > max_labels)).alias("too_large"),
    ).collect()[0].asDict()
    values = source.agg(F.coalesce(F.sum(elements(places)), F.lit(0))).collect()[0][0]
    return {**counts, "values": values}


def _refuse(counted: Mapping[str, Any], max_labels: int) -> None:
    if counted["empty"]:
        raise DataError(
            f"{counted['empty']:,} records hold no value of any node type. Leave them out of the input.", records=counted["empty"]
        )
    if not counted["kept"]:
        raise GuaranteeUnreachable("No record is left: every one has a null or an unseen value.", records=0)
    if counted["too_large"]:
        raise DataError(
            f"{counted['too_large']:,} records have more than tree.max_labels = {max_labels} distinct values, the largest "
            f"{counted['labels']:,}. Sets of them are counted: cut such records off, or raise max_labels if you can wait.",
            records=counted["too_large"],
        )

