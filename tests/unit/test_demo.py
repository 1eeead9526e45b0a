"""What the demonstration shows of a release: every kind of value on one short line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from pipelines.demo import DEMONSTRATIONS, JOBS, SETTINGS, SHOWN_WIDTH, _cell


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


def test_every_family_has_its_part() -> None:
    assert list(DEMONSTRATIONS) == list(JOBS) == list(SETTINGS)
