"""Base of all specifications: frozen, no unknown keys, a null means "not given"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SerializationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from anon_spark.columns import PREFIX, is_reserved

Problem = tuple[str, str]
"""A dotted path of the job file and what is wrong there."""


class Spec(BaseModel):
    """A part of a job file.

    Guarantee: values cannot change after parsing, an unknown key is an error, types are not guessed ("5" is not 5).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        """Drop null values: `work:` without a value means the default, or "is required" if there is none."""
        if not isinstance(data, Mapping):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: value for key, value in data.items() if value is not None or key not in known}


HASHED = {"words": "papers"}
"""Context of a dump that is hashed: it holds the papers' words."""


@dataclass(frozen=True, eq=False)
class Words:
    """The papers' words for the values of an option, as aliases: `Words({"rum": "relational"})` reads rum as relational.

    Guarantee: a parsed job holds the plain word. A dump in the context HASHED holds the paper's word, as in older versions,
    so that a renamed value does not cause a new release.
    """

    plain_by_paper: Mapping[str, str]

    def plain(self, word: object) -> object:
        """The plain word for a paper's word; other values unchanged."""
        return self.plain_by_paper.get(word, word) if isinstance(word, str) else word

    def paper(self, word: object) -> object:
        """The paper's word for a plain word, for the hash; other values unchanged."""
        return next((paper for paper, plain in self.plain_by_paper.items() if plain == word), word)

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(self._written, info_arg=True)
        return core_schema.no_info_before_validator_function(self.plain, handler(source), serialization=written)

    def _written(self, word: object, info: SerializationInfo) -> object:
        return self.paper(word) if info.context is HASHED else word


def words_of(field: FieldInfo) -> Words | None:
    """The papers' words of an option, or None."""
    return next((entry for entry in field.metadata if isinstance(entry, Words)), None)


def in_plain_words(section: Mapping[str, Any], spec: type[BaseModel]) -> dict[str, Any]:
    """A section of an unchecked job with the papers' words replaced by plain ones."""
    words = {name: words_of(field) for name, field in spec.model_fields.items()}
    return {key: value if (known := words.get(key)) is None else known.plain(value) for key, value in section.items()}


def _has_control(value: str) -> bool:
    return any(ord(character) < 32 or ord(character) == 127 for character in value)


def _column(name: str) -> str:
    _not_empty(name)
    if is_reserved(name.lower()):
        raise ValueError(f"names starting with {PREFIX}, and _link, are reserved; rename the column")
    return name


def _not_empty(value: str) -> str:
    if not value.strip():
        raise ValueError("should not be empty")
    if _has_control(value):
        raise ValueError("contains a line break or a control character")
    return value


def _number(value: object) -> object:
    """An exact number: 5.0 becomes 5, and 0.1 one tenth rather than the float nearest to it."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("should be a number")
    exact = Decimal(str(value))
    if not exact.is_finite():
        raise ValueError("should be a finite number")
    return int(exact) if exact == exact.to_integral_value() else exact


Text = Annotated[str, AfterValidator(_not_empty)]
ColumnName = Annotated[str, AfterValidator(_column)]
ColumnNames = Annotated[tuple[ColumnName, ...], Field(strict=False)]
Number = Annotated[int | Decimal, BeforeValidator(_number)]


def section(raw: object, *path: str) -> Mapping[str, Any]:
    """The mapping found under a path of an unchecked job, empty when there is none."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, Mapping) else {}


def text(raw: object, *path: str) -> str | None:
    """The text found under a path of an unchecked job, or None."""
    value = section(raw, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) and value.strip() and not _has_control(value) else None


def texts(raw: object, *path: str) -> list[str]:
    """The texts in the list found under a path of an unchecked job."""
    values = section(raw, *path[:-1]).get(path[-1])
    return [value for value in values if isinstance(value, str)] if isinstance(values, list | tuple) else []


def whole(raw: object, *path: str) -> int | None:
    """The whole number found under a path of an unchecked job, or None; true and false are no numbers."""
    value = section(raw, *path[:-1]).get(path[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else None
