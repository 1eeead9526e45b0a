"""Canaries: unique markers in every value, name, comment and property of an input; where they turn up after a run.

In the release only what it may show; in report and run log labels that k rows of the release have; else nothing: event log,
commits, schemas, Parquet footers, saved recodings, working and local folders, after a success and after failures. The names of
the columns are awkward, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anon_spark.columns import quoted
from anon_spark.errors import GuaranteeViolated
from anon_spark.io.tables import history
from anon_spark.primitives.stores import user_root
from anon_spark.runs.audit import audit
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from tests.event_log import EventLog
from tests.often import often
from tests.town import Town

ROWS = 80
CITIES = ["CanaryCityA", "CanaryCityB"]
RARE = "CanaryRare"  # the city of one row, which no release may show
NUMBER, BASKET, DISEASE, NOTE = "num.ber", "bas`ket-", "größe'😀.", "count"
MARK = re.compile(r"Canary[A-Za-z]+")
ROLES: dict[str, Any] = {"identifiers": ["CanaryColumnName"], "sensitive": [DISEASE], "keep": [NOTE]}
SPANS = {"intervals": {"from": 0, "to": 9, "widths": [5]}}
FAMILIES: dict[str, tuple[dict[str, Any], set[str]]] = {  # job, and what its release may show
    "lattice": (
        {
            "columns": {**ROLES, "quasi_identifiers": {"city": {"levels": "hierarchies/city.csv"}, NUMBER: SPANS}},
            "privacy": {"k": 3, "suppression": 0.1},
            "lattice": {"choose": {"node": [0, 2]}},
        },
        {*CITIES, "CanaryDisease", "CanaryNote"},
    ),
    "mst": (
        {
            "columns": {**ROLES, "quasi_identifiers": {NUMBER: SPANS, "city": {"mask": {"length": 11}}}},
            "privacy": {"k": 3},
            "on_unseen": "suppress",
        },
        {*CITIES, "CanaryCity", "CanaryDisease", "CanaryNote"},
    ),
    "relational_transaction": (
        {
            "columns": {
                **ROLES,
                "quasi_identifiers": {NUMBER: {}},
                "transactions": [BASKET],
                "sensitive_items": {BASKET: ["CanarySecret"]},
            },
            "privacy": {"k": 4, "m": 1, "l": 2},
        },
        {"CanaryItem", "CanarySecret", "CanaryDisease", "CanaryNote"},
    ),
    "set_valued": (
        {
            "columns": {"identifiers": ["CanaryColumnName"], "items": BASKET, "sensitive": [DISEASE]},
            "privacy": {"k": 3},
            "set_valued": {"order": "gray"},
        },
        {"CanaryItem", "CanarySecret", "CanaryDisease"},
    ),
    "tree": (
        {
            "columns": {
                "identifiers": ["CanaryColumnName"],
                "keep": [NOTE],
                "tree": {
                    "size": {
                        "field": "plain_number",
                        **SPANS,
                        "children": {"brand": {"field": "orders.brand", "levels": "hierarchies/brand.csv"}},
                    }
                },
            },
            "privacy": {"k": 3, "m": 2, "n": 1},
            "tree": {"max_cuts": 6},
        },
        {"CanaryBrand", "CanaryNote"},
    ),
}


def marked() -> pa.Table:
    """One wide table for all families; every text in it is a marker that tells its column."""
    numbers = range(ROWS)
    hidden = [[{"brand": f"CanaryBrand{number % 4}", "kind": "CanaryHidden"}] for number in numbers]
    return pa.table(
        {
            "CanaryColumnName": [f"CanaryName{number}" for number in numbers],
            "unused": [f"CanaryUnused{number}" for number in numbers],
            "city": [RARE if number == 7 else CITIES[number % 2] for number in numbers],
            NUMBER: [number * 7 % 10 for number in numbers],
            DISEASE: [f"CanaryDisease{number % 5}" for number in numbers],
            NOTE: [f"CanaryNote{number % 3 % 2}" for number in numbers],
            BASKET: [
                [f"CanaryItem{number % 4}", f"CanaryItem{4 + number % 3}", *(["CanarySecret"] if number % 9 == 0 else [])]
                for number in numbers
            ],
            "plain_number": [number * 7 % 10 for number in numbers],  # a field of a tree can have no dot
            "orders": hidden,
        }
    )


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """The marked table with comments, properties and metadata of its own."""
    town = Town.founded(spark, tmp_path_factory.mktemp("canary") / "town", marked())
    (town.folder / "hierarchies" / "city.csv").write_text("".join(f"{city};*\n" for city in (*CITIES, RARE)))
    (town.folder / "hierarchies" / "brand.csv").write_text("".join(f"CanaryBrand{at};*\n" for at in range(4)))
    table = f"delta.`{town.folder}/people`"
    spark.sql(f"COMMENT ON TABLE {table} IS 'CanaryDescription'")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('CanaryProperty' = 'CanaryProperty')")
    for column in (quoted(DISEASE), NOTE, "city", quoted(BASKET), "orders.element.brand"):
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} COMMENT 'CanaryComment'")
    return town


def found(texts: Iterable[str]) -> set[str]:
    return {mark for text in texts for mark in MARK.findall(text)}


def release_marks(town: Town, release: Path) -> set[str]:
    """Markers in the rows, the schema, the commits, the log with its statistics, and the footers of the files."""
    frame = town.spark.read.format("delta").load(str(release))
    texts = [str(row.asDict(recursive=True)) for row in frame.collect()]
    texts += [json.dumps(frame.schema.jsonValue()), *(str(commit) for commit in history(town.spark, str(release), 9))]
    texts += [path.read_text(errors="replace") for path in (release / "_delta_log").glob("*.json")]
    for file in release.glob("*.parquet"):
        footer = pq.read_metadata(file)
        texts += [str(footer.metadata), str(pq.read_schema(file))]
    return found(texts)


def reported(town: Town, family: str, run_id: str | None = None) -> set[str]:
    """Markers in the report of a family, and in the row of a run in the run log."""
    texts = [path.read_text() for path in (town.folder / "report").glob(f"{family}.*")]
    return found([*texts, *(str(row) for row in town.runs if row["run_id"] == run_id)])


def elsewhere(town: Town, logged: str) -> set[str]:
    """Markers anywhere a run may have written, but for the releases, reports and the rows of the run log."""
    texts = [logged, *(path.read_text(errors="replace") for path in (town.folder / "runs" / "_delta_log").glob("*.json"))]
    apart = {town.folder / name for name in ("people", "hierarchies", "job.yaml", "report", "runs", *FAMILIES)}
    places = [path for path in town.folder.iterdir() if path not in apart]
    files = (path for place in (*places, user_root()) for path in ([place] if place.is_file() else place.rglob("*")))
    texts += [path.read_bytes().decode("utf-8", errors="ignore") for path in files if path.is_file()]
    return found(texts)


def changes_of(family: str) -> dict[str, Any]:
    return {**FAMILIES[family][0], "family": family, "output__table": f"./{family}", "output__report": f"report/{family}.html"}


NAMES = {"CanaryColumnName"}  # an identifier is named where the job is told, and nowhere else


@pytest.mark.parametrize("family", often(FAMILIES, {"lattice"}))
def test_markers_are_where_they_may_be(town: Town, event_log: EventLog, family: str) -> None:
    release, mark, shown = town.folder / family, event_log.mark(), FAMILIES[family][1]
    job = town.job(**changes_of(family))

    report = run(prepare(job, town.spark))

    assert report.status == "published"
    assert release_marks(town, release) <= shown
    assert found(str(row) for row in town.spark.read.format("delta").load(str(release)).collect()) & shown
    assert [str(verdict) for verdict in audit(job, town.spark) if not verdict.passed] == []
    assert elsewhere(town, event_log.read_text(since=mark)) <= NAMES
    assert reported(town, family, report.run_id) <= shown
    assert list((town.folder / "work").iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("family", often(FAMILIES, {"lattice"}))
def test_a_failure_leaves_no_marker(town: Town, event_log: EventLog, family: str) -> None:
    """In the middle, by an error whose text holds values, and by the gate."""
    mark = event_log.mark()
    for error in (RuntimeError("CanaryName7 of CanaryCityA"), GuaranteeViolated("told without values")):

        def broken(step: str, error: Exception = error) -> None:
            if step == "audit":
                raise error

        with pytest.raises(type(error)):
            run(prepare(town.job(**changes_of(family), output__runs="./runs2"), town.spark), redraw=True, step=broken)
    assert elsewhere(town, event_log.read_text(since=mark)) | reported(town, family) <= NAMES
    assert list((town.folder / "work").iterdir()) == []
