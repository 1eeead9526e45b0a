"""Knowledge attack on published trees: someone who knows some labels and relations looks for the records that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from anon_spark.columns import LINK, PREFIX
from anon_spark.engine import small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import TreeSchema
from anon_spark.risk.cells import cell
from anon_spark.risk.item_sets import Ints, Marks
from anon_spark.risk.tree_drawing import (
    Knowledge,
    Label,
    Original,
    Publication,
    Relation,
    drawn,
    drawn_about,
    drawn_absences,
    original,
    stream,
)

DRAWS = 1_000
CELLS_AT_ONCE = 20_000_000  # things that are looked for times rows, in one step

_WHO, _ROWS, _OWN, _PATHS, _PLACE = (PREFIX + name for name in ("known", "fitting", "own", "paths", "sampled"))
_MET = f"{_WHO} int, {_ROWS} long, {_OWN} long"


@dataclass(frozen=True)
class TreeKnowledge:
    """Success of an attack on drawn K, each about one record.

    labels and relations: how many are known at most; negated: how many absences are known besides, and level, where in the
    hierarchies these nodes stand (0: values); promised: whether the guarantee speaks of so much knowledge; drawn: how many K;
    nothing: K that no record fits; below: K that 1 to k - 1 records fit, and supports, how many K by number of records
    then; least: the fewest records that fit a K, unless none does; mean: records that fit a K; affected: records that
    fit a K of `below`, over all drawn K; histogram: (from, to, K); cut_off: K with a relation that the method cut, which is
    known and not looked for; found: K whose target is among the records that fit; lost: the others. Of a truthful release
    these have a relation that was not cut itself, but went with one that was.
    """

    labels: int
    relations: int
    negated: int
    level: int | None
    promised: bool
    drawn: int
    nothing: int
    below: int
    supports: tuple[tuple[int, int], ...]
    least: int
    mean: float
    affected: float
    histogram: tuple[tuple[int, int, int], ...]
    cut_off: int
    lost: int
    found: int

    @property
    def share_below(self) -> float:
        """Of the drawn K, those that leave 1 to k - 1 records."""
        return self.below / self.drawn if self.drawn else 0.0

    def __str__(self) -> str:
        absent = f" and {self.negated} absences" if self.negated else ""
        limit = "none is promised" if self.promised else "nothing is promised"
        return (
            f"{self.labels} labels, {self.relations} relations{absent} known: {self.below} of {self.drawn} leave fewer than k "
            f"records ({limit}), the fewest are {self.least}; the target is among them in {self.found}."
        )


@dataclass(frozen=True)
class StructureRisk:
    """An attacker who knows the method looks for a cut relation where it was: the lower label outside the upper one's class.

    relations: how many were cut; drawn: K with one of them; seen: K that some record fits in this way; exposed: K that 1 to
    k - 1 do; least: the fewest records that fit, unless none does; found: exposed K whose target is among these records.
    """

    relations: int
    drawn: int
    seen: int
    exposed: int
    least: int
    found: int

    def __str__(self) -> str:
        return (
            f"{self.relations} relations were cut; somebody who knows the method and looks for labels outside their place is "
            f"left with fewer than k records in {self.exposed} of {self.drawn} cases (nothing is promised)."
        )


@dataclass(frozen=True)
class TreeRisk:
    """Both attackers: one outcome per amount of knowledge, and the one who knows the method."""

    knowledge: tuple[TreeKnowledge, ...]
    structure: StructureRisk


def tree_attack(
    linked: DataFrame,
    staged: DataFrame,
    schema: TreeSchema,
    hierarchies: Mapping[str, Hierarchy],
    cut: Sequence[Label],
    disassociated: Sequence[Relation],
    k: int,
    m: int,
    n: int,
    key: str,
    draws: int = DRAWS,
    negations: Sequence[int] = (),
    levels: Sequence[int] = (0, 1),
    column: str = "paths",
) -> TreeRisk:
    """Draw K of published records, as they were, and count the published rows that fit.

    linked: LINK and the columns of the tree's fields, the rows of one LINK being one record; staged: the release with LINK;
    cut, disassociated: as published; key: seeds the draws; draws: how many K at most, one per record. K: up to n relations
    that go with m labels, then labels up to m; labels are translated by the cut, relations that were cut are not looked
    for. negations: numbers of nodes (1 to 4 in the paper) of which the target has nothing, more include fewer; on each of
    `levels` of the hierarchies. What is absent counts only where the cut shows it.
    The attacker who knows the method: K with one relation that was cut, about records that have it; a row fits that has all
    labels, and the lower one on a path without the upper one's class.
    Guarantee: which records and what of them depends on the key and LINK alone, not on partitions. Nothing of a record is
    in the result.
    Cost: three jobs: two samples and the records they name (at most 2 · draws reach the driver), and one pass over the
    release in Arrow; a row per K reaches the driver.
    """
    if draws < 1 or any(number < 1 for number in negations):
        raise ConfigurationError("draws and negations must be whole numbers of at least 1.")
    publication = Publication(schema, hierarchies, frozenset(cut), frozenset(disassociated))
    salt = int.from_bytes(blake2b(key.encode(), digest_size=7).digest(), "big")
    rows = staged.select(LINK, cell(staged, column).alias(_PATHS))
    sample = _first(rows, salt, draws)
    holding = _first(rows.mapInArrow(_holding(disassociated), f"{LINK} long"), salt, draws) if disassociated else set()
    records = _originals(linked, sample | holding, schema, hierarchies)

    absences = {level: publication.absences(level) for level in levels} if negations else {}
    variants: list[tuple[int, int | None]] = [(0, None), *((number, level) for level in absences for number in negations)]
    asked: list[list[Knowledge]] = [[] for _ in variants]
    for link in sorted(sample & records.keys()):
        one = records[link]
        known = drawn(one, link, m, n, publication, stream(key, "knowledge", link))
        if known is None:
            continue
        most = max(negations, default=0)
        absent = {
            level: drawn_absences(one, nodes, most, stream(key, f"absence {level}", link)) for level, nodes in absences.items()
        }
        for at, (number, level) in enumerate(variants):
            asked[at].append(replace(known, absent=tuple(absent[level][:number]) if level is not None else ()))
    about = [
        drawn_about(pair, records[link], link, m, publication, stream(key, "structure", link))
        for link in sorted(holding & records.keys())
        if (pair := _cut_pair(records[link], publication, key, link)) is not None
    ]
    flat = [*(one for of in asked for one in of), *about]
    met = _met(rows, [*map(_plain, flat[: len(flat) - len(about)]), *map(_outside, about)], flat)
    outcomes, at = [], 0
    for (number, level), of in zip(variants, asked, strict=True):
        outcomes.append(_outcome(of, met[at : at + len(of)], k, m, n, number, level))
        at += len(of)
    return TreeRisk(tuple(outcomes), _structure(len(disassociated), met[at:], k))


class _Met(NamedTuple):
    """Rows that fit a K, and how many of these are the target's own."""

    rows: int
    own: int


class _Wanted(NamedTuple):
    """What a row must show: labels, relations, none of some labels, labels outside of a class."""

    labels: tuple[Label, ...]
    relations: tuple[Relation, ...]
    absent: tuple[frozenset[Label], ...]
    outside: tuple[tuple[Label, str], ...]


def _plain(known: Knowledge) -> _Wanted:
    return _Wanted(known.labels, known.relations, known.absent, ())


def _outside(known: Knowledge) -> _Wanted:
    return _Wanted(known.labels, (), (), tuple((below, above[0]) for above, below in known.cut_off))


# -- sampling -------------------------------------------------------------------------------------------------------


def _first(rows: DataFrame, salt: int, number: int) -> set[int]:
    """The links with the smallest hashes."""
    order = rows.select(LINK).orderBy(F.xxhash64(F.lit(salt), LINK), LINK).limit(number)
    return {row[LINK] for row in order.collect() if row[LINK] is not None}


def _holding(pairs: Sequence[Relation]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows → the links of those that have both labels of a relation that was cut."""

    def hold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = [_Wanted(pair, (), (), ()) for pair in pairs]
        for batch in batches:
            held = np.logical_or.reduce(list(_fitting(batch.column(_PATHS), wanted)))
            yield pa.RecordBatch.from_arrays([batch.column(LINK).filter(pa.array(held))], names=[LINK])

    return hold


def _originals(
    linked: DataFrame, links: set[int], schema: TreeSchema, hierarchies: Mapping[str, Hierarchy]
) -> dict[int, Original]:
    """The records with these links as they were."""
    columns = list(dict.fromkeys(one.steps[0] for one in schema))
    wanted = small_frame(linked.sparkSession, pa.table({LINK: pa.array(sorted(links), pa.int64())}))
    rows = linked.select(LINK, *(cell(linked, name).alias(name) for name in columns)).join(F.broadcast(wanted), LINK, "left_semi")
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows.collect():
        found.setdefault(row[LINK], []).append({name: row[at + 1] for at, name in enumerate(columns)})
    kind = StructType([StructField(name, linked.schema[name].dataType) for name in columns])
    return {link: original(of, kind, schema, hierarchies) for link, of in found.items()}


def _cut_pair(one: Original, publication: Publication, key: str, link: int) -> Relation | None:
    """A relation of the record that was cut."""
    pairs = [pair for pair in one.relations if publication.translated(pair) in publication.disassociated]
    return stream(key, "pair", link).choice(pairs) if pairs else None


# -- counting -------------------------------------------------------------------------------------------------------


def _met(rows: DataFrame, wanted: Sequence[_Wanted], known: Sequence[Knowledge]) -> list[_Met]:
    targets = np.array([one.target for one in known], dtype=np.int64)

    def meet(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            link = np.asarray(batch.column(LINK), dtype=np.int64)
            number, own = np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
            step = max(1, CELLS_AT_ONCE // max(1, 4 * len(wanted)))
            for start in range(0, batch.num_rows, step):
                mine = link[start : start + step]
                for at, fits in enumerate(_fitting(batch.column(_PATHS).slice(start, step), wanted)):
                    number[at] += int(fits.sum())
                    own[at] += int(fits[mine == targets[at]].sum())
            columns: list[Any] = [pa.array(np.arange(len(wanted)), pa.int32()), pa.array(number), pa.array(own)]
            yield pa.RecordBatch.from_arrays(columns, names=[_WHO, _ROWS, _OWN])

    found = [_Met(0, 0)] * len(wanted)
    if wanted:
        for who, number, own in rows.mapInArrow(meet, _MET).groupBy(_WHO).agg(F.sum(_ROWS), F.sum(_OWN)).collect():
            found[who] = _Met(number, own)
    return found


def _fitting(paths: Any, wanted: Sequence[_Wanted]) -> Iterator[Marks]:
    """Per K: which rows fit. All that is looked for is looked for once."""
    rows = _Rows.of(paths)
    looks: dict[str, Callable[..., Marks]] = {
        "labels": rows.having, "relations": rows.relating, "absent": rows.lacking, "outside": rows.outside
    }  # fmt: skip
    seen: dict[tuple[str, Any], Marks] = {}
    for one in wanted:
        for kind, look in looks.items():
            seen.update({(kind, what): look(what) for what in getattr(one, kind) if (kind, what) not in seen})
        yield np.logical_and.reduce([seen[kind, what] for kind in looks for what in getattr(one, kind)])


class _Rows(NamedTuple):
    """The nodes of some published rows: label and row of each, and the pairs of nodes on one path.

    by_label and by_pair: the labels of nodes and pairs in ascending order, beside the rows that have them.
    """

    number: int
    numbers: Mapping[Label, int]
    label: Ints
    row: Ints
    upper: Ints
    lower: Ints
    by_label: tuple[Ints, Ints]
    by_pair: tuple[Ints, Ints]

    @classmethod
    def of(cls, paths: Any) -> _Rows:
        of_row = np.asarray(pc.list_value_length(paths).fill_null(0), dtype=np.int64)
        inner = pc.list_flatten(paths)
        of_path = np.asarray(pc.list_value_length(inner).fill_null(0), dtype=np.int64)
        nodes = pc.list_flatten(inner)
        names = [pc.struct_field(nodes, name).dictionary_encode() for name in ("class", "value")]
        codes = [np.asarray(pc.fill_null(one.indices, len(one.dictionary)), dtype=np.int64) for one in names]
        texts = [[*one.dictionary.to_pylist(), None] for one in names]
        width = len(texts[1])
        known, which = np.unique(codes[0] * width + codes[1], return_inverse=True)
        label, row = which.reshape(-1), np.repeat(np.repeat(np.arange(of_row.size), of_row), of_path)
        after = np.repeat(np.cumsum(of_path), of_path) - np.arange(row.size) - 1  # nodes below one on its path
        upper = np.repeat(np.arange(row.size), after)
        lower = upper + 1 + np.arange(upper.size) - np.repeat(np.cumsum(after) - after, after)
        numbers = {(texts[0][at // width], texts[1][at % width]): place for place, at in enumerate(known.tolist())}
        pairs = label[upper] * len(numbers) + label[lower]
        return cls(of_row.size, numbers, label, row, upper, lower, _sorted(label, row), _sorted(pairs, row[upper]))

    def marked(self, rows: Ints) -> Marks:
        found = np.zeros(self.number, dtype=np.bool_)
        found[rows] = True
        return found

    def having(self, label: Label) -> Marks:
        return self.marked(_between(self.by_label, self.numbers.get(label, -1)))

    def lacking(self, labels: Iterable[Label]) -> Marks:
        found = np.zeros(self.number, dtype=np.bool_)
        for label in labels:
            if label in self.numbers:
                found |= self.having(label)
        return ~found

    def relating(self, pair: Relation) -> Marks:
        above, below = (self.numbers.get(label) for label in pair)
        key = -1 if above is None or below is None else above * len(self.numbers) + below
        return self.marked(_between(self.by_pair, key))

    def outside(self, what: tuple[Label, str]) -> Marks:
        """Rows that have a label on a path where nothing of a class is above it."""
        label, name = what
        of_class = np.isin(self.label, [number for (one, _), number in self.numbers.items() if one == name])
        inside = np.zeros(self.row.size, dtype=np.bool_)
        inside[self.lower[of_class[self.upper]]] = True
        return self.marked(self.row[(self.label == self.numbers.get(label, -1)) & ~inside])


def _sorted(keys: Ints, rows: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]


def _between(by: tuple[Ints, Ints], key: int) -> Ints:
    """The rows of a key."""
    first, last = np.searchsorted(by[0], [key, key + 1])
    return by[1][first:last]


# -- outcomes -------------------------------------------------------------------------------------------------------


def _outcome(
    known: Sequence[Knowledge], met: Sequence[_Met], k: int, m: int, n: int, number: int, level: int | None
) -> TreeKnowledge:
    fits = [one.rows for one in met]
    few = Counter(rows for rows in fits if 0 < rows < k)
    buckets = Counter((rows // k).bit_length() for rows in fits if rows)
    drawn_ = len(known)
    return TreeKnowledge(
        labels=m,
        relations=n,
        negated=number,
        level=level,
        promised=number == 0,
        drawn=drawn_,
        nothing=fits.count(0),
        below=few.total(),
        supports=tuple(sorted(few.items())),
        least=min((rows for rows in fits if rows), default=0),
        mean=sum(fits) / drawn_ if drawn_ else 0.0,
        affected=sum(rows * times for rows, times in few.items()) / drawn_ if drawn_ else 0.0,
        histogram=tuple((k << at >> 1 if at else 1, (k << at) - 1, buckets[at]) for at in sorted(buckets)),
        cut_off=sum(bool(one.cut_off) for one in known),
        lost=sum(not one.own for one in met),
        found=sum(bool(one.own) for one in met),
    )


def _structure(relations: int, met: Sequence[_Met], k: int) -> StructureRisk:
    exposed = [one for one in met if 0 < one.rows < k]
    return StructureRisk(
        relations=relations,
        drawn=len(met),
        seen=sum(one.rows > 0 for one in met),
        exposed=len(exposed),
        least=min((one.rows for one in met if one.rows), default=0),
        found=sum(bool(one.own) for one in exposed),
    )
