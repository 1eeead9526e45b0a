"""Models of attribute disclosure on a published table: sensitive values by class, counted afresh and compared with the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    LongType,
    NumericType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from anon_spark.auditing.guarantees.model_judging import Judge, at_least, compares_with_table
from anon_spark.auditing.guarantees.model_levels import levels_of
from anon_spark.auditing.guarantees.model_tally import (
    BIN,
    CLASSES,
    GREATEST,
    HOLDS,
    JUDGE,
    LEAST,
    TALLY,
    UNBOUNDED,
    borders,
    histograms,
    tallied,
)
from anon_spark.auditing.reading.sensitive import ENTRIES, POSITION, class_entries, countable, key_column, whole_values
from anon_spark.auditing.reading.values import plain_type, private, require_columns, shape
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import checked_names
from anon_spark.model.guarantee.models import (
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    Models,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.pending import Pending

MEASURE = private("measure")  # of a class that fails

_IN_ORDER = (NumericType, DateType, TimestampType, TimestampNTZType)


def verify_models(
    release: DataFrame, source: DataFrame | None, columns: Sequence[str], models: Models
) -> tuple[Verdict, ...]:
    """Whether every equivalence class of the release holds the models of each sensitive column: one verdict per model.

    source: the rows of the source in scope, published and suppressed (`rows_in_scope`), with the sensitive columns; None for
    a release alone, which is then compared with itself, and the verdicts say so. columns: the published quasi-identifiers.
    models: by sensitive column.
    Guarantee: passed iff there is at least one row and every class holds the model, decided exactly. Classes are told apart as
    `published_classes` does. Null is a value, one and the same with NaN, and greater than every other; texts that their
    collation holds equal are one value, so no doubt counts in favour. A class with a value that the source lacks fails t, β
    and δ.
    violations and checked count classes. facts: model, column, limit, rows, classes, rows_in_violation; worst, the worst
    measure of a class that has one; unbounded, how many have none; histogram, their measures as (from, to, classes, rows), the
    last bin without `to`; compared_with, `source` or `release`. frame: the failing classes with ROWS and MEASURE, if any.
    Cost: two jobs for all columns and models, and some on distinct values for hierarchical distances. See `whole_values` and
    `class_entries`; classes are judged where they are, and some hundred rows reach the driver.
    """
    return models_check(release, source, columns, models).get()


def models_check(
    release: DataFrame, source: DataFrame | None, columns: Sequence[str], models: Models
) -> Pending[tuple[Verdict, ...]]:
    """As `verify_models`, its classes not counted yet; the values of the source are, in one job."""
    quasi, sensitive = _checked(release, source, columns, models)
    kinds = [countable(release, name) for name in sensitive]
    for name, kind in zip(sensitive, kinds, strict=True):
        _check_order(name, kind, models[name])
    values = whole_values(release if source is None else source, sensitive, kinds)
    pairs = [(at, model) for at, name in enumerate(sensitive) for model in models[name]]
    trees = [(at, hierarchy) for at, model in pairs if (hierarchy := _hierarchy(model)) is not None]
    levels = iter(levels_of(release.sparkSession, values, trees))
    judges = [
        Judge(at, model, values.whole(at), None if _hierarchy(model) is None else next(levels)) for at, model in pairs
    ]
    entries = class_entries(release, quasi, values)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return tallied(judges, batches)

    sums = [F.sum(CLASSES).alias(CLASSES), F.sum(ROWS).alias(ROWS), F.min(LEAST).alias(LEAST), F.max(GREATEST).alias(GREATEST)]
    lines = entries.select(POSITION, ENTRIES).mapInArrow(count, TALLY).groupBy(JUDGE, BIN, HOLDS).agg(*sums)

    def conclude(rows: list[Row]) -> tuple[Verdict, ...]:
        return tuple(
            _verdict(
                sorted((row for row in rows if row[JUDGE] == number), key=lambda row: int(row[BIN])),
                judge,
                sensitive[judge.column],
                source is not None,
                entries,
                quasi,
            )
            for number, judge in enumerate(judges)
        )

    return Pending.of(lines, conclude)


def _checked(
    release: DataFrame, source: DataFrame | None, columns: Sequence[str], models: Models
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Refuse arguments that nothing can be judged by; returns quasi-identifiers and sensitive columns."""
    quasi = checked_names("columns", columns, "Models need at least one quasi-identifier column, none was given.")
    sensitive = checked_names("models", tuple(models), "No sensitive column with a model was given.")
    both = [name for name in sensitive if name in quasi]
    if both:
        raise ConfigurationError(f"Columns cannot be both sensitive and quasi-identifiers: {', '.join(both)}.")
    without = [name for name in sensitive if not models[name]]
    if without:
        raise ConfigurationError(f"Sensitive columns without a model: {', '.join(without)}. Give each at least one.")
    require_columns(release, [*quasi, *sensitive], "release")
    if source is not None:
        require_columns(source, sensitive, "source")
        kinds = [{name: shape(plain_type(frame.schema[name].dataType)) for name in sensitive} for frame in (source, release)]
        other = [name for name in sensitive if kinds[0][name] != kinds[1][name]]
        if other:
            raise ConfigurationError(f"Sensitive columns have another type than in the source: {', '.join(other)}.")
    return quasi, sensitive


def _check_order(name: str, kind: DataType, models: Sequence[Model]) -> None:
    ordered = any(isinstance(model, TCloseness) and model.distance == "ordered" for model in models)
    if ordered and not isinstance(kind, _IN_ORDER):
        raise ConfigurationError(
            f"Column {name}: distance ordered is for numbers and dates, not for {kind.simpleString()}. "
            "Use distance equal, or give levels."
        )


def _hierarchy(model: Model) -> Hierarchy | Rule | None:
    return model.hierarchy if isinstance(model, TCloseness) else None


def _failing(entries: DataFrame, quasi: Sequence[str], judge: Judge) -> DataFrame:
    """The classes that fail: published values, ROWS and MEASURE. Cost: that of `class_entries`, at each action."""
    keys = [key_column(at) for at in range(len(quasi))]
    kinds = [entries.schema[key].dataType for key in keys]
    fields = [*zip(keys, kinds, strict=True), (ROWS, LongType()), (MEASURE, DoubleType())]

    def failing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _, places, classes in histograms(batch):
                judged = judge.judge(classes)
                fails = np.flatnonzero(~judged.holds)
                shown = [batch.column(at).take(places[fails]) for at in range(2, batch.num_columns)]
                rows, measures = pa.array(classes.rows[fails], pa.int64()), pa.array(judged.values[fails], pa.float64())
                yield pa.RecordBatch.from_arrays([*shown, rows, measures], names=[name for name, _ in fields])

    of_column = entries.where(F.col(POSITION) == judge.column).select(POSITION, ENTRIES, *keys)
    failed = of_column.mapInArrow(failing, StructType([StructField(*field) for field in fields]))
    return failed.toDF(*quasi, ROWS, MEASURE)


# -- what is said ---------------------------------------------------------------------------------------------------------


def _verdict(
    lines: Sequence[Row], judge: Judge, column: str, with_source: bool, entries: DataFrame, quasi: Sequence[str]
) -> Verdict:
    facts = _facts(lines, judge, column, with_source)
    violations = sum(int(row[CLASSES]) for row in lines if not row[HOLDS])
    return Verdict(
        kind=Kind.PROMISE,
        name=f"{judge.model} of {column}",
        passed=facts["rows"] > 0 and violations == 0,
        violations=violations,
        checked=facts["classes"],
        detail=_detail(facts, violations, judge.model),
        facts=facts,
        frame=_failing(entries, quasi, judge) if violations else None,
    )


def _facts(lines: Sequence[Row], judge: Judge, column: str, with_source: bool) -> dict[str, Any]:
    edges, least = borders(judge), at_least(judge.model)
    measured = [row for row in lines if row[BIN] != UNBOUNDED]
    counts: dict[tuple[float, float | None], tuple[int, int]] = {}
    for row in measured:
        lower, upper = (float(edges[row[BIN] + side]) for side in (0, 1))
        border = (lower, upper if np.isfinite(upper) else None)
        classes, rows = counts.get(border, (0, 0))
        counts[border] = (classes + int(row[CLASSES]), rows + int(row[ROWS]))
    measures = [float(row[LEAST if least else GREATEST]) for row in measured]
    return {
        "model": str(judge.model),
        "key": judge.model.key,
        "column": column,
        "limit": float(judge.limit),
        "rows": sum(int(row[ROWS]) for row in lines),
        "classes": sum(int(row[CLASSES]) for row in lines),
        "worst": (min if least else max)(measures, default=None),
        "unbounded": sum(int(row[CLASSES]) for row in lines if row[BIN] == UNBOUNDED),
        "rows_in_violation": sum(int(row[ROWS]) for row in lines if not row[HOLDS]),
        "histogram": [(*border, *number) for border, number in counts.items()],
        "compared_with": ("source" if with_source else "release") if compares_with_table(judge.model) else None,
    }


def _detail(facts: Mapping[str, Any], violations: int, model: Model) -> str:
    if not facts["rows"]:
        return "the release is empty, there is nothing to publish."
    worst = [] if facts["worst"] is None else [f"{_word(model)} {facts['worst']:g}"]
    if violations:
        numbers = ", ".join([f"{facts['rows_in_violation']} of {facts['rows']} rows", *worst, f"limit {facts['limit']:g}"])
        said = [f"{violations} of {facts['classes']} classes fail ({numbers})."]
    else:
        numbers = ", ".join([*worst, f"limit {facts['limit']:g}", f"{facts['rows']} rows"])
        said = [f"all {facts['classes']} classes hold it ({numbers})."]
    if facts["unbounded"]:
        said.append(f"{facts['unbounded']} classes {_lack(model)}.")
    if facts["compared_with"] == "release":
        said.append("Classes are compared with the whole release: no source was given.")
    return " ".join(said)


def _word(model: Model) -> str:
    """What the worst measure of a class is called."""
    if isinstance(model, DistinctL):
        return "fewest values"
    if isinstance(model, EntropyL):
        return "least entropy l"
    if isinstance(model, RecursiveCL):
        return "greatest ratio that c must exceed"
    return "greatest distance" if isinstance(model, TCloseness) else f"greatest {model.key}"


def _lack(model: Model) -> str:
    """Why a class has no measure."""
    if isinstance(model, RecursiveCL):
        return f"have fewer than {model.l} values"
    lacking = "lack values of the whole table, or " if isinstance(model, DeltaDisclosure) else ""
    return f"{lacking}have values that the whole table lacks"
