"""Slow truths for tables: every known cell is an item, its kernel values are explicit products."""

from __future__ import annotations

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
