"""Publication in tasks: the published row of each record of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import CLUSTER, LINK, PREFIX, quoted
from anon_spark.engine import not_broadcast
from anon_spark.families.relational_transaction.items import Catalogue, Generalized, baskets_in, generalized
from anon_spark.families.relational_transaction.kernels import relation
from anon_spark.families.relational_transaction.records import LOST, NUMBER, SECRETS, Attributes, Records, Roles
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.primitives.tasks import Task, as_expected, in_groups, lists_of

NCP, UL = PREFIX + "ncp", PREFIX + "ul"  # losses of a record: relational values, items
COMBINED, APART = "transactions", "_sensitive"
FEWEST_TASKS, TASK_RECORDS = 16, 5_000


@dataclass(frozen=True)
class Published:
    """The names of the published columns, in order."""

    relational: Sequence[str]
    items: str
    secrets: str | None  # the column of sensitive items
    carried: Sequence[str]

    @classmethod
    def of(cls, roles: Roles) -> Published:
        items = roles.transactions[0] if len(roles.transactions) == 1 else COMBINED
        secrets = items + APART if any(roles.sensitive_items.values()) else None
        return cls(list(roles.attributes), items, secrets, list(roles.carried))

    @property
    def columns(self) -> list[str]:
        return [*self.relational, self.items, *([] if self.secrets is None else [self.secrets]), *self.carried]


def published_records(
    assigned: DataFrame, records: Records, settings: Settings, catalogue: Catalogue, names: Published, clusters: int
) -> DataFrame:
    """LINK, CLUSTER, NCP, UL and the published columns of every record.

    assigned: the narrow records with CLUSTER; clusters: how many there are at most.
    Cost: one shuffle by cluster; a task holds one cluster. Columns that are published unchanged are joined before.
    """
    if names.carried:
        carried = records.frame.select(LINK, *(F.col(quoted(name)) for name in names.carried))
        assigned = assigned.join(not_broadcast(carried), LINK)
    schema = _schema(assigned, records.attributes, names)
    tasks = min(clusters, max(FEWEST_TASKS, records.rows // TASK_RECORDS))  # one task per cluster would cost more
    return in_groups(assigned, CLUSTER, _publish(records, settings, catalogue, names, schema), schema, tasks)


def _publish(records: Records, settings: Settings, catalogue: Catalogue, names: Published, schema: T.StructType) -> Task:
    attributes = records.attributes
    items, secrets = pa.array(catalogue.names, pa.string()), pa.array(records.secrets, pa.string())

    def work(table: pa.Table) -> pa.Table:
        table = table.sort_by(LINK)
        count = table.num_rows
        values = attributes.values(table)
        lo, hi = values.min(axis=0, keepdims=True), values.max(axis=0, keepdims=True)
        columns: dict[str, Any] = {
            LINK: table.column(LINK),
            CLUSTER: table.column(CLUSTER),
            NCP: np.repeat(relation.own_penalties(attributes.relation, lo, hi), count),
        }
        levels = relation.node_levels(attributes.relation, lo, hi)[0]
        for at, name in enumerate(attributes.names):
            if attributes.hierarchies[at] is None:
                columns[name] = _range(table.column(f"{NUMBER}{at}"))
            else:
                label = _label(attributes, at, int(levels[at]), int(lo[0, at]))
                columns[name] = pa.repeat(pa.scalar(label, pa.string()), count)
        recoded = generalized(baskets_in(table, np.ones(count, dtype=np.int64)), settings, catalogue)
        lost = np.asarray(table.column(LOST)) > 0
        columns[UL], columns[names.items] = np.where(lost, 1.0, recoded.losses), _nested(recoded, items)
        if names.secrets is not None:
            offsets, codes = lists_of(table, SECRETS)  # ascending as the names are
            secret_names = secrets.take(pa.array(codes, pa.int32()))
            columns[names.secrets] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), secret_names)
        for name in names.carried:
            columns[name] = table.column(name)
        return as_expected(pa.table(columns), schema)

    return work


def _label(attributes: Attributes, at: int, level: int, position: int) -> str | None:
    """The label of the node of a whole cluster."""
    hierarchy, leaf_at = attributes.hierarchies[at], attributes.leaf_at[at]
    assert hierarchy is not None and leaf_at is not None, "a category"
    label: str | None = hierarchy.labels[level][hierarchy.codes[level, leaf_at[position]]]
    return label


def _range(column: Any) -> Any:
    """The range of a whole cluster, in the type of its numbers."""
    ends: Any = pc.min_max(column)
    ends = ends.as_py()
    if pa.types.is_floating(column.type):
        ends = {name: end + 0.0 for name, end in ends.items()}  # -0.0 becomes 0.0
    bounds = [pa.repeat(pa.scalar(ends[name], column.type), len(column)) for name in ("min", "max")]
    return pa.StructArray.from_arrays(bounds, names=["lo", "hi"])


def _nested(recoded: Generalized, names: Any) -> Any:
    """Lists of lists of names; members ascend by name, labels by their first member."""
    members = names.take(pa.array(recoded.members, pa.int64()))
    inner = pa.ListArray.from_arrays(pa.array(recoded.bounds, pa.int32()), members)
    labels = inner.take(pa.array(recoded.labels, pa.int32()))
    return pa.ListArray.from_arrays(pa.array(recoded.offsets, pa.int32()), labels)


def _schema(assigned: DataFrame, attributes: Attributes, names: Published) -> T.StructType:
    texts = T.ArrayType(T.StringType())
    kinds: dict[str, T.DataType] = {
        LINK: T.LongType(), CLUSTER: T.LongType(), NCP: T.DoubleType(), UL: T.DoubleType(),
    }  # fmt: skip
    for at, (name, hierarchy) in enumerate(zip(attributes.names, attributes.hierarchies, strict=True)):
        kinds[name] = T.StringType()
        if hierarchy is None:
            kind = assigned.schema[f"{NUMBER}{at}"].dataType
            kinds[name] = T.StructType([T.StructField(end, kind) for end in ("lo", "hi")])
    kinds[names.items] = T.ArrayType(texts)
    if names.secrets is not None:
        kinds[names.secrets] = texts
    for name in names.carried:
        kinds[name] = assigned.schema[name].dataType
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])
