"""Writes to tables that several runs may write to at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from time import sleep

from anon_spark.io.causes import is_conflict, is_first_commit

ATTEMPTS, FIRST_PAUSE = 8, 0.2  # seconds, doubled each time


def retried(write: Callable[[], object]) -> None:
    """Write, and repeat where another writer was faster; the last error is raised."""
    for attempt in range(ATTEMPTS):
        try:
            write()
            return
        except Exception as error:
            if attempt == ATTEMPTS - 1 or not (is_conflict(error) or is_first_commit(error)):
                raise
            sleep(uniform(0, FIRST_PAUSE * 2**attempt))
