"""The items of a report section. Values without behaviour: the renderers know how each one looks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from anon_spark.report.formats import percent, show

LONGEST = 15  # rows of a table that is not folded
_ACTIVE = re.compile(r"<script|<foreignObject|<iframe|\son\w+\s*=|javascript:", re.IGNORECASE)
_EXTERNAL = re.compile(r"""(?:href|src)\s*=\s*["'](?!#)|url\(\s*["']?(?!#)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers. `marked` are indexes of rows that stand out; a cell says why, colour alone is not enough.

    folded: whether the page shows only its title until a reader opens it. A long table is folded anyway.
    Guarantee: every row has as many cells as there are columns.
    """

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    marked: Sequence[int] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        uneven = sum(len(row) != len(self.columns) for row in self.rows)
        if uneven:
            raise ValueError(f"Table {self.title!r}: {uneven} rows do not have {len(self.columns)} cells.")


    @property
    def is_folded(self) -> bool:
        return self.folded or len(self.rows) > LONGEST


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


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars with a name each, drawn by the page itself: no picture that shrinks, nothing that a narrow screen clips.

    series: one amount for every name, under the name of the series; several series are several bars of one name, or parts of
    one bar (`stacked`). unit: what the amounts are, and which way is better. as_share: amounts are shown as percentages. most:
    where the scale ends; panels of one quantity get the same. limit: where a line is drawn, and what it is. intervals: by name,
    from and to.
    Guarantee: every series and list has as many entries as there are names; no amount is below 0.
    """

    kind: ClassVar[str] = "bars"
    title: str
    names: Sequence[str]
    series: Mapping[str, Sequence[float]]
    unit: str
    note: str = ""
    as_share: bool = False
    stacked: bool = False
    most: float | None = None
    limit: tuple[float, str] | None = None
    intervals: Sequence[tuple[float, float] | None] = ()

    def __post_init__(self) -> None:
        lists = [*self.series.values(), *([self.intervals] if self.intervals else [])]
        if not self.series or any(len(entries) != len(self.names) for entries in lists):
            raise ValueError(f"Bars {self.title!r}: every series needs {len(self.names)} entries.")
        if any(amount < 0 for amounts in self.series.values() for amount in amounts):
            raise ValueError(f"Bars {self.title!r}: an amount is below 0.")

    def parts(self, at: int) -> str:
        """The amounts of a bar of several parts, in one line."""
        amounts = [amounts[at] for amounts in self.series.values()]
        if not self.as_share:
            return " · ".join(map(show, amounts))
        return " · ".join(percent(amount).removesuffix(" %") for amount in amounts) + " %"

    @property
    def end(self) -> float:
        """The right end of the scale."""
        if self.most is not None:
            return self.most or 1.0
        rows = zip(*self.series.values(), strict=True)
        longest = [sum(amounts) if self.stacked else max(amounts) for amounts in rows]
        highest = [interval[1] for interval in self.intervals if interval is not None]
        return max([*longest, *highest, *([self.limit[0]] if self.limit else [])], default=1.0) or 1.0


Item = Table | Picture | Text | Bars


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
