"""Packing: codes of several columns in as few longs as possible, for shuffles and joins."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX

WORD = PREFIX + "word"


def word_names(words: Sequence[Column]) -> list[str]:
    return [f"{WORD}{index}" for index in range(len(words))]


def named_words(words: Sequence[Column]) -> list[Column]:
    return [word.alias(name) for word, name in zip(words, word_names(words), strict=True)]


def packed(codes: Sequence[str], cardinalities: Sequence[int]) -> list[Column]:
    """The codes packed into as few longs as possible: Spark probes one long much faster than many integers."""
    words: list[Column] = []
    free = 0
    for code, cardinality in zip(codes, cardinalities, strict=True):
        bits = max(1, (cardinality - 1).bit_length())
        value = F.col(code).cast("bigint")
        if bits > free:
            words.append(value)
            free = 62 - bits
        else:
            words[-1] = F.shiftleft(words[-1], bits).bitwiseOR(value)
            free -= bits
    return words
