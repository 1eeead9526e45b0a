"""What the gates of all families share: how a staged release is read, and what happens when it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.audit import Verdict
from anon_spark.columns import quoted
from anon_spark.errors import ConfigurationError, GuaranteeViolated

P = ParamSpec("P")
R = TypeVar("R")

UNREADABLE = "The audit cannot read the staged release, or what came with it, as the job describes it. Nothing was published."


def refusing(verify: Callable[P, R]) -> Callable[P, R]:
    """A release that cannot be read as one is refused like one that violates: exit 3 and a row in the run log.

    To the audit's own functions a missing column or a cut that is none is a wrong argument. In a run it is a fault of what
    was staged: the job was checked before.
    """

    @wraps(verify)
    def gated(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return verify(*args, **kwargs)
        except ConfigurationError as error:
            raise GuaranteeViolated(f"{UNREADABLE} {error}", checks=["readable"]) from error
        except AnalysisException as error:  # its text may hold more than names
            raise GuaranteeViolated(UNREADABLE, checks=["readable"]) from error

    return gated


def shown(staged: DataFrame, published: Sequence[str]) -> DataFrame:
    """What a run would publish of a staged release: the columns that its recoding names, not those that the job does."""
    return staged.select(*(F.col(quoted(name)) for name in published))


def require_whole(columns: Verdict, release: DataFrame, wanted: Sequence[str]) -> None:
    """Raise unless all columns are there that other checks look at."""
    if set(wanted) - set(release.columns) or len(set(release.columns)) < len(release.columns):
        columns.require()
