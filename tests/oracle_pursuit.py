"""Slow truths of ranking pursuit: one row for each pair, `lstsq` for each candidate, loops."""

from __future__ import annotations

import itertools

import numpy as np


class Loss:
    """The loss as a sum of squares: ``‖z − D a‖²`` with a row of D for each edge and each item.

    With `level` a constant that only the rows of the items see is free: it is minimised away by
    making every row orthogonal to it.
    """

    def __init__(self, edges, n_items, beta=0.0, y=None, level=False):
        total = sum(omega for *_, omega in edges)
        self.edges = [
            (i, j, delta, np.sqrt((1 - beta) * omega / total)) for i, j, delta, omega in edges
        ]
        self.item_weight = np.sqrt(beta / n_items)
        self.level = level
        items = np.zeros(n_items) if y is None else np.asarray(y)
        z = [w * delta for _, _, delta, w in self.edges]
        self.z = self._project(np.array(z + [self.item_weight * s for s in items]))

    def rows(self, values):
        """The column of D that belongs to a function with these values."""
        column = [w * (values[i] - values[j]) for i, j, _, w in self.edges]
        return self._project(np.array(column + [self.item_weight * v for v in values]))

    def _project(self, column):
        constant = np.concatenate(
            [np.zeros(len(self.edges)), np.ones(len(column) - len(self.edges))]
        )
        if not self.level:
            return column
        return column - constant * (constant @ column) / (constant @ constant)


def candidates(loss, K, residual):
    """a*(γ) and J(γ) for every γ: lines 3 to 6 of [Pursuit13] figure 1."""
    found = []
    for column in K.T:
        k = loss.rows(column)
        a = (k @ residual) / (k @ k) if k @ k > 1e-14 * (column @ column) else 0.0
        found.append((a, float(np.sum((residual - a * k) ** 2))))
    return found


def refit(loss, K, chosen):
    """Least-squares coefficients of the chosen functions."""
    D = np.stack([loss.rows(K[:, j]) for j in chosen], axis=1)
    return np.linalg.lstsq(D, loss.z, rcond=1e-12)[0]


def ranking_pursuit(loss, K, n_steps, backfit=None, follow=None):
    """[Pursuit13] figure 1.

    Returns for every step the choice, the coefficients of all functions and what J the choice and
    the best choice had. With `follow` the choices are given, so that ties do not matter.
    """
    a = np.zeros(K.shape[1])
    residual, chosen, steps = loss.z, [], []
    for p in range(n_steps):
        found = candidates(loss, K, residual)
        J = np.array([value for _, value in found])
        if backfit == "every":
            J[chosen] = np.inf
        gamma = int(np.argmin(J)) if follow is None else follow[p]
        a[gamma] += found[gamma][0]
        if gamma not in chosen:
            chosen.append(gamma)
        fitted = a.copy()
        if backfit is not None:
            fitted[:] = 0.0
            fitted[chosen] = refit(loss, K, chosen)
        guide = fitted if backfit == "every" else a
        residual = loss.z - sum(guide[j] * loss.rows(K[:, j]) for j in chosen)
        steps.append((gamma, fitted.copy(), J[gamma], J.min()))
    return steps


def agreement_rows(edges, functions, nu):
    """Rows ``√(νω/W̄) (Δf_v − Δf_u)`` for every ordered pair of views and every edge.

    `functions` are (view, values); one column for each.
    """
    total = sum(omega for *_, omega in edges)
    views = sorted({view for view, _ in functions})
    rows = []
    for v, u in itertools.product(views, views):
        for i, j, omega in edges:
            sign = [(view == v) * 1.0 - (view == u) * 1.0 for view, _ in functions]
            scale = np.sqrt(nu * omega / total)
            rows.append(
                [scale * s * (k[i] - k[j]) for s, (_, k) in zip(sign, functions, strict=True)]
            )
    return np.array(rows)


def solve_views(loss, residual, functions, n_views, scored, edges, nu):
    """Coefficients of functions (view, values at all rows), and J, by one stacked `lstsq`."""
    blocks, targets = [], []
    for v in range(n_views):
        blocks.append(
            np.stack(
                [
                    loss.rows(k[scored]) if view == v else np.zeros_like(residual)
                    for view, k in functions
                ],
                axis=1,
            )
        )
        targets.append(residual)
    agreement = agreement_rows(edges, functions, nu)
    D = np.concatenate([*blocks, agreement])
    z = np.concatenate([*targets, np.zeros(len(agreement))])
    a = np.linalg.lstsq(D, z, rcond=1e-12)[0]
    return a, float(np.sum((z - D @ a) ** 2))


def semi_supervised_pursuit(
    loss, K, scored, edges, nu, n_steps, backfit=None, combinations=None, follow=None
):
    """[Pursuit13] figure 2; K has one matrix (all rows × dictionary) for each view.

    Without `combinations` every γ is tried. The steps are as in `ranking_pursuit`, with one list
    of coefficients for each view.
    """
    M = len(K)
    if combinations is None:
        combinations = list(itertools.product(*(range(k.shape[1]) for k in K)))
    a = [np.zeros(k.shape[1]) for k in K]
    residual, chosen, steps = loss.z, [], []
    for p in range(n_steps):
        J, coef = {}, {}
        for gamma in combinations:
            functions = [(v, K[v][:, j]) for v, j in enumerate(gamma)]
            coef[gamma], J[gamma] = solve_views(loss, residual, functions, M, scored, edges, nu)
            if backfit == "every" and all((v, j) in chosen for v, j in enumerate(gamma)):
                J[gamma] = np.inf
        gamma = min(combinations, key=J.__getitem__) if follow is None else follow[p]
        for v, j in enumerate(gamma):
            a[v][j] += coef[gamma][v]
            if (v, j) not in chosen:
                chosen.append((v, j))
        fitted = [part.copy() for part in a]
        if backfit is not None:
            functions = [(v, K[v][:, j]) for v, j in chosen]
            values, _ = solve_views(loss, loss.z, functions, M, scored, edges, nu)
            fitted = [np.zeros_like(part) for part in a]
            for (v, j), value in zip(chosen, values, strict=True):
                fitted[v][j] = value
        guide = fitted if backfit == "every" else a
        mean = sum(k[scored] @ part for k, part in zip(K, guide, strict=True)) / M
        residual = loss.z - loss.rows(mean)
        steps.append((gamma, [part.copy() for part in fitted], J[gamma], min(J.values())))
    return steps
