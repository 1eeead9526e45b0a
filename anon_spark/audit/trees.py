"""Truthfulness of published trees: what is published of a record is true of it, and no cut relation is left.

A run hands over `linked`, the records as it read them, with LINK; the staged release has LINK, too. Neither is kept: of a
release that stands only necessary conditions can be verified. No verdict has a frame: it would tell who is whose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.audit.accounting import RowAccount
from anon_spark.audit.recode import KEPT, NULL, UNSEEN
from anon_spark.audit.tree_images import (
    Images,
    Originals,
    Relation,
    other_structure,
    shown_labels,
    shown_relations,
    strange_paths,
)
from anon_spark.audit.tree_paths import Label, Marks, malformed, read_nodes, require_paths
from anon_spark.audit.tree_records import (
    CHAINS,
    CONTENT,
    GREATEST,
    LEAST,
    RECORD,
    records_of,
    require_tree,
    same_as_nested,
)
from anon_spark.audit.truthfulness import STATUS, said_of_types, total, with_scope
from anon_spark.audit.values import exact, hashed, private, require_columns, shape
from anon_spark.audit.verdict import Verdict
from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NONE, TreeSchema

Nulls = Literal["value", "suppress"]

SHOWN, MARK, SAME_NESTED, _ROW = (private(name) for name in ("paths", "shown_mark", "same_nested", "row"))
FAULTY = "faulty"
FAULTS = {
    "unlinked": "have no row, or rows no record in scope",
    "labels": "have labels that are not exactly what the cut makes of theirs",
    "paths": "have a path that is no part of one of theirs",
    "disassociated": "have a relation that was to be cut",
    "structure": "have other paths than the cut and the relations to be cut leave",
    "malformed": "have paths that are not sorted, distinct and whole, or a class twice on one",
    "nested": "have nested values that do not say the same as their paths",
    "altered": "have other values in unchanged columns",
}


@dataclass(frozen=True)
class Trees:
    """What the tables are to be read by."""

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]
    column: str
    nested: str
    keep: Sequence[str]
    person: str | None
    nulls: Nulls

    def check(self, source: DataFrame, release: DataFrame) -> list[str]:
        """Refuse arguments that no release could meet; gives back the kept columns that are of another type."""
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
        """Published rows: paths, the mark of kept values, whether nested values say the same."""
        paths = exact(release, self.column)
        same = F.lit(True)
        if self.nested in release.columns:
            same = same_as_nested(release, self.nested, paths, self.schema)
        mark = hashed(release, self.keep)
        return release.select(*others, paths.alias(SHOWN), mark.alias(MARK), same.alias(SAME_NESTED))

    def images(self, cut: Sequence[Label]) -> Images:
        """Of a cut that was given. Raises ConfigurationError when it is none."""
        images = Images.of(self.schema, self.hierarchies, cut)
        said = {
            "values below no node of it": images.uncovered,
            "values below two nodes of it": images.twice,
            "nodes that no hierarchy has": images.unknown,
        }
        wrong = [f"{number} {text}" for text, number in said.items() if number]
        if wrong:
            raise ConfigurationError(f"The cut is none: {', '.join(wrong)}.")
        return images


def verify_trees(
    source: DataFrame,
    staged: DataFrame,
    linked: DataFrame,
    schema: TreeSchema,
    hierarchies: Mapping[str, Hierarchy],
    cut: Sequence[Label],
    disassociated: Sequence[Relation] = (),
    column: str = "paths",
    nested: str = "nested",
    keep: Sequence[str] = (),
    person: str | None = None,
    nulls: Nulls = "value",
) -> tuple[Verdict, RowAccount]:
    """Whether every record of the source in scope has one published row, and all that the row says is true of it.

    A record is a row of the source, or with `person` all rows of one. linked: LINK, and the columns of the tree's fields and
    `keep`; the rows of one LINK are one record. cut: the published (class, value) pairs, `[("*", "*")]` for everything;
    disassociated: pairs of these that were cut, upper one first; nested: compared where the release has such a column;
    keep: columns published unchanged; nulls: what the run did with a null.
    Guarantee: passed iff there are records; `linked` has the source's records in scope, as a multiset up to a 64-bit hash
    per record that does not see the order of arrays and rows; every such record has exactly one row, and no other one has
    any; the labels of a row are exactly the images of the record's values; every published path is a part of the image of
    one of its paths, so every relation is the image of a relation; no relation of `disassociated` is left, and no other one is
    missing: paths are those of the image after these were cut in their order; paths are well formed; nested values say the
    same; unchanged columns hold the values of each of the record's rows (up to a 64-bit hash).
    Records with a null (under `suppress`) or a value no hierarchy knows are dropped as a whole and counted apart.
    violations counts records with a fault, links that occur more than once, columns of another type, and one for records that
    are not the source's; checked counts records. The row account counts records.
    Cost: one job; source and linked are unfolded, looked up (two broadcast joins per class at most) and shuffled by record,
    once each; joined with the release by LINK; compared in Arrow; one row reaches the driver.
    """
    trees = Trees(schema, hierarchies, column, nested, keep, person, nulls)
    other = trees.check(source, staged)
    require_columns(staged, [LINK], "staged release")
    require_columns(linked, [LINK, *keep], "linked records")
    require_tree(linked, schema, hierarchies, "linked records")
    images = trees.images(cut)

    kept = F.col(STATUS) == KEPT
    low, high = F.col(CONTENT).bitwiseAND(F.lit(0xFFFFFFFF).cast("long")), F.shiftright(F.col(CONTENT), 32)  # sums fit a long
    of_source = trees.of_source(source).agg(
        *source_totals(), total(kept, low).alias("source_low"), total(kept, high).alias("source_high")
    )
    own = trees.records(linked, F.col(LINK)).where(kept).withColumnRenamed(RECORD, LINK)
    seen = [F.any_value(name).alias(name) for name in (SHOWN, MARK, SAME_NESTED)]  # one more row is a fault, whatever it says
    rows = trees.rows(staged, LINK).groupBy(LINK).agg(*seen, F.count(F.lit(1)).alias(_ROW))
    record, row = F.isnotnull(CHAINS), F.isnotnull(_ROW)
    same_kept = (F.col(LEAST) == F.col(MARK)) & (F.col(GREATEST) == F.col(MARK))
    sums = {
        "records": record.cast("long"), "low": low, "high": high,
        "published": F.col(_ROW), "links": (row & F.isnotnull(LINK)).cast("long"),
    }  # fmt: skip
    joined = own.join(rows, LINK, "full").select(
        record.alias(RECORD),
        row.alias(_ROW),
        CHAINS,
        SHOWN,
        F.coalesce(SAME_NESTED, F.lit(True)).alias(SAME_NESTED),
        F.coalesce(same_kept, F.lit(True)).alias(MARK),
        *(F.coalesce(value, F.lit(0)).alias(name) for name, value in sums.items()),
    )
    names = [FAULTY, *FAULTS, *sums]
    compared = joined.mapInArrow(
        comparing(images, images.numbered_pairs(disassociated), list(sums)), ", ".join(f"{name} long" for name in names)
    )
    all_sums = compared.agg(*(total(F.lit(True), F.col(name)).alias(name) for name in names))
    found = of_source.crossJoin(all_sums).collect()[0].asDict()

    records = found["records"]
    same = found["in_scope"] == records and all(found[f"source_{part}"] == found[part] for part in ("low", "high"))
    counts = {
        **{name: found[name] for name in FAULTS},
        "repeated": found["published"] - found["links"],
        "other_records": 0 if same else 1,
    }
    said = {
        **{name: f"{counts[name]} of {records} records {text}." for name, text in FAULTS.items()},
        "repeated": f"{counts['repeated']} links occur more than once, or are null.",
        "other_records": f"the release is about {records} records, the source has {found['in_scope']} in scope"
        + ("." if records != found["in_scope"] else ", and their content differs."),
    }
    parts = [*(said[name] for name, number in counts.items() if number), *said_of_types(other)]
    if not records:
        parts.append("there are no records.")
    return (
        Verdict(
            name="truthfulness",
            passed=not parts,
            violations=found[FAULTY] + counts["repeated"] + counts["other_records"] + len(other),
            checked=records,
            detail=" ".join(parts) or f"all {records} records have one row each, and it is true of them.",
            facts={**counts, "records": records},
        ),
        account_of(found),
    )


def comparing(
    images: Images, pairs: Sequence[tuple[int, int]], added: Sequence[str] = ()
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Records with their rows, in Arrow → how many have each fault, and sums of some columns."""
    cut_off = np.array([upper << images.width | lower for upper, lower in pairs], dtype=np.int64)

    def compare(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            record, row, same_nested, same_kept = (
                np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.bool_)
                for name in (RECORD, _ROW, SAME_NESTED, MARK)
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
            faults["nested"] |= ~same_nested & row
            faults["altered"] |= ~same_kept & both
            sums: dict[str, Any] = {FAULTY: np.logical_or.reduce(list(faults.values())), **faults}
            sums |= {name: np.asarray(batch.column(name), dtype=np.int64) for name in added}
            yield pa.RecordBatch.from_pydict({name: pa.array([int(marks.sum())], pa.int64()) for name, marks in sums.items()})

    return compare


def source_totals() -> list[Column]:
    rows = {"in_scope": KEPT, "dropped_nulls": NULL, "dropped_unseen": UNSEEN}
    counts = [F.count_if(F.col(STATUS) == status).alias(name) for name, status in rows.items()]
    return [F.count(F.lit(1)).alias("source"), *counts]


def account_of(found: Mapping[str, Any]) -> RowAccount:
    """Of records. None is suppressed: what is neither published nor dropped is missing."""
    return RowAccount(found["source"], found["published"], 0, found["dropped_nulls"], found["dropped_unseen"], 0)
