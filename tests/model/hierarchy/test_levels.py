"""Level tables and child–parent pairs: what is read, padded and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy import Hierarchy

MARITAL = [
    ["Married-civ-spouse", "Married", "Married", "*"],
    ["Married-AF-spouse", "Married", "Married", "*"],
    ["Divorced", "Formerly", "Not-married", "*"],
    ["Widowed", "Formerly", "Not-married", "*"],
    ["Never-married", "Never", "Not-married", "*"],
]


def test_level_table_codes_labels_weights() -> None:
    marital = Hierarchy.from_levels(MARITAL)
    assert (marital.height, marital.leaf_count, marital.kind) == (3, 5, "text")
    assert marital.codes.tolist() == [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2], [0, 0, 1, 1, 1], [0] * 5]
    assert marital.labels[1] == ("Married", "Formerly", "Never")
    assert [marital.cardinality(level) for level in range(4)] == [5, 3, 2, 1]
    assert [weights.tolist() for weights in marital.weights] == [[0] * 5, [1, 1, 0], [1, 2], [4]]
    assert marital.weight_total == 4
    assert [list(row) for row in marital.rows()] == MARITAL
    assert marital.bounds is None


def test_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Hierarchy.from_levels(MARITAL).codes[1, 0] = 2


def test_root_is_added_only_where_it_is_missing() -> None:
    assert list(Hierarchy.from_levels([["a", "x"], ["b", "y"]]).rows()) == [("a", "x", "*"), ("b", "y", "*")]
    assert list(Hierarchy.from_levels([["a"], ["b"]]).rows()) == [("a", "*"), ("b", "*")]
    assert next(Hierarchy.from_levels([["12", "1*", "**"], ["13", "1*", "**"]]).rows()) == ("12", "1*", "*")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["a", "x"], ["b", "x"]], [("a", "x"), ("b", "x")]),
        ([["a", "x", "all"], ["b", "all"]], [("a", "x", "all"), ("b", "b", "all")]),
        ([["a", "x", "*"], ["b", "x", "*"]], [("a", "x", "*"), ("b", "x", "*")]),  # written by the user: both stay
        ([["a", "x"]], [("a", "x")]),
        ([["a"]], [("a", "*")]),
    ],
)
def test_a_last_level_of_one_label_is_the_root(rows: list[list[str]], expected: list[tuple[str, ...]]) -> None:
    hierarchy = Hierarchy.from_levels(rows)

    assert list(hierarchy.rows()) == expected
    assert list(Hierarchy.from_levels(expected).rows()) == expected
    assert Hierarchy.from_dict(hierarchy.to_dict()) == hierarchy
    assert hierarchy.with_null().labels[-1] == (expected[0][-1],)


def test_a_single_root_of_pairs_is_the_root() -> None:
    assert list(Hierarchy.from_edges([("a", "x"), ("b", "x")]).rows()) == [("a", "x"), ("b", "x")]
    assert list(Hierarchy.from_edges([("a", "x"), ("b", "y")]).rows()) == [("a", "x", "*"), ("b", "y", "*")]
    assert list(Hierarchy.from_edges([("a", "x"), ("x", "*"), ("b", "y")]).rows()) == [("a", "x", "*"), ("b", "y", "*")]


def test_one_value_has_no_loss() -> None:
    single = Hierarchy.from_levels([["a", "*"]])
    assert single.weight_total == 0
    assert all((weights == 0).all() for weights in single.weights)


def test_short_branch_repeats_its_top_label() -> None:
    work = Hierarchy.from_levels([["Private", "*"], ["Local", "gov", "public", "*"], ["Sick", "none", "*"]])
    assert list(work.rows()) == [
        ("Private", "Private", "Private", "*"), ("Local", "gov", "public", "*"), ("Sick", "none", "none", "*"),
    ]  # fmt: skip
    assert work.ambiguous_labels() == []


def test_short_leaf_in_a_deep_branch_repeats_itself() -> None:
    codes = Hierarchy.from_levels([["042", "1-139", "*"], ["1", "1-9", "1-139", "*"], ["2", "1-9", "1-139", "*"]])
    assert next(codes.rows()) == ("042", "042", "1-139", "*")
    assert codes.ambiguous_labels() == []
    assert codes.leaves_below[2].tolist() == [3]


def test_trailing_gaps_are_ragged_rows() -> None:
    ragged = Hierarchy.from_levels([["a", "*", "", None], ["b", "x", "y", "*"], ["", ""]])
    assert list(ragged.rows()) == [("a", "a", "a", "*"), ("b", "x", "y", "*")]


def test_identical_rows_count_once() -> None:
    assert Hierarchy.from_levels([*MARITAL, MARITAL[2]]) == Hierarchy.from_levels(MARITAL)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rows"),
        ([["", ""]], "no rows"),
        ([["secret", "x", "*"], ["b", "x", "*"], ["secret", "y", "*"]], r"1 value listed again .*line 3"),
        ([["a", "x", "p", "*"], ["b", "x", "q", "*"]], r"1 label of level 1 with several parents.*line 2"),
        ([["a", "x", "*"], ["b", "", "*"], ["c", " ", "*"]], r"2 rows with an empty label.*line 2, 3"),
        ([["", "x", "*"]], r"1 row with an empty label.*line 1"),
        ([["a", "x", "*"], ["b", "x"]], r"1 of 2 rows do not end with '\*' \(line 2\)"),
        ([["a", "x", "*"], ["b", "x", "q", "*"]], r"1 label of level 1 with several parents"),
    ],
)
def test_refused_tables_say_how_many_and_where_but_no_label(rows: list[list[str]], message: str) -> None:
    with pytest.raises(HierarchyError, match=message) as caught:
        Hierarchy.from_levels(rows)
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_long_lists_of_lines_are_cut() -> None:
    rows = [[f"v{n}", "x", "*"] for n in range(20)] + [[f"v{n}", "y", "*"] for n in range(20)]
    with pytest.raises(HierarchyError, match=r"20 values listed again .*line 21, 22, 23, 24, 25 and 15 more"):
        Hierarchy.from_levels(rows)


def test_csv_as_arx_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "age.csv"
    file.write_text('\ufeffvalue,low,top\r\n17,"[15, 20[",*\r\n\r\n21,"[20, 25[",*\r\n', encoding="utf-8")
    age = Hierarchy.from_csv(file, sep=",", header=True)
    assert list(age.rows()) == [("17", "[15, 20[", "*"), ("21", "[20, 25[", "*")]


def test_csv_faults_name_the_line_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "h.csv"
    file.write_text("value;g\n\na;x\nb;y\na;y\n")
    with pytest.raises(HierarchyError, match="line 5"):
        Hierarchy.from_csv(file, header=True)
    with pytest.raises(HierarchyError, match=r"one column .*Say sep: ';'"):
        Hierarchy.from_csv(file, sep=",", header=True)
    with pytest.raises(HierarchyError, match=r"Cannot read the hierarchy .*No such file"):
        Hierarchy.from_csv(tmp_path / "missing.csv")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HierarchyError, match="UTF-8"):
        Hierarchy.from_csv(file)


def test_edges_several_roots_and_unequal_depth() -> None:
    pairs = [("b1", "b"), ("b2", "b"), ("b", "top"), ("c", "top"), ("d", "other"), ("b1", "b")]
    tree = Hierarchy.from_edges(pairs)
    assert list(tree.rows()) == [
        ("b1", "b", "top", "*"), ("b2", "b", "top", "*"), ("c", "c", "top", "*"), ("d", "other", "other", "*"),
    ]  # fmt: skip
    assert tree.ambiguous_labels() == []
    assert tree.leaf_of("b") is None


def test_edges_root_star_is_the_top(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("NM,*\nMarried,*\nNever,NM\nCiv,Married\nAF,Married\n\n")
    marital = Hierarchy.edges_csv(file)
    assert list(marital.rows()) == [("Never", "NM", "*"), ("Civ", "Married", "*"), ("AF", "Married", "*")]
    assert Hierarchy.from_edges([("a", "*")]).height == 1


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "no pairs"),
        ([("a", "x"), ("a", "y")], r"1 second parents of a name \(line 2\)"),
        ([("a", "a")], r"1 names that are their own parent \(line 1\)"),
        ([("a", "b"), ("b", "c"), ("c", "a"), ("z", "*")], r"1 cycle of 3 names \(line 1, 2, 3\)"),
        ([("z", "a"), ("a", "b"), ("b", "a")], r"1 cycle of 2 names \(line 2, 3\)"),
        ([("a", "*"), ("*", "b")], r"1 parents above '\*' \(line 2\)"),
        ([("a", "")], "1 rows that are not child and parent"),
        ([("a", "b", "c")], "1 rows that are not child and parent"),
    ],
)
def test_refused_edges(pairs: list[tuple[str, ...]], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.from_edges(pairs)


def test_ambiguous_labels_but_not_padding() -> None:
    education = Hierarchy.from_levels(
        [["Some-college", "Some-college", "*"], ["Assoc", "Some-college", "*"], ["HS", "HS", "*"]]
    )
    assert education.ambiguous_labels() == [(0, 1, 1)]
    top = Hierarchy.from_levels([["a", "*", "*"], ["b", "x", "*"]])
    assert top.ambiguous_labels() == [(1, 2, 1)]
    elsewhere = Hierarchy.from_levels([["a", "b", "*"], ["b", "c", "*"]])
    assert elsewhere.ambiguous_labels() == [(0, 1, 1)]
