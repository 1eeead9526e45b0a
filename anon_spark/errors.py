"""The exceptions of the package. They carry counts and names, never the value of a record.

`exit_code` is what the command line returns: 2 for a wrong configuration (found before any row is read),
3 when the data do not allow what was asked for, 1 for anything unexpected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


class AnonSparkError(Exception):
    """Base of everything the package raises on purpose; `facts` holds the numbers behind the message."""

    exit_code = 1

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class ConfigurationError(AnonSparkError):
    """The job, a hierarchy or a path is wrong; nothing was read, nothing was written."""

    exit_code = 2


class HierarchyError(ConfigurationError):
    """A hierarchy is not a hierarchy: conflicting parents, a gap, an overlap, a cycle, an ambiguous label."""


class DataError(AnonSparkError):
    """The data do not allow it: unseen values, an empty table, too few rows."""

    exit_code = 3


class UnseenValues(DataError):
    """Values that no hierarchy knows. `values` are private: the text has counts, a person may ask for the values."""

    def __init__(self, message: str, values: Mapping[str, Sequence[tuple[str, int]]], **facts: Any) -> None:
        super().__init__(message, **facts)
        self.values = values


class GuaranteeUnreachable(DataError):
    """No recoding of this table keeps what was asked for."""


class GuaranteeViolated(DataError):
    """An audit found a violation: the release must not be published."""


class PublicationRefused(DataError):
    """The output is not what the run saw, or not what was audited. Nothing of the run is published."""


class FindingRefused(DataError):
    """A release that passed every check shows more than the job's limits allow."""


class LimitExceeded(DataError):
    """Something is too large for the driver."""


class Stopped(BaseException):
    """A signal stopped the run (SIGTERM, SIGINT). It is no Exception, so that nothing catches it by accident."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The hint that ends a message about an unknown name, or nothing."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" Did you mean: {close[0]}?" if close else ""
