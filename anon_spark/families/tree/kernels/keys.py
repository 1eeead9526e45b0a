"""The numbers of label sets with their relations.

The labels that count have slots 0 … c-1, ascending as labels do. One key stands for a set V of at most m slots, which pairs of
V are related, and a sensitive value or none. Keys ascend by the size of V, then V in lexicographic order, then the relations as
a mask, then the sensitive value: (base[s] + rank(V) · 2^C(s,2) + mask) · (S + 1) + secret, where bit C(j,2) + i of the mask
stands for the i-th and the j-th slot of V, i < j. The base of a size depends on smaller sizes alone: a key for sets of at most
m slots is the same for a larger m.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.errors import LimitExceeded
from anon_spark.families.tree.kernels.trees import NONE
from anon_spark.kernels.classes import Ints

KEY_LIMIT = 2**62


class Layout(NamedTuple):
    """The numbering of keys for sets of at most m of c slots, with S sensitive values (0: none are counted).

    bases[s]: the first number of sets of s slots. binomials[x, j] = C(x, j).
    """

    c: int
    m: int
    secrets: int
    bases: Ints
    binomials: Ints

    @classmethod
    def of(cls, c: int, m: int, secrets: int = 0) -> Layout:
        """Raises LimitExceeded where a key would not fit into 62 bits."""
        bases = [0]
        for size in range(m + 1):
            bases.append(bases[-1] + (comb(c, size) << comb(size, 2)))
        if bases[-1] * (secrets + 1) > KEY_LIMIT:
            raise LimitExceeded(
                f"Sets of m = {m} of {c:,} labels with their relations are too many to number. Lower m.",
                m=m,
                labels=c,
                sensitive=secrets,
            )
        binomials = [[comb(x, j) for j in range(m + 1)] for x in range(c + 1)]
        return cls(c, m, secrets, np.array(bases, dtype=np.int64), np.array(binomials, dtype=np.int64))

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return int(self.bases[-1]) * (self.secrets + 1)

    def sets_of(self, keys: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Of each key, ascending: the size of V, its slots (one row, ascending, then NONE), the mask, the secret (0: all)."""
        entries = decoded(self, keys)
        return entries.sizes, slots_of(self, entries), entries.masks, entries.secrets


class Entries(NamedTuple):
    """Keys, ascending, taken apart; rank: of V among the sets of its size."""

    sizes: Ints
    ranks: Ints
    masks: Ints
    secrets: Ints


@compiled
def decoded(layout: Layout, keys: Ints) -> Entries:
    sizes, ranks = np.empty(keys.size, dtype=np.int64), np.empty(keys.size, dtype=np.int64)
    masks, secrets = np.empty(keys.size, dtype=np.int64), np.zeros(keys.size, dtype=np.int64)
    size = 0
    for at in range(keys.size):
        number = keys[at]
        if layout.secrets > 0:
            number //= layout.secrets + 1
            secrets[at] = keys[at] - number * (layout.secrets + 1)
        while number >= layout.bases[size + 1]:
            size += 1
        number -= layout.bases[size]
        pairs = size * (size - 1) // 2
        sizes[at], ranks[at] = size, number >> pairs
        masks[at] = number & ((1 << pairs) - 1)
    return Entries(sizes, ranks, masks, secrets)


@compiled
def unrank(layout: Layout, size: int, rank: int, members: Ints) -> None:
    """Write the slots of the set with this rank, ascending."""
    slot = np.int64(0)
    for place in range(size):
        while rank >= layout.binomials[layout.c - 1 - slot, size - 1 - place]:
            rank -= layout.binomials[layout.c - 1 - slot, size - 1 - place]
            slot += 1
        members[place] = slot
        slot += 1


@compiled
def slots_of(layout: Layout, entries: Entries) -> Ints:
    slots = np.full((entries.sizes.size, layout.m), NONE, dtype=np.int64)
    for at in range(entries.sizes.size):
        unrank(layout, entries.sizes[at], entries.ranks[at], slots[at])
    return slots
