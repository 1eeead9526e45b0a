"""Whether classes keep k, l distinct values and the models of sensitive columns, as they are and after a change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import Counts, count_in, has_models, lack
from anon_spark.families.mst.kernels.diversity import add_values, is_diverse
from anon_spark.families.mst.kernels.losses import Changing, Tuples
from anon_spark.kernels.classes import EMPTY, Codes


@compiled
def is_class(tuples: Tuples, classes: Changing, number: int, k: int) -> bool:
    """Whether a class has k rows, l values in every sensitive column, and keeps the models."""
    nobody = EMPTY
    diverse = classes.size[number] >= k and diverse_without(tuples, classes, number, nobody)
    return diverse and keeps_models(tuples, classes, number, nobody, nobody)


@inner
def keeps_models(tuples: Tuples, classes: Changing, number: int, without: int, more: int) -> bool:
    """Whether a class keeps the models without one of its tuples, and with one more; EMPTY: none."""
    if not has_models(tuples.counts):
        return True
    member = classes.head[number]
    while member != EMPTY:
        if member != without:
            count_in(tuples.counts, member)
        member = classes.next_of[member]
    if more != EMPTY:
        count_in(tuples.counts, more)
    return taken_lack(tuples.counts) == 0


@compiled
def taken_lack(counts: Counts) -> float:
    """What is lacking of the models in the room, which is empty then."""
    missing = lack(counts)
    counts.room[:] = 0
    return missing


@inner
def diverse_without(tuples: Tuples, classes: Changing, number: int, without: int) -> bool:
    """Whether a class keeps l values in every sensitive column without one of its tuples."""
    if tuples.values.shape[1] == 0:
        return True
    gathered = np.full((tuples.values.shape[1], tuples.values.shape[2]), -1, dtype=np.int32)
    member = classes.head[number]
    while member != EMPTY:
        if member != without:
            for column in range(gathered.shape[0]):
                add_values(gathered[column], tuples.values[member, column])
            if is_diverse(gathered):
                return True
        member = classes.next_of[member]
    return False


@inner
def keeps_within(tuples: Tuples, members: Codes, inside: NDArray[np.bool_]) -> bool:
    """Whether some members together have l values in every sensitive column, and keep the models."""
    gathered = np.full((tuples.values.shape[1], tuples.values.shape[2]), -1, dtype=np.int32)
    for place in range(members.size):
        if inside[place]:
            count_in(tuples.counts, members[place])
            for column in range(gathered.shape[0]):
                add_values(gathered[column], tuples.values[members[place], column])
    kept = taken_lack(tuples.counts) == 0
    return kept and is_diverse(gathered)


@inner
def lack_together(tuples: Tuples, classes: Changing, one: int, other: int, k: int) -> float:
    """What two classes as one lack of k rows, l values and the models; 0 if nothing. The same class twice: what it lacks."""
    size, gathered = 0, np.full((tuples.values.shape[1], tuples.values.shape[2]), -1, dtype=np.int32)
    number = one
    while True:
        size += classes.size[number]
        member = classes.head[number]
        while member != EMPTY:
            count_in(tuples.counts, member)
            for column in range(gathered.shape[0]):
                add_values(gathered[column], tuples.values[member, column])
            member = classes.next_of[member]
        if number == other:
            break
        number = other
    missing: float = taken_lack(tuples.counts) + max(0, k - size) / k
    for column in range(gathered.shape[0]):
        missing += (gathered[column] < 0).sum() / gathered.shape[1]
    return missing


@inner
def gathered_values(tuples: Tuples, classes: Changing, number: int) -> Codes:
    """Up to l values of a class in each sensitive column."""
    gathered = np.full((tuples.values.shape[1], tuples.values.shape[2]), -1, dtype=np.int32)
    member = classes.head[number]
    while member != EMPTY:
        for column in range(gathered.shape[0]):
            add_values(gathered[column], tuples.values[member, column])
        member = classes.next_of[member]
    return gathered


@inner
def adds_value(gathered: Codes, values: Codes) -> bool:
    """Whether a tuple has a sensitive value that is lacking, in a column with fewer than l."""
    for column in range(gathered.shape[0]):
        both = gathered[column].copy()
        if both[-1] < 0:
            add_values(both, values[column])
            if (both >= 0).sum() > (gathered[column] >= 0).sum():
                return True
    return False
