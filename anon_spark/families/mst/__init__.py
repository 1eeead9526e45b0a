"""k-anonymity by local recoding: minimum-spanning-tree partitioning (MSTK).

Paper: Venkata Ramana and Valli Kumari, "Achieving k-anonymity using Minimum Spanning Tree based Partitioning". Records
are joined by the minimum spanning tree of their hierarchical distances; the tree is cut where edges are inconsistently
long, recursively; parts below k are merged with their closest others. Each class is published with the closest common
generalization of its members, so two classes may show different levels.

Departures: the tree is built over lattice nodes instead of pairs, with the same weights; parts of exactly k rows are
kept; a cut that removes nothing removes the heaviest edges; merging goes on until every class has k rows, and a last
one joins the closest class; above 10,000 small classes they are merged in rounds of mutual nearest neighbours.
Cost: lattice nodes up to the heaviest edge × distinct tuples for the tree; merging is the larger part.
Limits: what k-anonymity does not cover, see MstRecoding. Labels of several levels stand side by side, so a label must
mean one set of values.
"""
