"""The set_valued family in a run: reading, fit, audit and report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType

from anon_spark.auditing import (
    Kind,
    Verdict,
    verify_compatible,
    verify_draw,
    verify_fields,
    verify_graph,
    verify_labels,
    verify_nr_compat,
)
from anon_spark.auditing.guarantees.draw import draw_verdict
from anon_spark.auditing.guarantees.nonreciprocal import sound_graph, sound_labels
from anon_spark.auditing.guarantees.nonreciprocal_blocks import Promise, Sound, sound_blocks
from anon_spark.auditing.reading.item_sets import item_set
from anon_spark.auditing.truth.compatibility import nr_compat_check
from anon_spark.auditing.truth.linked import linked_check
from anon_spark.auditing.truth.nonreciprocal import fields_check, sound_rows
from anon_spark.columns import BASE, BLOCK, LINK, MAX_ERRORS, PART, ROWS, SLOT, SLOTS, UNCERTAIN, quoted
from anon_spark.config.options import options_of
from anon_spark.errors import ConfigurationError, DataError, GuaranteeUnreachable
from anon_spark.families.contract import Audit, Examined, Family, Pipeline, Shown, Staged, Worth
from anon_spark.families.crowds import crowds_to_be, frequent_items_to_be
from anon_spark.families.set_valued.anonymizer import DEFINITION_ONLY, SetValuedAnonymizer
from anon_spark.families.set_valued.facts import FrequentItem, Rebuilt, SetValuedFacts, SetValuedRisk
from anon_spark.families.set_valued.job import SetValuedJob
from anon_spark.families.set_valued.recoding import SetValuedRecoding
from anon_spark.families.set_valued.records import refuse_frequent_value
from anon_spark.families.set_valued.sections import ERROR_RATE, set_valued_sections
from anon_spark.families.set_valued.slots import SIZE
from anon_spark.families.set_valued.worth import counts_worth
from anon_spark.kernels.randomness import derived
from anon_spark.model.distributions import Crowds, crowds_of
from anon_spark.model.estimate import RULE
from anon_spark.model.facts import SizeRange
from anon_spark.model.findings import Finding
from anon_spark.model.guarantee import NonreciprocalAnonymity, NonreciprocalDiversity
from anon_spark.model.progress import Progress
from anon_spark.pending import Pending, together
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import refuse_several_rows
from anon_spark.report import Section
from anon_spark.report.formats import show
from anon_spark.risk import relink_verdict
from anon_spark.risk.item_sets.known_link import known_link_to_be
from anon_spark.risk.item_sets.reconstruction import reconstruction_to_be
from anon_spark.risk.item_sets.relink import relink_attack_to_be
from anon_spark.samples.baskets import baskets
from anon_spark.samples.sample import Sample

DRAWS_KEY = "draws"
DRAWS, BLOCKS = 256, 4  # of the simulated link attack


@dataclass(frozen=True)
class SetValuedPipeline(Pipeline[SetValuedJob, SetValuedRecoding, SetValuedFacts]):
    """The steps of one set_valued job. given: the key of the draws of the last fit."""

    given: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def unmeasured(self) -> str | None:
        return "for this family such numbers are not defined"

    @property
    def guarantee(self) -> NonreciprocalAnonymity | NonreciprocalDiversity:
        columns, options = self.job.columns, self.job.set_valued
        if self.job.privacy.l is None:
            return NonreciprocalAnonymity(self.job.degree, columns.items, columns.label)
        assert columns.label is not None, "l has a sensitive column"
        shifted = self.job.truth == "shift" and options.graph == "ring"
        return NonreciprocalDiversity(self.job.degree, columns.items, columns.label, shifted)

    @classmethod
    def of(cls, job: SetValuedJob, spark: SparkSession | None) -> SetValuedPipeline:
        return cls(job, {})

    @property
    def named(self) -> list[str]:
        return [self.job.columns.items, *self.job.columns.sensitive]

    @property
    def own_comments(self) -> dict[str, str]:
        drawn = dict.fromkeys(self.job.columns.sensitive, "Sensitive value of one of the records that the row may stand for.")
        return {
            BASE: "Items that the records of the row have, but for errors.",
            UNCERTAIN: "Items that the records of the row may or may not have.",
            MAX_ERRORS: "How many items of base and uncertain a record may differ in at most.",
            **drawn,
        }

    @property
    def hidden(self) -> list[str]:
        return [self.job.columns.items]

    def fingerprint(self) -> str:
        """Empty: the job has no hierarchies."""
        return ""

    def read(self, df: DataFrame) -> DataFrame:
        """The columns the draw depends on: item sets and sensitive values. Numbers of persons may change."""
        kept = (F.col(quoted(name)) for name in self.job.columns.sensitive)
        return df.select(F.sort_array(item_set(self.job.columns.items)).alias(self.job.columns.items), *kept)

    def check_types(self, df: DataFrame) -> None:
        name = self.job.columns.items
        kind = df.schema[name].dataType
        if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType)):
            raise ConfigurationError(f"columns.items {name} is {kind.simpleString()}: give a column of array<string>.")

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, persons, distinct item sets and items, rows without a list or without items; raises as a run would.

        Cost: three jobs, and one for persons; writes nothing.
        """
        columns, items = self.job.columns, F.col(quoted(self.job.columns.items))
        for person in self.persons:
            refuse_several_rows(df, person)
        listed = df.where(items.isNotNull())
        counts = df.agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(items.isNull()).alias("without"),
            F.count_if(F.size(items) == 0).alias("empty"),
            F.countDistinct(item_set(columns.items)).alias("sets"),
        ).collect()[0]
        in_scope = counts["rows"] - counts["without"]
        if counts["without"] and self.job.nulls == "value":
            raise DataError(
                f"columns.items {columns.items}: {counts['without']:,} rows have no list. An empty list is a record without "
                "items; to leave these rows out, set nulls: suppress.",
                rows=counts["without"],
            )
        self._refuse_too_few(listed, in_scope)
        return {
            "rows": counts["rows"],
            "distinct_item_sets": counts["sets"],
            "distinct_items": listed.select(F.explode(items)).distinct().count(),
            "rows_without_a_list": counts["without"],
            "rows_without_items": counts["empty"],
        }

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> SetValuedRecoding:
        job = self.job
        self.given[DRAWS_KEY] = derived(key, "draws")  # the order of rows is public, so it must not reveal the draws
        return SetValuedAnonymizer(
            items=job.columns.items,
            k=job.privacy.k,
            l=job.privacy.l,
            sensitive=job.columns.label,
            person=job.columns.person,
            nulls=job.nulls,
            **options_of(job.set_valued) | {"truth": job.truth},
            key=self.given[DRAWS_KEY],
            progress=progress,
        ).fit(df, workspace)

    def examine(self, staged: Staged[SetValuedRecoding]) -> Pending[Examined]:
        """The checks use the private graph of the run, which comes with the staged release."""
        columns, degree, recoding = self.job.columns, self.job.degree, staged.recoding
        evidence = recoding.evidence()
        linked = evidence["linked"]
        read, rows = staged.source, recoding.identity[0]
        checks = together(
            self._graph_checks(evidence, staged),
            fields_check(staged.release),
            linked_check(read, linked, columns.items, columns.sensitive),
            nr_compat_check(read, staged.release, columns.items, degree, columns.label, self.job.nulls, rows=rows),
            self._attacked(staged, linked),
        )

        def examined(found: tuple[Any, ...]) -> Examined:
            (promise, compatible), fields, records, (covered, account), attack = found
            return Examined(promise, [fields, records, compatible, covered], account, more=[attack])

        return checks.then(examined)

    def _graph_checks(
        self, evidence: Mapping[str, DataFrame], staged: Staged[SetValuedRecoding]
    ) -> Pending[tuple[list[Verdict], Verdict]]:
        """The promise, and compatibility: by one look at every block, and only if that finds a fault by counts of it."""
        wanted = Promise(
            self.job.degree, self.job.columns.items, self.job.columns.label, self.job.privacy.l, self.given.get(DRAWS_KEY)
        )
        linked, graph, edges = (evidence[name] for name in ("linked", "graph", "edges"))
        looked_at = sound_blocks(linked, staged.rows, graph, wanted)
        return looked_at.then(lambda sound: self._graph_verdicts(sound, linked, staged, edges))

    def _graph_verdicts(
        self, sound: Sound | None, linked: DataFrame, staged: Staged[SetValuedRecoding], edges: DataFrame
    ) -> tuple[list[Verdict], Verdict]:
        degree, label, values = self.job.degree, self.job.columns.label, self.job.privacy.l
        used, handed, items = staged.recoding.key, self.given.get(DRAWS_KEY), self.job.columns.items
        if sound is not None:
            labels = [] if label is None else [sound_labels(sound.records, values)]
            promise = [sound_graph(sound.records, sound.parts, degree), *labels, draw_verdict(sound.parts, 0, used, handed)]
            return promise, sound_rows(sound.edges)
        promise = [
            verify_graph(linked, staged.rows, edges, degree),
            *([] if label is None else [verify_labels(linked, staged.rows, edges, label, values)]),
            verify_draw(edges, used, handed),
        ]
        return promise, verify_compatible(linked, staged.rows, edges, items)

    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """The checks that do not need the private graph and draw."""
        columns = self.job.columns
        covered, account = verify_nr_compat(
            source, release, columns.items, self.job.degree, columns.label, self.job.nulls
        )
        return Examined([], [verify_fields(release), covered], account)

    def in_scope(self, source: DataFrame) -> DataFrame:
        """The rows that have a list."""
        return source.where(F.col(quoted(self.job.columns.items)).isNotNull())

    @property
    def shown(self) -> Shown:
        """Published are only items, which this family does not protect, and the sensitive column."""
        return Shown(sensitive=self.job.columns.sensitive)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset({DEFINITION_ONLY})

    def worth(self, facts: SetValuedFacts) -> Worth:
        """ER as the loss, and counts worse than the answer "none" (rows that have an item) or "all" (rows that lack some)."""
        error, queries = facts.measures.er, facts.queries
        if queries is None:
            return Worth(error, ERROR_RATE)
        kinds = {
            "rows that have an item, by base alone": (queries.present, queries.present_if_nothing_is_said),
            "rows that lack some items, by base alone": (queries.absent, queries.absent_if_nothing_is_said),
        }
        poor = tuple(kind for kind, (counted, unsaid) in kinds.items() if counted > unsaid)
        return Worth(error, ERROR_RATE, poor=poor)

    def attacks(self, facts: SetValuedFacts) -> list[Finding]:
        """Findings for simulated link attacks that exceed the promise by more than chance, but that the gate let pass."""
        text = "A simulated link attack by {} finds {}. Promised at most {:.4f}. " + RULE
        return [
            Finding("look", "attack", text.format(name, estimate, estimate.promise), estimate.rate)
            for name, estimate in facts.risk.link_attack.estimates.items()
            if estimate.noticed
        ]

    def facts(self, staged: Staged[SetValuedRecoding], audit: Audit) -> Pending[SetValuedFacts]:
        """Facts of the release; the success of link attacks is taken from the audit."""
        recoding, attacked = staged.recoding, audit.first(Kind.ATTACK).facts
        worth = counts_worth(recoding, self.job.columns.items)
        k = self.job.degree

        def facts(found: tuple[Any, ...]) -> SetValuedFacts:
            rebuilt, measured, items, (before, alone), (published, _), unchanged = found
            sizes = tuple(SizeRange(k << at, None, 0, rows) for at, rows in published.items() if at >= 0)
            return SetValuedFacts(
                **vars(recoding.facts()),
                **vars(measured),
                **vars(worth),
                definition_only=self.guarantee.definition_only,
                risk=SetValuedRisk(attacked["link_attack"], attacked["known_link"], Rebuilt.of(rebuilt)),
                frequent_items=tuple(
                    FrequentItem(label, records, certain, certain + sum(more)) for label, (records, certain, *more) in items
                ),
                distributions=unchanged,
                crowds=crowds_of(k, before, alone, sizes),
            )

        rebuilt = reconstruction_to_be(recoding.slots, self.job.set_valued.graph, k)
        counted = (self._items_to_be(staged), *self._crowds_to_be(recoding), self.unchanged_counts(staged, audit))
        return together(rebuilt, recoding.measured_to_be(), *counted).then(facts)

    def _items_to_be(self, staged: Staged[SetValuedRecoding]) -> Pending[list[tuple[str, tuple[int, ...]]]]:
        """The most frequent base items: records with them, rows that have them certainly, probably, and perhaps.

        Probably: as an item of the base that is uncertain; perhaps: as an uncertain item beside the base.
        """
        release, linked, exact = staged.release, staged.recoding.evidence()["linked"], F.col(MAX_ERRORS) == 0
        certain = F.when(exact, F.col(BASE)).otherwise(F.array_except(BASE, UNCERTAIN))
        probable = F.when(~exact, F.array_intersect(BASE, UNCERTAIN))
        thinkable = F.when(~exact, F.array_except(UNCERTAIN, BASE))
        lists = [(linked, [F.col(quoted(self.job.columns.items))]), (release, [certain, probable, thinkable])]
        return frequent_items_to_be(lists, (1, 2), self.named_from, staged.small)

    def _crowds_to_be(self, recoding: SetValuedRecoding) -> tuple[Pending[Crowds], Pending[Crowds]]:
        """Records by how many have the same items; and by how many rows may be theirs."""
        items = F.sort_array(item_set(self.job.columns.items))
        alike = recoding.evidence()["linked"].groupBy(items).agg(F.count(F.lit(1)).alias(ROWS))
        rows = recoding.slots.select(F.lit(1).cast("bigint").alias(ROWS), F.size(SLOTS).cast("bigint").alias(SIZE))
        return crowds_to_be(alike, self.job.degree), crowds_to_be(rows, self.job.degree, F.col(SIZE))

    def says(self, facts: SetValuedFacts) -> list[str]:
        """The chance to find a row, what it costs, and that items are not protected."""
        value = "" if self.job.columns.label is None else f", so which {self.job.columns.label},"
        chance = f"at most 1 in {facts.required_k}"
        promise = f"Whoever knows the items of everybody tells which row{value} is a person's with a chance of {chance}."
        error = facts.measures.er
        lost = [] if error is None else [f"A published row has {show(error)} wrong items for every item of its record."]
        return [promise, *lost, "The items themselves are not protected."]

    def sections(self, facts: SetValuedFacts) -> list[Section]:
        return set_valued_sections(facts)

    def _attacked(self, staged: Staged[SetValuedRecoding], linked: DataFrame) -> Pending[Verdict]:
        """Verdict on a simulated attack on fresh draws in some blocks: whether it finds no more rows than promised.

        Cost: DRAWS walks, in one block or spread over BLOCKS of them, and a comparison of some hundred records with every row.
        """
        recoding, degree = staged.recoding, self.job.degree
        blocks = recoding.slots.select(BLOCK).distinct().orderBy(F.xxhash64(BLOCK)).limit(BLOCKS).collect()
        draws = DRAWS // len(blocks)
        attacked = replace(recoding, slots=recoding.slots.where(F.col(BLOCK).isin([row[0] for row in blocks])))
        keys = [derived(recoding.key, f"attack {number}") for number in range(draws)]  # none is that of the release
        drawn = staged.workspace.store(attacked.drawn_again(keys, len(blocks)), "attack-draws")
        attacks = relink_attack_to_be(linked, staged.rows, drawn, self.job.columns.items, degree, recoding.records.rows)
        known = known_link_to_be(drawn, attacked.slots.select(LINK, BLOCK, PART, SLOT), degree)
        return together(attacks, known).then(lambda found: relink_verdict(found[0], found[1], degree, draws))

    def _refuse_too_few(self, listed: DataFrame, rows: int) -> None:
        """Raise as a run would: too few rows for k or l, or a sensitive value on too many of them."""
        name = "k" if self.job.privacy.l is None else "l"
        if 0 < rows < self.job.degree:
            raise GuaranteeUnreachable(
                f"{name} = {self.job.degree} is more than the {rows:,} rows of the table. Lower {name}.", rows=rows
            )
        if self.job.privacy.l is None or rows == 0:
            return
        label = F.col(quoted(str(self.job.columns.label)))
        most = int(listed.groupBy(label).agg(F.count(F.lit(1)).alias(ROWS)).agg(F.max(ROWS)).collect()[0][0])
        refuse_frequent_value(self.job.degree, str(self.job.truth), most, rows)


FAMILY = Family(
    "set_valued",
    SetValuedJob,
    SetValuedPipeline.of,
    SetValuedRecoding,
    Sample("baskets", baskets, share=0.2, fewest=500),
    draws=True,
)
