"""Where compiled kernels are kept: never those of other sources, never where others write; and what is compiled once."""

from __future__ import annotations

from pathlib import Path
from sys import getrefcount
from typing import Any

import numpy as np
import pytest
from numba import njit, types

from anon_spark.compiled import cache_folder, compiled, inlined, inner, innermost, is_private, widened

ROOMS = ("kernels", "families/some/kernels", "auditing", "risk")


def package(root: Path) -> Path:
    for room in ROOMS:
        (root / room).mkdir(parents=True)
        (root / room / "one.py").write_text("a = 1\n\n@compiled\n")
    (root / "compiled.py").touch()
    return root


@pytest.mark.parametrize("room", ROOMS)
def test_a_changed_source_has_a_folder_of_its_own(tmp_path: Path, room: str) -> None:
    root = package(tmp_path)
    first = cache_folder(root)
    assert first is not None and first.is_dir() and cache_folder(root) == first
    (first / "kept.nbi").touch()

    # a file that calls others keeps its time of change when one of them changes: everything is compiled anew
    (root / room / "one.py").write_text("a = 2\n\n@compiled\n")
    second = cache_folder(root)
    assert second is not None and second != first
    assert second.is_dir() and not first.exists()


def test_a_source_without_kernels_changes_nothing(tmp_path: Path) -> None:
    root = package(tmp_path)
    first = cache_folder(root)
    (root / "auditing" / "two.py").write_text("b = 1\n")
    assert cache_folder(root) == first


def test_a_package_that_cannot_be_written_uses_the_cache_of_the_user(tmp_path: Path) -> None:
    root, user = package(tmp_path / "package"), tmp_path / "user"
    (root / "__pycache__").write_text("in the way")  # also root could not make a folder here
    assert cache_folder(root) is None
    own = cache_folder(root, user)
    assert own is not None and own.is_relative_to(user) and cache_folder(root, user) == own

    # code is loaded from it: a folder that others may write is none
    assert is_private(own, user)
    own.parent.chmod(0o777)
    assert not is_private(own, user) and cache_folder(root, user) is None


@inner
def added(number: int, more: int) -> int:
    return number + more


@innermost
def doubled(numbers: np.ndarray, at: int) -> int:
    part = numbers[at : at + 1]
    return int(2 * part[0])


@inlined
def next_place(at: int) -> int:
    return at + 1


@compiled
def total(numbers: np.ndarray) -> int:
    found = added(0, 7)
    for number in numbers:
        found = added(found, number)
    return found


def test_kernels_call_others_with_one_type_for_whole_numbers() -> None:
    anew: Any = njit(total.py_func)  # type: ignore[attr-defined] # if total was kept by an earlier test run, nothing is compiled
    assert anew(np.array([1, 2], dtype=np.int32)) == total(np.array([1, 2], dtype=np.int32)) == 10
    assert list(added.part.overloads) == [(types.int64, types.int64)]  # type: ignore[attr-defined]
    assert added(1, 2) == 3  # for tests
    literal: Any = types.literal
    assert widened(literal(True)) == types.boolean and widened(types.uint64) == types.uint64


@compiled
def twice(numbers: np.ndarray) -> int:
    found, at = 0, 0
    while at < numbers.size:
        found += doubled(numbers, at)
        at = next_place(at)
    return found


def test_kernels_that_are_copied_or_count_no_references() -> None:
    numbers = np.arange(5)
    references = getrefcount(numbers)
    assert twice(numbers) == 20 and next_place(1) == 2 and doubled(numbers, 3) == 6  # for tests
    assert getrefcount(numbers) == references
    assert list(next_place.part.overloads) == []  # type: ignore[attr-defined] # copied: nothing of its own
