"""Merging in many tasks: groups of neighbouring clusters, each with its share of δ, then one pass over all clusters (R-13).

A table whose clusters fit one loop is one group; then the result is exactly that of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import fsum
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import BLOCK, CLUSTER, PREFIX, ROWS
from anon_spark.engine import beside, small_frame
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.relational_transaction.distances import driver_distances
from anon_spark.families.relational_transaction.facts import Merging
from anon_spark.families.relational_transaction.items import Catalogue, losses_in
from anon_spark.families.relational_transaction.kernels import relation
from anon_spark.families.relational_transaction.kernels.bit_distance import distances_within
from anon_spark.families.relational_transaction.kernels.relation import Floats
from anon_spark.families.relational_transaction.merging import (
    NEAR,
    BoundUnreachable,
    Summary,
    block_deltas,
    rmerge,
    tmerge,
)
from anon_spark.families.relational_transaction.records import Attributes, Records
from anon_spark.families.relational_transaction.refinement import refined
from anon_spark.families.relational_transaction.repair import repaired
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.families.relational_transaction.summaries import (
    FILLED,
    HELD,
    HI,
    LO,
    TARGET,
    lists_by_cluster,
    summary_in,
    with_targets,
)
from anon_spark.kernels.classes import Ints
from anon_spark.primitives.blocks import MOST_BLOCKS, merged_with, numbers_in, renumbered
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tasks import in_groups, shared_tasks

GROUP = PREFIX + "group"
WEIGHTED, STEP, LOSS, ONE, OTHER = (PREFIX + name for name in ("weighted", "step", "loss", "one", "other"))
PLACED = PREFIX + "placed"
GROUP_RECORDS = 7_500
MOST_CLUSTERS = 5_000  # of one loop: distances between all of them
MOST_SUMMARIES = 20_000  # of one loop without distances
MOST_RECORDS = 2**18  # whose item sets one loop holds
CLUSTER_RECORDS = 2**21  # of one cluster: its items are generalized in one task

CoTask = Callable[[pa.Table, pa.Table | None], pa.Table]


def grouped(
    summaries: DataFrame, records: Records, settings: Settings, workspace: Workspace
) -> tuple[DataFrame, list[int]]:
    """The clusters with GROUP, and the numbers of the groups: one group if a single loop can hold them, else runs of
    neighbouring blocks with about GROUP_RECORDS records."""
    by_items = needs_items(settings)
    most = MOST_CLUSTERS if by_items else MOST_SUMMARIES
    few = records.rows // settings.k <= most or summaries.select(TARGET).distinct().count() <= most
    if few and (not by_items or records.rows <= MOST_RECORDS):
        return summaries.withColumn(GROUP, F.lit(0).cast("long")), [0]
    # a cluster that covers several blocks belongs to the first of them
    home = summaries.groupBy(TARGET).agg(F.min(BLOCK).alias(BLOCK), F.sum(ROWS).alias(ROWS))
    sizes = collect_small(home.groupBy(BLOCK).agg(F.sum(ROWS)).orderBy(BLOCK), MOST_BLOCKS, "Blocks")
    blocks, rows = (np.asarray(column, dtype=np.int64) for column in sizes.columns)
    numbers = groups_of(rows, GROUP_RECORDS)
    table = pa.table({BLOCK: pa.array(blocks), GROUP: pa.array(numbers)})
    numbered = home.join(beside(small_frame(summaries.sparkSession, table)), BLOCK).select(TARGET, GROUP)
    placed = workspace.store(summaries.join(numbered, TARGET).select(*summaries.columns, GROUP), "grouped")
    return placed, np.unique(numbers).tolist()


def groups_of(rows: Ints, enough: int) -> Ints:
    """The group of each block: consecutive blocks up to `enough` records; a last group with too few joins the one before."""
    group_of = np.zeros(rows.size, dtype=np.int64)
    group = gathered = 0
    for at, size in enumerate(rows.tolist()):
        group_of[at] = group
        gathered += size
        if gathered >= enough:
            group, gathered = group + 1, 0
    if 0 < gathered < enough and group > 0:
        group_of[group_of == group] = group - 1
    return group_of


def needs_items(settings: Settings) -> bool:
    """Whether merging looks at item sets, not only at relational values."""
    return settings.method == "bound" and (settings.by_items or settings.bound == "items")


def repaired_groups(
    summaries: DataFrame, numbers: list[int], records: Records, settings: Settings, workspace: Workspace
) -> tuple[DataFrame, list[int]]:
    """R-3 and R-4 in every group. A group with too few records with items, or too many of a sensitive item, is joined
    with the next group and tried again.

    Cost: one shuffle of the clusters for each try.
    """
    attributes, secrets = records.attributes, len(records.secrets)

    def work(table: pa.Table) -> pa.Table:
        summary, index = summary_in(table, len(attributes.names), secrets)
        try:
            target = repaired(summary, attributes.relation, settings.k, settings.l)
        except GuaranteeUnreachable:
            return with_targets(table, None)
        return with_targets(table, summary.ids[target][index])

    while True:
        stored = workspace.store(in_groups(summaries, GROUP, work, summaries.schema, len(numbers)), "repaired")
        failed = set(numbers_in(stored.where(F.col(TARGET).isNull()), GROUP))
        if not failed:
            return stored, numbers
        if len(numbers) == 1:  # to tell why
            whole = collect_small(summaries, MOST_BLOCKS, "Clusters")
            repaired(summary_in(whole, len(attributes.names), secrets)[0], attributes.relation, settings.k, settings.l)
        targets = merged_with(numbers, failed)
        summaries = workspace.store(renumbered(summaries, GROUP, numbers, targets), "joined-groups")
        numbers = sorted(set(targets))


# --- Rum-bound -------------------------------------------------------------------------------------------------------------


def rum_merged(
    summaries: DataFrame,
    numbers: list[int],
    sets: DataFrame | None,
    records: Records,
    settings: Settings,
    catalogue: Catalogue,
    workspace: Workspace,
) -> tuple[DataFrame, Merging]:
    """RMERGE in groups, refined by moves: the merged clusters, and NCP before merging.

    Guarantee: NCP ≤ δ exactly: the groups' shares add up to δ. Cost: one shuffle of clusters and item sets, then a loop on
    the driver over at most MOST_CLUSTERS (MOST_SUMMARIES) clusters.
    """
    groups, sizes, penalties = _group_penalties(summaries, len(numbers), records.attributes)
    shares = block_deltas(sizes, penalties / sizes, settings.delta).tolist()  # raises if NCP is above δ as it is
    delta = dict(zip(groups, shares, strict=True)) if len(groups) > 1 else {groups[0]: settings.delta}
    work = _rmerge_task(records.attributes, settings, catalogue, delta)
    if sets is not None:
        merged = together(summaries, placed_sets(summaries, sets), len(groups), work, summaries.schema)
    else:
        merged = in_groups(summaries, GROUP, lambda table: work(table, None), summaries.schema, len(groups))
    merged = workspace.store(merged, "merged")
    if len(groups) > 1:
        merged = _second_pass(merged, sets, records, settings, workspace)
    return merged, Merging(groups=len(groups), initial_ncp=fsum(penalties) / records.rows)


def _rmerge_task(
    attributes: Attributes, settings: Settings, catalogue: Catalogue, delta: Mapping[int, float]
) -> CoTask:
    def work(table: pa.Table, sets: pa.Table | None) -> pa.Table:
        summary, index = summary_in(table, len(attributes.names), 0)
        distances, losses = None, None
        if sets is not None and settings.distance == "utility_loss":
            losses = losses_in(sets, clusters_of_sets(table, index, sets), settings, catalogue).means
        elif sets is not None:
            distances = distances_within(lists_by_cluster(sets, clusters_of_sets(table, index, sets), summary.ids.size))
        merges = rmerge(
            summary,
            attributes.relation,
            delta[table.column(GROUP)[0].as_py()],
            settings.merge,
            distances,
            losses,
            settings.exhaustive_seeds,
            CLUSTER_RECORDS,
        )
        target = _refined(summary, attributes, settings, delta[table.column(GROUP)[0].as_py()], merges.target)
        return with_targets(table, summary.ids[target][index])

    return work


def _refined(summary: Summary, attributes: Attributes, settings: Settings, delta: float, target: Ints) -> Ints:
    """The targets of a merging, refined if the settings say so."""
    if not settings.moves:
        return target
    return refined(summary, attributes.relation, delta, target, settings.exhaustive_seeds, CLUSTER_RECORDS)


def _second_pass(
    merged: DataFrame, sets: DataFrame | None, records: Records, settings: Settings, workspace: Workspace
) -> DataFrame:
    """One more RMERGE over all clusters with the unused part of δ, if the driver can hold them."""
    by_items, count = settings.by_items, len(records.attributes.names)
    left = merged.groupBy(TARGET).agg(
        F.sum(ROWS).alias(ROWS),
        F.sum(FILLED).alias(FILLED),
        *(F.min(f"{LO}{at}").alias(f"{LO}{at}") for at in range(count)),
        *(F.max(f"{HI}{at}").alias(f"{HI}{at}") for at in range(count)),
        F.first(HELD).alias(HELD),
    )
    most = MOST_CLUSTERS if by_items else MOST_SUMMARIES
    if settings.distance == "utility_loss" or left.count() > most:
        return merged
    summary, _ = summary_in(collect_small(left, most, "Clusters"), count, 0)
    distances = driver_distances(merged, sets, summary.ids, workspace) if by_items and sets is not None else None
    merges = rmerge(
        summary, records.attributes.relation, settings.delta, settings.merge, distances,
        exhaustive_seeds=settings.exhaustive_seeds, most_records=CLUSTER_RECORDS,
    )  # fmt: skip
    target = _refined(summary, records.attributes, settings, settings.delta, merges.target)
    table = pa.table({TARGET: pa.array(summary.ids), "into": pa.array(summary.ids[target])})
    joined = merged.join(beside(small_frame(merged.sparkSession, table)), TARGET)
    return workspace.store(joined.withColumn(TARGET, F.col("into")).select(*merged.columns), "merged-again")


def _group_penalties(summaries: DataFrame, groups: int, attributes: Attributes) -> tuple[list[int], Ints, Floats]:
    """Groups, their records, and Σ records · NCP over their clusters, summed exactly. Cost: one shuffle of the clusters."""

    def work(table: pa.Table) -> pa.Table:
        summary, _ = summary_in(table, len(attributes.names), 0)
        lost = fsum(summary.sizes * relation.own_penalties(attributes.relation, summary.lo, summary.hi))
        return pa.table({GROUP: [table.column(GROUP)[0].as_py()], ROWS: [summary.records], WEIGHTED: [lost]})

    summed = in_groups(summaries, GROUP, work, f"{GROUP} long, {ROWS} long, {WEIGHTED} double", groups)
    table = collect_small(summed, MOST_BLOCKS, "Groups").sort_by(GROUP)
    numbers, rows = (np.asarray(table.column(name), dtype=np.int64) for name in (GROUP, ROWS))
    return numbers.tolist(), rows, np.asarray(table.column(WEIGHTED), dtype=np.float64)


def clusters_of_sets(table: pa.Table, index: Ints, sets: pa.Table) -> Ints:
    """The current cluster of each row of item sets, as an index into the summary of the clusters."""
    clusters = np.asarray(table.column(CLUSTER), dtype=np.int64)
    order = np.argsort(clusters)
    return index[order[np.searchsorted(clusters[order], np.asarray(sets.column(CLUSTER), dtype=np.int64))]]


def placed_sets(summaries: DataFrame, sets: DataFrame) -> DataFrame:
    """The item sets with the group of their cluster. No action."""
    return sets.join(summaries.select(CLUSTER, GROUP), CLUSTER)


def together(clusters: DataFrame, other: DataFrame, groups: int, work: CoTask, schema: Any) -> DataFrame:
    """One call per group of two frames. Cost: one shuffle of both; no action."""
    renamed = other.withColumnRenamed(GROUP, PLACED)  # both may come from one frame
    tasks = shared_tasks(clusters.sparkSession, groups)
    keyed = ((clusters, GROUP), (renamed, PLACED))
    left, right = (frame.repartition(tasks, name).groupBy(name) for frame, name in keyed)
    return left.cogroup(right).applyInArrow(work, schema)


# --- Tum-bound -------------------------------------------------------------------------------------------------------------


def tum_merged(
    summaries: DataFrame,
    numbers: list[int],
    sets: DataFrame,
    records: Records,
    settings: Settings,
    catalogue: Catalogue,
    workspace: Workspace,
) -> tuple[DataFrame, Merging]:
    """TMERGE in groups: the merged clusters, UL before merging, and the least UL of all steps.

    A single group ends as soon as UL is within δ. Several groups first compute all their steps. Then the steps that reduce UL
    most for their NCP are applied, until all groups together are within δ.
    Cost: one 𝒯 per merge; a row per merge reaches the driver.
    """
    groups = len(numbers)
    work = _tmerge_task(records.attributes, settings, catalogue, None if groups > 1 else settings.delta)
    steps = workspace.store(together(summaries, placed_sets(summaries, sets), groups, work, _STEPS), "steps")
    table = collect_small(steps.select(GROUP, STEP, LOSS, WEIGHTED), MOST_BLOCKS, "Merges")
    paths = paths_by_group(table)
    initial = fsum(loss[0] for loss, _ in paths.values()) / records.rows
    least = fsum(loss.min() for loss, _ in paths.values()) / records.rows
    stops = stops_within(paths, settings.delta * records.rows)
    if stops is None:
        raise BoundUnreachable(
            f"No merging of clusters brings the loss UL of the items down to delta = {settings.delta}: it begins with "
            f"{initial:.6f}, the least is {least:.6f}. Ask for a larger delta, or lower k or m.",
            delta=settings.delta,
            initial=initial,
            least=least,
        )
    ends = pa.table({GROUP: pa.array(list(stops), pa.int64()), "end": pa.array(list(stops.values()), pa.int32())})
    done = steps.join(beside(small_frame(steps.sparkSession, ends)), GROUP).where(F.col(STEP).between(1, F.col("end")))
    merged = together(summaries, done.drop("end"), groups, _apply_steps, summaries.schema)
    return workspace.store(merged, "merged"), Merging(groups=groups, initial_ul=initial, least_ul=least)


_STEPS = f"{GROUP} long, {STEP} int, {LOSS} double, {WEIGHTED} double, {ONE} long, {OTHER} long"


def _tmerge_task(attributes: Attributes, settings: Settings, catalogue: Catalogue, bound: float | None) -> CoTask:
    """Task that computes all merges of a group: UL and NCP before the first and after each."""

    def work(table: pa.Table, sets: pa.Table | None) -> pa.Table:
        assert sets is not None, "UL is a loss of items"
        summary, index = summary_in(table, len(attributes.names), 0)
        cluster = clusters_of_sets(table, index, sets)
        distances, means, losses = None, None, losses_in(sets, cluster, settings, catalogue)
        if settings.by_items and settings.distance == "utility_loss":
            means = losses.means
        elif settings.by_items:
            distances = distances_within(lists_by_cluster(sets, cluster, summary.ids.size))
        try:
            merges = tmerge(
                summary, attributes.relation, bound, settings.merge, distances, means, losses.total, CLUSTER_RECORDS
            )
            path, ncps, pairs = merges.losses, merges.ncps, summary.ids[merges.pairs]
        except BoundUnreachable as fault:  # raised again by the driver: an error of a task loses its facts
            path, ncps = np.array([fault.facts["initial"], fault.facts["least"]]), np.zeros(2)
            pairs = np.full((1, 2), -1, dtype=np.int64)
        ends = np.concatenate([np.full((1, 2), -1, dtype=np.int64), pairs])
        columns: dict[str, Any] = {
            GROUP: pa.array([table.column(GROUP)[0].as_py()] * path.size, pa.int64()),
            STEP: pa.array(range(path.size), pa.int32()),
            LOSS: pa.array(path * summary.records),
            WEIGHTED: pa.array(ncps * summary.records),
            ONE: pa.array(ends[:, 0]),
            OTHER: pa.array(ends[:, 1]),
        }
        return pa.table(columns)

    return work


def _apply_steps(table: pa.Table, steps: pa.Table | None) -> pa.Table:
    """The clusters of a group after the chosen merges."""
    assert steps is not None, "perhaps none, but a table"
    targets = np.asarray(table.column(TARGET), dtype=np.int64).copy()
    steps = steps.sort_by(STEP)
    seeds, partners = (np.asarray(steps.column(name), dtype=np.int64) for name in (ONE, OTHER))
    for into, gone in zip(np.minimum(seeds, partners), np.maximum(seeds, partners), strict=True):
        targets[targets == gone] = into
    return with_targets(table, targets)


def paths_by_group(table: pa.Table) -> dict[int, tuple[Floats, Floats]]:
    """Per group UL and NCP by step."""
    table = table.sort_by([(GROUP, "ascending"), (STEP, "ascending")])
    group, loss, weighted = (np.asarray(table.column(name)) for name in (GROUP, LOSS, WEIGHTED))
    numbers, starts = np.unique(group, return_index=True)
    parts = zip(np.split(loss, starts[1:]), np.split(weighted, starts[1:]), strict=True)
    return dict(zip(numbers.tolist(), parts, strict=True))


def stops_within(paths: Mapping[int, tuple[Floats, Floats]], most: float) -> dict[int, int] | None:
    """The last step of each group, so that the sum of UL is within `most`; None if that is impossible.

    Steps are taken along the lower hull of each group's path, those that cost least NCP for their UL first.
    """
    stops = dict.fromkeys(paths, 0)
    jumps = sorted(jump for group, path in paths.items() for jump in _hull(group, *path))
    total = fsum(loss[0] for loss, _ in paths.values())
    for _, group, step in [*jumps, (0.0, None, 0)]:  # along a hull prices rise, so a group's steps stay in order
        if total <= most + NEAR * abs(most) and fsum(paths[number][0][at] for number, at in stops.items()) <= most:
            return stops
        if group is not None:
            total += float(paths[group][0][step] - paths[group][0][stops[group]])
            stops[group] = step
    return None


def _hull(group: int, loss: Floats, weighted: Floats) -> Iterator[tuple[float, int, int]]:
    """The steps on the lower hull: NCP per UL gained, group, step."""
    at = 0
    while (gained := loss[at] - loss[at + 1 :]).max(initial=0.0) > 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.where(gained > 0, (weighted[at + 1 :] - weighted[at]) / gained, np.inf)
        step = at + 1 + int(price.argmin())
        yield float(price.min()), group, step
        at = step
