"""What models of a sensitive column cost: the whole front of Adult under each of them, beside the front without."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.errors import ConfigurationError
from anon_spark.families.lattice.anonymizer import GUIDED_TUPLES
from anon_spark.families.lattice.exact import exact_front
from anon_spark.families.lattice.scores import Scores
from anon_spark.kernels.models import Conditions
from anon_spark.metrics.glm import GeneralLoss
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import lattice_of
from anon_spark.primitives.classes import count_tuples, counting
from anon_spark.primitives.classes.counting import marginals
from anon_spark.primitives.rounds import Workspace
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import timed
from jobs.benchmarks.small.main import ADULT, kept
from jobs.markdown import table

SIZES: tuple[int, ...] = ()  # no growth here
TIMES = 3
K = 5
SENSITIVE = "salary-class"
MOST_TIMES = 3.0  # the time without a model
MODELS: Mapping[str, Model] = {
    str(model): model
    for model in (
        DistinctL(2),
        EntropyL(1.5),
        RecursiveCL(4, 2),
        TCloseness(0.2),
        BetaLikeness(1),
        BetaLikeness(1, enhanced=True),
        DeltaDisclosure(1.5),
    )
}
NO_MODEL = "none"


def report(_: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Fronts under each model, as Markdown."""
    if options.data is None:
        raise ConfigurationError("models: --data names the folder that holds adult/.")
    spark = make_session("anon-spark models")
    parts = [
        f"### Fronts of Adult under a model of {SENSITIVE} (eight attributes, GLM; medians of {TIMES} searches; seconds)",
        f"The whole front by the exact search, distinct tuples counted before. Asked for: at most {MOST_TIMES:g} times the time "
        f"without a model, for entropy 1.5 and t = 0.2. Loss: the least with k = {K}.",
    ]
    for suppression in ("0", "0.01", "0.05"):
        parts.append(f"Suppression {float(suppression):.0%}:\n\n" + fronts(spark, options.data, Fraction(suppression)))
    return "\n\n".join(parts)


def fronts(spark: SparkSession, data: Path, suppression: Fraction) -> str:
    """A row per model: points, evaluated nodes, seconds, and the loss at K."""
    folder = data / "adult"
    df = spark.read.options(header="true", sep=";").csv(str(folder / "adult_arx.csv.gz"))
    names = [name for name in ADULT if name != SENSITIVE]
    files = {name: folder / "hierarchies" / "arx" / f"adult_hierarchy_{name}.csv" for name in names}
    trees = {name: Hierarchy.from_csv(str(file)) for name, file in files.items()}
    found: dict[str, tuple[float, int, int, float | None]] = {}
    with Workspace(spark) as workspace:
        for name, model in ((NO_MODEL, None), *MODELS.items()):
            asked = {} if model is None else {SENSITIVE: (model,)}
            counted = count_tuples(df, trees, workspace, models=asked)
            budget = int(suppression * counted.rows)
            loss = GeneralLoss(counted.rows, tuple(h.weight_total for h in counted.hierarchies), marginals(counted))
            lattice = lattice_of(counted.hierarchies)
            way = counting(counted, budget, workspace, conditions=Conditions(counted.sensitive))
            seconds = []
            for _ in range(TIMES + 1):  # the first compiles
                scores = Scores(lattice, way, loss)
                took, front = timed(partial(exact_front, scores, guided=counted.tuples >= GUIDED_TUPLES))
                seconds.append(took)
            least = [point.loss / loss.denominator for point in front if point.k >= K]
            found[name] = median(seconds[1:]), scores.evaluated, len(front), min(least, default=None)
    without = found[NO_MODEL][0]
    rows = [
        [name, str(points), str(evaluated), f"{took:.2f}", _times(name, took / without), "–" if least is None else f"{least:.4f}"]
        for name, (took, evaluated, points, least) in found.items()
    ]
    return table(["model", "points", "nodes evaluated", "seconds", "of none", "loss"], rows)


def _times(name: str, times: float) -> str:
    asked = name in (str(EntropyL(1.5)), str(TCloseness(0.2)))
    return f"{times:.1f}×" + (f" ({kept(times <= MOST_TIMES)})" if asked else "")
