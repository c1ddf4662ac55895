"""CoRankRLS: least-squares rankers of several views that agree on unscored items."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.checks import check_rows
from rankwise.estimators.co_problem import CoProblem, CoTask, fit_views, warn_about_flat_views
from rankwise.estimators.problem import ranking_losses
from rankwise.estimators.unscored import SemiSupervisedMixin, split_unscored
from rankwise.features import KernelParameters, View
from rankwise.frames import check_same_index
from rankwise.metrics import disagreement_error
from rankwise.model_selection.candidates import check_alphas, check_nus
from rankwise.model_selection.measures import mean_defined
from rankwise.targets import with_weights


@dataclass(eq=False, repr=False)
class CoRankRLS(SemiSupervisedMixin, KernelParameters):
    """Semi-supervised ranking by several views that are made to agree.

    Learns one function for each view from scored and unscored items by minimizing

        J(f) = Σ_v (1/W) Σ_k ω_k (δ_k − (f_v,i − f_v,j))² + α Σ_v ‖f_v‖²
             + ν Σ_{v,u} (1/W̄) Σ_k̄ ω_k̄ ((f_v,i − f_v,j) − (f_u,i − f_u,j))²

    over the pairs k of the scored items and the pairs k̄ of the unscored ones inside each group,
    W and W̄ their total weights ([CoRankRLS10] equation 17; the sum over v, u counts every two views
    twice). No pair is formed: time and memory are linear in the number of unscored items, and
    the system that is solved has one row for each feature or basis item of each view.

    Parameters
    ----------
    alpha : float
        Regularization, positive; as in `RankRLS`. The paper's λ is ``alpha * W``.
    nu : float
        How much views must agree, from 0 (independent models). The paper's ν is ``nu * W / W̄``.
    views : int or list of View
        A number draws so many random bases of all items, scored or not, with no item in two of
        them; they share the kernel below. A list gives each view its columns, kernel and basis.
    n_basis : int
        Basis items of a view that does not say otherwise; fewer where items run short. A
        linear `View` without a basis of its own uses its columns as they are.
    kernel, gamma, degree, coef0, kernel_params
        Kernel of the views if `views` is a number; as in `RankRLS`. Linear views differ only if
        they have fewer basis items than X has columns.
    cost, ties, group_weight
        As in `RankRLS`; the weight of groups holds for scored and unscored pairs.
    random_state : int, RandomState or None
        Seed of the choice of basis items.

    Attributes
    ----------
    views_ : list of FeatureMap
        Views with columns as numbers and the basis items they use.
    view_coef_ : list of ndarray
        For each view the weights of its columns or of its basis items.
    basis_indices_ : list of ndarray or None
        For each view the row numbers of its basis items; None for plain columns.
    n_scored_, n_unscored_ : int
        Number of rows with and without a score.
    n_pairs_ : int
        Number of scored pairs trained on.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    CoRankRLSCV : Chooses alpha and nu.
    View : Columns, kernel and basis of one view.

    Notes
    -----
    Without unscored rows views are made to agree on the scored ones. A group may hold scored and
    unscored rows; the unscored ones are then paired with each other only.

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

    alpha: float = 1e-3
    _: KW_ONLY
    nu: float = 1.0
    views: int | Sequence[View] = 2
    n_basis: int = 100
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    random_state: Any = None

    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from scored and unscored items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items, with and without a score.
        y : array-like of shape (n_items,)
            Scores (larger is better), NaN for a row without; or such a target of `make_target`.
        groups : array-like of shape (n_items,), optional
            Group labels of all rows, any hashable ones in any order; None compares all items.
        sample_weight : array-like of shape (n_items,), optional
            Weights of all rows, as in ``RankRLS.fit``; the rows on which views agree have theirs.

        Returns
        -------
        CoRankRLS
            The fitted estimator.
        """
        y, groups = with_weights(y, groups, sample_weight, X)
        return self._fit_problem(self._prepare(X, y, groups))

    def path(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike,
        nus: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> CoRankRLSPath:
        """The solutions of a whole list of alphas, for one nu or a list of them.

        [CoRankRLS10] section 5: for each nu one reduction of the stacked matrix serves all
        alphas, and the blocks that it is made of are built once. `alpha` of the estimator is
        ignored, and the estimator itself is left as it is.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.
        nus : array-like of shape (n_nus,), optional
            Numbers from 0 in any order; by default `nu` of the estimator.

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
        checked = check_alphas(alphas, "alphas")
        several = check_nus([self.nu], "nu") if nus is None else check_nus(nus, "nus")
        y, groups = with_weights(y, groups, sample_weight, X)
        coef = model._solve_for(model._prepare(X, y, groups), several, checked)
        return CoRankRLSPath(model, checked, several, coef, squeeze=nus is None)

    def hold_out_task(self, X: Any, y: Any, groups: ArrayLike | None = None) -> CoTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are alphas and nus. X, y and groups as in `fit`; the estimator is left as
        it is.
        """
        model = clone(self)
        problem = model._prepare(X, y, groups)
        return CoTask(
            problem,
            self.alpha,
            self.nu,
            lambda **values: model.set_params(**values)._fit_problem(problem),
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items by the mean of all views; larger is better, inside a group.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores.
        """
        return np.asarray(self.predict_views(X).mean(axis=1))

    def predict_views(self, X: Any) -> NDArray[Any]:
        """Score items by each view.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_views)
            Scores; `predict` is their mean.
        """
        check_is_fitted(self)
        return np.column_stack(self._scores(X, self.view_coef_))

    def view_disagreement(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """How differently the views order items, new ones for instance; no scores are needed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels.

        Returns
        -------
        ndarray of shape (n_views, n_views)
            Fraction of the pairs of a group that two views put in opposite order, averaged over
            groups; 0 if they always agree, about 0.5 if they know nothing of each other. Ties of
            one view only count one half; nan if a view ties everything.
        """
        F = self.predict_views(X)
        n = F.shape[1]
        out = np.zeros((n, n))
        for v, u in itertools.permutations(range(n), 2):
            error = disagreement_error(F[:, v], F[:, u], groups, per_group=True, undefined="nan")
            out[v, u] = mean_defined(np.asarray(error))
        return 0.5 * (out + out.T)

    def _prepare(self, X: Any, y: Any, groups: ArrayLike | None) -> CoProblem:
        """Check everything, choose the bases, and say what is to be minimized."""
        check_same_index(X=X, y=y, groups=groups)
        X = self._check_items(X, reset=True)
        part = split_unscored(y, groups, X.shape[0])
        options = (self.cost, self.ties, self.group_weight)
        losses, _ = ranking_losses(len(part.y), *part.target, *options, beta=0.0)
        shared = View(**self.kernel_arguments())
        names = getattr(self, "feature_names_in_", None)
        views = fit_views(self.views, shared, X, self.n_basis, self.random_state, names)
        return CoProblem(X, views, part, losses[0])

    def _solve_for(self, problem: CoProblem, nus: Array, alphas: Array) -> list[Array]:
        """Coefficients of each view, shape (n, n_nus, n_alphas); sets all attributes but them."""
        warn_about_flat_views(problem)
        coef, floor = problem.coefficients(nus, alphas)
        if alphas.min() < floor:
            warnings.warn(
                f"alpha={alphas.min():g} is lost in rounding beside nu={nus.max():g}; {floor:.2g} "
                "is used instead. Use a larger alpha or a smaller nu.",
                stacklevel=4,
            )
        self.views_ = list(problem.views)
        self.basis_indices_ = [view.basis for view in problem.views]
        self.n_scored_, self.n_unscored_ = len(problem.part.scored), len(problem.part.unscored)
        self.n_pairs_ = problem.loss.graph.n_pairs
        return coef

    def _fit_problem(self, problem: CoProblem) -> Self:
        alphas, nus = check_alphas([self.alpha], "alpha"), check_nus([self.nu], "nu")
        coef = self._solve_for(problem, nus, alphas)
        self.view_coef_ = [view[:, 0, 0] for view in coef]
        return self

    def _check_items(self, X: Any, *, reset: bool) -> Any:
        sparse = False if self.kernel == "precomputed" else "csr"
        return check_rows(self, X, accept_sparse=sparse, reset=reset)

    def _scores(self, X: Any, coef: Sequence[Array]) -> list[NDArray[Any]]:
        """Scores of each view, for coefficients of shape (n,) or (n, k)."""
        X = self._check_items(X, reset=False)
        return [view.scores(X, c) for view, c in zip(self.views_, coef, strict=True)]


class CoRankRLSPath:
    """Models along lists of nus and alphas, as `CoRankRLS.path` returns them.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    nus : ndarray of shape (n_nus,)
        In the order given; the `nu` of the estimator if none were given.
    view_coef : list of ndarray of shape (n, n_nus, n_alphas)
        For each view the weights of its columns or of its basis items.
    """

    def __init__(
        self,
        template: CoRankRLS,
        alphas: Array,
        nus: Array,
        view_coef: list[Array],
        *,
        squeeze: bool,
    ) -> None:
        self._template = template
        self._squeeze = squeeze
        self.alphas = alphas
        self.nus = nus
        self.view_coef = view_coef

    def __len__(self) -> int:
        return len(self.nus) * len(self.alphas)

    def predict(self, X: Any) -> NDArray[Any]:
        """Scores of all models, shape (n_items, n_nus, n_alphas), or without nus if none given."""
        flat = [coef.reshape(len(coef), -1) for coef in self.view_coef]
        scores = np.mean(self._template._scores(X, flat), axis=0)
        grid = (len(self.alphas),) if self._squeeze else (len(self.nus), len(self.alphas))
        return np.asarray(scores.reshape(len(scores), *grid))

    def model(self, alpha: int, nu: int = 0) -> CoRankRLS:
        """The fitted estimator of ``alphas[alpha]`` and ``nus[nu]``."""
        model = copy.copy(self._template)
        model.alpha, model.nu = float(self.alphas[alpha]), float(self.nus[nu])
        model.view_coef_ = [coef[:, nu, alpha].copy() for coef in self.view_coef]
        return model
