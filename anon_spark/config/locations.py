"""Locations of tables and files: relative to the job file, and never overlapping.

Only names are compared, nothing is opened. Only the catalog knows the path of a catalog table, so the pipeline compares
locations once more after it resolved the names.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo

from anon_spark.config.spec import Problem, Text

_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*)(/.*)?|(/.*))$")
_GLOB = re.compile(r"[*?\[{]")
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_POSSIBLE_DEFAULTS = {"hdfs", "viewfs", "dbfs"}   # possible schemes of a path without scheme on a cluster


def is_uri(location: str) -> bool:
    """Whether a location names its store itself, such as s3://bucket/key or file:/data."""
    return _URI.match(location) is not None


def is_path(table: str) -> bool:
    """Whether a table is a path; without a slash it is a name of the catalog."""
    return "/" in table


def resolve_file(location: str, base: Path) -> str:
    """A file or folder, relative to `base`; a URI stays as it is."""
    if is_uri(location):
        return location
    return os.path.normpath(os.path.join(base, os.path.expanduser(location)))


def resolve_table(table: str, base: Path) -> str:
    """A table: a path is resolved like a file, a catalog name stays as it is."""
    return resolve_file(table, base) if is_path(table) else table


def one_spelling(location: str) -> str:
    """The canonical spelling of a location: file:/data//x/ is /data/x."""
    uri = _URI.match(location)
    if uri is None:
        return posixpath.normpath(location) if is_path(location) else location
    scheme = _SAME_SCHEME.get(uri[1].lower(), uri[1].lower())
    path = posixpath.normpath("/" + (uri[3] or uri[4] or "/").lstrip("/"))
    return path if scheme == "file" else f"{scheme}://{(uri[2] or '').lower()}{path}"


def base_of(info: ValidationInfo) -> Path | None:
    """The folder of the job file that is being parsed, if there is one."""
    base = info.context.get("base") if isinstance(info.context, dict) else None
    return base if isinstance(base, Path) else None


def _file(location: str, info: ValidationInfo) -> str:
    base = base_of(info)
    return resolve_file(location, base) if base else location


def checked_table(table: str, info: ValidationInfo) -> str:
    """A table name or path of a job, made absolute; SQL spellings of a path are refused."""
    if is_path(table) and "`" in table:
        raise ValueError("write the path alone, without format and quotes")
    base = base_of(info)
    return resolve_table(table, base) if base else table


FileLocation = Annotated[Text, AfterValidator(_file)]
TableLocation = Annotated[Text, AfterValidator(checked_table)]

Relation = Literal["is the same place as", "lies inside", "contains"]


@dataclass(frozen=True)
class _Place:
    scheme: str
    authority: str
    parts: tuple[str, ...]

    def same_store(self, other: _Place) -> bool:
        schemes = {self.scheme, other.scheme}
        if len(schemes) == 1:
            return self.authority == other.authority or "" in (self.authority, other.authority)
        return schemes == {"", "file"} or ("" in schemes and bool(schemes & _POSSIBLE_DEFAULTS))

    def relation(self, other: _Place) -> Relation | None:
        if not self.same_store(other):
            return None
        if self.parts == other.parts:
            return "is the same place as"
        if self.scheme == "catalog":
            return None
        if self.parts[: len(other.parts)] == other.parts:
            return "lies inside"
        return "contains" if other.parts[: len(self.parts)] == self.parts else None


def _places(location: str) -> Iterator[_Place]:
    """Every way to read a location: as it is written and with links followed."""
    if not is_path(location):
        names = tuple(location.replace("`", "").lower().split("."))
        yield _Place("catalog", "", ("spark_catalog", "default")[: max(0, 3 - len(names))] + names)
        return
    uri = _URI.match(location)
    scheme, authority, path = "", "", location
    if uri:
        scheme, authority, path = uri[1].lower(), (uri[2] or "").lower(), uri[3] or uri[4] or "/"
    scheme = _SAME_SCHEME.get(scheme, scheme)
    authority = "" if scheme == "file" else authority
    glob = _GLOB.search(path)
    path = path[: glob.start()].rpartition("/")[0] or "/" if glob else path   # a pattern reads a whole folder
    paths = {posixpath.normpath("/" + path.lstrip("/"))}
    if scheme in ("", "file"):
        paths |= {os.path.abspath(path), os.path.realpath(path)}
    for spelling in sorted(paths):
        yield _Place(scheme, authority, PurePosixPath(spelling).parts)


def relation(location: str, other: str) -> Relation | None:
    """How two resolved locations overlap, or None if they do not."""
    for here, there in product(list(_places(location)), list(_places(other))):
        if touch := here.relation(there):
            return touch
    return None


def collisions(written: Iterable[Problem], read: Iterable[Problem]) -> Iterator[Problem]:
    """One problem for every two places that overlap, given as (key, resolved location).

    Guarantee: a written place cannot replace a read place or another written place.
    """
    written = list(written)
    pairs = [*product(written, list(read)), *((later, earlier) for earlier, later in combinations(written, 2))]
    seen = set()
    for (key, location), (other_key, other) in pairs:
        touch = relation(location, other) if key != other_key else None
        if touch and (key, other_key) not in seen:
            seen.add((key, other_key))
            yield key, f"{touch} {other_key}; choose a place apart from it"
