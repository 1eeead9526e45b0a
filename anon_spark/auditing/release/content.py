"""Digests of a table's rows, which do not depend on their order or on how they are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import hashable, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.pending import Pending, together

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
    return contents_to_be(frame, columns, alone).get()


def contents_to_be(frame: DataFrame, columns: Sequence[str], alone: Sequence[str] = ()) -> Pending[list[str]]:
    """As `contents_of`, the sums of hashes not collected yet."""
    require_columns(frame, [*columns, *alone], "table")
    groups = [columns, *([name] for name in alone)]
    named = [_named(frame, name) for name in columns]
    sums = [total for group in groups for total in _sums(frame, group)]
    heads: list[Any] = [named, *([_named(frame, name)[1]] for name in alone)]
    totals = frame.agg(F.count(F.lit(1)).alias("rows"), *(total.alias(f"sum_{at}") for at, total in enumerate(sums)))
    return Pending.of(totals, lambda rows: _digests(heads, rows[0]))


def copy_check(read: DataFrame, contents: Pending[list[str]] | None) -> Pending[tuple[list[Verdict], list[str]]]:
    """Whether a copy of the input, with which a release is compared, has the input's rows; and the input's digests.

    contents: the digests of the input, that of all columns first; None: there is no copy.
    Guarantee: passed iff the digests are the same, see `content_of`. Cost: as that.
    """
    if contents is None:
        return Pending.known(([], []))

    def compared(found: tuple[list[str], list[str]]) -> tuple[list[Verdict], list[str]]:
        same = found[0][0] == found[1][0]
        detail = "the rows that the release was compared with are the input's."
        if not same:
            detail = "the rows that the release was compared with are not those of the input as the run found it."
        return [Verdict("input", same, int(not same), 1, detail, kind=Kind.TRUTH)], found[1]

    return together(contents_to_be(read, read.columns), contents).then(compared)


def _digests(heads: Sequence[Any], totals: Row) -> list[str]:
    """One digest per head (names and types of its columns), of the rows and of its sums of hashes."""
    rows, *hash_sums = totals
    by_head = [hash_sums[at : at + len(_SALTS)] for at in range(0, len(hash_sums), len(_SALTS))]
    texts = (
        json.dumps([head, *(str(int(value)) for value in (rows, *sums))]) for head, sums in zip(heads, by_head, strict=True)
    )
    return [sha256(text.encode()).hexdigest() for text in texts]


def _named(frame: DataFrame, name: str) -> list[str]:
    return [name, frame.schema[name].dataType.simpleString()]


def _sums(frame: DataFrame, columns: Sequence[str]) -> list[Column]:
    """Sums of hashes over all rows: they do not depend on the order."""
    parts = [part for name in columns for part in hashable(frame, name)]
    return [F.coalesce(F.sum(F.xxhash64(F.lit(salt), *parts).cast("decimal(20,0)")), F.lit(0)) for salt in _SALTS]
