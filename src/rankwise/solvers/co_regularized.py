"""Several views at once: the stacked system of co-regularized least squares, [CoRankRLS10].

In the coordinates of the features R_v, where ‖f_v‖² = ‖w_v‖², equation 18 reads

    (B + ν C + λ I) w = E

with B and E from the scored items, block by block, and C from the unscored ones. The three do not
depend on λ or ν: one reduction of ``B + ν C`` serves all λ (section 5), and the same B, C and E
serve all ν.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from rankwise.arrays import Array
from rankwise.graphs import PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.solvers.least_squares import solve_shifted


class CoSystem(NamedTuple):
    """The blocks of equation 18.

    Attributes
    ----------
    scored : ndarray of shape (n, n)
        B, with one block ``R_vᵀ L R_v / W`` for each view on its diagonal.
    coupling : ndarray of shape (n, n)
        C for ν = 1.
    target : ndarray of shape (n,)
        E, the stacked ``R_vᵀ d / W``.
    """

    scored: Array
    coupling: Array
    target: Array


def scored_system(features: Iterable[Any], loss: SquaredLoss) -> tuple[Array, Array]:
    """B and E from the features of the scored items, one view after the other."""
    grams, moments = [], []
    for R in features:
        gram, moment = loss.system(R)
        grams.append(gram)
        moments.append(moment)
    return scipy.linalg.block_diag(*grams), np.concatenate(moments)


def coupling(stacked: Any, sizes: Sequence[int], graph: PreferenceGraph) -> Array:
    """C for ν = 1: the Hessian of the disagreement between all views, halved.

        Σ_{v,u} (1/W̄) Σ_{pairs} ((f_v − f_u)_i − (f_v − f_u)_j)² = wᵀ C w

    so ``C_vv = 2(M−1) R_vᵀ L̄ R_v / W̄`` and ``C_vu = −2 R_vᵀ L̄ R_u / W̄``; all blocks come from one
    Gram matrix of the stacked features, in time linear in the number of items.

    Parameters
    ----------
    stacked : array-like with shape and rows
        ``[R_1 … R_M]`` of the items to agree on.
    sizes : sequence of int
        Number of columns of each view.
    graph : PreferenceGraph
        L̄, the pairs to agree on; one without pairs couples nothing.
    """
    view = np.repeat(np.arange(len(sizes)), sizes)
    if len(sizes) == 1 or not graph.n_pairs:
        return np.zeros((len(view), len(view)))
    factor = np.where(view[:, None] == view, len(sizes) - 1.0, -1.0)
    return factor * graph.gram(stacked) * (2.0 / graph.total_weight)


def solve_co_regularized(system: CoSystem, nu: float, shifts: Array) -> tuple[Array, float]:
    """``(B + ν C + λI) w = E`` for every λ, equation 18 and section 5.

    Returns
    -------
    w : ndarray of shape (n_shifts, n)
        Solutions.
    floor : float
        The rounding error of B + ν C. A smaller λ is raised to it, so that a huge ν cannot make the
        system indefinite.
    """
    A = system.scored + nu * system.coupling
    floor = len(A) * np.finfo(float).eps * float(np.diag(A).max())
    w, _ = solve_shifted(A, system.target, np.maximum(shifts, floor))
    return w[:, :, 0], floor
