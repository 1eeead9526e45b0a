"""The recoding: what every family's `fit` returns, a value that turns a table into a release."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame

from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import NAMES, family_of
from anon_spark.model.facts import Facts, FitStatistics
from anon_spark.report.notebook import shown_table

FORMAT = 1


class Recoding(ABC):
    """A recoding: apply it with `transform`, look at it with `facts`, keep it with `save` where the family allows it."""

    family: str
    warnings: Sequence[str]
    statistics: FitStatistics  # how the fit went

    @property
    @abstractmethod
    def published(self) -> list[str]:
        """The columns of the release, in their order."""

    @abstractmethod
    def transform(self, df: DataFrame) -> DataFrame:
        """The release of a table, published columns only. Only an audit shows that it keeps the guarantee."""

    @abstractmethod
    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release of the fitted table, ordered by the key, with the private columns that its audit needs."""

    def evidence(self) -> Mapping[str, DataFrame]:
        """Private frames for the audit, by name."""
        return {}

    @abstractmethod
    def facts(self) -> Facts:
        """Facts of the fit, without any value of a record."""

    def left_out(self) -> dict[str, int]:
        """Rows of the fitted table that are left out, by reason: suppressed, dropped_nulls, dropped_unseen."""
        return {"suppressed": 0, "dropped_nulls": 0, "dropped_unseen": 0}

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """The content of a saved recoding, as plain JSON values: no tuple of the table."""

    @classmethod
    @abstractmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of `content`."""

    def save(self, path: str | Path) -> None:
        """Write the recoding as one JSON file."""
        content = {"anon_spark_recoding": FORMAT, "family": self.family, **self.content()}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(content, indent=1), encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> Recoding:
        """Read a saved recoding of any family."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ConfigurationError(f"{path}: not a readable recoding. Give a file that save() wrote.") from error
        if not isinstance(content, dict) or content.get("anon_spark_recoding") != FORMAT:
            raise ConfigurationError(f"{path}: not a recoding of format {FORMAT}. Fit again with this version.")
        if content.get("family") not in NAMES:
            raise ConfigurationError(f"{path}: not a recoding of a known family.")
        kind: type[Recoding] = family_of(content["family"]).recoding
        try:
            return kind.from_content(content)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"{path}: not a whole recoding. Fit again, or take an unchanged copy.") from error

    def shown(self) -> dict[str, Any]:
        """The recoding in a few names and numbers, for a notebook."""
        return {"publishes": ", ".join(self.published), "fitted in": f"{self.statistics.seconds:.1f} s"}

    def _repr_html_(self) -> str:
        notes = [*self.facts().summary(), *self.warnings]
        return shown_table(f"{type(self).__name__}: not verified yet", self.shown(), notes)

    def close(self) -> None:  # noqa: B027 - most recodings own no files
        """Remove private files of the fit, if any."""
