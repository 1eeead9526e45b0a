"""Tables of relational values and items as arrays: INFORMS 2005 and the synthetic patients, whole or in part."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.families.relational_transaction.items import Baskets
from anon_spark.families.relational_transaction.kernels.relation import Floats, Relation, relation_of
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange
from anon_spark.samples.patients import (
    DOMAINS,
    QUASI_IDENTIFIERS,
    SENSITIVE_DIAGNOSES,
    patients,
    patients_hierarchies,
)

INFORMS = "INFORMS 2005"
FILE = "informs/informs2005_rt.csv.gz"
INFORMS_DOMAINS = {  # setting N; negative years of education are codes of missing values, and kept
    "DOBMM": (1, 12),
    "DOBYY": (1920, 2005),
    "EDUCYEAR": (-9, 17),
    "income": (-33962, 206221),
}
RACE, CODES = "RACEX", "ICD9CODX"
MENTAL = range(290, 320)  # a made-up set of sensitive items: a chapter of the diagnoses
PATIENT_ROWS = 27_000
ITEMS = "items"
ORDER_SEED = 7


@dataclass(frozen=True)
class Table:
    """Records as arrays; values: numbers, or the positions of leaves; `baskets` has one row per record."""

    name: str
    attributes: Mapping[str, Hierarchy | FreeRange]
    values: Floats
    baskets: Baskets
    universe: Sequence[str]  # items by number
    sensitive: Sequence[str]  # those that the variant with l protects
    secrets: Sequence[str] = ()  # sensitive items by number, once they stand apart

    @property
    def records(self) -> int:
        return int(self.baskets.times.size)

    @cached_property
    def relation(self) -> Relation:
        return self._arrays[0]

    @cached_property
    def _arrays(self) -> tuple[Relation, list[Codes | None]]:
        return relation_of([_domain(given) for given in self.attributes.values()])

    @property
    def hierarchies(self) -> dict[str, Hierarchy | None]:
        """None for a number, as the metrics take it."""
        return {name: given if isinstance(given, Hierarchy) else None for name, given in self.attributes.items()}

    def leaf_at(self, attribute: int) -> Ints:
        """The leaf of each position of a category."""
        positions = self._arrays[1][attribute]
        assert positions is not None, "a number has no leaves"
        return np.argsort(positions)

    def taken(self, rows: Ints) -> Table:
        return replace(self, values=self.values[rows], baskets=self.baskets.taken(rows))

    def sample(self, records: int, seed: int = ORDER_SEED) -> Table:
        """Random records; of one seed the smaller samples are contained in the larger ones."""
        return self.taken(np.sort(np.random.default_rng(seed).permutation(self.records)[:records]))

    def with_secrets(self) -> Table:
        """The same with the sensitive items apart."""
        hidden = np.array([name in self.sensitive for name in self.universe])
        number = np.where(hidden, np.cumsum(hidden) - 1, np.cumsum(~hidden) - 1)
        offsets, codes = self.baskets.offsets, self.baskets.codes
        owner = np.repeat(np.arange(self.records), np.diff(offsets))

        def lists(kept: NDArray[np.bool_]) -> tuple[Ints, Codes]:
            counts = np.bincount(owner[kept], minlength=self.records)
            return np.concatenate([[0], np.cumsum(counts)]), number[codes[kept]].astype(np.int32)

        names = np.array(self.universe)
        baskets = Baskets(*lists(~hidden[codes]), *lists(hidden[codes]), self.baskets.times)
        return replace(self, baskets=baskets, universe=names[~hidden].tolist(), secrets=names[hidden].tolist())

    def frame(self, spark: SparkSession) -> DataFrame:
        """The records as Spark reads them: numbers, labels, and ITEMS as array<string>, sensitive ones among them."""
        columns: dict[str, Any] = {}
        for at, (name, given) in enumerate(self.attributes.items()):
            if isinstance(given, Hierarchy):
                labels = pa.array(list(given.keys), pa.string())
                columns[name] = labels.take(pa.array(self.leaf_at(at)[self.values[:, at].astype(np.int64)], pa.int64()))
            else:
                columns[name] = pa.array(self.values[:, at].astype(np.int64))
        lists = [
            [self.universe[code] for code in self.baskets.codes[first:last]]
            + [self.secrets[code] for code in self.baskets.secrets[begin:end]]
            for first, last, begin, end in zip(
                self.baskets.offsets[:-1],
                self.baskets.offsets[1:],
                self.baskets.secret_offsets[:-1],
                self.baskets.secret_offsets[1:],
                strict=True,
            )
        ]
        columns[ITEMS] = pa.array(lists, pa.list_(pa.string()))
        return spark.createDataFrame(pa.table(columns))


def source(spark: SparkSession, data: Path | None) -> Table:
    """INFORMS from the folder, or synthetic patients where there is none."""
    return patient_table(spark, PATIENT_ROWS) if data is None else read_informs(data)


def read_informs(data: Path) -> Table:
    """The records of 2005 in setting N: month and year of birth, education and income as numbers, race as a category."""
    path = data / FILE
    if not path.exists():
        raise ConfigurationError(f"{FILE} is not below the folder of --data.")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    races = Hierarchy.from_levels([(race, "*") for race in sorted({row[RACE] for row in rows})])
    attributes: dict[str, Hierarchy | FreeRange] = {}
    for name in ("DOBMM", "DOBYY", RACE, "EDUCYEAR", "income"):
        attributes[name] = races if name == RACE else FreeRange(INFORMS_DOMAINS[name])
    columns = {name: [row[name] for row in rows] for name in attributes}
    found = table_of(INFORMS, attributes, columns, [row[CODES].split() for row in rows])
    mental = [item for item in found.universe if item.isdigit() and int(item) in MENTAL]
    return replace(found, sensitive=mental)


def patient_table(spark: SparkSession, rows: int) -> Table:
    """Synthetic patients as arrays."""
    columns = patients(spark, rows).select(*QUASI_IDENTIFIERS, F.col("diagnoses").alias(ITEMS)).toArrow().to_pydict()
    attributes = {name: FreeRange(DOMAINS[name]) if name in DOMAINS else None for name in QUASI_IDENTIFIERS}
    complete = {name: given or patients_hierarchies()[name] for name, given in attributes.items()}
    found = table_of(f"{rows:,} synthetic patients", complete, columns, columns[ITEMS])
    return replace(found, sensitive=sorted(SENSITIVE_DIAGNOSES))


def table_of(
    name: str,
    attributes: Mapping[str, Hierarchy | FreeRange],
    columns: Mapping[str, Sequence[Any]],
    lists: Sequence[Sequence[str]],
) -> Table:
    """Values and items as numbers; items are numbered in the order of their names."""
    _, positions = relation_of([_domain(given) for given in attributes.values()])
    values = []
    for (column, given), position in zip(attributes.items(), positions, strict=True):
        if isinstance(given, Hierarchy) and position is not None:
            place = {leaf: position[at] for at, leaf in enumerate(given.keys)}
            values.append([float(place[value]) for value in columns[column]])
        else:
            values.append([float(value) for value in columns[column]])
    universe = sorted({item for items in lists for item in items})
    number = {item: at for at, item in enumerate(universe)}
    codes = [sorted({number[item] for item in items}) for items in lists]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in codes], dtype=np.int64)])
    baskets = Baskets(
        offsets,
        np.array([code for own in codes for code in own], dtype=np.int32),
        np.zeros(len(lists) + 1, dtype=np.int64),
        np.empty(0, dtype=np.int32),
        np.ones(len(lists), dtype=np.int64),
    )
    return Table(name, dict(attributes), np.array(values).T.copy(), baskets, universe, ())


def _domain(given: Hierarchy | FreeRange) -> Hierarchy | tuple[float, float]:
    if isinstance(given, Hierarchy):
        return given
    assert given.domain is not None, "a table of a benchmark states its domains"
    return given.domain
