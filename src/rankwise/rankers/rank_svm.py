"""RankSVM: hinge and squared hinge loss of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from numpy.typing import ArrayLike

from rankwise.arrays import CrossValidation, MatrixLike, RandomState
from rankwise.graphs.supervision import TargetLike, read_y
from rankwise.kernels.kernel import KernelName
from rankwise.losses import LOSSES, PairFunction, PairwiseLoss
from rankwise.losses.pairwise import LossFactory
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.grid_search import grid_search
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.rankers.pairwise_ranker import PairwiseRanker
from rankwise.rankers.ranking_problem import no_nuisance
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_option, restored_on_failure

SOLVERS = ("auto", "lbfgs", "newton-cg", "bmrm")


class RankSVM(PairwiseRanker):
    """Ranking support vector machine.

    Use it if only the order of the scores is meaningful, if there are outliers, and for millions of
    rows.

    A function f is learned from scores, scores in groups or pairwise preferences by minimizing

        J(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j)) + α ‖f‖²

    (or the square of the maximum) over the pairs k = (i → j) in which i is strictly preferred to
    j, with weights ω and W = Σ ω ([TreeRSVM11] equations 2 and 4). The pairs of scored items are
    never formed: loss and subgradient cost O(m s + m log m) for m items with s non-zero features,
    for any number of distinct scores ([TreeRSVM11] algorithm 2). Training stops when a lower bound
    proves that the objective is within `tol` of its minimum.

    Parameters
    ----------
    alpha : float, default=0.001
        Regularization, positive; relative to the mean over pairs, so it does not depend on the
        amount of data; the λ of [TreeRSVM11]. An SVM with the cost C for every pair has
        ``C = 1/(2 alpha W)``.
    loss : str, PairFunction or class of a PairwiseLoss, default="hinge"
        Loss of a pair as a function of the difference g of its scores: "hinge" is ``max(0, 1 −
        g)``; other names are in `rankwise.losses.LOSSES`, such as "squared_hinge" and
        "exponential". For a custom loss see `rankwise.losses.PairFunction`.
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
        Whether all pairs or all groups have equal weight ([TreeRSVM11] end of section 4).
    n_basis : int, optional
        Number of basis items of a sparse kernel model; None uses all items.
    basis : {"random", "kmeans++"}, array of int, or array of points, default="random"
        How the basis items are selected, their row numbers (for example `basis_indices_` of a
        `RankingPursuit`), or the points themselves, which may contain duplicates.
    tol : float, default=0.001
        Stop when ``(J − lower bound)/J`` is at most this.
    max_iter : int, default=1000
        Maximum number of iterations.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}, default="auto"
        "lbfgs": quasi-Newton steps with a bundle of planes that certifies them; "newton-cg":
        truncated Newton, for the squared hinge; "bmrm": the cutting planes of [TreeRSVM11]
        algorithm 1, a slower reference. "auto" selects "lbfgs" for the hinge and "newton-cg" for
        the squared hinge.
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
    objective_ : float
        J of the model.
    lower_bound_ : float
        No model has a smaller J than this. An allowance for rounding errors has been subtracted:
        about ``ε √(n_items + n_features)`` times the sum over columns of ``max |x| · |w|``, ε =
        2⁻⁵²; the exact allowance is in the docstring of `rankwise.solvers.bundle`.
    gap_ : float
        ``(objective_ − lower_bound_)/objective_``; negative, with a warning, only if the bound
        contradicts the objective by more than rounding.
    n_iter_ : int
        Number of iterations on all items; on large data they start from the solution on a sample.
    history_ : dict of ndarray of shape (n_iterations,)
        "objective", "lower_bound" and "gap" after each iteration.
    n_pairs_ : int
        Number of pairs trained on.
    solver_ : str
        The solver in use.
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
    RankSVMCV : Selects alpha by cross-validation along a warm-started path.
    RankRLS : Squared loss; exact cross-validation, several outputs, magnitudes of preferences.

    Notes
    -----
    Ctrl-C during `fit` stops the training with a warning and keeps the best model so far.

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

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        loss: str | LossFactory = "hinge",
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        group_weight: str = "pairs",
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
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
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def _loss_and_method(self) -> tuple[LossFactory, str]:
        loss = read_loss(self.loss)
        check_option("solver", self.solver, SOLVERS)
        if self.solver == "newton-cg" and not loss.is_smooth:
            raise ValueError(
                "solver='newton-cg' needs a smooth loss; use loss='squared_hinge', or "
                f"solver='lbfgs' for loss={self.loss!r}."
            )
        method = self.solver
        if method == "auto" and loss.is_smooth:
            method = "newton-cg"
        elif method == "auto":
            method = "lbfgs"
        return loss, method


def read_loss(loss: str | LossFactory) -> LossFactory:
    """The loss with this name; a custom loss is returned unchanged."""
    if isinstance(loss, PairFunction):
        return loss
    if isinstance(loss, type) and issubclass(loss, PairwiseLoss):
        return loss
    if not isinstance(loss, str):
        raise ValueError(
            f"loss={loss!r}; expected one of {', '.join(map(repr, LOSSES))}, an object of a class "
            "derived from rankwise.losses.PairFunction, or a class derived from "
            "rankwise.losses.PairwiseLoss."
        )
    check_option("loss", loss, tuple(LOSSES))
    return LOSSES[loss]


class RankSVMCV(Search):
    """RankSVM with alpha and kernel parameters selected by cross-validation.

    Use it in place of `RankSVM` if alpha is not known.

    Every fold is trained once along the whole list of alphas, from the largest to the smallest:
    weights and cutting planes of one alpha serve the next. The model is then trained on all data
    with the best parameters.

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
    loss, kernel, kernel_params, group_weight, n_basis, basis, tol, max_iter, solver, verbose, \
random_state
        As in `RankSVM`, with the same defaults.

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
    best_estimator_ : RankSVM
        The model trained on all data, with `gap_` and `history_`.
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

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        cv: CrossValidation = "auto",
        scoring: MetricName = "disagreement",
        store_predictions: bool = False,
        loss: str | LossFactory = "hinge",
        kernel: KernelName = "linear",
        gamma: float | Sequence[float] | None = None,
        degree: float | Sequence[float] = 3,
        coef0: float | Sequence[float] = 1,
        kernel_params: dict[str, object] | None = None,
        group_weight: str = "pairs",
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "auto",
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.store_predictions = store_predictions
        self.loss = loss
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
        self.solver = solver
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
            As in ``RankSVM.fit``. The weights also apply to the evaluation of held-out items.
        time : array-like of shape (n_items,), default=None
            Time of each item, as dates or numbers. Groups are then evaluated by models of earlier
            groups only, in five blocks; `cv` must then keep its default.
        nuisance : None
            Not supported by RankSVM; a value raises a ValueError.

        Returns
        -------
        RankSVMCV
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, nuisance, X=X)
        no_nuisance(type(self).__name__, target)
        X = check_groups(self, X, y, groups, target)
        learner = RankSVM(
            loss=self.loss,
            kernel=self.kernel,
            kernel_params=self.kernel_params,
            group_weight=self.group_weight,
            n_basis=self.n_basis,
            basis=self.basis,
            tol=self.tol,
            max_iter=self.max_iter,
            solver=self.solver,
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
