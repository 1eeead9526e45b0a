"""Every page in a real browser, wide and narrow, light and dark, and on paper: nothing clipped, nothing overlaps, no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import PROGRAM, Browser
from tests.report.saved import FAMILIES, assessment, report_of
from tests.report.test_compare import comparison

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium is installed: apt-get install chromium")

WIDTHS = (1200, 400)
MOST_SHEETS = 4
PAGES = [*FAMILIES, "risk", "risk_before_and_after", "compare"]
BROKEN = """<!DOCTYPE html><html><body class="asr" style="margin: 0">
<p style="width: 3000px">a line that is wider than every screen, so its end, which is this, cannot be read by anybody at all
{wide}</p>
<div style="width: 50px; overflow: hidden; white-space: nowrap">clipped text of a narrow box</div>
<div style="position: absolute; top: 300px">one text</div><div style="position: absolute; top: 302px">another text</div>
<p style="color: #777; background: #888">grey on grey</p>
<img src="https://example.invalid/picture.png"><script>console.error("broken"); undefined_name();</script></body></html>"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All pages, written as a run writes them."""
    folder, risk = tmp_path_factory.mktemp("pages"), assessment()
    made: dict[str, Any] = {
        **{family: report_of(family) for family in FAMILIES},
        "risk": risk,
        "risk_before_and_after": risk.beside(risk),
        "compare": comparison(),
    }
    return {name: page.write(folder / f"{name}.html") for name, page in made.items()}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_clipped_or_overlaps(browser: Browser, pages: dict[str, Path], name: str) -> None:
    faults = {
        (width, dark): looked.all
        for width in WIDTHS
        for dark in (False, True)
        if (looked := browser.look(pages[name], width, dark)).all
    }

    assert faults == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_report_prints_on_few_sheets(browser: Browser, pages: dict[str, Path], family: str) -> None:
    browser.open(pages[family], WIDTHS[0], dark=True)

    sheets, pdf = browser.pages()

    assert pdf.startswith(b"%PDF") and 1 <= sheets <= MOST_SHEETS


def test_the_look_finds_planted_faults(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text(BROKEN.format(wide="wide " * 200))

    looked = browser.look(page, 1200, dark=False)

    for fault in ("the page is 3000 px wide", "outside the screen", "clipped: clipped text", "overlap: one text", "hard to read"):
        assert any(found.startswith(fault) for found in looked.faults), fault
    assert looked.requests == ["https://example.invalid/picture.png"]
    assert any("undefined_name" in text or "Uncaught" in text for text in looked.console) and "error" in looked.console
