"""Truthfulness of records with relational values and items: what is published of a record is true of it.

A run hands over `linked`, the records as it read them, with LINK; the staged release has LINK, too. Neither is kept: of a
release that stands only necessary conditions can be verified. No verdict has a frame: it would tell who is whose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.audit.accounting import RowAccount
from anon_spark.audit.classes import published_classes
from anon_spark.audit.item_sets import item_set, require_lists
from anon_spark.audit.itemset_support import HI, LO, require_item_groups
from anon_spark.audit.labels import Labels
from anon_spark.audit.recode import KEPT, NULL, UNSEEN, with_code
from anon_spark.audit.truthfulness import PUBLISHED, SOURCE, STATUS, check_recoding, said_of_types, total, with_scope
from anon_spark.audit.values import exact, hashed, private, quoted, require_columns, same
from anon_spark.audit.verdict import Verdict
from anon_spark.columns import LINK
from anon_spark.engine import small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange

NECESSARY = "Necessary conditions only: which record became which row is not known without the run's private link."

_OWN, _HIDDEN, _CONTENT, _HOLE, _ITEM = (private(name) for name in ("own", "hidden", "content", "hole", "item"))
_RECORD, _ROW, _ITEMS, _SHARED, _SENSITIVE = (private(name) for name in ("record", "row", "items", "shared", "sensitive"))
_LABEL, _LEAF, _LEVEL, _LEAST, _GREATEST = (private(name) for name in ("label", "leaf", "level", "least", "greatest"))
_FAULTY = "faulty"


@dataclass(frozen=True)
class _Columns:
    """Which column of source and release is what."""

    relational: Mapping[str, Hierarchy | FreeRange | None]
    transactions: Sequence[str]
    items: str
    sensitive_items: Mapping[str, Sequence[str]]
    sensitive: str | None
    unchanged: Sequence[str]

    @property
    def hierarchies(self) -> dict[int, Hierarchy]:
        """By position; the others are free ranges."""
        return {at: given for at, given in enumerate(self.relational.values()) if isinstance(given, Hierarchy)}

    @property
    def ranges(self) -> dict[int, FreeRange]:
        """By position."""
        given = enumerate(self.relational.values())
        return {at: one or FreeRange() for at, one in given if not isinstance(one, Hierarchy)}

    @property
    def source(self) -> list[str]:
        return [*self.relational, *self.transactions, *self.unchanged]

    @property
    def release(self) -> list[str]:
        return [*self.relational, self.items, *([] if self.sensitive is None else [self.sensitive]), *self.unchanged]

    def check(self, source: DataFrame, release: DataFrame, nulls: str) -> list[str]:
        """Refuse arguments that no release could meet; gives back the columns that are of another type than they must be."""
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
            kind, own = release.schema[name].dataType, source.schema[name].dataType
            if at in self.hierarchies:
                other += [] if isinstance(kind, T.StringType) else [name]
            elif not isinstance(kind, T.StructType) or kind.names != [LO, HI]:
                raise ConfigurationError(f"Column {name} of the release has no hierarchy: it must be struct<lo,hi>.")
            else:
                other += [] if all(field.dataType == own for field in kind.fields) else [name]
        return other


def verify_transactions(
    source: DataFrame,
    staged: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    sensitive_items: Mapping[str, Sequence[str]],
    sensitive: str | None,
    unchanged: Sequence[str],
    linked: DataFrame,
    nulls: Literal["value", "suppress"] = "value",
    vocabulary: Sequence[str] = (),
    nodes: Sequence[Sequence[str]] | None = None,
) -> tuple[Verdict, RowAccount]:
    """Whether every record of the source in scope has one published row, and all that the row says is true of it.

    relational: quasi-identifier → hierarchy, None or FreeRange for a number that is published as struct<lo,hi>;
    transactions: source columns; items, sensitive: published columns; sensitive_items: transaction column → its sensitive
    items, without the column's name; linked: LINK and the source's columns of every record; nulls: what the run did with a
    null (NaN counts as null); vocabulary: items, as they are published, that a generalized item may hold although no record
    has them; nodes: the generalized items that an item hierarchy allows, or None. Items of several columns are written
    `column.item`.
    Guarantee: passed iff there are records; `linked` has the source's rows in scope, as a multiset up to a 64-bit hash per
    row; every record has exactly one row; each label is its value's or above it, each number lies in its range, and the
    ends of a range are numbers of its class; each item that is not sensitive is in exactly one inner array, each inner array
    has an item of the record and, besides, only items of the source that are not sensitive, or of the vocabulary; it is one of
    the nodes; the sensitive list is the record's, and so are unchanged columns; no list has a null in it.
    Rows that a policy drops (null; a value no hierarchy knows, a number outside its domain) are counted apart.
    violations counts records with a fault, links that occur more than once, (class, range) pairs with an end that nobody
    has, items and generalized items that may not be published, lists with nulls, columns of another type, and one for
    records that are not the source's; checked counts records.
    Cost: two jobs; the source is scanned once, records and release twice and joined by LINK; two broadcast joins per
    hierarchy; one row reaches the driver.
    """
    columns = _Columns(relational, transactions, items, sensitive_items, sensitive, unchanged)
    other = columns.check(source, staged, nulls)
    require_columns(linked, [LINK, *columns.source], "linked records")
    require_columns(staged, [LINK], "staged release")

    content = F.col(_CONTENT).cast("decimal(20,0)")
    of_records = _read(linked, columns, [LINK]).agg(
        F.count(F.lit(1)).alias("records"),
        F.countDistinct(LINK).alias("links"),
        F.coalesce(F.sum(content), F.lit(0)).alias("content"),
    )
    of_rows = staged.agg(F.count(F.lit(1)).alias("published"), F.countDistinct(LINK).alias("shown_links"))
    kept = F.col(STATUS) == KEPT
    scoped = _in_scope(_read(source, columns), columns, nulls)
    of_source = scoped.agg(
        *_source_totals(), F.coalesce(F.sum(F.when(kept, content)), F.lit(0)).alias("source_content")
    )
    of_items = _item_totals(scoped.where(kept), staged, columns, vocabulary).crossJoin(_strange_groups(staged, items, nodes))
    totals = of_source.crossJoin(of_records).crossJoin(of_rows).crossJoin(of_items).collect()[0]

    faults = _faults(columns)
    sums = [_FAULTY, *faults, "loose"]
    joined = _joined(linked, staged, columns)
    by_class = joined.groupBy(*(_shown(at) for at in range(len(relational)))).agg(
        total(reduce(or_, faults.values()), F.lit(1)).alias(_FAULTY),
        *(total(fault, F.lit(1)).alias(name) for name, fault in faults.items()),
        *_ends(columns),
    )
    by_class = by_class.withColumn("loose", reduce(lambda one, two: one + two, _loose(columns), F.lit(0)))
    found = by_class.agg(*(total(F.lit(True), F.col(name)).alias(name) for name in sums)).collect()[0]

    account = _account(totals)
    records = totals["records"]
    alike = totals["in_scope"] == records and totals["source_content"] == totals["content"]
    counts = {
        **{name: found[name] for name in sums if name != _FAULTY},
        "repeated": totals["records"] - totals["links"] + totals["published"] - totals["shown_links"],
        **{name: totals[name] for name in ("holes", "unknown_items", "strange_groups")},
        "other_records": 0 if alike else 1,
    }
    said = {
        **{name: f"{counts[name]} of {records} records {text}." for name, text in _FAULT_SAID.items()},
        "unknown_items": f"{counts['unknown_items']} published items are none of the source, or sensitive.",
        "strange_groups": f"{counts['strange_groups']} generalized items are no node of the item hierarchy.",
        "loose": f"{counts['loose']} ranges of classes end at a number that nobody in the class has.",
        "repeated": f"{counts['repeated']} links occur more than once, or are null.",
        "holes": f"{counts['holes']} rows of the source have a null among their items.",
        "other_records": f"the release is about {records} records, the source has {totals['in_scope']} in scope"
        + ("." if records != totals["in_scope"] else ", and their content differs."),
    }
    parts = [*(said[name] for name, number in counts.items() if number), *said_of_types(other)]
    if not records:
        parts.append("there are no records.")
    extra = ("loose", "repeated", "holes", "unknown_items", "strange_groups", "other_records")
    return (
        Verdict(
            name="truthfulness",
            passed=not parts,
            violations=found[_FAULTY] + sum(counts[name] for name in extra) + len(other),
            checked=records,
            detail=" ".join(parts) or f"all {records} records have one row each, and it is true of them.",
            facts={**counts, "records": records},
        ),
        account,
    )


def verify_transactions_covered(
    source: DataFrame,
    release: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    sensitive_items: Mapping[str, Sequence[str]],
    sensitive: str | None,
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    vocabulary: Sequence[str] = (),
) -> tuple[Verdict, RowAccount]:
    """Whether a release could be made of the source, without the link that would prove it.

    Arguments: those of `verify_transactions`; vocabulary: items, as they are published, that a generalized item may hold
    although no record has them (those of an item hierarchy).
    Guarantee: necessary conditions only. Passed iff the source has as many rows in scope as are published; the two have the
    same multiset of sensitive items with unchanged values (up to a 64-bit hash per row); every label is one of its
    hierarchy, every range lies between the least and the greatest number of the source; every published item is one of the
    source or the vocabulary, and no sensitive one of the source; and every item of the source that is not sensitive is held
    by as many rows as records have it, or more.
    A release with items or values exchanged between rows may pass.
    violations counts classes with an unknown label or range, items at fault, columns of another type, and one each for
    totals and unchanged values; checked counts classes and items.
    Cost: one job that scans the source three times and the release three times; one row reaches the driver.
    """
    columns = _Columns(relational, transactions, items, sensitive_items, sensitive, unchanged)
    other = columns.check(source, release, nulls)
    kept, content = F.col(STATUS) == KEPT, F.col(_CONTENT).cast("decimal(20,0)")
    scoped = _in_scope(_carried(_read(source, columns), columns), columns, nulls)
    of_source = scoped.agg(
        *_source_totals(), F.coalesce(F.sum(F.when(kept, content)), F.lit(0)).alias("source_content")
    )
    of_release = _carried(_published(release, columns), columns).agg(
        F.count(F.lit(1)).alias("published"), F.coalesce(F.sum(content), F.lit(0)).alias("content")
    )
    found = (
        of_source.crossJoin(of_release)
        .crossJoin(_class_totals(scoped.where(kept), release, columns, nulls))
        .crossJoin(_item_totals(scoped.where(kept), release, columns, vocabulary))
        .collect()[0]
    )
    in_scope, published = found["in_scope"], found["published"]
    faults = {
        **{name: found[name] for name in ("unknown_labels", "outside", "unknown_items", "seldom", "holes")},
        "totals": int(published != in_scope),
        "altered": int(published == in_scope and found["content"] != found["source_content"]),
    }
    said = {
        "unknown_labels": f"{faults['unknown_labels']} of {found['classes']} classes have a label that no hierarchy knows.",
        "outside": f"{faults['outside']} of {found['classes']} classes have a range that the source's numbers do not reach.",
        "unknown_items": f"{faults['unknown_items']} published items are none of the source, or sensitive.",
        "seldom": f"{faults['seldom']} of {found['items']} items are held by fewer rows than records have them.",
        "holes": f"{faults['holes']} rows of the source have a null among their items.",
        "totals": f"{published} rows are published, the source has {in_scope} in scope.",
        "altered": "sensitive items or unchanged columns do not hold the source's values.",
    }
    parts = [*(text for name, text in said.items() if faults[name]), *said_of_types(other)]
    if not published:
        parts.append("the release is empty, there is nothing to publish.")
    good = f"all {found['classes']} classes and {found['items']} items could be the source's, totals agree."
    return (
        Verdict(
            name="coverage",
            passed=not parts,
            violations=sum(faults.values()) + len(other),
            checked=found["classes"] + found["items"],
            detail=" ".join([*(parts or [good]), NECESSARY]),
            facts={**faults, "classes": found["classes"], "items": found["items"]},
        ),
        _account(found),
    )


def out_of_scope(source: DataFrame, relational: Mapping[str, object], transactions: Sequence[str], nulls: str) -> Column:
    """Whether a policy drops a row of the source for its lists or for a number without hierarchy. No action."""
    missing, faults = [F.isnull(quoted(name)) for name in transactions], [F.lit(False)]
    for name, given in relational.items():
        if isinstance(given, FreeRange):
            number = F.col(quoted(name)).cast("double")
            missing.append(F.isnull(number) | F.isnan(number))
            if given.domain is not None:
                faults.append(F.coalesce(~number.between(*given.domain), F.lit(False)))
    return reduce(or_, [*faults, *(missing if nulls == "suppress" else [])])


# -- records --------------------------------------------------------------------------------------------------------


def _raw(at: int) -> str:
    return private(f"raw_{at}")


def _shown(at: int) -> str:
    return private(f"shown_{at}")


def _kept(at: int) -> str:
    return private(f"kept_{at}")


def _read(frame: DataFrame, columns: _Columns, others: Sequence[str] = ()) -> DataFrame:
    """Records under names of our own: values, own and hidden items, unchanged values, a hash of all, what is missing."""
    lists = [private(f"list_{at}") for at in range(len(columns.transactions))]
    secrets = [private(f"secret_{at}") for at in range(len(lists))]
    table = {
        secret: pa.array([list(columns.sensitive_items.get(name, ()))], pa.list_(pa.string()))
        for secret, name in zip(secrets, columns.transactions, strict=True)
    }
    plain = frame.select(
        *others,
        *(exact(frame, name).alias(_raw(at)) for at, name in enumerate(columns.relational)),
        *(item_set(name).alias(own) for name, own in zip(columns.transactions, lists, strict=True)),
        *(exact(frame, name).alias(_kept(at)) for at, name in enumerate(columns.unchanged)),
        reduce(or_, [F.isnull(quoted(name)) for name in columns.transactions]).alias(_ROW),
        reduce(or_, [F.exists(quoted(name), F.isnull) for name in columns.transactions]).alias(_HOLE),
    )
    values = [_raw(at) for at in range(len(columns.relational))]
    unchanged = [_kept(at) for at in range(len(columns.unchanged))]
    known = F.broadcast(small_frame(frame.sparkSession, pa.table(table)))
    several = len(lists) > 1

    def together(parts: Sequence[Column]) -> Column:
        named = zip(columns.transactions, parts, strict=True)
        return F.concat(*(F.transform(part, partial(_prefixed, name)) if several else part for name, part in named))

    return plain.crossJoin(known).select(
        *others,
        *values,
        *unchanged,
        together([F.array_except(own, secret) for own, secret in zip(lists, secrets, strict=True)]).alias(_OWN),
        F.sort_array(
            together([F.array_intersect(own, secret) for own, secret in zip(lists, secrets, strict=True)])
        ).alias(_HIDDEN),
        hashed(plain, [*values, *lists, *unchanged]).alias(_CONTENT),
        F.when(F.col(_ROW), F.lit(NULL)).otherwise(F.lit(KEPT)).alias(STATUS),
        F.coalesce(_HOLE, F.lit(False)).alias(_HOLE),
    )


def _prefixed(column: str, item: Column) -> Column:
    return F.concat(F.lit(f"{column}."), item)


def _in_scope(records: DataFrame, columns: _Columns, nulls: str) -> DataFrame:
    """Settle the status of records by the policies; categories become codes of leaves, under the same names."""
    for at, given in columns.ranges.items():
        number = F.col(_raw(at)).cast("double")
        missing = F.isnull(number) | F.isnan(number)
        outside = F.abs(number) == F.lit(math.inf)
        if given.domain is not None:
            outside = outside | ~number.between(*given.domain)
        fault = F.when(missing, F.lit(NULL)).when(outside, F.lit(UNSEEN)).otherwise(F.lit(KEPT))
        records = records.withColumn(STATUS, F.col(STATUS).bitwiseOR(fault))
    for at, hierarchy in columns.hierarchies.items():
        records = with_code(records, _raw(at), _raw(at), STATUS, hierarchy, 0)
    return with_scope(records, nulls)


def _source_totals() -> list[Column]:
    rows = {"in_scope": KEPT, "dropped_nulls": NULL, "dropped_unseen": UNSEEN}
    return [
        F.count(F.lit(1)).alias("source"),
        *(F.count_if(F.col(STATUS) == status).alias(name) for name, status in rows.items()),
        F.count_if(_HOLE).alias("holes"),
    ]


def _account(found: Row) -> RowAccount:
    """No row is suppressed: what is neither published nor dropped is missing."""
    return RowAccount(found["source"], found["published"], 0, found["dropped_nulls"], found["dropped_unseen"], 0)


# -- a record and its row -------------------------------------------------------------------------------------------


def _published(release: DataFrame, columns: _Columns, others: Sequence[str] = ()) -> DataFrame:
    """Published rows under names of our own."""
    secret = _no_texts() if columns.sensitive is None else exact(release, columns.sensitive)
    return release.select(
        *others,
        *(exact(release, name).alias(_shown(at)) for at, name in enumerate(columns.relational)),
        *(exact(release, name).alias(_kept(at)) for at, name in enumerate(columns.unchanged)),
        F.coalesce(exact(release, columns.items), F.array().cast("array<array<string>>")).alias(_ITEMS),
        secret.alias(_HIDDEN),
    )


def _no_texts() -> Column:
    return F.array().cast("array<string>")


def _path(at: int) -> str:
    return private(f"path_{at}")


def _joined(linked: DataFrame, staged: DataFrame, columns: _Columns) -> DataFrame:
    """One row per record or row: both, or what there is."""
    records = _read(linked, columns, [LINK]).withColumn(_RECORD, F.lit(True))
    for at, hierarchy in columns.hierarchies.items():
        records = with_code(records, _raw(at), _raw(at), STATUS, hierarchy, 0)
        leaf = F.when(F.col(_raw(at)) < 0, F.lit(len(hierarchy.keys))).otherwise(F.col(_raw(at)))  # below 0: null
        records = Labels.of(hierarchy).with_texts(records.withColumn(_raw(at), leaf.cast("long")), _raw(at), _path(at))
    rows = _published(staged, columns, [LINK]).withColumn(_ROW, F.lit(True)).withColumnRenamed(_HIDDEN, _SENSITIVE)
    for at in range(len(columns.unchanged)):
        rows = rows.withColumnRenamed(_kept(at), private(f"kept_shown_{at}"))
    shared = F.transform(_ITEMS, lambda inner: F.size(F.array_intersect(inner, F.col(_OWN))))
    return records.join(rows, LINK, "full").withColumn(_SHARED, shared)


def _faults(columns: _Columns) -> dict[str, Column]:
    """Kind of fault → whether a row of `_joined` has it."""
    both = F.isnotnull(_RECORD) & F.isnotnull(_ROW)
    held = F.aggregate(_SHARED, F.lit(0), lambda sum_, shared: sum_ + shared)
    true_of = {
        "label": [F.exists(_path(at), partial(_same, F.col(_shown(at)))) for at in columns.hierarchies],
        "range": [F.col(_raw(at)).between(F.col(_shown(at))[LO], F.col(_shown(at))[HI]) for at in columns.ranges],
        "uncovered": [F.size(F.array_except(_OWN, F.flatten(_ITEMS))) == 0],
        "ambiguous": [held <= F.size(_OWN)],  # of a covered record: none is held twice
        "idle": [F.forall(_SHARED, lambda shared: shared > 0)],
        "sensitive": [F.col(_HIDDEN).eqNullSafe(F.col(_SENSITIVE))],
        "altered": [
            same(F.col(_kept(at)), F.col(private(f"kept_shown_{at}"))) for at in range(len(columns.unchanged))
        ],
    }
    faults = {
        name: both & reduce(or_, [~F.coalesce(one, F.lit(False)) for one in conditions], F.lit(False))
        for name, conditions in true_of.items()
    }
    return {"unlinked": ~both, **faults}


_FAULT_SAID = {
    "unlinked": "have no row, or rows no record",
    "label": "have a label that is neither their value's nor above it",
    "range": "have a number outside the published range",
    "uncovered": "have an item that no generalized item holds",
    "ambiguous": "have an item that several generalized items hold",
    "idle": "have a generalized item that holds none of their items",
    "sensitive": "have another list of sensitive items",
    "altered": "have other values in unchanged columns",
}


def _same(label: Column, name: Column) -> Column:
    return name.eqNullSafe(label)


def _ends(columns: _Columns) -> list[Column]:
    """Least and greatest number of the records of a class."""
    both = F.isnotnull(_RECORD) & F.isnotnull(_ROW)
    return [
        end(F.when(both, F.col(_raw(at)))).alias(f"{name}_{at}")
        for at in columns.ranges
        for end, name in ((F.min, _LEAST), (F.max, _GREATEST))
    ]


def _loose(columns: _Columns) -> list[Column]:
    """Per range 1 if an end of it is no number of its class."""
    found = []
    for at in columns.ranges:
        ends = [F.col(f"{name}_{at}") == F.col(_shown(at))[end] for name, end in ((_LEAST, LO), (_GREATEST, HI))]
        tight = F.coalesce(ends[0] & ends[1], F.lit(False))
        found.append((F.isnotnull(f"{_LEAST}_{at}") & ~tight).cast("long"))
    return found


# -- a release that stands ------------------------------------------------------------------------------------------


def _carried(frame: DataFrame, columns: _Columns) -> DataFrame:
    """_CONTENT: a hash of what a row shows unchanged, its sensitive items included."""
    return frame.withColumn(_CONTENT, hashed(frame, [_HIDDEN, *(_kept(at) for at in range(len(columns.unchanged)))]))


def _class_totals(scoped: DataFrame, release: DataFrame, columns: _Columns, nulls: str) -> DataFrame:
    """One row: classes, those with an unknown label, those with a range outside the source's numbers."""
    names = list(columns.relational)
    classes = published_classes(release, names)
    classes = classes.select(*(F.col(quoted(name)).alias(_shown(at)) for at, name in enumerate(names)))
    ends = [
        end(_raw(at)).alias(f"{name}_{at}") for at in columns.ranges for end, name in ((F.min, _LEAST), (F.max, _GREATEST))
    ]
    unknown, outside = [], []
    for at, hierarchy in columns.hierarchies.items():
        text = F.col(_shown(at)).cast("string")
        classes = Labels.of(hierarchy).with_number(classes, text, f"{_LEAF}_{at}", f"{_LEVEL}_{at}", nulls)
        unknown.append(F.isnull(f"{_LEAF}_{at}"))
    for at in columns.ranges:
        low, high = (F.col(_shown(at))[end] for end in (LO, HI))
        inside = (F.col(f"{_LEAST}_{at}") <= low) & (low <= high) & (high <= F.col(f"{_GREATEST}_{at}"))
        outside.append(~F.coalesce(inside, F.lit(False)))
    known = classes.crossJoin(F.broadcast(scoped.agg(*ends))) if ends else classes
    return known.agg(
        F.count(F.lit(1)).alias("classes"),
        *(
            total(reduce(or_, faults, F.lit(False)), F.lit(1)).alias(name)
            for name, faults in (("unknown_labels", unknown), ("outside", outside))
        ),
    )


def _item_totals(scoped: DataFrame, release: DataFrame, columns: _Columns, vocabulary: Sequence[str]) -> DataFrame:
    """One row: items of the source, published items that may not be, items held by too few rows."""
    held = F.array_distinct(F.flatten(F.filter(exact(release, columns.items), F.isnotnull)))
    words = small_frame(release.sparkSession, pa.table({_ITEM: pa.array(list(vocabulary), pa.string())}))
    listed = {
        SOURCE: scoped.select(F.explode(_OWN).alias(_ITEM)),
        PUBLISHED: release.select(F.explode(held).alias(_ITEM)),
        _SENSITIVE: scoped.select(F.explode(_HIDDEN).alias(_ITEM)),
        _OWN: words,
    }
    ones = [frame.select(_ITEM, F.lit(name).alias(_LABEL)) for name, frame in listed.items()]
    counts = [F.count_if(F.col(_LABEL) == name).alias(name) for name in listed]
    items = reduce(DataFrame.unionByName, ones).groupBy(_ITEM).agg(*counts)
    there, allowed = F.col(SOURCE) > 0, (F.col(_OWN) > 0) & (F.col(_SENSITIVE) == 0)
    return items.agg(
        F.count_if(there).alias("items"),
        F.count_if(~there & ~allowed & (F.col(PUBLISHED) > 0)).alias("unknown_items"),
        F.count_if(F.col(PUBLISHED) < F.col(SOURCE)).alias("seldom"),
    )


def _strange_groups(release: DataFrame, items: str, nodes: Sequence[Sequence[str]] | None) -> DataFrame:
    """One row: how many different generalized items are none of the nodes."""
    if nodes is None:
        return small_frame(release.sparkSession, pa.table({"strange_groups": pa.array([0], pa.int64())}))
    allowed = pa.table({_ITEM: pa.array([sorted(node) for node in nodes], pa.list_(pa.string()))})
    groups = release.select(F.explode(exact(release, items)).alias(_ITEM)).distinct()
    known = F.broadcast(small_frame(release.sparkSession, allowed))
    return groups.join(known, _ITEM, "left_anti").agg(F.count(F.lit(1)).alias("strange_groups"))
