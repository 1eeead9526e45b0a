"""Pipeline steps shared by families with quasi-identifiers: columns, warnings, estimates, risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing import Kind, Verdict, completed, rows_in_scope
from anon_spark.auditing.reading.bounds import bounds_check, with_labels
from anon_spark.auditing.reading.values import HI, LO
from anon_spark.columns import ROWS, SHOWN_HIGH, SHOWN_LOW, quoted
from anon_spark.config import QuasiIdentifierJob
from anon_spark.families.contract import Audit, Pipeline, Shown, Staged
from anon_spark.families.crowds import crowds_to_be
from anon_spark.families.recoding import Recoding
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.tuples import TupleTable
from anon_spark.model.distributions import Crowds, crowds_of, rows_by_doublings
from anon_spark.model.estimate import ROUNDING, Estimate
from anon_spark.model.facts import CrowdRange, LookUp, LookUpFacts, LookUpRisk, SizeRange, UniqueRows
from anon_spark.model.findings import Finding
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Lattice, lattice_of
from anon_spark.pending import Pending, together
from anon_spark.primitives.bounds import bound_type, with_bounds
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.encoding import dictionaries, fractions, with_keys
from anon_spark.primitives.unseen import refuse_unseen
from anon_spark.report.columns import detail_words, known_words
from anon_spark.report.formats import show
from anon_spark.risk import CoverRisk, Homogeneity, LinkRisk
from anon_spark.risk.look_up.homogeneity import homogeneity_to_be
from anon_spark.risk.look_up.uniqueness import Uniqueness

GENERALIZED = {
    "levels": "groups of values", "edges": "groups of values", "intervals": "ranges of numbers", "date": "calendar units",
    "mask": "characters replaced by *", "top": "the value itself, or * for any value",
}  # fmt: skip
"""What a kind of hierarchy does, for readers of a release."""

CLASSES = "audited-classes"  # the published classes, as the audit stores them

Q = TypeVar("Q", bound=QuasiIdentifierJob)
R = TypeVar("R", bound=Recoding)
T = TypeVar("T", bound=LookUpFacts)


@dataclass(frozen=True)
class QuasiIdentifierPipeline(Pipeline[Q, R, T], Generic[Q, R, T]):
    """The steps that need only the columns' roles and hierarchies; a family adds its own."""

    job: Q

    @property
    def named(self) -> list[str]:
        return [*self.hierarchies, *self.unchanged]

    @property
    def labelled(self) -> list[str]:
        return [name for name in self.hierarchies if name not in self.job.columns.presented]

    def presented(self, staged: DataFrame, source: DataFrame, recoding: R) -> tuple[DataFrame, Sequence[Column] | None]:
        """Bounds beside the labels of the columns that the job publishes so. Cost: one broadcast; no action."""
        how = self.job.columns.presented
        if not how:
            return staged, None
        hierarchies = {name: self._whole(name) for name in how}
        kinds = {name: bound_type(hierarchy, source.schema[name].dataType) for name, hierarchy in hierarchies.items()}
        return with_bounds(staged, hierarchies, kinds), self._columns(recoding.published)

    def _columns(self, names: Sequence[str]) -> list[Column]:
        """The published columns, where bounds take the place of labels."""
        places = {name: place for place, name in enumerate(self.job.columns.presented)}
        columns = []
        for name in names:
            how = self.job.columns.presented.get(name)
            if how is None:
                columns.append(F.col(quoted(name)))
                continue
            low, high = F.col(f"{SHOWN_LOW}{places[name]}"), F.col(f"{SHOWN_HIGH}{places[name]}")
            if how == "range":
                columns.append(F.when(F.isnotnull(low), F.struct(low.alias(LO), high.alias(HI))).alias(name))
            else:
                columns += [low.alias(f"{name}_{LO}"), high.alias(f"{name}_{HI}")]
        return columns

    def presentation_check(self, staged: Staged[R]) -> Pending[tuple[Verdict, ...]]:
        how = self.job.columns.presented
        if not how or staged.columns is None:
            return Pending.known(())
        known = {name: self._whole(name) for name in how}
        return bounds_check(staged.rows, how, known, staged.columns).then(lambda verdict: (verdict,))

    def as_labels(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> DataFrame:
        """Bounds replaced by labels: those of the level in the commit where there is one, else the lowest that fits."""
        how = self.job.columns.presented
        return with_labels(release, how, {name: self._whole(name) for name in how}, metadata.get("levels"))

    @property
    def own_comments(self) -> dict[str, str]:
        texts = {}
        for name, spec in self.job.columns.quasi_identifiers.items():
            text = f"Generalized: {GENERALIZED[spec.kind]}. {self.levels_comment}"
            shown = self.job.columns.shown_as[name]
            ends = ("Least value", "Greatest value") if len(shown) == 2 else ("",)
            for column, end in zip(shown, ends, strict=True):
                texts[column] = f"{end} of the label of {name}. {text}" if end else text
        return texts

    @property
    def levels_comment(self) -> str:
        """Whether all rows of a column are generalized alike."""
        return "All rows have the same level of detail."

    def _whole(self, name: str) -> Hierarchy:
        hierarchy = self.hierarchies[name]
        assert isinstance(hierarchy, Hierarchy), "a job publishes bounds of intervals, or of dates with their domain"
        return hierarchy

    @property
    def shows_labels(self) -> bool:
        """Whether every quasi-identifier is published as a label of its hierarchy."""
        return True

    def check_types(self, df: DataFrame) -> None:
        with_keys(df, self.hierarchies)  # refuses types that have no hierarchy

    @property
    def shown(self) -> Shown:
        """Labels of the quasi-identifiers and kept columns may be known; in lattice a person may have several rows."""
        columns, names = self.job.columns, tuple(self.hierarchies)
        person = columns.person if self.counts_persons else None
        return Shown(names, names, columns.keep, columns.sensitive, person)

    def attacks(self, facts: T) -> list[Finding]:
        """Findings for a look-up that succeeds more often than 1 / k; one row is enough."""
        worst, promised = facts.risk.link_attack.worst, facts.risk.link_attack.promised_at_most
        if worst <= promised + ROUNDING:
            return []
        text = f"The simulated look-up finds a row with {worst:.4f} at worst, promised at most {promised:.4f}."
        return [Finding("look", "attack", text, worst)]

    def homogeneous(self, facts: T) -> Mapping[str, float]:
        return facts.risk.sensitive_value_shared_by_whole_class

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, distinct tuples, nulls, unseen values and lattice nodes; unseen values raise as in a run.

        Cost: two jobs, and one for persons; writes nothing.
        """
        keyed = with_keys(df, self.hierarchies)
        tuples = keyed.groupBy(*(F.col(quoted(name)) for name in self.hierarchies)).agg(F.count(F.lit(1)).alias(ROWS))
        counted = tuples.agg(F.count(F.lit(1)), F.coalesce(F.sum(ROWS), F.lit(0))).first()
        assert counted is not None
        entries = dictionaries(keyed, self.hierarchies, self.job.nulls, fractions(df, self.hierarchies))
        if self.job.on_unseen == "error":
            refuse_unseen(entries)
        person = self.job.columns.person
        return {
            "rows": int(counted[1]),
            **({"persons": df.select(quoted(person)).distinct().count()} if person else {}),
            "distinct_tuples": int(counted[0]),
            "lattice_nodes": self.lattice([entry.hierarchy for entry in entries]).size,
            "rows_with_unseen_values": max((entry.unseen_rows for entry in entries), default=0),
            "null_cells": sum(entry.null_rows for entry in entries),
        }

    def lattice(self, hierarchies: Sequence[Hierarchy]) -> Lattice:
        """The lattice of the job, if it is not too large for it."""
        return lattice_of(hierarchies)

    def says(self, facts: T) -> list[str]:
        """The crowd of a person, and what is left of each column."""
        k, names = self.job.privacy.k, known_words(list(self.hierarchies))
        crowd = [f"Whoever knows {names} of a person finds at least {show(k)} {self.guarantee.unit} that look alike."]
        return [*(crowd if k > 1 else []), *detail_words(self.losses(facts))]

    def losses(self, facts: T) -> Mapping[str, float]:
        """The share of its detail that each quasi-identifier lost."""
        return {}

    def in_scope(self, source: DataFrame) -> DataFrame:
        return rows_in_scope(source, self.audited_hierarchies(source), self.job.nulls)

    def crowds_before(self, counted: Frequencies) -> Pending[Crowds]:
        """Rows of the source by the size of their crowd, in doublings of k, and those that are alone.

        A size counts persons where the guarantee does; of tuples in files it counts rows. Cost: none, or a scan of the tuples.
        """
        if counted.held is not None:
            return Pending.known(rows_by_doublings(*_crowds(counted.held.table), self.job.privacy.k))
        tuples = counted.files.frame.groupBy(*code_columns(len(self.hierarchies))).agg(F.sum(ROWS).alias(ROWS))
        return crowds_to_be(tuples, self.job.privacy.k)

    def look_up(self, attack: LinkRisk | CoverRisk) -> LookUp:
        """How often a sampled row is found."""
        promised = 1 / self.job.privacy.k
        return LookUp(
            sampled_rows=attack.rows,
            expected_success_before=attack.before_expected,
            expected_success_after=attack.after_expected,
            worst_success_after=attack.after_worst,
            promised_at_most=promised,
            **Estimate(attack.after_expected, attack.after_error, promised).facts(),
        )

    def look_up_risk(
        self, staged: Staged[R], audit: Audit, counted: Frequencies, attack: Pending[LookUp]
    ) -> Pending[tuple[LookUpRisk, tuple[CrowdRange, ...]]]:
        """The gain of an attacker who knows the quasi-identifiers, and the crowds before and after."""
        smallest = audit.first(Kind.PROMISE).facts["smallest"]
        shared = homogeneity_to_be(staged.release, list(self.hierarchies), self.job.columns.sensitive)

        def risk(
            found: tuple[LookUp, Sequence[Homogeneity], Crowds]
        ) -> tuple[LookUpRisk, tuple[CrowdRange, ...]]:
            look_up, homogeneous, (before, alone) = found
            unique = UniqueRows(Uniqueness(counted.rows, counted.tuples, alone).share, 0.0 if smallest > 1 else None)
            crowds = crowds_of(self.job.privacy.k, before, alone, self.class_sizes(audit))
            return LookUpRisk(unique, look_up, {entry.column: entry.share for entry in homogeneous}), crowds

        return together(attack, shared, self.crowds_before(counted)).then(risk)

    def counted_classes(self, staged: Staged[R]) -> DataFrame | None:
        """The published classes as the audit counted and stored them; None for a small table: it counts them again."""
        return None if staged.small else staged.workspace.stored(CLASSES)

    def class_sizes(self, audit: Audit) -> tuple[SizeRange, ...]:
        """Sizes of the published classes, as the audit counted them."""
        return tuple(SizeRange(*bucket) for bucket in audit.first(Kind.PROMISE).facts["histogram"])

    def hierarchies_of(self, source: DataFrame) -> dict[str, Hierarchy]:
        """The hierarchies as they apply to the source: rules completed, with a null leaf if nulls are kept."""
        keyed = with_keys(source, self.hierarchies)
        entries = dictionaries(keyed, self.hierarchies, self.job.nulls, fractions(source, self.hierarchies))
        return {entry.name: entry.hierarchy for entry in entries}

    def audited_hierarchies(self, source: DataFrame) -> dict[str, Hierarchy]:
        """The job's hierarchies, rules completed by the audit's own reading of the source."""
        return completed(source, self.hierarchies, self.job.nulls)


def persons_of(table: TupleTable) -> Ints:
    """Persons, or rows where they are not counted, of each tuple."""
    if table.persons is None:
        return table.rows
    persons = table.persons.copy()
    if table.sets is not None:
        times = np.repeat(table.sets.multiplicity, np.diff(table.sets.offsets))
        np.add.at(persons, table.sets.members, times)
    return persons


def _crowds(table: TupleTable) -> tuple[Ints, Ints]:
    """Size of the crowd and rows of each tuple that the source has."""
    here = table.rows > 0
    return persons_of(table)[here], table.rows[here]
