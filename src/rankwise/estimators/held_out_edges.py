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

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.estimators.folds import Folds
from rankwise.graphs import PairGraph
from rankwise.solvers.hold_out import Part, hold_out_primal

__all__ = ["crosses", "fits_edges", "hold_out_with_edges"]

Array = NDArray[np.float64]
EDGE_ENTRIES = 2**25  # differences of features held in memory, all edges by all features


def crosses(graph: PairGraph, items: NDArray[np.intp]) -> bool:
    """Whether an edge joins one of the items to one of the rest."""
    inside = _mask(graph, items)
    return bool((inside[graph.winner] != inside[graph.loser]).any())


def fits_edges(graph: PairGraph, n_features: int) -> bool:
    """Whether there are few enough edges to hold the difference of features of each."""
    return (graph.n_pairs + graph.n_items) * n_features <= EDGE_ENTRIES


def hold_out_with_edges(
    R: Array, graph: PairGraph, folds: Folds, alphas: Array
) -> Iterator[tuple[NDArray[np.intp], Array]]:
    """Held-out scores of each fold, shape (|U|, 1, n_alphas), without training again.

    Every fold must leave an edge to train on.
    """
    n_edges, n_items = graph.n_pairs, graph.n_items
    x = R[graph.winner] - R[graph.loser]
    omega, nothing = graph.edge_weight, np.zeros(n_items)
    part = Part(
        share=1.0,
        white=np.concatenate([np.sqrt(omega)[:, None] * x, np.zeros_like(R)]),
        target=np.concatenate([omega * graph.edge_target, nothing])[:, None],
        amount=np.concatenate([omega, nothing]),
    )
    rows = [np.concatenate([np.flatnonzero(_touch(graph, U)), n_edges + U]) for U in folds]
    for held, scores in hold_out_primal(np.concatenate([x, R]), [part], rows, alphas):
        is_item = held >= n_edges
        out = scores[is_item]
        if not _prefers_without(graph, held[~is_item]):
            out = np.zeros_like(out)  # rounding must not order items
        yield held[is_item] - n_edges, out


def _mask(graph: PairGraph, items: NDArray[np.intp]) -> NDArray[np.bool_]:
    inside = np.zeros(graph.n_items, dtype=bool)
    inside[items] = True
    return inside


def _touch(graph: PairGraph, items: NDArray[np.intp]) -> NDArray[np.bool_]:
    inside = _mask(graph, items)
    return np.asarray(inside[graph.winner] | inside[graph.loser])


def _prefers_without(graph: PairGraph, edges: NDArray[np.intp]) -> bool:
    """Whether the other edges prefer any item to any other, on balance."""
    flow = graph.edge_weight * graph.edge_target
    largest = flow.max(initial=0.0)
    flow = np.delete(flow, edges)
    winner, loser = np.delete(graph.winner, edges), np.delete(graph.loser, edges)
    d = np.bincount(winner, flow, graph.n_items) - np.bincount(loser, flow, graph.n_items)
    return bool(np.abs(d).max(initial=0.0) > 1e-13 * largest)
