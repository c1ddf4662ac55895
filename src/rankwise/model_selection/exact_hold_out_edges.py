"""Held-out items of explicit preferences, whose edges cross into the rest and leave with them.

Without the items U the sum over edges lacks every edge that touches U, those inside and those that
cross. With x_k = r_i − r_j for edge k = (i, j) and E_U the edges that touch U,

    f_U = R_U (Rᵀ L R − Σ_{k ∈ E_U} ω_k x_k x_kᵀ + λI)⁻¹ (Rᵀ d − Σ_{k ∈ E_U} ω_k δ_k x_k),

    λ = α (W − Σ_{k ∈ E_U} ω_k)

is what training again gives ([RankRLS09] section 3.3 for any graph). The edges take the place of
the items in `hold_out_primal`, which needs nothing else; items ride along without weight so that
they get their scores.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.graphs import PairGraph
from rankwise.model_selection.folds import Folds
from rankwise.solvers.hold_out import Part, hold_out_primal

EDGE_ENTRIES = 2**25  # differences of features held in memory, all edges by all features


def fits_edges(graph: PairGraph, n_features: int) -> bool:
    """Whether there are few enough edges to hold the difference of features of each."""
    return (graph.n_pairs + graph.n_items) * n_features <= EDGE_ENTRIES


def edges_of_folds(graph: PairGraph, folds: Folds) -> Folds:
    """For each fold the edges that touch it."""
    fold = np.full(graph.n_items, -1)
    for k, U in enumerate(folds):
        fold[U] = k
    ends = np.concatenate([fold[graph.winner], fold[graph.loser]])
    order = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[order], np.arange(len(folds) + 1))
    return [np.unique(order[a:b] % graph.n_pairs) for a, b in itertools.pairwise(bounds)]


def hold_out_with_edges(
    R: Array, graph: PairGraph, folds: Folds, edges: Folds, alphas: Array, out: Array
) -> None:
    """Held-out scores of each fold, without training again.

    Parameters
    ----------
    R : ndarray of shape (n_items, p)
        Features.
    graph : PairGraph
        The preferences.
    folds, edges : list of ndarray of int
        Items held out together, and the edges that touch them; never all edges.
    alphas : ndarray of shape (n_alphas,)
        Positive numbers.
    out : ndarray of shape (n_items, 1, n_alphas)
        Gets the scores.
    """
    n_edges, nothing = graph.n_pairs, np.zeros(graph.n_items)
    x, omega = R[graph.winner] - R[graph.loser], graph.edge_weight
    part = Part(
        share=1.0,
        white=np.concatenate([np.sqrt(omega)[:, None] * x, np.zeros_like(R)]),
        target=np.concatenate([omega * graph.edge_target, nothing])[:, None],
        amount=np.concatenate([omega, nothing]),
    )
    rows = [np.concatenate([some, n_edges + U]) for U, some in zip(folds, edges, strict=True)]
    scores = np.empty((n_edges + graph.n_items, 1, len(alphas)))
    hold_out_primal(np.concatenate([x, R]), [part], rows, alphas, scores)
    balance = _Balance(graph)
    for U, some in zip(folds, edges, strict=True):
        # where nothing is preferred, rounding must not order items
        out[U] = scores[n_edges + U] if balance.prefers_without(some) else 0.0


class _Balance:
    """What is preferred on balance when some edges are taken out."""

    def __init__(self, graph: PairGraph) -> None:
        self._graph = graph
        self._flow = graph.edge_weight * graph.edge_target
        every = np.arange(graph.n_pairs)
        self._whole = self._sum(every, -1.0)
        self._rounding = 1e-13 * self._sum(every, 1.0)

    def prefers_without(self, edges: NDArray[np.intp]) -> bool:
        rest = self._whole - self._sum(edges, -1.0)
        return bool((np.abs(rest) > self._rounding).any())

    def _sum(self, edges: NDArray[np.intp], sign: float) -> Array:
        graph, flow = self._graph, self._flow[edges]
        d = np.bincount(graph.winner[edges], flow, graph.n_items)
        return d + sign * np.bincount(graph.loser[edges], flow, graph.n_items)
