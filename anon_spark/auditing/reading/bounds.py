"""Bounds of labels as the audit reads them: from the text of a label, by its own grammar, never from the code that wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.reading.look_ups import LookUp, with_found
from anon_spark.auditing.reading.spelling import number_text
from anon_spark.auditing.reading.values import HI, LO, private, quoted
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending

Presented = Literal["range", "bounds"]
UNREADABLE = "?"  # no label of a number or a date
_RANGE = re.compile(r"\[(-?[0-9.]+), (-?[0-9.]+)[\])]")
_EXPECTED, _LABEL = private("expected_"), private("label_")  # + position


def ends_of_label(hierarchy: Hierarchy, label: str) -> tuple[str, str]:
    """The two ends of a label as canonical texts: numbers without trailing zeros, ISO days. Raises for a text that is none."""
    if hierarchy.kind == "date":
        first, last = date.fromisoformat(hierarchy.keys[0]), date.fromisoformat(hierarchy.keys[-1])
        start, stop = (first, last) if label == "*" else _days(label)
        return max(start, first).isoformat(), min(stop, last).isoformat()
    if label == "*":
        return _of_range(hierarchy.keys[0])[0], _of_range(hierarchy.keys[-1])[1]
    return _of_range(label)


def _of_range(label: str) -> tuple[str, str]:
    match = _RANGE.fullmatch(label)
    low, high = match.groups() if match else (label, label)
    return _canonical(low), _canonical(high)


def _canonical(number: str) -> str:
    return f"{Decimal(number).normalize():f}"


def _days(label: str) -> tuple[date, date]:
    """The first and the last day of a calendar unit by its label."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", label):
        return date.fromisoformat(label), date.fromisoformat(label)
    if week := re.fullmatch(r"(\d{4})-W(\d{2})", label):
        monday = date.fromisocalendar(int(week[1]), int(week[2]), 1)
        return monday, monday + timedelta(days=6)
    if span := re.fullmatch(r"(\d{4})-(\d{4})", label):
        return date(max(1, int(span[1])), 1, 1), date(int(span[2]), 12, 31)
    if quarter := re.fullmatch(r"(\d{4})-Q([1-4])", label):
        return _months(int(quarter[1]), 3 * int(quarter[2]) - 2, 3)
    if month := re.fullmatch(r"(\d{4})-(\d{2})", label):
        return _months(int(month[1]), int(month[2]), 1)
    if decade := re.fullmatch(r"(\d{4})s", label):
        return date(max(1, int(decade[1])), 1, 1), date(int(decade[1]) + 9, 12, 31)
    if re.fullmatch(r"\d{4}", label):
        return _months(int(label), 1, 12)
    raise ConfigurationError("A label of a date hierarchy is no calendar unit that the audit knows.")


def _months(year: int, first: int, count: int) -> tuple[date, date]:
    after = year * 12 + first - 1 + count
    end = date.max if after >= 120_000 else date(after // 12, after % 12 + 1, 1) - timedelta(days=1)
    return date(year, first, 1), end


def _labels(hierarchy: Hierarchy, level: int | None) -> dict[str, tuple[str, str]]:
    """The ends of every label, of one level or of all; where two labels have the same ends, both are here."""
    levels = range(hierarchy.height + 1) if level is None else [level]
    names = dict.fromkeys(label for at in levels for label in hierarchy.labels[at] if label is not None)
    return {label: ends_of_label(hierarchy, label) for label in names}


def presented_columns(name: str, how: Presented) -> list[str]:
    """The names under which a column is published."""
    return [name] if how == "range" else [f"{name}_{LO}", f"{name}_{HI}"]


def _ends(name: str, how: Presented) -> tuple[Column, Column]:
    if how == "range":
        return F.col(quoted(name))[LO], F.col(quoted(name))[HI]
    low, high = presented_columns(name, how)
    return F.col(quoted(low)), F.col(quoted(high))


def _text(end: Column, kind: T.DataType) -> Column:
    """An end as canonical text."""
    return end.cast("string") if isinstance(kind, T.DateType) else number_text(end, kind)


def with_labels(
    release: DataFrame, presented: Mapping[str, Presented], hierarchies: Mapping[str, Hierarchy], levels: Mapping[str, int] | None
) -> DataFrame:
    """A release with the label in place of the bounds of each column; bounds that no label has become an unreadable text.

    levels: of each column, where all rows are on one; else of labels with the same ends the lowest is taken.
    Guarantee: one row in, one row out, other columns as they are. Cost: one broadcast, a join per column; no action.
    """
    if not presented:
        return release
    look_ups = []
    for place, (name, how) in enumerate(presented.items()):
        by_ends: dict[str, str] = {}
        for label, (low, high) in _labels(hierarchies[name], None if levels is None else levels[name]).items():
            by_ends.setdefault(f"{low}|{high}", label)
        first, last = (_text(*end) for end in zip(_ends(name, how), _kinds(release, name, how), strict=True))
        text = F.concat(first, F.lit("|"), last)
        look_ups.append(LookUp(text, list(by_ends), list(by_ends.values()), f"{_LABEL}{place}"))
    found = with_found(release, look_ups, pa.string())
    shown: dict[str, Column] = {}
    for place, (name, how) in enumerate(presented.items()):
        low_end, high_end = _ends(name, how)
        missing = F.isnull(low_end) & F.isnull(high_end)
        label_of_row = F.when(~missing, F.coalesce(F.col(f"{_LABEL}{place}"), F.lit(UNREADABLE))).alias(name)
        shown[presented_columns(name, how)[0]] = label_of_row
    dropped = {presented_columns(name, how)[1] for name, how in presented.items() if how == "bounds"}
    kept = [name for name in release.columns if name not in dropped]
    return found.select(*(shown.get(name, F.col(quoted(name))) for name in kept))


def _kinds(release: DataFrame, name: str, how: Presented) -> tuple[T.DataType, T.DataType]:
    try:
        if how == "range":
            kind = release.schema[name].dataType
            if isinstance(kind, T.StructType) and kind.names == [LO, HI]:
                return kind[LO].dataType, kind[HI].dataType
        else:
            low, high = presented_columns(name, how)
            return release.schema[low].dataType, release.schema[high].dataType
    except KeyError:
        pass
    raise ConfigurationError(f"Column {name} is not published as {how}: its bounds are missing.")


def bounds_check(
    rows: DataFrame, presented: Mapping[str, Presented], hierarchies: Mapping[str, Hierarchy], shown: Sequence[Column]
) -> Pending[Verdict]:
    """Whether every row of a staged release shows the bounds of its label.

    rows: with the label of each presented column under its name; shown: the published columns, as they are taken from the rows.
    Guarantee: passed iff both ends equal those that the audit reads from the label, both null for a null label. violations and
    checked count bounds. Cost: one pass, one broadcast.
    """
    labels = [F.col(quoted(name)).alias(f"{_LABEL}{place}") for place, name in enumerate(presented)]
    frame = rows.select(*labels, *shown)
    look_ups = []
    for place, name in enumerate(presented):
        known = _labels(hierarchies[name], None)
        for at, side in enumerate((LO, HI)):
            ends = [pair[at] for pair in known.values()]
            look_ups.append(LookUp(F.col(f"{_LABEL}{place}"), list(known), ends, f"{_EXPECTED}{side}_{place}"))
    expected = with_found(frame, look_ups, pa.string())
    wrong = F.lit(0)
    for place, (name, how) in enumerate(presented.items()):
        for side, end, kind in zip((LO, HI), _ends(name, how), _kinds(frame, name, how), strict=True):
            same = _text(end, kind).eqNullSafe(F.col(f"{_EXPECTED}{side}_{place}"))
            wrong = wrong + F.when(same, F.lit(0)).otherwise(F.lit(1))
    counted = expected.agg(F.coalesce(F.sum(wrong), F.lit(0)).alias("wrong"), F.count(F.lit(1)).alias("rows"))

    def verdict(found: list[Row]) -> Verdict:
        faults, checked = int(found[0]["wrong"]), int(found[0]["rows"]) * 2 * len(presented)
        names = ", ".join(presented)
        detail = f"all {checked} bounds of {names} are those of their labels."
        if faults:
            detail = f"{faults} of {checked} bounds of {names} are not those of their labels."
        return Verdict("bounds", not faults, faults, checked, detail, kind=Kind.TRUTH)

    return Pending.of(counted, verdict)
