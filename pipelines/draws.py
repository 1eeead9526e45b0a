"""One draw per table: a family that draws at random does not draw twice for one version of its input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from anon_spark.errors import ConfigurationError
from anon_spark.io.publication import MARK
from anon_spark.io.tables import history
from pipelines.families import RANDOMIZED
from pipelines.preparation import Preparation

LOOK_BACK = 1_000  # commits of the output in which an earlier draw is looked for


def second_draw(prepared: Preparation, for_release: bool, redraw: bool) -> list[str]:
    """What to say of a draw that is not the first for its input and output; none where it is the first.

    Guarantee: without `redraw` it is refused with a ConfigurationError, before a row is read. An input without versions
    cannot be told from what it was, so every draw after the first is a second one. Releases made with a test key are not
    handed out and count among themselves only. As far as the history of the output reaches. Cost: metadata only.
    """
    if prepared.job.family not in RANDOMIZED:
        return []
    drawn = sum(_same(said, prepared, for_release) for said in _releases(prepared))
    if not drawn:
        return []
    version = prepared.source.version
    what = "the input, which has no versions," if version is None else f"input version {version}"
    told = f"{drawn} releases of {what} were drawn before. They can be intersected with a new one, which tells more than each."
    if not redraw:
        raise ConfigurationError(f"output.table: {told} Keep the one that stands, or draw again with --redraw.")
    return [told]


def _same(said: Mapping[str, Any], prepared: Preparation, for_release: bool) -> bool:
    source = prepared.source
    origin = "input_table" if source.table_id is None else "input_id"
    return (
        said.get("family") in RANDOMIZED
        and said.get(origin) == (source.table if source.table_id is None else source.table_id)
        and said.get("input_version") == source.version
        and said.get("for_release") == for_release
    )


def _releases(prepared: Preparation) -> Iterator[Mapping[str, Any]]:
    """What the commits of the output say of the runs that made them, newest first."""
    for commit in history(prepared.spark, prepared.job.output.table, LOOK_BACK):
        try:
            said = json.loads(commit.get("userMetadata") or "")
        except json.JSONDecodeError:
            continue
        if isinstance(said, dict) and isinstance(said.get(MARK), dict):
            yield said[MARK]
