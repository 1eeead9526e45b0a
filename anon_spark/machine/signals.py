"""Orderly end at a stop signal: private files are removed, the run log gets its row, one message is printed.

Kubernetes, YARN and schedulers stop a task by SIGTERM, a person at a terminal by SIGINT.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from anon_spark.errors import Stopped

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise Stopped in the main thread at the first SIGTERM or SIGINT inside the block; later ones are ignored.

    A second signal must not interrupt the cleaning up that the first one asked for.
    """
    if current_thread() is not main_thread():  # only the main thread gets signals
        yield
        return
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it would log an interrupted call with a stack trace
    before = {number: signal.getsignal(number) for number in SIGNALS}
    catch_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def catch_signals() -> None:
    """Install our handler for the signals."""
    for number in SIGNALS:
        signal.signal(number, _stop)


def catch_signals_again() -> None:
    """Install our handlers again, inside `stoppable`: a new Spark session replaces the one for SIGINT."""
    if current_thread() is main_thread() and signal.getsignal(signal.SIGTERM) is _stop:
        catch_signals()


def _stop(number: int, frame: FrameType | None) -> None:
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    _hang_up()
    raise Stopped(signal.Signals(number).name)


def _hang_up() -> None:
    """Make the next call to the JVM use a new connection: the old one still waits for an interrupted answer."""
    from pyspark import SparkContext

    client: Any = getattr(SparkContext._gateway, "_gateway_client", None)
    if hasattr(client, "thread_connection"):
        client.thread_connection.connection = None
