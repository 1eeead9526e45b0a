"""What attackers gain from a release of item sets, on one block: links by fit and by simulation, items from the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anon_spark.columns import BASE, BLOCK, MAX_ERRORS, PART, SLOT, UNCERTAIN
from anon_spark.families.set_valued.block import Settings, draw
from anon_spark.kernels.classes import Codes
from anon_spark.risk.item_sets.reconstruction import Reconstruction, reconstruction
from anon_spark.risk.item_sets.relink import SIGNIFICANT, chance_bound, nearest_rows
from jobs.benchmarks.set_valued.outcomes import KEY, Part, item_lists

DRAWS = 32  # fresh assignments of the graph
SAMPLE = 500  # records looked for


@dataclass(frozen=True)
class Attacked:
    """Rates of success by which a record's own row is found, and what of the items is known from the rows alone.

    refused: one of the rates is above the promise beyond chance.
    """

    promise: float
    fit: float
    simulation: float
    refused: bool
    items: Reconstruction


def attacked(spark: SparkSession, part: Part, settings: Settings, draws: int = DRAWS, sample: int = SAMPLE) -> Attacked:
    """Both link attacks on fresh draws of one block, and the reconstruction of its records."""
    graph = part.arranged.graph
    slots = np.stack([draw(graph, settings, f"{KEY} {number}", part.block.number).slots for number in range(draws)])
    count = min(sample, part.block.records)
    chosen = np.arange(count) * part.block.records // count
    fit = by_fit(part, chosen, slots[:, chosen])
    simulation = by_simulation(slots[:, chosen])
    promise = 1 / settings.degree
    refused = any(is_refused(rates, promise) for rates in (fit, simulation))
    items = reconstruction(rows_of(spark, part), settings.graph, settings.degree)
    return Attacked(promise, float(fit.mean()), float(simulation.mean()), refused, items)


def by_fit(part: Part, chosen: Any, slots: Codes) -> Any:
    """[draw, record]: the chance to hit the own row by taking any of the nearest compatible ones of the block."""
    fields, draws = part.arranged.fields, slots.shape[0]
    _, ties, hits = nearest_rows(
        part.arranged.sets.bits[chosen],
        fields.base,
        fields.uncertain,
        np.zeros(part.block.records, dtype=np.int64),
        fields.errors,
        np.arange(chosen.size + 1) * draws,
        np.ascontiguousarray(slots.T).ravel().astype(np.int64),
    )
    return (hits.reshape(chosen.size, draws) / np.maximum(ties, 1)[:, None]).T


def by_simulation(slots: Codes) -> Any:
    """[draw, record]: the chance, in every second draw, of the slots that were most frequent in the others."""
    seen, tried = slots[::2], slots[1::2]
    rates = np.zeros(tried.shape)
    for record in range(slots.shape[1]):
        found, times = np.unique(seen[:, record], return_counts=True)
        likely = found[times == times.max()]
        rates[:, record] = np.isin(tried[:, record], likely) / likely.size
    return rates


def is_refused(rates: Any, promise: float) -> bool:
    """Whether such rates are beyond chance where the promise holds; records of one draw move together."""
    draws, records = rates.shape
    size, units = np.array([float(records)]), np.array([float(draws)])
    return chance_bound(size, units, float(rates.sum()), promise) < SIGNIFICANT


def rows_of(spark: SparkSession, part: Part) -> Any:
    """The published rows of a block as a frame, in the order of their slots."""
    fields, codes, count = part.arranged.fields, part.arranged.sets.codes, part.block.records
    columns: dict[str, Any] = {
        BLOCK: pa.array(np.zeros(count, dtype=np.int64)),
        PART: pa.array(part.arranged.graph.part.astype(np.int32)),
        SLOT: pa.array(np.arange(count, dtype=np.int32)),
        MAX_ERRORS: pa.array(fields.errors.astype(np.int32)),
        BASE: item_lists(fields.base, codes),
        UNCERTAIN: item_lists(fields.uncertain, codes),
    }
    return spark.createDataFrame(pa.table(columns))
