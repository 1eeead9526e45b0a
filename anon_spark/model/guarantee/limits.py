"""Limits that several guarantees have, in plain words."""

from __future__ import annotations

SEVERAL_RELEASES = "Several releases of the same people: each may keep the guarantee, their intersection need not."
PRESENCE = "Presence: whether a person is in the table at all."
