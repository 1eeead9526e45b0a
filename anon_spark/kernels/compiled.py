"""Compilation of kernels: once per machine if the result can be cached, else once per process."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import ParamSpec, TypeVar, cast

from numba import njit
from numba.core import config

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", int, bool)

PACKAGE = Path(__file__).resolve().parent.parent
CACHE = "kernels-"  # + digest of the sources


def cache_folder(package: Path) -> Path | None:
    """Where compiled kernels of exactly these sources are kept, those of other ones removed; None if nothing can be written.

    numba compiles a kernel anew when its own file changed, but not when a kernel that it calls did. So a checkout that is
    changed or updated would go on with old code.
    """
    sources = sha256()
    for path in sorted(package.rglob("kernels/*.py")):
        sources.update(path.read_bytes())
    folder = package / "__pycache__" / (CACHE + sources.hexdigest()[:16])
    try:
        if not folder.is_dir():
            for old in folder.parent.glob(CACHE + "*"):
                rmtree(old, ignore_errors=True)
            folder.mkdir(parents=True)
    except OSError:
        return folder if folder.is_dir() else None  # another process was first, or the package is read-only
    return folder if os.access(folder, os.W_OK) else None


if not vars(config)["CACHE_DIR"]:
    with suppress(OSError):  # sources in an archive
        vars(config)["CACHE_DIR"] = str(cache_folder(PACKAGE) or "")


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
