"""Merged clusters improved: first clusters move between them, then merging goes on with what that saved of δ (R-15)."""

from __future__ import annotations

import numpy as np

from anon_spark.arrays import each_once
from anon_spark.families.relational_transaction.kernels import moves
from anon_spark.families.relational_transaction.kernels.relation import Relation
from anon_spark.families.relational_transaction.merging import Summary, rmerge
from anon_spark.kernels.classes import Ints

ROUNDS = 6


def refined(
    summary: Summary,
    relation: Relation,
    delta: float,
    target: Ints,
    exhaustive_seeds: bool = False,
    most_records: int | None = None,
) -> Ints:
    """The targets after moves and further merges by relational values. target: those of a merging within δ.

    Any union of the summary's clusters keeps the guarantee, so each may go anywhere; none is left without a first cluster.
    Guarantee: NCP ≤ δ, as after merging. Cost: per pass first clusters × merged clusters × attributes, bounded by `moves.WORK`.
    """
    most = summary.records if most_records is None else most_records
    for _ in range(ROUNDS):
        cluster = np.unique(target, return_inverse=True)[1]
        done = moves.moved(relation, summary.lo, summary.hi, summary.sizes, cluster, most, moves.WORK)
        if not done:
            break
        target = _by_first(cluster)
        heads = each_once(target)
        merges = rmerge(
            summary.united(target), relation, delta, "relational", exhaustive_seeds=exhaustive_seeds, most_records=most
        )
        target = heads[merges.target[np.searchsorted(heads, target)]]
    return target


def _by_first(cluster: Ints) -> Ints:
    """For each first cluster the smallest index of its merged cluster."""
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    return first[inverse]
