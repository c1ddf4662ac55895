"""Slow truths of semi-supervised ranking: explicit pairs, loops over views, dense solves."""

from __future__ import annotations

import numpy as np

from tests import oracle


def agreement_edges(y, groups, group_weight="pairs"):
    """Pairs of unscored rows inside groups, of scored ones if no row is unscored; all rows count.

    A list of (i, j, omega) with row numbers of y.
    """
    rows = np.flatnonzero(np.isnan(y))
    rows = rows if len(rows) else np.arange(len(y))
    labels = None if groups is None else np.asarray(groups)[rows]
    edges = oracle.score_edges(np.zeros(len(rows)), labels, group_weight=group_weight)
    return [(rows[i], rows[j], omega) for i, j, _, omega in edges]


def scored_edges(y, groups, cost="magnitude", ties="include", group_weight="pairs"):
    """Pairs of scored rows inside groups: (winner, loser, delta, omega) with row numbers of y."""
    rows = np.flatnonzero(~np.isnan(y))
    labels = None if groups is None else np.asarray(groups)[rows]
    edges = oracle.score_edges(y[rows], labels, cost, ties, group_weight)
    return [(rows[i], rows[j], delta, omega) for i, j, delta, omega in edges]


def objective(scored, agreement, F, norms, alpha, nu):
    """J of [CoRankRLS10] equation 17 for scores F (items × views), pair by pair, view by view."""
    n_views = F.shape[1]
    W = sum(omega for *_, omega in scored)
    value = 0.0
    for v in range(n_views):
        for i, j, delta, omega in scored:
            value += omega * (delta - (F[i, v] - F[j, v])) ** 2 / W
        value += alpha * norms[v]
    W = sum(omega for *_, omega in agreement)
    for v in range(n_views):
        for u in range(n_views):
            for i, j, omega in agreement:
                gap = (F[i, v] - F[j, v]) - (F[i, u] - F[j, u])
                value += nu * omega * gap**2 / W
    return value


def co_rank_rls(scored, agreement, kernel_columns, kernel_blocks, alpha, nu):
    """Coefficients of the basis items of each view, by the system of [CoRankRLS10] equation 18.

    `kernel_columns` are the matrices K_mb over all rows, `kernel_blocks` the K_bb. B, C, D and E
    are written block by block in the coordinates of the paper, with λ = α W and ν W / W̄ for ν.
    """
    m = len(kernel_columns[0])
    L, d = oracle.laplacian_and_divergence(scored, m)
    L_bar, _ = oracle.laplacian_and_divergence([(i, j, 0.0, w) for i, j, w in agreement], m)
    W = sum(omega for *_, omega in scored)
    W_bar = sum(omega for *_, omega in agreement)
    lam, nu = alpha * W, nu * W / W_bar
    M = len(kernel_columns)
    sizes = [K.shape[1] for K in kernel_columns]
    start = np.concatenate([[0], np.cumsum(sizes)])
    A, E = np.zeros((start[-1], start[-1])), np.zeros(start[-1])
    for v in range(M):
        K_v, rows = kernel_columns[v], slice(start[v], start[v + 1])
        E[rows] = K_v.T @ d
        A[rows, rows] += K_v.T @ L @ K_v
        A[rows, rows] += 2 * nu * (M - 1) * K_v.T @ L_bar @ K_v
        A[rows, rows] += lam * kernel_blocks[v]
        for u in range(M):
            if u != v:
                columns = slice(start[u], start[u + 1])
                A[rows, columns] = -2 * nu * K_v.T @ L_bar @ kernel_columns[u]
    return np.split(np.linalg.solve(A, E), start[1:-1])
