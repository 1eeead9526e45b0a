"""Pipeline steps shared by families whose sensitive columns may have models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import Kind, Verdict
from anon_spark.auditing.guarantees.models import models_check
from anon_spark.auditing.reading.scope import rows_in_scope
from anon_spark.config.models import SensitiveJob
from anon_spark.families.contract import Audit
from anon_spark.families.quasi_identifiers import QuasiIdentifierPipeline
from anon_spark.families.recoding import Recoding
from anon_spark.io.hierarchies import load_hierarchies
from anon_spark.model.facts import LookUpFacts, ModelSpread
from anon_spark.model.guarantee.models import Models
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.pending import Pending
from anon_spark.primitives.classes.sensitive import refuse_unordered, text_columns

Q = TypeVar("Q", bound=SensitiveJob)
R = TypeVar("R", bound=Recoding)
T = TypeVar("T", bound=LookUpFacts)


@dataclass(frozen=True)
class SensitivePipeline(QuasiIdentifierPipeline[Q, R, T], Generic[Q, R, T]):
    """The steps that need only the models of the job. distances: hierarchies of t-closeness, by sensitive column."""

    distances: Mapping[str, Hierarchy | Rule] = field(default_factory=dict)

    @property
    def models(self) -> Models:
        """The models of the job, by sensitive column."""
        return self.job.privacy.models(self.distances)

    def check_types(self, df: DataFrame) -> None:
        super().check_types(df)
        refuse_unordered(df, self.models)
        text_columns(df, self.models)  # refuses types that have no model

    def fingerprint(self) -> str:
        """As in every family, with the hierarchies of distances."""
        if not self.distances:
            return super().fingerprint()
        distances = {name: hierarchy.to_dict() for name, hierarchy in self.distances.items()}
        return super().fingerprint() + "\n" + json.dumps(distances, sort_keys=True)

    def models_of(
        self, source: DataFrame, release: DataFrame, hierarchies: Mapping[str, Hierarchy], models: Models
    ) -> Pending[tuple[Verdict, ...]]:
        """The audit of models, compared with the rows of the source in scope. hierarchies: complete ones."""
        scope = rows_in_scope(source, hierarchies, self.job.nulls, list(models))
        return models_check(release, scope, list(hierarchies), models)


def load_distances(job: SensitiveJob, spark: SparkSession | None) -> dict[str, Hierarchy | Rule]:
    """The hierarchies of distances between sensitive values, by column."""
    return load_hierarchies(job.privacy.distances, spark, "privacy.sensitive")


def model_spreads(audit: Audit) -> tuple[ModelSpread, ...]:
    """How the published classes keep each model, as the audit counted them."""
    found = [verdict.facts for verdict in audit.verdicts if verdict.kind == Kind.PROMISE and "model" in verdict.facts]
    return tuple(
        ModelSpread(facts["column"], facts["model"], facts["limit"], facts["worst"], tuple(map(tuple, facts["histogram"])))
        for facts in found
    )
