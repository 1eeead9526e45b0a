"""How long it takes to judge the same cuts of ever more customers, counted in tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.families.tree.counting import Evaluator
from anon_spark.families.tree.records import Records
from anon_spark.families.tree.settings import Settings
from anon_spark.families.tree.structure import Solution, Step
from anon_spark.model.tree import Cut, Forest
from anon_spark.primitives.rounds import Workspace
from jobs.benchmarks.census_runs import growth, timed
from jobs.benchmarks.tree.data import customers
from jobs.benchmarks.tree.records import PARTS, K, M, N, PartsTimed, read, split, task_counter
from jobs.markdown import table

SIZES = (100_000, 1_000_000)
MOST_GROWTH = 11
WARM_UP = 10_000  # FixStructure is needed there

STATES = {"nation": 2, "month": 3, "manufacturer": 2, "brand": 3, "quantity": 2}
"""In how many ways a node type is split: not, into the groups below its root, and these again, of brands the first group alone.

Prices stay one label: they fail ValueCheck wherever they are split.
"""

States = tuple[int, ...]  # by node type of STATES


def listed() -> list[list[States]]:
    """The cuts of the measurement, in generations by number of splits: 72, of 6 to 38 labels."""
    every = list(product(*(range(states) for states in STATES.values())))
    return [[one for one in every if sum(one) == splits] for splits in range(1 + sum(every[-1]))]


def cut_of(forest: Forest, states: States) -> Cut:
    cut = forest.specialized(forest.most_general, forest.top)
    for name, state in zip(STATES, states, strict=True):
        for splits in range(state):
            cut = split(forest, cut, name, 1 if (name, splits) == ("brand", 1) else None)
    return cut


def judged(evaluator: Evaluator, generations: Sequence[Sequence[States]]) -> dict[States, Solution]:
    """All cuts of the list, a generation in one batch; every label set of every cut is counted."""
    found: dict[States, Solution] = {}
    for generation in generations:
        steps = [Step(cut_of(evaluator.forest, states)) for states in generation]
        found |= zip(generation, evaluator.judge(steps), strict=True)
    return found


def measured(spark: SparkSession, records: int, tables: Path, most: int, folder: Path) -> dict[str, Any]:
    """The list judged on so many customers, with the same k at every size and with one that grows with it.

    most: customers of the table that this is a sample of.
    """
    folder.mkdir(parents=True)
    source = customers(spark, most, tables)
    with Workspace(spark, str(folder)) as workspace:
        reading, (_, found) = timed(lambda: read(source.frame(spark, records), source.hierarchies, workspace))
        steps = [judging(found, k, workspace) for k in sorted({K, grown_k(records)})]
    return {"data": source.name, "rows": found.count, "nodes": found.nodes, "reading": reading, "steps": steps}


def grown_k(records: int) -> int:
    """K for the first size, and in proportion for others: the same cuts then fail, and need as many rounds."""
    return max(K, K * records // SIZES[0])


def judging(records: Records, k: int, workspace: Workspace) -> dict[str, Any]:
    """The list judged once: seconds, by part, and what came out."""
    evaluator = Evaluator(records.forest, Settings(k=k, m=M, n=N))
    timing = PartsTimed(task_counter(records, evaluator.promise, workspace), apart=False)
    evaluator.counter = timing
    seconds, solutions = timed(lambda: judged(evaluator, listed()))
    sizes = [len(one.cut) for one in solutions.values()]
    return {
        "k": k,
        "rows": records.count,
        "total": seconds,
        "parts": timing.seconds,
        "questions": timing.questions,
        "rounds": evaluator.rounds,
        "cuts": len(solutions),
        "fits": sum(one.fits for one in solutions.values()),
        "fixed": sum(bool(one.pairs) for one in solutions.values()),
        "pairs": sum(len(one.pairs) for one in solutions.values()),
        "labels": [min(sizes), max(sizes)],
    }


def growth_text(grown: Sequence[Mapping[str, Any]]) -> str:
    first, last = grown[0], grown[-1]
    cuts = first["steps"][0]
    head = ["records", "nodes", "reading", "k", "judging", "ValueCheck", "FixStructure", "loss", "a cut", "rounds"]
    head += ["pass ValueCheck", "need disassociations", "relations given up"]
    rows = [
        [
            f"{size['rows']:,}",
            f"{size['nodes']:,}",
            f"{size['reading']:.1f}",
            str(one["k"]),
            f"**{one['total']:.1f}**",
            *(f"{one['parts'][part]:.1f} ({one['questions'][part]})" for part in PARTS),
            f"{one['total'] / one['cuts']:.2f}",
            str(one["rounds"]),
            f"{one['fits']} of {one['cuts']}",
            str(one["fixed"]),
            f"{one['pairs']:,}",
        ]
        for size in grown
        for one in size["steps"]
    ]
    parts = [
        f"### Growth: the same {cuts['cuts']} cuts judged ({first['data']}, m = {M}, n = {N}; standalone master, two one-core "
        "workers, driver 1g, maxResultSize 64m; seconds)",
        "The cuts: nation, manufacturer and quantity at their roots or one level below, month and brand also two levels below, "
        f"of brand one group alone; price is one label: {cuts['labels'][0]} to {cuts['labels'][1]} labels. Judged in tasks at "
        "every size, those with equally many splits in one batch, whose seconds are those of its longest part. In brackets: "
        "questions.",
        table(head, rows),
    ]
    if len(grown) > 1:
        same = (first["steps"][0], last["steps"][0])
        alike = (first["steps"][-1], last["steps"][-1])
        parts.append(f"With the same k: {grown_sentence(*same)}")
        if alike[1]["k"] != same[1]["k"]:
            parts.append(f"With a k that grows as the records do, so that the same cuts fail: {grown_sentence(*alike)}")
    return "\n\n".join(parts)


def grown_sentence(first: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    """How many times as long judging takes, with a verdict that is computed."""
    times, exponent = growth([first, last])
    limit = MOST_GROWTH * (last["rows"] / first["rows"]) / (SIZES[-1] / SIZES[0])
    verdict = "kept" if times <= limit else "**not kept**"
    return (
        f"from {first['rows']:,} to {last['rows']:,} records judging takes **{times:.1f}×** as long (exponent {exponent:.2f}; "
        f"limit {limit:.1f}×, {verdict})."
    )
