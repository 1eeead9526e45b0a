"""The tree part of a report and what it is made of: every part, what is left out, what is refused, the keys of the JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from anon_spark.families.tree.facts import (
    AttackerGain,
    CutSearch,
    KnowledgeAttack,
    Measures,
    NodeTypeCut,
    NodeTypePair,
    Published,
    SupportRange,
    TreeFacts,
)
from anon_spark.families.tree.pipeline import TreePipeline
from anon_spark.families.tree.recoding import TreeRecoding
from anon_spark.families.tree.records import Roles
from anon_spark.families.tree.sections import tree_sections
from anon_spark.families.tree.settings import Settings
from anon_spark.model.facts import CrowdRange
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import NodeType, TreeSchema
from anon_spark.report import Bars, Picture, Section, Table, Text
from anon_spark.report.formats import plain
from anon_spark.risk import StructureRisk, TreeKnowledge

SEARCH = CutSearch(
    seconds=12.5,
    search="beam",
    cost="rpd_a",
    loss=0.0123,
    cuts="98765432109876",
    evaluated=400,
    passed_value_check=350,
    pops=40,
    stopped_by="max_cuts",
    disassociations=3,
    labels=14,
    trail=((1, 1.0), (7, 0.5), (300, 0.0123)),
    counted="driver",
    rounds=77,
    seconds_reading=0.25,
)
OUTCOME = TreeKnowledge(
    labels=3, relations=2, negated=0, level=None, promised=True, drawn=1000, nothing=4, below=0, supports=(), least=5, mean=80.5,
    affected=0.0, histogram=((5, 9, 1000),), cut_off=2, lost=4, found=996,
)  # fmt: skip
WITHIN = KnowledgeAttack.of(OUTCOME)
ABSENT = replace(WITHIN, negated=4, level=1, promised=False)
BEYOND = replace(WITHIN, labels=5, relations=4, promised=False, below=250, least=1)
FACTS = TreeFacts(
    required_k=5,
    m=3,
    n=2,
    l=2,
    disassociated=(NodeTypePair("city", "shop", 2), NodeTypePair("shop", "item", 1)),
    negations=1,
    nested=False,
    node_types=(
        NodeTypeCut("city", None, False, 9, 2, (4, 2, 0)),
        NodeTypeCut("shop", "city", False, 30, 3, (0, 0, 0, 0)),
        NodeTypeCut("illness", "city", True, 8, 1, (8, 0)),
    ),
    search=SEARCH,
    records=5000,
    nodes=60_000,
    merged_siblings=12,
    measures=Measures(0.02, 0.0123, 0.25, 0.9),
    partial=True,
    published=(Published("city", 0.5, 0.3, 0.2, 0.25), Published("shop", 0.0, 0.0, 1.0, 1.0)),
    supports=(SupportRange(5, 9, 120), SupportRange(10, 19, 60)),
    highest_share=0.4,
    risk=AttackerGain({"0": WITHIN, "1": ABSENT, "2": BEYOND}, StructureRisk(3, 900, 80, 30, 1, 9)),
)
WHOLE = replace(FACTS, l=None, disassociated=(), nested=True, highest_share=None, risk=AttackerGain({"0": WITHIN}, None))


def tables(sections: list[Section]) -> dict[str, Table]:
    return {f"{part.title}/{item.title}": item for part in sections for item in part.items if isinstance(item, Table)}


def bars(sections: list[Section]) -> dict[str, Bars]:
    return {item.title: item for part in sections for item in part.items if isinstance(item, Bars)}


def texts(sections: list[Section]) -> str:
    return " ".join(line for part in sections for item in part.items if isinstance(item, Text) for line in item.paragraphs)


def pipeline() -> TreePipeline:
    return object.__new__(TreePipeline)  # what it says of facts needs no job


def test_every_part_is_there() -> None:
    sections = tree_sections(FACTS)
    assert [part.title for part in sections] == [
        "What was lost",
        "What an attacker gains",
        "What many records share",
        "How the cut was found",
    ]
    assert sum(isinstance(item, Picture) for part in sections for item in part.items) == 1
    assert list(bars(sections)) == [
        "Detail lost", "How the values of each node type are published", "Knowledge that fits fewer than k records, but some",
        "How many records share what may be known",
    ]  # fmt: skip
    shown = tables(sections)
    assert [row[1] for row in shown["What was lost/"].rows] == [0.02, 0.0123, 0.25, 0.9]
    assert [row[3] for row in shown["What was lost/"].rows] == ["less", "less", "less", "more"]
    assert shown["What was lost/Node types"].rows[1] == ("shop", 30, "in *", 0, "no")
    assert list(shown["What was lost/Relations disassociated"].rows) == [("city", "shop", 2), ("shop", "item", 1)]
    assert "Disassociated in all records: 3 relations between labels." in texts(sections)
    assert "stands for the values that these leave over" in texts(sections)
    assert "a share of 0.4 among records that fit. At most 0.5 is promised." in texts(sections)
    known = [row[:3] for row in shown["What an attacker gains/Knowledge attack"].rows]
    assert known[0] == ("3 values, 2 relations", "yes", 1000) and known[1][0].endswith(", 4 groups absent")
    aware = shown["What an attacker gains/Structure-aware attacker"].rows
    assert ("of these, fewer than k records do", 30, "pieces", "fewer") in aware
    search = dict(map(tuple, shown["How the cut was found/How the search went"].rows))
    assert search["Cuts there are"] == "about 10^13" and search["Stopped early"] == "by max_cuts"
    assert search["Equal siblings that were put together"] == 12


def test_what_does_not_apply_is_left_out() -> None:
    search = replace(SEARCH, stopped_by=None, cost="rpd", cuts="1234")
    sections = tree_sections(replace(WHOLE, measures=Measures(0.02, None, 0.25, None), search=search, merged_siblings=None))
    shown = tables(sections)
    assert [row[1] for row in shown["What was lost/"].rows] == [0.02, 0.25]
    assert "What was lost/Relations disassociated" not in shown
    assert "the release also holds the records as nested values" in texts(sections)
    assert "sensitive value" not in texts(sections)
    assert "What an attacker gains/Structure-aware attacker" not in shown
    rows = dict(map(tuple, shown["How the cut was found/How the search went"].rows))
    assert "Stopped early" not in rows and rows["Cuts there are"] == "1,234" and None not in rows.values()
    assert not any("siblings" in row for row in rows)  # records were dropped, so they were not counted


def test_how_values_are_published_is_drawn() -> None:
    sections = tree_sections(replace(FACTS, partial=False))
    drawn = bars(sections)["How the values of each node type are published"]
    assert drawn.stacked and drawn.names == ["city", "shop"]
    assert drawn.series == {"as they were": [0.5, 0.0], "as a group": [0.3, 0.0], "as the root": [0.2, 1.0]}
    assert "leave over" not in texts(sections)


def test_a_share_of_nothing_found_has_an_interval() -> None:
    drawn = bars(tree_sections(FACTS))["Knowledge that fits fewer than k records, but some"]
    assert drawn.series == {"share": [0.0, 0.0, 0.25]}
    (low, high), _, (from_, to) = (interval or (0.0, 1.0) for interval in drawn.intervals)
    assert low == 0 and 0.003 < high < 0.005 and 0.22 < from_ < 0.25 < to < 0.28


def test_crowds_of_whole_records_are_no_promise() -> None:
    crowds = (CrowdRange(1, 1, 0.9, 0.25), CrowdRange(2, 4, 0.1, 0.05), CrowdRange(5, None, 0.0, 0.7))
    drawn = bars(tree_sections(replace(FACTS, crowds=crowds)))["Crowds before and after"]
    assert drawn.names == ["1 (found)", "2 – 4", "5 and more"]
    assert drawn.series == {"source": [0.9, 0.1, 0.0], "release": [0.25, 0.05, 0.7]}
    assert drawn.unit.startswith("share of records by size of their crowd: records with the same values in the same places;")
    assert "more than the 3 values and 2 relations of the promise" in drawn.note and "may be smaller than 5" in drawn.note
    assert drawn.note.endswith("Of sensitive values only the node type counts.")
    assert "Crowds before and after" not in bars(tree_sections(FACTS))  # of a report that was made before they were counted


def test_supports_below_k_are_refused() -> None:
    with pytest.raises(ValueError, match="1 ranges start below k = 5"):
        tree_sections(replace(FACTS, supports=(SupportRange(4, 4, 1), *FACTS.supports)))


def test_keys_of_the_json() -> None:
    said = plain(FACTS)
    assert set(said) == {
        "required_k", "m", "n", "l", "disassociated", "negations", "nested", "classes", "search", "records", "nodes",
        "merged_siblings", "measures", "partial", "published", "supports", "highest_share", "risk", "distributions",
        "crowds",
    }  # fmt: skip
    assert said["classes"][0] == {
        "class": "city", "parent": None, "sensitive": False, "values": 9, "height": 2, "labels": [4, 2, 0],
    }  # fmt: skip
    assert said["disassociated"][0] == {"upper": "city", "lower": "shop", "pairs": 2}
    assert said["supports"][0] == {"from": 5, "to": 9, "sets": 120}
    assert said["measures"] == {"rpd": 0.02, "rpd_a": 0.0123, "ncp": 0.25, "relations_kept": 0.9}
    assert said["published"][0] == {"class": "city", "exact": 0.5, "group": 0.3, "root": 0.2, "ncp": 0.25}
    assert said["search"]["trail"] == [[1, 1.0], [7, 0.5], [300, 0.0123]] and said["search"]["seconds"] == 12.5
    assert list(said["risk"]["knowledge_attack"]["0"]) == [
        "labels", "relations", "negated", "level", "promised", "drawn", "nothing", "below", "least", "mean", "lost", "found",
    ]  # fmt: skip
    assert said["risk"]["structure_attack"]["relations"] == 3


def test_worth_and_attacks() -> None:
    worth = pipeline().worth(FACTS)
    assert worth.loss == 0.02 and worth.lost == ("shop",)
    everything = replace(FACTS, node_types=FACTS.node_types[1:])
    assert pipeline().worth(everything).lost == ()  # the fit says so
    assert pipeline().attacks(FACTS) == []  # what is beyond the promise is no finding
    below = replace(FACTS, risk=AttackerGain({"0": replace(WITHIN, below=3)}, None))
    (finding,) = pipeline().attacks(below)
    assert finding.share == 0.003 and "found 3 of 1000 times fewer than k records" in finding.text


def test_the_summary_names_node_types() -> None:
    first, second = FACTS.summary()
    assert first == "400 cuts judged; values are published so: city 50% exactly, 30% in groups; shop 0% exactly, 0% in groups."
    assert second == "3 relations were disassociated. Chance to guess a path (RPD) 2.00e-02; lower is better."


def test_a_recoding_without_its_table_tells_what_it_has() -> None:
    cities = Hierarchy.from_levels([("Aldorf", "North", "*"), ("Bexley", "South", "*")])
    recoding = TreeRecoding(
        roles=Roles(TreeSchema((NodeType("city", "city"),)), {"city": cities}),
        settings=Settings(k=5),
        cut=[("city", "North"), ("city", "South")],
        pairs=[(("city", "North"), ("shop", "a")), (("city", "South"), ("shop", "a"))],
        statistics=SEARCH,
    )
    content = json.loads(json.dumps(recoding.content()))
    assert content["search"]["trail"] == [[1, 1.0], [7, 0.5], [300, 0.0123]]
    loaded = TreeRecoding.from_content(content)
    assert loaded.statistics == SEARCH and loaded.facts() == recoding.facts()
    facts = loaded.facts()
    assert facts.disassociated == (NodeTypePair("city", "shop", 2),) and facts.records is None
    assert facts.node_types == (NodeTypeCut("city", None, False, None, None, ()),)
