"""Where compiled kernels are kept: never those of other sources."""

from __future__ import annotations

from pathlib import Path

from anon_spark.compiled import cache_folder


def package(root: Path) -> Path:
    for room in ("kernels", "families/some/kernels"):
        (root / room).mkdir(parents=True)
        (root / room / "one.py").write_text("a = 1\n")
    return root


def test_a_changed_source_has_a_folder_of_its_own(tmp_path: Path) -> None:
    root = package(tmp_path)
    first = cache_folder(root)
    assert first is not None and first.is_dir() and cache_folder(root) == first
    (first / "kept.nbi").touch()

    # a file that calls others keeps its time of change when one of them changes: everything is compiled anew
    (root / "families/some/kernels/one.py").write_text("a = 2\n")
    second = cache_folder(root)
    assert second is not None and second != first
    assert second.is_dir() and not first.exists()


def test_a_package_that_cannot_be_written_has_none(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "__pycache__").write_text("in the way")  # also root could not make a folder here
    assert cache_folder(root) is None
