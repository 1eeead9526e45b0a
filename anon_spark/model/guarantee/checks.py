"""Checks of every guarantee: refuse numbers that protect nobody, and columns named twice or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from anon_spark.errors import ConfigurationError


def check_number(name: str, value: int, why: str, least: int = 2) -> None:
    """Raise unless the value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(
            f"{name} must be a whole number, not {type(value).__name__}. Give {name} of at least {least}."
        )
    if value < least:
        raise ConfigurationError(f"{name} is {value}: {why}. Give {name} of at least {least}.")


def checked_names(name: str, columns: Sequence[str], none: str) -> tuple[str, ...]:
    """The columns, each once. none: the message if there is no column."""
    if isinstance(columns, str):
        raise ConfigurationError(f"{name} must be a list of column names, not one text. Write {name}=[...].")
    names = tuple(columns)
    if not names:
        raise ConfigurationError(none)
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{len(names) - len(set(names))} columns are listed twice. Name each column once.")
    return names
