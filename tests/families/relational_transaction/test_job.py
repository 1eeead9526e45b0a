"""Jobs of the family relational_transaction: what they become, what is refused and why; what their guarantees say."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from anon_spark.config import LevelsSource, config_hash
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import known_keys, load_job, parse_job
from anon_spark.families.relational_transaction.job import RelationalTransactionJob
from anon_spark.model.guarantee import KKmAnonymity, KLmDiversity
from anon_spark.model.hierarchy import Hierarchy

CONF = Path(__file__).parents[3] / "conf"
JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "relational_transaction",
    "input": {"table": "warehouse.patients"},
    "columns": {
        "person": "id",
        "identifiers": ["name"],
        "quasi_identifiers": {"age": {}, "income": {"domain": [-5, 1.5]}, "race": {"levels": "race.csv"}},
        "transactions": ["codes"],
        "keep": ["visits"],
    },
    "privacy": {"k": 10},
    "output": {"table": "warehouse.release", "runs": "warehouse.runs"},
}
OWN, QUASI = "relational_transaction", "columns.quasi_identifiers"
SECRET = "S3cr3t-code"
PROTECTED: dict[str, Any] = {"columns.sensitive_items": {"codes": [SECRET]}, "privacy.l": 3}
TWO: dict[str, Any] = {"columns.transactions": ["codes", "drugs"]}
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


def parsed(changes: dict[str, Any]) -> RelationalTransactionJob:
    job = parse_job(changed(changes), Path("/jobs"))
    assert isinstance(job, RelationalTransactionJob)
    return job


def refusal(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_job(changed(changes), Path("/jobs"))
    assert caught.value.exit_code == 2
    assert SECRET not in str(caught.value)
    return str(caught.value).splitlines()


# --- the example ----------------------------------------------------------------------------------------------------


def test_the_example_reads_the_sample_that_the_demonstration_makes() -> None:
    samples = pytest.importorskip("anon_spark.samples.patients")
    job = load_job(CONF / "relational_transaction.yaml")
    assert isinstance(job, RelationalTransactionJob)
    columns = job.columns
    named = {*columns.quasi_identifiers, *columns.transactions, *columns.keep, *columns.identifiers, columns.person}
    assert named == set(samples.COLUMNS) - {"medications", "birth_month", "visits"}
    assert columns.sensitive_names == set(samples.SENSITIVE_DIAGNOSES)
    domains = {name: spec.domain for name, spec in columns.quasi_identifiers.items() if spec.domain}
    assert domains.items() <= samples.DOMAINS.items() and len(domains) == 1
    written = load_job(CONF / "relational_transaction.yaml", [f"{OWN}={{delta: 0.25}}"])  # the rest are the defaults
    assert config_hash(job) == config_hash(written)


def test_the_hierarchies_of_the_example_are_those_of_the_sample() -> None:
    samples = pytest.importorskip("anon_spark.samples.patients")
    items = f"{OWN}.items={{levels: hierarchies/diagnoses.csv}}"
    job = load_job(CONF / "relational_transaction.yaml", [items])
    assert isinstance(job, RelationalTransactionJob)
    of_items = job.relational_transaction.items
    assert of_items.hierarchy is not None and of_items.kind == "apriori"
    read = {"race": job.columns.quasi_identifiers["race"].source(), "diagnoses": of_items.hierarchy.source()}
    for name, hierarchy in samples.patients_hierarchies().items():
        source = read[name]
        assert isinstance(source, LevelsSource)
        assert list(Hierarchy.from_csv(source.location, source.sep).rows()) == list(hierarchy.rows())


# --- what a job becomes -----------------------------------------------------------------------------------------------


def test_defaults() -> None:
    job, own = parsed({}), parsed({}).relational_transaction
    assert (own.method, own.bound, own.merge) == ("bound", "relational", "relational")
    assert (own.distance, own.cost) == ("bits", "rarest")
    assert (job.delta, own.block, own.exhaustive_seeds, own.items.kind) == (0.65, 5000, False, "sets")
    assert (job.privacy.k, job.privacy.m, job.privacy.l) == (10, 2, None)
    assert own.items.hierarchy is None and not job.unprotected_items
    assert parsed({f"{OWN}.items": "sets"}) == job
    assert parsed({f"{QUASI}.age": None}) == job  # a key without value
    assert parsed({OWN: {"method": "rfirst"}}).delta is None
    assert parsed({OWN: {"delta": 0}}).delta == 0.0 and parsed({OWN: {"delta": 1, "bound": "items"}}).delta == 1.0


def test_the_hash_follows_the_meaning() -> None:
    base = config_hash(parsed({}))
    assert base == config_hash(parsed({f"{OWN}.delta": 0.65}))
    others: list[dict[str, Any]] = [
        {f"{OWN}.delta": 0.6},
        {"privacy.m": 1},
        {f"{QUASI}.age": {"weight": 2}},
        {f"{OWN}.items": {"method": "local"}},
    ]
    assert len({base, *(config_hash(parsed(other)) for other in others)}) == 5


def test_quasi_identifiers_with_and_without_a_hierarchy() -> None:
    columns = parsed({f"{QUASI}.age": {"weight": 2}, f"{QUASI}.race.weight": 0.5}).columns
    assert list(columns.hierarchies) == ["race"] and columns.hierarchies["race"].levels == "/jobs/race.csv"
    assert [spec.is_range for spec in columns.quasi_identifiers.values()] == [True, True, False]
    assert columns.weights == (4 / 7, 2 / 7, 1 / 7)
    domain = columns.quasi_identifiers["income"].domain
    assert domain is not None and (float(domain[0]), float(domain[1])) == (-5.0, 1.5)
    other = parsed({f"{QUASI}.age": {"intervals": {"from": 0, "to": 9, "widths": [2]}}}).columns
    assert list(other.hierarchies) == ["age", "race"]
    assert parsed({}).columns.weights == pytest.approx([1 / 3] * 3)


def test_what_is_published() -> None:
    assert parsed({}).columns.published == ("age", "income", "race", "codes", "visits")
    one = parsed({**PROTECTED, "columns.sensitive": ["plan"]}).columns
    assert one.published == ("age", "income", "race", "codes", "codes_sensitive", "plan", "visits")
    assert (one.items, one.sensitive_column) == ("codes", "codes_sensitive") and one.sensitive_names == {SECRET}
    two = parsed({**PROTECTED, **TWO}).columns
    assert two.published == ("age", "income", "race", "transactions", "transactions_sensitive", "visits")
    assert two.sensitive_names == {f"codes.{SECRET}"}
    allowed = {"columns.sensitive_items": {"codes": ["x"]}, f"{OWN}.allow_unprotected_sensitive": True}
    assert parsed(allowed).unprotected_items and not parsed(PROTECTED).unprotected_items
    # names of columns that are not published do not collide
    assert parsed({**PROTECTED, "columns.identifiers": ["codes_sensitive", "transactions"]})
    assert parsed({"columns.keep": ["codes_sensitive"]}) and parsed({"columns.transactions": ["a", "transactions"]})


@pytest.mark.parametrize(
    ("items", "kind", "location"),
    [
        ({"levels": "h.csv"}, "apriori", "/jobs/h.csv"),
        ({"edges": "h.csv", "sep": ";", "header": True, "method": "vertical"}, "vertical", "/jobs/h.csv"),
        ({"levels": "cat.h", "format": "delta", "method": "local", "block": 50}, "local", "cat.h"),
        ({"method": "local"}, "local", None),
        ({}, "sets", None),
    ],
)
def test_items(items: dict[str, Any], kind: str, location: str | None) -> None:
    spec = parsed({f"{OWN}.items": items}).relational_transaction.items
    assert spec.kind == kind
    source = spec.hierarchy.source() if spec.hierarchy else None
    assert getattr(source, "location", None) == location
    assert getattr(source, "header", False) == items.get("header", False)


def test_options_that_go_together() -> None:
    assert parsed({OWN: {"merge": "both", "distance": "utility_loss", "exhaustive_seeds": True}})
    assert parsed({OWN: {"bound": "items", "merge": "items", "delta": 0.3, "cost": "utility_loss"}})
    blocks = parsed({OWN: {"method": "tfirst", "items": {"block": 10}, "cost": "utility_loss"}}).relational_transaction.items
    assert (blocks.block, blocks.kind) == (10, "sets")
    assert parsed({OWN: {"method": "rfirst", "block": 100, "items": {"levels": "h.csv"}}})
    assert parsed({OWN: {"cost": "utility_loss", "items": {"method": "local"}}})


# --- the papers' words --------------------------------------------------------------------------------------------------


PLAIN = {
    "bound": {"rum": "relational", "tum": "items"},
    "merge": {"r": "relational", "t": "items", "rt": "both"},
    "distance": {"btd": "bits", "ul": "utility_loss"},
    "cost": {"occ": "occurrences", "ul": "utility_loss"},
}
METHODS = {"aa": "apriori", "lra": "local", "vpa": "vertical"}
HASHES: list[tuple[dict[str, Any], str]] = [  # of jobs in the papers' words, before there were others
    ({}, "42a077d7d3f315dacb84e1ef5ff8cef02e7892a92158eedbdfc88acd44d440f0"),
    ({"bound": "tum", "merge": "t", "distance": "btd", "cost": "occ"},
     "401e19cce40cfe0202801d8ba35f4d78c0692ab82d5e221492ad249ed16eb844"),
    ({"bound": "rum", "merge": "rt", "distance": "ul", "cost": "ul", "delta": 0.3},
     "c75ab6ff867f05b4f8c9dc4245fb1ca0c70c42a68ce9c16d5677c0d160889da4"),
    ({"merge": "r", "items": {"method": "aa", "levels": "h.csv"}},
     "71bc82607266326ade373de065360116155afd953d9cbd39d9610d6b56f2445c"),
    ({"items": {"method": "vpa", "edges": "h.csv"}}, "e4dab23ac67d259d32ab8b96db010b06f46a4610e50c7d0deda540a54193b31b"),
    ({"method": "rfirst", "items": {"method": "lra", "block": 50}},
     "541e72796ab831f42740c953ad26c765cb8f41172dffe4d169f0bde1eaeaa969"),
]  # fmt: skip


def in_plain_words(options: dict[str, Any]) -> dict[str, Any]:
    plain = {key: PLAIN[key][word] if key in PLAIN else word for key, word in options.items()}
    items = options.get("items")
    return plain | ({"items": items | {"method": METHODS[items["method"]]}} if items else {})


@pytest.mark.parametrize(("options", "digest"), HASHES, ids=[str(options) for options, _ in HASHES])
def test_a_table_is_not_published_again_because_of_a_word(options: dict[str, Any], digest: str) -> None:
    before = {"cost": "occurrences", "refine": "none"}  # the old defaults
    old, new = (parsed({OWN: {**before, **said}}) for said in (options, in_plain_words(options)))
    assert config_hash(old) == config_hash(new) == digest
    assert old == new and not {"rum", "tum", "btd", "occ"} & set(map(str, dict(old.relational_transaction).values()))


def test_a_share_of_items_to_leave_out_is_another_job() -> None:
    default, none, some = (parsed({OWN: options}) for options in ({}, {"suppress_items": 0}, {"suppress_items": 0.01}))
    assert config_hash(default) == config_hash(none) != config_hash(some)


def test_a_parsed_job_has_plain_words_only() -> None:
    for key, words in PLAIN.items():
        for paper, plain in words.items():
            others = {"merge": "t"} if key == "distance" else {}
            options = parsed({OWN: {**others, key: paper}}).relational_transaction
            assert getattr(options, key) == options.model_dump()[key] == options.model_dump(mode="json")[key] == plain
    for paper, plain in METHODS.items():
        assert parsed({f"{OWN}.items": {"levels": "h.csv", "method": paper}}).relational_transaction.items.kind == plain
    written = load_job(CONF / "relational_transaction.yaml", [f"{OWN}.merge=rt", f"{OWN}.bound=items"])
    assert isinstance(written, RelationalTransactionJob)
    assert (written.relational_transaction.merge, written.relational_transaction.bound) == ("both", "items")


def test_both_spellings_conflict_alike() -> None:
    """Also beside another fault, where the rules between keys read the job as it was written."""
    for options in (
        {"distance": "ul"},
        {"method": "rfirst", "bound": "tum", "merge": "rt", "distance": "ul"},
        {"exhaustive_seeds": True, "bound": "tum"},
        {"items": {"method": "vpa"}},
        {"cost": "ul", "items": {"method": "aa"}},
        {"items": {"method": "lra", "block": 9}},
    ):
        for fault in ({}, {"privacy.m": 0}):
            wrong = refusal({OWN: options, **fault})
            assert wrong == refusal({OWN: in_plain_words(options), **fault}) and any(OWN in line for line in wrong)
    assert parsed({OWN: {"items": {"method": "lra", "block": 50}}}) and parsed({OWN: {"merge": "t", "distance": "ul"}})


# --- what is refused ------------------------------------------------------------------------------------------------


UNPROTECTED = (
    "columns.sensitive_items: would be published without protection: give privacy.l (2 or more), or leave them among the "
    f"other items, or say {OWN}.allow_unprotected_sensitive: true"
)
ITEMS = f"{OWN}.items"
FLAG = f"{OWN}.allow_unprotected_sensitive"
FIRST = "goes with method: bound only, rfirst merges no clusters; remove it"
DOMAIN = "should be two numbers, such as [1920, 2005]"
RELEASE = "has the name of a column of the release; rename it"
FAULTS: list[tuple[dict[str, Any], str]] = [
    # privacy
    ({"privacy.k": 1}, "privacy.k: should be at least 2"),
    ({"privacy.k": ABSENT}, "privacy.k: is required"),
    ({"privacy.m": 0}, "privacy.m: should be at least 1"),
    ({"privacy.m": True}, "privacy.m: should be a whole number"),
    ({**PROTECTED, "privacy.l": 1}, "privacy.l: should be at least 2"),
    ({"privacy.l": 3}, "privacy.l: needs columns.sensitive_items: the items that must stay rare among the rows that fit"),
    ({"privacy.suppression": 0.1}, "privacy.suppression: unknown key. It belongs to lattice and mst, not to "
     "relational_transaction; remove it, or change the family."),
    # transaction columns
    ({"columns.transactions": ABSENT}, "columns.transactions: is required"),
    ({"columns.transactions": []}, "columns.transactions: needs at least one entry"),
    ({"columns.transactions": "codes"}, "columns.transactions: should be a list"),
    ({"columns.transactions": ["codes", "Codes"]}, "columns.transactions: column codes is named twice"),
    ({"columns.transactions": ["codes", "codes.old"]},
     "columns.transactions: items of codes.old could be taken for items of codes: rename one of them"),
    ({"columns.keep": ["Codes"]}, "columns.keep: column Codes is in transactions already; a column has one role"),
    ({"columns.transactions": ["age"]},
     f"{QUASI}: column age is in transactions already; a column has one role"),
    ({"columns.transactions": ["_link"]},
     "columns.transactions[0]: names starting with _anon_, and _link, are reserved; rename the column"),
    ({"columns.transaction": ["x"]}, "columns.transaction: unknown key. Did you mean: transactions?"),
    # names of the release
    ({**TWO, "columns.keep": ["Transactions"]}, f"columns.keep: column Transactions {RELEASE}"),
    ({**TWO, f"{QUASI}.transactions": {}}, f"{QUASI}: column transactions {RELEASE}"),
    ({**PROTECTED, "columns.sensitive": ["codes_sensitive"]}, f"columns.sensitive: column codes_sensitive {RELEASE}"),
    ({**PROTECTED, **TWO, "columns.keep": ["transactions_sensitive"]},
     f"columns.keep: column transactions_sensitive {RELEASE}"),
    # sensitive items
    ({"columns.sensitive_items": {"codes": [SECRET]}}, UNPROTECTED),
    ({**PROTECTED, "privacy.l": None}, UNPROTECTED),
    ({**PROTECTED, "columns.sensitive_items": {"code": [SECRET]}},
     "columns.sensitive_items: column code is not one of columns.transactions. Did you mean: codes?"),
    ({**PROTECTED, "columns.sensitive_items": {"age": [SECRET]}},
     "columns.sensitive_items: column age is not one of columns.transactions."),
    ({**PROTECTED, "columns.sensitive_items": {"codes": []}}, "columns.sensitive_items.codes: needs at least one entry"),
    ({**PROTECTED, "columns.sensitive_items": {"codes": [SECRET, SECRET]}}, "columns.sensitive_items.codes: names an item twice"),
    ({**PROTECTED, "columns.sensitive_items": {"codes": [34]}},
     "columns.sensitive_items.codes[0]: should be text; put it in quotes"),
    ({**PROTECTED, "columns.sensitive_items": [SECRET]}, "columns.sensitive_items: should be a section of keys"),
    ({**PROTECTED, FLAG: True}, f"{FLAG}: privacy.l protects the sensitive items; remove one of the two"),
    ({FLAG: True}, f"{FLAG}: goes with columns.sensitive_items only; remove it"),
    # quasi-identifiers
    ({QUASI: {}}, f"{QUASI}: needs at least one entry"),
    ({f"{QUASI}.age": "h.csv"},
     f"{QUASI}.age: needs a hierarchy, one of: levels, edges, intervals, mask, date, top; or {{}} for ranges of a number"),
    ({f"{QUASI}.race.mask": {}}, f"{QUASI}.race: has levels and mask; keep one"),
    ({f"{QUASI}.race.domain": [0, 1]},
     f"{QUASI}.race: domain goes with a number without hierarchy; the hierarchy has its own"),
    ({f"{QUASI}.age.domain": [1]}, f"{QUASI}.age.domain: {DOMAIN}"),
    ({f"{QUASI}.age.domain": 5}, f"{QUASI}.age.domain: {DOMAIN}"),
    ({f"{QUASI}.age.domain": [5, 1]}, f"{QUASI}.age.domain: should be [least, greatest]"),
    ({f"{QUASI}.age.domain": [0, True]}, f"{QUASI}.age.domain[1]: should be a number"),
    ({f"{QUASI}.age.weight": 0}, f"{QUASI}.age.weight: should be above 0"),
    ({f"{QUASI}.age.weight": "1"}, f"{QUASI}.age.weight: should be a number"),
    ({f"{QUASI}.age.header": True}, f"{QUASI}.age: sep and header go with a text file of levels or edges only"),
    ({f"{QUASI}.age.format": "delta"}, f"{QUASI}.age: format goes with levels only"),
    ({f"{QUASI}.age.level": "x"}, f"{QUASI}.age.level: unknown key. Did you mean: levels?"),
    # merging
    ({f"{OWN}.delta": 1.1}, f"{OWN}.delta: should be at most 1"),
    ({f"{OWN}.delta": -0.1}, f"{OWN}.delta: should be at least 0"),
    ({f"{OWN}.delta": float("nan")}, f"{OWN}.delta: should be a finite number"),
    ({f"{OWN}.merge": "best"}, f"{OWN}.merge: should be one of relational, items, both"),
    ({OWN: {"method": "rfirst", "delta": 0.65}}, f"{OWN}.delta: {FIRST}"),
    ({OWN: {"method": "rfirst", "bound": "items"}}, f"{OWN}.bound: {FIRST}"),
    ({OWN: {"method": "rfirst", "merge": "both"}}, f"{OWN}.merge: {FIRST}"),
    ({OWN: {"method": "rfirst", "distance": "utility_loss"}}, f"{OWN}.distance: {FIRST}"),
    ({OWN: {"method": "rfirst", "exhaustive_seeds": True}}, f"{OWN}.exhaustive_seeds: {FIRST}"),
    ({OWN: {"method": "tfirst", "delta": 0.3}}, f"{OWN}.delta: {FIRST.replace('rfirst', 'tfirst')}"),
    ({OWN: {"method": "tfirst", "block": 100}},
     f"{OWN}.block: tfirst makes blocks of similar item sets: give items.block instead"),
    ({OWN: {"distance": "utility_loss"}}, f"{OWN}.distance: goes with merge: items or both only; remove it"),
    ({OWN: {"exhaustive_seeds": True, "bound": "items"}},
     f"{OWN}.exhaustive_seeds: goes with bound: relational only, with items clusters always merge; remove it"),
    ({f"{OWN}.block": 1}, f"{OWN}.block: should be at least 2"),
    # items
    ({ITEMS: "set"}, f"{ITEMS}: should be sets, or a section with the hierarchy of the items and a method"),
    ({ITEMS: ["sets"]}, f"{ITEMS}: should be sets, or a section with the hierarchy of the items and a method"),
    ({ITEMS: {"method": "apriori"}}, f"{ITEMS}.method: apriori needs levels or edges: the hierarchy of the items"),
    ({ITEMS: {"method": "vertical"}}, f"{ITEMS}.method: vertical needs levels or edges: the hierarchy of the items"),
    ({ITEMS: {"levels": "a", "edges": "b"}}, f"{ITEMS}: has levels and edges; keep one"),
    ({ITEMS: {"edges": "b", "format": "delta"}}, f"{ITEMS}: format goes with levels only"),
    ({ITEMS: {"sep": ";"}}, f"{ITEMS}: sep and header go with a text file of levels or edges only"),
    ({ITEMS: {"levels": "a", "block": 50}},
     f"{ITEMS}.block: goes with items.method: local or with method: tfirst only; remove it"),
    ({ITEMS: {"method": "local", "block": 9}}, f"{ITEMS}.block: is 9, below privacy.k, which is 10; choose at least that"),
    ({OWN: {"cost": "utility_loss", "items": {"levels": "a"}}},
     f"{OWN}.cost: goes with sets of items only, a hierarchy has its own cost; remove it"),
    ({f"{OWN}.suppress_items": 1.5}, f"{OWN}.suppress_items: should be at most 1"),
    ({OWN: {"suppress_items": 0.01, "items": {"levels": "a"}}},
     f"{OWN}.suppress_items: goes with sets of items only, a hierarchy has a place for a rare item; remove it"),
    ({OWN: {"suppress_items": 0.01, "bound": "items"}},
     f"{OWN}.suppress_items: goes with bound: relational only, merging cannot lower the loss of an item left out"),
    ({ITEMS: {"mask": {}}},
     f"{ITEMS}.mask: unknown key. Known here: format, levels, edges, sep, header, method, block."),
    ({f"{OWN}.seed": 1}, f"{OWN}.seed: unknown key. Known here: method, bound, delta, merge, distance, refine, "
     "exhaustive_seeds, items, cost, suppress_items, block, allow_unprotected_sensitive."),
    # places
    ({ITEMS: {"levels": "out/h.csv"}, "output.table": "./out"},
     f"output.table: contains {ITEMS}.levels; choose a place apart from it"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "line"), FAULTS, ids=[f"{at} {line}" for at, (_, line) in enumerate(FAULTS)])
def test_a_fault_is_one_line_that_says_why(changes: dict[str, Any], line: str) -> None:
    assert refusal(changes) == [line]


def test_all_faults_are_told_together() -> None:
    faults = {
        "privacy.l": 2,
        ITEMS: {"method": "vertical"},
        f"{OWN}.merge": "best",
        "columns.keep": ["codes"],
        "privacy.m": 0,
    }
    assert len(refusal(faults)) == 5


def test_direct_use_of_the_spec_checks_the_same() -> None:
    with pytest.raises(ValueError, match=r"needs columns\.sensitive_items"):
        RelationalTransactionJob.model_validate(changed({"privacy.l": 3}))
    assert RelationalTransactionJob.model_validate(changed({OWN: {"method": "tfirst"}})).delta is None


@pytest.mark.parametrize("path", [
    "columns", "columns.transactions", "columns.sensitive_items", "columns.sensitive_items.codes", QUASI, f"{QUASI}.age",
    f"{QUASI}.age.domain", f"{QUASI}.age.weight", "privacy", OWN, ITEMS, f"{ITEMS}.levels", f"{ITEMS}.block", f"{OWN}.delta",
])  # fmt: skip
@pytest.mark.parametrize("value", [5, 1.5, True, "", "\0", [], [[]], [5], {"": 5}, {"a": {}}, {5: 5}, SECRET, [SECRET]])
def test_nonsense_never_escapes_as_another_error(path: str, value: object) -> None:
    try:
        parse_job(changed({path: value}), Path("/jobs"))
    except ConfigurationError as error:
        assert str(error).count("\n") + 1 == len(error.facts["problems"])


def test_keys_of_the_family() -> None:
    keys = known_keys(OWN)
    assert keys["privacy.m"].startswith("whole number, default 2")
    assert keys["columns.transactions"].startswith("list of text, required")
    assert keys["columns.sensitive_items"].startswith("mapping of names to list of text, optional")
    assert keys[f"{OWN}.bound"].startswith("relational (or rum) | items (or tum), default relational: ")
    assert keys[f"{OWN}.merge"].startswith("relational (or r) | items (or t) | both (or rt), default relational: ")
    assert keys[f"{ITEMS}.method"].startswith("apriori (or aa) | local (or lra) | vertical (or vpa), optional: ")
    assert {f"{ITEMS}.levels", f"{QUASI}.<column>.domain", f"{QUASI}.<column>.mask.keep"} <= set(keys)
    assert "columns.transactions" not in known_keys("mst") and "columns.items" not in keys


# --- guarantees -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [1, 0, True, 2.0, "2"])
def test_guarantees_that_protect_nobody_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^k "):
        KKmAnonymity(wrong, 2, ["age"], "codes")
    with pytest.raises(ConfigurationError, match=r"^l "):
        KLmDiversity(5, wrong, 2, ["age"], "codes", "codes_sensitive")
    if wrong != 1 or wrong is True:
        with pytest.raises(ConfigurationError, match=r"^m "):
            KLmDiversity(5, 3, wrong, ["age"], "codes", "codes_sensitive")


def test_guarantees_need_columns_of_their_own() -> None:
    assert KKmAnonymity(2, 1, ["age"], "codes").m == 1
    with pytest.raises(ConfigurationError, match="at least one relational column"):
        KKmAnonymity(2, 1, [], "codes")
    with pytest.raises(ConfigurationError, match="cannot be both"):
        KKmAnonymity(2, 1, ["age", "codes"], "codes")
    for taken in ("age", "codes"):
        with pytest.raises(ConfigurationError, match="another role"):
            KLmDiversity(2, 2, 1, ["age"], "codes", taken)


def test_guarantees_are_values_with_a_name() -> None:
    anonymity, diversity = (
        KKmAnonymity(25, 2, ["age", "race"], "codes"),
        KLmDiversity(25, 3, 1, ["age"], "codes", "apart"),
    )
    assert str(anonymity) == "(25,25^2)-anonymity of codes on age, race"
    assert (
        str(KKmAnonymity(5, 1, ["age"], "codes", True))
        == "(5,5^1)-anonymity of codes on age (sensitive items unprotected)"
    )
    assert str(diversity) == "(25,3^1)-diversity of apart on codes and age"
    assert hash(anonymity) == hash(KKmAnonymity(25, 2, ("age", "race"), "codes"))
    assert anonymity != KKmAnonymity(25, 2, ["age", "race"], "codes", unprotected=True)
    assert (anonymity.k, diversity.k, anonymity.unit, diversity.unit) == (25, 25, "rows", "rows")


def test_guarantees_say_how_far_they_reach() -> None:
    plain, beside = (KKmAnonymity(5, 2, ["age"], "codes", unprotected) for unprotected in (False, True))
    diversity = KLmDiversity(5, 3, 2, ["age"], "codes", "codes_sensitive")
    for guarantee in (plain, beside, diversity):
        limits = " ".join(guarantee.does_not_cover)
        words = (
            "more than m = 2 items",
            "does not have an item",
            "known items are all",
            "Several releases",
            "Presence",
        )
        assert all(word in limits for word in words)
        assert "any 2 or fewer" in guarantee.covers[0]
    # unprotected sensitive items come first; without any, nothing is said of them
    assert beside.does_not_cover[0].startswith("Sensitive items: this release publishes them without protection")
    assert "Known sensitive items" in " ".join(beside.does_not_cover)
    assert "without protection" not in " ".join(plain.does_not_cover + diversity.does_not_cover)
    assert "Known sensitive items" in " ".join(diversity.does_not_cover) and "l = 3" in diversity.covers[-1]
