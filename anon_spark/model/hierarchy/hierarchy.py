"""The hierarchy of one attribute, a frozen value: codes, labels and integer weights per level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.checks import ambiguous_labels, shortened
from anon_spark.model.hierarchy.rules import DateRule, MaskRule, Rule
from anon_spark.model.hierarchy.values import BinGrid, calendar_day, is_number, number_key, text_key

Kind = Literal["text", "number", "date", "bins"]
Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Number = int | float | str | Decimal


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels 0 (the values) to `height` (the one label '*'), every leaf on every level.

    Guarantee: nested (leaves that share a label share all labels above); `codes[0]` is 0, 1, 2, …, `codes[height]` is
    0; losses are integers `weights[level][code]` over `weight_total` and depend on the domain, never on a sample.
    Arrays are read-only. kind says how a value finds its leaf: by text (numbers by value), as a whole number, as a
    calendar day, or in `bins`.
    """

    kind: Kind
    keys: tuple[str, ...]
    codes: Codes
    labels: tuple[tuple[str | None, ...], ...]
    leaves_below: tuple[Counts, ...]
    weights: tuple[Counts, ...]
    weight_total: int
    bounds: tuple[tuple[Floats, Floats], ...] | None = None
    bins: BinGrid | None = None
    has_null: bool = False
    rule: Rule | None = None

    def __post_init__(self) -> None:
        arrays: list[npt.NDArray[Any]] = [self.codes, *self.leaves_below, *self.weights]
        for low, high in self.bounds or ():
            arrays += [low, high]
        for array in arrays:
            array.setflags(write=False)

    # -- shape ------------------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """H: how many levels lie above the leaves."""
        return int(self.codes.shape[0]) - 1

    @property
    def leaf_count(self) -> int:
        """Number of leaves, the null leaf included."""
        return int(self.codes.shape[1])

    def cardinality(self, level: int) -> int:
        """How many labels a level has, null included."""
        return len(self.labels[level])

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The level table: value, g1, …, '*' for each leaf, without the null leaf."""
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

        numeric: keys are canonical numbers, leaves that are no numbers are left out, of several spellings of one number
        the first leaf stands for all; spellings with different parents raise, because the number would be ambiguous.
        """
        return list((self._by_number if numeric else self._by_text).items())

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {key: leaf for leaf, key in enumerate(self.keys)}

    @cached_property
    def _by_number(self) -> dict[str, int]:
        if self.kind == "number":
            return self._by_text  # whole numbers are spelled canonically
        found: dict[str, int] = {}
        clashes = []
        for leaf, key in enumerate(self.keys):
            number = number_key(key)
            if number is None:
                continue
            first = found.setdefault(number, leaf)
            if first != leaf and not np.array_equal(self.codes[1:, first], self.codes[1:, leaf]):
                clashes.append(leaf + 1)
        if clashes:
            raise HierarchyError(
                f"{len(clashes)} values spell a number that is listed before with other parents (values no. "
                f"{shortened(clashes)}). Give each number one path, or read the column as text.",
                conflicts=len(clashes),
            )
        return found

    # -- nulls ------------------------------------------------------------------------------------------------

    def with_null(self) -> Hierarchy:
        """The same hierarchy with a null leaf directly below the root: the last code on every level below it.

        A categorical domain grows by one leaf; numeric weights keep their total. Already there: returns itself.
        """
        if self.has_null:
            return self
        from anon_spark.model.hierarchy.coding import add_null

        return add_null(self)

    # -- what is shown, kept and compared -----------------------------------------------------------------------

    def ambiguous_labels(self) -> list[tuple[int, int, int]]:
        """(level a, level b, how many): labels that stand for different sets of leaves on two levels.

        A label repeated for the same leaves is padding and not reported. Cost: one pass over all labels.
        """
        return ambiguous_labels(self.codes, self.labels)

    def tree(self, max_lines: int = 60) -> str:
        """The hierarchy as an indented tree with leaf counts, cut to about `max_lines` lines."""
        from anon_spark.model.hierarchy.show import tree_text

        return tree_text(self, max_lines)

    def _repr_html_(self) -> str:
        from anon_spark.model.hierarchy.show import tree_html

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
        from anon_spark.model.hierarchy.storage import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Hierarchy:
        """The hierarchy a `to_dict` came from, checked again; a fault raises HierarchyError."""
        from anon_spark.model.hierarchy.storage import from_dict

        return from_dict(content)

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        from anon_spark.model.hierarchy.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Hierarchy:
        """Read what `save` wrote."""
        from anon_spark.model.hierarchy.storage import load

        return load(Path(path))

    # -- builders -----------------------------------------------------------------------------------------------

    @classmethod
    def from_levels(cls, rows: Iterable[Sequence[str | None]]) -> Hierarchy:
        """A level table, one row per value: value, g1, …, '*'. Ragged rows are padded, faults name row numbers.

        Guarantee: the longest rows keep the levels they were given.
        """
        from anon_spark.model.hierarchy.levels import from_levels

        return from_levels(enumerate(rows, start=1))

    @classmethod
    def from_csv(cls, path: str | Path, sep: str = ";", header: bool = False) -> Hierarchy:
        """A level table in a CSV file, as ARX writes them; faults raise with line numbers."""
        from anon_spark.model.hierarchy.levels import from_levels, read_csv

        return from_levels(read_csv(Path(path), sep, header))

    @classmethod
    def from_edges(cls, pairs: Iterable[Sequence[str | None]]) -> Hierarchy:
        """Pairs (child, parent); several roots get '*' on top, unequal depths are padded."""
        from anon_spark.model.hierarchy.edges import from_edges

        return from_edges(enumerate(pairs, start=1))

    @classmethod
    def edges_csv(cls, path: str | Path, sep: str = ",", header: bool = False) -> Hierarchy:
        """Pairs child,parent in a CSV file."""
        from anon_spark.model.hierarchy.edges import from_edges
        from anon_spark.model.hierarchy.levels import read_csv

        return from_edges(read_csv(Path(path), sep, header))

    @classmethod
    def intervals(cls, start: Number, stop: Number, widths: Sequence[Number], exact: bool = True) -> Hierarchy:
        """Numbers from start to stop. exact: whole numbers, then closed intervals; else half-open bins."""
        from anon_spark.model.hierarchy.intervals import bins, whole_numbers

        return whole_numbers(start, stop, widths) if exact else bins(start, stop, widths)

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
