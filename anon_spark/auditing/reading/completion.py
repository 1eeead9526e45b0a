"""Rules completed by the audit itself: masks, tops and dates without a domain are built from the source's rows in scope.

A run's own hierarchies are a claim like any other. The audit takes those of the job and completes them by reading the source
again; rows that a policy drops are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.reading.recode import KEPT, NULL, UNSEEN, Climb, with_codes
from anon_spark.auditing.reading.tree_records import RECORD, raw_column, there_column, unfolded_values
from anon_spark.auditing.reading.values import exact, private, require_columns
from anon_spark.errors import DataError, LimitExceeded
from anon_spark.model.hierarchy import DateRule, Hierarchy, Rule
from anon_spark.model.tree import TreeSchema

MOST_VALUES = 1_000_000

_POSITION, _VALUE, _FAULT = private("position"), private("value"), private("fault")


def completed(
    source: DataFrame, hierarchies: Mapping[str, Hierarchy | Rule], nulls: str, dropped: Column | None = None
) -> dict[str, Hierarchy]:
    """The hierarchies of a job as they apply to the source, by column.

    nulls: what the run does with a null quasi-identifier; dropped: rows that another policy drops.
    Guarantee: a level table or an interval is what it was; a rule is built from the values of rows in which no value is
    unknown to its hierarchy and, under `suppress`, none is null. Null leaves are not added here.
    Cost: none without rules; else two jobs, with one broadcast join per column; the distinct values of the rules' columns
    (at most MOST_VALUES) reach the driver.
    """
    rules = [at for at, hierarchy in enumerate(hierarchies.values()) if not isinstance(hierarchy, Hierarchy)]
    if not rules:
        return _whole(hierarchies)
    require_columns(source, list(hierarchies), "source")
    rows = source if dropped is None else source.where(~dropped)
    values = [exact(source, name).alias(raw_column(at)) for at, name in enumerate(hierarchies)]
    there = [F.lit(True).alias(there_column(at)) for at in range(len(hierarchies))]
    return _built(rows.select(*values, *there), hierarchies, rules, nulls, None)


def completed_of_trees(
    source: DataFrame,
    schema: TreeSchema,
    hierarchies: Mapping[str, Hierarchy | Rule],
    nulls: str,
    person: str | None = None,
) -> dict[str, Hierarchy]:
    """As `completed`, by node type of nested records, which are dropped as a whole. Cost: also one shuffle of unfolded rows."""
    by_type = {name: hierarchies[name] for name in schema.names}
    rules = [at for at, hierarchy in enumerate(by_type.values()) if not isinstance(hierarchy, Hierarchy)]
    if not rules:
        return _whole(by_type)
    record = F.monotonically_increasing_id() if person is None else exact(source, person)
    rows = unfolded_values(source, schema, record)
    return _built(rows, by_type, rules, nulls, RECORD)


def _whole(hierarchies: Mapping[str, Hierarchy | Rule]) -> dict[str, Hierarchy]:
    return {name: hierarchy for name, hierarchy in hierarchies.items() if isinstance(hierarchy, Hierarchy)}


def _built(
    rows: DataFrame, hierarchies: Mapping[str, Hierarchy | Rule], rules: Sequence[int], nulls: str, record: str | None
) -> dict[str, Hierarchy]:
    """Build the rules from all values first, to find values that they do not take; then from the values in scope."""
    texts, kinds = {at: private(f"text_{at}") for at in rules}, list(hierarchies.values())
    written = rows.select(
        "*",
        *(
            _text(F.col(raw_column(at)), rows.schema[raw_column(at)].dataType, isinstance(kinds[at], DateRule)).alias(text)
            for at, text in texts.items()
        ),
    )
    known = _distinct(written, texts)
    draft = {
        name: rule if isinstance(rule, Hierarchy) else _of_rule(name, rule, known[at])
        for at, (name, rule) in enumerate(hierarchies.items())
    }
    columns = [f"{_FAULT}_{at}" for at in range(len(draft))]
    climbs = [
        Climb(raw_column(at), raw_column(at), hierarchy, 0, columns[at]) for at, hierarchy in enumerate(draft.values())
    ]
    written = with_codes(written.select("*", *(F.lit(KEPT).alias(fault) for fault in columns)), climbs)
    faults = [F.when(F.col(there_column(at)), F.col(fault)).otherwise(F.lit(KEPT)) for at, fault in enumerate(columns)]
    bits = UNSEEN | NULL if nulls == "suppress" else UNSEEN
    out = reduce(or_, (fault.bitwiseAND(F.lit(bits)) != 0 for fault in faults))
    if record is not None:
        out = F.max(out).over(Window.partitionBy(record))
    in_scope = _distinct(written.withColumn(_FAULT, out).where(~F.col(_FAULT)), texts)
    return {
        name: rule if isinstance(rule, Hierarchy) else _of_rule(name, rule, in_scope[at])
        for at, (name, rule) in enumerate(hierarchies.items())
    }


def _of_rule(name: str, rule: Rule, texts: Sequence[str]) -> Hierarchy:
    if not texts:
        raise DataError(f"No row in scope has a value of {name}: there is nothing to release.", rows=0)
    return rule.build(texts)


def _distinct(frame: DataFrame, texts: Mapping[int, str]) -> dict[int, list[str]]:
    """The distinct texts of some columns, by position. Cost: one job."""
    cells = [
        F.struct(F.lit(at).alias(_POSITION), F.when(F.col(there_column(at)), F.col(text)).alias(_VALUE))
        for at, text in texts.items()
    ]
    each = frame.select(F.explode_outer(F.array(*cells)).alias(_VALUE)).select(f"{_VALUE}.*")
    table: pa.Table = each.where(F.isnotnull(_VALUE)).distinct().limit(MOST_VALUES + 1).toArrow()
    if table.num_rows > MOST_VALUES:
        raise LimitExceeded(f"The columns with rules have more than {MOST_VALUES} distinct values.")
    by_position: dict[int, list[str]] = {at: [] for at in texts}
    for row in table.to_pylist():
        by_position[row[_POSITION]].append(row[_VALUE])
    return {at: sorted(values) for at, values in by_position.items()}


def _text(value: Column, kind: T.DataType, days: bool) -> Column:
    """A value as the text that a rule takes, of timestamps the day if it takes days; null and NaN have none, 0 has no sign."""
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(~F.isnan(value), (value.cast("double") + F.lit(0.0)).cast("string"))
    if days and isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return value.cast("date").cast("string")
    return value.cast(T.StringType())
