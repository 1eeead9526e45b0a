"""Tables that a command line names instead of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from pydantic import ValidationError
from pyspark.sql import SparkSession

from anon_spark.config import InputSpec, is_path, is_uri, resolve_table
from anon_spark.config.problems import problems
from anon_spark.errors import ConfigurationError
from anon_spark.io.tables import Snapshot, read_snapshot

FORMATS: tuple[str, ...] = get_args(InputSpec.model_fields["format"].annotation)


def columns_of(text: str) -> tuple[str, ...]:
    """The names in a list such as age,sex,zip."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def pair_of(text: str) -> tuple[str, str]:
    """An option of Spark's reader."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigurationError("--option: give KEY=VALUE, such as header=true.")
    return name, value


def place_of(text: str) -> str:
    """The place of a table; a file or folder of the working folder needs no ./ before it."""
    return f"./{text}" if not is_path(text) and Path(text).exists() else text


def format_of(text: str, asked_for: str | None) -> str:
    """The format of a table: that of its files where they show it, else what was asked for, else delta."""
    place = place_of(text)
    if is_path(place) and not is_uri(place) and (Path(place) / "_delta_log").is_dir():
        return "delta"
    ending = Path(place).suffix.removeprefix(".").lower()
    return asked_for or (ending if is_path(place) and ending in FORMATS else "delta")


def table_of(text: str, kind: str | None, settings: Mapping[str, str], what: str) -> InputSpec:
    """The table that a command names. Raises ConfigurationError; needs no Spark."""
    place = resolve_table(place_of(text), Path.cwd())
    try:
        return InputSpec.model_validate({"table": place, "format": kind or format_of(text, None), "options": dict(settings)})
    except ValidationError as error:
        found = [f"{what}: {fault}" for _, fault in problems(error, InputSpec)]
        raise ConfigurationError("\n".join(found), problems=found) from None


def read_named(spark: SparkSession, spec: InputSpec, what: str) -> Snapshot:
    """The table; a fault speaks of the words of the command line."""
    try:
        return read_snapshot(spark, spec, what)
    except ConfigurationError as error:
        text = str(error).replace(f"{what}.table", what).replace(f"{what}.format", "--format")
        raise ConfigurationError(text) from error
