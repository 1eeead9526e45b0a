"""Report items of published columns: distributions before and after, worked examples, detail lost, crowds; and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_spark.model.facts import CrowdRange, Distribution
from anon_spark.report.formats import listed, percent, show
from anon_spark.report.items import Bars, Item, Table, Text
from anon_spark.report.plots import range_name

MOST_BARS = 12
BEFORE, AFTER = "source", "release"
LOST, NEARLY_LOST = 0.9995, 0.8
MOST_NAMED = 8  # columns in a sentence


def distribution_items(distributions: Sequence[Distribution], k: int) -> list[Item]:
    """Of every column with several labels its bars, all on one scale; of all others a line; then the worked examples."""
    if not distributions:
        return []
    drawn = [one for one in distributions if len(one.labels) > 1 or (one.labels and one.wider)]
    scale = max((share for one in drawn for shares in _shares(one)[1] for share in shares), default=1.0)
    rounded = any(one.rounded_to > 1 for one in distributions)
    words = [
        "Every bar is the share of rows with a label, in the source and in the release. A label is named only if at least "
        f"{k:,} rows of the release have it, or a narrower one."
        + (f" Counts of the source are rounded to multiples of {k:,} where rows or labels were left out." if rounded else "")
    ]
    alike = [one.column for one in distributions if len(one.labels) == 1 and not one.wider]
    if alike:
        words.append(f"The same label in every row: {listed(alike)}.")
    unnamed = [one.column for one in distributions if not one.labels]
    if unnamed:
        words.append(f"Too many different values to show, each in fewer than {k:,} rows: {listed(unnamed)}.")
    examples = [(one.column, one.example[0], one.example[1]) for one in distributions if one.example is not None]
    items: list[Item] = [Text("", words), *(_bars(one, scale) for one in drawn)]
    if examples:
        note = "A frequent value of each column that is generalized, and a frequent label that is published for it."
        items.append(Table("For example", ("column", "value", "is published as"), examples, note))
    return items


def _shares(one: Distribution) -> tuple[list[str], tuple[list[float], list[float]]]:
    """Names and shares of the bars of a column: the most frequent labels in their order, and the rest."""
    frequent = sorted(one.labels, key=lambda count: -count.after)[:MOST_BARS]
    counts = [count for count in one.labels if count in frequent]
    names = ["(null)" if count.label is None else count.label or "(empty)" for count in counts]
    all_before, all_after = max(1, one.rows_before), max(1, one.rows_after)
    before, after = [count.before / all_before for count in counts], [count.after / all_after for count in counts]
    hidden = [count for count in one.labels if count not in frequent]
    rest = [*hidden, *([one.others] if one.others is not None else [])]
    sums = sum(count.before for count in rest), sum(count.after for count in rest)
    if any(sums):
        names.append("other labels")
        before.append(sums[0] / all_before)
        after.append(sums[1] / all_after)
    if one.wider:
        names.append("a wider label")
        before.append(0.0)
        after.append(one.wider / all_after)
    return names, ([min(1.0, share) for share in before], after)


def _bars(one: Distribution, scale: float) -> Bars:
    names, (before, after) = _shares(one)
    role = {"quasi-identifier": "quasi-identifier", "sensitive": "sensitive, unchanged", "kept": "kept, unchanged"}.get(one.role)
    title = one.column if role is None else f"{one.column} ({role})"
    unit = "share of rows, those of the release spread evenly over their ranges" if one.estimated else "share of rows"
    return Bars(title, names, {BEFORE: before, AFTER: after}, unit, as_share=True, most=scale)


def detail_items(losses: Mapping[str, float], what: str = "column", of: str = "rows") -> list[Item]:
    """Bars of the detail that each column lost."""
    unit = f"share of its detail that a {what} lost, mean of the published {of}; less is better"
    return [Bars("Detail lost", list(losses), {"lost": list(losses.values())}, unit, as_share=True, most=1.0)] if losses else []


def crowd_items(crowds: Sequence[CrowdRange], known: str, unit: str = "rows or persons", note: str = "") -> list[Item]:
    """Bars of the sizes of crowds, before and after. known: what those of a crowd have in common; unit: what is counted."""
    if not crowds:
        return []
    series = {BEFORE: [crowd.before for crowd in crowds], AFTER: [crowd.after for crowd in crowds]}
    names = ["1 (found)" if crowd.most == 1 else range_name(crowd.least, crowd.most) for crowd in crowds]
    counted = unit.split()[0]
    words = f"share of {counted} by size of their crowd: {unit} with the same {known}; larger crowds are better"
    return [Bars("Crowds before and after", names, series, words, note, as_share=True)]


def detail_words(losses: Mapping[str, float]) -> list[str]:
    """What is left of each column, in sentences."""
    kept = [name for name, loss in losses.items() if loss == 0]
    lost = [name for name, loss in losses.items() if loss >= LOST]
    nearly = {name: loss for name, loss in losses.items() if NEARLY_LOST < loss < LOST}
    partly = {name: loss for name, loss in losses.items() if 0 < loss <= NEARLY_LOST}
    sentences = []
    if kept:
        sentences.append(f"{_columns(kept)} {'is kept as it was' if len(kept) == 1 else 'are kept as they were'}.")
    if partly:
        shown = list(partly.items())[:MOST_NAMED]
        first = f"Column {shown[0][0]} lost {percent(shown[0][1])} of its detail"
        others = [f"{name} {percent(loss)}" for name, loss in shown[1:]]
        more = [f"{len(partly) - MOST_NAMED} others less or more"] if len(partly) > MOST_NAMED else []
        sentences.append(", ".join([first, *others, *more]) + ".")
    if nearly:
        sentences.append(f"{_columns([f'{name} ({percent(loss)})' for name, loss in nearly.items()])} "
                         f"{'is' if len(nearly) == 1 else 'are'} nearly lost.")  # fmt: skip
    if lost:
        sentences.append(f"{_columns(lost)} {'is' if len(lost) == 1 else 'are'} lost.")
    return sentences


def known_words(names: Sequence[str]) -> str:
    """Columns as an attacker may know them, in a sentence."""
    if len(names) > MOST_NAMED:
        return f"all {len(names)} quasi-identifiers ({', '.join(names[:MOST_NAMED])} …)"
    return listed(names)


def left_out_words(source: int, published: int) -> str:
    """How many rows are missing, in a sentence."""
    missing = source - published
    if missing <= 0:
        return "No row was left out."
    return f"{percent(missing / max(1, source))} of the rows were left out ({show(missing)} of {show(source)})."


def _columns(names: Sequence[str]) -> str:
    more = [f"{len(names) - MOST_NAMED} others"] if len(names) > MOST_NAMED else []
    return f"Column{'' if len(names) == 1 else 's'} {listed([*names[:MOST_NAMED], *more])}"
