"""The fit of the family `tree`: records as trees, a search over cuts, each judged by ValueCheck, FixStructure and its loss."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Literal

from pydantic import Field
from pyspark.sql import DataFrame

from anon_spark.config.options import default, require_options
from anon_spark.errors import ConfigurationError, GuaranteeUnreachable
from anon_spark.families.arguments import Anonymizer, check_arguments, spark_frame
from anon_spark.families.tree.counting import Evaluator
from anon_spark.families.tree.facts import CutSearch
from anon_spark.families.tree.job import TreeJob, TreePrivacySpec, TreeSpec
from anon_spark.families.tree.recoding import Fitted, TreeRecoding
from anon_spark.families.tree.records import Records, Roles, check_table, read_records, source_of
from anon_spark.families.tree.search import Seen, searched
from anon_spark.families.tree.settings import Cost, Cuts, Mode, Search, Settings
from anon_spark.families.tree.tasks import counter_of
from anon_spark.model.hierarchy import Hierarchy, Rule, as_rules, portable, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.model.tree import Forest, TreeSchema
from anon_spark.model.tree.forest import LevelCount
from anon_spark.primitives.rounds import Workspace, fitted

NOTHING_LEFT = "Only the cut {*} was found: the release says nothing but how many records there are."
UNPROTECTED = "Sensitive node types are published unprotected: there is no l."


class TreeOptions(TreeSpec):
    """Options of an anonymizer: those of a job, and the order of FixStructure."""

    mode: Mode = Field(default="batch", description="sequential: the printed FixStructure, for small tables.")


@dataclass(frozen=True, kw_only=True)
class TreeAnonymizer(Anonymizer):
    """k^(m,n)-anonymity of nested records, with l also diversity of sensitive node types.

    Parameters are those of the job file. `schema` names the node types with their fields, `hierarchies` holds one for each.
    With `person`, all rows of a person are one record. `negations` are values or groups whose absence may be known. `mode`
    sequential is the printed FixStructure, for small tables.
    Guarantee of what `fit` returns: see TreeRecoding. Cost: one shuffle of the unfolded values by record; then one job per
    round of questions for all cuts of a step of the search, none for up to about two million values.
    """

    k: int
    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy | Rule]
    m: int = default(TreePrivacySpec, "m")
    n: int = default(TreePrivacySpec, "n")
    l: int | None = None  # noqa: E741 - the literature's name
    keep: Sequence[str] = ()
    person: str | None = None
    nulls: Literal["value", "suppress"] = default(TreeJob, "nulls")
    on_unseen: Literal["error", "suppress"] = default(TreeJob, "on_unseen")
    search: Search = default(TreeOptions, "search")
    g: int = default(TreeOptions, "g")
    width: int = default(TreeOptions, "width")
    queue_limit: int | None = None
    max_cuts: int | None = None
    max_seconds: float | None = None
    negations: Sequence[str] = default(TreeOptions, "negations")
    cost: Cost = default(TreeOptions, "cost")
    level_count: LevelCount = default(TreeOptions, "level_count")
    mode: Mode = default(TreeOptions, "mode")
    close_unseen: bool = default(TreeOptions, "close_unseen")
    cuts: Cuts = default(TreeOptions, "cuts")
    max_labels: int = default(TreeOptions, "max_labels")
    allow_unprotected_sensitive: bool = default(TreeOptions, "allow_unprotected_sensitive")
    key: str | None = field(default=None, repr=False)
    workdir: str | None = None
    progress: Progress | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_arguments(self)
        require_options(self, TreeJob, TreePrivacySpec, TreeOptions)
        missing = [name for name in self.schema.names if name not in self.hierarchies]
        if missing:
            raise ConfigurationError(f"hierarchies: none is given for {', '.join(missing)}.")
        refuse_ambiguous({n: h for n, h in self.hierarchies.items() if isinstance(h, Hierarchy)})
        if self.l is not None and not self.schema.sensitive:
            raise ConfigurationError("l needs a sensitive node type: one whose values must not be inferred.")
        if self.schema.sensitive and self.l is None and not self.allow_unprotected_sensitive:
            raise ConfigurationError(
                "A sensitive node type without l would be published unprotected. Give l, or set allow_unprotected_sensitive."
            )

    def fit(self, df: DataFrame, workspace: Workspace | None = None) -> TreeRecoding:
        """Find a cut and the relations to disassociate.

        The recoding keeps private files: in the workspace given, else in one of its own until `close`, or the end of the
        program.
        """
        df = spark_frame(df)
        check_table(df, self.roles)
        return fitted(df.sparkSession, self.workdir, workspace, partial(self._fit, df))

    def _fit(self, df: DataFrame, workspace: Workspace) -> TreeRecoding:
        started = perf_counter()
        # 1. records as trees of numbers
        source = source_of(df, self.roles, workspace)
        records = read_records(source, self.roles, self.nulls, self.on_unseen, self.max_labels, workspace)
        forest, settings = records.forest, self.settings
        negated = self._negated(forest)
        self._refuse_infeasible(records)
        read_at = perf_counter()
        # 2. the best cut that keeps the guarantee
        evaluator = Evaluator(forest, settings, negations=negated)
        evaluator.counter = counter_of(records, evaluator.promise, workspace)
        seen = searched(forest, settings, evaluator, records.occurring, self.progress)
        if seen.best is None:
            raise GuaranteeUnreachable(
                "No cut keeps the guarantee: with l, sensitive values go along with others in every cut. Lower l or m.",
                cuts=seen.evaluated,
            )
        # 3. as published
        labels = partial(map, forest.published)
        kept = portable({name: self.hierarchies[name] for name in forest.hierarchies}, forest.hierarchies.values())
        return TreeRecoding(
            roles=replace(self.roles, hierarchies=kept),
            settings=settings,
            cut=list(labels(seen.best.cut)),
            pairs=[(forest.published(upper), forest.published(lower)) for upper, lower in seen.best.pairs],
            negations=list(labels(negated)),
            statistics=_statistics(seen, evaluator, read_at - started, perf_counter() - read_at),
            nulls=self.nulls,
            on_unseen=self.on_unseen,
            warnings=self._warnings(records, seen, evaluator),
            key=self.key if self.key is not None else secrets.token_hex(16),
            workdir=self.workdir,
            fitted=Fitted(source, records, workspace),
        )

    @property
    def roles(self) -> Roles:
        """Which fields and columns are what."""
        return Roles(self.schema, as_rules(self.hierarchies), list(self.keep), self.person)

    @property
    def settings(self) -> Settings:
        names = ("k", "m", "n", "l", "search", "g", "width", "queue_limit", "max_cuts", "max_seconds", "mode", "cost")
        others = ("level_count", "close_unseen", "max_labels", "cuts")
        return Settings(**{name: getattr(self, name) for name in (*names, *others)})

    def _negated(self, forest: Forest) -> tuple[int, ...]:
        nodes = []
        for label in self.negations:
            if label not in forest.labels:
                # without a suggestion: where a rule made the hierarchy, its labels are values of the table
                raise ConfigurationError("negations: no value or group is labelled so. Write them as the hierarchies do.")
            nodes.append(forest.number(label))
        if any(forest.is_sensitive[node] or node == forest.top for node in nodes):
            raise ConfigurationError("negations: name values or groups of node types that are not sensitive.")
        return tuple(dict.fromkeys(nodes))

    def _refuse_infeasible(self, records: Records) -> None:
        """Raise DataError where no cut can keep the guarantee."""
        if records.count < self.k:
            raise GuaranteeUnreachable(
                f"k is {self.k}, but there are {records.count:,} records. Lower k, or release more records together.",
                records=records.count,
            )
        if self.l is not None:
            often = records.often(self.l)
            if often:
                raise GuaranteeUnreachable(
                    f"{often:,} sensitive values are each in more than 1/{self.l} of the records: no release can be "
                    f"{self.l}-diverse. Lower l, or leave these values out.",
                    values=often,
                )

    def _warnings(self, records: Records, seen: Seen, evaluator: Evaluator) -> list[str]:
        messages = []
        if self.settings.relations < self.n:
            most = self.settings.relations
            messages.append(f"n is {self.n}, but {self.m} values have at most {most} relations: that many count.")
        if records.merged:
            messages.append(f"{records.merged:,} equal siblings were put together: how often a value occurs is not published.")
        if seen.stopped_by is not None:
            messages.append(
                f"The search was stopped by {seen.stopped_by} after {seen.evaluated:,} cuts: a better cut may exist. The "
                "guarantee does not depend on it."
            )
        if seen.best is not None and seen.best.cut == evaluator.forest.most_general:
            messages.append(NOTHING_LEFT)
            rare = evaluator.rare_types()
            if rare:
                messages.append(
                    f"Fewer than k = {self.k} records have a value of {', '.join(rare)}, and node types are shown all or none: "
                    "leave such a node type out of the job."
                )
        if self.schema.sensitive and self.l is None:
            messages.append(UNPROTECTED)
        return messages


def _statistics(seen: Seen, evaluator: Evaluator, seconds_reading: float, seconds: float) -> CutSearch:
    assert seen.best is not None
    return CutSearch(
        search=seen.settings.search,
        cost=seen.settings.cost,
        loss=float(f"{seen.best.cost:.12g}"),
        cuts=str(seen.forest.cuts()),
        evaluated=seen.evaluated,
        passed_value_check=seen.passed,
        pops=seen.pops,
        stopped_by=seen.stopped_by,
        disassociations=len(seen.best.pairs),
        labels=len(seen.best.cut),
        trail=tuple((cuts, float(f"{loss:.6g}")) for cuts, loss in seen.trail),
        counted=evaluator.counter.kind,
        rounds=evaluator.rounds,
        seconds=round(seconds, 3),
        seconds_reading=round(seconds_reading, 3),
    )
