"""What needs no Spark: names of columns, hierarchies from profiles, level tables, and the form of text files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from anon_spark.cli import main
from anon_spark.errors import HierarchyError
from anon_spark.io.csv_form import csv_form
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.suggestion.cells import Leaf
from anon_spark.suggestion.hierarchies import suggested_hierarchy
from anon_spark.suggestion.profile import ColumnProfile
from anon_spark.suggestion.roles import _by_name


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("full_name", "identifier"), ("Vorname", "identifier"), ("e-mail", "identifier"), ("customerId", "identifier"),
        ("country_name", "quasi_identifier"), ("birthDate", "quasi_identifier"), ("Geburtsdatum", "quasi_identifier"),
        ("code postal", "quasi_identifier"), ("EDAD", "quasi_identifier"), ("Größe", "quasi_identifier"),
        ("diagnosis_code", "sensitive"), ("Monatsgehalt", None), ("salaire", "sensitive"), ("Bemerkungen", "free_text"),
        ("x17", None), ("drug_name", "sensitive"),
    ],
)  # fmt: skip
def test_names_say_what_columns_are(name: str, role: str | None) -> None:
    assert _by_name(name) == role


@given(
    least=st.integers(-(10**6), 10**6), span=st.integers(1, 10**7), whole=st.booleans(), part=st.integers(0, 9)
)
def test_intervals_cover_the_numbers_and_tell_no_extreme_one(least: int, span: int, whole: bool, part: int) -> None:
    low, high = (float(least), float(least + span)) if whole else (least + part / 10, least + span + part / 10)
    kind = T.IntegerType() if whole else T.DoubleType()
    column = ColumnProfile(Leaf(("x",), kind), rows=1000, distinct=500, whole=1000 * whole, least=low, greatest=high)
    found = suggested_hierarchy(column)
    assert found is not None
    hierarchy = found.build()
    assert isinstance(hierarchy, Hierarchy)
    assert hierarchy.leaf_of(low) is not None and hierarchy.leaf_of(high) is not None
    assert hierarchy.height >= 1


def test_words_are_grouped_without_telling_a_hidden_one() -> None:
    words = [f"{letter}{number:02d}" for letter in "abcdef" for number in range(8)]
    hierarchy = Hierarchy.by_order(words, [4, 16])
    for level in range(1, hierarchy.height):
        assert not set(hierarchy.labels[level]) & set(words)
    rare = Hierarchy.by_frequency({"often": 100, "seldom": 20, "once": 1}, [10, 50])
    assert [*rare.rows()] == [("often", "often", "often", "*"), ("seldom", "seldom", "(uncommon)", "*"),
                              ("once", "(rare)", "(uncommon)", "*")]  # fmt: skip
    assert not rare.ambiguous_labels()
    assert Hierarchy.by_prefix(["A01", "A02", "B7"], [2, 1]).labels[1] == ("A0…", "B7")
    with pytest.raises(HierarchyError, match="multiple"):
        Hierarchy.by_order(words, [4, 6])
    with pytest.raises(HierarchyError, match="Use intervals"):
        Hierarchy.by_order(["1", "2"], [2])
    with pytest.raises(HierarchyError, match="from the finest"):
        Hierarchy.by_prefix(words, [1, 2])
    with pytest.raises(HierarchyError, match="from the finest"):
        Hierarchy.by_frequency({"a": 1}, [5, 5])


def test_value_then_anything_needs_no_file() -> None:
    top = Hierarchy.top(["b", "a", "b"])
    assert [*top.rows()] == [("a", "*"), ("b", "*")] and top.weight_total == 1
    assert Hierarchy.top(["a"]).weight_total == 1  # also a single value is lost when it becomes *
    assert Hierarchy.from_dict(top.to_dict()) == top and top.with_null().has_null
    with pytest.raises(HierarchyError, match="no values"):
        Hierarchy.top([])


@pytest.mark.parametrize(
    ("content", "sep", "header", "encoding"),
    [
        ("age;city\n37;Köln\n40;Bonn\n", ";", True, "utf-8"), ("37,Bonn\n40,Ulm\n", ",", False, "utf-8"),
        ("name\tage\nAda\t3\n", "\t", True, "utf-8"), ('a|b\n"x|y"|2\n', "|", True, "utf-8"), ("only\nx\n", ",", True, "utf-8"),
    ],
)  # fmt: skip
def test_the_form_of_a_file_is_seen(tmp_path: Path, content: str, sep: str, header: bool, encoding: str) -> None:
    file = tmp_path / "people.csv"
    file.write_text(content, encoding=encoding)
    form = csv_form(file)
    assert form is not None and (form.sep, form.header, form.encoding) == (sep, header, encoding)


def test_another_encoding_and_no_file(tmp_path: Path) -> None:
    file = tmp_path / "old.csv"
    file.write_bytes("city;age\nKöln;3\n".encode("latin-1"))
    form = csv_form(file)
    assert form is not None and form.options == {"header": "true", "sep": ";", "encoding": "ISO-8859-1"}
    assert csv_form(tmp_path / "nothing.csv") is None


def test_values_of_a_file_are_grouped_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "codes.txt").write_text("A01\nA01\nA02\nB70\n", encoding="utf-8")
    place = str(tmp_path / "codes.txt")
    assert main(["hierarchy", place, "--by", "prefix", "--steps", "1", "--save", str(tmp_path / "codes.csv")]) == 0
    assert (tmp_path / "codes.csv").read_text(encoding="utf-8").splitlines() == ["A01;A…;*", "A02;A…;*", "B70;B…;*"]
    assert main(["hierarchy", place, "--by", "frequency", "--steps", "2"]) == 0
    assert "(rare) (2 leaves)" in capsys.readouterr().out
