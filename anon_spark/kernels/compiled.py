"""How kernels are compiled: once per machine where that can be kept, else once per process."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", int, bool)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code, without the interpreter's lock."""
    try:
        return cast(Callable[P, R], njit(cache=True, nogil=True)(function))
    except RuntimeError:  # neither the package's folder nor a home is writable: a worker in a read-only container
        return cast(Callable[P, R], njit(nogil=True)(function))


@compiled
def varying(value: T) -> T:
    """A constant as any value of its type: a function is compiled again for each literal it is called with."""
    return value
