"""Slow truths of boards: likelihoods of single comparisons, minimized by SciPy; refits."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression


def chances(margin, theta):
    """Probabilities of win, tie and loss of one comparison, from Davidson's formula."""
    strong, weak = np.exp(margin / 2), np.exp(-margin / 2)
    tie = np.exp(theta) * np.sqrt(strong * weak)
    return np.array([strong, tie, weak]) / (strong + tie + weak)


def objective(u, theta, first, second, said, weight, Z, alpha, ties):
    """1/W Σ ω ℓ + α ‖r‖², one comparison after the other."""
    n = len(u) - Z.shape[1]
    total = 0.0
    for i, j, verdict, omega, z in zip(first, second, said, weight, Z, strict=True):
        margin = u[i] - u[j] + z @ u[n:]
        if ties == "half":
            both = {1: [margin], -1: [-margin], 0: [margin, -margin]}[int(verdict)]
            total += omega * np.mean([np.logaddexp(0, -g) for g in both])
        else:
            total -= omega * np.log(chances(margin, theta)[{1: 0, 0: 1, -1: 2}[int(verdict)]])
    return total / np.sum(weight) + alpha * u[:n] @ u[:n]


def by_scipy(first, second, said, weight, Z, n, alpha, ties):
    """Ratings, effects and θ of the least objective."""

    def value(v):
        return objective(v[:-1], v[-1], first, second, said, weight, Z, alpha, ties)

    start = np.zeros(n + Z.shape[1] + 1)
    found = minimize(value, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x
    found = minimize(value, found, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}).x
    return found[:n], found[n:-1], found[-1]


def by_logistic_regression(first, second, said, weight, Z, n, alpha):
    """Ratings and effects from rows e_i − e_j with z, a tie as two rows of half the weight.

    scikit-learn penalizes all columns alike: those of Z are made large, so that theirs is nothing.
    """
    large = 1e4
    D = np.zeros((len(first), n))
    D[np.arange(len(first)), first] = 1
    D[np.arange(len(first)), second] = -1
    rows = np.hstack([D, large * Z])
    share = np.r_[weight * (1 + said) / 2, weight * (1 - said) / 2] / np.sum(weight)
    labels = np.repeat([1, 0], len(first))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(
            C=1 / (2 * alpha), fit_intercept=False, tol=1e-14, max_iter=10_000, solver="newton-cg"
        ).fit(np.vstack([rows, rows]), labels, sample_weight=share)
    return model.coef_[0, :n], model.coef_[0, n:] * large


def plackett_luce_loss(f, y, groups, placed):
    """Minus the log likelihood of rankings by Efron's formula, choice by choice; their number."""
    total, n_choices = 0.0, 0
    for g in np.unique(groups):
        rows = np.flatnonzero(groups == g)
        for score in np.unique(y[rows][placed[rows]])[::-1]:
            tied = [i for i in rows if placed[i] and y[i] == score]
            below = [i for i in rows if not placed[i] or y[i] < score]
            if len(tied) + len(below) < 2:
                continue
            for k, i in enumerate(tied):
                left = np.exp(f[below]).sum() + (1 - k / len(tied)) * np.exp(f[tied]).sum()
                total += np.log(left) - f[i]
                n_choices += 1
    return total, n_choices


def team_rows(sides, items, shares=None):
    """Rows Σ members − Σ members of comparisons, each with a list of members for both sides."""
    D = np.zeros((len(sides), len(items)))
    position = {label: k for k, label in enumerate(items)}
    for k, (first, second) in enumerate(sides):
        both = ((first, 1.0), (second, -1.0))
        for side, (team, sign) in enumerate(both):
            for m, member in enumerate(team):
                share = 1.0 if shares is None else shares[k][side][m]
                D[k, position[member]] += sign * share
    return D


def ridge_of_rows(D, target, weight, Z, alpha):
    """Ratings and effects that minimize 1/W Σ ω (δ − D r − Z γ)² + α ‖r‖², densely."""
    n = D.shape[1]
    rows = np.hstack([D, Z])
    penalty = np.diag(np.r_[np.full(n, alpha * weight.sum()), np.zeros(Z.shape[1])])
    A = rows.T @ (weight[:, None] * rows) + penalty
    return np.split(np.linalg.solve(A, rows.T @ (weight * target)), [n])


def newton_of_rows(D, target, weight, Z, alpha):
    """Bradley-Terry ratings and effects by plain Newton steps on the rows, ties as half wins."""
    n = D.shape[1]
    rows = np.hstack([D, Z])
    penalty = np.r_[np.full(n, 2 * alpha * weight.sum()), np.zeros(Z.shape[1])]
    points = (1 + np.sign(target)) / 2
    u = np.zeros(rows.shape[1])

    def loss(v):
        m = rows @ v
        return weight @ (np.logaddexp(0, m) - points * m) + penalty @ v**2 / 2

    for _ in range(200):
        p = 1 / (1 + np.exp(-(rows @ u)))
        gradient = rows.T @ (weight * (p - points)) + penalty * u
        A = rows.T @ ((weight * p * (1 - p))[:, None] * rows) + np.diag(penalty)
        step = np.linalg.solve(A, -gradient)
        length = 1.0
        while loss(u + length * step) > loss(u) + 1e-14 and length > 1e-10:
            length /= 2
        u = u + length * step
        if np.abs(step).max() < 1e-13:
            break
    return np.split(u, [n])
