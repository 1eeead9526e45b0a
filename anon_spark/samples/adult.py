"""The UCI Adult table, if available: only benchmarks and reproductions read it, from a given path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.samples.census import EDUCATION, RACE, SEX, WORKCLASS, Groups

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours", "country", "salary",
)  # fmt: skip
MST_QUASI_IDENTIFIERS = ("age", "workclass", "sex", "education", "race", "occupation")
OCCUPATION: Groups = {
    ("White-collar",): "Exec-managerial Prof-specialty Adm-clerical Sales Tech-support",
    ("Blue-collar",): "Craft-repair Machine-op-inspct Handlers-cleaners Transport-moving Farming-fishing",
    ("Service",): "Other-service Priv-house-serv Protective-serv Armed-Forces",
}


def adult(spark: SparkSession, data: Path) -> DataFrame:
    """The 30,162 complete rows of `data`/adult/adult.data.gz, columns named like those of the synthetic census."""
    path = data / "adult" / "adult.data.gz"
    if not path.is_file():
        raise ConfigurationError(f"{path} is not there. Give the folder that holds adult/adult.data.gz.")
    schema = ", ".join(f"{name} string" for name in COLUMNS)
    raw = spark.read.csv(str(path.absolute()), schema=schema, sep=",", ignoreLeadingWhiteSpace=True)
    complete = F.lit(True)
    for name in COLUMNS:
        complete = complete & F.col(name).isNotNull() & (F.col(name) != "?")
    return raw.where(complete).withColumn("age", F.col("age").cast("int"))


def mst_hierarchies() -> dict[str, Hierarchy]:
    """The hierarchies of the six quasi-identifiers of MSTK, heights 4, 3, 1, 4, 2, 2: a lattice of 1,800 nodes.

    The paper gives only heights and numbers of values. These are `census_hierarchies`, with one more level that separates
    degrees from the rest and one that separates white from the rest.
    """
    education: Groups = {
        (*above, "Degree" if "Degree" in above else "No-degree"): leaves for above, leaves in EDUCATION.items()
    }
    white, *others = RACE[()].split()
    race: Groups = {("White",): white, ("Non-white",): " ".join(others)}
    groups = (WORKCLASS, SEX, education, race, OCCUPATION)
    return {"age": _anchored_intervals(17, 90, 15, [5, 10, 40])} | {
        name: Hierarchy.from_levels([(leaf, *above, "*") for above, leaves in tree.items() for leaf in leaves.split()])
        for name, tree in zip(MST_QUASI_IDENTIFIERS[1:], groups, strict=True)
    }


def _anchored_intervals(first: int, last: int, anchor: int, widths: Sequence[int]) -> Hierarchy:
    """Whole numbers, above them closed intervals that begin at `anchor` plus multiples of a width, clipped to the domain.

    `Hierarchy.intervals` lets its intervals begin at the first number.
    """
    numbers = np.arange(first, last + 1)
    spans = [(numbers, numbers)]
    codes = [numbers - first]
    labels = [tuple(str(number) for number in numbers)]
    for width in widths:
        index = (numbers - anchor) // width
        lows = anchor + width * np.unique(index)
        spans.append((np.maximum(lows, first), np.minimum(lows + width - 1, last)))
        codes.append(index - index[0])
        labels.append(tuple(f"[{low}, {high}]" for low, high in zip(*spans[-1], strict=True)))
    spans.append((numbers[:1], numbers[-1:]))
    codes.append(numbers * 0)
    return Hierarchy(
        kind="number",
        keys=labels[0],
        codes=np.stack(codes).astype(np.int32),
        labels=(*labels, ("*",)),
        leaves_below=tuple(np.bincount(code).astype(np.int64) for code in codes),
        weights=tuple((high - low).astype(np.int64) for low, high in spans),
        weight_total=last - first,
        bounds=tuple((low.astype(np.float64), high.astype(np.float64)) for low, high in spans),
    )
