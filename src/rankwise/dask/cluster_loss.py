"""A margin loss as a function of the weights, summed over blocks that stay on the workers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import dask
import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.dask.blocks import RowBlock
from rankwise.features import FeatureMap
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.losses import LossAt, MarginLoss
from rankwise.solvers.bundle import plane_at
from rankwise.solvers.descent import second_moment
from rankwise.solvers.margin_objective import MarginObjective, make_objective


class _BlockLoss(NamedTuple):
    """The loss of the pairs of some whole groups; no objective if there is no pair."""

    n_items: int
    objective: MarginObjective | None


class _BlockSummary(NamedTuple):
    n_items: int
    n_pairs: int
    weight: float
    moment: Array | None
    magnitude: Array | float


def prepare_blocks(
    blocks: list[Any],
    view: FeatureMap,
    loss: Callable[[PreferenceGraph], MarginLoss],
    group_weight: str,
) -> list[Any]:
    """Features and losses of all blocks, kept on the workers; lost ones are made again."""
    shared, prepare = dask.delayed(view, traverse=False), dask.delayed(_prepare)
    return list(dask.persist(*(prepare(block, shared, loss, group_weight) for block in blocks)))


class ClusterLoss(MarginLoss):
    """``loss(w)`` and its derivatives in the weights: the sum over the blocks.

    To the solvers it is a margin loss of items whose features are the identity, so that scores
    and weights are the same thing; one evaluation is one computation of the cluster.

    Parameters
    ----------
    blocks : list of delayed
        As `prepare_blocks` makes them.

    Attributes
    ----------
    n_items, n_pairs : int
        Of all blocks.
    total_weight : float
        W, the sum of the weights of the pairs.
    moment : ndarray
        Second moment of the differences of pairs, as `second_moment` gives it; None without pairs.
    magnitude : ndarray of shape (n_features,)
        Largest absolute values of the features, as `Columns` knows them.
    n_evaluations : int
        How often `at` was called.
    """

    def __init__(self, blocks: list[Any]) -> None:
        self._blocks = blocks
        found = self._compute(_summarize)
        self.n_items = sum(block.n_items for block in found)
        self.n_pairs = sum(block.n_pairs for block in found)
        self.total_weight = float(sum(block.weight for block in found))
        weighted = [block.weight * block.moment for block in found if block.moment is not None]
        self.moment = sum(weighted) / self.total_weight if weighted else None
        self.magnitude = np.asarray(functools.reduce(np.maximum, (p.magnitude for p in found)))
        self.n_evaluations = 0

    def sample(self, step: int) -> None:
        """No sample: its rows would have to come to the client."""
        return None

    def at(self, w: NDArray[Any]) -> LossAt:
        """One pass over all blocks; every product with the Hessian is one more."""
        self.n_evaluations += 1
        found = self._compute(_evaluate, w)
        value, gradient, *plane = (
            sum(terms) / self.total_weight for terms in zip(*found, strict=True)
        )

        def curvature(v: Array) -> Array:
            return np.asarray(sum(self._compute(_curvature, w, v)) / self.total_weight)

        return LossAt(float(value), np.asarray(gradient), curvature, *map(float, plane))

    def _compute(self, function: Any, *arguments: Any) -> tuple[Any, ...]:
        task = dask.delayed(function)
        return tuple(dask.compute(*(task(block, *arguments) for block in self._blocks)))


def _prepare(
    block: RowBlock,
    view: FeatureMap,
    loss: Callable[[PreferenceGraph], MarginLoss],
    group_weight: str,
) -> _BlockLoss:
    """On a worker."""
    if not len(block.y):
        return _BlockLoss(0, None)
    if block.y.shape[1] > 1:
        raise ValueError(f"y has {block.y.shape[1]} outputs; fit one RankSVM for each.")
    graph = ScoreGraph(block.y[:, 0], block.groups, cost="sign", group_weight=group_weight)
    found = loss(graph)
    if not found.graph.n_pairs:
        return _BlockLoss(len(block.y), None)
    return _BlockLoss(len(block.y), make_objective(view.features(block.X), found, alpha=0.0))


def _summarize(block: _BlockLoss) -> _BlockSummary:
    objective = block.objective
    if objective is None:
        return _BlockSummary(block.n_items, 0, 0.0, None, 0.0)
    return _BlockSummary(
        block.n_items,
        objective.loss.graph.n_pairs,
        objective.loss.total_weight,
        second_moment(objective),
        objective.magnitude,
    )


def _evaluate(block: _BlockLoss, w: Array) -> tuple[Any, ...]:
    """Loss, gradient in the weights, offset, size and pull, each times the weight of the pairs."""
    if block.objective is None:
        return (0.0,) * 5
    point = block.objective.at(w)
    weight = block.objective.loss.total_weight
    terms = point.loss.value, point.slope, *plane_at(point)
    return tuple(weight * term for term in terms)


def _curvature(block: _BlockLoss, w: Array, v: Array) -> Array | float:
    if block.objective is None:
        return 0.0
    objective = block.objective
    loss = objective.loss.at(objective.scores(w))
    curved = objective.pull_back(loss.curvature(objective.scores(v)))
    return objective.loss.total_weight * curved
