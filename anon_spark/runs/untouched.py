"""The check that a published table is as its run left it."""

from __future__ import annotations

from anon_spark.auditing import Kind, Verdict
from anon_spark.io.publication import Published


def untouched(published: Published) -> Verdict:
    """Whether nobody changed the table since it was published; maintenance that keeps its rows is no change."""
    since, changes = published.latest - published.version, published.changes
    changed = f"{len(changes)} commits since version {published.version} are not ours: {', '.join(sorted(set(changes)))}."
    detail = changed if changes else f"version {published.version} is the release, nothing changed its rows since."
    return Verdict("publication", not changes, len(changes), since, detail, kind=Kind.PUBLICATION)
