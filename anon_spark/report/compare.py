"""Releases of one table side by side: the same measures of each, as a table and a picture, and as the files of a report.

From numbers and names alone, as in the report of a run. It ranks nothing: the reader decides which loss matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from anon_spark.model.findings import Finding
from anon_spark.report.formats import NOTHING, is_number, plain, show
from anon_spark.report.items import Bars, Check, Section, Table, Text
from anon_spark.report.page import Notice, Step, sections_dict
from anon_spark.report.rendered import Rendered
from anon_spark.report.run_report import TEST_KEY, versioned

FORMAT = 1  # of the JSON; raised when a key changes its meaning or goes

MEASURES = {  # → what it says, what is better for those who use the release
    "published_rows": ("published rows", "more"),
    "suppressed_rows": ("suppressed rows", "fewer"),
    "classes": ("classes", "more"),
    "smallest_class": ("rows of the smallest class", ""),
    "glm": ("general loss (GLM), 0 to 1", "less"),
    "il": ("information loss (IL), 0 to the number of attributes", "less"),
    "ncp": ("normalized certainty penalty (NCP), 0 to 1", "less"),
    "dm": ("discernibility (DM)", "less"),
    "cavg": ("average class size over k (CAVG)", "less"),
    "attack_expected": ("success of the attack, mean of all sampled rows", "less"),
    "attack_worst": ("success of the attack, least protected row", "less"),
    "attack_class_expected": ("the same if the attacker knows the class, mean", "less"),
    "attack_class_worst": ("the same if the attacker knows the class, least protected row", "less"),
}
DRAWN = {  # the panels of the picture
    "glm": "GLM", "il": "IL", "ncp": "NCP", "dm": "DM", "cavg": "CAVG", "attack_expected": "attack, mean",
}  # fmt: skip

SUPPRESSED = (
    "A suppressed row costs 1 per cell in GLM and as much as the whole table has rows in DM; CAVG divides all rows in scope "
    "by the classes. IL and NCP are means over the published rows: a release that suppresses rows is flattered by them. The "
    "attack cannot link a suppressed row. Rows that the jobs' policies for nulls and unseen values drop are in no loss."
)
ATTACK = (
    "The attacker knows every quasi-identifier of a person, looks up all published rows that are true of them, and picks "
    "one; or somehow knows the class, and it is the smallest that fits. The same sampled persons for every release."
)
INTERSECTED = "These are releases of the same people: whoever has two of them can intersect them. Hand out one."


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One release: where it is, what it promises, its checks, and MEASURES by their keys."""

    name: str
    family: str
    table: str
    version: int
    run_id: str
    guarantee: str
    k: int
    for_release: bool
    checks: Sequence[Check]
    measures: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Comparison(Rendered):
    """Verified releases of one version of one table, measured alike.

    attack: what the simulated attack says of the raw table (sampled_rows, expected, worst).
    Guarantee: a release with a failed check or a class below its k is refused, so is a measure that is no number.
    """

    made: datetime
    input_table: str
    input_version: int | None
    rows: int
    quasi_identifiers: Sequence[str]
    attack: Mapping[str, float]
    releases: Sequence[Compared]
    versions: Mapping[str, str]

    def __post_init__(self) -> None:
        names = [release.name for release in self.releases]
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError("releases: a comparison needs at least two, with different names.")
        for release in self.releases:
            failed = sum(not check.passed for check in release.checks)
            if failed or not release.checks:
                raise ValueError(f"{release.name}: {failed} of {len(release.checks)} checks failed. It cannot be compared.")
            if list(release.measures) != list(MEASURES):
                raise ValueError(f"{release.name}: other measures than {', '.join(MEASURES)}.")
            odd = [name for name, value in release.measures.items() if not is_number(value)]
            if odd:
                raise ValueError(f"{release.name}: {', '.join(odd)}: a number is needed. Report how many, never which.")
            if release.measures["smallest_class"] < release.k:
                raise ValueError(f"{release.name}: a class below k = {release.k}. It cannot be compared.")

    @property
    def table(self) -> pd.DataFrame:
        """One row per release: family, k, and the measures by their keys."""
        rows = [{"family": release.family, "k": release.k, **release.measures} for release in self.releases]
        return pd.DataFrame(rows, index=pd.Index([release.name for release in self.releases], name="release"))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the drawing, as JSON types."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "releases"}
        releases = [plain(asdict(release)) for release in self.releases]
        return {"format": FORMAT, **fields, "releases": releases, "sections": sections_dict(self.sections)}

    # -- what a page shows ----------------------------------------------------------------------------------------

    @property
    def over(self) -> str:
        return f"anon-spark · {len(self.releases)} releases of one table"

    @property
    def title(self) -> str:
        return f"{self.input_table}: {' · '.join(release.name for release in self.releases)}"

    @property
    def in_words(self) -> list[str]:
        return []

    @property
    def promise(self) -> str:
        return "What is guaranteed"

    @property
    def guarantee(self) -> str:
        return ""

    @property
    def covers(self) -> list[str]:
        """The guarantee of each release."""
        return [f"{release.name}: {release.guarantee}" for release in self.releases]

    @property
    def not_covered(self) -> list[str]:
        return [INTERSECTED]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Always empty: a comparison judges no release."""
        return ()

    @property
    def warnings(self) -> list[str]:
        """Cautions for readers of the numbers."""
        if len({release.k for release in self.releases}) == 1:
            return []
        return ["The releases have different k: CAVG is over the k of each, and a larger k has to lose more."]

    @property
    def accounting(self) -> dict[str, int]:
        return {"rows_in_scope": self.rows}

    @property
    def checked(self) -> str:
        return "Checks of the current releases"

    @property
    def checks(self) -> list[Check]:
        return [
            Check(f"{release.name}: {check.name}", check.passed, check.violations, check.detail)
            for release in self.releases
            for check in release.checks
        ]

    @property
    def sections(self) -> list[Section]:
        """Table and picture."""
        names = [release.name for release in self.releases]
        rows = [
            (measure, *(release.measures[key] for release in self.releases), better)
            for key, (measure, better) in MEASURES.items()
        ]
        raw = [
            ("Sampled rows", self.attack["sampled_rows"], "rows", NOTHING),
            ("Success on the raw table, mean", self.attack["expected"], "chance, 0 to 1", "less"),
            ("Success on the raw table, least protected row", self.attack["worst"], "chance, 0 to 1", "less"),
        ]
        panels = [
            Bars(title, names, {"value": [release.measures[key] for release in self.releases]}, _axis(key))
            for key, title in DRAWN.items()
        ]
        return [
            Section(
                "Measures side by side",
                [
                    Table("", ("measure", *names, "better is"), rows, SUPPRESSED),
                    *panels,
                ],
            ),
            Section("The attack", [Text("", [ATTACK]), Table("", ("before", "value", "unit", "better"), raw)]),
        ]

    @property
    def about(self) -> str:
        return "The releases"

    @property
    def timings(self) -> dict[str, float]:
        return {}

    def steps(self) -> list[Step]:
        return []

    def notices(self) -> list[Notice]:
        """That every release passed its audit just now; and which are not to be handed out."""
        passed = Notice("good", "✓", "VERIFIED", "Every release passed its audit before it was measured.")
        tested = [release.name for release in self.releases if not release.for_release]
        test_key = Notice(TEST_KEY.tone, TEST_KEY.symbol, f"{TEST_KEY.headline}: {', '.join(tested)}", TEST_KEY.detail)
        return [passed, test_key] if tested else [passed]

    def particulars(self) -> list[tuple[str, str]]:
        """Rows that identify the table and the releases."""
        releases = [
            (
                f"Release {release.name}",
                f"{versioned(release.table, release.version)}, family {release.family}, run {release.run_id}",
            )
            for release in self.releases
        ]
        rows: list[tuple[str, Any]] = [
            ("Input", versioned(self.input_table, self.input_version)),
            ("Quasi-identifiers", ", ".join(self.quasi_identifiers)),
            *releases,
            ("Compared", self.made),
            *((f"Version of {name}", version) for name, version in self.versions.items()),
        ]
        return [(name, show(value)) for name, value in rows]


def _axis(key: str) -> str:
    measure, better = MEASURES[key]
    return f"{measure}; {better} is better"
