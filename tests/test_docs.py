"""README and docs keep up with the code: keys, options, links, paths and names are there, and what they show works."""

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
from anon_spark.cli import _parser
from anon_spark.config.yaml_text import parse
from anon_spark.families.registry import parse_job
from jobs.reference import PAGE, reference

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")

RESULTS = {"jobs/BENCHMARKS.md", "jobs/REPRODUCTION.md"}  # written by long jobs, there once those have run
REPOSITORY_PATH = re.compile(r"(?<![\w./-])(?:anon_spark|conf|jobs|pipelines|tests|docs|\.ci)/[\w./-]*")
VARIABLES = {"recoding": "LatticeRecoding", "again": "LatticeRecoding", "anonymizer": "LatticeAnonymizer"}
GIVEN = {"spark", "df", "release", "table", "people", "hierarchies"}  # what a snippet may take as there


def fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_reference_of_job_files_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m jobs.reference"


def test_every_option_of_the_command_line_is_explained() -> None:
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    options = {
        option for parser in commands.choices.values() for action in parser._actions for option in action.option_strings
    }

    assert [name for name in commands.choices if f"anon-spark {name}" not in GUIDE] == []
    assert [option for option in sorted(options - {"-h", "--help"}) if f"`{option}" not in GUIDE] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        known = target.exists() or str(target.relative_to(ROOT)) in RESULTS
        if not known or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_of_the_repository_exist(page: Path) -> None:
    paths = {path.rstrip("./") for path in REPOSITORY_PATH.findall(page.read_text(encoding="utf-8"))}
    assert [path for path in sorted(paths - RESULTS) if not (ROOT / path).exists()] == []


def test_yaml_example_is_a_job(tmp_path: Path) -> None:
    (example,) = fences(README, "yaml")

    job = parse_job(parse(example, "README.md"), tmp_path)

    kinds = {spec.kind for spec in job.hierarchy_specs.values()}
    assert kinds == {"levels", "edges", "intervals", "mask", "date"}


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page, "python")], ids=lambda page: page.name)
def test_python_snippets_use_names_that_exist(page: Path) -> None:
    assert list(unknown_names(ast.parse("\n".join(fences(page, "python"))))) == []


@pytest.mark.parametrize(
    "planted",
    [
        "from anon_spark import Nothing",
        "from anon_spark import Hierarchy\nHierarchy.nothing()",
        "from anon_spark import KAnonymity\nKAnonymity(nothing=1)",
        "import anon_spark as an\nan.nothing()",
        "import anon_spark as an\nan.KAnonymity(nothing=1)",
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
            known |= {alias.asname or alias.name: getattr(module, alias.name, None) for alias in node.names}
        elif isinstance(node, ast.Import):
            known |= {alias.asname or alias.name.partition(".")[0]: import_module(alias.name) for alias in node.names}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    assigned |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | GIVEN
    assigned |= {str(node.name) for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if known.get(name) is not None:
                if attribute not in {*dir(known[name]), *getattr(known[name], "__dataclass_fields__", ())}:
                    yield f"{name}.{attribute}"
            case ast.Call(func=ast.Name(id=name)) if known.get(name) is not None:
                yield from unknown_arguments(name, known[name], node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if hasattr(known.get(name), attribute):
                yield from unknown_arguments(attribute, getattr(known[name], attribute), node)
            case ast.Name(id=name) if name not in known and name not in assigned and name not in dir(builtins):
                yield name


def unknown_arguments(name: str, function: Any, call: ast.Call) -> Iterator[str]:
    takes = inspect.signature(function).parameters
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in takes.values()):
        yield from (f"{name}({given.arg}=)" for given in call.keywords if given.arg not in takes)
