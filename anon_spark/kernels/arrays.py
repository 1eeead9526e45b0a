"""What numba compiles slowly by itself, in plain loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import inner


@inner
def write(values: NDArray[np.number], into: NDArray[np.number]) -> None:
    """Copy the values, which must fit. `into[:] = values` brings the texts of its error along: seconds to compile."""
    for place in range(values.size):
        into[place] = values[place]
