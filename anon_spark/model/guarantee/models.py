"""Models of attribute disclosure: how the sensitive values of a class may be spread.

A class of n rows has c_s rows with the sensitive value s; p_s = c_s / n is its share there, q_s its share among all rows of the
source that are in scope: published and suppressed ones, but not those that `nulls` or `on_unseen` drops. Null is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Literal

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import check_number
from anon_spark.model.hierarchy import Hierarchy, Rule

Distance = Literal["equal", "ordered", "hierarchical"]
Number = int | float | Decimal | Fraction

MOST_VALUES = 1_000  # distinct values of a sensitive column with a model


def exact_number(name: str, value: Number) -> Fraction:
    """The number as it is written: 0.1 is one tenth, not the float nearest to it."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ConfigurationError(f"{name} must be a number, not {type(value).__name__}.")
    try:
        return value if isinstance(value, Fraction) else Fraction(str(value))
    except ValueError:
        raise ConfigurationError(f"{name} must be a finite number.") from None


def _shown(number: Fraction) -> str:
    return f"{float(number):g}"


@dataclass(frozen=True)
class DistinctL:
    """At least l distinct values in every class."""

    l: int  # noqa: E741 - the papers' name

    key: ClassVar[str] = "l"
    monotone: ClassVar[bool] = True
    covers: ClassVar[str] = "at least l values of the column fit each person who is looked up"
    does_not_cover: ClassVar[str] = (
        "values are counted, not weighed: one of them may be far likelier than the others, and values that mean nearly the same "
        "count as different"
    )

    def __post_init__(self) -> None:
        check_number("l", self.l, "one value for a whole class gives it away")

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity"


@dataclass(frozen=True, init=False)
class EntropyL:
    """exp(−Σ p_s ln p_s) of every class is at least l: the values are spread as evenly as l equally frequent ones."""

    l: Fraction  # noqa: E741

    key: ClassVar[str] = "entropy_l"
    monotone: ClassVar[bool] = False
    covers: ClassVar[str] = "guessing the value from the class is on average as uncertain as among l equally frequent values"
    does_not_cover: ClassVar[str] = (
        "one value may still be much more frequent in the class than the others, and far more frequent than in the whole table; "
        "values that mean nearly the same count as different"
    )

    def __init__(self, l: Number) -> None:  # noqa: E741
        number = exact_number("entropy_l", l)
        if number <= 1:
            raise ConfigurationError(f"entropy_l is {_shown(number)}: a class of one value has 1. Give more than 1.")
        object.__setattr__(self, "l", number)

    def __str__(self) -> str:
        return f"entropy {_shown(self.l)}-diversity"


@dataclass(frozen=True, init=False)
class RecursiveCL:
    """Counts of a class descending r_1 ≥ r_2 ≥ …: r_1 < c · (r_l + r_{l+1} + …). Fewer than l values fail."""

    c: Fraction
    l: int  # noqa: E741

    key: ClassVar[str] = "recursive"
    monotone: ClassVar[bool] = False
    covers: ClassVar[str] = (
        "the most frequent value of a class has less than c times the rows of all values from the l-th on, also after an "
        "attacker ruled out up to l − 2 other values"
    )
    does_not_cover: ClassVar[str] = (
        "a value that is rare in the whole table may be frequent in a class; values that mean nearly the same count as different"
    )

    def __init__(self, c: Number, l: int) -> None:  # noqa: E741
        number = exact_number("recursive.c", c)
        if number <= 0:
            raise ConfigurationError(f"recursive.c is {_shown(number)}: no class holds then. Give more than 0.")
        check_number("recursive.l", l, "the value itself would count against itself")
        object.__setattr__(self, "c", number)
        object.__setattr__(self, "l", l)

    def __str__(self) -> str:
        return f"recursive ({_shown(self.c)}, {self.l})-diversity"


@dataclass(frozen=True, init=False)
class TCloseness:
    """The values of every class are spread like those of the whole table, up to an earth mover's distance of `most`.

    distance: equal: ½ Σ |p_s − q_s|; ordered (numbers, dates; null is greater than every value): the mean of
    |Σ_{j≤i} (p_j − q_j)| over all but the last of the table's m values, 0 for one value; hierarchical: two values are as far as
    their lowest common ancestor is high, over the height of `hierarchy`.
    """

    most: Fraction
    distance: Distance = "equal"
    hierarchy: Hierarchy | Rule | None = field(default=None, compare=False, repr=False)

    key: ClassVar[str] = "t"
    monotone: ClassVar[bool] = False
    covers: ClassVar[str] = "who finds the class of a person learns little more of the column than the whole table shows"
    does_not_cover: ClassVar[str] = (
        "a rare value may still be many times as frequent in a class as in the table, because shares are compared by their "
        "difference; what the whole table shows of everybody is learnt by everybody"
    )

    def __init__(self, most: Number, distance: Distance = "equal", hierarchy: Hierarchy | Rule | None = None) -> None:
        number = exact_number("t.max", most)
        if not 0 <= number <= 1:
            raise ConfigurationError(f"t.max is {_shown(number)}: distances go from 0 to 1. Give a number between them.")
        if distance not in ("equal", "ordered", "hierarchical"):
            raise ConfigurationError("t.distance must be equal, ordered or hierarchical.")
        if (distance == "hierarchical") != (hierarchy is not None):
            raise ConfigurationError("t.distance: hierarchical goes with a hierarchy, and only with it.")
        object.__setattr__(self, "most", number)
        object.__setattr__(self, "distance", distance)
        object.__setattr__(self, "hierarchy", hierarchy)

    def __str__(self) -> str:
        return f"{_shown(self.most)}-closeness ({self.distance} distance)"


@dataclass(frozen=True, init=False)
class BetaLikeness:
    """No value is much more frequent in a class than in the table: (p_s − q_s) / q_s is at most `most` wherever p_s > q_s.

    enhanced: at most the smaller of `most` and −ln q_s, so that a frequent value cannot fill a class either.
    """

    most: Fraction
    enhanced: bool = False

    key: ClassVar[str] = "beta"
    monotone: ClassVar[bool] = False
    covers: ClassVar[str] = "finding the class of a person makes no value more than 1 + β times as likely as it is in the table"
    does_not_cover: ClassVar[str] = (
        "that a value is less frequent in a class, or missing there, is not limited: an attacker may learn what a person does "
        "not have"
    )

    def __init__(self, most: Number, enhanced: bool = False) -> None:
        number = exact_number("beta.max", most)
        if number <= 0:
            raise ConfigurationError(f"beta.max is {_shown(number)}: no class could gain anything. Give more than 0.")
        object.__setattr__(self, "most", number)
        object.__setattr__(self, "enhanced", bool(enhanced))

    def __str__(self) -> str:
        return f"{'enhanced ' if self.enhanced else ''}{_shown(self.most)}-likeness"


@dataclass(frozen=True, init=False)
class DeltaDisclosure:
    """|ln(p_s / q_s)| < `most` for every value s of the source; a class that lacks one of them fails."""

    most: Fraction

    key: ClassVar[str] = "delta"
    monotone: ClassVar[bool] = False
    covers: ClassVar[str] = "finding the class of a person makes no value much more and none much less likely than in the table"
    does_not_cover: ClassVar[str] = "what the whole table shows of everybody; values that mean nearly the same count as different"

    def __init__(self, most: Number) -> None:
        number = exact_number("delta", most)
        if number <= 0:
            raise ConfigurationError(f"delta is {_shown(number)}: no class holds then. Give more than 0.")
        object.__setattr__(self, "most", number)

    def __str__(self) -> str:
        return f"{_shown(self.most)}-disclosure privacy"


Model = DistinctL | EntropyL | RecursiveCL | TCloseness | BetaLikeness | DeltaDisclosure
Models = Mapping[str, tuple[Model, ...]]  # by sensitive column
