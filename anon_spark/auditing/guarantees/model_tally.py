"""The classes of a release under a model, as few numbers: how many hold it, and the distribution of their measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa

from anon_spark.auditing.guarantees.model_judging import Judge, Judged, at_least, near
from anon_spark.auditing.reading.spread import Floats, Histograms, Ints
from anon_spark.auditing.reading.values import private
from anon_spark.columns import ROWS
from anon_spark.model.guarantee.models import TCloseness

JUDGE, BIN, HOLDS, CLASSES, LEAST, GREATEST = (
    private(name) for name in ("judge", "bin", "holds", "classes", "least", "greatest")
)
TALLY = f"{JUDGE} int, {BIN} int, {HOLDS} boolean, {CLASSES} long, {ROWS} long, {LEAST} double, {GREATEST} double"
UNBOUNDED = -1  # in place of a bin: the class has no finite measure

_DOUBLINGS = 20
_FIELDS = (JUDGE, BIN, HOLDS, CLASSES, ROWS, LEAST, GREATEST)
_KINDS: tuple[pa.DataType, ...] = (pa.int32(), pa.int32(), pa.bool_(), pa.int64(), pa.int64(), pa.float64(), pa.float64())
_SCHEMA = pa.schema(list(zip(_FIELDS, _KINDS, strict=True)))


def borders(judge: Judge) -> Floats:
    """Borders of the bins of a distribution, the limit among them; the last one is infinite.

    A bin contains its lower border if the model asks for at least the limit, else its upper one. So no bin holds classes on
    both sides of the limit.
    """
    limit = judge.limit
    if isinstance(judge.model, TCloseness):
        first = [0.0] if limit == 0 else []  # a bin for 0 alone
        return np.array([*first, *sorted({float(limit), *(tenth / 10 for tenth in range(11)), np.inf})])
    quarters = (2,) if at_least(judge.model) else (1, 2, 3)
    finite = [Fraction(0), *(limit * quarter / 4 for quarter in quarters), *(limit * 2**at for at in range(_DOUBLINGS))]
    return np.array([*map(float, finite), np.inf])


def bins(judge: Judge, judged: Judged) -> Ints:
    """The bin of each class: number of its lower border. A class near the limit is on the side on which it was decided."""
    edges, limit = borders(judge), float(judge.limit)
    above = int(np.searchsorted(edges, limit, side="right")) - 1  # the bin that starts at the limit
    if at_least(judge.model):
        places, inside, outside = np.searchsorted(edges, judged.values, side="right") - 1, above, above - 1
    else:
        places, inside, outside = np.searchsorted(edges, judged.values, side="left") - 1, above - 1, above
    settled = np.where(near(judged.values, limit), np.where(judged.holds, inside, outside), places)
    return np.where(np.isinf(judged.values), UNBOUNDED, np.clip(settled, 0, edges.size - 2))


class Tally:
    """Classes counted by judge, bin and outcome; at most some hundred lines, whatever was counted."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._judges = judges
        self._lines: dict[tuple[int, int, bool], list[float]] = {}

    def add(self, column: int, classes: Histograms) -> None:
        """Judge classes of a sensitive column. Cost: see `Judge.judge`."""
        for number, judge in enumerate(self._judges):
            if judge.column == column and classes.size:
                judged = judge.judge(classes)
                self._count(number, judged, bins(judge, judged), classes.rows)

    def _count(self, number: int, judged: Judged, places: Ints, rows: Ints) -> None:
        for place, holds in set(zip(places.tolist(), judged.holds.tolist(), strict=True)):
            these = (places == place) & (judged.holds == holds)
            values = judged.values[these]
            line = self._lines.setdefault((number, place, holds), [0, 0, np.inf, -np.inf])
            line[0] += int(these.sum())
            line[1] += int(rows[these].sum())
            line[2], line[3] = min(line[2], float(values.min())), max(line[3], float(values.max()))

    def lines(self) -> pa.RecordBatch:
        """Judge, bin, whether the classes hold; how many, their rows, their least and greatest measure."""
        rows = [(*key, *line) for key, line in sorted(self._lines.items())]
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(_KINDS)]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def histograms(batch: pa.RecordBatch) -> Iterator[tuple[int, Ints, Histograms]]:
    """The classes of a batch by sensitive column: its number, their places in the batch, their values.

    batch: the number of the column, then a list of (number of a value, rows).
    """
    numbers, lists = batch.column(0).to_numpy(zero_copy_only=False), cast("pa.ListArray[Any]", batch.column(1))
    lengths = np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64)
    entries = cast("pa.StructArray", lists.flatten())
    values, counts = (entries.field(at).to_numpy(zero_copy_only=False).astype(np.int64) for at in (0, 1))
    owners = np.repeat(np.arange(lengths.size), lengths)
    for column in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == column)
        taken = numbers[owners] == column
        offsets = np.concatenate([[0], np.cumsum(lengths[places])])
        yield column, places, Histograms.of(offsets, values[taken], counts[taken])


def tallied(judges: Sequence[Judge], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The tally of a task, as TALLY. Cost: one pass; the memory of a batch."""
    tally = Tally(judges)
    for batch in batches:
        for column, _, classes in histograms(batch):
            tally.add(column, classes)
    yield tally.lines()
