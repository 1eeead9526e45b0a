"""Parameters of an anonymizer that are one of some words or whole numbers, refused where they are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_spark.errors import ConfigurationError


def require_words(of: object, words: Mapping[str, Sequence[str]]) -> None:
    """Every parameter named is one of its words: a misspelled policy must not mean another one."""
    for name, known in words.items():
        if getattr(of, name) not in known:
            raise ConfigurationError(f"{name} must be one of: {', '.join(known)}.")


def require_numbers(of: object, least: Mapping[str, int], optional: Sequence[str] = ()) -> None:
    """Every parameter named is a whole number, no less than given; those that are optional may be None."""
    for name, lowest in least.items():
        value = getattr(of, name)
        if value is None and name in optional:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise ConfigurationError(f"{name} must be a whole number of at least {lowest}.")
