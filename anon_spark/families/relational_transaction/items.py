"""𝒯: generalization of the items of one cluster. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from anon_spark.arrays import each_once
from anon_spark.columns import ROWS
from anon_spark.errors import DataError
from anon_spark.families.relational_transaction.gray_blocks import gray_order, joined_until_sound
from anon_spark.families.relational_transaction.kernels.item_cuts import (
    ItemTree,
    item_tree,
    raised_items,
    vertical_items,
)
from anon_spark.families.relational_transaction.kernels.item_merging import merged_items
from anon_spark.families.relational_transaction.kernels.relation import Floats
from anon_spark.families.relational_transaction.records import CODES, SECRETS
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.transactions import packed, taken_rows
from anon_spark.kernels.utility import record_losses
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.tasks import lists_of


@dataclass(frozen=True)
class Catalogue:
    """The names that may be published, ascending; with a hierarchy all its leaves, and the leaf of each item number."""

    names: list[str]
    tree: ItemTree | None = None
    leaf: Codes | None = None


class Baskets(NamedTuple):
    """Item sets with their sensitive items, as numbers; `times`: how many records each stands for."""

    offsets: Ints
    codes: Codes
    secret_offsets: Ints
    secrets: Codes
    times: Ints

    def taken(self, rows: Ints) -> Baskets:
        return Baskets(
            *taken_rows(self.offsets, self.codes, rows), *taken_rows(self.secret_offsets, self.secrets, rows), self.times[rows]
        )


class Generalized(NamedTuple):
    """Row r has the generalized items labels[offsets[r] : offsets[r + 1]], ascending by name; label g stands for the names
    members[bounds[g] : bounds[g + 1]]; losses: UL of each row."""

    offsets: Ints
    labels: Codes
    bounds: Ints
    members: Ints
    losses: Floats


def catalogue_of(universe: Sequence[str], secrets: Sequence[str], hierarchy: Hierarchy | None) -> Catalogue:
    """The catalogue of publishable items. Sensitive items are never generalized, so their leaves are left out."""
    if hierarchy is None:
        return Catalogue(list(universe))
    hidden = set(secrets)
    kept = Hierarchy.from_levels([row for row in hierarchy.rows() if row[0] not in hidden])
    names = sorted(kept.keys)
    place = {name: at for at, name in enumerate(names)}
    unknown = sum(name not in place for name in universe)
    if unknown:
        raise DataError(f"{unknown:,} items are not in the item hierarchy. Complete it.", items=unknown)
    return Catalogue(names, item_tree(kept), np.array([place[name] for name in universe], dtype=np.int32))


def generalized(baskets: Baskets, settings: Settings, catalogue: Catalogue) -> Generalized:
    """The rows of one cluster with generalized items.

    Guarantee: every set of at most m generalized items that a row has is in k records of the cluster, and with l no
    sensitive item is in more than 1/l of them. Each item has one image, with `local` one per block.
    """
    if settings.item_method == "local":
        order = list(_gray_parts(baskets, settings))
        return _put_together([_images(baskets.taken(rows), settings, catalogue) for rows in order], np.concatenate(order))
    return _images(baskets, settings, catalogue)


def _images(baskets: Baskets, settings: Settings, catalogue: Catalogue) -> Generalized:
    lists = (baskets.offsets, baskets.codes.astype(np.int64), baskets.secret_offsets, baskets.secrets.astype(np.int64))
    cluster, codes, _, row_of = packed(*lists)
    cluster = cluster._replace(times=np.bincount(row_of, baskets.times, cluster.times.size).astype(np.int64))
    guarantee = settings.k, settings.m, settings.l
    if catalogue.tree is None or catalogue.leaf is None:
        distinct, inverse = np.unique(merged_items(cluster, *guarantee, settings.cost), return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        members, sizes = codes[order], np.bincount(inverse, minlength=distinct.size)
    else:
        cut = vertical_items if settings.item_method == "vertical" else raised_items
        nodes = cut(cluster, catalogue.tree, *guarantee, leaves=catalogue.leaf[codes])
        distinct = np.unique(nodes)
        distinct = distinct[np.argsort([catalogue.tree.members(node)[0] for node in distinct], kind="stable")]
        place = np.empty(catalogue.tree.parent.size, dtype=np.int64)
        place[distinct] = np.arange(distinct.size)
        inverse = place[nodes]
        leaves = [catalogue.tree.members(node) for node in distinct]
        members = np.concatenate(leaves).astype(np.int64) if leaves else np.empty(0, dtype=np.int64)
        sizes = np.array([below.size for below in leaves], dtype=np.int64)
    image = inverse.astype(np.int32)
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    # every label of a row once, ascending
    width, rows = max(1, sizes.size), cluster.times.size
    owner = np.repeat(np.arange(rows), np.diff(cluster.offsets))
    pairs = each_once(owner * width + image[cluster.items])
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(pairs // width, minlength=rows))])
    losses = record_losses(cluster.offsets, cluster.items, image, sizes.astype(np.int64))
    of_rows = taken_rows(offsets, (pairs % width).astype(np.int32), row_of)
    return Generalized(of_rows[0], of_rows[1], bounds, members, losses[row_of])


def _gray_parts(baskets: Baskets, settings: Settings) -> Iterator[Ints]:
    """The rows in blocks of the Gray order, each of which can be generalized separately."""
    order = gray_order(baskets.offsets, baskets.codes, int(baskets.codes.max(initial=-1)) + 1)
    block = (np.cumsum(baskets.times[order]) - 1) // settings.gray_records
    block = np.unique(block, return_inverse=True)[1]
    count = int(block[-1]) + 1
    filled = np.diff(baskets.offsets)[order] > 0
    times = baskets.times[order]
    secrets = np.zeros((2, count, int(baskets.secrets.max(initial=-1)) + 1), dtype=np.int64)
    for place, row in enumerate(order.tolist()):
        row_secrets = baskets.secrets[baskets.secret_offsets[row] : baskets.secret_offsets[row + 1]]
        secrets[0, block[place], row_secrets] += times[place]
        secrets[1, block[place], row_secrets] += times[place] * filled[place]
    rows, full = (np.bincount(block, weights, count).astype(np.int64) for weights in (times, times * filled))
    target = joined_until_sound(rows, full, secrets, settings.k, settings.l)[block]
    for number in np.unique(target):
        yield order[target == number]


def _put_together(parts: Sequence[Generalized], order: Ints) -> Generalized:
    """The parts of a cluster combined; row r of the concatenated parts is row order[r]."""
    labels_of = [part.bounds.size - 1 for part in parts]
    before = (np.cumsum(labels_of) - np.array(labels_of)).tolist()
    labels = np.concatenate([part.labels + first for part, first in zip(parts, before, strict=True)]).astype(np.int32)
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    widths = np.concatenate([np.diff(part.bounds) for part in parts])
    back = np.argsort(order)
    back_offsets, back_labels = taken_rows(offsets, labels, back)
    return Generalized(
        back_offsets,
        back_labels,
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(widths)]),
        np.concatenate([part.members for part in parts]),
        np.concatenate([part.losses for part in parts])[back],
    )


@dataclass(frozen=True)
class UnionLosses:
    """UL of unions of the clusters of one task; a union is given by the numbers of its clusters."""

    baskets: Baskets
    cluster: Ints
    settings: Settings
    catalogue: Catalogue

    def total(self, clusters: Ints) -> float:
        """Summed over the records of one union."""
        rows = np.flatnonzero(np.isin(self.cluster, clusters))
        union = self.baskets.taken(rows)
        return float(generalized(union, self.settings, self.catalogue).losses @ union.times)

    def means(self, unions: Sequence[Ints]) -> Floats:
        """The mean over the records of each union."""
        counts = np.bincount(self.cluster, self.baskets.times)
        return np.array([self.total(union) / counts[union].sum() for union in unions])


def losses_in(sets: pa.Table, cluster: Ints, settings: Settings, catalogue: Catalogue) -> UnionLosses:
    """UL of the clusters of a task, from its table of item sets."""
    return UnionLosses(baskets_in(sets, np.asarray(sets.column(ROWS), dtype=np.int64)), cluster, settings, catalogue)


def baskets_in(table: pa.Table, times: Ints) -> Baskets:
    return Baskets(*lists_of(table, CODES), *lists_of(table, SECRETS), times)
