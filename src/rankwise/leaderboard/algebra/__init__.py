"""Counts of comparisons and the linear algebra of ratings."""
