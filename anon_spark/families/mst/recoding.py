"""Local recoding: the classes of a release, and how a table is published with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import KEY, LEAF, LEVEL, ROWS, quoted
from anon_spark.engine import beside, small_frame
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.mst.assignment import LEFT_OUT, Assignment
from anon_spark.families.mst.batches import failing_labels, in_diverse_classes
from anon_spark.families.mst.covering import covering, labels_of_nodes, published_classes
from anon_spark.families.mst.extents import widths, with_extents
from anon_spark.families.mst.facts import ExtentShare, Measured, Measures, MstFit, PartitionStatistics
from anon_spark.families.mst.frames import SIZE, leaf_columns, level_columns
from anon_spark.families.mst.job import Publish
from anon_spark.families.mst.models import distinct_values, weighed
from anon_spark.families.recoding import Recoding
from anon_spark.metrics.cells import Ints
from anon_spark.metrics.glm import general_loss
from anon_spark.metrics.recoded import Recoded, summary
from anon_spark.model.distributions import label_distribution
from anon_spark.model.facts import Distribution, LevelShares
from anon_spark.model.guarantee.models import Models
from anon_spark.model.guarantee.saved_models import model_content, model_of
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.classes.held import DROPPED, HASH, tuple_hash
from anon_spark.primitives.encoding import MOST_VALUES, Dictionary, dictionaries, fractions, with_codes, with_keys
from anon_spark.primitives.look_ups import LookUp, with_found
from anon_spark.primitives.ordering import shuffled, with_key
from anon_spark.primitives.packing import named_words, packed, word_names
from anon_spark.primitives.plain import without_metadata
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tables import refuse_several_rows, require_columns
from anon_spark.primitives.unseen import refuse_unseen

MOST_CLASSES = 500_000
BROADCAST_TUPLES = 100_000


@dataclass(frozen=True)
class Fitted:
    """The fitted table, available as long as its private files exist."""

    frequencies: Frequencies
    assignment: Assignment
    workspace: Workspace

    @property
    def released(self) -> DataFrame:
        """The tuples that were not left out, with their levels and rows."""
        return self.assignment.frame.where(F.col(f"{LEVEL}0").isNotNull())


@dataclass(frozen=True)
class MstRecoding(Recoding):
    """Every record at the levels of its class, which may differ from class to class; tuples may be left out of it.

    Guarantee: k-anonymity on the quasi-identifiers of the fitted table; with `l` at least that many distinct values of every
    sensitive column in each class; `models` of single columns. The fit leaves out whole tuples, within its budget of suppressed
    rows. A new batch joins the classes of the fitted one: a tuple takes the covering class of least loss, others follow
    `on_unseen`. Rows of classes are suppressed that have fewer than k rows in the batch, with `l` fewer than l values of a
    sensitive column (null and NaN count as one), or fail a model against the shares in the batch. A saved and loaded recoding
    knows only classes, so even the fitted table is a new batch to it, and tuples that the fit left out are tuples like others.
    Not covered: sensitive values that a whole class shares (without `l` and models), or that are likely in it (as far as a model
    does not say); kept columns an attacker knows; several releases of one person's data put together.
    """

    hierarchies: Mapping[str, Hierarchy | Rule]  # as they apply to any table, see `portable`; without null leaf
    k: int
    statistics: PartitionStatistics
    l: int | None = None  # noqa: E741 - the literature's name
    sensitive: Sequence[str] = ()
    models: Models = field(default_factory=dict)
    keep: Sequence[str] = ()
    person: str | None = None  # each has one row of the fitted table
    nulls: str = "value"
    on_unseen: str = "error"
    warnings: Sequence[str] = ()
    publish: Mapping[str, Publish] = field(default_factory=dict)  # columns that are not published as labels
    labels: Sequence[Sequence[str | None]] | None = None  # the published labels of each class; None: still in `fitted`
    fitted: Fitted | None = field(default=None, repr=False, compare=False)  # not saved

    family = "mst"

    @property
    def published(self) -> list[str]:
        """The columns of a release, in order."""
        return [*self.hierarchies, *self.sensitive, *self.keep]

    @cached_property
    def classes(self) -> Sequence[Sequence[str | None]]:
        """The published labels of each class, in order. Cost: all classes on the driver, at most MOST_CLASSES."""
        if self.labels is not None:
            return self.labels
        assert self.fitted is not None, "either the labels or the fitted table is there"
        names = list(self.hierarchies)
        distinct = self._labelled(self.fitted.released).select(*map(quoted, names)).distinct()
        table = collect_small(distinct, MOST_CLASSES, "Classes of the recoding, which `save` and transform of a batch need")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return sorted(map(list, rows), key=lambda row: [(label is None, label or "") for label in row])

    def close(self) -> None:
        """Remove the private files of the fit; frames from `transform` cannot be read any more, saved recodings can."""
        if self.fitted is not None:
            self.fitted.workspace.close()

    def transform(self, df: DataFrame) -> DataFrame:
        """The release of this or another table, e.g. next month's batch; tuples that no class covers raise, or are left out.

        Guarantee: whatever the table, no class has fewer than k rows, fewer than l values of a sensitive column, or fails a
        model. Cost: one job for the distinct values, one for the tuples that are not covered, with models one for their values;
        then, lazily, one for the distinct tuples and one for the rows, with `l` and with models one more for values of classes.
        """
        require_columns(df, [*self.published, *([self.person] if self.person else [])])
        if self.person is not None:
            refuse_several_rows(df, self.person)  # k rows of one person are no crowd
        keyed = with_keys(df, self.hierarchies, self._carried())
        entries = dictionaries(keyed, self.hierarchies, self.nulls, fractions(df, self.hierarchies))
        if self.on_unseen == "error":
            refuse_unseen(entries)
        rows = self._coded(keyed, entries)
        codes = code_columns(len(entries))
        tuples = rows.groupBy(*codes).agg(F.count(F.lit(1)).alias(ROWS))
        assigned = self._assigned(tuples, entries)
        if self.on_unseen == "error":
            self._refuse_uncovered(assigned)
        names = list(self.hierarchies)
        labelled = self._labelled(assigned.where(F.col(f"{LEVEL}0").isNotNull()), entries)
        large = labelled.groupBy(*map(quoted, names)).agg(F.sum(ROWS).alias(SIZE)).where(F.col(SIZE) >= self.k)
        same = [F.col("t." + quoted(name)).eqNullSafe(F.col("c." + quoted(name))) for name in names]
        kept = labelled.alias("t").join(large.alias("c"), same, "left_semi")
        if weighed(self.models):
            failing = failing_labels(self._joined(rows, labelled, entries), names, weighed(self.models), df)
            kept = kept.alias("t").join(failing.alias("c"), same, "left_anti")
        shown = with_extents(kept, {entry.name: entry.hierarchy for entry in entries}, self.publish)
        released = without_metadata(self._joined(rows, shown, entries).select(*map(quoted, self.published)))
        least = distinct_values(self.l, self.sensitive, self.models)
        return in_diverse_classes(released, names, least) if least else released

    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release of the fitted table in its final order. Cost: one pass over the rows, one or two shuffles."""
        if self.fitted is None:
            raise ConfigurationError("staged() needs the fitted table of this recoding: fit again, or use transform().")
        small = self.fitted.workspace.small
        if self._holds_labels:
            labels = beside(small_frame(df.sparkSession, with_key(self._labels_by_hash(), key)))
            rows = with_keys(df, self.hierarchies, self._carried()).select(
                tuple_hash(list(self.hierarchies)).alias(HASH), *map(quoted, self._carried())
            )
            released = rows.join(labels, HASH).select(*map(quoted, self.published), KEY)
            return shuffled(released, None, self.published, small)
        entries = self.fitted.frequencies.dictionaries
        labelled = self.fitted.workspace.store(self._shown(), "release-tuples")
        if self.fitted.frequencies.tuples <= BROADCAST_TUPLES:
            labelled = beside(labelled)
        rows = self._coded(with_keys(df, self.hierarchies, self._carried()), entries)
        released = self._joined(rows, labelled, entries)
        return shuffled(released.select(*map(quoted, self.published)), key, self.published, small)

    @property
    def _holds_labels(self) -> bool:
        """Whether the driver holds the tuples, and publishes nothing but labels of them."""
        return self.fitted is not None and self.fitted.assignment.levels is not None and not self.publish

    def _labels_by_hash(self) -> pa.Table:
        """HASH and labels of every tuple that is not left out."""
        fitted = self.fitted
        assert fitted is not None and fitted.frequencies.held is not None and fitted.assignment.levels is not None
        held, levels = fitted.frequencies.held, fitted.assignment.levels
        known = np.flatnonzero(held.tuple_of != DROPPED)
        shown = known[levels[held.tuple_of[known], 0] != LEFT_OUT]
        columns: dict[str, Any] = {HASH: pa.array(held.hashes[shown])}
        for at, (name, hierarchy) in enumerate(zip(self.hierarchies, fitted.frequencies.hierarchies, strict=True)):
            nodes = levels[held.tuple_of[shown], at].astype(np.int64) * hierarchy.leaf_count
            nodes += held.table.codes[at][held.tuple_of[shown]]
            columns[name] = pa.array(labels_of_nodes(hierarchy), pa.string()).take(pa.array(nodes))
        return pa.table(columns)

    def _shown(self) -> DataFrame:
        """The fitted tuples with what is published of them."""
        assert self.fitted is not None, "only a fitted table is shown"
        return with_extents(self._labelled(self.fitted.released), self.fitted_hierarchies(), self.publish)

    def evidence(self) -> Mapping[str, DataFrame]:
        """The levels of every distinct tuple, null for one that was left out: for the audit, never published."""
        if self.fitted is None:
            raise ConfigurationError("evidence() needs the fitted table of this recoding: fit again.")
        count = len(self.hierarchies)
        return {"assignment": self.fitted.assignment.frame.select(*leaf_columns(count), *level_columns(count))}

    def fitted_hierarchies(self) -> dict[str, Hierarchy]:
        """The hierarchies with the null leaf and the rule's values, as fitted."""
        if self.fitted is None:
            raise ConfigurationError("fitted_hierarchies() needs the fitted table of this recoding: fit again.")
        return dict(zip(self.hierarchies, self.fitted.frequencies.hierarchies, strict=True))

    def measured(self) -> Measured:
        """Measures of the fitted release, and the share of rows on each level of each attribute. Cost: two small jobs."""
        if self.fitted is None:
            raise ConfigurationError("measured() needs the fitted table of this recoding: fit again.")
        hierarchies = self.fitted.frequencies.hierarchies
        if self._holds_labels:
            return self._measured_here()
        recoded = self._recoded
        rows, suppressed, counts_of = recoded.rows, recoded.suppressed, recoded.rows_by_node
        levels = self._level_shares(counts_of, rows - suppressed)
        measures = Measures(**summary(recoded, self.k))
        levels = self._with_losses(levels, recoded)
        if not self.publish:
            return Measured(measures, levels, ())
        extents = self._extents(counts_of)
        gained = sum(extent.label - extent.extent for extent in extents) / len(hierarchies) * (rows - suppressed) / rows
        return Measured(replace(measures, glm=measures.glm - gained), levels, extents)

    @cached_property
    def _recoded(self) -> Recoded:
        """The published rows by node of each hierarchy. Cost: two small jobs, none where the driver holds the tuples."""
        assert self.fitted is not None, "only a fitted table is counted"
        hierarchies = self.fitted.frequencies.hierarchies
        if self._holds_labels:
            level, leaf, rows = self._held_levels
            return Recoded.of_classes(hierarchies, level, leaf, rows, self.statistics.suppressed)
        frame, count = self.fitted.released, len(hierarchies)
        cells = [F.struct(F.col(f"{LEVEL}{at}").alias("level"), F.col(f"{LEAF}{at}").alias("leaf")) for at in range(count)]
        shown = frame.select(F.posexplode(F.array(*cells)).alias("at", "cell"), ROWS).groupBy("at", "cell.level", "cell.leaf")
        what = "Values of the quasi-identifiers on the levels that are published"
        table = collect_small(shown.agg(F.sum(ROWS).alias(ROWS)), MOST_VALUES, what)
        rows_by_node = [[np.zeros(len(names), dtype=np.int64) for names in hierarchy.labels] for hierarchy in hierarchies]
        for at, level, leaf, rows in zip(*(column.to_pylist() for column in table.columns), strict=True):
            rows_by_node[at][level][hierarchies[at].codes[level, leaf]] += rows
        classes = self._labelled(frame).groupBy(*map(quoted, self.hierarchies)).agg(F.sum(ROWS).alias(ROWS))
        squares = F.sum(F.col(ROWS).cast("decimal(20,0)") * F.col(ROWS).cast("decimal(18,0)"))
        totals = classes.agg(F.count(F.lit(1)), squares).first()
        assert totals is not None
        rows_in_scope, suppressed = self.fitted.frequencies.rows, self.statistics.suppressed
        counts_of = tuple(map(tuple, rows_by_node))
        return Recoded(hierarchies, counts_of, rows_in_scope, suppressed, int(totals[1]), int(totals[0]))

    @property
    def _held_levels(self) -> tuple[Ints, Ints, Ints]:
        """Levels, leaves and rows of the tuples that the driver holds and that are not left out."""
        fitted = self.fitted
        assert fitted is not None and fitted.frequencies.held is not None and fitted.assignment.levels is not None
        table, levels = fitted.frequencies.held.table, fitted.assignment.levels
        shown = levels[:, 0] != LEFT_OUT
        return levels[shown], table.codes.T[shown], table.rows[shown]

    def shown_counts(self) -> tuple[Distribution, ...]:
        """Rows before and after by label of each quasi-identifier that is published as labels."""
        assert self.fitted is not None, "only a fitted table is counted"
        entries, recoded = self.fitted.frequencies.dictionaries, self._recoded
        return tuple(
            label_distribution(entry.name, hierarchy, entry.rows_by_leaf(), shown, self.k)
            for entry, hierarchy, shown in zip(entries, recoded.hierarchies, recoded.rows_by_node, strict=True)
            if entry.name not in self.publish
        )

    def _with_losses(self, levels: tuple[LevelShares, ...], recoded: Recoded) -> tuple[LevelShares, ...]:
        """The levels with the detail that each attribute lost."""
        parts = zip(levels, recoded.hierarchies, recoded.rows_by_node, strict=True)
        return tuple(
            replace(of, loss=float(general_loss([hierarchy], [shown], 0))) for of, hierarchy, shown in parts
        )

    def _measured_here(self) -> Measured:
        """As `measured`, of tuples that the driver holds. No Spark."""
        level, leaf, rows = self._held_levels
        recoded = self._recoded
        counts = [
            [np.bincount(leaf[:, at][level[:, at] == step], rows[level[:, at] == step]) for step in range(hierarchy.height + 1)]
            for at, hierarchy in enumerate(recoded.hierarchies)
        ]
        levels = self._with_losses(self._level_shares(counts, int(rows.sum())), recoded)
        return Measured(Measures(**summary(recoded, self.k)), levels, ())

    def _level_shares(self, rows_by_node: Sequence[Sequence[Any]], rows: int) -> tuple[LevelShares, ...]:
        """The share of rows on each level of each attribute."""
        return tuple(
            LevelShares(name, tuple(float(counts.sum() / rows) for counts in by_level))
            for name, by_level in zip(self.hierarchies, rows_by_node, strict=True)
        )

    def _extents(self, rows_by_node: Sequence[Sequence[Ints]]) -> tuple[ExtentShare, ...]:
        """What the extents cover of their domains, beside the labels that they replace. Cost: one small job."""
        hierarchies = self.fitted_hierarchies()
        covered = widths(self._shown(), hierarchies, list(self.publish))
        by_name = dict(zip(hierarchies, rows_by_node, strict=True))
        return tuple(
            ExtentShare(name, float(general_loss([hierarchies[name]], [by_name[name]], 0)), share)
            for name, share in covered.items()
        )

    def left_out(self) -> dict[str, int]:
        """Rows that the fit suppressed, and those that the policies for nulls and unseen values drop."""
        counted, suppressed = self.counted, self.statistics.suppressed
        return {"suppressed": suppressed, "dropped_nulls": counted.dropped_nulls, "dropped_unseen": counted.dropped_unseen}

    @property
    def counted(self) -> Frequencies:
        """The distinct tuples of the fitted table, as long as its private files exist."""
        assert self.fitted is not None, "a fit inside a run keeps its counts"
        return self.fitted.frequencies

    def facts(self) -> MstFit:
        return MstFit(self.k, self.l, self.statistics)

    def content(self) -> dict[str, Any]:
        """Classes only: no tuple of the table. A hierarchy that a rule made is kept as the rule."""
        return {
            "hierarchies": {name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()},
            "rules": [name for name, hierarchy in self.hierarchies.items() if not isinstance(hierarchy, Hierarchy)],
            "k": self.k,
            "l": self.l,
            "sensitive": list(self.sensitive),
            "models": {name: [model_content(model) for model in models] for name, models in self.models.items()},
            "keep": list(self.keep),
            "person": self.person,
            "nulls": self.nulls,
            "on_unseen": self.on_unseen,
            "statistics": vars(self.statistics),
            "warnings": list(self.warnings),
            "publish": dict(self.publish),
            "labels": [list(row) for row in self.classes],
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> MstRecoding:
        rules = set(content["rules"])
        hierarchies = {
            name: Rule.from_dict(saved) if name in rules else Hierarchy.from_dict(saved)
            for name, saved in content["hierarchies"].items()
        }
        same = ("k", "l", "sensitive", "keep", "person", "nulls", "on_unseen", "warnings", "publish", "labels")
        statistics = PartitionStatistics.loaded(content["statistics"])
        models = {name: tuple(map(model_of, saved)) for name, saved in content.get("models", {}).items()}
        return cls(hierarchies=hierarchies, statistics=statistics, models=models, **{name: content[name] for name in same})

    def _carried(self) -> list[str]:
        return [*self.sensitive, *self.keep]

    def _coded(self, keyed: DataFrame, entries: Sequence[Dictionary]) -> DataFrame:
        """Rows with leaf codes, without the rows that a policy drops."""
        codes = code_columns(len(entries))
        coded = with_codes(keyed, entries, [0] * len(entries), codes)
        return coded.where(" AND ".join(f"{code} IS NOT NULL" for code in codes))

    def _labelled(self, assigned: DataFrame, entries: Sequence[Dictionary] | None = None) -> DataFrame:
        """Leaf codes, rows and published labels of each tuple. Cost: one broadcast, a join per attribute; no action."""
        if entries is None:
            assert self.fitted is not None, "hierarchies as fitted"
            entries = self.fitted.frequencies.dictionaries
        count = len(entries)
        look_ups = []
        for name, entry, leaf, level in zip(
            self.hierarchies, entries, leaf_columns(count), level_columns(count), strict=True
        ):
            node = F.col(level).cast("bigint") * entry.hierarchy.leaf_count + F.col(leaf)
            labels = labels_of_nodes(entry.hierarchy)
            look_ups.append(LookUp(node.cast("string"), [str(at) for at in range(len(labels))], labels, name))
        return with_found(assigned, look_ups, pa.string()).select(*leaf_columns(count), ROWS, *map(quoted, self.hierarchies))

    def _joined(self, rows: DataFrame, labelled: DataFrame, entries: Sequence[Dictionary]) -> DataFrame:
        """Rows with the labels of their tuples; rows of tuples that have none are left out."""
        cardinalities = [entry.hierarchy.leaf_count for entry in entries]
        mine = packed(code_columns(len(entries)), cardinalities)
        theirs = packed(leaf_columns(len(entries)), cardinalities)
        codes = {*code_columns(len(entries)), *self.hierarchies}
        numbered = rows.select(*named_words(mine), *(quoted(name) for name in rows.columns if name not in codes))
        return numbered.join(
            labelled.select(*named_words(theirs), *map(quoted, self.hierarchies)), word_names(mine)
        )

    def _assigned(self, tuples: DataFrame, entries: Sequence[Dictionary]) -> DataFrame:
        """The levels of each tuple: those it was fitted with, else those of the class that covers it."""
        hierarchies = [entry.hierarchy for entry in entries]
        if self.fitted is None or hierarchies != list(self.fitted.frequencies.hierarchies):  # codes stand for other leaves
            return self._covered(tuples, hierarchies)
        count = len(entries)
        fitted = self.fitted.assignment.frame.drop(ROWS)
        same = [F.col(code) == F.col(leaf) for code, leaf in zip(code_columns(count), leaf_columns(count), strict=True)]
        both = tuples.join(fitted, same, "left")
        known = both.where(F.col(f"{LEAF}0").isNotNull()).select(*leaf_columns(count), *level_columns(count), ROWS)
        unknown = tuples.join(fitted, same, "left_anti")
        return known if unknown.isEmpty() else known.unionByName(self._covered(unknown, hierarchies))

    def _covered(self, tuples: DataFrame, hierarchies: Sequence[Hierarchy]) -> DataFrame:
        """Each distinct tuple with the levels of the class it joins; codes and levels are null where there is none."""
        count = len(hierarchies)
        classes = published_classes(self.classes, hierarchies)
        names = [*leaf_columns(count), *level_columns(count)]

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                codes = np.array([batch.column(at).to_numpy() for at in range(count)], dtype=np.int32)
                number = covering(codes, classes, hierarchies)
                missing = number < 0
                levels = classes.levels[number] if classes.size else np.zeros((number.size, count), dtype=np.int32)
                arrays = [pa.array(codes[at], mask=missing) for at in range(count)]
                arrays += [pa.array(np.ascontiguousarray(levels[:, at]), mask=missing) for at in range(count)]
                yield pa.RecordBatch.from_arrays([*arrays, batch.column(count)], names=[*names, ROWS])

        kinds = ", ".join(f"`{name}` int" for name in names)
        return tuples.mapInArrow(work, f"{kinds}, `{ROWS}` long")

    def _refuse_uncovered(self, assigned: DataFrame) -> None:
        counts = assigned.where(F.col(f"{LEAF}0").isNull()).agg(F.count(F.lit(1)), F.sum(ROWS)).first()
        if counts is not None and counts[0]:
            raise DataError(
                f"{counts[0]:,} tuples in {counts[1]:,} rows fit none of the published classes. Fit the batch anew, or set "
                "on_unseen: suppress.",
                tuples=int(counts[0]),
                rows=int(counts[1]),
            )
