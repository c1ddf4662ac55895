"""Slow truths about uncertainty: refits, explicit covariances, double loops."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone


def jackknife_covariance(model, X, y, groups, units, new_X):
    """``(U − 1)/U Σ (f^(−u) − f)(f^(−u) − f)ᵀ`` of the scores of new items, one fit for each u.

    `units` are sets of rows, or for a PairGraph sets of edges.
    """
    f = clone(model).fit(X, y, groups).predict(new_X)
    changes = [refit_without(model, X, y, groups, u).predict(new_X) - f for u in units]
    n = len(units)
    return (n - 1) / n * sum(np.outer(change, change) for change in changes)


def refit_without(model, X, y, groups, unit, *, of_edges=None):
    if hasattr(y, "laplacian"):
        kept = np.setdiff1d(np.arange(y.n_pairs), unit)
        return clone(model).fit(X, y.with_edges(kept))
    kept = np.setdiff1d(np.arange(X.shape[0]), unit)
    seen = X[np.ix_(kept, kept)] if model.get_params().get("kernel") == "precomputed" else X[kept]
    fitted = clone(model).fit(seen, y[kept], None if groups is None else groups[kept])
    return Without(fitted, kept) if model.get_params().get("kernel") == "precomputed" else fitted


class Without:
    """A model of a precomputed kernel matrix that lacks some of its columns."""

    def __init__(self, model, kept):
        self.model, self.kept = model, kept

    def predict(self, X):
        return self.model.predict(X[:, self.kept])


def posterior(n_items, winner, loser, target, prior, features=None):
    """Mean and covariance over σ² of ratings after comparisons, by dense inverses; and σ²."""
    D = np.zeros((len(winner), n_items))
    D[np.arange(len(winner)), winner] = 1
    D[np.arange(len(winner)), loser] = -1
    Phi = np.eye(n_items)
    if features is not None:
        Phi = features - features.mean(axis=0)
        Phi = Phi / np.sqrt(np.mean(np.sum(Phi**2, axis=1)))
    K = Phi @ Phi.T / prior
    S = D @ K @ D.T + np.eye(len(winner))
    mean = K @ D.T @ np.linalg.solve(S, target)
    C = K - K @ D.T @ np.linalg.solve(S, D @ K)
    noise = target @ np.linalg.solve(S, target) / len(target)
    return mean, C, noise


def logistic_posterior(graph, prior, features=None):
    """Most probable ratings after wins and ties, and the inverse Hessian there, by L-BFGS."""
    n = graph.n_items
    Phi = np.eye(n)
    if features is not None:
        Phi = features - features.mean(axis=0)
        Phi = Phi / np.sqrt(np.mean(np.sum(Phi**2, axis=1)))
    D = Phi[graph.winner] - Phi[graph.loser]
    said = (1 + graph.edge_target) / 2

    def loss(u):
        m = D @ u
        return np.sum(np.logaddexp(0, m) - said * m) + prior / 8 * u @ u

    def slope(u):
        return D.T @ (1 / (1 + np.exp(-(D @ u))) - said) + prior / 4 * u

    options = {"maxiter": 10_000, "ftol": 0, "gtol": 1e-10}
    u = minimize(loss, np.zeros(D.shape[1]), jac=slope, method="L-BFGS-B", options=options).x
    p = 1 / (1 + np.exp(-(D @ u)))
    H = D.T @ ((p * (1 - p))[:, None] * D) + prior / 4 * np.eye(len(u))
    return Phi @ u, Phi @ np.linalg.inv(H) @ Phi.T


def worths(mean, covariance, slope, error_weight):
    """Variance of the difference times p (1 − p), for all pairs, by a double loop."""
    n = len(mean)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            v = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
            p = 1 / (1 + np.exp(-slope * (mean[i] - mean[j]) / np.sqrt(1 + error_weight * v)))
            out[i, j] = v * p * (1 - p)
    return out


def weights_in_long_double(X, y, alpha, *, beta=0.0, weight=None):
    """Weights of RankRLS for one list without ties: normal equations with 64 bits of mantissa."""
    wide = np.longdouble
    X, y = np.asarray(X, dtype=wide), np.asarray(y, dtype=wide)
    weight = np.ones(len(y), dtype=wide) if weight is None else np.asarray(weight, dtype=wide)
    units = np.abs(X).max(axis=0)
    R = X / units
    total = weight.sum()
    pairs = (total**2 - (weight**2).sum()) / 2
    centered, target = R - weight @ R / total, y - weight @ y / total
    by_pairs, by_rows = (1 - wide(beta)) * total / pairs, wide(beta) / total
    A = by_pairs * (centered.T * weight) @ centered + by_rows * (R.T * weight) @ R
    b = by_pairs * (centered.T * weight) @ target + by_rows * (R.T * weight) @ y
    return eliminate(A + np.diag(wide(alpha) / units**2), b) / units


def eliminate(A, b):
    """Solution of a positive definite system, by elimination in the precision of its numbers."""
    A, b = A.copy(), b.copy()
    for k in range(len(b)):
        factors = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= factors[:, None] * A[k]
        b[k + 1 :] -= factors * b[k]
    x = np.zeros_like(b)
    for k in reversed(range(len(b))):
        x[k] = (b[k] - A[k, k + 1 :] @ x[k + 1 :]) / A[k, k]
    return x
