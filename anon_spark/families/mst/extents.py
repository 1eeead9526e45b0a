"""Classes published as extents: the least and the greatest number of a class instead of a label of the hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.engine import beside, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.families.mst.frames import leaf_columns
from anon_spark.families.mst.job import Publish
from anon_spark.model.hierarchy import Hierarchy, Rule, ends_of

ROUNDED: Publish = "rounded_extent"
LO, HI = "lo", "hi"
EXACT_ENDS = "{} is published as extents: the two ends of a class are exact values of rows in it."
NUMBER, LOW, HIGH = (PREFIX + name for name in ("number", "low_", "high_"))  # the last two: + position


def check_publish(publish: Mapping[str, Publish], hierarchies: Mapping[str, Hierarchy | Rule]) -> None:
    """Refuse extents of columns that are no quasi-identifiers, or not numbers."""
    for name, how in publish.items():
        if name not in hierarchies or how not in get_args(Publish):
            raise ConfigurationError(
                f"publish: {name}: {how} is not possible. Name a quasi-identifier, and one of {', '.join(get_args(Publish))}."
            )
        hierarchy = hierarchies[name]
        if how == "label":
            continue
        if not isinstance(hierarchy, Hierarchy):
            raise ConfigurationError(f"publish: {name} is no number. Extents need a hierarchy of whole numbers.")
        try:
            ends_of(hierarchy, how == ROUNDED)
        except ConfigurationError as error:
            raise ConfigurationError(f"{name}: {error}") from error


def with_extents(labelled: DataFrame, hierarchies: Mapping[str, Hierarchy], publish: Mapping[str, Publish]) -> DataFrame:
    """Tuples with their labels, where the columns named in `publish` become struct<lo,hi>.

    labelled: leaf columns, ROWS and one label column per hierarchy. The ends are those of all tuples with the same labels. A
    class of nulls alone stays null; in a class of nulls and numbers both ends are null: any value or none.
    Cost: a broadcast join per column; one shuffle of the tuples.
    """
    names, leaves = list(hierarchies), leaf_columns(len(hierarchies))
    shown = {name: how for name, how in publish.items() if how != "label"}
    if not shown:
        return labelled
    frame = labelled
    for name, how in shown.items():
        at = names.index(name)
        low, high = ends_of(hierarchies[name], how == ROUNDED)
        numbers = pa.array(range(low.size), pa.int32())
        ends = pa.table({NUMBER: numbers, f"{LOW}{at}": pa.array(low), f"{HIGH}{at}": pa.array(high)})
        known = beside(small_frame(labelled.sparkSession, ends))
        frame = frame.join(known, F.col(leaves[at]) == F.col(NUMBER), "left").drop(NUMBER)
    same = Window.partitionBy(*map(quoted, names))
    columns = []
    for at, name in enumerate(names):
        label = F.col(quoted(name))
        if name in shown:
            lowest, highest = F.min(f"{LOW}{at}").over(same), F.max(f"{HIGH}{at}").over(same)
            some_null = F.max(F.isnull(f"{LOW}{at}")).over(same)
            fields = [F.when(~some_null, end).alias(field) for end, field in ((lowest, LO), (highest, HI))]
            label = F.when(F.isnotnull(label), F.struct(*fields)).alias(name)
        columns.append(label)
    return frame.select(*leaves, ROWS, *columns)


def widths(shown: DataFrame, hierarchies: Mapping[str, Hierarchy], columns: Sequence[str]) -> dict[str, float]:
    """Mean share of its domain that the extent of a row covers, per column; both ends null count as the whole. Cost: one job."""
    sums, ranges = [], {}
    for at, name in enumerate(columns):
        low, high = ends_of(hierarchies[name])
        ranges[name] = max(1, int(high.max() - low.min()))
        extent = F.col(quoted(name))
        whole = F.isnotnull(extent) & F.isnull(extent[LO])
        width = F.when(whole, F.lit(ranges[name])).otherwise(F.coalesce(extent[HI] - extent[LO], F.lit(0)))
        sums.append(F.sum(F.col(ROWS).cast("double") * width).alias(str(at)))
    total = shown.agg(F.sum(ROWS).alias(ROWS), *sums).first()
    assert total is not None, "an aggregate has one row"
    return {name: float(total[str(at)] / total[ROWS] / ranges[name]) for at, name in enumerate(columns)}
