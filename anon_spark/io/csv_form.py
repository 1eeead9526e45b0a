"""The form of a text file of columns: separator, header and encoding, guessed from its beginning. No Spark."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

BEGINNING = 1 << 16  # bytes that are looked at
SEPARATORS = (",", ";", "\t", "|")
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class CsvForm:
    """How a file is written: what separates its columns, whether the first line names them, and its encoding."""

    sep: str
    header: bool
    encoding: str
    columns: tuple[str, ...]

    @property
    def options(self) -> dict[str, str]:
        """The same as options of Spark's reader; what Spark takes by default is left out."""
        options = {"header": str(self.header).lower()}
        if self.sep != ",":
            options["sep"] = self.sep
        if self.encoding != "utf-8":
            options["encoding"] = "ISO-8859-1"
        return options

    @property
    def told(self) -> str:
        """In words."""
        return f"columns separated by {WORDS[self.sep]}, {'names' if self.header else 'no names'} in the first line"


def csv_form(path: Path) -> CsvForm | None:
    """The form of a file, or of the first file of a folder; None where there is none to look at."""
    file = _first_file(path)
    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            beginning = opened.read(BEGINNING)
    except OSError:
        return None
    text, encoding = _decoded(beginning)
    lines = text.splitlines()[: -1 if len(beginning) == BEGINNING else None]
    if not lines:
        return None
    sep = max(SEPARATORS, key=lambda mark: _regularity(lines, mark))
    rows = _rows(lines, sep)
    return CsvForm(sep, _has_header(rows), encoding, tuple(name.strip() for name in rows[0]))


def _first_file(path: Path) -> Path | None:
    if path.is_file():
        return path
    files = sorted(part for part in path.glob("*") if part.is_file() and not part.name.startswith((".", "_")))
    return files[0] if files else None


def _decoded(content: bytes) -> tuple[str, str]:
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError as fault:
        if fault.start >= len(content) - 4:  # the beginning ends within a character
            return content[: fault.start].decode("utf-8-sig"), "utf-8"
        return content.decode("latin-1"), "latin-1"


def _rows(lines: Sequence[str], sep: str) -> list[list[str]]:
    return [row for row in csv.reader(StringIO("\n".join(lines[:200])), delimiter=sep) if row]


def _regularity(lines: Sequence[str], sep: str) -> tuple[float, int]:
    """The share of lines with as many columns as the first, and that number; one column is no sign of a separator."""
    try:
        rows = _rows(lines, sep)
    except csv.Error:
        return 0.0, 0
    columns = len(rows[0]) if rows else 0
    if columns < 2:
        return 0.0, columns
    return sum(len(row) == columns for row in rows) / len(rows), columns


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line has names: no number, no cell twice, none empty, and no other line looks like it."""
    first = [cell.strip() for cell in rows[0]]
    if not all(first) or len(set(first)) < len(first) or any(_is_number(cell) for cell in first):
        return False
    below = rows[1:]
    if not below:
        return True
    again = [sum(len(row) > at and row[at].strip() == cell for row in below) for at, cell in enumerate(first)]
    return not any(again)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
