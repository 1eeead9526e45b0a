"""One case, run: a clear refusal, a verified release, or a finding."""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import quoted
from anon_spark.errors import AnonSparkError, GuaranteeViolated
from anon_spark.families.contract import Staged
from anon_spark.families.registry import load_job, pipeline_of
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace
from anon_spark.runs.audit import audit
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from jobs.fuzzing.cases import Case, case_of
from jobs.fuzzing.columns import MARK

RELEASE, REFUSAL, FINDING = "verified release", "clear refusal", "finding"


@dataclass(frozen=True)
class Outcome:
    """How a case ended; `seed` and `case` reproduce it."""

    seed: int
    case: int
    way: str  # "fit" or "run"
    family: str
    outcome: str
    detail: str
    seconds: float

    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def outcome_of(spark: SparkSession, seed: int, number: int, way: str, debug: bool = False) -> Outcome:
    """Run one case; nothing it does escapes as an exception, unless `debug`."""
    started = perf_counter()
    case = case_of(seed, number)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", case.zone)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        try:
            outcome, detail = _judged(spark, case, Path(folder), _fitted if way == "fit" else _run)
        except Exception as error:
            if debug:
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            outcome, detail = FINDING, f"unexpected {type(error).__name__} at {where}: {error}"[:600]
    if zone is not None:
        spark.conf.set("spark.sql.session.timeZone", zone)
    return Outcome(seed, number, way, case.family, outcome, detail, round(perf_counter() - started, 2))


Made = tuple[DataFrame, list[dict[str, Any]]]  # the source, and the rows of the release


def _judged(
    spark: SparkSession, case: Case, folder: Path, make: Callable[[SparkSession, Case, Path], Made]
) -> tuple[str, str]:
    try:
        source, release = make(spark, case, folder)
    except GuaranteeViolated as error:
        return FINDING, f"the audit refused an honest fit: {error}"
    except AnonSparkError as error:
        if error.exit_code not in (2, 3):
            return FINDING, f"exit code {error.exit_code}: {error}"
        if MARK in str(error):
            return FINDING, f"a value is in the message of a {type(error).__name__}"
        return REFUSAL, f"{error.exit_code} {str(error)[:160]}"
    zone = ZoneInfo(case.zone)
    faults = case.judge(_in_zone(source.toArrow().to_pylist(), zone), _in_zone(release, zone))
    return (FINDING, "; ".join(faults)) if faults else (RELEASE, f"{len(release)} rows")


def _in_zone(value: Any, zone: ZoneInfo) -> Any:
    """Points in time as a session of that zone shows them; all else as it is."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(zone)
    if isinstance(value, list):
        return [_in_zone(inner, zone) for inner in value]
    if isinstance(value, dict):
        return {name: _in_zone(inner, zone) for name, inner in value.items()}
    return value


def _job_file(case: Case, folder: Path) -> str:
    for name, text in case.files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(case.job, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return str(file)


def _fitted(spark: SparkSession, case: Case, folder: Path) -> Made:
    """Fit, stage, verify, without any Delta table."""
    job = load_job(_job_file(case, folder))
    steps = pipeline_of(job, spark)
    source = spark.createDataFrame(case.table)
    steps.check_columns(source)
    with Workspace(spark, job.work) as workspace:
        recoding = steps.fit(source, workspace, "fuzz key", None)
        key = key_frame(spark, "fuzz key")
        staged = workspace.store(recoding.staged(source, key), "release")
        verdicts = steps.verify(Staged(source, staged, recoding, key, workspace)).verdicts
        failed = [str(verdict) for verdict in verdicts if not verdict.passed]
        if failed:
            raise GuaranteeViolated(" ".join(failed))
        return source, staged.select(*(F.col(quoted(name)) for name in recoding.published)).toArrow().to_pylist()


def _run(spark: SparkSession, case: Case, folder: Path) -> Made:
    """The whole way: Delta table, job file, prepare, run, audit."""
    source = spark.createDataFrame(case.table)
    mapped = source.coalesce(1).write.format("delta").option("delta.columnMapping.mode", "name")  # else Delta refuses odd names
    mapped.save(str(folder / "people"))
    job = load_job(_job_file(case, folder))
    run(prepare(job, spark))
    failed = [str(verdict) for verdict in audit(job, spark) if not verdict.passed]
    if failed:
        raise GuaranteeViolated("audit of the published release: " + " ".join(failed))
    return source, spark.read.format("delta").load(str(folder / "release")).toArrow().to_pylist()
