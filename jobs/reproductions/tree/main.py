"""The experiments on nested records: GCS, OCS, beam, partial cuts, MiRaCle by k, m, n, g and size; subtrees, time, absences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from pyspark.sql import SparkSession

from anon_spark.families.tree.settings import Settings
from anon_spark.report.drawing import svg_of
from jobs.benchmarks.tree.data import TPCH, kept_tables
from jobs.benchmarks.tree.records import K, M, N, verdict_cell
from jobs.markdown import table
from jobs.reproductions.tree.claims import claims_text, dml2_of, ml2_of, rpd_of
from jobs.reproductions.tree.runs import CUTS, LARGE_SECONDS, RECORDS, WAYS, Found, G, Outcome, Sweep, Way, measured

OPTIONS = ("tables", "rows", "large", "cuts")
MARKS = dict(zip(WAYS, "osDv^", strict=True))
FULL = {"MiRaCle": "MiRaCle (reconstructed)", "partial": "beam, partial cuts"}

Panel = tuple[str, str, str, Mapping[str, Mapping[float, float]]]  # title, x axis, scale of y, values by way


def reproduce(
    spark: SparkSession,
    data: Path | None,
    figures: Path,
    tables: Path | None = None,
    rows: int | None = None,
    large: int | None = None,
    cuts: int | None = None,
) -> str:
    """All tables, figures and claims as Markdown. data: not used, the tables are generated."""
    with kept_tables(tables) as folder:
        found = measured(spark, folder, rows or RECORDS, large, cuts or CUTS)
    figures.mkdir(exist_ok=True)
    drawn = {
        "rpd": ("RPD by k, m, n and records", rpd_panels(found)),
        "subtrees": ("ML² and dML² by k, m and n", subtree_panels(found)),
        "time": ("seconds of the searches", time_panels(found)),
    }
    shown = {}
    for name, (title, panels) in drawn.items():
        path = figures / f"tree_{name}.svg"
        path.write_text(_figure(panels), encoding="utf-8")
        shown[name] = f"![{title}]({figures.name}/{path.name})"
    return "\n\n".join(
        part
        for part in [
            about(found),
            sweep_text("By k", "k", found.by_k),
            sweep_text("By m", "m", found.by_m),
            sweep_text("By n", "n", found.by_n),
            sweep_text("By records", "records", found.by_size),
            shown["rpd"],
            shown["subtrees"],
            shown["time"],
            greeds_text(found),
            large_text(found) if found.large else "",
            absent_text(found),
            claims_text(found),
        ]
        if part
    )


# --- tables --------------------------------------------------------------------------------------------------------------


def about(found: Found) -> str:
    origin = (
        "The paper's sample of orders and items is not stated, so its numbers are not expected."
        if found.name == TPCH
        else "The TPC-H generator is not installed: these are the library's own customers, and the paper's numbers do not apply."
    )
    return (
        f"Data: {found.records:,} {found.name}, {found.nodes / found.records:.2f} nodes each. {origin}\n\n"
        f"Default parameters k = {K}, m = {M}, n = {N}, g = {G}. GCS, OCS and beam (width {Settings(k=K).width}; also "
        f"over partial cuts) may judge {found.cuts:,} cuts; GCS "
        "as printed does not always drain its queue, so what it would find after more cuts is not known. MiRaCle is a "
        "reconstruction, and depends on k alone. Searches compare cuts by RPD_a; RPD and RPD_a count the labels of a node type "
        "on each level; ML² and dML² are of subtrees in 1% of the records. Every release is audited from its published paths "
        "alone."
    )


HEAD = ["RPD", "RPD_a", "ML²", "dML²", "labels", "relations given up", "cuts", "seconds", "ended", "violations"]


def cells(one: Outcome) -> list[str]:
    """A release in a table."""
    losses, best = one.losses, one.best
    return [
        f"{losses.rpd:.4g}",
        "–" if best is None else f"{best.cost:.4g}",
        "–" if losses.ml2 is None else f"{losses.ml2:.3f} ({losses.preserved:,} of {losses.frequent:,})",
        "–" if losses.dml2 is None else f"{losses.dml2:.4f}",
        "–" if best is None else str(len(best.cut)),
        "–" if best is None else str(len(best.pairs)),
        "–" if best is None else f"{one.cuts:,}",
        f"{one.seconds:.1f}",
        "yes" if one.ended else "no",
        verdict_cell(one.verdict),
    ]


def sweep_text(title: str, name: str, sweep: Sweep) -> str:
    rows = [[f"{at:,}", FULL.get(way, way), *cells(of[way])] for at, of in sweep.items() for way in WAYS]
    return f"{title}:\n\n" + table([name, "", *HEAD], rows)


def greeds_text(found: Found) -> str:
    rows = [
        [f"{k}", "ACS" if g == 0 else f"GCS, g = {g}", *cells(one)] for k, of in found.greeds.items() for g, one in of.items()
    ]
    return "GCS by g beside ACS, where that ends:\n\n" + table(["k", "", *HEAD], rows)


def large_text(found: Found) -> str:
    records = next(iter(found.large.values())).records
    rows = [[FULL.get(way, way), *cells(found.large[way])] for way in WAYS]
    return (
        f"{records:,} records, default parameters (a search ends after {found.cuts:,} cuts or {LARGE_SECONDS} s):\n\n"
        + table(["", *HEAD], rows)
    )


def absent_text(found: Found) -> str:
    """What is left to who also knows what a record lacks."""
    rows = [
        [
            way,
            str(one.negated),
            "–" if one.level is None else "values" if one.level == 0 else "groups",
            f"{one.drawn:,}",
            f"{one.below:,} ({one.share_below:.2%})",
            f"{one.affected:.4f}",
            str(one.least),
            ", ".join(f"{rows}: {times}" for rows, times in one.supports[:6]) + (" …" if len(one.supports) > 6 else "") or "–",
        ]
        for way, outcomes in found.absent.items()
        for one in outcomes
    ]
    head = ["release", "absent", "of", "K drawn", "below k", "individuals per K", "fewest records", "supports below k"]
    return (
        f"Absences an attacker knows besides {M} values and {N} relations (not covered by the guarantee, default "
        f"parameters):\n\n" + table(head, rows)
    )


# --- figures -------------------------------------------------------------------------------------------------------------


def _lines(sweep: Sweep, measure: Callable[[Outcome], float], ways: Sequence[Way] = WAYS) -> dict[str, dict[float, float]]:
    return {way: {float(at): measure(of[way]) for at, of in sweep.items()} for way in ways}


def rpd_panels(found: Found) -> list[Panel]:
    sweeps = {"k": found.by_k, "m": found.by_m, "n": found.by_n, "records": found.by_size}
    return [(f"RPD by {name}", name, "log", _lines(sweep, rpd_of)) for name, sweep in sweeps.items()]


def subtree_panels(found: Found) -> list[Panel]:
    sweeps = {"k": found.by_k, "m": found.by_m, "n": found.by_n}
    return [
        (f"{what} by {name}", name, "linear", _lines(sweep, measure))
        for what, measure in (("ML²", ml2_of), ("dML²", dml2_of))
        for name, sweep in sweeps.items()
    ]


def time_panels(found: Found) -> list[Panel]:
    sweeps = {"k": found.by_k, "m": found.by_m, "n": found.by_n, "records": found.by_size}
    return [
        (f"seconds by {name}", name, "linear", _lines(sweep, lambda one: one.seconds)) for name, sweep in sweeps.items()
    ]


def _figure(panels: Sequence[Panel]) -> str:
    columns = 2 if len(panels) == 4 else 3
    lines = -(-len(panels) // columns)

    def draw(figure: Figure) -> None:
        grid: Any = figure.subplots(lines, columns, squeeze=False)
        handles: dict[str, Any] = {}
        for axes, (title, axis, scale, values) in zip(grid.flat, panels, strict=False):
            for number, (way, found) in enumerate(values.items()):  # marks that lie above each other are all seen
                style = {"marker": list(MARKS.values())[number], "markersize": 10 - 2 * number, "fillstyle": "none"}
                (line,) = axes.plot(list(found), list(found.values()), color=f"C{number}", **style)
                handles.setdefault(FULL.get(way, way), line)
            axes.set_title(title)
            axes.set_xlabel(axis)
            if axis == "k":
                axes.set_xscale("log")
            places = list(next(iter(values.values())))
            axes.set_xticks(places, [f"{at:,.0f}" for at in places])
            axes.minorticks_off()
            _scale(axes, scale)
            axes.grid(alpha=0.3)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles))

    return svg_of(draw, (3.6 * columns if columns > 2 else 4.8 * columns, 0.9 + 2.8 * lines))


def _scale(axes: Any, scale: str) -> None:
    if scale == "linear":
        axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
        return
    axes.set_yscale(scale)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # powers would be shown as formulas
    axes.yaxis.set_minor_formatter(NullFormatter())
