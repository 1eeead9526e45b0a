"""Compiles all kernels before their first run, into the folder where every later process finds them.

Which types they are compiled for is in `kernels.json`. It is written by `python jobs/kernels.py` from what runs compiled.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba import types

from anon_spark.compiled import PACKAGE, current_folder

LIST = Path(__file__).with_suffix(".json")
LONGEST = ("anon_spark.families.mst",)  # as much work as all the rest: one process for each
TIMEOUT_SECONDS = 1200
PARTS = ("longest", "others")
MADE: dict[str, Any] = {"Array": types.Array, "Tuple": types.Tuple, "Omitted": types.Omitted}
SIMPLE: dict[str, Any] = {"none": types.none, **{str(kind): kind for kind in (types.boolean, *types.number_domain)}}


def warm(say: Callable[[str], None]) -> None:
    """Compile what is not compiled yet. Running it again costs nothing.

    Guarantee: raises nothing. What cannot be compiled or kept here is compiled by the first run that needs it.
    """
    folder = current_folder()
    try:
        done = folder / f"compiled-{_machine()}" if folder else None
        if done and not done.exists():
            say("Compiling kernels, once (a minute or two)")
            _compile_in_processes()
            done.touch()
    except (OSError, subprocess.SubprocessError):
        say("Not all kernels could be compiled. The first run of a family compiles those that are missing.")


def _compile_in_processes() -> None:
    """One process for the longest modules, one for all others. Raises if one fails; none is left running."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    options: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "PYTHONPATH": path}}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for part in PARTS:
            processes.append(subprocess.Popen([sys.executable, "-m", "anon_spark.machine.kernels", part], **options))
        for process in processes:
            if process.wait(TIMEOUT_SECONDS):
                raise subprocess.SubprocessError(f"exit code {process.returncode}")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _machine() -> str:
    """What compiled code depends on beside the sources, which the folder is named by."""
    parts = (platform.python_version(), numba.__version__, binding.get_host_cpu_name(), LIST.read_text(encoding="utf-8"))
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def compile_listed(part: str) -> int:
    """Compile the kernels of one part; returns how many could not be."""
    failed = 0
    for name, signatures in listed().items():
        if name.startswith(LONGEST) != (part == "longest"):
            continue
        for signature in signatures:
            try:
                kernel(name).compile(signature)
            except Exception:  # the first run that needs it says why
                failed += 1
    return failed


def kernel(name: str) -> Any:
    """A compiled function by its module and name."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


# --- the list -------------------------------------------------------------------------------------------------------


@cache
def listed() -> dict[str, list[tuple[types.Type, ...]]]:
    """The types of arguments that each kernel is compiled for."""
    content = json.loads(LIST.read_text(encoding="utf-8"))
    tuples: dict[str, types.Type] = {}
    base: Any = types.BaseTuple
    for name, (place, fields) in content["tuples"].items():
        kind = kernel(place)
        parts = [parsed(field, tuples) for field in fields]
        tuples[name] = base.from_types(parts, kind)
    return {
        name: [tuple(parsed(text, tuples) for text in texts) for texts in signatures]
        for name, signatures in content["kernels"].items()
    }


def parsed(text: str, tuples: Mapping[str, types.Type]) -> types.Type:
    """A type as in the list."""
    kind: types.Type = _built(ast.parse(text, mode="eval").body, {**SIMPLE, **MADE, **tuples})
    return kind


def _built(node: ast.AST, known: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return known[name]
        case ast.Tuple(parts):
            return tuple(_built(part, known) for part in parts)
        case ast.Call(ast.Name(name), arguments):
            return known[name](*(_built(argument, known) for argument in arguments))
        case _:
            raise ValueError(f"{ast.unparse(node)} is no type of the list")


def written(signatures: Mapping[str, Sequence[tuple[types.Type, ...]]]) -> str:
    """The list, from the types of arguments."""
    tuples: dict[str, tuple[str, list[str]]] = {}
    kernels = {
        name: sorted([_text(kind, tuples) for kind in kinds] for kinds in signatures[name]) for name in sorted(signatures)
    }
    lines = [f'"{name}": {json.dumps(content)}' for name, content in tuples.items()]
    blocks = [
        f'"{name}": [\n   ' + ",\n   ".join(json.dumps(texts) for texts in found) + "\n  ]" for name, found in kernels.items()
    ]
    return '{\n "tuples": {\n  ' + ",\n  ".join(lines) + '\n },\n "kernels": {\n  ' + ",\n  ".join(blocks) + "\n }\n}\n"


def _text(kind: types.Type, tuples: dict[str, tuple[str, list[str]]]) -> str:
    inside: Any = kind
    match kind:
        case types.BaseNamedTuple():
            origin = inside.instance_class
            content = (f"{origin.__module__}.{origin.__qualname__}", [_text(part, tuples) for part in inside.types])
            known = [name for name, other in tuples.items() if other == content]
            name = known[0] if known else next(name for name in _names(origin.__name__) if name not in tuples)
            tuples[name] = content
            return name
        case types.BaseTuple():
            return f"Tuple(({''.join(_text(part, tuples) + ', ' for part in inside.types)}))"
        case types.Array():
            return f"Array({_text(kind.dtype, tuples)}, {kind.ndim}, '{kind.layout}', {not kind.mutable})"
        case types.Omitted():
            return f"Omitted({kind.value!r})"
        case _:
            unliteral: Any = types.unliteral
            return str(unliteral(kind))


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{number}" for number in range(2, 1000))


if __name__ == "__main__":
    sys.exit(min(compile_listed(sys.argv[1]), 1))
