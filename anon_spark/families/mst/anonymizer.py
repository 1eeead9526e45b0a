"""The fit of the family `mst`: distinct tuples, minimum spanning tree, split, merge, refinement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from anon_spark.config.options import default, require_options
from anon_spark.errors import ConfigurationError, GuaranteeUnreachable
from anon_spark.families.arguments import Anonymizer, check_arguments, spark_frame
from anon_spark.families.mst.assignment import assign
from anon_spark.families.mst.extents import EXACT_ENDS, check_publish
from anon_spark.families.mst.facts import PartitionStatistics
from anon_spark.families.mst.frames import COUNTS
from anon_spark.families.mst.job import DiversitySpec, MstJob, MstSpec, Publish
from anon_spark.families.mst.models import distinct_values, refuse_unreachable, weighed
from anon_spark.families.mst.partition import BLOCK_TUPLES, Merge, Settings
from anon_spark.families.mst.recoding import Fitted, MstRecoding
from anon_spark.families.mst.sensitive import counted_values_of, distinct_values_of, held_counts, held_distinct_values
from anon_spark.model.guarantee import KAnonymity
from anon_spark.model.guarantee.models import Model
from anon_spark.model.hierarchy import Hierarchy, Rule, as_rules, portable, refuse_ambiguous
from anon_spark.model.lattice import lattice_of
from anon_spark.model.progress import Progress
from anon_spark.primitives.classes import Frequencies, count_tuples
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.encoding import with_codes, with_keys
from anon_spark.primitives.rounds import Workspace, fitted
from anon_spark.primitives.tables import refuse_several_rows, require_columns

BLOCK_CLASSES = 160  # a block has room for at least so many classes of k different tuples
MOST_TUPLES_SMALL = 50_000  # of a table for which a longer refinement is not felt


def sweeps_and_visits(effort: Literal["normal", "deep"], tuples: int) -> tuple[int, int]:
    """Sweeps over the classes, and in how many neighbourhoods of one sweep a class is, before it has none of its own."""
    if effort == "deep":
        return 10, 100
    return (8, 3) if tuples <= MOST_TUPLES_SMALL else (3, 4)  # then the fit takes at most twice as long with refinement


@dataclass(frozen=True, kw_only=True)
class MstAnonymizer(Anonymizer):
    """k-anonymity by local recoding: the minimum spanning tree of the records is cut, small parts are merged, and the classes
    are refined until no small change lowers the loss. Then whole tuples may be left out, up to the share `suppression` of
    the rows, where that lowers the loss.

    Parameters are those of the job file; publish: column → label, extent or rounded_extent. `models`: what the values of a
    sensitive column must keep in every class, as {"disease": [EntropyL(1.5), TCloseness(0.2)]}; `l`: distinct values of every
    sensitive column. With `person`, every person must have one row. `workdir` is a private place that all workers see (needed on
    a cluster).
    Guarantee of what `fit` returns: see MstRecoding. Cost: one shuffle of the table to distinct tuples; the tree visits
    lattice nodes × distinct tuples; merging, then refinement, are the larger part.
    """

    k: int
    quasi_identifiers: Mapping[str, Hierarchy | Rule]
    sensitive: Sequence[str] = ()
    models: Mapping[str, Sequence[Model]] = field(default_factory=dict)
    keep: Sequence[str] = ()
    person: str | None = None
    l: int | None = None  # noqa: E741 - the literature's name
    suppression: float = default(DiversitySpec, "suppression")
    publish: Mapping[str, Publish] = field(default_factory=dict)
    nulls: Literal["value", "suppress"] = default(MstJob, "nulls")
    on_unseen: Literal["error", "suppress"] = default(MstJob, "on_unseen")
    merge: Merge = default(MstSpec, "merge")
    refine: Literal["local", "none"] = default(MstSpec, "refine")
    effort: Literal["normal", "deep"] = default(MstSpec, "effort")
    zero_edges: Literal["include", "exclude"] = default(MstSpec, "zero_edges")
    workdir: str | None = None
    progress: Progress | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_arguments(self)
        require_options(self, MstJob, DiversitySpec, MstSpec)
        KAnonymity(self.k, tuple(self.quasi_identifiers), self.person)  # refuses columns that cannot be
        if self.l is not None and self.l > self.k:
            raise ConfigurationError(f"l: is {self.l}, above k, which is {self.k}; a class of k rows cannot hold that many")
        if self.l is not None and not self.sensitive:
            raise ConfigurationError("l needs sensitive columns: those that must stay diverse.")
        strange = [name for name in self.models if name not in self.sensitive]
        if strange:
            raise ConfigurationError(f"models: {', '.join(strange)} is no sensitive column. Name it in sensitive.")
        named = self._named()
        if len(set(named)) < len(named):
            raise ConfigurationError("A column has one role: name each column once.")
        refuse_ambiguous({n: h for n, h in self.quasi_identifiers.items() if isinstance(h, Hierarchy)})
        check_publish(self.publish, self.quasi_identifiers)

    def fit(self, df: DataFrame, workspace: Workspace | None = None) -> MstRecoding:
        """Partition the table.

        The recoding keeps private files: in the workspace given, else in one of its own until `close`, or the end of the
        program.
        """
        df = spark_frame(df)
        require_columns(df, self._named())
        return fitted(df.sparkSession, self.workdir, workspace, partial(self._fit, df))

    def _fit(self, df: DataFrame, workspace: Workspace) -> MstRecoding:
        started = perf_counter()
        self._tell(0, "distinct tuples")
        # 1. distinct tuples of leaf codes with their rows
        rules, models = as_rules(self.quasi_identifiers), weighed(self.models)
        frequencies = count_tuples(df, rules, workspace, nulls=self.nulls, on_unseen=self.on_unseen, models=models)
        hierarchies = dict(zip(self.quasi_identifiers, frequencies.hierarchies, strict=True))
        refuse_ambiguous(hierarchies)
        lattice_of(frequencies.hierarchies)  # refuses more nodes than are walked
        self._refuse_what_cannot_be(df, frequencies)
        refuse_unreachable(dict(zip(models, frequencies.sensitive, strict=True)))
        # 2. tree, split, merge, refinement
        self._tell(1, "tree, cut, merging, refinement")
        sweeps, visits = sweeps_and_visits(self.effort, frequencies.tuples)
        block_tuples = max(BLOCK_TUPLES, BLOCK_CLASSES * self.k)
        least = distinct_values(self.l, self.sensitive, self.models)
        settings = Settings(
            self.k,
            max(least.values(), default=None),
            self.merge,
            self.zero_edges,
            0 if self.refine == "none" else sweeps,
            visits,
            block_tuples=block_tuples,
            budget=int(Fraction(str(self.suppression)) * frequencies.rows),
            least=tuple(least.values()),
            models=frequencies.sensitive,
        )
        counted = perf_counter()
        assignment = assign(frequencies, settings, workspace, self._values(df, frequencies, least), self.progress)
        self._tell(2, "tree, cut, merging, refinement")
        return MstRecoding(
            hierarchies=portable(self.quasi_identifiers, frequencies.hierarchies),
            k=self.k,
            l=self.l,
            sensitive=list(self.sensitive),
            models={name: tuple(of_column) for name, of_column in self.models.items() if of_column},
            keep=list(self.keep),
            person=self.person,
            nulls=self.nulls,
            on_unseen=self.on_unseen,
            warnings=[EXACT_ENDS.format(name) for name, how in self.publish.items() if how == "extent"],
            publish={name: how for name, how in self.publish.items() if how != "label"},
            statistics=PartitionStatistics(
                **{name: value for name, value in assignment.statistics.items() if name != "seconds"},
                steps=assignment.statistics["seconds"],
                tuples=frequencies.tuples,
                rows=frequencies.rows,
                seconds=round(perf_counter() - counted, 3),
                seconds_counting=round(counted - started, 3),
            ),
            fitted=Fitted(frequencies, assignment, workspace),
        )

    def _values(self, df: DataFrame, frequencies: Frequencies, least: Mapping[str, int]) -> DataFrame | pa.Table | None:
        """The sensitive values of each tuple, as `assign` takes them. least: distinct values that classes need, by column."""
        columns, values = frequencies.sensitive, None
        keyed = with_keys(df, as_rules(self.quasi_identifiers), list(least))
        if frequencies.held is not None:
            lists = held_distinct_values(keyed, list(self.quasi_identifiers), frequencies.held, least) if least else {}
            if columns:
                lists[COUNTS] = held_counts(frequencies.held.table.sensitive, columns)
            return pa.table(lists) if lists else None
        codes = code_columns(len(frequencies.hierarchies))
        if least:
            coded = with_codes(keyed, frequencies.dictionaries, [0] * len(codes), codes)
            complete = coded.where(" AND ".join(f"{code} IS NOT NULL" for code in codes))
            values = distinct_values_of(complete, codes, least)
        if columns:
            assert frequencies.files.values is not None, "values of columns with models are counted"
            counts = counted_values_of(frequencies.files.values, codes, columns)
            values = counts if values is None else values.join(counts, codes)
        return values

    def _refuse_what_cannot_be(self, df: DataFrame, frequencies: Frequencies) -> None:
        if frequencies.rows < self.k:
            raise GuaranteeUnreachable(
                f"k = {self.k} is more than the {frequencies.rows:,} rows of the table. Lower k.", rows=frequencies.rows
            )
        if self.person is not None:
            refuse_several_rows(df, self.person)

    def _tell(self, done: int, what: str) -> None:
        if self.progress is not None:
            self.progress(done, 2, what)

    def _named(self) -> list[str]:
        return [*self.quasi_identifiers, *self.sensitive, *self.keep, *([self.person] if self.person else [])]
