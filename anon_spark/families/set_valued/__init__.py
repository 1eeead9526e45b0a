"""k-anonymity and l-diversity of item sets by nonreciprocal recoding.

Paper: Xue, Karras, Raïssi, Vaidya and Tan, "Anonymizing Set-Valued Data by Nonreciprocal Recoding". Records are put into
an order in which neighbours are similar (Gray code, short tours inside segments). Each published row stands for k
neighbouring records of a ring, each record for k rows. Random closed walks find k disjoint assignments; one of them is drawn
and decides which row carries a record's sensitive value.

Departures: rings of blocks of some thousand records instead of one ring; an order by the cost of windows, used where it
loses less; all k assignments are made before one is chosen; l-diversity by a ring with spaced labels, because the paper's
graph does not keep it; disjoint groups as an alternative graph.
Cost: one global sort; per block the square of its records in Hamming distances, edges to 15 × edges steps of walks.
Limits: items are not protected, see SetValuedRecoding.
"""
