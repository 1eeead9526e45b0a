"""Files of an interrupted publication: in the folder of a release, named by no commit.

While a run publishes, a note in the folder says which process publishes and which files were there before. The next run that
finds the note of a dead run removes its uncommitted files: a second draw of the same records must not remain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa

from anon_spark.errors import ConfigurationError
from anon_spark.primitives.owners import Owner
from anon_spark.primitives.stores import Store

ATTEMPTS = 5  # to write a note
FOLDER = "_anon_spark"  # in the folder of the table; Delta, VACUUM and readers pass over it
LOG = "_delta_log"
_DATA_FILE = re.compile(r"\.?part-\d{5,}-[0-9a-f]{8}-[0-9a-f-]{27}.*\.parquet(\.crc)?")
_COMMIT = re.compile(r"(\d{20})\.json")
_STATE = re.compile(r"\d{20}\.(json|checkpoint.*)|_last_checkpoint")


@dataclass(frozen=True)
class Note:
    """A publication that began: its process, run, version and files before, and the digest of what it publishes."""

    folder: Store
    owner: Owner
    run_id: str
    latest: int | None
    before: tuple[str, ...]
    content: str
    ended: bool = False

    @property
    def place(self) -> Store:
        return self.folder.below(FOLDER).below(f"{self.run_id}.json")

    @property
    def is_dead(self) -> bool:
        """Whether the publication ended or its process is gone."""
        return self.ended or self.owner.is_gone

    def write(self) -> None:
        fields = {
            "owner": self.owner.text(),
            "run_id": self.run_id,
            "latest": self.latest,
            "before": list(self.before),
            "content": self.content,
            "ended": self.ended,
        }
        for attempt in range(ATTEMPTS):
            try:
                self.folder.filesystem.create_dir(self.folder.below(FOLDER).path, recursive=True)
                self.place.replace(json.dumps(fields))
                return
            except FileNotFoundError:  # somebody else has just removed the empty folder, or the draft
                if attempt == ATTEMPTS - 1:
                    raise

    def remove(self) -> None:
        """Remove the note, and the folder of notes if it was the last."""
        self.place.remove()
        clear_notes(self.folder)

    def end(self) -> None:
        """Mark the publication as ended without success: files that it wrote may be removed."""
        replace(self, ended=True).write()


def folder_of(location: str | None) -> Store | None:
    """The folder of a table; None where it cannot be managed from here."""
    if location is None:
        return None
    try:
        return Store.of(location, "output.table")
    except ConfigurationError:
        return None


def note_publication(location: str | None, run_id: str, latest: int | None, content: str) -> Note | None:
    """Write the note that a publication begins; None where the folder cannot be managed from here."""
    folder = folder_of(location)
    if folder is None:
        return None
    before = tuple(name for name in folder.names() if _DATA_FILE.fullmatch(name))
    note = Note(folder, Owner.here(), run_id, latest, before, content)
    note.write()
    return note


def notes_in(folder: Store | None) -> list[Note]:
    """The notes in a folder: publications that began there and are not settled, also of live runs."""
    if folder is None:
        return []
    try:
        names = folder.below(FOLDER).names()
    except (OSError, pa.ArrowException):
        return []
    notes = (_note(folder, name) for name in names if name.endswith(".json"))
    return [note for note in notes if note is not None]


def _note(folder: Store, name: str) -> Note | None:
    try:
        fields = json.loads(folder.below(FOLDER).below(name).read() or "")
        owner = Owner.from_text(fields["owner"])
        if owner is None:
            return None
        return Note(
            folder,
            owner,
            str(fields["run_id"]),
            fields["latest"],
            tuple(fields["before"]),
            str(fields["content"]),
            bool(fields["ended"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def sweep_uncommitted(note: Note) -> int:
    """Remove the uncommitted data files of a dead publication; returns how many. While others publish there: none.

    Guarantee: a file stays that was there before, that a later commit names, or that is no data file of Delta. Where the
    log no longer has all later commits, every file stays.
    """
    if any(not other.is_dead for other in notes_in(note.folder)) or not _tells_all_since(note.folder, note.latest):
        return 0
    kept = {*note.before, *_named_since(note.folder, note.latest)}
    kept |= {f".{name}.crc" for name in kept}
    orphans = [name for name in note.folder.names() if _DATA_FILE.fullmatch(name) and name not in kept]
    for name in orphans:
        note.folder.below(name).remove()
    return sum(not name.startswith(".") for name in orphans)


def is_free(folder: Store) -> bool:
    """Whether a folder holds only remains of a dead publication of ours, or of a table that was never created.

    Raises ConfigurationError where another run is publishing there now.
    """
    names = set(folder.names())
    if LOG in names and not any(_STATE.fullmatch(name) for name in folder.below(LOG).names()):
        names.discard(LOG)
    notes = notes_in(folder)
    busy = [note for note in notes if not note.is_dead]
    if busy:
        unsure = "" if busy[0].owner.is_here else " If it died elsewhere: `anon-spark purge JOB --work --all`."
        raise ConfigurationError(
            f"output.table: another run ({busy[0].owner}) is publishing to {folder.path} now. Wait until it has ended.{unsure}"
        )
    names.discard(FOLDER)  # also a note that was not written completely: data files come after it
    if notes:
        names = {name for name in names if not _DATA_FILE.fullmatch(name)}
    return not names


def clear_notes(folder: Store | None) -> None:
    """Remove unreadable notes, which a crash left, and the folder of notes if it is empty."""
    if folder is None:
        return
    place = folder.below(FOLDER)
    for name in place.names():
        if _note(folder, name) is None:
            place.below(name).remove()
    place.remove_empty()


def _tells_all_since(folder: Store, latest: int | None) -> bool:
    """Whether the log still has every commit after a version; Delta removes old ones behind a checkpoint."""
    numbers = sorted(int(match[1]) for match in map(_COMMIT.fullmatch, folder.below(LOG).names()) if match is not None)
    first = 0 if latest is None else latest + 1
    since = [number for number in numbers if number >= first]
    reaches_back = bool(since) or (numbers[-1] == latest if numbers else latest is None)
    return reaches_back and since == list(range(first, first + len(since)))


def _named_since(folder: Store, latest: int | None) -> Iterator[str]:
    """The data files that commits after a version name."""
    for name in folder.below(LOG).names():
        commit = _COMMIT.fullmatch(name)
        if commit is None or (latest is not None and int(commit[1]) <= latest):
            continue
        for line in (folder.below(LOG).below(name).read() or "").splitlines():
            try:
                action = json.loads(line)
            except json.JSONDecodeError:
                continue
            for kind in ("add", "remove"):
                if isinstance(action, dict) and kind in action:
                    yield unquote(str(action[kind].get("path", "")))
