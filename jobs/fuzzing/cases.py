"""Random cases: a table, a job file with its hierarchies, and the judge that the release must face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from jobs.fuzzing.columns import EMOJI, MARK, Quasi, csv_field, is_missing, names, quasi
from jobs.fuzzing.judges import (
    Row,
    judge_full_domain,
    judge_local,
    judge_sets,
    judge_transactions,
    judge_trees,
    labels_of,
    plain,
)

FAMILIES = ("lattice", "mst", "relational_transaction", "set_valued", "tree")
ODD_NAMES = ["a.b", "a b", "x`y", "ä", "q;r", "n=1", "(p)", EMOJI]
ZONES = ["UTC", "UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]
Judge = Callable[[Sequence[Row], Sequence[Row]], list[str]]


@dataclass
class Case:
    """What one case does; `zone`: the session's time zone."""

    family: str
    table: pa.Table
    job: dict[str, Any]
    judge: Judge
    files: dict[str, str] = field(default_factory=dict)
    zone: str = "UTC"


def case_of(seed: int, number: int) -> Case:
    """The case of a number: the same for the same seed; families take turns."""
    draw = Random(f"{seed} {number}")
    family = FAMILIES[number % len(FAMILIES)]
    make = {"relational_transaction": _transactions, "set_valued": _sets, "tree": _trees}.get(family, _relational)
    case = make(draw, family)
    return replace(case, zone=draw.choice(ZONES))


def _rows(draw: Random) -> int:
    return draw.choice([1, 2, 5, 8, 13, 20, 30, 45, 60])


def _k(draw: Random, rows: int) -> int:
    return max(2, draw.choice([2, 2, 2, 3, 3, 5, rows, rows - 1, rows // 2]))


def _base(draw: Random, family: str) -> dict[str, Any]:
    return {
        "anon_spark": 1,
        "family": family,
        "input": {"table": "./people"},
        "columns": {},
        "privacy": {},
        # lists and ranges have no place for nulls: else most of these cases would be refused
        "nulls": draw.choice(["value", "suppress"] + ["suppress"] * 3 * (family in ("relational_transaction", "set_valued"))),
        "on_unseen": draw.choice(["suppress", "suppress", "error"]),
        "work": "./work",
        "output": {"table": "./release", "runs": "./runs", "report": "report.html"},
    }


def _names(draw: Random, count: int, chance: float = 0.2) -> list[str]:
    plain = [f"c{at}" for at in range(count)]
    if draw.random() < chance:
        plain[draw.randrange(count)] = draw.choice(ODD_NAMES)
    return plain


def _kept(draw: Random, rows: int, few: bool = False) -> pa.Array[Any]:
    """A column that is published as it is."""
    nan = float("nan")
    options: list[tuple[list[Any], pa.DataType]] = [
        ([*names(draw, 4), None], pa.string()),
        ([1, 2, 3, None], pa.int64()),
    ]
    if not few:
        options += [
            ([0.0, -0.0, nan, 1.5, float("inf"), None], pa.float64()),
            ([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(20, 2)),
            ([datetime(2020, 1, 1, 23, 30), datetime(1969, 12, 31), None], pa.timestamp("us", "UTC")),
            ([datetime(2020, 1, 1), None], pa.timestamp("us")),
            ([[f"{MARK}x", None], [], None], pa.list_(pa.string())),
            ([{"a": 1, "b": None}, None], pa.struct([("a", pa.int32()), ("b", pa.string())])),
            ([True, False, None], pa.bool_()),
            ([b"\x00\xff", b"", None], pa.binary()),
        ]
    values, kind = draw.choice(options)
    constant = draw.random() < 0.15
    return pa.array([values[0] if constant else draw.choice(values) for _ in range(rows)], kind)


def _relational(draw: Random, family: str) -> Case:
    rows = _rows(draw)
    count = draw.randint(1, 3)
    titles = _names(draw, count + 3)
    quasis = {name: quasi(draw, rows, f"h{at}") for at, name in enumerate(titles[:count])}
    sensitive, keep, person = titles[count:]
    job = _base(draw, family)
    columns: dict[str, pa.Array[Any]] = {name: one.values for name, one in quasis.items()}
    job["columns"]["quasi_identifiers"] = {name: one.section for name, one in quasis.items()}
    kept = []
    if draw.random() < 0.6:
        job["columns"]["sensitive"] = [sensitive]
        columns[sensitive] = _kept(draw, rows, few=True)
        kept.append(sensitive)
    if draw.random() < 0.4:
        job["columns"]["keep"] = [keep]
        columns[keep] = _kept(draw, rows)
        kept.append(keep)
    if draw.random() < 0.3:
        job["columns"]["person"] = person
        several = family == "lattice" and draw.random() < 0.7
        columns[person] = pa.array([f"{MARK}p{draw.randrange(rows) if several else at}" for at in range(rows)], pa.string())
    if draw.random() < 0.2:
        job["columns"]["identifiers"] = ["secret id"]
        columns["secret id"] = pa.array([f"{MARK}i{at}" for at in range(rows)])
    job["privacy"]["k"] = _k(draw, rows)
    if family == "lattice":
        job["privacy"]["suppression"] = draw.choice([0.0, 0.0, 0.05, 0.3, 0.9])
        own: dict[str, Any] = {"search": draw.choice(["exact", "poka", "exhaustive"]), "loss": draw.choice(["glm", "dm"])}
        if own["search"] == "poka":
            own |= {"depth": draw.choice([1, 2, "best", "worst"]), "refine": draw.random() < 0.5}
        if kept and draw.random() < 0.2:
            own |= {"loss": "cm", "class_column": kept[0]}
        if draw.random() < 0.4:
            own["choose"] = draw.choice(["knee", {"max_loss": 0.5}, {"k": job["privacy"]["k"] + 1}])
        job["lattice"] = own
    else:
        job["mst"] = {
            "merge": draw.choice(["auto", "greedy", "rounds"]),
            "zero_edges": draw.choice(["include", "exclude"]),
            "refine": draw.choice(["local", "local", "none"]),
        }
        if "sensitive" in job["columns"] and draw.random() < 0.5:
            job["privacy"]["l"] = draw.randint(2, max(2, min(3, job["privacy"]["k"])))
    readers = {name: one.read for name, one in quasis.items()}
    judge = judge_full_domain if family == "lattice" else judge_local

    def judged(source: Sequence[Row], release: Sequence[Row]) -> list[str]:
        return judge(source, release, readers, kept, job)

    return Case(family, pa.table(columns), job, judged, _files(quasis.values()))


def _files(quasis: Any) -> dict[str, str]:
    return {name: text for one in quasis for name, text in one.files.items()}


def _items(draw: Random, rows: int, universe: list[str], nulls: bool = True) -> list[Any]:
    lists: list[Any] = []
    for _ in range(rows):
        size = draw.choice([0, 1, 1, 2, 2, 3, 4])
        own: list[Any] = [draw.choice(universe) for _ in range(size)]  # an item may be named twice
        lists.append(own)
    if nulls and draw.random() < 0.15:
        lists[draw.randrange(rows)] = None
    if draw.random() < 0.05:
        lists[draw.randrange(rows)] = [None]
    return lists


def _transactions(draw: Random, family: str) -> Case:
    rows = _rows(draw)
    count = draw.randint(1, 2)
    titles = _names(draw, count + 4)
    job = _base(draw, family)
    quasis: dict[str, Quasi] = {}
    columns: dict[str, pa.Array[Any]] = {}
    sections: dict[str, Any] = {}
    readers: dict[str, Any] = {}
    for at, name in enumerate(titles[:count]):
        if draw.random() < 0.5:
            kinds: list[pa.DataType] = [pa.int32(), pa.int64(), pa.float64(), pa.float32(), pa.decimal128(12, 3)]
            kind = draw.choice(kinds)
            usual = [0, 1, 5, 9, 100, -3]
            values: list[Any] = [draw.choice(usual) for _ in range(rows)]
            if draw.random() < 0.2:
                values[draw.randrange(rows)] = None
            if pa.types.is_floating(kind) and draw.random() < 0.3:
                values[draw.randrange(rows)] = draw.choice([float("nan"), float("inf"), -0.0, 0.1])
            if kind == pa.int64() and draw.random() < 0.2:
                values[draw.randrange(rows)] = 2**53 + 1
            columns[name], sections[name], readers[name] = _column(values, kind), {}, None
        else:
            quasis[name] = quasi(draw, rows, f"h{at}")
            columns[name], sections[name], readers[name] = quasis[name].values, quasis[name].section, quasis[name].read
    universe = names(draw, draw.randint(1, 6))
    listed = titles[count : count + draw.choice([1, 1, 2])]
    for name in listed:
        columns[name] = pa.array(_items(draw, rows, universe), pa.list_(pa.string()))
    job["columns"] |= {"quasi_identifiers": sections, "transactions": listed}
    job["privacy"] |= {"k": _k(draw, rows), "m": draw.choice([1, 2, 2, 3])}
    own: dict[str, Any] = {"method": draw.choice(["bound", "bound", "rfirst", "tfirst"])}
    if own["method"] == "bound":
        own |= {"bound": draw.choice(["relational", "items"]), "delta": draw.choice([0.3, 0.65, 1.0])}
        own["merge"] = draw.choice(["relational", "items", "both"])
        if own["merge"] != "relational":
            own["distance"] = draw.choice(["bits", "utility_loss"])
    if draw.random() < 0.4:
        job["columns"]["sensitive_items"] = {listed[0]: [universe[0]]}
        if draw.random() < 0.7:
            job["privacy"]["l"] = 2
        else:
            own["allow_unprotected_sensitive"] = True
    files = _files(quasis.values())
    if draw.random() < 0.4:
        written = [f"{name}.{item}" if len(listed) > 1 else item for name in listed for item in universe]
        if draw.random() < 0.1:
            written.pop()  # an item that the hierarchy does not know
        files["items.csv"] = "\n".join(f"{csv_field(item)};g{at % 2};*" for at, item in enumerate(written))
        own["items"] = {"levels": "items.csv", "method": draw.choice(["apriori", "local", "vertical"])}
    elif draw.random() < 0.2:
        own["items"] = {"method": "local"}
    else:
        own["cost"] = draw.choice(["occurrences", "utility_loss"])
    job["relational_transaction"] = own
    kept = []
    if draw.random() < 0.3:
        job["columns"]["keep"] = [titles[-1]]
        columns[titles[-1]] = _kept(draw, rows)
        kept.append(titles[-1])

    def judged(source: Sequence[Row], release: Sequence[Row]) -> list[str]:
        return judge_transactions(source, release, readers, kept, job)

    return Case(family, pa.table(columns), job, judged, files)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(value) for value in values]).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind, from_pandas=False)
    return pa.array(values, kind)


def _sets(draw: Random, family: str) -> Case:
    rows = _rows(draw)
    titles = _names(draw, 3)
    job = _base(draw, family)
    job["on_unseen"] = "error"
    items, sensitive, person = titles
    universe = names(draw, draw.randint(1, 8))
    columns: dict[str, pa.Array[Any]] = {items: pa.array(_items(draw, rows, universe), pa.list_(pa.string()))}
    job["columns"]["items"] = items
    with_l = draw.random() < 0.4
    if with_l or draw.random() < 0.7:
        job["columns"]["sensitive"] = [sensitive]
        columns[sensitive] = _kept(draw, rows, few=with_l)
    if draw.random() < 0.2:
        job["columns"]["person"] = person
        columns[person] = pa.array([f"{MARK}p{at}" for at in range(rows)])
    own: dict[str, Any] = {"order": draw.choice(["window", "gray_tsp", "gray"]), "graph": draw.choice(["ring", "groups"])}
    if with_l:
        job["privacy"]["l"] = draw.choice([2, 3])
        if draw.random() < 0.4:
            own["truth"] = draw.choice(["spaced", "shift"])
    else:
        job["privacy"]["k"] = _k(draw, rows)
    job["set_valued"] = own

    def judged(source: Sequence[Row], release: Sequence[Row]) -> list[str]:
        return judge_sets(source, release, job)

    return Case(family, pa.table(columns), job, judged)


def _trees(draw: Random, family: str) -> Case:
    rows = _rows(draw)
    job = _base(draw, family)
    top, inner, deep = quasi(draw, rows, "h0"), quasi(draw, rows, "h1"), quasi(draw, rows, "h2")
    nested = draw.random() < 0.7
    inner_values, deep_values = inner.values.to_pylist(), deep.values.to_pylist()
    lists: list[Any] = []
    for _ in range(rows):
        size = draw.choice([0, 1, 1, 2])
        own: list[Any] = [
            {"one": draw.choice(inner_values), "two": [draw.choice(deep_values) for _ in range(draw.choice([0, 1, 1, 2]))]}
            for _ in range(size)
        ]
        own += [None] if draw.random() < 0.03 else []
        lists.append(None if draw.random() < 0.03 else own)
    kind = pa.list_(pa.struct([("one", inner.values.type), ("two", pa.list_(deep.values.type))]))
    columns: dict[str, pa.Array[Any]] = {"top": top.values, "inner": pa.array(lists, kind)}
    below: dict[str, Any] = {"one": {"field": "inner.one", **inner.section}}
    hidden = draw.random() < 0.3
    if draw.random() < 0.6:
        below["one"]["children"] = {"two": {"field": "inner.two", **deep.section, **({"sensitive": True} if hidden else {})}}
    tree: dict[str, Any] = {"top": {"field": "top", **top.section}}
    if nested:
        tree["top"]["children"] = below
    else:
        tree |= below
    job["columns"]["tree"] = tree
    job["privacy"] |= {"k": _k(draw, rows), "m": draw.choice([1, 2, 3]), "n": draw.choice([0, 1, 2])}
    own_tree: dict[str, Any] = {"search": draw.choice(["beam", "beam", "gcs", "ocs", "acs"]), "max_cuts": 40}
    own_tree |= {"cost": draw.choice(["rpd_a", "rpd"]), "level_count": draw.choice(["class", "global"])}
    secret: set[str] = set()
    kept: list[str] = []
    has_two = "children" in below["one"]
    if hidden and has_two:
        secret = {"two"}
        if draw.random() < 0.7:
            job["privacy"]["l"] = 2
        else:
            own_tree["allow_unprotected_sensitive"] = True
    if draw.random() < 0.2:
        job["columns"]["person"] = "person"
        columns["person"] = pa.array([f"{MARK}p{draw.randrange(rows)}" for _ in range(rows)])
    elif draw.random() < 0.2:
        kept = ["other"]
        job["columns"]["keep"] = kept
        columns["other"] = _kept(draw, rows)
    if draw.random() < 0.15:
        own_tree["negations"] = [draw.choice(["top", "one"])]
    job["tree"] = own_tree
    readers = {"top": top.read, "one": inner.read, **({"two": deep.read} if has_two else {})}
    files = {name: text for one in (top, inner, deep) for name, text in one.files.items()}

    def judged(source: Sequence[Row], release: Sequence[Row]) -> list[str]:
        people: dict[Any, dict[str, set[Any]]] = {}
        dropped = set()
        for number, row in enumerate(source):
            whose = row.get("person", number)
            held = people.setdefault(whose, {name: set() for name in readers})
            values: dict[str, list[Any]] = {name: [] for name in readers}
            values["top"].append(row["top"])
            for element in row["inner"] or []:
                if element is not None:
                    values["one"].append(element["one"])
                    if has_two:
                        values["two"] += element["two"] or []
            for name, found in values.items():
                for value in found:
                    outcome = labels_of({name: value}, {name: readers[name]}, job["nulls"])
                    if isinstance(outcome, str):
                        dropped.add(whose)
                    held[name].add(None if is_missing(value) else value)
            held |= {name: {plain(row[name])} for name in kept}
        scope = [held for whose, held in people.items() if whose not in dropped]
        missing = [] if len(scope) == len(release) else ["records are missing or too many"]
        return missing + judge_trees(scope, release, readers, {**job, "secret": secret})

    return Case(family, pa.table(columns), job, judged, files)
