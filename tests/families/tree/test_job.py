"""Jobs of the family tree: what they become, what is refused and why; tables nested into the input."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from anon_spark.config import IntervalsSpec, LevelsSource, config_hash
from anon_spark.config.yaml_text import parse
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import known_keys, load_job, parse_job
from anon_spark.families.tree.job import TreeJob
from anon_spark.families.tree.pipeline import TreePipeline
from anon_spark.families.tree.settings import SEARCH
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NodeType, TreeSchema

CONF = Path(__file__).parents[3] / "conf"
DOCUMENTED = """
anon_spark: 1
family: tree
input:
  table: tpch.customer
  nest:
    orders:  {table: tpch.orders,   "on": {c_custkey: o_custkey},
              nest: {items: {table: tpch.lineitem, "on": {o_orderkey: l_orderkey}}}}
columns:
  person: c_custkey
  identifiers: [c_name]
  keep: [c_segment]
  tree:
    nation:
      field: c_nationkey
      levels: hierarchies/nation.csv
      children:
        month:
          field: orders.o_month
          date: [quarter, year]
          children:
            brand: {field: orders.items.brand, levels: hierarchies/brand.csv}
privacy: {k: 10}
output: {table: warehouse.release, runs: warehouse.runs}
"""
JOB: dict[str, Any] = parse(DOCUMENTED, "documented")
SECRET = "S3cr3t-value"
TREE = "columns.tree"
MONTH, BRAND = f"{TREE}.nation.children.month", f"{TREE}.nation.children.month.children.brand"
ORDERS, ITEMS = "input.nest.orders", "input.nest.orders.nest.items"
PROTECTED: dict[str, Any] = {f"{BRAND}.sensitive": True, "privacy.l": 3}
FLAT: dict[str, Any] = {"input": {"table": "tpch.nested"}}
ABSENT = object()


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    job = copy.deepcopy(JOB)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = job
        for key in parents:
            place = place.setdefault(key, {})
        if value is ABSENT:
            del place[last]
        else:
            place[last] = value
    return job


def parsed(changes: dict[str, Any]) -> TreeJob:
    job = parse_job(changed(changes), Path("/jobs"))
    assert isinstance(job, TreeJob)
    return job


def refusal(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_job(changed(changes), Path("/jobs"))
    assert caught.value.exit_code == 2
    assert SECRET not in str(caught.value)
    return str(caught.value).splitlines()


# --- the example ----------------------------------------------------------------------------------------------------


def test_the_example_reads_the_sample_that_the_demonstration_makes() -> None:
    samples = pytest.importorskip("anon_spark.samples.orders")
    job = load_job(CONF / "tree.yaml")
    assert isinstance(job, TreeJob)
    assert job.schema == samples.ORDER_SCHEMA
    assert {"orders", "nation", job.columns.person, *job.columns.identifiers} == set(samples.COLUMNS)
    for name, hierarchy in samples.order_hierarchies().items():
        source = job.columns.hierarchies[name].source()
        if isinstance(source, LevelsSource):
            assert list(Hierarchy.from_csv(source.location, source.sep).rows()) == list(hierarchy.rows())
        else:
            assert isinstance(source, IntervalsSpec)
            assert Hierarchy.intervals(source.start, source.stop, source.widths, source.exact) == hierarchy
    written = load_job(CONF / "tree.yaml", ["tree={width: 4}"])  # the rest are the defaults
    assert config_hash(job) == config_hash(written)


# --- what a job becomes -----------------------------------------------------------------------------------------------


def test_defaults() -> None:
    job, own = parsed({}), parsed({}).tree
    assert (job.privacy.k, job.privacy.m, job.privacy.n, job.privacy.l) == (10, 3, 2, None)
    assert (own.search, own.g, own.width, own.cost, own.level_count) == (SEARCH, 2, 8, "rpd_a", "class")
    assert (own.queue_limit, own.max_cuts, own.max_seconds, own.negations) == (None, None, None, ())
    assert (own.close_unseen, own.max_labels) == (True, 64)
    assert parsed({"tree": None}) == job
    assert job.columns.published == ("paths", "nested", "c_segment")


def test_the_schema_is_the_node_types_in_preorder() -> None:
    other = {"field": "orders.price", "mask": {}, "sensitive": True}
    job = parsed({f"{MONTH}.children.price": other, f"{TREE}.segment": {"field": "age", "edges": "s.csv"}, "privacy.l": 2})
    assert job.schema == TreeSchema((
        NodeType("nation", "c_nationkey"),
        NodeType("month", "orders.o_month", "nation"),
        NodeType("brand", "orders.items.brand", "month"),
        NodeType("price", "orders.price", "month", sensitive=True),
        NodeType("segment", "age"),
    ))  # fmt: skip
    assert list(job.columns.hierarchies) == job.schema.names
    kinds = [spec.kind for spec in job.columns.hierarchies.values()]
    assert kinds == ["levels", "date", "levels", "mask", "edges"]
    assert job.columns.hierarchies["brand"].levels == "/jobs/hierarchies/brand.csv"
    assert job.fields == ("c_nationkey", "orders.o_month", "orders.items.brand", "orders.price", "age")


@pytest.mark.parametrize(("privacy", "effective", "told"), [
    ({"n": 3}, 3, False), ({"n": 4}, 3, True), ({"m": 2}, 1, False), ({"m": 2, "n": 2}, 1, True), ({"m": 1, "n": 0}, 0, False),
    ({"m": 4, "n": 9}, 6, True),
])  # fmt: skip
def test_more_relations_than_values_can_have(privacy: dict[str, int], effective: int, told: bool) -> None:
    spec = parsed({"privacy": {"k": 5, **privacy}}).privacy
    assert spec.effective_n == effective
    assert (spec.lowered is not None) == told
    assert spec.lowered is None or (f"is {privacy['n']};" in spec.lowered and f"n = {effective} is used" in spec.lowered)


def test_the_hash_follows_the_meaning() -> None:
    base = config_hash(parsed({}))
    assert base == config_hash(parsed({"tree.search": SEARCH}))
    assert config_hash(parsed({"privacy.n": 3})) == config_hash(parsed({"privacy.n": 30}))
    two = {"a": {"table": "t.a", "on": {"x": "y"}}, **JOB["input"]["nest"]}
    branch = {f"{TREE}.a": {"field": "a.b", "mask": {}}}
    swapped = [config_hash(parsed({**branch, "input.nest": dict(nest)})) for nest in (two.items(), reversed(two.items()))]
    assert swapped[0] == swapped[1]
    others: list[dict[str, Any]] = [
        {"privacy.m": 2},
        {f"{ITEMS}.version": 3},
        {f"{ORDERS}.on": {"c_custkey": "o_key"}},
        {"tree.negations": ["x"]},
        {f"{TREE}.nation.field": "nationkey"},
    ]
    assert len({base, *(config_hash(parsed(other)) for other in others)}) == 6


def test_options_that_go_together() -> None:
    assert parsed({"tree": {"search": "gcs", "g": 3, "queue_limit": 100, "max_cuts": 5, "max_seconds": 0.5}})
    assert parsed({"tree": {"search": "ocs", "g": 1}}) and parsed({"tree": {"search": "beam", "width": 1}})
    assert parsed({"tree": {"search": "acs", "negations": ["Asia", "brand:x"], "cost": "rpd", "level_count": "global"}})
    assert parsed(PROTECTED).privacy.l == 3
    assert parsed({f"{BRAND}.sensitive": True, "tree.allow_unprotected_sensitive": True}).privacy.l is None


def test_nested_tables() -> None:
    spec = parsed({f"{ORDERS}.version": 4, f"{ITEMS}.format": "csv", f"{ITEMS}.table": "./l.csv"}).input
    orders = spec.nest["orders"]
    items = orders.nest["items"]
    assert (orders.table, orders.version, dict(orders.on)) == ("tpch.orders", 4, {"c_custkey": "o_custkey"})
    assert (items.table, items.format, dict(items.on)) == ("/jobs/l.csv", "csv", {"o_orderkey": "l_orderkey"})
    assert parsed(FLAT).input.nest == {}  # names alone do not tell whether orders is an array: the table does
    assert parsed({**FLAT, f"{BRAND}.field": "address.street"})


# --- what is refused ------------------------------------------------------------------------------------------------


FLAG = "tree.allow_unprotected_sensitive"
UNPROTECTED = (
    f"{BRAND}.sensitive: would be published without protection: give privacy.l (2 or more), or remove it so that the node type "
    f"is generalized, or say {FLAG}: true"
)
NODE_TYPE = "*, a leading ¬ or _anon_, and _link are reserved; rename the node type"
KINDS = "levels, edges, intervals, mask, date, top"
LABEL = "should be a value or a group as it is written, without ¬; * is everything"
ONE: dict[str, Any] = {"field": "x", "mask": {}}
FAULTS: list[tuple[dict[str, Any], str]] = [
    # privacy
    ({"privacy.k": 1}, "privacy.k: should be at least 2"),
    ({"privacy.k": ABSENT}, "privacy.k: is required"),
    ({"privacy.m": 0}, "privacy.m: should be at least 1"),
    ({"privacy.m": 12}, "privacy.m: should be at most 11"),
    ({"privacy.n": -1}, "privacy.n: should be at least 0"),
    ({"privacy.n": True}, "privacy.n: should be a whole number"),
    ({**PROTECTED, "privacy.l": 1}, "privacy.l: should be at least 2"),
    ({"privacy.l": 3},
     "privacy.l: needs a node type with sensitive: true, whose values must stay rare among the records that fit"),
    ({"privacy.suppression": 0.1}, "privacy.suppression: unknown key. It belongs to lattice and mst, not to tree; "
     "remove it, or change the family."),
    # columns of other families
    ({"columns.sensitive": ["x"]},
     "columns.sensitive: a node type is sensitive here, not a column: say sensitive: true of it in columns.tree"),
    ({"columns.quasi_identifiers": {"age": {"mask": {}}}},
     "columns.quasi_identifiers: is not known here: name node types in columns.tree, with field and hierarchy"),
    ({"columns.keep": ["Paths"]}, "columns.keep: column Paths has the name of a column of the release; rename it"),
    ({"columns.keep": ["nested"]}, "columns.keep: column nested has the name of a column of the release; rename it"),
    ({"columns.keep": ["Orders"]}, "columns.keep: column Orders is in tree already; a column has one role"),
    ({"columns.identifiers": ["c_nationkey"]},
     "columns.identifiers: column c_nationkey is in tree already; a column has one role"),
    ({f"{TREE}.nation.field": "c_custkey"}, "columns.person: column c_custkey is in tree already; a column has one role"),
    # node types
    ({f"{TREE}": ABSENT}, f"{TREE}: is required"),
    ({f"{TREE}": {}, "input.nest": ABSENT}, f"{TREE}: needs at least one entry"),
    ({f"{TREE}.nation": None, "input.nest": ABSENT}, f"{TREE}.nation: needs a hierarchy, one of: {KINDS}"),
    ({f"{TREE}.*": ONE}, f"{TREE}.*: {NODE_TYPE}"),
    ({f"{BRAND}.children": {"¬x": ONE | {"field": "orders.items.x"}}}, f"{BRAND}.children.¬x: {NODE_TYPE}"),
    ({f"{TREE}._Anon_x": ONE}, f"{TREE}._Anon_x: {NODE_TYPE}"),
    ({f"{TREE}.Brand": ONE}, f"{TREE}.Brand: node type Brand is named twice; a node type has one place in the tree"),
    ({f"{BRAND}.children": {"nation": ONE | {"field": "orders.items.x"}}},
     f"{BRAND}.children.nation: node type nation is named twice; a node type has one place in the tree"),
    ({f"{BRAND}.levels": ABSENT}, f"{BRAND}: needs one of: {KINDS}"),
    ({f"{BRAND}.mask": {}}, f"{BRAND}: has levels and mask; keep one"),
    ({f"{BRAND}.feild": "x"}, f"{BRAND}.feild: unknown key. Did you mean: field?"),
    ({f"{TREE}.nation.feild": "x"}, f"{TREE}.nation.feild: unknown key. Did you mean: field?"),
    ({f"{MONTH}.date": {"levels": ["year"], "form": 1}}, f"{MONTH}.date.form: unknown key. Did you mean: from?"),
    ({f"{BRAND}.sensitive": "yes"}, f"{BRAND}.sensitive: should be true or false"),
    ({f"{BRAND}.children": ["x"]}, f"{BRAND}.children: should be a section of keys"),
    # fields
    ({f"{TREE}.nation.field": ABSENT}, f"{TREE}.nation.field: is required"),
    ({f"{TREE}.nation.field": "a..b"},
     f"{TREE}.nation.field: should be names with one dot between them, such as orders.items.brand"),
    ({f"{TREE}.nation.field": "a._LINK"},
     f"{TREE}.nation.field: names starting with _anon_, and _link, are reserved; rename the column"),
    ({f"{TREE}.other": ONE | {"field": "C_nationkey"}},
     f"{TREE}.other.field: node type nation reads this field already; a field is one node type"),
    ({f"{TREE}.other": ONE | {"field": "c_nationkey.code"}},
     f"{TREE}.other.field: lies inside the field of node type nation, which is no value then"),
    ({f"{TREE}.other": ONE | {"field": "orders.items"}, "input.nest": ABSENT},
     f"{TREE}.other.field: holds the field of node type brand, so it is no value; name what lies inside it"),
    # sensitive node types
    ({f"{BRAND}.sensitive": True}, UNPROTECTED),
    ({**PROTECTED, "privacy.l": None}, UNPROTECTED),
    ({**PROTECTED, f"{TREE}.nation.sensitive": True, f"{MONTH}.sensitive": True},
     f"{TREE}: every node type is sensitive; at least one must not be"),
    ({**PROTECTED, FLAG: True}, f"{FLAG}: privacy.l protects the sensitive node types; remove one of the two"),
    ({FLAG: True}, f"{FLAG}: goes with a node type with sensitive: true only; remove it"),
    # search
    ({"tree.search": "gsc"}, "tree.search: should be one of gcs, beam, acs, ocs. Did you mean: gcs?"),
    ({"tree": {"search": "gcs", "g": 0}}, "tree.g: should be at least 1"),
    ({"tree.max_seconds": 0}, "tree.max_seconds: should be above 0"),
    ({"tree.max_seconds": float("inf")}, "tree.max_seconds: should be a finite number"),
    ({"tree": {"search": "beam", "g": 3}}, "tree.g: goes with search: gcs or ocs only; remove it"),
    ({"tree": {"search": "acs", "queue_limit": 3}}, "tree.queue_limit: goes with search: gcs or ocs only; remove it"),
    ({"tree": {"search": "gcs", "width": 3}}, "tree.width: goes with search: beam only; remove it"),
    ({"tree.negations": [SECRET, SECRET]}, "tree.negations: names a value or group twice"),
    ({"tree.negations": ["¬x"]}, f"tree.negations[0]: {LABEL}"),
    ({"tree.negations": ["*"]}, f"tree.negations[0]: {LABEL}"),
    ({"tree.negations": [5]}, "tree.negations[0]: should be text; put it in quotes"),
    ({"tree.seed": 1}, "tree.seed: unknown key. Known here: search, g, width, queue_limit, max_cuts, max_seconds, "
     "negations, cuts, cost, level_count, close_unseen, max_labels, allow_unprotected_sensitive."),
    # nested tables
    ({f"{ORDERS}.on": ABSENT}, f"{ORDERS}.on: is required"),
    ({f"{ITEMS}.on": {}}, f"{ITEMS}.on: needs at least one entry"),
    ({f"{ITEMS}.on": {"a": "_link"}},
     f"{ITEMS}.on.a: names starting with _anon_, and _link, are reserved; rename the column"),
    ({f"{ORDERS}.tabel": "x"}, f"{ORDERS}.tabel: unknown key. Did you mean: table?"),
    ({f"{ITEMS}.person": "x"}, f"{ITEMS}.person: unknown key. Did you mean: columns.person?"),
    ({f"{ITEMS}.keys": "x"}, f"{ITEMS}.keys: unknown key. Known here: format, table, version, options, on, nest."),
    ({f"{ITEMS}.table": "./l@v3"}, f"{ITEMS}.table: give the version under the key version, not in the path"),
    ({f"{ITEMS}.options": {"versionAsOf": 3}},
     f"{ITEMS}.options: path, versions and change feeds cannot be options; use the keys table and version"),
    ({f"{ORDERS}.format": "csv", f"{ORDERS}.version": 3}, f"{ORDERS}: version goes with format delta only, not with csv"),
    ({f"{BRAND}.field": "orders.items"}, f"{BRAND}.field: is a nested table; name a column of it behind a dot"),
    ({f"{BRAND}.field": "address.street", f"{TREE}.items": ONE | {"field": "orders.items.quantity"}},
     f"{BRAND}.field: should begin with orders: node type month, above it, is in orders"),
    ({f"{MONTH}.field": "orders.items.day", f"{BRAND}.field": "orders.brand"},
     f"{BRAND}.field: should begin with orders.items: node type month, above it, is in orders.items"),
    ({f"{BRAND}.field": "orders.brand"}, f"{ITEMS}: no node type of columns.tree reads a field of orders.items; remove it"),
    # places
    ({f"{ITEMS}.table": "./out/items", "output.table": "./out"},
     f"output.table: contains {ITEMS}.table; choose a place apart from it"),
    ({f"{BRAND}.levels": "out/h.csv", "output.table": "./out"},
     f"output.table: contains {BRAND}.levels; choose a place apart from it"),
    ({f"{ORDERS}.table": "warehouse.runs"}, f"output.runs: is the same place as {ORDERS}.table; choose a place apart from it"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "line"), FAULTS, ids=[f"{at} {line}" for at, (_, line) in enumerate(FAULTS)])
def test_a_fault_is_one_line_that_says_why(changes: dict[str, Any], line: str) -> None:
    assert refusal(changes) == [line]


def test_a_name_with_a_dot_is_no_array() -> None:
    nest = {"or.ders": {"table": "t.o", "on": {"a": "b"}}}
    assert "input.nest.or.ders: should have no dot: its columns are named behind one" in refusal({"input.nest": nest})


def test_all_faults_are_told_together() -> None:
    faults = {"privacy.m": 0, f"{BRAND}.feild": 1, f"{BRAND}.sensitive": True, "columns.sensitive": ["x"], "tree.max_cuts": 0}
    assert len(refusal(faults)) == 5


def test_the_same_table_may_be_nested_twice() -> None:
    assert parsed({f"{ITEMS}.table": "tpch.customer", f"{ITEMS}.version": 1, "input.version": 2})


def test_other_families_read_one_table() -> None:
    job = {key: JOB[key] for key in ("anon_spark", "input", "output")}
    job |= {"family": "lattice", "privacy": {"k": 2}, "columns": {"quasi_identifiers": {"age": {"mask": {}}}}}
    with pytest.raises(ConfigurationError) as caught:
        parse_job(job, Path("/jobs"))
    told = "goes with a family of nested records only; join the tables into one first"
    assert str(caught.value) == f"input.nest: {told}"


def test_direct_use_of_the_spec_checks_the_same() -> None:
    with pytest.raises(ValueError, match="node type Brand is named twice"):
        TreeJob.model_validate(changed({f"{TREE}.Brand": ONE}))
    assert TreeJob.model_validate(changed({})).schema.names == ["nation", "month", "brand"]


@pytest.mark.parametrize("path", [
    "columns", TREE, f"{TREE}.nation", f"{TREE}.nation.field", f"{TREE}.nation.children", MONTH, f"{MONTH}.field",
    f"{BRAND}.sensitive", "input.nest", ORDERS, f"{ORDERS}.on", f"{ORDERS}.nest", "privacy", "privacy.n", "tree", "tree.search",
    "tree.negations", "tree.max_seconds",
])  # fmt: skip
@pytest.mark.parametrize("value", [5, 1.5, True, "", "\0", [], [[]], [5], {"": 5}, {"a": {}}, {5: 5}, SECRET, [SECRET]])
def test_nonsense_never_escapes_as_another_error(path: str, value: object) -> None:
    try:
        parse_job(changed({path: value}), Path("/jobs"))
    except ConfigurationError as error:
        assert str(error).count("\n") + 1 == len(error.facts["problems"])


def test_keys_of_the_family() -> None:
    keys = known_keys("tree")
    assert keys["privacy.m"].startswith("whole number, default 3")
    assert keys["tree.search"].startswith(f"gcs | beam | acs | ocs, default {SEARCH}")
    assert keys["columns.tree"].startswith("mapping of names to section, required")
    assert {f"{TREE}.<column>.children", f"{TREE}.<column>.mask.keep", "input.nest.<column>.on"} <= set(keys)
    assert "input.nest" not in known_keys("lattice") and "columns.quasi_identifiers" not in keys


@pytest.mark.parametrize("name", ["value", "Class", "nested", "paths", "order date", "a=b"])
def test_names_of_node_types_that_a_release_cannot_have(name: str) -> None:
    node_types = {name: JOB["columns"]["tree"]["nation"]}
    with pytest.raises(ConfigurationError, match="rename") as raised:
        parsed({"columns.tree": node_types})
    told = "value, class, nested, paths are" if name.isalpha() else "no space and none of , ; { } ( ) ="
    assert told in str(raised.value) and name in str(raised.value)
    if name.isalpha():
        with pytest.raises(ConfigurationError, match="value, class, nested, paths are reserved"):
            TreeSchema((NodeType(name, "field"),))


def test_a_value_whose_absence_is_counted_is_not_in_the_description() -> None:
    steps = TreePipeline(parsed({"tree": {"negations": [SECRET]}}), {})
    assert SECRET in str(steps.guarantee) and SECRET not in steps.description
    assert "family tree: 10^(3,2)-anonymity of labels and relations. Verified" in steps.description
