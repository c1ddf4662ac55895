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

WORSE_LOSS = 1.02  # times the best loss, where a path of penalties ends


@dataclass(frozen=True, eq=False)
class SelectedPenalty:
    """The selected penalty of a linear model, its held-out loss and differences."""

    alpha: float
    cap: float
    loss: float
    differences: Array


class LinearPath:
    """Held-out differences of a linear model for several penalties and caps.

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
        self._test_designs = [design.take(fold.held_out) for fold in folds]
        self._outcomes = [problem.comparisons.take(fold.train).outcomes for fold in folds]
        self._logistic: dict[float, list[Array]] = {}

    def select(self, alphas: NDArray[np.floating[Any]], cap: float) -> SelectedPenalty:
        """The penalty with the smallest held-out loss; larger ones are tried first."""
        best = SelectedPenalty(np.nan, cap, np.inf, np.zeros(0))
        starts: Sequence[Array | None] = [None] * len(self._train_designs)
        for alpha in np.sort(alphas)[::-1]:
            coefficients = self._fit_folds(float(alpha), cap, starts)
            starts = coefficients
            differences = np.concatenate(
                [
                    design.differences(fitted)
                    for design, fitted in zip(self._test_designs, coefficients, strict=True)
                ]
            )
            loss = self._problem.loss(differences, cap)
            if loss < best.loss:
                best = SelectedPenalty(float(alpha), cap, loss, differences)
            elif loss > WORSE_LOSS * best.loss:
                break
        return best

    def fit(self, alpha: float, cap: float) -> Array:
        """Coefficients from all comparisons."""
        outcomes = self._problem.comparisons.outcomes
        coefficients = fit_coefficients(self._design, outcomes, alpha)
        if cap:
            coefficients = fit_coefficients(self._design, outcomes, alpha, cap, coefficients)
        return coefficients

    def _fit_folds(self, alpha: float, cap: float, previous: Sequence[Array | None]) -> list[Array]:
        """Coefficients of each fold; those of the capped link start at the logistic ones."""
        starts = previous
        if cap:
            starts = self._logistic_folds(alpha)
        fitted = [
            fit_coefficients(design, outcomes, alpha, cap, start)
            for design, outcomes, start in zip(
                self._train_designs, self._outcomes, starts, strict=True
            )
        ]
        if not cap:
            self._logistic[alpha] = fitted
        return fitted

    def _logistic_folds(self, alpha: float) -> list[Array]:
        if alpha not in self._logistic:
            self._fit_folds(alpha, 0.0, [None] * len(self._train_designs))
        return self._logistic[alpha]
