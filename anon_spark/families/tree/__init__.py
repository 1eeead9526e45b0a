"""k^(m,n)-anonymity of nested records: one cut through the hierarchies of all node types, and relations disassociated.

Paper: O. Gkountouna, M. Terrovitis, "Anonymizing Collections of Tree-Structured Data" (ACS, GCS, OCS; RPD, ML²).

A record is a tree of values; somebody may know up to m of its values and up to n pairs of them of which one is above the other.
`records` makes trees of a nested table, `search` walks over cuts from {*} down, `structure` judges a cut as the paper does
(ValueCheck, FixStructure), `counting` and `tasks` answer what it asks, `publication` applies what was chosen.

Departures: supports are counted for all sizes up to m (the paper: exactly m) and begin with the labels that take part in no
relation, too; FixStructure is repeated until nothing changes, and takes all violations of the smallest size at once
(`mode="sequential"` is the printed order); values that do not occur are not specialized; beam search, budgets and a bounded queue
beside the printed GCS, whose queue grows exponentially.

Cost: one shuffle of the values by record; per step of the search some rounds of counting, each one pass over the records that a
cut changes, in tasks, or on the driver for up to two million values. The steps of the search and the rounds of FixStructure
follow one another; cuts of a step, records and label sets are counted side by side.

Limits: what a structure-aware attacker reads from values that lost what was above them, whole chains, numbers and order of nodes,
absence unless named: see TreeRecoding and the report.
"""
