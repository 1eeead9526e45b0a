"""The judges of the fuzzer catch planted faults, and pass what is right."""

from __future__ import annotations

from typing import Any

from jobs.fuzzing.judges import judge_full_domain, judge_local, judge_sets, judge_transactions, judge_trees

READ = {"q": {"a": ["a", "g", "*"], "b": ["b", "g", "*"], "c": ["c", "h", "*"]}.get}
SOURCE: list[dict[str, Any]] = [{"q": one, "s": at % 2, "p": at // 2} for at, one in enumerate("aabbcc")]
JOB: dict[str, Any] = {"columns": {"sensitive": ["s"]}, "privacy": {"k": 2}, "nulls": "value"}


def rows(labels: str, values: str) -> list[dict[str, Any]]:
    return [{"q": label, "s": int(value)} for label, value in zip(labels, values, strict=True)]


def test_full_domain() -> None:
    def judged(release: list[dict[str, Any]], **privacy: Any) -> list[str]:
        return judge_full_domain(SOURCE, release, READ, ["s"], {**JOB, "privacy": {"k": 2, **privacy}})

    assert judged(rows("aabbcc", "010101")) == []
    assert judged(rows("gggghh", "010101")) == []
    assert judged(rows("gggg", "0101"), suppression=0.4) == []
    assert judged(rows("gggg", "0101"), suppression=0.3)  # more left out than allowed
    assert judged(rows("gggghh", "010111"))  # another value
    assert judged(rows("ggbbhh", "010101"))  # two levels
    assert judged(rows("aabbcc", "010101"), k=3)
    by_person = {**JOB, "columns": {"person": "p"}}
    assert judge_full_domain(SOURCE, rows("aabbcc", "010101"), READ, ["s"], by_person)  # one person per class
    assert not judge_full_domain(SOURCE, rows("******", "010101"), READ, ["s"], by_person)


def test_local() -> None:
    def judged(release: list[dict[str, Any]], **privacy: Any) -> list[str]:
        return judge_local(SOURCE, release, READ, ["s"], {**JOB, "privacy": {"k": 2, **privacy}})

    assert judged(rows("aabbcc", "010101"), l=2) == []
    assert judged(rows("**aabb", "010101")) == []
    assert judged(rows("aahhcc", "010101"))  # h is not above b
    assert judged(rows("aabbc*", "010101"))  # a class of one
    assert judged(rows("aabbcc", "000111"), l=2)
    assert judged(rows("aabb", "0101"))


def test_transactions() -> None:
    source: list[dict[str, Any]] = [{"n": at, "t": items} for at, items in enumerate([["x"], ["x", "y"], ["y"], ["x", "z"]])]
    job: dict[str, Any] = {"columns": {"transactions": ["t"]}, "privacy": {"k": 2, "m": 2}, "nulls": "value"}

    def judged(*published: tuple[int, int, list[list[str]]], **privacy: Any) -> list[str]:
        release = [{"n": {"lo": low, "hi": high}, "t": items, "t_sensitive": []} for low, high, items in published]
        return judge_transactions(source, release, {"n": None}, [], {**job, "privacy": {**job["privacy"], **privacy}})

    every = [["x", "y", "z"]]
    assert judged(*[(0, 3, every)] * 4) == []
    assert judged((0, 3, [["x"]]), *[(0, 3, every)] * 3) == []
    own = [(0, 3, [[item] for item in row["t"]]) for row in source]
    assert judged(*own)  # z is of one row
    assert judged(*[(0, 2, every)] * 4)  # 3 is in no range
    assert judged(*[(0, 3, [["x", "y"]])] * 4)  # z is in no set
    assert judged(*[(0, 3, every)] * 4, k=5)


def test_sets() -> None:
    source = [{"i": ["x"], "s": 1}, {"i": ["x", "y"], "s": 2}]
    job = {"columns": {"items": "i", "sensitive": ["s"]}, "privacy": {"k": 2}}
    row = {"base": ["x"], "uncertain": ["y"], "max_errors": 1}
    assert judge_sets(source, [row | {"s": 2}, row | {"s": 1}], job) == []
    assert judge_sets(source, [row | {"s": 2}, row | {"s": 2}], job)
    assert judge_sets(source, [row | {"s": 2}, row | {"s": 1, "max_errors": 0}], job)


def test_trees() -> None:
    records = [{"u": {"a"}, "v": {"c"}}, {"u": {"b"}, "v": {"c"}}]
    readers = {"u": READ["q"], "v": READ["q"]}
    job: dict[str, Any] = {"columns": {}, "privacy": {"k": 2, "m": 2, "n": 1}}

    def row(*paths: str) -> dict[str, Any]:
        return {"paths": [[{"class": step[0], "value": step[1]} for step in path.split()] for path in paths]}

    assert judge_trees(records, [row("ug vc"), row("ug vc")], readers, job) == []
    assert judge_trees(records, [row("ua vc"), row("ub vc")], readers, job)  # a is of one
    assert judge_trees(records, [row("ug vc"), row("ug", "vc")], readers, job)  # one relation is of one
    assert judge_trees(records, [row("uh vc"), row("uh vc")], readers, job)  # not true
    diverse = {"columns": {}, "secret": {"v"}, "privacy": {"k": 2, "m": 2, "n": 1, "l": 2}}
    assert judge_trees(records, [row("ug vc"), row("ug vc")], readers, diverse)  # c is of all
    some = [*records, {"u": {"a"}, "v": set()}, {"u": {"b"}, "v": set()}]
    release = [row("ug vc"), row("ug vc"), row("ug"), row("ug")]
    assert judge_trees(some, release, readers, job | {"tree": {"negations": ["v"]}}) == []
    kept = job | {"columns": {"keep": ["w"]}}
    named = [one | {"w": {at}} for at, one in enumerate(records)]
    assert judge_trees(named, [row("ug vc") | {"w": 1}, row("ug vc") | {"w": 0}], readers, kept) == []
    assert judge_trees(named, [row("ug vc") | {"w": 1}, row("ug vc") | {"w": 1}], readers, kept)


def test_trees_negated() -> None:
    """Every label is of two records, but only one has u and no v."""
    records = [{"u": {"a"}, "v": set()}, {"u": {"a"}, "v": {"c"}}, {"u": {"a"}, "v": {"c"}}]
    readers = {"u": READ["q"], "v": READ["q"]}
    job: dict[str, Any] = {"columns": {}, "privacy": {"k": 2, "m": 2, "n": 0}}
    release = [
        {"paths": [[{"class": kind, "value": value}] for kind, value in one]}
        for one in ([("u", "a")], [("u", "a"), ("v", "c")], [("u", "a"), ("v", "c")])
    ]
    assert judge_trees(records, release, readers, job) == []
    assert judge_trees(records, release, readers, job | {"tree": {"negations": ["v"]}})
