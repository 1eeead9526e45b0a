"""Values that show themselves in a notebook: a drawing, and a small table of names and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from anon_spark.report.formats import show


@dataclass(frozen=True)
class Drawing:
    """A picture as SVG, with words for readers who cannot see it. It shows itself in a notebook; `svg` is its text."""

    svg: str
    alt: str

    def _repr_html_(self) -> str:
        return f'<div role="img" aria-label="{escape(self.alt)}" style="max-width: 60em">{self.svg}</div>'

    def __repr__(self) -> str:
        return self.alt


def shown_table(title: str, rows: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """Names and values as a small table with a title, and notes below it."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(show(value))}</td></tr>"
        for name, value in rows.items()
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<div><p><strong>{escape(title)}</strong></p><table>{cells}</table>{below}</div>"
