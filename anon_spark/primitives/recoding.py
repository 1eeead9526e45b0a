"""What every family's `fit` returns: a value that turns a table into a release."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame

from anon_spark.errors import ConfigurationError

FORMAT = 1


class Recoding(ABC):
    """A recoding: apply it with `transform`, look at it with `facts`, keep it with `save` where the family allows it."""

    family: str
    warnings: Sequence[str]

    @abstractmethod
    def transform(self, df: DataFrame) -> DataFrame:
        """The release of a table, published columns only. It keeps the guarantee only after an audit said so."""

    @abstractmethod
    def staged(self, df: DataFrame, key: DataFrame) -> DataFrame:
        """The release of the fitted table in the order the key gives it, with the private columns its audit needs."""

    def evidence(self) -> Mapping[str, DataFrame]:
        """Private frames for the audit, by name."""
        return {}

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Plain numbers and names for the report; no value of a record."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What `save` writes, as plain JSON values: no tuple of the table."""

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
        family = str(content.get("family"))
        if not family.isidentifier() or find_spec(f"anon_spark.families.{family}") is None:
            raise ConfigurationError(f"{path}: not a recoding of a known family.")
        kind: type[Recoding] = import_module(f"anon_spark.families.{family}.recoding").RECODING
        try:
            return kind.from_content(content)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"{path}: not a whole recoding. Fit again, or take an unchanged copy.") from error

    def close(self) -> None:  # noqa: B027 - most recodings own no files
        """Remove private files of the fit, if any."""
