"""Report items of tables with quasi-identifiers: class sizes and what an attacker gains."""

from __future__ import annotations

from collections.abc import Sequence

from anon_spark.model.estimate import EXACT_RULE
from anon_spark.model.facts import LookUpRisk, SizeRange
from anon_spark.report.formats import show, wording
from anon_spark.report.items import Item, Picture, Table, Text
from anon_spark.report.plots import class_size_plot, range_name


def refuse_small_classes(required_k: int, class_sizes: Sequence[SizeRange]) -> None:
    """Refuse to show a class below k, even as a number."""
    small = sum(size_range.least < required_k for size_range in class_sizes)
    if small:
        raise ValueError(f"class_sizes: {small} ranges start below k = {required_k}. Count published classes only.")


def class_items(class_sizes: Sequence[SizeRange], required_k: int) -> list[Item]:
    """Text, picture and table of the sizes of published classes."""
    classes = sum(size_range.classes for size_range in class_sizes)
    rows = [
        (range_name(size_range.least, size_range.most), size_range.classes, size_range.rows)
        for size_range in class_sizes
    ]
    sizes = "; ".join(f"{name}: {show(classes)} classes, {show(inside)} rows" for name, classes, inside in rows)
    words = (
        f"A class is the set of published rows that look alike in every quasi-identifier. None of the {show(classes)} "
        f"classes is smaller than {required_k:,}."
    )
    return [
        Text("", [words]),
        Picture("Classes and rows by size", class_size_plot(class_sizes), f"Bars by size of the class. {sizes}."),
        Table("", ("size of the class", "classes", "rows in them"), rows),
    ]


def risk_items(risk: LookUpRisk) -> list[Item]:
    """Tables of what an attacker gains who knows the quasi-identifiers."""
    words = "Numbers for somebody who knows every quasi-identifier of a person and looks that person up in the release."
    tables = [
        Table(wording(name), ("measure", "value"), [(wording(measure), value) for measure, value in numbers.items()])
        for name, numbers in risk.numbers().items()
    ]
    return [Text("", [words, EXACT_RULE]), *tables]
