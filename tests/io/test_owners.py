"""Private folders that say whose they are: what the next run removes, what it leaves, and who is refused."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from anon_spark.errors import ConfigurationError, LimitExceeded
from anon_spark.families.registry import load_job
from anon_spark.io.causes import known_cause
from anon_spark.io.leftovers import FOLDER, clear_notes, is_free, note_publication, notes_in, sweep_uncommitted
from anon_spark.io.places import require_writable
from anon_spark.primitives.owners import OWNER, Owner
from anon_spark.primitives.stores import Store, private_folder, sweep, user_root
from anon_spark.runs.purge import purge
from anon_spark.spark_session import LOCAL_DIR, local_settings, with_private_files


def ended() -> Owner:
    """A process of this user that is over."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return replace(Owner.here(), pid=process.pid)


def owned(root: Path, name: str, owner: Owner | None) -> Path:
    folder = root / f"anon-spark-{name}"
    folder.mkdir(parents=True)
    (folder / "secret").write_text("of a person")
    if owner is not None:
        (folder / OWNER).write_text(owner.text())
    return folder


def test_an_owner_is_alive_gone_or_unknown() -> None:
    here = Owner.here()
    assert Owner.from_text(here.text()) == here and here.is_mine and not here.is_gone
    assert ended().is_gone
    assert replace(here, boot="before the machine was started again").is_gone
    assert replace(here, started="1").is_gone  # another process has its number now
    assert not replace(here, host="elsewhere", pid=1).is_gone  # nobody here can tell
    contained = replace(ended(), space="pid:[1]")  # another container on this machine: its numbers are not ours
    assert not contained.is_gone and not contained.is_here and here.is_here
    assert replace(contained, boot="before the machine was started again").is_gone
    assert Owner.from_text('{"user": "x", "host": "y", "pid": 1}') == Owner("x", "y", 1)
    for text in ("", "{", "[]", "{}", '{"user": "x", "host": "y", "pid": "1", "boot": "", "started": ""}'):
        assert Owner.from_text(text) is None


def test_what_dead_runs_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    here, root = Owner.here(), Store.of(str(tmp_path))
    dead = owned(tmp_path, "dead", ended())
    kept = [
        owned(tmp_path, "live", here),
        owned(tmp_path, "elsewhere", replace(here, host="elsewhere")),
        owned(tmp_path, "of-another-user", replace(ended(), user="somebody else")),
        owned(tmp_path, "of-nobody", None),
        owned(tmp_path / "deeper", "dead", ended()),
    ]
    folder = Path(private_folder(root).path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and Owner.from_text((folder / OWNER).read_text()) == here

    assert sweep(root) == 1

    assert not dead.exists() and folder.exists() and all(path.exists() for path in kept)
    assert sweep(root) == 0


def test_the_folder_of_a_user_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert stat.S_IMODE(user_root().stat().st_mode) == 0o700
    user_root().chmod(0o755)
    with pytest.raises(ConfigurationError, match="is not a private folder of this user"):
        user_root()
    (tmp_path / f"anon-spark-{os.getuid()}").rmdir()
    (tmp_path / "trap").mkdir(mode=0o700)
    (tmp_path / f"anon-spark-{os.getuid()}").symlink_to(tmp_path / "trap")
    with pytest.raises(ConfigurationError, match="is not a private folder of this user"):
        user_root()


def test_shuffle_files_are_private_and_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    dead = owned(user_root(), "killed", ended())

    settings = with_private_files(local_settings())

    assert settings["spark.io.encryption.enabled"] == "true"
    folder = Path(settings[LOCAL_DIR])
    assert folder.parent == user_root() and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert f"-Djava.io.tmpdir={folder}" in settings["spark.driver.extraJavaOptions"]
    assert not dead.exists()  # what a killed session left goes when the next one begins
    assert with_private_files({LOCAL_DIR: "/given"}) == {LOCAL_DIR: "/given"}
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/given")
    assert with_private_files({}) == {}


JOB = """\
anon_spark: 1
family: lattice
input: {table: ./people}
columns: {quasi_identifiers: {age: {intervals: {from: 0, to: 9, widths: [5]}}}}
privacy: {k: 2}
work: ./work
output: {table: ./release, runs: ./runs}
"""


def test_purge_removes_what_is_dead_and_says_what_it_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "job.yaml").write_text(JOB)
    here = Owner.here()
    dead, local = owned(tmp_path / "work", "dead", ended()), owned(user_root(), "dead", ended())
    live, other = owned(tmp_path / "work", "live", here), owned(tmp_path / "work", "other", replace(here, host="elsewhere"))
    note = note_publication(str(tmp_path / "release"), "run-1", None, "content")
    assert note is not None
    replace(note, owner=ended()).write()
    orphan = tmp_path / "release" / "part-00000-0f61f2f5-7d15-4c9c-9c2b-54d8f7b9b1c3-c000.snappy.parquet"
    orphan.write_bytes(b"drawn")
    job = load_job(tmp_path / "job.yaml")

    lines = list(purge(job))

    assert [line.split()[0] for line in lines] == ["removed", "removed", "left", "left", "removed"]
    assert not dead.exists() and not local.exists() and not orphan.exists() and live.exists() and other.exists()
    assert notes_in(Store.of(str(tmp_path / "release"))) == []
    assert any("process" in line and "elsewhere" in line and "--all removes it" in line for line in lines)
    list(purge(job, everything=True))
    assert live.exists() and not other.exists()


def test_publications_of_other_machines_wait_for_somebody_who_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "job.yaml").write_text(JOB)
    job, release = load_job(tmp_path / "job.yaml"), tmp_path / "release"
    for run in ("run-1", "run-2"):
        note = note_publication(str(release), run, None, "content")
        assert note is not None
        replace(note, owner=replace(Owner.here(), host="pod-1")).write()
    (release / "_delta_log").mkdir()
    (release / "_delta_log" / f"{0:020}.json").write_text('{"commitInfo": {"userMetadata": "{\\"run_id\\": \\"run-2\\"}"}}')
    with pytest.raises(ConfigurationError, match="If it died elsewhere: `anon-spark purge JOB --work --all`"):
        is_free(Store.of(str(release)))

    assert all("may be publishing; --all removes what it left" in line for line in purge(job))
    lines = list(purge(job, everything=True))

    assert lines[0].startswith("removed 0 files") and "the next run compares it" in lines[1]
    (left,) = notes_in(Store.of(str(release)))
    assert left.run_id == "run-2" and left.is_dead  # a run may look at it now


def test_a_note_that_was_never_written_whole_is_no_obstacle(tmp_path: Path) -> None:
    folder = Store.of(str(tmp_path))
    (tmp_path / FOLDER).mkdir()
    assert is_free(folder)
    (tmp_path / FOLDER / "run-1.json").write_text("")
    (tmp_path / FOLDER / "run-2.json.draft").write_text('{"owner": ')
    assert is_free(folder)
    clear_notes(folder)
    assert list(tmp_path.iterdir()) == []


def test_files_stay_where_the_log_does_not_tell_all_commits(tmp_path: Path) -> None:
    note = note_publication(str(tmp_path), "run-1", 3, "content")
    assert note is not None
    note.end()
    (dead,) = notes_in(Store.of(str(tmp_path)))
    orphan = tmp_path / "part-00000-0f61f2f5-7d15-4c9c-9c2b-54d8f7b9b1c3-c000.snappy.parquet"
    orphan.write_bytes(b"drawn")
    (tmp_path / "_delta_log").mkdir()
    for commits, told in (((), 0), ((7, 8), 0), ((2, 5), 0), ((2, 3), 1), ((3, 4, 5), 1), ((4, 5), 1)):
        for path in (tmp_path / "_delta_log").iterdir():
            path.unlink()
        for version in commits:
            (tmp_path / "_delta_log" / f"{version:020}.json").write_text("{}")
        orphan.write_bytes(b"drawn")
        assert sweep_uncommitted(dead) == told, commits


def test_a_folder_of_somebody_else_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refused)  # only the owner of a folder may set its time
    require_writable(str(tmp_path / "release"), "output.table")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "told", "code"),
    [
        ("java.io.IOException: No space left on device", "A disk is full", 3),
        ("[DELTA_CANNOT_MODIFY_APPEND_ONLY] This table is configured", "property delta.appendOnly", 3),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error", "data files of the version that is read are gone", 3),
        ("io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND]", "another writer committed", 3),
        ("[INVALID_SCHEMA_OR_RELATION_NAME] `x y` is not a valid name", "the catalog refuses the name", 3),
        ("java.io.FileNotFoundException: /x (Permission denied)", "the rights are missing", 3),
        ("py4j.protocol.Py4JNetworkError: Answer from Java side is empty", "Spark ended before the run did", 1),
    ],
)
def test_known_causes_get_a_message_without_the_text(text: str, told: str, code: int) -> None:
    error = RuntimeError(f"{text} for a row with Inhabitant-7")

    cause = known_cause(error)

    assert cause is not None and told in str(cause) and "Inhabitant-7" not in str(cause) and cause.exit_code == code
    assert known_cause(RuntimeError("something else")) is None and known_cause(cause) is None


def test_an_error_of_ours_in_a_task_keeps_its_message() -> None:
    class PythonException(Exception):
        """As pyspark calls it."""

    def text(kind: str) -> str:
        return f"Traceback (most recent call last):\nanon_spark.errors.{kind}: Keys need 70 bits. Lower m.\n\nInhabitant-7"

    cause = known_cause(PythonException(text("LimitExceeded")))
    assert type(cause) is LimitExceeded and str(cause) == "Keys need 70 bits. Lower m."
    assert known_cause(RuntimeError(text("LimitExceeded"))) is None  # a value may say so, too
    assert known_cause(PythonException(text("Nothing"))) is None
    assert known_cause(PythonException(text("ConfigurationError"))) is None  # it would promise that nothing was written
