"""docs/tampering.md lists every planted fault with the check that refuses it, and nothing else."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from anon_spark.families.registry import NAMES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tampering.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("family", NAMES)
def test_the_page_lists_the_faults(family: str) -> None:
    section = re.search(rf"^## {family}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    listed = dict(re.findall(r"^\| (?!fault|---)(.+?) \| (.+?) \|$", section[1], re.MULTILINE))
    faults = import_module(f"tests.families.{family}.test_tamper").FAULTS
    assert listed == {name: check for name, (check, _) in faults.items()} and len(faults) >= 12
