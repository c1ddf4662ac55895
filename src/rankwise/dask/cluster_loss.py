"""A margin loss as a function of the weights, summed over parts that stay on the workers."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import dask
import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.dask.parts import Part
from rankwise.features import FeatureMap
from rankwise.graphs import ScoreGraph
from rankwise.graphs.strict import strict_preferences
from rankwise.losses import HingeLoss, LossAt, SquaredHingeLoss
from rankwise.solvers.curvature import second_moment
from rankwise.solvers.margin_objective import MarginObjective

__all__ = ["ClusterLoss", "prepare_parts"]


class _MarginPart(NamedTuple):
    """The loss of the pairs of some whole groups; no objective if there is no pair."""

    n_items: int
    objective: MarginObjective | None


class _PartSummary(NamedTuple):
    n_items: int
    n_pairs: int
    weight: float
    moment: Array | None
    magnitude: Array | float


def prepare_parts(
    parts: list[Any],
    view: FeatureMap,
    loss: type[HingeLoss | SquaredHingeLoss],
    group_weight: str,
) -> list[Any]:
    """Features and losses of all parts, kept on the workers; lost ones are made again."""
    shared, prepare = dask.delayed(view, traverse=False), dask.delayed(_prepare)
    return list(dask.persist(*(prepare(part, shared, loss, group_weight) for part in parts)))


class ClusterLoss:
    """``loss(w)`` and its derivatives in the weights: the sum over the parts.

    To the solvers it is a margin loss of items whose features are the identity, so that scores
    and weights are the same thing; one evaluation is one computation of the cluster.

    Parameters
    ----------
    parts : list of delayed
        As `prepare_parts` makes them.

    Attributes
    ----------
    n_items, n_pairs : int
        Of all parts.
    total_weight : float
        W, the sum of the weights of the pairs.
    moment : ndarray
        Second moment of the differences of pairs, as `second_moment` gives it; None without pairs.
    magnitude : ndarray of shape (n_features,)
        Largest absolute values of the features, as `Columns` knows them.
    n_evaluations : int
        How often `at` was called.
    """

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        found = self._compute(_summarize)
        self.n_items = sum(part.n_items for part in found)
        self.n_pairs = sum(part.n_pairs for part in found)
        self.total_weight = float(sum(part.weight for part in found))
        weighted = [part.weight * part.moment for part in found if part.moment is not None]
        self.moment = sum(weighted) / self.total_weight if weighted else None
        self.magnitude = np.asarray(functools.reduce(np.maximum, (p.magnitude for p in found)))
        self.n_evaluations = 0

    @property
    def preferences(self) -> Any:
        """What the solvers ask about the pairs: how many items there are, and for a sample."""
        return self

    def sample(self, step: int) -> None:
        """No sample: its rows would have to come to the client."""
        return None

    def at(self, w: NDArray[Any]) -> LossAt:
        """One pass over all parts; every product with the Hessian is one more."""
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
        return tuple(dask.compute(*(task(part, *arguments) for part in self._parts)))


def _prepare(
    part: Part,
    view: FeatureMap,
    loss: type[HingeLoss | SquaredHingeLoss],
    group_weight: str,
) -> _MarginPart:
    """On a worker."""
    if not len(part.y):
        return _MarginPart(0, None)
    if part.y.shape[1] > 1:
        raise ValueError(f"y has {part.y.shape[1]} outputs; fit one RankSVM for each.")
    graph = ScoreGraph(part.y[:, 0], part.groups, cost="sign", group_weight=group_weight)
    preferences = strict_preferences(graph)
    if not preferences.n_pairs:
        return _MarginPart(len(part.y), None)
    return _MarginPart(
        len(part.y), MarginObjective(view.features(part.X), loss(preferences), alpha=0.0)
    )


def _summarize(part: _MarginPart) -> _PartSummary:
    objective = part.objective
    if objective is None:
        return _PartSummary(part.n_items, 0, 0.0, None, 0.0)
    pairs = objective.loss.preferences
    return _PartSummary(
        part.n_items,
        pairs.n_pairs,
        pairs.total_weight,
        second_moment(objective),
        objective.columns.magnitude,
    )


def _evaluate(part: _MarginPart, w: Array) -> tuple[Any, ...]:
    """Loss, gradient in the weights, offset, size and pull, each times the weight of the pairs."""
    if part.objective is None:
        return (0.0,) * 5
    point = part.objective.at(w)
    weight = part.objective.loss.preferences.total_weight
    terms = point.loss.value, point.slope, point.offset, point.size, point.pull
    return tuple(weight * term for term in terms)


def _curvature(part: _MarginPart, w: Array, v: Array) -> Array | float:
    if part.objective is None:
        return 0.0
    objective = part.objective
    loss = objective.loss.at(objective.scores(w))
    curved = objective.pull_back(loss.curvature(objective.scores(v)))
    return objective.loss.preferences.total_weight * curved
