"""What identifies a release: the job, and what its input holds, whatever the commit or the spelling of a path.

The digest of the input is kept in the run log, which is private: in the public history of the release it would let anybody
check a guess about a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType

from anon_spark.audit.content import contents_of
from anon_spark.errors import ConfigurationError
from anon_spark.io.publication import Published, releases
from anon_spark.io.run_log import Logged, logged_runs
from anon_spark.io.tables import read_version
from pipelines.families import RANDOMIZED
from pipelines.preparation import Preparation

LOOK_BACK = 1_000  # commits of the output in which an earlier draw is looked for


@dataclass(frozen=True)
class Identity:
    """What a run is about to release, compared with what was released before. Digests are made when they are asked for."""

    prepared: Preparation
    for_release: bool

    @cached_property
    def content(self) -> str:
        """Digests of what the job reads, with spaces between: of all columns, then of each column of lists by itself.

        Of a family that draws, a list of items is what is drawn: its rows are the same rows whatever else is read, and whatever
        the column is called. Cost: one scan of the input, once.
        """
        return self._content(self.prepared.source.frame)

    def _content(self, frame: DataFrame) -> str:
        read = self.prepared.steps.read(frame)
        lists = [field.name for field in read.schema.fields if isinstance(field.dataType, ArrayType)]
        return " ".join(contents_of(read, read.columns, lists if self.prepared.job.family in RANDOMIZED else ()))

    @cached_property
    def released(self) -> Sequence[Mapping[str, Any]]:
        """What the commits of the output say of the runs that published there, newest first."""
        if self.prepared.output.latest is None:
            return []
        return list(releases(self.prepared.spark, self.prepared.job.output.table, LOOK_BACK))

    @cached_property
    def logged(self) -> Mapping[str, Logged]:
        """What the run log tells of the runs that published to this output, by run id. Cost: one job, once."""
        runs = {str(said.get("run_id")) for said in self.released}
        return logged_runs(self.prepared.spark, self.prepared.job.output.runs, runs)

    @property
    def already_published(self) -> Published | None:
        """The current release, if it came from the same job and the same rows; a test key makes another release.

        The same version of the same table needs no look at the rows.
        """
        current = self.prepared.output.release
        if current is None:
            return None
        said = current.metadata
        if (said.get("config_hash"), said.get("for_release")) != (self.prepared.config_hash, self.for_release):
            return None
        if self._read_this_version(said):
            return current
        known = self._logged_content(said)
        return current if known is not None and known.split()[0] == self.content.split()[0] else None

    def second_draw(self, redraw: bool) -> list[str]:
        """What to say of a draw that is not the first of these rows for this output; nothing where it is the first.

        Guarantee: without `redraw` it is refused with a ConfigurationError, before anything is written. What was drawn is
        recognised by its rows, whatever other columns are read with them; a release whose rows neither the run log nor the
        version that it read tells counts as one of these. Releases made with a test key are not handed out and count among
        themselves only. As far as the history of the output reaches.
        """
        if self.prepared.job.family not in RANDOMIZED:
            return []
        earlier = [
            said
            for said in self.released
            if said.get("family") in RANDOMIZED and said.get("for_release") == self.for_release
        ]
        answers = [self._drew_these(said) for said in earlier]
        drawn, unknown = answers.count(True), answers.count(None)
        if not drawn and not unknown:
            return []
        parts = [f"{drawn} releases of the same rows were drawn before."] if drawn else []
        parts += [f"The run log does not tell which rows {unknown} earlier releases were drawn of."] if unknown else []
        told = f"{' '.join(parts)} They can be intersected with a new one, which tells more than each."
        if not redraw:
            raise ConfigurationError(f"output.table: {told} Keep the current one, or draw again with --redraw.")
        return [told]

    def _read_this_version(self, said: Mapping[str, Any]) -> bool:
        source = self.prepared.source
        return source.version is not None and (said.get("input_id"), said.get("input_version")) == (
            source.table_id,
            source.version,
        )

    def _logged_content(self, said: Mapping[str, Any]) -> str | None:
        known = self.logged.get(str(said.get("run_id")))
        return known.content if known is not None else None

    def _drew_these(self, said: Mapping[str, Any]) -> bool | None:
        """Whether a release was drawn of these rows; None where nobody can tell. Cost: a scan where the log does not tell."""
        if self._read_this_version(said):
            return True
        known = self._logged_content(said) or self._content_of_version(said)
        return None if known is None else bool(set(known.split()) & set(self.content.split()))

    def _content_of_version(self, said: Mapping[str, Any]) -> str | None:
        """What this job would read of another version of its input; None where that is not the table, or no longer readable."""
        source, version = self.prepared.source, said.get("input_version")
        if source.table_id is None or said.get("input_id") != source.table_id or not isinstance(version, int):
            return None
        try:
            return self._content(read_version(self.prepared.spark, source.table, version, self.prepared.job.input.options))
        except Exception:  # vacuumed, or other columns than now
            return None
