"""Models of sensitive columns as the kernels take them, whether classes keep them exactly, and whether a table can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, exp, floor, log

import numpy as np
from numpy.typing import NDArray

from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.mst.kernels.counts import BOUNDED, CLOSE, ENTROPY, ORDERED, RECURSIVE, UNCOUNTED, Counts
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.histograms import Floats, Histograms, by_class
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    Models,
    RecursiveCL,
    TCloseness,
)

Asked = Mapping[str, Sequence[Model]]


def distinct_values(l: int | None, sensitive: Sequence[str], models: Asked) -> dict[str, int]:  # noqa: E741
    """How many distinct values a class needs, by column; l: of all sensitive columns."""
    least = {name: [] if l is None else [l] for name in sensitive}
    for name, of_column in models.items():
        least[name] += [model.l for model in of_column if isinstance(model, DistinctL)]
    return {name: max(numbers) for name, numbers in least.items() if numbers}


def weighed(models: Asked) -> Models:
    """The models that weigh values, by column: all but the number of distinct ones."""
    others = {name: tuple(model for model in of if not isinstance(model, DistinctL)) for name, of in models.items()}
    return {name: of_column for name, of_column in others.items() if of_column}


def refuse_unreachable(columns: Mapping[str, SensitiveColumn]) -> None:
    """Refuse a model that not even the whole table keeps as one class, and say what the table reaches.

    The table is as close to itself as can be, so only diversity can be out of reach.
    """
    for name, column in columns.items():
        whole = Histograms(np.array([0, column.width]), np.arange(column.width, dtype=np.int32), column.totals)
        for number, model in enumerate(column.models):
            if not column.alone(number).kept(whole)[0]:
                raise GuaranteeUnreachable(
                    f"privacy.sensitive.{name}: no release keeps {model}; {_reached(model, column.totals)}", column=name
                )


def _reached(model: Model, totals: Ints) -> str:
    """What the whole table reaches, and what to ask for."""
    counts = sorted(totals.tolist(), reverse=True)
    match model:
        case EntropyL():
            entropy = log(sum(counts)) - sum(count * log(count) for count in counts) / sum(counts)
            return f"the whole table has {_down(exp(entropy))}. Lower entropy_l."
        case RecursiveCL():
            tail = sum(counts[model.l - 1 :])
            if tail == 0:
                return f"the column has {len(counts)} distinct values. Lower recursive.l."
            return f"with l = {model.l} the whole table needs a c above {counts[0] / tail:.6g}. Raise recursive.c."
    return f"the column has {len(counts)} distinct values. Lower it."


def _down(number: float) -> str:
    """Six digits after the point, never more than the number."""
    return f"{floor(number * 10**6 - 1e-3) / 10**6:g}"


# --- for the kernels --------------------------------------------------------------------------------------------------------


def offsets_of(columns: Sequence[SensitiveColumn]) -> Ints:
    """The first value of each column, where the values of all columns are numbered through; last, how many there are."""
    return np.cumsum([0, *(column.width for column in columns)]).astype(np.int64)


def counts_of(columns: Sequence[SensitiveColumn], tuples: Histograms) -> Counts:
    """Counts for the kernels. tuples: values of all columns, numbered through."""
    if not columns:
        return UNCOUNTED
    offsets, owner = offsets_of(columns), np.repeat(np.arange(tuples.size), np.diff(tuples.starts))
    parts, asked, numbers, count = [(owner, tuples.values, tuples.counts)], [], [], int(offsets[-1])
    for column, first, last in zip(columns, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        shares = column.totals / column.totals.sum()
        for model in column.models:
            kind, limit, whole, least, most = _numbers(model, shares)
            start, stop = first, last
            if isinstance(model, TCloseness) and model.distance == "hierarchical":  # the values of its levels follow all others
                assert column.levels is not None, "a hierarchical distance comes with its levels"
                mine, whole = (tuples.values >= first) & (tuples.values < last), len(column.levels)
                levels = [np.unique(codes, return_inverse=True)[1] for codes in column.levels]
                start, least = count, np.concatenate([np.bincount(codes, shares) for codes in levels])
                for codes in levels:
                    parts.append((owner[mine], codes[tuples.values[mine] - first] + count, tuples.counts[mine]))
                    count += int(codes.max()) + 1
                stop = count
            asked.append((kind, start, stop, whole))
            numbers.append((np.array([limit, *least]), np.array([limit, *most])))
    owners, values, rows = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((values, owners))
    table = np.zeros((2 * len(numbers), max(row.size for both in numbers for row in both)))
    for at, both in enumerate(numbers):
        for which, row in enumerate(both):
            table[2 * at + which, : row.size] = row
    starts = np.searchsorted(owners[order], np.arange(tuples.size + 1)).astype(np.int64)
    entries = np.ascontiguousarray(np.stack([values[order], rows[order]], axis=1).astype(np.int64))
    room = np.zeros(count, dtype=np.int64)
    return Counts(starts, entries, np.array(asked, dtype=np.int64), table, room, _kinds(starts, entries))


def _kinds(starts: Ints, entries: Ints) -> Codes:
    """A number for each tuple, the same for tuples with the same entries."""
    numbers: dict[bytes, int] = {}
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return np.array([numbers.setdefault(entries[first:last].tobytes(), len(numbers)) for first, last in ends], dtype=np.int32)


def _numbers(model: Model, shares: Floats) -> tuple[int, float, int, Floats, Floats]:
    """Kind, limit and whole number of a model; of each value its share or the least, and the greatest, in a class."""
    nothing = np.zeros(0)
    match model:
        case EntropyL():
            return ENTROPY, log(model.l), ceil(model.l), nothing, nothing
        case RecursiveCL():
            return RECURSIVE, float(model.c), model.l, nothing, nothing
        case TCloseness():
            return ORDERED if model.distance == "ordered" else CLOSE, float(model.most), 1, shares, nothing
        case BetaLikeness():
            gain = np.full(shares.size, float(model.most))
            greatest = shares * (1 + (np.minimum(gain, -np.log(shares)) if model.enhanced else gain))
            greatest[shares == 1] = 2  # a column of one value gains nothing
            return BOUNDED, 0.0, 0, np.full(shares.size, -1.0), greatest
        case DeltaDisclosure():
            return BOUNDED, 0.0, 0, shares * exp(-model.most), shares * exp(model.most)
        case DistinctL():
            raise AssertionError("distinct values are counted apart")


def kept_exactly(
    columns: Sequence[SensitiveColumn], counts: Counts, class_of: Codes, classes: int
) -> NDArray[np.bool_]:
    """Whether each class keeps the models, by exact arithmetic near a limit."""
    kept, offsets = np.ones(classes, dtype=np.bool_), offsets_of(columns)
    values, rows = counts.entries.T
    for at, column in enumerate(columns):
        mine = (values >= offsets[at]) & (values < offsets[at + 1])
        before = np.concatenate([[0], np.cumsum(mine)]).astype(np.int64)
        codes = (values[mine] - offsets[at]).astype(np.int32)
        of_column = Histograms(before[counts.starts], codes, np.ascontiguousarray(rows[mine]))
        kept &= column.kept(by_class(of_column, class_of, classes, column.width))
    return kept
