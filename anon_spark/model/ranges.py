"""Numbers that need no hierarchy: a group of them is published as the range from its least to its greatest."""

from __future__ import annotations

from dataclasses import dataclass

from anon_spark.errors import ConfigurationError


@dataclass(frozen=True)
class FreeRange:
    """A number without hierarchy; `domain` is the range that losses are relative to (default: that of the table)."""

    domain: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.domain is not None and not self.domain[0] <= self.domain[1]:
            raise ConfigurationError("The domain of a number must be [least, greatest].")
