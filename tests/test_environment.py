"""Finding Java, naming Delta's jars, resolving a session's settings: all without starting Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from anon_spark import workers
from anon_spark.errors import ConfigurationError
from anon_spark.machine import delta, java, kernels, setup
from anon_spark.spark_session import WIDE, resolve

ROOT = Path(__file__).resolve().parents[1]


def fake_java(home: Path, release: str, says: str = "") -> Path:
    """A folder that looks like a Java."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(release)
    return home


@pytest.mark.parametrize(
    ("release", "says", "usable"),
    [
        ('JAVA_VERSION="17.0.15"\nMODULES="java.base jdk.incubator.vector"\n', "", True),
        ('JAVA_VERSION="21.0.2"\n', "", True),
        ('JAVA_VERSION="17.0.9"\nMODULES="java.base java.sql"\n', "", False),  # stripped-down
        ('JAVA_VERSION="11.0.20"\n', "", False),
        ('JAVA_VERSION="1.8.0_392"\n', "", False),
        ('JAVA_VERSION="25"\n', "", False),
        ("", 'openjdk version "17.0.15" 2025-04-15', True),
        ("", 'java version "1.8.0_392"', False),
        ("", "nothing known", False),
    ],
)
def test_java_is_judged_by_version_and_module(tmp_path: Path, release: str, says: str, usable: bool) -> None:
    assert java.usable(fake_java(tmp_path / "java", release, says)) is usable


def test_java_home_comes_first_and_an_unusable_one_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = fake_java(tmp_path / "good", 'JAVA_VERSION="17.0.1"\n')
    old = fake_java(tmp_path / "old", 'JAVA_VERSION="11.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(good))
    assert java.find_java() == good

    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(good / "bin"))
    assert java.ensure_java() == good
    assert os.environ["JAVA_HOME"] == str(good)


def test_missing_java_is_one_message_with_three_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "candidates", lambda: iter(()))
    monkeypatch.setattr(java, "can_install", lambda: False)
    for how in (java.ensure_java, java.install_java):
        with pytest.raises(ConfigurationError, match=r"(?s)apt-get install.*brew install.*conda install"):
            how()


def test_coordinate_and_jar_follow_the_installed_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": "4.0.1", "delta-spark": "4.4.0"}
    monkeypatch.setattr(delta, "version", versions.__getitem__)

    assert delta.coordinate() == "io.delta:delta-spark_4.0_2.13:4.4.0"
    assert delta.main_jar() == "io.delta_delta-spark_4.0_2.13-4.4.0.jar"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Python environment, as far as the jars are concerned."""
    monkeypatch.setattr(delta, "jar_folder", lambda: tmp_path / "jars")
    return tmp_path


def test_jars_are_files_when_there_and_a_coordinate_when_not(environment: Path) -> None:
    assert delta.with_jars({}) == {delta.PACKAGES: delta.coordinate()}
    assert delta.with_jars({delta.PACKAGES: "a:b:1"})[delta.PACKAGES] == f"a:b:1,{delta.coordinate()}"

    (environment / "jars").mkdir()
    (environment / "jars" / "io.delta_other-1.jar").touch()
    assert delta.jar_files() == []  # jars of another version are no jars

    main = environment / "jars" / delta.main_jar()
    main.touch()
    assert delta.with_jars({delta.JARS: "mine.jar"})[delta.JARS].startswith("mine.jar,")
    assert str(main) in delta.with_jars({})[delta.JARS]


def test_set_up_is_silent_when_nothing_is_missing(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(environment / "java", 'JAVA_VERSION="17.0.1"\n')))
    monkeypatch.setattr(setup, "fetch_jars", lambda: pytest.fail("fetched again"))
    monkeypatch.setattr(kernels, "current_folder", lambda: environment)
    (environment / f"compiled-{kernels._machine()}").touch()
    (environment / "jars").mkdir()
    (environment / "jars" / delta.main_jar()).touch()

    assert setup.main() == 0
    assert capsys.readouterr().out == ""


def test_set_up_that_cannot_fetch_leaves_nothing_and_says_so(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(environment / "java", 'JAVA_VERSION="17.0.1"\n')))
    monkeypatch.setattr(setup, "spark_submit", lambda: "false")

    assert setup.main() == ConfigurationError.exit_code
    assert "could not be fetched" in capsys.readouterr().err
    assert sorted(path.name for path in environment.iterdir()) == ["java"]


def test_local_defaults_stay_off_a_cluster() -> None:
    local = resolve({}, "job", {})
    remote = resolve({"spark.master": "yarn"}, "job", {})

    assert local["spark.master"] == "local[*]"
    assert local["spark.driver.bindAddress"] == "127.0.0.1"
    everywhere = {"spark.master", "spark.app.name", "spark.log.level", delta.EXTENSIONS, delta.CATALOG, *WIDE}
    assert set(remote) == everywhere
    assert remote["spark.log.level"] == "WARN"  # at INFO Delta writes values into the driver's log
    assert resolve({"spark.master": "yarn", "spark.log.level": "INFO"}, "job", {})["spark.log.level"] == "INFO"
    assert "spark.ui.enabled" not in resolve({"spark.master": "local-cluster[2,1,1024]"}, "job", {})


def test_what_spark_submit_was_told_wins_then_options_then_defaults() -> None:
    given = {"spark.master": "local[2]", "spark.ui.enabled": "true", delta.EXTENSIONS: "mine"}
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "7"}

    settings = resolve(given, "job", options)

    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.sql.shuffle.partitions"] == "7"
    assert settings[delta.EXTENSIONS] == "mine"
    assert delta.CATALOG not in settings


def test_workers_leave_archives_out_only_where_there_are_files(tmp_path: Path) -> None:
    archives = ["/spark/lib/pyspark.zip", "/spark/lib/py4j-0.10-src.zip"]
    others = ["/lib/python311.zip", "/sent/mine.zip", "/sent/mine.jar", str(tmp_path)]
    path = [*archives, "/spark/jars/spark-core_2.13.jar", *others]

    assert workers.without_archives(path) == [*archives, *others]  # nothing else has pyspark
    for name in ("pyspark", "py4j"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    assert workers.without_archives(path) == others


@pytest.mark.parametrize("name", ["local", "standalone", "yarn", "k8s"])
def test_spark_defaults_can_be_read_and_carry_delta(name: str) -> None:
    settings = {}
    for line in (ROOT / "conf" / "spark" / f"{name}.conf").read_text().splitlines():
        if line and not line.startswith("#"):
            key, value = line.split()  # a comment behind a value would become part of it
            settings[key] = value

    assert settings[delta.EXTENSIONS] == delta.EXTENSION
    assert settings[delta.CATALOG] == delta.CATALOG_CLASS
    assert all(key.startswith("spark.") for key in settings)


def test_make_refuses_an_old_python_with_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "pyproject.toml").touch()

    done = subprocess.run(
        ["make", "demo", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert "needs Python 3.11 or later" in done.stderr
    assert "make demo PYTHON=" in done.stderr
    assert not (tmp_path / ".venv").exists()
