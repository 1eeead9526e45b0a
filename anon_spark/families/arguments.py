"""Arguments of the public functions and anonymizers, checked with advice, and what all anonymizers share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.ranges import FreeRange
from anon_spark.report.notebook import shown_table

LISTS = ("sensitive", "keep", "transactions")
NAMES = ("person", "items", "class_column")
EXAMPLE = "{'age': Hierarchy.intervals(0, 99, [5, 10])}"
THROUGH_SPARK = "The pandas table goes through Spark: it is copied to the session's workers, and results come from there."


class Anonymizer:
    """What all anonymizers share: they are frozen dataclasses with `fit`."""

    def fit_transform(self, df: DataFrame, **more: Any) -> DataFrame:
        """The release of a table: `fit(df).transform(df)`. Only an audit shows that it keeps the guarantee: see `verify`."""
        frame = spark_frame(df)
        recoding = self.fit(frame, **more)  # type: ignore[attr-defined]
        release: DataFrame = recoding.transform(frame)
        return release

    def _repr_html_(self) -> str:
        return shown_table(type(self).__name__, shown_arguments(self))


def shown_arguments(anonymizer: Any) -> dict[str, str]:
    """The arguments that were given, and the defaults that are not empty, as texts."""
    shown = {}
    for entry in fields(anonymizer):
        value = getattr(anonymizer, entry.name)
        if not entry.repr or value is None or value in ((), [], {}):
            continue
        if isinstance(value, Mapping):
            value = ", ".join(f"{name}: {_short(part)}" for name, part in value.items())
        elif isinstance(value, list | tuple):
            value = ", ".join(map(str, value))
        shown[entry.name] = str(value)
    return shown


def _short(value: object) -> str:
    if isinstance(value, Hierarchy):
        return f"{value.leaf_count:,} values, {value.height} levels above"
    if isinstance(value, Rule):
        return f"rule {value.to_dict()['rule']}"
    return str(value)


def check_arguments(anonymizer: Any) -> None:
    """Refuse arguments of a wrong kind, and say what to give instead."""
    known = {entry.name: entry.default for entry in fields(anonymizer)}
    for name in (name for name in LISTS if name in known and known[name] is not None):  # None: one column, or none
        value = getattr(anonymizer, name)
        if isinstance(value, str):
            raise ConfigurationError(f"{name}: give a list of columns, such as [{value!r}].")
        if not all(isinstance(column, str) for column in value):
            raise ConfigurationError(f"{name}: give names of columns.")
    for name in (name for name in (*NAMES, *LISTS) if name in known and (name in NAMES or known[name] is None)):
        value = getattr(anonymizer, name)
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{name}: give the name of one column.")
    if "quasi_identifiers" in known:
        check_hierarchies(anonymizer.quasi_identifiers)


def check_hierarchies(quasi_identifiers: object) -> None:
    """Refuse quasi-identifiers that are no mapping of columns to hierarchies."""
    if not isinstance(quasi_identifiers, Mapping):
        raise ConfigurationError(
            f"quasi_identifiers: give a mapping of columns to hierarchies, such as {EXAMPLE}. "
            "suggest(df, quasi=[…]).quasi_identifiers makes one from a list of columns."
        )
    for name, hierarchy in quasi_identifiers.items():
        if not isinstance(hierarchy, Hierarchy | Rule | FreeRange):
            raise ConfigurationError(
                f"quasi_identifiers: {name} needs a Hierarchy, not {type(hierarchy).__name__}. Hierarchy.intervals, mask, dates, "
                "from_levels, from_csv or top make one."
            )


def spark_frame(df: object, what: str = "df") -> DataFrame:
    """The table as a Spark DataFrame. One of pandas is copied to Spark, with a warning; anything else is refused with advice."""
    if isinstance(df, DataFrame):
        return df
    if isinstance(df, pd.DataFrame):
        session = SparkSession.getActiveSession()
        if session is None:
            raise ConfigurationError(f"{what}: a pandas table goes through Spark. Start a session first: anon_spark.session().")
        warnings.warn(THROUGH_SPARK, UserWarning, stacklevel=3)
        try:
            return session.createDataFrame(df)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{what}: Spark cannot tell the types of this pandas table. Give each column one type, such as df.astype(str)."
            ) from error
    if isinstance(df, str | PathLike):
        raise ConfigurationError(
            f"{what}: a table is needed, not its name. Read it first, as in spark.read.format('delta').load(path), "
            "or run a job file: anon_spark.run('people.yaml')."
        )
    raise ConfigurationError(f"{what}: a Spark or pandas DataFrame is needed, not {type(df).__name__}.")
