"""Limits of a job: the largest findings with which a release that passed every check is still published."""

from __future__ import annotations

from pydantic import Field

from anon_spark.config.spec import Spec


class LimitsSpec(Spec):
    """Limits as shares from 0 to 1; if a release exceeds one, nothing is published."""

    unique: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description="Greatest share of rows that are unique on all published columns that are not sensitive.")
    loss: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False, description="Greatest loss of detail, by the family's own measure.")
    homogeneous: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description="Greatest share of rows in classes whose rows all have one sensitive value.")
    republication: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description="Greatest share of people whom a replaced release and the new one single out together: fewer than k "
        "candidates, fewer than k newcomers, or one common sensitive value. A run for which it is unknown is refused, too.")
