"""README keeps up with the code: every key, option, path and name it should have is there, and what it shows works."""

from __future__ import annotations

import argparse
import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import anon_spark
from anon_spark.config import known_keys, parse_job
from anon_spark.config.yaml_text import parse
from jobs.cli import _parser

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

RESULTS = ("jobs/BENCHMARKS.md", "jobs/REPRODUCTION.md")  # written by long jobs, there once those have run
REPOSITORY_PATH = re.compile(r"(?<![\w./-])(?:anon_spark|conf|jobs|pipelines|tests|\.ci)/[\w./-]*")
VARIABLES = {"recoding": "LatticeRecoding", "again": "LatticeRecoding", "anonymizer": "LatticeAnonymizer"}


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def rows() -> dict[str, str]:
    """Key → its row, of every table that starts with a key in backticks."""
    return {match[1]: match[0] for match in re.finditer(r"^\| `([^`]+)` \|.*$", README, re.MULTILINE)}


def anchors() -> set[str]:
    """Headings as GitHub links to them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("key", known_keys())
def test_every_key_of_a_job_file_is_explained(key: str) -> None:
    said, row = known_keys()[key], rows().get(key)
    if row is None:  # README says so of tables below others and of hierarchies of classes
        row = rows().get(key.replace("input.nest.<column>.", "input.").replace("columns.tree.", "columns.quasi_identifiers."))

    assert row is not None, f"{key} has no row in README's tables"
    value = row.split(" | ")[1]
    assert ("required" in value) == (", required:" in said)
    default = re.search(r", default ([^:]+):", said)
    assert default is None or re.search(rf"{re.escape(default[1])} \(default\)|default {re.escape(default[1])}", value)


def test_no_key_is_explained_that_does_not_exist() -> None:
    heads = {key.partition(".")[0] for key in known_keys()}

    assert [key for key in rows() if re.split(r"[. ]", key)[0] in heads and key not in known_keys()] == []


def test_every_option_of_the_command_line_is_explained() -> None:
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    options = {
        option for parser in commands.choices.values() for action in parser._actions for option in action.option_strings
    }

    assert [name for name in commands.choices if f"`anon-spark {name}" not in README] == []
    assert [option for option in sorted(options - {"-h", "--help"}) if f"`{option}" not in README] == []


def test_relative_links_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links

    lost = [link for link in links if link.startswith("#") and link[1:] not in anchors()]
    lost += [link for link in links if not link.startswith("#") and link not in RESULTS and not (ROOT / link).exists()]
    assert lost == []


def test_paths_of_the_repository_exist() -> None:
    paths = {path.rstrip(".") for path in REPOSITORY_PATH.findall(README)}
    assert {"conf/lattice.yaml", "jobs/run.py", "pipelines/run.py"} <= paths

    assert [path for path in sorted(paths) if path not in RESULTS and not (ROOT / path).exists()] == []


def test_yaml_example_is_a_job(tmp_path: Path) -> None:
    (example,) = fences("yaml")

    job = parse_job(parse(example, "README.md"), tmp_path)

    kinds = {spec.kind for spec in job.columns.quasi_identifiers.values()}  # type: ignore[attr-defined]
    assert kinds == {"levels", "edges", "intervals", "mask", "date"}


def test_python_snippet_uses_names_that_exist() -> None:
    snippets = fences("python")
    assert snippets

    assert [fault for snippet in snippets for fault in unknown_names(ast.parse(snippet))] == []


@pytest.mark.parametrize(
    "planted",
    [
        "from anon_spark import Nothing",
        "from anon_spark import Hierarchy\nHierarchy.nothing()",
        "from anon_spark import KAnonymity\nKAnonymity(nothing=1)",
        "recoding.nothing",
        "nothing(1)",
    ],
)
def test_planted_name_is_found(planted: str) -> None:
    assert len(list(unknown_names(ast.parse(planted)))) == 1


def unknown_names(tree: ast.Module) -> Iterator[str]:
    """Imports that fail, attributes that are not there, arguments nobody takes, names nobody set."""
    known: dict[str, Any] = {name: getattr(anon_spark, kind) for name, kind in VARIABLES.items()}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = import_module(str(node.module))
            yield from (f"{node.module}.{alias.name}" for alias in node.names if not hasattr(module, alias.name))
            known |= {alias.name: getattr(module, alias.name, None) for alias in node.names}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if known.get(name) is not None:
                if attribute not in {*dir(known[name]), *getattr(known[name], "__dataclass_fields__", ())}:
                    yield f"{name}.{attribute}"
            case ast.Call(func=ast.Name(id=name)) if known.get(name) is not None:
                takes = inspect.signature(known[name]).parameters
                yield from (f"{name}({given.arg}=)" for given in node.keywords if given.arg not in takes)
            case ast.Name(id=name) if name not in known and name not in assigned and name not in dir(builtins):
                yield name
