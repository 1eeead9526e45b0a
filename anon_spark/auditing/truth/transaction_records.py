"""Records with relational values and items, and what is published of them, as the checks of truthfulness read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.reading.item_sets import (
    as_set,
    items_in,
    no_items,
    require_item_groups,
    require_lists,
    rows_by_item,
    together,
)
from anon_spark.auditing.reading.recode import KEPT, NULL, STATUS, UNSEEN, Climb, source_totals, with_codes, with_scope
from anon_spark.auditing.reading.values import HI, LO, exact, hashable, private, quoted, require_columns
from anon_spark.auditing.truth.full_domain import PUBLISHED, SOURCE, check_recoding, raw_column
from anon_spark.columns import ROWS
from anon_spark.engine import crossed, has_null, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange

OWN, HIDDEN, CONTENT, ITEMS = (private(name) for name in ("own", "hidden", "content", "items"))
LEFT_OUT = private("left_out")
LEAST, GREATEST = private("least"), private("greatest")

_HOLE, _ROW, _ITEM, _LABEL, _SENSITIVE = (private(name) for name in ("hole", "row", "item", "label", "sensitive"))

_COUNTED = f"{_ITEM} string, {_LABEL} string, {ROWS} long"


@dataclass(frozen=True)
class LeaveOut:
    """The items that a release may leave out everywhere: each of fewer than k records, together up to a share of all
    occurrences of items that are not sensitive. By default none."""

    k: int = 0
    share: float = 0.0

    def exceeded(self, left_out: int, occurrences: int) -> bool:
        """Whether more occurrences are left out than the share allows."""
        return left_out > self.share * occurrences


NOTHING_LEFT_OUT = LeaveOut()


@dataclass(frozen=True)
class Transactions:
    """The roles of the columns of source and release.

    relational: quasi-identifier → hierarchy, None or FreeRange for a number that is published as struct<lo,hi>; transactions:
    source columns; items, sensitive: published columns; sensitive_items: transaction column → its sensitive items, without
    the column's name. Items of several columns are written `column.item`.
    """

    relational: Mapping[str, Hierarchy | FreeRange | None]
    transactions: Sequence[str]
    items: str
    sensitive_items: Mapping[str, Sequence[str]]
    sensitive: str | None
    unchanged: Sequence[str]

    @property
    def hierarchies(self) -> dict[int, Hierarchy]:
        """The hierarchies by position of their attribute; the others are free ranges."""
        attributes = enumerate(self.relational.values())
        return {at: hierarchy for at, hierarchy in attributes if isinstance(hierarchy, Hierarchy)}

    @property
    def ranges(self) -> dict[int, FreeRange]:
        """The free ranges by position of their attribute."""
        attributes = enumerate(self.relational.values())
        return {at: free_range or FreeRange() for at, free_range in attributes if not isinstance(free_range, Hierarchy)}

    @property
    def source(self) -> list[str]:
        return [*self.relational, *self.transactions, *self.unchanged]

    @property
    def release(self) -> list[str]:
        return [*self.relational, self.items, *([] if self.sensitive is None else [self.sensitive]), *self.unchanged]

    def check(self, source: DataFrame, release: DataFrame, nulls: str) -> list[str]:
        """Refuse arguments that no release could meet; returns the columns of a wrong type."""
        if any(self.sensitive_items.values()) != (self.sensitive is not None):
            raise ConfigurationError("Sensitive items and the column that shows them must be given together.")
        strange = [name for name in self.sensitive_items if name not in self.transactions]
        if strange:
            raise ConfigurationError(f"Sensitive items of columns that are no transactions: {', '.join(strange)}.")
        if not self.transactions:
            raise ConfigurationError("Give at least one transaction column.")
        require_columns(source, self.source, "source")
        require_columns(release, self.release, "release")
        require_lists(source, list(self.transactions), "source")
        require_item_groups(release, self.items)
        if self.sensitive is not None:
            require_lists(release, [self.sensitive], "release")
        other = check_recoding(source, release, list(self.relational), self.unchanged, nulls)
        for at, name in enumerate(self.relational):
            kind, source_kind = release.schema[name].dataType, source.schema[name].dataType
            if at in self.hierarchies:
                other += [] if isinstance(kind, T.StringType) else [name]
            elif not isinstance(kind, T.StructType) or kind.names != [LO, HI]:
                raise ConfigurationError(f"Column {name} of the release has no hierarchy: it must be struct<lo,hi>.")
            else:
                other += [] if all(field.dataType == source_kind for field in kind.fields) else [name]
        return other


def out_of_scope(source: DataFrame, relational: Mapping[str, object], transactions: Sequence[str], nulls: str) -> Column:
    """Whether a policy drops a row of the source for its lists or for a number without hierarchy. No action."""
    missing, faults = [F.isnull(quoted(name)) for name in transactions], [F.lit(False)]
    for name, attribute in relational.items():
        if isinstance(attribute, FreeRange):
            number = F.col(quoted(name)).cast("double")
            missing.append(F.isnull(number) | F.isnan(number))
            if attribute.domain is not None:
                faults.append(F.coalesce(~number.between(*attribute.domain), F.lit(False)))
    return reduce(or_, [*faults, *(missing if nulls == "suppress" else [])])


def shown_column(at: int) -> str:
    return private(f"shown_{at}")


def kept_column(at: int) -> str:
    return private(f"kept_{at}")


def read_records(frame: DataFrame, columns: Transactions, others: Sequence[str] = ()) -> DataFrame:
    """Records under private names: values, plain and sensitive items, unchanged values, a hash of all, what is missing."""
    lists = [private(f"list_{at}") for at in range(len(columns.transactions))]
    secrets = [private(f"secret_{at}") for at in range(len(lists))]
    table = {
        secret: pa.array([list(columns.sensitive_items.get(name, ()))], pa.list_(pa.string()))
        for secret, name in zip(secrets, columns.transactions, strict=True)
    }
    plain = frame.select(
        *others,
        *(exact(frame, name).alias(raw_column(at)) for at, name in enumerate(columns.relational)),
        *(as_set(F.col(quoted(name))).alias(column) for name, column in zip(columns.transactions, lists, strict=True)),
        *(exact(frame, name).alias(kept_column(at)) for at, name in enumerate(columns.unchanged)),
        reduce(or_, [F.isnull(quoted(name)) for name in columns.transactions]).alias(_ROW),
        reduce(or_, [has_null(exact(frame, name)) for name in columns.transactions]).alias(_HOLE),
    )
    values = [raw_column(at) for at in range(len(columns.relational))]
    unchanged = [kept_column(at) for at in range(len(columns.unchanged))]
    content = [part for name in (*values, *unchanged) for part in hashable(plain, name)]
    content += [part for name in lists for part in (F.size(name), F.sort_array(name))]  # without nulls: they need not be texts
    known = small_frame(frame.sparkSession, pa.table(table))
    plain_items = [F.array_except(*pair) for pair in zip(lists, secrets, strict=True)]
    hidden_items = [F.array_intersect(*pair) for pair in zip(lists, secrets, strict=True)]
    return crossed(plain, known).select(
        *others,
        *values,
        *unchanged,
        together(columns.transactions, plain_items).alias(OWN),
        F.sort_array(together(columns.transactions, hidden_items)).alias(HIDDEN),
        F.xxhash64(*content).alias(CONTENT),
        F.when(F.col(_ROW), F.lit(NULL)).otherwise(F.lit(KEPT)).alias(STATUS),
        F.coalesce(_HOLE, F.lit(False)).alias(_HOLE),
    )


def scoped_records(records: DataFrame, columns: Transactions, nulls: str) -> DataFrame:
    """Settle the status of records by the policies; categories become codes of leaves, under the same names."""
    for at, free_range in columns.ranges.items():
        number = F.col(raw_column(at)).cast("double")
        missing = F.isnull(number) | F.isnan(number)
        outside = F.abs(number) == F.lit(math.inf)
        if free_range.domain is not None:
            outside = outside | ~number.between(*free_range.domain)
        fault = F.when(missing, F.lit(NULL)).when(outside, F.lit(UNSEEN)).otherwise(F.lit(KEPT))
        records = records.withColumn(STATUS, F.col(STATUS).bitwiseOR(fault))
    return with_scope(with_leaves(records, columns), nulls)


def with_leaves(records: DataFrame, columns: Transactions) -> DataFrame:
    """Categories as codes of leaves, under the same names, and the bits of their faults in STATUS."""
    climbs = [Climb(raw_column(at), raw_column(at), hierarchy, 0) for at, hierarchy in columns.hierarchies.items()]
    return with_codes(records, climbs)


def published_rows(release: DataFrame, columns: Transactions, others: Sequence[str] = ()) -> DataFrame:
    """Published rows under private names."""
    secret = no_items() if columns.sensitive is None else exact(release, columns.sensitive)
    return release.select(
        *others,
        *(exact(release, name).alias(shown_column(at)) for at, name in enumerate(columns.relational)),
        *(exact(release, name).alias(kept_column(at)) for at, name in enumerate(columns.unchanged)),
        F.coalesce(exact(release, columns.items), F.array().cast("array<array<string>>")).alias(ITEMS),
        secret.alias(HIDDEN),
    )


def scoped_totals() -> list[Column]:
    """Totals of `scoped_records`: records by status, those with a null among their items, and the sum of content."""
    content = F.when(F.col(STATUS) == KEPT, F.col(CONTENT).cast("decimal(20,0)"))
    return [
        *source_totals(),
        F.count_if(_HOLE).alias("holes"),
        F.coalesce(F.sum(content), F.lit(0)).alias("source_content"),
    ]


def item_totals(
    scoped: DataFrame, release: DataFrame, columns: Transactions, vocabulary: Sequence[str], leave_out: LeaveOut
) -> DataFrame:
    """One row: items of the source, published items that are not allowed, items held by too few rows.

    Also the occurrences of items that are left out as `leave_out` allows, whatever their share, and all occurrences.
    """
    items = _items(scoped, release, columns, vocabulary)
    there, allowed = F.col(SOURCE) > 0, (F.col(OWN) > 0) & (F.col(_SENSITIVE) == 0)
    absent = _absent(leave_out)
    return items.agg(
        F.count_if(there).alias("items"),
        F.count_if(~there & ~allowed & (F.col(PUBLISHED) > 0)).alias("unknown_items"),
        F.count_if((F.col(PUBLISHED) < F.col(SOURCE)) & ~absent).alias("seldom"),
        F.coalesce(F.sum(F.when(absent, F.col(SOURCE))), F.lit(0)).alias("left_out"),
        F.coalesce(F.sum(SOURCE), F.lit(0)).alias("occurrences"),
    )


def items_left_out(scoped: DataFrame, release: DataFrame, columns: Transactions, leave_out: LeaveOut) -> DataFrame:
    """One row, LEFT_OUT: the items of the source that no published row holds, as far as `leave_out` allows them."""
    items = _items(scoped, release, columns, ())
    return items.where(_absent(leave_out)).agg(F.collect_list(_ITEM).alias(LEFT_OUT))


def _absent(leave_out: LeaveOut) -> Column:
    """Whether an item is one that may be left out, and is published nowhere."""
    if not leave_out.share:
        return F.lit(False)
    return (F.col(PUBLISHED) == 0) & (F.col(SOURCE) > 0) & (F.col(SOURCE) < leave_out.k)


def _items(scoped: DataFrame, release: DataFrame, columns: Transactions, vocabulary: Sequence[str]) -> DataFrame:
    """Every item with its number of records in the source, of rows that hold it, and whether it is sensitive or a word."""
    words = small_frame(release.sparkSession, pa.table({_ITEM: pa.array(list(vocabulary), pa.string())}))
    counted = [
        scoped.select(OWN, HIDDEN).mapInArrow(partial(_counted, (SOURCE, _SENSITIVE)), _COUNTED),
        release.select(exact(release, columns.items)).mapInArrow(partial(_counted, (PUBLISHED,)), _COUNTED),
        words.select(_ITEM, F.lit(OWN).alias(_LABEL), F.lit(1).cast("long").alias(ROWS)),
    ]
    counts = [
        F.sum(F.when(F.col(_LABEL) == name, F.col(ROWS)).otherwise(0)).alias(name)
        for name in (SOURCE, PUBLISHED, _SENSITIVE, OWN)
    ]
    return reduce(DataFrame.unionByName, counted).groupBy(_ITEM).agg(*counts)


def _counted(labels: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns of lists → how many rows of each batch have an item; each column under its label."""
    for batch in batches:
        for label, lists in zip(labels, batch.columns, strict=True):
            items, rows = rows_by_item(*items_in(lists))
            columns = [items.cast(pa.string()), pa.array([label] * rows.size, pa.string()), pa.array(rows)]
            yield pa.RecordBatch.from_arrays(columns, names=[_ITEM, _LABEL, ROWS])
