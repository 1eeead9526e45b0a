"""Columns that are published as they are and give a generalized one away: education_num beside education."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.auditing.reading.values import hashed, private, quoted, require_columns
from anon_spark.pending import Pending

SAMPLE = 50_000
MOST_PAIRS = 45  # of kept columns that are tried together, in the order they are given: all pairs of ten columns
REPEATED = 2  # rows that a pair of values must have on average to determine anything: single rows determine everything

Candidate = tuple[int, ...]  # one kept column, or two

_AT, _VALUE, _CHECK, _PRESENT, _ROWS = (private(name) for name in ("at", "value", "check", "present", "rows"))


@dataclass(frozen=True)
class Dependency:
    """A kept column that tells more than it should.

    kind: 'determines' when each of its values goes with one value of the quasi-identifiers in `determines`; 'identifier'
    when no value occurs twice, so that it names rows (and determines everything). beside: the kept column that it takes to
    determine them, where it does not do so alone.
    """

    column: str
    determines: tuple[str, ...]
    kind: Literal["determines", "identifier"]
    beside: str | None = None

    def __str__(self) -> str:
        if self.beside is not None:
            return (
                f"Columns {self.column} and {self.beside} together determine {', '.join(self.determines)}: they give back what "
                "was generalized. Leave one of them out, or make it a quasi-identifier."
            )
        if self.kind == "identifier":
            return f"Column {self.column} has a different value in every row: it acts as an identifier. Do not publish it."
        return (
            f"Column {self.column} determines {', '.join(self.determines)}: it gives back what was generalized. "
            "Leave it out, or make it a quasi-identifier."
        )


def find_dependencies(
    source: DataFrame, kept: Sequence[str], quasi_identifiers: Sequence[str], rows: int | None = None
) -> list[Dependency]:
    """Kept columns that determine a quasi-identifier, alone or two together, or that are unique in every row.

    rows: how many the source has, when that is known already. Nulls aside, a column without repeated values is unique.
    Guarantee: exact (on 96-bit hashes), null is a value; a quasi-identifier with one value, which everything
    determines, is not reported. Two columns are reported where neither does it alone and their values have REPEATED rows on
    average; of more than ten kept columns the first MOST_PAIRS pairs are tried. Cost: a bounded sample refutes most in one job
    without a shuffle; a second job (one scan, one groupBy with map-side aggregation) decides what is left, if anything; a
    count of rows if not given.
    """
    require_columns(source, [*kept, *quasi_identifiers], "source")
    rows = source.count() if rows is None else rows
    return dependencies_to_be(source, kept, quasi_identifiers, rows).get()


def dependencies_to_be(
    source: DataFrame, kept: Sequence[str], quasi_identifiers: Sequence[str], rows: int, small: bool = False
) -> Pending[list[Dependency]]:
    """As `find_dependencies`, the last counts not collected yet. small: whether one task holds the table; it needs no sample."""
    if not kept or rows < 2:
        return Pending.known([])
    pairs = list(combinations(range(len(kept)), 2))[:MOST_PAIRS] if quasi_identifiers else []
    candidates: list[Candidate] = [*((at,) for at in range(len(kept))), *pairs]
    everything = {at: list(range(-1 if len(one) == 1 else 0, len(quasi_identifiers))) for at, one in enumerate(candidates)}
    open_pairs = everything if small else _not_refuted(source, kept, quasi_identifiers, candidates)
    open_pairs = {at: others for at, others in open_pairs.items() if others}
    if not open_pairs:
        return Pending.known([])
    return _decided(source, kept, quasi_identifiers, candidates, open_pairs)


def _not_refuted(
    source: DataFrame, kept: Sequence[str], quasi_identifiers: Sequence[str], candidates: Sequence[Candidate]
) -> dict[int, list[int]]:
    """Candidate → quasi-identifiers it may determine (-1: it may be unique), as far as some rows can tell.

    Any rows can refute; which they are changes only how much is left to be decided on all rows.
    """
    names = [*kept, *quasi_identifiers]
    sample = source.limit(SAMPLE)
    codes = [hashed(sample, [name]).alias(private(f"code_{at}")) for at, name in enumerate(names)]
    nulls = [F.isnull(_present(sample, name)).alias(private(f"null_{at}")) for at, name in enumerate(kept)]
    width = len(kept)

    def refute(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        listed = list(batches)
        pairs: list[tuple[int, int]] = []
        if listed:
            table = pa.Table.from_batches(listed)
            code = [np.unique(table.column(at).to_numpy(), return_inverse=True)[1] for at in range(len(names))]
            for at, members in enumerate(candidates):
                mine = code[members[0]]
                if len(members) == 1:
                    present = mine[~table.column(len(names) + members[0]).to_numpy()]
                    if len(each_once(present)) < len(present):
                        pairs.append((at, -1))
                else:
                    mine = np.unique(_both(mine, code[members[1]]), return_inverse=True)[1]
                values = int(mine.max(initial=-1)) + 1
                for other in range(width, len(names)):
                    if len(each_once(_both(mine, code[other]))) > values:
                        pairs.append((at, other - width))
        columns = [pa.array([pair[side] for pair in pairs], pa.int64()) for side in (0, 1)]
        yield pa.RecordBatch.from_arrays(columns, names=[_AT, _VALUE])

    refuted = {
        (row[_AT], row[_VALUE])
        for row in sample.select(*codes, *nulls).coalesce(1).mapInArrow(refute, f"{_AT} long, {_VALUE} long").collect()
    }
    return {
        at: [
            other
            for other in range(-1 if len(members) == 1 else 0, len(quasi_identifiers))
            if (at, other) not in refuted
        ]
        for at, members in enumerate(candidates)
    }


def _both(first: Any, second: Any) -> Any:
    """One number for two codes, each below the number of rows."""
    return first.astype(np.int64) * (len(first) + 1) + second


def _present(frame: DataFrame, name: str) -> Column:
    """The column, with NaN as null."""
    value = F.col(quoted(name))
    return F.when(~F.isnan(value), value) if frame.schema[name].dataType.typeName() in ("double", "float") else value


def _low(other: int) -> str:
    return private(f"low_{other}")


def _high(other: int) -> str:
    return private(f"high_{other}")


def _decided(
    source: DataFrame,
    kept: Sequence[str],
    quasi_identifiers: Sequence[str],
    candidates: Sequence[Candidate],
    open_pairs: dict[int, list[int]],
) -> Pending[list[Dependency]]:
    """The dependencies that hold on all rows, by the least and greatest hash of each quasi-identifier per value."""
    others = sorted({other for pair in open_pairs.values() for other in pair if other >= 0})

    def coded_as(at: int) -> Column:
        names = [kept[member] for member in candidates[at]]
        return F.struct(
            F.lit(at).alias(_AT),
            hashed(source, names).alias(_VALUE),
            F.hash(*(_present(source, name).cast("string") for name in names)).alias(_CHECK),
            F.isnotnull(_present(source, names[0])).alias(_PRESENT),
        )

    coded = source.select(
        *(hashed(source, [quasi_identifiers[other]]).alias(_low(other)) for other in others),
        F.inline_outer(F.array(*map(coded_as, open_pairs))),
    )
    values = coded.groupBy(_AT, _VALUE, _CHECK, _PRESENT).agg(
        F.count(F.lit(1)).alias(_ROWS),
        *(F.min(_low(other)).alias(_low(other)) for other in others),
        *(F.max(_low(other)).alias(_high(other)) for other in others),
    )
    counted = (
        values.groupBy(_AT)
        .agg(
            F.max(F.when(F.col(_PRESENT), F.col(_ROWS))).alias("most"),
            F.count(F.when(F.col(_PRESENT), F.lit(1))).alias("values"),
            (F.sum(_ROWS) >= REPEATED * F.count(F.lit(1))).alias("repeated"),
            *(F.max(F.col(_low(other)) != F.col(_high(other))).alias(f"differs_{other}") for other in others),
            *((F.min(_low(other)) == F.max(_high(other))).alias(f"constant_{other}") for other in others),
        )
        .orderBy(_AT)
    )
    return Pending.of(counted, lambda rows: _dependencies(rows, kept, quasi_identifiers, candidates, open_pairs))


def _dependencies(
    rows: Sequence[Row],
    kept: Sequence[str],
    quasi_identifiers: Sequence[str],
    candidates: Sequence[Candidate],
    open_pairs: Mapping[int, Sequence[int]],
) -> list[Dependency]:
    """The dependencies that hold, from what was counted of each open candidate."""
    dependencies: list[Dependency] = []
    alone: dict[int, set[str]] = {}  # kept column → what it determines by itself
    for row in rows:  # single columns come before pairs
        pairs, (first, *second) = open_pairs[row[_AT]], candidates[row[_AT]]
        holds = tuple(
            quasi_identifiers[other]
            for other in pairs
            if other >= 0 and not row[f"differs_{other}"] and not row[f"constant_{other}"]
        )
        if second:
            more = tuple(name for name in holds if name not in alone.get(first, set()) | alone.get(second[0], set()))
            if more and row["repeated"]:
                dependencies.append(Dependency(kept[first], more, "determines", kept[second[0]]))
            continue
        alone[first] = set(holds)
        if -1 in pairs and row["most"] == 1 and row["values"] > 1:
            dependencies.append(Dependency(kept[first], holds, "identifier"))
        elif holds:
            dependencies.append(Dependency(kept[first], holds, "determines"))
    return dependencies
