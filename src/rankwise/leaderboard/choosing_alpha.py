"""Alpha by leaving out one comparison at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.solving import RatingSystem
from rankwise.leaderboard.tally import Tally

EIGEN_LIMIT = 3000  # items or features; with more, ten folds of comparisons are held out
RELATIVE = np.logspace(-5, 3, 33)
BLOCK = 2**22  # numbers


class AlphaCurve(NamedTuple):
    """Mean squared error on held-out comparisons by alpha."""

    alphas: Array
    errors: Array

    @property
    def best(self) -> float:
        """The alpha of least error; the largest if several have it."""
        return float(self.alphas[self.errors == np.nanmin(self.errors)].max())


def alpha_grid(system: RatingSystem) -> Array:
    """33 alphas, from almost no regularization to a very strong one.

    λ goes from 1e-5 to 1e3 times the mean eigenvalue of ``Xᵀ L X``.
    """
    tally, X = system.tally, system.X
    weights, _ = tally.sums
    if X is None:
        mean = 2 * weights.sum() / tally.n_items
    else:
        mean = float(weights @ ((X[tally.first] - X[tally.second]) ** 2).sum(axis=1)) / X.shape[1]
    return np.asarray(RELATIVE * mean / tally.total_weight)


def leave_one_out_errors(system: RatingSystem, alphas: Array) -> AlphaCurve:
    """Weighted mean square of δ − (r_i − r_j), r trained without that comparison; exact.

    With x = x_i − x_j and A = Xᵀ L X + λI the residual of a comparison that is left out is
    ``e / (1 − ω xᵀ A⁻¹ x)``. The λ of that fold is α (W − ω), as in a rating
    that is trained on the rest. One eigendecomposition serves all comparisons. Covariates are
    taken out first, by a Schur complement: their part of the leverage does not depend on λ.
    """
    tally, Z, p = system.tally, system.tally.covariates, system.n_ratings
    weights, flows = tally.sums
    gram, right = system.gram(weights[None])[0], system.right(flows[None])[0]
    inner = gram[p:, p:] + np.diag(system.penalty(0.0)[p:])
    onto = np.linalg.solve(inner, np.column_stack([gram[p:, :p], right[p:]]))  # covariates' share
    values, vectors = eigh(gram[:p, :p] - gram[:p, p:] @ onto[:, :-1])
    values = np.maximum(values, 0.0)
    Y = vectors if system.X is None else system.X @ vectors
    right = vectors.T @ (right[:p] - gram[:p, p:] @ onto[:, -1])
    onto = np.column_stack([onto[:, :-1] @ vectors, onto[:, -1]])
    sums = np.zeros(len(alphas))
    for outcomes in _outcomes_of_one_weight(tally, len(values)):
        omega, z = tally.weight[outcomes[0]], Z[tally.pair[outcomes]]
        scale = 1 / (values[:, None] + alphas * (tally.total_weight - omega))
        pairs = tally.pair[outcomes]
        x = Y[tally.first[pairs]] - Y[tally.second[pairs]] - z @ onto[:, :-1]
        residual = (tally.target[outcomes] - z @ onto[:, -1])[:, None] - x @ (
            scale * right[:, None]
        )
        own = np.einsum("ij,ij->i", z, np.linalg.solve(inner, z.T).T)[:, None]
        held_out = residual / (1 - omega * (own + x**2 @ scale))
        sums += omega * (tally.count[outcomes] @ held_out**2)
    return AlphaCurve(alphas, sums / tally.total_weight)


def _outcomes_of_one_weight(tally: Tally, n_columns: int) -> Iterator[Indices]:
    """All outcomes in blocks that fit the cache and have the same weight."""
    order = np.argsort(tally.weight, kind="stable")
    changes = 1 + np.flatnonzero(np.diff(tally.weight[order]))
    size = max(1, BLOCK // n_columns)
    for same in np.split(order, changes):
        for start in range(0, len(same), size):
            yield same[start : start + size]


def tenfold_errors(
    system: RatingSystem, alphas: Array, rng: np.random.Generator, n_folds: int = 10
) -> AlphaCurve:
    """The same by ten folds of the comparisons, for more items than can be decomposed."""
    tally = system.tally
    fold = rng.permutation(len(tally.outcome)) % n_folds
    sums = np.zeros(len(alphas))
    for k in range(n_folds):
        held_out = np.bincount(tally.outcome[fold == k], minlength=len(tally.count))
        weights, flows = tally.pair_sums(tally.count - held_out)
        outcomes = np.flatnonzero(held_out)
        pairs = tally.pair[outcomes]
        for at, alpha in enumerate(alphas):
            found = system.solve(weights[None], flows[None], float(alpha))
            margin = tally.margins(found.ratings[0], found.effects[0])[pairs]
            square = (tally.target[outcomes] - margin) ** 2
            sums[at] += (held_out * tally.weight)[outcomes] @ square
    return AlphaCurve(alphas, sums / tally.total_weight)
