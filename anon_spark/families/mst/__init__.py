"""k-anonymity by local recoding: minimum-spanning-tree partitioning (MSTK)."""
