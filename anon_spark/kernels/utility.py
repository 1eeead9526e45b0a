"""UL, the utility loss of records: Σ (2^size − 1) over generalized items of several items, over 2^(all sizes) − 1.

Numerator and denominator are both divided by 2^(all sizes): nothing overflows, and negligible terms become 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Codes, Ints

Floats = NDArray[np.float64]

SMALLEST_POWER = 1074


def record_losses(offsets: Ints, items: Codes, image: Codes, size: Ints) -> Floats:
    """UL of each record: image[item] is the generalized item, size[image] how many items that stands for.

    Guarantee: 0 for records without a generalized item of several items, 1 for those with only one such item; any sizes.
    Cost: all items once.
    """
    return losses_of(offsets, items, image, size.astype(np.int64, copy=False))


@compiled
def losses_of(offsets: Ints, items: Codes, image: Codes, size: Ints) -> Floats:
    losses = np.zeros(offsets.size - 1, dtype=np.float64)
    last_record = np.full(size.size, -1, dtype=np.int64)
    for record in range(losses.size):
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
            losses[record] = share / (1.0 - half(together))
    return losses


@inner
def half(times: int) -> float:
    """2^−times."""
    return float(np.ldexp(1.0, -times)) if times <= SMALLEST_POWER else 0.0


@inner
def share_of(size: int, together: int) -> float:
    """(2^size − 1) / 2^together, 0 for a single item."""
    return half(together - size) - half(together) if size > 1 else 0.0


@inner
def loss_with_one(share: float, together: int, size: int, more: int) -> float:
    """UL of a record after one of its items, of this size, grew by `more` items. `share` is Σ share_of."""
    rest = (share - share_of(size, together)) * half(more)
    return (rest + half(together - size) - half(together + more)) / (1.0 - half(together + more))


@inner
def loss_with_both(share: float, together: int, size: int, other: int) -> float:
    """UL of a record after two of its items, of these sizes, became one."""
    rest = share - share_of(size, together) - share_of(other, together)
    return (rest + half(together - size - other) - half(together)) / (1.0 - half(together))
