"""The forest of all node types: labels, levels, cuts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from anon_spark.errors import ConfigurationError, HierarchyError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, NodeType, TreeClass, TreeSchema
from tests.oracle.tree_example import DGH, NODE_TYPES

SCHEMA = TreeSchema(
    (NodeType("Hospital", "h"), NodeType("Disease", "h.d", "Hospital"), NodeType("Treatment", "h.t", "Disease"))
)
HIERARCHIES = {
    name: Hierarchy.from_levels([(leaf, group, "*") for group, leaves in groups.items() for leaf in leaves])
    for name, groups in NODE_TYPES.items()
}
PLACE = TreeSchema((NodeType("a", "x"), NodeType("b", "y", "a")))


def levels(*rows: str) -> Hierarchy:
    return Hierarchy.from_levels([tuple(row.split(";")) for row in rows])


def test_the_example_is_that_of_the_oracle() -> None:
    forest = Forest.of(SCHEMA, HIERARCHIES)
    assert list(forest.labels) == sorted(forest.labels) and forest.size == 22 and forest.cuts() == 126 == len(DGH.cuts())
    assert forest.height == 3 and forest.top == forest.number("*")
    for node, label in enumerate(forest.labels):
        assert forest.levels[node] == DGH.level[label]
        for mode in ("class", "global"):
            assert forest.counts(mode)[node] == DGH.count(label, mode)
        for level in range(4):
            assert forest.labels[forest.at_level(level)[node]] == DGH.at_level(label, level)
    for cut in DGH.cuts():
        image = forest.image(forest.cut_of(cut))
        assert {forest.labels[leaf]: forest.labels[image[leaf]] for leaves in forest.leaf_nodes for leaf in leaves} == {
            leaf: DGH.image(cut)[leaf] for leaf in DGH.leaves("*")
        }
    roots = forest.specialized(forest.most_general, forest.top)
    assert forest.named(roots) == ["Disease", "Hospital", "Treatment"]
    assert forest.named(forest.specialized(roots, forest.number("Hospital"))) == ["Disease", "General", "Maternity", "Treatment"]


def test_padding_is_one_node_on_its_lowest_level() -> None:
    forest = Forest.of(PLACE, {"a": levels("x;g;*", "y;y;*", "z;g;*"), "b": levels("1;*", "2;*")})
    padded = forest.number("y")
    assert forest.size == 9 and forest.levels[padded] == 0 and forest.parents[padded] == forest.number("a")
    counts = forest.counts()
    assert [counts[forest.number(label)] for label in ("g", "x", "1")] == [2, 3, 2]  # y counts on level 1, too
    assert forest.labels[forest.at_level(1)[forest.number("2")]] == "b"  # the lower hierarchy is padded at the top
    assert forest.height == 3


def test_equal_labels_are_written_with_their_type() -> None:
    forest = Forest.of(PLACE, {"a": levels("x;*", "y;*").with_null(), "b": levels("x;*", "z;*")})
    assert set(forest.labels) == {"*", "a", "b", "a:x", "a:y", "a:null", "b:x", "b:z"}
    assert forest.published(forest.number("b:x")) == ("b", "x") and forest.node_of("a", None) == forest.number("a:null")
    assert forest.node_of("a", "z") is None and forest.node_of("*", "*") == forest.top


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("¬x;*", "y;*"), "reserved"),
        (("a;*", "y;*"), "named as the type"),
        (("x;g;*", "g;h;*"), "stand for different sets of values on two levels"),
    ],
)
def test_labels_that_are_refused(rows: tuple[str, ...], said: str) -> None:
    with pytest.raises(HierarchyError, match=said):
        Forest.of(PLACE, {"a": levels(*rows), "b": levels("1;*")})


def test_schemas_that_are_refused() -> None:
    for node_types, said in (
        ([NodeType("a", "x"), NodeType("a", "y")], "named twice"),
        ([NodeType("*", "x")], "reserved"),
        ([NodeType("¬a", "x")], "reserved"),
        ([NodeType("a", "x", "b"), NodeType("b", "y")], "its parent b is not named before it"),
        ([NodeType("a", "x", None, True)], "every node type is sensitive"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            TreeSchema(tuple(node_types))
    assert TreeClass is NodeType  # the older name
    chain = SCHEMA.chain("Treatment")
    assert [node_type.name for node_type in chain] == ["Hospital", "Disease", "Treatment"] and SCHEMA.children(None) == [chain[0]]


def test_a_cut_that_leaves_a_value_out_is_none() -> None:
    forest = Forest.of(SCHEMA, HIERARCHIES)
    with pytest.raises(ValueError, match="below no node"):
        forest.image(forest.cut_of(["Hospital", "Disease"]))


def test_a_node_above_others_of_a_cut_stands_for_what_they_leave_over() -> None:
    forest = Forest.of(SCHEMA, HIERARCHIES)
    full = forest.cut_of(["Hospital", "Disease", "Treatment"])
    hospital = forest.number("Hospital")

    assert forest.named(forest.left_below(full, hospital)) == ["General", "Maternity"]
    partial = forest.with_children(full, hospital, [forest.number("General")])
    assert forest.named(partial) == ["Disease", "General", "Hospital", "Treatment"]
    assert forest.is_full(full) and not forest.is_full(partial)

    image = forest.image(partial)
    shown = {forest.labels[leaf]: forest.labels[image[leaf]] for leaf in forest.leaf_nodes[0].tolist()}
    general = set(forest.below(forest.number("General")))
    assert shown == {
        forest.labels[leaf]: "General" if leaf in general else "Hospital" for leaf in forest.leaf_nodes[0].tolist()
    }
    assert forest.named(forest.left_below(partial, hospital)) == ["Maternity"]
    whole = forest.with_children(partial, hospital, [forest.number("Maternity")])
    assert forest.named(whole) == ["Disease", "General", "Maternity", "Treatment"] and forest.is_full(whole)


def test_the_share_of_values_that_a_label_may_stand_for() -> None:
    forest = Forest.of(SCHEMA, HIERARCHIES)
    partial = forest.cut_of(["Hospital", "General", "Disease", "Treatment"])
    leaves, ncp = forest.leaf_nodes[0], forest.ncp(partial)
    general = len([node for node in forest.below(forest.number("General")) if not forest.children[node]])
    others = leaves.size - 1
    assert ncp[forest.number("General")] == (general - 1) / others
    assert ncp[forest.number("Hospital")] == (leaves.size - general - 1) / others
    assert ncp[forest.number("Disease")] == 1 and np.isnan(ncp[forest.number("Maternity")])
    assert forest.ncp(forest.most_general)[forest.top] == 1


def test_labels_all_of_whose_values_are_below_a_node() -> None:
    forest = Forest.of(SCHEMA, HIERARCHIES)
    partial = forest.cut_of(["Hospital", "General", "Disease", "Treatment"])
    assert forest.named(np.flatnonzero(forest.only_inside(partial, forest.number("Hospital")))) == ["General", "Hospital"]
    assert forest.named(np.flatnonzero(forest.only_inside(partial, forest.number("General")))) == ["General"]
    # Hospital stands for Maternity's values alone, so it says as much as Maternity
    assert forest.named(np.flatnonzero(forest.only_inside(partial, forest.number("Maternity")))) == ["Hospital"]


def test_sensitive_node_types_are_their_own_image() -> None:
    schema = TreeSchema((*SCHEMA.node_types[:2], NodeType("Treatment", "h.t", "Disease", True)))
    forest = Forest.of(schema, HIERARCHIES)
    assert forest.named(forest.specialized(forest.most_general, forest.top)) == ["Disease", "Hospital"] and forest.cuts() == 26
    image = forest.image(forest.most_general)
    leaves = forest.leaf_nodes[2]
    assert np.array_equal(image[leaves], leaves) and (image[forest.leaf_nodes[0]] == forest.top).all()
