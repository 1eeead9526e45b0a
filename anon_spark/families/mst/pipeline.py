"""The mst family in a run: reading, fit, audit and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import RowAccount, Verdict, published_classes, verify_covered
from anon_spark.auditing.guarantees.k_anonymity import k_anonymity_check
from anon_spark.auditing.guarantees.l_diversity import l_diversity_check
from anon_spark.auditing.reading.extents import Extent, Extents, with_labels, with_texts
from anon_spark.auditing.truth.local_recoding import assigned_rows, local_recoding_check
from anon_spark.config.options import options_of
from anon_spark.families.contract import Audit, Examined, Family, Staged, Worth
from anon_spark.families.mst.anonymizer import MstAnonymizer
from anon_spark.families.mst.extents import ROUNDED, check_publish
from anon_spark.families.mst.facts import CoverLookUp, MstFacts
from anon_spark.families.mst.job import MstJob
from anon_spark.families.mst.models import distinct_values, weighed
from anon_spark.families.mst.recoding import MstRecoding
from anon_spark.families.mst.sections import MEASURES, mst_sections
from anon_spark.families.quasi_identifiers import CLASSES
from anon_spark.families.sensitive import SensitivePipeline, load_distances, model_spreads
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.model.guarantee import AttributeProtection, DiverseAnonymity, KAnonymity, LDiversity
from anon_spark.model.guarantee.models import DistinctL, Models
from anon_spark.model.hierarchy import Hierarchy, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.pending import Pending, together
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import Section
from anon_spark.risk import CoverRisk
from anon_spark.risk.look_up.cover import cover_attack_to_be
from anon_spark.risk.republication.versions import Version
from anon_spark.samples.census import census
from anon_spark.samples.sample import Sample


@dataclass(frozen=True)
class MstPipeline(SensitivePipeline[MstJob, MstRecoding, MstFacts]):
    """The steps of one mst job; everything that needs no row of the table is done in `of`."""

    @classmethod
    def of(cls, job: MstJob, spark: SparkSession | None) -> MstPipeline:
        hierarchies = load_hierarchies(job.columns.quasi_identifiers, spark)
        refuse_ambiguous({name: entry for name, entry in hierarchies.items() if isinstance(entry, Hierarchy)})
        check_publish(job.columns.publish, hierarchies)
        return cls(job, hierarchies, load_distances(job, spark))

    @property
    def guarantee(self) -> KAnonymity | DiverseAnonymity | AttributeProtection:
        names, columns, privacy = tuple(self.hierarchies), self.job.columns, self.job.privacy
        anonymity = KAnonymity(privacy.k, names, columns.person)
        if self.models:
            return AttributeProtection(anonymity, self._all_models)
        return anonymity if privacy.l is None else DiverseAnonymity(anonymity, LDiversity(privacy.l, names, columns.sensitive))

    @property
    def _all_models(self) -> Models:
        """The models by sensitive column, with `privacy.l` as one of every column."""
        others = weighed(self.models)
        distinct = {name: (DistinctL(least),) for name, least in self._distinct_values.items()}
        return {name: (*distinct.get(name, ()), *others.get(name, ())) for name in {**distinct, **others}}

    @property
    def _distinct_values(self) -> dict[str, int]:
        return distinct_values(self.job.privacy.l, self.job.columns.sensitive, self.models)

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
        return [name for name in super().labelled if name not in self.job.columns.publish]

    @property
    def levels_comment(self) -> str:
        return "Rows may have different levels of detail."

    @property
    def own_comments(self) -> dict[str, str]:
        extents = dict.fromkeys(self.job.columns.publish, "Least and greatest number of the rows of a class.")
        return super().own_comments | extents

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
            classes = staged.workspace.store(classes, CLASSES)
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

        return together(self._promise(staged.source, release, hierarchies, classes), truth).then(examined)

    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """The checks without the private assignment: each row must still cover a tuple."""
        hierarchies = self.audited_hierarchies(source)
        extents = self._extents(hierarchies)
        coverage, account = verify_covered(
            source, with_labels(release, extents), hierarchies, self.unchanged, self.job.nulls, self.job.privacy.suppression > 0
        )
        return Examined(self._promise(source, with_texts(release, extents), hierarchies).get(), [coverage], account)

    def behind(self, staged: Staged[MstRecoding]) -> DataFrame:
        """The rows whose tuple was not left out."""
        hierarchies = self.audited_hierarchies(staged.source)
        assignment = staged.recoding.evidence()["assignment"]
        return assigned_rows(staged.source, hierarchies, assignment, self.job.nulls, self.persons)

    def behind_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> DataFrame | None:
        return None if self.job.privacy.suppression else self.in_scope(source)

    @property
    def unmeasured(self) -> str | None:
        return None

    def version(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any], rows: int) -> Version:
        """The release by its labels, whatever level they are on; extents as texts."""
        hierarchies = self.audited_hierarchies(source)
        extents = self._extents(hierarchies)
        labelled = with_texts(self.as_labels(source, release, metadata), extents)
        return Version(source, labelled, hierarchies, rows, extents=extents)

    def facts(self, staged: Staged[MstRecoding], audit: Audit) -> Pending[MstFacts]:
        """Facts of the release; counts of fit and audit are reused."""
        recoding, rows = staged.recoding, audit.account.source
        hierarchies = recoding.fitted_hierarchies()
        shown = with_texts(staged.release, self._extents(hierarchies))
        extents, classes = list(self.job.columns.publish), self.counted_classes(staged)
        attack = cover_attack_to_be(staged.source, shown, hierarchies, rows, extents=extents, classes=classes)
        risk = self.look_up_risk(staged, audit, recoding.counted, attack.then(self._cover_look_up))
        counted = {"class_sizes": self.class_sizes(audit), "models": model_spreads(audit)}
        known = {**vars(recoding.facts()), **vars(recoding.measured()), **counted}
        columns = recoding.shown_counts()

        def facts(found: tuple[Any, ...]) -> MstFacts:
            (looked_up, crowds), unchanged = found
            return MstFacts(**known, risk=looked_up, crowds=crowds, distributions=(*columns, *unchanged))

        return together(risk, self.unchanged_counts(staged, audit)).then(facts)

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

    def losses(self, facts: MstFacts) -> Mapping[str, float]:
        extents = {extent.name: extent.extent for extent in facts.extents}
        return {of.name: extents.get(of.name, of.loss) for of in facts.levels if of.loss is not None}

    def sections(self, facts: MstFacts) -> list[Section]:
        return mst_sections(facts)

    def _extents(self, hierarchies: Mapping[str, Hierarchy]) -> Extents:
        shown = self.job.columns.publish
        return {name: Extent(hierarchies[name], how == ROUNDED) for name, how in shown.items()}

    def _promise(
        self, source: DataFrame, release: DataFrame, hierarchies: Mapping[str, Hierarchy], classes: DataFrame | None = None
    ) -> Pending[tuple[Verdict, ...]]:
        """k rows in every class, distinct values, then the other models. Columns with the same l are counted together."""
        names, least = list(hierarchies), self._distinct_values
        checks = [k_anonymity_check(release, names, self.job.privacy.k, None, classes)]
        for values in sorted(set(least.values())):
            columns = [name for name in least if least[name] == values]
            checks.append(l_diversity_check(release, names, columns, values))
        if not weighed(self.models):
            return together(*checks)
        models = self.models_of(source, release, hierarchies, weighed(self.models))
        return together(together(*checks), models).then(lambda found: (*found[0], *found[1]))


FAMILY = Family("mst", MstJob, MstPipeline.of, MstRecoding, Sample("census", census))
