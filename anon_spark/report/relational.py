"""Report items of tables with quasi-identifiers: class sizes and what an attacker gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_spark.model.estimate import EXACT_RULE
from anon_spark.model.facts import CrowdRange, LookUpRisk, SizeRange
from anon_spark.report.columns import crowd_items
from anon_spark.report.formats import NOTHING, percent, show, wording
from anon_spark.report.items import Bars, Item, Table, Text
from anon_spark.report.plots import range_name

MEASURE_HEAD = ("measure", "value", "unit", "better")
LOOK_UP = {  # of a look-up: what it says, unit, what is better
    "sampled_rows": ("rows that were looked up", "rows", ""),
    "expected_success_before": ("chance to pick the right row of the source", "mean chance, 0 to 1", "less"),
    "expected_success_after": ("chance to pick the right row of the release", "mean chance, 0 to 1", "less"),
    "worst_success_after": ("the same for the least protected row", "chance, 0 to 1", "less"),
    "promised_at_most": ("promised at most", "chance, 0 to 1", ""),
    "interval": ("95 % interval of the mean chance", "chance, 0 to 1", "less"),
    "standard_error": ("its standard error", "chance", "less"),
    "standard_errors_above_the_promise": ("distance from the promise", "standard errors; below 0: kept", "less"),
    "expected_success_if_the_class_is_known": ("chance if the class is known", "mean chance, 0 to 1", "less"),
    "worst_success_if_the_class_is_known": ("the same for the least protected row", "chance, 0 to 1", "less"),
}


def refuse_small_classes(required_k: int, class_sizes: Sequence[SizeRange]) -> None:
    """Refuse to show a class below k, even as a number."""
    small = sum(size_range.least < required_k for size_range in class_sizes)
    if small:
        raise ValueError(f"class_sizes: {small} ranges start below k = {required_k}. Count published classes only.")


def class_items(class_sizes: Sequence[SizeRange], required_k: int) -> list[Item]:
    """Text and bars of the sizes of published classes."""
    classes = sum(size_range.classes for size_range in class_sizes)
    names = [range_name(size_range.least, size_range.most) for size_range in class_sizes]
    words = (
        f"A class is the set of published rows that look alike in every quasi-identifier. None of the {show(classes)} "
        f"classes is smaller than {required_k:,}."
    )
    by_class = {"classes": [size_range.classes for size_range in class_sizes]}
    by_row = {"rows": [size_range.rows for size_range in class_sizes]}
    return [
        Text("", [words]),
        Bars("Classes by size", names, by_class, "classes, by rows or persons of the class"),
        Bars("Rows by size of their class", names, by_row, "rows, by rows or persons of the class"),
    ]


def risk_items(risk: LookUpRisk, crowds: Sequence[CrowdRange] = ()) -> list[Item]:
    """What an attacker gains who knows the quasi-identifiers: crowds and chances before and after."""
    attack = vars(risk.link_attack)
    words = "Numbers for somebody who knows every quasi-identifier of a person and looks that person up in the release."
    names = ["source, mean", "release, mean", "release, least protected row"]
    chances = [
        risk.link_attack.expected_success_before, risk.link_attack.expected_success_after, risk.link_attack.worst,
    ]  # fmt: skip
    interval = (risk.link_attack.interval_from, risk.link_attack.interval_to)
    promised = (risk.link_attack.promised_at_most, "promised at most")
    shared = risk.sensitive_value_shared_by_whole_class
    note = f"The thin line is the 95 % interval. {show(risk.link_attack.sampled_rows)} rows were looked up."
    return [
        Text("", [words, EXACT_RULE]),
        *crowd_items(crowds, "quasi-identifiers"),
        Bars(
            "Chance to pick the right row", names, {"chance": chances}, "chance from 0 to 100 %; less is better", note,
            as_share=True, most=1.0, limit=promised, intervals=[None, interval, None],
        ),
        *([] if crowds else _unique(risk)),
        *(
            [
                Bars(
                    "Rows in classes with one sensitive value", list(shared), {"rows": list(shared.values())},
                    "share of rows whose value is known without finding the row; less is better", as_share=True, most=1.0,
                )
            ]
            if shared
            else []
        ),
        Table("All numbers of the look-up attack", MEASURE_HEAD, _look_up_rows(attack), folded=True),
    ]  # fmt: skip


def _unique(risk: LookUpRisk) -> list[Item]:
    before, after = risk.unique_rows.before, risk.unique_rows.after
    shares = {"source": before, **({} if after is None else {"release": after})}
    unit = "share of rows that nobody else has; less is better"
    return [Bars("Unique rows", list(shares), {"rows": list(shares.values())}, unit, as_share=True, most=1.0)]


def _look_up_rows(attack: Mapping[str, float | None]) -> list[tuple[object, ...]]:
    interval = f"{percent(attack['interval_from'])} to {percent(attack['interval_to'])}"
    values = {**attack, "interval": interval}
    order = [*LOOK_UP, *(name for name in attack if name not in LOOK_UP and not name.startswith("interval_"))]
    rows: list[tuple[object, ...]] = []
    for name in order:
        if values.get(name) is not None:
            says, unit, better = LOOK_UP.get(name, (wording(name), NOTHING, ""))
            rows.append((says, values[name], unit, better or NOTHING))
    return rows
