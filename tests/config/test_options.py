"""Options that a job file and an anonymizer share: one default, the same words and ranges, whoever is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import pytest
from annotated_types import Ge
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from anon_spark import (
    FreeRange,
    Hierarchy,
    LatticeAnonymizer,
    MstAnonymizer,
    RelationalTransactionAnonymizer,
    SetValuedAnonymizer,
    TreeAnonymizer,
    TreeClass,
    TreeSchema,
)
from anon_spark.config.job import JobSpec
from anon_spark.config.options import default, options_of, require_options
from anon_spark.config.spec import Spec, words_of
from anon_spark.errors import ConfigurationError
from anon_spark.families.mst import partition
from anon_spark.families.registry import parse_job
from anon_spark.families.relational_transaction import settings as relational_transaction
from anon_spark.families.relational_transaction.job import RelationalTransactionJob
from anon_spark.families.set_valued import block as set_valued
from anon_spark.families.tree import settings as tree
from anon_spark.families.tree.anonymizer import TreeOptions

AGE = Hierarchy.intervals(0, 9, [5])
INTERVALS = {"intervals": {"from": 0, "to": 9, "widths": [5]}}


class Family(NamedTuple):
    """An anonymizer with all that it needs, a job with all that it needs, and the settings that a fit is handed."""

    anonymizer: Any
    needed: Mapping[str, Any]
    job: Mapping[str, Any]
    settings: Any = None


FAMILIES: Mapping[str, Family] = {
    "lattice": Family(
        LatticeAnonymizer, {"k": 2, "quasi_identifiers": {"age": AGE}}, {"columns": {"quasi_identifiers": {"age": INTERVALS}}}
    ),
    "mst": Family(
        MstAnonymizer,
        {"k": 2, "quasi_identifiers": {"age": AGE}},
        {"columns": {"quasi_identifiers": {"age": INTERVALS}}},
        partition.Settings,
    ),
    "relational_transaction": Family(
        RelationalTransactionAnonymizer,
        {"k": 2, "quasi_identifiers": {"age": FreeRange()}, "transactions": ["codes"]},
        {"columns": {"quasi_identifiers": {"age": {}}, "transactions": ["codes"]}},
        relational_transaction.Settings,
    ),
    "set_valued": Family(
        SetValuedAnonymizer, {"k": 2, "items": "codes"}, {"columns": {"items": "codes"}}, set_valued.Settings
    ),
    "tree": Family(
        TreeAnonymizer,
        {"k": 2, "schema": TreeSchema((TreeClass("Age", "age"),)), "hierarchies": {"Age": AGE}},
        {"columns": {"tree": {"Age": {"field": "age", **INTERVALS}}}},
        tree.Settings,
    ),
}


class Option(NamedTuple):
    """An option that job file and anonymizer share: what the job's spec says, and the value of a job that does not say."""

    family: str
    name: str
    field: FieldInfo
    value: object

    def __str__(self) -> str:
        return f"{self.family}.{self.name}"

    def anonymizer_with(self, value: object) -> Any:
        """An anonymizer whose option has this value."""
        return FAMILIES[self.family].anonymizer(**{**FAMILIES[self.family].needed, self.name: value})


def sections_of(family: str) -> Iterator[BaseModel]:
    """The sections of a job that says nothing it does not have to say."""
    places = {"input": {"table": "db.source"}, "output": {"table": "db.release", "runs": "db.runs"}}
    job = parse_job({"anon_spark": 1, "family": family, **places, "privacy": {"k": 2}, **FAMILIES[family].job}, Path("/jobs"))
    yield from (job, getattr(job, "privacy"), getattr(job, family))  # noqa: B009 - every family has one, JobSpec does not
    if isinstance(job, RelationalTransactionJob):
        yield job.relational_transaction.items.options
    if family == "tree":
        yield TreeOptions()


def options() -> Iterator[Option]:
    for family, (anonymizer, *_) in FAMILIES.items():
        names = {field.name for field in dataclasses.fields(anonymizer)}
        job, *sections = sections_of(family)
        for section in (job, *sections):
            for name, field in type(section).model_fields.items():
                if name in names:
                    value = getattr(section, name)
                    yield Option(family, name, field, getattr(job, name, None) if value is None else value)


def literals(kind: object) -> tuple[object, ...]:
    """The words inside an annotation."""
    inside = get_args(kind)
    return inside if get_origin(kind) is Literal else tuple(word for part in inside for word in literals(part))


def least_of(option: Option) -> int | None:
    """The least value of a number, wherever the spec says it."""
    metadata = [*option.field.metadata, *(one for part in get_args(option.field.annotation) for one in _metadata(part))]
    return next((int(str(one.ge)) for one in metadata if isinstance(one, Ge)), None)


def _metadata(kind: object) -> tuple[object, ...]:
    """Also of Field(…) inside Annotated."""
    written = getattr(kind, "__metadata__", ())
    return tuple(one for part in written for one in (part.metadata if isinstance(part, FieldInfo) else [part]))


OTHERS = ("lattice.sensitive", "mst.sensitive")  # of a job, the models by column; an anonymizer calls them models
ALL = [option for name, option in {str(option): option for option in options()}.items() if name not in OTHERS]
DEFAULTS = [option for option in ALL if option.name not in FAMILIES[option.family].needed]
WORDS = [option for option in ALL if literals(option.field.annotation)]
NUMBERS = [option for option in ALL if least_of(option) is not None]


def test_options_are_found() -> None:
    some = {str(option) for option in ALL}
    assert {"lattice.search", "mst.zero_edges", "set_valued.segment", "tree.negations", "tree.mode", "tree.n"} <= some
    assert {f"relational_transaction.{name}" for name in ("delta", "item_method", "item_block", "cost", "nulls")} <= some
    assert len(WORDS) >= 20 and {"lattice.k", "relational_transaction.item_block", "tree.max_cuts"} <= set(map(str, NUMBERS))


@pytest.mark.parametrize("option", DEFAULTS, ids=str)
def test_default_is_that_of_a_job(option: Option) -> None:
    anonymizer, needed, _, settings = FAMILIES[option.family]
    assert getattr(anonymizer(**needed), option.name) == option.value
    of_fit = {field.name: field.default for field in dataclasses.fields(settings)} if settings else {}
    assert of_fit.get(option.name, option.value) == option.value


@pytest.mark.parametrize("option", WORDS, ids=str)
def test_words_are_those_of_a_job(option: Option) -> None:
    words = literals(option.field.annotation)
    assert set(literals(get_type_hints(FAMILIES[option.family].anonymizer)[option.name])) == set(words)
    with pytest.raises(ConfigurationError, match=rf"^{option.name}: should be .*{words[0]}"):
        option.anonymizer_with("nosuchword")
    near = str(words[0])[:-1]
    if option.name != "depth" and len(near) > 2:
        with pytest.raises(ConfigurationError, match=rf"^{option.name}: should be one of .*\. Did you mean: {words[0]}"):
            option.anonymizer_with(near)


@pytest.mark.parametrize("option", NUMBERS, ids=str)
def test_number_below_the_least_is_refused(option: Option) -> None:
    least = least_of(option)
    assert least is not None
    with pytest.raises(ConfigurationError, match=rf"^{option.name}\b"):
        option.anonymizer_with(least - 1)
    with pytest.raises(ConfigurationError, match=rf"^{option.name}\b"):
        option.anonymizer_with(str(least))


@pytest.mark.parametrize("option", [option for option in ALL if option.value is not None], ids=str)
def test_none_is_no_value_of_an_option_with_another_default(option: Option) -> None:
    if str(option) == "set_valued.k":  # or l
        return
    with pytest.raises(ConfigurationError, match=rf"\b{option.name}\b"):
        option.anonymizer_with(None)


# --- the papers' words -------------------------------------------------------------------------------------------------


def test_the_papers_words_are_read_as_plain_ones() -> None:
    seen = set()
    for option in WORDS:
        words = words_of(option.field)
        for paper, plain in words.plain_by_paper.items() if words else ():
            needs_hierarchy = plain in ("apriori", "vertical")
            more = {"item_hierarchy": AGE} if needs_hierarchy else {}
            family = FAMILIES[option.family]
            anonymizer = family.anonymizer(**{**family.needed, **more, option.name: paper})
            assert getattr(anonymizer, option.name) == plain
            seen.add(option.name)
    assert seen == {"bound", "merge", "distance", "cost", "item_method"}


# --- the functions themselves ------------------------------------------------------------------------------------------


class Sizes(Spec):
    number: int = 3
    word: Literal["one", "two"] | None = None


@dataclasses.dataclass(frozen=True)
class Holder:
    number: int = default(Sizes, "number")
    word: str | None = default(Sizes, "word")
    other: int = 0


def test_what_is_required_and_handed_over() -> None:
    assert Holder() == Holder(3, None)
    require_options(Holder(word="two", other=-1), Sizes)
    for wrong, message in (
        (Holder(word="three"), "^word: should be one of one, two"),
        (Holder(number="3"), "^number: should be a whole number$"),  # type: ignore[arg-type]
        (Holder(number=None), "^number: is required$"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError, match=message):
            require_options(wrong, Sizes)
    assert options_of(Sizes(number=4)) == {"number": 4, "word": None}
    assert options_of(Sizes(number=4), "word") == {"number": 4}


# keys that came later: such a value is as if there were none
AS_BEFORE = {("relational_transaction.suppress_items", 0.0), ("output.mode", "replace")}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_hash_sees_every_key(family: str) -> None:
    """A key that is left out of the hash could be changed, and a run would take the old release for its own."""

    def lacking(section: BaseModel, content: Mapping[str, Any], path: str = "") -> Iterator[str]:
        for name, field in type(section).model_fields.items():
            key, value = field.alias or name, getattr(section, name)
            if value is not None and key not in content and (f"{path}{key}", value) not in AS_BEFORE:
                yield f"{path}{key}"
            elif isinstance(value, BaseModel):
                yield from lacking(value, content[key], f"{path}{key}.")

    job = next(sections_of(family))
    assert isinstance(job, JobSpec) and list(lacking(job, job.content())) == []


REFUSED_ALONE = {  # they need another key
    *(("lattice", "depth", word) for word in ("best", "worst")),
    ("lattice", "loss", "cm"),
    ("relational_transaction", "distance", "utility_loss"),
    *(("set_valued", "truth", word) for word in ("spaced", "shift", "paper")),
}


@pytest.mark.parametrize("option", [one for one in WORDS if one.name not in ("nulls", "on_unseen")], ids=str)
def test_a_job_may_say_any_word_alone(option: Option) -> None:
    """The defaults of other keys are in no conflict with it."""
    places = {"input": {"table": "db.source"}, "output": {"table": "db.release", "runs": "db.runs"}}
    family, section = FAMILIES[option.family], type(getattr(next(sections_of(option.family)), option.family))
    if option.name not in section.model_fields:
        return
    for word in literals(option.field.annotation):
        own = {**family.job.get(option.family, {}), option.name: word}
        job = {"anon_spark": 1, "family": option.family, **places, "privacy": {"k": 2}, **family.job, option.family: own}
        try:
            parse_job(job, Path("/jobs"))
            refused = False
        except ConfigurationError as error:
            refused = True
            assert str(error), (option, word)
        assert refused == ((option.family, option.name, word) in REFUSED_ALONE), (option, word)


def test_a_refusal_by_defaults_has_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict that is found only when the defaults are filled in is told as well."""

    def conflicts(_: type[JobSpec], raw: Mapping[str, Any], __: Path | None) -> Iterator[tuple[str, str]]:
        if "nulls" in raw:  # the user did not say it
            yield "nulls", "cannot be"

    monkeypatch.setattr(JobSpec, "conflicts", classmethod(conflicts))
    places = {"input": {"table": "db.source"}, "output": {"table": "db.release", "runs": "db.runs"}}
    job = {"anon_spark": 1, "family": "mst", **places, "privacy": {"k": 2}, **FAMILIES["mst"].job}
    with pytest.raises(ConfigurationError, match="nulls: cannot be"):
        parse_job(job, Path("/jobs"))
