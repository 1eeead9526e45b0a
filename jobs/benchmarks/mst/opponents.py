"""MSTK beside its opponents on one table: both ways of merging, refined, Incognito, and the node that the family lattice chooses.

All work on the same distinct tuples and the same hierarchies; seconds are those after the tuples were counted, each in
this process and compiled before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import AnonSparkError
from anon_spark.families.lattice.anonymizer import LatticeAnonymizer
from anon_spark.families.mst.anonymizer import BLOCK_CLASSES, sweeps_and_visits
from anon_spark.families.mst.partition import BLOCK_TUPLES, Merge, Settings, lexicographic, partition
from anon_spark.families.mst.refinement import Refining, Sensitive, blocks_of, refined_levels
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.tuples import Ladder, TupleTable, group
from anon_spark.metrics.information_loss import cell_loss
from anon_spark.metrics.recoded import Recoded, summary
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Node, lattice_of
from anon_spark.primitives.classes import count_tuples, counting
from anon_spark.primitives.classes.arrays import ladder_of, load_table
from anon_spark.primitives.classes.frequencies import in_files
from anon_spark.primitives.rounds import Workspace
from anon_spark.samples.adult import adult, mst_hierarchies
from anon_spark.samples.census import census, census_hierarchies
from jobs.benchmarks.census_runs import timed
from jobs.markdown import table
from jobs.reproductions.mst.incognito import best_node, incognito

KS = (3, 6, 9, 12, 15, 18, 21)
CENSUS_ROWS = 30_000
GREEDY, ROUNDS, REFINED, INCOGNITO = "MSTK", "MSTK in rounds", "MSTK, refined", "Incognito"
LATTICE = {"lattice": 0.0, "lattice, 1 % suppressed": 0.01}
HOW_COMPARED = (
    "MSTK merges greedily, as in the paper; refined, it merges in rounds and then lowers GLM, not the paper's IL. Incognito's "
    "result is the k-anonymous node of least IL, the lattice family's the one of least GLM. MSTK and Incognito suppress "
    "nothing. Where rows are suppressed (at most 1 %), each counts as follows: in IL as a row with every cell at its root, in "
    "DM as many as the table has rows, in CAVG as a row in no class. Seconds are those after the distinct tuples were counted; "
    "the lattice family's search finds the nodes of all k at once."
)


@dataclass(frozen=True)
class Tuples:
    """The distinct tuples of a table as arrays, in the order of their values."""

    name: str
    codes: Codes
    rows: Ints
    hierarchies: tuple[Hierarchy, ...]

    @cached_property
    def ladder(self) -> Ladder:
        return ladder_of(self.hierarchies)

    @property
    def rows_by_leaf(self) -> list[Ints]:
        """Rows of each leaf, per attribute."""
        found = []
        for codes, hierarchy in zip(self.codes, self.hierarchies, strict=True):
            rows = np.zeros(hierarchy.leaf_count, dtype=np.int64)
            np.add.at(rows, codes, self.rows)
            found.append(rows)
        return found


@dataclass(frozen=True)
class Outcome:
    """What one way gives for one k."""

    il: float
    dm: int
    cavg: float
    classes: int  # equivalence classes
    seconds: float
    node: Node | None = None  # of a full-domain way
    suppressed: int = 0
    small: int = 0  # of MSTK: classes that were merged
    seconds_merging: float = 0.0


Outcomes = Mapping[str, Mapping[int, Outcome]]  # way → k → outcome


def source(spark: SparkSession, data: Path | None) -> tuple[str, DataFrame, dict[str, Hierarchy]]:
    """Adult with the six attributes of the paper where it is there, else the synthetic census with its eight."""
    if data is not None:
        return "Adult", adult(spark, data), mst_hierarchies()
    return f"synthetic census of {CENSUS_ROWS:,} rows", census(spark, CENSUS_ROWS), census_hierarchies()


def collected(name: str, df: DataFrame, hierarchies: Mapping[str, Hierarchy]) -> Tuples:
    """The distinct tuples on the driver."""
    with Workspace(df.sparkSession) as workspace:
        counted = count_tuples(df, hierarchies, workspace)
        stored = in_files(counted, workspace).files
        found = load_table(stored, ladder_of(counted.hierarchies), (0,) * len(hierarchies), 0, 0)
    order = lexicographic(found.codes, counted.hierarchies)
    codes = np.ascontiguousarray(found.codes[:, order])
    return Tuples(name, codes, found.rows[order], counted.hierarchies)


def compare(df: DataFrame, hierarchies: Mapping[str, Hierarchy], tuples: Tuples, ks: Sequence[int] = KS) -> Outcomes:
    """Every way for every k. Cost: greedy merging is by far the longest, seconds for each k."""
    warm = Tuples(tuples.name, tuples.codes[:, :500], tuples.rows[:500], tuples.hierarchies)
    for way in ("greedy", "rounds"):
        mstk(warm, 3, way)
    refined(warm, 3)
    return {
        GREEDY: {k: mstk(tuples, k, "greedy") for k in ks},
        ROUNDS: {k: mstk(tuples, k, "rounds") for k in ks},
        REFINED: {k: refined(tuples, k) for k in ks},
        INCOGNITO: full_domain(df, hierarchies, tuples, ks),
        **{name: {k: chosen(df, hierarchies, tuples, k, share) for k in ks} for name, share in LATTICE.items()},
    }


def mstk(tuples: Tuples, k: int, merge: Merge) -> Outcome:
    """Local recoding."""
    seconds, parts = timed(
        lambda: partition(tuples.codes, tuples.rows, tuples.hierarchies, Settings(k=k, merge=merge))
    )
    recoded = Recoded.of_classes(tuples.hierarchies, parts.levels, parts.leaves, parts.sizes)
    found = outcome(recoded, k, seconds)
    merging = parts.statistics["seconds"]["merge"]
    return replace(found, small=parts.statistics["small"], seconds_merging=merging)


def refined(tuples: Tuples, k: int) -> Outcome:
    """Local recoding as the family does it by default: merged in rounds, then refined in blocks."""

    def fit() -> tuple[Codes, Codes]:
        parts = partition(tuples.codes, tuples.rows, tuples.hierarchies, Settings(k=k, merge="rounds"))
        leaf, before = np.ascontiguousarray(tuples.codes.T), parts.levels[parts.class_of].astype(np.int32)
        most, after = max(BLOCK_TUPLES, BLOCK_CLASSES * k), before.copy()
        effort = sweeps_and_visits("normal", tuples.rows.size)
        asked = Refining(tuples.hierarchies, int(tuples.rows.sum()), k, None, 0, *effort, most, tuples.rows.size)
        values = np.empty((tuples.rows.size, 0, 0), dtype=np.int32)
        block = blocks_of(asked, leaf, before, Sensitive(values))
        for number in range(int(block.max()) + 1):
            own = block == number
            after[own] = refined_levels(asked, leaf[own], before[own], tuples.rows[own], Sensitive(values[own]))
        return leaf, after

    seconds, (leaf, level) = timed(fit)
    return outcome(Recoded.of_classes(tuples.hierarchies, level, leaf, tuples.rows), k, seconds)


def full_domain(
    df: DataFrame, hierarchies: Mapping[str, Hierarchy], tuples: Tuples, ks: Sequence[int]
) -> dict[int, Outcome]:
    """Incognito's node of least IL, without suppression."""
    found = {}
    with Workspace(df.sparkSession) as workspace:
        counted = count_tuples(df, hierarchies, workspace)
        counts, lattice = counting(counted, 0, workspace), lattice_of(counted.hierarchies)
        incognito(lattice, counts, max(ks))  # starts what has to be started
        for k in ks:
            started = perf_counter()
            best = best_node(incognito(lattice, counts, k), tuples.hierarchies, tuples.rows_by_leaf, counts)
            seconds = perf_counter() - started
            recoded = on_node(tuples, best.node, 1)
            found[k] = outcome(recoded, k, seconds, best.node)
            if (found[k].dm, found[k].classes) != (best.discernibility, best.classes):
                raise AnonSparkError("Incognito's node has other classes when it is applied.")
    return found


def chosen(
    df: DataFrame, hierarchies: Mapping[str, Hierarchy], tuples: Tuples, k: int, suppression: float
) -> Outcome:
    """The node of least GLM that the family lattice chooses; seconds of its search, which finds the nodes of every k."""
    recoding = LatticeAnonymizer(k=k, quasi_identifiers=hierarchies, suppression=suppression).fit(df)
    recoded = on_node(tuples, recoding.node, recoding.k)
    if recoded.suppressed != recoding.chosen.suppressed:
        raise AnonSparkError("The lattice family's node suppresses other rows when it is applied.")
    return outcome(recoded, k, recoding.statistics.seconds, recoding.node)


def on_node(tuples: Tuples, node: Node, k: int) -> Recoded:
    """All rows on the node; classes of fewer than k rows are suppressed."""
    bottom = TupleTable((0,) * len(node), tuples.codes, tuples.rows)
    classes = group(bottom, tuples.ladder, node)
    large = classes.rows >= k
    leaves = tuples.codes[:, classes.representatives[large]].T
    levels = np.broadcast_to(np.array(node), leaves.shape)
    suppressed = int(classes.rows[~large].sum())
    return Recoded.of_classes(tuples.hierarchies, levels, leaves, classes.rows[large], suppressed)


def outcome(recoded: Recoded, k: int, seconds: float, node: Node | None = None) -> Outcome:
    """The measures; IL charges a suppressed row like one at the roots."""
    measures = summary(recoded, k)
    at_roots = 0.0
    for hierarchy in recoded.hierarchies:
        loss = cell_loss(hierarchy)
        at_roots += float(loss.numerators[-1][0]) / loss.denominator if loss.denominator else 0.0
    published = recoded.rows - recoded.suppressed
    il = (measures["il"] * published + at_roots * recoded.suppressed) / recoded.rows
    return Outcome(
        il, int(measures["dm"]), measures["cavg"], recoded.classes, seconds, node, recoded.suppressed
    )


# --- as Markdown ---------------------------------------------------------------------------------------------------------


def opponents_text(outcomes: Outcomes) -> str:
    """One table per measure, and where the full-domain ways stand."""
    ways = list(outcomes)
    shown: dict[str, Callable[[Outcome], str]] = {
        "IL": lambda found: f"{found.il:.4f}",
        "DM": lambda found: f"{found.dm:,}",
        "CAVG": lambda found: f"{found.cavg:.2f}",
        "seconds": lambda found: f"{found.seconds:.2f}",
        "node, suppressed rows": lambda found: f"{found.node}, {found.suppressed:,}" if found.node else "–",
    }
    ks = list(outcomes[GREEDY])
    parts = [HOW_COMPARED]
    for measure, text in shown.items():
        named = [way for way in ways if measure[:4] != "node" or outcomes[way][ks[0]].node is not None]
        rows = [[str(k), *(text(outcomes[way][k]) for way in named)] for k in ks]
        parts.append(f"{measure}:\n\n" + table(["k", *named], rows))
    return "\n\n".join(parts)


def rounds_text(outcomes: Outcomes) -> str:
    """What merging in rounds costs against the greedy one, in utility, and what it saves."""
    rows = []
    for k, greedy in outcomes[GREEDY].items():
        rounds = outcomes[ROUNDS][k]
        rows.append(
            [
                str(k),
                f"{greedy.small:,}",
                *(f"{greedy.il:.4f} / {rounds.il:.4f}", f"{rounds.il / greedy.il - 1:+.1%}"),
                *(f"{greedy.dm:,} / {rounds.dm:,}", f"{rounds.dm / greedy.dm - 1:+.1%}"),
                f"{greedy.classes:,} / {rounds.classes:,}",
                f"{greedy.seconds_merging:.2f} / {rounds.seconds_merging:.2f}",
            ]
        )
    head = ["k", "small classes", "IL", "", "DM", "", "equivalence classes", "seconds of merging"]
    return table(head, rows)
