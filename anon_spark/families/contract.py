"""The interface of a family: its job, its recoding, and the pipeline that a run executes.

Here are the parts that all families share; a family adds only its own. `anon_spark/families/registry.py` lists the families.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from anon_spark.auditing import (
    Kind,
    RowAccount,
    Verdict,
    verify_columns,
    verify_rows,
)
from anon_spark.auditing.release.content import contents_to_be, copy_check
from anon_spark.auditing.release.hygiene import order_check
from anon_spark.auditing.release.persons import one_row_each_check
from anon_spark.columns import quoted
from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.families.recoding import Recoding
from anon_spark.io.description import OURS
from anon_spark.model.distributions import MOST_LABELS, of_counts
from anon_spark.model.facts import Distribution, Facts, LabelCount
from anon_spark.model.findings import Finding
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.progress import Progress
from anon_spark.pending import Pending, together
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns
from anon_spark.report import Section
from anon_spark.report.columns import left_out_words
from anon_spark.risk.look_up.frequent import frequent_values_to_be
from anon_spark.risk.republication.versions import Version
from anon_spark.samples.sample import Sample

J = TypeVar("J", bound=JobSpec)
R = TypeVar("R", bound=Recoding)
T = TypeVar("T", bound=Facts)

UNREADABLE = "The audit cannot read the staged release, or what came with it, as the job describes it. Nothing was published."


class Guarantee(Protocol):
    """The promise of a release, as reports and plans show it."""

    @property
    def k(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, float]: ...
    @property
    def covers(self) -> tuple[str, ...]: ...
    @property
    def does_not_cover(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Shown:
    """Columns of a release, by what an attacker may know of them.

    quasi_identifiers: columns of the source that are generalized and can be compared with unchanged ones; relational: published
    columns that are neither sensitive nor unchanged, items and paths aside; kept, sensitive: columns that are published
    unchanged; person: the source's column of persons, if a person may have several rows.
    """

    quasi_identifiers: tuple[str, ...] = ()
    relational: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    person: str | None = None

    @property
    def unchanged(self) -> list[str]:
        return [*self.sensitive, *self.kept]

    @property
    def single(self) -> list[tuple[str, str]]:
        """(column, role) of every unchanged column."""
        return [*((name, "kept") for name in self.kept), *((name, "sensitive") for name in self.sensitive)]


@dataclass(frozen=True)
class Worth:
    """The utility that is left in a release.

    loss: from 0 to 1, and the name of its measure; lost: columns of which nothing is left; everything: whether these are all
    columns; poor: kinds of counts whose error is larger than that of no answer.
    """

    loss: float | None
    measure: str
    lost: tuple[str, ...] = ()
    everything: bool = False
    poor: tuple[str, ...] = ()


@dataclass(frozen=True)
class Staged(Generic[R]):
    """A staged release as its audit gets it: with the private columns that link rows to records."""

    source: DataFrame
    rows: DataFrame
    recoding: R
    order_key: DataFrame
    workspace: Workspace
    contents: Pending[list[str]] | None = None  # digests of the input, where `source` is a copy of it
    columns: Sequence[Column] | None = None  # what is published of the rows, where that is not the columns of the release

    @property
    def small(self) -> bool:
        """Whether one task can hold the tables."""
        return self.workspace.small

    @cached_property
    def release(self) -> DataFrame:
        """The rows with the columns that the recoding names, not those of the job; a label may be published as its bounds."""
        return self.rows.select(*(F.col(quoted(name)) for name in self.recoding.published))

    @cached_property
    def published(self) -> DataFrame:
        """The rows as a run would publish them."""
        return self.release if self.columns is None else self.rows.select(*self.columns)


@dataclass(frozen=True)
class Examined:
    """The results of a family's own checks.

    promise: whether the guarantee holds; truth: whether every row is true of a record; account: where the rows went; figures:
    (claimed by the run, counted by the audit); more: checks of this family only.
    """

    promise: Sequence[Verdict]
    truth: Sequence[Verdict]
    account: RowAccount
    figures: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    more: Sequence[Verdict] = ()


@dataclass(frozen=True)
class Audit:
    """All checks of a staged release, where the rows of the source went, and a digest of the rows that were checked.

    read: the digests of the input, where a copy of it was compared with them.
    """

    verdicts: Sequence[Verdict]
    account: RowAccount
    content: str
    read: Sequence[str] = ()

    def first(self, kind: Kind) -> Verdict:
        """The first check of a kind; of the promise, this is the decisive one."""
        return next(verdict for verdict in self.verdicts if verdict.kind == kind)


@dataclass(frozen=True)
class Pipeline(ABC, Generic[J, R, T]):
    """The steps of one job. Everything that needs no row of the table is done when it is made."""

    job: J
    hierarchies: Mapping[str, Hierarchy | Rule]

    # --- each family defines these

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The promise of the release."""

    @property
    @abstractmethod
    def shown(self) -> Shown:
        """The columns of the release, by what may be known of them."""

    @property
    @abstractmethod
    def named(self) -> list[str]:
        """The columns of the table that the job reads, identifiers and person aside."""

    @abstractmethod
    def check_types(self, df: DataFrame) -> None:
        """Refuse columns that the family cannot read."""

    @abstractmethod
    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Counts of what a run would read. Raises as a run would; writes nothing."""

    @abstractmethod
    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> R:
        """The recoding of the table. key: the secret of every draw; families without draws ignore it."""

    @abstractmethod
    def examine(self, staged: Staged[R]) -> Pending[Examined]:
        """The family's checks of a staged release, all of which must pass before it is published."""

    @abstractmethod
    def examine_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> Examined:
        """The checks of the current release that need no private data of its run."""

    @abstractmethod
    def in_scope(self, source: DataFrame) -> DataFrame:
        """The rows of the source that no policy drops, with their persons, as the audit reads them; of tree a row per record."""

    @abstractmethod
    def facts(self, staged: Staged[R], audit: Audit) -> Pending[T]:
        """Facts for the report, the run log and comparisons: the fit, counts of the audit, what attackers gain."""

    @abstractmethod
    def worth(self, facts: T) -> Worth:
        """The utility that is left in the release."""

    @abstractmethod
    def attacks(self, facts: T) -> list[Finding]:
        """Findings of simulated attacks that succeed more often than promised."""

    @abstractmethod
    def sections(self, facts: T) -> list[Section]:
        """The family's part of the report."""

    # --- defaults; a family may override them

    def behind(self, staged: Staged[R]) -> DataFrame:
        """The rows of the source that the staged release holds, as `in_scope`. Called after the audit."""
        return self.in_scope(staged.source)

    def behind_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> DataFrame | None:
        """As `behind`, of a current release; None where only the run could tell."""
        return self.in_scope(source)

    def continuing(self, metadata: Mapping[str, Any]) -> Self:
        """The steps of the next increment of a series. metadata: of the commit of the increment before."""
        return self

    @property
    def grave(self) -> frozenset[str]:
        """Texts of the recoding's warnings that get the level `look`; the others get `note`."""
        return frozenset()

    @property
    def labelled(self) -> list[str]:
        """Published columns that hold labels of hierarchies, which are texts."""
        return list(self.hierarchies)

    @property
    def hidden(self) -> list[str]:
        """Columns of the table that must not be in a release, identifiers and person aside."""
        return []

    @property
    def counts_persons(self) -> bool:
        """Whether the guarantee itself counts persons; else each of them must have one row."""
        return False

    def homogeneous(self, facts: T) -> Mapping[str, float]:
        """Per sensitive column, the share of rows in classes that show one value of it."""
        return {}

    def says(self, facts: T) -> list[str]:
        """What holds and what is lost, in plain sentences."""
        return []

    def fingerprint(self) -> str:
        """The content of the hierarchies as text; the job file only points to it."""
        return json.dumps({name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()}, sort_keys=True)

    def read(self, df: DataFrame) -> DataFrame:
        """The part of the input that decides the release; equal inputs give equal frames."""
        return self.needed(df)

    def budget(self, rows: int) -> int:
        """How many of `rows` may be suppressed."""
        return 0

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release, and the column of persons where a person may have several rows."""
        return release, None

    def presented(self, staged: DataFrame, source: DataFrame, recoding: R) -> tuple[DataFrame, Sequence[Column] | None]:
        """The staged rows with what they show instead of labels, and the published columns; None: those of the release."""
        return staged, None

    def presentation_check(self, staged: Staged[R]) -> Pending[tuple[Verdict, ...]]:
        """Whether what is shown instead of labels says the same as the labels."""
        return Pending.known(())

    def as_labels(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> DataFrame:
        """A published release with labels, as the family's checks read it."""
        return release

    @property
    def unmeasured(self) -> str | None:
        """Why nobody measures what a replaced release and a new one tell together; None for a family with `version`."""
        return "for this family it is not measured"

    def version(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any], rows: int) -> Version:
        """A published or staged release and its source, as the measure of two releases reads them. rows: of the source."""
        raise NotImplementedError

    def warnings(self, recoding: R) -> list[str]:
        """The warnings of the fit."""
        return list(recoding.warnings)

    def metadata(self, recoding: R) -> dict[str, Any]:
        """Metadata of the commit beside that of the run: nothing that the release does not show."""
        return dict(self.guarantee.parameters)

    # --- the same for all families

    @property
    def published(self) -> list[str]:
        """The columns of a release, in their order."""
        return list(self.job.columns.published)

    @property
    def comments(self) -> dict[str, str]:
        """A comment for every published column: what was done to it. Names and settings only, never a value."""
        columns = self.job.columns
        texts = dict.fromkeys(self.published, "Generalized.")
        texts |= dict.fromkeys(columns.sensitive, "Sensitive. Published unchanged.")
        texts |= dict.fromkeys(columns.keep, "Published unchanged.")
        return texts | self.own_comments

    @property
    def own_comments(self) -> dict[str, str]:
        """Comments for the columns that the family makes."""
        return {}

    @property
    def description(self) -> str:
        """The description of the release as a table. Names and settings only, never a value."""
        return f"{OURS}, family {self.job.family}: {self.guarantee}. Verified before it was published."

    def expected(self, columns: Sequence[str]) -> list[str]:
        """The columns that a release with these columns should have; a family may leave one out."""
        return self.published

    def in_words(self, facts: T, account: RowAccount) -> list[str]:
        """The first sentences of a report: what holds, what is lost, how many rows were left out."""
        return [*self.says(facts), left_out_words(account.source, account.published)]

    @property
    def named_from(self) -> int:
        """The least number of rows, or persons, of a value that a report names."""
        return self.guarantee.k

    def unchanged_counts(self, staged: Staged[R], audit: Audit) -> Pending[tuple[Distribution, ...]]:
        """Rows before and after by value of every unchanged column; no value of fewer than k.

        Cost: a scan of the release, and of the source where rows were left out.
        """
        shown, k, account = self.shown, self.named_from, audit.account
        release, person = self.whose(staged.release, staged.workspace)
        names = [name for name, _ in shown.single]
        all_rows = account.source == account.published  # then the audit has shown that nothing differs
        both, after = ([], names) if all_rows else (names, [])
        most = MOST_LABELS + 1
        counted = frequent_values_to_be(staged.source, release, both, k, most, person, after, staged.small)

        def distributions(found: Mapping[str, Sequence[LabelCount]]) -> tuple[Distribution, ...]:
            counts = {name: [replace(one, before=one.after) for one in of] if all_rows else of for name, of in found.items()}
            return tuple(
                of_counts(name, role, counts[name], k, account.source, account.published)
                for name, role in shown.single
                if name in counts
            )

        return counted.then(distributions)

    @property
    def persons(self) -> list[str]:
        """The column of persons, if there is one."""
        return [] if self.job.columns.person is None else [self.job.columns.person]

    def needed(self, df: DataFrame) -> DataFrame:
        """The columns of the input that a run looks at."""
        return df.select(*(F.col(quoted(name)) for name in (*self.named, *self.persons)))

    @property
    def unchanged(self) -> list[str]:
        """Columns that are published unchanged."""
        return [*self.job.columns.sensitive, *self.job.columns.keep]

    def check_columns(self, df: DataFrame) -> None:
        """Refuse a table that lacks columns of the job, or has them in types that cannot be read or published."""
        require_columns(df, [*self.named, *self.job.columns.identifiers, *self.persons])
        self.check_types(df)
        for name in self.unchanged:
            if without_order(df.schema[name].dataType):
                raise ConfigurationError(
                    f"Column {name}: a map or variant cannot be published, because it has no order to shuffle by. "
                    "Turn it into an array or a text, or leave it out."
                )

    def verify(self, staged: Staged[R]) -> Audit:
        """All checks that must pass before a staged release is published.

        An unreadable release is refused like one that violates the guarantee. To the audit's functions a missing column is a
        wrong argument; in a run it is a fault of the staged release, because the job was checked before.
        """
        try:
            return self._verified(staged)
        except ConfigurationError as error:
            raise GuaranteeViolated(f"{UNREADABLE} {error}", checks=["readable"]) from error
        except AnalysisException as error:  # its text may hold more than names
            raise GuaranteeViolated(UNREADABLE, checks=["readable"]) from error

    def _verified(self, staged: Staged[R]) -> Audit:
        release = staged.published
        columns, expected = self.column_verdict(release), self.expected(release.columns)
        if set(expected) - set(release.columns) or len(set(release.columns)) < len(release.columns):
            columns.require()
        examined, order, persons, (copied, read), digests, presented = together(
            self.examine(staged),
            order_check(staged.rows, staged.order_key, staged.recoding.published),
            self._one_row_each(staged.source),
            copy_check(self.read(staged.source), staged.contents),
            contents_to_be(release, release.columns),
            self.presentation_check(staged),
        ).get()
        require_examined(examined)
        rows = self._row_verdict(examined, staged.recoding.left_out())
        verdicts = [columns, *examined.promise, *examined.truth, *presented, *persons, rows, *copied, order, *examined.more]
        return Audit(verdicts, examined.account, digests[0], read)

    def verify_current(self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]) -> list[Verdict]:
        """The verdicts on the current release."""
        columns = self.column_verdict(release)
        if set(self.expected(release.columns)) - set(release.columns):
            return [columns]
        examined = self.examine_current(source, self.as_labels(source, release, metadata), metadata)
        persons = self._one_row_each(source).get()
        return [columns, *examined.promise, *examined.truth, *persons, self._row_verdict(examined, {}), *examined.more]

    def column_verdict(self, release: DataFrame) -> Verdict:
        """Whether a release has the columns that it should have, and no other."""
        forbidden = [*self.job.columns.identifiers, *self.persons, *self.hidden]
        return verify_columns(release, self.expected(release.columns), forbidden, self.labelled)

    def _one_row_each(self, source: DataFrame) -> Pending[tuple[Verdict, ...]]:
        checked = () if self.counts_persons else self.persons
        return together(*(one_row_each_check(source, person) for person in checked))

    def _row_verdict(self, examined: Examined, claimed: Mapping[str, int]) -> Verdict:
        account = examined.account
        in_scope = account.source - account.dropped_nulls - account.dropped_unseen
        return verify_rows(account, self.budget(in_scope), claimed, examined.figures)


@dataclass(frozen=True)
class Family(Generic[J, R, T]):
    """A family: its name in job files, its job type, and the factory of its pipeline.

    sample: the table of its demonstration. draws: whether its releases depend on a secret draw, made once per table.
    """

    name: str
    job: type[J]
    pipeline: Callable[[J, SparkSession | None], Pipeline[J, R, T]]
    recoding: type[R]
    sample: Sample
    draws: bool = False


def require_examined(examined: Examined) -> None:
    """Refuse a staged release whose family checked no promise or no truth: without a check nothing can fail."""
    checks = {"promise": examined.promise, "truth": examined.truth}
    unchecked = [kind for kind, verdicts in checks.items() if not verdicts]
    if unchecked:
        raise GuaranteeViolated(f"The family checked no {' and no '.join(unchecked)}. Nothing was published.", checks=unchecked)


def without_order(kind: DataType) -> bool:
    """Whether a type holds a map or a variant somewhere: Spark hashes neither."""
    if isinstance(kind, ArrayType):
        return without_order(kind.elementType)
    if isinstance(kind, StructType):
        return any(without_order(part.dataType) for part in kind.fields)
    return isinstance(kind, (MapType, VariantType))
