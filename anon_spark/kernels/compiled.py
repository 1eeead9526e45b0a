"""Compilation of kernels: once per machine if the result can be cached, else once per process."""

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
    except RuntimeError:  # no writable folder for the cache: a worker in a read-only container
        return cast(Callable[P, R], njit(nogil=True)(function))


@compiled
def varying(value: T) -> T:
    """A constant as an ordinary value of its type: numba compiles a function anew for each literal argument."""
    return value
