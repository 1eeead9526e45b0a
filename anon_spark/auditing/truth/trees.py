"""Truthfulness of published trees: what is published of a record is true of it, and no cut relation is left.

A run hands over `linked`, the records as it read them, with LINK; the staged release has LINK, too. Neither is kept: of a
current release only necessary conditions can be verified. No verdict has a frame: it would reveal the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.guarantees.tree_signatures import Survey
from anon_spark.auditing.reading.item_sets import Marks
from anon_spark.auditing.reading.recode import KEPT, STATUS, source_totals, with_scope
from anon_spark.auditing.reading.sums import sum_of, total
from anon_spark.auditing.reading.tree_nested import require_nested, same_as_paths
from anon_spark.auditing.reading.tree_paths import Label, malformed, read_nodes, require_paths
from anon_spark.auditing.reading.tree_records import (
    CHAINS,
    CONTENT,
    GREATEST,
    LEAST,
    RECORD,
    records_of,
    require_tree,
)
from anon_spark.auditing.reading.values import exact, hashed, private, quoted, require_columns, shape
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.linked import verdict_of_records
from anon_spark.auditing.truth.tree_images import (
    Images,
    Originals,
    Relation,
    other_structure,
    shown_labels,
    shown_relations,
    strange_paths,
)
from anon_spark.auditing.verdict import Verdict
from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NONE, TreeSchema

Nulls = Literal["value", "suppress"]

SHOWN, MARK, NESTED, _ROW = (private(name) for name in ("paths", "shown_mark", "nested", "row"))
FAULTY = "faulty"
FAULTS = {
    "unlinked": "have no row, or rows no record in scope",
    "labels": "have labels that are not exactly what the cut makes of theirs",
    "paths": "have a path that is no part of one of theirs",
    "disassociated": "have a relation that was to be cut",
    "structure": "have other paths than the cut and the relations to be cut leave",
    "malformed": "have paths that are not sorted, distinct and whole, or a node type twice on one",
    "nested": "have nested values that do not say the same as their paths",
    "altered": "have other values in unchanged columns",
}


@dataclass(frozen=True)
class Trees:
    """The settings by which the tables are read."""

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]
    column: str
    nested: str
    keep: Sequence[str]
    person: str | None
    nulls: Nulls

    def check(self, source: DataFrame, release: DataFrame) -> list[str]:
        """Refuse arguments that no release could meet; returns the kept columns of another type."""
        if self.nulls not in ("value", "suppress"):
            raise ConfigurationError("nulls must be 'value' or 'suppress'.")
        require_tree(source, self.schema, self.hierarchies, "source")
        require_columns(source, [*self.keep, *([] if self.person is None else [self.person])], "source")
        require_paths(release, self.column)
        require_columns(release, self.keep, "release")
        kinds = [{name: shape(frame.schema[name].dataType) for name in self.keep} for frame in (source, release)]
        return [name for name in self.keep if kinds[0][name] != kinds[1][name]]

    def records(self, frame: DataFrame, record: Column) -> DataFrame:
        """Records with their STATUS settled by the policies."""
        return with_scope(records_of(frame, self.schema, self.hierarchies, record, self.keep), self.nulls)

    def of_source(self, source: DataFrame) -> DataFrame:
        """The records of the source: the rows of a person, or every row by itself."""
        if self.person is not None:
            return self.records(source, exact(source, self.person))
        return self.records(source, F.monotonically_increasing_id())

    def rows(self, release: DataFrame, *others: str) -> DataFrame:
        """Published rows: paths, the mark of kept values, and nested values if there are some."""
        mark = hashed(release, self.keep)
        nested = []
        if self.nested in release.columns:
            require_nested(release, self.nested, self.schema)
            nested = [F.col(quoted(self.nested)).alias(NESTED)]
        return release.select(*others, exact(release, self.column).alias(SHOWN), mark.alias(MARK), *nested)

    def differing(self, batch: pa.RecordBatch) -> Marks:
        """Rows whose nested values do not say the same as their paths."""
        if NESTED not in batch.schema.names:
            return np.zeros(batch.num_rows, dtype=np.bool_)
        return ~same_as_paths(batch.column(NESTED), batch.column(SHOWN), self.schema)

    def survey(self, release: DataFrame) -> Survey:
        """The labels of a release, and its rows. Cost: one job."""
        return Survey.of(self.rows(release).select(SHOWN), (), 0, 1, with_secrets=False)

    def images_of(self, survey: Survey) -> Images:
        """The images that the labels of a release tell of: each value becomes the lowest published label at or above it."""
        hidden = set(self.schema.sensitive)
        return Images.of(self.schema, self.hierarchies, [label for label in survey.labels if label[0] not in hidden])

    def images(self, cut: Sequence[Label]) -> Images:
        """The images of a full cut. Raises ConfigurationError when it is no cut."""
        images = Images.of(self.schema, self.hierarchies, cut)
        counts = {
            "values below no node of it": images.uncovered,
            "values below two nodes of it": images.twice,
            "nodes that no hierarchy has": images.unknown,
        }
        wrong = [f"{number} {text}" for text, number in counts.items() if number]
        if wrong:
            raise ConfigurationError(f"The cut is none: {', '.join(wrong)}.")
        return images


def verify_trees(
    source: DataFrame,
    staged: DataFrame,
    linked: DataFrame,
    schema: TreeSchema,
    hierarchies: Mapping[str, Hierarchy],
    cut: Sequence[Label] | None = None,
    disassociated: Sequence[Relation] = (),
    column: str = "paths",
    nested: str = "nested",
    keep: Sequence[str] = (),
    person: str | None = None,
    nulls: Nulls = "value",
) -> tuple[Verdict, RowAccount]:
    """Whether every record of the source in scope has one published row, and all that the row says is true of it.

    A record is a row of the source, or with `person` all rows of one. linked: LINK, and the columns of the tree's fields and
    `keep`; the rows of one LINK are one record. cut: the published (node type, value) pairs, `[("*", "*")]` for everything;
    None: the labels of the release, of which some may lie below others (a partial cut); disassociated: pairs of labels without
    their relation, upper one first; nested: compared where the release has such a column; keep: columns published unchanged;
    nulls: what the run did with a null.
    Guarantee: passed iff there are records; `linked` has the source's records in scope, as a multiset up to a 64-bit hash
    per record that does not see the order of arrays and rows; every such record has exactly one row, and no other one has
    any; the labels of a row are exactly the images of the record's values; every published path is a part of the image of
    one of its paths, so every relation is the image of a relation; no relation of `disassociated` is left, and no other one is
    missing: paths are those of the image after these were disassociated in their order; paths are well formed; nested values say
    the same; unchanged columns hold the values of each of the record's rows (up to a 64-bit hash).
    Records with a null (under `suppress`) or a value no hierarchy knows are dropped as a whole and counted apart.
    violations counts records with a fault, links that occur more than once, columns of another type, and one for records that
    are not the source's; checked counts records. The row account counts records.
    Cost: one job; source and linked are unfolded, looked up (two broadcast joins per node type at most) and shuffled by record,
    once each; joined with the release by LINK; compared in Arrow; one row reaches the driver.
    """
    trees = Trees(schema, hierarchies, column, nested, keep, person, nulls)
    other = trees.check(source, staged)
    require_columns(staged, [LINK], "staged release")
    require_columns(linked, [LINK, *keep], "linked records")
    require_tree(linked, schema, hierarchies, "linked records")
    images = trees.images(cut) if cut is not None else trees.images_of(trees.survey(staged))

    kept = F.col(STATUS) == KEPT
    low, high = F.col(CONTENT).bitwiseAND(F.lit(0xFFFFFFFF).cast("long")), F.shiftright(F.col(CONTENT), 32)  # sums fit a long
    of_source = trees.of_source(source).agg(
        *source_totals(), total(kept, low).alias("source_low"), total(kept, high).alias("source_high")
    )
    record_trees = trees.records(linked, F.col(LINK)).where(kept).withColumnRenamed(RECORD, LINK)
    # a second row of a link is a fault, whatever it says
    published = trees.rows(staged, LINK)
    also = [NESTED] if NESTED in published.columns else []
    any_row = [F.any_value(name).alias(name) for name in (SHOWN, MARK, *also)]
    rows = published.groupBy(LINK).agg(*any_row, F.count(F.lit(1)).alias(_ROW))
    record, row = F.isnotnull(CHAINS), F.isnotnull(_ROW)
    same_kept = (F.col(LEAST) == F.col(MARK)) & (F.col(GREATEST) == F.col(MARK))
    sums = {
        "records": record.cast("long"), "low": low, "high": high,
        "published": F.col(_ROW), "links": (row & F.isnotnull(LINK)).cast("long"),
    }  # fmt: skip
    joined = record_trees.join(rows, LINK, "full").select(
        record.alias(RECORD),
        row.alias(_ROW),
        CHAINS,
        SHOWN,
        *also,
        F.coalesce(same_kept, F.lit(True)).alias(MARK),
        *(F.coalesce(value, F.lit(0)).alias(name) for name, value in sums.items()),
    )
    names = [FAULTY, *FAULTS, *sums]
    compared = joined.mapInArrow(
        comparing(trees, images, images.numbered_pairs(disassociated), list(sums)), ", ".join(f"{name} long" for name in names)
    )
    totals = of_source.crossJoin(compared.agg(*map(sum_of, names))).collect()[0].asDict()

    records = totals["records"]
    same = totals["in_scope"] == records and all(totals[f"source_{part}"] == totals[part] for part in ("low", "high"))
    counts = {
        **{name: totals[name] for name in FAULTS},
        "repeated": totals["published"] - totals["links"],
        "other_records": 0 if same else 1,
    }
    verdict = verdict_of_records(counts, FAULTS, {}, totals[FAULTY], records, totals["in_scope"], other)
    return verdict, RowAccount.without_suppression(totals)


def persons_of_records(
    source: DataFrame,
    schema: TreeSchema,
    hierarchies: Mapping[str, Hierarchy],
    person: str,
    keep: Sequence[str] = (),
    nulls: Nulls = "value",
) -> DataFrame:
    """The person of every record of the source in scope, in a column of that name. Cost: a shuffle of unfolded rows."""
    records = Trees(schema, hierarchies, "", "", keep, person, nulls).of_source(source)
    return records.where(F.col(STATUS) == KEPT).select(F.col(RECORD).alias(person))


def comparing(
    trees: Trees, images: Images, pairs: Sequence[tuple[int, int]], added: Sequence[str] = ()
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Records with their rows, in Arrow → how many have each fault, and sums of some columns."""
    cut_off = np.array([upper << images.width | lower for upper, lower in pairs], dtype=np.int64)

    def compare(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            record, row, same_kept = (
                np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.bool_)
                for name in (RECORD, _ROW, MARK)
            )
            nodes, originals = read_nodes(batch.column(SHOWN)), Originals.of(batch.column(CHAINS), images)
            numbers = images.numbered(nodes.labels)
            both = record & row
            faults: dict[str, Marks] = {name: np.zeros(batch.num_rows, dtype=np.bool_) for name in FAULTS}
            faults["unlinked"] |= ~both
            faults["labels"] |= originals.lost
            faults["labels"][nodes.record[numbers[nodes.label] == NONE]] = True
            differing = np.setxor1d(shown_labels(nodes, numbers, images), originals.labels(images), assume_unique=True)
            faults["labels"][differing >> images.width] = True
            faults["labels"] &= both
            faults["paths"] |= strange_paths(nodes, numbers, originals, images) & both
            owner, relation = shown_relations(nodes, numbers, images)
            faults["disassociated"][owner[np.isin(relation, cut_off)]] = True
            faults["structure"] |= other_structure(nodes, numbers, originals, images, pairs) & both
            faults["malformed"] |= np.logical_or.reduce(list(malformed(nodes).values())) & row
            faults["nested"] |= trees.differing(batch) & row
            faults["altered"] |= ~same_kept & both
            sums: dict[str, Any] = {FAULTY: np.logical_or.reduce(list(faults.values())), **faults}
            sums |= {name: np.asarray(batch.column(name), dtype=np.int64) for name in added}
            yield pa.RecordBatch.from_pydict({name: pa.array([int(marks.sum())], pa.int64()) for name, marks in sums.items()})

    return compare
