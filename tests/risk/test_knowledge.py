"""The knowledge attack against its definition, on an honest release of the oracle and on one that is not anonymous."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import fsum
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.risk import KnowledgeRisk, knowledge_attack
from anon_spark.risk.item_sets import knowledge
from tests.auditing.town import frame
from tests.event_log import EventLog
from tests.oracle.rt_oracle import (
    Category,
    Number,
    Published,
    Record,
    Schema,
    by_sets,
    make_cluster,
    publish,
    verify_kkm,
)

AGE, CITY, ITEMS, SECRETS = "age", "ci.ty", "bas.ket", "bas.ket_sensitive"
TEXTS = pa.list_(pa.string())
LEVELS = [("Athens", "Greece", "*"), ("Patras", "Greece", "*"), ("Rome", "Italy", "*"), ("Oslo", "Norway", "*")]
SCHEMA = Schema([Number(20, 40), Category(LEVELS)])
RELATIONAL = {AGE: None, CITY: Hierarchy.from_levels(LEVELS)}
HIDDEN = ["hiv", "flu"]
K, M = 3, 2


def people(number: int, seed: int) -> list[Record]:
    rng = Random(seed)
    return [
        Record(
            rid,
            (rng.randint(20, 40), rng.choice(LEVELS)[0]),
            frozenset(item for item in "abcdef" if rng.random() < 0.5),
            frozenset(item for item in HIDDEN if rng.random() < 0.15),
        )
        for rid in range(number)
    ]


RECORDS = people(40, 3)
RELEASE = publish([make_cluster(RECORDS[at::2], SCHEMA) for at in (0, 1)], by_sets(K, M))


def frames(
    spark: SparkSession, records: list[Record], release: dict[int, Published], partitions: int = 2
) -> tuple[DataFrame, DataFrame]:
    linked = [(record.rid, *record.values, sorted(record.items | record.sensitive)) for record in records]
    ends = pa.struct([("lo", pa.int32()), ("hi", pa.int32())])
    staged = []
    for rid, row in release.items():
        (lo, hi), label = SCHEMA.labels(row.cells)
        staged.append((rid, {"lo": lo, "hi": hi}, label, sorted(map(list, row.items)), sorted(row.sensitive)))
    kinds: list[pa.DataType] = [pa.int64(), pa.int32(), pa.string(), TEXTS]
    shown: list[pa.DataType] = [pa.int64(), ends, pa.string(), pa.list_(TEXTS), TEXTS]
    return (
        frame(spark, linked, [LINK, AGE, CITY, ITEMS], kinds, partitions),
        frame(spark, staged, [LINK, AGE, CITY, ITEMS, SECRETS], shown, partitions),
    )


def attacked(
    spark: SparkSession, records: list[Record], release: dict[int, Published], partitions: int = 2, sample: int = 500
) -> tuple[KnowledgeRisk, ...]:
    linked, staged = frames(spark, records, release, partitions)
    return knowledge_attack(linked, staged, RELATIONAL, [ITEMS], ITEMS, K, M, {ITEMS: HIDDEN}, SECRETS, 2, records=sample)


@pytest.mark.long
def test_what_is_not_published_is_not_known(spark: SparkSession) -> None:
    """Others of its items are known instead: the attack is that on records which never had it."""
    less = [record._replace(items=record.items - {"b"}) for record in RECORDS]
    release = publish([make_cluster(less[at::2], SCHEMA) for at in (0, 1)], by_sets(K, M))
    linked, staged = frames(spark, RECORDS, release)
    given = (RELATIONAL, [ITEMS], ITEMS, K, M, {ITEMS: HIDDEN}, SECRETS, 2)
    assert knowledge_attack(linked, staged, *given, unpublished=["b"]) == attacked(spark, less, release)
    assert knowledge_attack(linked, staged, *given)[0].found < len(RECORDS)  # somebody who waits for b misses rows


def known_order(spark: SparkSession, records: list[Record]) -> dict[int, list[str]]:
    """The items of each record in the order in which they become known: by a hash."""
    pairs = frame(spark, [(r.rid, item) for r in records for item in r.items], [LINK, "item"], [pa.int64(), pa.string()])
    rows = pairs.orderBy(F.xxhash64(LINK, "item")).collect()
    found: dict[int, list[str]] = {record.rid: [] for record in records}
    for rid, item in rows:
        found[rid].append(item)
    return found


def by_definition(
    records: list[Record], release: dict[int, Published], order: dict[int, list[str]], amount: int | None
) -> KnowledgeRisk:
    chances, fits, shares = [], [], []
    for record in records:
        known = order[record.rid][:amount]
        near = [
            rid
            for rid, row in release.items()
            if SCHEMA.covers(row.cells, record.values) and all(any(item in u for u in row.items) for item in known)
        ]
        counts = Counter(item for rid in near for item in release[rid].sensitive)
        shares.append(Fraction(max(counts.values(), default=0), max(1, len(near))))
        chances.append((record.rid in near) / max(1, len(near)))
        fits.append(len(near))
    return KnowledgeRisk(
        items=amount,
        promised=amount == M,
        records=len(records),
        found=sum(chance > 0 for chance in chances),
        success=fsum(chances) / len(records),
        least=min(fits),
        worst=max(chances),
        promise=1 / K,
        below=sum(rows < K for rows in fits),
        share=float(max(shares)),
        share_promise=0.5,
    )


def test_the_attack_is_its_definition(spark: SparkSession, event_log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not verify_kkm(RELEASE.values(), K, M)
    order = known_order(spark, RECORDS)
    since = event_log.mark()
    found = attacked(spark, RECORDS, RELEASE)
    assert found == tuple(by_definition(RECORDS, RELEASE, order, amount) for amount in (M, M + 1, M + 2, None))
    assert found[0].least >= K and found[0].below == 0 and found[0].worst <= found[0].promise
    assert [risk.found for risk in found] == [len(RECORDS)] * 4
    assert found[0].success < found[-1].success and found[-1].below > 0  # who knows more than was promised finds more
    assert "hiv" not in event_log.read_text(since) and "hiv" not in str(found[0])
    assert "promised at most 0.3333" in str(found[0]) and "nothing is promised" in str(found[-1])

    monkeypatch.setattr(knowledge, "CELLS_AT_ONCE", 90)  # rows that fit are looked for in several parts
    for partitions in (1, 7):
        assert attacked(spark, RECORDS, RELEASE, partitions) == found


def test_a_sample_is_chosen_by_hash(spark: SparkSession) -> None:
    some, again = (attacked(spark, RECORDS, RELEASE, partitions, 9) for partitions in (1, 7))
    assert some == again and [risk.records for risk in some] == [9] * 4
    numbered = frame(spark, [(record.rid,) for record in RECORDS], [LINK], [pa.int64()])
    chosen = {row[0] for row in numbered.orderBy(F.xxhash64(LINK)).limit(9).collect()}
    sampled = [record for record in RECORDS if record.rid in chosen]
    assert some[0] == by_definition(sampled, RELEASE, known_order(spark, sampled), M)


def test_a_release_that_is_not_anonymous_shows(spark: SparkSession) -> None:
    raw = {
        record.rid: Published(SCHEMA.box(record), frozenset((item,) for item in record.items), record.sensitive)
        for record in RECORDS
    }
    first = attacked(spark, RECORDS, raw)[0]
    assert first.worst == 1.0 and first.least == 1 and first.below > len(RECORDS) / 2 and first.share == 1.0
    lost = {rid: row for rid, row in RELEASE.items() if rid >= 5}  # these five have no row of their own
    assert attacked(spark, RECORDS, lost)[0].found == len(RECORDS) - 5


def test_several_columns_and_missing_values(spark: SparkSession) -> None:
    linked = frame(
        spark,
        [(0, 1.5, None, ["x"], ["x", "hiv"]), (1, 2.5, "Rome", ["y"], None), (2, None, "Rome", ["x"], [])],
        [LINK, AGE, CITY, "one", "two"],
        [pa.int64(), pa.float64(), pa.string(), TEXTS, TEXTS],
    )
    ends = pa.struct([("lo", pa.float64()), ("hi", pa.float64())])
    rows = [
        (0, {"lo": 1.5, "hi": 2.5}, "*", [["one.x", "one.y"], ["two.x"]], ["two.hiv"]),
        (1, {"lo": 1.5, "hi": 2.5}, "*", [["one.x", "one.y"]], []),
        (2, {"lo": 1.5, "hi": 1.5}, None, [["one.x"], ["two.x"]], []),
        (3, {"lo": 1.5, "hi": 2.5}, "Rome", [["one.y"]], ["two.flu"]),  # nobody listed the flu
        (4, None, "*", [["one.x", "one.y"]], []),
    ]
    staged = frame(
        spark, rows, [LINK, AGE, CITY, "t", "s"], [pa.int64(), ends, pa.string(), pa.list_(TEXTS), TEXTS]
    )
    found = knowledge_attack(linked, staged, RELATIONAL, ["one", "two"], "t", 2, 1, {"two": ["hiv"]}, "s")
    # record 0 fits rows 0, 2, and 1 as long as two.x is not known; record 1 fits 0, 1, 3; record 2 has no number
    everything = found[-1]
    assert (everything.least, everything.below, everything.found) == (0, 1, 2)
    assert everything.success == pytest.approx((1 / 2 + 1 / 3) / 3) and everything.share == 0.5
    assert everything.share_promise is None and "nothing is promised" in str(everything)
    plain = knowledge_attack(linked.drop("two"), staged, RELATIONAL, ["one"], "t", 2, 1)
    assert plain[0].share is None and plain[0].found == 0  # items under other names: none is held by any row
    with pytest.raises(ConfigurationError):
        knowledge_attack(linked, staged, RELATIONAL, ["one", "two"], "t", 2, 1, {"two": ["hiv"]})
