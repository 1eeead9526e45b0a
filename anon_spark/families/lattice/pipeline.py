"""The lattice family in a run: reading, fit, audit and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import (
    RowAccount,
    Verdict,
    published_classes,
    verify_k_anonymity,
    verify_recoding,
)
from anon_spark.auditing.guarantees.k_anonymity import k_anonymity_check
from anon_spark.auditing.guarantees.population import completed_with_population, population_check
from anon_spark.auditing.release.content import content_of
from anon_spark.auditing.release.persons import with_persons
from anon_spark.auditing.truth.full_domain import recoding_check
from anon_spark.columns import quoted
from anon_spark.config.options import options_of
from anon_spark.errors import ConfigurationError
from anon_spark.families.contract import Audit, Examined, Family, Staged, Worth
from anon_spark.families.lattice.anonymizer import LatticeAnonymizer
from anon_spark.families.lattice.bounded import searches_one_k
from anon_spark.families.lattice.facts import LOSS_NAMES, LatticeFacts
from anon_spark.families.lattice.job import LatticeJob
from anon_spark.families.lattice.recoding import LatticeRecoding
from anon_spark.families.lattice.sections import lattice_sections
from anon_spark.families.quasi_identifiers import CLASSES
from anon_spark.families.sensitive import SensitivePipeline, load_distances, model_spreads
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.io.tables import Snapshot, read_snapshot
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.tuples import TupleTable
from anon_spark.model.distributions import label_distribution
from anon_spark.model.facts import Distribution, LabelCount
from anon_spark.model.guarantee import AttributeProtection, KAnonymity
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.lattice import Lattice, lattice_of
from anon_spark.model.progress import Progress
from anon_spark.pending import Pending, together
from anon_spark.primitives.encoding import with_keys
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns
from anon_spark.report import Section
from anon_spark.risk.look_up.frequent import frequent_values_to_be
from anon_spark.risk.look_up.link import link_attack_to_be
from anon_spark.risk.republication.versions import Version
from anon_spark.samples.census import census
from anon_spark.samples.sample import Sample

MOST_COUNTED = 1_000  # labels of a column that are counted in a large release
HELD = "audited-rows"  # in the workspace: the rows of the source that the release holds, recoded, with their persons


@dataclass(frozen=True)
class LatticePipeline(SensitivePipeline[LatticeJob, LatticeRecoding, LatticeFacts]):
    """The steps of one lattice job; everything that needs no row of the table is done in `of`.

    people: the population, at a pinned version; kept: the levels of the series that an increment is added to.
    """

    people: Snapshot | None = None
    kept: Mapping[str, int] | None = None

    @classmethod
    def of(cls, job: LatticeJob, spark: SparkSession | None) -> LatticePipeline:
        hierarchies = load_hierarchies(job.columns.quasi_identifiers, spark)
        _refuse_levels(job.choice.node or (), hierarchies)
        population = None if job.population is None or spark is None else read_snapshot(spark, job.population, "population")
        return cls(job, hierarchies, load_distances(job, spark), population)

    def check_types(self, df: DataFrame) -> None:
        super().check_types(df)
        if self.population is not None:
            with_keys(self.population, self.hierarchies)

    @property
    def population(self) -> DataFrame | None:
        """The quasi-identifiers of the population, by their names in the job."""
        if self.people is None or self.job.population is None:
            return None
        names = {name: self.job.population.columns.get(name, name) for name in self.hierarchies}
        require_columns(self.people.frame, list(names.values()))
        return self.people.frame.select(*(F.col(quoted(there)).alias(name) for name, there in names.items()))

    def fingerprint(self) -> str:
        """As in every family, with the population's version or content."""
        parts = [super().fingerprint()]
        population = self.population
        if self.people is not None and population is not None:
            version = None if self.people.version is None else f"{self.people.table_id} {self.people.version}"
            parts.append(version or content_of(population, population.columns))
        return "\n".join(parts)

    @property
    def guarantee(self) -> KAnonymity | AttributeProtection:
        privacy = self.job.privacy
        anonymity = KAnonymity(privacy.k, tuple(self.hierarchies), self.job.columns.person, least=self._least_k)
        if not self.models and privacy.map_k is None and privacy.presence is None:
            return anonymity
        return AttributeProtection(anonymity, self.models, privacy.map_k, privacy.presence_ends)

    @property
    def named_from(self) -> int:
        """k, or where a population protects that of the population."""
        return max(self.job.privacy.k, self.job.privacy.map_k or 2)

    @property
    def _least_k(self) -> int:
        """1 where a class must have several rows in a population."""
        return 2 if self.job.privacy.map_k is None else 1

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> LatticeRecoding:
        job = self.job
        return LatticeAnonymizer(
            k=job.privacy.k,
            quasi_identifiers=self.hierarchies,
            sensitive=job.columns.sensitive,
            models=self.models,
            map_k=job.privacy.map_k,
            presence=job.privacy.presence,
            keep=job.columns.keep,
            person=job.columns.person,
            suppression=job.privacy.suppression,
            nulls=job.nulls,
            on_unseen=job.on_unseen,
            **options_of(job.lattice, "levels") | {"choose": self._choice},
            others_wait=self.kept is not None,
            progress=progress,
        ).fit(df, workspace, self.population)

    def lattice(self, hierarchies: Sequence[Hierarchy]) -> Lattice:
        options = self.job.lattice
        return lattice_of(hierarchies, searches_one_k(options.search, options.loss, self.job.choice.k))

    @property
    def counts_persons(self) -> bool:
        return True

    @property
    def _choice(self) -> dict[str, Any]:
        if self.kept is None:
            return self.job.choice.model_dump(exclude_none=True)
        return {"node": [self.kept[name] for name in self.hierarchies]}

    def budget(self, rows: int) -> int:
        """All rows where those of small classes wait for a later increment."""
        return rows if self.kept is not None else self.job.privacy.budget(rows)

    def examine(self, staged: Staged[LatticeRecoding]) -> Pending[Examined]:
        """The checks use the hierarchies of the job and the persons of the source.

        Frames that two checks need are stored once: the audit's count of the published classes, unless it is counted again
        faster, and the rows of the source that the release holds.
        """
        source, release, chosen = staged.source, staged.release, staged.recoding.chosen
        recoded = self._recoded(source, staged.recoding.levels)
        classes = published_classes(release, list(recoded), None, self.unchanged)
        if not staged.small:
            classes = staged.workspace.store(classes, CLASSES)
        promise = self._anonymity(source, release, recoded, classes, staged.workspace)
        models = self._models_check(source, release, staged.recoding.levels)
        truth = recoding_check(source, release, recoded, self.unchanged, self.job.nulls, classes, staged.small)

        def examined(found: tuple[Verdict, list[Verdict], tuple[Verdict, RowAccount]]) -> Examined:
            anonymity, of_models, (truthful, account) = found
            figures = {
                "classes": (chosen.classes, anonymity.facts["classes"]),
                "k": (chosen.k, min(chosen.k, anonymity.facts["smallest"])),  # no class is smaller
            }
            return Examined([anonymity, *of_models], [truthful], account, figures)

        return together(promise, models, truth).then(examined)

    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """The checks use the levels in the metadata of the commit.

        Persons are not published: they are counted in the source, on the rows that the classes of the release hold.
        """
        levels = metadata.get("levels", {})
        if set(levels) != set(self.hierarchies):
            raise ConfigurationError(
                "The current release has other quasi-identifiers than the job. Audit it with the job that made it."
            )
        recoded = self._recoded(source, levels)
        truth, account = verify_recoding(source, release, recoded, self.unchanged, self.job.nulls)
        promise = [self._anonymity(source, release, recoded).get()]
        if self.job.columns.person is not None and self.job.privacy.k > 1:  # k rows are required as well
            promise.insert(0, verify_k_anonymity(release, list(recoded), self.job.privacy.k))
        promise += self._models_check(source, release, levels).get()
        return Examined(promise, [truth], account)

    def behind(self, staged: Staged[LatticeRecoding]) -> DataFrame:
        """The rows whose class is published, as the audit stored them."""
        return staged.workspace.stored(HELD)

    def behind_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> DataFrame:
        recoded, person = self._recoded(source, metadata["levels"]), str(self.job.columns.person)
        return with_persons(source, release, recoded, person, self.job.nulls, self.unchanged)

    def continuing(self, metadata: Mapping[str, Any]) -> LatticePipeline:
        """With the levels of the series, unless every increment is searched anew."""
        return replace(self, kept=dict(metadata["levels"])) if self.job.keeps_levels else self

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release; if persons may have several rows, with the persons, as the audit stored them."""
        person = self.job.columns.person
        return (release, None) if person is None else (workspace.stored(HELD), person)

    def metadata(self, recoding: LatticeRecoding) -> dict[str, Any]:
        """The metadata with the levels, which the release shows."""
        return {**super().metadata(recoding), "levels": recoding.levels}

    @property
    def unmeasured(self) -> str | None:
        return None

    def version(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any], rows: int) -> Version:
        """The release by the levels of its commit."""
        levels = metadata.get("levels", {})
        if set(levels) != set(self.hierarchies):
            raise ConfigurationError("The release has other quasi-identifiers than the job.")
        labelled = self.as_labels(source, release, metadata)
        return Version(source, labelled, self.audited_hierarchies(source), rows, levels)

    def facts(self, staged: Staged[LatticeRecoding], audit: Audit) -> Pending[LatticeFacts]:
        """Facts of the release; counts of fit and audit are reused."""
        recoding = staged.recoding
        frames, classes = (staged.source, staged.release), self.counted_classes(staged)
        attack = link_attack_to_be(*frames, recoding.recoded(), audit.account.source, classes=classes)
        risk = self.look_up_risk(staged, audit, recoding.counted, attack.then(self.look_up))
        known = {**vars(recoding.facts()), "class_sizes": self.class_sizes(audit), "models": model_spreads(audit)}

        def facts(found: tuple[Any, ...]) -> LatticeFacts:
            (looked_up, crowds), columns, unchanged = found
            return LatticeFacts(**known, risk=looked_up, crowds=crowds, distributions=(*columns, *unchanged))

        labels = self._label_counts(staged, audit.account.published)
        return together(risk, labels, self.unchanged_counts(staged, audit)).then(facts)

    def _label_counts(self, staged: Staged[LatticeRecoding], published: int) -> Pending[tuple[Distribution, ...]]:
        """Rows before and after by label of each quasi-identifier. Cost: none where the driver holds the tuples, else a scan."""
        recoding, k = staged.recoding, self.named_from
        entries, recoded, held = recoding.counted.dictionaries, recoding.recoded(), recoding.counted.held

        def counts(shown: Mapping[str, Any], often: Sequence[Any]) -> tuple[Distribution, ...]:
            levels = [by_level(*recoded[entry.name], shown[entry.name]) for entry in entries]
            return tuple(
                label_distribution(entry.name, entry.hierarchy, entry.rows_by_leaf(), by_code, k, seen, published)
                for entry, by_code, seen in zip(entries, levels, often, strict=True)
            )

        if held is not None:
            return Pending.known(counts(recoding.shown_rows(held), rarity(held.table, recoding.counted.hierarchies)))
        names = list(recoded)
        frames = (staged.source, staged.release)
        counted = frequent_values_to_be(*frames, [], k, MOST_COUNTED, only_after=names, small=staged.small)
        often = [entry.rows_by_leaf() if self.job.columns.person is None else entry.rows_by_leaf() * 0 for entry in entries]
        return counted.then(lambda found: counts({name: codes_of(*recoded[name], found[name]) for name in names}, often))

    def worth(self, facts: LatticeFacts) -> Worth:
        """The loss that the search minimized, and the columns on their top level."""
        lost = tuple(attribute.name for attribute in facts.attributes if attribute.level == attribute.height)
        losses = list(facts.detail_lost.values())
        loss = sum(losses) / len(losses) if facts.others_wait else facts.chosen.loss  # rows that wait are not lost
        return Worth(loss, LOSS_NAMES[facts.loss], lost, len(lost) == len(facts.attributes))

    def losses(self, facts: LatticeFacts) -> Mapping[str, float]:
        return facts.detail_lost

    def sections(self, facts: LatticeFacts) -> list[Section]:
        return lattice_sections(facts)

    def _recoded(self, source: DataFrame, levels: Mapping[str, int]) -> dict[str, tuple[Hierarchy, int]]:
        """Quasi-identifier → (hierarchy, level): the job's hierarchies on the claimed levels."""
        return {name: (hierarchy, int(levels[name])) for name, hierarchy in self.audited_hierarchies(source).items()}

    def _anonymity(
        self,
        source: DataFrame,
        release: DataFrame,
        recoded: Mapping[str, tuple[Hierarchy, int]],
        classes: DataFrame | None = None,
        workspace: Workspace | None = None,
    ) -> Pending[Verdict]:
        """k-anonymity; persons are counted in the source, on the rows that the classes of the release hold."""
        person, names = self.job.columns.person, list(recoded)
        if person is None:
            return k_anonymity_check(release, names, self.job.privacy.k, None, classes, self._least_k)
        held = with_persons(source, release, recoded, person, self.job.nulls, self.unchanged)
        if workspace is not None:
            held = workspace.store(held, HELD)
        return k_anonymity_check(held, names, self.job.privacy.k, person, least=self._least_k)

    def _models_check(self, source: DataFrame, release: DataFrame, levels: Mapping[str, int]) -> Pending[list[Verdict]]:
        """The models of the sensitive columns, and what is kept in the population."""
        job, recoded = self.job, self._recoded(source, levels)
        checks: list[Pending[tuple[Verdict, ...]]] = []
        if self.models:
            hierarchies = {name: hierarchy for name, (hierarchy, _) in recoded.items()}
            checks.append(self.models_of(source, release, hierarchies, self.models))
        if self.population is not None:
            columns = {name: name for name in self.hierarchies}
            known = completed_with_population(source, self.population, columns, self.hierarchies, job.nulls)
            there = {name: (hierarchy, int(levels[name])) for name, hierarchy in known.items()}
            kept = (job.privacy.map_k, job.privacy.presence_ends)
            checks.append(population_check(release, self.population, there, columns, *kept, source, job.nulls))
        return together(*checks).then(lambda found: [verdict for part in found for verdict in part])


def by_level(hierarchy: Hierarchy, level: int, rows: Ints) -> list[Ints]:
    """Rows of the release by level and code, where one level is published."""
    return [
        rows if at == level else np.zeros(hierarchy.cardinality(at), dtype=np.int64) for at in range(hierarchy.height + 1)
    ]


def rarity(table: TupleTable, hierarchies: Sequence[Hierarchy]) -> list[Ints]:
    """By leaf of each hierarchy, how many rows have it; where persons are counted, at least so many persons."""
    counts = table.rows if table.persons is None else table.persons
    return [
        np.bincount(codes, counts, hierarchy.leaf_count).astype(np.int64)
        for codes, hierarchy in zip(table.codes, hierarchies, strict=True)
    ]


def codes_of(hierarchy: Hierarchy, level: int, counted: Sequence[LabelCount]) -> Ints:
    """Rows of the release by code of a level, from counts of labels."""
    code_of = {label: code for code, label in enumerate(hierarchy.labels[level])}
    rows = np.zeros(hierarchy.cardinality(level), dtype=np.int64)
    for count in counted:
        rows[code_of[count.label]] += count.after
    return rows


def _refuse_levels(node: Sequence[int], hierarchies: Mapping[str, Hierarchy | Rule]) -> None:
    """Refuse a level that a hierarchy does not have; the levels of a rule are known only with its values."""
    for (name, hierarchy), level in zip(hierarchies.items(), node, strict=False):
        if isinstance(hierarchy, Hierarchy) and level > hierarchy.height:
            raise ConfigurationError(f"lattice.choose.node: {name} has levels 0 to {hierarchy.height}, not {level}.")


FAMILY = Family("lattice", LatticeJob, LatticePipeline.of, LatticeRecoding, Sample("census", census))
