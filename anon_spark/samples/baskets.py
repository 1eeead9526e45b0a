"""Synthetic market baskets of the shape of T10I4D100K: sets of about 10 of 870 items, put together from patterns.

A basket is the union of a few patterns of about 4 items, some items left out. Patterns are drawn with the exponential
weights of the well-known generator: the product of two uniform numbers has that density. Every second item of a pattern
is shared with another pattern. There are as many patterns as items; none is stored, because the items of a pattern are
hashes of its number.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.samples.draws import Draws, constants, shares

COLUMNS = ("person_id", "items", "religion")
UNIVERSE = 870
RELIGIONS = shares(
    "Anglican 9, Bahai 3, Baptist 9, Buddhist 7, Catholic 10, Hindu 7, Jain 3, Jewish 6, Lutheran 8, Mennonite 3,"
    "Methodist 7, Muslim 8, none 8, Orthodox 6, Quaker 3, Shinto 3"
)
PATTERN_COUNTS = (1, 2, 2, 3, 3, 3, 4, 4, 4, 5)  # patterns of a basket, one of these
PATTERN_SIZES = (1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 7, 8)  # items of a pattern
UNIT = 1 << 20  # fractions are whole numbers below this


def baskets(
    spark: SparkSession,
    rows: int,
    seed: int = 1,
    *,
    universe: int = UNIVERSE,
    empty: float = 0.0,
    partitions: int | None = None,
) -> DataFrame:
    """A table of `rows` invented baskets with the columns COLUMNS; `religion` is sensitive, no value above 10 %.

    universe: the number of items (also 100,000). empty: share of the baskets without items.
    Guarantee: a row depends on its number and on `seed`, `universe` and `empty` alone, so partitions do not matter and a
    longer table begins with the shorter one. Items are distinct and sorted.
    Cost: built-in expressions over a range; no shuffle, no action; a million rows in some ten seconds of one core.
    """
    if not 0 <= empty < 1:
        raise ConfigurationError("baskets: empty must be at least 0 and below 1.")
    if rows < 0:
        raise ConfigurationError("baskets: rows must not be negative.")
    if universe < 1:
        raise ConfigurationError("baskets: universe must be at least 1.")
    draw = Draws(seed)
    table = spark.range(0, rows, 1, partitions).withColumnRenamed("id", "row").withColumn("world", F.lit(0))
    # 1. draws of the row, and draws of the world, from which patterns are made
    streams = {f"own {purpose}": draw.word("row", purpose) for purpose in ("pattern", "kept")}
    streams |= {f"all {purpose}": draw.word("world", purpose) for purpose in ("size", "care", "item")}
    count = F.get(constants(PATTERN_COUNTS), draw.below("row", "patterns", len(PATTERN_COUNTS)))
    table = table.withColumns(streams | {"count": count})
    # 2. patterns, then their items
    table = table.withColumn("patterns", F.transform(F.sequence(F.lit(1), "count"), lambda at: _pattern(at, universe)))
    numbers = F.flatten(F.transform("patterns", lambda pattern, at: _items(pattern, at, universe)))
    first = 10 ** len(str(universe - 1))  # names of one length sort like numbers
    items = F.transform(
        F.sort_array(F.array_distinct(numbers)), lambda item: F.concat(F.lit("item "), (item + first).cast("string"))
    )
    if empty:
        items = F.when(draw.chance("row", "empty", empty), F.array().cast("array<string>")).otherwise(items)
    return table.select(
        (1_000_000 + F.col("row")).alias("person_id"),
        items.alias("items"),
        draw.pick("row", "religion", RELIGIONS).alias("religion"),
    )


def _pattern(at: Column, universe: int) -> Column:
    """The number of the at-th pattern of a basket, below `universe`: small ones are likelier."""
    word = F.xxhash64("own pattern", at)
    first, second = F.pmod(word, F.lit(UNIT)), F.pmod(F.shiftrightunsigned(word, 32), F.lit(UNIT))
    return F.floor(first * second * (universe / UNIT**2)).cast("int")


def _items(pattern: Column, at: Column, universe: int) -> Column:
    """The items of a pattern that a basket takes: the first of the first one always, so that no basket is empty."""
    size = F.get(
        constants(PATTERN_SIZES), F.pmod(F.xxhash64("all size", pattern), F.lit(len(PATTERN_SIZES))).cast("int")
    )
    care = 57 + F.pmod(F.xxhash64("all care", pattern), F.lit(40))  # percentage of its items that a basket keeps
    places = F.filter(
        F.sequence(F.lit(0), size - 1),
        lambda place: (at + place == 0) | (F.pmod(F.xxhash64("own kept", at, place), F.lit(100)) < care),
    )
    return F.transform(places, lambda place: _item(pattern, place, universe))


def _item(pattern: Column, place: Column, universe: int) -> Column:
    """The number of an item; at odd places patterns 2i and 2i + 1 have the same."""
    owner = F.when(place % 2 == 1, -1 - F.shiftright(pattern, 1)).otherwise(pattern)
    return F.pmod(F.xxhash64("all item", owner, place), F.lit(universe))
