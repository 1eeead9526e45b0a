"""Hierarchies built, checked and shown: `anon-spark hierarchy SOURCE`."""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anon_spark.config import HierarchySpec, LevelsSource
from anon_spark.config.problems import problems
from anon_spark.config.yaml_text import parse
from anon_spark.errors import ConfigurationError, did_you_mean
from anon_spark.families.registry import load_job
from anon_spark.io.hierarchies import load_hierarchies, load_hierarchy
from anon_spark.model.hierarchy import Hierarchy, Rule

INLINE = "hierarchy"  # what a hierarchy without a name is called


def show(options: argparse.Namespace) -> Iterator[str]:
    """Lines that show each hierarchy as a tree, with warnings; the hierarchy is saved if asked."""
    loaded = _loaded(options)
    if options.save is not None and len(loaded) > 1:
        raise ConfigurationError("--save: the job has several hierarchies. Name one of them with --column.")
    for name, rule in loaded.items():
        hierarchy = rule if isinstance(rule, Hierarchy) else _completed(name, rule, options.values)
        levels = ", ".join(str(hierarchy.cardinality(level)) for level in range(hierarchy.height + 1))
        yield f"{name}: {hierarchy.leaf_count:,} values, {hierarchy.height} levels above them, labels per level: {levels}"
        for low, high, labels in hierarchy.ambiguous_labels():
            yield f"  look at: {labels} labels mean different values on levels {low} and {high}"
        yield hierarchy.tree(options.lines)
        if options.save is not None:
            yield _saved(hierarchy, Path(options.save))


def _loaded(options: argparse.Namespace) -> dict[str, Hierarchy | Rule]:
    source = str(options.source)
    if source.endswith((".yaml", ".yml")):
        return _of_job(source, options.column)
    if options.column is not None:
        raise ConfigurationError("--column goes with a job file only.")
    if options.by is not None:
        return {Path(source).stem: _grouped(_lines(source, "SOURCE"), options.by, options.steps)}
    if source.lstrip().startswith("{"):
        return {INLINE: load_hierarchy(_spec(parse(source, INLINE), INLINE))}
    settings: dict[str, Any] = {"edges" if options.edges else "levels": source, "header": options.header}
    settings |= {"sep": options.sep} if options.sep is not None else {}
    return {Path(source).stem: load_hierarchy(_spec(settings, source))}


def _of_job(file: str, column: str | None) -> dict[str, Hierarchy | Rule]:
    job = load_job(file)
    if not job.hierarchy_specs:
        raise ConfigurationError(f"{file}: this job has no hierarchies.")
    specs = {name: spec for name, spec in job.hierarchy_specs.items() if column in (None, name)}
    if not specs:
        names = list(job.hierarchy_specs)
        raise ConfigurationError(f"--column: the job has no hierarchy named {column}.{did_you_mean(str(column), names)}")
    spark = None
    sources = [spec.source() for spec in specs.values()]
    if any(isinstance(source, LevelsSource) and source.is_table for source in sources):
        from anon_spark.spark_session import make_session  # Spark only where a table has to be read

        spark = make_session("anon-spark hierarchy")
    return load_hierarchies(specs, spark)


def _spec(settings: object, where: str) -> HierarchySpec:
    try:
        return HierarchySpec.model_validate(settings)
    except ValidationError as error:
        lines = [f"{path}: {what}".removeprefix(": ") for path, what in problems(error, HierarchySpec)]
        raise ConfigurationError("\n".join(f"{where}: {line}" for line in lines), problems=lines) from None


def _completed(name: str, rule: Rule, values: str | None) -> Hierarchy:
    if values is None:
        raise ConfigurationError(f"{name}: this rule is completed by the values of a column. Give them with --values FILE.")
    return rule.build(_lines(values, "--values"))


def _lines(file: str, what: str) -> list[str]:
    """The values in a text file, one per line."""
    try:
        return [line for line in Path(file).read_text(encoding="utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{what}: {file} cannot be read. Check the path; it must be UTF-8 text.") from error


def _grouped(values: Sequence[str], by: str, steps: str | None) -> Hierarchy:
    """A hierarchy of values: by their first letters, in order, or by how often each line is there."""
    try:
        numbers = [int(step) for step in (steps or "").split(",")]
    except ValueError:
        raise ConfigurationError("--steps: give whole numbers, one per level, such as 3,1 letters or 10,100 rows.") from None
    if by == "prefix":
        return Hierarchy.by_prefix(values, numbers)
    return Hierarchy.by_order(values, numbers) if by == "order" else Hierarchy.by_frequency(Counter(values), numbers)


def _saved(hierarchy: Hierarchy, path: Path) -> str:
    try:
        if path.suffix == ".json":
            hierarchy.save(path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter=";").writerows(hierarchy.rows())
    except OSError as error:
        raise ConfigurationError(f"--save: {path} cannot be written. Check the folder.") from error
    return f"saved: {path}"

