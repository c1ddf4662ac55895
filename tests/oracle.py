"""Slow truths: explicit pairs, double loops, dense solves. Nothing here is clever on purpose."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import scipy.optimize
from sklearn.linear_model import LogisticRegression


def score_edges(y, groups, cost="magnitude", ties="include", group_weight="pairs", weights=None):
    """The list of (winner, loser, delta, omega) that the scores induce, by a double loop.

    With weights of items a pair weighs the product of its two; a weight of 0 makes no pair.
    """
    edges, products = [], []
    for i in range(len(y)):
        for j in range(i):
            if groups is not None and groups[i] != groups[j]:
                continue
            high, low = (i, j) if y[i] > y[j] else (j, i)
            gap = y[high] - y[low]
            if gap == 0 and (ties == "exclude" or cost != "magnitude"):
                continue
            delta = 1.0 if cost == "sign" else gap
            omega = 1.0 / gap**2 if cost == "relative" else 1.0
            product = 1.0 if weights is None else weights[i] * weights[j]
            if product > 0:
                edges.append((high, low, delta, omega * product))
                products.append(product)
    if group_weight == "groups":
        label = [0 if groups is None else groups[i] for i, *_ in edges]
        total = {g: sum(p for p, h in zip(products, label, strict=True) if h == g) for g in label}
        edges = [(i, j, d, w / total[g]) for (i, j, d, w), g in zip(edges, label, strict=True)]
    return edges


def survival_edges(time, event, groups=None, weights=None):
    """The list of (winner, loser, delta, omega) of right-censored times, pair by pair."""
    edges = []
    for i, j in itertools.permutations(range(len(time)), 2):
        is_comparable = groups is None or groups[i] == groups[j]
        is_longer = time[j] > time[i] or (time[j] == time[i] and not event[j])
        omega = 1.0 if weights is None else weights[i] * weights[j]
        if is_comparable and event[i] and is_longer and omega > 0:
            edges.append((j, i, 1.0, omega))
    return edges


def pair_edges(winner, loser, magnitude, weight, cost="magnitude"):
    """The list of (winner, loser, delta, omega) of explicit preferences."""
    edges = []
    for i, j, gap, w in zip(winner, loser, magnitude, weight, strict=True):
        delta = float(np.sign(gap)) if cost == "sign" else gap
        edges.append((i, j, delta, w / gap**2 if cost == "relative" else w))
    return edges


def laplacian_and_divergence(edges, n_items):
    """L = Σ ω (e_i − e_j)(e_i − e_j)ᵀ and d = Σ ω δ (e_i − e_j), edge by edge."""
    L, d = np.zeros((n_items, n_items)), np.zeros(n_items)
    for i, j, delta, omega in edges:
        e = np.zeros(n_items)
        e[i], e[j] = 1, -1
        L += omega * np.outer(e, e)
        d += omega * delta * e
    return L, d


def objective(edges, f, norm, alpha, beta=0.0, y=None, weights=None):
    """J(f), summed over the edges."""
    total = sum(omega for *_, omega in edges)
    value = alpha * norm
    if beta < 1:
        pairs = sum(w * (delta - (f[i] - f[j])) ** 2 for i, j, delta, w in edges)
        value += (1 - beta) * pairs / total
    if beta > 0:
        value += beta * np.average((y - f) ** 2, weights=weights)
    return value


def rank_rls(edges, K, alpha, beta=0.0, y=None, weights=None):
    """Dual coefficients: [RankRLS09] equation 17 with λ = α W, by one dense solve."""
    m = len(K)
    L, d = laplacian_and_divergence(edges, m)
    total = sum(omega for *_, omega in edges) if edges else 1.0
    A, t = (1 - beta) / total * L, (1 - beta) / total * d
    if beta > 0:
        share = np.ones(m) / m if weights is None else weights / np.sum(weights)
        A, t = A + beta * np.diag(share), t + beta * share * y
    return np.linalg.solve(A @ K + alpha * np.eye(m), t)


def with_nuisance(edges, X, Z, alpha):
    """Weights and effects of least squares on explicit pairs; only the weights are penalized.

    Of effects that fit alike those of smallest norm.
    """
    omega = np.array([w for *_, w in edges]) / sum(w for *_, w in edges)
    delta = np.array([d for _, _, d, _ in edges])
    D, E = (np.array([V[i] - V[j] for i, j, *_ in edges]) for V in (X, Z))
    root = np.sqrt(omega)[:, None]
    D, E, t = root * D, root * E, np.sqrt(omega) * delta
    left = np.eye(len(E)) - E @ np.linalg.pinv(E)
    w = np.linalg.solve(D.T @ left @ D + alpha * np.eye(D.shape[1]), D.T @ left @ t)
    return w, np.linalg.pinv(E) @ (t - D @ w)


def ranks(scores, groups):
    """1 + the number of better items of the same group."""
    out = []
    for i, s in enumerate(scores):
        mates = [j for j in range(len(scores)) if groups is None or groups[j] == groups[i]]
        out.append(1 + sum(scores[j] > s for j in mates))
    return np.array(out)


def margin_objective(edges, f, norm, alpha, loss="hinge"):
    """1/W Σ ω max(0, 1 − (f_i − f_j)) + α ‖f‖², or with the square, summed over the edges."""
    total = sum(omega for *_, omega in edges)
    power = {"hinge": 1, "squared_hinge": 2}[loss]
    return (
        alpha * norm + sum(w * max(0.0, 1 - (f[i] - f[j])) ** power for i, j, _, w in edges) / total
    )


def exponential_objective(edges, f, norm, alpha):
    """1/W Σ ω exp(−(f_i − f_j)) + α ‖f‖², edge by edge."""
    total = sum(omega for *_, omega in edges)
    return alpha * norm + sum(w * math.exp(f[j] - f[i]) for i, j, _, w in edges) / total


def logistic_objective(edges, f, norm, alpha):
    """1/W Σ ω log(1 + exp(−(f_i − f_j))) + α ‖f‖², edge by edge; a tie is half a win each."""
    total, sum_ = sum(omega for *_, omega in edges), 0.0
    for i, j, delta, omega in edges:
        both = [f[i] - f[j]] if delta > 0 else [f[i] - f[j], f[j] - f[i]]
        sum_ += omega * np.mean([np.logaddexp(0.0, -g) for g in both])
    return alpha * norm + sum_ / total


def rank_logistic(edges, X, alpha):
    """Weights of scikit-learn's LogisticRegression on the differences of explicit pairs.

    Every pair is a row of label 1 and a row of label 0, the second without weight if not a tie.
    """
    rows, labels, weights = [], [], []
    for i, j, delta, omega in edges:
        rows += [X[i] - X[j]] * 2
        labels += [1, 0]
        weights += [omega, 0.0] if delta > 0 else [omega / 2] * 2
    share = np.array(weights) / sum(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(
            C=1 / (2 * alpha), fit_intercept=False, tol=1e-14, max_iter=10_000, solver="newton-cg"
        ).fit(np.array(rows), labels, sample_weight=share)
    return model.coef_[0]


def rank_svm(edges, X, alpha, loss="hinge"):
    """The minimum of the RankSVM objective, from the dual over explicit pairs.

    With d_k = x_i − x_j and w = Σ λ_k d_k/(2α) the dual is Σ λ_k − ‖Σ λ_k d_k‖²/(4α) over
    0 ≤ λ_k ≤ ω_k/W for the hinge, and has −λ_k² W/(4 ω_k) for its square. Returns the weights, the
    value of the dual and that of the primal; the minimum is between the two.
    """
    D = np.array([X[i] - X[j] for i, j, *_ in edges])
    share = np.array([w for *_, w in edges]) / sum(w for *_, w in edges)
    bend = 0.0 if loss == "hinge" else 1 / (4 * share)
    upper = share if loss == "hinge" else np.full(len(share), np.inf)

    Q = D @ D.T / (2 * alpha) + np.diag(2 * bend * np.ones(len(D)))
    root = np.linalg.cholesky(Q + 1e-13 * np.trace(Q) * np.eye(len(Q)))
    right = np.linalg.solve(root, np.ones(len(Q)))  # min ½ λᵀQλ − Σλ as least squares
    dual = scipy.optimize.lsq_linear(root.T, right, (0, upper), method="bvls", tol=1e-15).x
    low = dual.sum() - 0.5 * dual @ Q @ dual
    w = D.T @ dual / (2 * alpha)
    return w, low, margin_objective(edges, X @ w, w @ w, alpha, loss)


def scaled_in_groups(X, groups, log=False):
    """z = (x − mean)/sd of each group and column by itself, in exact fractions."""
    X = np.asarray(X, dtype=np.float64)
    X = np.sign(X) * np.log1p(abs(X)) if log else X
    out = np.zeros(X.shape)
    for g in set(groups):
        rows = [i for i, label in enumerate(groups) if label == g]
        for j in range(X.shape[1]):
            values = [Fraction(X[i, j]) for i in rows]
            mean = sum(values) / len(rows)
            variance = sum((v - mean) ** 2 for v in values) / len(rows)
            sd = math.sqrt(variance)
            is_rounding = sd <= 4 * np.finfo(float).eps * max(abs(float(v)) for v in values)
            for i, v in zip(rows, values, strict=True):
                out[i, j] = 0.0 if is_rounding else float(v - mean) / sd
    return out
