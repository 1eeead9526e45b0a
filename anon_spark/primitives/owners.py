"""Owners of private folders: the next run can recognise folders that a dead process left behind."""

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
    """A process of a user on a host; `boot` and `started` distinguish it from a later one with the same number.

    space: the namespace of its number, because containers have their own.
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
        """The owner that `text` wrote; None if the text is something else."""
        try:
            content: Any = json.loads(text)
        except json.JSONDecodeError:
            return None
        needed = ("user", "host", "pid")
        if not isinstance(content, Mapping) or not set(needed) <= set(content) or not isinstance(content["pid"], int):
            return None
        return cls(**{field.name: content[field.name] for field in fields(cls) if field.name in content})

    def text(self) -> str:
        """The owner as text for a file."""
        return json.dumps(asdict(self))

    @property
    def is_mine(self) -> bool:
        """Whether it belongs to the same user, on any host."""
        return self.user == user_name()

    @property
    def is_here(self) -> bool:
        """Whether it runs or ran on this host, visible to this process."""
        return self.host == socket.gethostname() and (self._is_of_earlier_boot or self.space in ("", _space()))

    @property
    def _is_of_earlier_boot(self) -> bool:
        return bool(self.boot) and self.boot != _boot()

    @property
    def is_gone(self) -> bool:
        """Whether it has surely ended; unknown for processes on another host or in another container."""
        if not self.is_here:
            return False
        if self._is_of_earlier_boot:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # the number belongs to another user's process
            pass
        return bool(self.started) and self.started != _started(self.pid)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def user_name() -> str:
    """The user of this process; a number if the system has no name."""
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
    """When the process started, in ticks since boot; empty if the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
