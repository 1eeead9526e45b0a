"""(k,k^m)-anonymity and (k,l^m)-diversity of a published table: rows alike on relational values and on some items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from anon_spark.auditing.guarantees.item_numbers import (
    Hashing,
    distinct_items,
    groups_in,
    hashing,
    numbers_of,
    sets_of,
    sound_rows,
)
from anon_spark.auditing.guarantees.itemset_walk import Entries, walk
from anon_spark.auditing.guarantees.k_anonymity import classes_by_size, size_facts
from anon_spark.auditing.reading.item_sets import (
    Ints,
    item_set,
    names_in,
    no_items,
    numbered,
    offsets_of,
    require_item_groups,
    require_lists,
)
from anon_spark.auditing.reading.sums import sum_of, total
from anon_spark.auditing.reading.values import HI, LO, exact, private, quoted, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee import KAnonymity, LDiversity
from anon_spark.pending import Pending

_ITEMS, _SENSITIVE, _ITEM, _NUMBER, _SET, _AT, _MOST, _SOUND, _UNSOUND = (
    private(name) for name in ("items", "sensitive", "item", "number", "itemset", "at", "most", "sound", "unsound")
)
_SIZES = "sizes"
_SUMS = ("tested", "small", "frequent", "violations")


def verify_kkm(release: DataFrame, relational: Sequence[str], items: str, k: int, m: int) -> Verdict:
    """Whether at least k rows of its class have every set of at most m generalized items that a row of the class has.

    A class is the rows that agree on all relational columns: null is a value, NaN equals NaN, text is compared byte by
    byte. items: array<array<string>>, one inner array per generalized item.
    Guarantee: exact; passed iff there is a row, all classes and all such itemsets have k rows (k itself is fine), and every
    row is well formed: ranges struct<lo,hi> have both ends, lo ≤ hi; no list is null or holds a null; inner arrays are not
    empty, sorted and without repetition, stand in sorted order, and no two of a row share an item.
    What it does not say: who knows more than m items, that an item is absent, or that the known items are all there are,
    may be left with fewer than k rows.
    violations counts (class, itemset) pairs, the empty itemset standing for the class, and malformed rows; checked counts
    the pairs that could violate, and rows. facts: those of `verify_k_anonymity`, itemsets by fault, malformed rows by fault.
    The frame of violations: relational values, `itemset`, `rows`.
    Cost: two jobs, two more if rows are malformed. Rows are grouped by relational values and generalized items (as 64-bit
    numbers, proven to be one to one), then by class; a task holds the distinct rows of one class, about (4 + m) · 8 bytes for
    each of their generalized items, and takes time by their itemsets of at most m items. One row reaches the driver, and sizes
    of classes.
    """
    return kkm_check(release, relational, items, k, m).get()


def kkm_check(release: DataFrame, relational: Sequence[str], items: str, k: int, m: int) -> Pending[Verdict]:
    """As `verify_kkm`, its counts not collected yet."""
    return _check(release, _Promise(tuple(relational), items, None, k, None, m))


def verify_klm(
    release: DataFrame, relational: Sequence[str], items: str, sensitive: str, k: int, l: int, m: int  # noqa: E741
) -> Verdict:
    """As `verify_kkm`, and whether no sensitive item is in more than 1/l of the rows with such an itemset, in each class.

    sensitive: array<string>; these items are in no itemset. Single sensitive items are enough: several together are never
    more frequent. Guarantee: exact; passed iff `verify_kkm` is, the condition holds for every itemset of at most m items,
    the empty one included (1/l itself is fine), sensitive lists are sorted, without repetition, null or an item of the row.
    A pair that has both faults is one violation. facts: also `highest_share`, the largest share of a sensitive item among
    the rows of a class with an itemset. The frame of violations has also `most`, the rows with that sensitive item.
    Cost: as `verify_kkm`; rows are also grouped by their sensitive items, and a task holds these, too.
    """
    return klm_check(release, relational, items, sensitive, k, l, m).get()


def klm_check(
    release: DataFrame, relational: Sequence[str], items: str, sensitive: str, k: int, l: int, m: int  # noqa: E741
) -> Pending[Verdict]:
    """As `verify_klm`, its counts not collected yet."""
    return _check(release, _Promise(tuple(relational), items, sensitive, k, l, m))


@dataclass(frozen=True)
class _Promise:
    """The guarantee to verify; `sensitive` and `l` go together."""

    relational: tuple[str, ...]
    items: str
    sensitive: str | None
    k: int
    l: int | None  # noqa: E741
    m: int

    def __str__(self) -> str:
        return f"({self.k},{self.k}^{self.m})-anonymity" if self.l is None else f"({self.k},{self.l}^{self.m})-diversity"

    @property
    def keys(self) -> list[str]:
        """The relational columns under private names."""
        return [private(f"key_{at}") for at in range(len(self.relational))]

    def check(self, release: DataFrame) -> None:
        """Refuse parameters that no table could be tested by."""
        KAnonymity(self.k, self.relational)
        if self.l is not None:
            LDiversity(self.l, self.relational, [str(self.sensitive)])
        if isinstance(self.m, bool) or not isinstance(self.m, int) or self.m < 1:
            raise ConfigurationError("m must be a whole number of at least 1: how many items an attacker knows.")
        lists = [] if self.sensitive is None else [self.sensitive]
        require_columns(release, [*self.relational, self.items, *lists], "release")
        require_lists(release, lists, "release")
        require_item_groups(release, self.items)


def _check(release: DataFrame, promise: _Promise) -> Pending[Verdict]:
    """The verdict, by one plan if every row is well formed; else their itemsets are counted once more, with those repaired."""
    promise.check(release)
    faults = _malformed(release, promise)
    reading = _Reading(promise, kindly=False, seed=0)

    def judged(sums: dict[str, Any]) -> Verdict:
        read, malformed = reading, {"malformed": sums[_UNSOUND], **dict.fromkeys(faults, 0)}
        if sums[_UNSOUND]:
            counted = (total(fault, F.lit(1)).alias(name) for name, fault in faults.items())
            malformed |= release.where(~_sound(release, promise)).agg(*counted).collect()[0].asDict()
            read = replace(reading, kindly=True)
            sums = read.walked(release).get()
        while sums["names"] != sums["numbers"]:
            read = replace(read, seed=read.seed + 1)  # two generalized items had the same number
            sums = read.walked(release).get()
        return _verdict(promise, malformed, sums, sums[_SIZES], faults, read.violating(release))

    return reading.walked(release).then(judged)


def _verdict(
    promise: _Promise,
    malformed: Mapping[str, int],
    sums: Mapping[str, Any],
    classes: Mapping[str, Any],
    faults: Iterable[str],
    violating: DataFrame,
) -> Verdict:
    """The verdict on rows and itemsets whose faults were counted. classes: the facts of their sizes."""
    k, l, m = promise.k, promise.l, promise.m  # noqa: E741
    facts = {
        "k": k, "m": m, **({} if l is None else {"l": l}),
        **{name: classes[name] for name in ("unit", "rows", "classes", "smallest", "average", "histogram")},
        "itemsets_tested": sums["tested"], "itemsets_below_k": sums["small"],
        **({} if l is None else {"itemsets_above_share": sums["frequent"], "highest_share": sums["share"]}),
        **malformed,
    }
    violations = sums["violations"] + malformed["malformed"]
    return Verdict(
        kind=Kind.PROMISE,
        name=str(promise),
        passed=classes["rows"] > 0 and violations == 0,
        violations=violations,
        checked=sums["tested"] + classes["rows"],
        detail=_detail(facts, faults),
        facts=facts,
        frame=violating,
    )


# -- single rows ----------------------------------------------------------------------------------------------------


def _sound(release: DataFrame, promise: _Promise) -> Column:
    """Whether a row is well formed; `_malformed` says what is wrong."""
    groups = exact(release, promise.items)
    flat = F.flatten(groups)
    sound = (
        F.forall(groups, lambda inner: (F.size(inner) > 0) & (F.sort_array(inner) == inner))
        & (F.sort_array(groups) == groups)
        & ~F.exists(flat, F.isnull)
        & (F.size(F.array_distinct(flat)) == F.size(flat))
    )
    return F.coalesce(sound, F.lit(False)) & _others_sound(release, promise)


def _others_sound(release: DataFrame, promise: _Promise) -> Column:
    """Whether what is beside the generalized items of a row is well formed."""
    sound = reduce(and_, [~_bad_range(release, name) for name in promise.relational], F.lit(True))
    if promise.sensitive is not None:
        secret, flat = exact(release, promise.sensitive), F.flatten(exact(release, promise.items))
        apart = (F.size(secret) == 0) | ~F.arrays_overlap(flat, secret)
        sound = sound & (secret == item_set(promise.sensitive)) & apart
    return F.coalesce(sound, F.lit(False))


def _malformed(release: DataFrame, promise: _Promise) -> dict[str, Column]:
    """Kind of fault → whether a row has it; a row that is not `_sound` has at least one."""
    groups = exact(release, promise.items)
    flat = F.flatten(groups)  # null as soon as an inner array is
    faults = {
        "range": reduce(or_, [_bad_range(release, name) for name in promise.relational], F.lit(False)),
        "null_item": F.isnull(flat) | F.exists(flat, F.isnull),
        "empty_item": F.exists(groups, lambda inner: F.size(inner) == 0),
        "unsorted": _out_of_order(groups) | F.exists(groups, _out_of_order),
        "repeated": F.exists(groups, lambda inner: F.size(F.array_distinct(inner)) < F.size(inner)),
        "overlap": _distinct_sizes(groups) > F.size(F.array_distinct(flat)),
    }
    if promise.sensitive is not None:
        secret = exact(release, promise.sensitive)
        faults["sensitive"] = (
            F.isnull(secret) | F.exists(secret, F.isnull) | (F.sort_array(F.array_distinct(secret)) != secret)
        )
        faults["exposed"] = F.arrays_overlap(F.coalesce(flat, no_items()), F.coalesce(secret, no_items()))
    return {name: F.coalesce(fault, F.lit(False)) for name, fault in faults.items()}


_ROW_TEXTS = {
    "range": "have a range without an end, with its ends exchanged, or with a signed zero",
    "null_item": "have no list of items, or a null in it",
    "empty_item": "have a generalized item that stands for nothing",
    "unsorted": "have generalized items that are not sorted",
    "repeated": "have a generalized item that names an item twice",
    "overlap": "have two generalized items that share an item",
    "sensitive": "have no list of sensitive items, or one that is not sorted, or has a null or an item twice",
    "exposed": "have a sensitive item among the others",
}


def _bad_range(release: DataFrame, name: str) -> Column:
    kind = release.schema[name].dataType
    if not isinstance(kind, T.StructType) or kind.names != [LO, HI]:
        return F.lit(False)
    low, high = (F.col(quoted(name))[field] for field in (LO, HI))
    nothing = [F.isnull(end) for end in (low, high)]
    nan = []
    if isinstance(kind[LO].dataType, (T.DoubleType, T.FloatType)):  # equal in classes, but a reader sees -0.0
        nan = [F.isnan(end) | (end.cast("string") == "-0.0") for end in (low, high)]
    return F.coalesce(reduce(or_, [*nothing, *nan, low > high]), F.lit(True))


def _out_of_order(array: Column) -> Column:
    """Whether an array is not sorted; nulls are ignored."""
    return F.sort_array(F.array_compact(array)) != F.array_compact(array)


def _distinct_sizes(groups: Column) -> Column:
    sizes = F.transform(groups, lambda inner: F.size(F.array_distinct(inner)))
    return F.aggregate(sizes, F.lit(0), lambda sum_, size: sum_ + size)


# -- classes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """The reading of generalized items as numbers. kindly: malformed items, which are counted apart, are repaired first."""

    promise: _Promise
    kindly: bool
    seed: int

    def generalized(self, release: DataFrame) -> Column:
        """The generalized items of a row."""
        groups = exact(release, self.promise.items)
        if not self.kindly:
            return groups  # whatever they are: where a row is not sound, this reading is not used
        listed = F.filter(F.coalesce(groups, F.array().cast("array<array<string>>")), F.isnotnull)
        sets = F.transform(listed, lambda inner: F.sort_array(F.array_distinct(F.array_compact(inner))))
        return F.array_distinct(F.filter(sets, lambda inner: F.size(inner) > 0))

    def entries(self, release: DataFrame) -> DataFrame:
        """One row per class, set of generalized items (as numbers) and set of sensitive items: how many rows are like that, and
        whether they are sound."""
        promise = self.promise
        keys = [exact(release, name).alias(key) for name, key in zip(promise.relational, promise.keys, strict=True)]
        secret = no_items() if promise.sensitive is None else item_set(promise.sensitive)
        others = F.lit(True) if self.kindly else _others_sound(release, promise)
        named = release.select(*keys, self.generalized(release).alias(_ITEMS), secret.alias(_SENSITIVE), others.alias(_SOUND))
        numbers = T.StructField(_ITEMS, T.ArrayType(T.LongType()))
        schema = T.StructType([numbers if field.name == _ITEMS else field for field in named.schema.fields])
        numbered_rows = named.mapInArrow(partial(_numbered, hashing(self.seed), to_arrow_schema(schema)), schema)
        return numbered_rows.groupBy(*promise.keys, _ITEMS, _SENSITIVE, _SOUND).agg(F.count(F.lit(1)).alias(ROWS))

    def names(self, release: DataFrame) -> DataFrame:
        """Every generalized item of the release once, with its number."""
        listed = release.select(self.generalized(release).alias(_ITEMS))
        return listed.mapInArrow(partial(_named, hashing(self.seed)), f"{_ITEM} array<string>, {_NUMBER} long").distinct()

    def walked(self, release: DataFrame) -> Pending[dict[str, Any]]:
        """Sums over all classes, and how many names and numbers the items have: whether the numbers are one to one."""
        k, l, m = self.promise.k, self.promise.l, self.promise.m  # noqa: E741

        def work(table: pa.Table) -> pa.Table:
            outcome = walk(_read(table)[0], k, l, m)
            rows, sound = np.asarray(table[ROWS], dtype=np.int64), np.asarray(table[_SOUND], dtype=np.bool_)
            counts = {name: [getattr(outcome, name)] for name in _SUMS}
            size = {ROWS: [int(rows.sum())], _UNSOUND: [int(rows[~sound].sum())]}
            return pa.table({**counts, **size, "share": [outcome.highest[0] / outcome.highest[1]]})

        summed = (*_SUMS, ROWS, _UNSOUND)
        fields = ", ".join([*(f"{name} long" for name in summed), "share double"])
        classes = self.entries(release).groupBy(*self.promise.keys).applyInArrow(work, fields)
        more = [*map(sum_of, (*_SUMS, _UNSOUND)), F.max("share").alias("share")]
        by_size = classes_by_size(classes, F.col(ROWS), k, more)
        guarantee = KAnonymity(k, self.promise.relational)

        def gathered(found: Sequence[Sequence[Row]]) -> dict[str, Any]:
            sizes, (names,) = found
            sums = {name: sum(row[name] for row in sizes) for name in (*_SUMS, _UNSOUND)}
            share = max((row["share"] for row in sizes), default=0.0)
            return {**sums, "share": share, _SIZES: size_facts(sizes, guarantee), **names.asDict()}

        numbers = F.countDistinct(_NUMBER).alias("numbers")
        names = self.names(release).agg(F.count(F.lit(1)).alias("names"), numbers)
        return Pending((by_size, names), gathered)

    def violating(self, release: DataFrame) -> DataFrame:
        """One row per violating pair: relational values, `itemset`, `rows` and, with sensitive items, `most`."""
        promise, keys = self.promise, self.promise.keys
        k, l, m = promise.k, promise.l, promise.m  # noqa: E741
        entries = self.entries(release)
        numbers = [T.StructField(name, T.LongType()) for name in (ROWS, _MOST, _AT)]
        listed = T.StructField(_SET, T.ArrayType(T.LongType()))
        schema = T.StructType([*(entries.schema[key] for key in keys), *numbers, listed])
        arrow = to_arrow_schema(schema)

        def work(table: pa.Table) -> pa.Table:
            read, known = _read(table)
            sets = walk(read, k, l, m, walk(read, k, l, m).violations).sets
            inside = sets[:, 2:] >= 0
            offsets = offsets_of(inside.sum(axis=1))
            items = pa.array(known[sets[:, 2:][inside]], pa.int64())
            violating = table.select(keys).take(np.zeros(len(sets), dtype=np.int64))
            for name, column in ((ROWS, sets[:, 0]), (_MOST, sets[:, 1]), (_AT, np.arange(len(sets)))):
                violating = violating.append_column(name, pa.array(column, pa.int64()))
            lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
            return violating.append_column(_SET, lists).cast(arrow)

        pairs = entries.groupBy(*keys).applyInArrow(work, schema)
        named = pairs.withColumn(_NUMBER, F.explode_outer(_SET)).join(self.names(release), _NUMBER, "left")
        sets = named.groupBy(*keys, ROWS, _MOST, _AT).agg(F.sort_array(F.collect_list(_ITEM)).alias("itemset"))
        shown = [F.col(key).alias(name) for key, name in zip(keys, promise.relational, strict=True)]
        most = [] if promise.sensitive is None else [F.col(_MOST).alias("most")]
        return sets.select(*shown, "itemset", F.col(ROWS).alias("rows"), *most)


def _numbered(hashes: Hashing, schema: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with the numbers of their generalized items, and whether also these are well formed."""
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        lists = columns[_ITEMS]
        groups, hashed = groups_in(lists, hashes)
        offsets, numbers = sets_of(groups, numbers_of(groups, hashed))
        sound = np.asarray(columns[_SOUND]) & np.asarray(lists.is_valid()) & sound_rows(groups)
        columns[_ITEMS] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(numbers))
        columns[_SOUND] = pa.array(sound)
        yield from pa.table(columns).cast(schema).to_batches()


def _named(hashes: Hashing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Every generalized item of a batch, with its number."""
    for batch in batches:
        lists = batch.column(0)
        groups, hashed = groups_in(lists, hashes)
        numbers = numbers_of(groups, hashed)
        places = distinct_items(groups, numbers)
        items = pc.list_flatten(lists).take(pa.array(places, pa.int64())).cast(pa.list_(pa.string()))
        yield pa.RecordBatch.from_arrays([items, pa.array(numbers[places])], names=[_ITEM, _NUMBER])


def _read(table: pa.Table) -> tuple[Entries, Ints]:
    """The entries of one class, and what an item's number stands for."""
    flat = pc.list_flatten(table[_ITEMS])
    known, numbers = np.unique(np.asarray(flat, dtype=np.int64), return_inverse=True)
    sizes = np.asarray(pc.list_value_length(table[_ITEMS]), dtype=np.int64)
    items = (offsets_of(sizes), numbers.astype(np.int64))
    secrets = numbered(table[_SENSITIVE], names_in(table[_SENSITIVE]))
    return Entries(items, secrets, np.asarray(table[ROWS], dtype=np.int64)), known


def _detail(facts: Mapping[str, Any], faults: Iterable[str]) -> str:
    rows, k, m = facts["rows"], facts["k"], facts["m"]
    if not rows:
        return "the release is empty, there is nothing to publish."
    parts, pairs = [], f"pairs of class and itemset (up to {m} items)"
    if facts["itemsets_below_k"]:
        parts.append(f"{facts['itemsets_below_k']} {pairs} have fewer than {k} rows.")
    if facts.get("itemsets_above_share"):
        parts.append(f"{facts['itemsets_above_share']} {pairs} have a sensitive item in more than 1/{facts['l']} of their rows.")
    parts += [f"{facts[name]} of {rows} rows {_ROW_TEXTS[name]}." for name in faults if facts[name]]
    share = "" if "l" not in facts else f", no sensitive item is in more than {facts['highest_share']:.4g} of them"
    passed = (
        f"every set of up to {m} items that a row has is in {k} rows or more of its class{share} "
        f"({facts['classes']} classes, smallest {facts['smallest']}, {rows} rows)."
    )
    return " ".join(parts) or passed
