"""The relational_transaction family in a run: reading, fit, audit and report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import (
    Kind,
    RowAccount,
    Verdict,
    completed,
    rows_in_scope,
    verify_bound,
    verify_transactions_covered,
)
from anon_spark.auditing.guarantees.itemset_support import kkm_check, klm_check
from anon_spark.auditing.truth.transaction_records import LeaveOut, out_of_scope
from anon_spark.auditing.truth.transactions import transactions_check
from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.config.options import options_of
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.contract import Audit, Examined, Family, Pipeline, Shown, Staged, Worth
from anon_spark.families.crowds import crowds_to_be, frequent_items_to_be
from anon_spark.families.relational_transaction.anonymizer import UNPROTECTED, RelationalTransactionAnonymizer
from anon_spark.families.relational_transaction.facts import (
    CountError,
    FrequentItem,
    RelationalTransactionFacts,
    RelationalTransactionRisk,
    ReleaseMeasures,
)
from anon_spark.families.relational_transaction.job import RelationalTransactionJob
from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding
from anon_spark.families.relational_transaction.records import combined, require_types
from anon_spark.families.relational_transaction.sections import KINDS, RELATIONAL_LOSS, relational_transaction_sections
from anon_spark.families.relational_transaction.settings import DELTA
from anon_spark.families.relational_transaction.shown import columns_to_be
from anon_spark.io.hierarchies import load_hierarchies, load_hierarchy
from anon_spark.kernels.randomness import derived
from anon_spark.metrics.relative_error import draw_workload, relative_error_to_be
from anon_spark.metrics.utility_loss import utility_loss_to_be
from anon_spark.model.distributions import crowds_of
from anon_spark.model.estimate import ROUNDING
from anon_spark.model.facts import SizeRange
from anon_spark.model.findings import Finding
from anon_spark.model.guarantee import KKmAnonymity, KLmDiversity
from anon_spark.model.hierarchy import Hierarchy, Rule, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.model.ranges import FreeRange
from anon_spark.pending import Pending, together
from anon_spark.primitives.encoding import Dictionary, dictionaries, fractions, with_keys
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import refuse_several_rows
from anon_spark.primitives.unseen import refuse_unseen
from anon_spark.report import Section
from anon_spark.report.columns import detail_words, known_words
from anon_spark.report.formats import counted, percent
from anon_spark.risk.item_sets.knowledge import knowledge_attack_to_be
from anon_spark.risk.look_up.homogeneity import homogeneity_to_be
from anon_spark.samples.patients import patients
from anon_spark.samples.sample import Sample

ITEMS = PREFIX + "all_items"


@dataclass(frozen=True)
class RelationalTransactionPipeline(
    Pipeline[RelationalTransactionJob, RelationalTransactionRecoding, RelationalTransactionFacts]
):
    """The steps of one relational_transaction job."""

    item_hierarchy: Hierarchy | None

    @classmethod
    def of(cls, job: RelationalTransactionJob, spark: SparkSession | None) -> RelationalTransactionPipeline:
        hierarchies = load_hierarchies(job.columns.hierarchies, spark)
        refuse_ambiguous({name: entry for name, entry in hierarchies.items() if isinstance(entry, Hierarchy)})
        spec = job.relational_transaction.items.hierarchy
        items = None if spec is None else load_hierarchy(spec, spark)
        if items is not None and not isinstance(items, Hierarchy):
            raise ConfigurationError("relational_transaction.items: give the hierarchy of the items as levels or edges.")
        return cls(job, hierarchies, items)

    @property
    def own_comments(self) -> dict[str, str]:
        columns = self.job.columns
        texts = dict.fromkeys(columns.quasi_identifiers, "Generalized together with the other columns.")
        texts[columns.items] = "Each inner list is one generalized item: at least one of its members is the record's."
        if columns.sensitive_column is not None:
            texts[columns.sensitive_column] = "Sensitive items of the record, as they are."
        return texts

    @property
    def attributes(self) -> dict[str, Hierarchy | Rule | FreeRange]:
        """The quasi-identifiers in their order."""
        specs = self.job.columns.quasi_identifiers
        return {
            name: self.hierarchies[name]
            if name in self.hierarchies
            else FreeRange(None if spec.domain is None else (float(spec.domain[0]), float(spec.domain[1])))
            for name, spec in specs.items()
        }

    @property
    def anonymizer(self) -> RelationalTransactionAnonymizer:
        job, columns = self.job, self.job.columns
        options = options_of(job.relational_transaction, "items") | options_of(job.relational_transaction.items.options)
        return RelationalTransactionAnonymizer(
            k=job.privacy.k,
            m=job.privacy.m,
            l=job.privacy.l,
            quasi_identifiers=self.attributes,
            transactions=columns.transactions,
            sensitive_items=columns.sensitive_items,
            sensitive=columns.sensitive,
            keep=columns.keep,
            person=columns.person,
            weights=dict(zip(columns.quasi_identifiers, columns.weights, strict=True)),
            nulls=job.nulls,
            on_unseen=job.on_unseen,
            item_hierarchy=self.item_hierarchy,
            **options | {"delta": DELTA if job.delta is None else job.delta},
        )

    @property
    def unmeasured(self) -> str | None:
        return "for this family such numbers are not defined"

    @property
    def guarantee(self) -> KKmAnonymity | KLmDiversity:
        privacy, columns = self.job.privacy, self.job.columns
        names = list(columns.quasi_identifiers)
        if privacy.l is None:
            return KKmAnonymity(privacy.k, privacy.m, names, columns.items, self.job.unprotected_items)
        assert columns.sensitive_column is not None, "l has sensitive items"
        return KLmDiversity(privacy.k, privacy.l, privacy.m, names, columns.items, columns.sensitive_column)

    @property
    def named(self) -> list[str]:
        return list(self.anonymizer.roles.named)

    @property
    def hidden(self) -> list[str]:
        return [name for name in self.job.columns.transactions if name != self.job.columns.items]

    def fingerprint(self) -> str:
        """The content of the hierarchies as text, that of the items included."""
        content = {name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()}
        return json.dumps({"columns": content, "items": self.item_hierarchy and self.item_hierarchy.to_dict()}, sort_keys=True)

    def read(self, df: DataFrame) -> DataFrame:
        """The columns the draw depends on: values, item sets and kept columns. Numbers of persons may change."""
        lists = self.job.columns.transactions
        others = [F.col(quoted(name)) for name in self.anonymizer.roles.named if name not in lists]
        return df.select(*others, *(F.sort_array(F.array_distinct(quoted(name))).alias(name) for name in lists))

    def check_types(self, df: DataFrame) -> None:
        require_types(df, self.anonymizer.roles)
        with_keys(df, self.hierarchies)  # refuses types that have no hierarchy

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, distinct items, rows without a list or without items, unseen values; raises as a run would.

        Cost: three jobs, and one for persons; writes nothing.
        """
        for person in self.persons:
            refuse_several_rows(df, person)
        entries = self._dictionaries(df)
        if self.job.on_unseen == "error":
            refuse_unseen(entries)
        items = combined(self.anonymizer.roles)
        counted = df.agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(items.isNull()).alias("without"),
            F.count_if(F.size(items) == 0).alias("empty"),
        ).collect()[0]
        if counted["without"] and self.job.nulls == "value":
            raise DataError(
                f"columns.transactions: {counted['without']:,} rows have no list. An empty list is a record without items; to "
                "leave these rows out, set nulls: suppress.",
                rows=counted["without"],
            )
        return {
            "rows": counted["rows"],
            "distinct_items": df.select(F.explode(items)).distinct().count(),
            "rows_without_a_list": counted["without"],
            "rows_without_items": counted["empty"],
            "rows_with_unseen_values": max((entry.unseen_rows for entry in entries), default=0),
        }

    def fit(
        self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None
    ) -> RelationalTransactionRecoding:
        # the order of rows is public, so it must not reveal the draws
        return replace(self.anonymizer, key=derived(key, "draws"), progress=progress).fit(df, workspace)

    def examine(self, staged: Staged[RelationalTransactionRecoding]) -> Pending[Examined]:
        """The checks use the job's hierarchies, not those of the recoding."""
        checked = transactions_check(
            staged.source,
            staged.rows,
            linked=staged.recoding.evidence()["linked"],
            **self._described(self._audited_attributes(staged.source)),
            vocabulary=self._vocabulary,
            nodes=self._item_nodes,
            leave_out=self._leave_out,
        )
        bound = self._bound_verdict(staged.recoding)

        def examined(found: tuple[Verdict, tuple[Verdict, RowAccount]]) -> Examined:
            promised, (truth, account) = found
            return Examined([promised], [truth], account, more=bound)

        return together(self._promised(staged.release), checked).then(examined)

    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """The checks that do not need the private links between records and rows."""
        described = self._described(self._audited_attributes(source))
        vocabulary, leave_out = self._vocabulary, self._leave_out
        covered, account = verify_transactions_covered(
            source, release, **described, vocabulary=vocabulary, leave_out=leave_out
        )
        return Examined([self._promised(release).get()], [covered], account)

    def in_scope(self, source: DataFrame) -> DataFrame:
        attributes, nulls = self._audited_attributes(source), self.job.nulls
        rows = source.where(~out_of_scope(source, attributes, self.job.columns.transactions, nulls))
        hierarchies = {name: of for name, of in attributes.items() if isinstance(of, Hierarchy)}
        return rows_in_scope(rows, hierarchies, nulls)

    @property
    def shown(self) -> Shown:
        """Ranges, labels and kept columns may be known of a row; items are left out, because the guarantee counts them."""
        columns = self.job.columns
        names = tuple(columns.quasi_identifiers)
        return Shown(names, names, columns.keep, columns.sensitive)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset({UNPROTECTED})

    def facts(self, staged: Staged[RelationalTransactionRecoding], audit: Audit) -> Pending[RelationalTransactionFacts]:
        """The recoding's facts with its losses, class sizes, the error of counts and what an attacker gains."""
        recoding = staged.recoding
        promised = audit.first(Kind.PROMISE).facts
        sizes = tuple(SizeRange(*bucket) for bucket in promised["histogram"])
        crowds = recoding.records.frame.groupBy(*recoding.records.attributes.columns).agg(F.count(F.lit(1)).alias(ROWS))
        numbers = together(
            self._measures(recoding),
            self._count_errors(recoding),
            self._risk(staged),
            columns_to_be(recoding, staged.release, self.named_from, staged.small),
            self._items_to_be(staged),
            crowds_to_be(crowds, self.job.privacy.k),
            self.unchanged_counts(staged, audit),
        )

        def facts(found: tuple[Any, ...]) -> RelationalTransactionFacts:
            measures, errors, risk, (columns, lost), items, (before, alone), unchanged = found
            return RelationalTransactionFacts(
                **vars(recoding.facts()),
                measures=measures,
                class_sizes=sizes,
                highest_share=promised.get("highest_share"),
                relative_error=errors,
                risk=risk,
                distributions=(*columns, *unchanged),
                detail_lost=lost,
                frequent_items=tuple(FrequentItem(label, *counts) for label, counts in items),
                crowds=crowds_of(self.job.privacy.k, before, alone, sizes),
            )

        return numbers.then(facts)

    def _items_to_be(self, staged: Staged[RelationalTransactionRecoding]) -> Pending[list[tuple[str, tuple[int, ...]]]]:
        """The most frequent published items: records with them, rows that show them alone, and in a group."""
        release, linked = staged.release, staged.recoding.evidence()["linked"]
        lists = [(linked, [combined(staged.recoding.roles)]), (release, [F.col(quoted(self.job.columns.items))])]
        return frequent_items_to_be(lists, (1, 2), self.named_from, staged.small)

    def says(self, facts: RelationalTransactionFacts) -> list[str]:
        """The crowd of a person, what is left of each column, and what is left of the items."""
        known = known_words(list(self.job.columns.quasi_identifiers))
        items = counted(facts.m, "item")
        crowd = f"Whoever knows {known} of a person, and up to {items} of it, finds at least {facts.required_k} rows that fit."
        left = f"{percent(facts.measures.kept_items)} of the published items stand for themselves, the others for a group."
        return [crowd, *detail_words(facts.detail_lost), left]

    def worth(self, facts: RelationalTransactionFacts) -> Worth:
        """NCP as the loss (UL is 1 for a row with one generalized item of any size), and counts worse than the answer 0."""
        errors = facts.relative_error
        poor = [KINDS[error.values, error.items] for error in errors if min(error.sets, error.uniform) > 1]
        return Worth(facts.measures.ncp, RELATIONAL_LOSS, poor=tuple(poor))

    def attacks(self, facts: RelationalTransactionFacts) -> list[Finding]:
        """Findings for sampled records that fewer than k rows fit, or whose sensitive item is too likely."""
        findings = []
        for attack in facts.risk.knowledge_attack.values():
            share, promise = attack.share, attack.share_promise
            learnt = share is not None and promise is not None and share > promise + ROUNDING
            if attack.promised and (attack.below or learnt):
                text = (
                    f"The simulated attack finds a row with {attack.worst:.4f} at worst, promised at most {attack.promise:.4f}; "
                    f"fewer than k rows fit {attack.below} of {attack.records} sampled records."
                )
                findings.append(Finding("look", "attack", text, attack.worst))
        return findings

    def homogeneous(self, facts: RelationalTransactionFacts) -> Mapping[str, float]:
        return facts.risk.sensitive_value_shared_by_whole_class

    def sections(self, facts: RelationalTransactionFacts) -> list[Section]:
        return relational_transaction_sections(facts)

    def _measures(self, recoding: RelationalTransactionRecoding) -> Pending[ReleaseMeasures]:
        """The losses of the release."""
        domain = len(self._vocabulary) or len(recoding.records.universe) + len(recoding.records.suppressed.items)
        measured = recoding.measured()
        return utility_loss_to_be(recoding.rows, self.job.columns.items, domain).then(
            lambda lost: ReleaseMeasures(
                **vars(measured), log2_ul_dom=lost.log2_ul_dom, largest_item=lost.largest, kept_items=lost.kept
            )
        )

    def _count_errors(self, recoding: RelationalTransactionRecoding) -> Pending[tuple[CountError, ...]]:
        """The error of counts by kind; a kind that no record allows is left out. Cost: three jobs now."""
        columns, hierarchies = self.job.columns, recoding.fitted_hierarchies
        source = recoding.evidence()["linked"].withColumn(ITEMS, combined(recoding.roles))
        workload = draw_workload(source, hierarchies, ITEMS, columns.sensitive_names)
        return relative_error_to_be(source, recoding.rows, workload, hierarchies, ITEMS, columns.items).then(
            lambda error: tuple(
                CountError(*kind, error.sets[kind], error.uniform[kind], error.queries[kind]) for kind in error.sets
            )
        )

    def _risk(self, staged: Staged[RelationalTransactionRecoding]) -> Pending[RelationalTransactionRisk]:
        """The gain of an attacker who knows relational values and items."""
        columns, privacy, recoding = self.job.columns, self.job.privacy, staged.recoding
        attacks = knowledge_attack_to_be(
            recoding.evidence()["linked"],
            recoding.rows,
            recoding.fitted_attributes,
            columns.transactions,
            columns.items,
            privacy.k,
            privacy.m,
            columns.sensitive_items,
            columns.sensitive_column,
            privacy.l,
            unpublished=recoding.records.suppressed.items,
        )
        shared = homogeneity_to_be(staged.release, list(columns.quasi_identifiers), columns.sensitive)
        return together(attacks, shared).then(
            lambda found: RelationalTransactionRisk(
                {f"{'all' if risk.items is None else risk.items} items": risk for risk in found[0]},
                {risk.column: risk.share for risk in found[1]},
            )
        )

    def _promised(self, release: DataFrame) -> Pending[Verdict]:
        """The verdict on the guarantee, from the published table alone."""
        privacy, columns = self.job.privacy, self.job.columns
        names = list(columns.quasi_identifiers)
        if privacy.l is None:
            return kkm_check(release, names, columns.items, privacy.k, privacy.m)
        assert columns.sensitive_column is not None, "l has sensitive items"
        return klm_check(release, names, columns.items, columns.sensitive_column, privacy.k, privacy.l, privacy.m)

    def _bound_verdict(self, recoding: RelationalTransactionRecoding) -> list[Verdict]:
        delta = self.job.delta
        if delta is None:
            return []
        measures = recoding.measured()
        if self.job.relational_transaction.bound == "relational":
            return [verify_bound("NCP", measures.ncp, delta)]
        return [verify_bound("UL", measures.ul, delta)]

    @property
    def _leave_out(self) -> LeaveOut:
        """The items that the job allows to leave out."""
        return LeaveOut(self.job.privacy.k, self.job.relational_transaction.suppress_items)

    @property
    def _vocabulary(self) -> list[str]:
        """Items that may be published although no record has them: a node of the item hierarchy shows all its leaves."""
        leaves = [] if self.item_hierarchy is None else self.item_hierarchy.keys
        return [name for name in leaves if name not in self.job.columns.sensitive_names]

    @property
    def _item_nodes(self) -> list[list[str]] | None:
        """The nodes of the item hierarchy as they are published: all their leaves, sensitive ones aside."""
        if self.item_hierarchy is None:
            return None
        hidden, nodes = self.job.columns.sensitive_names, set()
        for row in self.item_hierarchy.codes:
            below: dict[int, list[str]] = {}
            for name, code in zip(self.item_hierarchy.keys, row.tolist(), strict=False):
                if name not in hidden:
                    below.setdefault(code, []).append(name)
            nodes |= {tuple(sorted(names)) for names in below.values()}
        return sorted(map(list, nodes))

    def _audited_attributes(self, source: DataFrame) -> dict[str, Hierarchy | Rule | FreeRange]:
        """The job's hierarchies and ranges, rules completed by the audit's own reading of the source."""
        attributes = self.attributes
        dropped = out_of_scope(source, attributes, self.job.columns.transactions, self.job.nulls)
        return {**attributes, **completed(source, self.hierarchies, self.job.nulls, dropped)}

    def _described(self, attributes: Mapping[str, Hierarchy | Rule | FreeRange]) -> dict[str, Any]:
        """The roles of the columns of source and release, as arguments of the audit."""
        columns = self.job.columns
        return {
            "relational": attributes,
            "transactions": columns.transactions,
            "items": columns.items,
            "sensitive_items": columns.sensitive_items,
            "sensitive": columns.sensitive_column,
            "unchanged": self.unchanged,
            "nulls": self.job.nulls,
        }

    def _dictionaries(self, source: DataFrame) -> list[Dictionary]:
        """The distinct values of the source by hierarchy."""
        if not self.hierarchies:
            return []
        keyed = with_keys(source, self.hierarchies)
        return dictionaries(keyed, self.hierarchies, self.job.nulls, fractions(source, self.hierarchies))


FAMILY = Family(
    "relational_transaction",
    RelationalTransactionJob,
    RelationalTransactionPipeline.of,
    RelationalTransactionRecoding,
    Sample("patients", patients, share=0.2, fewest=500),
    draws=True,
)
