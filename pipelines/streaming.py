"""A series that follows its table: every commit on the input starts a run, which adds the people who were not published yet.

    spark-submit pipelines/streaming.py people.yaml --checkpoint /data/private/people_stream
    python pipelines/streaming.py people.yaml --checkpoint ./people_stream --once

The job has `output.mode: append`, see docs/series.md. The stream is only the bell: it says that rows came, and its own rows are
never read. A run takes the newest version of the input, without the people in the ledger. So everybody is published once by the
ledger alone, whatever the checkpoint says: a batch that comes twice finds nobody new, and a checkpoint that was lost is made
again. The rows of a batch could not be released by themselves: the people who wait are in earlier batches.

A run that waits ends its batch: the people come again with the next one. A run that is refused ends the stream, with its message
and exit code; its batch comes again at the next start. The exit codes are those of pipelines/nightly.py: 0 everything that was
there was looked at (`--once`); 2 the job file is wrong; 3 the data do not allow a release; 1 anything else, also a stop.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event

from pyspark.sql import DataFrame, SparkSession

import anon_spark as an
from anon_spark.config import JobSpec, is_path, relation, resolve_file
from anon_spark.engine import on_connect
from anon_spark.families.registry import load_job
from anon_spark.machine.signals import stoppable
from anon_spark.runs.preparation import prepare

EVERYTHING = str(2**31 - 1)  # files of one batch: one run takes whatever is there
TABLES = ("table", "ledger", "runs", "dictionary")
WAIT = 0.5  # seconds between two looks at the stream


def show(report: an.RunReport) -> None:
    """What is done after every run, before its batch is over: put here what your readers need."""
    print(report.message or report.verdict, flush=True)
    look = [finding.text for finding in report.findings if finding.level == "look"]
    if look:
        print("look at:", *look, sep="\n  ", flush=True)  # a careful office reads these before readers do


def stream(
    job: str | Path,
    checkpoint: str,
    spark: SparkSession,
    every: int | None = 60,
    after: Callable[[an.RunReport], object] = show,
) -> None:
    """Run the job whenever its input got rows.

    checkpoint: a private folder for the state of the stream. every: seconds between two looks; None: look once, then end.
    after: is called with the report of every run; if it raises, the stream ends and the batch comes again.
    Raises an AnonSparkError where nothing was published, and where the stream itself cannot go on.
    """
    spec = _checked(load_job(job), checkpoint, spark)
    # 1. the bell: also commits that rewrite rows ring, because a MERGE may bring people: `skipChangeCommits` leaves its rows out
    options = {"ignoreChanges": "true", "maxFilesPerTrigger": EVERYTHING}
    reader = spark.readStream.format("delta").options(**options)
    rows = reader.load(spec.input.table) if is_path(spec.input.table) else reader.table(spec.input.table)

    # 2. the batches: Spark calls from a thread of its own, and the run is made here, in the main thread, which gets stop signals
    asked: SimpleQueue[Future[None]] = SimpleQueue()
    over = Event()

    def ring(batch: DataFrame, number: int) -> None:
        turn: Future[None] = Future()
        asked.put(turn)
        if over.is_set():
            turn.cancel()
        turn.result()

    writer = rows.writeStream.foreachBatch(ring).option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=f"{every} seconds")
    query = writer.start()

    # 3. the runs: a batch is over when its run has ended well; then Spark moves the checkpoint
    try:
        while query.isActive or not asked.empty():
            try:
                turn = asked.get(timeout=WAIT)
            except Empty:
                continue
            try:
                after(an.run(spec, spark))
            except BaseException:
                turn.cancel()
                raise
            turn.set_result(None)
        _require_no_fault(query.exception(), spec.input.table)
    finally:
        over.set()
        while not asked.empty():
            asked.get().cancel()
        query.stop()


def _checked(job: JobSpec, checkpoint: str, spark: SparkSession) -> JobSpec:
    """The job, if a stream can serve it. Raises ConfigurationError for every fault that is known without rows; writes nothing."""
    if on_connect(spark):
        raise an.ConfigurationError("a stream needs a driver of its own. Start it with spark-submit, not through Spark Connect.")
    if not job.output.appends:
        raise an.ConfigurationError("output.mode: a stream adds to a series. Say append, and name output.ledger: docs/series.md.")
    if job.input.version is not None:
        raise an.ConfigurationError("input.version: a stream reads the newest version. Remove the key.")
    places = {"input": job.input.table, "work": job.work, **{f"output.{key}": getattr(job.output, key) for key in TABLES}}
    for key, place in places.items():
        overlap = None if place is None or not is_path(place) else relation(resolve_file(checkpoint, Path.cwd()), place)
        if overlap is not None:
            raise an.ConfigurationError(f"--checkpoint {overlap} {key}: choose a folder of its own.")
    prepare(job, spark)
    return job


def _require_no_fault(error: Exception | None, table: str) -> None:
    """Name the fault of a stream that ended by itself, as when columns changed, or files it had not seen are gone."""
    if error is not None:
        named = re.search(r"\[([A-Z0-9_.]+)\]", str(error))  # the rest of the text is Spark's, and may hold values
        raise an.AnonSparkError(
            f"the stream of {table} ended: {named[1] if named else type(error).__name__}. Nothing is lost: start it again. If it "
            "ends again, remove the checkpoint; the ledger knows who was published."
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Add to a series whenever its input gets rows.")
    parser.add_argument("job", help="the job file, with output.mode: append")
    parser.add_argument("--checkpoint", metavar="FOLDER", required=True, help="a private folder for the state of the stream")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--every", metavar="SECONDS", type=int, default=60, help="between two looks for rows (default: 60)")
    when.add_argument("--once", action="store_true", help="look once, then end: for a scheduler")
    options = parser.parse_args(arguments)
    try:
        with stoppable():
            spark = an.session("series from a stream")
            stream(options.job, options.checkpoint, spark, None if options.once else options.every)
    except an.AnonSparkError as error:
        # counts and names only: the message may go into a log or a mail
        print(f"the stream ended: {error}", file=sys.stderr)
        return error.exit_code
    except (an.Stopped, KeyboardInterrupt):
        print("stopped. An increment is published as a whole or not at all.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
