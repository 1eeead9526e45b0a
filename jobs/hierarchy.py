"""Build, check and show a hierarchy: `spark-submit jobs/hierarchy.py SOURCE`, or `anon-spark hierarchy SOURCE`."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import yaml
from pydantic import ValidationError

from anon_spark.config import HierarchySpec, LatticeJob, load_job
from anon_spark.errors import ConfigurationError
from anon_spark.io.hierarchies import load_hierarchy
from anon_spark.model.hierarchy import Hierarchy, Rule


def show(options: argparse.Namespace) -> int:
    """Print each hierarchy as a tree with what a person should know of it; save it if asked to."""
    for name, spec in _specs(options).items():
        found = load_hierarchy(spec)
        if not isinstance(found, Hierarchy):
            found = _completed(name, found, options.values)
        print(f"{name}: {found.leaf_count:,} values, {found.height} levels above them, labels per level: "
              f"{', '.join(str(found.cardinality(level)) for level in range(found.height + 1))}")
        for low, high, labels in found.ambiguous_labels():
            print(f"  look at: {labels} labels mean different values on levels {low} and {high}")
        print(found.tree(options.lines))
        if options.save is not None:
            _save(found, Path(options.save))
    return 0


def _specs(options: argparse.Namespace) -> dict[str, HierarchySpec]:
    source = str(options.source)
    if source.endswith((".yaml", ".yml")):
        job = load_job(source)
        assert isinstance(job, LatticeJob)
        columns = dict(job.columns.quasi_identifiers)
        if options.column is not None and options.column not in columns:
            raise ConfigurationError(f"--column: {options.column} is not a quasi-identifier of the job.")
        return {name: spec for name, spec in columns.items() if options.column in (None, name)}
    if source.lstrip().startswith("{"):
        given = yaml.safe_load(source)
    else:
        given = {"edges" if options.edges else "levels": source, "header": options.header}
        given |= {"sep": options.sep} if options.sep is not None else {}
    try:
        return {Path(source).stem if "{" not in source else "hierarchy": HierarchySpec.model_validate(given)}
    except ValidationError as error:
        said = "; ".join(str(fault["msg"]) for fault in error.errors())
        raise ConfigurationError(f"{source}: {said}. Write it as in columns.quasi_identifiers of a job file.") from None


def _completed(name: str, rule: Rule, values: str | None) -> Hierarchy:
    if values is None:
        raise ConfigurationError(f"{name}: this rule is completed by the values of a column. Give them with --values FILE.")
    return rule.build(Path(values).read_text(encoding="utf-8").split("\n"))


def _save(found: Hierarchy, path: Path) -> None:
    if path.suffix == ".json":
        found.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";").writerows(found.rows())
    print(f"saved: {path}")


if __name__ == "__main__":
    from jobs.cli import main

    sys.exit(main(["hierarchy", *sys.argv[1:]]))
