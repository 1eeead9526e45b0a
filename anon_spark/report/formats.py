"""Formats of values in a report and in JSON. One place, so HTML and Markdown say the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

NOTHING = "–"


def show(value: Any) -> str:
    """A cell as a person reads it: thousands separated, four significant digits, never an exponent where avoidable."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    if is_flag(value):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, (Real, Decimal)):
        return _show_real(float(value))
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {show(inner)}" for key, inner in value.items())
    if isinstance(value, Sequence):
        return "(" + ", ".join(show(inner) for inner in value) + ")"
    return str(value)


def _show_real(value: float) -> str:
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.1f}"
    return f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share as people read it; a share that is not 0 never shows as 0, one that is not 1 never as 100."""
    if share is None or math.isnan(share):
        return NOTHING
    if 0 < share < 0.0005:
        return "below 0.1 %"
    if 0.9995 <= share < 1:
        return "above 99.9 %"
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def counted(number: int, what: str) -> str:
    """A number with what it counts: 1 item, 2 items."""
    return f"{show(number)} {what}" if number == 1 else f"{show(number)} {what}s"


def is_flag(value: Any) -> bool:
    """Whether the value is a truth value, numpy's included."""
    return isinstance(value, bool) or type(value).__name__ == "bool"


def is_number(value: Any) -> bool:
    """Whether the value is a number, which a table aligns to the right; a truth value is none."""
    return isinstance(value, (Real, Decimal)) and not is_flag(value)


def wording(name: str) -> str:
    """A key as words: rows_in → Rows in."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def seconds(value: float) -> str:
    """A duration as a person reads it: 0.42 s, 12.3 s, 4 min 05 s, 2 h 10 min."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plain(value: Any) -> Any:
    """The value as JSON knows it; what has no number in JSON (nan, infinity) becomes null.

    Guarantee: total for mappings, sequences, sets, dataclasses, dates and numpy scalars; anything else becomes text.
    Sets are sorted by their text, so the result is the same every time.
    """
    if value is None or isinstance(value, str):
        return value
    if is_flag(value):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal)):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Set):
        return sorted((plain(inner) for inner in value), key=str)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.metadata.get("json", field.name): plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "tolist"):  # a numpy array
        return plain(value.tolist())
    return str(value)
