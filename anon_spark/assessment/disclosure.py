"""What classes tell of sensitive columns: the models of attribute disclosure as measured values, the worst class of each.

Rows are counted, also where a column of persons is named, as the models are defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, DoubleType, FloatType, NumericType, TimestampNTZType, TimestampType

from anon_spark.assessment.question import Question
from anon_spark.assessment.reading import tuple_hash, value_hash
from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.errors import DataError
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.disclosure import MEASURES, Reals, class_measures, prefixes
from anon_spark.model.guarantee.models import MOST_VALUES

KEY, COLUMN, VALUE, ORDER = (PREFIX + name for name in ("class_key", "column", "value", "order_text"))
TASK_PAIRS = 1_000_000
MOST_TASKS = 1_000
PAIR_BYTES = 28  # class, column, value, rows
SUMS = ("classes", "rows", "one_value_rows", "below_3_rows", "lacking_classes")
SMALL_IS_BAD = ("values", "entropy_l")  # of all other measures the greatest is the worst


@dataclass(frozen=True)
class Disclosure:
    """A sensitive column; each measure is that of the worst class, and q is the distribution in this table.

    least_l: distinct values; entropy_l; c_2, c_3: what c must exceed for recursive (c, l)-diversity, None if a class has fewer
    than l values; t_equal, t_ordered (numbers and dates only), beta, delta over the values that a class has; lacking_classes:
    classes without some value of the table, which fail every δ; one_value_rows: in classes with one value, which is plain to see;
    values: distinct ones of the table, None if more than `MOST_VALUES`, and then t, β and δ are None too.
    """

    column: str
    rows: int
    classes: int
    values: int | None
    least_l: int
    entropy_l: float
    c_2: float | None
    c_3: float | None
    below_3_rows: int
    t_equal: float | None
    t_ordered: float | None
    beta: float | None
    delta: float | None
    lacking_classes: int | None
    one_value_rows: int
    one_value_share: float


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of a sensitive column as hashes in ascending order of the hashes, their shares and their rank as numbers.

    hashes: empty where there are more than MOST_VALUES; ordered: whether ranks mean something.
    """

    hashes: Ints
    ranks: Ints
    shares: Reals
    ordered: bool


def disclosure(df: DataFrame, question: Question, rows: int, classes: int, held_bytes: int) -> list[Disclosure]:
    """The measures of every sensitive column of a table with so many rows and classes.

    held_bytes: up to which the driver takes the counts of all classes; above, tasks measure them, with equal results.
    Cost: a small job per column, which counts its values, and one job for all, with one groupBy of (class, value).
    """
    if not question.sensitive:
        return []
    domains = [_domain(df, column) for column in question.sensitive]
    most = sum(min(rows, classes * domain.hashes.size if domain.hashes.size else rows) for domain in domains)
    pairs = _pairs(df, question)
    if most * PAIR_BYTES <= held_bytes:
        table = pa.Table.from_batches([worst_of(pairs.toArrow(), domains)])
    else:
        table = _in_tasks(pairs, domains, most)
    return [_combined(table, at, column, domains[at]) for at, column in enumerate(question.sensitive)]


def _in_tasks(pairs: DataFrame, domains: Sequence[Domain], most: int) -> pa.Table:
    """Sums and worst measures, a row per task and column: all values of a class are in one task."""
    tasks = max(2, min(MOST_TASKS, -(-most // TASK_PAIRS)))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            yield worst_of(pa.Table.from_batches(held), domains)

    names = [COLUMN, *SUMS, *MEASURES]
    partial = pairs.repartition(tasks, KEY).mapInArrow(work, ", ".join(f"{name} double" for name in names))
    return partial.toArrow()


def _sensitive(df: DataFrame, name: str) -> Column:
    """A sensitive value: NaN as null."""
    value = F.col(quoted(name))
    return F.when(~F.isnan(value), value) if isinstance(df.schema[name].dataType, (FloatType, DoubleType)) else value


def _domain(df: DataFrame, name: str) -> Domain:
    kind = df.schema[name].dataType
    column = df.select(_sensitive(df, name).alias(name))
    order = _order(kind, F.col(quoted(name)))
    counted = column.select(value_hash(column, name, 0).alias(VALUE), order.cast("string").alias(ORDER))
    table = counted.groupBy(VALUE, ORDER).agg(F.count(F.lit(1)).alias(ROWS)).limit(MOST_VALUES + 1).toArrow()
    ordered = _is_ordered(kind)
    if table.num_rows > MOST_VALUES:
        none = np.zeros(0, dtype=np.int64)
        return Domain(none, none, np.zeros(0), ordered)
    hashes, rows = (np.asarray(table.column(at).to_numpy()).astype(np.int64) for at in (VALUE, ROWS))
    texts = table.column(ORDER).to_pylist()
    places = np.argsort(hashes)
    if ordered:  # null is greater than every value
        by_value = sorted(range(len(texts)), key=lambda at: (texts[at] is None, Decimal(texts[at] or 0)))
        rank = np.empty(len(texts), dtype=np.int64)
        rank[by_value] = np.arange(len(texts))
    else:
        rank = np.empty(len(texts), dtype=np.int64)
        rank[places] = np.arange(len(texts))
    shares = np.empty(len(texts))
    shares[rank] = rows / rows.sum()
    return Domain(hashes[places], rank[places], shares, ordered)


def _is_ordered(kind: DataType) -> bool:
    return isinstance(kind, (NumericType, DateType, TimestampType, TimestampNTZType))


def _order(kind: DataType, value: Column) -> Column:
    """A number by which values are ordered; null where they have no order."""
    if isinstance(kind, DateType):
        return F.unix_date(value)
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        return F.unix_micros(value.cast("timestamp"))
    return value if isinstance(kind, NumericType) else F.lit(None)


def _pairs(df: DataFrame, question: Question) -> DataFrame:
    """Rows by class, sensitive column and value, all as hashes. Cost: one shuffle; no action."""
    sensitive = [_sensitive(df, name).alias(name) for name in question.sensitive]
    plain = df.select(tuple_hash(df, question.quasi).alias(KEY), *sensitive)
    values = [
        F.struct(F.lit(at).alias(COLUMN), value_hash(plain, name, 0).alias(VALUE)) for at, name in enumerate(question.sensitive)
    ]
    each = plain.select(KEY, F.inline_outer(F.array(*values)))
    return each.groupBy(KEY, COLUMN, VALUE).agg(F.count(F.lit(1)).alias(ROWS))


def worst_of(table: pa.Table, domains: Sequence[Domain]) -> pa.RecordBatch:
    """Sums and worst measures of the classes of one task, a row per column."""
    keys, columns, values, rows = (np.asarray(table.column(at).to_numpy()).astype(np.int64) for at in range(4))
    found = []
    for at, domain in enumerate(domains):
        mine = np.flatnonzero(columns == at)
        if not mine.size:
            continue
        codes = _codes(values[mine], domain)
        order = np.lexsort((codes, keys[mine]))
        starts = np.unique(keys[mine][order], return_index=True)[1]
        ends = np.append(starts, mine.size).astype(np.int64)
        counts = rows[mine][order]
        measured = class_measures(ends, codes[order], counts, domain.shares, prefixes(domain.shares))
        found.append([at, *_summed(measured, np.add.reduceat(counts, starts), domain)])
    names = [COLUMN, *SUMS, *MEASURES]
    numbers = np.array(found, dtype=np.float64).T
    return pa.RecordBatch.from_arrays([pa.array(column) for column in numbers], names=names)


def _summed(measured: Reals, rows: Ints, domain: Domain) -> list[float]:
    values = measured[:, 0]
    sums = [values.size, rows.sum(), rows[values == 1].sum(), rows[values < 3].sum(), (values < domain.shares.size).sum()]
    return [*map(float, sums), *(_worst(name, measured[:, at]) for at, name in enumerate(MEASURES))]


def _worst(name: str, numbers: Reals) -> float:
    return float(numbers.min() if name in SMALL_IS_BAD else numbers.max())


def _codes(values: Ints, domain: Domain) -> Ints:
    if not domain.hashes.size:
        return np.asarray(np.unique(values, return_inverse=True)[1].reshape(-1), dtype=np.int64)
    places = np.minimum(np.searchsorted(domain.hashes, values), domain.hashes.size - 1)
    if (domain.hashes[places] != values).any():
        raise DataError("The table changed while it was read: sensitive values appeared that were not there before. Run again.")
    return domain.ranks[places]


def _combined(table: pa.Table, at: int, column: str, domain: Domain) -> Disclosure:
    mine = np.flatnonzero(table.column(COLUMN).to_numpy() == at)
    total = {name: int(table.column(name).to_numpy()[mine].sum()) for name in SUMS}
    worst = {name: _worst(name, table.column(name).to_numpy()[mine]) for name in MEASURES}
    known = bool(domain.hashes.size)
    finite = {name: value if math.isfinite(value) else None for name, value in worst.items()}
    return Disclosure(
        column=column,
        rows=total["rows"],
        classes=total["classes"],
        values=domain.hashes.size if known else None,
        least_l=int(worst["values"]),
        entropy_l=worst["entropy_l"],
        c_2=finite["c_2"],
        c_3=finite["c_3"],
        below_3_rows=total["below_3_rows"],
        t_equal=finite["t_equal"],
        t_ordered=finite["t_ordered"] if domain.ordered else None,
        beta=finite["beta"],
        delta=finite["delta"],
        lacking_classes=total["lacking_classes"] if known else None,
        one_value_rows=total["one_value_rows"],
        one_value_share=total["one_value_rows"] / total["rows"],
    )
