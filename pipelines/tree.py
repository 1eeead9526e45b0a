"""The tree family in a run: what it reads, fits, has audited and reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.audit import (
    RowAccount,
    Verdict,
    completed_of_trees,
    verify_columns,
    verify_kmn,
    verify_order,
    verify_rows,
    verify_trees,
    verify_trees_covered,
)
from anon_spark.columns import quoted
from anon_spark.config import TreeJob
from anon_spark.errors import ConfigurationError, did_you_mean
from anon_spark.families.tree import TreeAnonymizer, TreeRecoding
from anon_spark.families.tree.anonymizer import NOTHING_LEFT, UNPROTECTED
from anon_spark.families.tree.publication import NESTED, PATHS
from anon_spark.families.tree.records import check_table, found_hierarchies
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.metrics.path_dependence import rpd
from anon_spark.model.findings import Finding
from anon_spark.model.guarantee import KmnAnonymity
from anon_spark.model.hierarchy import Hierarchy, Rule, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.model.tree import Forest, TreeSchema
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns
from anon_spark.report import Section, tree_sections
from anon_spark.report.tree import MEASURES
from anon_spark.risk import TreeKnowledge, tree_attack
from pipelines.findings import Shown, Worth
from pipelines.gate import refusing, require_whole, shown
from pipelines.relational import without_order
from pipelines.set_valued import derived

ABSENT = (1, 4)  # nodes whose absence an attacker knows besides
MORE = 2  # labels and relations beyond the promise


@dataclass(frozen=True)
class TreePipeline:
    """The steps of one tree job; everything that needs no row of the table is done when it is made."""

    job: TreeJob
    hierarchies: Mapping[str, Hierarchy | Rule]

    @classmethod
    def of(cls, job: TreeJob, spark: SparkSession | None) -> TreePipeline:
        hierarchies = load_hierarchies(job.columns.hierarchies, spark, "columns.tree")
        whole = {name: given for name, given in hierarchies.items() if isinstance(given, Hierarchy)}
        refuse_ambiguous(whole)
        if len(whole) == len(hierarchies):
            _refuse_unknown(job.tree.negations, Forest.of(job.schema, whole))
        return cls(job, hierarchies)

    @property
    def schema(self) -> TreeSchema:
        return self.job.schema

    @property
    def anonymizer(self) -> TreeAnonymizer:
        job, own = self.job, self.job.tree
        return TreeAnonymizer(
            k=job.privacy.k,
            m=job.privacy.m,
            n=job.privacy.effective_n,
            l=job.privacy.l,
            schema=self.schema,
            hierarchies=self.hierarchies,
            keep=job.columns.keep,
            person=job.columns.person,
            nulls=job.nulls,
            on_unseen=job.on_unseen,
            search=own.search,
            g=own.g,
            width=own.width,
            queue_limit=own.queue_limit,
            max_cuts=own.max_cuts,
            max_seconds=own.max_seconds,
            negations=own.negations,
            cost=own.cost,
            level_count=own.level_count,
            close_unseen=own.close_unseen,
            max_labels=own.max_labels,
            allow_unprotected_sensitive=own.allow_unprotected_sensitive,
        )

    @property
    def guarantee(self) -> KmnAnonymity:
        privacy = self.job.privacy
        return KmnAnonymity(
            privacy.k, privacy.m, privacy.effective_n, privacy.l, self.schema.sensitive, self.job.tree.negations
        )

    @property
    def published(self) -> list[str]:
        """The columns of a release; `nested` is left out where a relation was taken apart."""
        return list(self.job.columns.published)

    def fingerprint(self) -> str:
        """What the hierarchies say, which the job file only points to."""
        content = {name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()}
        return json.dumps(content, sort_keys=True)

    def read(self, df: DataFrame) -> DataFrame:
        """What the release depends on."""
        person = [self.job.columns.person] if self.job.columns.person else []
        return df.select(*(F.col(quoted(name)) for name in (*self.anonymizer.roles.named, *person)))

    def check_columns(self, df: DataFrame) -> None:
        columns = self.job.columns
        require_columns(df, [*columns.identifiers, *columns.keep])
        check_table(df, self.anonymizer.roles)
        for name in columns.keep:
            if without_order(df.schema[name].dataType):
                raise ConfigurationError(f"Column {name}: a map or variant cannot be published. Turn it into a text.")

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, records, values and unseen ones; raises as a run would. Cost: two jobs; writes nothing."""
        person = self.job.columns.person
        records = F.count_distinct(quoted(person)) if person else F.count(F.lit(1))
        counted = df.agg(F.count(F.lit(1)).alias("rows"), records.alias("records")).collect()[0]
        found = found_hierarchies(df, self.anonymizer.roles, self.job.nulls, self.job.on_unseen)
        return {
            "rows": counted["rows"],
            "records": counted["records"],
            "values": sum(int(entry.rows.sum()) + entry.null_rows for entry in found),
            "distinct_values": sum(len(entry.keys) for entry in found),
            "unseen_values": sum(entry.unseen_values for entry in found),
        }

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> TreeRecoding:
        return replace(self.anonymizer, key=key, progress=progress).fit(df, workspace)

    @refusing
    def verify(
        self, source: DataFrame, staged: DataFrame, recoding: TreeRecoding, key: DataFrame, workspace: Workspace
    ) -> tuple[list[Verdict], RowAccount]:
        """Everything that must hold before a staged release is published; hierarchies are the job's, records the source's."""
        release = shown(staged, recoding.published)
        columns = self._column_verdict(release, NESTED in recoding.published)
        require_whole(columns, release, [PATHS, *self.job.columns.keep])
        hierarchies = self._audited_hierarchies(source)
        truthfulness, account = verify_trees(
            source,
            staged,
            recoding.evidence()["linked"],
            cut=recoding.cut,
            disassociated=recoding.pairs,
            **self._described(hierarchies),
        )
        claimed = {
            "suppressed": 0,
            "dropped_nulls": recoding.records.dropped_nulls,
            "dropped_unseen": recoding.records.dropped_unseen,
        }
        verdicts = [
            columns,
            self._promised(release, Forest.of(self.schema, hierarchies)),
            truthfulness,
            verify_rows(account, 0, claimed),
            verify_order(staged, key, recoding.published),
        ]
        return verdicts, account

    def verify_published(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> list[Verdict]:
        """What can be verified of a release that stands: which record became which row is private and gone."""
        columns = self._column_verdict(release, NESTED in release.columns)
        if not columns.passed:
            return [columns]
        hierarchies = self._audited_hierarchies(source)
        covered, account = verify_trees_covered(source, release, **self._described(hierarchies))
        return [columns, self._promised(release, Forest.of(self.schema, hierarchies)), covered, verify_rows(account, 0, {})]

    @property
    def shown(self) -> Shown:
        """Kept columns are what may be known of a record beside its paths, which the guarantee counts."""
        flat = tuple(one.field for one in self.schema if "." not in one.field)
        return Shown(quasi_identifiers=flat, kept=self.job.columns.keep, person=self.job.columns.person)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset({NOTHING_LEFT, UNPROTECTED})

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release; a person has one."""
        return release, None

    def warnings(self, recoding: TreeRecoding) -> list[str]:
        """What the fit has to say."""
        lowered = self.job.privacy.lowered
        return [*([lowered] if lowered else []), *recoding.warnings]

    def worth(self, facts: Mapping[str, Any]) -> Worth:
        """RPD, and the classes that went into the root; that everything did is said by the fit."""
        own = [one for one in facts["classes"] if not one["sensitive"]]
        lost = tuple(one["class"] for one in own if not sum(one.get("labels") or ()))
        return Worth(facts["measures"]["rpd"], MEASURES["rpd"], lost if len(lost) < len(own) else ())

    def attacks(self, facts: Mapping[str, Any]) -> list[Finding]:
        """Knowledge within the promise that fewer than k records fit, but some: counted, so one is enough."""
        text = "The simulated attack found {below} of {drawn} times fewer than k records, by knowledge within the promise."
        return [
            Finding("look", "attack", text.format(**one), one["below"] / max(1, one["drawn"]))
            for one in facts["risk"]["knowledge_attack"].values()
            if one["promised"] and one["below"]
        ]

    def risk(
        self, source: DataFrame, release: DataFrame, recoding: TreeRecoding, verdicts: Sequence[Verdict], rows: int
    ) -> dict[str, Any]:
        """What attackers gain, as plain numbers: with as much as is promised, with absences, with more, and by the method."""
        privacy, forest = self.job.privacy, recoding.forest
        attack = partial(
            tree_attack,
            recoding.evidence()["linked"],
            recoding.release(linked=True),
            self.schema,
            forest.hierarchies,
            recoding.cut,
            recoding.pairs,
            privacy.k,
            key=derived(recoding.key or "", "attack"),
        )
        within = attack(m=privacy.m, n=privacy.effective_n, negations=ABSENT)
        beyond = attack(m=privacy.m + MORE, n=privacy.effective_n + MORE)
        outcomes = [*within.knowledge, *(replace(one, promised=False) for one in beyond.knowledge)]
        return {
            "knowledge_attack": {str(at): _numbers(one) for at, one in enumerate(outcomes)},
            **({"structure_attack": asdict(within.structure)} if recoding.pairs else {}),
        }

    def facts(self, recoding: TreeRecoding, verdicts: Sequence[Verdict], risk: Mapping[str, Any]) -> dict[str, Any]:
        """The recoding's facts with its loss, supports and risk."""
        promised = next(verdict.facts for verdict in verdicts if "known" in verdict.facts)
        return {
            **recoding.facts(),
            "measures": {
                "rpd": rpd(recoding.release(), recoding.forest, self.job.tree.level_count),
                self.job.tree.cost: recoding.search["loss"],
            },
            "supports": [dict(zip(("from", "to", "sets"), bucket, strict=True)) for bucket in promised["histogram"]],
            "highest_share": promised.get("highest_share"),
            "risk": dict(risk),
        }

    def metadata(self, recoding: TreeRecoding) -> dict[str, Any]:
        """What the commit says beside the run: nothing that the release does not show."""
        privacy = self.job.privacy
        given = {"k": privacy.k, "m": privacy.m, "n": privacy.effective_n, "l": privacy.l}
        return {name: value for name, value in given.items() if value is not None}

    def sections(self, facts: Mapping[str, Any]) -> list[Section]:
        return tree_sections(facts)

    def _promised(self, release: DataFrame, forest: Forest) -> Verdict:
        """The guarantee, on the published table alone."""
        privacy = self.job.privacy
        negations = [
            (label, {forest.published(node) for node in forest.below(forest.number(label))})
            for label in self.job.tree.negations
            if label in forest.labels  # else every record lacks it, and that tells nothing
        ]
        return verify_kmn(
            release, privacy.k, privacy.m, privacy.effective_n, privacy.l, self.schema.sensitive, negations
        )

    def _audited_hierarchies(self, source: DataFrame) -> dict[str, Hierarchy]:
        """The job's hierarchies, rules completed by the audit's own reading of the source."""
        return completed_of_trees(source, self.schema, self.hierarchies, self.job.nulls, self.job.columns.person)

    def _described(self, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        """What source and release are, as the audit takes it."""
        columns = self.job.columns
        return {
            "schema": self.schema,
            "hierarchies": hierarchies,
            "keep": columns.keep,
            "person": columns.person,
            "nulls": self.job.nulls,
        }

    def _column_verdict(self, release: DataFrame, nested: bool) -> Verdict:
        columns = self.job.columns
        published = [name for name in self.published if nested or name != NESTED]
        person = [] if columns.person is None else [columns.person]
        return verify_columns(release, published, [*columns.identifiers, *person])


def _numbers(outcome: TreeKnowledge) -> dict[str, Any]:
    """What a report tells of an attack; how many records fit less than k of them is told as one number."""
    told = ("labels", "relations", "negated", "level", "promised", "drawn", "nothing", "below", "least", "mean", "lost", "found")
    return {name: getattr(outcome, name) for name in told}


def _refuse_unknown(negations: Sequence[str], forest: Forest) -> None:
    for label in negations:
        if label not in forest.labels:
            raise ConfigurationError(f"tree.negations: no value or group is labelled so.{did_you_mean(label, forest.labels)}")
