"""Linking rates of set_valued on real draws: `python jobs/benchmarks/set_valued/links.py`, writes docs/linking.md.

Synthetic baskets in one block, both graphs, several k and l: how many rows somebody finds who knows all item sets, and who knows
one true link besides. Started by hand; about a minute of one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anon_spark.families.set_valued.block import SEGMENT, Arrangement, GraphKind, Settings, arrange, draw
from anon_spark.kernels.bitmaps import sets_of
from anon_spark.kernels.classes import Codes
from anon_spark.model.estimate import Estimate
from anon_spark.risk.item_sets.known_link import KINDS, rates, risk_of
from anon_spark.risk.item_sets.relink import nearest_rows
from anon_spark.samples.baskets import baskets
from anon_spark.spark_session import make_session
from jobs.benchmarks.set_valued.attacks import by_simulation

PAGE = Path(__file__).parents[3] / "docs" / "linking.md"
MARK = "<!-- measured: everything below is written by jobs/benchmarks/set_valued/links.py -->"
ROWS, DRAWS, SAMPLE = 1_000, 400, 500
KEY = "linking"
GRAPHS: tuple[GraphKind, ...] = ("ring", "groups")
SETTINGS: tuple[dict[str, Any], ...] = ({"k": 2}, {"k": 3}, {"k": 5}, {"k": 10}, {"l": 2}, {"l": 3}, {"l": 5})
SHIFT: dict[str, Any] = {"l": 3, "truth": "shift"}


class Records(NamedTuple):
    """Item sets in Gray order, and the number of each one's sensitive value."""

    offsets: Any
    codes: Any
    labels: Codes


class Line(NamedTuple):
    """One setting, and the rates of each attacker."""

    name: str
    graph: str
    promise: float
    rates: Sequence[Estimate | None]


def read(rows: int) -> Records:
    """Synthetic baskets, as the family would read them."""
    table = baskets(make_session("anon-spark linking"), rows).toPandas()
    names = {name: at for at, name in enumerate(sorted({item for items in table["items"] for item in items}))}
    found = [sorted(names[item] for item in items) for items in table["items"]]
    last = len(names) + 1
    gray = [
        [*((at + 1) * (1 if place % 2 else -1) for place, at in enumerate(items)), last if len(items) % 2 else -last]
        for items in found
    ]
    order = sorted(range(rows), key=lambda row: (gray[row], row))
    labels = np.unique(table["religion"].to_numpy().astype(str), return_inverse=True)[1].astype(np.int32)
    sizes = [len(found[row]) for row in order]
    codes = np.array([at for row in order for at in found[row]], dtype=np.int64)
    return Records(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), codes, labels[order])


def measured(records: Records, given: dict[str, Any], graph: GraphKind, draws: int) -> Line:
    """Rates by fit, by simulation, and without, beside and apart from a known link."""
    settings = Settings(**given, graph=graph, order="gray_tsp")
    starts = np.arange(0, records.labels.size, SEGMENT[0])
    labels = records.labels if settings.l is not None else None
    arranged = arrange(sets_of(records.offsets, records.codes), starts, labels, settings, KEY, 0)
    assert arranged is not None, "the labels of the sample can be spaced"
    slots = np.stack([draw(arranged.graph, settings, f"{KEY} {at}", 0, arranged.kind).slots for at in range(draws)])
    chosen = np.arange(SAMPLE) * records.labels.size // SAMPLE
    name = ", ".join(f"{key} = {value}" for key, value in given.items())
    promise = 1 / settings.degree
    attacks = [_mean(found, promise) for found in (_by_fit(arranged, chosen, slots), by_simulation(slots[:, chosen]))]
    return Line(name, graph, promise, [*attacks, *_links(arranged, slots, settings.degree)])


def _by_fit(arranged: Arrangement, chosen: Any, slots: Any) -> Any:
    """[draw, record]: the chance to hit the own row by taking any of the nearest compatible ones."""
    fields, draws = arranged.fields, slots.shape[0]
    own = np.ascontiguousarray(slots[:, chosen].T).ravel().astype(np.int64)
    nothing = np.zeros(arranged.order.size, dtype=np.int64)
    bounds = np.arange(chosen.size + 1) * draws
    bits = arranged.sets.bits[chosen]
    _, ties, hits = nearest_rows(bits, fields.base, fields.uncertain, nothing, fields.errors, bounds, own)
    return (hits.reshape(chosen.size, draws) / np.maximum(ties, 1)[:, None]).T


def _links(arranged: Arrangement, slots: Any, degree: int) -> list[Estimate | None]:
    part = arranged.graph.part.astype(np.int64)
    size, rank = np.bincount(part)[part], np.arange(part.size)
    found = dict(rates((slots - rank) % size, part, size, rank, degree))
    return [risk_of(kind, found.get(kind), degree).estimate for kind in KINDS]


def _mean(found: Any, promise: float) -> Estimate:
    by_draw = found.mean(axis=1)
    return Estimate(float(by_draw.mean()), float(by_draw.std(ddof=1) / np.sqrt(by_draw.size)), promise)


def table_of(lines: Sequence[Line], rows: int, draws: int) -> str:
    """The page's table."""
    attackers = ("fit", "simulation", "no link, by place", "neighbour's link", "other link of the block")
    head = ("setting", "graph", "promised", *attackers)
    body = [(line.name, line.graph, f"{line.promise:.4f}", *map(_cell, line.rates)) for line in lines]
    text = "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))
    return f"{rows:,} synthetic baskets in one block, {draws} fresh draws of each graph; rate ± standard error.\n\n{text}\n"


def _cell(rate: Estimate | None) -> str:
    return "–" if rate is None else f"{rate.rate:.3f} ± {rate.error or 0:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Linking rates of set_valued; writes docs/linking.md.")
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    records, lines = read(options.rows), []
    for given, graph in [*((given, graph) for given in SETTINGS for graph in GRAPHS), (SHIFT, GRAPHS[0])]:
        lines.append(measured(records, given, graph, DRAWS))
        print(lines[-1], flush=True)
    before = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(f"{before}{MARK}\n\n{table_of(lines, options.rows, DRAWS)}", encoding="utf-8")
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
