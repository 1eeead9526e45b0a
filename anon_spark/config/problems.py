"""Validation errors as messages for users: where, what, what next; never a value of the file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from anon_spark.config.keys import ANY, keys_of
from anon_spark.config.spec import Problem
from anon_spark.errors import did_you_mean

_TEXTS = {
    "missing": "is required",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "finite_number": "should be a finite number",
    "bool_type": "should be true or false",
    "string_too_short": "should not be empty",
    "string_too_long": "should be a single character",
    "too_short": "needs at least one entry",
    "greater_than_equal": "should be at least {ge:g}",
    "less_than_equal": "should be at most {le:g}",
    "less_than": "should be below {lt:g}",
    "tuple_type": "should be a list",
    "mapping_type": "should be a section of keys",
    "dict_type": "should be a section of keys",
    "model_type": "should be a section of keys",
    "model_attributes_type": "should be a section of keys",
}


def problems(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """The problems of a validation, except conflicts between keys, which are checked separately."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "extra_forbidden":
            yield dotted(detail["loc"]), f"unknown key.{_nearest(detail['loc'], model)}"
        elif detail["type"] != "conflict":
            yield dotted([part for part in detail["loc"] if part != "[key]"]), _text(detail)


def dotted(location: Sequence[int | str]) -> str:
    """`("columns", "keep", 0)` as `columns.keep[0]`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _text(detail: ErrorDetails) -> str:
    context, value = detail.get("ctx", {}), detail["input"]
    if detail["type"] == "value_error":
        return str(context["error"])
    if detail["type"] == "string_type":
        quotes = isinstance(value, int | float | datetime.date)
        return "should be text" + ("; put it in quotes" if quotes else "")
    if detail["type"] == "literal_error":
        expected = context["expected"].replace("'", "")
        known = expected.replace(" or ", ", ").split(", ")
        word = "should be" if len(known) == 1 else "should be one of"
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        return f"{word} {', '.join(known)}" + (f".{hint}" if hint else "")
    template = _TEXTS.get(detail["type"])
    return template.format(**context) if template else f"is not valid ({detail['type']})"


def _nearest(location: Sequence[int | str], model: type[BaseModel]) -> str:
    """The key that was probably meant: one beside it, or one of the same name elsewhere."""
    *parent, name = [str(part) for part in location]
    paths = [key.path for key in keys_of(model)]
    beside = [path.split(".")[-1] for path in paths if _same(path.split(".")[:-1], parent)]
    if hint := did_you_mean(name, beside):
        return hint
    elsewhere = [path for path in paths if path.split(".")[-1] == name and ANY not in path]
    if elsewhere:
        return f" Did you mean: {elsewhere[0]}?"
    return f" Known here: {', '.join(beside)}." if beside else ""


def _same(pattern: Sequence[str], path: Sequence[str]) -> bool:
    return len(pattern) == len(path) and all(step in (ANY, part) for step, part in zip(pattern, path, strict=True))
