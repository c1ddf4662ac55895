"""RankSVM, RankLogistic and their searches: minima of losses of score differences, certified."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.estimators.base import ModelPath, PathModel, RankerMixin, Search
from rankwise.estimators.training_data import (
    check_rows,
    compared_graph,
    no_nuisance,
    nuisance_columns,
    restored_on_failure,
    warn_explained,
    why_no_pairs,
)
from rankwise.features.feature_map import Features, make_features
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.graphs.score_graph import TIES
from rankwise.inputs import Target, as_whole, check_alphas, check_option, read_target
from rankwise.losses import (
    HingeLoss,
    LogisticLoss,
    MarginLoss,
    PlackettLuceLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from rankwise.losses.nuisance import ProfileLoss
from rankwise.machine import Progress, calm, keeps_interrupted_fits
from rankwise.model_selection.hold_out import check_rest, dense_rows
from rankwise.model_selection.task import (
    Candidates,
    HoldOutTask,
    default_alphas,
    pair_distance,
)
from rankwise.rows import row_products
from rankwise.solvers.margin_loss import (
    MarginObjective,
    MarginSolution,
    make_objective,
    minimize_margin,
)

DECADES = (-9, 1)  # where default alphas start and end
REASONS = {
    "max_iter": "reached max_iter; raise it, tol or alpha, or scale the features",
    "interrupted": "was interrupted; the model is the best one found so far",
    "stalled": "cannot go on within rounding errors; raise tol or alpha, or scale the features",
    "contradicted": (
        "found a lower bound above an objective by more than rounding explains: the loss is not "
        "convex, or this is a mistake of rankwise; do not rely on lower_bound_, and report it"
    ),
}


class MarginPath(ModelPath):
    """Models along a list of alphas, as `RankSVM.path` and `RankLogistic.path` return them.

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
        template: MarginRanker,
        alphas: Array,
        coefficients: Array,
        solutions: list[MarginSolution],
    ) -> None:
        super().__init__(template, alphas, coefficients)
        self.solutions = solutions
        self.gaps = np.array([solution.gap for solution in solutions])
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
class MarginRanker(MarginParameters, PathModel):
    """A ranker that minimizes ``loss(f) + α ‖f‖²`` until a lower bound proves it near the minimum.

    A subclass declares the parameters, which graph it learns from and how it is trained.
    """

    warm_start: bool = False

    @abstractmethod
    def _loss_and_method(self) -> tuple[type[MarginLoss], str]:
        """The loss and the name of the solver, from checked parameters."""

    @calm
    @restored_on_failure
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
        check_alphas([self.alpha], "alpha")
        task = self._prepare(X, read_target(y, groups, sample_weight, nuisance, X=X))
        start = self._last_weights(task.features) if self.warm_start else None
        keep_interrupted = keeps_interrupted_fits()
        return cast(
            Self, task.train(alpha=self.alpha, start=start, keep_interrupted=keep_interrupted)
        )

    def _prepare(self, X: Any, target: Target) -> MarginTask:
        """Check everything, and say what is to be learned from which features."""
        make_loss, self.solver_ = self._loss_and_method()
        kernel, name = self.make_kernel(), type(self).__name__
        X = check_rows(self, X)
        ties = getattr(self, "ties", "exclude")
        graph = compared_graph(name, X.shape[0], target, self.group_weight, ties)
        loss, Z = make_loss(graph), nuisance_columns(target, graph)
        n_strict = graph.strict().n_pairs
        if not n_strict:
            raise ValueError(f"there is nothing to rank: {why_no_pairs(graph)}.")
        if graph.scores is None and loss.graph.n_pairs < graph.n_pairs:
            warn_user(
                f"{graph.n_pairs - n_strict} of {graph.n_pairs} edges have magnitude 0: they state "
                f"ties, which {name} cannot use and leaves out (RankRLS and RankLogistic use "
                "them).",
            )
        if not self.takes_nuisance:
            no_nuisance(name, target)
        if target.nuisance is not None and Z is not None:
            self._nuisance_names = target.nuisance.names
            loss = ProfileLoss(loss, Z)
        self.n_pairs_ = loss.graph.n_pairs
        features = make_features(
            kernel,
            X,
            "iterative" if kernel.is_linear else "auto",
            n_basis=self.n_basis,
            basis=self.basis,
            random_state=self.random_state,
            explicit=True,
        ).stored()
        if isinstance(loss, ProfileLoss) and loss.explains(dense_rows(features.matrix)):
            warn_explained()
        if not features.is_definite:
            warn_user(
                f"the kernel {self.kernel!r} is not positive semidefinite on these data; its "
                "negative part is left out.",
            )
        return MarginTask(self, graph, loss, features)

    def _keep(self, task: MarginTask, solution: MarginSolution) -> None:
        """Store a solution, and what it says about itself."""
        report_solution(self, solution)
        self._store(task.features.coefficients(solution.w[:, None]))

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


class MarginTask(HoldOutTask):
    """RankSVM or RankLogistic with its data: a warm-started path over alpha for every fold.

    Held-out items stay in the kernel map or basis that all folds share; they are not trained on.

    Parameters
    ----------
    learner : MarginRanker
        The learner.
    graph : PreferenceGraph
        The preferences.
    loss : MarginLoss
        Their loss.
    features : Features
        Features of the items.
    """

    def __init__(
        self, learner: MarginRanker, graph: PreferenceGraph, loss: MarginLoss, features: Features
    ) -> None:
        super().__init__(learner, graph)
        self.loss, self.features = loss, features

    def default_values(self, _: str) -> Array:
        """21 alphas from 1e-9 to 10 times the mean squared distance in a pair."""
        return default_alphas(pair_distance(SquaredLoss(self.graph), self.features), DECADES)

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """Train on the features of the others."""
        rest = np.setdiff1d(np.arange(self.n_rows), held)
        return self._scores(rest, self.graph.subset(rest), candidates, held)

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """Train on the features of all items."""
        every = np.arange(self.n_rows)
        return self._scores(every, edges, candidates, every)

    def _scores(
        self, rows: Indices, graph: PreferenceGraph, candidates: Candidates, judged: Indices
    ) -> Array:
        """Scores of some items by the models of other rows and their graph."""
        R, loss = self.features.matrix, self.loss.of_items(rows, graph)
        check_rest(loss.graph.n_pairs > 0)
        objective = make_objective(R[rows], loss, 0.0)
        solutions = solve_path(self.learner, objective, candidates.axes["alpha"])
        return row_products(R[judged], np.stack([one.w for one in solutions], axis=1))

    def train(
        self, *, start: Array | None = None, keep_interrupted: bool = False, **values: Any
    ) -> MarginRanker:
        """The learner trained on all data, from the weights of an earlier fit.

        If it may, Ctrl-C ends the training with the best model so far.
        """
        learner: MarginRanker = self.learner
        learner.alpha = values["alpha"]
        learner._store_features(self.features.map)
        objective = make_objective(self.features.matrix, self.loss, 0.0)
        (solution,) = solve_path(
            learner,
            objective,
            np.array([learner.alpha]),
            start=start,
            keep_interrupted=keep_interrupted,
        )
        learner._keep(self, solution)
        return learner

    def path(self, alphas: Array) -> MarginPath:
        """The models of several alphas, trained on all data."""
        learner, features = self.learner, self.features
        learner._store_features(features.map)
        solutions = solve_path(learner, make_objective(features.matrix, self.loss, 0.0), alphas)
        W = np.stack([solution.w for solution in solutions], axis=1)
        return MarginPath(learner, alphas, features.coefficients(W).T[:, :, None], solutions)


def solve_path(
    model: Any, objective: MarginObjective, alphas: Array, **first: Any
) -> list[MarginSolution]:
    """Solutions in the order of the alphas, found from the largest to the smallest.

    As the parameters of a model say, with a line of progress if it is asked for. Warns of the worst
    of those that did not reach the tolerance. `first` are arguments of `minimize_margin`.
    """
    tol, verbose = model.tol, int(model.verbose)
    max_iter = as_whole("max_iter", model.max_iter, least=1)
    if not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
        raise ValueError(f"tol={tol!r}; expected a number between 0 and 1, such as 1e-3.")
    line = Progress(type(model).__name__, show=verbose > 0, in_place=verbose < 2)

    def watch(now: MarginSolution) -> None:
        text = f": objective {now.objective:.6g}, gap {now.gap:.1e}   "
        line.update(len(now.history), text)

    options: dict[str, Any] = {"tol": float(tol), "max_iter": max_iter, "watch": watch, **first}
    solutions: dict[int, MarginSolution] = {}
    last, worst = None, (False, -np.inf, -1)
    for k in np.argsort(-alphas, kind="stable"):
        at_alpha = replace(objective, alpha=float(alphas[k]))
        solutions[k] = last = minimize_margin(at_alpha, model.solver_, warm=last, **options)
        if last.end != "converged":
            worst = max(worst, (last.end == "contradicted", last.gap, int(k)))
    line.close()
    _, gap, k = worst
    if k >= 0:
        warn_user(
            f"{type(model).__name__} {REASONS[solutions[k].end]}. After "
            f"{len(solutions[k].history)} iterations at alpha={alphas[k]:g} the relative gap is "
            f"{gap:.1e}, tol={tol:g}.",
            ConvergenceWarning,
        )
    return [solutions[k] for k in range(len(alphas))]


def report_solution(model: Any, solution: MarginSolution) -> None:
    """Set the attributes of a model that say how good its solution is."""
    model.objective_, model.lower_bound_ = solution.objective, solution.bound
    model.gap_ = float(solution.gap)
    model.n_iter_ = len(solution.history)
    objective, bound = np.array(solution.history).T
    reached = np.divide(bound, objective, out=np.ones_like(bound), where=objective > 0)
    model.history_ = {"objective": objective, "lower_bound": bound, "gap": 1 - reached}


LOSSES: dict[str, type[MarginLoss]] = {"hinge": HingeLoss, "squared_hinge": SquaredHingeLoss}
SOLVERS = ("auto", "lbfgs", "newton-cg", "bmrm")


@dataclass(eq=False, repr=False)
class RankSVM(MarginRanker):
    """Ranking support vector machine.

    Use it where only the order of the scores means something, for outliers, and for millions of
    rows.

    Learns a function f from scores, scores in groups or pairwise preferences by minimizing

        J(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j)) + α ‖f‖²

    (or the square of the maximum) over the pairs k = (i → j) in which i is strictly preferred to
    j, with weights ω and W = Σ ω ([TreeRSVM11] equations 2 and 4). The pairs of scored items are
    never formed: loss and subgradient cost O(m s + m log m) for m items with s non-zero features,
    whatever the scores ([TreeRSVM11] algorithm 2). Training ends when a lower bound proves that
    the objective is within `tol` of its minimum.

    Parameters
    ----------
    alpha : float
        Regularization, positive; relative to the mean over pairs, so it does not depend on the
        amount of data: the λ of [TreeRSVM11]. An SVM that charges C for every pair has
        ``C = 1/(2 alpha W)``.
    loss : {"hinge", "squared_hinge"}
        What a pair costs: ``max(0, 1 − g)`` or its square, for the difference of scores g.
    kernel : str or callable
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, a function
        of two rows, or "precomputed" (X is then the kernel matrix between items and training
        items). Kernels work by the empirical kernel map ([RankRLS09] sections 4.2 and 4.4).
    gamma, degree, coef0
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    group_weight : {"pairs", "groups"}
        Whether every pair or every group counts alike ([TreeRSVM11] end of section 4).
    n_basis : int, optional
        Train a kernel model on this many basis items only.
    basis : {"random", "kmeans++"}, array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, the row numbers of the basis items (for example `basis_indices_`
        of a `RankingPursuit`), or points of any kind; duplicates among points do no harm.
    tol : float
        Stop when ``(J − lower bound)/J`` is at most this.
    max_iter : int
        Limit of iterations.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}
        "lbfgs": quasi-Newton steps with a bundle of planes that certifies them; "newton-cg":
        truncated Newton, for the squared hinge; "bmrm": the cutting planes of [TreeRSVM11]
        algorithm 1, slower and kept as the reference. "auto" takes "lbfgs" for the hinge,
        "newton-cg" for the squared hinge.
    warm_start : bool
        Start from the solution of the last `fit`.
    verbose : int
        1 shows a line of progress on standard error, 2 one line for each iteration.
    random_state : int, RandomState or None
        Seed of the choice of basis items.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features (linear kernel).
    dual_coef_ : ndarray of shape (n_basis,)
        Weights of the training or basis items (other kernels).
    X_fit_ : ndarray or sparse matrix
        Those items (not for precomputed kernels).
    basis_indices_ : ndarray of int
        Row numbers of the basis items (if a basis of rows was used).
    objective_ : float
        J of the model.
    lower_bound_ : float
        No model has a smaller J than this. What rounding may have added is taken off: about
        ``ε √(n_items + n_features)`` times the sum over columns of ``max |x| · |w|``, ε = 2⁻⁵²; the
        exact allowance is in the docstring of `rankwise.solvers.bundle`.
    gap_ : float
        ``(objective_ − lower_bound_)/objective_``; negative, with a warning, only if the bound
        contradicts the objective by more than rounding.
    n_iter_ : int
        Iterations on all items; large data start from the solution on a sample of them.
    history_ : dict of ndarray of shape (n_iterations,)
        "objective", "lower_bound" and "gap" after each iteration.
    n_pairs_ : int
        Number of pairs trained on.
    solver_ : str
        The solver in use.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    RankSVMCV : Chooses alpha by cross-validation along a warm-started path.
    RankRLS : Squared loss; exact cross-validation, several outputs, magnitudes of preferences.

    Notes
    -----
    Ctrl-C during `fit` ends the search; the model is the best one found so far, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVM
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> y = [1, 2, 3, 0, 1, 2]
    >>> model = RankSVM(alpha=0.01).fit(X, y, groups=[1, 1, 1, 2, 2, 2])
    >>> model.rank(X, groups=[1, 1, 1, 2, 2, 2])
    array([3, 2, 1, 3, 2, 1])
    >>> model.coef_.round(2), model.gap_ <= 1e-3
    (array([1.]), True)
    """

    alpha: float = 1e-3
    _: KW_ONLY
    loss: str = "hinge"
    solver: str = "auto"

    def _loss_and_method(self) -> tuple[type[MarginLoss], str]:
        check_option("loss", self.loss, tuple(LOSSES))
        check_option("solver", self.solver, SOLVERS)
        if self.solver == "newton-cg" and self.loss == "hinge":
            raise ValueError(
                "solver='newton-cg' needs a smooth loss; use loss='squared_hinge', or "
                "solver='lbfgs' for the hinge."
            )
        auto = "lbfgs" if self.loss == "hinge" else "newton-cg"
        return LOSSES[self.loss], auto if self.solver == "auto" else self.solver


@dataclass(eq=False, repr=False)
class RankSVMCV(RankerMixin, MarginParameters, Search):
    """RankSVM that chooses alpha, and kernel parameters if lists are given, by cross-validation.

    Use it in place of `RankSVM` if alpha is not known.

    Every fold is trained once along the whole list of alphas, from the largest to the smallest:
    weights and cutting planes of one alpha serve the next. The model is then trained on all data
    with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 21 values, two a decade, from 1e-9 to 10 times the mean squared
        distance between the items of a pair, which suits any scale of features and any amount of
        data. A choice at the end of the list warns.
    cv : "auto", int, splitter, iterable or None
        "auto" makes up to five folds. A number makes as many folds of whole groups, of items if
        there is one list only, or of edges if y is a connected PairGraph. None leaves out one
        group at a time; anything else as in `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str, Metric or function
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    loss, kernel, kernel_params, group_weight, n_basis, basis, tol, max_iter, solver, verbose, \
random_state
        As in `RankSVM`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas),
        "group_score" (list of arrays of shape (n_groups, n_alphas)), "groups" (their labels),
        "n_undefined", "cv" (which way was taken), and "predictions" if asked for.
    best_estimator_ : RankSVM
        The model trained on all data; also gives `gap_` and `history_`.
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, solver_, n_iter_
        As in `RankSVM`.

    Examples
    --------
    >>> from rankwise import RankSVMCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = RankSVMCV(scoring="ndcg@10").fit(X, y, groups)
    >>> round(model.best_score_, 2), model.cv_results_["cv"]
    (0.93, 'folds of groups')
    """

    model_class = RankSVM

    alphas: ArrayLike | None = None
    _: KW_ONLY
    loss: str = "hinge"
    solver: str = "auto"


LIKELIHOODS: dict[str, type[MarginLoss]] = {
    "pairs": LogisticLoss,
    "plackett-luce": PlackettLuceLoss,
}


class LogisticModel(RankerMixin):
    """A ranker whose scores are logarithms of odds."""

    predict: Any

    def predict_above(self, X: Any, i: ArrayLike, j: ArrayLike) -> Any:
        """Probability that item i is preferred to item j, ``σ(f_i − f_j)``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items, as for `predict`.
        i, j : int or array-like of int
            Row numbers of X; arrays are broadcast against each other.

        Returns
        -------
        float or ndarray
            Between 0 and 1; the other direction has 1 minus it.
        """
        scores = np.asarray(self.predict(X), dtype=np.float64)
        return expit(scores[np.asarray(i)] - scores[np.asarray(j)])


@dataclass(eq=False, repr=False)
class RankLogistic(LogisticModel, MarginRanker):
    """Logistic model of preferences: Bradley and Terry's, with features of the items.

    Use it for comparisons whose outcome is a matter of chance (people, matches), and for
    probabilities.

    Item i is preferred to item j with the probability ``σ(f_i − f_j)``, σ(g) = 1/(1 + e^(−g)). The
    function f is learned from scores, scores in groups or pairwise preferences by minimizing

        J(f) = 1/W Σ_k ω_k log(1 + exp(−(f_i − f_j))) + α ‖f‖²

    over the pairs k = (i → j) in which i is preferred to j, with weights ω and W = Σ ω. A tie
    counts as half a preference in each direction. Magnitudes of preferences do not count.

    J has one minimum, and it is finite, also if all pairs can be ordered rightly. Since J is
    2α-strongly convex, ``J − min J ≤ ‖∇J‖²/(4α)``: training ends when such a bound proves that J is
    within `tol` of its minimum. The pairs of scored items are looked at in blocks and are never all
    in memory; one look at all pairs costs time proportional to their number.

    Parameters
    ----------
    alpha : float
        Regularization, positive; relative to the mean over pairs, so it does not depend on the
        amount of data. `sklearn.linear_model.LogisticRegression` on the differences of the pairs,
        without intercept, has ``C = 1/(2 alpha W)``.
    likelihood : {"pairs", "plackett-luce"}
        "pairs" takes every pair by itself, as above. "plackett-luce" takes every group as a ranking
        that comes about by choosing the best item, then the best of the others, and so on: a
        listwise objective that looks at the top first, ``1/W Σ [log Σ_j e^{f_j} − f_i]`` over the
        W choices of an item i among those j that are not placed before it. It needs scores.
    ties : {"exclude", "include"}
        Whether two items of a group that have the same score count as a tie. A graph that is given
        as y brings its own ties: all edges of magnitude zero of a `PairGraph` count. With
        "plackett-luce" items of one score share a place by Efron's formula; those of the lowest
        score of a group do so only by "include", and are else below the others in no order.
    kernel : str or callable
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, a function
        of two rows, or "precomputed" (X is then the kernel matrix between items and training
        items). Kernels work by the empirical kernel map ([RankRLS09] sections 4.2 and 4.4).
    gamma, degree, coef0
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    group_weight : {"pairs", "groups"}
        Whether every pair or every group counts alike.
    n_basis : int, optional
        Train a kernel model on this many basis items only.
    basis : {"random", "kmeans++"}, array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, the row numbers of the basis items, or points of any kind.
    tol : float
        Stop when ``(J − lower bound)/J`` is at most this.
    max_iter : int
        Limit of iterations: truncated Newton steps.
    warm_start : bool
        Start from the solution of the last `fit`.
    verbose : int
        1 shows a line of progress on standard error, 2 one line for each iteration.
    random_state : int, RandomState or None
        Seed of the choice of basis items.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features (linear kernel).
    dual_coef_ : ndarray of shape (n_basis,)
        Weights of the training or basis items (other kernels).
    X_fit_ : ndarray or sparse matrix
        Those items (not for precomputed kernels).
    basis_indices_ : ndarray of int
        Row numbers of the basis items (if a basis of rows was used).
    is_separable_ : bool
        Whether the model orders all pairs rightly. Then only alpha keeps the scores from growing
        without limit, and the probabilities tell about alpha rather than about the data: choose
        alpha by `RankLogisticCV`.
    objective_ : float
        J of the model.
    lower_bound_ : float
        No model has a smaller J than this.
    gap_ : float
        ``(objective_ − lower_bound_)/objective_``.
    n_iter_ : int
        Iterations on all items; large data start from the solution on a sample of them.
    history_ : dict of ndarray of shape (n_iterations,)
        "objective", "lower_bound" and "gap" after each iteration.
    n_pairs_ : int
        Number of pairs trained on.
    nuisance_coef_, nuisance_se_, nuisance_names_
        Effects of the nuisance columns, their standard errors and names, as in `RankRLS`; in
        logarithms of odds.
    solver_ : str
        The solver in use, "newton-cg".
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    RankLogisticCV : Chooses alpha by cross-validation along a warm-started path.
    RankRLS : Squared loss; exact cross-validation, several outputs, magnitudes of preferences.
    RankSVM : Hinge loss; costs no more for many pairs than for many items.

    Examples
    --------
    >>> from rankwise import PairGraph, RankLogistic
    >>> X = [[0.0], [1.0], [3.0]]
    >>> seen = PairGraph([2, 2, 1, 0], [0, 1, 0, 1])
    >>> model = RankLogistic(alpha=0.01).fit(X, seen)
    >>> model.rank(X)
    array([3, 2, 1])
    >>> model.predict_above(X, [2, 2], [0, 1]).round(2), model.is_separable_
    (array([0.93, 0.85]), False)
    """

    takes_nuisance = True

    alpha: float = 1e-3
    _: KW_ONLY
    likelihood: str = "pairs"
    ties: str = "exclude"
    tol: float = 1e-6

    def _loss_and_method(self) -> tuple[type[MarginLoss], str]:
        check_option("ties", self.ties, TIES)
        check_option("likelihood", self.likelihood, list(LIKELIHOODS))
        return LIKELIHOODS[self.likelihood], "newton-cg"

    def _keep(self, task: MarginTask, solution: MarginSolution) -> None:
        super()._keep(task, solution)
        R, w, loss = task.features.matrix, solution.w, task.loss
        scores = row_products(R, w)
        if isinstance(loss, ProfileLoss):
            loss.at(scores)
            scores = scores + loss.Z @ loss.gamma
            self._keep_effects(loss.effects(dense_rows(R), w, scores, self.alpha))
            loss = loss.loss
        self.is_separable_ = cast(LogisticLoss | PlackettLuceLoss, loss).is_separated_by(scores)


@dataclass(eq=False, repr=False)
class RankLogisticCV(LogisticModel, MarginParameters, Search):
    """RankLogistic that chooses alpha, and kernel parameters if lists are given, by held-out data.

    Use it in place of `RankLogistic` if alpha is not known.

    Every fold is trained once along the whole list of alphas, from the largest to the smallest:
    the weights of one alpha start the next. The model is then trained on all data
    with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 21 values, two a decade, from 1e-9 to 10 times the mean squared
        distance between the items of a pair, which suits any scale of features and any amount of
        data. A choice at the end of the list warns.
    cv : "auto", int, splitter, iterable or None
        "auto" makes up to five folds. A number makes as many folds of whole groups, of items if
        there is one list only, or of edges if y is a connected PairGraph. None leaves out one
        group at a time; anything else as in `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str, Metric or function
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    likelihood, ties, kernel, kernel_params, group_weight, n_basis, basis, tol, max_iter, verbose
        As in `RankLogistic`.
    random_state
        As in `RankLogistic`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas),
        "group_score" (list of arrays of shape (n_groups, n_alphas)), "groups" (their labels),
        "n_undefined", "cv" (which way was taken), and "predictions" if asked for.
    best_estimator_ : RankLogistic
        The model trained on all data; also gives `gap_` and `history_`.
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, solver_, n_iter_, nuisance_coef_, \
nuisance_se_, nuisance_names_
        As in `RankLogistic`.

    Examples
    --------
    >>> from rankwise import RankLogisticCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = RankLogisticCV(scoring="ndcg@10").fit(X, y, groups)
    >>> round(model.best_score_, 2), model.cv_results_["cv"]
    (0.93, 'folds of groups')
    """

    model_class = RankLogistic

    alphas: ArrayLike | None = None
    _: KW_ONLY
    likelihood: str = "pairs"
    ties: str = "exclude"
    tol: float = 1e-6
