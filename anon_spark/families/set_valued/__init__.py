"""k-anonymity and l-diversity of item sets by nonreciprocal recoding.

Paper: Xue, Karras, Raïssi, Vaidya and Tan, "Anonymizing Set-Valued Data by Nonreciprocal Recoding". Records are put into
an order in which neighbours are alike (Gray code, short tours inside segments); each published row stands for k
neighbouring records of a ring, each record for k rows, and which of them carries its sensitive value is drawn from k
disjoint assignments that random closed walks find.

Departures: rings of blocks of some thousand records instead of one; an order by what windows cost, chosen wherever it
loses less; all k assignments are made before one is chosen; l-diversity by a ring in which labels are spaced, because the
paper's graph does not keep it; disjoint groups as another graph.
Cost: one global sort; per block the square of its records in Hamming distances, edges to 15 × edges steps of walks.
Limits: items are not protected, see SetValuedRecoding.
"""

from anon_spark.families.set_valued.anonymizer import SetValuedAnonymizer
from anon_spark.families.set_valued.recoding import SetValuedRecoding

__all__ = ["SetValuedAnonymizer", "SetValuedRecoding"]
