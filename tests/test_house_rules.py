"""What must never stand in the library, and what must be importable without Spark."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from numba.core.dispatcher import Dispatcher

from anon_spark.compiled import Inner

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "anon_spark"

OUTSIDE = ("cli.py", "spark_session.py", "workers.py", "machine/")  # who starts a session and speaks to people
FORBIDDEN_NAMES = {"print"}
FORBIDDEN_ATTRIBUTES = {"rdd", "sparkContext", "_jvm", "_jdf", "_jsc", "_jsparkSession", "getOrCreate"}
MATERIALIZING = {"cache", "persist", "checkpoint", "localCheckpoint"}  # primitives/rounds owns these
MATERIALIZING_ALLOWED = ("primitives/rounds.py", "primitives/rounds/")

BLOCKED = ("pyspark", "py4j", "delta", "numba")
WITHOUT_SPARK = ("anon_spark", "anon_spark.model", "anon_spark.errors", "anon_spark.columns")


def faults(source: str, may_materialize: bool = False) -> Iterator[str]:
    """Each forbidden thing in a module's code (docstrings and comments may speak of them), with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) if name in FORBIDDEN_NAMES:
                yield f"{node.lineno}: {name}"
            case ast.Attribute(attr=name) if name in FORBIDDEN_ATTRIBUTES:
                yield f"{node.lineno}: .{name}"
            case ast.Attribute(attr="set", value=ast.Attribute(attr="conf")):
                yield f"{node.lineno}: .conf.set"
            case ast.Call(func=ast.Attribute(attr="withColumns"), args=[ast.Name()]):
                yield f"{node.lineno}: .withColumns of what may be empty, which Spark Connect refuses"
            case ast.Call(func=ast.Attribute(attr=name)) if name in MATERIALIZING and not may_materialize:
                yield f"{node.lineno}: .{name}()"


def test_library_keeps_the_house_rules() -> None:
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        name = path.relative_to(LIBRARY).as_posix()
        if name.startswith(OUTSIDE):
            continue
        may = name.startswith(MATERIALIZING_ALLOWED)
        found += [f"anon_spark/{name}:{fault}" for fault in faults(path.read_text(), may)]

    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "print('rows')",
        "df.rdd.map(f)",
        "df.sparkSession.sparkContext.parallelize([])",
        "spark._jvm.java.lang.System.gc()",
        "df._jdf.queryExecution()",
        "spark.conf.set('spark.sql.ansi.enabled', 'false')",
        "SparkSession.builder.getOrCreate()",
        "df.withColumns(leaves)",
        "df.cache()",
        "df.persist()",
        "df.checkpoint()",
        "df.localCheckpoint()",
    ],
)
def test_planted_fault_is_found(planted: str) -> None:
    assert len(list(faults(planted))) == 1


def test_rounds_may_materialize_and_prose_may_name_it() -> None:
    assert list(faults("df.persist()", may_materialize=True)) == []
    assert list(faults('"""Never print( or df.cache() here."""  # nor .rdd')) == []


@pytest.mark.parametrize("module", WITHOUT_SPARK)
def test_imports_without_spark(module: str) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r})); import {module}"

    done = subprocess.run([sys.executable, "-c", blocked], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_configuration_imports_without_spark() -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(['pyspark', 'py4j'])); import anon_spark.config"

    done = subprocess.run([sys.executable, "-c", blocked], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def travelling(module: ModuleType, source: str) -> Iterator[str]:
    """Compiled functions that a nested function names: with it they travel to tasks by value, and are compiled there again."""
    compiled = {name for name, value in vars(module).items() if isinstance(value, Dispatcher | Inner)}
    for outer in ast.walk(ast.parse(source)):
        if isinstance(outer, ast.FunctionDef):
            inside = (node for node in ast.walk(outer) if node is not outer and isinstance(node, ast.FunctionDef | ast.Lambda))
            named = {name.id for node in inside for name in ast.walk(node) if isinstance(name, ast.Name)}
            yield from (f"{outer.name}: {name}" for name in sorted(named & compiled))


def test_tasks_find_compiled_functions_by_name() -> None:
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if ".kernels." not in name:
            found += [f"{name}.{fault}" for fault in travelling(import_module(name), path.read_text())]
    assert found == []

    planted = "def outer():\n    def work(table):\n        return holding(table)\n    return work\n"
    assert list(travelling(import_module("anon_spark.families.tree.kernels.trees"), planted)) == ["outer: holding"]


def called_by_python(module: ModuleType, source: str) -> Iterator[str]:
    """Kernels for kernels that other code names: they would be compiled once more, in every process."""
    inner = {name for name, value in vars(module).items() if isinstance(value, Inner)}
    for part in ast.parse(source).body:
        decorators = {node.id for node in getattr(part, "decorator_list", ()) if isinstance(node, ast.Name)}
        if not decorators & {"compiled", "inner", "innermost", "inlined"}:
            named = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
            yield from sorted(named & inner)


def test_kernels_for_kernels_are_called_by_kernels() -> None:
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found += [f"{name}: {fault}" for fault in called_by_python(import_module(name), path.read_text())]
    assert found == []

    planted = "def outer():\n    return widest(sizes)\n\n@compiled\ndef kernel():\n    return longer(values)\n"
    assert list(called_by_python(import_module("anon_spark.kernels.transactions"), planted)) == ["widest"]
