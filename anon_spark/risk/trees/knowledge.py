"""Knowledge attack on published trees: someone who knows some labels and relations looks for the records that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from anon_spark.auditing.reading.sampling import smallest_hashes
from anon_spark.auditing.reading.values import exact
from anon_spark.columns import LINK
from anon_spark.engine import beside, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import TreeSchema
from anon_spark.risk.trees.drawing import (
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
from anon_spark.risk.trees.matching import (
    SHOWN,
    Matches,
    Sought,
    Wanted,
    holding_any,
    matches,
    wanted_in_place,
    wanted_outside,
)

DRAWS = 1_000

Amount = tuple[int, int, int, int | None]  # of what is known: labels, relations, absences and their level


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
        """The share of drawn K that leave 1 to k - 1 records."""
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
    """An attacker who knows the method looks for the lower label of a disassociated relation outside the upper one's node type.

    relations: how many were disassociated; drawn: K with one of them; seen: K that some record fits in this way; exposed: K that
    1 to k - 1 do; least: the fewest records that fit, unless none does; found: exposed K whose target is among these records.
    """

    relations: int
    drawn: int
    seen: int
    exposed: int
    least: int
    found: int

    def __str__(self) -> str:
        return (
            f"{self.relations} relations were disassociated; somebody who knows the method and looks for labels outside their "
            f"place is left with fewer than k records in {self.exposed} of {self.drawn} cases (nothing is promised)."
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
    more: int = 0,
    column: str = "paths",
) -> TreeRisk:
    """Draw K of published records, as they were, and count the published rows that fit.

    linked: LINK and the columns of the tree's fields, the rows of one LINK being one record; staged: the release with LINK;
    cut, disassociated: as published; key: seeds the draws; draws: how many K at most, one per record. K: up to n relations
    that go with m labels, then labels up to m; labels are translated by the cut, disassociated relations are not looked
    for. negations: numbers of nodes (1 to 4 in the paper) of which the target has nothing, more include fewer; on each of
    `levels` of the hierarchies. What is absent counts only where the cut shows it. more: labels and relations that another
    attacker knows besides, of the same records, and to whom nothing is promised; 0: there is none.
    The attacker who knows the method: K with one relation that was cut, about records that have it; a row fits that has all
    labels, and the lower one on a path without the upper one's node type.
    Guarantee: which records and what of them depends on the key and LINK alone, not on partitions. Nothing of a record is
    in the result.
    Cost: three jobs: two samples and the records they name (at most 2 · draws reach the driver), and one pass over the
    release in Arrow; a row per K reaches the driver.
    """
    if draws < 1 or more < 0 or any(number < 1 for number in negations):
        raise ConfigurationError("draws and negations must be whole numbers of at least 1, more must not be negative.")
    publication = Publication(schema, hierarchies, frozenset(cut), frozenset(disassociated))
    salt = int.from_bytes(blake2b(key.encode(), digest_size=7).digest(), "big")
    rows = staged.select(LINK, exact(staged, column).alias(SHOWN))
    sample = _first(rows, salt, draws)
    holding = _first(rows.mapInArrow(_holding(disassociated), f"{LINK} long"), salt, draws) if disassociated else set()
    records = _originals(linked, sample | holding, schema, hierarchies)

    absences = {level: publication.absences(level) for level in levels} if negations else {}
    amounts: list[Amount] = [(m, n, 0, None), *((m, n, number, level) for level in absences for number in negations)]
    amounts += [(m + more, n + more, 0, None)] if more else []
    asked: dict[Amount, list[Knowledge]] = {amount: [] for amount in amounts}
    for link in sorted(sample & records.keys()):
        record = records[link]
        most = max(negations, default=0)
        absent = {
            level: drawn_absences(record, nodes, most, stream(key, f"absence {level}", link))
            for level, nodes in absences.items()
        }
        for (labels, relations, number, level), group in asked.items():
            known = drawn(record, link, labels, relations, publication, stream(key, "knowledge", link))
            if known is not None:
                group.append(replace(known, absent=tuple(absent[level][:number]) if level is not None else ()))
    about = [
        drawn_about(pair, records[link], link, m, publication, stream(key, "structure", link))
        for link in sorted(holding & records.keys())
        if (pair := _cut_pair(records[link], publication, key, link)) is not None
    ]
    flat = [*(knowledge for group in asked.values() for knowledge in group), *about]
    wanted = [*map(wanted_in_place, flat[: len(flat) - len(about)]), *map(wanted_outside, about)]
    met = matches(rows, wanted, flat)
    outcomes, at = [], 0
    for amount, of in asked.items():
        outcomes.append(_outcome(of, met[at : at + len(of)], k, amount, promised=amount == (m, n, 0, None)))
        at += len(of)
    return TreeRisk(tuple(outcomes), _structure(len(disassociated), met[at:], k))


# -- sampling -------------------------------------------------------------------------------------------------------


def _first(rows: DataFrame, salt: int, number: int) -> set[int]:
    """The links with the smallest hashes."""
    sample = smallest_hashes(rows.select(LINK), [LINK], number, F.xxhash64(F.lit(salt), LINK))
    return {row[LINK] for row in sample.collect() if row[LINK] is not None}


def _holding(pairs: Sequence[Relation]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows → the links of those that have both labels of a relation that was cut."""

    def hold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sought = Sought.of([Wanted(pair, (), (), ()) for pair in pairs])
        for batch in batches:
            held = holding_any(batch.column(SHOWN), sought)
            yield pa.RecordBatch.from_arrays([batch.column(LINK).filter(pa.array(held))], names=[LINK])

    return hold


def _originals(
    linked: DataFrame, links: set[int], schema: TreeSchema, hierarchies: Mapping[str, Hierarchy]
) -> dict[int, Original]:
    """The records with these links as they were."""
    columns = list(dict.fromkeys(node_type.steps[0] for node_type in schema))
    wanted = small_frame(linked.sparkSession, pa.table({LINK: pa.array(sorted(links), pa.int64())}))
    whole = linked.select(LINK, *(exact(linked, name).alias(name) for name in columns))
    rows = whole.join(beside(wanted), LINK, "left_semi")
    records: dict[int, list[dict[str, Any]]] = {}
    for row in rows.collect():
        records.setdefault(row[LINK], []).append({name: row[at + 1] for at, name in enumerate(columns)})
    kind = StructType([StructField(name, linked.schema[name].dataType) for name in columns])
    return {link: original(of, kind, schema, hierarchies) for link, of in records.items()}


def _cut_pair(record: Original, publication: Publication, key: str, link: int) -> Relation | None:
    """A relation of the record that was cut."""
    pairs = [pair for pair in record.relations if publication.translated(pair) in publication.disassociated]
    return stream(key, "pair", link).choice(pairs) if pairs else None


# -- outcomes -------------------------------------------------------------------------------------------------------


def _outcome(known: Sequence[Knowledge], met: Sequence[Matches], k: int, amount: Amount, promised: bool) -> TreeKnowledge:
    labels, relations, negated, level = amount
    fits = [match.rows for match in met]
    few = Counter(rows for rows in fits if 0 < rows < k)
    buckets = Counter((rows // k).bit_length() for rows in fits if rows)
    drawn_ = len(known)
    return TreeKnowledge(
        labels=labels,
        relations=relations,
        negated=negated,
        level=level,
        promised=promised,
        drawn=drawn_,
        nothing=fits.count(0),
        below=few.total(),
        supports=tuple(sorted(few.items())),
        least=min((rows for rows in fits if rows), default=0),
        mean=sum(fits) / drawn_ if drawn_ else 0.0,
        affected=sum(rows * times for rows, times in few.items()) / drawn_ if drawn_ else 0.0,
        histogram=tuple((k << at >> 1 if at else 1, (k << at) - 1, buckets[at]) for at in sorted(buckets)),
        cut_off=sum(bool(knowledge.cut_off) for knowledge in known),
        lost=sum(not match.own for match in met),
        found=sum(bool(match.own) for match in met),
    )


def _structure(relations: int, met: Sequence[Matches], k: int) -> StructureRisk:
    exposed = [match for match in met if 0 < match.rows < k]
    return StructureRisk(
        relations=relations,
        drawn=len(met),
        seen=sum(match.rows > 0 for match in met),
        exposed=len(exposed),
        least=min((match.rows for match in met if match.rows), default=0),
        found=sum(bool(match.own) for match in exposed),
    )
