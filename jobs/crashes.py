"""Kill a run at every step, for every family, and see what is left: `python jobs/crashes.py [--families …] [--out FILE]`.

Started by hand: every kill needs a process of its own, about a minute; good kills that `--out` holds are not repeated, so name a
new file after a change of the code. A process is killed with its JVM and workers, by itself, at the beginning of a step; then the
same job runs again here. The table says for each step what stood after the kill, whether the rerun ended, and whether anything
private was left after it. With `--series` each job adds to a series, where an old release stands the second half of the people;
people of dead runs who are still in the ledger, and people who are in it twice, count as left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.config import JobSpec
from anon_spark.families.registry import load_job
from anon_spark.io import publication
from anon_spark.io.leftovers import FOLDER
from anon_spark.io.publication import output_of
from anon_spark.io.tables import history
from anon_spark.primitives.stores import Store, remains, user_root
from anon_spark.runs.demo import make_samples
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.spark_session import make_session
from jobs.cluster import SHORT_LIVED
from jobs.markdown import table

ROWS = 600
QUASI_IDENTIFIERS = 2  # of the demonstration's: a kill takes no other course with eight
BRIEF = {  # a process that lives for a minute: nothing of it is worth compiling
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
STEPS = (
    "identity", "clean", "fit", "release", "audit", "risk", "publish", "commit", "write", "compare", "committed",
    "report", "log",
)  # fmt: skip
PUBLISHING = ("commit", "write", "compare", "committed")  # also tried where an old release stands
OF_A_SERIES = ("ledger", "confirm")  # before people enter the ledger, and before they are confirmed
WRITE = "write"  # between the steps commit and compare: rows lie in the folder of the release, no commit names them


@dataclass(frozen=True)
class Outcome:
    """What one kill led to."""

    family: str
    step: str
    old: bool  # another release stood before
    stood: str  # what was published after the kill: nothing, the old or the new release
    rerun: str  # how the rerun ended
    left: int  # private folders, notes and files no commit names after the rerun
    series: bool = False

    @property
    def is_good(self) -> bool:
        finds_nobody = "waiting" if self.series and self.stood == "the new release" else "published"
        return self.left == 0 and self.rerun in ((finds_nobody,) if self.series else ("published", "already_published"))


def killed(job: Path, step: str) -> int:
    """Run a job in a process that kills itself at a step; the exit code, negative for a signal."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, __file__, "--die-at", step, str(job)]
    return subprocess.run(command, env=environment, capture_output=True, start_new_session=True, check=False).returncode


def die_at(wanted: str, job: Path) -> None:
    """Run a job here, and kill the whole process group at a step."""
    def step(name: str) -> None:
        if name == wanted:
            os.killpg(0, signal.SIGKILL)

    if wanted == WRITE:
        publication._write = _half_written  # type: ignore[assignment]
    prepared = prepare(load_job(job), make_session("anon-spark crashes", BRIEF))
    run(prepared, redraw=not prepared.job.output.appends, step=step)


def _half_written(frame: DataFrame, table: str, *_: object) -> None:
    """Write the rows of a release into its folder as Delta does, and die before the commit."""
    elsewhere = Path(f"{table}-elsewhere")
    frame.write.format("delta").save(str(elsewhere))
    for file in elsewhere.glob("part-*"):
        shutil.move(file, Path(table) / file.name)
    shutil.rmtree(elsewhere)
    os.killpg(0, signal.SIGKILL)


@dataclass(frozen=True)
class Bench:
    """The sample tables, and a session in which every killed job runs again."""

    spark: SparkSession
    folder: Path

    def job(self, family: str, name: str, page: str, series: bool = False) -> Path:
        """The demonstration's job of a family, on fewer columns, with all its places in a folder of their own."""
        job = yaml.safe_load((self.folder / "conf" / f"{family}.yaml").read_text(encoding="utf-8"))
        quasi = job["columns"].get("quasi_identifiers")
        if quasi:
            job["columns"]["quasi_identifiers"] = dict(list(quasi.items())[:QUASI_IDENTIFIERS])
        job["output"] = {"table": f"../{name}/release", "runs": f"../{name}/runs", "report": f"../{name}/{page}"}
        job["work"] = f"../{name}/work"
        if series:
            job["output"] |= {"mode": "append", "ledger": f"../{name}/ledger", "increment": "increment_number"}
            job["input"]["table"] = f"../{name}/people"
        file = self.folder / "conf" / f"{name}.yaml"
        file.write_text(yaml.safe_dump(job), encoding="utf-8")
        return file

    def grown(self, family: str, name: str, half: bool) -> None:
        """The people of a family's demonstration, or the first half of them, as a version of an input of its own."""
        job = yaml.safe_load((self.folder / "conf" / f"{family}.yaml").read_text(encoding="utf-8"))
        everybody = self.spark.read.format("delta").load(str(self.folder / "conf" / job["input"]["table"]))
        person = job["columns"]["person"]
        rows = everybody.where(F.xxhash64(person) % 2 == 0) if half else everybody
        rows.write.format("delta").mode("overwrite").save(str(self.folder / name / "people"))

    def outcome(self, family: str, step: str, old: bool, series: bool) -> Outcome:
        """Kill a job at a step, where an old release stands or none, and run it again."""
        name = f"{family}-{step}-{'old' if old else 'first'}{'-series' if series else ''}"
        if series:
            self.grown(family, name, half=old)
        if old:
            run(prepare(load_job(self.job(family, name, "old.html", series)), self.spark))
        if series and old:
            self.grown(family, name, half=False)
        file = self.job(family, name, "page.html", series)  # another page is another configuration: a new release
        job = load_job(file)
        before = output_of(self.spark, job.output.table).release
        code = killed(file, step)
        after = output_of(self.spark, job.output.table).release
        same = "nothing" if after is None else "the old release"
        stood = same if (after and after.version) == (before and before.version) else "the new release"
        report = run(prepare(job, self.spark), redraw=not series)
        return Outcome(
            family,
            step,
            old,
            stood,
            report.status if code == -signal.SIGKILL else f"was not killed (exit {code})",
            self.left(Path(job.output.table), self.folder / name / "work") + (self.astray(job) if series else 0),
            series,
        )

    def astray(self, job: JobSpec) -> int:
        """People in the ledger whose run did not publish or is not confirmed, and those who are there twice."""
        ledger = self.spark.read.format("delta").load(str(job.output.ledger))
        people = ledger.where("kind = 'person'").select("person", "run_id")
        confirmed = ledger.where("kind = 'confirmed'").select("run_id")
        twice = people.count() - people.select("person").distinct().count()
        return twice + people.join(confirmed, "run_id", "left_anti").count()

    def left(self, release: Path, work: Path) -> int:
        """Working folders, local files of dead sessions, notes, and files that no commit names."""
        local = [one for one in remains(Store.of(str(user_root()))) if one.is_dead]
        named = {
            Path(path).name
            for version in range(len(history(self.spark, str(release), 99)))
            for path in self.spark.read.format("delta").option("versionAsOf", version).load(str(release)).inputFiles()
        }
        orphans = [path for path in release.glob("part-*") if path.name not in named]
        return len(local) + len(orphans) + len(list(release.glob(FOLDER))) + len(list(work.glob("anon-spark-*")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("job", nargs="?", type=Path)
    parser.add_argument("--die-at", metavar="STEP", help="run JOB and die at this step")
    parser.add_argument("--families", nargs="*", default=["lattice", "mst", "relational_transaction", "set_valued", "tree"])
    parser.add_argument("--series", action="store_true", help="jobs that add to a series")
    parser.add_argument("--out", type=Path, help="a line per kill; good ones that it holds are not repeated")
    options = parser.parse_args()
    if options.die_at:
        die_at(options.die_at, options.job)
        return 0
    lines = options.out.read_text("utf-8").splitlines() if options.out and options.out.exists() else []
    found = [one for one in (Outcome(**json.loads(line)) for line in lines) if one.is_good]
    done = {(one.family, one.step, one.old, one.series) for one in found}
    steps = sorted({*STEPS, *OF_A_SERIES}) if options.series else STEPS
    publishing = (*PUBLISHING, *OF_A_SERIES)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(make_session("anon-spark crashes", BRIEF), Path(folder))
        make_samples(bench.spark, bench.folder, ROWS)
        for family, step, old in product(options.families, steps, (False, True)):
            if (old and step not in publishing) or (family, step, old, options.series) in done:
                continue
            found.append(bench.outcome(family, step, old, options.series))
            print(found[-1], flush=True)
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(found[-1])) + "\n")
    rows = [
        [one.family, one.step, "yes" if one.old else "no", one.stood, one.rerun, str(one.left)] for one in found
    ]
    print(table(["family", "killed at", "an old release stood", "stood after the kill", "rerun", "left after it"], rows))
    return 0 if all(one.is_good for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
