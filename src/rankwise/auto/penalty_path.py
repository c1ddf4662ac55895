"""Selection of the penalty of linear models of comparisons by held-out comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.auto.capped_link import fit_coefficients
from rankwise.auto.comparison_problem import ComparisonProblem
from rankwise.auto.linear_comparisons import ComparisonDesign

WORSE_LOSS = 1.02  # a path of penalties stops at this multiple of the best loss


@dataclass(frozen=True, eq=False)
class SelectedPenalty:
    """The selected penalty of a linear model, its held-out loss and differences."""

    alpha: float
    min_upset_probability: float
    loss: float
    differences: Array


class PenaltyPath:
    """Held-out differences of a linear model for several penalties and probabilities of an upset.

    Parameters
    ----------
    design : ComparisonDesign
        The linear model of all comparisons.
    problem : ComparisonProblem
        Outcomes and folds.
    """

    def __init__(self, design: ComparisonDesign, problem: ComparisonProblem) -> None:
        self._design = design
        self._problem = problem
        folds = problem.hold_out.folds
        self._train_designs = [design.take(fold.train) for fold in folds]
        self._held_out_designs = [design.take(fold.held_out) for fold in folds]
        train_comparisons = [problem.comparisons.take(fold.train) for fold in folds]
        self._train_outcomes = [comparisons.outcomes for comparisons in train_comparisons]
        self._logistic_coefficients: dict[float, list[Array]] = {}  # of the folds, by alpha

    def select(
        self, alphas: NDArray[np.floating[Any]], min_upset_probability: float
    ) -> SelectedPenalty:
        """The penalty with the smallest held-out loss; larger ones are tried first."""
        worse_than_any = SelectedPenalty(np.nan, min_upset_probability, np.inf, np.zeros(0))
        best = worse_than_any
        n_folds = len(self._train_designs)
        starts: Sequence[Array | None] = [None] * n_folds
        largest_first = np.sort(alphas)[::-1]
        for alpha in largest_first.tolist():
            coefficients_of_folds = self._fit_folds(alpha, min_upset_probability, starts)
            starts = coefficients_of_folds  # close to the coefficients of the next alpha
            differences_of_folds = [
                design.differences(coefficients)
                for design, coefficients in zip(
                    self._held_out_designs, coefficients_of_folds, strict=True
                )
            ]
            differences = np.concatenate(differences_of_folds)
            loss = self._problem.held_out_loss(differences, min_upset_probability)
            if loss < best.loss:
                best = SelectedPenalty(alpha, min_upset_probability, loss, differences)
            elif loss > WORSE_LOSS * best.loss:  # smaller penalties would be even worse
                break
        return best

    def fit_all_comparisons(self, alpha: float, min_upset_probability: float) -> Array:
        """Coefficients from all comparisons; the capped link starts at the logistic ones."""
        outcomes = self._problem.comparisons.outcomes
        coefficients = fit_coefficients(self._design, outcomes, alpha)  # of logistic regression
        if min_upset_probability:
            coefficients = fit_coefficients(
                self._design, outcomes, alpha, min_upset_probability, coefficients
            )
        return coefficients

    def _fit_folds(
        self, alpha: float, min_upset_probability: float, starts: Sequence[Array | None]
    ) -> list[Array]:
        """Coefficients of each fold; fits of the capped link start at the logistic coefficients."""
        if min_upset_probability:  # not convex: start at the logistic solution
            starts = self._logistic_coefficients_of_folds(alpha)
        folds = zip(self._train_designs, self._train_outcomes, starts, strict=True)
        coefficients_of_folds = [
            fit_coefficients(design, outcomes, alpha, min_upset_probability, start)
            for design, outcomes, start in folds
        ]
        if not min_upset_probability:  # kept as starts of the fits with upsets
            self._logistic_coefficients[alpha] = coefficients_of_folds
        return coefficients_of_folds

    def _logistic_coefficients_of_folds(self, alpha: float) -> list[Array]:
        """Coefficients of each fold with the logistic link, computed once for each alpha."""
        if alpha not in self._logistic_coefficients:
            no_starts = [None] * len(self._train_designs)
            self._fit_folds(alpha, min_upset_probability=0.0, starts=no_starts)
        return self._logistic_coefficients[alpha]
