"""Write the list of types that kernels are compiled for at set-up, from folders in which runs kept what they compiled.

    NUMBA_CACHE_DIR=FOLDER anon-spark demo --rows 3000
    NUMBA_CACHE_DIR=OTHER python -m pytest -m compiles
    python jobs/kernels.py FOLDER OTHER

A later folder counts only for kernels that no earlier one has: tests call with types that no run has.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

from anon_spark.compiled import PACKAGE, sources
from anon_spark.machine.kernels import LIST, written

Signatures = dict[str, set[Any]]


@cache
def entries() -> dict[str, Any]:
    """All kernels of the package that Python calls, by name."""
    found = {}
    for path in sources(PACKAGE):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for name, value in vars(import_module(module)).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module:
                found[f"{module}.{name}"] = value
    return found


def kept(folder: Path) -> Signatures:
    """What a folder of numba holds: types of arguments by kernel."""
    found: Signatures = {}
    for name, dispatcher in entries().items():
        index = f"{dispatcher.py_func.__module__.rpartition('.')[2]}.{dispatcher.py_func.__qualname__}-*.nbi"
        for path in folder.rglob(index):
            if path.parent.name.startswith(name.split(".")[-3] + "_"):
                found.setdefault(name, set()).update(signatures(path))
    return found


def asked_for() -> Signatures:
    """What this process compiled or would have: types of arguments by kernel."""
    return {name: set(dispatcher.stats.cache_misses) for name, dispatcher in entries().items()}


def signatures(index: Path) -> list[Any]:
    """The types in one index of numba."""
    with index.open("rb") as file:
        pickle.load(file)  # the version
        _, overloads = pickle.loads(file.read())
    return [key[0] for key in overloads]


def main(folders: list[str]) -> None:
    """Write the list and say what is missing in it."""
    union: Signatures = {}
    for folder in folders:
        union = kept(Path(folder)) | union
    LIST.write_text(written({name: list(kinds) for name, kinds in union.items()}), encoding="utf-8")
    print(f"{len(union)} kernels. Never compiled: {', '.join(sorted(entries().keys() - union.keys())) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
