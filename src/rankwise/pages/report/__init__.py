"""The report of a ranker."""
