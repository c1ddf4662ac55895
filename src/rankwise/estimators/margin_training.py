"""Training to a certified gap: options checked, progress shown, an unfinished search reported."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.graphs import PreferenceGraph
from rankwise.losses import MarginLoss
from rankwise.machine import Progress
from rankwise.solvers.columns import Columns
from rankwise.solvers.margin_loss import End, Iterate, MarginSolution, minimize_margin
from rankwise.solvers.margin_objective import MarginObjective

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
    """The options of a RankSVM or RankLogistic that say how it is trained.

    Parameters
    ----------
    learner : str
        Its name, for messages.
    loss : callable
        From a graph to the loss of its pairs.
    method : {"lbfgs", "newton-cg", "bmrm"}
        The solver.
    tol, max_iter, verbose
        As in `RankSVM`.
    """

    def __init__(
        self,
        learner: str,
        loss: Callable[[PreferenceGraph], MarginLoss],
        method: str,
        tol: Any,
        max_iter: Any,
        verbose: int,
    ) -> None:
        if not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
            raise ValueError(f"tol={tol!r}; expected a number between 0 and 1, such as 1e-3.")
        if not isinstance(max_iter, numbers.Integral) or max_iter < 1:
            raise ValueError(f"max_iter={max_iter!r}; expected a whole number of at least 1.")
        self.learner, self.loss, self.method = learner, loss, method
        self._tol = float(tol)
        self._max_iter, self._verbose = int(max_iter), verbose

    def train(
        self,
        loss: MarginLoss,
        R: Any,
        alpha: float,
        *,
        report: Callable[[Array], bool] | None = None,
        **options: Any,
    ) -> MarginSolution:
        """Minimize for one alpha; `report` gets the best weights so far and may ask to stop."""
        return self.minimize(MarginObjective(R, loss, alpha), report=report, **options)

    def minimize(
        self,
        objective: MarginObjective,
        *,
        report: Callable[[Array], bool] | None = None,
        **options: Any,
    ) -> MarginSolution:
        """Minimize an objective until the tolerance is reached, and show the progress."""
        line = Progress(self.learner, show=self._verbose > 0, in_place=self._verbose < 2)
        count = itertools.count(1)

        def watch(now: Iterate) -> bool:
            line.update(next(count), f": objective {now.objective:.6g}, gap {now.gap:.1e}   ")
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

    def train_path(self, loss: MarginLoss, R: Any, alphas: Array) -> list[MarginSolution]:
        """Solutions in the order given, found from the largest alpha to the smallest."""
        solutions: dict[int, MarginSolution] = {}
        warm, columns = None, Columns(R)
        for k in np.argsort(-alphas, kind="stable"):
            solutions[k] = self.train(loss, columns, float(alphas[k]), warm=warm)
            warm = solutions[k].warm
        return [solutions[k] for k in range(len(alphas))]

    def warn_unfinished(self, solutions: list[MarginSolution], alphas: Any) -> None:
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
        warn_user(
            f"{self.learner} {REASONS[ends[worst]]}. After {len(solutions[worst].history)} "
            f"iterations at alpha={alphas[worst]:g} the relative gap is "
            f"{solutions[worst].best.gap:.1e}, tol={self._tol:g}.",
            ConvergenceWarning,
        )


def report_solution(model: Any, solution: MarginSolution) -> None:
    """Set the attributes of a model that say how good its solution is."""
    model.objective_ = solution.best.objective
    model.lower_bound_ = solution.best.bound
    model.gap_ = solution.best.gap
    model.n_iter_ = len(solution.history)
    model.history_ = {
        "objective": np.array([step.objective for step in solution.history]),
        "lower_bound": np.array([step.bound for step in solution.history]),
        "gap": np.array([step.gap for step in solution.history]),
    }
