"""Solvers: pure functions on arrays; they neither check their input nor warn."""

from rankwise.solvers.squared_loss import Solutions, minimize

__all__ = ["Solutions", "minimize"]
