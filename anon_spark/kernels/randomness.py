"""Secret draws: streams of a keyed generator, one per purpose and block, independent of where a task runs."""

from __future__ import annotations

from hashlib import sha256, shake_256

import numpy as np

from anon_spark.kernels.bitmaps import Words
from anon_spark.kernels.classes import Ints

WORD_BYTES = 8


def derived(key: str, purpose: str) -> str:
    """A separate key for a purpose; it reveals nothing about the other keys."""
    return sha256(f"{purpose}\n{key}".encode()).hexdigest()


def stream(key: str, purpose: str, block: int, count: int) -> Words:
    """The first `count` 64-bit words of a stream; a longer one begins with the shorter. The key determines all words."""
    seed = b"".join(len(part).to_bytes(8, "big") + part for part in (key.encode(), purpose.encode()))
    drawn = shake_256(seed + block.to_bytes(8, "big")).digest(WORD_BYTES * count)
    return np.frombuffer(drawn, dtype="<u8").astype(np.uint64)


def uniform(key: str, purpose: str, block: int, bounds: Ints) -> Ints:
    """One number from 0 to bound - 1 for each bound, exactly uniform."""
    numbers = np.empty(bounds.size, dtype=np.int64)
    words, at = stream(key, purpose, block, 2 * bounds.size), 0
    for position, bound in enumerate(bounds.tolist()):
        while True:
            if at == words.size:
                words = stream(key, purpose, block, 2 * words.size)
            word, at = int(words[at]), at + 1
            if word < 2**64 - 2**64 % bound:  # the rest of the range would favour small numbers
                numbers[position] = word % bound
                break
    return numbers
