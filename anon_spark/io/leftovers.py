"""What a publication that did not end leaves in the folder of a release: files that no commit names.

While a run publishes, a note in the folder says who is at it and which files were there before. Whoever comes next and
finds the note of a dead run removes what that run wrote without committing it: a second draw of the same records must not
lie about.
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
    """A publication that began: who is at it, which run, on which version, what was there, and what it will publish."""

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
        """Whether nobody is at it any more."""
        return self.ended or self.owner.is_gone

    def write(self) -> None:
        said = {
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
                self.place.replace(json.dumps(said))
                return
            except FileNotFoundError:  # somebody else has just removed the empty folder, or the draft
                if attempt == ATTEMPTS - 1:
                    raise

    def remove(self) -> None:
        """Take the note away, with the folder of notes if it was the last."""
        self.place.remove()
        clear_notes(self.folder)

    def end(self) -> None:
        """Say that the publication is over, though it failed: files that it wrote may be removed."""
        replace(self, ended=True).write()


def folder_of(location: str | None) -> Store | None:
    """The folder of a table, where it can be managed from here."""
    if location is None:
        return None
    try:
        return Store.of(location, "output.table")
    except ConfigurationError:
        return None


def note_publication(location: str | None, run_id: str, latest: int | None, content: str) -> Note | None:
    """Say in the folder of the release that a publication begins; None where the folder cannot be managed from here."""
    folder = folder_of(location)
    if folder is None:
        return None
    before = tuple(name for name in folder.names() if _DATA_FILE.fullmatch(name))
    note = Note(folder, Owner.here(), run_id, latest, before, content)
    note.write()
    return note


def notes_in(folder: Store | None) -> list[Note]:
    """Publications that began in a folder and have not ended, of live runs too."""
    if folder is None:
        return []
    try:
        names = folder.below(FOLDER).names()
    except (OSError, pa.ArrowException):
        return []
    found = (_note(folder, name) for name in names if name.endswith(".json"))
    return [note for note in found if note is not None]


def _note(folder: Store, name: str) -> Note | None:
    try:
        said = json.loads(folder.below(FOLDER).below(name).read() or "")
        owner = Owner.from_text(said["owner"])
        if owner is None:
            return None
        return Note(
            folder, owner, str(said["run_id"]), said["latest"], tuple(said["before"]), str(said["content"]), bool(said["ended"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def sweep_uncommitted(note: Note) -> int:
    """Remove the data files that a dead publication wrote and no commit names; how many. Others at work there: none.

    Guarantee: a file stays that was there before, that any commit since names, or that is no data file of Delta. Where the
    log no longer tells all commits since, every file stays.
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
    """Whether a folder holds nothing but what a dead publication of ours, or a table that never began, left.

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
    names.discard(FOLDER)  # a note that was never written whole, too: files come after it
    if notes:
        names = {name for name in names if not _DATA_FILE.fullmatch(name)}
    return not names


def clear_notes(folder: Store | None) -> None:
    """Remove what a crash while a note was written leaves, and the folder of notes once it is empty; readable notes stay."""
    if folder is None:
        return
    place = folder.below(FOLDER)
    for name in place.names():
        if _note(folder, name) is None:
            place.below(name).remove()
    place.remove_empty()


def _tells_all_since(folder: Store, latest: int | None) -> bool:
    """Whether every commit after a version is still in the log as such; Delta removes old ones behind a checkpoint."""
    numbers = sorted(int(found[1]) for found in map(_COMMIT.fullmatch, folder.below(LOG).names()) if found is not None)
    first = 0 if latest is None else latest + 1
    since = [number for number in numbers if number >= first]
    reaches_back = bool(since) or (numbers[-1] == latest if numbers else latest is None)
    return reaches_back and since == list(range(first, first + len(since)))


def _named_since(folder: Store, latest: int | None) -> Iterator[str]:
    """Data files that commits after a version name."""
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
