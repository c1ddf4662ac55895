"""CoRankRLS: least-squares rankers of several views that agree on unscored items."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices, MatrixLike, ParameterValue, RandomState
from rankwise.caching import cached_property
from rankwise.errors import warn_user
from rankwise.fitted_schema import FittedSchema, Floats, Ints, ListOf, Record, Values
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import Preferences, TargetLike, TrainingTarget, read_y
from rankwise.groups import encode_groups
from rankwise.kernels.basis import basis_map
from rankwise.kernels.feature_maps import BasisFeatures, ColumnFeatures
from rankwise.kernels.kernel import Kernel, KernelName
from rankwise.kernels.solver_input import LazyFeatures
from rankwise.kernels.views import View, check_views, view_columns
from rankwise.losses import SquaredLoss
from rankwise.metrics import get_metric
from rankwise.metrics.metric import nanmean_by_group
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.model_selection.shortcuts import check_pairs_remain
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import HoldOutMixin, RankerMixin
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.semi_supervised import (
    PartialTarget,
    check_agreement,
    split_isolated,
    split_unscored,
)
from rankwise.rankers.several_outputs import outputs_have_own_pairs
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.least_squares import solve_shifted
from rankwise.validation import (
    check_alphas,
    check_float_array,
    check_int,
    check_nus,
    restored_on_failure,
)

ViewMap = ColumnFeatures | BasisFeatures

NUS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # large values may be best if few items have scores


class CoRankRLS(HoldOutMixin, RankerMixin, BaseEstimator):
    """Semi-supervised ranking by several views that are made to agree.

    Use it if few items are scored, many are not, and there are two independent descriptions of
    them. Compare it with `RankRLSCV` on the scored items: on most data it is not better.

    One function for each view is learned from scored and unscored items by minimizing

        J(f) = Σ_v (1/W) Σ_k ω_k (δ_k − (f_v,i − f_v,j))² + α Σ_v ‖f_v‖²
             + ν Σ_{v,u} (1/W̄) Σ_k̄ ω_k̄ ((f_v,i − f_v,j) − (f_u,i − f_u,j))²

    over the pairs k of the scored items and the pairs k̄ of the unscored ones inside each group,
    with total weights W and W̄ ([CoRankRLS10] equation 17; the sum over v, u counts each pair of
    views twice). No pair is formed: time and memory are linear in the number of unscored items, and
    the linear system has one row for each feature or basis item of each view.

    Parameters
    ----------
    alpha : float, default=0.001
        Regularization, positive; as in `RankRLS`. The paper's λ is ``alpha * W``.
    nu : float, default=1.0
        Weight of the agreement of the views; 0 gives independent models. The paper's ν is
        ``nu * W / W̄``.
    views : int or list of View, default=2
        A number draws this many disjoint random bases from all items, scored or not; all views have
        the kernel of the parameters below. A list specifies columns, kernel and basis of each view.
    view_weights : array-like of shape (n_views,), optional
        Weights of the views in the prediction, such as one minus their held-out errors, 0 or
        larger. None is the unweighted mean of the views.
    n_basis : int, default=100
        Number of basis items of a view without its own `n_basis`; fewer if there are not enough
        items. A linear `View` without a basis uses its columns.
    kernel, gamma, degree, coef0, kernel_params
        Kernel of the views if `views` is a number; as in `RankRLS`, with the same defaults. Linear
        views differ only if they have fewer basis items than X has columns.
    cost, ties, group_weight
        As in `RankRLS`, with the same defaults; `group_weight` applies to scored and unscored
        pairs.
    random_state : int, RandomState or None, default=None
        Seed of the choice of basis items.

    Attributes
    ----------
    views_ : list of ColumnFeatures or BasisFeatures
        Fitted views, with the numbers of their columns and their basis items.
    view_coef_ : list of ndarray of shape (n,) or (n, n_outputs)
        For each view the weights of its columns or of its basis items.
    basis_indices_ : list of ndarray or None
        For each view the row numbers of its basis items; None for a view of columns.
    n_scored_, n_unscored_ : int
        Number of rows with and without a score.
    n_pairs_ : int
        Number of scored pairs trained on.
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
    CoRankRLSCV : Selects alpha and nu.
    View : Columns, kernel and basis of one view.

    Notes
    -----
    Without unscored rows the views are made to agree on the scored rows. A group may contain scored
    and unscored rows; its unscored rows are then paired only with each other.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import CoRankRLS, View
    >>> X = np.array([[0.0, 1], [1, 3], [2, 5], [7, 15], [8, 17], [9, 19]])
    >>> y = [1, 2, 3, np.nan, np.nan, np.nan]
    >>> model = CoRankRLS(0.01, views=[View([0]), View([1])])
    >>> model.fit(X, y, groups=[1, 1, 1, 2, 2, 2]).rank(X[3:])
    array([3, 2, 1])
    >>> model.view_disagreement(X)
    array([[0., 0.],
           [0., 0.]])
    """

    _fitted: ClassVar[FittedSchema] = {
        "views_": ListOf(Record(ColumnFeatures, BasisFeatures)),
        "view_coef_": ListOf(Floats("terms", "terms outputs")),
        "basis_indices_": ListOf(Ints("samples", optional=True)),
        "n_scored_": Values(),
        "n_unscored_": Values(),
        "n_pairs_": Values(),
    }

    allows_unscored = True
    multi_output = True

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        nu: float = 1.0,
        views: int | Sequence[View] = 2,
        view_weights: ArrayLike | None = None,
        n_basis: int = 100,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.nu = nu
        self.views = views
        self.view_weights = view_weights
        self.n_basis = n_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
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
        agreement: PreferenceGraph | None = None,
    ) -> Self:
        """Learn from scored and unscored items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items, with and without a score.
        y : array-like of shape (n_items,) or (n_items, n_outputs), or a preference graph
            Scores (larger is better), NaN for rows without a score; or such a target of
            `make_target`. Several outputs require the same scored rows and ``cost="magnitude",
            ties="include"``. The items of a graph that are in no pair count as rows without a
            score. A `PairGraph` of explicit preferences, W of [CoRankRLS10] section 2, needs groups
            or `agreement`.
        groups : array-like of shape (n_items,), optional
            Group labels of all rows, hashable and in any order; None compares all items.
        sample_weight : array-like of shape (n_items,), optional
            Weights of all rows, as in ``RankRLS.fit``; they also apply to the agreement of the
            views.
        agreement : preference graph, default=None
            Pairs of rows of X on whose differences the views agree, with weights: the W̃ of
            [CoRankRLS10] section 2, such as ``PairGraph(i, j, weight, n_items=len(X))``. Which item
            of a pair is preferred is not used. By default all pairs of rows without a score in a
            group.

        Returns
        -------
        CoRankRLS
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, X=X, allow_nan=True)
        X = check_groups(self, X, y, groups, target)
        task = self._prepare(X, target, agreement)
        task.train(alpha=self.alpha, nu=self.nu)
        return self

    @single_threaded
    def path(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike,
        nus: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        agreement: PreferenceGraph | None = None,
    ) -> CoRankRLSPath:
        """Models for a list of alphas, and for one nu or a list of nus.

        For each nu one reduction of the stacked matrix serves all alphas, and the blocks of that
        matrix are computed once ([CoRankRLS10] section 5). `alpha` of the estimator is ignored, and
        the estimator is not modified.

        Parameters
        ----------
        X, y, groups, sample_weight, agreement
            As in `fit`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.
        nus : array-like of shape (n_nus,), optional
            Numbers that are at least 0, in any order; by default `nu` of the estimator.

        Returns
        -------
        CoRankRLSPath
            The models of all nus and alphas.

        Examples
        --------
        >>> from rankwise import CoRankRLS, View
        >>> model = CoRankRLS(views=[View([0]), View([1])])
        >>> X, y = [[0.0, 0], [1, 1], [3, 2], [4, 5]], [0, 1, 2, float("nan")]
        >>> path = model.path(X[:3], y[:3], alphas=[0.1, 1.0], nus=[0.0, 1.0, 10.0])
        >>> path.predict(X).shape
        (4, 3, 2)
        """
        model = clone(self)
        checked_alphas = check_alphas(alphas, "alphas")
        if nus is None:
            checked_nus = check_nus([self.nu], "nu")
        else:
            checked_nus = check_nus(nus, "nus")
        target = read_y(y, groups, sample_weight, X=X, allow_nan=True)
        task = model._prepare(X, target, agreement)
        view_coef = task.coefficients(checked_nus, checked_alphas)
        return CoRankRLSPath(checked_alphas, checked_nus, view_coef, model, squeeze=nus is None)

    @single_threaded
    def predict(self, X: MatrixLike) -> Array:
        """Score items by the (weighted) mean of all views; larger is better, inside a group.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Scores.
        """
        check_is_fitted(self)
        return self._mean_of_views(self._scores_of_views(X, self.view_coef_))

    def predict_views(self, X: MatrixLike) -> Array:
        """Score items by each view.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_views) or (n_items, n_views, n_outputs)
            Scores; `predict` is their (weighted) mean.
        """
        check_is_fitted(self)
        return np.stack(self._scores_of_views(X, self.view_coef_), axis=1)

    def kernel_expansion(self) -> KernelExpansion:
        """Kernel expansion of the scores: the function of each view.

        Returns
        -------
        KernelExpansion
            Basis items and coefficients.
        """
        n_views = len(self.views_)
        # the expansion is the plain mean of its functions: weights are put into the coefficients
        factor_of_view = np.ones(n_views)
        if self.view_weights is not None:
            factor_of_view = n_views * self._normalized_view_weights(n_views)
        coefficients = [
            factor * coef.reshape(len(coef), -1)  # (n, n_outputs)
            for factor, coef in zip(factor_of_view, self.view_coef_, strict=True)
        ]
        output_shape = self.view_coef_[0].shape[1:]
        return KernelExpansion(list(self.views_), coefficients, output_shape=output_shape)

    def _normalized_view_weights(self, n_views: int) -> Array:
        """Weights of the views in the prediction; their sum is 1."""
        if self.view_weights is None:
            return np.full(n_views, 1.0 / n_views)
        weights = check_float_array("view_weights", self.view_weights)
        if weights.shape != (n_views,) or (weights < 0).any() or not weights.any():
            raise ValueError(
                f"view_weights={self.view_weights!r}; expected a weight of at least 0 for each of "
                f"the {n_views} views, and one above 0."
            )
        return np.asarray(weights / weights.sum())

    def _mean_of_views(self, scores_of_views: list[Array]) -> Array:
        """The (weighted) mean of the scores of the views."""
        if self.view_weights is None:
            return np.asarray(np.mean(scores_of_views, axis=0))
        weights = self._normalized_view_weights(len(scores_of_views))
        return np.tensordot(weights, np.array(scores_of_views), axes=1)

    def view_disagreement(self, X: MatrixLike, groups: ArrayLike | None = None) -> Array:
        """Share of the pairs of items that two views order differently.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels.

        Returns
        -------
        ndarray of shape (n_views, n_views)
            Fraction of the pairs of a group that two views order differently, averaged over groups;
            0 if they always agree, about 0.5 if they are unrelated. A pair that only one view ties
            counts as one half; nan if a view ties all pairs.
        """
        scores = np.ascontiguousarray(self.predict_views(X).T)  # (n_views, n_items)
        if scores.ndim > 2:
            raise ValueError(
                f"view_disagreement compares views of one output, but the model has {len(scores)}; "
                "fit a model for each column of y."
            )
        n_views, n_items = scores.shape
        encoded_groups = encode_groups(groups, n_items)
        metric = get_metric("disagreement")
        errors = np.zeros((n_views, n_views))
        for v, u in itertools.permutations(range(n_views), 2):
            # view v as the truth, view u as the prediction
            ranking = Ranking(GroupedTargets(scores[v], encoded_groups), scores[u])
            errors[v, u] = nanmean_by_group(metric.by_group(ranking).values)
        return 0.5 * (errors + errors.T)  # the mean, as pairs tied in the truth do not count

    def _prepare(
        self, X: MatrixLike, target: TrainingTarget, agreement: PreferenceGraph | None = None
    ) -> CoTask:
        """Validate the data, choose the bases, and return the task that minimizes the objective."""
        X = validate_X(self, X)
        partial_target = self._split_scored(target, X.shape[0], agreement)
        loss = partial_target.loss(self.cost, self.ties, self.group_weight)  # of the scored rows
        self.views_ = self._make_views(X)
        self._normalized_view_weights(len(self.views_))  # checks the number of weights
        self.view_coef_: list[Array] = []  # set by the task
        self.basis_indices_ = [
            view.basis if isinstance(view, BasisFeatures) else None for view in self.views_
        ]
        self.n_scored_ = len(partial_target.scored)
        self.n_unscored_ = len(partial_target.unscored)
        self.n_pairs_ = loss.graph.n_pairs
        return CoTask(self, X, partial_target, loss)

    def _split_scored(
        self, target: TrainingTarget, n_items: int, agreement: PreferenceGraph | None
    ) -> PartialTarget:
        """Separate scored from unscored rows; for a graph, rows in a pair from all other rows."""
        if isinstance(target, Preferences):
            partial_target: PartialTarget = split_isolated(target.graph, n_items, agreement)
        elif outputs_have_own_pairs(target, self.cost, self.ties):
            raise ValueError(
                f"y has shape {target.y.shape}; several outputs need cost='magnitude' and "
                f"ties='include', whose pairs are the same in all of them, but got "
                f"cost={self.cost!r} and ties={self.ties!r}; fit a model for each column."
            )
        else:
            partial_target = split_unscored(target, n_items)
        if agreement is None:
            return partial_target
        check_agreement(agreement, n_items)
        return replace(partial_target, agreement_graph=agreement)

    def _make_views(self, X: MatrixLike) -> list[ViewMap]:
        """Feature maps of the views: those of a list of View, or random bases of all items."""
        rng = check_random_state(self.random_state)
        n_basis = check_int("n_basis", self.n_basis, least=1)
        if isinstance(self.views, int | np.integer):
            return self._random_views(X, int(self.views), n_basis, rng)
        default_n_basis = min(n_basis, X.shape[0])
        names = getattr(self, "feature_names_in_", None)
        return [
            self._view_map(view, X, default_n_basis, names, rng) for view in check_views(self.views)
        ]

    def _random_views(
        self, X: MatrixLike, n_views: int, n_basis: int, rng: np.random.RandomState
    ) -> list[ViewMap]:
        """Views with disjoint random bases and the kernel of the estimator."""
        n_items, n_features = X.shape
        if not 1 <= n_views <= n_items:
            raise ValueError(
                f"views={n_views}; expected a number of views from 1 to {n_items}, the number of "
                "training items, or a list of View."
            )
        basis_size = min(n_basis, n_items // n_views)  # so that no two views share a basis item
        if n_views > 1 and self.kernel == "linear" and basis_size >= n_features:
            warn_user(
                f"{n_views} linear views of all {n_features} features with {basis_size} basis "
                "items each are the same view: each of them is the model of RankRLS. Use a kernel, "
                "fewer basis items than features, or a list of View with different columns.",
            )
        shuffled_rows = rng.permutation(n_items)
        bases = shuffled_rows[: n_views * basis_size].reshape(n_views, basis_size)
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params or {})
        return [
            basis_map(kernel, X, n_basis=None, basis=np.sort(rows), random_state=rng)
            for rows in bases
        ]

    def _view_map(
        self,
        view: View,
        X: MatrixLike,
        default_n_basis: int,
        names: Sequence[str] | None,
        rng: np.random.RandomState,
    ) -> ViewMap:
        """Feature map of a View: its columns, or kernel values to its basis."""
        n_features = X.shape[1]
        kernel = view.make_kernel()
        columns = view_columns(view, n_features, names)
        has_basis = view.n_basis is not None or not isinstance(view.basis, str)
        if kernel.is_linear and not has_basis:  # the columns are the features
            n_columns = n_features if columns is None else len(columns)
            return ColumnFeatures(columns, n_columns)
        # None where `view.basis` has row numbers or points
        n_basis = view.n_basis if has_basis else default_n_basis
        return basis_map(kernel, X, n_basis, view.basis, rng, columns)

    def _scores_of_views(self, X: MatrixLike, coef_of_views: Sequence[Array]) -> list[NDArray[Any]]:
        """Scores of each view, for coefficients of shape (n,) or (n, n_columns)."""
        X = validate_X(self, X, reset=False)
        return [view.scores(X, coef) for view, coef in zip(self.views_, coef_of_views, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class CoRankRLSPath:
    """Models along lists of nus and alphas, as `CoRankRLS.path` returns them.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    nus : ndarray of shape (n_nus,)
        In the order given; `nu` of the estimator if no nus were passed.
    view_coef : list of ndarray of shape (n, n_nus, n_alphas) or (n, n_outputs, n_nus, n_alphas)
        For each view the weights of its columns or of its basis items.
    template : CoRankRLS
        The estimator, without coefficients.
    squeeze : bool
        Whether predictions lack the axis of nus.
    """

    alphas: Array
    nus: Array
    view_coef: list[Array]
    template: CoRankRLS
    squeeze: bool

    def __len__(self) -> int:
        return len(self.nus) * len(self.alphas)

    @single_threaded
    def predict(self, X: MatrixLike) -> Array:
        """Scores of all models.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_nus, n_alphas) or (n_items, n_outputs, n_nus, n_alphas)
            Scores, without the axis of nus if no nus were passed to `path`.
        """
        # view_coef of each view: (n, *output_shape, n_nus, n_alphas), here one column per model
        columns_of_views = [coef.reshape(len(coef), -1) for coef in self.view_coef]
        scores_of_views = self.template._scores_of_views(X, columns_of_views)
        scores = self.template._mean_of_views(scores_of_views)
        grid_shape: tuple[int, ...] = (len(self.nus), len(self.alphas))
        if self.squeeze:
            grid_shape = (len(self.alphas),)
        output_shape = self.view_coef[0].shape[1:-2]
        return np.asarray(scores.reshape(len(scores), *output_shape, *grid_shape))

    def model(self, alpha: int, nu: int = 0) -> CoRankRLS:
        """The fitted estimator of ``alphas[alpha]`` and ``nus[nu]``.

        Parameters
        ----------
        alpha : int
            Position in `alphas`.
        nu : int, default=0
            Position in `nus`.

        Returns
        -------
        CoRankRLS
            The fitted estimator.
        """
        model = copy.copy(self.template)
        model.alpha = float(self.alphas[alpha])  # alpha and nu are positions in the grid
        model.nu = float(self.nus[nu])
        model.view_coef_ = [coef[..., nu, alpha].copy() for coef in self.view_coef]
        return model


class CoTask(HoldOutTask):
    """Solutions of CoRankRLS for any alpha and nu, also without some of the scored rows.

    In the coordinates of the features R_v, where ‖f_v‖² = ‖w_v‖², [CoRankRLS10] equation 18 reads

        (B + ν C + λ I) w = E

    with B and E from the scored items, block by block, and C from the unscored ones. The three do
    not depend on λ or ν: one reduction of ``B + ν C`` serves all λ (section 5), and the same B, C
    and E serve all ν. Only scored rows are held out.

    Parameters
    ----------
    learner : CoRankRLS
        The learner with its parameters and views.
    X : array or sparse matrix
        All items.
    target : PartialTarget
        Which rows are scored.
    loss : SquaredLoss
        Loss of the scored rows.
    """

    parameters = ("alpha", "nu")

    def __init__(
        self, learner: CoRankRLS, X: MatrixLike, target: PartialTarget, loss: SquaredLoss
    ) -> None:
        super().__init__(learner, loss.graph, rows=target.scored, n_rows=X.shape[0])
        self.output_shape = loss.target.shape[1:]
        self._X = X
        self.target = target
        self.loss = loss
        self.views = learner.views_
        self._n_features_of_views = [view.n_features for view in self.views]

    @cached_property
    def normal_equations(self) -> tuple[Array, Array]:
        """B, with one block ``R_vᵀ L R_v / W`` for each view, and E, the stacked ``R_vᵀ d / W``."""
        n_features = sum(self._n_features_of_views)
        advice = "give the views fewer columns or a smaller n_basis, linear ones, too"
        check_matrix_fits(n_features, n_features, "the stacked system of all views", advice)

        # of each view: Rᵀ L R and the right side Rᵀ d, over the total weight of the pairs
        # R: features of the view, L: Laplacian of the pairs, d: their divergence
        X_scored = self._X[self.target.scored]
        gram_of_views = []
        right_side_of_views = []
        for view in self.views:
            gram, right_side = self.loss.system(view.transform(X_scored))
            gram_of_views.append(gram)
            right_side_of_views.append(right_side)
        return scipy.linalg.block_diag(*gram_of_views), np.concatenate(right_side_of_views)

    @cached_property
    def disagreement_matrix(self) -> Array:
        """C, with wᵀ C w the disagreement between all views.

            wᵀ C w = Σ_{v,u} (1/W̄) Σ_{pairs} ((f_v − f_u)_i − (f_v − f_u)_j)²

        so ``C_vv = 2(M−1) R_vᵀ L̄ R_v / W̄`` and ``C_vu = −2 R_vᵀ L̄ R_u / W̄``; all blocks come from
        one Gram matrix of the stacked features, in time linear in the number of items.
        """
        n_views = len(self.views)
        n_features = sum(self._n_features_of_views)
        agreeing_rows, agreement = self.target.agreement(self.loss.graph.group_weight)
        if n_views == 1 or not agreement.n_pairs:
            return np.zeros((n_features, n_features))

        # blocks R_vᵀ L̄ R_u for all views v and u, with R_v: features of view v, L̄: Laplacian of
        # the agreement; a block has the factor n_views − 1 if v = u, else −1
        stacked_gram = agreement.gram(LazyFeatures(self.views, self._X, agreeing_rows))
        view_of_feature = np.repeat(np.arange(n_views), self._n_features_of_views)
        is_same_view = view_of_feature[:, None] == view_of_feature
        block_factor = np.where(is_same_view, n_views - 1.0, -1.0)
        # 2: the disagreement sums over ordered pairs of views, (v, u) and (u, v)
        return block_factor * stacked_gram * (2.0 / agreement.total_weight)

    def coefficients(
        self, nus: Array, alphas: Array, *, warn_of_raised_alpha: bool = True
    ) -> list[Array]:
        """Coefficients of each view, shape (n, *output_shape, n_nus, n_alphas).

        [CoRankRLS10] section 5: one reduction for each nu serves all alphas. An alpha below the
        rounding error of B + ν C is raised to it, with a warning, so that a huge ν cannot make the
        system indefinite.
        """
        gram, right_side = self.normal_equations
        weights_by_nu = []
        largest_rounding_error = 0.0
        for nu in nus:
            # solve (gram + nu · disagreement + alpha · I) w = right_side for all alphas at once
            matrix = gram + nu * self.disagreement_matrix
            rounding_error = len(matrix) * np.finfo(float).eps * float(np.diag(matrix).max())
            largest_rounding_error = max(largest_rounding_error, rounding_error)
            raised_alphas = np.maximum(alphas, rounding_error)  # so that all are definite
            weights, _ = solve_shifted(matrix, right_side, shifts=raised_alphas)
            weights_by_nu.append(weights.transpose(1, 2, 0))  # (n_features, n_outputs, n_alphas)

        if warn_of_raised_alpha and alphas.min() < largest_rounding_error:
            warn_user(
                f"alpha={alphas.min():g} is below the rounding error of a system with "
                f"nu={nus.max():g}; {largest_rounding_error:.2g} is used instead. Use a larger "
                "alpha or a smaller nu.",
            )
        stacked_weights = np.stack(weights_by_nu, axis=2)
        return self._coefficients_of_each_view(stacked_weights)

    def _coefficients_of_each_view(self, stacked_weights: Array) -> list[Array]:
        """Coefficients of the columns or basis items of each view, from stacked weights of R_v."""
        # stacked_weights: (n_features of all views, n_outputs, n_nus, n_alphas)
        grid_shape = stacked_weights.shape[2:]
        view_ends = np.cumsum(self._n_features_of_views)
        weights_of_views = np.split(stacked_weights, view_ends[:-1])
        coefficients = []
        for view, view_weights in zip(self.views, weights_of_views, strict=True):
            weight_columns = view_weights.reshape(len(view_weights), -1)
            coef_columns = view.coefficients(weight_columns)  # of columns of X, or of basis items
            coefficients.append(coef_columns.reshape(-1, *self.output_shape, *grid_shape))
        return coefficients

    def default_values(self, name: str) -> Array:
        """40 alphas as for RankRLS, averaged over the views, and seven nus."""
        if name == "nu":
            return np.array(NUS)
        gram, _ = self.normal_equations
        # the trace sums the mean squared distances in a pair over the views
        mean_squared_distance = float(np.trace(gram)) / len(self.views)
        return default_alphas(mean_squared_distance)

    def scores_without(self, test_items: Indices, candidates: CandidateGrid) -> Array:
        """Mean scores of views that were trained without some scored rows.

        `test_items` are positions among the scored rows. Held-out rows are also excluded from the
        agreement of the views. If the views agree on the unscored rows, C is the same for all folds
        and is computed once.
        """
        n_scored = len(self.target.scored)
        train_items = np.delete(np.arange(n_scored), test_items)
        train_loss = SquaredLoss(self.loss.graph.subset(train_items))
        check_pairs_remain(train_loss.graph.n_pairs > 0)
        train_task = CoTask(self.learner, self._X, self.target.without(test_items), train_loss)
        if self.target.has_unscored_pairs:  # the agreement is then the same in all folds
            train_task.disagreement_matrix = self.disagreement_matrix

        nus = candidates.axes["nu"]
        alphas = candidates.axes["alpha"]
        coefficients = train_task.coefficients(nus, alphas, warn_of_raised_alpha=False)

        test_rows = self.target.scored[test_items]
        X_test = self._X[test_rows]
        scores_of_views = [
            view.scores(X_test, coef.reshape(len(coef), -1))
            for view, coef in zip(self.views, coefficients, strict=True)
        ]
        learner: CoRankRLS = self.learner
        scores = learner._mean_of_views(scores_of_views)
        return scores.reshape(len(test_items), -1, len(candidates))  # -1: outputs

    def train(self, **values: ParameterValue) -> CoRankRLS:
        """The learner trained on all data."""
        learner: CoRankRLS = self.learner.set_params(**values)
        nus = check_nus([learner.nu], "nu")
        alphas = check_alphas([learner.alpha], "alpha")
        coefficients = self.coefficients(nus, alphas)
        learner.view_coef_ = [coef[..., 0, 0] for coef in coefficients]  # of the only nu and alpha
        return learner
