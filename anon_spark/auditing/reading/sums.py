"""Sums that verifiers take over the rows of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

FAULTY = "faulty"


def total(condition: Column, value: Column) -> Column:
    """The sum of a value where a condition holds; 0 of nothing."""
    return F.coalesce(F.sum(F.when(condition, value).otherwise(F.lit(0))), F.lit(0)).cast("long")


def sum_of(name: str) -> Column:
    """The sum of a whole column, under its name; 0 of nothing."""
    return total(F.lit(True), F.col(name)).alias(name)


def fault_sums(faults: Mapping[str, Column]) -> list[Column]:
    """Counts of rows with any fault, as FAULTY, and with each fault, under its name."""
    return [
        total(reduce(or_, faults.values()), F.lit(1)).alias(FAULTY),
        *(total(fault, F.lit(1)).alias(name) for name, fault in faults.items()),
    ]
