"""Compilation of kernels: once per machine if the result can be cached, else once per process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, update_wrapper
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit, types
from numba.core import config

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).resolve().parent
CACHE = "kernels-"  # + digest of the sources
MARKS = (b"\n@compiled", b"\n@inner", b"\n@innermost", b"\n@inlined")  # in every other file with kernels


# --- where compiled kernels are kept --------------------------------------------------------------------------------


def sources(package: Path) -> Iterator[Path]:
    """The files that decide what is compiled: all in folders of kernels, and those of audit and risk that have some."""
    yield package / "compiled.py"
    yield from sorted(package.rglob("kernels/*.py"))
    for folder in ("auditing", "risk"):
        yield from (path for path in sorted((package / folder).rglob("*.py")) if any(mark in path.read_bytes() for mark in MARKS))


def cache_folder(package: Path, user: Path | None = None) -> Path | None:
    """Where compiled kernels of exactly these sources are kept, those of other ones removed; None if nothing can be written.

    It is beside the package or, if that is read-only, in the cache of the user, closed to others.

    numba compiles a kernel anew when its own file changed, but not when a kernel that it calls did. So a checkout that is
    changed or updated would go on with old code.
    """
    digest = sha256()
    for path in sources(package):
        digest.update(path.read_bytes())
    name = CACHE + digest.hexdigest()[:16]
    beside = made(package / "__pycache__" / name)
    if beside or user is None:
        return beside
    own = user / "anon-spark" / sha256(os.fsencode(package)).hexdigest()[:16] / name
    return made(own, 0o700) if is_private(own, user) else None


def made(folder: Path, mode: int = 0o777) -> Path | None:
    """The folder, if it can be written. Folders of other sources beside it are removed when it is made."""
    try:
        if not folder.is_dir():
            for old in folder.parent.glob(CACHE + "*"):
                rmtree(old, ignore_errors=True)
            for path in reversed((folder, *folder.parents)):
                if not path.exists():
                    path.mkdir(mode)
    except OSError:
        if not folder.is_dir():  # it may be that another process was first
            return None
    return folder if os.access(folder, os.W_OK) else None


def is_private(folder: Path, user: Path) -> bool:
    """Whether nobody else can write what stands on the way to the folder, from the cache of the user on.

    Code is loaded from it. So a folder that others prepared is none for us.
    """
    steps = [path for path in (folder, *folder.parents) if path.is_relative_to(user) and path.exists()]
    return hasattr(os, "getuid") and all(
        path.stat().st_uid == os.getuid() and not path.stat().st_mode & 0o022 for path in steps
    )


def user_cache() -> Path | None:
    """The folder for caches of this user, if there is a home."""
    with suppress(RuntimeError):
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return None


def current_folder() -> Path | None:
    """Where kernels are kept in this process; None if they are compiled anew, or where numba finds a place."""
    folder = vars(config)["CACHE_DIR"]
    return Path(folder) if folder else None


if not vars(config)["CACHE_DIR"]:
    with suppress(OSError):  # sources in an archive
        vars(config)["CACHE_DIR"] = str(cache_folder(PACKAGE, user_cache()) or "")


# --- what is compiled -----------------------------------------------------------------------------------------------


def widened(given: Any) -> Any:
    """The type under which a kernel calls another one: constants as values, whole numbers with 64 bits.

    numba would compile the callee, and all that it calls, anew for each constant and each width.
    """
    kind: Any = types.unliteral(given)  # type: ignore[no-untyped-call]
    return types.int64 if kind in types.signed_domain else kind


def dispatcher(function: Callable[..., Any], **options: bool) -> Any:
    """What numba makes of a function; nothing is compiled before its first call."""
    jit: Any = njit
    try:
        made = jit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # no writable folder for the cache: a worker in a read-only container
        made = jit(nogil=True, **options)(function)
    template = made.get_call_template
    made.get_call_template = lambda args, named: template(
        [widened(kind) for kind in args], {name: widened(kind) for name, kind in named.items()}
    )
    return made


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code, without the interpreter's lock."""
    return cast(Callable[P, R], dispatcher(function))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code for kernels that call it: a quarter less to compile than `compiled`."""
    return cast(Callable[P, R], Inner(function))


def innermost(function: Callable[P, R]) -> Callable[P, R]:
    """As `inner`, for kernels that make no array: references to arrays are not counted, which takes longer than short work."""
    return cast(Callable[P, R], Inner(function, _nrt=False))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As `inner`, copied into each kernel that calls it: for what is called millions of times with many arrays.

    A call passes every field of every array by value, which takes longer than some hundred operations.
    """
    made = Inner(function)
    made.targetoptions, made.py_func = {"inline": "always"}, function  # where numba looks for them
    return cast(Callable[P, R], made)


class Inner:
    """A kernel that kernels call; tests may call it, too, and have it compiled for themselves."""

    targetoptions: dict[str, str]
    py_func: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], **options: bool) -> None:
        update_wrapper(self, function)
        never_by_python = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        self.part = dispatcher(function, **never_by_python, **options)
        self._numba_type_ = self.part._numba_type_  # what compiled code calls

    @cached_property
    def whole(self) -> Any:
        """The same with a way in from Python."""
        return njit(nogil=True)(self.part.py_func)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.whole(*args, **named)
