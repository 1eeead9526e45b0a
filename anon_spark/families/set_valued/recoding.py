"""The release of one table of item sets, bound to that table, with its private graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NoReturn, Self

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import BASE, BLOCK, LINK, MAX_ERRORS, PART, ROWS, SLOT, SLOTS, TAKEN, UNCERTAIN, quoted
from anon_spark.errors import ConfigurationError
from anon_spark.families.recoding import Recoding
from anon_spark.families.set_valued.block import Settings
from anon_spark.families.set_valued.facts import FitTimes, Measured, Measures, SetValuedFit
from anon_spark.families.set_valued.records import ITEMS, VALUE, Records, plain_items
from anon_spark.families.set_valued.slots import (
    FLIPS,
    KIND,
    SIZE,
    STEPS,
    drawn_again,
    edges_of,
)
from anon_spark.pending import Pending
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns


@dataclass(frozen=True)
class SetValuedRecoding(Recoding):
    """Each published row stands for at least k records, and each record for at least k rows.

    Guarantee (k): which of its k rows is a record's own, and so which sensitive value, cannot be told with more than
    probability 1 / k by somebody who knows all item sets and the method, but no sensitive value and none of the draws.
    Guarantee (l): the same with 1 / l, and the rows that may be a record's carry l different sensitive values.
    Not covered: the items. For small k many item sets can be worked out from the release, in a ring more than in groups,
    whoever is looked for; `uncertain` and `max_errors` say what an analyst must allow for, they hide nothing. Somebody who knows
    whose a row is learns more about the rest of its group, in a ring about its neighbours; with k = 2 or l = 2 about the whole
    group, with these or `truth: shift` about the whole ring.
    """

    items: str
    sensitive: str | None
    settings: Settings
    records: Records
    slots: DataFrame = field(repr=False)
    workspace: Workspace = field(repr=False)
    key: str = field(repr=False)
    identity: tuple[int, int]  # rows of the fitted table, and the sum of their hashes
    statistics: FitTimes
    warnings: Sequence[str] = ()

    family = "set_valued"

    @property
    def published(self) -> list[str]:
        """The columns of a release, in order."""
        return [BASE, UNCERTAIN, MAX_ERRORS, *([self.sensitive] if self.sensitive is not None else [])]

    def transform(self, df: DataFrame) -> DataFrame:
        """The release of the fitted table; another table is refused: records are recoded together, not one by one."""
        require_columns(df, [name for name in (self.items, self.sensitive) if name is not None])
        if identity_of(df, self.items, self.sensitive) != self.identity:
            raise ConfigurationError("This recoding is bound to the table it was fitted on. Fit the other table.")
        order = sha256(f"order\n{self.key}".encode()).hexdigest()  # the order is public, so it must not reveal the draws
        return self.staged(df, key_frame(df.sparkSession, order)).select(*map(quoted, self.published))

    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release in its final order, with BLOCK and SLOT for the audit. Cost: one shuffle and sort."""
        values = [F.col(VALUE).alias(self.sensitive)] if self.sensitive is not None else []
        return shuffled(self.slots.select(BASE, UNCERTAIN, MAX_ERRORS, *values, BLOCK, SLOT), key, self.published)

    def evidence(self) -> Mapping[str, DataFrame]:
        """For the audit, never published: `linked`, the records with their private link; `graph`, the slots of each; `edges`,
        the same with a row for every edge."""
        values = [F.col(VALUE).alias(self.sensitive)] if self.sensitive is not None else []
        linked = self.records.frame.select(LINK, F.col(ITEMS).alias(self.items), *values)
        return {"linked": linked, "graph": self.slots.select(LINK, BLOCK, PART, SLOTS, TAKEN), "edges": edges_of(self.slots)}

    def drawn_again(self, keys: Sequence[str], blocks: int | None = None) -> DataFrame:
        """Fresh assignments of the same graph, for simulated attacks: LINK, BLOCK, SLOT, DRAW. blocks: how many, if known."""
        return drawn_again(self.slots, self.settings, keys, blocks)

    def measured(self) -> Measured:
        """ER expected over all assignments (that of the chosen one could reveal it), and statistics of blocks. Cost: one job."""
        return self.measured_to_be().get()

    def measured_to_be(self) -> Pending[Measured]:
        """As `measured`, not collected yet."""
        has_items = F.col(SIZE) > 0
        share = F.when(has_items, F.col(FLIPS) / (F.col(SIZE) * F.size(SLOTS)))
        totals = self.slots.agg(
            F.avg(share).alias("er"),
            F.count_if(~has_items).alias("empty"),
            F.countDistinct(BLOCK).alias("blocks"),
            F.sum(STEPS).alias("steps"),
            F.sum(F.size(SLOTS)).alias("edges"),
            F.avg(F.size(UNCERTAIN)).alias("uncertain"),
            F.avg(MAX_ERRORS).alias("max_errors"),
        )
        kinds = self.slots.where(F.col(SLOT) == 0).groupBy(KIND).agg(F.count(F.lit(1)).alias(ROWS))

        def measured(found: Sequence[Sequence[Row]]) -> Measured:
            ((of_slots,), of_kinds) = found
            return Measured(Measures(**of_slots.asDict()), {row[KIND]: row[ROWS] for row in sorted(of_kinds)})

        return Pending((totals, kinds), measured)

    def left_out(self) -> dict[str, int]:
        """Rows without a list, where the policy for nulls drops them."""
        return {"suppressed": 0, "dropped_nulls": self.records.dropped_nulls, "dropped_unseen": 0}

    def facts(self) -> SetValuedFit:
        settings = self.settings
        return SetValuedFit(
            required_k=settings.degree,
            k=settings.k,
            l=settings.l,
            order=settings.order,
            graph=settings.graph,
            truth=settings.truth if settings.l is not None else None,
            records=self.records.rows,
            universe=len(self.records.universe),
            statistics=self.statistics,
        )

    def close(self) -> None:
        """Remove the private files; frames that `transform` returned cannot be read any more."""
        self.workspace.close()

    def content(self) -> NoReturn:
        """Refused: it is bound to its table."""
        raise ConfigurationError("A recoding of item sets cannot be saved: it is bound to the table it was fitted on.")

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        raise ConfigurationError("A recoding of item sets cannot be loaded: it is bound to the table it was fitted on.")



def identity_of(df: DataFrame, items: str, sensitive: str | None) -> tuple[int, int]:
    """Identity of a table: the number of its rows, and the sum of hashes of their content. Cost: one job."""
    content: list[Column] = [F.isnull(quoted(items)), F.sort_array(F.array_distinct(plain_items(items)))]
    if sensitive is not None:
        content += [F.isnull(quoted(sensitive)), F.col(quoted(sensitive))]
    hashed = F.xxhash64(*content).cast("decimal(20,0)")
    totals = df.agg(F.count(F.lit(1)), F.coalesce(F.sum(hashed), F.lit(0))).collect()[0]
    return int(totals[0]), int(totals[1])
