"""rankwise: learning to rank from scores, groups and pairwise preferences."""
