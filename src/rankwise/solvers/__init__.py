"""Solvers: pure functions on arrays; they neither check their input nor warn."""

from rankwise.solvers.least_squares import Solutions, minimize

__all__ = ["Solutions", "minimize"]
