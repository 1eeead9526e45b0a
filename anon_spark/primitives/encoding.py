"""Value ↔ integer code: each distinct quasi-identifier value is looked up once, in a dictionary.

A column is first turned into a *key* (a long for whole-number types, else text; null stays null and NaN becomes null),
distinct keys are looked up in the hierarchy in plain Python, and the result is joined back. So the rules that assign a
value to a leaf are in one place, `Hierarchy.leaf_of`, and no value is ever a literal in a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import POPULATION, PREFIX, ROWS, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.model.hierarchy import DateRule, Hierarchy, Rule, portable
from anon_spark.primitives.bins import OUTSIDE, WHOLE, with_bins
from anon_spark.primitives.look_ups import LookUp, with_found
from anon_spark.primitives.rounds import collect_small

FRACTIONS = (T.FloatType, T.DoubleType, T.DecimalType)
MOST_VALUES = 1_000_000
UNSEEN = -1

Value = tuple[str | None, int, int]  # a text, its rows, and those of them in scope
Values = list[list[Value]]  # by quasi-identifier

POSITION = PREFIX + "position"
TEXT = PREFIX + "text"
THERE = PREFIX + "there"
SCOPE = PREFIX + "scope"
CODE = PREFIX + "scope_code_"


@dataclass(frozen=True)
class Dictionary:
    """The distinct keys of one column with the leaf of each (UNSEEN where the hierarchy knows none) and its rows.

    A value that a rule accepts but that occurs only in rows dropped by a policy is UNSEEN and not `strange`: the rule was not
    completed with it, and it is not reported.
    """

    name: str
    hierarchy: Hierarchy
    key_type: str
    keys: list[Any]
    leaves: NDArray[np.int32]
    rows: NDArray[np.int64]
    null_rows: int
    # rows of an unknown value, without rows dropped for a null; else 0
    strange: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def unseen_values(self) -> int:
        return int((self.strange > 0).sum())

    @property
    def unseen_rows(self) -> int:
        return int(self.strange.sum())

    @property
    def is_complete(self) -> bool:
        """Whether every row has a leaf, so that no policy drops one."""
        return not (self.leaves == UNSEEN).any() and (self.null_rows == 0 or self.hierarchy.has_null)

    def rows_by_leaf(self) -> NDArray[np.int64]:
        """Rows of each leaf, the null leaf included; those without a leaf are left out."""
        counts = np.zeros(self.hierarchy.leaf_count, dtype=np.int64)
        seen = self.leaves != UNSEEN
        np.add.at(counts, self.leaves[seen], self.rows[seen])
        if self.hierarchy.has_null:
            counts[-1] = self.null_rows
        return counts

    @property
    def is_injective(self) -> bool:
        """Whether no two keys share a leaf, so that distinct key tuples are distinct code tuples."""
        seen = self.leaves[self.leaves != UNSEEN]
        return len(np.unique(seen)) == len(seen)


def with_keys(df: DataFrame, hierarchies: Mapping[str, Hierarchy | Rule], others: Sequence[str] = ()) -> DataFrame:
    """The quasi-identifiers as keys, with the other columns as they are. No action."""
    grids = {name: h.bins for name, h in hierarchies.items() if isinstance(h, Hierarchy) and h.bins is not None}
    keys = {name: key_column(df, name, hierarchy).alias(name) for name, hierarchy in hierarchies.items()}
    keys.update({name: F.col(quoted(name)) for name in grids})
    return with_bins(df, grids).select(*keys.values(), *(F.col(quoted(name)) for name in others))


def fractions(df: DataFrame, names: Iterable[str]) -> frozenset[str]:
    """Columns whose keys are texts of numbers and must be looked up as numbers."""
    return frozenset(name for name in names if isinstance(df.schema[name].dataType, FRACTIONS))


def dictionaries(
    keyed: DataFrame,
    hierarchies: Mapping[str, Hierarchy | Rule],
    nulls: str,
    numbers: Collection[str] = (),
    count: Column | None = None,
    present: Mapping[str, str] | None = None,
    record: str | None = None,
    weight: Column | None = None,
) -> list[Dictionary]:
    """Distinct keys of every quasi-identifier, looked up in its hierarchy; rules are built for the values in scope.

    A hierarchy gets its null leaf where the column has nulls in scope and the policy keeps them. `numbers` names the columns
    of `fractions`; `count` says how many rows a row of `keyed` stands for; `present` names, by quasi-identifier, the column
    that says whether a row has such a value at all; `record`, the column by which rows are one record, dropped as a whole;
    `weight` says how much a row of `keyed` completes a rule by, where it may stand for no row (default: `count`).
    Guarantee: what the policies drop, for a null or for a value that no hierarchy knows, completes no rule and adds no leaf.
    Cost: one job; a second one where rows are dropped for unseen values and a rule, or null, is to be completed by the rest.
    As many rows on the driver as there are distinct values (at most MOST_VALUES in all).
    """
    names = list(hierarchies)
    there = {name: F.col(present[name]) if present else F.lit(True) for name in names}
    with_null = F.lit(False)
    if nulls == "suppress":
        holes = [there[name] & F.col(quoted(name)).isNull() for name in names]
        with_null = _of_record(reduce(or_, holes), record)
    rows = count if count is not None else F.lit(1)
    weight = rows if weight is None else weight
    table = _values(keyed, names, there, rows, F.when(~with_null, weight))
    if table.num_rows == 0:
        raise DataError("The input table is empty: there is nothing to release.", rows=0)
    parsers = [_parser(isinstance(keyed.schema[name].dataType, T.LongType), name, numbers) for name in names]

    def in_scope(entries: Sequence[Dictionary]) -> Values:
        codes = [f"{CODE}{position}" for position in range(len(names))]
        coded = with_codes(keyed, entries, [0] * len(names), codes)
        unknown = reduce(or_, (there[name] & F.col(code).isNull() for name, code in zip(names, codes, strict=True)))
        in_scope = F.when(~_of_record(unknown, record), weight)
        return _by_position(_values(coded, names, there, rows, in_scope), len(names))

    return _looked_up(hierarchies, parsers, nulls, _by_position(table, len(names)), in_scope)


def dictionaries_of(
    tuples: pa.Table, hierarchies: Mapping[str, Hierarchy | Rule], nulls: str, numbers: Collection[str] = ()
) -> list[Dictionary]:
    """As `dictionaries`, of tuples that the driver holds, with their ROWS. No Spark."""
    names = list(hierarchies)
    if tuples.num_rows == 0:
        raise DataError("The input table is empty: there is nothing to release.", rows=0)
    rows = tuples.column(ROWS).to_numpy()
    weight = rows + tuples.column(POPULATION).to_numpy() if POPULATION in tuples.column_names else rows
    parsers = [_parser(pa.types.is_integer(tuples.schema.field(name).type), name, numbers) for name in names]

    def values(scope: NDArray[np.bool_]) -> Values:
        return [_counted(tuples.column(name), rows, np.where(scope, weight, 0)) for name in names]

    def in_scope(entries: Sequence[Dictionary]) -> Values:
        return values(np.all([codes != UNSEEN for codes in codes_of(tuples, entries)], axis=0))

    complete = np.ones(tuples.num_rows, dtype=np.bool_)
    if nulls == "suppress":
        complete = np.all([tuples.column(name).is_valid().to_numpy() for name in names], axis=0)
    return _looked_up(hierarchies, parsers, nulls, values(complete), in_scope)


def codes_of(tuples: pa.Table, entries: Sequence[Dictionary]) -> list[NDArray[np.int32]]:
    """The leaf of each quasi-identifier of tuples that the driver holds; UNSEEN where it has none. No Spark."""
    found = []
    for entry in entries:
        column = tuples.column(entry.name).combine_chunks()
        places = pc.index_in(column, value_set=pa.array(entry.keys, column.type)).fill_null(-1).to_numpy()
        leaves = np.append(entry.leaves, np.int32(UNSEEN))[places].astype(np.int32)
        if entry.hierarchy.has_null:
            leaves[~column.is_valid().to_numpy(zero_copy_only=False)] = entry.hierarchy.leaf_count - 1
        found.append(leaves)
    return found


def _counted(column: pa.ChunkedArray[Any], rows: NDArray[np.int64], scope: NDArray[np.int64]) -> list[Value]:
    """The texts of a column with their rows and rows in scope."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode("encode")
    places = coded.indices.to_numpy()
    sums = np.zeros((2, len(coded.dictionary)), dtype=np.int64)
    np.add.at(sums[0], places, rows)
    np.add.at(sums[1], places, scope)
    return list(zip(coded.dictionary.to_pylist(), *sums.tolist(), strict=True))


def _looked_up(
    hierarchies: Mapping[str, Hierarchy | Rule],
    parsers: Sequence[Callable[[str], Any]],
    nulls: str,
    values: Values,
    in_scope: Callable[[Sequence[Dictionary]], Values],
) -> list[Dictionary]:
    """The dictionaries of all columns; where policies drop rows, rules and nulls follow the values of the others.

    in_scope: the values with their rows in scope, if just the rows that these dictionaries know are.
    """
    names = list(hierarchies)
    entries = [
        _dictionary(name, hierarchies[name], parse, of_column, nulls)
        for name, parse, of_column in zip(names, parsers, values, strict=True)
    ]
    completed = [
        not isinstance(hierarchies[entry.name], Hierarchy) or entry.hierarchy.has_null for entry in entries
    ]  # by the values of the rows
    if not any(entry.unseen_values for entry in entries) or not any(completed):
        return entries
    rest = in_scope(entries)
    if not any(scope for of_column in rest for _, _, scope in of_column):
        return entries  # no row is left: the caller refuses that
    return [
        replace(_dictionary(entry.name, hierarchies[entry.name], parse, of_column, nulls), strange=entry.strange)
        for entry, parse, of_column in zip(entries, parsers, rest, strict=True)
    ]


def _of_record(condition: Column, record: str | None) -> Column:
    """Whether a condition holds for the row, or for any row of its record."""
    return condition if record is None else F.max(condition).over(Window.partitionBy(record))


def _values(
    keyed: DataFrame, names: Sequence[str], there: Mapping[str, Column], rows: Column, scope: Column
) -> pa.Table:
    """Position, text, rows and rows in scope of every value. Cost: one job."""
    texts = F.array(*(F.col(quoted(name)).cast("string") for name in names))
    counted = keyed.select(
        texts.alias(TEXT), F.array(*there.values()).alias(THERE), rows.alias(ROWS), scope.alias(SCOPE)
    )
    # outer, here and wherever an array is never empty: else Spark first filters by the size of the array and materializes every
    # cell for it
    each = counted.select(F.posexplode_outer(TEXT).alias(POSITION, TEXT), THERE, ROWS, SCOPE)
    sums = [F.sum(ROWS).alias(ROWS), F.coalesce(F.sum(SCOPE), F.lit(0)).alias(SCOPE)]
    values = each.where(F.col(THERE)[F.col(POSITION)]).groupBy(POSITION, TEXT).agg(*sums)
    what = "Distinct values of the quasi-identifiers (round a column, or give it intervals with exact: false)"
    return collect_small(values, MOST_VALUES, what)


def _by_position(table: pa.Table, count: int) -> Values:
    """Texts with their rows and rows in scope, by quasi-identifier."""
    by_column: Values = [[] for _ in range(count)]
    for position, text, rows, scope in zip(*(table.column(index).to_pylist() for index in range(4)), strict=True):
        by_column[position].append((text, rows, scope))
    return by_column


def with_codes(
    keyed: DataFrame, dictionaries_: Sequence[Dictionary], levels: Sequence[int], codes: Sequence[str]
) -> DataFrame:
    """Append each quasi-identifier's code on its level; a value without leaf gets a null code.

    A null is the hierarchy's null leaf if it has one, else null as well.
    Cost: one join per column that is not at its root, one broadcast for all; no action.
    """
    look_ups, known = [], {}
    for dictionary, level, code in zip(dictionaries_, levels, codes, strict=True):
        hierarchy, key = dictionary.hierarchy, F.col(quoted(dictionary.name))
        if level == hierarchy.height and dictionary.is_complete:
            known[code] = F.lit(0)
            continue
        seen = np.flatnonzero(dictionary.leaves != UNSEEN)
        texts = [str(dictionary.keys[index]) for index in seen]
        look_ups.append(LookUp(key.cast("string"), texts, hierarchy.codes[level][dictionary.leaves[seen]].tolist(), code))
        known[code] = F.col(code)
        if hierarchy.has_null:
            known[code] = F.when(key.isNull(), F.lit(int(hierarchy.codes[level][-1]))).otherwise(F.col(code))
    found = with_found(keyed, look_ups, pa.int32())
    others = [F.col(quoted(name)) for name in keyed.columns]
    return found.select(*others, *(column.alias(code) for code, column in known.items()))


def with_labels(
    coded: DataFrame, hierarchies: Sequence[Hierarchy], levels: Sequence[int], codes: Sequence[str], names: Sequence[str]
) -> DataFrame:
    """Append the label of each code on its level under the names given; the null leaf's label is null.

    Cost: one join per column, one broadcast for all; no action.
    """
    look_ups = [
        LookUp(F.col(code).cast("string"), [str(at) for at in range(hierarchy.cardinality(level))], hierarchy.labels[level], name)
        for hierarchy, level, code, name in zip(hierarchies, levels, codes, names, strict=True)
    ]
    return with_found(coded, look_ups, pa.string())


def key_column(
    df: DataFrame, name: str, hierarchy: Hierarchy | Rule | None, where: str = "columns.quasi_identifiers"
) -> Column:
    """A column as it is looked up in its hierarchy, or without one compared: whole numbers, or texts; NaN as null."""
    column, kind = F.col(quoted(name)), df.schema[name].dataType
    if isinstance(kind, WHOLE):
        return column.cast("bigint")
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(~F.isnan(column), (column + F.lit(0.0)).cast("string"))  # -0.0 + 0.0 is 0.0
    has_days = isinstance(hierarchy, DateRule) or (isinstance(hierarchy, Hierarchy) and hierarchy.kind == "date")
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)) and has_days:
        return column.cast("date").cast("string")
    if isinstance(kind, T.StringType):
        # Python reads no text that is not UTF-8
        return F.make_valid_utf8(F.collate(column, "UTF8_BINARY") if kind.collation != "UTF8_BINARY" else column)
    if isinstance(kind, (T.BooleanType, T.DateType, T.DecimalType, T.TimestampType, T.TimestampNTZType)):
        return column.cast("string")
    raise ConfigurationError(
        f"{where}.{name}: a column of type {kind.simpleString()} has no {'model' if hierarchy is None else 'hierarchy'}. "
        "Use a text, number, truth value, date or timestamp."
    )


def _parser(is_long: bool, name: str, numbers: Collection[str]) -> Callable[[str], Any]:
    if is_long:
        return int
    return Decimal if name in numbers else str


def _dictionary(
    name: str,
    hierarchy: Hierarchy | Rule,
    parse: Callable[[str], Any],
    texts: Sequence[Value],
    nulls: str,
) -> Dictionary:
    """The dictionary of one column. texts: (text, rows, rows in scope); only rows in scope complete a rule or add a null leaf."""
    known = sorted((text, rows, scope) for text, rows, scope in texts if text is not None)
    null_rows = sum(rows for text, rows, _ in texts if text is None)
    if not isinstance(hierarchy, Hierarchy):
        if not known and null_rows:
            raise DataError(f"Column {name} holds nulls only: leave it out of the quasi-identifiers.", rows=null_rows)
        in_scope = [text for text, rows, scope in known if scope and rows]
        if known and not in_scope:
            raise DataError(
                f"The policies for nulls and unseen values drop every row with a value of {name}: there is nothing to release.",
                rows=0,
            )
        rule, hierarchy = hierarchy, hierarchy.build(in_scope)
        beyond = [text for text, rows, scope in known if scope and not rows]  # of a population alone: they fix no level
        if beyond:
            fixed = portable({name: rule}, [hierarchy])[name]
            hierarchy = fixed if isinstance(fixed, Hierarchy) else fixed.build([*in_scope, *beyond])
    values = [parse(text) for text, _, _ in known]
    if hierarchy.bins is not None:
        leaves = [UNSEEN if index == OUTSIDE else index for index in values]
    else:
        leaves = [_leaf(hierarchy, value) for value in values]
    if nulls == "value" and any(scope for text, _, scope in texts if text is None):
        hierarchy = hierarchy.with_null()
    scopes = np.array([scope for _, _, scope in known], dtype=np.int64)
    codes, counts = np.array(leaves, dtype=np.int32), np.array([rows for _, rows, _ in known], dtype=np.int64)
    return Dictionary(
        name,
        hierarchy,
        "bigint" if parse is int else "string",
        values if parse is int else [text for text, _, _ in known],
        codes,
        counts,
        null_rows,
        np.where(codes == UNSEEN, np.minimum(scopes, counts), 0),
    )


def _leaf(hierarchy: Hierarchy, key: Any) -> int:
    leaf = hierarchy.leaf_of(key)
    return UNSEEN if leaf is None else leaf
