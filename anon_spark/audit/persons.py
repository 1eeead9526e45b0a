"""Whose rows a release holds: persons are not published, so they are found in the source again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.audit.recode import KEPT, NULL, UNSEEN, with_code, with_label
from anon_spark.audit.values import exact, private, quoted, require_columns
from anon_spark.model.hierarchy import Hierarchy


def with_persons(
    source: DataFrame, release: DataFrame, recoded: Mapping[str, tuple[Hierarchy, int]], person: str, nulls: str
) -> DataFrame:
    """The source's rows whose class the release shows: the published quasi-identifiers, and the person.

    recoded: quasi-identifier → (hierarchy, level); nulls: what the run did with a null quasi-identifier.
    Guarantee: for a truthful release these are exactly the rows it was made from, so its classes can be counted in
    persons; for another one, see `verify_recoding`.
    Cost: two broadcast joins per quasi-identifier and one join with the classes of the release; no action.
    """
    names = list(recoded)
    require_columns(source, [*names, person], "source")
    require_columns(release, names, "release")
    status, raw, labels = private("status"), _named("raw", names), _named("label", names)
    rows = source.select(
        *(exact(source, name).alias(raw[at]) for at, name in enumerate(names)),
        F.col(quoted(person)),
        F.lit(KEPT).alias(status),
    )
    for at, (hierarchy, level) in enumerate(recoded.values()):
        code = private(f"code_{at}")
        rows = with_label(with_code(rows, raw[at], code, status, hierarchy, level), code, labels[at], hierarchy, level)
    dropped = UNSEEN | NULL if nulls == "suppress" else UNSEEN
    rows = rows.where(F.col(status).bitwiseAND(F.lit(dropped)) == 0).select(
        *(F.col(labels[at]).alias(name) for at, name in enumerate(names)), F.col(quoted(person))
    )
    shown = release.select(*(exact(release, name).alias(labels[at]) for at, name in enumerate(names))).distinct()
    same = [F.col(quoted(name)).eqNullSafe(F.col(labels[at])) for at, name in enumerate(names)]
    return rows.join(shown, reduce(and_, same), "left_semi")


def _named(what: str, names: Sequence[str]) -> list[str]:
    return [private(f"{what}_{at}") for at in range(len(names))]
