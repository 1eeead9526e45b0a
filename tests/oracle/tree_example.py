"""The golden example of the family tree and the data of its counterexamples, as plain label paths."""

from __future__ import annotations

from random import Random

from tests.oracle.tree_oracle import Cut, Dgh, Relation, Tree, closure, tree

# node types in the order of their rank: a path runs Hospital → Disease → Treatment
NODE_TYPES = {
    "Hospital": {"General": ["H1", "H2"], "Maternity": ["Rea", "Gaia"]},
    "Disease": {"Lung disease": ["Flu", "Bronchitis"], "Stomach disorder": ["Gastritis", "Diarrhea"]},
    "Treatment": {"Medicine": ["Antibiotics", "Painkillers"], "Surgery": ["Neurological", "Orthopedic"]},
}
DGH = Dgh(NODE_TYPES)

R1 = tree("H1→Gastritis→Antibiotics, H2→Flu→Painkillers")
R2 = tree("H1→Bronchitis→Painkillers, H2→Flu→Antibiotics, H2→Gastritis→Antibiotics")
R3 = tree("H1→Flu→Painkillers, H2→Bronchitis→Antibiotics, H2→Gastritis→Antibiotics")
R4 = tree("H1→Flu→Antibiotics")
RECORDS: list[Tree] = [R1, R2, R3, R4]

TYPE_ROOTS: Cut = ("Disease", "Hospital", "Treatment")
FIGURE_4: Cut = (
    *("Diarrhea", "Gaia", "Gastritis", "H1", "H2"),
    *("Lung disease", "Medicine", "Neurological", "Orthopedic", "Rea"),
)
FIGURE_4_SD: list[Relation] = [("H1", "Gastritis"), ("H2", "Gastritis")]
FIGURE_4_PUBLISHED: list[Tree] = [
    tree("Gastritis, H1→Medicine, H2→Lung disease→Medicine"),
    tree("Gastritis, H1→Lung disease→Medicine, H2→Lung disease→Medicine, H2→Medicine"),
    tree("Gastritis, H1→Lung disease→Medicine, H2→Lung disease→Medicine, H2→Medicine"),
    tree("H1→Lung disease→Medicine"),
]
BEST: Cut = (
    *("Antibiotics", "Diarrhea", "Gastritis", "General"),
    *("Lung disease", "Maternity", "Painkillers", "Surgery"),
)

# node types h → d → t (→ u) for the counterexamples
LETTERS = Dgh(
    {"h": {"hs": ["h1", "h2"]}, "d": {"ds": ["d1", "d2"]}, "t": {"ts": ["t1", "t2"]}, "u": {"us": ["u1", "u2"]}}
)

# k = 2, m = 3, n = 2: anonymous, but not after h1, h2 → hs
NOT_MONOTONE: list[Tree] = [tree("h1→d1, h2→d2"), tree("h1→d1, h2, d2"), tree("h2→d2, h1, d1")]
# k = 3, m = 3, n = 1: the printed StructureCheck accepts unsafe data
LABELS_IGNORED: list[Tree] = [
    tree("h2→d1"),
    tree("h1→d1, h2→d2→t1"),
    tree("h1→d2, h2→d1→t1"),
    tree("h2→d2→t1"),
    tree("h2→d2→t1"),
    tree("h1→d2→t1, h2→d1"),
]
# k = 3, m = 2, n = 1: one pass of FixStructure is not enough
TWO_PASSES: list[Tree] = [
    tree("h1"),
    tree("h2→d2→t2"),
    tree("h2→d1"),
    tree("h1→d1, h2→d1→t2, h2→d2→t1"),
    tree("h1→d1→t2, h1→d2→t2, h2→d1→t1"),
    tree("h1→d1→t2, h1→d2→t1, h2→d2→t2"),
]
# k = 2, m = 3, n = 1: batch and sequential FixStructure
BATCHES: list[Tree] = [tree("d1→t1→u1"), *[tree("t1→u1")] * 2, *[tree("d1, t1, u1")] * 2]
# k = 2, m = 2, n = 1: the release verifies, but shows who had h1⇝d1
STRUCTURE_AWARE: list[Tree] = [tree("h1→d1, h2"), *[tree("h1→d2, h2→d1")] * 2, tree("h1→d2, h2")]
# both satisfy the pairs h1⇝d1, d1⇝t1, h1⇝t1
SAME_PATH: list[Tree] = [tree("h1→d1→t1"), tree("h1→d1→t2, h1→d2→t1, h2→d1→t1")]
# k = 2, m = 2, negations of H1 and Rea
NEGATED: list[Tree] = [tree("H1→Flu, H2"), tree("H1→Flu, H2→Flu"), tree("H2→Flu")]


def random_trees(random: Random, dgh: Dgh, records: int, paths: int = 3, skip: float = 0.3) -> list[Tree]:
    """Records of 1 … `paths` paths through the node types in their order, each left out with probability `skip`."""
    leaves = {name: dgh.leaves(name) for name in dgh.tables}

    def path() -> tuple[str, ...]:
        while True:
            found = tuple(random.choice(leaves[name]) for name in leaves if random.random() >= skip)
            if found:
                return found

    return [closure(path() for _ in range(random.randint(1, paths))) for _ in range(records)]
