"""Inference from a rating model: ranks, robustness, intransitivity, posterior."""
