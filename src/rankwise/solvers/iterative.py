"""Preconditioned conjugate gradients: symmetric systems known by their product with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array

Watch = Callable[[int, float], None]  # told the number of iterations and the largest residual


class IterativeSolution(NamedTuple):
    """Solutions of all right-hand sides.

    Attributes
    ----------
    x : ndarray of shape (n, k)
        One column for each right-hand side.
    n_iter : int
        Iterations until the last column was done.
    converged : bool
        Whether every column reached the tolerance.
    """

    x: Array
    n_iter: int
    converged: bool


def conjugate_gradients(
    product: Callable[[Array], Array],
    t: Array,
    diagonal: Array,
    *,
    tol: float,
    max_iter: int | None = None,
    start: Array | None = None,
    watch: Watch | None = None,
) -> IterativeSolution:
    """Solve ``A x = t`` for every column of t, with one product an iteration for all of them.

    Textbook preconditioned conjugate gradients (Shewchuk 1994, section 12) with the diagonal of A
    as preconditioner. Each column has its own step lengths; a column that is done leaves the
    product.

    Parameters
    ----------
    product : callable
        Takes V of shape (n, k) to ``A V``; A is symmetric and positive definite.
    t : ndarray of shape (n, k)
        Right-hand sides.
    diagonal : ndarray of shape (n,)
        Diagonal of A, or anything positive that is near it.
    tol : float
        A column is done when the norm of its residual is at most this times that of its t.
    max_iter : int, optional
        Limit; ten times n if None.
    start : ndarray of shape (n, k), optional
        First guess; zero if not given.
    watch : callable, optional
        Called after each iteration.
    """
    unit = binary_scale(t)
    t = t / unit  # squares of what is left neither overflow nor vanish
    x = np.zeros_like(t) if start is None else start / unit
    residual = t.copy() if start is None else t - product(x)
    size = np.linalg.norm(t, axis=0)
    goal = tol * size
    columns = np.flatnonzero(np.linalg.norm(residual, axis=0) > goal)  # those not yet done
    r = residual[:, columns]
    p = z = r / diagonal[:, None]
    rz = np.sum(r * z, axis=0)
    limit = 10 * len(t) if max_iter is None else max_iter
    n_iter = 0
    while len(columns) and n_iter < limit:
        q = product(p)
        step = rz / np.sum(p * q, axis=0)
        x[:, columns] += step * p
        r -= step * q
        n_iter += 1
        norm = np.linalg.norm(r, axis=0)
        if watch is not None:
            watch(n_iter, float(np.max(norm / size[columns])))
        going = norm > goal[columns]
        columns, r, p, rz = columns[going], r[:, going], p[:, going], rz[going]
        z = r / diagonal[:, None]
        rz_before, rz = rz, np.sum(r * z, axis=0)
        p = z + (rz / rz_before) * p
    return IterativeSolution(x * unit, n_iter, not len(columns))


def binary_scale(t: Array) -> Array:
    """A power of two near the largest entry of each column: dividing by it rounds nothing."""
    return np.asarray(np.ldexp(1.0, np.frexp(np.abs(t).max(axis=0, initial=0.0))[1] - 1))
