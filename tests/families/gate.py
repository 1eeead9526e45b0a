"""A gate to attack: one fitted recoding, its honest stage, and what the real audit says of a stage that was tampered with.

Faults sit between fit and audit: in the staged rows, in what the recoding claims or hands over as evidence, or in several of
these that agree with each other. Each is judged by the family's own `verify` and by `require_all`, as a run does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from anon_spark.columns import ORDER
from anon_spark.errors import GuaranteeViolated
from anon_spark.families.contract import Staged
from anon_spark.primitives.ordering import key_frame, shuffled, with_order
from anon_spark.primitives.rounds import Workspace
from anon_spark.runs.preparation import Preparation, prepare
from anon_spark.runs.run import require_all, run
from tests.town import Town

KEY = "planted-run-key"
Record = dict[str, Any]


@dataclass(frozen=True)
class Attempt:
    """What is handed to the audit instead of the honest stage: rows, recoding, source or order of rows."""

    rows: Sequence[Record] | None = None
    recoding: Any = None
    source: DataFrame | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # types of added columns
    ordered: bool = True


@dataclass(frozen=True)
class Gate:
    """A job that was fitted and staged honestly."""

    town: Town
    prepared: Preparation
    workspace: Workspace
    recoding: Any
    staged: DataFrame

    @classmethod
    def of(cls, town: Town, work: str, **changes: Any) -> Gate:
        prepared = prepare(town.job(**changes), town.spark)
        workspace = Workspace(town.spark, work)
        recoding = prepared.steps.fit(prepared.source.frame, workspace, KEY, None)
        staged = workspace.store(recoding.staged(prepared.source.frame, key_frame(town.spark, KEY)), "honest")
        return cls(town, prepared, workspace, recoding, staged)

    @property
    def source(self) -> DataFrame:
        return self.prepared.source.frame

    def rows(self) -> list[Record]:
        """The honest rows, to be tampered with, in an order that every run gives them."""
        return copy.deepcopy(self._rows)

    @cached_property
    def _rows(self) -> list[Record]:
        return sorted((row.asDict(recursive=True) for row in self.staged.collect()), key=repr)

    def failed(self, attempt: Attempt) -> list[str]:
        """The checks by which the gate refuses; none: the release would be published."""
        recoding = self.recoding if attempt.recoding is None else attempt.recoding
        source = self.source if attempt.source is None else attempt.source
        key, staged = key_frame(self.town.spark, KEY), self.staged
        if attempt.rows is not None:
            staged = self._staged(attempt, recoding, key)
        try:
            verdicts = self.prepared.steps.verify(Staged(source, staged, recoding, key, self.workspace)).verdicts
            require_all(verdicts)
        except GuaranteeViolated as error:
            return list(error.facts.get("checks", [error.facts.get("check")]))
        return []

    def _staged(self, attempt: Attempt, recoding: Any, key: DataFrame) -> DataFrame:
        assert attempt.rows is not None
        schema = copy.deepcopy(self.staged.schema)
        for name, kind in attempt.columns.items():
            schema = schema.add(name, kind)
        names = [name for name in schema.names if not attempt.rows or name in attempt.rows[0]]
        arrow = to_arrow_schema(StructType([schema[name] for name in names]))
        table = pa.Table.from_pylist(list(attempt.rows), schema=arrow)
        frame = self.town.spark.createDataFrame(table).coalesce(1)
        if attempt.ordered:
            frame = with_order(frame, key, [name for name in recoding.published if name in names])
            frame = frame.sortWithinPartitions(ORDER).drop(ORDER)
        return self.workspace.store(frame, "tampered")


def lying(recoding: Any, **claims: Any) -> Any:
    """A recoding that says something else: values replace fields and properties, functions replace methods."""

    def method(claim: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *given: claim(*given)

    def value(claim: Any) -> property:
        return property(lambda self: claim)

    said = {name: method(claim) if callable(claim) else value(claim) for name, claim in claims.items()}
    liar = copy.copy(recoding)
    object.__setattr__(liar, "__class__", type(type(recoding).__name__, (type(recoding),), said))
    return liar


Fault = Callable[[Gate], Attempt]
Faults = dict[str, tuple[str, Fault]]  # name → the check that must refuse it, and how it is done


def tried(faults: Faults) -> list[Any]:
    """All faults; those that are not the first that their check must refuse are long."""
    first = {check: name for name, (check, _) in reversed(faults.items())}
    return [pytest.param(name, marks=[] if name in first.values() else pytest.mark.long) for name in faults]


def one_changed(at: Callable[[Record], bool], column: str, value: Callable[[Any], Any]) -> Fault:
    """The first row for which something holds, with another value in a column."""

    def change(gate: Gate) -> Attempt:
        rows = gate.rows()
        row = next(row for row in rows if at(row))
        before = row[column]
        row[column] = value(before)
        assert repr(row[column]) != repr(before), "no fault was planted"
        return Attempt(rows)

    return change


def refused_by_a_run(gate: Gate, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[DataFrame], DataFrame]) -> list[str]:
    """One fault through a whole run: the checks that failed, when nothing was published and the run log says so."""
    kind = type(gate.recoding)
    honest = kind.staged

    def staged(self: Any, df: DataFrame, key: DataFrame) -> DataFrame:
        return shuffled(spoil(honest(self, df, key)), key, self.published)

    monkeypatch.setattr(kind, "staged", staged)
    with pytest.raises(GuaranteeViolated) as caught:
        run(gate.prepared)
    assert gate.town.versions == 0 and gate.town.runs[-1].status == "failed"
    return list(caught.value.facts["checks"])


def without_a_row(staged: DataFrame) -> DataFrame:
    """A stage that lost a row."""
    return staged.coalesce(1).where(F.monotonically_increasing_id() > 0)
