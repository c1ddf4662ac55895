"""Ratings of items from comparisons, with intervals."""
