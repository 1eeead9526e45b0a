"""A synthetic census of the shape of UCI Adult, and the eight hierarchies of the POkA regression as code.

The people are drawn, not copied: marginals and dependencies (age → marital status, country → race, education → salary)
are rounded, made-up weights that resemble Adult's. Distinct tuples of the eight quasi-identifiers grow far more slowly
than rows: 13 thousand in 30 thousand rows, 127 thousand in a million, 464 thousand in ten million.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.samples.draws import Draws, constants, first_of, shares

QUASI_IDENTIFIERS = ("age", "workclass", "education", "marital", "race", "sex", "country", "salary")
COLUMNS = (
    "person_id", "name", "age", "workclass", "education", "education_num", "marital", "race", "sex", "country",
    "salary", "disease", "weight",
)  # fmt: skip
NULLABLE = ("age", "workclass", "country")  # the columns that `nulls` thins out

# A hierarchy: the labels above a group of leaves, nearest first → the leaves, separated by spaces.
Groups = Mapping[tuple[str, ...], str]
WORKCLASS: Groups = {
    ("Private", "Non-government"): "Private",
    ("Self-employed", "Non-government"): "Self-emp-not-inc Self-emp-inc",
    ("Government", "Government"): "Federal-gov Local-gov State-gov",
    ("Unpaid", "Unpaid"): "Without-pay",
}
EDUCATION: Groups = {  # "College", not "Some-college": that is the name of a leaf
    ("Primary", "Below-HS"): "Preschool 1st-4th 5th-6th 7th-8th",
    ("Some-secondary", "Below-HS"): "9th 10th 11th 12th",
    ("HS-grad", "HS-or-college"): "HS-grad",
    ("College", "HS-or-college"): "Some-college Assoc-voc Assoc-acdm",
    ("Bachelors", "Degree"): "Bachelors",
    ("Graduate", "Degree"): "Masters Prof-school Doctorate",
}
MARITAL: Groups = {
    ("Married", "Married"): "Married-civ-spouse Married-AF-spouse Married-spouse-absent",
    ("Formerly", "Not-married"): "Divorced Separated Widowed",
    ("Never", "Not-married"): "Never-married",
}
COUNTRY: Groups = {
    ("North-America", "America", "America"): "United-States Canada Outlying-US(Guam-USVI-etc)",
    ("Central-America", "America", "America"): "Mexico Guatemala Honduras El-Salvador Nicaragua",
    ("Caribbean", "America", "America"): "Puerto-Rico Cuba Jamaica Dominican-Republic Haiti Trinadad&Tobago",
    ("South-America", "America", "America"): "Columbia Ecuador Peru",
    ("West-Europe", "Europe", "Other"): "England Scotland Ireland France Germany Holand-Netherlands",
    ("South-Europe", "Europe", "Other"): "Italy Portugal Greece",
    ("East-Europe", "Europe", "Other"): "Poland Hungary Yugoslavia",
    ("East-Asia", "Asia", "Other"): "China Taiwan Hong Japan",
    ("South-East-Asia", "Asia", "Other"): "Philippines Vietnam Thailand Cambodia Laos",
    ("South-West-Asia", "Asia", "Other"): "India Iran",
    ("Unknown", "Unknown", "Other"): "South",
}
RACE: Groups = {(): "White Black Asian-Pac-Islander Amer-Indian-Eskimo Other"}
SEX: Groups = {(): "Male Female"}
SALARY: Groups = {(): "<=50K >50K"}

AGES = [(17, 0), (20, 5000), (28, 20000), (37, 25000), (47, 25000), (62, 20000), (74, 4000), (84, 900), (91, 100)]
HOMES = shares(
    "United-States 9100, Mexico 200, Philippines 62, Germany 43, Puerto-Rico 36, Canada 35, India 34, El-Salvador 33,"
    "Cuba 31, England 29, Jamaica 27, South 24, Italy 23, China 23, Dominican-Republic 22, Vietnam 21, Guatemala 21,"
    "Japan 20, Poland 19, Columbia 18, Iran 14, Taiwan 14, Haiti 14, Portugal 11, Nicaragua 11, Peru 10, Greece 10,"
    "Ecuador 9, France 9, Ireland 8, Hong 6, Cambodia 6, Trinadad&Tobago 6, Thailand 6, Laos 6, Yugoslavia 5,"
    "Outlying-US(Guam-USVI-etc) 5, Hungary 4, Honduras 4, Scotland 4, Holand-Netherlands 1"
)
SCHOOLING = shares(
    "HS-grad 330, Some-college 220, Bachelors 170, Masters 55, Assoc-voc 43, 11th 34, Assoc-acdm 33, 10th 27,"
    "7th-8th 18, Prof-school 18, 9th 15, 12th 12, Doctorate 12, 5th-6th 9, 1st-4th 3, Preschool 1"
)
DISEASES = shares(
    "none 500, hypertension 150, back pain 90, asthma 70, depression 65, diabetes 60, migraine 35, hepatitis 12,"
    "cancer 12, HIV 6"
)
FEMALE = "Ada Bea Clara Dora Elsa Fay Gina Hope Ida June Kim Lena Mona Nora Olga Pia Rosa Sara Tess Vera"
MALE = "Abel Ben Carl Dean Ernst Finn Gus Hugo Ivan Jack Karl Liam Max Ned Omar Paul Rolf Sam Tom Victor"
FAMILY = "Abbott Baker Castro Dietz Evans Fischer Garcia Hansen Ito Jansen Keller Lopez Meyer Novak Owens Petrov Quinn"


def census_hierarchies() -> dict[str, Hierarchy]:
    """The hierarchies of the eight quasi-identifiers, heights 6, 3, 3, 3, 1, 1, 4, 1: a lattice of 17,920 nodes."""
    age = Hierarchy.intervals(17, 90, [3, 6, 12, 24, 48])
    groups = (WORKCLASS, EDUCATION, MARITAL, RACE, SEX, COUNTRY, SALARY)
    return {"age": age} | {
        name: Hierarchy.from_levels([(leaf, *above, "*") for above, leaves in tree.items() for leaf in leaves.split()])
        for name, tree in zip(QUASI_IDENTIFIERS[1:], groups, strict=True)
    }


def census(
    spark: SparkSession,
    rows: int,
    seed: int = 1,
    *,
    nulls: float = 0.0,
    repeat_persons: float = 0.0,
    partitions: int | None = None,
) -> DataFrame:
    """A table of `rows` invented answers with the columns COLUMNS; `disease` is sensitive, `weight` a number to keep.

    `nulls`: share of nulls in each column of NULLABLE. `repeat_persons`: share of rows given by a person of the first
    quarter of the table so far: same name, age, sex, country, race and education, everything else drawn anew.
    Guarantee: a row depends on its number, `seed`, `nulls` and `repeat_persons` alone, so partitions do not matter
    and a longer table begins with the shorter one. Cost: built-in expressions over a range; no shuffle, no action.
    """
    for name, share in {"nulls": nulls, "repeat_persons": repeat_persons}.items():
        if not 0 <= share < 1:
            raise ConfigurationError(f"census: {name} must be at least 0 and below 1.")
    if rows < 0:
        raise ConfigurationError("census: rows must not be negative.")
    draw = Draws(seed)
    # 1. the person of the answer
    table = spark.range(0, rows, 1, partitions).withColumnRenamed("id", "row")
    table = table.withColumn("person", _person(draw, repeat_persons))
    # 2. columns of the person; a step reads only columns of the steps before it
    table = table.withColumns(
        {"age": _age(draw), "sex": draw.pick("person", "sex", {"Male": 675, "Female": 325})}
        | {"country": draw.pick("person", "country", HOMES), "person_id": 1_000_000 + F.col("person")}
    )
    table = table.withColumns({"race": _race(draw), "education": _education(draw), "name": _name(draw)})
    # 3. columns of the answer
    table = table.withColumns(
        {"marital": _marital(draw), "education_num": _education_num(), "disease": _disease(draw)}
        | {"weight": _weight(draw)}
    )
    table = table.withColumns({"workclass": _workclass(draw), "salary": _salary(draw)})
    # 4. nulls
    for name in NULLABLE if nulls else ():
        table = table.withColumn(name, F.when(~draw.chance("row", f"no {name}", nulls), F.col(name)))
    return table.select(*COLUMNS)


def _person(draw: Draws, repeated: float) -> Column:
    earlier = F.pmod(draw.word("row", "person"), F.greatest(F.expr("row div 4"), F.lit(1)))
    return F.when(draw.chance("row", "again", repeated), earlier).otherwise(F.col("row")) if repeated else F.col("row")


def _age(draw: Draws) -> Column:
    """Age, uniform between the points of AGES: (age, how many of 100,000 since the point before)."""
    pieces = [(low, high, share // (high - low)) for (low, _), (high, share) in pairwise(AGES)]
    return draw.pick("person", "age", {age: weight for low, high, weight in pieces for age in range(low, high)})


def _race(draw: Draws) -> Column:
    country = F.col("country")
    return draw.pick(
        "person",
        "race",
        shares("White 97, Black 2, Other 1"),
        (
            country == "United-States",
            shares("White 876, Black 98, Asian-Pac-Islander 10, Amer-Indian-Eskimo 11, Other 5"),
        ),
        (country.isin("Jamaica", "Haiti", "Trinadad&Tobago"), shares("Black 96, White 3, Other 1")),
        (country.isin(*_countries("Asia"), "South"), shares("Asian-Pac-Islander 94, White 4, Other 2")),
        (country.isin(*_countries("America")), shares("White 85, Other 10, Black 4, Amer-Indian-Eskimo 1")),
    )


def _countries(region: str) -> list[str]:
    return [leaf for above, leaves in COUNTRY.items() if region in above for leaf in leaves.split()]


def _education(draw: Draws) -> Column:
    age = F.col("age")
    central = shares(
        "HS-grad 26, 5th-6th 22, Some-college 12, 1st-4th 11, 9th 11, 7th-8th 11, Bachelors 5, Preschool 2"
    )
    twenties = shares("HS-grad 38, Some-college 38, Bachelors 10, 11th 4, Assoc-voc 4, Assoc-acdm 3, 10th 2, 9th 1")
    return draw.pick(
        "person",
        "education",
        SCHOOLING,
        (age < 20, shares("HS-grad 38, Some-college 32, 11th 15, 12th 6, 10th 7, 9th 2")),
        (age < 25, twenties),
        (F.col("country").isin(*_countries("Central-America")), central),
        (age >= 60, SCHOOLING | shares("7th-8th 90, 10th 45, 5th-6th 25, 1st-4th 10, Bachelors 130")),
    )


def _education_num() -> Column:
    """1 for Preschool up to 16 for Doctorate, in the order of EDUCATION."""
    ladder = [leaf for leaves in EDUCATION.values() for leaf in leaves.split()]
    return F.array_position(constants(ladder), F.col("education")).cast("int")


def _name(draw: Draws) -> Column:
    female, male = (draw.one_of("person", "first", names.split()) for names in (FEMALE, MALE))
    first = F.when(F.col("sex") == "Female", female).otherwise(male)
    return F.concat_ws(" ", first, draw.one_of("person", "family", FAMILY.split()))


def _marital(draw: Draws) -> Column:
    age, female = F.col("age"), F.col("sex") == "Female"
    return draw.pick(
        "row",
        "marital",
        _marital_shares(800, 40, 70, 15, 60),
        (age < 22, _marital_shares(30, 940, 8, 6, 1)),
        (age < 28, _marital_shares(270, 620, 60, 30, 2)),
        (female & (age < 60), _marital_shares(270, 200, 360, 80, 60)),
        (female, _marital_shares(260, 70, 220, 30, 400)),
        (age < 40, _marital_shares(680, 200, 85, 20, 2)),
        (age < 60, _marital_shares(810, 55, 100, 18, 6)),
    )


def _marital_shares(married: int, never: int, divorced: int, separated: int, widowed: int) -> dict[str, int]:
    rare = {"Separated": separated, "Widowed": widowed, "Married-spouse-absent": 12, "Married-AF-spouse": 1}
    return {"Married-civ-spouse": married, "Never-married": never, "Divorced": divorced} | rare


def _workclass(draw: Draws) -> Column:
    step = F.col("education_num")
    usual = (
        "Private 790, Self-emp-not-inc 90, Local-gov 40, State-gov 30, Self-emp-inc 25, Federal-gov 25, Without-pay 1"
    )
    young = "Private 920, State-gov 35, Local-gov 25, Self-emp-not-inc 15, Federal-gov 5, Without-pay 1"
    bachelor = "Private 68, Local-gov 10, State-gov 6, Self-emp-not-inc 7, Self-emp-inc 5, Federal-gov 4"
    graduate = "Private 52, Local-gov 17, State-gov 11, Self-emp-not-inc 9, Self-emp-inc 6, Federal-gov 5"
    cases = [(F.col("age") < 25, shares(young)), (step > 13, shares(graduate)), (step == 13, shares(bachelor))]
    return draw.pick("row", "workclass", shares(usual), *cases)


def _salary(draw: Draws) -> Column:
    """Salary class, in percent by education, higher for the married, never high for the young."""
    step = F.col("education_num")
    ladder = [(step < 9, F.lit(5)), (step < 10, F.lit(18)), (step < 13, F.lit(28)), (step < 14, F.lit(50))]
    schooling = first_of(ladder, F.lit(65))
    percent = F.when(F.col("marital") == "Married-civ-spouse", schooling + 20).otherwise(schooling / 6)
    return F.when((F.col("age") >= 25) & (draw.below("row", "salary", 100) < percent), ">50K").otherwise("<=50K")


def _disease(draw: Draws) -> Column:
    aged = DISEASES | shares("none 250, hypertension 300, diabetes 120, cancer 40")
    return draw.pick("row", "disease", DISEASES, (F.col("age") >= 55, aged))


def _weight(draw: Draws) -> Column:
    """How many inhabitants the answer stands for, in whole hundreds."""
    return 12_000 + 100 * (draw.below("row", "weight", 1800) + draw.below("row", "weight 2", 1800))
