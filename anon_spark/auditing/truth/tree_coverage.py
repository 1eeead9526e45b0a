"""Whether current published trees could be the source's: what can be said without the private link of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.auditing.reading.item_sets import Ints
from anon_spark.auditing.reading.recode import KEPT, NULL, STATUS, UNSEEN
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.tree_paths import Label, read_nodes
from anon_spark.auditing.reading.tree_records import CHAINS, LEAST
from anon_spark.auditing.reading.values import private
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.full_domain import PUBLISHED, SOURCE, said_of_types
from anon_spark.auditing.truth.linked import NECESSARY
from anon_spark.auditing.truth.tree_images import Images, Originals, Relation, shown_labels, shown_relations
from anon_spark.auditing.truth.trees import FAULTS, FAULTY, MARK, SHOWN, Nulls, Trees
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NONE, TreeSchema

_LABELS, _RELATIONS, _RELATION, _SET, _SIDE, _LEFT, _DIFFERS, _SOURCE_MARK, _PUBLISHED_MARK = (
    private(name)
    for name in ("labels", "relations", "relation", "label_set", "side", "left", "differs", "source_marks", "published_marks")
)
_COLUMNS = [_LABELS, _RELATIONS, MARK, STATUS, _SIDE, _LEFT, _DIFFERS]
_KINDS = ["array<int>", "array<long>", "long", "int", "boolean", "boolean", "boolean"]
_LISTED = ", ".join(f"{name} {kind}" for name, kind in zip(_COLUMNS, _KINDS, strict=True))
_WHOLE = -1  # instead of a relation: the record itself


def verify_trees_covered(
    source: DataFrame,
    release: DataFrame,
    schema: TreeSchema,
    hierarchies: Mapping[str, Hierarchy],
    cut: Sequence[Label] | None = None,
    partial: bool = False,
    disassociated: Sequence[Relation] = (),
    column: str = "paths",
    nested: str = "nested",
    keep: Sequence[str] = (),
    person: str | None = None,
    nulls: Nulls = "value",
) -> tuple[Verdict, RowAccount]:
    """Whether a release could be made of the source, without the link that would prove it.

    Arguments: those of `verify_trees`; cut: None for the labels that are published, which must not lie below each other unless
    it is a partial cut.
    Guarantee: necessary conditions only. Passed iff there are rows; published labels are labels of their node type (with a cut:
    of the cut), none below another (of a partial cut: none below `*`); every set of labels (up to a 64-bit hash), with the
    unchanged values beside it (up to a sum of 32-bit hashes), is published of as many rows as there are records in scope with
    this image; each relation is in no more of these rows than records; no relation of `disassociated` is left; paths are well
    formed, and nested values say the same.
    A release in which relations or unchanged values of records with the same labels were exchanged may pass.
    violations counts labels at fault, sets of labels with other numbers of rows or other unchanged values, (set, relation)
    pairs in too many rows, rows with a fault of their own, columns of another type; checked counts sets of labels.
    Cost: two jobs; the source is unfolded, looked up and shuffled by record, the relations of both sides are shuffled by set
    of labels, with map-side aggregation; the labels of the release reach the driver.
    """
    trees = Trees(schema, hierarchies, column, nested, keep, person, nulls)
    other = trees.check(source, release)
    rows, survey = trees.rows(release), trees.survey(release)
    images = trees.images_of(survey) if cut is None else trees.images(cut)
    strange = int((images.numbered(survey.labels) == NONE).sum()) + (images.unknown if cut is None else 0)

    expected = trees.of_source(source).select(CHAINS, F.col(LEAST).alias(MARK), STATUS).mapInArrow(_imaging(images), _LISTED)
    shown = rows.mapInArrow(_showing(trees, images, images.relations(disassociated)), _LISTED)
    totals = _compared(expected, shown).collect()[0].asDict()
    malformed_rows = survey.faults.get("malformed", 0)
    counts = {
        "unknown_labels": strange,
        "below_another": 0 if cut is not None else images.mixed if partial else images.twice,
        "unequal": totals["unequal"],
        "altered": totals["altered"],
        "relations": totals["more"],
        "disassociated": totals["disassociated"],
        "nested": totals["nested"],
        "malformed": malformed_rows,
    }
    texts = {
        "unknown_labels": f"{counts['unknown_labels']} published labels are none of the hierarchies, or of the cut.",
        "below_another": f"{counts['below_another']} values are below two published labels.",
        "unequal": f"{counts['unequal']} of {totals['sets']} sets of labels have another number of rows than of records.",
        "altered": f"{counts['altered']} of {totals['sets']} sets of labels go with other values in unchanged columns.",
        "relations": f"{counts['relations']} relations are in more rows of a set of labels than in records.",
        **{name: f"{counts[name]} of {survey.rows} rows {FAULTS[name]}." for name in ("disassociated", "nested", "malformed")},
    }
    parts = [*(text for name, text in texts.items() if counts[name]), *said_of_types(other)]
    if not survey.rows:
        parts.append("the release is empty, there is nothing to publish.")
    good = f"all {totals['sets']} sets of labels could be the source's, with as many rows as records."
    of_rows = totals[FAULTY] + malformed_rows
    violations = sum(counts[name] for name in ("unknown_labels", "below_another", "unequal", "altered", "relations")) + of_rows
    return (
        Verdict(
            kind=Kind.TRUTH,
            name="coverage",
            passed=not parts,
            violations=violations + len(other),
            checked=totals["sets"],
            detail=" ".join([*(parts or [good]), NECESSARY]),
            facts={**counts, "sets": totals["sets"], "rows": survey.rows},
        ),
        RowAccount.without_suppression({**totals, "published": survey.rows}),
    )


def _lists(labels: Ints, relations: Ints, width: int, number: int) -> list[Any]:
    """Labels and relations, as numbers after that of their record, in lists."""
    lists: list[Any] = []
    for keys, bits, kind in ((labels, width, pa.int32()), (relations, 2 * width, pa.int64())):
        offsets = np.searchsorted(keys >> bits, np.arange(number + 1))
        lists.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(keys & ((1 << bits) - 1), kind)))
    return lists


def _imaging(images: Images) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Records → the labels and relations that a release may show of them; a value without an image is a label of its own."""

    def image(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            originals = Originals.of(batch.column(CHAINS), images)
            lost = np.flatnonzero(originals.lost) << images.width | len(images.names)
            labels = np.union1d(originals.labels(images), lost)
            lists = _lists(labels, originals.relations(images), images.width, batch.num_rows)
            none = pa.array(np.zeros(batch.num_rows, dtype=np.bool_))
            columns = [*lists, batch.column(MARK), batch.column(STATUS), pa.array(~np.asarray(none)), none, none]
            yield pa.RecordBatch.from_arrays(columns, names=_COLUMNS)

    return image


def _showing(trees: Trees, images: Images, cut_off: Ints) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows → the labels and relations that they show, and whether one is left that was to be cut."""

    def show(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            nodes = read_nodes(batch.column(SHOWN))
            numbers = images.numbered(nodes.labels)
            owner, relation = shown_relations(nodes, numbers, images)
            remaining = np.zeros(batch.num_rows, dtype=np.bool_)
            remaining[owner[np.isin(relation, cut_off)]] = True
            relations = each_once(owner << (2 * images.width) | relation)
            lists = _lists(shown_labels(nodes, numbers, images), relations, images.width, batch.num_rows)
            kept = pa.array(np.full(batch.num_rows, KEPT, dtype=np.int32))
            none = pa.array(np.zeros(batch.num_rows, dtype=np.bool_))
            columns = [*lists, batch.column(MARK), kept, none, pa.array(remaining), pa.array(trees.differing(batch))]
            yield pa.RecordBatch.from_arrays(columns, names=_COLUMNS)

    return show


def _compared(expected: DataFrame, shown: DataFrame) -> DataFrame:
    """One row: records by status; sets of labels, those with other numbers of rows or other unchanged values; relations that
    are in more rows of a set than in records; rows with faults of their own."""
    in_scope = F.col(STATUS) == KEPT
    whole = F.lit(_WHOLE).cast("long")
    each = expected.unionByName(shown).select(
        F.when(in_scope, F.xxhash64(_LABELS)).alias(_SET),
        F.explode(F.when(in_scope, F.concat(F.array(whole), _RELATIONS)).otherwise(F.array(whole))).alias(_RELATION),
        F.col(MARK).bitwiseAND(F.lit(0xFFFFFFFF).cast("long")).alias(MARK),
        STATUS, _SIDE, _LEFT, _DIFFERS,
    )  # fmt: skip
    sets = each.groupBy(_SET, _RELATION, STATUS).agg(
        F.count_if(_SIDE).alias(SOURCE),
        F.count_if(~F.col(_SIDE)).alias(PUBLISHED),
        total(F.col(_SIDE), F.col(MARK)).alias(_SOURCE_MARK),
        total(~F.col(_SIDE), F.col(MARK)).alias(_PUBLISHED_MARK),
        F.count_if(_LEFT).alias(_LEFT),
        F.count_if(_DIFFERS).alias(_DIFFERS),
        F.count_if(F.col(_LEFT) | F.col(_DIFFERS)).alias(FAULTY),
    )
    is_record = F.col(_RELATION) == _WHOLE
    same = F.col(SOURCE) == F.col(PUBLISHED)
    records = {"source": is_record, "in_scope": is_record & in_scope}
    dropped = {"dropped_nulls": NULL, "dropped_unseen": UNSEEN}
    records |= {name: is_record & (F.col(STATUS) == status) for name, status in dropped.items()}
    rows = {"disassociated": _LEFT, "nested": _DIFFERS, FAULTY: FAULTY}
    return sets.agg(
        *(total(condition, F.col(SOURCE)).alias(name) for name, condition in records.items()),
        *(total(is_record, F.col(of)).alias(name) for name, of in rows.items()),
        F.count_if(is_record & in_scope).alias("sets"),
        F.count_if(is_record & in_scope & ~same).alias("unequal"),
        F.count_if(is_record & in_scope & same & (F.col(_SOURCE_MARK) != F.col(_PUBLISHED_MARK))).alias("altered"),
        F.count_if(~is_record & (F.col(PUBLISHED) > F.col(SOURCE))).alias("more"),
    )
