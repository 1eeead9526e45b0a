"""Release hygiene: only the columns that were asked for, and an order that says nothing about the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from anon_spark.auditing.reading.values import private, quoted, require_columns, with_nulls
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import KEY, is_reserved
from anon_spark.engine import crossed
from anon_spark.errors import ConfigurationError
from anon_spark.pending import Pending

_FILE, _START, _ORDER = private("file"), private("start"), private("order")
_FIRST, _LAST, _ROWS, _FALLS = private("first"), private("last"), private("rows"), private("falls")
_CHUNK = f"{_FILE} long, {_START} long, {_FIRST} long, {_LAST} long, {_ROWS} long, {_FALLS} long"


def verify_columns(
    release: DataFrame, allowed: Sequence[str], forbidden: Sequence[str] = (), quasi_identifiers: Sequence[str] = ()
) -> Verdict:
    """Whether a release has exactly the allowed columns, in that order, without metadata, and each quasi-identifier as a text.

    forbidden: identifiers and the person column, refused also when they are listed as allowed or spelled in other case.
    Guarantee: passed iff columns and order are `allowed`, none is forbidden or a reserved name (row ids, class ids,
    links, order values), none appears twice, and none has metadata, on itself or on a field inside it: a comment or a
    list of values says of the source what the release does not. Cost: none, reads the schema. violations and checked
    count columns.
    """
    columns = release.columns
    banned = {name.casefold() for name in forbidden}
    faults = {
        "not asked for": [name for name in columns if name not in allowed],
        "missing": [name for name in allowed if name not in columns],
        "identifiers": [name for name in columns if name.casefold() in banned],
        "reserved for private use": [name for name in columns if is_reserved(name.casefold())],
        "described by metadata": columns_with_metadata(release),
        "there twice": sorted({name for name in columns if columns.count(name) > 1}),
        "quasi-identifiers that are not texts": [
            name
            for name in quasi_identifiers
            if name in columns and not isinstance(release.schema[name].dataType, StringType)
        ],
    }
    parts = [f"{len(names)} columns are {what}: {', '.join(names)}." for what, names in faults.items() if names]
    if not parts and columns != list(allowed):
        parts.append("the columns are not in the order that was asked for.")
    violating = {name for names in faults.values() for name in names}
    return Verdict(
        kind=Kind.COLUMNS,
        name="columns",
        passed=not parts,
        violations=len(violating) or len(parts),
        checked=len(columns),
        detail=" ".join(parts) or f"exactly the {len(columns)} columns that were asked for.",
        facts={what: len(names) for what, names in faults.items()},
    )


def verify_metadata(release: DataFrame, comments: Mapping[str, str] | None = None) -> Verdict:
    """Whether no column of a release has metadata, or just the comment that a run writes on it; for the published version.

    comments: by column; they speak of names and settings of the job. Guarantee: as in `verify_columns`, apart from these. Cost:
    none, reads the schema. violations and checked count columns.
    """
    ours = {name: {"comment": text} for name, text in (comments or {}).items()}
    named = [
        field.name
        for field in release.schema.fields
        if _described(field.dataType) or (field.metadata and field.metadata != ours.get(field.name))
    ]
    fault = f"{len(named)} columns were published with metadata of the source: {', '.join(named)}. Withdraw that version."
    detail = fault if named else "no column was published with a comment, a list of values or other metadata of the source."
    return Verdict("metadata", not named, len(named), len(release.columns), detail, kind=Kind.METADATA)


def columns_with_metadata(frame: DataFrame) -> list[str]:
    """Columns that carry metadata, or hold a field that does, in structs, arrays and maps; never what it says."""
    return [field.name for field in frame.schema.fields if field.metadata or _described(field.dataType)]


def _described(kind: DataType) -> bool:
    """Whether a field inside a type has metadata."""
    if isinstance(kind, StructType):
        return any(field.metadata or _described(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _described(kind.elementType)
    return isinstance(kind, MapType) and (_described(kind.keyType) or _described(kind.valueType))


def verify_order(release: DataFrame, key: DataFrame, columns: Sequence[str]) -> Verdict:
    """Whether the rows of every file ascend in a keyed hash of their published content, so that order tells nothing.

    release: read back from its files; key: one row with the column `columns.KEY`; columns: the published columns in
    their published order.
    Guarantee: passed iff there are rows and no row of a file has a smaller order value than the one before it; a file that
    Spark reads in several chunks is checked inside and between chunks. A table in source order, or grouped by class,
    fails (but for the chance that its few rows happen to ascend). violations counts descents, checked counts rows.
    Cost: one job, one scan, no shuffle (three integers per row go through Arrow); a row per file or part of it, as Spark reads
    it, reaches the driver.
    """
    return order_check(release, key, columns).get()


def order_check(release: DataFrame, key: DataFrame, columns: Sequence[str]) -> Pending[Verdict]:
    """As `verify_order`, what it needs of every file not collected yet."""
    require_columns(release, columns, "release")
    require_columns(key, [KEY], "key frame")
    try:
        read = release.select(
            *(F.col(quoted(name)) for name in columns),
            F.xxhash64(F.col("_metadata.file_path")).alias(_FILE),
            F.col("_metadata.file_block_start").alias(_START),
        )
        names = read.columns
    except AnalysisException:
        raise ConfigurationError("The row order can only be checked on a release that was read back from its files.") from None
    content = with_nulls([F.col(quoted(name)) for name in names[:-2]])
    order = F.xxhash64(F.col(KEY), *content).alias(_ORDER)
    chunks = crossed(read, key.select(KEY)).select(_FILE, _START, order).mapInArrow(_chunks, _CHUNK)
    return Pending.of(chunks, _order_verdict)


def _order_verdict(chunks: Sequence[Row]) -> Verdict:
    """The verdict on the chunks of all files: descents inside them, and between those of one file."""
    found = sorted((row[_FILE], row[_START], row[_FIRST], row[_LAST]) for row in chunks)
    between = sum(
        file == same_file and last > first
        for (file, _, _, last), (same_file, _, first, _) in pairwise(found)
    )
    rows = sum(row[_ROWS] for row in chunks)
    falls = between + sum(row[_FALLS] for row in chunks)
    files = len({row[_FILE] for row in chunks})
    if not rows:
        detail = "the release is empty, there is nothing to publish."
    elif falls:
        detail = f"{falls} of {rows} rows stand before a row of their file that the keyed order puts first."
    else:
        detail = f"the {rows} rows ascend in the keyed order in each of {files} files."
    return Verdict(
        kind=Kind.ORDER,
        name="row order",
        passed=rows > 0 and falls == 0,
        violations=falls,
        checked=rows,
        detail=detail,
        facts={"rows": rows, "files": files, "chunks": len(chunks)},
    )


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row per run of rows of one file chunk: first and last order value, rows, and descents inside."""
    done: list[list[int]] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        file, start, order = (np.asarray(batch.column(at).to_numpy(zero_copy_only=False)) for at in range(3))
        changes = np.flatnonzero((file[1:] != file[:-1]) | (start[1:] != start[:-1])) + 1
        for low, high in zip([0, *changes.tolist()], [*changes.tolist(), len(file)], strict=True):
            values = order[low:high]
            falls = int(np.count_nonzero(values[1:] < values[:-1]))
            run = [int(file[low]), int(start[low]), int(values[0]), int(values[-1]), high - low, falls]
            if done and done[-1][:2] == run[:2]:
                last = done[-1]
                done[-1] = [*last[:3], run[3], last[4] + run[4], last[5] + falls + int(last[3] > run[2])]
            else:
                done.append(run)
    names = [_FILE, _START, _FIRST, _LAST, _ROWS, _FALLS]
    columns = zip(*done, strict=True) if done else [()] * len(names)
    yield pa.RecordBatch.from_arrays([pa.array(list(column), pa.int64()) for column in columns], names=names)
