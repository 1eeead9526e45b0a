"""Inline SVG of matplotlib figures: deterministic, text as text, colours that follow the page.

No pyplot, so no global figure, no window, no backend chosen for the caller; rcParams are changed only inside `svg_of`.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # matplotlib is imported with the first picture: that takes as long as all the rest
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Each colour becomes a CSS variable with the colour itself as fallback; the page sets the variables for a dark theme.
INK = "#1b2129"
MUTED = "#5a6672"
GRID = "#dde2e8"
TRACK = "#e9edf2"
ACCENT = "#1a62c5"
CHOSEN = "#c0410d"
PAPER = "#fefefe"
_VARIABLES = {
    INK: "--asr-ink",
    MUTED: "--asr-muted",
    GRID: "--asr-grid",
    TRACK: "--asr-track",
    ACCENT: "--asr-accent",
    CHOSEN: "--asr-chosen",
    PAPER: "--asr-paper",
}

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "anon-spark",
    "text.parse_math": False,  # a column may be called $x$
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
}
_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}

_PROLOG = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_SHEET = re.compile(r"\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_ROOT = re.compile(r"<svg[^>]*?viewBox=\"([^\"]+)\"[^>]*>")
_FONT = re.compile(r"font-family: [^;\"]*")
_ID = re.compile(r' id="([^"]+)"')
_REFERENCE = re.compile(r'href="#([^"]+)"|url\(#([^)]+)\)')


def svg_of(draw: Callable[[Figure], Mapping[str, str] | None], size: tuple[float, float]) -> str:
    """Draw on a fresh figure of `size` inches and return the inline SVG.

    `draw` may return {gid of an artist: tooltip}; each becomes the <title> of that artist's group.
    Guarantee: the same drawing gives the same text; no metadata, no external reference, ids unique per drawing.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's font may have it
        matplotlib.rcdefaults()  # not the caller's style: a report looks the same everywhere
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_visible(False)
        tooltips = draw(figure) or {}
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return _inlined(buffer.getvalue(), tooltips)


def ticks() -> Any:
    """The module of locators and formatters."""
    from matplotlib import ticker

    return ticker


def plain_axes(axes: Axes) -> None:
    """Axes without background, so the page shows through."""
    axes.patch.set_visible(False)
    axes.tick_params(length=3)


def _inlined(svg: str, tooltips: Mapping[str, str]) -> str:
    svg = _SHEET.sub("", _PROLOG.sub("", svg), count=1)  # its style sheet selects `*`, the whole page
    for gid, tooltip in tooltips.items():
        svg = svg.replace(f'<g id="{gid}">', f'<g id="{gid}" class="asr-point"><title>{escape(tooltip)}</title>', 1)
    svg = _with_own_ids(svg)
    svg = _FONT.sub("font-family: system-ui, sans-serif", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    return _ROOT.sub(_root, svg, count=1).strip()


def _with_own_ids(svg: str) -> str:
    """Keep only ids something refers to, made unique by a digest of the drawing: several drawings share one page."""
    used = {href or url for href, url in _REFERENCE.findall(svg)}
    prefix = "asr" + hashlib.sha256(svg.encode()).hexdigest()[:8] + "-"
    svg = _ID.sub(lambda match: f' id="{prefix}{match[1]}"' if match[1] in used else "", svg)
    return svg.replace('href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")


def _root(match: re.Match[str]) -> str:
    width = float(match[1].split()[2])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{match[1]}" '
        f'class="asr-plot" style="width: 100%; max-width: {width * 4 / 3 * 1.1:.0f}px; '
        'stroke-linejoin: round; stroke-linecap: butt">'
    )
