"""Predictions of AutoRanker for comparisons: probabilities and win shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, Indices
from rankwise.auto.capped_link import win_probability
from rankwise.auto.comparison_covariates import SIDE, CovariateValues
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.pair_columns import EncodedCovariates
from rankwise.auto.pair_models import JointPairs, PairTrees
from rankwise.fitted_schema import (
    FittedSchema,
    Floats,
    Integer,
    Labels,
    ListOf,
    Model,
    Number,
    Values,
)


class ComparisonModel(BaseEstimator):
    """Probabilities of comparisons: of an order, or of a stack of models of both items.

    Attributes
    ----------
    covariates_ : ComparisonCovariates
        Encoder of the covariates.
    order_cap_ : float
        The c of the link of the order.
    order_covariate_coef_ : ndarray of shape (n_numbers,)
        Effects of the covariates in the model of the order.
    rankers_, ranker_views_, ranker_factors_
        Rankers of items in the stack of pairs, the columns that they receive, and their factors.
    ranker_covariate_coef_ : ndarray of shape (n_numbers,)
        Sum of their effects of the covariates.
    pair_models_, pair_factors_
        Models of both items, and their factors.
    names_ : ndarray of str
        Names of items that have their own strength.
    order_strengths_, pair_strengths_ : ndarray of shape (n_names,)
        Their strengths in the order and in the stack of pairs.
    field_ : dict of ndarray
        Views of known items, for `win_share`.
    n_codes_ : int
        Number of columns of codes in the view "cells".
    uses_pairs_ : bool
        Whether the stack of pairs is used.
    """

    _fitted: ClassVar[FittedSchema] = {
        "covariates_": Model(),
        "order_cap_": Number(),
        "order_covariate_coef_": Floats("covariates"),
        "rankers_": ListOf(Model()),
        "ranker_views_": Values(),
        "ranker_factors_": Floats("rankers"),
        "ranker_covariate_coef_": Floats("covariates"),
        "pair_models_": ListOf(Model()),
        "pair_factors_": Floats("models"),
        "names_": Labels("names"),
        "order_strengths_": Floats("names"),
        "pair_strengths_": Floats("names"),
        "field_": Values(),
        "n_codes_": Integer(),
        "uses_pairs_": Values(),
    }

    def strengths_by_name(
        self, names: NDArray[np.str_] | None, n_items: int, strengths: Array
    ) -> Array:
        """Strengths of items by name; 0 for unknown items."""
        if names is None or not len(self.names_):
            return np.zeros(n_items)
        # look the names up among the sorted names of the training items
        position = np.searchsorted(self.names_, names)
        position = np.minimum(position, len(self.names_) - 1)
        has_strength = self.names_[position] == names
        return np.where(has_strength, strengths[position], 0.0)

    def win_probability(
        self,
        views: dict[str, Any],
        order_scores: Array,
        names: NDArray[np.str_] | None,
        sides: tuple[Indices, Indices],
        covariates: CovariateValues,
    ) -> Array:
        """Probability that the first item of each comparison wins.

        Parameters
        ----------
        views : dict
            Columns of the items.
        order_scores : ndarray of shape (n_items,)
            Scores of the order.
        names : ndarray of str or None
            Names of the items.
        sides : tuple of ndarray of int
            Row numbers of the items of each comparison.
        covariates : mapping
            Covariates by name.
        """
        first, second = sides
        encoded_covariates = self.covariates_.transform(covariates, len(first))
        if not self.uses_pairs_:  # the order alone predicts
            differences = order_scores[first] - order_scores[second]
            effects = (encoded_covariates.numbers * self.order_covariate_coef_).sum(axis=1)
            return win_probability(differences + effects, min_upset_probability=self.order_cap_)
        covariates_to_average = [encoded_covariates]
        is_side_unknown = self.covariates_.has_side_ and SIDE not in covariates
        if is_side_unknown:  # the mean over both sides
            covariates_to_average = [
                self.covariates_.transform({**covariates, SIDE: side}, len(first))
                for side in (1.0, -1.0)
            ]
        items = PairItems(self, views, names)
        log_odds = [
            items.log_odds(first, second, encoded_covariates)
            for encoded_covariates in covariates_to_average
        ]
        mean_log_odds = np.asarray(sum(log_odds)) / len(log_odds)
        return win_probability(mean_log_odds, min_upset_probability=0.0)  # logistic

    def mean_probability_to_win(
        self, views: dict[str, Any], order_scores: Callable[[dict[str, Any]], Array]
    ) -> Array:
        """Mean probability of each item to beat the items of `field_`.

        Parameters
        ----------
        views : dict
            Columns of the items.
        order_scores : callable
            Scores of the order for views.
        """
        # field_: the training items, or some of them, as opponents
        n_items = views["dense"].shape[0]
        n_field = self.field_["dense"].shape[0]
        items_and_field = {
            name: stack_rows(view, self.field_[name]) for name, view in views.items()
        }
        scores = order_scores(items_and_field)

        # each item is compared with all items of the field; the rows of the field follow the items
        first = np.repeat(np.arange(n_items), n_field)
        second = np.tile(np.arange(n_items, n_items + n_field), n_items)
        probability = self.win_probability(
            items_and_field, scores, names=None, sides=(first, second), covariates={}
        )
        return np.asarray(probability.reshape(n_items, n_field).mean(axis=1))

    def _check_fitted(self) -> None:
        n_rankers = len(self.rankers_)
        if not n_rankers == len(self.ranker_views_) == len(self.ranker_factors_):
            raise ValueError("ComparisonModel: the numbers of rankers and of their factors differ")
        if len(self.pair_models_) != len(self.pair_factors_):
            raise ValueError("ComparisonModel: the numbers of models and of their factors differ")
        if not all(isinstance(model, JointPairs | PairTrees) for model in self.pair_models_):
            raise ValueError("ComparisonModel contains a model that is not a model of pairs")


def stack_rows(upper: Any, lower: Any) -> Any:
    """Rows of two dense or sparse matrices."""
    if sp.issparse(upper) or sp.issparse(lower):
        return sp.csr_array(sp.vstack([upper, lower]))
    return np.vstack([upper, lower])


class PairItems:
    """Items of the comparisons to predict, with their scores by the rankers of the stack.

    Parameters
    ----------
    model : ComparisonModel
        The fitted model.
    views : dict
        Columns of the items.
    names : ndarray of str or None
        Names of the items.
    """

    def __init__(
        self, model: ComparisonModel, views: dict[str, Any], names: NDArray[np.str_] | None
    ) -> None:
        n_items = views["dense"].shape[0]
        self._model = model
        self._cells = ItemCells.of_view(views["cells"], model.n_codes_)

        # scores of the items: strengths of known ones, plus the rankers of the stack
        self._scores = model.strengths_by_name(names, n_items, model.pair_strengths_)
        rankers = zip(model.rankers_, model.ranker_views_, model.ranker_factors_, strict=True)
        for ranker, view, factor in rankers:
            self._scores = self._scores + factor * ranker.predict(views[view])

        # scores of the items in each joint model of pairs
        self._joint_scores = []
        for pair_model in model.pair_models_:
            scores = np.zeros(0)  # trees of pairs have none
            if isinstance(pair_model, JointPairs):
                scores = pair_model.ranker_.predict(views["wide"])
            self._joint_scores.append(scores)

    def log_odds(
        self, first: Indices, second: Indices, encoded_covariates: EncodedCovariates
    ) -> Array:
        """Log odds of the stack; the opposite number if the sides are swapped."""
        model = self._model
        log_odds: Array = self._scores[first] - self._scores[second]
        effects_of_covariates = encoded_covariates.numbers * model.ranker_covariate_coef_
        log_odds = log_odds + effects_of_covariates.sum(axis=1)
        pair_models = zip(model.pair_models_, model.pair_factors_, self._joint_scores, strict=True)
        for pair_model, factor, scores in pair_models:
            if isinstance(pair_model, JointPairs):
                sides = first, second
                log_odds_of_model = pair_model.log_odds(
                    scores, self._cells, sides, encoded_covariates
                )
            else:  # `PairTrees`
                log_odds_of_model = pair_model.log_odds(
                    self._cells, first, second, encoded_covariates
                )
            log_odds = log_odds + factor * log_odds_of_model
        return log_odds
