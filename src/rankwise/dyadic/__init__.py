"""Label ranking and conditional ranking: pairs of row items and column items."""
