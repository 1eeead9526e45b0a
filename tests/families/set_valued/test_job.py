"""Jobs of the family set_valued: what they become, what is refused and why; what their guarantees say."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from anon_spark.config import config_hash
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import known_keys, load_job, parse_job
from anon_spark.families.set_valued.job import SetValuedJob
from anon_spark.model.guarantee import NonreciprocalAnonymity, NonreciprocalDiversity

CONF = Path(__file__).parents[3] / "conf"
JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "set_valued",
    "input": {"table": "warehouse.baskets"},
    "columns": {"person": "id", "identifiers": ["name"], "items": "basket", "sensitive": ["religion"]},
    "privacy": {"k": 5},
    "output": {"table": "warehouse.release", "runs": "warehouse.runs"},
}
DIVERSE = {"privacy": {"l": 3}}
ONE = "privacy: give k, or l with a sensitive column: one of them"
ABSENT = object()
Nonreciprocal = NonreciprocalAnonymity | NonreciprocalDiversity


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


def parsed(changes: dict[str, Any]) -> SetValuedJob:
    job = parse_job(changed(changes), Path("/jobs"))
    assert isinstance(job, SetValuedJob)
    return job


def refusal(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_job(changed(changes), Path("/jobs"))
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


def test_the_example_reads_the_sample_that_the_demonstration_makes() -> None:
    samples = pytest.importorskip("anon_spark.samples.baskets")
    job = load_job(CONF / "set_valued.yaml")
    assert isinstance(job, SetValuedJob)
    named = {job.columns.items, job.columns.person, *job.columns.sensitive, *job.columns.identifiers}
    assert named == set(samples.COLUMNS)
    assert job == load_job(CONF / "set_valued.yaml", ["set_valued={}"])  # the options are the defaults


def test_defaults_and_what_is_published() -> None:
    job, own = parsed({}), parsed({}).set_valued
    assert (own.order, own.segment, own.graph, own.block, job.truth) == ("window", (300, 350), "groups", 5000, "spaced")
    assert job.columns.published == ("base", "uncertain", "max_errors", "religion")
    assert (job.degree, job.columns.label) == (5, "religion")

    bare = parsed({"columns.sensitive": []})
    assert bare.columns.published == ("base", "uncertain", "max_errors") and bare.columns.label is None

    diverse = parsed(DIVERSE | {"set_valued": {"truth": "shift", "segment": [20, 20], "order": "gray", "block": 1}})
    assert (diverse.degree, diverse.truth, diverse.set_valued.segment) == (3, "shift", (20, 20))
    assert config_hash(parsed(DIVERSE)) != config_hash(parsed({"privacy": {"k": 3}})) != config_hash(diverse)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"privacy.k": 1}, "privacy.k: should be at least 2"),
    ({"privacy": {"l": 1}}, "privacy.l: should be at least 2"),
    ({"privacy": {}}, ONE),
    ({"privacy": {"k": None}}, ONE),
    ({"privacy.l": 3}, ONE),
    ({"privacy": ABSENT}, "privacy: is required"),
    ({"privacy.suppression": 0.1}, "privacy.suppression: unknown key. It belongs to lattice and mst, not to set_valued; "
     "remove it, or change the family."),
    ({**DIVERSE, "columns.sensitive": []}, "privacy.l: needs columns.sensitive: the column whose values must differ"),
    ({"columns.sensitive": ["a", "b"]},
     "columns.sensitive: names 2 columns; one at most can be moved apart from the items"),
    ({"columns.sensitive": ["Max_Errors"]},
     "columns.sensitive: column Max_Errors has the name of a column of the release; rename it"),
    ({"columns.keep": ["weight"]},
     "columns.keep: a kept column would tell which row is whose; the sensitive column is the only other one"),
    ({"columns.items": ABSENT}, "columns.items: is required"),
    ({"columns.items": ["basket"]}, "columns.items: should be text"),
    ({"columns.person": "Basket"}, "columns.person: column Basket is in items already; a column has one role"),
    ({"columns.sensitive": ["basket"]}, "columns.sensitive: column basket is in items already; a column has one role"),
    ({"columns.quasi_identifiers": {}}, "columns.quasi_identifiers: unknown key. Did you mean: identifiers?"),
    ({"on_unseen": "suppress"}, "on_unseen: suppress has no meaning here: items have no hierarchy; remove it"),
    ({"set_valued.truth": "spaced"}, "set_valued.truth: goes with privacy.l only; remove it"),
    ({**DIVERSE, "set_valued.truth": "paper"},
     "set_valued.truth: paper is for reproduction only: it does not keep l; write spaced"),
    ({**DIVERSE, "set_valued.truth": "own"}, "set_valued.truth: should be one of spaced, shift, paper"),
    ({"set_valued.order": "greytsp"}, "set_valued.order: should be one of window, gray_tsp, gray. Did you mean: gray_tsp?"),
    ({"set_valued.graph": "rings"}, "set_valued.graph: should be one of ring, groups. Did you mean: ring?"),
    ({"set_valued.segment": [300]}, "set_valued.segment: should be two whole numbers, such as [300, 350]"),
    ({"set_valued.segment": [True, 3]}, "set_valued.segment: should be two whole numbers, such as [300, 350]"),
    ({"set_valued.segment": 300}, "set_valued.segment: should be two whole numbers, such as [300, 350]"),
    ({"set_valued.segment": [350, 300]}, "set_valued.segment: should be [least, most], each 2 or more"),
    ({"set_valued.segment": [1, 5]}, "set_valued.segment: should be [least, most], each 2 or more"),
    ({"set_valued.block": 0}, "set_valued.block: should be at least 1"),
    ({"set_valued.seed": 1}, "set_valued.seed: unknown key. Known here: order, segment, graph, effort, truth, block."),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "line"), FAULTS, ids=[line for _, line in FAULTS])
def test_a_fault_is_one_line_that_says_why(changes: dict[str, Any], line: str) -> None:
    assert refusal(changes) == [line]


def test_sensitive_items_are_refused_with_the_reason() -> None:
    (line,) = refusal({"columns.sensitive_items": {"basket": ["HIV"]}})
    assert line.startswith("columns: sensitive_items: the items are not protected by this family")
    assert "relational_transaction" in line and "HIV" not in line


def test_all_faults_are_told_together() -> None:
    faults = {"privacy.k": 1, "on_unseen": "suppress", "columns.keep": ["x"], "set_valued.order": "best"}
    assert len(refusal(faults)) == 4


def test_keys_that_families_share_are_explained_by_the_first() -> None:
    assert known_keys()["privacy.k"].startswith("whole number, required")
    assert known_keys("set_valued")["privacy.k"].startswith("whole number, optional")
    assert "columns.items" in known_keys() and "columns.items" not in known_keys("mst")


@pytest.mark.parametrize("wrong", [1, 0, True, 2.0, "2"])
def test_guarantees_that_protect_nobody_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^k "):
        NonreciprocalAnonymity(wrong, "basket")
    with pytest.raises(ConfigurationError, match=r"^l "):
        NonreciprocalDiversity(wrong, "basket", "religion")
    with pytest.raises(ConfigurationError, match="cannot be both"):
        NonreciprocalDiversity(3, "basket", "basket")


def test_guarantees_say_how_far_they_reach() -> None:
    anonymity, diversity = NonreciprocalAnonymity(5, "basket", "religion"), NonreciprocalDiversity(3, "basket", "religion")
    assert anonymity == NonreciprocalAnonymity(5, "basket", "religion") and anonymity.k == 5 and diversity.k == 3
    for guarantee in (anonymity, diversity):
        limits = " ".join(guarantee.does_not_cover)
        assert all(words in limits for words in ("The items:", "hide nothing", "Known links", "Several releases", "Presence"))
        assert "and so which sensitive value" in guarantee.covers[0]
    assert "Minimality" in " ".join(diversity.does_not_cover)
    assert "Minimality" not in " ".join(anonymity.does_not_cover)
    assert "one and the same value" in " ".join(anonymity.does_not_cover)
    assert "sensitive" not in " ".join(NonreciprocalAnonymity(5, "basket").does_not_cover)


def test_weak_guarantees_are_labelled() -> None:
    weak: list[Nonreciprocal] = [
        NonreciprocalAnonymity(2, "b"),
        NonreciprocalDiversity(2, "b", "r"),
        NonreciprocalDiversity(5, "b", "r", shifted=True),
    ]
    strong: list[Nonreciprocal] = [NonreciprocalAnonymity(3, "b"), NonreciprocalDiversity(3, "b", "r")]
    assert [guarantee.definition_only for guarantee in (*weak, *strong)] == [True] * 3 + [False] * 2
    assert all(str(guarantee).endswith("(definition only)") for guarantee in weak)
    assert not any("definition" in str(guarantee) for guarantee in strong)
    assert "finds the true one" in " ".join(weak[2].does_not_cover)
    assert "finds the true one" not in " ".join(strong[1].does_not_cover)
