"""The hierarchy of one attribute, a frozen value, and the rules by which one is built when its values are known.

Each creates the other, so they are in one file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.builders import frequency_rows, order_rows, prefix_rows
from anon_spark.model.hierarchy.checks import ambiguous_labels, shortened
from anon_spark.model.hierarchy.coding import add_null
from anon_spark.model.hierarchy.dates import Dates
from anon_spark.model.hierarchy.edges import from_edges
from anon_spark.model.hierarchy.intervals import Number, bins, whole_numbers
from anon_spark.model.hierarchy.levels import from_levels, read_csv
from anon_spark.model.hierarchy.mask import Mask
from anon_spark.model.hierarchy.show import tree_html, tree_text
from anon_spark.model.hierarchy.storage import from_dict, load, save, to_dict
from anon_spark.model.hierarchy.table import LevelTable
from anon_spark.model.hierarchy.top import Top
from anon_spark.model.hierarchy.values import calendar_day, is_number, number_key, text_key


@dataclass(frozen=True, eq=False)
class Hierarchy(LevelTable):
    """Levels 0 (the values) to `height` (one label, the root), every leaf on every level.

    Guarantee: nested (leaves that share a label share all labels above); `codes[0]` is 0, 1, 2, …, `codes[height]` is
    0; losses are integers `weights[level][code]` over `weight_total` and depend on the domain, never on a sample.
    Arrays are read-only. kind says how a value finds its leaf: by text (numbers by value), as a whole number, as a
    calendar day, or in `bins`.
    """

    rule: Rule | None = None

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The level table: value, g1, …, root for each leaf, without the null leaf."""
        for leaf, key in enumerate(self.keys):
            yield (key, *(str(self.labels[level][self.codes[level, leaf]]) for level in range(1, self.height + 1)))

    # -- values -----------------------------------------------------------------------------------------------

    def leaf_of(self, value: object) -> int | None:
        """Code of the leaf of a source value; None when the hierarchy does not know it.

        Guarantee: one number has one leaf however it is typed or (kinds number and bins) spelled; a null is unseen
        unless `has_null`.
        """
        if value is None:
            return self.leaf_count - 1 if self.has_null else None
        if self.kind == "bins":
            return self.bins.index(value) if self.bins is not None else None
        if self.kind == "number" or (self.kind == "text" and is_number(value)):
            number = number_key(value)
            return None if number is None else self._by_number.get(number)
        key = calendar_day(value) if self.kind == "date" else text_key(value)
        return None if key is None else self._by_text.get(key)

    def dictionary(self, numeric: bool) -> list[tuple[str, int]]:
        """Pairs (key, leaf code), without the null leaf.

        numeric: keys are canonical numbers, and leaves that are no numbers are left out. Several spellings of one number share
        the first leaf; spellings with different parents raise, because the number would be ambiguous.
        """
        return list((self._by_number if numeric else self._by_text).items())

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {key: leaf for leaf, key in enumerate(self.keys)}

    @cached_property
    def _by_number(self) -> dict[str, int]:
        if self.kind == "number":
            return self._by_text  # whole numbers are spelled canonically
        leaf_of_number: dict[str, int] = {}
        clashes = []
        for leaf, key in enumerate(self.keys):
            number = number_key(key)
            if number is None:
                continue
            first = leaf_of_number.setdefault(number, leaf)
            if first != leaf and not np.array_equal(self.codes[1:, first], self.codes[1:, leaf]):
                clashes.append(leaf + 1)
        if clashes:
            raise HierarchyError(
                f"{len(clashes)} values spell a number that is listed before with other parents (values no. "
                f"{shortened(clashes)}). Give each number one path, or read the column as text.",
                conflicts=len(clashes),
            )
        return leaf_of_number

    # -- nulls ------------------------------------------------------------------------------------------------

    def with_null(self) -> Hierarchy:
        """The same hierarchy with a null leaf directly below the root: the last code on every level below it.

        A categorical domain grows by one leaf; numeric weights keep their total. Returns itself if it has one already.
        """
        return self if self.has_null else add_null(self)

    # -- display, storage and comparison -----------------------------------------------------------------------

    def ambiguous_labels(self) -> list[tuple[int, int, int]]:
        """(level a, level b, how many): labels that stand for different sets of leaves on two levels.

        A label repeated for the same leaves is padding, which is not reported. Cost: one pass over all labels.
        """
        return ambiguous_labels(self.codes, self.labels)

    def tree(self, max_lines: int = 60) -> str:
        """The hierarchy as an indented tree with leaf counts, cut to about `max_lines` lines."""
        return tree_text(self, max_lines)

    def _repr_html_(self) -> str:
        return tree_html(self)

    def __repr__(self) -> str:
        sizes = " → ".join(str(self.cardinality(level)) for level in range(self.height + 1))
        return f"Hierarchy(kind={self.kind!r}, height={self.height}, labels per level {sizes})"

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Hierarchy) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.kind, self.keys, self.labels, self.weight_total, self.has_null))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; `from_dict` gives back an equal hierarchy."""
        return to_dict(self, None if self.rule is None else self.rule.to_dict())

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Hierarchy:
        """The hierarchy a `to_dict` came from, checked again; a fault raises HierarchyError."""
        table, rule = from_dict(content)
        return cls._of(table, None if rule is None else Rule.from_dict(rule))

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        save(self.to_dict(), Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Hierarchy:
        """Read what `save` wrote."""
        return cls.from_dict(load(Path(path)))

    # -- builders -----------------------------------------------------------------------------------------------

    @classmethod
    def _of(cls, table: LevelTable, rule: Rule | None = None) -> Hierarchy:
        return cls(**vars(table), rule=rule)

    @classmethod
    def from_levels(cls, rows: Iterable[Sequence[str | None]]) -> Hierarchy:
        """A level table, one row per value: value, g1, …, root. Ragged rows are padded, faults name row numbers.

        Guarantee: the longest rows keep their levels.
        """
        return cls._of(from_levels(enumerate(rows, start=1)))

    @classmethod
    def from_csv(cls, path: str | Path, sep: str = ";", header: bool = False) -> Hierarchy:
        """A level table in a CSV file, as ARX writes them; faults raise with line numbers."""
        return cls._of(from_levels(read_csv(Path(path), sep, header)))

    @classmethod
    def from_edges(cls, pairs: Iterable[Sequence[str | None]]) -> Hierarchy:
        """Pairs (child, parent); several roots get '*' on top, unequal depths are padded."""
        return cls._of(from_edges(enumerate(pairs, start=1)))

    @classmethod
    def edges_csv(cls, path: str | Path, sep: str = ",", header: bool = False) -> Hierarchy:
        """Pairs child,parent in a CSV file."""
        return cls._of(from_edges(read_csv(Path(path), sep, header)))

    @classmethod
    def intervals(cls, start: Number, stop: Number, widths: Sequence[Number], exact: bool = True) -> Hierarchy:
        """Numbers from start to stop. exact: whole numbers, then closed intervals; else half-open bins."""
        return cls._of((whole_numbers if exact else bins)(start, stop, widths))

    @overload
    @classmethod
    def mask(
        cls, values: None = None, keep: str = "left", length: int | None = None, alphabet: int = 10
    ) -> MaskRule: ...

    @overload
    @classmethod
    def mask(
        cls, values: Iterable[str], keep: str = "left", length: int | None = None, alphabet: int = 10
    ) -> Hierarchy: ...

    @classmethod
    def mask(
        cls, values: Iterable[str] | None = None, keep: str = "left", length: int | None = None, alphabet: int = 10
    ) -> Hierarchy | MaskRule:
        """Symbols replaced by '*' one by one, `keep` says which side stays: 13051 → 1305* → 130** → … → '*'.

        Without values: the rule, to be built when the values are known.
        """
        rule = MaskRule(keep=keep, length=length, alphabet=alphabet)
        return rule if values is None else rule.build(values)

    @overload
    @classmethod
    def dates(cls, units: Sequence[str], start: None = None, stop: None = None) -> DateRule: ...

    @overload
    @classmethod
    def dates(cls, units: Sequence[str], start: str | date, stop: str | date) -> Hierarchy: ...

    @classmethod
    def dates(
        cls, units: Sequence[str], start: str | date | None = None, stop: str | date | None = None
    ) -> Hierarchy | DateRule:
        """Days from start to stop, then coarser and coarser units; without a domain the rule, to be built later."""
        rule = DateRule(tuple(units), start, stop)
        return rule.build(()) if rule.complete else rule

    @overload
    @classmethod
    def top(cls, values: None = None) -> TopRule: ...

    @overload
    @classmethod
    def top(cls, values: Iterable[str]) -> Hierarchy: ...

    @classmethod
    def top(cls, values: Iterable[str] | None = None) -> Hierarchy | TopRule:
        """The value itself, then '*'. Without values: the rule, to be built when the values are known."""
        rule = TopRule()
        return rule if values is None else rule.build(values)

    @classmethod
    def by_prefix(cls, values: Iterable[str], lengths: Sequence[int]) -> Hierarchy:
        """The value, its first `lengths[0]` characters, fewer on each level, '*'."""
        return cls.from_levels(prefix_rows(values, lengths))

    @classmethod
    def by_order(cls, values: Iterable[str], sizes: Sequence[int]) -> Hierarchy:
        """The value, groups of `sizes[0]` neighbours in order, larger groups on each level, '*'."""
        return cls.from_levels(order_rows(values, sizes))

    @classmethod
    def by_frequency(cls, counts: Mapping[str, int], least: Sequence[int]) -> Hierarchy:
        """The value; on each level itself if so many rows have it, else one group of the rarer ones; '*'."""
        return cls.from_levels(frequency_rows(counts, least))


class Rule:
    """How to build a hierarchy for values that are not known yet.

    A built hierarchy carries the completed rule, which builds the same levels and weights for any later values.
    """

    @property
    def complete(self) -> bool:
        """Whether levels and weights are fixed, independent of the values."""
        raise NotImplementedError

    def fitted(self, values: Iterable[str]) -> Self:
        """The rule, completed by these values if it is open."""
        raise NotImplementedError

    def table(self, values: Iterable[str]) -> LevelTable:
        """The level table of these values under a complete rule."""
        raise NotImplementedError

    def build(self, values: Iterable[str]) -> Hierarchy:
        """The hierarchy of these values; values that the rule cannot read are left out, so they are unseen."""
        known = list(values)
        rule = self.fitted(known)
        return Hierarchy._of(rule.table(known), rule)

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain JSON values."""
        raise NotImplementedError

    @staticmethod
    def from_dict(content: dict[str, Any]) -> Rule:
        """The rule a `to_dict` came from."""
        fields = dict(content)
        name = fields.pop("rule", None)
        try:
            if name == "mask":
                return MaskRule(**fields)
            if name == "date":
                return DateRule(**fields)
            if name == "top":
                return TopRule(**fields)
        except TypeError as fault:
            raise HierarchyError(f"The stored {name} rule has missing or unknown fields.") from fault
        raise HierarchyError("The stored rule is neither mask, date nor top. Written by a newer version?")


@dataclass(frozen=True)
class MaskRule(Mask, Rule):
    """A mask as a rule: the length may be open until the values are known."""


@dataclass(frozen=True)
class DateRule(Dates, Rule):
    """Dates as a rule: the domain may be open until the values are known."""


@dataclass(frozen=True)
class TopRule(Top, Rule):
    """Value, then '*', for values that are not known yet."""
