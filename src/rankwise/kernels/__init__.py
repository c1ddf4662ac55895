"""Features: from items to what a solver sees, and from its solution to scores of new items."""
