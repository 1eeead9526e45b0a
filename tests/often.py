"""Which cases of a parametrized test are in the test command."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def often(names: Iterable[str | int], some: Collection[str | int]) -> list[Any]:
    """All cases; those that are not among `some` are run by `make long`."""
    return [pytest.param(name, marks=[] if name in some else pytest.mark.long) for name in names]
