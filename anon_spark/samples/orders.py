"""Synthetic customers with nested orders, of the shape of TPC-H: one or two orders each, of one to three items.

Nation, month and price of an order, manufacturer, brand and quantity of an item: 276 values on four levels of nesting. Unlike
TPC-H, some values are more frequent than others, later months have more orders, a customer has a favourite manufacturer, and an
order's price follows its quantities.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NodeType, TreeSchema
from anon_spark.samples.census import FAMILY, FEMALE, MALE
from anon_spark.samples.draws import Draws, constants, shares

COLUMNS = ("customer_id", "name", "nation", "orders")
ORDER_SCHEMA = TreeSchema((
    NodeType("nation", "nation"),
    NodeType("month", "orders.month", "nation"),
    NodeType("price", "orders.price", "month"),
    NodeType("manufacturer", "orders.items.manufacturer", "month"),
    NodeType("brand", "orders.items.brand", "manufacturer"),
    NodeType("quantity", "orders.items.quantity", "manufacturer"),
))  # fmt: skip
REGIONS = {  # with the share of each nation
    "Africa": shares("Algeria 25, Egypt 50, Ethiopia 30, Kenya 35, Nigeria 80"),
    "America": shares("Argentina 35, Brazil 70, Canada 45, Mexico 60, United States 120"),
    "Asia": shares("China 110, India 90, Indonesia 45, Japan 60, Vietnam 40"),
    "Europe": shares("France 50, Germany 65, Italy 45, Poland 30, Spain 40"),
    "Middle East": shares("Iran 30, Iraq 20, Israel 15, Jordan 10, Turkey 35"),
}
MONTHS, PRICES, QUANTITIES = 80, 91, 50  # months from 0, bins of the price from 0, quantities from 1
LIKELY = (1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5)  # a manufacturer, or a brand of it, one of these
FAITHFUL = 45  # of a hundred items are of the customer's favourite manufacturer
UNIT = 1 << 16  # fractions are whole numbers below this


def order_hierarchies() -> dict[str, Hierarchy]:
    """The hierarchy of each node type of ORDER_SCHEMA: five consecutive values, or groups of them, form a group."""
    brands = [(f"Brand#{made}{brand}", f"Brand#{made}x", "*") for made in range(1, 6) for brand in range(1, 6)]
    return {
        "nation": Hierarchy.from_levels([(nation, region, "*") for region in REGIONS for nation in REGIONS[region]]),
        "month": Hierarchy.intervals(0, MONTHS - 1, [5, 25]),
        "price": Hierarchy.intervals(0, PRICES - 1, [5, 25]),
        "manufacturer": Hierarchy.from_levels([(f"Manufacturer#{made}", "*") for made in range(1, 6)]),
        "brand": Hierarchy.from_levels(brands),
        "quantity": Hierarchy.intervals(1, QUANTITIES, [5, 25]),
    }


def orders(spark: SparkSession, rows: int, seed: int = 1, *, partitions: int | None = None) -> DataFrame:
    """A table of `rows` invented customers with the columns COLUMNS.

    `orders` is array<struct<month, price, items: array<struct<manufacturer, brand, quantity>>>>; nothing is empty or null.
    Guarantee: a row depends on its number and on `seed` alone, so partitions do not matter and a longer table begins with
    the shorter one. Cost: built-in expressions over a range; no shuffle, no action.
    """
    if rows < 0:
        raise ConfigurationError("orders: rows must not be negative.")
    draw = Draws(seed)
    table = spark.range(0, rows, 1, partitions).withColumnRenamed("id", "row")
    # 1. draws of the customer
    nations = {nation: share for region in REGIONS.values() for nation, share in region.items()}
    first = draw.one_of("row", "first", (*FEMALE.split(), *MALE.split()))
    table = table.withColumns(
        {"nation": draw.pick("row", "nation", nations), "count": 1 + draw.below("row", "orders", 2)}
        | {"name": F.concat_ws(" ", first, draw.one_of("row", "family", FAMILY.split()))}
        | {"favourite": _likely(draw.word("row", "favourite"))}
        | {f"own {purpose}": draw.word("row", purpose) for purpose in ("order", "item", "price")}
    )
    # 2. orders with their items, then prices
    table = table.withColumn("bought", F.transform(F.sequence(F.lit(1), "count"), _order))
    table = table.withColumn("orders", F.transform("bought", _priced))
    return table.withColumn("customer_id", 1_000_000 + F.col("row")).select(*COLUMNS)


def order_tables(
    spark: SparkSession, rows: int, seed: int = 1, *, partitions: int | None = None
) -> dict[str, DataFrame]:
    """The same as three flat tables: `customers` (customer_id), `orders` (order_id, customer_id), `items` (order_id)."""
    nested = orders(spark, rows, seed, partitions=partitions)
    exploded = nested.select("customer_id", F.posexplode("orders").alias("place", "order"))
    placed = exploded.select((10 * F.col("customer_id") + F.col("place")).alias("order_id"), "customer_id", "order.*")
    items = placed.select("order_id", F.explode("items").alias("item")).select("order_id", "item.*")
    return {"customers": nested.drop("orders"), "orders": placed.drop("items"), "items": items}


def _order(at: Column) -> Column:
    """Number, month and items of an order; every second one comes later than it would by chance."""
    word = F.xxhash64("own order", at)
    first, second = (_part(word, part) for part in range(2))
    when = F.when(_part(word, 2) % 2 == 0, first).otherwise(F.greatest(first, second))
    count = 1 + _part(word, 3) % 3
    items = F.transform(F.sequence(F.lit(1), count.cast("int")), lambda line: _item(at, line))
    return F.struct(at.alias("at"), _below(when, MONTHS).alias("month"), items.alias("items"))


def _item(at: Column, line: Column) -> Column:
    """An item; every second one is bought in smaller quantity than by chance."""
    word = F.xxhash64("own item", at, line)
    taste, first, second, rest = (_part(word, part) for part in range(4))
    made = F.when(taste % 100 < FAITHFUL, F.col("favourite")).otherwise(_likely(F.xxhash64(word)))
    few = F.when(rest % 2 == 0, first).otherwise(F.least(first, second))
    brand = F.concat(F.lit("Brand#"), made.cast("string"), _likely(F.shiftright(rest, 1)).cast("string"))
    return F.struct(
        F.concat(F.lit("Manufacturer#"), made.cast("string")).alias("manufacturer"),
        brand.alias("brand"),
        (1 + _below(few, QUANTITIES)).alias("quantity"),
    )


def _priced(order: Column) -> Column:
    """The order with its price: 0.3 to 1.2 bins per piece, at most the last bin."""
    pieces = F.aggregate(order["items"], F.lit(0), lambda total, item: total + item["quantity"])
    unit_price = 300 + F.pmod(F.xxhash64("own price", order["at"]), F.lit(900))
    price = F.least(F.floor(pieces * unit_price / 1000), F.lit(PRICES - 1)).cast("int")
    return F.struct(order["month"].alias("month"), price.alias("price"), order["items"].alias("items"))


def _part(word: Column, part: int) -> Column:
    """16 of the 64 bits of a word."""
    return F.pmod(F.shiftrightunsigned(word, 16 * part), F.lit(UNIT))


def _below(part: Column, bound: int) -> Column:
    """An integer from 0 to bound - 1 that grows with the part."""
    return F.shiftright(part * bound, 16).cast("int")


def _likely(word: Column) -> Column:
    return F.get(constants(LIKELY), F.pmod(word, F.lit(len(LIKELY))).cast("int"))
