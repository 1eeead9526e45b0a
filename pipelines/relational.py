"""What the pipelines of tables with quasi-identifiers share: columns, guarantees of hygiene, warnings, estimates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from anon_spark.audit import Verdict, completed, verify_columns
from anon_spark.columns import ROWS, quoted
from anon_spark.config import LatticeJob, MstJob
from anon_spark.errors import ConfigurationError
from anon_spark.model.estimate import ROUNDING
from anon_spark.model.findings import Finding
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.lattice import lattice_of
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import code_columns, refuse_unseen
from anon_spark.primitives.encoding import dictionaries, fractions, with_keys
from anon_spark.primitives.recoding import Recoding
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tables import require_columns
from anon_spark.risk.uniqueness import Uniqueness
from pipelines.findings import Shown


@dataclass(frozen=True)
class RelationalPipeline:
    """The steps that need only the columns' roles and hierarchies; a family adds its own."""

    job: LatticeJob | MstJob
    hierarchies: Mapping[str, Hierarchy | Rule]

    @property
    def published(self) -> list[str]:
        return list(self.job.columns.published)

    def fingerprint(self) -> str:
        """What the hierarchies say, which the job file only points to."""
        return json.dumps({name: hierarchy.to_dict() for name, hierarchy in self.hierarchies.items()}, sort_keys=True)

    def read(self, df: DataFrame) -> DataFrame:
        """What the release depends on."""
        person = [self.job.columns.person] if self.job.columns.person else []
        return df.select(*(F.col(quoted(name)) for name in (*self.published, *person)))

    def check_columns(self, df: DataFrame) -> None:
        columns = self.job.columns
        named = [*self.published, *columns.identifiers, *([columns.person] if columns.person else [])]
        require_columns(df, named)
        with_keys(df, self.hierarchies)  # refuses types that have no hierarchy
        for name in (*columns.sensitive, *columns.keep):
            if without_order(df.schema[name].dataType):
                raise ConfigurationError(
                    f"Column {name}: a map or variant cannot be published, because it has no order to shuffle by. "
                    "Turn it into an array or a text, or leave it out."
                )

    @property
    def shown(self) -> Shown:
        """Labels of the quasi-identifiers and kept columns are what may be known; a person may have several rows in lattice."""
        columns, names = self.job.columns, tuple(self.hierarchies)
        person = columns.person if isinstance(self.job, LatticeJob) else None
        return Shown(names, names, columns.keep, columns.sensitive, person)

    @property
    def grave(self) -> frozenset[str]:
        return frozenset()

    def whose(self, release: DataFrame, workspace: Workspace) -> tuple[DataFrame, str | None]:
        """The rows of the release; a family whose persons have several rows says whose they are."""
        return release, None

    def warnings(self, recoding: Recoding) -> list[str]:
        """What the fit has to say."""
        return list(recoding.warnings)

    def attacks(self, facts: Mapping[str, Any]) -> list[Finding]:
        """A look-up that finds a row more often than 1 / k: counted, so one row is enough."""
        link = facts["risk"]["link_attack"]
        worst = link.get("worst_success_if_the_class_is_known", link["worst_success_after"])
        if worst <= link["promised_at_most"] + ROUNDING:
            return []
        text = f"The simulated look-up finds a row with {worst:.4f} at worst, promised at most {link['promised_at_most']:.4f}."
        return [Finding("look", "attack", text, worst)]

    def estimate(self, df: DataFrame) -> dict[str, int]:
        """Rows, distinct tuples, nulls, unseen values and lattice nodes; unseen values raise as in a run.

        Cost: two jobs, and one for persons; writes nothing.
        """
        keyed = with_keys(df, self.hierarchies)
        tuples = keyed.groupBy(*(F.col(quoted(name)) for name in self.hierarchies)).agg(F.count(F.lit(1)).alias(ROWS))
        counted = tuples.agg(F.count(F.lit(1)), F.coalesce(F.sum(ROWS), F.lit(0))).first()
        assert counted is not None
        found = dictionaries(keyed, self.hierarchies, self.job.nulls, fractions(df, self.hierarchies))
        if self.job.on_unseen == "error":
            refuse_unseen(found)
        person = self.job.columns.person
        return {
            "rows": int(counted[1]),
            **({"persons": df.select(quoted(person)).distinct().count()} if person else {}),
            "distinct_tuples": int(counted[0]),
            "lattice_nodes": lattice_of([entry.hierarchy for entry in found]).size,
            "rows_with_unseen_values": max((entry.unseen_rows for entry in found), default=0),
            "null_cells": sum(entry.null_rows for entry in found),
        }

    def unique_before(self, counted: Frequencies) -> float:
        """Share of source rows that are alone on their quasi-identifiers. Cost: one job over the distinct tuples."""
        tuples = counted.frame.groupBy(*code_columns(len(self.hierarchies))).agg(F.sum(ROWS).alias(ROWS))
        return Uniqueness(counted.rows, counted.tuples, tuples.where(F.col(ROWS) == 1).count()).share

    def buckets(self, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
        """Sizes of the published classes, as the audit counted them."""
        sizes = next(v.facts["histogram"] for v in verdicts if v.name == f"{self.job.privacy.k}-anonymity")
        return [dict(zip(("from", "to", "classes", "rows"), bucket, strict=True)) for bucket in sizes]

    def hierarchies_of(self, source: DataFrame) -> dict[str, Hierarchy]:
        """The hierarchies as they apply to the source: rules completed, the null leaf where it has nulls to keep."""
        keyed = with_keys(source, self.hierarchies)
        found = dictionaries(keyed, self.hierarchies, self.job.nulls, fractions(source, self.hierarchies))
        return {entry.name: entry.hierarchy for entry in found}

    def audited_hierarchies(self, source: DataFrame) -> dict[str, Hierarchy]:
        """The job's hierarchies, rules completed by the audit's own reading of the source."""
        return completed(source, self.hierarchies, self.job.nulls)

    def _column_verdict(self, release: DataFrame) -> Verdict:
        columns = self.job.columns
        forbidden = [*columns.identifiers, *([columns.person] if columns.person else [])]
        return verify_columns(release, self.published, forbidden, list(self.hierarchies))

    @property
    def _unchanged(self) -> list[str]:
        return [*self.job.columns.sensitive, *self.job.columns.keep]


def without_order(kind: DataType) -> bool:
    """Whether a type holds a map or a variant somewhere: Spark hashes neither."""
    if isinstance(kind, ArrayType):
        return without_order(kind.elementType)
    if isinstance(kind, StructType):
        return any(without_order(part.dataType) for part in kind.fields)
    return isinstance(kind, (MapType, VariantType))
