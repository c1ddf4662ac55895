"""Rating models."""
