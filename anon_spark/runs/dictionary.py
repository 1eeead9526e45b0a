"""The data dictionary of a release: what each column and each label stands for, and how many rows have it.

It tells nothing that the release does not show: labels and their shares are counted in the release, bounds are read from the
hierarchy of the job. Values below a label are not listed, because a hierarchy may have been made from the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, quoted
from anon_spark.engine import small_frame
from anon_spark.families.contract import Pipeline
from anon_spark.io.dictionary import write_dictionary
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending
from anon_spark.primitives.bounds import bounds_of

MOST_LABELS = 20_000  # of all columns; a dictionary of more is left without labels
SUFFIX = ".dictionary.json"  # behind the name of the report, where no table is named
PLACE, LABEL, ROWS = PREFIX + "place", PREFIX + "label", PREFIX + "rows"

Counts = Mapping[str, Mapping[str | None, int]]  # rows by label, by column


@dataclass(frozen=True)
class Entry:
    """A column (label is null), or one of its labels.

    level: of the label, 0 is the value itself; lowest, highest: its bounds, as text; values: how many values of the hierarchy it
    stands for; share: of the rows of the release. Null where it is not known.
    """

    column: str
    label: str | None
    description: str
    level: int | None = None
    lowest: str | None = None
    highest: str | None = None
    values: int | None = None
    share: float | None = None


_FIELDS: list[tuple[str, Any]] = [
    ("column", pa.string()), ("label", pa.string()), ("description", pa.string()), ("level", pa.int32()),
    ("lowest", pa.string()), ("highest", pa.string()), ("values", pa.int64()), ("share", pa.float64()),
]  # fmt: skip
SCHEMA = pa.schema(_FIELDS)


def label_counts(steps: Pipeline[Any, Any, Any], release: DataFrame) -> Pending[Counts]:
    """The rows of every label of the columns with hierarchies; empty where there are too many. Cost: one shuffle of labels."""
    names = [name for name in steps.hierarchies if name in release.columns and _is_text(release, name)]
    if not names:
        return Pending.known({})
    cells = [F.struct(F.lit(place).alias(PLACE), F.col(quoted(name)).alias(LABEL)) for place, name in enumerate(names)]
    each = release.select(F.explode(F.array(*cells)).alias(LABEL)).select(f"{LABEL}.*")
    counted = each.groupBy(PLACE, LABEL).agg(F.count(F.lit(1)).alias(ROWS)).limit(MOST_LABELS + 1)

    def counts(rows: list[Row]) -> Counts:
        if len(rows) > MOST_LABELS:
            return {}
        found: dict[str, dict[str | None, int]] = {name: {} for name in names}
        for row in rows:
            found[names[row[PLACE]]][row[LABEL]] = row[ROWS]
        return found

    return Pending.of(counted, counts)


def entries(steps: Pipeline[Any, Any, Any], columns: Sequence[str], counts: Counts) -> list[Entry]:
    """The dictionary: every published column, then the labels of each column that has some."""
    comments = steps.comments
    of_columns = [Entry(name, None, comments.get(name, "")) for name in columns]
    of_labels = (_of_labels(name, steps.hierarchies[name], labels) for name, labels in counts.items())
    return [*of_columns, *(entry for found in of_labels for entry in found)]


def write(steps: Pipeline[Any, Any, Any], source: DataFrame, rows: Sequence[Entry], metadata: Mapping[str, Any]) -> list[str]:
    """Write the dictionary where the job says: as a Delta table, else as JSON beside the report; returns what was written."""
    output = steps.job.output
    if output.dictionary is not None:
        table = pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA)
        write_dictionary(small_frame(source.sparkSession, table).coalesce(1), output.dictionary, metadata)
        return [output.dictionary]
    if output.report is not None:
        page = Path(output.report)
        file = page.with_name(page.stem + SUFFIX)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = {"run_id": metadata.get("run_id"), "description": steps.description, "entries": [asdict(row) for row in rows]}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return [str(file)]
    return []


def _of_labels(name: str, hierarchy: object, labels: Mapping[str | None, int]) -> list[Entry]:
    total = sum(labels.values())
    known = _known(hierarchy) if isinstance(hierarchy, Hierarchy) else {}
    found = []
    for label, rows in sorted(labels.items(), key=lambda entry: (known.get(entry[0], {}).get("level", 0), str(entry[0]))):
        text = "no value (null)" if label is None else "any value" if label == "*" else ""
        found.append(Entry(name, label, text, share=rows / total, **known.get(label, {})))
    return found


def _known(hierarchy: Hierarchy) -> dict[str | None, dict[str, Any]]:
    """Level, bounds and number of values of every label; of a label on several levels the lowest one."""
    ends = bounds_of(hierarchy) if hierarchy.kind != "text" else {}
    known: dict[str | None, dict[str, Any]] = {}
    for level in range(hierarchy.height + 1):
        for code, label in enumerate(hierarchy.labels[level]):
            if label is not None and label not in known:
                low, high = ends.get(label, (None, None))
                bounds = {"lowest": None if low is None else str(low), "highest": None if high is None else str(high)}
                known[label] = {"level": level, "values": int(hierarchy.leaves_below[level][code]), **bounds}
    return known


def _is_text(release: DataFrame, name: str) -> bool:
    return release.schema[name].dataType.typeName() == "string"
