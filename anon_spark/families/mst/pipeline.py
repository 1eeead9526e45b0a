"""The mst family in a run: reading, fit, audit and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import RowAccount, Verdict, published_classes, verify_covered
from anon_spark.auditing.guarantees.k_anonymity import k_anonymity_check
from anon_spark.auditing.guarantees.l_diversity import l_diversity_check
from anon_spark.auditing.reading.extents import Extent, Extents, with_labels, with_texts
from anon_spark.auditing.truth.local_recoding import local_recoding_check
from anon_spark.config.options import options_of
from anon_spark.families.contract import Audit, Examined, Family, Staged, Worth
from anon_spark.families.mst.anonymizer import MstAnonymizer
from anon_spark.families.mst.extents import ROUNDED, check_publish
from anon_spark.families.mst.facts import CoverLookUp, MstFacts
from anon_spark.families.mst.job import MstJob
from anon_spark.families.mst.recoding import MstRecoding
from anon_spark.families.mst.sections import MEASURES, mst_sections
from anon_spark.families.quasi_identifiers import QuasiIdentifierPipeline
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.model.guarantee import DiverseAnonymity, KAnonymity, LDiversity
from anon_spark.model.guarantee.models import Models
from anon_spark.model.hierarchy import Hierarchy, Rule, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.pending import Pending, together
from anon_spark.primitives.classes.sensitive import refuse_unordered, text_columns
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import Section
from anon_spark.risk import CoverRisk
from anon_spark.risk.look_up.cover import cover_attack_to_be
from anon_spark.samples.census import census
from anon_spark.samples.sample import Sample


@dataclass(frozen=True)
class MstPipeline(QuasiIdentifierPipeline[MstJob, MstRecoding, MstFacts]):
    """The steps of one mst job; everything that needs no row of the table is done in `of`.

    distances: hierarchies of t-closeness, by sensitive column.
    """

    distances: Mapping[str, Hierarchy | Rule] = field(default_factory=dict)

    @classmethod
    def of(cls, job: MstJob, spark: SparkSession | None) -> MstPipeline:
        hierarchies = load_hierarchies(job.columns.quasi_identifiers, spark)
        refuse_ambiguous({name: entry for name, entry in hierarchies.items() if isinstance(entry, Hierarchy)})
        check_publish(job.columns.publish, hierarchies)
        return cls(job, hierarchies, load_hierarchies(job.privacy.distances, spark, "privacy.sensitive"))

    @property
    def models(self) -> Models:
        """The models of the job, by sensitive column; `privacy.l` is apart."""
        return self.job.privacy.models(self.distances)

    def check_types(self, df: DataFrame) -> None:
        super().check_types(df)
        refuse_unordered(df, self.models)
        text_columns(df, self.models)  # refuses types that have no model

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
            models=self.models,
            keep=job.columns.keep,
            person=job.columns.person,
            suppression=job.privacy.suppression,
            publish=job.columns.publish,
            nulls=job.nulls,
            on_unseen=job.on_unseen,
            **options_of(self.job.mst),
            progress=progress,
        ).fit(df, workspace)

    @property
    def labelled(self) -> list[str]:
        return [name for name in self.hierarchies if name not in self.job.columns.publish]

    @property
    def shows_labels(self) -> bool:
        return not self.job.columns.publish

    def budget(self, rows: int) -> int:
        return self.job.privacy.budget(rows)

    def examine(self, staged: Staged[MstRecoding]) -> Pending[Examined]:
        """The checks use the job's hierarchies. They count rows, because every person of the source has one row."""
        hierarchies = self.audited_hierarchies(staged.source)
        extents = self._extents(hierarchies)
        release = with_texts(staged.release, extents)
        classes = published_classes(release, list(hierarchies), None, self.unchanged)
        if not staged.small:
            classes = staged.workspace.store(classes, "audited-classes")
        truth = local_recoding_check(
            staged.source,
            release,
            hierarchies,
            staged.recoding.evidence()["assignment"],
            self.unchanged,
            self.job.nulls,
            classes,
            extents,
            staged.small,
        )

        def examined(found: tuple[Sequence[Verdict], tuple[Verdict, RowAccount]]) -> Examined:
            promise, (truthful, account) = found
            return Examined(promise, [truthful], account)

        return together(self._promise(release, classes), truth).then(examined)

    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """The checks without the private assignment: each row must still cover a tuple."""
        hierarchies = self.audited_hierarchies(source)
        extents = self._extents(hierarchies)
        coverage, account = verify_covered(
            source, with_labels(release, extents), hierarchies, self.unchanged, self.job.nulls, self.job.privacy.suppression > 0
        )
        return Examined(self._promise(with_texts(release, extents)).get(), [coverage], account)

    def facts(self, staged: Staged[MstRecoding], audit: Audit) -> Pending[MstFacts]:
        """Facts of the release; counts of fit and audit are reused."""
        recoding, rows = staged.recoding, audit.account.source
        hierarchies = recoding.fitted_hierarchies()
        shown = with_texts(staged.release, self._extents(hierarchies))
        attack = cover_attack_to_be(staged.source, shown, hierarchies, rows, extents=list(self.job.columns.publish))
        risk = self.look_up_risk(staged, audit, recoding.counted, attack.then(self._cover_look_up))
        known = {**vars(recoding.facts()), **vars(recoding.measured()), "class_sizes": self.class_sizes(audit)}
        return risk.then(lambda found: MstFacts(**known, risk=found))

    def _cover_look_up(self, attack: CoverRisk) -> CoverLookUp:
        return CoverLookUp(
            **vars(self.look_up(attack)),
            expected_success_if_the_class_is_known=attack.class_expected,
            worst_success_if_the_class_is_known=attack.class_worst,
        )

    def worth(self, facts: MstFacts) -> Worth:
        """General loss as the loss, and the columns whose rows are all on the top level."""
        lost = tuple(attribute.name for attribute in facts.levels if attribute.shares[-1] >= 1)
        return Worth(facts.measures.glm, MEASURES["glm"], lost, len(lost) == len(facts.levels))

    def sections(self, facts: MstFacts) -> list[Section]:
        return mst_sections(facts)

    def _extents(self, hierarchies: Mapping[str, Hierarchy]) -> Extents:
        shown = self.job.columns.publish
        return {name: Extent(hierarchies[name], how == ROUNDED) for name, how in shown.items()}

    def _promise(self, release: DataFrame, classes: DataFrame | None = None) -> Pending[tuple[Verdict, ...]]:
        names, privacy = list(self.hierarchies), self.job.privacy
        checks = [k_anonymity_check(release, names, privacy.k, None, classes)]
        if privacy.l is not None:
            checks.append(l_diversity_check(release, names, self.job.columns.sensitive, privacy.l))
        # TO WIRE IN: the audit of self.models (verify_models), as in lattice; it needs the source for the shares of the table.
        # The same for `guarantee` above: the text of the models.
        return together(*checks)


FAMILY = Family("mst", MstJob, MstPipeline.of, MstRecoding, Sample("census", census))
