"""Models of both items of a comparison: scores that change sign when the sides are swapped."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, Indices
from rankwise.auto.capped_link import as_log_odds
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.pair_columns import (
    EncodedCovariates,
    GapLimits,
    InteractionTable,
    categories_of,
    clipped_gaps,
    pair_rows,
)
from rankwise.fitted_schema import FittedSchema, Floats, Ints, ListOf, Model, Number

BLOCK_ROWS = 2**16  # comparisons whose rows for trees are in memory at a time


class JointPairs(BaseEstimator):
    """Item scores, clipped gaps of numbers, pairs of categories and covariates, capped.

    Attributes
    ----------
    ranker_ : estimator
        Scores of items.
    gap_column_, gap_limit_, gap_coef_ : ndarray of shape (n_gaps,)
        Columns, limits and effects of the gaps.
    left_, right_ : ndarray of int, shape (n_tables,)
        Columns of the codes of each table of pairs of categories.
    tables_ : list of ndarray
        Effects of the pairs of categories.
    covariate_coef_ : ndarray of shape (n_numbers,)
        Effects of the covariates.
    cap_ : float
        The c of the capped link.
    """

    _fitted: ClassVar[FittedSchema] = {
        "ranker_": Model(),
        "gap_column_": Ints("gaps"),
        "gap_limit_": Floats("gaps"),
        "gap_coef_": Floats("gaps"),
        "left_": Ints("tables"),
        "right_": Ints("tables"),
        "tables_": ListOf(Floats("left right")),
        "covariate_coef_": Floats("covariates"),
        "cap_": Number(),
    }

    def store_gaps_and_interactions(
        self,
        limits: GapLimits,
        gap_coef: Array,
        interactions: list[InteractionTable],
        interaction_coef: Array,
    ) -> None:
        """Store the effects of the columns of pairs."""
        self.gap_column_ = limits.column
        self.gap_limit_ = limits.max_gap
        self.gap_coef_ = gap_coef
        self.left_ = np.array([table.left for table in interactions], dtype=np.intp)
        self.right_ = np.array([table.right for table in interactions], dtype=np.intp)
        self.tables_ = []
        start = 0
        for table in interactions:  # the coefficients of all tables follow each other
            effects = interaction_coef[start : start + table.n_entries]
            self.tables_.append(effects.reshape(table.n_left, table.n_right))
            start += table.n_entries

    def log_odds(
        self,
        item_scores: Array,
        cells: ItemCells,
        sides: tuple[Indices, Indices],
        encoded_covariates: EncodedCovariates,
    ) -> Array:
        """Log odds that the first item wins; the opposite number if the sides are swapped."""
        # difference of the scores, plus effects of gaps (differences of numbers, clipped), of
        # covariates, and of pairs of categories
        first, second = sides
        differences = item_scores[first] - item_scores[second]
        limits = GapLimits(self.gap_column_, self.gap_limit_)
        gaps = clipped_gaps(cells.numbers, first, second, limits)
        differences = differences + (gaps * self.gap_coef_).sum(axis=1)
        differences = differences + (encoded_covariates.numbers * self.covariate_coef_).sum(axis=1)
        for left, right, effects in zip(self.left_, self.right_, self.tables_, strict=True):
            n_left, n_right = effects.shape
            left_category = categories_of(cells.codes[:, left], n_left)
            right_category = categories_of(cells.codes[:, right], n_right)
            effect = effects[left_category[first], right_category[second]]
            effect_of_swapped = effects[left_category[second], right_category[first]]
            differences = differences + (effect - effect_of_swapped)
        return as_log_odds(differences, min_upset_probability=self.cap_)

    def _check_fitted(self) -> None:
        if not len(self.left_) == len(self.right_) == len(self.tables_):
            raise ValueError("JointPairs: the numbers of tables and of their columns differ")


class PairTrees(BaseEstimator):
    """Boosted trees F of pairs: the log odds are ``F(a, b) − F(b, a)``.

    Attributes
    ----------
    trees_ : BoostedTrees
        The trees F.
    """

    _fitted: ClassVar[FittedSchema] = {"trees_": Model()}

    def log_odds(
        self,
        cells: ItemCells,
        first: Indices,
        second: Indices,
        encoded_covariates: EncodedCovariates,
    ) -> Array:
        """Log odds that the first item wins; the opposite number if the sides are swapped."""
        # trees score both orders of the items, of which the difference is antisymmetric
        log_odds = np.empty(len(first))
        for start in range(0, len(first), BLOCK_ROWS):
            block = np.arange(start, min(start + BLOCK_ROWS, len(first)))
            a = first[block]
            b = second[block]
            context_of_block = encoded_covariates.take(block)
            rows = pair_rows(cells, a, b, context_of_block)
            swapped_rows = pair_rows(cells, b, a, context_of_block.swapped())
            log_odds[block] = self.trees_.predict(rows) - self.trees_.predict(swapped_rows)
        return log_odds
