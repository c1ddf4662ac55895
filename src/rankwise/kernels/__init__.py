"""Kernels, and the features that solvers receive: from items to R, from weights to scores."""
