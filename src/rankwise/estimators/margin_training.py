"""Training of RankSVM: options checked, progress shown, an unfinished search reported."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.estimators.callbacks import ProgressLine
from rankwise.graphs.strict import StrictPreferences
from rankwise.losses import HingeLoss, PreferenceLoss, SquaredHingeLoss
from rankwise.options import check_option
from rankwise.solvers.columns import Columns
from rankwise.solvers.margin_loss import End, Iterate, MarginSolution, minimize_margin
from rankwise.solvers.margin_objective import MarginObjective

__all__ = ["MarginTrainer", "report_solution"]

LOSSES: dict[str, type[PreferenceLoss]] = {
    "hinge": HingeLoss,
    "squared_hinge": SquaredHingeLoss,
}
SOLVERS = ("auto", "lbfgs", "newton-cg", "bmrm")
REASONS = {
    End.MAX_ITER: "reached max_iter; raise it, tol or alpha, or scale the features",
    End.INTERRUPTED: "was interrupted; the model is the best one found so far",
    End.STALLED: "cannot go on within rounding errors; raise tol or alpha, or scale the features",
    End.CONTRADICTED: (
        "found a lower bound above an objective by more than rounding explains: the loss is not "
        "convex, or this is a mistake of rankwise; do not rely on lower_bound_, and report it"
    ),
}


class MarginTrainer:
    """The options of a RankSVM that say how it is trained.

    Parameters
    ----------
    loss, solver, tol, max_iter, verbose
        As in `RankSVM`.

    Attributes
    ----------
    method : str
        The solver, "auto" resolved.
    loss : type
        The loss, a function of strict preferences.
    """

    def __init__(self, loss: str, solver: str, tol: Any, max_iter: Any, verbose: int) -> None:
        check_option("loss", loss, tuple(LOSSES))
        check_option("solver", solver, SOLVERS)
        if solver == "newton-cg" and loss == "hinge":
            raise ValueError(
                "solver='newton-cg' needs a smooth loss; use loss='squared_hinge', or "
                "solver='lbfgs' for the hinge."
            )
        if not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
            raise ValueError(f"tol={tol!r}; expected a number between 0 and 1, such as 1e-3.")
        if not isinstance(max_iter, numbers.Integral) or max_iter < 1:
            raise ValueError(f"max_iter={max_iter!r}; expected a whole number of at least 1.")
        by_loss = "lbfgs" if loss == "hinge" else "newton-cg"
        self.method = by_loss if solver == "auto" else solver
        self.loss, self._tol = LOSSES[loss], float(tol)
        self._max_iter, self._verbose = int(max_iter), verbose

    def train(
        self,
        preferences: StrictPreferences,
        R: Any,
        alpha: float,
        *,
        report: Callable[[Array], bool] | None = None,
        **options: Any,
    ) -> MarginSolution:
        """Minimize for one alpha; `report` gets the best weights so far and may ask to stop."""
        return self.minimize(
            MarginObjective(R, self.loss(preferences), alpha), report=report, **options
        )

    def minimize(
        self,
        objective: MarginObjective,
        *,
        report: Callable[[Array], bool] | None = None,
        **options: Any,
    ) -> MarginSolution:
        """Minimize an objective until the tolerance is reached, and show the progress."""
        line = ProgressLine("RankSVM", self._verbose)

        def watch(now: Iterate) -> bool:
            line.show(now.objective, now.gap)
            return report is not None and report(now.w)

        try:
            return minimize_margin(
                objective,
                self.method,
                tol=self._tol,
                max_iter=self._max_iter,
                watch=watch,
                **options,
            )
        finally:
            line.close()

    def train_path(
        self, preferences: StrictPreferences, R: Any, alphas: Array
    ) -> list[MarginSolution]:
        """Solutions in the order given, found from the largest alpha to the smallest."""
        solutions: dict[int, MarginSolution] = {}
        warm, columns = None, Columns(R)
        for k in np.argsort(-alphas, kind="stable"):
            solutions[k] = self.train(preferences, columns, float(alphas[k]), warm=warm)
            warm = solutions[k].warm
        return [solutions[k] for k in range(len(alphas))]

    def warn_unfinished(
        self, solutions: list[MarginSolution], alphas: Any, stacklevel: int = 3
    ) -> None:
        """Warn if the worst of the solutions did not reach the tolerance."""
        ends = [solution.end for solution in solutions]
        if all(end == End.CONVERGED for end in ends):
            return
        worst = max(
            range(len(alphas)),
            key=lambda k: (
                ends[k] == End.CONTRADICTED,
                ends[k] != End.CONVERGED,
                solutions[k].best.gap,
            ),
        )
        warnings.warn(
            f"RankSVM {REASONS[ends[worst]]}. After {len(solutions[worst].history)} "
            f"iterations at alpha={alphas[worst]:g} the relative gap is "
            f"{solutions[worst].best.gap:.1e}, tol={self._tol:g}.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def report_solution(model: Any, solution: MarginSolution) -> None:
    """Set the attributes of a RankSVM that say how good its solution is."""
    model.objective_ = solution.best.objective
    model.lower_bound_ = solution.best.bound
    model.gap_ = solution.best.gap
    model.n_iter_ = len(solution.history)
    model.history_ = {
        "objective": np.array([step.objective for step in solution.history]),
        "lower_bound": np.array([step.bound for step in solution.history]),
        "gap": np.array([step.gap for step in solution.history]),
    }
