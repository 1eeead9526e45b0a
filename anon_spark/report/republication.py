"""The report's part on a release that replaces another one: what both tell together."""

from __future__ import annotations

from anon_spark.model.republication import Republication
from anon_spark.report.formats import percent
from anon_spark.report.items import Section, Table, Text

PERSONS = "A person's class in a release are the published rows that fit its values."
GUESS = (
    "The job names no column of persons. Rows that are equal in everything the job reads are taken for the same person in both "
    "tables, which is a guess: somebody whose values changed counts as a newcomer."
)


def republication_sections(numbers: Republication, replaced: int) -> list[Section]:
    """The numbers of two releases together. replaced: the version of the older one."""
    k, people = numbers.k, "rows" if numbers.by_content else "people"
    few, fresh = percent(numbers.few_candidates_share), percent(numbers.few_newcomers_share)
    rows = [
        (f"{people} in both tables and in both releases", numbers.compared, None, None),
        (f"{people} in both tables that a release left out", numbers.hidden, None, None),
        ("fewest candidates of one of them", numbers.least_candidates, None, "more"),
        (f"with fewer than {k:,} candidates", numbers.few_candidates, few, "fewer"),
        *(
            (f"with exactly one value of {name} in both classes", count, percent(numbers.one_value_shares[name]), "fewer")
            for name, count in numbers.one_value.items()
        ),
        (f"newcomers: {people} in the new table only", numbers.newcomers, None, None),
        ("newcomers that the new release left out", numbers.hidden_newcomers, None, None),
        ("fewest newcomers in a class that has any", numbers.least_newcomers, None, "more"),
        (f"newcomers among fewer than {k:,} of their class", numbers.few_newcomers, fresh, "fewer"),
    ]
    words = [
        f"This release replaced version {replaced}, which whoever read it before still has. {PERSONS} Candidates of a person are "
        "the people who share both of its classes, itself included: somebody with both releases looks for it among them.",
        *([GUESS] if numbers.by_content else []),
    ]
    note = "Shares are of the people in both releases, those of newcomers of the newcomers in the release."
    return [Section("Two releases together", [Text("", words), Table("", ("what", "number", "share", "better"), rows, note)])]
