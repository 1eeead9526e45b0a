"""Findings: when a banner may be green, what limits stop, and by how many standard errors an attack is judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon_spark.config import LimitsSpec, config_hash
from anon_spark.errors import ConfigurationError, FindingRefused
from anon_spark.families.registry import parse_job
from anon_spark.families.set_valued.sections import set_valued_sections
from anon_spark.model.estimate import Estimate
from anon_spark.model.findings import Finding, verdict_sentence
from anon_spark.report import RunReport
from anon_spark.risk.item_sets.known_link import KnownLinkRisk, rates, risk_of
from anon_spark.risk.item_sets.relink_facts import KnownLink, LinkAttack
from anon_spark.runs.findings import exceeded, recognised, require_within
from tests.families.set_valued.test_sections import RISK, facts_of, texts
from tests.report.test_report import report_of

LOOK = Finding("look", "unique", "98.0% of the rows are unique", 0.98)
NOTE = Finding("note", "left_out", "3 rows are not in the release", 0.01)


@pytest.mark.parametrize("status", ["published", "already_published"])
def test_a_banner_is_green_only_without_a_look(status: Any) -> None:
    seen, clean = report_of(status=status, findings=[NOTE, LOOK]), report_of(status=status, findings=[NOTE])

    assert [notice.tone for notice in seen.notices()] == ["caution"]
    assert [notice.tone for notice in clean.notices()] == ["good"]
    page = seen.to_html()
    headline = page.index("PUBLISHED, but look at this</p>")
    assert headline < page.index("Findings</h2>") < page.index("look at this</strong> 98.0%")
    assert page.index("look at this</strong> 98.0%") < page.index("What it does not cover")
    assert page.index("98.0%") < page.index("3 rows are not")  # the gravest first
    assert '<div class="asr-notice asr-good"' not in page and '<div class="asr-notice asr-good"' in clean.to_html()
    assert "look at this: 98.0% of the rows" in seen.to_markdown() and "but look at 1 finding" in seen.to_markdown()
    assert seen.to_dict()["findings"][1] == {"level": "look", "kind": "unique", "text": LOOK.text, "share": 0.98}
    assert seen.to_dict()["verdict"] == seen.verdict


def test_a_stop_is_never_published() -> None:
    with pytest.raises(ValueError, match="1 findings stop it"):
        report_of(findings=[Finding("stop", "limits.unique", "too many")])
    with pytest.raises(ValueError, match="level"):
        Finding("warning", "x", "y")  # type: ignore[arg-type]
    assert isinstance(report_of(status="failed", findings=[Finding("stop", "x", "y")]), RunReport)
    assert verdict_sentence("failed", [Finding("stop", "x", "y")]) == "Nothing was published. 1 finding stopped it."
    assert verdict_sentence("published", [NOTE]).endswith("nothing needs a second look; 1 note beside.")


def test_limits_turn_findings_into_refusals() -> None:
    found = [LOOK, Finding("note", "homogeneous", "some rows", 0.02), Finding("note", "homogeneous", "more rows", 0.2)]

    assert exceeded(found, None) == exceeded(found, LimitsSpec()) == exceeded(found, LimitsSpec(unique=0.98)) == []
    (stop,) = exceeded(found, LimitsSpec(homogeneous=0.1, loss=0.5))  # nothing was said of a loss
    assert (stop.level, stop.kind, stop.share) == ("stop", "limits.homogeneous", 0.2)
    require_within(found)
    with pytest.raises(FindingRefused, match=r"limits\.unique allows 0\.05\. 98\.0% of the rows .*Or raise the limit") as caught:
        require_within(exceeded(found, LimitsSpec(unique=0.05)))
    assert caught.value.exit_code == 3


def test_a_recognised_release_is_as_green_as_its_run_was() -> None:
    assert recognised({"run_id": "a", "look": 0}) == []
    assert [finding.level for finding in recognised({"run_id": "a", "look": 2})] == ["look"]
    assert "did not look for findings" in recognised({"run_id": "a"})[0].text


def job(family: str, **more: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {"items": "items"} if family == "set_valued" else {"quasi_identifiers": {"zip": {"mask": {}}}}
    output = {"table": "./release", "runs": "./runs"}
    own = {"columns": columns, "privacy": {"k": 3}, "output": output}
    return {"anon_spark": 1, "family": family, "input": {"table": "./people"}, **own, **more}


def test_limits_of_a_job_file(tmp_path: Path) -> None:
    plain = parse_job(job("lattice"), tmp_path)
    limited = parse_job(job("lattice", limits={"unique": 0.05, "loss": 1, "homogeneous": 0}), tmp_path)

    assert limited.limits == LimitsSpec(unique=0.05, loss=1, homogeneous=0)
    assert "limits" not in plain.content()  # releases of jobs without limits stay recognised
    assert config_hash(plain) != config_hash(limited)  # and a release that was held against no limit is not


@pytest.mark.parametrize(
    ("family", "limits", "message"),
    [
        ("lattice", {"unique": 1.5}, "limits.unique"),
        ("lattice", {"republication": 1.5}, "limits.republication: should be at most 1"),
        ("lattice", {"republications": 0}, "limits.republications: unknown key. Did you mean: republication?"),
        ("set_valued", {"unique": 0.1}, "limits.unique: a set_valued release has no column beside the items"),
        ("set_valued", {"homogeneous": 0.1}, "limits.homogeneous: a set_valued release has no classes"),
    ],
)
def test_a_limit_that_means_nothing_is_refused(family: str, limits: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_job(job(family, limits=limits), tmp_path)


def test_a_rate_above_its_promise_says_how_far() -> None:
    chance, more = Estimate(0.2017, 0.0034, 0.2), Estimate(0.2120, 0.0034, 0.2)

    assert not chance.noticed and more.noticed
    assert str(chance) == (
        "0.2017 (95 % interval 0.1950 to 0.2084, standard error 0.0034; 0.5 standard errors above the promise: chance)"
    )
    assert str(more).endswith("3.5 standard errors above the promise: more than chance)")
    assert "not above the promise" in str(Estimate(0.2, 0.001, 0.2)) and Estimate(1 / 3 + 1e-12, 0.0, 1 / 3).errors_above == 0
    assert not Estimate(0.9, None, 0.2).noticed and Estimate(0.9, 0.0, 0.2).noticed

    link = LinkAttack.of(500, 256, chance, Estimate(0.19, 0.0034, 0.2), 0.26)
    unknown, neighbour = Estimate(0.2, 0.0034, 0.2), Estimate(0.3, 0.0034, 0.2)
    known = KnownLink.of([KnownLinkRisk("none", 9, 3, unknown), KnownLinkRisk("neighbour", 9, 3, neighbour)])
    said = texts(set_valued_sections(facts_of(risk=replace(RISK, link_attack=link, known_link=known))))
    assert "0.5 standard errors above the promise: chance); promised at most 0.2000." in said
    assert "from 3 standard errors above the promise on" in said and "that is a rate of 0.2600" in said
    assert "lifts the rate of a neighbour from 0.2000 to 0.3000" in said


# --- what one known link tells, against what is known by thought


def told(offsets: Any, part: Any, degree: int) -> dict[str, float]:
    size = np.bincount(part)[part]
    found = dict(rates(np.asarray(offsets), part, size, np.arange(part.size), degree))
    estimates = {kind: risk_of(kind, sums, degree).estimate for kind, sums in found.items()}
    return {kind: estimate.rate for kind, estimate in estimates.items() if estimate is not None}


def test_one_link_reveals_a_ring_of_shifts() -> None:
    """All records of a draw are shifted alike: a link tells everything."""
    shifts = np.random.default_rng(1).integers(0, 3, size=(400, 1))
    found = told(np.broadcast_to(shifts, (400, 60)), np.zeros(60, dtype=np.int64), 3)

    assert found["neighbour"] == found["other"] == 1.0 and abs(found["none"] - 1 / 3) < 0.1


def test_one_link_of_a_group_tells_of_its_mates_only() -> None:
    """A uniform permutation of each group of four: a mate is one of three, a stranger one of four."""
    draw, part = np.random.default_rng(2), np.repeat(np.arange(15), 4)
    slots = np.array([[4 * group + place for group in range(15) for place in draw.permutation(4)] for _ in range(600)])
    found = told((slots - np.arange(60)) % 4, part, 4)

    assert found == pytest.approx({"none": 1 / 4, "neighbour": 1 / 3, "other": 1 / 4}, abs=0.015)
