"""Stop signals end a command in order: what is private is removed, the run log gets its row, one sentence is said.

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
    """Raise Stopped in the main thread at the first SIGTERM or SIGINT inside the block; later ones are passed over.

    A second signal must not interrupt the cleaning up that the first one asked for.
    """
    if current_thread() is not main_thread():  # only the main thread gets signals
        yield
        return
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a call that is interrupted would be told with a stack trace
    before = {number: signal.getsignal(number) for number in SIGNALS}
    catch_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def catch_signals() -> None:
    """Take the signals over."""
    for number in SIGNALS:
        signal.signal(number, _stop)


def catch_signals_again() -> None:
    """Inside `stoppable`, after a Spark session was made: that puts a handler of its own for SIGINT in place of ours."""
    if current_thread() is main_thread() and signal.getsignal(signal.SIGTERM) is _stop:
        catch_signals()


def _stop(number: int, frame: FrameType | None) -> None:
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    _hang_up()
    raise Stopped(signal.Signals(number).name)


def _hang_up() -> None:
    """Let the next call to the JVM use a new line: on this one the answer to the interrupted call is still to come."""
    from pyspark import SparkContext

    client: Any = getattr(SparkContext._gateway, "_gateway_client", None)
    if hasattr(client, "thread_connection"):
        client.thread_connection.connection = None
