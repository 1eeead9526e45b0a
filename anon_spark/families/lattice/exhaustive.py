"""The baseline: every node of the lattice, then one sweep."""

from __future__ import annotations

from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point, nondominated

CHUNK = 20_000  # nodes whose results travel to the driver at a time


def exhaustive_front(scores: Scores, least_k: int = 2) -> list[Point]:
    """The true front of pairs (node, k). Cost: lattice size × distinct tuples."""
    nodes = [tuple(row) for row in scores.lattice.nodes().tolist()]
    for first in range(0, len(nodes), CHUNK):
        scores.evaluate(nodes[first : first + CHUNK])
    return nondominated((pair for node in nodes for pair in scores.curve(node)), least_k)
