"""What every page can do: render itself as HTML, Markdown and JSON, show itself in a notebook, and write its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anon_spark.report import markdown
from anon_spark.report.page import html, json_text, write

if TYPE_CHECKING:
    from anon_spark.report.page import Page


class Rendered:
    """A page; whoever inherits has the parts of `Page`."""

    def to_json(self) -> str:
        """Machine readable: stable keys, no drawings; nan and infinity are null."""
        return json_text(self._page)

    def to_markdown(self) -> str:
        """For a terminal or a pull request; a drawing is replaced by its words."""
        return markdown.render(self._page)

    def to_html(self) -> str:
        """One page that needs nothing else: no network, no script."""
        return html(self._page, page=True)

    def _repr_html_(self) -> str:
        """The same inside a notebook; its style reaches nothing outside it."""
        return html(self._page, page=False)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, and .json and .md beside it; return where the page is.

        Guarantee: each file is replaced as a whole or not at all, the page last; missing folders are made.
        """
        return write(self._page, path)

    @property
    def _page(self) -> Page:
        return cast("Page", self)
