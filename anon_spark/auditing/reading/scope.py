"""The rows of the source that a run works on: those that no policy on nulls or unseen values drops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.recode import KEPT, STATUS, Climb, with_codes, with_scope
from anon_spark.auditing.reading.values import exact, private, quoted, require_columns
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy


def rows_in_scope(
    source: DataFrame,
    hierarchies: Mapping[str, Hierarchy | tuple[Hierarchy, int]],
    nulls: str,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The source's rows that are published or suppressed, as they are.

    hierarchies: of each quasi-identifier, complete, perhaps with its published level, which does not matter here; nulls: what
    the run does with a null quasi-identifier (`suppress` drops the row); columns: those that are needed, default all.
    Guarantee: a row is left out iff a quasi-identifier has a value that its hierarchy does not know or, under `suppress`, is
    null or NaN.
    Cost: one broadcast join per quasi-identifier (see `with_found`); no action.
    """
    if nulls not in ("value", "suppress"):
        raise ConfigurationError("nulls must be 'value' or 'suppress'.")
    kept = list(source.columns if columns is None else columns)
    require_columns(source, [*hierarchies, *kept], "source")
    raw = [private(f"raw_{at}") for at in range(len(hierarchies))]
    climbs = [
        Climb(raw[at], private(f"leaf_{at}"), known if isinstance(known, Hierarchy) else known[0], 0)
        for at, known in enumerate(hierarchies.values())
    ]
    rows = source.select(
        *(F.col(quoted(name)) for name in kept),
        *(exact(source, name).alias(raw[at]) for at, name in enumerate(hierarchies)),
        F.lit(KEPT).alias(STATUS),
    )
    scoped = with_scope(with_codes(rows, climbs), nulls) if climbs else rows
    return scoped.where(F.col(STATUS) == KEPT).select(*(F.col(quoted(name)) for name in kept))
