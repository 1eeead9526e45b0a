"""The check that a secret draw was made with the run's key, and with no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import shake_256

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import BLOCK, CHOSEN, PART, ROUND

PURPOSE = "choice"  # which of a part's rounds is taken
_WORDS_AT_ONCE = 64


def verify_draw(edges: DataFrame, used: str, handed: str | None) -> Verdict:
    """Whether the key that the run handed to the fit chose the round of every part of the graph.

    edges: the graph with its rounds; used: the key that the recoding says it drew with; handed: the run's.
    Guarantee: passed iff both keys are the same, and the draws are made anew here. Cost: one job, two shuffles of the edges.
    """
    taken = F.coalesce(F.max(F.when(F.col(CHOSEN), F.col(ROUND))), F.lit(-1))
    parts = edges.groupBy(BLOCK, PART).agg(taken.alias(ROUND), F.count_distinct(ROUND).alias(CHOSEN))

    def compare(table: pa.Table) -> pa.Table:
        table = table.sort_by(PART)
        drawn = taken_rounds(handed or "", int(table.column(BLOCK)[0].as_py()), np.asarray(table.column(CHOSEN)).tolist())
        other = np.array(drawn, dtype=np.int64) != np.asarray(table.column(ROUND), dtype=np.int64)
        return pa.table({"parts": [table.num_rows], "other": [int(other.sum())]})

    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("parts", "other")]
    counts = parts.groupBy(BLOCK).applyInArrow(compare, "parts long, other long").agg(*sums).collect()[0]
    return draw_verdict(counts["parts"], counts["other"], used, handed)


def draw_verdict(parts: int, other: int, used: str, handed: str | None) -> Verdict:
    """The verdict on so many parts, of which others have a round that the handed key did not choose."""
    counts = {"parts": parts, "other": other}
    same = handed is not None and used == handed
    passed = same and counts["parts"] > 0 and counts["other"] == 0
    detail = f"the run's key chose the rounds of {counts['parts']} parts."
    if not passed:
        wrong = counts["other"] if same else counts["parts"]
        detail = f"{wrong} of {counts['parts']} parts have a round of another key's choice."
    return Verdict("draw", passed, 0 if passed else max(1, counts["other"]), counts["parts"], detail, kind=Kind.DRAW)


def taken_rounds(key: str, block: int, rounds: Sequence[int]) -> list[int]:
    """The round that a key chooses in each part of a block; rounds: how many each has, by ascending part."""
    numbers = _numbers(key, block)
    return [_below(bound, numbers) for bound in rounds]


def _numbers(key: str, block: int) -> Iterator[int]:
    """The stream of 64-bit numbers that a key gives a block: shake-256 over key, purpose and block, each with its length."""
    seed = b"".join(len(part).to_bytes(8, "big") + part for part in (key.encode(), PURPOSE.encode())) + block.to_bytes(8, "big")
    count, at = _WORDS_AT_ONCE, 0
    while True:
        words = np.frombuffer(shake_256(seed).digest(8 * count), dtype="<u8")
        yield from map(int, words[at:])
        count, at = 2 * count, count


def _below(bound: int, numbers: Iterator[int]) -> int:
    """A number from 0 to bound - 1, all exactly as likely: numbers above the last whole multiple are skipped."""
    return next(number for number in numbers if number < 2**64 - 2**64 % bound) % bound
