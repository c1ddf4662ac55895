"""Hold out twice: models without a fold, and without a fold of the rest as well.

The items are cut into blocks, and each model is trained on some of them. If no edge leaves a block,
the Gram matrices of the blocks add up, so that all models cost one pass over the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.features import Design
from rankwise.graphs import PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.machine import one_thread
from rankwise.model_selection.exact_hold_out import (
    Refit,
    check_rest,
    closed_folds,
    dense_rows,
    refit_without,
    whitened_parts,
)
from rankwise.model_selection.folds import Folds, make_folds
from rankwise.solvers.hold_out import Part, weights_of_blocks

ROOM = 3  # times the features: what the Gram matrices of the blocks may take


class NestedFolds(NamedTuple):
    """Folds, each with folds of the items that are not in it.

    Attributes
    ----------
    blocks : list of ndarray of int
        Items; fold k consists of `n_inner` blocks from ``k n_inner`` on, and a fold of the rest of
        one block of each other fold.
    n_inner : int
        Number of folds of the rest.
    """

    blocks: Folds
    n_inner: int

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.blocks) // self.n_inner

    def models(self) -> list[tuple[list[int], list[int]]]:
        """For each model the blocks that it is trained on, and those that it scores.

        Fold after fold: first the model without it, which scores it; then those without it and
        without a fold of the rest, which score the latter.
        """
        found, numbers = [], np.arange(len(self.blocks))
        outer, inner = numbers // self.n_inner, numbers % self.n_inner
        for k in range(self.n_folds):
            found.append((outer != k, outer == k))
            for j in range(self.n_inner):
                found.append(((outer != k) & (inner != j), (outer != k) & (inner == j)))
        return [(numbers[kept].tolist(), numbers[new].tolist()) for kept, new in found]

    def rows(self, numbers: list[int]) -> NDArray[np.intp]:
        """The items of some blocks."""
        return np.sort(np.concatenate([self.blocks[b] for b in numbers]))


def make_nested_folds(graph: PreferenceGraph, n_folds: int, n_inner: int) -> NestedFolds:
    """Folds of groups, or of the items of one list; fewer inner ones if there are few of them."""
    n_units = graph.n_groups if graph.n_groups > 1 else graph.n_items
    n_inner = max(1, min(n_inner, n_units // n_folds))
    return NestedFolds(make_folds(n_folds * n_inner, graph), n_inner)


def nested_scores(
    loss: SquaredLoss,
    design: Design,
    nested: NestedFolds,
    alphas: Array,
    refit: Refit,
    white: list[Part] | None = None,
) -> list[Array]:
    """What each of the models gives the items that it scores, (n_scored, n_alphas); one output."""
    m, p = design.matrix.shape
    fits = len(nested.blocks) * p <= ROOM * m
    is_closed = bool(closed_folds(loss.graph, nested.blocks).all())
    models = nested.models()
    if not (design.method == "primal" and loss.beta == 0 and fits and is_closed):
        every = np.arange(m)
        found = []
        for kept, new in models:
            rest, rows = nested.rows(kept), nested.rows(new)
            found.append(
                refit_without(loss, design, np.setdiff1d(every, rest), rows, alphas, refit)
            )
        return [scores[:, 0] for scores in found]
    R = dense_rows(design.matrix)
    (part,) = white or whitened_parts(loss, R)
    for kept, _ in models:
        check_rest(bool(part.amount[nested.rows(kept)].sum() > 0))
    with one_thread():
        weights = weights_of_blocks(R, part, nested.blocks, [kept for kept, _ in models], alphas)
        return [R[nested.rows(new)] @ w[:, 0] for (_, new), w in zip(models, weights, strict=True)]
