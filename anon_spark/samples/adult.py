"""The UCI Adult table, for those who have it: benchmarks and reproduction take the path, nothing else needs it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours", "country", "salary",
)  # fmt: skip


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
