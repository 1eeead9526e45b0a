"""Facts: the numbers of a fit or a release as frozen values. Those below are shared by several families.

Facts hold counts, measures, names of columns and settings, and labels that the release shows in at least k rows: never another
value of a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

JSON_NAME = "json"


def json_name(name: str) -> dict[str, str]:
    """Metadata of a field that has another name in JSON, because the name is a Python keyword."""
    return {JSON_NAME: name}


@dataclass(frozen=True)
class Facts:
    """Facts about a fit or a release; every family has its own subclass."""

    def summary(self) -> list[str]:
        """Some lines for the end of a run: losses, and what an attacker gains."""
        return []


def without_labels(facts: Facts) -> Facts:
    """The facts of a release that was not published: without the labels, values and items that it would have shown."""
    shown = [field.name for field in fields(facts) if field.name in ("distributions", "frequent_items")]
    return replace(facts, **dict.fromkeys(shown, ()))


@dataclass(frozen=True)
class FitStatistics:
    """How the fit went; a family adds its own counts."""

    seconds: float


@dataclass(frozen=True)
class FrontPoint:
    """A node of the lattice: its k and its loss."""

    node: tuple[int, ...]
    k: int
    loss: float
    suppressed_rows: int
    classes: int


@dataclass(frozen=True)
class SizeRange:
    """How many classes have a size in a range, and how many rows are in them; most: None without an upper end."""

    least: int = field(metadata=json_name("from"))
    most: int | None = field(metadata=json_name("to"))
    classes: int
    rows: int


@dataclass(frozen=True)
class LevelReached:
    """How far an attribute was generalized, the same for all rows; labels: how many there are; loss: from 0 to 1."""

    name: str
    level: int
    height: int
    labels: int
    loss: float


@dataclass(frozen=True)
class LevelShares:
    """The share of rows on each level of an attribute, from the original value on. loss: detail lost, from 0 to 1."""

    name: str
    shares: tuple[float, ...]
    loss: float | None = None


@dataclass(frozen=True)
class LabelCount:
    """Rows with a label: of the source, and of the release. The label None is null."""

    label: str | None
    before: int
    after: int


@dataclass(frozen=True)
class Distribution:
    """Rows of a published column by label, before and after. Every label has at least k rows of the release.

    role: quasi-identifier, sensitive, kept or items; rows_before, rows_after: of all labels; others: rows with labels that are
    not listed, because each has fewer than k rows of the release or there are too many; wider: rows of the release whose label
    is wider than those that are listed; rounded_to: counts of the source are rounded to multiples of it, 1 where they are exact;
    example: a frequent value and the label that is published for it; estimated: rows of the release are spread evenly over their
    published ranges.
    """

    column: str
    role: str
    rows_before: int
    rows_after: int
    labels: tuple[LabelCount, ...]
    others: LabelCount | None = None
    wider: int = 0
    rounded_to: int = 1
    example: tuple[str, str] | None = None
    estimated: bool = False


@dataclass(frozen=True)
class CrowdRange:
    """The share of rows whose crowd (what looks alike) has a size in a range: of the source, and of the release."""

    least: int = field(metadata=json_name("from"))
    most: int | None = field(metadata=json_name("to"))
    before: float
    after: float


@dataclass(frozen=True)
class UniqueRows:
    """The share of rows that are alone on the quasi-identifiers: of the source, and of the release."""

    before: float
    after: float | None


@dataclass(frozen=True)
class LookUp:
    """How often a sampled row is found by its quasi-identifiers: before, after, at worst; and the promised rate.

    The interval covers the expected success after with 95 %.
    """

    sampled_rows: int
    expected_success_before: float
    expected_success_after: float
    worst_success_after: float
    promised_at_most: float
    interval_from: float
    interval_to: float
    standard_error: float | None
    standard_errors_above_the_promise: float | None

    @property
    def worst(self) -> float:
        """The highest chance of a sampled row."""
        return self.worst_success_after


@dataclass(frozen=True)
class LookUpRisk:
    """What an attacker gains: unique rows, the look-up, the share of rows in classes with one value of a sensitive column."""

    unique_rows: UniqueRows
    link_attack: LookUp
    sensitive_value_shared_by_whole_class: Mapping[str, float]

    def numbers(self) -> Mapping[str, Mapping[str, float | None]]:
        """Every number, grouped by topic."""
        return {
            "unique_rows": vars(self.unique_rows),
            "link_attack": vars(self.link_attack),
            "sensitive_value_shared_by_whole_class": self.sensitive_value_shared_by_whole_class,
        }


@dataclass(frozen=True)
class ModelSpread:
    """How the published classes keep a model of a sensitive column.

    limit: what the job asks for; worst: the measure of the class nearest to it, None where no class has a finite one; ranges:
    (from, to, classes, rows) by measure, `to` None for the last.
    """

    column: str
    model: str
    limit: float
    worst: float | None
    ranges: tuple[tuple[float, float | None, int, int], ...]


@dataclass(frozen=True)
class LookUpFacts(Facts):
    """Counts of the audit for a table with quasi-identifiers, and the gain of an attacker who knows them."""

    class_sizes: tuple[SizeRange, ...]
    risk: LookUpRisk
    distributions: tuple[Distribution, ...] = field(default=(), kw_only=True)
    crowds: tuple[CrowdRange, ...] = field(default=(), kw_only=True)
