"""Save and load fitted rankers: one file, no pickle."""
