"""(k, k^m)-anonymity and (k, l^m)-diversity of records that have relational values and a set of items.

Paper: Poulis, Loukides, Gkoulalas-Divanis and Skiadopoulos, "Anonymizing Data with Relational and Transaction Attributes".
Records are put into clusters of at least k, relational values are generalized per cluster, and clusters are merged, within
a bound on the loss of the one part, until items need little generalization inside each.

Departures: a record and a set of items has one image per cluster (R-2); empty or ineligible clusters are repaired before a
bound is tested (R-3, R-4); the printed formulas are corrected as the specification says (R-5, R-6, R-9); CLUSTER works in
blocks of some thousand records (R-10); above some thousand clusters merging works in groups with their shares of δ, then
once over all (R-13); a union of more than two million records is not tried, because a task must hold it.
Cost: one global sort; per block its records² / k comparisons; per merge the clusters of its group; per cluster its items.
Limits: see RelationalTransactionRecoding.
"""

from anon_spark.families.relational_transaction.anonymizer import RelationalTransactionAnonymizer
from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding

__all__ = ["RelationalTransactionAnonymizer", "RelationalTransactionRecoding"]
