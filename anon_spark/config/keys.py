"""Every key a job file may hold, read from the specifications themselves."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

from anon_spark.config.spec import words_of

_WORDS: dict[object, str] = {str: "text", int: "whole number", float: "number", bool: "true | false"}
ANY = "<column>"
"""Stands in a path for the name of a column."""


@dataclass(frozen=True)
class Key:
    """One key: its path, type, default and meaning."""

    path: str
    kind: str
    default: str
    doc: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.default}: {self.doc}"


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[Key]:
    """The keys of a specification and of all below it, in the order they are written."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield Key(path, _words(field) or _kind(field.annotation), _default(field), field.description or "")
        for below, step in _models(field.annotation):
            yield from keys_of(below, f"{path}.{step}")


def _words(field: FieldInfo) -> str:
    """The words of an option with the papers' words beside them; nothing for other options."""
    words = words_of(field)
    if words is None:
        return ""
    plain = [str(word) for word in get_args(_plain(field.annotation))]
    return " | ".join(word if (paper := words.paper(word)) == word else f"{word} (or {paper})" for word in plain)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or isinstance(field.default, BaseModel) or field.default in ((), {}):
        return "optional"
    return f"default {str(field.default).lower()}"


def _plain(annotation: Any) -> Any:
    """The annotation without Annotated (how a value is checked) and without None (it may be absent)."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        return _plain(parts[0]) if len(parts) == 1 else tuple(_plain(part) for part in parts)
    return annotation


def _kind(annotation: Any) -> str:
    plain = _plain(annotation)
    if isinstance(plain, tuple):
        return "number" if int in plain and "Decimal" in str(plain) else " | ".join(_kind(part) for part in plain)
    if get_origin(plain) is Literal:
        return " | ".join(str(choice).lower() for choice in get_args(plain))
    if get_origin(plain) is tuple:
        return f"list of {_kind(get_args(plain)[0])}"
    if isinstance(get_origin(plain), type) and issubclass(get_origin(plain), Mapping):
        return f"mapping of names to {_kind(get_args(plain)[1])}"
    if isinstance(plain, type) and issubclass(plain, BaseModel):
        return "section"
    if isinstance(plain, TypeAliasType):  # how a specification names a mapping of its own kind
        return "mapping of names to section"
    return _WORDS.get(plain, getattr(plain, "__name__", str(plain)))


def _models(annotation: Any) -> Iterator[tuple[type[BaseModel], str]]:
    plain = _plain(annotation)
    if isinstance(get_origin(plain), type) and issubclass(get_origin(plain), Mapping):
        for model, _ in _models(get_args(plain)[1]):
            yield model, f"{ANY}."
    elif isinstance(plain, type) and issubclass(plain, BaseModel):
        yield plain, ""
