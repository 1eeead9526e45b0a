"""Which pipeline a job goes to, and what a pipeline is: a new family is a module here and two lines below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from anon_spark.audit import RowAccount, Verdict
from anon_spark.config import JobSpec, LatticeJob, MstJob, RelationalTransactionJob, SetValuedJob, TreeJob
from anon_spark.errors import ConfigurationError
from anon_spark.model.findings import Finding
from anon_spark.model.progress import Progress
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import Section
from pipelines.findings import Shown, Worth
from pipelines.lattice import LatticePipeline
from pipelines.mst import MstPipeline
from pipelines.relational_transaction import RelationalTransactionPipeline
from pipelines.set_valued import SetValuedPipeline
from pipelines.tree import TreePipeline

# families whose releases hang on a secret draw, which is made once per table
RANDOMIZED = frozenset({"relational_transaction", "set_valued"})


class Guarantee(Protocol):
    """What a release promises, as a report and a plan tell it."""

    @property
    def k(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def covers(self) -> tuple[str, ...]: ...
    @property
    def does_not_cover(self) -> tuple[str, ...]: ...


class FamilyPipeline(Protocol):
    """The steps of one job. A recoding is whatever the family's own `fit` returned.

    `fit` gets the run's key, the secret of every draw; a family that draws nothing leaves it alone.
    """

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def published(self) -> list[str]: ...
    def fingerprint(self) -> str: ...
    def check_columns(self, df: DataFrame) -> None: ...
    def read(self, df: DataFrame) -> DataFrame: ...  # what the release depends on, equal for inputs that are alike
    def estimate(self, df: DataFrame) -> dict[str, int]: ...
    def fit(self, df: DataFrame, workspace: Workspace, key: str, progress: Progress | None) -> Any: ...
    def verify(
        self, source: DataFrame, staged: DataFrame, recoding: Any, key: DataFrame, workspace: Workspace
    ) -> tuple[list[Verdict], RowAccount]: ...
    def verify_published(
        self, source: DataFrame, release: DataFrame, metadata: Mapping[str, Any]
    ) -> list[Verdict]: ...
    @property
    def shown(self) -> Shown: ...
    @property
    def grave(self) -> frozenset[str]: ...
    def warnings(self, recoding: Any) -> list[str]: ...
    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]: ...
    def worth(self, facts: Mapping[str, Any]) -> Worth: ...
    def attacks(self, facts: Mapping[str, Any]) -> list[Finding]: ...
    def risk(
        self, source: DataFrame, release: DataFrame, recoding: Any, verdicts: Sequence[Verdict], rows: int
    ) -> dict[str, Any]: ...
    def facts(self, recoding: Any, verdicts: Sequence[Verdict], risk: Mapping[str, Any]) -> dict[str, Any]: ...
    def metadata(self, recoding: Any) -> dict[str, Any]: ...
    def sections(self, facts: Mapping[str, Any]) -> list[Section]: ...


def pipeline_of(job: JobSpec, spark: SparkSession | None) -> FamilyPipeline:
    """The steps of the job's family, its hierarchies loaded and checked."""
    if isinstance(job, LatticeJob):
        return LatticePipeline.of(job, spark)
    if isinstance(job, MstJob):
        return MstPipeline.of(job, spark)
    if isinstance(job, RelationalTransactionJob):
        return RelationalTransactionPipeline.of(job, spark)
    if isinstance(job, SetValuedJob):
        return SetValuedPipeline(job)
    if isinstance(job, TreeJob):
        return TreePipeline.of(job, spark)
    raise ConfigurationError(f"family {job.family} is not in this version.")
