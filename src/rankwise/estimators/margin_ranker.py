"""What RankSVM and RankLogistic share: a certified minimum of a loss of score differences."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.estimators.kernel_model import KernelModel, ModelPath
from rankwise.estimators.problem import (
    check_rows,
    no_nuisance,
    nuisance_columns,
    why_no_pairs,
)
from rankwise.features.feature_map import Features, explicit_features
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.inputs import Target, check_alphas, read_target
from rankwise.losses import MarginLoss, SquaredLoss
from rankwise.losses.nuisance import ProfileLoss
from rankwise.machine import Progress, calm
from rankwise.model_selection.candidates import (
    Candidates,
    asked_alphas,
    default_alphas,
)
from rankwise.model_selection.task import RefitTask, pair_distance
from rankwise.rows import row_products
from rankwise.solvers.margin_loss import End, Iterate, MarginSolution, minimize_margin
from rankwise.solvers.margin_objective import MarginObjective, make_objective

DECADES = (-9, 1)  # where default alphas start and end
REASONS = {
    End.MAX_ITER: "reached max_iter; raise it, tol or alpha, or scale the features",
    End.INTERRUPTED: "was interrupted; the model is the best one found so far",
    End.STALLED: "cannot go on within rounding errors; raise tol or alpha, or scale the features",
    End.CONTRADICTED: (
        "found a lower bound above an objective by more than rounding explains: the loss is not "
        "convex, or this is a mistake of rankwise; do not rely on lower_bound_, and report it"
    ),
}


class MarginPath(ModelPath[Any]):
    """Models along a list of alphas, each with the gap that was certified.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, 1)
        Weights of the features (linear kernel) or of the training or basis items.
    gaps : ndarray of shape (n_alphas,)
        Certified relative gap of each.
    n_iters : ndarray of shape (n_alphas,)
        Iterations that each took.
    solutions : list of MarginSolution
        What the solver found.
    """

    def __init__(
        self,
        template: MarginRanker,
        alphas: Array,
        coefficients: Array,
        solutions: list[MarginSolution],
    ) -> None:
        super().__init__(template, alphas, coefficients)
        self.solutions = solutions
        self.gaps = np.array([solution.best.gap for solution in solutions])
        self.n_iters = np.array([len(solution.history) for solution in solutions])

    def model(self, index: int) -> Any:
        """The fitted estimator of ``alphas[index]``."""
        model = super().model(index)
        report_solution(model, self.solutions[index])
        return model


@dataclass(eq=False, repr=False, kw_only=True)
class MarginParameters:
    """Parameters of RankSVM, RankLogistic and their searches, each declared once."""

    group_weight: str = "pairs"
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    tol: float = 1e-3
    max_iter: int = 1000
    verbose: int = 0
    random_state: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class MarginRanker(MarginParameters, KernelModel):
    """A ranker that minimizes ``loss(f) + α ‖f‖²`` until a lower bound proves it near the minimum.

    A subclass declares the parameters, which graph it learns from and how it is trained.
    """

    path_class: ClassVar[type[MarginPath]] = MarginPath

    warm_start: bool = False

    @abstractmethod
    def _loss_and_method(self) -> tuple[type[MarginLoss], str]:
        """The loss and the name of the solver, from checked parameters."""

    @abstractmethod
    def _make_graph(self, n_items: int, target: Target) -> PreferenceGraph:
        """What is known about the items; a graph is checked and taken as it is."""

    @calm
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        nuisance: Any = None,
    ) -> Self:
        """Learn from items and what is known about their order.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_items,), or a preference graph
            Scores (larger is better; only their order counts), a target of `make_target`, a
            `ScoreGraph` or a `PairGraph`. Pairs of equal score and edges of magnitude zero are no
            preferences and are left out.
        groups : array-like of shape (n_items,), optional
            Group labels, any hashable ones in any order: only items of one group are compared.
            None compares all items.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, as in ``RankRLS.fit``.
        nuisance : array-like or data frame, optional
            Columns whose effects are taken out, as in ``RankRLS.fit``; RankLogistic only.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        alpha = float(check_alphas([self.alpha], "alpha")[0])
        target = read_target(y, groups, sample_weight, nuisance, X=X)
        _, loss, features = self._prepare(X, target)
        start = self._last_weights(features) if self.warm_start else None
        self._store_features(features.map)
        solution = minimize_to_gap(self, make_objective(features.matrix, loss, alpha), start=start)
        report_solution(self, solution)
        self._store(features.coefficients(solution.best.w[:, None]))
        self._describe(loss, features.matrix, solution)
        warn_unfinished(self, [solution], [alpha])
        return self

    @calm
    def path(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike,
        sample_weight: ArrayLike | None = None,
        nuisance: Any = None,
    ) -> Any:
        """The solutions of a list of alphas, each started from the one before.

        Weights and planes of the larger alpha serve the smaller: the whole path is much cheaper
        than separate fits. `alpha` of the estimator is ignored, and the estimator itself is left
        as it is.

        Parameters
        ----------
        X, y, groups, sample_weight, nuisance
            As in `fit`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankSVMPath or RankLogisticPath
            The models of all alphas.

        Examples
        --------
        >>> from rankwise import RankSVM
        >>> path = RankSVM(tol=1e-6).path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.01, 1.0])
        >>> path.predict([[1.0]]).round(2)
        array([[1. , 0.5]])
        """
        checked = check_alphas(alphas, "alphas")
        model: Self = clone(self)
        target = read_target(y, groups, sample_weight, nuisance, X=X)
        _, loss, features = model._prepare(X, target)
        return model._follow(loss, features, checked)

    def _follow(self, loss: MarginLoss, features: Features, alphas: Array) -> Any:
        self._store_features(features.map)
        solutions = self._solve_path(features.matrix, loss, alphas)
        W = np.stack([solution.best.w for solution in solutions], axis=1)
        return self.path_class(self, alphas, features.coefficients(W).T[:, :, None], solutions)

    def hold_out_task(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> MarginTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are alphas. The data are those of `fit`, or y is a `Target` that was read
        already; the estimator is left as it is.
        """
        model: Self = clone(self)
        return MarginTask(model, *model._prepare(X, read_target(y, groups, sample_weight, X=X)))

    def _prepare(self, X: Any, target: Target) -> tuple[PreferenceGraph, MarginLoss, Features]:
        """Check everything, and say what is to be learned from which features."""
        make_loss, self.solver_ = self._loss_and_method()
        kernel = self.make_kernel()
        X = check_rows(self, X)
        graph = self._make_graph(X.shape[0], target)
        if not graph.strict().n_pairs:
            raise ValueError(f"there is nothing to rank: {why_no_pairs(graph)}.")
        loss, Z = make_loss(graph), nuisance_columns(target, graph)
        if not self.takes_nuisance:
            no_nuisance(type(self).__name__, target)
        if target.nuisance is not None and Z is not None:
            self._nuisance_names = target.nuisance.names
            loss = ProfileLoss(loss, Z)
            if loss.explains_all():
                raise ValueError(
                    "the nuisance columns alone order all pairs rightly, so that their effects "
                    "have no finite values and nothing is left to learn; leave out the column "
                    "that tells the score."
                )
        self.n_pairs_ = loss.graph.n_pairs
        features = explicit_features(
            kernel, X, n_basis=self.n_basis, basis=self.basis, random_state=self.random_state
        )
        if not features.is_definite:
            warn_user(
                f"the kernel {self.kernel!r} is not positive semidefinite on these data; its "
                "negative part is left out.",
            )
        return graph, loss, features

    def _solve_path(self, R: Any, loss: MarginLoss, alphas: Array) -> list[MarginSolution]:
        """Solutions in the order of the alphas, found from the largest to the smallest."""
        objective = make_objective(R, loss, 0.0)
        solutions: dict[int, MarginSolution] = {}
        last = None
        for k in np.argsort(-alphas, kind="stable"):
            last = minimize_to_gap(self, replace(objective, alpha=float(alphas[k])), warm=last)
            solutions[k] = last
        ordered = [solutions[k] for k in range(len(alphas))]
        warn_unfinished(self, ordered, alphas)
        return ordered

    def _describe(self, loss: MarginLoss, R: Any, solution: MarginSolution) -> None:
        """Keep what else the model says about its pairs; nothing by default."""

    def _last_weights(self, features: Features) -> Array | None:
        """Weights of the last fit, for a warm start, if they belong to as many features."""
        n_items, n_features = features.matrix.shape
        if self.make_kernel().is_linear:
            coef = getattr(self, "coef_", None)
            return None if coef is None or len(coef) != n_features else np.array(coef)
        before = getattr(self, "dual_coef_", None)
        if before is None or features.map.basis is not None or len(before) != n_items:
            return None
        return np.asarray(features.matrix.T @ before)


class MarginTask(RefitTask):
    """RankSVM or RankLogistic with its data: a warm-started path over alpha for every fold.

    Held-out items stay in the kernel map or basis that all folds share; they are not trained on.

    Parameters
    ----------
    model : MarginRanker
        The learner.
    graph : PreferenceGraph
        The preferences.
    loss : MarginLoss
        Their loss.
    features : Features
        Features of the items.
    """

    def __init__(
        self, model: MarginRanker, graph: PreferenceGraph, loss: MarginLoss, features: Features
    ) -> None:
        super().__init__(graph, graph.n_items)
        self._model, self._loss, self._features = model, loss, features

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 21 alphas from 1e-9 to 10 times the mean squared distance in a pair."""
        alphas = asked_alphas(values, self._model.alpha)
        if alphas is None:
            alphas = default_alphas(pair_distance(SquaredLoss(self.graph), self._features), DECADES)
        return Candidates({"alpha": alphas})

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """Train on the features of the others."""
        R = self._features.matrix
        rest = np.setdiff1d(np.arange(self.graph.n_items), held)
        return self._scores(R[rest], rest, self.graph.subset(rest), candidates, R[held])

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """Train on the features of all items."""
        R = self._features.matrix
        return self._scores(R, np.arange(self.n_rows), edges, candidates, R)

    def train(self, **values: Any) -> MarginRanker:
        """The learner trained on all data."""
        path = self._model._follow(self._loss, self._features, np.array([values["alpha"]]))
        ranker: MarginRanker = path.model(0)
        ranker._describe(self._loss, self._features.matrix, path.solutions[0])
        return ranker

    def _scores(
        self, R: Any, rows: Indices, graph: PreferenceGraph, candidates: Candidates, new: Any
    ) -> Array:
        loss = self._loss.of_items(rows, graph)
        if not loss.graph.n_pairs:
            raise ValueError(
                "a fold leaves no preference to train on: they are all in one group (or fold). Use "
                "more or smaller folds."
            )
        solutions = self._model._solve_path(R, loss, candidates.axes["alpha"])
        return row_products(new, np.stack([solution.best.w for solution in solutions], axis=1))


def minimize_to_gap(model: Any, objective: MarginObjective, **options: Any) -> MarginSolution:
    """Minimize as the parameters of a model say, and show the progress if it is asked to."""
    tol, max_iter, verbose = model.tol, model.max_iter, int(model.verbose)
    if not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
        raise ValueError(f"tol={tol!r}; expected a number between 0 and 1, such as 1e-3.")
    if not isinstance(max_iter, numbers.Integral) or max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r}; expected a whole number of at least 1.")
    line = Progress(type(model).__name__, show=verbose > 0, in_place=verbose < 2)

    def watch(n_iter: int, now: Iterate) -> None:
        line.update(n_iter, f": objective {now.objective:.6g}, gap {now.gap:.1e}   ")

    method, limit = model.solver_, int(max_iter)
    solution = minimize_margin(
        objective, method, tol=float(tol), max_iter=limit, watch=watch, **options
    )
    line.close()
    return solution


def report_solution(model: Any, solution: MarginSolution) -> None:
    """Set the attributes of a model that say how good its solution is."""
    model.objective_ = solution.best.objective
    model.lower_bound_ = solution.best.bound
    model.gap_ = float(solution.best.gap)
    model.n_iter_ = len(solution.history)
    objective, bound = np.array(solution.history).T
    reached = np.divide(bound, objective, out=np.ones_like(bound), where=objective > 0)
    model.history_ = {"objective": objective, "lower_bound": bound, "gap": 1 - reached}


def warn_unfinished(model: Any, solutions: list[MarginSolution], alphas: Any) -> None:
    """Warn of the worst of the solutions that did not reach the tolerance."""
    worst: tuple[bool, float, int] | None = None
    for k, solution in enumerate(solutions):
        if solution.end != End.CONVERGED:
            this = (solution.end == End.CONTRADICTED, solution.best.gap, k)
            worst = this if worst is None else max(worst, this)
    if worst is not None:
        _, gap, k = worst
        warn_user(
            f"{type(model).__name__} {REASONS[solutions[k].end]}. After "
            f"{len(solutions[k].history)} iterations at alpha={alphas[k]:g} the relative gap is "
            f"{gap:.1e}, tol={model.tol:g}.",
            ConvergenceWarning,
        )
