"""The items of a report section. Values without behaviour: the renderers know how each one looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

_ACTIVE = re.compile(r"<script|<foreignObject|<iframe|\son\w+\s*=|javascript:", re.IGNORECASE)
_EXTERNAL = re.compile(r"""(?:href|src)\s*=\s*["'](?!#)|url\(\s*["']?(?!#)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers. `marked` are indexes of rows that stand out; a cell says why, colour alone is not enough.

    Guarantee: every row has as many cells as there are columns.
    """

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    marked: Sequence[int] = ()

    def __post_init__(self) -> None:
        uneven = sum(len(row) != len(self.columns) for row in self.rows)
        if uneven:
            raise ValueError(f"Table {self.title!r}: {uneven} rows do not have {len(self.columns)} cells.")


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing as inline SVG, with words for readers who cannot see it.

    Guarantee: nothing in it runs and nothing in it is fetched; a drawing that would is refused.
    """

    kind: ClassVar[str] = "picture"
    title: str
    svg: str
    alt: str

    def __post_init__(self) -> None:
        if not self.svg.startswith("<svg"):
            raise ValueError(f"Picture {self.title!r}: an inline drawing starts with <svg, without XML prolog.")
        if _ACTIVE.search(self.svg) or _EXTERNAL.search(self.svg):
            raise ValueError(f"Picture {self.title!r}: a drawing that runs or fetches something is refused.")
        if not self.alt.strip():
            raise ValueError(f"Picture {self.title!r}: alt is empty. Say in words what the picture shows.")


@dataclass(frozen=True, slots=True)
class Text:
    """Paragraphs, plain text."""

    kind: ClassVar[str] = "text"
    title: str
    paragraphs: Sequence[str]


Item = Table | Picture | Text


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the items below it."""

    title: str
    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one verifier on a release."""

    name: str
    passed: bool
    violations: int
    detail: str = ""
