"""The mst family in a run: what it reads, fits, has audited and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.audit import (
    RowAccount,
    Verdict,
    published_classes,
    verify_covered,
    verify_k_anonymity,
    verify_l_diversity,
    verify_local_recoding,
    verify_one_row_each,
    verify_order,
    verify_rows,
)
from anon_spark.config import MstJob
from anon_spark.families.mst import MstAnonymizer, MstRecoding
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.model.estimate import Estimate
from anon_spark.model.guarantee import DiverseAnonymity, KAnonymity, LDiversity
from anon_spark.model.hierarchy import Hierarchy, Rule, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import Section, mst_sections
from anon_spark.report.mst import MEASURES
from anon_spark.risk import cover_attack, homogeneity
from pipelines.findings import Worth
from pipelines.gate import refusing, require_whole, shown
from pipelines.relational import RelationalPipeline


@dataclass(frozen=True)
class MstPipeline(RelationalPipeline):
    """The steps of one mst job; everything that needs no row of the table is done when it is made."""

    job: MstJob
    hierarchies: Mapping[str, Hierarchy | Rule]

    @classmethod
    def of(cls, job: MstJob, spark: SparkSession | None) -> MstPipeline:
        hierarchies = load_hierarchies(job.columns.quasi_identifiers, spark)
        refuse_ambiguous({name: given for name, given in hierarchies.items() if isinstance(given, Hierarchy)})
        return cls(job, hierarchies)

    @property
    def guarantee(self) -> KAnonymity | DiverseAnonymity:
        names, columns = tuple(self.hierarchies), self.job.columns
        anonymity = KAnonymity(self.job.privacy.k, names, columns.person)
        if self.job.privacy.l is None:
            return anonymity
        return DiverseAnonymity(anonymity, LDiversity(self.job.privacy.l, names, columns.sensitive))

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> MstRecoding:
        job = self.job
        return MstAnonymizer(
            k=job.privacy.k,
            l=job.privacy.l,
            quasi_identifiers=self.hierarchies,
            sensitive=job.columns.sensitive,
            keep=job.columns.keep,
            person=job.columns.person,
            nulls=job.nulls,
            on_unseen=job.on_unseen,
            merge=job.mst.merge,
            zero_edges=job.mst.zero_edges,
            progress=progress,
        ).fit(df, workspace)

    @refusing
    def verify(
        self, source: DataFrame, staged: DataFrame, recoding: MstRecoding, key: DataFrame, workspace: Workspace
    ) -> tuple[list[Verdict], RowAccount]:
        """Everything that must hold before a staged release is published.

        Hierarchies are the job's. That every person of the source has one row makes the rows of a class count.
        """
        release = shown(staged, recoding.published)
        columns = self._column_verdict(release)
        require_whole(columns, release, self.job.columns.published)
        hierarchies = self.audited_hierarchies(source)
        names = list(hierarchies)
        classes = workspace.store(published_classes(release, names, None, self._unchanged), "audited-classes")
        k_anonymity = verify_k_anonymity(release, names, self.job.privacy.k, None, classes)
        truthfulness, account = verify_local_recoding(
            source,
            release,
            hierarchies,
            recoding.evidence()["assignment"],
            self._unchanged,
            self.job.nulls,
            classes,
        )
        assert recoding.fitted is not None, "a fit inside a run keeps its counts"
        counted = recoding.fitted.frequencies
        claimed = {
            "suppressed": 0,
            "dropped_nulls": counted.dropped_nulls,
            "dropped_unseen": counted.dropped_unseen,
        }
        rows = verify_rows(account, 0, claimed)
        order = verify_order(staged, key, recoding.published)
        kept = [columns, k_anonymity, *self._persons(source), *self._diversity(release)]
        return [*kept, truthfulness, rows, order], account

    def verify_published(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> list[Verdict]:
        """What can be verified of a release that stands: which tuple became which class is private and gone.

        That every person of the source has one row makes the rows of a class count.
        """
        columns = self._column_verdict(release)
        if set(self.published) - set(release.columns):
            return [columns]
        hierarchies = self.audited_hierarchies(source)
        coverage, account = verify_covered(source, release, hierarchies, self._unchanged, self.job.nulls)
        k_anonymity = verify_k_anonymity(release, list(self.hierarchies), self.job.privacy.k)
        kept = [columns, k_anonymity, *self._persons(source), *self._diversity(release)]
        return [*kept, coverage, verify_rows(account, 0, {})]

    def metadata(self, recoding: MstRecoding) -> dict[str, Any]:
        """What the commit says beside the run: nothing that the release does not show."""
        return {"k": self.job.privacy.k, **({"l": self.job.privacy.l} if self.job.privacy.l else {})}

    def risk(
        self, source: DataFrame, release: DataFrame, recoding: MstRecoding, verdicts: Sequence[Verdict], rows: int
    ) -> dict[str, Any]:
        """What an attacker gains, as plain numbers; counts made on the way are used again."""
        classes = {verdict.name: verdict.facts for verdict in verdicts}[f"{self.job.privacy.k}-anonymity"]
        assert recoding.fitted is not None, "a fit inside a run keeps its counts"
        cover = cover_attack(source, release, recoding.fitted_hierarchies(), rows=rows)
        found = homogeneity(release, list(self.hierarchies), self.job.columns.sensitive)
        before = self.unique_before(recoding.fitted.frequencies)
        return {
            "unique_rows": {"before": before, "after": 0.0 if classes["smallest"] > 1 else None},
            "link_attack": {
                "sampled_rows": cover.rows,
                "expected_success_before": cover.before_expected,
                "expected_success_after": cover.after_expected,
                "worst_success_after": cover.after_worst,
                "expected_success_if_the_class_is_known": cover.class_expected,
                "worst_success_if_the_class_is_known": cover.class_worst,
                "promised_at_most": 1 / self.job.privacy.k,
                **Estimate(cover.after_expected, cover.after_error, 1 / self.job.privacy.k).facts(),
            },
            "sensitive_value_shared_by_whole_class": {entry.column: entry.share for entry in found},
        }

    def worth(self, facts: Mapping[str, Any]) -> Worth:
        """General loss, and the columns whose rows are all on the top level."""
        tops = {one["name"]: one["shares"][-1] >= 1 for one in facts["levels"]}
        lost = tuple(name for name, top in tops.items() if top)
        return Worth(facts["measures"]["glm"], MEASURES["glm"], lost, all(tops.values()))

    def sections(self, facts: Mapping[str, Any]) -> list[Section]:
        return mst_sections(facts)

    def facts(self, recoding: MstRecoding, verdicts: Sequence[Verdict], risk: Mapping[str, Any]) -> dict[str, Any]:
        """The recoding's facts with its measures, class sizes and risk."""
        return {
            **recoding.facts(),
            **recoding.measured(),
            "class_sizes": self.buckets(verdicts),
            "risk": dict(risk),
        }

    def _persons(self, source: DataFrame) -> list[Verdict]:
        person = self.job.columns.person
        return [] if person is None else [verify_one_row_each(source, person)]

    def _diversity(self, release: DataFrame) -> list[Verdict]:
        least = self.job.privacy.l
        if least is None:
            return []
        return [verify_l_diversity(release, list(self.hierarchies), self.job.columns.sensitive, least)]
