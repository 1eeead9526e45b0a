"""k^(m,n)-anonymity of published trees: whatever is known of few labels and relations fits k records, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.guarantees.tree_counting import (
    Counts,
    Known,
    Packing,
    Signatures,
    counted,
    known,
    merged,
    ones,
    pair_number,
    summed,
)
from anon_spark.auditing.guarantees.tree_signatures import KEYS_AT_ONCE, Coding, Survey
from anon_spark.auditing.reading.item_sets import Ints, Lists, offsets_of
from anon_spark.auditing.reading.sums import sum_of
from anon_spark.auditing.reading.tree_paths import CLASS, FAULTS, VALUE, Label, read_nodes, require_paths
from anon_spark.auditing.reading.values import exact, private
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee import KmnAnonymity

MOST_KNOWN = 11  # labels: their pairs are bits of one number

_PATHS, _LABELS, _PAIRS, _SECRETS, _BUCKET, _MASK, _SECRET = (
    private(name) for name in ("paths", "labels", "pairs", "secrets", "bucket", "mask", "secret")
)
_SUMS = ("known", "small", "frequent", "violations")


def verify_kmn(
    release: DataFrame,
    k: int,
    m: int,
    n: int,
    l: int | None = None,  # noqa: E741 - the papers' name
    sensitive_node_types: Sequence[str] = (),
    negations: Sequence[tuple[str, Collection[Label]]] = (),
    column: str = "paths",
) -> Verdict:
    """Whether k records or more, or none, have any 1 … m labels with any 0 … n relations among them.

    A label is a node type with a value, compared byte by byte; null is a value. A relation is a pair of labels, one above the
    other on some path. Labels of sensitive node types are not known; with l, none of their values is in more than 1/l of the
    records that fit, for every such K and for all records. negations: a name and the labels that are absent from a record
    that matches it; each counts as a label.
    Guarantee: exact, from the published table alone; passed iff there is a record, the condition holds for every K (k and
    1/l themselves are fine), every record is well formed (paths sorted, distinct, from the root to a leaf; no node type
    twice on a path) and no node type is above another in one place and below it in another one.
    What it does not say: see `KmnAnonymity.does_not_cover`.
    violations counts K, malformed records and pairs of node types in both orders; checked counts K and records. facts: `known`,
    the number of K; `smallest`, the least support; `histogram`: (from, to, K) for supports k to 2k-1, 2k to 4k-1, …;
    `below_k` and `above_share`: (labels, relations, K); with l `highest_share`; malformed records by fault. The frame of
    violations: `labels`, `relations` (pairs of positions among them, from 1), `rows` and, with l, `most`.
    Cost: two jobs. The first reads the labels (at most MOST_LABELS reach the driver); the second codes records, groups equal
    ones and counts, in each task, one key per set of labels and the mask of its related pairs; partial sums are shuffled by
    set. Records with equal labels are counted once; a further pruning by those with k records or more would spare 1/k of the
    work at most, and the figures of the report. Memory of a task: about KEYS_AT_ONCE sets.
    """
    KmnAnonymity(k, m, n, l, sensitive_node_types, [name for name, _ in negations])
    if m > MOST_KNOWN:
        raise ConfigurationError(f"m is {m}: sets of more than {MOST_KNOWN} labels are not counted.")
    require_paths(release, column)
    paths = release.select(exact(release, column).alias(_PATHS))
    asked = _Asked(k, m, min(n, pair_number(m)), l)
    survey = Survey.of(paths, sensitive_node_types, len(negations), m, with_secrets=l is not None)
    coding = Coding.of(survey.labels, sensitive_node_types, negations, with_secrets=l is not None)
    keyed = _keyed(paths, coding, coding.packing(m), survey.tasks)
    rows = _judged(keyed, coding, asked, survey.tasks)
    return _verdict(asked, survey, coding, rows, _violating(keyed, coding, asked, survey.tasks))


@dataclass(frozen=True)
class _Asked:
    """The parameters of the guarantee."""

    k: int
    m: int
    n: int
    l: int | None  # noqa: E741

    def __str__(self) -> str:
        diverse = "" if self.l is None else f" with {self.l}-diversity"
        return f"{self.k}^({self.m},{self.n})-anonymity{diverse}"


# -- counting ---------------------------------------------------------------------------------------------------------


def _lists(lists: Lists) -> Any:
    return pa.ListArray.from_arrays(pa.array(lists[0], pa.int32()), pa.array(lists[1], pa.int32()))


def _read(lists: Any) -> Lists:
    sizes = np.asarray(lists.value_lengths(), dtype=np.int64)
    return offsets_of(sizes), np.asarray(lists.flatten(), dtype=np.int64)


def _key(at: int) -> str:
    return private(f"key_{at}")


def _keyed(paths: DataFrame, coding: Coding, packing: Packing, tasks: int) -> DataFrame:
    """One row per set of labels, mask of related pairs, sensitive value and task: how many records are like that."""

    def code(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            coded = coding.signatures(read_nodes(batch.column(0)))
            yield pa.RecordBatch.from_arrays([_lists(part) for part in coded], names=[_LABELS, _PAIRS, _SECRETS])

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts: list[Counts] = []
        waiting = 0
        for batch in batches:
            labels, pairs, secrets = (_read(batch.column(name)) for name in (_LABELS, _PAIRS, _SECRETS))
            times = np.asarray(batch.column(ROWS), dtype=np.int64)
            for part in counted(Signatures(labels, pairs, secrets, times), packing):
                parts.append(part)
                waiting += part.rows.size
                if waiting > 4 * KEYS_AT_ONCE:
                    parts = [merged(parts, packing)]
                    waiting = parts[0].rows.size
                    if waiting > 2 * KEYS_AT_ONCE:
                        yield _sent(parts.pop(), tasks)
                        waiting = 0
        if parts:
            yield _sent(merged(parts, packing), tasks)

    lists = f"{_LABELS} array<int>, {_PAIRS} array<int>, {_SECRETS} array<int>"
    keys = ", ".join(f"{_key(at)} long" for at in range(packing.columns))
    coded = paths.mapInArrow(code, lists).repartition(tasks, _LABELS)
    distinct = coded.groupBy(_LABELS, _PAIRS, _SECRETS).agg(F.count(F.lit(1)).alias(ROWS))
    return distinct.mapInArrow(count, f"{_BUCKET} int, {keys}, {_MASK} long, {_SECRET} int, {ROWS} long")


def _sent(counts: Counts, tasks: int) -> pa.RecordBatch:
    mixed = np.zeros(counts.rows.size, dtype=np.uint64)
    for key in counts.keys:
        mixed = (mixed ^ key.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    columns = {
        _BUCKET: pa.array(((mixed >> np.uint64(33)) % np.uint64(tasks)).astype(np.int32)),
        **{_key(at): pa.array(key) for at, key in enumerate(counts.keys)},
        _MASK: pa.array(counts.mask),
        _SECRET: pa.array(counts.secret.astype(np.int32)),
        ROWS: pa.array(counts.rows),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _known(table: pa.Table, packing: Packing, n: int) -> Known:
    """All K of the sets of labels in one bucket."""
    names = [*(_key(at) for at in range(packing.columns)), _MASK, _SECRET, ROWS]
    columns = [np.asarray(table[name], dtype=np.int64) for name in names]
    return known(summed(columns[:-1], packing.widths, columns[-1]), packing, n)


# -- the verdict ----------------------------------------------------------------------------------------------------


def _faults(knowledge: Known, size: Ints, asked: _Asked) -> tuple[Ints, Ints]:
    """Per K 1 if its support is below k, and 1 if a sensitive value is in more than 1/l of its records."""
    small = ((knowledge.support < asked.k) & (size > 0)).astype(np.int64)
    frequent = (knowledge.most * (asked.l or 0) > knowledge.support).astype(np.int64)
    return small, frequent


def _judged(keyed: DataFrame, coding: Coding, asked: _Asked, tasks: int) -> list[dict[str, Any]]:
    """One row per number of labels, number of relations and doubling of k: sums over the K that are like that."""
    packing = coding.packing(asked.m)

    def judge(table: pa.Table) -> pa.Table:
        knowledge = _known(table, packing, asked.n)
        size = (packing.digits(knowledge.keys) > 0).sum(axis=1)
        small, frequent = _faults(knowledge, size, asked)
        doublings = np.where(knowledge.support < asked.k, -1, np.frexp(knowledge.support // asked.k)[1] - 1)
        group = np.stack([size, ones(knowledge.relations), doublings], axis=1)
        groups, which = np.unique(group, axis=0, return_inverse=True)
        sums = [np.ones_like(small), small, frequent, small | frequent]
        by = which.reshape(-1)
        columns: dict[str, Any] = {name: groups[:, at] for at, name in enumerate(("labels", "relations", "doublings"))}
        for name, flags in zip(_SUMS, sums, strict=True):
            columns[name] = np.bincount(by, weights=flags, minlength=len(groups)).astype(np.int64)
        smallest = np.full(len(groups), np.iinfo(np.int64).max)
        np.minimum.at(smallest, by, knowledge.support)
        share = np.zeros(len(groups))
        np.maximum.at(share, by, knowledge.most / np.maximum(knowledge.support, 1))
        columns |= {"smallest": smallest, "share": share}
        return pa.table(columns)

    by = ["labels", "relations", "doublings"]
    schema = ", ".join([*(f"{name} long" for name in (*by, *_SUMS, "smallest")), "share double"])
    buckets = keyed.repartition(tasks, _BUCKET).groupBy(_BUCKET).applyInArrow(judge, schema)
    extremes = [F.min("smallest").alias("smallest"), F.max("share").alias("share")]
    rows = buckets.groupBy(*by).agg(*map(sum_of, _SUMS), *extremes).collect()
    return [row.asDict() for row in rows]


def _violating(keyed: DataFrame, coding: Coding, asked: _Asked, tasks: int) -> DataFrame:
    """One row per violating K, for the eyes of the job's owner."""
    packing, names = coding.packing(asked.m), [(type_name, value) for type_name, value in coding.names]
    label = T.StructType([T.StructField(CLASS, T.StringType()), T.StructField(VALUE, T.StringType())])
    pair = T.StructType([T.StructField("one", T.IntegerType()), T.StructField("other", T.IntegerType())])
    fields = [T.StructField("labels", T.ArrayType(label)), T.StructField("relations", T.ArrayType(pair))]
    schema = T.StructType([*fields, *(T.StructField(name, T.LongType()) for name in ("rows", "most"))])
    places = [(low + 1, up + 1) for up in range(asked.m) for low in range(up)]

    def list_(table: pa.Table) -> pa.Table:
        knowledge = _known(table, packing, asked.n)
        digits = packing.digits(knowledge.keys)
        small, frequent = _faults(knowledge, (digits > 0).sum(axis=1), asked)
        wrong = np.flatnonzero(small | frequent)
        sets = [[dict(zip((CLASS, VALUE), names[at - 1], strict=True)) for at in row if at] for row in digits[wrong].tolist()]
        relations = [
            [dict(zip(("one", "other"), pair, strict=True)) for bit, pair in enumerate(places) if mask >> bit & 1]
            for mask in knowledge.relations[wrong].tolist()
        ]
        struct = pa.struct([(CLASS, pa.string()), (VALUE, pa.string())])
        positions = pa.struct([("one", pa.int32()), ("other", pa.int32())])
        return pa.table(
            {
                "labels": pa.array(sets, pa.list_(struct)),
                "relations": pa.array(relations, pa.list_(positions)),
                "rows": pa.array(knowledge.support[wrong]),
                "most": pa.array(knowledge.most[wrong]),
            }
        )

    shown = keyed.repartition(tasks, _BUCKET).groupBy(_BUCKET).applyInArrow(list_, schema)
    return shown if asked.l is not None else shown.drop("most")


def _verdict(
    asked: _Asked, survey: Survey, coding: Coding, rows: Sequence[Mapping[str, Any]], frame: DataFrame
) -> Verdict:
    sums = {name: sum(row[name] for row in rows if row["labels"] or name != "known") for name in _SUMS}
    faults = {name: survey.faults.get(name, 0) for name in ("malformed", *FAULTS)}
    by: dict[str, Counter[tuple[int, int]]] = {"small": Counter(), "frequent": Counter()}
    for row in rows:
        for kind, times in by.items():
            times[row["labels"], row["relations"]] += row[kind]
    shown = {kind: [(*of, times[of]) for of in sorted(times) if times[of]] for kind, times in by.items()}
    buckets: Counter[int] = Counter()
    for row in rows:
        if row["labels"] and row["doublings"] >= 0:
            buckets[row["doublings"]] += row["known"]
    facts: dict[str, Any] = {
        "k": asked.k, "m": asked.m, "n": asked.n, **({} if asked.l is None else {"l": asked.l}),
        "unit": "records", "rows": survey.rows, "labels": len(coding.labels), "negations": len(coding.absent),
        "known": sums["known"],
        "smallest": min((row["smallest"] for row in rows if row["labels"]), default=0),
        "histogram": [(asked.k << at, (asked.k << (at + 1)) - 1, buckets[at]) for at in sorted(buckets)],
        "below_k": shown["small"],
        **({} if asked.l is None else {"above_share": shown["frequent"], "highest_share": max(row["share"] for row in rows)}),
        "both_orders": survey.both_orders, **faults,
    }  # fmt: skip
    violations = sums["violations"] + faults["malformed"] + survey.both_orders
    return Verdict(
        kind=Kind.PROMISE,
        name=str(asked),
        passed=survey.rows > 0 and violations == 0,
        violations=violations,
        checked=sums["known"] + survey.rows,
        detail=_detail(asked, facts),
        facts=facts,
        frame=frame,
    )


def _detail(asked: _Asked, facts: Mapping[str, Any]) -> str:
    if not facts["rows"]:
        return "the release is empty, there is nothing to publish."
    texts = {
        "below_k": f"are in fewer than {asked.k} records",
        "above_share": f"have a sensitive value in more than 1/{asked.l} of their records",
    }
    parts = []
    for name, text in texts.items():
        if facts.get(name):
            of = ", ".join(f"{times} of {size} labels and {edges} relations" for size, edges, times in facts[name])
            parts.append(f"{sum(times for *_, times in facts[name])} sets of labels, with relations among them, {text} ({of}).")
    parts += [f"{facts[name]} of {facts['rows']} records {text}." for name, text in FAULTS.items() if facts[name]]
    if facts["both_orders"]:
        parts.append(f"{facts['both_orders']} pairs of node types stand in both orders, so relations cannot be told apart.")
    share = "" if asked.l is None else f", and no sensitive value in more than {facts['highest_share']:.4g} of them"
    passed = (
        f"all {facts['known']} sets of up to {asked.m} labels with up to {asked.n} relations are in {asked.k} records or more "
        f"(least {facts['smallest']}, {facts['rows']} records){share}."
    )
    return " ".join(parts) or passed
