"""About how long a run takes, from measured runs of the samples.

A rough answer, to tell minutes from hours: other columns, hierarchies and settings can make a run several times as long or short.
`jobs/benchmark.py times` measures again, and compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

from pyspark.sql import SparkSession

from anon_spark.engine import tasks_at_once

CORES = 2  # of the machine that was measured
MEASURED: Mapping[str, Sequence[tuple[int, float]]] = {  # rows, and seconds of the run of a sample in a new session
    "lattice": ((30_000, 35), (1_000_000, 108)),
    "mst": ((30_000, 40), (1_000_000, 202)),
    "relational_transaction": ((6_000, 57), (1_000_000, 249)),
    "set_valued": ((6_000, 55), (1_000_000, 383)),
    "tree": ((6_000, 66), (100_000, 205), (1_000_000, 1_425)),
}


def expected_seconds(family: str, rows: int, at_once: int) -> float:
    """Seconds of a run of so many rows, where so many tasks run at a time.

    Between two measured sizes along the line of their logarithms, beyond the last in proportion to the rows. The time of the
    smallest size is planning for the most part, which more cores do not shorten.
    """
    points = MEASURED[family]
    least = points[0][1]
    if rows <= points[0][0]:
        return least
    if rows >= points[-1][0]:
        seconds = points[-1][1] * rows / points[-1][0]
    else:
        at = next(place for place, (size, _) in enumerate(points) if size > rows)
        (few, short), (many, long) = points[at - 1], points[at]
        share = log(rows / few) / log(many / few)
        seconds = exp(log(short) + share * log(long / short))
    return least + max(0.0, seconds - least) * CORES / at_once


def spoken(seconds: float) -> str:
    """About how long, in the unit that people would say: seconds to tens, minutes and hours to whole ones."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} seconds"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60):,} minutes"
    return f"about {round(seconds / 3600):,} hours"


def expectation(family: str, rows: int, spark: SparkSession) -> str:
    """What a plan says of the time of a run."""
    at_once = tasks_at_once(spark)
    where = f"on {CORES} cores" if at_once is None else f"on this session, which runs {at_once} tasks at a time"
    return f"{spoken(expected_seconds(family, rows, at_once or CORES))} {where}"
