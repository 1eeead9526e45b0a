"""Knowledge attack: someone who knows a person's relational values and some items looks for the rows that may be theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import (
    Ints,
    Lists,
    Marks,
    Words,
    as_set,
    bitmaps,
    items_in,
    names_in,
    no_items,
    numbered,
    offsets_of,
    together,
)
from anon_spark.auditing.reading.sampling import smallest_hashes
from anon_spark.auditing.reading.values import HI, LO, exact
from anon_spark.columns import LINK, PREFIX, quoted
from anon_spark.compiled import compiled
from anon_spark.engine import crossed, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange
from anon_spark.pending import Pending
from anon_spark.risk.look_up.levels import CELLS_AT_ONCE, Levels

RECORDS = 500
ALL = -1

Floats = NDArray[np.float64]

_ITEMS, _SECRETS, _WHO = (PREFIX + name for name in ("items", "secrets", "who"))
_KNOWN, _WHAT, _ROWS = (PREFIX + name for name in ("known", "what", "rows"))
_CANDIDATES, _OWN = -1, -2  # what is counted, beside sensitive items by their number
_MET = f"{_WHO} long, {_KNOWN} int, {_WHAT} int, {_ROWS} long"


@dataclass(frozen=True)
class KnowledgeRisk:
    """Success of the attack on a sample of records, as chances between 0 and 1.

    items: how many items of a record are known (all it has, if they are fewer), None for all of them; promised: whether the
    guarantee speaks of so much knowledge; records: how many are attacked; found: of how many the own row is among those
    that fit (all, if the release is truthful); success: the mean chance when one of the rows that fit is picked; least: the
    fewest rows that fit a record, and worst the chance then; promise: 1 / k; below: records that fewer than k rows fit;
    share: the highest share of one sensitive item among the rows that fit a record (None: there are none), and
    share_promise, 1 / l.
    """

    items: int | None
    promised: bool
    records: int
    found: int
    success: float
    least: int
    worst: float
    promise: float
    below: int
    share: float | None
    share_promise: float | None
    error: float | None = field(default=None, compare=False)  # standard error of success, over the records

    def __str__(self) -> str:
        known = "all items" if self.items is None else f"{self.items} items"
        limit = f"promised at most {self.promise:.4g}" if self.promised else "nothing is promised"
        text = (
            f"relational values and {known} known: {self.success:.4g} of {self.records} records found, at worst "
            f"{self.worst:.4g} ({self.least} rows fit), {limit}"
        )
        if self.share is None:
            return text + "."
        share_limit = (
            f", promised at most {self.share_promise:.4g}" if self.promised and self.share_promise is not None else ""
        )
        return f"{text}; a sensitive item learnt with {self.share:.4g} at most{share_limit}."


def knowledge_attack(
    linked: DataFrame,
    staged: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    k: int,
    m: int,
    sensitive_items: Mapping[str, Sequence[str]] | None = None,
    sensitive: str | None = None,
    l: int | None = None,  # noqa: E741 - the papers' name
    unpublished: Sequence[str] = (),
    records: int = RECORDS,
) -> tuple[KnowledgeRisk, ...]:
    """Attack a sample of records with m, m + 1, m + 2 and all of their items that are not sensitive known.

    linked: LINK, the source's quasi-identifiers and transaction columns; staged: the release with LINK; relational:
    quasi-identifier → hierarchy, None or FreeRange for a number that is published as struct<lo,hi>; items, sensitive:
    published columns; sensitive_items: transaction column → its sensitive items; unpublished: items that no row shows, as
    they would be published: to know them helps nobody, so others are known instead.
    A row fits iff each label is the value's or above it, each range holds the number (as doubles) and each known item is in
    some inner array. Which items are known is random, more knowledge includes less. The guarantee is about m items or
    fewer: the other figures show what lies outside it. Rows are what is counted.
    Guarantee: sample and known items are chosen by hash of LINK, so the numbers do not depend on partitions.
    Cost: a scan of the records now, for the sample, which reaches the driver and is sent to every task; one scan of the rows,
    compared with all of the sample in Arrow: time is rows × records; at most 4 · records · (2 + sensitive items) numbers
    reach the driver.
    """
    return knowledge_attack_to_be(
        linked, staged, relational, transactions, items, k, m, sensitive_items, sensitive, l, unpublished, records
    ).get()


def knowledge_attack_to_be(
    linked: DataFrame,
    staged: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    k: int,
    m: int,
    sensitive_items: Mapping[str, Sequence[str]] | None = None,
    sensitive: str | None = None,
    l: int | None = None,  # noqa: E741 - the papers' name
    unpublished: Sequence[str] = (),
    records: int = RECORDS,
) -> Pending[tuple[KnowledgeRisk, ...]]:
    """As `knowledge_attack`, its counts not collected yet."""
    secret_items = dict(sensitive_items or {})
    if any(secret_items.values()) != (sensitive is not None):
        raise ConfigurationError("Sensitive items and the column that shows them must be given together.")
    people = _sample(linked, list(relational), transactions, unpublished, records).toArrow()
    shown = _shown_rows(staged, relational, items, sensitive)
    hidden = [_written(column, name, transactions) for column, names in secret_items.items() for name in names]
    amounts = [m, m + 1, m + 2, ALL]
    met = shown.mapInArrow(_meeting(people, list(relational.values()), hidden, amounts), _MET)

    def risks(found: Sequence[Row]) -> tuple[KnowledgeRisk, ...]:
        links = np.asarray(people[LINK]).tolist()
        counted: dict[int, dict[int, dict[int, int]]] = {of: {who: {_CANDIDATES: 0} for who in links} for of in amounts}
        for who, known, what, number in found:
            counted[known][who][what] = number
        return tuple(_risk(None if of == ALL else of, of == m, [*counted[of].values()], k, l, bool(hidden)) for of in amounts)

    return Pending.of(met.groupBy(_WHO, _KNOWN, _WHAT).agg(F.sum(_ROWS).alias(_ROWS)), risks)


def _risk(
    items: int | None, promised: bool, counted: Sequence[Mapping[int, int]], k: int, l: int | None, secrets: bool  # noqa: E741
) -> KnowledgeRisk:
    """counted: per record how many rows fit, how many of these are its own, how many have each sensitive item."""
    fits = [of[_CANDIDATES] for of in counted]
    chances = [of.get(_OWN, 0) / max(1, of[_CANDIDATES]) for of in counted]
    most = [max((rows for what, rows in of.items() if what >= 0), default=0) for of in counted]
    return KnowledgeRisk(
        items=items,
        promised=promised,
        records=len(counted),
        found=sum(chance > 0 for chance in chances),
        success=math.fsum(chances) / max(1, len(counted)),  # exact, whatever the order
        least=min(fits, default=0),
        worst=max(chances, default=0.0),
        promise=1 / k,
        below=sum(rows < k for rows in fits),
        share=max((top / max(1, rows) for top, rows in zip(most, fits, strict=True)), default=0.0) if secrets else None,
        share_promise=1 / l if l is not None else None,
        error=float(f"{np.std(chances, ddof=1) / math.sqrt(len(chances)):.6g}") if len(chances) > 1 else None,
    )


def _written(column: str, item: str, transactions: Sequence[str]) -> str:
    """An item as it is published."""
    return f"{column}.{item}" if len(transactions) > 1 else item


def _value(at: int) -> str:
    return f"{PREFIX}value_{at}"


def _sample(
    linked: DataFrame, relational: Sequence[str], transactions: Sequence[str], unpublished: Sequence[str], records: int
) -> DataFrame:
    """Records with the smallest hashes: LINK, values, and the items that may be published, in an order by their hashes."""
    linked = smallest_hashes(linked.select(LINK, *map(quoted, (*relational, *transactions))), [LINK], records)
    items = together(transactions, [as_set(exact(linked, name)) for name in transactions])
    if unpublished:
        absent = pa.table({_WHAT: pa.array([list(unpublished)], pa.list_(pa.string()))})
        linked = crossed(linked, small_frame(linked.sparkSession, absent))
        items = F.array_except(items, _WHAT)
    drawn = F.sort_array(F.transform(items, lambda item: F.struct(F.xxhash64(LINK, item), item.alias("item"))))
    return linked.select(
        LINK, *(exact(linked, name).alias(_value(at)) for at, name in enumerate(relational)), drawn["item"].alias(_ITEMS)
    )


def _shown_rows(
    staged: DataFrame, relational: Mapping[str, Hierarchy | FreeRange | None], items: str, sensitive: str | None
) -> DataFrame:
    """Published rows: LINK, labels or ends of ranges, generalized items, sensitive items."""
    values: list[Column] = []
    for at, (name, attribute) in enumerate(relational.items()):
        shown = exact(staged, name)
        if isinstance(attribute, Hierarchy):
            values.append(shown.cast("string").alias(_value(at)))
        else:
            values += [shown[end].cast("double").alias(f"{_value(at)}_{end}") for end in (LO, HI)]
    secrets = no_items() if sensitive is None else as_set(exact(staged, sensitive))
    return staged.select(LINK, *values, exact(staged, items).alias(_ITEMS), secrets.alias(_SECRETS))


def _meeting(
    people: pa.Table, relational: Sequence[Hierarchy | FreeRange | None], hidden: Sequence[str], amounts: Sequence[int]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Published rows → per record of the sample and amount of knowledge what is counted. All rows meet all of the sample."""
    step = max(1, CELLS_AT_ONCE // max(1, len(people)))

    def meet(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        levels = [Levels.of(attribute) if isinstance(attribute, Hierarchy) else None for attribute in relational]
        secrets = pa.array(list(hidden), pa.string())
        names = names_in(people[_ITEMS])
        names = names.filter(pc.invert(pc.is_in(names, value_set=secrets)))
        offsets, numbers = numbered(people[_ITEMS], names)
        plain = numbers >= 0  # what is left out is sensitive
        offsets = offsets_of(plain)[offsets]
        sizes = np.diff(offsets)
        wanted = np.stack([sizes if amount == ALL else np.minimum(sizes, amount) for amount in amounts], axis=1)
        who = np.asarray(people[LINK], dtype=np.int64)
        values = [
            _values(attribute_levels, people[_value(at)].to_pylist()) for at, attribute_levels in enumerate(levels)
        ]
        counts = np.zeros((len(people), len(amounts), 2 + len(hidden)), dtype=np.int64)
        for block in (batch.slice(start, step) for batch in batches for start in range(0, batch.num_rows, step)):
            bits, _ = packed(_shown_items(block.column(_ITEMS), names), len(names))
            shown = numbered(pa.chunked_array([block.column(_SECRETS)]), secrets)
            fits = _covering(levels, values, pa.Table.from_batches([block]))
            counted(fits, bits, (offsets, numbers[plain]), wanted, who, np.asarray(block.column(LINK)), shown, counts)
        person, amount, what = np.nonzero(counts)
        columns: list[Any] = [
            pa.array(who[person], pa.int64()),
            pa.array(np.array(amounts)[amount], pa.int32()),
            pa.array(np.where(what < 2, -1 - what, what - 2), pa.int32()),
            pa.array(counts[person, amount, what], pa.int64()),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=[_WHO, _KNOWN, _WHAT, _ROWS])

    return meet


def _shown_items(lists: Any, names: pa.StringArray) -> Lists:
    """The items that any generalized item of a row holds, numbered."""
    items, row = items_in(lists)
    known = np.asarray(pc.index_in(items.cast(pa.string()), value_set=names).fill_null(-1), dtype=np.int64)
    return offsets_of(np.bincount(row, minlength=len(lists))), known


def _values(levels: Levels | None, known: Sequence[Any]) -> NDArray[Any]:
    """The known values of the sampled records in one attribute: leaves, or numbers."""
    if levels is not None:
        return np.array([levels.leaf(value) for value in known], dtype=np.int32)
    return np.array([np.nan if value is None else float(value) for value in known], dtype=np.float64)


def _covering(levels: Sequence[Levels | None], values: Sequence[NDArray[Any]], rows: pa.Table) -> Marks:
    """[row, record]: whether all that a row says of relational values is true of the record."""
    covering = np.ones((len(rows), len(values[0])), dtype=np.bool_)
    for at, (attribute_levels, known) in enumerate(zip(levels, values, strict=True)):
        if attribute_levels is not None:
            covering &= attribute_levels.covering(attribute_levels.numbers(rows[_value(at)]), known)
        else:
            narrowed(covering, *(rows[f"{_value(at)}_{end}"].to_numpy() for end in (LO, HI)), known)  # null is NaN
    return covering


def packed(lists: Lists, width: int) -> tuple[Words, Ints]:
    """`bitmaps` as a plain function, which tasks find by name: a compiled one sent to a task is compiled again."""
    return bitmaps(lists, width)


def narrowed(*arrays: Any) -> None:
    """`keep_within` as a plain function."""
    keep_within(*arrays)


def counted(*arrays: Any) -> None:
    """`count_fitting` as a plain function."""
    count_fitting(*arrays)


@compiled
def keep_within(covering: Marks, low: Floats, high: Floats, known: Floats) -> None:
    """Take out of covering [row, record] the records whose number is not between the ends of the row."""
    for row in range(covering.shape[0]):
        for record in range(covering.shape[1]):
            if covering[row, record]:
                covering[row, record] = low[row] <= known[record] and known[record] <= high[row]


@compiled
def count_fitting(
    covering: Marks, bits: Words, known: Lists, wanted: Ints, who: Ints, link: Ints, secrets: Lists, counts: Ints
) -> None:
    """Add to counts [record, amount, what]: 0 rows that fit, 1 own rows among them, 2 + s those with sensitive item s.

    wanted [record, amount]: how many of a record's items, from the first, must be in a row.
    """
    offsets, numbers = known
    for row in range(covering.shape[0]):
        for record in range(covering.shape[1]):
            if not covering[row, record]:
                continue
            held = 0
            for at in range(offsets[record], offsets[record + 1]):
                item = numbers[at]
                if (bits[row, item >> 6] >> np.uint64(item & 63)) & np.uint64(1) == np.uint64(0):
                    break
                held += 1
            for amount in range(wanted.shape[1]):
                if held >= wanted[record, amount]:
                    counts[record, amount, 0] += 1
                    if link[row] == who[record]:
                        counts[record, amount, 1] += 1
                    for at in range(secrets[0][row], secrets[0][row + 1]):
                        if secrets[1][at] >= 0:
                            counts[record, amount, 2 + secrets[1][at]] += 1
