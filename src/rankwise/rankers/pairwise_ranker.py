"""Base of the rankers with a pairwise loss, minimized with an optimality certificate."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices, MatrixLike, ParameterValue, RandomState, dense_rows
from rankwise.errors import warn_user
from rankwise.fitted_schema import FittedSchema, Values
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.graphs.supervision import TargetLike, TrainingTarget, read_y
from rankwise.graphs.violated_pairs import strict_pairs
from rankwise.kernels.feature_maps import BasisFeatures
from rankwise.kernels.solver_input import SolverInput, make_solver_input
from rankwise.kernels.stable_products import row_products
from rankwise.losses import PairwiseLoss, SquaredLoss, StrictPairLoss
from rankwise.losses.pairwise import LossFactory
from rankwise.losses.profiled import ProfileLoss
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.protocol import HoldOutTask, pair_distance
from rankwise.model_selection.shortcuts import check_pairs_remain
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.paths import ModelPath, PathModel
from rankwise.rankers.ranking_problem import (
    compared_graph,
    no_nuisance,
    nuisance_columns,
    warn_explained,
    why_no_pairs,
)
from rankwise.runtime.interrupts import keeps_interrupted_fits
from rankwise.runtime.progress import Progress
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.certified_descent import Solution, minimize_pairwise
from rankwise.solvers.pairwise_objective import Objective, make_objective
from rankwise.validation import check_alphas, check_int, restored_on_failure

PAIRWISE_ALPHA_DECADES = (-9, 1)  # exponents of ten of the default alphas, relative to their scale

REASONS = {
    "max_iter": "reached max_iter; raise it, tol or alpha, or scale the features",
    "interrupted": "was interrupted; the model is the best one found so far",
    "stalled": "cannot go on within rounding errors; raise tol or alpha, or scale the features",
    "contradicted": (
        "found a lower bound above an objective by more than rounding explains: the loss is not "
        "convex, or this is a mistake of rankwise; do not rely on lower_bound_, and report it"
    ),
}


class PairwisePath(ModelPath):
    """Models along a list of alphas, as `RankSVM.path` and `RankLogistic.path` return them.

    Parameters
    ----------
    template : RankSVM or RankLogistic
        The unfitted ranker.
    alphas, coefficients, solutions
        See the attributes.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, 1)
        Weights of the features (linear kernel) or of the training or basis items.
    gaps : ndarray of shape (n_alphas,)
        Certified relative gap of each model.
    n_iters : ndarray of shape (n_alphas,)
        Number of iterations of each model.
    solutions : list of Solution
        Results of the solver.

    Examples
    --------
    >>> from rankwise import RankSVM
    >>> path = RankSVM().path([[0.0], [1.0], [2.0]], [0, 1, 2], alphas=[0.1, 1.0])
    >>> path.predict([[3.0]]).shape
    (1, 2)
    >>> bool((path.gaps < 0.001).all())
    True
    """

    def __init__(
        self,
        template: PairwiseRanker,
        alphas: Array,
        coefficients: Array,
        solutions: list[Solution],
    ) -> None:
        super().__init__(template, alphas, coefficients)
        self.solutions = solutions
        self.gaps = np.array([solution.gap for solution in solutions])
        self.n_iters = np.array([len(solution.history) for solution in solutions])

    def model(self, index: int) -> PairwiseRanker:
        """The fitted estimator of ``alphas[index]``.

        Parameters
        ----------
        index : int
            Position in `alphas`.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        model: PairwiseRanker = super().model(index)
        report_solution(model, self.solutions[index])
        return model


class PairwiseRanker(PathModel):
    """A ranker that minimizes ``loss(f) + α ‖f‖²`` until a lower bound certifies the minimum.

    A subclass has the parameters below, and defines its loss and solver.
    """

    _fitted: ClassVar[FittedSchema] = {
        "gap_": Values(),
        "lower_bound_": Values(),
        "objective_": Values(),
        "history_": Values(),
    }

    group_weight: str
    ties = "exclude"
    n_basis: int | None
    basis: str | ArrayLike
    tol: float
    max_iter: int
    warm_start: bool
    verbose: int
    random_state: RandomState

    solver_: str
    objective_: float
    lower_bound_: float
    gap_: float
    n_iter_: int
    history_: dict[str, Array]

    @abstractmethod
    def _loss_and_method(self) -> tuple[LossFactory, str]:
        """The loss and the name of the solver, from checked parameters."""

    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
    def fit(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        nuisance: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to items and their scores or preferences.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_items,), or a preference graph
            Scores (larger is better; only their order counts), a target of `make_target`, a
            `ScoreGraph` or a `PairGraph`. Pairs with equal scores and edges of magnitude zero are
            not preferences and are dropped.
        groups : array-like of shape (n_items,), optional
            Group labels, hashable and in any order: only items of one group are compared. None
            compares all items.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, as in ``RankRLS.fit``.
        nuisance : array-like or data frame, optional
            Columns whose effects are removed from the scores, as in ``RankRLS.fit``; RankLogistic
            only.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        check_alphas([self.alpha], "alpha")
        target = read_y(y, groups, sample_weight, nuisance, X=X)
        X = check_groups(self, X, y, groups, target)
        task = self._prepare(X, target)
        initial_weights = None
        if self.warm_start:  # start the iterations at the last model
            initial_weights = self._weights_of_last_fit(task.features)
        task.train_from(initial_weights, keep_interrupted=keeps_interrupted_fits())
        return self

    def _prepare(self, X: MatrixLike, target: TrainingTarget) -> PairwiseTask:
        """Validate the input and return the hold-out task."""
        make_loss, self.solver_ = self._loss_and_method()
        kernel = self.make_kernel()
        X = validate_X(self, X)
        name = type(self).__name__
        graph = compared_graph(name, X.shape[0], target, self.group_weight, self.ties)
        loss = self._make_loss(make_loss, graph, target)
        self.n_pairs_ = loss.graph.n_pairs

        # the loss needs explicit features: columns of X, or the empirical kernel map ("dual")
        solver = "dual"
        if kernel.is_linear:
            solver = "iterative"
        features = make_solver_input(
            kernel,
            X,
            solver,
            n_basis=self.n_basis,
            basis=self.basis,
            random_state=self.random_state,
            explicit=True,
        ).stored()
        if isinstance(loss, ProfileLoss) and loss.explains_all_of(dense_rows(features.matrix)):
            warn_explained()
        if not features.is_definite:
            warn_user(
                f"the kernel {self.kernel!r} is not positive semidefinite on these data; its "
                "negative part is left out.",
            )
        return PairwiseTask(self, graph, loss, features)

    def _make_loss(
        self, make_loss: LossFactory, graph: PreferenceGraph, target: TrainingTarget
    ) -> PairwiseLoss:
        """The loss of a graph with at least one strict pair, nuisance columns profiled out."""
        name = type(self).__name__
        loss = make_loss(graph)
        nuisance = nuisance_columns(target, graph)
        n_strict_pairs = _count_strict_pairs(loss, graph)
        if not n_strict_pairs:
            raise ValueError(f"there is nothing to rank: {why_no_pairs(graph)}.")
        drops_ties = loss.graph.n_pairs < graph.n_pairs
        if drops_ties and not graph.has_relevance:
            warn_user(
                f"{graph.n_pairs - n_strict_pairs} of {graph.n_pairs} edges have magnitude 0: they "
                f"state ties, which {name} cannot use and leaves out (RankRLS and RankLogistic use "
                "them).",
            )
        if not self.takes_nuisance:
            no_nuisance(name, target)
        if target.nuisance is None or nuisance is None:  # both are None, or neither
            return loss
        self._nuisance_names = target.nuisance.names
        return ProfileLoss(loss, nuisance)

    def _store_solution(self, task: PairwiseTask, solution: Solution) -> None:
        """Store the coefficients, the objective and the certificate of a solution."""
        report_solution(self, solution)
        self._store_coefficients(task.features.coefficients(solution.w[:, None]))

    def _weights_of_last_fit(self, features: SolverInput) -> Array | None:
        """Weights of the last fit, for a warm start, if the number of features is the same."""
        n_items, n_features = features.matrix.shape
        if self.make_kernel().is_linear:
            coef: Array | None = vars(self).get("coef_")
            if coef is None or len(coef) != n_features:
                return None
            return coef.copy()
        dual_coef: Array | None = vars(self).get("dual_coef_")
        if dual_coef is None or len(dual_coef) != n_items:
            return None
        if isinstance(features.map, BasisFeatures):
            return None
        return np.asarray(features.matrix.T @ dual_coef)  # weights of the empirical kernel map


def _count_strict_pairs(loss: PairwiseLoss, graph: PreferenceGraph) -> int:
    """Number of pairs without ties."""
    if isinstance(loss, StrictPairLoss):
        return loss.preferences.n_pairs
    return strict_pairs(graph).n_pairs


class PairwiseTask(HoldOutTask):
    """RankSVM or RankLogistic with its data: a warm-started path over alpha for every fold.

    The kernel map or basis is computed from all items, held-out ones included, and shared by all
    folds. Held-out items have no part in the loss.

    Parameters
    ----------
    learner : PairwiseRanker
        The learner.
    graph : PreferenceGraph
        The preferences.
    loss : PairwiseLoss
        Their loss.
    features : Features
        Features of the items.
    """

    def __init__(
        self,
        learner: PairwiseRanker,
        graph: PreferenceGraph,
        loss: PairwiseLoss,
        features: SolverInput,
    ) -> None:
        super().__init__(learner, graph)
        self.loss = loss
        self.features = features

    def default_values(self, _: str) -> Array:
        """21 alphas from 1e-9 to 10 times the mean squared distance in a pair."""
        mean_squared_distance = pair_distance(SquaredLoss(self.graph), self.features)
        return default_alphas(mean_squared_distance, PAIRWISE_ALPHA_DECADES)

    def scores_without(self, test_items: Indices, candidates: CandidateGrid) -> Array:
        """Train on the features of all other items."""
        train_rows = np.delete(np.arange(self.n_rows), test_items)
        train_graph = self.graph.subset(train_rows)
        return self._train_and_score(train_rows, train_graph, test_items, candidates)

    def from_edges(self, edges: PairGraph, candidates: CandidateGrid) -> Array:
        """Train on the features of all items."""
        all_rows = np.arange(self.n_rows)
        return self._train_and_score(all_rows, edges, all_rows, candidates)

    def _train_and_score(
        self,
        train_rows: Indices,
        train_graph: PreferenceGraph,
        test_rows: Indices,
        candidates: CandidateGrid,
    ) -> Array:
        """Scores of the test rows by models of the training rows and their graph."""
        features = self.features.matrix
        train_loss = self.loss.of_items(train_rows, train_graph)
        check_pairs_remain(train_loss.graph.n_pairs > 0)
        # solve_path sets alpha
        objective = make_objective(features[train_rows], train_loss, alpha=0.0)
        solutions = solve_path(self.learner, objective, candidates.axes["alpha"])
        weights = np.stack([solution.w for solution in solutions], axis=1)  # a column per alpha
        return row_products(features[test_rows], weights)

    def train(self, **values: ParameterValue) -> PairwiseRanker:
        """The learner of one alpha, trained on all data."""
        self.learner.alpha = values["alpha"]
        return self.train_from(None)

    def train_from(
        self, initial_weights: Array | None, *, keep_interrupted: bool = False
    ) -> PairwiseRanker:
        """The learner trained on all data, from weights of an earlier fit.

        With `keep_interrupted`, Ctrl-C stops the training and keeps the best model so far.
        """
        learner: PairwiseRanker = self.learner
        learner._store_features(self.features.map)
        # solve_path sets alpha
        objective = make_objective(self.features.matrix, self.loss, alpha=0.0)
        (solution,) = solve_path(
            learner,
            objective,
            alphas=np.array([learner.alpha]),
            initial_weights=initial_weights,
            keep_interrupted=keep_interrupted,
        )
        learner._store_solution(self, solution)
        return learner

    def path(self, alphas: Array) -> PairwisePath:
        """The models of several alphas, trained on all data."""
        learner: PairwiseRanker = self.learner
        features = self.features
        learner._store_features(features.map)
        # solve_path sets alpha
        objective = make_objective(features.matrix, self.loss, alpha=0.0)
        solutions = solve_path(learner, objective, alphas)
        weights = np.stack([solution.w for solution in solutions], axis=1)
        coefficients = features.coefficients(weights).T[:, :, None]  # (n_alphas, n, n_outputs)
        return PairwisePath(learner, alphas, coefficients, solutions)


class Certified(Protocol):
    """Parameters and results of a learner whose objective is minimized to a certified gap."""

    tol: float
    max_iter: int
    verbose: int
    solver_: str
    objective_: float
    lower_bound_: float
    gap_: float
    n_iter_: int
    history_: dict[str, Array]


def solve_path(
    model: Certified,
    objective: Objective,
    alphas: Array,
    *,
    initial_weights: Array | None = None,
    pair_covariance: Array | None = None,
    keep_interrupted: bool = False,
) -> list[Solution]:
    """Solutions in the order of the alphas, computed from the largest alpha to the smallest.

    Each solution starts from the one before. Tolerance, limit and progress are parameters of the
    model. `initial_weights`, `pair_covariance` and `keep_interrupted` are those of
    `minimize_pairwise`.
    """
    max_iter = check_int("max_iter", model.max_iter, least=1)
    if not isinstance(model.tol, numbers.Real) or not 0 < float(model.tol) < 1:
        raise ValueError(f"tol={model.tol!r}; expected a number between 0 and 1, such as 1e-3.")
    line = Progress(type(model).__name__, show=model.verbose > 0, in_place=model.verbose < 2)

    def draw_progress(solution: Solution) -> None:
        text = f": objective {solution.objective:.6g}, gap {solution.gap:.1e}   "
        line.update(len(solution.history), text)

    watch: Callable[[Solution], None] | None = None
    if line.is_shown:
        watch = draw_progress
    # from the largest alpha to the smallest: each starts at the solution for the one before
    positions_from_largest = np.argsort(-alphas, kind="stable").tolist()
    solution_at_position: dict[int, Solution] = {}
    previous_solution = None
    for k in positions_from_largest:
        solution = minimize_pairwise(
            replace(objective, alpha=float(alphas[k])),
            model.solver_,
            tol=float(model.tol),
            max_iter=max_iter,
            initial_weights=initial_weights,
            solution_at_other_alpha=previous_solution,
            pair_covariance=pair_covariance,
            watch=watch,
            keep_interrupted=keep_interrupted,
        )
        solution_at_position[k] = solution
        previous_solution = solution
    line.close()
    solutions = [solution_at_position[k] for k in range(len(alphas))]
    _warn_about_worst(model, solutions, alphas)
    return solutions


def _warn_about_worst(model: Certified, solutions: list[Solution], alphas: Array) -> None:
    """Warn about the solution that is farthest from its tolerance, if one did not reach it."""
    unfinished = [k for k, solution in enumerate(solutions) if solution.end != "converged"]
    if not unfinished:
        return

    def severity(k: int) -> tuple[bool, float, int]:
        is_contradicted = solutions[k].end == "contradicted"
        return is_contradicted, solutions[k].gap, k

    worst = max(unfinished, key=severity)
    solution = solutions[worst]
    warn_user(
        f"{type(model).__name__} {REASONS[solution.end]}. After {len(solution.history)} "
        f"iterations at alpha={alphas[worst]:g} the relative gap is {solution.gap:.1e}, "
        f"tol={model.tol:g}.",
        ConvergenceWarning,
    )


def report_solution(model: Certified, solution: Solution) -> None:
    """Set the attributes of a model that describe the quality of its solution."""
    model.objective_ = solution.objective
    model.lower_bound_ = solution.bound
    model.gap_ = float(solution.gap)
    model.n_iter_ = len(solution.history)
    objective, bound = np.array(solution.history).T  # after each iteration
    # 1, which means no gap, where the objective is 0
    bound_ratio = np.divide(bound, objective, out=np.ones_like(bound), where=objective > 0)
    model.history_ = {"objective": objective, "lower_bound": bound, "gap": 1 - bound_ratio}
