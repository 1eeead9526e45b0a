"""The reference of job files: `python -m jobs.reference` writes docs/job-file.md from the specifications themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from anon_spark.config import HierarchySpec
from anon_spark.config.keys import ANY, Key, keys_of
from anon_spark.families.registry import NAMES, jobs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "job-file.md"
HIERARCHIES = (f"columns.quasi_identifiers.{ANY}", f"columns.tree.{ANY}", f"privacy.sensitive.{ANY}.t.distance")
TOP = f"""\
# The job file

<!-- written by `python -m jobs.reference` from the specifications in the code; a test keeps it current -->

A job file is YAML. It names a table, the roles of its columns, a guarantee and the places that a run writes.
`anon-spark plan JOB` checks it and counts what a run would meet. [The guide](guide.md) explains how to write one.
[conf/](../conf) has a commented job file for each family.

- Relative paths are relative to the job file. URIs (`hdfs://…`, `file:/…`) stay as they are.
- A key without a value means its default. An unknown key is an error that names its path and the nearest known key.
- `{ANY}` stands for the name of a column (of a node type in `columns.tree`, of an array in `input.nest`).
- `--set KEY=VALUE` on the command line wins over the file: `--set privacy.k=25`.
- A word in brackets, `relational (or rum)`, is the paper's name of the same option. Both mean the same job.
"""


def reference() -> str:
    """The page: keys that all families share, then those of each family."""
    by_family = {name: {key.path: key for key in keys_of(jobs()[name])} for name in NAMES}
    first = by_family[NAMES[0]]
    shared = [key for path, key in first.items() if all(keys.get(path) == key for keys in by_family.values())]
    parts = [TOP, "## All families", *_table(shared)]
    parts += ["## A hierarchy", "", "Of a column or a node type: exactly one of `levels`, `edges`, `intervals`, `mask`, `date`."]
    parts += _table(keys_of(HierarchySpec))
    for name, keys in by_family.items():
        parts += [f"## Family `{name}`", "", f"See [families/{name}.md](families/{name}.md)."]
        parts += _table(key for key in keys.values() if key not in shared and not _of_a_hierarchy(key))
    return "\n".join(parts)


def _of_a_hierarchy(key: Key) -> bool:
    """Whether the key is one of a hierarchy, which are listed once."""
    return any(key == replace(of, path=f"{section}.{of.path}") for of in keys_of(HierarchySpec) for section in HIERARCHIES)


def _table(keys: Iterable[Key]) -> list[str]:
    rows = [f"| `{key.path}` | {_cell(key.kind)} | {_cell(key.default)} | {_cell(key.doc)} |" for key in keys]
    return ["", "| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
