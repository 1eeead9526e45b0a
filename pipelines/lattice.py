"""The lattice family in a run: what it reads, fits, has audited and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.audit import (
    RowAccount,
    Verdict,
    published_classes,
    verify_k_anonymity,
    verify_order,
    verify_recoding,
    verify_rows,
)
from anon_spark.audit.persons import with_persons
from anon_spark.config import LatticeJob
from anon_spark.errors import ConfigurationError
from anon_spark.families.lattice import LatticeAnonymizer, LatticeRecoding
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.model.estimate import Estimate
from anon_spark.model.guarantee import KAnonymity
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.progress import Progress
from anon_spark.primitives.recoding import Recoding
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import Section, lattice_sections
from anon_spark.report.lattice import LOSS_NAMES
from anon_spark.risk import homogeneity, link_attack
from pipelines.findings import Worth
from pipelines.gate import refusing, require_whole, shown
from pipelines.relational import RelationalPipeline

HELD = "audited-rows"  # in the workspace: the rows of the source that the release holds, recoded, with their persons


@dataclass(frozen=True)
class LatticePipeline(RelationalPipeline):
    """The steps of one lattice job; everything that needs no row of the table is done when it is made."""

    job: LatticeJob
    hierarchies: Mapping[str, Hierarchy | Rule]

    @classmethod
    def of(cls, job: LatticeJob, spark: SparkSession | None) -> LatticePipeline:
        hierarchies = load_hierarchies(job.columns.quasi_identifiers, spark)
        _refuse_levels(job.choice.node or (), hierarchies)
        return cls(job, hierarchies)

    @property
    def guarantee(self) -> KAnonymity:
        return KAnonymity(self.job.privacy.k, tuple(self.hierarchies), self.job.columns.person)

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> LatticeRecoding:
        job = self.job
        own = job.lattice
        return LatticeAnonymizer(
            k=job.privacy.k,
            quasi_identifiers=self.hierarchies,
            sensitive=job.columns.sensitive,
            keep=job.columns.keep,
            person=job.columns.person,
            suppression=job.privacy.suppression,
            nulls=job.nulls,
            on_unseen=job.on_unseen,
            search=own.search,
            depth=own.depth,
            refine=own.refine,
            loss=own.loss,
            class_column=own.class_column,
            choose=job.choice.model_dump(exclude_none=True),
            progress=progress,
        ).fit(df, workspace)

    @refusing
    def verify(
        self, source: DataFrame, staged: DataFrame, recoding: LatticeRecoding, key: DataFrame, workspace: Workspace
    ) -> tuple[list[Verdict], RowAccount]:
        """Everything that must hold before a staged release is published.

        Hierarchies are the job's, persons the source's. What two checks look at is stored once: the audit's count of the
        published classes, and the rows of the source that the release holds.
        """
        release = shown(staged, recoding.published)
        columns = self._column_verdict(release)
        require_whole(columns, release, self.job.columns.published)
        recoded = self._recoded(source, recoding.levels)
        classes = workspace.store(published_classes(release, list(recoded), None, self._unchanged), "audited-classes")
        k_anonymity = self._anonymity(source, release, recoded, classes, workspace)
        truthfulness, account = self._truth(source, release, recoded, classes)
        assert recoding.fitted is not None, "a fit inside a run keeps its counts"
        counted, chosen = recoding.fitted.frequencies, recoding.chosen
        claimed = {
            "suppressed": chosen.suppressed,
            "dropped_nulls": counted.dropped_nulls,
            "dropped_unseen": counted.dropped_unseen,
        }
        figures = {
            "classes": (chosen.classes, k_anonymity.facts["classes"]),
            "k": (chosen.k, min(chosen.k, k_anonymity.facts["smallest"])),  # no class is smaller
        }
        in_scope = account.source - account.dropped_nulls - account.dropped_unseen
        rows = verify_rows(account, self.job.privacy.budget(in_scope), claimed, figures)
        return [columns, k_anonymity, truthfulness, rows, verify_order(staged, key, recoding.published)], account

    def verify_published(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> list[Verdict]:
        """What can be verified of a release that stands: its levels are in the metadata of its commit.

        Persons are not published: they are counted in the source, on the rows that the classes of the release hold.
        """
        levels = metadata.get("levels", {})
        if set(levels) != set(self.hierarchies):
            raise ConfigurationError(
                "The release that stands has other quasi-identifiers than the job. Audit it with the job that made it."
            )
        columns = self._column_verdict(release)
        if set(self.published) - set(release.columns):
            return [columns]
        recoded = self._recoded(source, levels)
        truthfulness, account = self._truth(source, release, recoded)
        in_scope = account.source - account.dropped_nulls - account.dropped_unseen
        rows = verify_rows(account, self.job.privacy.budget(in_scope), {})
        k_anonymity = [self._anonymity(source, release, recoded)]
        if self.job.columns.person is not None:  # and k rows, whatever else it shows
            k_anonymity.insert(0, verify_k_anonymity(release, list(recoded), self.job.privacy.k))
        return [columns, *k_anonymity, truthfulness, rows]

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release, with the person each belongs to where a person may have several: as the audit stored them."""
        person = self.job.columns.person
        return (release, None) if person is None else (workspace.stored(HELD), person)

    def metadata(self, recoding: LatticeRecoding) -> dict[str, Any]:
        """What the commit says beside the run: nothing that the release does not show."""
        return {"k": self.job.privacy.k, "levels": recoding.levels}

    def risk(
        self, source: DataFrame, release: DataFrame, recoding: LatticeRecoding, verdicts: Sequence[Verdict], rows: int
    ) -> dict[str, Any]:
        """What an attacker gains, as plain numbers; counts made on the way are used again."""
        classes = {verdict.name: verdict.facts for verdict in verdicts}[f"{self.job.privacy.k}-anonymity"]
        assert recoding.fitted is not None, "a fit inside a run keeps its counts"
        before = self.unique_before(recoding.fitted.frequencies)
        link = link_attack(source, release, recoding.recoded(), rows=rows)
        found = homogeneity(release, list(self.hierarchies), self.job.columns.sensitive)
        return {
            "unique_rows": {"before": before, "after": 0.0 if classes["smallest"] > 1 else None},
            "link_attack": {
                "sampled_rows": link.rows,
                "expected_success_before": link.before_expected,
                "expected_success_after": link.after_expected,
                "worst_success_after": link.after_worst,
                "promised_at_most": 1 / self.job.privacy.k,
                **Estimate(link.after_expected, link.after_error, 1 / self.job.privacy.k).facts(),
            },
            "sensitive_value_shared_by_whole_class": {entry.column: entry.share for entry in found},
        }

    def worth(self, facts: Mapping[str, Any]) -> Worth:
        """The loss that the search minimized, and the columns on their top level."""
        tops = {one["name"]: one["level"] == one["height"] for one in facts["attributes"]}
        lost = tuple(name for name, top in tops.items() if top)
        return Worth(facts["chosen"]["loss"], LOSS_NAMES[facts["loss"]], lost, all(tops.values()))

    def sections(self, facts: Mapping[str, Any]) -> list[Section]:
        return lattice_sections(facts)

    def facts(self, recoding: Recoding, verdicts: Sequence[Verdict], risk: Mapping[str, Any]) -> dict[str, Any]:
        """The recoding's facts with class sizes and risk."""
        return {**recoding.facts(), "class_sizes": self.buckets(verdicts), "risk": dict(risk)}

    def _recoded(self, source: DataFrame, levels: Mapping[str, int]) -> dict[str, tuple[Hierarchy, int]]:
        """Quasi-identifier → (hierarchy, level): the job's hierarchies on the levels that somebody says were chosen."""
        return {name: (hierarchy, int(levels[name])) for name, hierarchy in self.audited_hierarchies(source).items()}

    def _anonymity(
        self,
        source: DataFrame,
        release: DataFrame,
        recoded: Mapping[str, tuple[Hierarchy, int]],
        classes: DataFrame | None = None,
        workspace: Workspace | None = None,
    ) -> Verdict:
        """k-anonymity; persons are counted in the source, on the rows that the classes of the release hold."""
        person, names = self.job.columns.person, list(recoded)
        if person is None:
            return verify_k_anonymity(release, names, self.job.privacy.k, None, classes)
        held = with_persons(source, release, recoded, person, self.job.nulls, self._unchanged)
        if workspace is not None:
            held = workspace.store(held, HELD)
        return verify_k_anonymity(held, names, self.job.privacy.k, person)

    def _truth(
        self,
        source: DataFrame,
        release: DataFrame,
        recoded: Mapping[str, tuple[Hierarchy, int]],
        classes: DataFrame | None = None,
    ) -> tuple[Verdict, RowAccount]:
        return verify_recoding(source, release, recoded, self._unchanged, self.job.nulls, classes)


def _refuse_levels(node: Sequence[int], hierarchies: Mapping[str, Hierarchy | Rule]) -> None:
    """A chosen level that a hierarchy does not have; that of a rule is known with the values only."""
    for (name, hierarchy), level in zip(hierarchies.items(), node, strict=False):
        if isinstance(hierarchy, Hierarchy) and level > hierarchy.height:
            raise ConfigurationError(f"lattice.choose.node: {name} has levels 0 to {hierarchy.height}, not {level}.")
