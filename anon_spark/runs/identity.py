"""The identity of a release: its job and the content of its input, whatever the commit or the spelling of a path.

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

from anon_spark.auditing.release.content import contents_to_be
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import drawing
from anon_spark.io.publication import Published, releases
from anon_spark.io.run_log import Logged, logged_runs
from anon_spark.io.tables import read_version
from anon_spark.pending import Pending
from anon_spark.runs.preparation import Preparation

LOOK_BACK = 1_000  # commits of the output in which an earlier draw is looked for


@dataclass(frozen=True)
class Identity:
    """The release that a run is about to make, compared with earlier ones. Digests are made when they are needed."""

    prepared: Preparation
    for_release: bool

    @cached_property
    def content(self) -> str:
        """Digests of what the job reads, separated by spaces: of all columns, then of each list column alone.

        The latter for a family that draws: rows with the same item lists are the same, whatever else is read and whatever the
        column is called. Cost: one scan of the input, once.
        """
        return " ".join(self._contents(self.prepared.source.frame).get())

    @property
    def contents_to_be(self) -> Pending[list[str]]:
        """The digests of `content`, not collected yet unless that was asked for."""
        asked = "content" in vars(self)
        return Pending.known(self.content.split()) if asked else self._contents(self.prepared.source.frame)

    def _contents(self, frame: DataFrame) -> Pending[list[str]]:
        read = self.prepared.steps.read(frame)
        lists = [field.name for field in read.schema.fields if isinstance(field.dataType, ArrayType)]
        return contents_to_be(read, read.columns, lists if self.prepared.job.family in drawing() else ())

    @cached_property
    def released(self) -> Sequence[Mapping[str, Any]]:
        """The metadata of the runs that published to this output, newest first."""
        if self.prepared.output.latest is None:
            return []
        return list(releases(self.prepared.spark, self.prepared.job.output.table, LOOK_BACK))

    @cached_property
    def logged(self) -> Mapping[str, Logged]:
        """The log entries of the runs that published to this output, by run id. Cost: one job, once."""
        runs = {str(metadata.get("run_id")) for metadata in self.released}
        return logged_runs(self.prepared.spark, self.prepared.job.output.runs, runs)

    @property
    def already_published(self) -> Published | None:
        """The current release, if it came from the same job and the same rows; a test key makes another release.

        The same version of the same table needs no look at the rows.
        """
        current = self.prepared.output.release
        if current is None:
            return None
        metadata = current.metadata
        if (metadata.get("config_hash"), metadata.get("for_release")) != (self.prepared.config_hash, self.for_release):
            return None
        if self._read_this_version(metadata):
            return current
        known = self._logged_content(metadata)
        return current if known is not None and known.split()[0] == self.content.split()[0] else None

    def second_draw(self, redraw: bool) -> list[str]:
        """A warning where these rows were drawn before for this output; nothing for a first draw.

        Guarantee: without `redraw` a second draw is refused with a ConfigurationError, before anything is written. Rows are
        recognised by their content, whatever other columns are read with them. A release whose rows are unknown (not in the
        run log, and its version unreadable) counts as drawn of these. Releases with a test key are compared with each other
        only. Limited to the history of the output.
        """
        if self.prepared.job.family not in drawing():
            return []
        earlier = [
            metadata
            for metadata in self.released
            if metadata.get("family") in drawing() and metadata.get("for_release") == self.for_release
        ]
        answers = [self._drew_these(metadata) for metadata in earlier]
        drawn, unknown = answers.count(True), answers.count(None)
        if not drawn and not unknown:
            return []
        parts = [f"{drawn} releases of the same rows were drawn before."] if drawn else []
        parts += [f"The run log does not tell which rows {unknown} earlier releases were drawn of."] if unknown else []
        message = f"{' '.join(parts)} They can be intersected with a new one, which tells more than each."
        if not redraw:
            raise ConfigurationError(f"output.table: {message} Keep the current one, or draw again with --redraw.")
        return [message]

    def _read_this_version(self, metadata: Mapping[str, Any]) -> bool:
        source = self.prepared.source
        return source.version is not None and (metadata.get("input_id"), metadata.get("input_version")) == (
            source.table_id,
            source.version,
        )

    def _logged_content(self, metadata: Mapping[str, Any]) -> str | None:
        known = self.logged.get(str(metadata.get("run_id")))
        return known.content if known is not None else None

    def _drew_these(self, metadata: Mapping[str, Any]) -> bool | None:
        """Whether a release was drawn of these rows; None if unknown. Cost: a scan where the log has no digest."""
        if self._read_this_version(metadata):
            return True
        known = self._logged_content(metadata) or self._content_of_version(metadata)
        return None if known is None else bool(set(known.split()) & set(self.content.split()))

    def _content_of_version(self, metadata: Mapping[str, Any]) -> str | None:
        """The digests of another version of the input; None where that was another table, or is no longer readable."""
        source, version = self.prepared.source, metadata.get("input_version")
        if source.table_id is None or metadata.get("input_id") != source.table_id or not isinstance(version, int):
            return None
        try:
            frame = read_version(self.prepared.spark, source.table, version, self.prepared.job.input.options)
            return " ".join(self._contents(frame).get())
        except Exception:  # vacuumed, or other columns than now
            return None
