"""A whole run over texts that two readers easily read differently: they are left out as unseen, and the release stands."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.runs.audit import audit
from tests.town import Town, people

AGES = ["33\x00", "33.00000000000000000000001", "33\u2028", "３３", "\x1f33", "33d", "1e400"]
DAYS = ["2020-01-01\n", "2020-01-01 10:00\u2028", "2020-01-01\x00", "2020-01-01 ", "+12020-01-01", "2020-02-30", "0000-01-01"]


@pytest.mark.long
def test_texts_that_are_no_numbers_or_days_are_left_out_and_the_audit_agrees(spark: SparkSession, tmp_path: Path) -> None:
    count = 60
    ages = [("33", "33.0", " 33 ", "3.3e1")[at % 4] for at in range(count)]
    days = [("2020-01-01", "2020-01-01T10:00:00Z", "2020-01-02 1")[at % 3] for at in range(count)]
    shares = ["0.25", "0.30", "0.3000000000000000000001", "+.3", "0.3\x00", "３"]
    for at, (age, day) in enumerate(zip(AGES, DAYS, strict=True)):
        ages[at], days[20 + at] = age, day
    table = people(count, age=ages, born=days, share=[shares[at % 4] for at in range(count - 2)] + shares[4:])
    assert isinstance(table, pa.Table)
    town = Town.founded(spark, tmp_path / "town", table)
    asked = {
        "columns__quasi_identifiers": {
            "age": {"intervals": {"from": 20, "to": 59, "widths": [10]}},
            "born": {"date": {"levels": ["month"], "from": "2019-01-01", "to": "2020-12-31"}},
            "share": {"intervals": {"from": 0, "to": 1, "widths": [0.1], "exact": False}},
        },
        "privacy": {"k": 2},
        "on_unseen": "suppress",
        "lattice": {"choose": {"node": [0, 1, 0]}},
    }
    report = town.run(**asked)
    assert report.status == "published", report.message
    unseen = len(AGES) + len(DAYS) + 2
    assert (report.accounting["dropped_unseen"], report.accounting["published"]) == (unseen, count - unseen)
    assert set(Counter((row.age, row.born) for row in town.release.collect())) == {("33", "2020-01")}
    assert {row.share for row in town.release.collect()} == {"[0.2, 0.3)", "[0.3, 0.4)"}
    assert all(verdict.passed for verdict in audit(town.job(**asked), spark))
