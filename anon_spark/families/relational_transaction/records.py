"""Records of a table: relational values and items as numbers, and a rank for each record."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.arrays import each_once
from anon_spark.columns import KEY, LINK, PREFIX, quoted
from anon_spark.engine import crossed, has_null
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.relational_transaction.kernels.relation import Relation, relation_of
from anon_spark.kernels.classes import Codes
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.ranges import FreeRange
from anon_spark.primitives.encoding import dictionaries, fractions, with_codes, with_keys
from anon_spark.primitives.ranking import ranked_by_hash
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tasks import BatchTask, in_batches, number_lists
from anon_spark.primitives.unseen import refuse_unseen

CODES = PREFIX + "codes"  # the distinct items of a record that are not sensitive, as numbers, ascending
SECRETS = PREFIX + "secrets"  # its sensitive items, as numbers of their own
LOST = PREFIX + "lost"  # how many of its items are not published
VALUE = PREFIX + "value_"  # + position: a number, or the position of a category's leaf
NUMBER = PREFIX + "number_"  # + position: a number in its own type
RAW = PREFIX + "raw_"
FIRST, SECOND = PREFIX + "first", PREFIX + "second"  # keyed hashes, by which records are ordered
MOST_ITEMS = 1_000_000
FINITE = (-sys.float_info.max, sys.float_info.max)

Floats = NDArray[np.float64]
Attribute = Hierarchy | Rule | FreeRange


@dataclass(frozen=True)
class Attributes:
    """The relational attributes as they apply to the table; a number without hierarchy has none."""

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy | None, ...]
    relation: Relation
    leaf_at: tuple[Codes | None, ...]  # by position

    @property
    def columns(self) -> list[str]:
        return [f"{VALUE}{at}" for at in range(len(self.names))]

    def values(self, table: pa.Table) -> Floats:
        """Records × attributes."""
        return np.column_stack([np.asarray(table.column(name), dtype=np.float64) for name in self.columns])


@dataclass(frozen=True)
class Suppressed:
    """Items that are not published because fewer than k records have them; occurrences: in how many records, in total."""

    items: tuple[str, ...] = field(default=(), repr=False)  # they are published nowhere
    occurrences: int = 0
    of: int = 0  # the occurrences of all items that are not sensitive


@dataclass(frozen=True)
class Records:
    """The records: LINK is the rank; the named columns as they came, VALUE + position, CODES, SECRETS and LOST."""

    frame: DataFrame
    attributes: Attributes
    universe: list[str]  # items by number
    secrets: list[str]  # sensitive items by number
    suppressed: Suppressed
    rows: int
    dropped_nulls: int
    dropped_unseen: int
    empty: int
    duplicates: int  # records that name an item twice

    @property
    def narrow(self) -> DataFrame:
        """The columns that clustering needs, and those from which a row is published, except unchanged ones."""
        named = enumerate(zip(self.attributes.names, self.attributes.hierarchies, strict=True))
        numbers = [F.col(quoted(name)).alias(f"{NUMBER}{at}") for at, (name, hierarchy) in named if hierarchy is None]
        return self.frame.select(LINK, *self.attributes.columns, CODES, SECRETS, LOST, *numbers)


@dataclass(frozen=True)
class Roles:
    """The roles of the columns."""

    attributes: Mapping[str, Attribute]
    transactions: Sequence[str]
    sensitive_items: Mapping[str, Sequence[str]]
    carried: Sequence[str]
    weights: Mapping[str, float]

    @property
    def named(self) -> list[str]:
        return [*self.attributes, *self.transactions, *self.carried]

    @property
    def numbers(self) -> dict[str, FreeRange]:
        return {name: attribute for name, attribute in self.attributes.items() if isinstance(attribute, FreeRange)}

    @property
    def hierarchies(self) -> dict[str, Hierarchy | Rule]:
        return {name: attribute for name, attribute in self.attributes.items() if not isinstance(attribute, FreeRange)}

    @property
    def hidden(self) -> frozenset[str]:
        """The sensitive items, whether they occur or not."""
        return frozenset(self.item(column, name) for column, items in self.sensitive_items.items() for name in items)

    def item(self, column: str, name: str) -> str:
        """The name of an item when several transaction columns are combined into one."""
        return f"{column}.{name}" if len(self.transactions) > 1 else name


@dataclass(frozen=True)
class Budget:
    """Which items may be left out: those that fewer than k records have, up to a share of all occurrences."""

    k: int
    share: float = 0.0

    def spent_on(self, supports: Mapping[str, int]) -> Suppressed:
        """The rarest items first, by name where they are equally rare, while the share lasts."""
        total = sum(supports.values())
        left_out: list[str] = []
        spent = 0
        for name, records in sorted(supports.items(), key=lambda item: (item[1], item[0])):
            if records >= self.k or spent + records > self.share * total:
                break
            left_out.append(name)
            spent += records
        return Suppressed(tuple(left_out), spent, total)


def read_records(
    df: DataFrame, roles: Roles, nulls: str, on_unseen: str, budget: Budget, key: DataFrame, workspace: Workspace
) -> Records:
    """Check the table, number values and items, and rank the records in an order that only the key gives.

    budget: which items may be left out.
    Cost: a job each for the distinct values, the checks and the distinct items; one shuffle by the order.
    """
    require_types(df, roles)
    # 1. values to leaves
    hierarchies, order = roles.hierarchies, list(roles.attributes)
    copies = {name: f"{RAW}{at}" for at, name in enumerate(hierarchies)}
    others = [name for name in roles.named if name not in hierarchies]
    plain = df.select(
        *(F.col(quoted(name)) for name in roles.named), *(F.col(quoted(name)).alias(raw) for name, raw in copies.items())
    )
    keyed = with_keys(plain, hierarchies, [*others, *copies.values()])
    in_scope = keyed.where(~_dropped(roles, nulls, on_unseen))
    entries = dictionaries(in_scope, hierarchies, nulls, fractions(df, hierarchies)) if hierarchies else []
    if on_unseen == "error":
        refuse_unseen(entries)
    leaves = [f"{VALUE}{order.index(name)}" for name in hierarchies]
    coded = with_codes(keyed, entries, [0] * len(entries), leaves).select(
        *(F.col(raw).alias(name) for name, raw in copies.items()),
        *(F.col(quoted(name)) for name in others),
        *leaves,
        *(_number(name).alias(f"{VALUE}{order.index(name)}") for name in roles.numbers),
    )
    # 2. rows that the policies keep
    counted = _counted(coded, roles, order, nulls)
    _refuse(counted, roles, nulls, on_unseen)
    attributes, position_of = _attributes(roles, {entry.name: entry.hierarchy for entry in entries}, counted)
    kept = coded.where(~_null(coded, roles, order, nulls) & ~_unseen(coded, roles, order, nulls))
    # 3. items to numbers
    universe, secrets, suppressed = _universe(kept, roles, budget)
    items = _Items.of(tuple(roles.transactions), universe, secrets, suppressed.items)
    numbered = in_batches(
        kept,
        _numbering(items, dict(zip(attributes.columns, position_of, strict=True))),
        _numbered_schema(kept, attributes.columns),
    )
    # 4. ranks
    content = [part for name in roles.named for part in (F.isnull(quoted(name)), F.col(quoted(name)))]
    hashed = crossed(numbered, key.select(KEY))
    hashed = hashed.withColumn(FIRST, F.xxhash64(KEY, *content)).withColumn(SECOND, F.hash(KEY, *content)).drop(KEY)
    return Records(
        frame=ranked_by_hash(hashed, FIRST, SECOND, workspace),
        attributes=attributes,
        universe=universe,
        secrets=secrets,
        suppressed=suppressed,
        rows=counted["rows"],
        dropped_nulls=counted["nulls"],
        dropped_unseen=counted["unseen"],
        empty=counted["empty"],
        duplicates=counted["duplicates"],
    )


def require_types(df: DataFrame, roles: Roles) -> None:
    """Refuse columns whose types do not fit their roles. Cost: none, reads the schema."""
    for name in roles.transactions:
        kind = df.schema[name].dataType
        if not (isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StringType)):
            raise ConfigurationError(f"columns.transactions {name} is {kind.simpleString()}: give a column of array<string>.")
    for name in roles.numbers:
        kind = df.schema[name].dataType
        if not isinstance(kind, T.NumericType):
            raise ConfigurationError(
                f"columns.quasi_identifiers.{name} is {kind.simpleString()}: without a hierarchy it must be a number."
            )


def combined(roles: Roles) -> Column:
    """The item names of a record over all transaction columns, each once."""
    plain = {name: _plain(name) for name in roles.transactions}
    if len(plain) > 1:
        plain = {name: F.transform(items, partial(_prefixed, name)) for name, items in plain.items()}
    return F.array_distinct(F.concat(*plain.values()))


def _plain(name: str) -> Column:
    """A list as plain texts: under a collation two different items would count as one."""
    return F.col(quoted(name)).cast(T.ArrayType(T.StringType()))


def _prefixed(column: str, item: Column) -> Column:
    return F.concat(F.lit(f"{column}."), item)


def _number(name: str) -> Column:
    """The column as a double; NaN becomes null."""
    value = F.col(quoted(name)).cast("double")
    return F.when(~F.isnan(value), value)


def _missing(coded: DataFrame, name: str) -> Column:
    """Whether a value is null or NaN."""
    value = F.col(quoted(name))
    is_float = isinstance(coded.schema[name].dataType, (T.FloatType, T.DoubleType))
    return F.isnull(value) | F.isnan(value) if is_float else F.isnull(value)


def _dropped(roles: Roles, nulls: str, on_unseen: str) -> Column:
    """Whether a policy drops a row for its lists or its numbers, whatever its categories are."""
    missing, outside = [F.isnull(quoted(name)) for name in roles.transactions], [F.lit(False)]
    for name, free_range in roles.numbers.items():
        missing.append(F.isnull(_number(name)))
        outside.append(F.coalesce(~_number(name).between(*(free_range.domain or FINITE)), F.lit(False)))
    faults = [*(missing if nulls == "suppress" else []), *(outside if on_unseen == "suppress" else [])]
    return reduce(or_, faults, F.lit(False))


def _null(coded: DataFrame, roles: Roles, order: Sequence[str], nulls: str) -> Column:
    """Whether a row has a null without leaf that the policy does not keep."""
    numbers = [F.isnull(f"{VALUE}{order.index(name)}") for name in roles.numbers]
    lists = [F.isnull(quoted(name)) for name in roles.transactions]
    leaves = [_missing(coded, name) & F.isnull(f"{VALUE}{order.index(name)}") for name in roles.hierarchies]
    return reduce(or_, [*numbers, *lists, *(leaves if nulls == "suppress" else [])])


def _unseen(coded: DataFrame, roles: Roles, order: Sequence[str], nulls: str) -> Column:
    """Whether a row has a value without leaf, or a number outside its domain; infinity is outside of every domain.

    If nulls are kept, null lacks a leaf only if every row with it is dropped for another reason.
    """
    nulls_kept = F.lit(nulls != "suppress")
    leaves = [
        (nulls_kept | ~_missing(coded, name)) & F.isnull(f"{VALUE}{order.index(name)}") for name in roles.hierarchies
    ]
    outside = [
        ~F.col(f"{VALUE}{order.index(name)}").between(*(free_range.domain or FINITE))
        for name, free_range in roles.numbers.items()
    ]
    return reduce(or_, [F.coalesce(fault, F.lit(False)) for fault in (*leaves, *outside)], F.lit(False))


def _counted(coded: DataFrame, roles: Roles, order: Sequence[str], nulls: str) -> dict[str, Any]:
    """Counts and ranges of the table by name. Cost: one job."""
    null, unseen = _null(coded, roles, order, nulls), _unseen(coded, roles, order, nulls)
    kept, items = ~null & ~unseen, combined(roles)
    sizes = reduce(add, [F.size(quoted(name)) for name in roles.transactions])
    counts = coded.agg(
        F.count_if(kept).alias("rows"),
        F.count_if(null).alias("nulls"),
        F.count_if(~null & unseen).alias("unseen"),
        F.count_if(kept & (sizes == 0)).alias("empty"),
        F.count_if(kept & (F.size(items) < sizes)).alias("duplicates"),
        *(F.count_if(F.isnull(quoted(name))).alias(f"without {name}") for name in roles.transactions),
        *(F.count_if(has_null(_plain(name))).alias(f"holes {name}") for name in roles.transactions),
        *(F.count_if(F.isnull(f"{VALUE}{order.index(name)}")).alias(f"null {name}") for name in roles.numbers),
        *(F.min(F.when(kept, F.col(f"{VALUE}{order.index(name)}"))).alias(f"least {name}") for name in roles.numbers),
        *(F.max(F.when(kept, F.col(f"{VALUE}{order.index(name)}"))).alias(f"greatest {name}") for name in roles.numbers),
    ).collect()[0]
    return counts.asDict()


def _refuse(counted: Mapping[str, Any], roles: Roles, nulls: str, on_unseen: str) -> None:
    for name in roles.transactions:
        if counted[f"holes {name}"]:
            holes = counted[f"holes {name}"]
            raise DataError(f"columns.transactions {name}: {holes:,} rows have a null among their items. Remove it.", rows=holes)
        if counted[f"without {name}"] and nulls != "suppress":
            without = counted[f"without {name}"]
            raise DataError(
                f"columns.transactions {name}: {without:,} rows have no list. An empty list is a record without items; to "
                "leave these rows out, set nulls: suppress.",
                rows=without,
            )
    for name in roles.numbers:
        if counted[f"null {name}"] and nulls != "suppress":
            null = counted[f"null {name}"]
            raise DataError(
                f"columns.quasi_identifiers.{name}: {null:,} rows have no number, and a range has no place for that. Give "
                "the column a hierarchy, or set nulls: suppress.",
                rows=null,
            )
    if counted["unseen"] and on_unseen == "error":
        raise DataError(
            f"{counted['unseen']:,} rows have a number outside its domain (an infinite one is outside of any). Widen the "
            "domain, or set on_unseen: suppress.",
            rows=counted["unseen"],
        )
    if counted["rows"] == 0:
        raise DataError("The table is empty, or the policies drop every row: there is nothing to release.", rows=0)


def _attributes(
    roles: Roles, fitted: Mapping[str, Hierarchy], counted: Mapping[str, Any]
) -> tuple[Attributes, list[Codes | None]]:
    """The attributes, and for each category the position of every leaf."""
    domains: list[Hierarchy | tuple[float, float]] = []
    for name, attribute in roles.attributes.items():
        if isinstance(attribute, FreeRange):
            domain = attribute.domain or (counted[f"least {name}"], counted[f"greatest {name}"])
            domains.append((float(domain[0]), float(domain[1])))
        else:
            domains.append(fitted[name])
    weights = [roles.weights[name] for name in roles.attributes] if roles.weights else None
    relation, position_of = relation_of(domains, weights)
    leaf_at = tuple(None if positions is None else np.argsort(positions).astype(np.int32) for positions in position_of)
    hierarchies = tuple(fitted.get(name) for name in roles.attributes)
    return Attributes(tuple(roles.attributes), hierarchies, relation, leaf_at), position_of


def _universe(kept: DataFrame, roles: Roles, budget: Budget) -> tuple[list[str], list[str], Suppressed]:
    """All items by code point: ordinary ones that are published, sensitive ones; and the ordinary ones left out.

    Cost: one job; at most MOST_ITEMS reach the driver.
    """
    counted = kept.select(F.explode(combined(roles)).alias("item")).groupBy("item").agg(F.count(F.lit(1)).alias("records"))
    found = collect_small(counted, MOST_ITEMS, "Distinct items")
    supports = dict(sorted((str(row["item"]), int(row["records"])) for row in found.to_pylist()))
    ordinary = {name: records for name, records in supports.items() if name not in roles.hidden}
    suppressed = budget.spent_on(ordinary)
    left_out = set(suppressed.items)
    return [name for name in ordinary if name not in left_out], [name for name in supports if name in roles.hidden], suppressed


@dataclass(frozen=True)
class _Items:
    """All items of the lists of some columns: those that get numbers, sensitive ones with their own, and those left out."""

    columns: Sequence[str]
    known: Any  # their names, in this order
    universe: int  # how many get numbers
    secrets: int

    @classmethod
    def of(cls, columns: Sequence[str], universe: Sequence[str], secrets: Sequence[str], left_out: Sequence[str]) -> _Items:
        return cls(columns, pa.array([*universe, *secrets, *left_out], pa.string()), len(universe), len(secrets))

    def numbers(self, lists: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Per row the numbers of its items, those of its sensitive ones, and how many are left out; each once, ascending."""
        rows, places = [], []
        for column, of_rows in zip(self.columns, lists, strict=True):
            names = of_rows.flatten().cast(pa.string())
            if len(self.columns) > 1:
                names = pc.binary_join_element_wise(f"{column}.", names, "")
            places.append(np.asarray(pc.index_in(names, value_set=self.known).fill_null(len(self.known))).astype(np.int64))
            rows.append(np.repeat(np.arange(len(of_rows)), np.diff(of_rows.offsets.to_numpy())))
        width = len(self.known) + 1  # an item that is none of them would count as left out
        row, place = np.divmod(each_once(np.concatenate(rows) * width + np.concatenate(places)), width)
        first_secret, first_left_out = self.universe, self.universe + self.secrets
        plain, left_out = place < first_secret, place >= first_left_out
        parts = [(plain, 0), (~plain & ~left_out, first_secret), (left_out, first_left_out)]
        count = len(lists[0])
        sizes = [np.bincount(row[part], minlength=count) for part, _ in parts]
        codes, secret_codes = (
            number_lists(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(size)]), (place[part] - first).astype(np.int32))
            for size, (part, first) in zip(sizes[:2], parts, strict=False)
        )
        return codes, secret_codes, pa.array(sizes[2].astype(np.int32))


def _numbering(items: _Items, position_of: Mapping[str, Codes | None]) -> BatchTask:
    """Task that adds items as numbers and replaces leaves by positions."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = {name: batch.column(name) for name in batch.schema.names}
            for name, positions in position_of.items():
                if positions is not None:
                    columns[name] = pa.array(positions[np.asarray(columns[name])].astype(np.float64))
            numbers = items.numbers([columns[name] for name in items.columns])
            columns |= dict(zip((CODES, SECRETS, LOST), numbers, strict=True))
            yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    return work


def _numbered_schema(kept: DataFrame, values: Sequence[str]) -> T.StructType:
    numbers = T.ArrayType(T.IntegerType())
    fields = [T.StructField(field.name, T.DoubleType()) if field.name in values else field for field in kept.schema.fields]
    added = [T.StructField(CODES, numbers), T.StructField(SECRETS, numbers), T.StructField(LOST, T.IntegerType())]
    return T.StructType([*fields, *added])
