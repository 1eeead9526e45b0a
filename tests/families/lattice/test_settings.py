"""Settings and saved files that make no sense are refused before any table is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anon_spark import Hierarchy, LatticeAnonymizer, Recoding
from anon_spark.errors import ConfigurationError

SETTINGS: dict[str, Any] = {
    "k": 4, "quasi_identifiers": {"no.": Hierarchy.intervals(0, 9, [5])}, "sensitive": ["illness"], "keep": ["weight"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"k": 1}, "k: should be at least 2"),
        ({"k": 2.5}, "whole number"),
        ({"suppression": 1.0}, "suppression: should be below 1"),
        ({"suppression": -0.1}, "suppression: should be at least 0"),
        ({"loss": "cm"}, "loss cm goes with class_column"),
        ({"class_column": "illness"}, "loss cm goes with class_column"),
        ({"loss": "cm", "class_column": "name"}, "must be one of sensitive or keep"),
        ({"keep": ["illness"]}, "one role"),
        ({"keep": ["no."]}, "one role"),
        ({"person": "illness"}, "one role"),
        ({"person": "no."}, "both the person and a quasi-identifier"),
        ({"quasi_identifiers": {}}, "at least one quasi-identifier"),
        ({"search": "fast"}, "search"),
        ({"loss": "entropy"}, "loss"),
        ({"nulls": "drop"}, "nulls"),
        ({"on_unseen": "eror"}, "on_unseen"),
        ({"depth": 0}, "depth"),
        ({"depth": "deep"}, "depth"),
        ({"nulls": "suppress", "quasi_identifiers": {"x": Hierarchy.intervals(0, 1, []).with_null()}}, "keep nulls: x"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_any_table(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        LatticeAnonymizer(**(SETTINGS | changes))


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"anon_spark_recoding": 9}', '{"anon_spark_recoding": 1}', '{"anon_spark_recoding": 1, "family": "x.y"}',
     '{"anon_spark_recoding": 1, "family": "nosuch"}', '{"anon_spark_recoding": 1, "family": "lattice"}'],
)  # fmt: skip
def test_what_is_no_saved_recoding_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "recoding.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="not a"):
        Recoding.load(path)
    with pytest.raises(ConfigurationError, match="not a readable recoding"):
        Recoding.load(tmp_path / "missing.json")
