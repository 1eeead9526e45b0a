"""One grammar, implemented twice: on a corpus of nasty values the family and the audit find the same leaf for each.

The page docs/values.md says which texts are numbers and days. The family reads them in plain Python (numbers of bins by
Spark expressions of its own), the audit by Spark expressions; expected leaves of texts are written down here as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing.reading.recode import KEPT, NULL, UNSEEN, Climb
from anon_spark.auditing.reading.recode import with_codes as with_leaf_codes
from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy import BinGrid, Hierarchy, Rule
from anon_spark.primitives.encoding import dictionaries, fractions, with_codes, with_keys

LEVELS = [
    *("33", "33.50", "-0.5", "1e30", "0", "0.1", "0.10000000149011612", "true", "2020-01-01", "2020-01-01 10:00:00"),
    *("a", "A", "é", "e\u0301", "\U0001f600", " a", "a\n", "a\ufffd", "1.7976931348623157E308", "4.9E-324"),
    *("12345678901234567890123456789012345678", "0.00000000000000000000000000000000000001"),
]
HIERARCHIES: dict[str, Hierarchy | Rule] = {
    "text": Hierarchy.from_levels([(value, "*") for value in LEVELS]),
    "number": Hierarchy.intervals(-40, 40, [2, 4]),
    "bins": Hierarchy.intervals("-1.5", "40.5", ["0.1", "0.2"], exact=False),
    "wide bins": Hierarchy.intervals("0", "100000000000000000", ["50000000000000000"], exact=False),
    "date": Hierarchy.dates(["month"], "2019-12-31", "2020-03-01"),
    "open date": Hierarchy.dates(["month"]),
    "mask": Hierarchy.mask(length=17, keep="right"),
    "open mask": Hierarchy.mask(alphabet=2),
}
# text → leaf of "number" (as the number it stands for) and of "bins" (as its lower end, times ten); None: unseen
SPELLINGS: dict[str, tuple[int | None, int | None]] = {
    "33": (33, 330),
    "33.0": (33, 330),
    " 33 ": (33, 330),
    "\t33\n": (33, 330),
    "\x0b33\x0c\r": (33, 330),
    "+33": (33, 330),
    "-33": (-33, None),
    "033": (33, 330),
    "33.": (33, 330),
    ".5": (None, 5),
    "-.5e0": (None, -5),
    "3.3e1": (33, 330),
    "3.3E+1": (33, 330),
    "330e-1": (33, 330),
    "0.0000000000000000000000000000033e31": (33, 330),
    "33" + "0" * 30 + "e-30": (33, 330),
    "33." + "0" * 500: (33, 330),
    "0e999999": (0, 0),
    "-0": (0, 0),
    "-0.0": (0, 0),
    "33." + "0" * 22 + "1": (None, 330),
    "33.1" + "0" * 22 + "1": (None, 331),
    "33.09999999999999999999999999": (None, 330),
    "-0.1" + "0" * 22 + "1": (None, -2),
    "-0.09999999999999999999999999": (None, -1),
    "40.5": (None, 404),
    "40.50000000000000000000000001": (None, None),
    "-1.5": (None, -15),
    "-1.50000000000000000000000001": (None, None),
    "1e-390": (None, 0),
    "1e-400": (None, None),
    "-1e-390": (None, -1),
    "9e999999": (None, None),
    "33e": (None, None),
    "33e1234567": (None, None),
    "33e0000001": (None, None),
    "e5": (None, None),
    ".": (None, None),
    "+": (None, None),
    "": (None, None),
    " ": (None, None),
    "33\x00": (None, None),
    "\x0033": (None, None),
    "\x1f33": (None, None),
    "33\x85": (None, None),
    "33\u2028": (None, None),
    "33\u00a0": (None, None),
    "\ufeff33": (None, None),
    "３３": (None, None),
    "٣٣": (None, None),
    "−33": (None, None),
    "33d": (None, None),
    "33f": (None, None),
    "33L": (None, None),
    "0x21": (None, None),
    "33,0": (None, None),
    "3 3": (None, None),
    "--33": (None, None),
    "1_000": (None, None),
    "NaN": (None, None),
    "Infinity": (None, None),
    "inf": (None, None),
    "true": (None, None),
}
DAYS: dict[str, str | None] = {
    "2020-01-01": "2020-01-01",
    "2020-01-01T10:00:00Z": "2020-01-01",
    "2020-01-01 10:00:00+14:00": "2020-01-01",
    "2020-01-01 1": "2020-01-01",
    "2020-02-29 23:59:60 Europe/Rome": "2020-02-29",
    "2020-02-30": None,
    "2020-03-01": "2020-03-01",
    "2020-03-02": None,
    "2020-01-01\n": None,
    "2020-01-01\r": None,
    "2020-01-01 10:00\n": None,
    "2020-01-01 10:00\u2028": None,
    "2020-01-01 10:00\u0085": None,
    "2020-01-01 10:00 ü": None,
    "2020-01-01\x00": None,
    "2020-01-01 ": None,
    " 2020-01-01": None,
    "2020-01-01 x": None,
    "2020-1-1": None,
    "2020-01": None,
    "20200101": None,
    "０２０２-01-01": None,
    "+2020-01-01": None,
    "12020-01-01": None,
    "-0001-01-01": None,
    "0000-01-01": None,
}
OTHERS = [
    *("a", "A", " a", "a ", "a\n", "é", "e\u0301", "\U0001f600", "\u202ea", "a\x00", "x" * 5000, "1.7976931348623157E308"),
    *("1E30", "1e30", "33.50", "33.5", "2020-01-01 10:00:00", "a\ufffd", "12345678901234567890123456789012345678"),
]
TEXTS: list[str | None] = [*SPELLINGS, *DAYS, *OTHERS, None]

BITS: list[Any] = [0, 1, -1, 33, -33, 40, 41, 127, None]
WHOLE = {"byte": BITS, "short": [*BITS, 2**15 - 1], "int": [*BITS, 2**31 - 1, -(2**31)], "long": [*BITS, 2**63 - 1, -(2**63)]}
FLOATS: list[Any] = [
    *(0.0, -0.0, 33.0, 33.5, 0.1, -0.5, 0.3, 33.1, 40.5, 40.50001, 1e-20, 1e30, 3e38, -1.5, math.inf, -math.inf, math.nan),
    None,
]
DOUBLES: list[Any] = [
    *FLOATS,
    *(0.30000000000000004, 0.0999999999999999, 0.00099999999999999982, 1.7976931348623157e308, 5e-324, 1e17, -1e-300),
    *(2.0**-44, 2.0**80, 1e23, 0.10000000149011612, 33.00000000000001, 9007199254740993.0),
]
EXACT = {
    "decimal(38,18)": ["33", "33.5", "0.1", "-0.000000000000000001", "99999999999999999999.999999999999999999", "0", None],
    "decimal(38,38)": ["0.1", "0." + "0" * 37 + "1", "-0." + "0" * 37 + "1", "0." + "9" * 38, "0", None],
    "decimal(38,0)": ["33", "12345678901234567890123456789012345678", "-33", "100000000000000000", "0", None],
}
MOMENTS = [
    *(datetime(2020, 1, 1), datetime(2020, 1, 1, 10), datetime(2019, 12, 31, 23, 59, 59, 999999), datetime(2020, 3, 1)),
    *(datetime(2020, 2, 29, 12, 30, 0, 120000), datetime(2020, 3, 2), None),
]
OLD_AND_FAR = ["+10000-01-01", "-0044-03-15", "0001-01-01", "9999-12-31", "2020-01-01", None]


def frames(spark: SparkSession) -> dict[str, DataFrame]:
    """Column type → one column `value` and a number for each case."""

    def one(values: Sequence[Any], kind: pa.DataType) -> DataFrame:
        return spark.createDataFrame(pa.table({"at": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, kind)}))

    def cast(values: Sequence[Any], kind: str) -> DataFrame:
        return one(values, pa.string()).withColumn("value", F.col("value").cast(kind))

    texts = one(TEXTS, pa.string())
    broken = one([b"a\xff", b"\xff", b"33\xc3", b"2020-01-01 1\xe2\x28", b"33"], pa.binary())
    sizes = {"byte": pa.int8(), "short": pa.int16(), "int": pa.int32(), "long": pa.int64()}
    return {
        "text": texts,
        "text with collation": texts.withColumn("value", F.collate("value", "UNICODE_CI_AI")),
        "text that is no UTF-8": broken.withColumn("value", F.col("value").cast("string")),
        **{name: one(values, sizes[name]) for name, values in WHOLE.items()},
        "float": one(FLOATS, pa.float32()),
        "double": one(DOUBLES, pa.float64()),
        **{kind: cast(values, kind) for kind, values in EXACT.items()},
        "truth": one([True, False, None], pa.bool_()),
        "date": one([date(2020, 1, 1), date(2020, 2, 29), date(2020, 3, 2), None], pa.date32()),
        "date beyond": cast(OLD_AND_FAR, "date"),
        "moment": one(MOMENTS, pa.timestamp("us", "UTC")),
        "moment beyond": cast(OLD_AND_FAR, "timestamp"),
        "moment without zone": one(MOMENTS, pa.timestamp("us")),
    }


Leaves = dict[str, list[int | str | None]]


def both(frame: DataFrame, hierarchies: Mapping[str, Hierarchy | Rule]) -> tuple[Leaves, Leaves]:
    """The leaf of every case by the family and by the audit, per hierarchy: a code, 'null', or None for unseen. Three jobs."""
    wide = frame.select("at", *(F.col("value").alias(name) for name in hierarchies))
    keyed = with_keys(wide, hierarchies, ["at"])
    # a rule is completed by rows that every hierarchy of its table knows: here each is alone
    rules = {name: given for name, given in hierarchies.items() if not isinstance(given, Hierarchy)}
    together = {name: given for name, given in hierarchies.items() if name not in rules}
    tables: list[Mapping[str, Hierarchy | Rule]] = [together, *({name: given} for name, given in rules.items())]
    found = [entry for table in tables for entry in dictionaries(keyed, table, "value", fractions(wide, table))]
    codes = [f"family {at}" for at in range(len(found))]
    coded = with_codes(keyed, found, [0] * len(found), codes).select("at", *codes)
    climbs = [Climb(entry.name, f"audit {place}", entry.hierarchy, 0, f"s{place}") for place, entry in enumerate(found)]
    read = with_leaf_codes(wide.withColumns({climb.status: F.lit(KEPT) for climb in climbs}), climbs)
    ours, theirs = (sorted(result.collect(), key=itemgetter("at")) for result in (coded, read))
    family: Leaves = {
        entry.name: [_named(row[codes[place]], entry.hierarchy.has_null and entry.hierarchy.leaf_count - 1) for row in ours]
        for place, entry in enumerate(found)
    }
    audit: Leaves = {
        entry.name: [_audited(row[f"audit {place}"], row[f"s{place}"]) for row in theirs]
        for place, entry in enumerate(found)
    }
    return family, audit


def _named(code: int | None, null: int | bool) -> int | str | None:
    return "null" if null is not False and code == null else code


def _audited(code: int | None, status: int) -> int | str | None:
    if status == NULL:
        return "null"
    assert (status == UNSEEN) == (code is None)
    return code


def usable(name: str) -> dict[str, Hierarchy | Rule]:
    """All kinds of hierarchies for the types that differ, some for those that are read like another one."""
    numbers = ["text", "number", "bins"]
    most = [*numbers, "wide bins", "date", "open mask"]
    kinds = {
        "text": [*numbers, "wide bins", "date", "mask"],
        "text with collation": [*numbers, "date"],
        "text that is no UTF-8": [*numbers, "date", "mask"],
        "long": most,
        "double": most,
        "date": [*numbers, "date", "open date", "open mask"],
        "moment": [*numbers, "date", "open date", "open mask"],
        "date beyond": ["text", "date"],
        "moment beyond": ["text", "date"],
        "moment without zone": ["text", "date", "open mask"],
    }
    return {kind: HIERARCHIES[kind] for kind in kinds.get(name, numbers)}


OFTEN = ("text", "text with collation", "long", "double", "moment")  # in the test command; the other types by `make long`


@pytest.fixture(scope="module")
def leaves(spark: SparkSession) -> dict[str, tuple[Leaves, Leaves]]:
    found = frames(spark)
    return {name: both(found[name], usable(name)) for name in OFTEN}


@pytest.mark.long
def test_the_same_leaf_in_columns_of_every_other_type(spark: SparkSession) -> None:
    found = {name: both(frame, usable(name)) for name, frame in frames(spark).items() if name not in OFTEN}
    assert len(found) > 9
    test_the_family_and_the_audit_find_the_same_leaf(found)


def test_the_family_and_the_audit_find_the_same_leaf(leaves: dict[str, tuple[Leaves, Leaves]]) -> None:
    differ = {
        (name, kind, at)
        for name, (family, audit) in leaves.items()
        for kind in family
        for at, pair in enumerate(zip(family[kind], audit[kind], strict=True))
        if pair[0] != pair[1]
    }
    assert not differ


@pytest.mark.parametrize("name", ["text", "text with collation"])
def test_texts_are_numbers_and_days_as_written_down(leaves: dict[str, tuple[Leaves, Leaves]], name: str) -> None:
    number, bins, days = HIERARCHIES["number"], HIERARCHIES["bins"], HIERARCHIES["date"]
    assert isinstance(number, Hierarchy) and isinstance(bins, Hierarchy) and isinstance(days, Hierarchy)
    for found in leaves[name]:
        whole, spans, day = (dict(zip(TEXTS, found[kind], strict=True)) for kind in ("number", "bins", "date"))
        assert {text: whole[text] for text in SPELLINGS} == {
            text: None if wanted is None else wanted + 40 for text, (wanted, _) in SPELLINGS.items()
        }
        assert {text: spans[text] for text in SPELLINGS} == {
            text: None if wanted is None else wanted + 15 for text, (_, wanted) in SPELLINGS.items()
        }
        assert {text: day[text] for text in DAYS} == {text: wanted and days.leaf_of(wanted) for text, wanted in DAYS.items()}
        assert whole[None] == spans[None] == day[None] == "null"


def test_leaf_of_says_what_the_families_do(leaves: dict[str, tuple[Leaves, Leaves]]) -> None:
    """The definition in plain Python, for the values that Python has: texts, whole numbers, doubles."""
    columns: dict[str, list[Any]] = {"text": list(TEXTS), "long": WHOLE["long"], "double": DOUBLES}
    for name, values in columns.items():
        for kind in ("text", "number", "bins", "wide bins", "date"):
            hierarchy = HIERARCHIES[kind]
            assert isinstance(hierarchy, Hierarchy)
            for value, leaf in zip(values, leaves[name][0][kind], strict=True):
                if value is None or value != value:
                    assert leaf == "null"
                elif value != 5e-324:  # Java prints the smallest double 4.9E-324, Python 5e-324: a column's rule is Java's
                    assert leaf == hierarchy.leaf_of(value), (name, kind, value)


def test_a_border_of_bins_has_at_most_18_digits_on_either_side() -> None:
    assert BinGrid(Decimal("0"), Decimal("1"), Decimal("0.000000000000000001"), 10**18).index("1") == 10**18 - 1
    for start, stop, width in ((0, 2**-20, 2**-30), (0, 2 * 10**18, 10**18)):  # 30 and 20 decimals; 19 digits
        with pytest.raises(HierarchyError, match="18 digits"):
            Hierarchy.intervals(Decimal(start), Decimal(stop), [Decimal(width)], exact=False)
