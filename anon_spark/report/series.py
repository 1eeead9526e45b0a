"""The part of a report about a series: who was published and who waits, increment by increment."""

from __future__ import annotations

from collections.abc import Sequence

from anon_spark.model.series import Passed, SeriesFacts
from anon_spark.report.formats import counted, show
from anon_spark.report.items import Bars, Item, Section, Table, Text


def series_section(facts: SeriesFacts, passed: Sequence[Passed]) -> Section:
    """passed: the increments so far, this one included."""
    waiting = all(one.waiting is not None for one in passed)
    series: dict[str, list[float]] = {"published": [float(one.published) for one in passed]}
    if waiting:
        series["waiting after it"] = [float(one.waiting or 0) for one in passed]
    items: list[Item] = [Text("", series_words(facts))]
    if passed:
        items.append(
            Bars(
                "People by increment",
                [f"increment {one.increment}" for one in passed],
                series,
                "people; published is better, those who wait come again",
                note="" if waiting else "How many people waited is not known of all increments: a row of the run log is missing.",
            )
        )
    if facts.waited and facts.waiting:
        rows = [(f"increment {one.increment}", one.persons) for one in reversed(facts.waited)]
        note = f"Of the {show(facts.waiting)} people who wait now, so many were in the input when that increment was made."
        items.append(Table("How long people wait", ("since", "people who wait (less is better)"), rows, note))
    return Section("The series", items)


def series_words(facts: SeriesFacts) -> list[str]:
    """Where everybody is, in plain sentences."""
    number = f"Increment {show(facts.increment)} of the series"
    if not facts.published:
        words = [f"{number} was not made. Waiting for it: {counted(facts.waiting, 'person')}."]
    else:
        wait = f"{show(facts.waiting)} wait for the next one" if facts.waiting else "nobody waits"
        words = [f"{number}: {counted(facts.published, 'person')} published now, {wait}."]
    earlier = f"Published before: {counted(facts.before, 'person')}."
    words.append(f"{earlier} Their {counted(facts.rows_of_published, 'row')} of the input are not published again.")
    return words
