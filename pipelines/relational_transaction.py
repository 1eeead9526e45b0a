"""The relational_transaction family in a run: what it reads, fits, has audited and reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.audit import (
    RowAccount,
    Verdict,
    completed,
    verify_columns,
    verify_kkm,
    verify_klm,
    verify_one_row_each,
    verify_order,
    verify_rows,
    verify_transactions,
    verify_transactions_covered,
)
from anon_spark.audit.transactions import out_of_scope
from anon_spark.columns import PREFIX, quoted
from anon_spark.config import RelationalTransactionJob
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.relational_transaction import RelationalTransactionAnonymizer, RelationalTransactionRecoding
from anon_spark.families.relational_transaction.anonymizer import UNPROTECTED
from anon_spark.families.relational_transaction.records import combined, require_types
from anon_spark.families.relational_transaction.settings import DELTA
from anon_spark.io.hierarchies import load_hierarchies, load_hierarchy
from anon_spark.metrics.relative_error import draw_workload, relative_error
from anon_spark.metrics.utility_loss import utility_loss
from anon_spark.model.estimate import ROUNDING
from anon_spark.model.findings import Finding
from anon_spark.model.guarantee import KKmAnonymity, KLmDiversity
from anon_spark.model.hierarchy import Hierarchy, Rule, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.model.ranges import FreeRange
from anon_spark.primitives.classes.frequencies import refuse_unseen
from anon_spark.primitives.encoding import Dictionary, dictionaries, fractions, with_keys
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import refuse_several_rows, require_columns
from anon_spark.report import Section, relational_transaction_sections
from anon_spark.report.relational_transaction import KINDS, MEASURES
from anon_spark.risk import homogeneity, knowledge_attack
from pipelines.findings import Shown, Worth
from pipelines.gate import refusing, require_whole, shown
from pipelines.relational import without_order
from pipelines.set_valued import derived

ITEMS = PREFIX + "all_items"
BOUND = "loss within delta"


@dataclass(frozen=True)
class RelationalTransactionPipeline:
    """The steps of one relational_transaction job; everything that needs no row of the table is done when it is made."""

    job: RelationalTransactionJob
    hierarchies: Mapping[str, Hierarchy | Rule]
    item_hierarchy: Hierarchy | None

    @classmethod
    def of(cls, job: RelationalTransactionJob, spark: SparkSession | None) -> RelationalTransactionPipeline:
        hierarchies = load_hierarchies(job.columns.hierarchies, spark)
        refuse_ambiguous({name: given for name, given in hierarchies.items() if isinstance(given, Hierarchy)})
        spec = job.relational_transaction.items.hierarchy
        items = None if spec is None else load_hierarchy(spec, spark)
        if items is not None and not isinstance(items, Hierarchy):
            raise ConfigurationError("relational_transaction.items: give the hierarchy of the items as levels or edges.")
        return cls(job, hierarchies, items)

    @property
    def attributes(self) -> dict[str, Hierarchy | Rule | FreeRange]:
        """The quasi-identifiers in their order."""
        given = self.job.columns.quasi_identifiers
        return {
            name: self.hierarchies[name]
            if name in self.hierarchies
            else FreeRange(None if spec.domain is None else (float(spec.domain[0]), float(spec.domain[1])))
            for name, spec in given.items()
        }

    @property
    def anonymizer(self) -> RelationalTransactionAnonymizer:
        job, own, columns = self.job, self.job.relational_transaction, self.job.columns
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
            bound=own.bound,
            delta=DELTA if job.delta is None else job.delta,
            merge=own.merge,
            distance=own.distance,
            method=own.method,
            item_method=own.items.kind,
            item_hierarchy=self.item_hierarchy,
            item_block=own.items.block,
            cost=own.cost,
            exhaustive_seeds=own.exhaustive_seeds,
            block=own.block,
            allow_unprotected_sensitive=own.allow_unprotected_sensitive,
        )

    @property
    def guarantee(self) -> KKmAnonymity | KLmDiversity:
        privacy, columns = self.job.privacy, self.job.columns
        names = list(columns.quasi_identifiers)
        if privacy.l is None:
            return KKmAnonymity(privacy.k, privacy.m, names, columns.items, self.job.unprotected_items)
        assert columns.sensitive_column is not None, "l has sensitive items"
        return KLmDiversity(privacy.k, privacy.l, privacy.m, names, columns.items, columns.sensitive_column)

    @property
    def published(self) -> list[str]:
        return list(self.job.columns.published)

    def fingerprint(self) -> str:
        """What the hierarchies say, which the job file only points to."""
        content = {name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()}
        return json.dumps({"columns": content, "items": self.item_hierarchy and self.item_hierarchy.to_dict()}, sort_keys=True)

    def read(self, df: DataFrame) -> DataFrame:
        """What the draw depends on: values, item sets and kept columns. Persons may be numbered anew, they are the same."""
        lists = self.job.columns.transactions
        others = [F.col(quoted(name)) for name in self.anonymizer.roles.named if name not in lists]
        return df.select(*others, *(F.sort_array(F.array_distinct(quoted(name))).alias(name) for name in lists))

    def check_columns(self, df: DataFrame) -> None:
        columns, roles = self.job.columns, self.anonymizer.roles
        require_columns(df, [*roles.named, *columns.identifiers, *self._person])
        require_types(df, roles)
        with_keys(df, self.hierarchies)  # refuses types that have no hierarchy
        for name in (*columns.sensitive, *columns.keep):
            if without_order(df.schema[name].dataType):
                raise ConfigurationError(f"Column {name}: a map or variant cannot be published. Turn it into a text.")

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, distinct items, rows without a list or without items, unseen values; raises as a run would.

        Cost: three jobs, and one for persons; writes nothing.
        """
        for person in self._person:
            refuse_several_rows(df, person)
        found = self._dictionaries(df)
        if self.job.on_unseen == "error":
            refuse_unseen(found)
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
            "rows_with_unseen_values": max((entry.unseen_rows for entry in found), default=0),
        }

    def fit(
        self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None
    ) -> RelationalTransactionRecoding:
        # the order of rows is public, and must not lead to the draws
        return replace(self.anonymizer, key=derived(key, "draws"), progress=progress).fit(df, workspace)

    @refusing
    def verify(
        self,
        source: DataFrame,
        staged: DataFrame,
        recoding: RelationalTransactionRecoding,
        key: DataFrame,
        workspace: Workspace,
    ) -> tuple[list[Verdict], RowAccount]:
        """Everything that must hold before a staged release is published; hierarchies are the job's."""
        release = shown(staged, recoding.published)
        columns = self._column_verdict(release)
        require_whole(columns, release, self.job.columns.published)
        truthfulness, account = verify_transactions(
            source,
            staged,
            linked=recoding.evidence()["linked"],
            **self._described(self._audited_attributes(source)),
            vocabulary=self._vocabulary,
            nodes=self._item_nodes,
        )
        claimed = {
            "suppressed": 0,
            "dropped_nulls": recoding.records.dropped_nulls,
            "dropped_unseen": recoding.records.dropped_unseen,
        }
        verdicts = [
            columns,
            self._promised(release),
            truthfulness,
            *(verify_one_row_each(source, person) for person in self._person),
            verify_rows(account, 0, claimed),
            verify_order(staged, key, recoding.published),
            *self._bound_verdict(recoding, release),
        ]
        return verdicts, account

    def verify_published(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> list[Verdict]:
        """What can be verified of a release that stands: which record became which row is private and gone."""
        columns = self._column_verdict(release)
        if set(self.published) - set(release.columns):
            return [columns]
        attributes = self._audited_attributes(source)
        covered, account = verify_transactions_covered(
            source, release, **self._described(attributes), vocabulary=self._vocabulary
        )
        persons = [verify_one_row_each(source, person) for person in self._person]
        return [columns, self._promised(release), covered, *persons, verify_rows(account, 0, {})]

    @property
    def shown(self) -> Shown:
        """Ranges, labels and kept columns are what may be known of a row; the items, which the guarantee counts, stand aside."""
        columns = self.job.columns
        names = tuple(columns.quasi_identifiers)
        return Shown(names, names, columns.keep, columns.sensitive)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset({UNPROTECTED})

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release; a person has one."""
        return release, None

    def warnings(self, recoding: RelationalTransactionRecoding) -> list[str]:
        """What the fit has to say."""
        return list(recoding.warnings)

    def worth(self, facts: Mapping[str, Any]) -> Worth:
        """NCP (UL is 1 for a row with one generalized item, however small), and counts that are worse than the answer 0."""
        errors = facts["relative_error"]
        poor = [KINDS[one["values"], one["items"]] for one in errors if min(one["sets"], one["uniform"]) > 1]
        return Worth(facts["measures"]["ncp"], MEASURES["ncp"], poor=tuple(poor))

    def attacks(self, facts: Mapping[str, Any]) -> list[Finding]:
        """A sampled record that fewer than k rows fit, or whose sensitive item is too likely: counted, so one is enough."""
        found = []
        for one in facts["risk"]["knowledge_attack"].values():
            above = one["share_promise"] is not None and one["share"] > one["share_promise"] + ROUNDING
            if one["promised"] and (one["below"] or above):
                text = (
                    f"The simulated attack finds a row with {one['worst']:.4f} at worst, promised at most {one['promise']:.4f}; "
                    f"fewer than k rows fit {one['below']} of {one['records']} sampled records."
                )
                found.append(Finding("look", "attack", text, one["worst"]))
        return found

    def risk(
        self,
        source: DataFrame,
        release: DataFrame,
        recoding: RelationalTransactionRecoding,
        verdicts: Sequence[Verdict],
        rows: int,
    ) -> dict[str, Any]:
        """What an attacker gains who knows relational values and items, as plain numbers."""
        columns, privacy = self.job.columns, self.job.privacy
        found = knowledge_attack(
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
            rows=rows,
        )
        shared = homogeneity(release, list(columns.quasi_identifiers), columns.sensitive)
        return {
            "knowledge_attack": {f"{'all' if one.items is None else one.items} items": asdict(one) for one in found},
            **({"sensitive_value_shared_by_whole_class": {one.column: one.share for one in shared}} if shared else {}),
        }

    def facts(
        self, recoding: RelationalTransactionRecoding, verdicts: Sequence[Verdict], risk: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The recoding's facts with its losses, the error of counts, class sizes and risk."""
        columns = self.job.columns
        release = recoding.rows
        lost = utility_loss(release, columns.items, len(self._vocabulary) or len(recoding.records.universe))
        promised = next(verdict.facts for verdict in verdicts if verdict.name == self._promise)
        source = recoding.evidence()["linked"].withColumn(ITEMS, combined(recoding.roles))
        hierarchies = recoding.fitted_hierarchies
        workload = draw_workload(source, hierarchies, ITEMS, columns.sensitive_names)
        error = relative_error(source, release, workload, hierarchies, ITEMS, columns.items)
        return {
            **recoding.facts(),
            "measures": {
                **recoding.measured(),
                "log2_ul_dom": lost.log2_ul_dom,
                "largest_item": lost.largest,
                "kept_items": lost.kept,
            },
            "class_sizes": [
                dict(zip(("from", "to", "classes", "rows"), bucket, strict=True)) for bucket in promised["histogram"]
            ],
            "highest_share": promised.get("highest_share"),
            "relative_error": [
                {
                    "values": kind[0],
                    "items": kind[1],
                    "sets": error.sets[kind],
                    "uniform": error.uniform[kind],
                    "queries": error.queries[kind],
                }
                for kind in error.sets
            ],
            "risk": dict(risk),
        }

    def metadata(self, recoding: RelationalTransactionRecoding) -> dict[str, Any]:
        """What the commit says beside the run: nothing that the release does not show."""
        privacy = self.job.privacy
        return {name: value for name, value in (("k", privacy.k), ("m", privacy.m), ("l", privacy.l)) if value is not None}

    def sections(self, facts: Mapping[str, Any]) -> list[Section]:
        return relational_transaction_sections(facts)

    @property
    def _person(self) -> list[str]:
        return [] if self.job.columns.person is None else [self.job.columns.person]

    @property
    def _promise(self) -> str:
        k, m, l = self.job.privacy.k, self.job.privacy.m, self.job.privacy.l  # noqa: E741
        return f"({k},{k}^{m})-anonymity" if l is None else f"({k},{l}^{m})-diversity"

    def _promised(self, release: DataFrame) -> Verdict:
        """The guarantee, on the published table alone."""
        privacy, columns = self.job.privacy, self.job.columns
        names = list(columns.quasi_identifiers)
        if privacy.l is None:
            return verify_kkm(release, names, columns.items, privacy.k, privacy.m)
        assert columns.sensitive_column is not None, "l has sensitive items"
        return verify_klm(release, names, columns.items, columns.sensitive_column, privacy.k, privacy.l, privacy.m)

    def _bound_verdict(self, recoding: RelationalTransactionRecoding, release: DataFrame) -> list[Verdict]:
        """Whether the loss is what the job allows: no guarantee of privacy, but asked for."""
        delta = self.job.delta
        if delta is None:
            return []
        name = "NCP" if self.job.relational_transaction.bound == "rum" else "UL"
        lost = recoding.measured()["ncp" if name == "NCP" else "ul"]
        passed = lost <= delta + ROUNDING
        return [Verdict(BOUND, passed, int(not passed), 1, f"{name} is {lost:.6f}, at most {delta} was asked for.")]

    @property
    def _vocabulary(self) -> list[str]:
        """Items that may be published although nobody has them: a node of the item hierarchy stands for all its leaves."""
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
        """What the columns of source and release are, as the audit takes it."""
        columns = self.job.columns
        return {
            "relational": attributes,
            "transactions": columns.transactions,
            "items": columns.items,
            "sensitive_items": columns.sensitive_items,
            "sensitive": columns.sensitive_column,
            "unchanged": [*columns.sensitive, *columns.keep],
            "nulls": self.job.nulls,
        }

    def _dictionaries(self, source: DataFrame) -> list[Dictionary]:
        """The distinct values of the source by hierarchy."""
        if not self.hierarchies:
            return []
        keyed = with_keys(source, self.hierarchies)
        return dictionaries(keyed, self.hierarchies, self.job.nulls, fractions(source, self.hierarchies))

    def _column_verdict(self, release: DataFrame) -> Verdict:
        columns = self.job.columns
        hidden = [name for name in columns.transactions if name != columns.items]
        return verify_columns(release, self.published, [*columns.identifiers, *self._person, *hidden], list(self.hierarchies))
