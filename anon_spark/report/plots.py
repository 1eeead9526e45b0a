"""The drawings of a report that bars cannot replace. Each takes plain numbers and returns an inline SVG; none shows a label."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from anon_spark.model.facts import FrontPoint
from anon_spark.report.drawing import ACCENT, CHOSEN, MUTED, PAPER, plain_axes, svg_of, ticks
from anon_spark.report.formats import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.0  # inches; 480 px on the page: its text is readable on a narrow screen, too
MOST_TOOLTIPS = 500  # points drawn one by one; beyond that they are one artist


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


def range_name(least: int, most: int | None) -> str:
    """A range of sizes: 10, 10 – 19, or 1,000 and more."""
    if most is None:
        return f"{show(least)} and more"
    return show(least) if least == most else f"{show(least)} – {show(most)}"


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
