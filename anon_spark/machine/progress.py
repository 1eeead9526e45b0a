"""Progress for people who wait: which step is at work, how far it is, how long it has taken.

At a terminal one line is redrawn every half second; elsewhere, such as in the log of a scheduler, each step gets a line.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from time import monotonic
from typing import TextIO

STARTING = "starting Spark"
RUN = {
    "spark": STARTING, "prepare": "checking the job and the table", "fit": "fit", "release": "staging the release",
    "audit": "audit of the staged release", "risk": "risk and findings", "publish": "publishing", "report": "report and run log",
}  # fmt: skip
PLAN = {"spark": STARTING, "prepare": "checking the job and the table", "count": "counting"}
AUDIT = {"spark": STARTING, "audit": "audit of the current release"}
COMPARE = {"spark": STARTING, "compare": "audit and measures of each release"}
RISK = {"spark": STARTING, "measure": "measuring"}
INIT = {"spark": STARTING, "look": "looking at the table"}
EVERY = 0.5  # seconds between two drawings
WIDE = 78


class Steps:
    """The steps of a command, by their keys. Other keys than these are parts of the step at work."""

    def __init__(self, names: Mapping[str, str], quiet: bool = False, stream: TextIO | None = None) -> None:
        self._names = dict(names)
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._drawn = not quiet and self._stream.isatty()
        self._at = ""
        self._detail = ""
        self._began = monotonic()
        self._ended = threading.Event()
        self._painter: threading.Thread | None = None

    def __enter__(self) -> Steps:
        self.begin(next(iter(self._names)))
        if self._drawn:
            self._painter = threading.Thread(target=self._paint, daemon=True)
            self._painter.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._painter is not None:
            self._painter.join()
            self._stream.write("\r" + " " * WIDE + "\r")
            self._stream.flush()

    def begin(self, step: str) -> None:
        """A step begins; one that is not among the names is shown as a part of the step at work."""
        if step not in self._names:
            self._detail = step
            return
        if step != self._at:
            self._at, self._detail, self._began = step, "", monotonic()
            if not self._drawn and not self._quiet:
                self._stream.write(f"{self._place()}\n")
                self._stream.flush()

    def tell(self, done: int, total: int, what: str) -> None:
        """Progress within a step, as long work reports it."""
        self._detail = f"{what} {done:,} of {total:,}" if total else what

    def _place(self) -> str:
        return f"{list(self._names).index(self._at) + 1} of {len(self._names)}  {self._names[self._at]}"

    def _line(self) -> str:
        detail = f": {self._detail}" if self._detail else ""
        return f"{self._place()}{detail}  {monotonic() - self._began:.0f} s"

    def _paint(self) -> None:
        while not self._ended.wait(EVERY):
            self._stream.write("\r" + self._line()[:WIDE].ljust(WIDE))
            self._stream.flush()
