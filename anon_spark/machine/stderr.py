"""Lines that the JVM writes by itself and that say nothing to people: they are left out, all others pass."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NOISE = (b"WARNING: Using incubator modules: jdk.incubator.vector",)


@contextmanager
def without_noise() -> Iterator[None]:
    """Processes that are started inside write their errors through a filter for as long as they live.

    A thread copies them to this process's own errors, line by line. What this process writes itself is not touched.
    """
    try:
        shown = os.dup(2)
    except OSError:  # a process without a place for errors has nothing to filter
        yield
        return
    reading, writing = os.pipe()
    threading.Thread(target=_copy, args=(reading, shown), daemon=True).start()
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(shown, 2)


def _copy(reading: int, shown: int) -> None:
    with suppress(OSError, ValueError), os.fdopen(reading, "rb", buffering=0) as lines:
        rest = b""
        while chunk := lines.read(1 << 16):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                if not line.startswith(NOISE):
                    os.write(shown, line + b"\n")
        if rest and not rest.startswith(NOISE):
            os.write(shown, rest)
