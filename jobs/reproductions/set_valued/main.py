"""Nonreciprocal recoding's experiments: ER and QE by k and l, closed walks, attacks, and what the paper prints wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from anon_spark.report.drawing import svg_of
from jobs.benchmarks.set_valued.attacks import DRAWS, SAMPLE, Attacked, attacked
from jobs.benchmarks.set_valued.outcomes import (
    CAHD,
    GRAY,
    GROUPS,
    INPUT,
    KS,
    LS,
    OTHER_SIZES,
    OURS,
    PAPER,
    QUERIES,
    QUERY_SEED,
    QUERY_SIZES,
    SHIFT,
    SPACED,
    SPACED_GROUPS,
    SPACED_SWAPS,
    SWAPS,
    TSP,
    Compared,
    Outcome,
    Outcomes,
    compare,
)
from jobs.benchmarks.set_valued.outcomes import ORDERS as SETTINGS
from jobs.benchmarks.set_valued.records import CHESS, LABEL_SEED, LABELS, T10, tables
from jobs.benchmarks.set_valued.walks import CASES, compared, ring_growth_text, walks_text
from jobs.markdown import table
from jobs.reproductions.set_valued.claims import NEAR, claims_text, diversity_growth
from jobs.reproductions.set_valued.example import errors_text

BY_K = (INPUT, GRAY, TSP, OURS, GROUPS, SWAPS)
BY_L = (SPACED, SPACED_GROUPS, SPACED_SWAPS, SHIFT, PAPER, CAHD)
MARKS = dict(zip((*BY_K, *BY_L), "v^sod*oD*XsP", strict=True))

Panel = tuple[str, str, Mapping[str, Mapping[int, float]]]  # title, x axis, values by way


def reproduce(spark: SparkSession, data: Path | None, figures: Path) -> str:
    """All tables, figures and claims as Markdown."""
    found = [compare(one) for one in tables(spark, data)]
    attacks = {one.table.name: attacks_on(spark, one) for one in found}
    walks = {case: compared(*case) for case in CASES}
    figures.mkdir(exist_ok=True)
    drawn = {
        "er_k": ("ER by k", [er_panel(one, one.by_k, BY_K, "k", KS) for one in found]),
        "er_l": ("ER by l", [er_panel(one, one.by_l, BY_L, "l", LS) for one in found]),
        "qe": ("QE by k and l", [panel for one in found for panel in qe_panels(one)]),
        "attacks": ("links and items by k", [attack_panel(name, of) for name, of in attacks.items()]),
    }
    shown = {}
    for name, (title, panels) in drawn.items():
        path = figures / f"set_valued_{name}.svg"
        path.write_text(_figure(panels), encoding="utf-8")
        shown[name] = f"![{title}]({figures.name}/{path.name})"
    return "\n\n".join(
        [
            *(_about(one) for one in found),
            "Window: of four orders per block the one with the least ER. Groups: the same orders, cut where it costs least. "
            "Per flipped bit a ring is the mean of the k ways to cut its order into groups of k, so the best cut flips no "
            "more, but for a remainder. Swaps: records of different groups then change places, which lowers ER. "
            f"Labels: {LABELS} values, probability ∝ rank^-0.5, "
            f"seed {LABEL_SEED}. Queries: {QUERIES} of each type, seed {QUERY_SEED}, {QUERY_SIZES[CHESS]} items for Chess, "
            f"{OTHER_SIZES} for other tables, the same for all releases.",
            *(_by_k(one) for one in found),
            shown["er_k"],
            *(_by_l(one) for one in found),
            shown["er_l"],
            *(_queries(one) for one in found),
            shown["qe"],
            "Walks, all rounds of one ring:",
            walks_text(walks),
            ring_growth_text(),
            *(_attacks(name, of) for name, of in attacks.items()),
            shown["attacks"],
            claims_text(found, attacks, walks, diversity_growth(found[0].table)),
            errors_text(found),
        ]
    )


def attacks_on(spark: SparkSession, found: Compared) -> dict[str, dict[int, Attacked]]:
    """Ring and groups of the window order, these also after swaps, on the first block."""
    return {
        way: {k: attacked(spark, found.by_k[way][k].parts[0], SETTINGS[way](k)) for k in found.by_k[way]}
        for way in (OURS, GROUPS, SWAPS)
    }


# --- tables --------------------------------------------------------------------------------------------------------------


def _about(found: Compared) -> str:
    sizes = found.table.offsets[1:] - found.table.offsets[:-1]
    blocks = len(next(iter(found.by_k[OURS].values())).parts)
    return (
        f"Data: {found.table.name}: {found.table.records:,} records, {found.table.sets.codes.size:,} items, "
        f"{sizes.mean():.1f} in a record; blocks: {blocks}. Most frequent label: "
        f"{np.bincount(found.labels).max() / found.labels.size:.1%}."
    )


def _by_k(found: Compared) -> str:
    name, expected = found.table.name, NEAR.get(found.table.name, {})
    head = ["k", *BY_K, *(["window, expected"] if expected else []), "seconds of window"]
    rows = [
        [
            str(k),
            *_cells(found.by_k, BY_K, k, lambda outcome: f"{outcome.error:.4f}"),
            *([f"{expected[k]:.4f}"] if k in expected else ["–"] if expected else []),
            f"{found.by_k[OURS][k].seconds:.1f}" if k in found.by_k[OURS] else "–",
        ]
        for k in found.by_k[GRAY]
    ]
    return f"**{name}**, ER by k:\n\n" + table(head, rows)


def _by_l(found: Compared) -> str:
    rows = [[str(at), *_cells(found.by_l, BY_L, at, _with_collisions)] for at in found.by_l[CAHD]]
    told = "in brackets, of all records those whose published labels are not all different"
    return f"**{found.table.name}**, ER by l ({told}):\n\n" + table(["l", *BY_L], rows)


def _with_collisions(outcome: Outcome) -> str:
    return f"{outcome.error:.4f}" + ("" if outcome.colliding is None else f" ({outcome.colliding:.1%})")


def _queries(found: Compared) -> str:
    def cell(outcome: Outcome) -> str:
        return f"{outcome.queries.present:.4f} / {outcome.queries.absent:.4f}"

    by_k = [[str(k), *_cells(found.by_k, BY_K, k, cell)] for k in found.by_k[GRAY]]
    by_l = [[str(at), *_cells(found.by_l, BY_L, at, cell)] for at in found.by_l[CAHD]]
    return "\n\n".join(
        [
            f"**{found.table.name}**, QE (all items there / none of them there):",
            table(["k", *BY_K], by_k),
            table(["l", *BY_L], by_l),
        ]
    )


def _cells(outcomes: Outcomes, ways: Sequence[str], at: int, cell: Callable[[Outcome], str]) -> list[str]:
    return [cell(outcomes[way][at]) if at in outcomes[way] else "–" for way in ways]


def _attacks(name: str, found: Mapping[str, Mapping[int, Attacked]]) -> str:
    head = ["k", "graph", "1/k", "link by fit", "link by simulation", "beyond chance"]
    head += [
        "records known, order known",
        "bits known",
        "records known from the rows alone",
        "most similar row is next",
    ]
    rows = [
        [
            str(k),
            "ring" if way == OURS else way,
            f"{one.promise:.3f}",
            f"{one.fit:.3f}",
            f"{one.simulation:.3f}",
            "**yes**" if one.refused else "no",
            f"{one.items.known_share:.1%}" + ("" if one.items.exact else " or more"),
            f"{one.items.known_bits_share:.1%}",
            f"{one.items.chained_share:.1%}",
            f"{one.items.next_share:.1%}" if way == OURS else "–",
        ]
        for way, of in found.items()
        for k, one in of.items()
    ]
    return (
        f"**{name}**, attacks on the first block (up to {SAMPLE} records, {DRAWS} fresh draws; window order). Links are what is "
        "promised; items are not protected:\n\n" + table(head, rows)
    )


# --- figures -------------------------------------------------------------------------------------------------------------


def er_panel(found: Compared, outcomes: Outcomes, ways: Iterable[str], axis: str, at: Sequence[int]) -> Panel:
    values = {way: {x: outcomes[way][x].error for x in at if x in outcomes[way]} for way in ways}
    return f"{_short(found.table.name)}: ER", axis, values


def qe_panels(found: Compared) -> list[Panel]:
    """Both types of queries by k and by l."""
    panels: list[Panel] = []
    kinds: Mapping[str, Callable[[Outcome], float]] = {
        "all there": lambda outcome: outcome.queries.present,
        "none there": lambda outcome: outcome.queries.absent,
    }
    for axis, outcomes, ways, at in (("k", found.by_k, BY_K, KS), ("l", found.by_l, BY_L, LS)):
        for kind, measure in kinds.items():
            values = {way: {x: measure(outcomes[way][x]) for x in at if x in outcomes[way]} for way in ways}
            panels.append((f"{_short(found.table.name)}: QE, {kind}", axis, values))
    return panels


def attack_panel(name: str, found: Mapping[str, Mapping[int, Attacked]]) -> Panel:
    ring = found[OURS]
    values = {
        "1/k": {k: one.promise for k, one in ring.items()},
        "link by fit": {k: one.fit for k, one in ring.items()},
        "link by simulation": {k: one.simulation for k, one in ring.items()},
        # for larger k only lower bounds are known
        "records known, order known": {k: one.items.known_share for k, one in ring.items() if one.items.exact},
        "records known from the rows": {k: one.items.chained_share for k, one in ring.items() if one.items.exact},
    }
    return f"{_short(name)}: ring", "k", values


def _short(name: str) -> str:
    return name.split(",")[0] if name.startswith((CHESS, T10)) else "baskets"


def _figure(panels: Sequence[Panel]) -> str:
    columns = min(len(panels), 4) if len(panels) > 2 else len(panels)
    lines = -(-len(panels) // columns)

    def draw(figure: Figure) -> None:
        grid: Any = figure.subplots(lines, columns, squeeze=False)
        handles: dict[str, Any] = {}
        for axes, (title, axis, values) in zip(grid.flat, panels, strict=False):
            for number, (way, found) in enumerate(values.items()):
                mark = MARKS.get(way, "osvDX"[number % 5])
                style = "--" if way in (INPUT, CAHD, "1/k") else "-"
                (line,) = axes.plot(
                    list(found),
                    list(found.values()),
                    marker=mark,
                    label=way,
                    linestyle=style,
                    markersize=5,
                    color=f"C{number}",
                )
                handles.setdefault(way, line)
            axes.set_title(title)
            axes.set_xlabel(axis)
            axes.set_xticks(sorted({x for found in values.values() for x in found}))
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=min(5, 2 * columns))

    return svg_of(draw, (5.2 * columns if columns < 3 else 3.4 * columns, 0.9 + 3.1 * lines))
