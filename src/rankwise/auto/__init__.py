"""AutoRanker: several rankers, evaluated on held-out groups and stacked."""
