"""The attacker with two releases, on tables that can be worked out by hand."""

from __future__ import annotations

from typing import Any

from tests.oracle.republication_oracle import Numbers, Release, by_content, by_person, on_any_level, on_levels

AGES = {age: (age, "young" if age < 30 else "old", "*") for age in (20, 21, 30, 31)}
PLACES = {place: (place, "*") for place in ("A", "B")}
PATHS: list[dict[Any, tuple[Any, ...]]] = [dict(AGES), dict(PLACES)]


def people(*rows: tuple[str, int, str, str]) -> list[tuple[str, tuple[int, str], tuple[str]]]:
    return [(who, (age, place), (disease,)) for who, age, place, disease in rows]


OLD = people(("ann", 20, "A", "flu"), ("bob", 21, "A", "cold"), ("cid", 30, "B", "flu"), ("dan", 31, "B", "cough"))
NEW = people(("ann", 20, "A", "flu"), ("bob", 21, "B", "cold"), ("cid", 30, "B", "flu"), ("eve", 31, "A", "flu"))


def test_levels_that_change_split_a_class() -> None:
    older = Release(OLD, [(("young", "*"), ("flu",)), (("young", "*"), ("cold",)), (("old", "*"), ("flu",)),
                          (("old", "*"), ("cough",))], on_levels(PATHS, [1, 1]))  # fmt: skip
    newer = Release(NEW, [(("*", "A"), ("flu",)), (("*", "A"), ("flu",)), (("*", "B"), ("cold",)), (("*", "B"), ("flu",))],
                    on_levels(PATHS, [2, 0]))  # fmt: skip

    # ann and bob are young, but only ann is in A; cid is the only one who is old and stayed; eve is new in A, alone
    assert by_person(older, newer, 2, 1) == Numbers(3, 0, 1, 3, (2,), 1, 0, 1, 1)
    # of bob both show cold and flu; without persons bob's row in B is a new one
    assert by_content(older, newer, 2, 1) == Numbers(2, 0, 1, 2, (2,), 2, 0, 1, 2)


def test_nothing_changed() -> None:
    shown = [(("*", "*"), sensitive) for _, _, sensitive in OLD]
    same = Release(OLD, shown, on_any_level(PATHS))

    for found in (by_person(same, same, 4, 1), by_content(same, same, 4, 1)):
        assert found == Numbers(4, 0, 4, 0, (0,), 0, 0, None, 0)
    assert by_person(same, same, 5, 0).below == 4


def test_rows_of_several_classes_may_be_somebodys() -> None:
    older = Release(OLD, [(("young", "*"), ("flu",)), (("*", "A"), ("cold",)), (("*", "B"), ("flu",))], on_any_level(PATHS))
    newer = Release(NEW, [(("*", "*"), ("flu",)), (("*", "*"), ("cold",))], on_any_level(PATHS))

    found = by_person(older, newer, 2, 1)

    # ann and bob: young or in A; cid: in B, whose only row shows flu
    assert found == Numbers(3, 0, 1, 1, (1,), 1, 0, 1, 1)


def test_who_is_covered_by_no_row_is_not_compared() -> None:
    older = Release(OLD, [(("young", "A"), ("flu",))], on_any_level(PATHS))
    newer = Release(NEW, [(("20", "A"), ("flu",)), (("*", "B"), ("cold",))], on_any_level(PATHS))  # 20 is no text there

    assert by_person(older, newer, 2, 1) == Numbers(1, 2, 1, 1, (0,), 0, 1, None, 0)  # bob; ann and cid are hidden, eve too


def test_a_person_with_several_rows_has_all_their_classes() -> None:
    rows = people(("ann", 20, "A", "flu"), ("ann", 30, "A", "cold"), ("bob", 21, "A", "flu"), ("bob", 31, "A", "flu"),
                  ("cid", 21, "A", "cold"))  # fmt: skip
    shown = [((AGES[values[0]][1], "A"), sensitive) for _, values, sensitive in rows]
    release = Release(rows, shown, on_levels(PATHS, [1, 0]))

    assert by_person(release, release, 2, 1) == Numbers(3, 0, 1, 1, (0,), 0, 0, None, 0)


def test_equal_rows_are_matched_as_often_as_both_tables_have_them() -> None:
    one, two = people(("", 20, "A", "flu")), people(("", 20, "A", "flu"), ("", 20, "A", "flu"))
    older, newer = (Release(rows, [(("*", "*"), ("flu",))] * len(rows), on_any_level(PATHS)) for rows in (one, two))

    assert by_content(older, newer, 2, 1) == Numbers(1, 0, 1, 1, (1,), 1, 0, 1, 1)
    assert by_content(newer, older, 2, 1) == Numbers(1, 0, 1, 1, (1,), 0, 0, None, 0)


def test_a_person_that_nobody_named_is_nobody() -> None:
    nameless = [(None, (20, "A"), ("flu",)), *OLD]
    release = Release(nameless, [(("*", "*"), ("flu",))], on_any_level(PATHS))

    assert by_person(release, release, 2, 0).compared == 4
