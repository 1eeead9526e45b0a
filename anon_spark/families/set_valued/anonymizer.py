"""The fit of the family `set_valued`: Gray order, blocks, ring or groups, assignments."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Literal

from pyspark.sql import DataFrame

from anon_spark.columns import BASE, MAX_ERRORS, UNCERTAIN
from anon_spark.config.options import default, require_options
from anon_spark.errors import ConfigurationError
from anon_spark.families.arguments import Anonymizer, check_arguments, spark_frame
from anon_spark.families.set_valued.block import Effort, GraphKind, Order, Settings, Truth
from anon_spark.families.set_valued.facts import FitTimes
from anon_spark.families.set_valued.job import TRUTH, SetValuedJob, SetValuedPrivacySpec, SetValuedSpec
from anon_spark.families.set_valued.recoding import SetValuedRecoding, identity_of
from anon_spark.families.set_valued.records import Records, in_blocks, read_records, refuse_labels
from anon_spark.families.set_valued.slots import recode_blocks
from anon_spark.model.progress import Progress
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace, fitted
from anon_spark.primitives.tables import refuse_several_rows, require_columns

LEAST = 2
DEFINITION_ONLY = "The guarantee is by its definition only: one known link reveals a whole ring or group."
RING = (
    "Graph ring: rows overlap, so that more item sets can be worked out than with groups, and a known link tells of others in "
    "its block."
)


@dataclass(frozen=True, kw_only=True)
class SetValuedAnonymizer(Anonymizer):
    """Nonreciprocal recoding of item sets: every record is published as one of k rows that each stand for k records.

    Parameters are those of the job file: k, or l with a sensitive column. With `person`, every person must have one row;
    `truth="paper"` is for reproduction, it does not keep l. `key` is the secret of all draws; leave it out
    outside tests. `workdir` is a private place that all workers see (needed on a cluster).
    Guarantee of what `fit` returns: see SetValuedRecoding. Cost: one global sort, then blocks of some thousand records in
    tasks, quadratic inside a block.
    """

    items: str
    k: int | None = None
    l: int | None = None  # noqa: E741 - the literature's name
    sensitive: str | None = None
    person: str | None = None
    nulls: Literal["value", "suppress"] = default(SetValuedJob, "nulls")
    order: Order = default(SetValuedSpec, "order")
    segment: tuple[int, int] = default(SetValuedSpec, "segment")
    graph: GraphKind = default(SetValuedSpec, "graph")
    effort: Effort = default(SetValuedSpec, "effort")
    truth: Truth = TRUTH
    block: int = default(SetValuedSpec, "block")
    key: str | None = field(default=None, repr=False)
    workdir: str | None = None
    progress: Progress | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_arguments(self)
        require_options(self, SetValuedJob, SetValuedPrivacySpec, SetValuedSpec)
        if (self.k is None) == (self.l is None):
            raise ConfigurationError("Give k, or l with a sensitive column: one of them.")
        if self.l is not None and self.sensitive is None:
            raise ConfigurationError("l needs a sensitive column: the values that must differ.")
        named = self._named()
        if len(set(named)) < len(named):
            raise ConfigurationError("A column has one role: name each column once.")
        if self.sensitive is not None and self.sensitive.lower() in (BASE, UNCERTAIN, MAX_ERRORS):
            raise ConfigurationError(f"sensitive {self.sensitive} has the name of a column of the release. Rename it.")

    def fit(self, df: DataFrame, workspace: Workspace | None = None) -> SetValuedRecoding:
        """Recode the table.

        The recoding keeps private files: in the workspace given, else in one of its own until `close`, or the end of the
        program.
        """
        df = spark_frame(df)
        require_columns(df, self._named())
        if self.person is not None:
            refuse_several_rows(df, self.person)
        return fitted(df.sparkSession, self.workdir, workspace, partial(self._fit, df))

    def _fit(self, df: DataFrame, workspace: Workspace) -> SetValuedRecoding:
        settings = Settings(self.k, self.l, self.order, self.segment, self.graph, self.truth, self.block, self.effort)
        key = self.key if self.key is not None else secrets.token_hex(16)
        started = perf_counter()
        # 1. records in Gray order
        self._tell(0, "records in Gray order")
        records = read_records(df, self.items, self.sensitive, self.nulls, key_frame(df.sparkSession, key), workspace)
        refuse_labels(records, settings)
        sorted_at = perf_counter()
        # 2. segments and blocks
        self._tell(1, "segments and blocks")
        blocked = in_blocks(records, settings, workspace)
        blocked_at = perf_counter()
        # 3. per block: order, graph, all assignments, one chosen
        self._tell(2, "order and graph of each block")
        slots = recode_blocks(blocked, records, settings, key, workspace)
        self._tell(3, "order and graph of each block")
        return SetValuedRecoding(
            items=self.items,
            sensitive=self.sensitive,
            settings=settings,
            records=records,
            slots=slots,
            workspace=workspace,
            key=key,
            identity=identity_of(df, self.items, self.sensitive),
            statistics=FitTimes(
                seconds=round(perf_counter() - blocked_at, 3),
                seconds_sort=round(sorted_at - started, 3),
                seconds_blocks=round(blocked_at - sorted_at, 3),
            ),
            warnings=self._warnings(records),
        )

    def _warnings(self, records: Records) -> list[str]:
        messages = []
        if records.duplicates:
            messages.append(f"{records.duplicates:,} records name an item twice; it counts once.")
        if records.empty:
            messages.append(f"{records.empty:,} records have no items; the error rate leaves them out.")
        if LEAST in (self.k, self.l) or (self.l is not None and self.truth == "shift" and self.graph == "ring"):
            messages.append(DEFINITION_ONLY)
        if self.graph == "ring":
            messages.append(RING)
        if self.l is not None and self.truth == "paper" and self.graph == "ring":
            messages.append(
                "truth paper does not keep l: rows that may be a record's can carry the same sensitive value."
            )
        return messages

    def _tell(self, done: int, what: str) -> None:
        if self.progress is not None:
            self.progress(done, 3, what)

    def _named(self) -> list[str]:
        return [name for name in (self.items, self.sensitive, self.person) if name is not None]
