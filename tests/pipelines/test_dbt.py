"""The dbt pipeline: dbt first, then the release; the exit code of anon-spark is handed on. dbt and anon-spark are stubs here."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "pipelines" / "dbt" / "release.sh"


@dataclass(frozen=True)
class Stubs:
    """Commands that only note how they were called, and end as they are told."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        noted = self.folder / "calls"
        return noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []

    def add(self, name: str, code: int) -> None:
        command = self.folder / name
        command.write_text(f'#!/bin/sh\nIFS=,\necho "{name},$*" >> {self.folder}/calls\nexit {code}\n', encoding="utf-8")
        command.chmod(0o755)

    def release(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", **variables}
        return subprocess.run(["sh", SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    return Stubs(tmp_path)


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_release_follows_the_build_and_its_code_is_handed_on(stubs: Stubs, code: int) -> None:
    stubs.add("dbt", 0)
    stubs.add("anon-spark", code)

    assert stubs.release("my people.yaml", "--select", "people").returncode == code
    assert stubs.calls == ["dbt,build,--select,people", "anon-spark,run,my people.yaml,--quiet"]


@pytest.mark.parametrize("code", [1, 2])
def test_nothing_is_released_where_dbt_failed(stubs: Stubs, code: int) -> None:
    stubs.add("dbt", code)
    stubs.add("anon-spark", 0)

    done = stubs.release("people.yaml")
    assert (done.returncode, stubs.calls) == (1, ["dbt,build"])
    assert f"dbt build ended with {code}" in done.stderr


def test_the_release_may_be_a_spark_submit(stubs: Stubs) -> None:
    stubs.add("dbt", 0)
    stubs.add("spark-submit", 3)

    done = stubs.release("people.yaml", ANON_SPARK_RUN="spark-submit --properties-file spark.conf jobs/run.py")
    assert done.returncode == 3
    assert stubs.calls[1] == "spark-submit,--properties-file,spark.conf,jobs/run.py,people.yaml,--quiet"


def test_without_a_job_file_nothing_starts(stubs: Stubs) -> None:
    stubs.add("dbt", 0)

    done = stubs.release()
    assert (done.returncode, stubs.calls) == (2, [])
    assert "name the job file" in done.stderr
