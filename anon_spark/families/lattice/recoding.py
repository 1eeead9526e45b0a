"""Full-domain recoding: one level per quasi-identifier, and the front it was chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import ORDER, PREFIX, ROWS, quoted
from anon_spark.engine import beside, small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.families.lattice.facts import LOSS_NAMES, LatticeFit, ModelCost, Search
from anon_spark.families.recoding import Recoding
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.models import Conditions
from anon_spark.kernels.tuples import group
from anon_spark.model.facts import FrontPoint, LevelReached
from anon_spark.model.front import Point
from anon_spark.model.guarantee.models import Models
from anon_spark.model.guarantee.saved_models import model_content, model_of
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.lattice import Node
from anon_spark.primitives.classes import Counting, Frequencies
from anon_spark.primitives.classes.arrays import ladder_of
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.classes.held import DROPPED, HASH, Held, tuple_hash
from anon_spark.primitives.classes.sensitive import failing_classes, stored_values, text_columns
from anon_spark.primitives.encoding import Dictionary, dictionaries, fractions, with_codes, with_keys, with_labels
from anon_spark.primitives.ordering import spread, with_key, with_order
from anon_spark.primitives.packing import named_words, packed, word_names
from anon_spark.primitives.plain import without_metadata
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns
from anon_spark.primitives.unseen import refuse_unseen
from anon_spark.report.notebook import Drawing
from anon_spark.report.plots import front_plot

SIZE = PREFIX + "size"
BROADCAST_CLASSES = 100_000


@dataclass(frozen=True)
class Fitted:
    """The fitted table, available as long as its run is open."""

    frequencies: Frequencies
    counting: Counting
    workspace: Workspace

    @property
    def conditions(self) -> Conditions:
        """What classes keep besides their size."""
        return self.counting.conditions


@dataclass(frozen=True)
class LatticeRecoding(Recoding):
    """Every quasi-identifier on one level for all rows; rows of classes smaller than `k`, or that fail a model, are suppressed.

    Guarantee: k-anonymity on the quasi-identifiers of any table it is applied to, and its models in every class, by suppression
    where generalization does not reach it; an audit must still verify it, and judge how much was suppressed.
    Not covered: sensitive values that a whole class shares unless a model forbids it, kept columns an attacker knows, several
    releases of one person's data put together.
    """

    hierarchies: Mapping[str, Hierarchy | Rule]  # as they apply to any table, see `portable`; without null leaf
    chosen: Point
    points: Sequence[Point]
    denominator: int
    required_k: int
    statistics: Search
    sensitive: Sequence[str] = ()
    models: Models = field(default_factory=dict)  # by sensitive column
    with_population: bool = False  # whether it keeps something in a population, too
    model_costs: Sequence[ModelCost] = ()
    others_wait: bool = False  # whether the levels were kept, and rows of small classes wait
    refit: Point | None = None  # what a search of these rows alone would choose instead
    keep: Sequence[str] = ()
    person: str | None = None
    nulls: str = "value"
    on_unseen: str = "error"
    attributes: Sequence[LevelReached] = ()
    warnings: Sequence[str] = ()
    fitted: Fitted | None = field(default=None, repr=False, compare=False)  # not saved

    family = "lattice"

    @property
    def node(self) -> Node:
        return self.chosen.node

    @property
    def k(self) -> int:
        return self.chosen.k

    @property
    def loss(self) -> float:
        return self.chosen.loss / self.denominator

    @property
    def levels(self) -> dict[str, int]:
        """The level of each quasi-identifier."""
        return dict(zip(self.hierarchies, self.node, strict=True))

    @property
    def published(self) -> list[str]:
        """The columns of a release, in order."""
        return [*self.hierarchies, *self.sensitive, *self.keep]

    @property
    def front(self) -> pd.DataFrame:
        """The whole front by decreasing k: node, k, loss, suppressed_rows, classes, chosen."""
        shown = [(point, vars(self._shown(point))) for point in self.points]
        rows = [{**facts, "node": list(point.node), "chosen": point == self.chosen} for point, facts in shown]
        return pd.DataFrame(rows, columns=["node", "k", "loss", "suppressed_rows", "classes", "chosen"])

    def plot(self) -> Drawing:
        """The front: what each k costs, the chosen point marked. It shows itself in a notebook."""
        facts = self.facts()
        points = sorted({*facts.front, facts.chosen}, key=lambda point: (-point.k, point.loss, point.node))
        name = LOSS_NAMES[facts.loss]
        chosen = f"k = {facts.chosen.k} is chosen, {name} {self.loss:.3f}"
        alt = f"{len(points)} choices of k from {points[-1].k} to {points[0].k}; {chosen}"
        return Drawing(front_plot(points, points.index(facts.chosen), self.required_k, name), alt)

    def shown(self) -> dict[str, Any]:
        levels = ", ".join(f"{attribute.name} {attribute.level} of {attribute.height}" for attribute in self.attributes)
        return {**super().shown(), "k": self.k, "loss": self.loss, "levels": levels, "rows left out": self.chosen.suppressed}

    def transform(self, df: DataFrame) -> DataFrame:
        """The release of this or another table, e.g. next month's batch.

        Values the hierarchies do not know raise here (or their rows are left out, as `on_unseen` says).
        Cost: one job for the distinct values; then, lazily, one pass for class sizes and one for the rows.
        """
        if self.with_population:
            raise ConfigurationError("This recoding was fitted beside a population. Another table needs a fit of its own.")
        require_columns(df, [*self.hierarchies, *self._carried()])
        keyed = with_keys(df, self.hierarchies, self._carried())
        entries = dictionaries(keyed, self.hierarchies, self.nulls, fractions(df, self.hierarchies))
        if self.on_unseen == "error":
            refuse_unseen(entries)
        coded = self._coded(keyed, entries)
        codes = code_columns(len(entries))
        members = F.count_distinct(quoted(self.person)) if self.person else F.count(F.lit(1))
        large = coded.groupBy(*codes).agg(members.alias(SIZE)).where(F.col(SIZE) >= self.k).select(*codes)
        if self.models:
            large = large.join(self._failing(coded, codes, df).select(*codes), codes, "left_anti")
        words = self._words(entries)
        classes = self._class_labels(large, words, [entry.hierarchy for entry in entries])
        numbered = self._numbered(coded, words, self._unchanged)
        return without_metadata(numbered.join(classes, word_names(words)).select(*self._published()))

    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release of the fitted table in its final order.

        Rows are joined with the labels of large classes, so rows of small classes are dropped. If the classes can be
        broadcast, only the number of a class goes through the shuffle and its labels are joined afterwards.
        Cost: one pass over the rows and one shuffle of them; one small job for the classes.
        """
        if self.fitted is None:
            raise ConfigurationError("staged() needs the fitted table of this recoding: fit again, or use transform().")
        small = self.fitted.workspace.small
        if self.fitted.frequencies.held is not None:
            return self._staged_by_tuples(df, key, self.fitted.frequencies.held, small)
        entries, words = self.fitted.frequencies.dictionaries, self._words(self.fitted.frequencies.dictionaries)
        large = self.fitted.counting.large_classes(self.node, self.k)
        labels = self._class_labels(large, words, self.fitted.frequencies.hierarchies)
        classes = self.fitted.workspace.store(labels, "release-classes")
        if self.chosen.classes <= BROADCAST_CLASSES:
            classes = beside(classes)
        coded = self._coded(with_keys(df, self.hierarchies, self._unchanged), entries)
        rows = self._numbered(coded, words, self._unchanged)
        ordered = with_order(rows.join(classes, word_names(words)), key, self.published)
        if self.chosen.classes <= BROADCAST_CLASSES:
            narrow = ordered.select(*word_names(words), *map(quoted, self._unchanged), ORDER)
            moved = spread(narrow, small).join(classes, word_names(words))  # Spark drops a sort before a join
        else:
            moved = spread(ordered, small)
        return moved.sortWithinPartitions(ORDER).select(*self._published())

    def _staged_by_tuples(self, df: DataFrame, key: DataFrame, held: Held, small: bool) -> DataFrame:
        """The release where the driver holds the tuples: rows get the labels of their tuple by its hash.

        Of many rows only the hash goes through the shuffle, and the labels are joined again afterwards.
        """
        labels = beside(small_frame(df.sparkSession, with_key(self._labels_by_hash(held), key)))
        rows = with_keys(df, self.hierarchies, self._unchanged).select(
            tuple_hash(list(self.hierarchies)).alias(HASH), *map(quoted, self._unchanged)
        )
        ordered = with_order(rows.join(labels, HASH), None, self.published)
        if small:
            return spread(ordered, small).sortWithinPartitions(ORDER).select(*self._published())
        narrow = spread(ordered.select(HASH, *map(quoted, self._unchanged), ORDER), small)
        # Spark drops a sort before a join
        return narrow.join(labels, HASH).sortWithinPartitions(ORDER).select(*self._published())

    def _labels_by_hash(self, held: Held) -> pa.Table:
        """HASH and labels of every tuple whose class is large enough."""
        assert self.fitted is not None, "only a fitted table is staged"
        hierarchies, table = self.fitted.frequencies.hierarchies, held.table
        conditions = self.fitted.conditions
        classes = group(table, ladder_of(hierarchies), self.node, conditions)
        known = np.flatnonzero(held.tuple_of != DROPPED)
        shown = known[classes.members(conditions)[classes.inverse[held.tuple_of[known]]] >= self.k]
        columns: dict[str, Any] = {HASH: pa.array(held.hashes[shown])}
        for at, (name, hierarchy, level) in enumerate(zip(self.hierarchies, hierarchies, self.node, strict=True)):
            codes = hierarchy.codes[level][table.codes[at][held.tuple_of[shown]]]
            columns[name] = pa.array(hierarchy.labels[level], pa.string()).take(pa.array(codes, pa.int32()))
        return pa.table(columns)

    def shown_rows(self, held: Held) -> dict[str, Ints]:
        """Rows of the release by label of each quasi-identifier, where the driver holds the tuples."""
        assert self.fitted is not None, "only a fitted table is staged"
        hierarchies, table, conditions = self.fitted.frequencies.hierarchies, held.table, self.fitted.conditions
        classes = group(table, ladder_of(hierarchies), self.node, conditions)
        kept = classes.members(conditions)[classes.inverse] >= self.k
        return {
            name: np.bincount(
                hierarchy.codes[level][table.codes[at][kept]], table.rows[kept], hierarchy.cardinality(level)
            ).astype(np.int64)
            for at, (name, hierarchy, level) in enumerate(zip(self.hierarchies, hierarchies, self.node, strict=True))
        }

    def recoded(self) -> dict[str, tuple[Hierarchy, int]]:
        """Quasi-identifier → (hierarchy, level) as fitted, with which an audit recodes the source."""
        if self.fitted is None:
            raise ConfigurationError("recoded() needs the fitted table of this recoding: fit again.")
        fitted = self.fitted.frequencies.hierarchies
        return dict(zip(self.hierarchies, zip(fitted, self.node, strict=True), strict=True))

    def left_out(self) -> dict[str, int]:
        """Rows that the chosen node suppresses, and those that the policies for nulls and unseen values drop."""
        counted = self.counted
        dropped = {"dropped_nulls": counted.dropped_nulls, "dropped_unseen": counted.dropped_unseen}
        return {"suppressed": self.chosen.suppressed, **dropped}

    @property
    def counted(self) -> Frequencies:
        """The distinct tuples of the fitted table, as long as its private files exist."""
        assert self.fitted is not None, "a fit inside a run keeps its counts"
        return self.fitted.frequencies

    def facts(self) -> LatticeFit:
        front = tuple(self._shown(point) for point in self.points)
        chosen = self._shown(self.chosen)
        found, costs = (tuple(self.attributes), self.statistics), tuple(self.model_costs)
        refit = None if self.refit is None else self._shown(self.refit)
        fit = LatticeFit(self.statistics.loss, self.required_k, chosen, front, *found, model_costs=costs)
        return replace(fit, others_wait=self.others_wait, refit=refit)

    def content(self) -> dict[str, Any]:
        """Hierarchies made by a rule are saved as the rule: their leaves, first and last day were values of the table."""
        return {
            "hierarchies": {name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()},
            "rules": [name for name, hierarchy in self.hierarchies.items() if not isinstance(hierarchy, Hierarchy)],
            "chosen": _saved(self.chosen),
            "points": [_saved(point) for point in self.points],
            "denominator": self.denominator,
            "required_k": self.required_k,
            "sensitive": list(self.sensitive),
            "models": {name: [model_content(model) for model in models] for name, models in self.models.items()},
            "with_population": self.with_population,
            "model_costs": [vars(cost) for cost in self.model_costs],
            "keep": list(self.keep),
            "person": self.person,
            "nulls": self.nulls,
            "on_unseen": self.on_unseen,
            "search": vars(self.statistics),
            "attributes": [vars(attribute) for attribute in self.attributes],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> LatticeRecoding:
        rules = set(content["rules"])
        hierarchies = {
            name: Rule.from_dict(saved) if name in rules else Hierarchy.from_dict(saved)
            for name, saved in content["hierarchies"].items()
        }
        same = ("denominator", "required_k", "sensitive", "keep", "person", "nulls", "on_unseen")
        return cls(
            hierarchies=hierarchies,
            chosen=_loaded(content["chosen"]),
            points=[_loaded(point) for point in content["points"]],
            statistics=Search(**content["search"]),
            attributes=[LevelReached(**attribute) for attribute in content["attributes"]],
            warnings=content["warnings"],
            models={name: tuple(map(model_of, models)) for name, models in content.get("models", {}).items()},
            with_population=content.get("with_population", False),
            model_costs=[ModelCost(**cost) for cost in content.get("model_costs", [])],
            **{name: content[name] for name in same},
        )

    @property
    def _unchanged(self) -> list[str]:
        return [*self.sensitive, *self.keep]

    def _carried(self) -> list[str]:
        return [*self._unchanged, *([self.person] if self.person else [])]

    def _published(self) -> list[Column]:
        return [F.col(quoted(name)) for name in self.published]

    def _coded(self, keyed: DataFrame, entries: Sequence[Dictionary]) -> DataFrame:
        """Rows with codes on the chosen levels, without the rows that a policy drops."""
        codes = code_columns(len(entries))
        return with_codes(keyed, entries, self.node, codes).where(" AND ".join(f"{code} IS NOT NULL" for code in codes))

    def _failing(self, coded: DataFrame, codes: Sequence[str], df: DataFrame) -> DataFrame:
        """Codes of the classes of a table that fail a model; shares are those of its own rows in scope. Cost: one job."""
        rows = coded.select(*codes, F.lit(1).cast("bigint").alias(ROWS), *text_columns(df, self.models))
        values, columns = stored_values(rows, codes, self.models, df)
        return failing_classes(values, codes, columns)

    def _words(self, entries: Sequence[Dictionary]) -> list[Column]:
        cardinalities = [entry.hierarchy.cardinality(level) for entry, level in zip(entries, self.node, strict=True)]
        return packed(code_columns(len(self.node)), cardinalities)

    def _numbered(self, coded: DataFrame, words: Sequence[Column], carried: Sequence[str]) -> DataFrame:
        """The carried columns, and the number of the class."""
        return coded.select(*named_words(words), *map(quoted, carried))

    def _class_labels(self, large: DataFrame, words: Sequence[Column], hierarchies: Sequence[Hierarchy]) -> DataFrame:
        """The number and the labels of each class."""
        names = list(self.hierarchies)
        labelled = with_labels(large, hierarchies, self.node, code_columns(len(names)), names)
        return labelled.select(*named_words(words), *map(quoted, names))

    def _shown(self, point: Point) -> FrontPoint:
        return FrontPoint(tuple(point.node), point.k, point.loss / self.denominator, point.suppressed, point.classes)



def _saved(point: Point) -> list[Any]:
    return [list(point.node), point.k, point.loss, point.suppressed, point.classes]


def _loaded(saved: Sequence[Any]) -> Point:
    node, k, loss, suppressed, classes = saved
    return Point(tuple(node), k, loss, suppressed, classes)
