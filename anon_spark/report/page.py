"""The three files of every report: a self-contained HTML page, Markdown and JSON, with the same content."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from anon_spark.errors import ConfigurationError
from anon_spark.model.findings import TITLES, Finding, by_level
from anon_spark.report.formats import is_number, percent, plain, seconds, show, wording
from anon_spark.report.glossary import glossary_of, texts_of
from anon_spark.report.items import Check, Item, Section

_EXPONENT = re.compile(r"(?<=[0-9kl])\^(\(\w+,\s?\w+\)|\w+)")


@dataclass(frozen=True, slots=True)
class Notice:
    """A banner: what a reader must see before anything else. `tone` is good, bad, caution or neutral."""

    tone: str
    symbol: str
    headline: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the timings. kind: step; part, of the step before it; total, of all steps."""

    name: str
    spent: float
    kind: str = "step"


class Page(Protocol):
    """The parts of a report that the renderers show; an empty part is left out."""

    @property
    def over(self) -> str:
        """The line above the title."""

    @property
    def title(self) -> str: ...
    @property
    def in_words(self) -> Sequence[str]:
        """What holds and what is lost, in plain sentences."""

    @property
    def promise(self) -> str:
        """The heading of the guarantee."""

    @property
    def guarantee(self) -> str: ...
    @property
    def covers(self) -> Sequence[str]: ...
    @property
    def not_covered(self) -> Sequence[str]: ...
    @property
    def warnings(self) -> Sequence[str]: ...
    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def accounting(self) -> Mapping[str, int]: ...
    @property
    def checked(self) -> str:
        """The heading of the checks."""

    @property
    def checks(self) -> Sequence[Check]: ...
    @property
    def sections(self) -> Sequence[Section]: ...
    @property
    def about(self) -> str:
        """The heading of the particulars."""

    @property
    def timings(self) -> Mapping[str, float]: ...
    def steps(self) -> list[Step]:
        """The timings as lines that add up."""

    def notices(self) -> list[Notice]: ...
    def particulars(self) -> list[tuple[str, str]]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_markdown(self) -> str: ...


def html(report: Page, *, page: bool) -> str:
    """One page that needs nothing else, no network, no script; or (page = false) a fragment for a notebook."""
    steps, findings = report.steps(), by_level(report.findings)
    finding_texts = {finding.text for finding in findings}
    return _environment().get_template("report.html.j2").render(
        report=report,
        page=page,
        steps=steps,
        longest=max((step.spent for step in steps if step.kind == "step"), default=0.0),
        findings=findings,
        titles=TITLES,
        warnings=[text for text in report.warnings if text not in finding_texts],
        glossary=glossary(report),
    )


def glossary(report: Page) -> list[tuple[str, str]]:
    """The words of the field that the report uses."""
    promised = [report.guarantee, *report.covers, *report.not_covered, *(finding.text for finding in report.findings)]
    accounted = [wording(name) for name, count in report.accounting.items() if count]
    return glossary_of([*report.in_words, *promised, *accounted, *texts_of(report.sections)])


def steps_of(timings: Mapping[str, float]) -> list[Step]:
    """Steps that add up to a total."""
    steps = [Step(wording(name), spent) for name, spent in timings.items()]
    return [*steps, Step("Together", sum(timings.values()), "total")] if len(steps) > 1 else steps


def typeset(text: str) -> Markup:
    """The text, escaped, with exponents of numbers and of k and l raised: 10^(2,1) is no text for readers."""
    return Markup(_EXPONENT.sub(r"<sup>\1</sup>", str(escape(text))))


def is_amount(value: Any) -> bool:
    """Whether a cell is aligned as a number: a number, or a share in percent."""
    return is_number(value) or (isinstance(value, str) and value.endswith(" %") and len(value) <= len("above 99.9 %"))


def amount(value: float, as_share: bool) -> str:
    """The amount of a bar."""
    return percent(value) if as_share else show(value)


def json_text(report: Page) -> str:
    """Machine readable: stable keys, no drawings; nan and infinity are null."""
    return json.dumps(report.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sections_dict(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Sections as JSON types: what they say, not how they look."""
    return [{"title": part.title, "items": [_item_dict(item) for item in part.items]} for part in sections]


def write(report: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page, and .json and .md beside it; return where the page is.

    Guarantee: each file is replaced as a whole or not at all, the page last; missing folders are made.
    """
    page = _page_path(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    for target, text in (
        (page.with_suffix(".json"), json_text(report)),
        (page.with_suffix(".md"), report.to_markdown()),
        (page, html(report, page=True)),
    ):
        _replace(target, text)
    return page


def _item_dict(item: Item) -> dict[str, Any]:
    names = [name for name in item.__dataclass_fields__ if name not in ("svg", "marked", "folded")]
    return {"kind": item.kind, **{name: plain(getattr(item, name)) for name in names}}


def _page_path(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" in text:
        raise ConfigurationError("output.report: a report is a file on the driver. Give a path without scheme.")
    page = Path(text)
    return page if page.suffix in (".html", ".htm") else page.with_name(page.name + ".html")


def _replace(target: Path, text: str) -> None:
    staged = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")  # beside it: a rename stays on one file system
    try:
        with staged.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(staged, target)
    finally:
        staged.unlink(missing_ok=True)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("anon_spark", "report"),
        autoescape=True,  # for every template, whatever its ending
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(show=show, wording=wording, seconds=seconds, amount=amount, typeset=typeset)
    environment.tests["amount"] = is_amount
    return environment
