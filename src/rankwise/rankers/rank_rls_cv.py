"""RankRLSCV: RankRLS with parameters selected by exact cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from numpy.typing import ArrayLike

from rankwise.arrays import CrossValidation, MatrixLike, RandomState
from rankwise.graphs.supervision import TargetLike, read_y
from rankwise.kernels.kernel import KernelName
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.grid_search import grid_search
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.rankers.rank_rls import RankRLS
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.validation import restored_on_failure


class RankRLSCV(Search):
    """RankRLS with alpha and kernel parameters selected by exact cross-validation.

    Try this ranker first: it is one model, fast, and its held-out scores need no refits.

    With groups every alpha is evaluated by leave-group-out, for a single list by leave-pair-out.
    Both equal refits but need none ([RankRLS09] sections 3.2 to 3.4). The model is then trained on
    all data with the best parameters. Sparse X with very many columns, such as one-hot categories,
    is evaluated by five folds instead; their models are trained by iterations shared by all alphas.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=None
        Candidates. By default 40 values, two per decade, from the rounding error of the mean
        squared distance between the items of a pair to 1e4 times that distance. They suit features
        of any scale and any amount of data. A choice at the end of the list raises a warning.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable, default="auto"
        "auto" leaves out one group at a time, or one connected component of explicit preferences
        without groups. A single list is evaluated by leave-pair-out for up to 1,500 items if all
        its pairs are compared, without weights, and the metric counts pairs; else by ten folds of
        items. Other values as in `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str, Metric or function, default="disagreement"
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results_["predictions"]``.
    alpha_per_output : bool, default=False
        Whether to select one alpha for each column of y; ``alpha_`` is then an array.
    kernel : str or callable, default="linear"
        "linear"; any other name of `sklearn.metrics.pairwise.pairwise_kernels`; "ngram" for texts;
        a function of two items; or "precomputed" (X is then the kernel matrix).
    gamma : float or list of float, default=None
        Parameter of the named kernels, as in scikit-learn; a list of values is searched.
    degree : float or list of float, default=3
        Degree of the polynomial kernel; a list of values is searched.
    coef0 : float or list of float, default=1
        Constant of the polynomial and sigmoid kernels; a list of values is searched.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel; ``ngram_range=(1, 3)`` and ``shared=0`` of "ngram".
    cost : {"magnitude", "sign", "relative"}, default="magnitude"
        Target of a pair: the difference of y, 1, or the difference weighted by one over its square.
    ties : {"include", "exclude"} or list of them, default="include"
        Whether pairs with equal y are part of the loss, with a target of 0; only for
        ``cost="magnitude"``. A list of both is searched ([RankRLS09] section 5.2 compares all pairs
        with relevant pairs); a single list of items then needs a number of folds as `cv`.
    group_weight : {"pairs", "groups"}, default="pairs"
        Whether all pairs or all groups have equal weight.
    beta : float, default=0.0
        Mixture of ranking (0) and regression (1).
    n_basis : int, default=None
        Number of basis items of a sparse kernel model; None uses all items.
    basis : {"random", "kmeans++"}, array of int, or array of points, default="random"
        How the basis items are selected, their row numbers, or the points themselves.
    solver : {"auto", "primal", "dual", "iterative"}, default="auto"
        As in `RankRLS`; "auto" selects the cheapest.
    tol : float, default=1e-8
        Residual of the iterative solver, relative to the right-hand side.
    max_iter : int, default=None
        Maximum number of iterations of the iterative solver; None is ten times the number of
        features.
    random_state : int, RandomState or None, default=None
        Seed of the selection of basis items.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_outputs,)
        Selected alpha, or the alpha of each output.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the selected kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas)
        or (n_params, n_alphas, n_outputs), "group_score" (list of arrays of shape (n_groups,
        n_alphas)), "groups" (their labels), "n_undefined", "cv" (the cross-validation scheme), and
        "predictions" if they are stored. If comparisons were held out: "standard_error" of the
        means, which allows for comparisons that share items.
    best_estimator_ : RankRLS
        The model trained on all data.
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, solver_, nuisance_coef_, nuisance_se_, \
nuisance_names_
        As in `RankRLS`.

    Examples
    --------
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = RankRLSCV(scoring="ndcg@10").fit(X, y, groups)
    >>> round(model.best_score_, 3), model.cv_results_["cv"]
    (0.932, 'leave-group-out')
    """

    multi_output = True
    takes_nuisance = True

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        cv: CrossValidation = "auto",
        scoring: MetricName = "disagreement",
        store_predictions: bool = False,
        alpha_per_output: bool = False,
        kernel: KernelName = "linear",
        gamma: float | Sequence[float] | None = None,
        degree: float | Sequence[float] = 3,
        coef0: float | Sequence[float] = 1,
        kernel_params: dict[str, object] | None = None,
        cost: str = "magnitude",
        ties: str | Sequence[str] = "include",
        group_weight: str = "pairs",
        beta: float = 0.0,
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.store_predictions = store_predictions
        self.alpha_per_output = alpha_per_output
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.beta = beta
        self.n_basis = n_basis
        self.basis = basis
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
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
            As in ``RankRLS.fit``. The weights also apply to the evaluation of held-out items.
        time : array-like of shape (n_items,), default=None
            Time of each item, as dates or numbers. Groups are then evaluated by models of earlier
            groups only, in five blocks; `cv` must then keep its default.
        nuisance : array-like or data frame, default=None
            As in ``RankRLS.fit``. Held-out items are evaluated by f(x) without the effects of these
            columns.

        Returns
        -------
        RankRLSCV
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, nuisance, X=X)
        X = check_groups(self, X, y, groups, target)
        learner = RankRLS(
            kernel=self.kernel,
            kernel_params=self.kernel_params,
            cost=self.cost,
            group_weight=self.group_weight,
            beta=self.beta,
            n_basis=self.n_basis,
            basis=self.basis,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        result = grid_search(
            learner,
            (X, target),
            candidates={"alpha": self.alphas},
            parameter_lists={
                "gamma": self.gamma,
                "degree": self.degree,
                "coef0": self.coef0,
                "ties": self.ties,
            },
            cv=self.cv,
            scoring=self.scoring,
            time=time,
            store_predictions=self.store_predictions,
            alpha_per_output=self.alpha_per_output,
        )
        return self._store_search(result)
