"""The audit's own recoding against `Hierarchy.leaf_of`, for every kind of hierarchy and column."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing.reading.recode import KEPT, NULL, UNSEEN, Climb, with_codes, with_labels
from anon_spark.model.hierarchy import Hierarchy
from tests.auditing.town import frame

AGES = Hierarchy.intervals(17, 90, [3, 6])
GRID = Hierarchy.intervals("0.1", "1.1", ["0.1", "0.2"], exact=False)  # the last bin holds 1.1
DAYS = Hierarchy.dates(["month", "year"], "2020-01-30", "2020-03-02")
ZIPS = Hierarchy.from_levels([("1305", "13**", "*"), ("2750.50", "27**", "*"), ("a", "A", "*"), ("A", "B", "*")])
TRUTH = Hierarchy.from_levels([("true", "either"), ("false", "either")])  # a root with a name
assert isinstance(DAYS, Hierarchy)

NOON = datetime(2020, 2, 29, 12)
COLUMNS: dict[str, tuple[Hierarchy, pa.DataType, list[Any]]] = {
    "int": (AGES, pa.int32(), [17, 19, 20, 90, 91, 16, -17, None]),
    "long": (ZIPS, pa.int64(), [1305, 2750, 2**62, 0, -1305, 1, 2, None]),
    "no numbers": (TRUTH, pa.int64(), [1, 0, 5, -1, 7, 2, 3, None]),
    "spelled": (AGES, pa.string(), ["33", "33.00", " +33", "3.3e1", "33.5", "abc", "", None]),
    "odd": (AGES, pa.string(), ["033", "33d", "0x21", "NaN", "Infinity", "1e400", "33.0000001", "17."]),
    "double": (AGES, pa.float64(), [33.0, 33.5, math.nan, math.inf, 1e300, 17.0 - 1e-13, -0.0, None]),
    "decimal": (ZIPS, pa.decimal128(20, 3), [Decimal("2750.5"), Decimal("1305"), Decimal("2750.501"), None] + [Decimal(1)] * 4),
    "text": (ZIPS, pa.string(), ["a", "A", "1305", "1305.0", " a", "2750.50", "2750.5", None]),
    "bins": (GRID, pa.float64(), [0.1, 0.2, 0.30000000000000004, 0.3, 0.7999999999999999, 1.1, 1.1000001, 0.0999]),
    "spelled bins": (GRID, pa.string(), ["0.3", "0.30", "3e-1", "1.0", "1.10", "x", "0.2999999999999999", None]),
    "whole bins": (GRID, pa.int16(), [0, 1, 2, -1, 1, 1, 1, None]),
    "day": (DAYS, pa.date32(), [date(2020, 1, 30), date(2020, 2, 29), date(2020, 3, 3), None] + [date(2020, 3, 2)] * 4),
    "moment": (DAYS, pa.timestamp("us"), [NOON, None, datetime(2020, 1, 30), datetime(2020, 3, 2, 23, 59)] + [NOON] * 4),
    "said day": (DAYS, pa.string(), ["2020-02-29", "2020-02-30", "2020-02-29 10:00", "2020-2-9", "2020", "x", "", None]),
    "truth": (TRUTH, pa.bool_(), [True, False, None, True, False, True, False, True]),
    "truth as number": (AGES, pa.bool_(), [True, False, None, True, False, True, False, True]),
}


def expected(hierarchy: Hierarchy, value: Any, level: int) -> tuple[str | None, int]:
    """Label and status, from the definition."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return (hierarchy.labels[-1][0] if level == hierarchy.height else None), NULL
    leaf = hierarchy.leaf_of(value)
    return (None, UNSEEN) if leaf is None else (hierarchy.labels[level][int(hierarchy.codes[level, leaf])], KEPT)


@pytest.mark.parametrize("level", [pytest.param(1, marks=pytest.mark.long), "top"])
def test_every_value_finds_the_leaf_its_definition_says(spark: SparkSession, level: int | str) -> None:
    names = list(COLUMNS)
    rows = list(zip(*(values for _, _, values in COLUMNS.values()), strict=True))
    recoded = frame(spark, rows, names, [kind for _, kind, _ in COLUMNS.values()])
    recoded = recoded.withColumns({f"status {name}": F.lit(KEPT) for name in names})
    at = {name: hierarchy.height if level == "top" else 1 for name, (hierarchy, _, _) in COLUMNS.items()}
    recoded = recoded.coalesce(1).withColumn("at", F.monotonically_increasing_id())
    climbs = [
        Climb(name, f"label {name}", hierarchy, at[name], f"status {name}") for name, (hierarchy, _, _) in COLUMNS.items()
    ]
    recoded = with_labels(recoded, climbs)
    found = recoded.orderBy("at").collect()
    assert len(found) == len(rows)
    for name, (hierarchy, _, values) in COLUMNS.items():
        wanted = [expected(hierarchy, value, at[name]) for value in values]
        assert [(row[f"label {name}"], row[f"status {name}"]) for row in found] == wanted, name


def test_a_code_and_its_label_say_the_same(spark: SparkSession) -> None:
    hierarchy, kind, values = COLUMNS["spelled"]
    source = frame(spark, [(value,) for value in values], ["raw"], [kind]).withColumn("status", F.lit(KEPT))
    coded = with_codes(source, [Climb("raw", "code", hierarchy, 1, "status")]).collect()
    found = [(None if row["code"] in (None, -1) else hierarchy.labels[1][row["code"]], row["status"]) for row in coded]
    assert sorted(found, key=str) == sorted((expected(hierarchy, value, 1) for value in values), key=str)
