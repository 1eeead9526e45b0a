"""Random quasi-identifiers: values of many types, a hierarchy, and what each value may be called, told by brute force.

`Reader` says which labels a value has, from level 0 to the top, in code of its own: a third reading of docs/values.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

MARK = "qzv"  # every text of a table that is a person's holds it: none may be in a message
EMOJI = "\U0001f600"
PLAIN = re.compile(r"[ \t\n\x0b\x0c\r]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?[ \t\n\x0b\x0c\r]*")
DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([T ][0-9][ -~]*)?")
NASTY = ["33\x00", "３", "3\u2028", "\x1f3", "3d", "", " ", "NaN", "1e400", "3." + "0" * 23 + "1", "0x3", "−3", f"{MARK}3"]
NASTY_DAYS = ["2020-01-01\n", "2020-01-01 10\u2028", "2020-01-01\x00", "2020-1-1", "2020-02-30", "", f"{MARK}"]

Reader = Callable[[Any], list[str] | None]  # labels from level 0 to the top; None: unseen


@dataclass(frozen=True)
class Quasi:
    """One column: its values, what the job file says of it, and how it is read."""

    kind: str
    values: pa.Array[Any]
    section: dict[str, Any]
    read: Reader
    files: dict[str, str]


def quasi(draw: Random, rows: int, name: str) -> Quasi:
    """A random column with a random hierarchy."""
    make = draw.choice([_levels, _levels, _intervals, _intervals, _bins, _mask, _dates, _truth, _number_levels])
    return make(draw, rows, name)


def is_missing(value: Any) -> bool:
    return value is None or value != value


def filled(draw: Random, rows: int, usual: list[Any], odd: list[Any]) -> list[Any]:
    """Values, with some nulls and some that the hierarchy may not know, or none of either."""
    nulls, strange = draw.choice([0.0, 0.0, 0.1, 0.5]), draw.choice([0.0, 0.0, 0.0, 0.1]) if odd else 0.0
    few = draw.sample(usual, min(len(usual), draw.choice([1, 2, 3, 6, 40])))

    def one() -> Any:
        chance = draw.random()
        if chance < nulls:
            return None
        return draw.choice(odd) if chance < nulls + strange else draw.choice(few)

    return [one() for _ in range(rows)]


def names(draw: Random, count: int) -> list[str]:
    decorations = ["", " b", EMOJI, "é", "A", "a", ".x", "'", '"q', "long" * 60, "\u202e", "#", "%", "*"]
    return [f"{MARK}{at}{draw.choice(decorations)}" for at in range(count)]


def number_of(value: Any) -> Fraction | None:
    """The exact number that a value is, if it is one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    text = value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
    if not PLAIN.fullmatch(text):
        return None
    exponent = re.split("[eE]", text)[1:]
    if exponent and abs(int(exponent[0])) > 390:
        return None  # the tables hold none between this and the grammar's bound
    return Fraction(text.strip(" \t\n\x0b\x0c\r"))


def csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _levels(draw: Random, rows: int, name: str) -> Quasi:
    known = names(draw, draw.randint(1, 8))
    middle = draw.random() < 0.7
    group = {value: f"g{at % 3}" for at, value in enumerate(known)}
    paths = {value: [value, *([group[value]] if middle else []), "*"] for value in known}
    values = filled(draw, rows, known, [f"{MARK}unseen", f" {known[0]}", ""])
    file = f"{name}.csv"
    if middle and draw.random() < 0.4:
        pairs = [(value, group[value]) for value in known] + [(one, "*") for one in sorted(set(group.values()))]
        text = "\n".join(",".join(map(csv_field, pair)) for pair in pairs)
        return Quasi("edges", pa.array(values, pa.string()), {"edges": file}, paths.get, {file: text})
    text = "\n".join(";".join(map(csv_field, path)) for path in paths.values())
    return Quasi("levels", pa.array(values, pa.string()), {"levels": file}, paths.get, {file: text})


def _number_levels(draw: Random, rows: int, name: str) -> Quasi:
    known = ["1", "2.50", "3e0", "-4", "0"]
    paths = {number_of(text): [text, "low" if text[0] in "12" else "high", "*"] for text in known}
    kinds: list[pa.DataType] = [pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(20, 4), pa.decimal128(38, 18)]
    kind = draw.choice(kinds)
    values = filled(draw, rows, [1, 3, -4, 0] if pa.types.is_integer(kind) else [1.0, 2.5, 3.0, -4.0, 0.0, -0.0], [7])
    text = "\n".join(";".join(path) for path in paths.values())
    file = f"{name}.csv"

    def read(value: Any) -> list[str] | None:
        return paths.get(number_of(value))

    return Quasi("number levels", _numbers(values, kind), {"levels": file}, read, {file: text})


def _numbers(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(str(value)) for value in values]).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind, from_pandas=False)
    if pa.types.is_integer(kind):
        return pa.array([None if value is None else int(value) for value in values], kind)
    return pa.array(values, kind)


def _intervals(draw: Random, rows: int, name: str) -> Quasi:
    low, high, widths = 0, draw.choice([19, 20, 7]), draw.choice([[5, 10], [2], [4, 8, 16], []])

    def read(value: Any) -> list[str] | None:
        number = number_of(value)
        if number is None or number.denominator != 1 or not low <= number <= high:
            return None
        at = int(number)
        spans = [(at // width * width, min(at // width * width + width - 1, high)) for width in widths]
        return [str(at), *(f"[{start}, {stop}]" for start, stop in spans), "*"]

    kinds: list[pa.DataType] = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()]
    kinds += [pa.decimal128(10, 2)]
    kind = draw.choice(kinds)
    usual: list[Any] = list(range(high + 1))
    odd: list[Any] = [-1, high + 1, 99]
    if pa.types.is_floating(kind):
        odd += [0.5, float("inf"), float("nan"), -1e300 if kind == pa.float64() else -1e30]
        usual += [-0.0]
    if kind == pa.string():
        usual = [draw.choice([str(one), f"{one}.0", f" {one} ", f"+{one}", f"{one}e0", f"0{one}"]) for one in usual]
        odd = NASTY
    section = {"intervals": {"from": low, "to": high, "widths": widths}}
    return Quasi("intervals", _numbers(filled(draw, rows, usual, odd), kind), section, read, {})


def _bins(draw: Random, rows: int, name: str) -> Quasi:
    first, second = Fraction("0.5"), Fraction(2)
    low, high = Fraction(0), Fraction("9.75")

    def text(number: Fraction) -> str:
        return f"{float(number):g}"

    def read(value: Any) -> list[str] | None:
        number = number_of(value)
        if number is None or not low <= number <= high:
            return None
        labels = []
        for width in (first, second):
            bins = -((low - high) // width)
            start = min((number - low) // width, bins - 1) * width
            stop = min(start + width, high)
            labels.append(f"[{text(start)}, {text(stop)}{']' if stop == high else ')'}")
        return [*labels, "*"]

    kinds: list[pa.DataType] = [pa.int32(), pa.float32(), pa.float64(), pa.float64(), pa.decimal128(38, 30), pa.string()]
    kind = draw.choice(kinds)
    usual: list[Any] = list(range(10))
    odd: list[Any] = [-1, 10]
    if not pa.types.is_integer(kind):
        usual = [0.0, 0.5, 0.49, 1.75, 2.0, 9.5, 9.75]
        usual += [float(np.nextafter(0.5, 0)), 1e-20] if kind == pa.float64() else []
        odd = [-0.01, 9.76] + ([float("nan"), float("inf")] if pa.types.is_floating(kind) else [])
    if kind == pa.string():
        usual = ["0.5", ".50", "5e-1", " 2", "9.75", "0.4999999999999999999999999", "-0", "1." + "9" * 40]
        odd = [one for one in NASTY if one != NASTY[9]] + ["9.7500000000000000000000000001"]
    section = {"intervals": {"from": 0, "to": 9.75, "widths": [0.5, 2], "exact": False}}
    return Quasi("bins", _numbers(filled(draw, rows, usual, odd), kind), section, read, {})


def _mask(draw: Random, rows: int, name: str) -> Quasi:
    length, keep = draw.randint(3, 6), draw.choice(["left", "right"])

    def read(value: Any) -> list[str] | None:
        if len(value) > length:
            return None
        full = value.ljust(length) if keep == "left" else value.rjust(length)
        masked = [full[: length - at] + "*" * at if keep == "left" else "*" * at + full[at:] for at in range(1, length)]
        return [value, *masked, "*"]

    usual = [f"{MARK}"[:3] + draw.choice(["", "1", EMOJI, "é", "x1", "  "]) for _ in range(6)]
    usual = [one for one in usual if len(one) <= length] + ["123"]
    section = {"mask": {"keep": keep, "length": length}}
    return Quasi("mask", pa.array(filled(draw, rows, usual, [f"{MARK}toolong"]), pa.string()), section, read, {})


def _dates(draw: Random, rows: int, name: str) -> Quasi:
    start, stop = date(2019, 12, 1), date(2020, 4, 30)

    def read(value: Any) -> list[str] | None:
        day: date | None
        if isinstance(value, datetime):
            day = value.date()
        elif isinstance(value, date):
            day = value
        else:
            match = DAY.fullmatch(value)
            try:
                day = date.fromisoformat(match.group(1)) if match else None
            except ValueError:
                day = None
        if day is None or not start <= day <= stop:
            return None
        return [day.isoformat(), f"{day.year:04d}-{day.month:02d}", f"{day.year:04d}", "*"]

    days = [start + timedelta(days=draw.randrange(150)) for _ in range(8)]
    kinds: list[pa.DataType] = [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.string()]
    kind = draw.choice(kinds)
    usual: list[Any] = days
    odd: list[Any] = [date(1, 1, 1), date(9999, 12, 31)]
    if pa.types.is_timestamp(kind):
        usual = [datetime(day.year, day.month, day.day, draw.choice([0, 12, 23]), 59) for day in days]
        odd = [datetime(2021, 1, 1), datetime(1900, 1, 1)]
    if kind == pa.string():
        usual = [draw.choice([day.isoformat(), f"{day.isoformat()}T10:00:00Z", f"{day.isoformat()} 1"]) for day in days]
        odd = NASTY_DAYS
    domain = {"levels": ["month", "year"], "from": start.isoformat(), "to": stop.isoformat()}
    return Quasi("date", pa.array(filled(draw, rows, usual, odd), kind), {"date": domain}, read, {})


def _truth(draw: Random, rows: int, name: str) -> Quasi:
    def read(value: Any) -> list[str] | None:
        return ["true" if value else "false", "*"]

    file = f"{name}.csv"
    values = filled(draw, rows, [True, False], [])
    return Quasi("truth", pa.array(values, pa.bool_()), {"levels": file}, read, {file: "true;*\nfalse;*"})
