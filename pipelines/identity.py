"""What identifies a release: the job, and what its input holds, whatever the commit or the spelling of a path.

The digest of the input is kept in the run log, which is private: in the public history of the release it would let anybody
check a guess about a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anon_spark.audit.content import content_of
from anon_spark.errors import ConfigurationError
from anon_spark.io.publication import Published, releases
from anon_spark.io.run_log import logged_contents
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
        """The digest of the columns that the job reads. Cost: one scan of the input, once."""
        read = self.prepared.steps.read(self.prepared.source.frame)
        return content_of(read, read.columns)

    @cached_property
    def released(self) -> Sequence[Mapping[str, Any]]:
        """What the commits of the output say of the runs that published there, newest first."""
        if self.prepared.output.latest is None:
            return []
        return list(releases(self.prepared.spark, self.prepared.job.output.table, LOOK_BACK))

    @cached_property
    def logged(self) -> Mapping[str, str | None]:
        """Content by run id, of what was published to this output as far as the run log tells. Cost: one job, once."""
        runs = {str(said.get("run_id")) for said in self.released}
        return logged_contents(self.prepared.spark, self.prepared.job.output.runs, runs)

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
        source = self.prepared.source
        if source.version is not None and (said.get("input_id"), said.get("input_version")) == (source.table_id, source.version):
            return current
        known = self.logged.get(str(said.get("run_id")))
        return current if known is not None and known == self.content else None

    def second_draw(self, redraw: bool) -> list[str]:
        """What to say of a draw that is not the first of these rows for this output; nothing where it is the first.

        Guarantee: without `redraw` it is refused with a ConfigurationError, before anything is written. What was drawn is
        recognised by its rows; a release whose rows the run log does not know counts as one of these. Releases made with a
        test key are not handed out and count among themselves only. As far as the history of the output reaches.
        """
        if self.prepared.job.family not in RANDOMIZED:
            return []
        earlier = [
            said
            for said in self.released
            if said.get("family") in RANDOMIZED and said.get("for_release") == self.for_release
        ]
        drawn = sum(self._same(said) for said in earlier)
        unknown = sum(self._unknown(said) for said in earlier)
        if not drawn and not unknown:
            return []
        parts = [f"{drawn} releases of the same rows were drawn before."] if drawn else []
        parts += [f"The run log does not tell which rows {unknown} earlier releases were drawn of."] if unknown else []
        told = f"{' '.join(parts)} They can be intersected with a new one, which tells more than each."
        if not redraw:
            raise ConfigurationError(f"output.table: {told} Keep the current one, or draw again with --redraw.")
        return [told]

    def _same(self, said: Mapping[str, Any]) -> bool:
        source = self.prepared.source
        if source.version is not None and (said.get("input_id"), said.get("input_version")) == (source.table_id, source.version):
            return True
        known = self.logged.get(str(said.get("run_id")))
        return known is not None and known == self.content

    def _unknown(self, said: Mapping[str, Any]) -> bool:
        return not self._same(said) and self.logged.get(str(said.get("run_id"))) is None
