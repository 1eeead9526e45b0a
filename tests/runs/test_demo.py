"""What the demonstration shows of a release: every kind of value on one short line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from anon_spark.families.registry import NAMES, load_job
from anon_spark.runs.demo import SHOWN_WIDTH, _cell
from anon_spark.samples.sample import copy_jobs


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "text"),
        (7, "7"),
        (None, "None"),
        (Row(lo=3, hi=9), "3–9"),
        ({"lo": 3, "hi": 3}, "3"),
        (np.array(["a", "b"], dtype=object), "a, b"),
        ([["a", "b"], ["c"]], "(a b), (c)"),
        ([], ""),
        (["x" * 60], "x" * (SHOWN_WIDTH - 1) + "…"),
    ],
)
def test_cells(value: Any, shown: str) -> None:
    assert _cell(value) == shown


def test_every_family_has_its_job_beside_its_table(tmp_path: Path) -> None:
    jobs = copy_jobs(tmp_path)
    for name in NAMES:
        job = load_job(jobs / f"{name}.yaml")
        assert job.family == name and Path(job.input.table).parent == Path(job.output.table).parent == tmp_path
