"""Kernels are compiled at set-up: which, for which types, and what happens where that is not possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anon_spark.compiled import current_folder
from anon_spark.machine import kernels
from jobs.kernels import entries, kept

ROOT = Path(__file__).resolve().parents[2]
ONE = """
from pathlib import Path
from anon_spark.machine import kernels
kernels.LIST = Path("list.json")
failed = kernels.compile_listed("others")
one = kernels.kernel("anon_spark.kernels.column_sets.mark_unique")
print(failed, sum(one.stats.cache_hits.values()), sum(one.stats.cache_misses.values()))
"""


def test_every_kernel_that_python_calls_is_compiled_at_set_up() -> None:
    listed = kernels.listed()
    assert sorted(entries().keys() - listed.keys()) == [], "write the list anew with jobs/kernels.py"
    assert sorted(listed.keys() - entries().keys()) == []
    assert kernels.written(listed) == kernels.LIST.read_text(encoding="utf-8")
    for name, kinds in listed.items():
        arguments = entries()[name].py_func.__code__.co_argcount
        assert kinds and {len(kind) for kind in kinds} == {arguments}


def test_another_process_finds_what_was_compiled(tmp_path: Path) -> None:
    name = "anon_spark.kernels.column_sets.mark_unique"
    (tmp_path / "list.json").write_text(kernels.written({name: kernels.listed()[name]}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    for told in ("0 0 1\n", "0 1 0\n"):
        assert subprocess.check_output([sys.executable, "-c", ONE], cwd=tmp_path, env=environment, text=True) == told


def test_set_up_compiles_once_for_these_sources_and_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(kernels, "current_folder", lambda: tmp_path)
    monkeypatch.setattr(kernels, "_compile_in_processes", lambda: calls.append("compiled"))
    said: list[str] = []
    for _ in range(2):
        kernels.warm(said.append)
    assert (len(calls), len(said)) == (1, 1) and "Compiling kernels, once" in said[0]

    monkeypatch.setattr("numba.__version__", "another")
    kernels.warm(said.append)
    assert len(calls) == 2


def test_set_up_goes_on_where_nothing_can_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(kernels, "current_folder", lambda: None)
    kernels.warm(said.append)
    assert said == []

    monkeypatch.setattr(kernels, "current_folder", lambda: tmp_path)
    monkeypatch.setattr(kernels, "PARTS", ("others", "no such part"))
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    kernels.warm(said.append)
    assert "The first run of a family compiles" in said[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.e2e
def test_a_run_of_each_family_compiles_nothing(tmp_path: Path) -> None:
    """Neither the driver nor the Python workers of Spark."""
    folder = current_folder()
    assert folder is not None
    kernels.warm(print)
    shutil.copytree(folder, tmp_path / "kept")
    before = kept(tmp_path / "kept")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-m", "anon_spark.cli", "demo", "--rows", "2000"]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)

    more = {name: kinds - before.get(name, set()) for name, kinds in kept(tmp_path / "kept").items()}
    assert {name: kinds for name, kinds in more.items() if kinds} == {}
