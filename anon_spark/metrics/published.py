"""A release as counts of its published labels, for measures that are independent of how it was made."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.errors import DataError, HierarchyError
from anon_spark.metrics.recoded import Recoded
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.hierarchy.checks import ambiguous_labels
from anon_spark.primitives.rounds import collect_small
from anon_spark.primitives.tables import require_columns

MOST_LABELS = 1_000_000  # different published labels of all quasi-identifiers together

_AT, _LABEL = PREFIX + "at", PREFIX + "label"


def recoded_of(release: DataFrame, hierarchies: Mapping[str, Hierarchy], rows: int) -> Recoded:
    """The counts of a release under local or full-domain recoding.

    rows: rows of the input without those that a policy dropped; rows that are not published were suppressed.
    Guarantee: from labels and hierarchies alone. A label stands for the same leaves on every level that has it, the root
    for all, null for the null leaf; a hierarchy in which a label does not is refused, an unknown label too.
    Cost: two jobs, each one scan and one groupBy with map-side aggregation; the different labels reach the driver.
    """
    names = list(hierarchies)
    require_columns(release, names)
    nodes = [_nodes(name, hierarchy) for name, hierarchy in hierarchies.items()]
    texts = [F.col(quoted(name)).cast("string") for name in names]
    cells = release.select(F.posexplode_outer(F.array(*texts)).alias(_AT, _LABEL)).groupBy(_AT, _LABEL)
    table = collect_small(cells.agg(F.count(F.lit(1)).alias(ROWS)), MOST_LABELS, "Labels of the release")
    counts = [
        [np.zeros(len(labels), dtype=np.int64) for labels in hierarchy.labels] for hierarchy in hierarchies.values()
    ]
    for at, label, shown in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if label not in nodes[at]:
            raise DataError(f"{shown:,} rows of the release have a label of {names[at]} that its hierarchy does not know.")
        level, code = nodes[at][label]
        counts[at][level][code] += shown

    labels = [text.alias(f"{_LABEL}_{at}") for at, text in enumerate(texts)]
    classes = release.groupBy(*labels).agg(F.count(F.lit(1)).cast("decimal(18,0)").alias(ROWS))
    total = classes.agg(F.count(F.lit(1)), F.sum(ROWS), F.sum(F.col(ROWS) * F.col(ROWS))).collect()[0]
    suppressed = rows - int(total[1] or 0)
    by_node = tuple(tuple(by_level) for by_level in counts)
    return Recoded(tuple(hierarchies.values()), by_node, rows, suppressed, int(total[2] or 0), int(total[0]))


def _nodes(name: str, hierarchy: Hierarchy) -> dict[str | None, tuple[int, int]]:
    """Label → (level, code) on the highest level that has it, so that a padded root is found as the root."""
    values = hierarchy.codes[:, : len(hierarchy.keys)]  # without null, which is only under the root
    unclear = sum(count for _, _, count in ambiguous_labels(values, hierarchy.labels))
    if unclear:
        raise HierarchyError(
            f"{unclear} labels of {name} mean different values on two levels: a published one does not say which. Give "
            "labels that mean different things different names.",
            labels=unclear,
        )
    return {label: (level, code) for level, labels in enumerate(hierarchy.labels) for code, label in enumerate(labels)}
