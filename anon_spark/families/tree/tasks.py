"""Many records: they lie in packed blocks that tasks read, and one job answers all questions of a round.

A task counts its records for every question and sends its counters in parts, by label sets; each part is added up and judged
where it lands, so that the driver sees violations, not counts.
"""

from __future__ import annotations

import json
from collections import Counter as Counted
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import comb, fsum
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from anon_spark.columns import PREFIX
from anon_spark.families.tree.counting import (
    MOST_LISTED,
    Asked,
    Counter,
    Indexed,
    LocalCounter,
    Promise,
    Synopses,
    Tally,
    answer_of,
    counted,
    recoded,
)
from anon_spark.families.tree.kept import share_lost, sums_of
from anon_spark.families.tree.kernels.counting import merged
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.synopsis import (
    Shares,
    Synopsis,
    merged_synopses,
    record_rpd,
    rpd_a_of,
    shares_of,
    split,
)
from anon_spark.families.tree.kernels.trees import Trees, concatenated, packed, unpacked
from anon_spark.families.tree.records import LABELS, PARENTS, Records, trees_in
from anon_spark.families.tree.structure import Answer, Rare
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.utility import Floats
from anon_spark.primitives.rounds import Workspace, collect_small

LOCAL_NODES = 2**21
"""Up to so many nodes the records are counted where the search runs: 16 MiB, and no job per round."""
TASK_NODES = 2**22
"""Nodes that a task holds at once."""
BLOCK_NODES = 2**18
PARTS = 8
"""Parts of the counters of one question."""
USES = -1
"""Part of what is no counter: the records that each disassociation changed, or sums of loss."""
CONTENT = PREFIX + "content"
QUESTION, PART, KEYS, COUNTS, FOUND = (PREFIX + name for name in ("question", "part", "keys", "counts", "found"))
COUNTED = f"{QUESTION} int, {PART} int, {KEYS} binary, {COUNTS} binary"
JUDGED = f"{QUESTION} int, {FOUND} string"


def counter_of(records: Records, promise: Promise, workspace: Workspace) -> Counter:
    """Counts few records here, many in tasks. Cost: one pass over the records, and a write of the blocks if many."""
    blocks = records.frame.select(LABELS, PARENTS).mapInArrow(_packing, f"{CONTENT} binary")
    if records.nodes <= LOCAL_NODES:
        table = collect_small(blocks, records.count, "Blocks of records")
        return LocalCounter(concatenated([unpacked(block.as_py()) for block in table.column(0)]), promise)
    return TaskCounter(workspace.store(blocks, "blocks"), records.count, promise)


@dataclass
class TaskCounter:
    """Records in blocks. Cost of answers: one job, one shuffle of the counters that are not zero."""

    blocks: DataFrame
    records: int
    promise: Promise

    kind = "tasks"

    def answers(self, asked: Sequence[Asked]) -> list[Answer | float]:
        counted = self.blocks.mapInArrow(_counting(asked, self.promise), COUNTED)
        judged = counted.groupBy(QUESTION, PART).applyInArrow(_judging(asked, self.promise), JUDGED)
        table = collect_small(judged, len(asked) * (PARTS + 2), "Answers to a round of questions")
        parts: list[list[dict[str, Any]]] = [[] for _ in asked]
        for row in table.to_pylist():
            parts[row[QUESTION]].append(json.loads(row[FOUND]))
        return [
            self._loss(question, answered) if question.factors is not None else _answer(answered, question)
            for question, answered in zip(asked, parts, strict=True)
        ]

    def _loss(self, asked: Asked, parts: Sequence[Mapping[str, Any]]) -> float:
        if asked.cost == "rpd":
            return fsum(value for part in parts for value, in part["sums"]) / self.records
        if asked.cost == "ncp":
            rows = [row for part in parts for row in part["sums"]]
            return share_lost(np.array([fsum(column) for column in zip(*rows, strict=True)]))
        kinds = (np.int32, np.int32, np.int64, np.float64, np.float64, np.int64, np.int64)
        return rpd_a_of([Shares(*(np.array(v, dtype=k) for v, k in zip(part["shares"], kinds, strict=True))) for part in parts])


def _answer(parts: Sequence[Mapping[str, Any]], asked: Asked) -> Answer:
    """The parts of an answer together."""
    sizes: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for part in parts:
        for labels, relations, pairs in part.get("sizes", []):
            sizes.setdefault((labels, relations), set()).update((a, b) for a, b in pairs)
    uses = [part["used"] for part in parts if "used" in part]
    return Answer(
        values=sum(part.get("values", 0) for part in parts),
        diversity=sum(part.get("diversity", 0) for part in parts),
        sizes={size: sorted(pairs) for size, pairs in sizes.items()},
        supports={(a, b): times for part in parts for a, b, times in part.get("supports", [])},
        used=tuple(uses[0]) if uses else (0,) * len(asked.pairs),
        rare=_rare([part["rare"] for part in parts if "rare" in part]) if asked.listed else None,
    )


def _rare(parts: Sequence[Sequence[Any]]) -> Rare:
    """The rare sets of all parts: in their order, as many as one count of all would list."""
    sets = sorted((tuple(labels) for part in parts for labels in part[0]), key=lambda labels: (len(labels), labels))
    times: Counted[int] = Counted()
    supports: dict[int, int] = {}
    for _, numbers, single in parts:
        times.update(dict(numbers))
        supports |= dict(single)
    return Rare(sets[:MOST_LISTED], dict(times), supports)


# --- in tasks ----------------------------------------------------------------------------------------------------------


def _packing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for several in _until((trees_in(pa.Table.from_batches([batch])) for batch in batches), BLOCK_NODES):
        yield pa.RecordBatch.from_arrays([pa.array([packed(several)], pa.binary())], names=[CONTENT])


def _until(parts: Iterable[Trees], nodes: int) -> Iterator[Trees]:
    """Parts put together until they have so many nodes."""
    waiting: list[Trees] = []
    for part in parts:
        waiting.append(part)
        if sum(trees.labels.size for trees in waiting) >= nodes:
            yield concatenated(waiting)
            waiting = []
    if waiting:
        yield concatenated(waiting)


def _counting(asked: Sequence[Asked], promise: Promise) -> Any:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = (unpacked(block.as_py()) for batch in batches for block in batch.column(0))
        for trees in _until(blocks, TASK_NODES):
            synopses = Synopses(Indexed.of(trees, promise.secrets.size))
            synopses.keep(asked)
            for number, question in enumerate(asked):
                if question.factors is None:
                    yield from tallied(number, question, synopses.records)
                else:
                    yield from costed(number, question, synopses, question.factors)

    def costed(number: int, question: Asked, synopses: Synopses, factors: Floats) -> Iterator[pa.RecordBatch]:
        nothing: Ints = np.zeros(0, dtype=np.int64)
        trees = synopses.records.trees
        if question.cost == "rpd_a":
            for part, cut in split(synopses.of(question), PARTS):
                yield _row(number, part, np.concatenate([cut.labels, cut.parents]).view(np.int64), cut.counts)
        elif question.cost == "rpd":
            images, weights, _ = recoded(synopses.records, question)
            yield _row(number, USES, nothing, np.array([record_rpd(images, factors) @ weights]))
        else:
            sums = sums_of(trees, question.slots.image, question.top, question.pairs, factors)
            yield _row(number, USES, nothing, sums)

    def tallied(number: int, question: Asked, records: Indexed) -> Iterator[pa.RecordBatch]:
        keys, counts, used = counted(records, question, promise)
        if used.size:
            yield _row(number, USES, np.zeros(0, dtype=np.int64), used)
        borders = np.searchsorted(keys, _borders(question, promise))
        for part, (begin, end) in enumerate(zip([0, *borders], [*borders, keys.size], strict=True)):
            if end > begin:
                yield _row(number, part, keys[begin:end], counts[begin:end])

    return count


def _judging(asked: Sequence[Asked], promise: Promise) -> Any:
    def judge(table: pa.Table) -> pa.Table:
        number, part = table.column(QUESTION)[0].as_py(), table.column(PART)[0].as_py()
        question = asked[number]
        keys = [np.frombuffer(value.as_py(), np.int64) for value in table.column(KEYS)]
        if question.factors is not None and question.cost != "rpd_a":
            sums = [np.frombuffer(value.as_py(), np.float64).tolist() for value in table.column(COUNTS)]
            answer: dict[str, Any] = {"sums": sums}
        else:
            counts = [np.frombuffer(value.as_py(), np.int64) for value in table.column(COUNTS)]
            if question.factors is not None:
                cuts = [Synopsis(*_halves(arrays), times.copy()) for arrays, times in zip(keys, counts, strict=True)]
                shares = shares_of(merged_synopses(cuts), question.factors)
                answer = {"shares": [array.tolist() for array in shares]}
            elif part == USES:
                answer = {"used": reduce(np.add, counts).tolist()}
            else:
                whole = Tally(*merged(list(zip(keys, counts, strict=True))), np.zeros(0, np.int64))
                answer = _plain(answer_of(question, whole, promise))
        return pa.table({QUESTION: pa.array([number], pa.int32()), FOUND: [json.dumps(answer)]})

    return judge


def _plain(answer: Answer) -> dict[str, Any]:
    """One part's answer as it travels to the driver."""
    rare = answer.rare
    return {
        "values": answer.values,
        "diversity": answer.diversity,
        "sizes": [[*size, pairs] for size, pairs in answer.sizes.items()],
        "supports": [[*pair, times] for pair, times in answer.supports.items()],
        **({} if rare is None else {"rare": [rare.sets, list(rare.times.items()), list(rare.supports.items())]}),
    }


def _row(number: int, part: int, keys: Ints, counts: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([number], pa.int32()),
            pa.array([part], pa.int32()),
            pa.array([keys.tobytes()], pa.binary()),
            pa.array([np.asarray(counts).tobytes()], pa.binary()),
        ],
        names=[QUESTION, PART, KEYS, COUNTS],
    )


def _borders(asked: Asked, promise: Promise) -> Ints:
    """First keys of the parts but the first: sets of up to two labels are one part, a larger set is never divided."""
    layout = Layout.of(asked.slots.count, asked.sizes, int(promise.secrets.max(initial=0)))
    largest = layout.m
    if largest < 3:
        return np.zeros(0, dtype=np.int64)
    sets = comb(layout.c, largest)
    firsts = [int(layout.bases[3])]
    firsts += [int(layout.bases[largest]) + ((sets * part // (PARTS - 1)) << comb(largest, 2)) for part in range(1, PARTS - 1)]
    return np.array([first * (layout.secrets + 1) for first in firsts], dtype=np.int64)


def _halves(arrays: Ints) -> tuple[Codes, Codes]:
    """Labels and parents, which travel as one array."""
    labels, parents = arrays.view(np.int32).reshape(2, -1)
    return labels, parents
