"""Models without a group or without an edge, by one Newton step from the model of all pairs.

With the objective of the rest, ``J' = 1/W' Σ_rest ω ℓ + α ‖w‖²``, the step from the minimum w of J
is ``w − H'⁻¹ ∇J'(w)``, H' being the Hessian of J' at w. The error of the step is of the order of
the square of the change that it makes. So it is small for one group, or one edge, of many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import expit

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
from rankwise.graphs.compared import compare_pairs
from rankwise.losses import LogisticLoss


class _Sums(NamedTuple):
    """W, and W times gradient and Hessian of the logistic loss in the weights of the features."""

    weight: float
    gradient: Array
    hessian: Array

    def plus(self, other: _Sums, sign: float = 1.0) -> _Sums:
        return _Sums(
            self.weight + sign * other.weight,
            self.gradient + sign * other.gradient,
            self.hessian + sign * other.hessian,
        )


def without_groups(graph: PreferenceGraph, R: Any, w: Array, *, alpha: float) -> Array:
    """Weights of the logistic model without each group, shape (n_groups, n_features).

    Parameters
    ----------
    graph : PreferenceGraph
        All pairs. Those with an item of a group leave with it.
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items.
    w : ndarray of shape (n_features,)
        The minimum of ``loss(R w) + α ‖w‖²``.
    alpha : float
        α, of the rest as of all.

    Returns
    -------
    ndarray of shape (n_groups, n_features)
        nan for a group without which there is no pair left.
    """
    R = _centered(R)
    total = _Sums(0.0, np.zeros(len(w)), np.zeros((len(w), len(w))))
    whole = _parts(graph) if isinstance(graph, ScoreGraph) else [(slice(None), graph)]
    for items, part in whole:
        total = total.plus(_sums(part, R[items], w))
    out = np.full((graph.n_groups, len(w)), np.nan)
    for number, (items, part) in enumerate(_parts(graph)):
        rest = total.plus(_sums(part, R[items], w), -1.0)
        if rest.weight > 1e-12 * total.weight:
            shift = 2 * alpha * rest.weight
            H = rest.hessian + shift * np.eye(len(w))
            step = scipy.linalg.solve(H, rest.gradient + shift * w, assume_a="pos")
            out[number] = w - step
    return out


def without_edges(graph: PairGraph, R: Any, w: Array, *, alpha: float) -> Array:
    """Weights of the logistic model without each edge, shape (n_edges, n_features).

    With the eigenvectors of the Hessian of the loss all edges take time in proportion to their
    number times that of the features, whatever their weights.

    Parameters
    ----------
    graph : PairGraph
        The edges; at least two.
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items.
    w : ndarray of shape (n_features,)
        The minimum of ``loss(R w) + α ‖w‖²``.
    alpha : float
        α, of the rest as of all.
    """
    R = _centered(R)
    total, omega = _sums(graph, R, w), graph.edge_weight
    values, Q = np.linalg.eigh(total.hessian)
    shift = 2 * alpha * (total.weight - omega)[:, None]
    X, own = (R[graph.winner] - R[graph.loser]) @ Q, w @ Q
    wrong = expit(-(X @ own))
    pull = omega * (wrong - np.where(graph.magnitude > 0, 0.0, 0.5))
    right = total.gradient @ Q + shift * own + pull[:, None] * X
    inverse = 1 / (np.maximum(values, 0.0) + shift)
    bend = omega * wrong * (1 - wrong)
    solved, direction = inverse * right, inverse * X
    leverage = bend * np.einsum("ij,ij->i", X, direction)
    share = bend * np.einsum("ij,ij->i", X, solved) / (1 - leverage)
    return np.asarray(w - (solved + share[:, None] * direction) @ Q.T)


def _centered(R: Any) -> Any:
    """Dense features around their means: differences of items lose no digits to an offset."""
    return R if sp.issparse(R) else R - R.mean(axis=0, dtype=np.float64)


def _parts(graph: PreferenceGraph) -> Iterator[tuple[Indices, PreferenceGraph]]:
    """For each group the items of the pairs that leave with it, and these pairs."""
    order = np.argsort(graph.groups, kind="stable")
    sizes = np.bincount(graph.groups, minlength=graph.n_groups)
    members = np.split(order, np.cumsum(sizes)[:-1])
    if isinstance(graph, ScoreGraph):
        yield from ((items, graph.subset(items)) for items in members)
        return
    edges = graph.pairs()
    for items in members:
        inside = np.zeros(graph.n_items, dtype=bool)
        inside[items] = True
        gone = edges.with_edges(inside[edges.winner] | inside[edges.loser])
        touched = np.unique(np.r_[items, gone.winner, gone.loser])
        yield touched, gone.subset(touched)


def _sums(graph: PreferenceGraph, R: Any, w: Array) -> _Sums:
    pairs, f = compare_pairs(graph), np.asarray(R @ w)
    n, weight = graph.n_items, float(graph.total_weight) if graph.n_pairs else 0.0
    if not weight:
        return _Sums(0.0, np.zeros(len(w)), np.zeros((len(w), len(w))))
    gradient = weight * LogisticLoss(pairs).at(f).gradient
    arranged = pairs.arrange(f)
    at = pairs.arrange(np.arange(n)).astype(np.intp)
    L = sp.csr_matrix((n, n))
    for block in pairs.blocks:
        g = block.differences(arranged)
        h = block.weight * expit(g) * expit(-g)
        first, second = at[block.items][block.first], at[block.items][block.second]
        rows, columns = np.r_[first, second, first, second], np.r_[second, first, first, second]
        L = L + sp.coo_matrix((np.r_[-h, -h, h, h], (rows, columns)), shape=(n, n)).tocsr()
    curved = R.T @ (L @ R)
    curved = curved.toarray() if sp.issparse(curved) else curved
    return _Sums(weight, np.asarray(R.T @ gradient), np.asarray(curved))
