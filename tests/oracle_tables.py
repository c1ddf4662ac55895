"""Slow truths for tables: every known cell is an item, its kernel values are explicit products."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from rankwise import RankRLS, ScoreGraph


def explicit_dyads(G, K, Y, alpha, *, ranked="columns", **options):
    """Dual coefficients (q, t) of RankRLS on the known cells, pairs and kernel matrix explicit.

    `options` are cost, ties and group_weight.
    """
    i, j = np.nonzero(~np.isnan(Y))
    y = Y[i, j]
    groups = {"columns": i, "rows": j, "cells": None}[ranked]
    graph = ScoreGraph(y, groups, **options).pairs()
    dyads = G[np.ix_(i, i)] * K[np.ix_(j, j)]
    A = np.zeros(Y.shape)
    A[i, j] = RankRLS(alpha, kernel="precomputed").fit(dyads, graph).dual_coef_
    return A


def refit_without(G, K, Y, alpha, leave, **options):
    """Scores of each cell by a model without its row, its column, or both, one at a time.

    Those of a row are counted from their mean over the columns trained on.
    """
    q, t = Y.shape
    every_row, every_column = np.arange(q), np.arange(t)
    held = np.empty(Y.shape)
    folds = {
        "rows": [([i], every_column, np.delete(every_row, i), every_column) for i in every_row],
        "columns": [(every_row, [j], every_row, np.delete(every_column, j)) for j in every_column],
        "both": [
            ([i], [j], np.delete(every_row, i), np.delete(every_column, j))
            for i in every_row
            for j in every_column
        ],
    }[leave]
    for U, V, rows, columns in folds:
        A = explicit_dyads(
            G[np.ix_(rows, rows)], K[np.ix_(columns, columns)], Y[np.ix_(rows, columns)], alpha,
            **options,
        )  # fmt: skip
        scores = G[np.ix_(U, rows)] @ A @ K[columns]
        held[np.ix_(U, V)] = scores[:, V] - scores[:, columns].mean(axis=1, keepdims=True)
    return held


def count_from_mean(F, ranked="columns"):
    """Scores without what pairs do not see."""
    axis = {"columns": 1, "rows": 0, "cells": None}[ranked]
    return F - F.mean(axis=axis, keepdims=True)


OPTIONS = [
    {},
    {"ties": "exclude"},
    {"cost": "sign", "group_weight": "groups"},
    {"cost": "relative"},
]


def with_missing(Y, rng):
    """Without three of ten scores, but with one in every row and column."""
    Y = Y.copy()
    Y[rng.random(Y.shape) < 0.3] = np.nan
    Y[np.arange(len(Y)), np.arange(len(Y)) % Y.shape[1]] = 1.0
    return Y


def exact_scores(rows, columns, Y, alpha, new_rows):
    """Centered scores of new rows, from explicit dyads in decimal numbers of 70 digits.

    The kernels are linear, with the constant of `fit_intercept` on the rows.
    """
    with localcontext() as context:
        context.prec = 70
        R, S, N = as_decimals(rows), as_decimals(columns), as_decimals(new_rows)
        constant = (R * R).sum(axis=1).mean()
        i, j = np.nonzero(~np.isnan(Y))
        same_row = i[:, None] == i
        laplacian = np.diag(same_row.sum(axis=1)) - same_row.astype(int)
        total_weight = Decimal(int(np.trace(laplacian)) // 2)
        A = as_decimals(laplacian) / total_weight
        dyads = (R @ R.T + constant)[np.ix_(i, i)] * (S @ S.T)[np.ix_(j, j)]
        ridge = Decimal(alpha) * as_decimals(np.eye(len(i)))
        coef = as_decimals(np.zeros(Y.shape))
        coef[i, j] = solve_decimals(A @ dyads + ridge, A @ as_decimals(Y[i, j]))
        scores = (N @ R.T + constant) @ coef @ (S @ S.T)
        return (scores - scores.mean(axis=1, keepdims=True)).astype(float)


def as_decimals(values):
    """The same numbers, exactly."""
    flat = [Decimal(value) for value in np.ravel(values).tolist()]
    return np.array(flat, dtype=object).reshape(np.shape(values))


def solve_decimals(A, b):
    """``A⁻¹ b`` by Gaussian elimination with partial pivoting."""
    A, b = A.copy(), b.copy()
    for k in range(len(A)):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]], b[[k, pivot]] = A[[pivot, k]], b[[pivot, k]]
        factors = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= factors[:, None] * A[k]
        b[k + 1 :] -= factors * b[k]
    x = b.copy()
    for k in reversed(range(len(A))):
        x[k] = (b[k] - (A[k, k + 1 :] * x[k + 1 :]).sum()) / A[k, k]
    return x
