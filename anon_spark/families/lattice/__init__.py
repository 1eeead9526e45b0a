"""Full-domain k-anonymity with the whole Pareto front of k against information loss.

Paper: Dewri, Ray, Ray and Whitley, "POkA: Identifying Pareto-Optimal k-Anonymous Nodes in a Domain Hierarchy Lattice",
CIKM 2009. docs/families/lattice.md has every decision with its reason.
Three searches: `exhaustive` (every node), `poka` (the paper's, a heuristic whenever rows may be suppressed) and `exact`
(ours: the true front from bounds, with a fraction of the nodes; the default).

Departures from the printed algorithm, each a repair: the bottom serves as ground node before the full depth; a search
that finds nothing is repeated on the plateau of equal loss and then forced one step on; among nodes of equal k the one
of least loss is followed (`refine`); at depth 1 a node is used only if accepted; losses are compared as exact integers.

Cost: one shuffle of the table to distinct tuples, then evaluated nodes × distinct tuples. Sequential part: the chain of
POkA's base nodes, or the batches of `exact`.
Limits: a lattice of at most five million nodes; a million distinct values in all quasi-identifiers together.
Not protected: sensitive values that a whole class shares, kept columns an attacker knows, releases put together.
"""
