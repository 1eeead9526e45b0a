"""Options shared by job file and anonymizer: the job's spec defines default, words and ranges once."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from anon_spark.config.problems import problems
from anon_spark.config.spec import words_of
from anon_spark.errors import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_STRICT = ConfigDict(strict=True, hide_input_in_errors=True)


def default(spec: type[BaseModel], name: str) -> Any:
    """The default of an option, for an anonymizer that has it too."""
    return spec.model_fields[name].default


def require_options(anonymizer: DataclassInstance, *specs: type[BaseModel]) -> None:
    """Refuse options of an anonymizer that a job file would refuse, and replace the papers' words by plain ones.

    A misspelled policy must not mean another one. None is allowed only if it is the default. Conflicts between options are
    not checked here.
    """
    may_be_none = {option.name: option.default is None for option in fields(anonymizer)}
    for spec in specs:
        for name in (name for name in spec.model_fields if name in may_be_none):
            value = getattr(anonymizer, name)
            if value is not None:
                _require(value, spec, name)
            elif not may_be_none[name]:
                raise ConfigurationError(f"{name}: is required")
            if words := words_of(spec.model_fields[name]):
                object.__setattr__(anonymizer, name, words.plain(value))  # in __post_init__ of a frozen dataclass


@cache
def _alone(spec: type[BaseModel], name: str) -> type[BaseModel]:
    """A spec of one option."""
    field = spec.model_fields[name]
    kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    option: dict[str, Any] = {name: (kind, ...)}
    return create_model("Options", __config__=_STRICT, **option)


def _require(value: object, spec: type[BaseModel], name: str) -> None:
    alone = _alone(spec, name)
    try:
        alone.model_validate({name: value})
    except ValidationError as error:
        lines = dict.fromkeys(f"{path}: {fault}" for path, fault in problems(error, alone))
        raise ConfigurationError("\n".join(lines)) from None


def options_of(spec: BaseModel, *left_out: str) -> dict[str, Any]:
    """The options of a job's section by name, as an anonymizer takes them."""
    return {name: value for name, value in spec if name not in left_out}
