"""(k, k^m)-anonymity and (k, l^m)-diversity of records that have relational values and a set of items.

Paper: Poulis, Loukides, Gkoulalas-Divanis and Skiadopoulos, "Anonymizing Data with Relational and Transaction Attributes".
Records are put into clusters of at least k and relational values are generalized per cluster. Clusters are merged within a
bound on the loss of values or of items, so that items need little generalization inside each.

Departures (docs/families/relational_transaction.md has every decision with its reason): each item has one generalized item
per cluster, with items.method local per block (R-2); empty or ineligible clusters are repaired before a bound is tested (R-3,
R-4); the printed formulas are corrected (R-5, R-6, R-9); CLUSTER works in blocks of some thousand records (R-10); above
some thousand clusters merging works in groups with their shares of δ, then once over all (R-13); a union of more than two
million records is not tried, because a task must hold it.
Cost: one global sort; per block its records² / k comparisons; per merge the clusters of its group; per cluster its items.
Limits: see RelationalTransactionRecoding.
"""
