"""What a series tells: no salt, no hash of a person and no private value anywhere but in the ledger, and no value in that."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from anon_spark.columns import PREFIX
from anon_spark.errors import DataError
from anon_spark.io.tables import history
from anon_spark.primitives.stores import user_root
from anon_spark.runs.run import run
from tests.event_log import EventLog
from tests.oracle.series_oracle import ledger_hash
from tests.runs.series.growing import Series, table_of
from tests.runs.series.test_refusals import sql, with_nobody
from tests.runs.series.village import CANARY, SECOND, THIRD, Begun


def secrets_of(series: Series) -> list[str]:
    """The salt and all hashes, as they may be written."""
    rows = series.ledger()
    (salt,) = (row["salt"] for row in rows if row["kind"] == "series")
    assert len(salt) == 64 and set(salt) <= set("0123456789abcdef")
    hashes = [ledger_hash(salt, row["person_id"]) for row in THIRD]
    assert {bytes(row["person"]) for row in rows if row["kind"] == "person"} <= set(hashes)
    texts = [text for one in hashes for text in (one.hex(), one.hex().upper(), base64.b64encode(one).decode(), str(one)[2:-1])]
    return [salt, salt.upper(), *texts]


def files_of(folder: Path) -> Iterator[tuple[str, str]]:
    """The files below a folder, some of which other processes may remove meanwhile."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            with suppress(FileNotFoundError):
                yield str(path), path.read_bytes().decode("utf-8", errors="backslashreplace")


def texts_of(series: Series, logged: str) -> dict[str, str]:
    """Everything that a series has left, but for input and ledger."""
    folder, spark = series.town.folder, series.town.spark
    texts = {"event log": logged, "run log": repr(series.town.runs), "release": repr(series.release())}
    texts["commits"] = str(history(spark, str(folder / "release"), 99))
    texts["schema"] = json.dumps(series.town.release.schema.jsonValue())
    texts["footers"] = str([
        (pq.read_metadata(file).metadata, pq.read_schema(file)) for file in (folder / "release").glob("*.parquet")
    ])  # fmt: skip
    for place in (folder / "release", folder / "runs", folder / "report", folder / "work", user_root()):
        texts |= dict(files_of(place))
    return texts


def test_nothing_private_leaves_the_ledger(begun_series: Begun, tmp_path: Path, event_log: EventLog) -> None:
    """After the first increment, a second one, and a run whose people wait."""
    series = begun_series.series.copied(tmp_path / "town")
    mark = event_log.mark()
    assert series.run(SECOND).status == "published"
    assert series.run(SECOND).status == "waiting"
    texts, secrets = texts_of(series, begun_series.logged + event_log.read_text(since=mark)), secrets_of(series)
    assert {"event log", "run log", "commits"} <= set(texts) and all(texts[name] for name in ("event log", "run log", "commits"))
    assert any("town.html" in name for name in texts) and any("_delta_log" in name for name in texts)
    for where, text in texts.items():
        assert not [secret for secret in secrets if secret in text], where
        assert CANARY not in text, where
    assert PREFIX not in texts["schema"]  # no private column
    # a ledger has no value of a record, and is its owner's alone
    assert CANARY not in str(series.ledger())
    assert not any(CANARY in text for _, text in files_of(series.town.folder / "ledger"))
    assert stat.S_IMODE((begun_series.series.town.folder / "ledger").stat().st_mode) == 0o700


@pytest.mark.long
def test_a_failure_tells_nothing(begun_series: Begun, tmp_path: Path, event_log: EventLog) -> None:
    """The ledger was edited, somebody has no person, an error comes between ledger and commit."""
    series = begun_series.series.copied(tmp_path / "town")
    mark, secrets = event_log.mark(), secrets_of(series)
    with_nobody(series)
    with pytest.raises(DataError, match="have no person"):
        run(series.prepared())

    def broken(step: str) -> None:
        if step == "commit":
            raise RuntimeError(f"{CANARY}Person1 {secrets[0]}")

    series.town.write(table_of(SECOND))
    with pytest.raises(RuntimeError):
        run(series.prepared(), step=broken)
    logged = event_log.read_text(since=mark)
    sql(series, "DELETE FROM {ledger} WHERE person = {somebody}")  # a statement of the owner, who wrote a hash into it
    mark = event_log.mark()
    with pytest.raises(DataError, match="rows are missing"):
        run(series.prepared())
    for where, text in texts_of(series, logged + event_log.read_text(since=mark)).items():
        assert not [secret for secret in secrets if secret in text], where
        assert CANARY not in text, where
