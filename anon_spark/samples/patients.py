"""Synthetic patients of the shape of the INFORMS 2005 records: a few relational values and about four diagnoses each.

A patient has some episodes; each has a diagnosis from a list ordered by frequency at that age, and often its companion
diagnoses. Codes are three digits in chapters and blocks of ten, as in ICD-9; only this numbering is used, nothing is copied.
Three rare sensitive codes are drawn separately.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import mul

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.samples.census import FAMILY, FEMALE, MALE
from anon_spark.samples.draws import Draws, constants, first_of, shares

COLUMNS = (
    "person_id", "name", "birth_year", "birth_month", "education", "income", "race", "diagnoses", "medications", "visits",
)  # fmt: skip
QUASI_IDENTIFIERS = ("birth_year", "birth_month", "education", "income", "race")
DOMAINS = {"birth_year": (1920, 2005), "birth_month": (1, 12), "education": (0, 17), "income": (0, 120_000)}
SENSITIVE_DIAGNOSES = {
    "042": 0.006,
    "295": 0.010,
    "303": 0.015,
}  # HIV, schizophrenia, alcoholism: share of the patients

CHAPTERS = {  # first code of each chapter → its name
    0: "infections", 140: "neoplasms", 240: "endocrine", 280: "blood", 290: "mental", 320: "nervous", 390: "circulatory",
    460: "respiratory", 520: "digestive", 580: "genitourinary", 630: "pregnancy", 680: "skin", 710: "musculoskeletal",
    740: "congenital", 760: "perinatal", 780: "symptoms", 800: "injury",
}  # fmt: skip
CODES = tuple(code for code in range(1, 1000) if code % 10 < 6)  # six of every ten numbers
FREQUENT = (
    34,
    250,
    272,
    300,
    311,
    382,
    401,
    414,
    465,
    493,
    530,
    595,
    650,
    692,
    715,
    724,
    780,
    845,
    882,
)  # in their chapters
OFTEN = {  # chapters that are more frequent at an age, in tenths
    "child": shares("respiratory 60, infections 45, injury 30, symptoms 30, nervous 25, skin 20, digestive 15"),
    "adult": shares(
        "symptoms 40, musculoskeletal 40, injury 35, mental 35, respiratory 30, genitourinary 25, pregnancy 20"
    ),
    "old": shares(
        "circulatory 90, endocrine 60, musculoskeletal 40, symptoms 35, nervous 25, neoplasms 20, digestive 20"
    ),
}
EPISODES = {"child": (1, 1, 1, 1, 2, 3), "adult": (1, 1, 1, 2, 3, 5), "old": (1, 2, 3, 4, 5, 6)}  # one of these
COMPANIONS = (0, 0, 0, 1, 1, 2)  # diagnoses that a diagnosis brings with it, one of these
MOST_CODES = 14  # sensitive ones come on top
RACES = {
    ("White", "White"): "White",
    ("Black", "Black"): "Black",
    ("asian or pacific", "other"): "Asian Pacific",
    ("native or several", "other"): "Native Several",
}
MEDICATIONS = (
    "albuterol alprazolam amlodipine amoxicillin aspirin atenolol atorvastatin azithromycin cephalexin ciprofloxacin codeine "
    "diazepam digoxin diltiazem enalapril fluoxetine furosemide gabapentin glipizide ibuprofen insulin levothyroxine lisinopril "
    "loratadine metformin metoprolol naproxen nifedipine omeprazole paroxetine penicillin potassium prednisone ranitidine "
    "sertraline simvastatin tramadol triamterene verapamil warfarin"
)
UNIT = 1 << 16  # fractions are whole numbers below this


def patients_hierarchies() -> dict[str, Hierarchy]:
    """The hierarchies of `race` (6 leaves, height 3) and of the items of `diagnoses` (code, block of ten, chapter)."""
    races = [(leaf, *above, "*") for above, leaves in RACES.items() for leaf in leaves.split()]
    codes = [(f"{code:03d}", f"{code // 10 * 10:03d}-{code // 10 * 10 + 9:03d}", _chapter(code), "*") for code in CODES]
    return {"race": Hierarchy.from_levels(races), "diagnoses": Hierarchy.from_levels(codes)}


def patients(
    spark: SparkSession,
    rows: int,
    seed: int = 1,
    *,
    empty: float = 0.0,
    partitions: int | None = None,
) -> DataFrame:
    """A table of `rows` invented patients with the columns COLUMNS; `diagnoses` has 1 to 17 items, some of them sensitive.

    empty: share of the patients without any diagnosis or medication.
    Guarantee: a row depends on its number, `seed` and `empty` alone, so partitions do not matter and a longer table begins
    with the shorter one. Items are distinct and sorted; each of SENSITIVE_DIAGNOSES has about its share of the patients.
    Cost: built-in expressions over a range; no shuffle, no action.
    """
    if not 0 <= empty < 1:
        raise ConfigurationError("patients: empty must be at least 0 and below 1.")
    if rows < 0:
        raise ConfigurationError("patients: rows must not be negative.")
    draw = Draws(seed)
    table = spark.range(0, rows, 1, partitions).withColumnRenamed("id", "row").withColumn("world", F.lit(0))
    # 1. columns that others depend on; a step reads only columns of the steps before it
    table = table.withColumns(
        {"birth_year": _birth_year(draw), "birth_month": 1 + draw.below("row", "month", 12)}
        | {f"own {purpose}": draw.word("row", purpose) for purpose in ("episode", "along", "taken")}
        | {f"all {purpose}": draw.word("world", purpose) for purpose in ("along", "drug")}
    )
    group = first_of([(F.col("birth_year") > 1987, F.lit(0)), (F.col("birth_year") > 1950, F.lit(1))], F.lit(2))
    table = table.withColumns({"group": group, "race": _race(draw), "education": _education(draw), "name": _name(draw)})
    # 2. diagnoses, then the columns that depend on them
    table = table.withColumns({"codes": _codes(draw), "income": _income(draw)})
    has_items = ~draw.chance("row", "empty", empty) if empty else F.lit(True)
    table = table.withColumns({"diagnoses": _diagnoses(draw, has_items), "medications": _medications(has_items)})
    table = table.withColumn("visits", F.size("diagnoses") + draw.below("row", "visits", 6))
    return table.withColumn("person_id", 1_000_000 + F.col("row")).select(*COLUMNS)


def _chapter(code: int) -> str:
    return CHAPTERS[max(first for first in CHAPTERS if first <= code)]


@cache
def _ladders() -> tuple[str, int]:
    """For each age the ordinary codes, most frequent first, concatenated in one text; and the number of codes per age."""
    ordinary = [code for code in CODES if f"{code:03d}" not in SENSITIVE_DIAGNOSES]
    place: dict[int, int] = {}  # of a code in its chapter, the same at all ages
    for chapter in CHAPTERS.values():
        members = [code for code in ordinary if _chapter(code) == chapter]
        scattered = sorted(members, key=lambda code: (code not in FREQUENT, code * 379 % 1009))
        place |= {code: at for at, code in enumerate(scattered)}
    ladders = [
        f"{code:03d}"
        for often in OFTEN.values()
        for code in sorted(ordinary, key=lambda code: ((1 + place[code]) / often.get(_chapter(code), 5), code))
    ]
    return " ".join(ladders), len(ordinary)


def _step(place: Column) -> Column:
    """The code at a position of the ladder of the patient's age."""
    ladders, steps = _ladders()
    return F.get(_words(ladders), F.col("group") * steps + place.cast("int"))


def _words(text: str) -> Column:
    """The words of a text as an array that is the same in every row: one literal, whatever their number."""
    return F.split(F.lit(text), " ")


def _codes(draw: Draws) -> Column:
    """The ordinary diagnoses, distinct, at least one."""
    counts = [count for group in EPISODES.values() for count in group]
    size = len(next(iter(EPISODES.values())))
    episodes = F.get(constants(counts), F.col("group") * size + draw.below("row", "episodes", size))
    codes = F.flatten(F.transform(F.sequence(F.lit(1), episodes), _episode))
    return F.slice(F.array_distinct(codes), 1, MOST_CODES)


def _episode(at: Column) -> Column:
    """A diagnosis, frequent ones likelier, and those of its companions that the patient has."""
    word = F.xxhash64("own episode", at)
    # a product of four uniform numbers: one code in eight is the most frequent one
    parts = (F.pmod(F.shiftrightunsigned(word, 16 * part), F.lit(UNIT)) / UNIT for part in range(4))
    code = _step(F.floor(reduce(mul, parts) * _ladders()[1]))
    along = F.get(constants(COMPANIONS), F.pmod(F.xxhash64("own along", at), F.lit(len(COMPANIONS))).cast("int"))
    others = F.slice(F.array(*(_companion(code, number) for number in range(max(COMPANIONS)))), 1, along)
    return F.concat(F.array(code), others)


def _companion(code: Column, number: int) -> Column:
    """A diagnosis that goes with another: always the same ones, from the more frequent quarter at that age."""
    return _step(F.pmod(F.xxhash64("all along", code, F.lit(number)), F.lit(_ladders()[1] // 4)))


def _diagnoses(draw: Draws, has_items: Column) -> Column:
    sensitive = [
        F.when(draw.chance("row", f"code {code}", share), F.array(F.lit(code))).otherwise(_none())
        for code, share in SENSITIVE_DIAGNOSES.items()
    ]
    return F.when(has_items, F.sort_array(F.concat("codes", *sensitive))).otherwise(_none())


def _medications(has_items: Column) -> Column:
    """The medications: about every second diagnosis has that of its block. Sensitive diagnoses have none."""
    taken = F.filter("codes", lambda code: F.pmod(F.xxhash64("own taken", code), F.lit(100)) < 45)
    number = len(MEDICATIONS.split())
    which = F.transform(taken, lambda code: F.pmod(F.xxhash64("all drug", F.substring(code, 1, 2)), F.lit(number)))
    drugs = F.transform(which, lambda drug: F.get(_words(MEDICATIONS), drug.cast("int")))
    return F.when(has_items, F.sort_array(F.array_distinct(drugs))).otherwise(_none())


def _none() -> Column:
    return F.array().cast("array<string>")


def _birth_year(draw: Draws) -> Column:
    weights = {
        year: 6 if year < 1930 else 12 if year < 1950 else 16 if year < 1970 else 14 for year in range(1920, 2006)
    }
    return draw.pick("row", "birth year", weights)


def _race(draw: Draws) -> Column:
    usual = shares("White 780, Black 150, Asian 40, Native 10, Several 15, Pacific 5")
    young = shares("White 700, Black 190, Asian 50, Native 15, Several 38, Pacific 7")
    return draw.pick("row", "race", usual, (F.col("birth_year") > 1970, young))


def _education(draw: Draws) -> Column:
    """Years of school: limited by age for children, else mostly 12 or 16."""
    year = F.col("birth_year")
    grown = shares("12 330, 16 150, 14 110, 13 80, 17 80, 11 60, 10 55, 15 45, 9 35, 8 30, 6 12, 7 8, 5 5")
    aged = shares("12 320, 8 130, 10 90, 16 90, 9 60, 11 60, 14 60, 17 50, 13 40, 7 40, 6 40, 5 20")
    finished = draw.pick("row", "education", grown, (year < 1940, aged)).cast("int")
    at_school = F.greatest(F.lit(0), 2005 - year - 6 - draw.below("row", "late", 2))
    return F.when(year > 1987, F.least(at_school, F.lit(12))).otherwise(finished).cast("int")


def _income(draw: Draws) -> Column:
    """Whole units, skewed, more with schooling, nothing for children and one in twelve others."""
    word = draw.word("row", "income")
    first, second = (F.pmod(F.shiftrightunsigned(word, 16 * part), F.lit(UNIT)) / UNIT for part in range(2))
    earned = (3_000 + 5_000 * F.col("education") * (0.2 + first) * (0.1 + second * second)).cast("int")
    nothing = (F.col("birth_year") > 1987) | (draw.below("row", "no income", 12) == 0)
    return F.when(nothing, 0).otherwise(F.least(earned, F.lit(DOMAINS["income"][1])))


def _name(draw: Draws) -> Column:
    first = draw.one_of("row", "first", (*FEMALE.split(), *MALE.split()))
    return F.concat_ws(" ", first, draw.one_of("row", "family", FAMILY.split()))
