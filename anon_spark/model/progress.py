"""Progress callback: long work calls it to say how much is done."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]  # done, total, what is counted
