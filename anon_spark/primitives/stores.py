"""Files and folders of a job that the driver manages: local ones, or those of a store that PyArrow supports."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from anon_spark.errors import ConfigurationError
from anon_spark.primitives.owners import OWNER, Owner

PRIVATE = "anon-spark-"  # prefix of the folder of a run below `work:`


@dataclass(frozen=True)
class Store:
    """A file or folder, existing or not."""

    filesystem: fs.FileSystem
    path: str

    @classmethod
    def of(cls, uri: str, key: str = "work") -> Store:
        """Raises ConfigurationError, which names the key of the job, for a store that cannot be managed from here."""
        if "://" not in uri:
            return cls(fs.LocalFileSystem(), str(Path(uri.removeprefix("file:")).absolute()))
        try:
            filesystem, path = fs.FileSystem.from_uri(re.sub(r"^s3[an]:", "s3:", uri))  # Hadoop has other schemes for S3
        except (pa.ArrowInvalid, OSError) as error:
            raise ConfigurationError(
                f"{key}: {uri.split(':', 1)[0]}: cannot be managed from here. Use a local, hdfs, s3, gs or abfs path."
            ) from error
        return cls(filesystem, path)

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def below(self, name: str) -> Store:
        return Store(self.filesystem, f"{self.path.rstrip('/')}/{name}")

    @property
    def exists(self) -> bool:
        return bool(self.filesystem.get_file_info(self.path).type != fs.FileType.NotFound)

    @property
    def is_folder(self) -> bool:
        return bool(self.filesystem.get_file_info(self.path).type == fs.FileType.Directory)

    def names(self) -> list[str]:
        """The names directly inside, sorted; empty if there is no such folder."""
        entries = self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(info.base_name for info in entries)

    def read(self) -> str | None:
        """The text of a small file; None if it cannot be read."""
        try:
            with self.filesystem.open_input_stream(self.path) as file:
                return file.read().decode("utf-8", errors="replace")
        except OSError:
            return None

    def write(self, text: str) -> None:
        with self.filesystem.open_output_stream(self.path) as file:
            file.write(text.encode("utf-8"))

    def replace(self, text: str) -> None:
        """Replace a file atomically: readers, also after a crash, see either the old text or the new one."""
        draft = Store(self.filesystem, f"{self.path}.draft")
        draft.write(text)
        self.filesystem.move(draft.path, self.path)

    def make(self) -> None:
        """Make the folder and its parents, readable by its owner only where the system supports it."""
        if self.is_local:
            Path(self.path).mkdir(mode=0o700, parents=True)
        else:
            self.filesystem.create_dir(self.path, recursive=True)

    def remove(self) -> None:
        """Remove the file or folder with its content, if it exists."""
        kind = self.filesystem.get_file_info(self.path).type
        try:
            if kind == fs.FileType.Directory:
                self.filesystem.delete_dir(self.path)
            elif kind != fs.FileType.NotFound:
                self.filesystem.delete_file(self.path)
        except FileNotFoundError:  # another process was faster
            pass

    def remove_empty(self) -> None:
        """Remove the folder if it is empty, safely against concurrent writes (local ones; stores have no empty folders)."""
        if self.is_local:
            with suppress(OSError):
                Path(self.path).rmdir()
        elif not self.names():
            self.remove()


def user_root() -> Path:
    """The private folder of this user on this machine, for other files of a local session.

    Guarantee: it belongs to the user, who alone can read it; otherwise raises.
    """
    path = Path(tempfile.gettempdir()) / f"{PRIVATE}{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if path.is_symlink() or not path.is_dir() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConfigurationError(
            f"{path} is not a private folder of this user, so nothing personal is put there. Remove it, or set TMPDIR to "
            "another place."
        )
    return path


def private_folder(root: Store, name: str = "") -> Store:
    """A new folder below `root` with a note of its owner, which is written right after the folder.

    Raises OSError if it cannot be made.
    """
    folder = root.below(f"{PRIVATE}{name or uuid4().hex}")
    folder.make()
    folder.below(OWNER).write(Owner.here().text())
    return folder


@dataclass(frozen=True)
class Remains:
    """A private folder of the same user that still exists, and its owner."""

    folder: Store
    owner: Owner

    @property
    def is_dead(self) -> bool:
        return self.owner.is_gone

    @property
    def is_here(self) -> bool:
        """Whether this process can tell if its owner is alive."""
        return self.owner.is_here


def remains(root: Store) -> Iterator[Remains]:
    """Private folders of this user below `root`, of live runs too; folders without a note of their owner are left alone."""
    for name in root.names():
        if name.startswith(PRIVATE):
            folder = root.below(name)
            owner = Owner.from_text(folder.below(OWNER).read() or "")
            if owner is not None and owner.is_mine:
                yield Remains(folder, owner)


def sweep(root: Store) -> int:
    """Remove the folders that dead runs of this user left below `root`; returns how many. Other folders stay.

    A folder that cannot be removed also stays: the next run reports it again.
    """
    swept = 0
    for left in remains(root):
        if left.is_dead:
            try:
                left.folder.remove()
                swept += 1
            except OSError:
                continue
    return swept


def discard(folder: Path) -> None:
    """Remove a local folder as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)

