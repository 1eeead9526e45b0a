"""Digests of a table's rows, which do not depend on their order or on how they are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import hashable, require_columns

_SALTS = (1, 2)  # of two 64-bit hashes, whose sums are compared


def content_of(frame: DataFrame, columns: Sequence[str]) -> str:
    """A digest of the rows of some columns.

    Guarantee: equal for the same multiset of rows (names, types and nulls included) in any order, files and partitions;
    different for others but for a chance of about 2^-128 by accident. It is no secret: whoever holds it can check a guess about
    the whole table, so it must not be published for a source. Cost: one job, one scan; one row reaches the driver.
    """
    return contents_of(frame, columns)[0]


def contents_of(frame: DataFrame, columns: Sequence[str], alone: Sequence[str] = ()) -> list[str]:
    """The digest of some columns together, as `content_of`, then one of each in `alone`, whatever its name. Cost: one job."""
    require_columns(frame, [*columns, *alone], "table")
    groups = [columns, *([name] for name in alone)]
    named = [_named(frame, name) for name in columns]
    sums = [total for group in groups for total in _sums(frame, group)]
    rows, *hash_sums = frame.agg(F.count(F.lit(1)), *sums).collect()[0]
    totals = [hash_sums[at : at + len(_SALTS)] for at in range(0, len(hash_sums), len(_SALTS))]
    heads: list[Any] = [named, *([_named(frame, name)[1]] for name in alone)]
    texts = (
        json.dumps([head, *(str(int(value)) for value in (rows, *group_sums))])
        for head, group_sums in zip(heads, totals, strict=True)
    )
    return [sha256(text.encode()).hexdigest() for text in texts]


def _named(frame: DataFrame, name: str) -> list[str]:
    return [name, frame.schema[name].dataType.simpleString()]


def _sums(frame: DataFrame, columns: Sequence[str]) -> list[Column]:
    """Sums of hashes over all rows: they do not depend on the order."""
    parts = [part for name in columns for part in hashable(frame, name)]
    return [F.coalesce(F.sum(F.xxhash64(F.lit(salt), *parts).cast("decimal(20,0)")), F.lit(0)) for salt in _SALTS]
