"""What each column is for: a suggestion with its reason, for a person to check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from anon_spark.suggestion import words
from anon_spark.suggestion.profile import ColumnProfile, TableProfile

Role = Literal["person", "identifier", "quasi_identifier", "sensitive", "keep", "left_out", "items", "nested"]
Confidence = Literal["high", "medium", "low"]

NEARLY_UNIQUE = 0.9  # share of rows whose value nobody else has, from which a column identifies
OFTEN_UNIQUE = 0.01  # above it a column is never published unchanged
SHOWS = 0.5  # share of values with an identifying form
FEW = 20  # values of a column whose name says nothing, up to which it is published at all
MOST_QUASI = 12  # quasi-identifiers; with more, hardly anything is left of each
ENOUGH_QUASI = 8  # up to which columns whose name says nothing are added
WORDY = 40  # characters of a value from which a column is free text


@dataclass(frozen=True)
class Suggested:
    """The suggested role of a column, why, and how sure that is."""

    column: ColumnProfile
    role: Role
    reason: str
    confidence: Confidence

    @property
    def name(self) -> str:
        return self.column.name


def roles(table: TableProfile) -> list[Suggested]:
    """A role for every column, in their order.

    Guarantee: a column that is unique in more than OFTEN_UNIQUE of the rows is not published unchanged. No column is kept: what
    is kept singles people out of their class, so a person must ask for it.
    """
    return _limited(_one_person([_role(column) for column in table.columns]))


def with_roles(suggested: Sequence[Suggested], wanted: Mapping[str, Role]) -> list[Suggested]:
    """The suggestions with the roles that a person asked for."""
    return [
        replace(entry, role=wanted[entry.name], reason="asked for", confidence="high") if entry.name in wanted else entry
        for entry in suggested
    ]


def _role(column: ColumnProfile) -> Suggested:
    def role(name: Role, reason: str, confidence: Confidence) -> Suggested:
        return Suggested(column, name, reason, confidence)

    leaf = column.leaf
    if not leaf.is_readable:
        return role("left_out", f"its type {leaf.kind.simpleString()} can be neither generalized nor compared", "high")
    if not column.filled:
        return role("left_out", "it holds nulls only", "high")
    if leaf.is_items:
        return role("items", "a list of values for each record", "high")
    if not leaf.is_column:
        return _inside(column)
    form = max(column.identifying, key=lambda what: column.identifying[what], default=None)
    if form is not None and column.share(column.identifying[form]) >= SHOWS:
        return role("identifier", f"{column.share(column.identifying[form]):.0%} of the values look like {form}", "high")
    if column.distinct == 1 and not column.nulls:
        return role("left_out", "it has one value in all rows, which tells nothing", "high")
    unique = column.unique_share
    by_name = _by_name(column.name)
    if by_name == "free_text" or (column.is_text and column.longest > WORDY and unique > OFTEN_UNIQUE):
        return role("left_out", "free text, which may name people and what is known of them", "high" if by_name else "medium")
    if by_name == "identifier":
        if words.names_a_person(column.name) and not column.is_day and column.distinct < column.filled and column.distinct > FEW:
            return role("person", "its name says that it tells persons apart, and some have several rows", "high")
        return role("identifier", "its name says that it identifies a person", "high")
    if by_name == "quasi_identifier":
        if unique >= NEARLY_UNIQUE and column.is_text and not column.is_number and not column.is_day:
            return role("identifier", f"{unique:.0%} of the rows have a value of their own", "high")
        return role("quasi_identifier", "its name says that others may know it of a person", "high")
    if by_name == "sensitive":
        if unique <= OFTEN_UNIQUE:
            return role("sensitive", "its name says that nobody should learn it of a person", "high")
        if column.is_number:
            reason = f"sensitive by its name, but {unique:.0%} of the rows have a value of their own: published as ranges"
            return role("quasi_identifier", reason, "medium")
        return role("left_out", f"sensitive by its name, but {unique:.0%} of the rows have a value of their own", "medium")
    return _by_form(column)


def _by_form(column: ColumnProfile) -> Suggested:
    """The role of a column whose name says nothing."""

    def role(name: Role, reason: str, confidence: Confidence) -> Suggested:
        return Suggested(column, name, reason, confidence)

    unique = column.unique_share
    if column.is_day or column.share(column.other_day) > SHOWS:
        return role("quasi_identifier", "a date, which others may know of a person", "medium")
    if unique >= NEARLY_UNIQUE:
        if column.is_number and not column.is_whole:
            return role("left_out", f"{unique:.0%} of the rows have a value of their own: it would single them out", "high")
        return role("identifier", f"{unique:.0%} of the rows have a value of their own", "high")
    if column.is_postal:
        return role("quasi_identifier", "digits of one length, as in a postal code", "low")
    if unique > OFTEN_UNIQUE:
        return role("left_out", f"{unique:.1%} of the rows have a value of their own: it would single them out", "medium")
    if column.distinct <= FEW:
        return role("quasi_identifier", f"{column.distinct} values; others may know which one a person has", "low")
    return role("left_out", "neither its name nor its values say what it is for", "low")


def _inside(column: ColumnProfile) -> Suggested:
    """The role of a field inside arrays or structs."""
    by_name = _by_name(column.leaf.path[-1])
    share = max((column.share(number) for number in column.identifying.values()), default=0.0)
    if by_name == "identifier" or share >= SHOWS or (column.is_text and column.unique_share >= NEARLY_UNIQUE):
        return Suggested(column, "left_out", "it identifies a record or a person", "high")
    if by_name == "free_text":
        return Suggested(column, "left_out", "free text, which may name people and what is known of them", "high")
    return Suggested(column, "nested", "a value inside a nested record", "medium")


def _by_name(name: str) -> Literal["identifier", "quasi_identifier", "sensitive", "free_text"] | None:
    if words.names(words.FREE_TEXT, name):
        return "free_text"
    if words.names(words.IDENTIFIER, name) and not words.names_other_thing(name):
        return "identifier"
    if words.names(words.SENSITIVE, name):
        return "sensitive"
    if words.names(words.QUASI, name):
        return "quasi_identifier"
    return None


def _one_person(suggested: Sequence[Suggested]) -> list[Suggested]:
    """One column tells persons apart; the others that would are identifiers."""
    persons = [entry for entry in suggested if entry.role == "person"]
    first = max(persons, key=lambda entry: entry.column.distinct, default=None)
    return [
        replace(entry, role="identifier")
        if entry.role == "person" and entry is not first else entry
        for entry in suggested
    ]  # fmt: skip


def _limited(suggested: Sequence[Suggested]) -> list[Suggested]:
    """At most MOST_QUASI quasi-identifiers; those of which we are least sure fill up to ENOUGH_QUASI. The others are left out."""
    order = {"high": 0, "medium": 1, "low": 2}
    places = [place for place, entry in enumerate(suggested) if entry.role == "quasi_identifier"]
    ranked = sorted(places, key=lambda place: (order[suggested[place].confidence], suggested[place].column.distinct, place))
    most = {place: ENOUGH_QUASI if suggested[place].confidence == "low" else MOST_QUASI for place in places}
    out = {place for rank, place in enumerate(ranked) if rank >= most[place]}
    return [
        replace(entry, role="left_out", reason=f"{most[place]} quasi-identifiers are enough; {entry.reason}", confidence="low")
        if place in out else entry
        for place, entry in enumerate(suggested)
    ]  # fmt: skip
