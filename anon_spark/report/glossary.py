"""The glossary of a page: one line for every measure and word of the field that the page uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from anon_spark.report.formats import show
from anon_spark.report.items import Bars, Picture, Section, Table

# word → (how it is written on a page, what it means)
WORDS: dict[str, tuple[str, str]] = {
    "ARE": (r"ARE", "Average relative error of a count on the release. From 0; 1 is as wrong as no answer. Less is better."),
    "candidates": (r"candidates", "People with the same classes in two releases as a person, itself included. More is better."),
    "CAVG": (r"CAVG", "Average size of a class, divided by k. From 1. Less is better."),
    "class": (r"class(es)?", "All published rows that are equal in every quasi-identifier."),
    "CM": (r"CM", "Share of rows that differ from the majority of their class, or are suppressed. 0 to 1. Less is better."),
    "crowd": (r"crowds?", "The rows or persons among which somebody is hidden, because they look alike. Larger is better."),
    "cut": (r"cuts?", "Labels that cover every value of a hierarchy once. It says how far each value is generalized."),
    "detail lost": (
        r"[Dd]etail lost|lost [\d.]+ % of its detail|nearly lost",
        "Share of its domain that a published value covers, mean of the published rows. 0 %: as it was; 100 %: nothing is left.",
    ),
    "disassociated": (r"disassociated", "Two values that are published beside each other, although one was below the other."),
    "DM": (r"DM", "Discernibility: each row costs the size of its class. Less is better."),
    "ER": (r"ER", "Error rate: wrong items of a published row per item of its record. From 0. Less is better."),
    "front": (r"front", "All pairs of k and loss that no other way to generalize beats in both."),
    "GLM": (r"GLM", "General loss: mean share of its domain that a published value covers. 0 to 1. Less is better."),
    "IL": (r"IL", "Information loss: sum over the columns, mean over the published rows. From 0. Less is better."),
    "interval": (r"95 % interval", "The true rate lies in it in 95 of 100 simulations."),
    "k": (r"k", "The least number of rows, persons or records that share what an attacker may know. More protects better."),
    "l": (r"l", "How diverse the sensitive values must be. More protects better."),
    "loss": (r"loss", "How much detail the release lost. 0: nothing. Less is better."),
    "m": (r"m", "How many items or labels of a person an attacker may know. More protects better."),
    "n": (r"n", "How many relations between labels an attacker may know. More protects better."),
    "NCP": (r"NCP", "Share of its domain that a generalized value covers; 0 where it is as it was. 0 to 1. Less is better."),
    "newcomers": (r"newcomers", "People in the newer of two tables only. More of them in a class are better."),
    "QE": (r"QE", "Mean error of a count on the base items, as a share of all rows. 0 to 1. Less is better."),
    "quasi-identifier": (r"quasi-identifiers?", "A column that others may know of a person, such as age, sex or zip."),
    "RPD": (r"RPD", "Chance to guess a published path. 0 to 1. Less is better; compare releases of one schema only."),
    "RPD_a": (r"RPD_a", "A quick approximation of RPD, by which the search compares cuts. Less is better."),
    "standard error": (r"standard errors?", "How far a simulated rate moves by chance. Less is more certain."),
    "suppressed": (r"[Ss]uppressed", "Left out of the release, because the row could not be protected otherwise."),
    "tuple": (r"tuples?", "A combination of values of the quasi-identifiers, counted once however many rows have it."),
    "UL": (r"UL", "Utility loss of items: how many item sets a generalized item may stand for. 0 to 1. Less is better."),
    "unique": (r"[Uu]nique", "Nobody else in the table has the same values. Fewer such rows are better."),
}


def glossary_of(texts: Iterable[str]) -> list[tuple[str, str]]:
    """The words that these texts use, with their meaning, in alphabetical order."""
    page = "\n".join(texts)
    return [(word, means) for word, (written, means) in WORDS.items() if re.search(rf"(?<![\w-])(?:{written})(?![\w-])", page)]


def texts_of(sections: Sequence[Section]) -> Iterator[str]:
    """Everything that sections say in words."""
    for section in sections:
        yield section.title
        for item in section.items:
            yield item.title
            if isinstance(item, Table):
                yield from (*item.columns, item.note, *(show(cell) for row in item.rows for cell in row))
            elif isinstance(item, Bars):
                yield from (item.unit, item.note, *item.series)
            elif isinstance(item, Picture):
                yield item.alt
            else:
                yield from item.paragraphs
