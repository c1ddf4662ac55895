"""From items, scores and views to the stacked system of CoRankRLS."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.estimators.unscored import PartlyScored
from rankwise.features import FeatureMap, FeatureRows, View, check_views, fit_view
from rankwise.losses import SquaredLoss
from rankwise.machine import check_matrix_fits
from rankwise.model_selection.alpha_grid import AlphaGrid, make_grid, median_share
from rankwise.model_selection.candidates import Candidates, check_nus
from rankwise.model_selection.exact_hold_out import check_rest
from rankwise.model_selection.least_squares_task import alpha_candidates
from rankwise.model_selection.refit_task import RefitTask
from rankwise.solvers.co_regularized import (
    CoSystem,
    coupling,
    scored_system,
    solve_co_regularized,
)

NUS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # with few scores large ones may be best
FLAT = 1e-24  # scatter of a constant view, relative to the square of its features


@dataclass(frozen=True)
class CoProblem:
    """What CoRankRLS minimizes, for every alpha and nu.

    Attributes
    ----------
    X : array or sparse matrix
        All items.
    views : sequence of FeatureMap
        Views with their bases.
    part : PartlyScored
        Which rows are scored.
    loss : SquaredLoss
        Loss of the scored rows.
    known_coupling : ndarray or None
        C, if it is known already.
    """

    X: Any
    views: Sequence[FeatureMap]
    part: PartlyScored
    loss: SquaredLoss
    known_coupling: Array | None = None

    @cached_property
    def system(self) -> CoSystem:
        """B, C and E of [CoRankRLS10] equation 18."""
        n = sum(self.sizes)
        advice = "give the views fewer columns or a smaller n_basis, linear ones, too"
        check_matrix_fits(n, n, "the stacked system of all views", advice)
        X = self.X[self.part.scored]
        B, E = scored_system((view.features(X) for view in self.views), self.loss)
        return CoSystem(B, self._coupling(), E)

    @property
    def sizes(self) -> list[int]:
        """Number of features of each view."""
        return [view.n_features for view in self.views]

    @property
    def starts(self) -> NDArray[np.intp]:
        """Where the features of the second and later views start in the stacked system."""
        return np.cumsum(self.sizes)[:-1]

    def without(self, held: NDArray[np.intp]) -> CoProblem:
        """The problem of training without some of the scored rows, counted among the scored.

        They are left out altogether, also of what views agree on. So where views agree on the
        unscored rows, C stays as it is and is not computed again.
        """
        kept = np.setdiff1d(np.arange(len(self.part.scored)), held)
        loss = SquaredLoss(self.loss.graph.subset(kept))
        known = self.system.coupling if self.part.agrees_on_unscored else None
        return replace(self, part=self.part.without(held), loss=loss, known_coupling=known)

    def coefficients(self, nus: Array, alphas: Array) -> tuple[list[Array], float]:
        """Coefficients of each view, shape (n, n_nus, n_alphas), and the smallest usable alpha.

        [CoRankRLS10] section 5: one reduction for each nu serves all alphas.
        """
        found = [solve_co_regularized(self.system, float(nu), alphas) for nu in nus]
        w = np.stack([solution.T for solution, _ in found], axis=1)
        coef = [
            view.coefficients(part.reshape(len(part), -1)).reshape(-1, *w.shape[1:])
            for view, part in zip(self.views, np.split(w, self.starts), strict=True)
        ]
        return coef, max(floor for _, floor in found)

    def _coupling(self) -> Array:
        if self.known_coupling is not None:
            return self.known_coupling
        rows, graph = self.part.agreement(self.loss.graph.group_weight)
        return coupling(FeatureRows(self.views, self.X, rows), self.sizes, graph)


class CoTask(RefitTask):
    """CoRankRLS with its data: one reduction for each fold and nu serves all alphas.

    Only scored rows are held out, and they are left out altogether; see `CoProblem.without`.

    Parameters
    ----------
    problem : CoProblem
        The problem of all rows.
    alpha, nu : float
        The values that the learner has.
    model : callable
        From alpha and nu to the learner trained on all data.
    """

    parameters = ("alpha", "nu")

    def __init__(
        self, problem: CoProblem, alpha: float, nu: float, model: Callable[..., Any]
    ) -> None:
        super().__init__(problem.loss.graph, problem.X.shape[0], model, problem.part.scored)
        self._problem, self._alpha, self._nu = problem, alpha, nu

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 31 alphas as for RankRLS, averaged over the views, and seven nus."""
        found = alpha_candidates(values, self._alpha, self._default_grid)
        nus = values.get("nu", [self._nu])
        return Candidates(
            {**found.axes, "nu": check_nus(NUS if nus is None else nus, "nus")}, found.grid
        )

    def _default_grid(self) -> AlphaGrid:
        """By the mean over the views of the squared distance between items of a pair."""
        problem = self._problem
        norms = np.split(np.diag(problem.system.scored), problem.starts)
        shares = [
            median_share(part) if view.is_columns else 1.0
            for view, part in zip(problem.views, norms, strict=True)
        ]
        scale = float(np.trace(problem.system.scored)) / len(problem.views)
        return make_grid(scale, min(shares))

    def scores_without(self, held: NDArray[np.intp], candidates: Candidates) -> Array:
        """The mean of the views."""
        problem = self._problem
        rest = problem.without(held)
        check_rest(rest.loss.graph.n_pairs > 0)
        coef, _ = rest.coefficients(candidates.axes["nu"], candidates.axes["alpha"])
        X = problem.X[problem.part.scored[held]]
        views = zip(problem.views, coef, strict=True)
        scores = [view.scores(X, c.reshape(len(c), -1)) for view, c in views]
        return np.asarray(np.mean(scores, axis=0))


def fit_views(
    views: int | Sequence[View],
    shared: View,
    X: Any,
    n_basis: int,
    random_state: Any,
    names: Sequence[str] | None,
) -> list[FeatureMap]:
    """The views that the user gave, or as many random bases of the whole data as asked for.

    Parameters
    ----------
    views : int or sequence of View
        Number of random bases, or the views themselves.
    shared : View
        Kernel of the views with random bases.
    X : array or sparse matrix
        All items, scored or not.
    n_basis : int
        Number of basis items of views that do not say; fewer if there are too few items.
    random_state : int, RandomState or None
        Seed.
    names : sequence of str or None
        Names of the columns.
    """
    rng = check_random_state(random_state)
    if isinstance(n_basis, bool) or not isinstance(n_basis, numbers.Integral) or n_basis < 1:
        raise ValueError(f"n_basis={n_basis!r}; expected a whole number of at least 1.")
    if isinstance(views, numbers.Integral) and not isinstance(views, bool):
        given = _random_bases(int(views), shared, X, int(n_basis), rng)
    else:
        given = check_views(views)
    return [fit_view(view, X, rng, n_basis=int(n_basis), names=names) for view in given]


def warn_about_flat_views(problem: CoProblem) -> None:
    """Warn of views whose features are the same for all items of a group."""
    B, C, _ = problem.system
    first = FeatureRows(problem.views, problem.X, np.arange(1))[:]
    scatter, size = np.diag(B) + np.diag(C), first[0] ** 2
    for k, view in enumerate(np.split(np.arange(len(scatter)), problem.starts)):
        if scatter[view].sum() <= FLAT * size[view].sum():
            warn_user(
                f"view {k} sees the same features in all items of every group: it cannot order "
                "them, and agreement draws the other views to predicting ties, too. Leave it out "
                "or give it other columns.",
            )


def _random_bases(
    n_views: int, shared: View, X: Any, n_basis: int, rng: np.random.RandomState
) -> list[View]:
    """Views that differ in their basis alone; no item is in two of them."""
    n_items = X.shape[0]
    if not 1 <= n_views <= n_items:
        raise ValueError(
            f"views={n_views}; expected a number of views from 1 to {n_items}, the number of "
            "training items, or a list of View."
        )
    size = min(n_basis, n_items // n_views)
    if n_views > 1 and shared.kernel == "linear" and size >= X.shape[1]:
        warn_user(
            f"{n_views} linear views of all {X.shape[1]} features with {size} basis items each are "
            "the same view: all of them learn what RankRLS learns. Use a kernel, fewer basis items "
            "than features, or a list of View with different columns.",
        )
    rows = rng.permutation(n_items)[: n_views * size].reshape(n_views, size)
    return [View(**{**shared.get_params(), "basis": np.sort(basis)}) for basis in rows]
