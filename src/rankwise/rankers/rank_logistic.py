"""RankLogistic: logistic and Plackett-Luce likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, CrossValidation, MatrixLike, RandomState, dense_rows
from rankwise.fitted_schema import FittedSchema, Values
from rankwise.graphs.score_graph import TIES
from rankwise.graphs.supervision import TargetLike, read_y
from rankwise.kernels.kernel import KernelName
from rankwise.kernels.stable_products import row_products
from rankwise.losses import LogisticLoss, PairwiseLoss, PlackettLuceLoss
from rankwise.losses.pairwise import LossFactory
from rankwise.losses.profiled import ProfileLoss
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.grid_search import grid_search
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.rankers.pairwise_ranker import PairwiseRanker, PairwiseTask
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.certified_descent import Solution
from rankwise.validation import check_option, restored_on_failure

LIKELIHOODS: dict[str, type[PairwiseLoss]] = {
    "pairs": LogisticLoss,
    "plackett-luce": PlackettLuceLoss,
}


class RankLogistic(PairwiseRanker):
    """Logistic preference model: the Bradley–Terry model with features of the items.

    Use it for comparisons with random outcomes, such as votes and matches, and to predict
    probabilities.

    Item i is preferred to item j with the probability ``σ(f_i − f_j)``, σ(g) = 1/(1 + e^(−g)). The
    function f is learned from scores, scores in groups or pairwise preferences by minimizing

        J(f) = 1/W Σ_k ω_k log(1 + exp(−(f_i − f_j))) + α ‖f‖²

    over the pairs k = (i → j) in which i is preferred to j, with weights ω and W = Σ ω. A tie
    counts as half a preference in each direction. Magnitudes of preferences are ignored.

    J has one finite minimum, even if all pairs can be ordered correctly. Since J is 2α-strongly
    convex, ``J − min J ≤ ‖∇J‖²/(4α)``: training stops when such a bound proves that J is within
    `tol` of its minimum. The pairs of scored items are processed in blocks and are never all in
    memory; the time of an iteration is proportional to the number of pairs.

    Parameters
    ----------
    alpha : float, default=0.001
        Regularization, positive; relative to the mean over pairs, so it does not depend on the
        amount of data. `sklearn.linear_model.LogisticRegression` on the differences of the pairs,
        without intercept, has ``C = 1/(2 alpha W)``.
    likelihood : {"pairs", "plackett-luce"}, default="pairs"
        "pairs" treats the pairs as independent, as above. "plackett-luce" treats each group as a
        ranking in which the best item is chosen first, then the best of the remaining items, and so
        on. This listwise objective is ``1/W Σ [log Σ_j e^{f_j} − f_i]`` over the W choices of an
        item i among the items j that were not chosen before. It requires scores.
    ties : {"exclude", "include"}, default="exclude"
        Whether two items of a group with equal scores are a tie. Ignored if y is a graph: all edges
        of magnitude zero of a `PairGraph` are ties. With "plackett-luce", items with equal scores
        share a place by Efron's formula. The items with the lowest score of a group share a place
        with "include"; with "exclude" they are below all other items, without an order among them.
    kernel : str or callable, default="linear"
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, a function
        of two rows, or "precomputed" (X is then the kernel matrix between items and training
        items). Other kernels use the empirical kernel map ([RankRLS09] sections 4.2 and 4.4).
    gamma : float, default=None
        Parameter of the named kernels, as in scikit-learn.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    group_weight : {"pairs", "groups"}, default="pairs"
        Whether all pairs or all groups have equal weight.
    n_basis : int, optional
        Number of basis items of a sparse kernel model; None uses all items.
    basis : {"random", "kmeans++"}, array of int, or array of points, default="random"
        How the basis items are selected, their row numbers, or the points themselves.
    tol : float, default=1e-6
        Stop when ``(J − lower bound)/J`` is at most this.
    max_iter : int, default=1000
        Maximum number of iterations (truncated Newton steps).
    warm_start : bool, default=False
        Whether to start from the solution of the last `fit`.
    verbose : int, default=0
        1 shows a progress line on standard error, 2 prints one line for each iteration.
    random_state : int, RandomState or None, default=None
        Seed of the selection of basis items.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features (linear kernel).
    dual_coef_ : ndarray of shape (n_basis,)
        Weights of the training or basis items (other kernels).
    X_fit_ : ndarray or sparse matrix
        The training or basis items (other kernels, unless precomputed).
    basis_indices_ : ndarray of int
        Row numbers of the basis items (if a basis of rows was used).
    is_separable_ : bool
        Whether the model orders all pairs correctly. The scores are then finite only because of
        alpha, and the probabilities depend on alpha more than on the data: select alpha with
        `RankLogisticCV`.
    objective_ : float
        J of the model.
    lower_bound_ : float
        No model has a smaller J than this.
    gap_ : float
        ``(objective_ − lower_bound_)/objective_``.
    n_iter_ : int
        Number of iterations on all items; on large data they start from the solution on a sample.
    history_ : dict of ndarray of shape (n_iterations,)
        "objective", "lower_bound" and "gap" after each iteration.
    n_pairs_ : int
        Number of pairs trained on.
    nuisance_coef_, nuisance_se_, nuisance_names_
        Effects of the nuisance columns, their standard errors and names, as in `RankRLS`; in log
        odds.
    solver_ : str
        The solver in use, "newton-cg".
    max_group_size_ : int or None
        Number of items in the longest group; None without groups, or if y is a graph.
    group_columns_ : list of str
        Columns of a data frame that contain the groups and are therefore dropped.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    RankLogisticCV : Selects alpha by cross-validation along a warm-started path.
    RankRLS : Squared loss; exact cross-validation, several outputs, magnitudes of preferences.
    RankSVM : Hinge loss; its cost depends on the number of items, not of pairs.

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

    _fitted: ClassVar[FittedSchema] = {
        "is_separable_": Values(),
    }

    takes_nuisance = True

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        likelihood: str = "pairs",
        ties: str = "exclude",
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        group_weight: str = "pairs",
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.likelihood = likelihood
        self.ties = ties
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.group_weight = group_weight
        self.n_basis = n_basis
        self.basis = basis
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def predict_above(self, X: MatrixLike, i: ArrayLike, j: ArrayLike) -> Array:
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
            Probabilities; that of (j, i) is 1 minus that of (i, j).
        """
        scores = np.asarray(self.predict(X), dtype=np.float64)
        probability: Array = expit(scores[np.asarray(i)] - scores[np.asarray(j)])
        return probability

    def _loss_and_method(self) -> tuple[LossFactory, str]:
        check_option("ties", self.ties, TIES)
        check_option("likelihood", self.likelihood, list(LIKELIHOODS))
        return LIKELIHOODS[self.likelihood], "newton-cg"

    def _store_solution(self, task: PairwiseTask, solution: Solution) -> None:
        super()._store_solution(task, solution)
        features = task.features.matrix
        loss = task.loss
        scores = row_products(features, solution.w)
        if isinstance(loss, ProfileLoss):  # the loss with the best effects γ of nuisance columns Z
            loss.at(scores)  # sets γ to the best effects for these scores
            scores = scores + loss.Z @ loss.gamma
            effects = loss.effects(dense_rows(features), solution.w, scores, self.alpha)
            self._store_effects(effects)
            loss = loss.loss  # the same loss without nuisance columns
        self.is_separable_ = loss.is_separated_by(scores)


class RankLogisticCV(Search):
    """RankLogistic with alpha and kernel parameters selected by cross-validation.

    Use it in place of `RankLogistic` if alpha is not known.

    Every fold is trained once along the whole list of alphas, from the largest to the smallest:
    the weights of one alpha start the next. The model is then trained on all data with the best
    parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 21 values, two per decade, from 1e-9 to 10 times the mean squared
        distance between the items of a pair, which suits any scale of features and any amount of
        data. A choice at the end of the list raises a warning.
    cv : "auto", int, splitter, iterable or None, default="auto"
        "auto" makes up to five folds. A number makes as many folds of whole groups, of items if
        there is one list only, or of edges if y is a connected PairGraph. None leaves out one
        group at a time; anything else as in `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str, Metric or function, default="disagreement"
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    gamma : float or list of float, default=None
        Parameter of the named kernels, as in scikit-learn; a list of values is searched.
    degree : float or list of float, default=3
        Degree of the polynomial kernel; a list of values is searched.
    coef0 : float or list of float, default=1
        Constant of the polynomial and sigmoid kernels; a list of values is searched.
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results_["predictions"]``.
    likelihood, ties, kernel, kernel_params, group_weight, n_basis, basis, tol, max_iter, verbose
        As in `RankLogistic`, with the same defaults.
    random_state : int, RandomState or None, default=None
        As in `RankLogistic`.

    Attributes
    ----------
    alpha_ : float
        Selected alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the selected kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas),
        "group_score" (list of arrays of shape (n_groups, n_alphas)), "groups" (their labels),
        "n_undefined", "cv" (the cross-validation scheme), and "predictions" if they are stored.
    best_estimator_ : RankLogistic
        The model trained on all data, with `gap_` and `history_`.
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

    takes_nuisance = True

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        cv: CrossValidation = "auto",
        scoring: MetricName = "disagreement",
        store_predictions: bool = False,
        likelihood: str = "pairs",
        ties: str = "exclude",
        kernel: KernelName = "linear",
        gamma: float | Sequence[float] | None = None,
        degree: float | Sequence[float] = 3,
        coef0: float | Sequence[float] = 1,
        kernel_params: dict[str, object] | None = None,
        group_weight: str = "pairs",
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        tol: float = 1e-6,
        max_iter: int = 1000,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.store_predictions = store_predictions
        self.likelihood = likelihood
        self.ties = ties
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.group_weight = group_weight
        self.n_basis = n_basis
        self.basis = basis
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state

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
        time: ArrayLike | None = None,
        nuisance: ArrayLike | None = None,
    ) -> Self:
        """Select the parameters on held-out data, and train on all data.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``RankLogistic.fit``. The weights also apply to the evaluation of held-out items.
        time : array-like of shape (n_items,), default=None
            Time of each item, as dates or numbers. Groups are then evaluated by models of earlier
            groups only, in five blocks; `cv` must then keep its default.
        nuisance : array-like or data frame, default=None
            As in ``RankLogistic.fit``. Held-out items are evaluated by f(x) without the effects of
            these columns.

        Returns
        -------
        RankLogisticCV
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, nuisance, X=X)
        X = check_groups(self, X, y, groups, target)
        learner = RankLogistic(
            likelihood=self.likelihood,
            ties=self.ties,
            kernel=self.kernel,
            kernel_params=self.kernel_params,
            group_weight=self.group_weight,
            n_basis=self.n_basis,
            basis=self.basis,
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=self.verbose,
            random_state=self.random_state,
        )
        result = grid_search(
            learner,
            (X, target),
            candidates={"alpha": self.alphas},
            parameter_lists={"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0},
            cv=self.cv,
            scoring=self.scoring,
            time=time,
            store_predictions=self.store_predictions,
        )
        return self._store_search(result)

    def predict_above(self, X: MatrixLike, i: ArrayLike, j: ArrayLike) -> Array:
        """Probability that item i is preferred to item j; see ``RankLogistic.predict_above``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items, as for `predict`.
        i, j : int or array-like of int
            Row numbers of X; arrays are broadcast against each other.

        Returns
        -------
        float or ndarray
            Probabilities; that of (j, i) is 1 minus that of (i, j).
        """
        check_is_fitted(self)
        probability: Array = self.best_estimator_.predict_above(X, i, j)
        return probability
