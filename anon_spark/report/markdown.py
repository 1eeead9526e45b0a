"""A report as Markdown: for terminals, pull requests and wikis. Pictures are replaced by their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from anon_spark.model.findings import TITLES, by_level
from anon_spark.report.formats import is_number, seconds, show, wording
from anon_spark.report.items import Bars, Item, Picture, Table
from anon_spark.report.page import Page, amount, glossary

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$])")


def escaped(value: Any) -> str:
    """The value as one line that Markdown shows as it is: no markup, no HTML, no broken table."""
    return _SPECIAL.sub(r"\\\1", " ".join(show(value).split()))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A pipe table; a column of numbers is aligned to the right."""
    numeric = [bool(rows) and all(is_number(row[at]) or row[at] is None for row in rows) for at in range(len(columns))]
    head, *body = ([escaped(cell) for cell in line] for line in (columns, *rows))
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *body))


def bullets(lines: Iterable[str]) -> str:
    """A list, one line each."""
    return "\n".join(f"- {escaped(line)}" for line in lines)


def render(report: Page) -> str:
    """The whole report. Guarantee: the same report gives the same text."""
    return "\n\n".join(block for block in _blocks(report) if block) + "\n"


def _blocks(report: Page) -> Iterator[str]:
    yield f"# {escaped(report.title)}"
    for notice in report.notices():
        yield f"> **{escaped(notice.headline)}**" + (f" — {escaped(notice.detail)}" if notice.detail else "")
    yield escaped(" ".join(report.in_words))
    yield f"**Guarantee.** {escaped(report.guarantee)}" if report.guarantee else ""
    if report.covers:
        yield "## What it covers"
        yield bullets(report.covers)
    if report.not_covered:
        yield "## What it does not cover"
        yield bullets(report.not_covered)
    if report.findings:
        yield "## Findings"
        yield bullets(f"{TITLES[finding.level]}: {finding.text}" for finding in by_level(report.findings))
    finding_texts = {finding.text for finding in report.findings}
    warnings = [text for text in report.warnings if text not in finding_texts]
    if warnings:
        yield "## Warnings"
        yield bullets(warnings)
    if report.accounting:
        yield "## Accounting"
        yield table(("what", "count"), [(wording(name), count) for name, count in report.accounting.items()])
    for section in report.sections:
        yield f"## {escaped(section.title)}"
        for item in section.items:
            yield from _item(item)
    if report.checks:
        yield f"## {escaped(report.checked)}"
        verdicts = [
            (check.name, "passed" if check.passed else "FAILED", check.violations, check.detail)
            for check in report.checks
        ]
        yield table(("check", "result", "violations", "detail"), verdicts)
    yield f"## {escaped(report.about)}"
    yield table(("what", "value"), report.particulars())
    steps = report.steps()
    if steps:
        yield "### Timings"
        names = {"step": "{}", "part": "of this: {}", "total": "{}"}
        yield table(("step", "time"), [(names[step.kind].format(step.name), seconds(step.spent)) for step in steps])
    words = glossary(report)
    if words:
        yield "## Words and measures"
        yield "\n".join(f"- **{escaped(word)}**: {escaped(means)}" for word, means in words)


def _item(item: Item) -> Iterator[str]:
    if item.title:
        yield f"### {escaped(item.title)}"
    if isinstance(item, Table):
        yield table(item.columns, item.rows)
        yield escaped(item.note)
    elif isinstance(item, Bars):
        yield from _bars(item)
    elif isinstance(item, Picture):
        yield f"*Picture: {escaped(item.alt)}*"
    else:
        yield from (escaped(paragraph) for paragraph in item.paragraphs)


def _bars(item: Bars) -> Iterator[str]:
    """Bars as a table of their amounts."""
    limit = "" if item.limit is None else f" {item.limit[1]}: {amount(item.limit[0], item.as_share)}."
    yield escaped(f"{item.unit}.{limit}")
    intervals = [[" to ".join(amount(end, item.as_share) for end in one) if one else None] for one in item.intervals]
    rows = [
        (
            name,
            *(amount(amounts[at], item.as_share) for amounts in item.series.values()),
            *(intervals[at] if intervals else ()),
        )
        for at, name in enumerate(item.names)
    ]
    head = ("", *item.series, *(["95 % interval"] if intervals else []))
    yield table(head, rows)
    yield escaped(item.note)
