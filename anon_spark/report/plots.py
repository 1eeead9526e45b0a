"""The plots of a report. Each takes plain numbers and returns an inline SVG; none shows a label of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from textwrap import fill
from typing import TYPE_CHECKING, Any

from anon_spark.model.facts import FrontPoint, LevelReached, LevelShares, SizeRange
from anon_spark.report.drawing import ACCENT, CHOSEN, GRID, INK, MUTED, PAPER, TRACK, plain_axes, svg_of, ticks
from anon_spark.report.formats import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.6  # inches; 634 px on the page
MOST_TOOLTIPS = 500  # points drawn one by one; beyond that they are one artist
LONGEST_NAME = 28
LONGEST_LINE = 32  # of a name on several lines


def front_plot(points: Sequence[FrontPoint], chosen: int, required_k: int, loss_name: str) -> str:
    """k (log) against loss of nodes; the chosen one marked.

    The steps say what a k costs: the least loss of a node with at least that k. Below required_k is shaded, its
    nodes hollow. Hovering a point tells its node.
    """
    order = sorted(range(len(points)), key=lambda at: (points[at].k, points[at].loss))
    ks = [max(float(points[at].k), 1.0) for at in order]
    losses = [float(points[at].loss) for at in order]
    costs = list(accumulate(reversed(losses), min))[::-1]  # a chosen node off the front must not raise the steps

    def draw(figure: Figure) -> dict[str, str]:
        axes = figure.subplots()
        plain_axes(axes)
        _k_axis(axes, [*ks, float(required_k)])
        _loss_axis(axes, losses, loss_name)
        low, high = axes.get_xlim()
        axes.axvspan(low, required_k, color=MUTED, alpha=0.13, linewidth=0)
        axes.axvline(required_k, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"required k = {required_k:,}", (required_k, 1), (4, -2), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="bottom", color=MUTED, fontsize=9.5, annotation_clip=False,
        )  # fmt: skip
        axes.step(ks, costs, where="pre", color=ACCENT, linewidth=1.3, alpha=0.55)
        if len(points) > MOST_TOOLTIPS:
            axes.plot(ks, losses, "o", color=ACCENT, markersize=4)
        tooltips = {}
        for at, k, loss in zip(order, ks, losses, strict=True):
            if at != chosen and len(points) > MOST_TOOLTIPS:
                continue
            gid = f"asr-point-{at}"
            axes.plot([k], [loss], gid=gid, zorder=4 if at == chosen else 3, **_marker(at == chosen, k >= required_k))
            tooltips[gid] = _tooltip(points[at], at == chosen)
        _annotate_chosen(axes, points[chosen])
        axes.set_xlim(low, high)
        return tooltips

    return svg_of(draw, (WIDTH, 3.9))


def class_size_plot(ranges: Sequence[SizeRange]) -> str:
    """Bars: classes and rows in each range of sizes."""
    names = [range_name(size_range.least, size_range.most) for size_range in ranges]
    counted = {
        "classes": [size_range.classes for size_range in ranges],
        "rows": [size_range.rows for size_range in ranges],
    }

    def draw(figure: Figure) -> None:
        sides = figure.subplots(1, 2, sharey=True)
        for axes, (what, amounts), colour in zip(sides, counted.items(), (ACCENT, MUTED), strict=True):
            _bars(axes, names, amounts, [show(amount) for amount in amounts], max(amounts, default=1) * 1.3, colour)
            axes.set_title(what, fontsize=10.5, loc="left")
        sides[0].set_ylabel("size of the class")

    return svg_of(draw, (WIDTH, _tall(len(ranges)) + 0.35))


def levels_plot(attributes: Sequence[LevelReached]) -> str:
    """Bars: the level to which each attribute was generalized."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        reached = [attribute.level / max(attribute.height, 1) for attribute in attributes]
        axes.barh(range(len(attributes)), [1.0] * len(attributes), height=0.52, color=TRACK)
        notes = [_level_note(attribute) for attribute in attributes]
        _bars(axes, [_short(attribute.name) for attribute in attributes], reached, [""] * len(reached), 1.42, ACCENT)
        for row, (attribute, note) in enumerate(zip(attributes, notes, strict=True)):
            steps = [step / attribute.height for step in range(1, attribute.height)]
            axes.vlines(steps, row - 0.27, row + 0.27, color=PAPER, linewidth=1.4)
            axes.text(1.02, row, note, va="center", fontsize=9.5, color=INK)
        axes.set_xticks([0, 1], ["original values", "all alike (*)"])

    return svg_of(draw, (WIDTH, _tall(len(attributes))))


def loss_plot(attributes: Sequence[LevelReached]) -> str:
    """The share of detail each attribute lost, 0 to 1."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        losses = [float(attribute.loss) for attribute in attributes]
        names = [_short(attribute.name) for attribute in attributes]
        _bars(axes, names, losses, [show(attribute.loss) for attribute in attributes], 1.12, ACCENT)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0: nothing lost", "0.25", "0.5", "0.75", "1: all lost"])
        axes.grid(axis="x")

    return svg_of(draw, (WIDTH, _tall(len(attributes))))


def panels_plot(names: Sequence[str], panels: Mapping[str, Sequence[float]]) -> str:
    """One panel per measure, each on a scale of its own from 0, with one bar per name."""
    across = 3

    def draw(figure: Figure) -> None:
        down = -(-len(panels) // across)
        grid = figure.subplots(down, across, sharey=True, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, amounts) in zip(grid.flat, panels.items(), strict=False):
            notes = [show(amount) for amount in amounts]
            _bars(axes, [_short(name) for name in names], amounts, notes, max(amounts) * 1.9, ACCENT)
            axes.set_xticks([])  # the bars say their values
            axes.set_title(title, fontsize=10.5, loc="left")

    return svg_of(draw, (WIDTH, (_tall(len(names)) + 0.25) * -(-len(panels) // across)))


def range_name(least: int, most: int | None) -> str:
    """A range of sizes: 10, 10 – 19, or 1,000 and more."""
    if most is None:
        return f"{show(least)} and more"
    return show(least) if least == most else f"{show(least)} – {show(most)}"


def _bars(
    axes: Axes, names: Sequence[str], amounts: Sequence[float], notes: Sequence[str], limit: float, colour: str
) -> None:
    plain_axes(axes)
    drawn = axes.barh(range(len(names)), amounts, height=0.52, color=colour)
    axes.bar_label(drawn, notes, padding=4, fontsize=9.5, color=INK)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first on top
    axes.set_xlim(0, limit or 1)
    axes.xaxis.set_major_locator(ticks().MaxNLocator(3, integer=True))
    axes.xaxis.set_major_formatter(ticks().FuncFormatter(lambda value, _: show(value)))
    axes.spines[["bottom", "left"]].set_color(GRID)
    axes.tick_params(axis="y", length=0)


def _tall(rows: int) -> float:
    return 0.75 + 0.31 * max(rows, 1)


def _k_axis(axes: Axes, ks: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(*ks, 2.0) / 1.3, max(*ks, 10.0) * 1.5)
    axes.xaxis.set_major_locator(ticks().LogLocator(base=10, subs=(1.0, 2.0, 5.0) if max(ks) < 1000 else (1.0,)))
    axes.xaxis.set_major_formatter(ticks().FuncFormatter(lambda value, _: show(value)))
    axes.xaxis.set_minor_formatter(ticks().NullFormatter())
    axes.set_xlabel("k: least number of rows or persons that look alike (log)")


def _loss_axis(axes: Axes, losses: Sequence[float], loss_name: str) -> None:
    least, most = min(losses, default=0.0), max(losses, default=1.0)
    if least > 0 and most / least > 100:
        axes.set_yscale("log")
        axes.set_ylim(least / 1.4, most * 1.4)
        axes.yaxis.set_minor_formatter(ticks().NullFormatter())
    else:
        axes.set_ylim(0, most * 1.08 or 1)
        axes.yaxis.set_major_locator(ticks().MaxNLocator(6))
    axes.yaxis.set_major_formatter(ticks().FuncFormatter(lambda value, _: show(value)))
    axes.grid(axis="y")
    axes.set_ylabel(loss_name)


def _marker(chosen: bool, allowed: bool) -> dict[str, Any]:
    if chosen:
        return {"marker": "D", "markersize": 9, "color": CHOSEN, "markeredgecolor": PAPER, "markeredgewidth": 1.2}
    if allowed:
        return {"marker": "o", "markersize": 5.5, "color": ACCENT, "markeredgecolor": PAPER, "markeredgewidth": 0.7}
    return {"marker": "o", "markersize": 5, "color": PAPER, "markeredgecolor": MUTED, "markeredgewidth": 1.1}


def _annotate_chosen(axes: Axes, point: FrontPoint) -> None:
    at = (max(float(point.k), 1.0), float(point.loss))
    right, up = axes.transLimits.transform(axes.transScale.transform(at))
    # the front rises to the right: below a point on the left and above a point on the right there is room
    if right < 0.55:
        offset, side = ((26, -24), "left") if up > 0.15 else ((10, 62), "left")
    else:
        offset, side = ((-26, 24), "right") if up < 0.85 else ((0, -52), "right" if right > 0.8 else "center")
    axes.annotate(
        f"chosen: k = {show(point.k)}, loss {show(point.loss)}", at, offset, textcoords="offset points",
        ha=side, va="center", color=CHOSEN, fontweight="bold", fontsize=10, zorder=5,
        bbox={"boxstyle": "square,pad=0.15", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.8},
        arrowprops={"arrowstyle": "-", "color": CHOSEN, "linewidth": 1, "shrinkB": 6,
                    "relpos": ({"left": 0.0, "center": 0.5, "right": 1.0}[side], 0.5)},
    )  # fmt: skip


def _tooltip(point: FrontPoint, chosen: bool) -> str:
    suppressed = f"{show(point.suppressed_rows)} rows suppressed"
    text = f"node {show(point.node)}, k = {show(point.k)}, loss {show(point.loss)}, {suppressed}"
    return f"chosen: {text}" if chosen else text


def _level_note(attribute: LevelReached) -> str:
    labels = f"{show(attribute.labels)} label{'' if attribute.labels == 1 else 's'}"
    return f"{attribute.level} of {attribute.height} · {labels}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def shares_plot(attributes: Sequence[LevelShares], of: str = "rows", steps: Sequence[str] = ()) -> str:
    """One bar per attribute, from the original value on the left to the root on the right; steps: names of the levels."""

    def draw(figure: Figure) -> dict[str, str]:
        axes = figure.subplots()
        plain_axes(axes)
        tooltips = {}
        for at, attribute in enumerate(attributes):
            left = 0.0
            deepest = max(len(attribute.shares) - 1, 1)
            for level, share in enumerate(attribute.shares):
                gid = f"asr-share-{at}-{level}"
                axes.barh(
                    at, share, left=left, height=0.52, color=ACCENT, alpha=0.15 + 0.85 * level / deepest, gid=gid
                )
                place = steps[level] if steps else f"on level {level} of {deepest}"
                tooltips[gid] = f"{attribute.name}: {show(share)} of {of} {place}"
                left += share
        axes.set_yticks(range(len(attributes)), [_short(attribute.name) for attribute in attributes])
        axes.set_ylim(len(attributes) - 0.4, -0.6)
        axes.set_xlim(0, 1)
        axes.set_xlabel(f"share of {of}; darker is more general")
        axes.tick_params(axis="y", length=0)
        return tooltips

    return svg_of(draw, (WIDTH, _tall(len(attributes))))


def weights_plot(edges: Sequence[tuple[int, int]]) -> str:
    """Number of edges (log) by weight."""

    def draw(figure: Figure) -> dict[str, str]:
        axes = figure.subplots()
        plain_axes(axes)
        axes.bar(range(len(edges)), [count for _, count in edges], width=0.7, color=ACCENT)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ticks().FuncFormatter(lambda value, _: show(value)))
        axes.yaxis.set_minor_formatter(ticks().NullFormatter())
        step = max(1, len(edges) // 12)
        axes.set_xticks(range(0, len(edges), step), [show(weight) for weight, _ in edges[::step]])
        axes.set_xlabel("weight of an edge, in units of the distance")
        axes.set_ylabel("edges (log)")
        return {}

    return svg_of(draw, (WIDTH, 2.6))


def sizes_plot(counts: Mapping[str, int], what: str, axis: str) -> str:
    """Bars: counts by range of sizes; what: what is counted; axis: what the sizes are of."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        amounts = list(counts.values())
        _bars(axes, list(counts), amounts, [show(amount) for amount in amounts], max(amounts, default=1) * 1.15, ACCENT)
        axes.set_title(axis, fontsize=10.5, loc="left")
        axes.set_xlabel(what)

    return svg_of(draw, (WIDTH, _tall(len(counts)) + 0.55))


def rates_plot(rates: Mapping[str, float], promise: float | None = None) -> str:
    """One bar per rate, from 0; a dashed line where the promise ends."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        amounts = list(rates.values())
        most = max([*amounts, promise or 0.0]) * 1.25
        _bars(axes, list(rates), amounts, [show(amount) for amount in amounts], most, ACCENT)
        axes.xaxis.set_major_locator(ticks().MaxNLocator(5))
        if promise is not None:
            axes.axvline(promise, color=CHOSEN, linewidth=1.2, linestyle=(0, (4, 3)))

    return svg_of(draw, (WIDTH, _tall(len(rates)) + 0.2))


def trail_plot(trail: Sequence[tuple[int, float]], evaluated: int) -> str:
    """The best loss so far (log) by the number of cuts that were judged."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        plain_axes(axes)
        cuts, losses = [cut for cut, _ in trail], [loss for _, loss in trail]
        axes.step([*cuts, evaluated], [*losses, losses[-1]], where="post", color=ACCENT, linewidth=1.8)
        axes.set_yscale("log" if min(losses) > 0 and len(losses) > 1 else "linear")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(ticks().FuncFormatter(lambda value, _: show(value)))
        axes.yaxis.set_minor_formatter(ticks().NullFormatter())
        axes.set_xlabel("cuts judged")
        axes.set_ylabel("best loss so far")
        axes.grid(axis="y")

    return svg_of(draw, (WIDTH, 2.8))


def people_plot(groups: Mapping[str, Sequence[float]], tables: Sequence[str], axis: str, sizes: str = "") -> str:
    """Bars: the share of people in each group, a bar for each table (one or two); axis, sizes: what x and y are."""
    colours = [ACCENT] if len(tables) == 1 else [MUTED, ACCENT]
    thick = 0.62 / len(tables)
    names = [fill(name, LONGEST_LINE) for name in groups]
    tall = max(0.2 + 0.16 * len(tables), 0.19 * max(name.count("\n") + 1 for name in names))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        plain_axes(axes)
        for at, (table, colour) in enumerate(zip(tables, colours, strict=True)):
            rows = [row + (at - (len(tables) - 1) / 2) * thick for row in range(len(groups))]
            amounts = [shares[at] for shares in groups.values()]
            drawn = axes.barh(rows, amounts, height=thick * 0.92, color=colour, label=table)
            axes.bar_label(drawn, [f"{amount:.1%}" for amount in amounts], padding=4, fontsize=9, color=INK)
        axes.set_yticks(range(len(groups)), names)
        axes.set_ylim(len(groups) - 0.4, -0.6)  # the first on top
        axes.set_xlim(0, max(max(shares) for shares in groups.values()) * 1.18 or 1)
        axes.xaxis.set_major_locator(ticks().MaxNLocator(5))
        axes.xaxis.set_major_formatter(ticks().FuncFormatter(lambda value, _: f"{value:.0%}"))
        axes.set_xlabel(axis)
        axes.set_ylabel(sizes)
        axes.tick_params(axis="y", length=0)
        if len(tables) > 1:
            axes.legend(frameon=False, loc="best", labelcolor=INK)

    return svg_of(draw, (WIDTH, 0.9 + len(groups) * tall))
