"""A progress bar for people who wait at a terminal; silent elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from anon_spark.model.progress import Progress


@contextmanager
def bar(quiet: bool = False) -> Iterator[Progress]:
    """A progress bar and its callback; the total may change."""
    with tqdm(disable=quiet or not sys.stderr.isatty(), leave=False) as shown:

        def tell(done: int, total: int, what: str) -> None:
            shown.total, shown.n, shown.desc = total, done, what
            shown.refresh()

        yield tell
