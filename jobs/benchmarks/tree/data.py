"""Customers as nested records for benchmark and reproduction: of TPC-H where its generator is installed, else synthetic.

nation → month → {price, manufacturer → {brand, quantity}}; a customer keeps one or two orders, an order one to three items.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.samples.orders import COLUMNS, PRICES, order_hierarchies, orders

COMMAND = "tpchgen-cli"
MISSING = f"{COMMAND}, which makes the TPC-H tables, is not installed: pip install 'anon-spark[benchmark]'."
TABLES = ("customer", "orders", "lineitem", "part", "nation")
TPCH, SYNTHETIC = "TPC-H customers", "synthetic customers"
PER_STEP, STEP = 10_000, 0.1  # customers with orders for each step of the scale factor, but for a few
SEED = 1
FIRST_CUSTOMER = 1_000_000  # of the synthetic ones
MOST_ORDERS, MOST_ITEMS = 2, 3
PRICE_WIDTH = 6_000
FIRST_YEAR = 1992
FANOUT = 5
PLACE = "place"  # of a customer in an order by hash: any first ones are a sample
NATIONS = (  # by key
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ",
    "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM", "RUSSIA",
    "UNITED KINGDOM", "UNITED STATES",
)  # fmt: skip


@dataclass(frozen=True)
class Customers:
    """A stored table of nested customers; the smaller samples are contained in the larger ones."""

    name: str
    hierarchies: Mapping[str, Hierarchy]
    path: Path

    def frame(self, spark: SparkSession, records: int) -> DataFrame:
        """So many customers, or all where there are fewer: the columns of `samples.orders`."""
        return spark.read.parquet(str(self.path)).where(F.col(PLACE) < records).select(*COLUMNS)


def customers(spark: SparkSession, most: int, folder: Path) -> Customers:
    """A table of `most` customers, taken from the folder if it was made before; says what it does. Cost of TPC-H: see `tpch`."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        generator = generator_path()
    except ConfigurationError as error:
        print(f"{error} Taking {SYNTHETIC}.", flush=True)
        return stored(SYNTHETIC, order_hierarchies(), folder / f"orders_{most}", lambda: synthetic(spark, most))
    scale = scale_factor(most)
    with tempfile.TemporaryDirectory(dir=folder) as room:
        return stored(
            TPCH,
            tpch_hierarchies(),
            folder / f"tpch_{scale:g}",
            lambda: tpch(spark, generated(generator, scale, Path(room))),
        )


def stored(name: str, hierarchies: Mapping[str, Hierarchy], path: Path, make: Callable[[], DataFrame]) -> Customers:
    """The table as Parquet files, made if it is not there whole."""
    if not (path / "_SUCCESS").exists():
        print(f"making {path.name}", flush=True)
        make().write.mode("overwrite").parquet(str(path))
    return Customers(name, hierarchies, path)


def synthetic(spark: SparkSession, most: int) -> DataFrame:
    """The library's own customers; a longer table begins with the shorter one."""
    table = orders(spark, most)
    return table.withColumn(PLACE, F.col("customer_id") - FIRST_CUSTOMER)


@contextmanager
def kept_tables(folder: Path | None) -> Iterator[Path]:
    """The folder for tables, or a temporary one that is removed in the end."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as room:
        yield Path(room)


# --- TPC-H ---------------------------------------------------------------------------------------------------------------


def generator_path() -> Path:
    """The command that makes TPC-H tables, of this environment or on the path. Raises ConfigurationError."""
    found = shutil.which(COMMAND, path=str(Path(sys.executable).parent)) or shutil.which(COMMAND)
    if found is None:
        raise ConfigurationError(MISSING)
    return Path(found)


def scale_factor(records: int) -> float:
    """The least one with so many customers that have orders, but for a few (scale factor 1 has 99,996)."""
    return round(STEP * max(1, ceil(records / PER_STEP)), 1)


def generated(generator: Path, scale: float, folder: Path) -> Path:
    """The tables as Parquet files in the folder. Cost: 300 MB and some 12 s of a core for scale factor 1."""
    print(f"generating TPC-H, scale factor {scale:g}", flush=True)
    command = [generator, "parquet", "-s", f"{scale:g}", "-T", ",".join(TABLES), "-o", folder, "--quiet"]
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL)
    return folder


def tpch(spark: SparkSession, folder: Path) -> DataFrame:
    """Nested customers with PLACE, from TPC-H's flat tables; customers without orders are left out.

    By a hash of its key a customer keeps its first one or two orders, an order its first one to three items.
    Cost: every table is read once; the kept orders, some 100 bytes each, go to all tasks, and only their items are shuffled.
    """
    read = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in TABLES}
    # 1. orders that are kept
    of_customer = Window.partitionBy("o_custkey").orderBy("o_orderkey")
    kept = (
        read["orders"]
        .select("o_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
        .withColumn("at", F.row_number().over(of_customer))
        .where(F.col("at") <= drawn("o_custkey", MOST_ORDERS))
        .withColumn("month", 12 * (F.year("o_orderdate") - FIRST_YEAR) + F.month("o_orderdate") - 1)
        .withColumn("price", F.least(F.floor(F.col("o_totalprice") / PRICE_WIDTH), F.lit(PRICES - 1)).cast("int"))
    )
    # 2. their items
    lines = read["lineitem"].where(F.col("l_linenumber") <= MOST_ITEMS)
    lines = lines.select(F.col("l_orderkey").alias("o_orderkey"), "l_linenumber", "l_partkey", "l_quantity")
    items = lines.join(F.broadcast(kept), "o_orderkey").join(
        read["part"].select(F.col("p_partkey").alias("l_partkey"), "p_mfgr", "p_brand"), "l_partkey"
    )
    item = F.struct(
        "l_linenumber",
        F.col("p_mfgr").alias("manufacturer"),
        F.col("p_brand").alias("brand"),
        F.col("l_quantity").cast("int").alias("quantity"),
    )
    placed = items.groupBy("o_custkey", "o_orderkey", "month", "price").agg(F.array_sort(F.collect_list(item)).alias("lines"))
    # line numbers of an order begin with 1 and leave nothing out
    bought = F.transform(
        F.slice("lines", 1, drawn("o_orderkey", MOST_ITEMS)),
        lambda line: F.struct(line["manufacturer"], line["brand"], line["quantity"]),
    )
    # 3. customers
    order = F.struct("o_orderkey", "month", "price", bought.alias("items"))
    people = placed.groupBy("o_custkey").agg(F.array_sort(F.collect_list(order)).alias("orders"))
    nations = read["nation"].select(F.col("n_nationkey").alias("c_nationkey"), F.col("n_name").alias("nation"))
    named = read["customer"].select(F.col("c_custkey").alias("o_custkey"), F.col("c_name").alias("name"), "c_nationkey")
    place = F.row_number().over(Window.orderBy(F.xxhash64(F.lit(SEED), F.lit(PLACE), "o_custkey"), "o_custkey")) - 1
    samples = people.select("o_custkey").withColumn(PLACE, place)
    whole = people.join(named, "o_custkey").join(F.broadcast(nations), "c_nationkey").join(samples, "o_custkey")
    shown = F.transform("orders", lambda one: F.struct(one["month"], one["price"], one["items"]))
    return whole.select(F.col("o_custkey").alias("customer_id"), "name", "nation", shown.alias("orders"), PLACE)


def drawn(key: str, most: int) -> Column:
    """A number from 1 to `most` that depends on the key alone."""
    return (1 + F.pmod(F.xxhash64(F.lit(SEED), key), F.lit(most))).cast("int")


def tpch_hierarchies() -> dict[str, Hierarchy]:
    """As those of the synthetic customers: five consecutive values, or groups of them, make a group."""
    rows = []
    for at, name in enumerate(NATIONS):
        first = at - at % FANOUT
        rows.append((name, f"{NATIONS[first]} to {NATIONS[first + FANOUT - 1]}", "*"))
    return {**order_hierarchies(), "nation": Hierarchy.from_levels(rows)}
