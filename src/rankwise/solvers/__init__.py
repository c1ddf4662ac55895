"""Solvers: pure functions on arrays; they neither check their input nor warn."""

from rankwise.solvers.squared_loss import (
    Solutions,
    minimise_dual,
    minimise_iteratively,
    minimise_primal,
)

__all__ = ["Solutions", "minimise_dual", "minimise_iteratively", "minimise_primal"]
