"""The release of one table with relational values and transactions, bound to that table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NoReturn, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import CLUSTER, LINK, quoted
from anon_spark.errors import ConfigurationError
from anon_spark.families.recoding import Recoding
from anon_spark.families.relational_transaction.facts import (
    ClusterMeasures,
    ClusterStatistics,
    RelationalTransactionFit,
)
from anon_spark.families.relational_transaction.publication import NCP, UL, Published
from anon_spark.families.relational_transaction.records import Records, Roles
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange
from anon_spark.pending import Pending
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns


@dataclass(frozen=True)
class RelationalTransactionRecoding(Recoding):
    """Records in clusters: every cluster shows one range or label per attribute, and one image of each item.

    Guarantee (k, k^m): whoever knows all relational values of a person and up to m items that are not sensitive finds at
    least k rows that fit. With l, (k, l^m): and no sensitive item is in more than 1 / l of them.
    Not covered: somebody who knows more than m items, that an item is absent, that the known items are all there are, or a
    sensitive item; sensitive items without l; kept columns an attacker knows; several releases put together. With
    suppress_items, rare items are not published: that a row shows no such item says nothing about its record.
    """

    roles: Roles
    settings: Settings
    records: Records
    rows: DataFrame = field(repr=False)
    workspace: Workspace = field(repr=False)
    key: str = field(repr=False)
    identity: tuple[int, int]  # rows of the fitted table, and the sum of their hashes
    statistics: ClusterStatistics
    warnings: Sequence[str] = ()

    family = "relational_transaction"

    @property
    def names(self) -> Published:
        return Published.of(self.roles)

    @property
    def published(self) -> list[str]:
        """The columns of a release, in order."""
        return self.names.columns

    @property
    def fitted_hierarchies(self) -> dict[str, Hierarchy | None]:
        """The hierarchies with the null leaf and the rule's values, as fitted; None for free ranges."""
        attributes = self.records.attributes
        return dict(zip(attributes.names, attributes.hierarchies, strict=True))

    @property
    def fitted_attributes(self) -> dict[str, Hierarchy | FreeRange]:
        """The fitted hierarchies, and the free ranges of the job."""
        numbers = self.roles.numbers
        return {name: hierarchy or numbers[name] for name, hierarchy in self.fitted_hierarchies.items()}

    def transform(self, df: DataFrame) -> DataFrame:
        """The release of the fitted table; another table is refused: records are recoded together, not one by one."""
        require_columns(df, self.roles.named)
        if identity_of(df, self.roles) != self.identity:
            raise ConfigurationError("This recoding is bound to the table it was fitted on. Fit the other table.")
        order = sha256(f"order\n{self.key}".encode()).hexdigest()  # the order is public, so it must not reveal the draws
        return self.staged(df, key_frame(df.sparkSession, order)).select(*map(quoted, self.published))

    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release in its final order, with LINK for the audit. Cost: one shuffle and sort."""
        return shuffled(self.rows.select(*map(quoted, self.published), LINK), key, self.published)

    def evidence(self) -> Mapping[str, DataFrame]:
        """For the audit, never published: `linked`, the records as they came, with their private link."""
        return {"linked": self.records.frame.select(LINK, *map(quoted, self.roles.named))}

    def measured(self) -> ClusterMeasures:
        """NCP and UL of the release, and its clusters. Cost: one job, once."""
        return self._measures

    @cached_property
    def _measures(self) -> ClusterMeasures:
        sizes = self.rows.groupBy(CLUSTER).agg(F.count(F.lit(1)).alias("size"), F.first(NCP).alias("ncp"), F.sum(UL).alias("ul"))
        row = sizes.agg(
            (F.sum(F.col("ncp") * F.col("size")) / F.sum("size")).alias("ncp"),
            (F.sum("ul") / F.sum("size")).alias("ul"),
            F.count(F.lit(1)).alias("clusters"),
            F.min("size").alias("smallest"),
            F.max("size").alias("largest"),
        ).collect()[0]
        return ClusterMeasures(_rounded(row.ncp), _rounded(row.ul), row.clusters, row.smallest, row.largest)

    def left_out(self) -> dict[str, int]:
        """Rows that the policies for nulls and unseen values drop; none is suppressed."""
        records = self.records
        return {"suppressed": 0, "dropped_nulls": records.dropped_nulls, "dropped_unseen": records.dropped_unseen}

    def facts(self) -> RelationalTransactionFit:
        settings = self.settings
        bounded = settings.method == "bound"
        return RelationalTransactionFit(
            required_k=settings.k,
            m=settings.m,
            l=settings.l,
            bound=settings.bound if bounded else None,
            delta=settings.delta if bounded else None,
            merge=settings.merge if bounded else None,
            distance=settings.distance if bounded and settings.by_items else None,
            moves=settings.moves,
            method=settings.method,
            items=settings.item_method,
            records=self.records.rows,
            universe=len(self.records.universe),
            sensitive_items=len(self.records.secrets),
            suppressed_items=len(self.records.suppressed.items),
            suppressed_occurrences=self.records.suppressed.occurrences,
            occurrences=self.records.suppressed.of,
            statistics=self.statistics,
        )

    def close(self) -> None:
        """Remove the private files; frames that `transform` returned cannot be read any more."""
        self.workspace.close()

    def content(self) -> NoReturn:
        """Refused: it is bound to its table."""
        raise ConfigurationError("A recoding of clusters cannot be saved: it is bound to the table it was fitted on.")

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        raise ConfigurationError("A recoding of clusters cannot be loaded: it is bound to the table it was fitted on.")



def identity_of(df: DataFrame, roles: Roles) -> tuple[int, int]:
    """Identity of a table: the number of its rows, and the sum of hashes of their content. Cost: one job."""
    return identity_to_be(df, roles).get()


def identity_to_be(df: DataFrame, roles: Roles) -> Pending[tuple[int, int]]:
    """As `identity_of`, not collected yet."""
    content = [part for name in roles.named for part in (F.isnull(quoted(name)), F.col(quoted(name)))]
    hashed = F.xxhash64(*content).cast("decimal(20,0)")
    totals = df.agg(F.count(F.lit(1)).alias("rows"), F.coalesce(F.sum(hashed), F.lit(0)).alias("sum"))
    return Pending.of(totals, lambda found: (int(found[0]["rows"]), int(found[0]["sum"])))


def _rounded(value: float) -> float:
    """Rounded, because the last digits of a sum depend on its order."""
    return float(f"{value:.12g}")
