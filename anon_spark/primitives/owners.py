"""Which process a private folder belongs to, so that the next run can tell what a dead one left behind."""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

OWNER = "_owner.json"  # Spark and Delta pass over names with an underscore
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SPACE = Path("/proc/self/ns/pid")  # containers of one machine may share its name, not their process numbers


@dataclass(frozen=True)
class Owner:
    """A process of a user on a host; `boot` and `started` tell it from a later one with the same number.

    space: where its number counts: a container has numbers of its own.
    """

    user: str
    host: str
    pid: int
    boot: str = ""
    started: str = ""
    space: str = ""

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        return cls(user_name(), socket.gethostname(), os.getpid(), _boot(), _started(os.getpid()), _space())

    @classmethod
    def from_text(cls, text: str) -> Owner | None:
        """What `text` wrote; None where it says something else."""
        try:
            content: Any = json.loads(text)
        except json.JSONDecodeError:
            return None
        needed = ("user", "host", "pid")
        if not isinstance(content, Mapping) or not set(needed) <= set(content) or not isinstance(content["pid"], int):
            return None
        return cls(**{field.name: content[field.name] for field in fields(cls) if field.name in content})

    def text(self) -> str:
        """As it is kept in a file."""
        return json.dumps(asdict(self))

    @property
    def is_mine(self) -> bool:
        """Whether the same user owns it, on whatever host."""
        return self.user == user_name()

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, where this process can see it."""
        return self.host == socket.gethostname() and (self._is_of_earlier_boot or self.space in ("", _space()))

    @property
    def _is_of_earlier_boot(self) -> bool:
        return bool(self.boot) and self.boot != _boot()

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended; of a process on another host or in another container nothing is known."""
        if not self.is_here:
            return False
        if self._is_of_earlier_boot:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # somebody else's process now, or still
            pass
        return bool(self.started) and self.started != _started(self.pid)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def user_name() -> str:
    """Who runs this process; a number where the system knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:  # not Linux
        return ""


def _space() -> str:
    try:
        return os.readlink(_SPACE)
    except OSError:  # not Linux
        return ""


def _started(pid: int) -> str:
    """When the process started, in ticks since the machine did; nothing where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
