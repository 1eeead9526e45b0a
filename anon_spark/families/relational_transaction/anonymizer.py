"""The fit of the family `relational_transaction`: CLUSTER, repair, merging under a bound, generalization of items."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import BLOCK, CLUSTER
from anon_spark.config.options import default, require_options
from anon_spark.engine import not_broadcast
from anon_spark.errors import ConfigurationError
from anon_spark.families.arguments import Anonymizer, check_arguments, spark_frame
from anon_spark.families.relational_transaction.clusters import initial_clusters
from anon_spark.families.relational_transaction.facts import Clustering, ClusterStatistics, Merging
from anon_spark.families.relational_transaction.gray_blocks import gray_clusters
from anon_spark.families.relational_transaction.groups import (
    grouped,
    needs_items,
    repaired_groups,
    rum_merged,
    tum_merged,
)
from anon_spark.families.relational_transaction.items import Catalogue, catalogue_of
from anon_spark.families.relational_transaction.job import (
    ItemOptions,
    RelationalTransactionJob,
    RelationalTransactionPrivacySpec,
    RelationalTransactionSpec,
)
from anon_spark.families.relational_transaction.publication import Published, published_records
from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding, identity_to_be
from anon_spark.families.relational_transaction.records import Attribute, Budget, Records, Roles, read_records
from anon_spark.families.relational_transaction.settings import (
    DELTA,
    Bound,
    Cost,
    Distance,
    ItemMethod,
    Merge,
    Method,
    Refine,
    Settings,
)
from anon_spark.families.relational_transaction.summaries import TARGET, item_sets, summarized
from anon_spark.model.hierarchy import Hierarchy, refuse_ambiguous
from anon_spark.model.progress import Progress
from anon_spark.pending import Pending, together
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace, fitted
from anon_spark.primitives.tables import refuse_several_rows, require_columns

UNPROTECTED = "Sensitive items are published unprotected: there is no l."
STEPS = ("records", "clusters", "repair", "merging", "generalized items")


@dataclass(frozen=True, kw_only=True)
class RelationalTransactionAnonymizer(Anonymizer):
    """(k, k^m)-anonymity, or with l (k, l^m)-diversity, of relational values and item sets, under a bound on their loss.

    Parameters are those of the job file: `delta` bounds NCP of the relational values (`bound="relational"`) or UL of the
    items ("items"); `merge` orders partners by relational values, items or both. With `person`, every person must have one
    row. `key` is the secret of all draws; leave it out outside tests. `workdir` is a private place that all workers see.
    Guarantee of what `fit` returns: see RelationalTransactionRecoding. Cost: one global sort, clusters in blocks of some
    thousand records, a loop over the clusters (of groups of them, for large tables), one task per final cluster.
    """

    k: int
    quasi_identifiers: Mapping[str, Attribute]
    transactions: Sequence[str]
    m: int = default(RelationalTransactionPrivacySpec, "m")
    l: int | None = None  # noqa: E741 - the literature's name
    sensitive_items: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sensitive: Sequence[str] = ()
    keep: Sequence[str] = ()
    person: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    nulls: Literal["value", "suppress"] = default(RelationalTransactionJob, "nulls")
    on_unseen: Literal["error", "suppress"] = default(RelationalTransactionJob, "on_unseen")
    bound: Bound = default(RelationalTransactionSpec, "bound")
    delta: float = DELTA
    merge: Merge = default(RelationalTransactionSpec, "merge")
    distance: Distance = default(RelationalTransactionSpec, "distance")
    method: Method = default(RelationalTransactionSpec, "method")
    item_method: ItemMethod = default(ItemOptions, "item_method")
    item_hierarchy: Hierarchy | None = None
    item_block: int | None = None
    cost: Cost = default(RelationalTransactionSpec, "cost")
    refine: Refine = default(RelationalTransactionSpec, "refine")
    exhaustive_seeds: bool = default(RelationalTransactionSpec, "exhaustive_seeds")
    suppress_items: float = default(RelationalTransactionSpec, "suppress_items")
    block: int = default(RelationalTransactionSpec, "block")
    allow_unprotected_sensitive: bool = default(RelationalTransactionSpec, "allow_unprotected_sensitive")
    key: str | None = field(default=None, repr=False)
    workdir: str | None = None
    progress: Progress | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_arguments(self)
        require_options(
            self, RelationalTransactionJob, RelationalTransactionPrivacySpec, RelationalTransactionSpec, ItemOptions
        )
        if not self.quasi_identifiers:
            raise ConfigurationError("quasi_identifiers: name at least one relational column.")
        if not self.transactions:
            raise ConfigurationError("transactions: name at least one column of item lists; without any, use the family mst.")
        refuse_ambiguous({n: h for n, h in self.quasi_identifiers.items() if isinstance(h, Hierarchy)})
        self._refuse_roles()
        if self.item_method in ("apriori", "vertical") and self.item_hierarchy is None:
            raise ConfigurationError(f"item_method {self.item_method} needs a hierarchy of the items.")
        if self.item_method == "sets" and self.item_hierarchy is not None:
            raise ConfigurationError("A hierarchy of the items is for item_method apriori, local and vertical.")
        if self.suppress_items and self.item_hierarchy is not None:
            raise ConfigurationError("suppress_items is for sets of items: a hierarchy has a place for a rare item.")
        if self.suppress_items and self.method == "bound" and self.bound == "items":
            raise ConfigurationError("suppress_items is not for bound items: an item left out has no loss that merging lowers.")
        weights = self.weights.values()
        if weights and (set(self.weights) != set(self.quasi_identifiers) or min(weights) < 0 or not sum(weights)):
            raise ConfigurationError("weights: give every quasi-identifier a weight, none below 0, one above.")

    def fit(self, df: DataFrame, workspace: Workspace | None = None) -> RelationalTransactionRecoding:
        """Recode the table.

        The recoding keeps private files: in the workspace given, else in one of its own until `close`, or the end of the
        program.
        """
        df = spark_frame(df)
        require_columns(df, [*self.roles.named, *([self.person] if self.person else [])])
        if self.person is not None:
            refuse_several_rows(df, self.person)
        return fitted(df.sparkSession, self.workdir, workspace, partial(self._fit, df))

    def _fit(self, df: DataFrame, workspace: Workspace) -> RelationalTransactionRecoding:
        key = self.key if self.key is not None else secrets.token_hex(16)
        started = perf_counter()
        # 1. records as numbers, in an order that only the key gives
        self._tell(0)
        order, budget = key_frame(df.sparkSession, key), Budget(self.k, self.suppress_items)
        records = read_records(df, self.roles, self.nulls, self.on_unseen, budget, order, workspace)
        catalogue = catalogue_of(records.universe, sorted(self.roles.hidden), self.item_hierarchy)
        read_at = perf_counter()
        # 2. clusters within the bound
        assigned, clustering = self._assigned(records, catalogue, key, workspace)
        # 3. relational values and items of each cluster
        self._tell(4)
        names = Published.of(self.roles)
        most = records.rows // self.k  # clusters
        published = published_records(assigned, records, self._settings, catalogue, names, most)
        rows = workspace.store(published, "rows")
        identity, counted = together(identity_to_be(df, self.roles), clustering).get()
        self._tell(5)
        return RelationalTransactionRecoding(
            roles=self.roles,
            settings=self._settings,
            records=records,
            rows=rows,
            workspace=workspace,
            key=key,
            identity=identity,
            statistics=ClusterStatistics(
                **vars(counted),
                seconds=round(perf_counter() - read_at, 3),
                seconds_reading=round(read_at - started, 3),
            ),
            warnings=self._warnings(records),
        )

    def _assigned(
        self, records: Records, catalogue: Catalogue, key: str, workspace: Workspace
    ) -> tuple[DataFrame, Pending[Clustering]]:
        """The narrow records with CLUSTER, and the numbers of clusters before and after merging, not collected yet."""
        settings = self._settings
        if settings.method == "tfirst":
            blocks = gray_clusters(records, settings, workspace)
            assigned = blocks.select(*records.narrow.columns, CLUSTER)
            return assigned, _distinct(blocks, CLUSTER).then(lambda clusters: Clustering(clusters=clusters))
        self._tell(1)
        clustered = initial_clusters(records, settings, key, workspace)
        self._tell(2)
        summaries, numbers = grouped(summarized(clustered, records, workspace), records, settings, workspace)
        summaries, numbers = repaired_groups(summaries, numbers, records, settings, workspace)
        initial = _distinct(summaries, TARGET)
        merging = Merging()
        self._tell(3)
        if settings.method == "bound":
            sets = item_sets(clustered, workspace) if needs_items(settings) else None
            if settings.bound == "relational":
                summaries, merging = rum_merged(summaries, numbers, sets, records, settings, catalogue, workspace)
            else:
                assert sets is not None, "UL is a loss of items"
                summaries, merging = tum_merged(summaries, numbers, sets, records, settings, catalogue, workspace)
        clusters = _distinct(summaries, TARGET)
        ended = clustered.drop(BLOCK).join(not_broadcast(summaries.select(CLUSTER, TARGET)), CLUSTER)
        assigned = ended.drop(CLUSTER).withColumnRenamed(TARGET, CLUSTER)

        def counted(both: tuple[int, int]) -> Clustering:
            return Clustering(**vars(merging), initial_clusters=both[0], clusters=both[1])

        return assigned, together(initial, clusters).then(counted)

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        total = sum(self.weights.values())
        return Roles(
            attributes=dict(self.quasi_identifiers),
            transactions=list(self.transactions),
            sensitive_items={name: list(items) for name, items in self.sensitive_items.items()},
            carried=[*self.sensitive, *self.keep],
            weights={name: weight / total for name, weight in self.weights.items()},
        )

    @property
    def _settings(self) -> Settings:
        return Settings(
            k=self.k,
            m=self.m,
            l=self.l,
            bound=self.bound,
            delta=self.delta,
            merge=self.merge,
            distance=self.distance,
            method=self.method,
            item_method=self.item_method,
            cost=self.cost,
            refine=self.refine,
            exhaustive_seeds=self.exhaustive_seeds,
            block=self.block,
            gray_block=self.item_block,
        )

    def _refuse_roles(self) -> None:
        named = [*self.roles.named, *([self.person] if self.person else [])]
        if len(set(named)) < len(named):
            raise ConfigurationError("A column has one role: name each column once.")
        unknown = [name for name in self.sensitive_items if name not in self.transactions]
        if unknown:
            raise ConfigurationError(f"sensitive_items: {', '.join(unknown)} is no transaction column.")
        has_sensitive = any(self.sensitive_items.values())
        if self.l is not None and not has_sensitive:
            raise ConfigurationError("l needs sensitive_items: the items that must not be inferred.")
        if has_sensitive and self.l is None and not self.allow_unprotected_sensitive:
            raise ConfigurationError(
                "sensitive_items without l would be published unprotected. Give l, or set allow_unprotected_sensitive."
            )
        names = Published.of(self.roles)
        taken = {name for name in (names.items, names.secrets) if name is not None and name not in self.transactions}
        if taken & {*names.relational, *names.carried}:
            raise ConfigurationError(f"Columns of the release have these names: {', '.join(sorted(taken))}. Rename yours.")

    def _warnings(self, records: Records) -> list[str]:
        messages = []
        if records.duplicates:
            messages.append(f"{records.duplicates:,} records name an item twice; it counts once.")
        if records.suppressed.items:
            left_out = records.suppressed
            messages.append(
                f"{len(left_out.items):,} items that fewer than k = {self.k} records have are not published: "
                f"{left_out.occurrences:,} of {left_out.of:,} occurrences."
            )
        if records.empty:
            messages.append(f"{records.empty:,} records have no items.")
        missing = sum(map(len, self.sensitive_items.values())) - len(records.secrets)
        if missing:
            messages.append(f"{missing:,} sensitive items occur in no record.")
        if records.secrets and self.l is None:
            messages.append(UNPROTECTED)
        return messages

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, len(STEPS), STEPS[min(done, len(STEPS) - 1)])


def _distinct(frame: DataFrame, column: str) -> Pending[int]:
    """How many different values a column has, not collected yet."""
    return Pending.of(frame.agg(F.countDistinct(column).alias("values")), lambda rows: int(rows[0]["values"]))
