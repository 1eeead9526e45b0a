"""Tables at the edge of what the families of quasi-identifiers take: all rows equal, one node, a budget for nearly everything."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark import Hierarchy, LatticeAnonymizer, LatticeRecoding, MstAnonymizer
from anon_spark.errors import DataError, GuaranteeUnreachable

LETTERS = Hierarchy.from_levels([("a", "vowel", "*"), ("e", "vowel", "*"), ("b", "consonant", "*"), ("c", "consonant", "*")])
ONE_VALUE = Hierarchy.from_levels([("x",)])
SEARCHES = ["front", "one k"]


def table(spark: SparkSession, letters: str, label: list[str] | None = None) -> DataFrame:
    count = len(letters)
    columns = {"letter": list(letters), "same": ["x"] * count, "label": label or ["l"] * count}
    return spark.createDataFrame(pa.table(columns))


@pytest.fixture(params=SEARCHES)
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The search for the front, and the one that takes its place where there are too many nodes."""
    if request.param == "one k":
        monkeypatch.setattr("anon_spark.model.lattice.MOST_NODES", 0)
    return str(request.param)


def lattice(df: DataFrame, k: int, suppression: float = 0.0, **hierarchies: Hierarchy) -> LatticeRecoding:
    return LatticeAnonymizer(k=k, quasi_identifiers=hierarchies, suppression=suppression).fit(df)


def test_all_rows_equal(spark: SparkSession, search: str) -> None:
    df = table(spark, "a" * 9)
    found = lattice(df, 9, letter=LETTERS, same=ONE_VALUE)
    assert (found.node, found.loss, found.chosen.suppressed) == ((0, 0), 0, 0)
    with pytest.raises((DataError, GuaranteeUnreachable)):
        lattice(df, 10, letter=LETTERS, same=ONE_VALUE)


def test_a_lattice_of_one_node(spark: SparkSession, search: str) -> None:
    found = lattice(table(spark, "abc"), 3, same=ONE_VALUE)
    assert (found.node, found.loss, found.chosen.classes) == ((0,), 0, 1)


def test_a_budget_for_nearly_everything(spark: SparkSession, search: str) -> None:
    """Nine of ten rows may go: a row that is left out costs 1, so only the letter that is alone goes."""
    df = table(spark, "aaaaaeeeeb")
    found = lattice(df, 4, 0.9, letter=LETTERS)
    assert (found.node, found.chosen.suppressed, found.loss) == ((0,), 1, 0.1)
    assert lattice(df, 4, 0.0, letter=LETTERS).node == (2,)


def test_the_same_of_a_local_recoding(spark: SparkSession) -> None:
    same = MstAnonymizer(k=9, quasi_identifiers={"letter": LETTERS, "same": ONE_VALUE}).fit(table(spark, "a" * 9))
    assert same.classes == [["a", "x"]] and same.measured().measures.glm == 0
    odd = MstAnonymizer(k=4, quasi_identifiers={"letter": LETTERS}, suppression=0.9).fit(table(spark, "aaaaaeeeeb"))
    assert odd.classes == [["a"], ["e"]] and odd.left_out()["suppressed"] == 1


@pytest.mark.parametrize("suppression", [0.0, 0.5])
def test_l_above_what_the_table_has(spark: SparkSession, suppression: float) -> None:
    df = table(spark, "aabbcc", ["flu", "cold"] * 3)
    with pytest.raises(DataError, match=r"Column label has 2 distinct values, l = 3 asks for more\. Lower l\."):
        MstAnonymizer(
            k=3, l=3, quasi_identifiers={"letter": LETTERS}, sensitive=["label"], suppression=suppression
        ).fit(df)
