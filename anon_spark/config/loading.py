"""Loading of a job: a YAML file and `--set` overrides become a frozen job, or one error that names every fault."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from anon_spark.config.job import JobSpec
from anon_spark.config.keys import ANY, keys_of
from anon_spark.config.locations import one_spelling
from anon_spark.config.problems import problems
from anon_spark.config.spec import Problem
from anon_spark.config.yaml_text import parse
from anon_spark.errors import ConfigurationError, did_you_mean

Families = Mapping[str, type[JobSpec]]
"""The jobs of all families by name; whoever knows the families hands them over."""

PLACES = frozenset({"table", "runs", "report", "dictionary", "ledger", "work", "levels", "edges"})
"""Keys whose values are places."""
_UNKNOWN = "unknown key."
_REPEATED = {"children": f"columns.tree.{ANY}.", "nest": f"input.nest.{ANY}."}
"""Sections that hold sections of their own kind, and where the keys of the outermost are listed."""


def load_job(families: Families, path: str | Path, overrides: Sequence[str] = ()) -> JobSpec:
    """Read a job file; an override is `dotted.key=YAML value` and wins over the file.

    Guarantee: the job is valid by itself and its places are absolute. Every fault is in one ConfigurationError, one per
    line. Reads the job file and nothing else.
    """
    file = Path(os.path.expanduser(path))
    try:
        content = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such job file; check the path") from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path}: is a folder; name the job file in it") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    raw = parse(content, file.name)
    if raw is None:
        raise ConfigurationError(f"{file.name}: is empty; see conf/ for an example of a job")
    if not isinstance(raw, Mapping):
        raise ConfigurationError(f"{file.name}: should be a section of keys, starting with anon_spark: 1")
    return parse_job(families, _overridden(raw, overrides), Path(os.path.abspath(file)).parent)


def parse_job(families: Families, raw: Mapping[str, Any], base: Path) -> JobSpec:
    """A job from plain values, its relative places under `base`; faults as in `load_job`."""
    faults: list[Problem] = []
    version = raw.get("anon_spark")
    if version is not None and (isinstance(version, bool) or version != 1):
        _refuse([("anon_spark", "should be 1, the version of this format")])   # in another version keys may have other meanings
    family = raw.get("family")
    if not isinstance(family, str) or family not in families:
        hint = did_you_mean(family, list(families)) if isinstance(family, str) else ""
        what = "is required" if family is None else "unknown family"
        faults.append(("family", f"{what}; available: {', '.join(families)}.{hint}"))
        family = next(iter(families))   # so that faults of the other keys are reported as well
    model = families[family]
    try:
        job = model.model_validate({**raw, "family": family}, context={"base": base})
    except ValidationError as error:
        between = list(model.conflicts(raw, base))
        explained = {path for path, _ in between}   # a conflict between keys also explains why a key is unknown here
        wrong = [
            (path, what)
            for path, what in problems(error, model)
            if path not in explained or not what.startswith(_UNKNOWN)
        ]
        wrong = [(path, what + _nearest_repeated(path, model) if what == _UNKNOWN else what) for path, what in wrong]
        faults += [(path, _elsewhere(path, families, family) or what if _is_lost(what) else what) for path, what in wrong]
        _refuse([*faults, *between] or [("", str(detail["msg"])) for detail in error.errors()])
    if faults:
        _refuse(faults)
    return job


def known_keys(families: Families, family: str | None = None) -> dict[str, str]:
    """Every key of a job file (of one family, or of all), with its type, default and meaning.

    A key that several families share is described as in the first of them.
    """
    models = [families[family]] if family else families.values()
    described: dict[str, str] = {}
    for key in (key for model in models for key in keys_of(model)):
        described.setdefault(key.path, str(key))
    return described


def config_hash(job: JobSpec) -> str:
    """SHA-256 of a job's content: with defaults and resolved places, without comments and order of keys.

    The order of quasi-identifiers counts, since nodes are written in it. A latest input version is not resolved here.
    """
    content = json.dumps(_spelled_once(job.content()), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(content.encode("ascii")).hexdigest()


def _spelled_once(content: Any) -> Any:
    """A job's content with every place in its canonical spelling."""
    if isinstance(content, Mapping):
        return {
            key: one_spelling(value) if key in PLACES and isinstance(value, str) else _spelled_once(value)
            for key, value in content.items()
        }
    return [_spelled_once(value) for value in content] if isinstance(content, list) else content


def _refuse(faults: Sequence[Problem]) -> NoReturn:
    lines = list(dict.fromkeys(" ".join(f"{path}: {what}".lstrip(": ").splitlines()) for path, what in faults))
    raise ConfigurationError("\n".join(lines), problems=lines)


def _is_lost(what: str) -> bool:
    """Whether a fault is a key that is unknown here, and none beside it resembles it."""
    return what.startswith(_UNKNOWN) and "Did you mean" not in what


def _elsewhere(path: str, families: Families, family: str) -> str:
    """The fault of a key that other families have; nothing where none has it."""
    having = [
        name for name, model in families.items()
        if name != family and any(_same_key(path, key.path) for key in keys_of(model))
    ]  # fmt: skip
    if not having:
        return ""
    return f"unknown key. It belongs to {' and '.join(having)}, not to {family}; remove it, or change the family."


def _same_key(path: str, known: str) -> bool:
    steps, others = path.split("."), known.split(".")
    return len(steps) == len(others) and all(other in (ANY, step) for step, other in zip(steps, others, strict=True))


def _nearest_repeated(path: str, model: type[JobSpec]) -> str:
    """The key probably meant by an unknown key deep inside repeated sections, whose keys are listed once."""
    for step, listed in _REPEATED.items():
        _, inside, rest = path.rpartition(f".{step}.")
        parent, _, name = rest.partition(".")[2].rpartition(".")
        if inside and name:
            above = listed + (f"{parent}." if parent else "")
            paths = (key.path for key in keys_of(model) if key.path.startswith(above))
            beside = [below for path in paths if "." not in (below := path.removeprefix(above))]
            return did_you_mean(name, beside) or (f" Known here: {', '.join(beside)}." if beside else "")
    return ""


def _overridden(raw: Mapping[str, Any], overrides: Sequence[str]) -> Mapping[str, Any]:
    for override in overrides:
        path, equals, value = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigurationError("--set: should be key=value with a dotted key, such as output.table=people")
        raw = _replaced(raw, keys, parse(value, f"--set {path.strip()}"), path.strip())
    return raw


def _replaced(raw: Any, keys: Sequence[str], value: Any, path: str) -> Mapping[str, Any]:
    """A copy with one key replaced; a YAML anchor may stand in two places, so nothing is changed in place."""
    if raw is not None and not isinstance(raw, Mapping):
        raise ConfigurationError(f"--set {path}: {keys[0]} is not a key of a section")
    step, rest = keys[0], keys[1:]
    old = dict(raw or {})
    return {**old, step: _replaced(old.get(step), rest, value, path) if rest else value}
