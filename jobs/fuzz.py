"""Random tables and jobs of all families: `python jobs/fuzz.py --cases 2000 --runs 200 --seed 1 --out FILE`.

Every case ends as a clear refusal or as a release that the audit and a judge by brute force have verified; anything else is
a finding, with what reproduces it (`--case N`). One JSON line per case is appended to FILE; cases that stand there are skipped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from anon_spark.spark_session import make_session
from jobs.fuzzing.outcomes import FINDING, REFUSAL, RELEASE, outcome_of

LOCAL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",  # every plan is new: compiling costs more than it gives
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
}
RUNS_FROM = 1_000_000  # numbers of whole runs, apart from the others


def totals(lines: list[dict[str, Any]]) -> str:
    """Markdown: outcomes by family and way, then the findings."""
    counted = Counter((line["way"], line["family"], line["outcome"]) for line in lines)
    kinds = (RELEASE, REFUSAL, FINDING)
    text = ["| way | family | " + " | ".join(kinds) + " |", "| --- | --- |" + " ---: |" * len(kinds)]
    for way, family in sorted({(line["way"], line["family"]) for line in lines}):
        text.append(f"| {way} | {family} | " + " | ".join(str(counted[way, family, kind]) for kind in kinds) + " |")
    wrong = [line for line in lines if line["outcome"] == FINDING]
    text.append("")
    for one in wrong:
        text.append(f"- --seed {one['seed']} --case {one['case']} ({one['family']}, {one['outcome']}): {one['detail']}")
    return "\n".join(text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Random tables and jobs, judged by brute force.")
    parser.add_argument("--cases", type=int, default=50, help="fit-and-audit cases")
    parser.add_argument("--runs", type=int, default=0, help="whole runs over Delta tables")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fuzz.jsonl"), help="one JSON line per case; cases in it are skipped")
    parser.add_argument("--case", type=int, help=f"replay one case (from {RUNS_FROM:,}: a whole run) and show its stack trace")
    options = parser.parse_args()
    spark = make_session("anon-spark fuzz", LOCAL)
    if options.case is not None:
        print(outcome_of(spark, options.seed, options.case, "run" if options.case >= RUNS_FROM else "fit", debug=True).line())
        return 0
    lines = [json.loads(line) for line in options.out.read_text("utf-8").splitlines()] if options.out.exists() else []
    done = {(line["seed"], line["case"]) for line in lines}
    asked = [*((at, "fit") for at in range(options.cases)), *((RUNS_FROM + at, "run") for at in range(options.runs))]
    for number, way in asked:
        if (options.seed, number) not in done:
            outcome = outcome_of(spark, options.seed, number, way)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(outcome.line() + "\n")
            lines.append(json.loads(outcome.line()))
    print(totals(lines))
    return 1 if any(line["outcome"] == FINDING for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
