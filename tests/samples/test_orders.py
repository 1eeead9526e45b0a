"""Synthetic customers with nested orders: the same table however it is cut, inside its hierarchies, of the promised shape."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError
from anon_spark.model.tree import Forest
from anon_spark.samples.orders import COLUMNS, ORDER_SCHEMA, order_hierarchies, order_tables, orders

ROWS, FEW = 4000, 30
ITEM = "struct<manufacturer:string,brand:string,quantity:int>"


def collected(table: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in table.collect()), key=lambda row: row["customer_id"])


@pytest.fixture(scope="module")
def customers(spark: SparkSession) -> list[dict[str, Any]]:
    return collected(orders(spark, ROWS, partitions=2))


def test_a_customer_depends_on_its_number_and_the_seed(spark: SparkSession, customers: list[dict[str, Any]]) -> None:
    assert collected(orders(spark, FEW, partitions=5)) == customers[:FEW]
    other = collected(orders(spark, FEW, seed=2))
    assert not any(one["orders"] == another["orders"] for one, another in zip(other, customers[:FEW], strict=True))
    with pytest.raises(ConfigurationError, match="rows"):
        orders(spark, -1)


def test_hierarchies_are_those_of_the_paper() -> None:
    hierarchies = order_hierarchies()
    assert list(hierarchies) == ORDER_SCHEMA.names
    assert {name: [h.cardinality(level) for level in range(h.height + 1)] for name, h in hierarchies.items()} == {
        "nation": [25, 5, 1],
        "month": [80, 16, 4, 1],
        "price": [91, 19, 4, 1],
        "manufacturer": [5, 1],
        "brand": [25, 5, 1],
        "quantity": [50, 10, 2, 1],
    }
    assert sum(h.leaf_count for h in hierarchies.values()) == 276
    assert Forest.of(ORDER_SCHEMA, hierarchies).height == 4


def test_shape(spark: SparkSession, customers: list[dict[str, Any]]) -> None:
    table = orders(spark, 1)
    assert tuple(table.columns) == COLUMNS
    assert dict(table.dtypes)["orders"] == f"array<struct<month:int,price:int,items:array<{ITEM}>>>"
    bought = [order for customer in customers for order in customer["orders"]]
    items = [item for order in bought for item in order["items"]]
    for sizes, most in ((Counter(len(c["orders"]) for c in customers), 2), (Counter(len(o["items"]) for o in bought), 3)):
        assert set(sizes) == set(range(1, most + 1)) and min(sizes.values()) > 0.9 * sum(sizes.values()) / most
    assert all(item["brand"][6] == item["manufacturer"][-1] for item in items)
    values = {"nation": Counter(customer["nation"] for customer in customers)}
    values |= {name: Counter(order[name] for order in bought) for name in ("month", "price")}
    values |= {name: Counter(item[name] for item in items) for name in ("manufacturer", "brand", "quantity")}
    for name, hierarchy in order_hierarchies().items():
        found = values[name]
        assert all(hierarchy.leaf_of(value) is not None for value in found), name
        assert len(found) == hierarchy.leaf_count, name
        assert 2 < max(found.values()) / min(found.values()) < 60, name  # not all alike, none lost


def test_flat_tables_hold_the_same(spark: SparkSession, customers: list[dict[str, Any]]) -> None:
    tables = order_tables(spark, FEW)
    placed, items = tables["orders"].collect(), tables["items"].collect()
    assert tables["customers"].columns == ["customer_id", "name", "nation"]
    assert len({order.order_id for order in placed}) == len(placed)
    below: dict[int, list[Any]] = {order.order_id: [] for order in placed}
    for item in items:
        below[item.order_id].append({name: item[name] for name in ("manufacturer", "brand", "quantity")})
    found: dict[int, list[Any]] = {customer["customer_id"]: [] for customer in customers[:FEW]}
    for order in placed:
        found[order.customer_id].append({"month": order.month, "price": order.price, "items": below[order.order_id]})
    assert found == {customer["customer_id"]: customer["orders"] for customer in customers[:FEW]}
