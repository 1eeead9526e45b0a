"""UL, the utility loss of records with generalized items: Σ (2^size − 1) over the generalized items that are no single
items, divided by 2^(all sizes) − 1.

Numerator and denominator are both divided by 2^(all sizes): nothing overflows, and what is too small to matter becomes 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.compiled import compiled

Floats = NDArray[np.float64]

SMALLEST_POWER = 1074


def record_losses(offsets: Ints, items: Codes, image: Codes, size: Ints) -> Floats:
    """UL of each record: image[item] is the generalized item, size[image] how many items that stands for.

    Guarantee: 0 for records without generalized items of several, 1 for those with nothing but one; any sizes.
    Cost: all items once.
    """
    return losses_of(offsets, items, image, size.astype(np.int64, copy=False))


@compiled
def losses_of(offsets: Ints, items: Codes, image: Codes, size: Ints) -> Floats:
    found = np.zeros(offsets.size - 1, dtype=np.float64)
    last_record = np.full(size.size, -1, dtype=np.int64)
    for record in range(found.size):
        together = 0
        for at in range(offsets[record], offsets[record + 1]):
            label = image[items[at]]
            if last_record[label] != record:
                last_record[label] = record
                together += size[label]
        share = 0.0
        for at in range(offsets[record], offsets[record + 1]):
            label = image[items[at]]
            if last_record[label] == record:
                last_record[label] = -1
                share += share_of(size[label], together)
        if share > 0:
            found[record] = share / (1.0 - half(together))
    return found


@compiled
def half(times: int) -> float:
    """2^−times."""
    return float(np.ldexp(1.0, -times)) if times <= SMALLEST_POWER else 0.0


@compiled
def share_of(size: int, together: int) -> float:
    """(2^size − 1) / 2^together, 0 for a single item."""
    return half(together - size) - half(together) if size > 1 else 0.0


@compiled
def loss_with_one(share: float, together: int, size: int, more: int) -> float:
    """UL of a record after its item of this size, no other, grew by `more` items. `share` is Σ share_of."""
    rest = (share - share_of(size, together)) * half(more)
    return (rest + half(together - size) - half(together + more)) / (1.0 - half(together + more))


@compiled
def loss_with_both(share: float, together: int, size: int, other: int) -> float:
    """UL of a record after two of its items, of these sizes, became one."""
    rest = share - share_of(size, together) - share_of(other, together)
    return (rest + half(together - size - other) - half(together)) / (1.0 - half(together))
