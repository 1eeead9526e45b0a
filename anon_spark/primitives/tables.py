"""What every family asks of a table before it looks at a row."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from anon_spark.columns import is_reserved
from anon_spark.errors import ConfigurationError, did_you_mean


def require_columns(df: DataFrame, names: Sequence[str]) -> None:
    """Refuse columns that the table does not have, or that carry our own names."""
    missing = [name for name in names if name not in df.columns]
    if missing:
        hints = "".join(did_you_mean(name, df.columns) for name in missing)
        raise ConfigurationError(f"Columns not found: {', '.join(missing)}.{hints}", missing=missing)
    reserved = [name for name in names if is_reserved(name)]
    if reserved:
        raise ConfigurationError(f"Reserved column names: {', '.join(reserved)}. Rename them.", reserved=reserved)
