"""Brute force: does a release keep its promise, and could it have been made of the source? In plain Python, of tiny tables.

Written from the definitions, with nothing of the package in it. Every function returns what is wrong, or nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from jobs.fuzzing.columns import Reader, is_missing

Row = Mapping[str, Any]


def plain(value: Any) -> Any:
    """A value that can be compared and counted: NaN is one value, -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple((name, plain(inner)) for name, inner in value.items())
    return value


def labels_of(row: Row, readers: Mapping[str, Reader], nulls: str) -> list[list[Any]] | str:
    """Per column the labels from level 0 to the top; 'null' or 'unseen' for a row that the policies leave out.

    The label of a null is None below the top; as high as the column's other paths, it is told by the caller's levels.
    """
    paths: list[list[Any]] = []
    outcome = ""
    for name, read in readers.items():
        if is_missing(row[name]):
            paths.append([None])
            outcome = "null" if nulls == "suppress" else outcome
        else:
            path = read(row[name])
            paths.append(path or [])
            outcome = outcome or ("unseen" if path is None else "")
    return outcome or paths


def at_level(path: Sequence[Any], level: int, height: int) -> Any:
    if path == [None]:
        return "*" if level == height else None
    return path[level]


def heights(rows: Sequence[Row], readers: Mapping[str, Reader]) -> dict[str, int]:
    """Height of each hierarchy, from any value it knows."""
    found = {}
    for name, read in readers.items():
        paths = [read(row[name]) for row in rows if not is_missing(row[name])]
        found[name] = max((len(path) - 1 for path in paths if path), default=1)
    return found


def judge_full_domain(
    source: Sequence[Row], release: Sequence[Row], readers: Mapping[str, Reader], kept: Sequence[str], job: Mapping[str, Any]
) -> list[str]:
    """Lattice: some node explains the release: whole classes of k rows or persons, the others missing within the budget."""
    k, person = job["privacy"]["k"], job["columns"].get("person")
    read = [(row, labels_of(row, readers, job["nulls"])) for row in source]
    scope = [(row, paths) for row, paths in read if not isinstance(paths, str)]
    budget = int(job["privacy"].get("suppression", 0.0) * len(scope) + 1e-9)
    high = heights(source, readers)
    names = list(readers)
    published = Counter((tuple(row[name] for name in names), tuple(plain(row[name]) for name in kept)) for row in release)
    shown = {labels for labels, _ in published}
    for node in product(*(range(high[name] + 1) for name in names)):
        expected: Counter[Any] = Counter()
        persons: defaultdict[Any, set[Any]] = defaultdict(set)
        for number, (row, paths) in enumerate(scope):
            labels = tuple(at_level(path, level, high[name]) for path, level, name in zip(paths, node, names, strict=True))
            expected[labels, tuple(plain(row[name]) for name in kept)] += 1
            persons[labels].add(row[person] if person else number)
        inside = Counter({key: count for key, count in expected.items() if key[0] in shown})
        if inside == published and len(scope) - len(release) <= budget and all(len(persons[one]) >= k for one in shown):
            return []
    sizes = Counter(labels for labels, _ in published.elements())
    small = [size for size in sizes.values() if size < k]
    return [f"no node explains the release ({len(small)} classes below k)"]


def judge_local(
    source: Sequence[Row], release: Sequence[Row], readers: Mapping[str, Reader], kept: Sequence[str], job: Mapping[str, Any]
) -> list[str]:
    """mst: classes of k, l values each, and every row is a different record of the source, generalized."""
    faults = []
    names = list(readers)
    classes: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in release:
        classes[tuple(row[name] for name in names)].append(row)
    if any(len(rows) < job["privacy"]["k"] for rows in classes.values()):
        faults.append("a class below k")
    least = job["privacy"].get("l")
    for name in job["columns"].get("sensitive", []) if least else []:
        if any(len({plain(row[name]) for row in rows}) < least for rows in classes.values()):
            faults.append("a class below l")
    read = [(row, labels_of(row, readers, job["nulls"])) for row in source]
    scope = [(row, paths) for row, paths in read if not isinstance(paths, str)]
    if len(scope) != len(release):
        faults.append("rows are missing or too many")

    def fits(one: tuple[Row, Any], row: Row) -> bool:
        own, paths = one
        above = all(row[name] in [*path, "*"] for name, path in zip(names, paths, strict=True))
        return above and all(plain(own[name]) == plain(row[name]) for name in kept)

    return faults + _unmatched(scope, release, fits)


def judge_transactions(
    source: Sequence[Row],
    release: Sequence[Row],
    readers: Mapping[str, Reader | None],
    kept: Sequence[str],
    job: Mapping[str, Any],
) -> list[str]:
    """(k, k^m) and (k, l^m) in every class of relational values; ranges, labels and items are true of different records."""
    faults = []
    privacy, listed = job["privacy"], job["columns"]["transactions"]
    secret = {name: set(job["columns"].get("sensitive_items", {}).get(name, [])) for name in listed}
    several = len(listed) > 1
    items, hidden = ("transactions", "transactions_sensitive") if several else (listed[0], f"{listed[0]}_sensitive")

    def own_items(row: Row) -> tuple[frozenset[str], tuple[str, ...]]:
        open_: set[str] = set()
        closed: set[str] = set()
        for name in listed:
            for item in row[name]:
                (closed if item in secret[name] else open_).add(f"{name}.{item}" if several else item)
        return frozenset(open_), tuple(sorted(closed))

    classes: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in release:
        classes[tuple(plain(row[name]) for name in readers)].append(row)
    for rows in classes.values():
        covered = [frozenset(item for group in row[items] for item in group) for row in rows]
        universe = sorted(set().union(*covered))
        for size in range(privacy["m"] + 1):
            for known in combinations(universe, size):
                fitting = [row for row, have in zip(rows, covered, strict=True) if have.issuperset(known)]
                if 0 < len(fitting) < privacy["k"]:
                    faults.append("items known to fewer than k rows")
                counts = Counter(item for row in fitting for item in row.get(hidden) or [])
                if privacy.get("l") and any(count * privacy["l"] > len(fitting) for count in counts.values()):
                    faults.append("a sensitive item in more than 1 / l")
    hierarchies = {name: read for name, read in readers.items() if read is not None}
    ranges = [name for name, read in readers.items() if read is None]

    def in_scope(row: Row) -> bool:
        if any(row[name] is None for name in listed) or any(is_missing(row[name]) for name in ranges):
            return False
        return all(abs(row[name]) != float("inf") for name in ranges) and not isinstance(
            labels_of(row, hierarchies, job["nulls"]), str
        )

    scope = [row for row in source if in_scope(row)]
    if len(scope) != len(release):
        faults.append("rows are missing or too many")

    def fits(own: Row, row: Row) -> bool:
        paths = labels_of(own, hierarchies, job["nulls"])
        above = all(row[name] in [*path, "*"] for name, path in zip(hierarchies, paths, strict=True))
        inside = all(row[name]["lo"] <= own[name] <= row[name]["hi"] for name in ranges)
        open_, closed = own_items(own)
        covers = open_ <= {item for group in row[items] for item in group} and all(open_ & set(group) for group in row[items])
        same = closed == tuple(row.get(hidden) or []) and all(plain(own[name]) == plain(row[name]) for name in kept)
        return bool(above and inside and covers and same)

    return sorted(set(faults)) + _unmatched(scope, release, fits)


def judge_sets(source: Sequence[Row], release: Sequence[Row], job: Mapping[str, Any]) -> list[str]:
    """Every record may be k rows, every row k records; sensitive values are those of the source."""
    items, degree = job["columns"]["items"], job["privacy"].get("k") or job["privacy"]["l"]
    records = [set(row[items]) for row in source if row[items] is not None]
    faults = [] if len(records) == len(release) else ["rows are missing or too many"]

    def compatible(record: set[str], row: Row) -> bool:
        wrong = record ^ set(row["base"])
        return wrong <= set(row["uncertain"]) and len(wrong) <= row["max_errors"]

    if any(sum(compatible(record, row) for row in release) < degree for record in records):
        faults.append("a record that may be fewer than k rows")
    if any(sum(compatible(record, row) for record in records) < degree for row in release):
        faults.append("a row that may be fewer than k records")
    for name in job["columns"].get("sensitive", []):
        if Counter(plain(row[name]) for row in source if row[items] is not None) != Counter(plain(row[name]) for row in release):
            faults.append("other sensitive values")
    return faults


def judge_trees(
    records: Sequence[Mapping[str, set[Any]]], release: Sequence[Row], readers: Mapping[str, Reader], job: Mapping[str, Any]
) -> list[str]:
    """k^(m,n) of all labels and pairs, 1 / l of sensitive ones; labels are true of different records.

    records: class → the values of a record; a kept column → its one value. Of a class in `tree.negations` an attacker may
    know that a record has none, unless the class is hidden in the root of all.
    """
    privacy = job["privacy"]
    secret = set(job.get("secret", ()))
    kept = job["columns"].get("keep", [])
    rooted = any(step["value"] == "*" for row in release for path in row["paths"] for step in path)
    negated = [] if rooted else job.get("tree", {}).get("negations", [])
    faults = []
    shown = []
    for row in release:
        paths = [[(step["class"], step["value"]) for step in path] for path in row["paths"]]
        labels = {label for path in paths for label in path}
        pairs = {pair for path in paths for pair in combinations(path, 2)}
        labels |= {("not", kind) for kind in negated if all(own != kind for own, _ in labels)}
        shown.append((labels, pairs, {name: {plain(row[name])} for name in kept}))
    checked = set()
    for labels, pairs, _ in shown:
        knowable = sorted((label for label in labels if label[0] not in secret), key=repr)
        for size in range(1, privacy["m"] + 1):
            for known in combinations(knowable, size):
                between = sorted((pair for pair in pairs if pair[0] in known and pair[1] in known), key=repr)
                for count in range(min(privacy["n"], len(between)) + 1):
                    for related in combinations(between, count):
                        if (known, related) in checked:
                            continue
                        checked.add((known, related))
                        fitting = [have for have, links, _ in shown if have.issuperset(known) and links.issuperset(related)]
                        if len(fitting) < privacy["k"]:
                            faults.append("values known to fewer than k records")
                        often = Counter(label for have in fitting for label in have if label[0] in secret)
                        if privacy.get("l") and any(held * privacy["l"] > len(fitting) for held in often.values()):
                            faults.append("a sensitive value in more than 1 / l")

    def fits(record: Mapping[str, set[Any]], row: tuple[set[Any], set[Any], dict[str, set[Any]]]) -> bool:
        """The top of a class is called like the class; what stands above all classes is * and true of every value."""
        everything = any(value == "*" for _, value in row[0])
        for name, read in readers.items():
            paths = [[None, name] if is_missing(value) else [*(read(value) or [])[:-1], name] for value in record[name]]
            labels = {value for kind, value in row[0] if kind == name and value != "*"}
            covered = all(everything or labels & set(path) for path in paths)
            if not covered or not all(any(one in path for path in paths) for one in labels):
                return False
        return all(record[name] == row[2][name] for name in kept)

    return sorted(set(faults)) + _unmatched(records, shown, fits)


def _unmatched(records: Sequence[Any], rows: Sequence[Any], fits: Callable[[Any, Any], bool]) -> list[str]:
    """Whether every row can be a different record (augmenting paths)."""
    options = [[at for at, record in enumerate(records) if fits(record, row)] for row in rows]
    holder: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for at in options[row]:
            if at not in tried:
                tried.add(at)
                if at not in holder or place(holder[at], tried):
                    holder[at] = row
                    return True
        return False

    alone = sum(not place(row, set()) for row in range(len(rows)))
    return [f"{alone} rows that no record of the source explains"] if alone else []
