"""A nightly warehouse pipeline: check the job, publish a verified release, hand it over. Copy it and change what is yours.

    spark-submit pipelines/nightly.py conf/lattice.yaml --hand-over warehouse.shared.census
    python pipelines/nightly.py conf/lattice.yaml

The job may replace the release every night, or append the people who are new (docs/series.md).

It ends with the exit code of `anon-spark run`, so that a scheduler can tell what to do: 0 published, or nothing to publish
because nothing is new or the new people wait; 2 the job file is wrong: call an engineer; 3 the data do not allow a release: ask
the data office; 1 anything else: try again later.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

import anon_spark as an


def nightly(job: str, hand_over: str | None, spark: SparkSession) -> an.RunReport:
    """Plan, run and hand over. Raises an AnonSparkError where a release was refused."""
    # 1. plan: a wrong job file, a missing column or an output that cannot be written is found before any work
    planned = an.plan(job, spark)
    print("\n".join(planned.lines()))

    # 2. run: anonymize, audit what was staged, publish in one commit; the same rows again are recognised
    report = an.run(job, spark)
    print(report.message if report.status == "waiting" else report.verdict)

    # 3. hand over the version that was verified; also where nothing was new, because last night's hand-over may have failed
    release = verified(report, spark)
    if hand_over is not None and release is not None:
        release.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(hand_over)
        print(f"handed over: {hand_over}")
    return report


def verified(report: an.RunReport, spark: SparkSession) -> DataFrame | None:
    """The release after a run; None where everybody still waits for the first increment of a series."""
    if report.status == "waiting":
        begun = report.series is not None and report.series.before > 0
        return an.read_release(spark, str(report.output_table)).frame if begun else None
    reader = spark.read.format("delta").option("versionAsOf", str(report.output_version))
    table = str(report.output_table)
    return reader.load(table) if "/" in table else reader.table(table)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Publish a verified release every night.")
    parser.add_argument("job", help="the job file")
    parser.add_argument("--hand-over", metavar="TABLE", help="a catalog table for the readers of the release")
    options = parser.parse_args(arguments)
    try:
        report = nightly(options.job, options.hand_over, an.session("nightly release"))
    except an.AnonSparkError as error:
        # counts and names only: the message may go into a log or a mail
        print(f"no release tonight: {error}", file=sys.stderr)
        return error.exit_code
    look = [finding.text for finding in report.findings if finding.level == "look"]
    if look:
        print("look at:", *look, sep="\n  ")  # a careful office reads these before readers do
    return 0


if __name__ == "__main__":
    sys.exit(main())
