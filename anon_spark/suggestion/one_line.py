"""k-anonymity in one line, with suggested hierarchies."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import overload

import pandas as pd
from pyspark.sql import DataFrame

from anon_spark.auditing import verify
from anon_spark.errors import ConfigurationError
from anon_spark.families.arguments import spark_frame
from anon_spark.families.mst.anonymizer import MstAnonymizer
from anon_spark.model.guarantee import KAnonymity
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.suggestion import suggest


@overload
def anonymize(
    df: DataFrame, k: int = 10, quasi: Sequence[str] | None = None, *, sensitive: Sequence[str] = (), keep: Sequence[str] = (),
    suppression: float = 0.0,
) -> DataFrame: ...  # fmt: skip
@overload
def anonymize(
    df: pd.DataFrame, k: int = 10, quasi: Sequence[str] | None = None, *, sensitive: Sequence[str] = (), keep: Sequence[str] = (),
    suppression: float = 0.0,
) -> pd.DataFrame: ...  # fmt: skip
def anonymize(
    df: DataFrame | pd.DataFrame,
    k: int = 10,
    quasi: Sequence[str] | None = None,
    *,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    suppression: float = 0.0,
) -> DataFrame | pd.DataFrame:
    """A k-anonymous copy of a table: hierarchies are suggested, and the result is verified before it is returned.

    quasi: columns that others may know of a person; None: those that `suggest` finds. Only quasi, sensitive and keep are in the
    result, the last two unchanged, and the order of its rows tells nothing of the table's. A pandas table comes back as one.
    Guarantee: k rows in every class of the quasi-identifiers, verified by the audit's code, else GuaranteeViolated. A table in
    which a person has several rows is refused where a column shows it: k rows may then be one person's.
    Not covered: what a whole class shares, kept columns that somebody knows, other tables of the same people, and whether every
    value is true. A job file has all of that audited, and a report.
    Cost: two reads for the suggestion, one fit of the family mst, one pass for the check.
    """
    frame = spark_frame(df)
    found = suggest(frame, quasi=quasi, sensitive=sensitive, keep=keep, family="mst", look_ahead=False)
    persons = found.named("person")
    if persons:
        raise ConfigurationError(
            f"{persons[0]} tells persons apart, and some have several rows: k rows may be one person's. Combine their rows, or "
            f"use LatticeAnonymizer(person={persons[0]!r}, …) or a job file, which count persons."
        )
    hierarchies = found.quasi_identifiers
    fitted = MstAnonymizer(
        k=k, quasi_identifiers=hierarchies, sensitive=list(sensitive), keep=list(keep), suppression=suppression
    ).fit(frame)
    release = fitted.transform(frame)
    verify(release, KAnonymity(k, tuple(hierarchies))).require()
    mixed = shuffled(release, key_frame(frame.sparkSession, secrets.token_hex(16)), release.columns)
    return mixed.toPandas() if isinstance(df, pd.DataFrame) else mixed
