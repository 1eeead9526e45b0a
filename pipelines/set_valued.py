"""The set_valued family in a run: what it reads, fits, has audited and reports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType

from anon_spark.audit import (
    RowAccount,
    Verdict,
    verify_columns,
    verify_compatible,
    verify_fields,
    verify_graph,
    verify_labels,
    verify_nr_compat,
    verify_one_row_each,
    verify_order,
    verify_rows,
)
from anon_spark.audit.item_sets import item_set
from anon_spark.audit.values import hashed
from anon_spark.columns import BASE, BLOCK, CHOSEN, LINK, MAX_ERRORS, PART, ROUND, ROWS, SLOT, UNCERTAIN, quoted
from anon_spark.config import SetValuedJob
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.set_valued import SetValuedAnonymizer, SetValuedRecoding
from anon_spark.families.set_valued.anonymizer import DEFINITION_ONLY
from anon_spark.families.set_valued.block import CHOICE
from anon_spark.families.set_valued.queries import count
from anon_spark.kernels.randomness import uniform
from anon_spark.metrics.query_error import Workload, draw_queries, error_between, error_of_silence, matching_rows
from anon_spark.model.estimate import RULE, Estimate
from anon_spark.model.findings import Finding
from anon_spark.model.guarantee import NonreciprocalAnonymity, NonreciprocalDiversity
from anon_spark.model.progress import Progress
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import refuse_several_rows, require_columns
from anon_spark.report import Section, set_valued_sections
from anon_spark.report.set_valued import MEASURES
from anon_spark.risk import known_link, reconstruction, relink_attack
from anon_spark.risk.relink import SIGNIFICANT
from pipelines.findings import Shown, Worth
from pipelines.gate import refusing, require_whole, shown
from pipelines.relational import without_order

LINK_ATTACK = "link attack"
DRAWS_KEY = "draws"
DRAWS, BLOCKS = 256, 4  # of the simulated link attack
QUERIES = 100
PRESENT, ABSENT = 1, 5  # items of a query of each type
QUERY_SEED = 1


@dataclass(frozen=True)
class SetValuedPipeline:
    """The steps of one set_valued job. given: the key of the draws that the last fit was handed."""

    job: SetValuedJob
    given: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def guarantee(self) -> NonreciprocalAnonymity | NonreciprocalDiversity:
        columns, own = self.job.columns, self.job.set_valued
        if self.job.privacy.l is None:
            return NonreciprocalAnonymity(self.job.degree, columns.items, columns.label)
        assert columns.label is not None, "l has a sensitive column"
        shifted = self.job.truth == "shift" and own.graph == "ring"
        return NonreciprocalDiversity(self.job.degree, columns.items, columns.label, shifted)

    @property
    def published(self) -> list[str]:
        return list(self.job.columns.published)

    def fingerprint(self) -> str:
        """Nothing stands behind the job file."""
        return ""

    def read(self, df: DataFrame) -> DataFrame:
        """What the draw depends on: item sets and sensitive values. Persons may be numbered anew, they are the same."""
        kept = (F.col(quoted(name)) for name in self.job.columns.sensitive)
        return df.select(F.sort_array(item_set(self.job.columns.items)).alias(self.job.columns.items), *kept)

    def check_columns(self, df: DataFrame) -> None:
        columns = self.job.columns
        require_columns(df, [columns.items, *columns.sensitive, *columns.identifiers, *self._person])
        kind = df.schema[columns.items].dataType
        if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType)):
            raise ConfigurationError(f"columns.items {columns.items} is {kind.simpleString()}: give a column of array<string>.")
        for name in columns.sensitive:
            if without_order(df.schema[name].dataType):
                raise ConfigurationError(f"Column {name}: a map or variant cannot be published. Turn it into a text.")

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, persons, distinct item sets and items, rows without a list or without items; raises as a run would.

        Cost: three jobs, and one for persons; writes nothing.
        """
        columns, items = self.job.columns, F.col(quoted(self.job.columns.items))
        for person in self._person:
            refuse_several_rows(df, person)
        listed = df.where(items.isNotNull())
        found = df.agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(items.isNull()).alias("without"),
            F.count_if(F.size(items) == 0).alias("empty"),
            F.countDistinct(item_set(columns.items)).alias("sets"),
        ).collect()[0]
        in_scope = found["rows"] - found["without"]
        if found["without"] and self.job.nulls == "value":
            raise DataError(
                f"columns.items {columns.items}: {found['without']:,} rows have no list. An empty list is a record without "
                "items; to leave these rows out, set nulls: suppress.",
                rows=found["without"],
            )
        self._refuse_too_few(listed, in_scope)
        return {
            "rows": found["rows"],
            "distinct_item_sets": found["sets"],
            "distinct_items": listed.select(F.explode(items)).distinct().count(),
            "rows_without_a_list": found["without"],
            "rows_without_items": found["empty"],
        }

    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> SetValuedRecoding:
        job, own = self.job, self.job.set_valued
        self.given[DRAWS_KEY] = derived(key, "draws")  # the order of rows is public, and must not lead to the draws
        return SetValuedAnonymizer(
            items=job.columns.items,
            k=job.privacy.k,
            l=job.privacy.l,
            sensitive=job.columns.label,
            person=job.columns.person,
            nulls=job.nulls,
            order=own.order,
            segment=own.segment,
            graph=own.graph,
            truth=job.truth,
            block=own.block,
            key=self.given[DRAWS_KEY],
            progress=progress,
        ).fit(df, workspace)

    @refusing
    def verify(
        self, source: DataFrame, staged: DataFrame, recoding: SetValuedRecoding, key: DataFrame, workspace: Workspace
    ) -> tuple[list[Verdict], RowAccount]:
        """Everything that must hold before a staged release is published."""
        columns, degree = self.job.columns, self.job.degree
        release = shown(staged, recoding.published)
        column_verdict = self._column_verdict(release)
        require_whole(column_verdict, release, columns.published)
        evidence = recoding.evidence()
        linked, edges = evidence["linked"], evidence["edges"]
        compatible, account = verify_nr_compat(source, release, columns.items, degree, columns.label, self.job.nulls)
        claimed = {"suppressed": 0, "dropped_nulls": recoding.records.dropped_nulls, "dropped_unseen": 0}
        verdicts = [
            column_verdict,
            verify_fields(release),
            self._linked_verdict(source, linked),
            verify_graph(linked, staged, edges, degree),
            verify_compatible(linked, staged, edges, columns.items),
            *([] if columns.label is None else [verify_labels(linked, staged, edges, columns.label, self.job.privacy.l)]),
            compatible,
            *(verify_one_row_each(source, person) for person in self._person),
            verify_rows(account, 0, claimed),
            verify_order(staged, key, recoding.published),
            self._draw_verdict(recoding, edges),
            self._attack_verdict(staged, linked, recoding, workspace),
        ]
        return verdicts, account

    def verify_published(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> list[Verdict]:
        """What can be verified of a release that stands: the graph and the draw are private and gone."""
        verdict = self._column_verdict(release)
        if set(self.published) - set(release.columns):
            return [verdict]
        columns = self.job.columns
        compatible, account = verify_nr_compat(
            source, release, columns.items, self.job.degree, columns.label, self.job.nulls
        )
        persons = [verify_one_row_each(source, person) for person in self._person]
        return [verdict, verify_fields(release), compatible, *persons, verify_rows(account, 0, {})]

    @property
    def shown(self) -> Shown:
        """Nothing is published beside items, which this family does not protect, and the sensitive column."""
        return Shown(sensitive=self.job.columns.sensitive)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset({DEFINITION_ONLY})

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release; a person has one."""
        return release, None

    def warnings(self, recoding: SetValuedRecoding) -> list[str]:
        """What the fit has to say."""
        return list(recoding.warnings)

    def worth(self, facts: Mapping[str, Any]) -> Worth:
        """ER, and counts that are worse than the answer "none" (of rows that have an item) or "all" (of rows that lack some)."""
        queries = facts.get("queries") or {}
        kinds = {"present": "rows that have an item, by base alone", "absent": "rows that lack some items, by base alone"}
        poor = [name for kind, name in kinds.items() if queries and queries[kind] > queries[f"{kind}_if_nothing_is_said"]]
        return Worth(facts["measures"]["er"], MEASURES["er"], poor=tuple(poor))

    def attacks(self, facts: Mapping[str, Any]) -> list[Finding]:
        """Simulated link attacks that are above the promise by more than chance, though not so far that the gate refused."""
        link = facts["risk"]["link_attack"]
        estimates = {
            name: Estimate(link[f"rate_by_{name}"], link[f"standard_error_by_{name}"], link["promised_at_most"])
            for name in ("fit", "simulation")
        }
        text = "A simulated link attack by {} finds {}. Promised at most {:.4f}. " + RULE
        return [
            Finding("look", "attack", text.format(name, rate, rate.promise), rate.rate)
            for name, rate in estimates.items()
            if rate.noticed
        ]

    def risk(
        self, source: DataFrame, release: DataFrame, recoding: SetValuedRecoding, verdicts: Sequence[Verdict], rows: int
    ) -> dict[str, Any]:
        """What an attacker gains, as plain numbers: rows found, which the gate has judged, and item sets rebuilt."""
        link = dict(next(verdict.facts for verdict in verdicts if verdict.name == LINK_ATTACK))
        known = link.pop("known_link")
        found = reconstruction(recoding.slots, self.job.set_valued.graph, self.job.degree)
        rebuilt = {
            "records_looked_at": found.records,
            "records_known_in_all_items_by_who_knows_the_order": found.known_share,
            "items_known_by_who_knows_the_order": found.known_bits_share,
            "records_known_in_all_items_from_the_rows_alone": found.chained_share,
            "rows_whose_most_similar_row_is_a_neighbour": found.next_share,
            "more_may_be_known": not found.exact,
        }
        return {"link_attack": link, "known_link": known, "reconstruction": rebuilt}

    def facts(self, recoding: SetValuedRecoding, verdicts: Sequence[Verdict], risk: Mapping[str, Any]) -> dict[str, Any]:
        """The recoding's facts with its measures, what counts are worth, and risk."""
        return {
            **recoding.facts(),
            **recoding.measured(),
            **_worth(recoding, self.job.columns.items),
            "definition_only": self.guarantee.definition_only,
            "risk": dict(risk),
        }

    def metadata(self, recoding: SetValuedRecoding) -> dict[str, Any]:
        """What the commit says beside the run: nothing that the release does not show."""
        return {name: value for name, value in (("k", self.job.privacy.k), ("l", self.job.privacy.l)) if value is not None}

    def sections(self, facts: Mapping[str, Any]) -> list[Section]:
        return set_valued_sections(facts)

    @property
    def _person(self) -> list[str]:
        return [] if self.job.columns.person is None else [self.job.columns.person]

    def _column_verdict(self, release: DataFrame) -> Verdict:
        columns = self.job.columns
        return verify_columns(release, self.published, [columns.items, *columns.identifiers, *self._person])

    def _linked_verdict(self, source: DataFrame, linked: DataFrame) -> Verdict:
        """Whether the records behind the graph are those of the source, up to a 64-bit hash: all else rests on them."""
        columns = self.job.columns
        listed = source.where(F.col(quoted(columns.items)).isNotNull())
        (own, own_mark), (theirs, their_mark) = (_content(frame, columns.items, columns.sensitive) for frame in (listed, linked))
        same = own == theirs and own_mark == their_mark
        other = f"the graph is about {theirs} records, the source has {own} in scope" + (
            "." if own != theirs else ", and their content differs."
        )
        detail = f"the graph is about the {own} records of the source." if same else other
        return Verdict("records", same, 0 if same else max(1, abs(own - theirs)), own, detail)

    def _draw_verdict(self, recoding: SetValuedRecoding, edges: DataFrame) -> Verdict:
        """Whether the run's own secret chose the rounds, and not another key that somebody may know.

        Guarantee: passed iff the recoding has the key that the run handed to the fit, and that key draws the round of every
        part of the graph. Cost: one job, two shuffles of the edges.
        """
        given = self.given.get(DRAWS_KEY)
        taken = F.coalesce(F.max(F.when(F.col(CHOSEN), F.col(ROUND))), F.lit(-1))
        parts = edges.groupBy(BLOCK, PART).agg(taken.alias(ROUND), F.count_distinct(ROUND).alias(CHOSEN))

        def compare(table: pa.Table) -> pa.Table:
            table = table.sort_by(PART)
            rounds = np.asarray(table.column(CHOSEN), dtype=np.int64)
            drawn = uniform(given or "", CHOICE, int(table.column(BLOCK)[0].as_py()), rounds)
            other = drawn != np.asarray(table.column(ROUND), dtype=np.int64)
            return pa.table({"parts": [table.num_rows], "other": [int(other.sum())]})

        sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("parts", "other")]
        found = parts.groupBy(BLOCK).applyInArrow(compare, "parts long, other long").agg(*sums).collect()[0]
        same = given is not None and recoding.key == given
        passed = same and found["parts"] > 0 and found["other"] == 0
        said = f"the run's key chose the rounds of {found['parts']} parts."
        if not passed:
            said = f"{found['other'] if same else found['parts']} of {found['parts']} parts have a round of another key's choice."
        return Verdict("draw", passed, 0 if passed else max(1, found["other"]), found["parts"], said)

    def _attack_verdict(
        self, staged: DataFrame, linked: DataFrame, recoding: SetValuedRecoding, workspace: Workspace
    ) -> Verdict:
        """Whether a simulated attack finds no more rows than was promised, on fresh draws of the graph of some blocks.

        Guarantee: a sound graph is refused with a probability below one in a hundred thousand. Cost: DRAWS walks, in one
        block or spread over BLOCKS of them, and a comparison of some hundred records with every row.
        """
        some = recoding.slots.select(BLOCK).distinct().orderBy(F.xxhash64(BLOCK)).limit(BLOCKS).collect()
        draws = DRAWS // len(some)
        attacked = replace(recoding, slots=recoding.slots.where(F.col(BLOCK).isin([row[0] for row in some])))
        keys = [derived(recoding.key, f"attack {number}") for number in range(draws)]  # none is that of the release
        drawn = workspace.store(attacked.drawn_again(keys), "attack-draws")
        found = relink_attack(linked, staged, drawn, self.job.columns.items, self.job.degree)
        graph = attacked.slots.select(LINK, BLOCK, PART, SLOT)
        known = known_link(drawn, graph, self.job.degree)
        refused = [risk for risk in found if risk.refused]
        promise, rates = 1 / self.job.degree, {risk.attack: risk.rate for risk in found}
        told = "; ".join(f"by {risk.attack} {risk.estimate}" for risk in found)
        limit = min(1.0, *(risk.detectable for risk in found))
        end = " Significantly above the promise." if refused else ""
        return Verdict(
            LINK_ATTACK,
            not refused,
            len(refused),
            sum(risk.trials for risk in found),
            f"rows found in {draws} fresh draws: {told}. Promised at most {promise:.4f}; refused from {limit:.4f} on, which "
            f"chance alone exceeds once in {1 / SIGNIFICANT:,.0f} runs.{end}",
            {
                "sampled_records": found[0].records,
                "fresh_draws": draws,
                **{f"rate_by_{attack}": rate for attack, rate in rates.items()},
                **{f"{name}_by_{risk.attack}": value for risk in found for name, value in risk.estimate.facts().items()},
                "promised_at_most": promise,
                "refused_from_a_rate_of": limit,
                "known_link": {one.kind: {"rate": one.estimate.rate, **one.estimate.facts()} for one in known if one.estimate},
            },
        )

    def _refuse_too_few(self, listed: DataFrame, rows: int) -> None:
        """Raise where a run would: too few rows for k or l, or a sensitive value on too many of them."""
        name = "k" if self.job.privacy.l is None else "l"
        if 0 < rows < self.job.degree:
            raise DataError(f"{name} = {self.job.degree} is more than the {rows:,} rows of the table. Lower {name}.", rows=rows)
        if self.job.privacy.l is None or rows == 0:
            return
        spacing = 2 * self.job.degree - 1 if self.job.truth == "spaced" else self.job.degree
        label = F.col(quoted(str(self.job.columns.label)))
        most = int(listed.groupBy(label).agg(F.count(F.lit(1)).alias(ROWS)).agg(F.max(ROWS)).collect()[0][0])
        if most * spacing > rows:
            raise DataError(
                f"l = {self.job.degree} allows a sensitive value on {rows // spacing:,} rows at most, one is on {most:,}. "
                "Lower l.",
                rows=most,
            )


def derived(key: str, purpose: str) -> str:
    """A key of its own for a purpose: who finds it out knows nothing of the others."""
    return hashlib.sha256(f"{purpose}\n{key}".encode()).hexdigest()


def _content(frame: DataFrame, items: str, kept: Sequence[str]) -> tuple[int, int]:
    """Rows, and the sum of the hashes of their item sets and sensitive values. Cost: one job."""
    sets = frame.select(item_set(items).alias(items), *(F.col(quoted(name)) for name in kept))
    mark = hashed(sets, [items, *kept]).cast("decimal(20,0)")
    found = sets.agg(F.count(F.lit(1)), F.coalesce(F.sum(mark), F.lit(0))).collect()[0]
    return int(found[0]), int(found[1])


def _worth(recoding: SetValuedRecoding, items: str) -> dict[str, Any]:
    """What an analyst gets: sizes of the uncertainty, the error of fixed random counts, and one count with its bounds.

    Items are counted, never named. Cost: five jobs.
    """
    release, universe = recoding.slots.select(BASE, UNCERTAIN, MAX_ERRORS), recoding.records.universe
    size = F.size(UNCERTAIN)
    power = F.when(size > 0, F.floor(F.log2(size))).otherwise(-1)
    sizes = release.groupBy(power.cast("int").alias("power")).count().orderBy("power").collect()
    found: dict[str, Any] = {
        "uncertain_items": [
            {"from": 2**at if at >= 0 else 0, "to": 2 ** (at + 1) - 1 if at >= 0 else 0, "rows": rows} for at, rows in sizes
        ]
    }
    if not universe:
        return found
    present, absent = min(PRESENT, len(universe)), min(ABSENT, len(universe))
    workload = Workload(
        draw_queries(universe, QUERIES, present, QUERY_SEED), draw_queries(universe, QUERIES, absent, QUERY_SEED + 1)
    )
    true = matching_rows(recoding.evidence()["linked"], items, workload)
    error = error_between(true, matching_rows(release, BASE, workload).counts, workload)
    silent = {f"{kind}_if_nothing_is_said": value for kind, value in error_of_silence(true, workload)._asdict().items()}
    found["queries"] = {"number": QUERIES, "size_present": present, "size_absent": absent, **error._asdict(), **silent}
    frequent = release.select(F.explode(BASE).alias("item")).groupBy("item").count().orderBy(F.desc("count"), "item").head()
    if frequent is not None:
        found["example"] = {**count(release, [frequent[0]])._asdict(), "base": frequent[1]}
    return found
