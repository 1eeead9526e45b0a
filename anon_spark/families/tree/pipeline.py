"""The tree family in a run: what it reads, fits, has audited and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import (
    Kind,
    Verdict,
    completed_of_trees,
    published_labels,
    verify_kmn,
    verify_trees,
    verify_trees_covered,
)
from anon_spark.auditing.truth.trees import Nulls, persons_of_records
from anon_spark.columns import quoted
from anon_spark.config.options import options_of
from anon_spark.errors import ConfigurationError, did_you_mean
from anon_spark.families.contract import Audit, Examined, Family, Pipeline, Shown, Staged, Worth
from anon_spark.families.tree.anonymizer import NOTHING_LEFT, UNPROTECTED, TreeAnonymizer
from anon_spark.families.tree.crowds import record_crowds_to_be
from anon_spark.families.tree.facts import AttackerGain, KnowledgeAttack, Measures, Published, SupportRange, TreeFacts
from anon_spark.families.tree.job import TreeJob
from anon_spark.families.tree.kept import Kept, kept_of
from anon_spark.families.tree.publication import NESTED, PATHS
from anon_spark.families.tree.recoding import Label, TreeRecoding
from anon_spark.families.tree.records import check_table, dictionaries_of
from anon_spark.families.tree.sections import MEASURES, tree_sections
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.kernels.randomness import derived
from anon_spark.metrics.path_dependence import rpd
from anon_spark.model.findings import Finding
from anon_spark.model.guarantee import KmnAnonymity
from anon_spark.model.hierarchy import Hierarchy, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.model.tree import Forest, TreeSchema
from anon_spark.pending import Pending, together
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import Section
from anon_spark.report.columns import detail_words
from anon_spark.report.formats import counted, percent
from anon_spark.risk import tree_attack
from anon_spark.samples.orders import orders
from anon_spark.samples.sample import Sample

ABSENT = (1, 4)  # nodes whose absence an attacker knows besides
MORE = 2  # labels and relations beyond the promise


class Described(TypedDict):
    """Arguments of the audit that describe source and release."""

    schema: TreeSchema
    hierarchies: Mapping[str, Hierarchy]
    keep: Sequence[str]
    person: str | None
    nulls: Nulls


@dataclass(frozen=True)
class TreePipeline(Pipeline[TreeJob, TreeRecoding, TreeFacts]):
    """The steps of one tree job."""

    @classmethod
    def of(cls, job: TreeJob, spark: SparkSession | None) -> TreePipeline:
        hierarchies = load_hierarchies(job.columns.hierarchies, spark, "columns.tree")
        whole = {name: read for name, read in hierarchies.items() if isinstance(read, Hierarchy)}
        refuse_ambiguous(whole)
        if len(whole) == len(hierarchies):
            _refuse_unknown(job.tree.negations, Forest.of(job.schema, whole))
        return cls(job, hierarchies)

    @property
    def schema(self) -> TreeSchema:
        return self.job.schema

    @property
    def anonymizer(self) -> TreeAnonymizer:
        job = self.job
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
            **options_of(job.tree),
        )

    @property
    def guarantee(self) -> KmnAnonymity:
        privacy = self.job.privacy
        return KmnAnonymity(
            privacy.k, privacy.m, privacy.effective_n, privacy.l, self.schema.sensitive, self.job.tree.negations
        )

    @property
    def description(self) -> str:
        """As of every family, without the values whose absence is counted: they need not be in the release."""
        present = replace(self.guarantee, negations=())
        return super().description.replace(str(self.guarantee), str(present))

    @property
    def named(self) -> list[str]:
        return list(self.anonymizer.roles.named)

    @property
    def own_comments(self) -> dict[str, str]:
        return {
            PATHS: "Paths of generalized values from the top of the record down, each value with its node type.",
            NESTED: "The same values, nested as in the source.",
        }

    @property
    def labelled(self) -> list[str]:
        return []

    @property
    def counts_persons(self) -> bool:
        return True  # the rows of a person are one record

    @property
    def published(self) -> list[str]:
        """In a series without `nested`: an increment whose relations were disassociated has none, and a table has one schema."""
        appends = self.job.output.appends
        return [name for name in super().published if not (appends and name == NESTED)]

    def expected(self, columns: Sequence[str]) -> list[str]:
        """`nested` is left out where a relation was disassociated."""
        return [name for name in self.published if name != NESTED or NESTED in columns]

    def check_columns(self, df: DataFrame) -> None:
        """Fields first: their message says what a dot in a name means."""
        self.check_types(df)
        super().check_columns(df)

    def check_types(self, df: DataFrame) -> None:
        check_table(df, self.anonymizer.roles)

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, records, values and unseen ones; raises as a run would. Cost: two jobs; writes nothing."""
        person = self.job.columns.person
        records = F.count_distinct(quoted(person)) if person else F.count(F.lit(1))
        counted = df.agg(F.count(F.lit(1)).alias("rows"), records.alias("records")).collect()[0]
        entries = dictionaries_of(df, self.anonymizer.roles, self.job.nulls, self.job.on_unseen)
        return {
            "rows": counted["rows"],
            "records": counted["records"],
            "values": sum(int(entry.rows.sum()) + entry.null_rows for entry in entries),
            "distinct_values": sum(len(entry.keys) for entry in entries),
            "unseen_values": sum(entry.unseen_values for entry in entries),
        }

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> TreeRecoding:
        recoding = replace(self.anonymizer, key=key, progress=progress).fit(df, workspace)
        return replace(recoding, may_nest=NESTED in self.published)

    def examine(self, staged: Staged[TreeRecoding]) -> Pending[Examined]:
        """Verify guarantee and truthfulness, with the job's hierarchies and the records of the source."""
        hierarchies, recoding = self._audited_hierarchies(staged.source), staged.recoding
        truth, account = verify_trees(
            staged.source,
            staged.rows,
            recoding.evidence()["linked"],
            cut=None if self.job.tree.cuts == "partial" else recoding.cut,
            disassociated=recoding.pairs,
            **self._described(hierarchies),
        )
        promised = self._promised(staged.release, hierarchies, recoding.cut)
        return Pending.known(Examined([promised], [truth], account))

    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """Verify the current release by coverage: which record became which row was private, and is not kept."""
        hierarchies = self._audited_hierarchies(source)
        is_partial = self.job.tree.cuts == "partial"
        covered, account = verify_trees_covered(source, release, partial=is_partial, **self._described(hierarchies))
        found = published_labels(release) if self.job.tree.negations else []
        labels = [(name, value) for name, value in found if name is not None]
        return Examined([self._promised(release, hierarchies, labels)], [covered], account)

    def in_scope(self, source: DataFrame) -> DataFrame:
        """The person of every record that no policy drops."""
        person = self.job.columns.person
        assert person is not None, "only a job with persons asks whose records these are"
        described = self._described(self._audited_hierarchies(source))
        return persons_of_records(
            source, self.schema, described["hierarchies"], person, described["keep"], described["nulls"]
        )

    @property
    def shown(self) -> Shown:
        """Columns that are not nested, and kept ones: what may be known of a record beside its paths."""
        flat = tuple(node_type.field for node_type in self.schema if "." not in node_type.field)
        return Shown(quasi_identifiers=flat, kept=self.job.columns.keep, person=self.job.columns.person)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset({NOTHING_LEFT, UNPROTECTED})

    def warnings(self, recoding: TreeRecoding) -> list[str]:
        """Warnings of the fit, and that n was lowered."""
        lowered = self.job.privacy.lowered
        return [*([lowered] if lowered else []), *super().warnings(recoding)]

    def worth(self, facts: TreeFacts) -> Worth:
        """RPD, and the node types that went into the root; the fit warns where all did."""
        generalized = [node_type for node_type in facts.node_types if not node_type.sensitive]
        lost = tuple(node_type.name for node_type in generalized if not node_type.label_count)
        return Worth(facts.measures.rpd, MEASURES["rpd"], lost if len(lost) < len(generalized) else ())

    def attacks(self, facts: TreeFacts) -> list[Finding]:
        """Simulated attacks within the promise that found 1 to k - 1 records. They are counted, so one is enough."""
        text = "The simulated attack found {} of {} times fewer than k records, by knowledge within the promise."
        return [
            Finding("look", "attack", text.format(attack.below, attack.drawn), attack.share_below)
            for attack in facts.risk.knowledge_attack.values()
            if attack.promised and attack.below
        ]

    def facts(self, staged: Staged[TreeRecoding], audit: Audit) -> Pending[TreeFacts]:
        """The fit with its loss, the supports that the audit counted, and what attackers gain."""
        recoding, promised = staged.recoding, audit.first(Kind.PROMISE).facts
        kept = kept_of(recoding.records, recoding.nodes, recoding.recode)
        facts = TreeFacts(
            **vars(recoding.facts()),
            measures=self._measures(recoding, kept),
            published=tuple(
                Published(name, of.share(of.exact), of.share(of.groups), of.share(of.root), of.ncp)
                for name, of in kept.node_types.items()
            ),
            supports=tuple(SupportRange(*bucket) for bucket in promised["histogram"]),
            highest_share=promised.get("highest_share"),
            risk=self._attacked(recoding),
        )
        crowds = record_crowds_to_be(recoding.records, recoding.recode, self.named_from)
        counted = together(self.unchanged_counts(staged, audit), crowds)
        return counted.then(lambda found: replace(facts, distributions=found[0], crowds=found[1]))

    def says(self, facts: TreeFacts) -> list[str]:
        """The crowd of a person, what is left of each node type, and of the relations."""
        relations_known = f" and up to {counted(facts.n, 'relation')} between them" if facts.n else ""
        known = f"up to {counted(facts.m, 'value')} of a record{relations_known}"
        crowd = f"Whoever knows {known} finds at least {facts.required_k} records that fit, or none."
        kept = facts.measures.relations_kept
        relations = [] if kept is None else [f"{percent(kept)} of the relations between values are kept."]
        words = detail_words({one.name: one.ncp for one in facts.published})
        return [crowd, *(text.replace("Column", "Node type", 1) for text in words), *relations]

    def sections(self, facts: TreeFacts) -> list[Section]:
        return tree_sections(facts)

    def _measures(self, recoding: TreeRecoding, kept: Kept) -> Measures:
        """Loss of the release. Cost: one pass over it; none where the search compared cuts by RPD."""
        compared_by, cost = recoding.statistics.loss, self.job.tree.cost
        return Measures(
            rpd=compared_by if cost == "rpd" else rpd(recoding.release(), recoding.forest, self.job.tree.level_count),
            rpd_a=compared_by if cost == "rpd_a" else None,
            ncp=kept.ncp,
            relations_kept=kept.relations_kept / kept.relations if kept.relations else None,
        )

    def _attacked(self, recoding: TreeRecoding) -> AttackerGain:
        """What attackers gain: with as much as is promised, with absences, with more, and by the method."""
        privacy, forest = self.job.privacy, recoding.forest
        found = tree_attack(
            recoding.evidence()["linked"],
            recoding.release(linked=True),
            self.schema,
            forest.hierarchies,
            recoding.cut,
            recoding.pairs,
            privacy.k,
            privacy.m,
            privacy.effective_n,
            key=derived(recoding.key or "", "attack"),
            negations=ABSENT,
            more=MORE,
        )
        known = {str(at): KnowledgeAttack.of(outcome) for at, outcome in enumerate(found.knowledge)}
        return AttackerGain(known, found.structure if recoding.pairs else None)

    def _promised(self, release: DataFrame, hierarchies: Mapping[str, Hierarchy], cut: Sequence[Label]) -> Verdict:
        """The guarantee, on the published table alone."""
        privacy, forest = self.job.privacy, Forest.of(self.schema, hierarchies)
        nodes = tuple(node for label in cut if (node := forest.node_of(*label)) is not None)
        negations = [
            (label, set(map(forest.published, np.flatnonzero(forest.only_inside(nodes, forest.number(label))).tolist())))
            for label in self.job.tree.negations
            if label in forest.labels  # else every record lacks it, and that tells nothing
        ]
        return verify_kmn(
            release, privacy.k, privacy.m, privacy.effective_n, privacy.l, self.schema.sensitive, negations
        )

    def _audited_hierarchies(self, source: DataFrame) -> dict[str, Hierarchy]:
        """The job's hierarchies, rules completed by the audit's own reading of the source."""
        return completed_of_trees(source, self.schema, self.hierarchies, self.job.nulls, self.job.columns.person)

    def _described(self, hierarchies: Mapping[str, Hierarchy]) -> Described:
        columns = self.job.columns
        return Described(
            schema=self.schema, hierarchies=hierarchies, keep=columns.keep, person=columns.person, nulls=self.job.nulls
        )


def _refuse_unknown(negations: Sequence[str], forest: Forest) -> None:
    for label in negations:
        if label not in forest.labels:
            raise ConfigurationError(f"tree.negations: no value or group is labelled so.{did_you_mean(label, forest.labels)}")


FAMILY = Family("tree", TreeJob, TreePipeline.of, TreeRecoding, Sample("orders", orders, share=0.2, fewest=500))
