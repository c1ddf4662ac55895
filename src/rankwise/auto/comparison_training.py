"""Training of the members of both stacks on all comparisons."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.comparison_problem import (
    EvaluatedPairMember,
    TrainedOrder,
    TrainedPairMember,
    TrainedPairs,
    TrainedStrengths,
)
from rankwise.auto.comparison_stacks import ComparisonStacks
from rankwise.auto.log_odds_stack import LogOddsStack
from rankwise.auto.pair_models import JointPairs, PairTrees

LEAST_WEIGHT = 1e-6  # of members that are trained


@dataclass(eq=False)
class WeightedOrders:
    """A sum of rankers of items, strengths of known items and effects of covariates.

    Attributes
    ----------
    strengths : ndarray of shape (n_names,)
        Strengths of items with names.
    covariate_coef : ndarray of shape (n_covariates,)
        Effects of the covariates.
    rankers, views, factors : list
        Rankers, the columns that they receive, and their factors.
    """

    strengths: Array
    covariate_coef: Array
    rankers: list[Any] = field(default_factory=list)
    views: list[str] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def add(self, trained: TrainedOrder | TrainedStrengths, factor: float) -> None:
        """Add a trained member."""
        self.covariate_coef = self.covariate_coef + factor * trained.covariate_coef
        if isinstance(trained, TrainedStrengths):
            self.strengths = self.strengths + factor * trained.strengths
            return
        self.rankers.append(trained.ranker)
        self.views.append(trained.view)
        self.factors.append(factor)

    def scaled_rankers(self) -> list[Any]:
        """Rankers whose plain sum is the weighted one."""
        return [
            _with_scaled_scores(ranker, factor)
            for ranker, factor in zip(self.rankers, self.factors, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class TrainedStacks:
    """Both stacks, trained on all comparisons.

    Attributes
    ----------
    order : WeightedOrders
        The stack of orders.
    pair_orders : WeightedOrders
        The orders in the stack of pairs.
    pair_models : list of JointPairs or PairTrees
        The models of both items in the stack of pairs.
    pair_factors : list of float
        Their factors.
    """

    order: WeightedOrders
    pair_orders: WeightedOrders
    pair_models: list[JointPairs | PairTrees]
    pair_factors: list[float]


def train_stacks(stacks: ComparisonStacks, *, n_names: int, n_covariates: int) -> TrainedStacks:
    """Train the members that have a weight, each once.

    Parameters
    ----------
    stacks : ComparisonStacks
        The stacks; that of pairs is trained only if it is used.
    n_names : int
        Number of items with strengths.
    n_covariates : int
        Number of covariates.
    """
    trained: dict[str, TrainedPairMember] = {}  # a member of both stacks is trained once

    def train(member: EvaluatedPairMember) -> TrainedPairMember:
        if member.name not in trained:
            trained[member.name] = member.train()
        return trained[member.name]

    order = WeightedOrders(np.zeros(n_names), np.zeros(n_covariates))
    for member, factor in _weighted_members(stacks.order_members, stacks.order):
        model = train(member)
        assert not isinstance(model, TrainedPairs)
        order.add(model, factor)
    if not order.rankers:  # new items have no strengths: add a ranker that scores them 0
        model = train(stacks.order_members[0])
        assert isinstance(model, TrainedOrder)
        order.add(model, factor=0.0)
    pair_orders = WeightedOrders(np.zeros(n_names), np.zeros(n_covariates))
    pair_models: list[JointPairs | PairTrees] = []
    pair_factors: list[float] = []
    if stacks.uses_pairs:
        for member, factor in _weighted_members(stacks.pair_members, stacks.pairs):
            model = train(member)
            if isinstance(model, TrainedPairs):
                pair_models.append(model.model)
                pair_factors.append(factor)
            else:
                pair_orders.add(model, factor)
    return TrainedStacks(order, pair_orders, pair_models, pair_factors)


def _weighted_members(
    members: list[EvaluatedPairMember], stack: LogOddsStack
) -> Iterator[tuple[EvaluatedPairMember, float]]:
    """Members with a weight, and their factors."""
    weights = stack.weights.tolist()
    factors = stack.factors.tolist()
    for member, weight, factor in zip(members, weights, factors, strict=True):
        if weight > LEAST_WEIGHT:
            yield member, factor


def _with_scaled_scores(ranker: Any, factor: float) -> Any:
    """A copy of a linear model or of trees, with scores times a factor."""
    scaled = copy.deepcopy(ranker)
    if isinstance(scaled, BoostedTrees):  # value_: contributions of the leaves
        scaled.value_ = factor * scaled.value_
    elif isinstance(scaled, Pipeline):
        linear_model = scaled[-1]
        linear_model.coef_ = factor * linear_model.coef_
    return scaled
