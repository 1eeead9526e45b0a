"""Remove what stopped runs of a job left: private working folders, local files of Spark, files no commit names.

Needs no Spark: where a machine is short of room, a session would be the next thing to fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from anon_spark.config import JobSpec, is_path
from anon_spark.io.leftovers import LOG, Note, clear_notes, folder_of, notes_in, sweep_uncommitted
from anon_spark.primitives.stores import Store, remains, user_root


def purge(job: JobSpec, everything: bool = False) -> Iterator[str]:
    """Remove what stopped runs left; yields lines on what was removed, and what was left alone and why.

    everything: also what runs on other machines left; from here it is unknown whether they still run.
    Guarantee: nothing of a live run on this machine is touched, no file that a commit names, nothing of another user.
    """
    places = [Store.of(str(user_root())), *([Store.of(job.work)] if job.work is not None else [])]
    yield from (line for place in places for line in _folders(place, everything))
    if is_path(job.output.table):
        yield from _publications(job, everything)
    else:
        yield f"output.table: {job.output.table} is a name of the catalog; the next run settles what was left there."


def _folders(place: Store, everything: bool) -> Iterator[str]:
    for remnant in remains(place):
        if remnant.is_dead or (everything and not remnant.is_here):
            remnant.folder.remove()
            yield f"removed {remnant.folder.path} of {remnant.owner}"
        elif remnant.is_here:
            yield f"left alone {remnant.folder.path}: {remnant.owner} is at work"
        else:
            yield f"left alone {remnant.folder.path}: it is of {remnant.owner}; --all removes it, if that has ended"


def _publications(job: JobSpec, everything: bool) -> Iterator[str]:
    folder = folder_of(job.output.table)
    for note in notes_in(folder):
        if not note.is_dead and not (everything and not note.owner.is_here):
            more = "" if note.owner.is_here else "; --all removes what it left, if that has ended"
            yield f"left alone {note.place.path}: {note.owner} may be publishing{more}"
        elif _is_committed(note):
            note.end()
            yield f"left alone {note.place.path}: its release was committed, the next run compares it with what was audited"
        else:
            note.end()
            files = sweep_uncommitted(note)
            note.remove()
            yield f"removed {files} files of a publication of {note.owner} from {note.folder.path}"
    clear_notes(folder)


def _is_committed(note: Note) -> bool:
    """Whether a commit since the publication began names its run."""
    log = note.folder.below(LOG)
    wanted = json.dumps(note.run_id)
    texts = (log.below(name).read() or "" for name in log.names() if name.endswith(".json"))
    return any(wanted in text.replace("\\", "") for text in texts)
