"""Sort keys for the order of Gray codes, in which similar item sets are near each other."""

from __future__ import annotations

import numpy as np

from anon_spark.kernels.classes import Codes, Ints


def gray_keys(offsets: Ints, codes: Codes, last: int) -> tuple[Ints, Codes]:
    """The Gray sort key of each record: its positions with alternating signs and an end mark.

    Record r has the ascending codes[offsets[r] : offsets[r + 1]]; `last` is above every code + 1. The result has the
    same form, one number longer for each record.
    """
    size = np.diff(offsets)
    longer = offsets + np.arange(offsets.size)
    keys = np.empty(longer[-1], dtype=np.int32)
    place = np.arange(codes.size) - np.repeat(offsets[:-1], size)
    keys[np.arange(codes.size) + np.repeat(np.arange(size.size), size)] = np.where(place % 2, codes + 1, -(codes + 1))
    keys[longer[1:] - 1] = np.where(size % 2, last, -last)
    return longer, keys
