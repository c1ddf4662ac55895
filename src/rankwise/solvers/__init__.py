"""Solvers: pure functions on arrays; they neither check their input nor warn."""

from rankwise.solvers.squared_loss import Solutions, minimise

__all__ = ["Solutions", "minimise"]
