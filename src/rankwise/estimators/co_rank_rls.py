"""CoRankRLS: least-squares rankers of several views that agree on unscored items."""

from __future__ import annotations

import copy
import itertools
import numbers
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.estimators.anatomy import ScoreFunctions
from rankwise.estimators.base import RankerMixin, Search
from rankwise.estimators.training_data import PartlyScored, check_rows, split_unscored
from rankwise.features.feature_map import FeatureMap, FeatureRows
from rankwise.features.kernel import KernelParameters
from rankwise.features.view import View, check_views, fit_view
from rankwise.groups import encode_groups
from rankwise.inputs import as_whole, check_alphas, read_target
from rankwise.losses import SquaredLoss
from rankwise.machine import calm, check_matrix_fits
from rankwise.metrics import get_metric
from rankwise.metrics.averaging import mean
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.model_selection.hold_out import check_rest
from rankwise.model_selection.task import Candidates, HoldOutTask, default_alphas
from rankwise.solvers.least_squares import solve_shifted

NUS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # with few scores large ones may be best
FLAT = 1e-24  # scatter of a constant view, relative to the square of its features


@dataclass(eq=False, repr=False, kw_only=True)
class CoParameters:
    """Parameters of CoRankRLS and its search, each declared once."""

    allows_unscored = True

    views: int | Sequence[View] = 2
    n_basis: int = 100
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    random_state: Any = None


@dataclass(eq=False, repr=False)
class CoRankRLS(CoParameters, RankerMixin, KernelParameters):
    """Semi-supervised ranking by several views that are made to agree.

    Use it if few items are scored, many are not, and there are two independent descriptions of
    them. Compare it with `RankRLSCV` on the scored items: on most data it brings nothing.

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

    @calm
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
        return self._fit_task(self._prepare(X, y, groups, sample_weight))

    @calm
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
        several = check_alphas([self.nu], "nu") if nus is None else check_alphas(nus, "nus")
        coef = model._solve(model._prepare(X, y, groups, sample_weight), several, checked)
        return CoRankRLSPath(checked, several, coef, model, squeeze=nus is None)

    def hold_out_task(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> CoTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are alphas and nus. The data are those of `fit`, or y is a `Target` that was
        read already; the estimator is left as it is.
        """
        task: CoTask = clone(self)._prepare(X, y, groups, sample_weight)
        return task

    @calm
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

    def score_functions(self) -> ScoreFunctions:
        """What the scores are made of: the function of each view."""
        return ScoreFunctions(list(self.views_), [coef[:, None] for coef in self.view_coef_])

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
        scores = np.ascontiguousarray(self.predict_views(X).T)
        metric, encoded = get_metric("disagreement"), encode_groups(groups, scores.shape[1])
        out = np.zeros((len(scores), len(scores)))
        for v, u in itertools.permutations(range(len(scores)), 2):
            ranking = Ranking(Targets(scores[v], encoded), scores[u])
            out[v, u] = mean(metric.by_group(ranking).values)
        return 0.5 * (out + out.T)

    def _prepare(
        self, X: Any, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> CoTask:
        """Check everything, choose the bases, and say what is to be minimized."""
        known = read_target(y, groups, sample_weight, X=X, allow_nan=True)
        X = check_rows(self, X)
        target = split_unscored(known, X.shape[0])
        loss = target.loss(self.cost, self.ties, self.group_weight)
        return CoTask(self, X, self._fit_views(X), target, loss)

    def _fit_views(self, X: Any) -> list[FeatureMap]:
        """The views that the user gave, or as many random bases of all items as asked for."""
        rng = check_random_state(self.random_state)
        n_basis = as_whole("n_basis", self.n_basis, least=1)
        if isinstance(self.views, numbers.Integral) and not isinstance(self.views, bool):
            views = self._random_bases(int(self.views), X, rng)
        else:
            views = check_views(self.views)
        names = getattr(self, "feature_names_in_", None)
        return [fit_view(view, X, rng, n_basis=n_basis, names=names) for view in views]

    def _random_bases(self, n_views: int, X: Any, rng: np.random.RandomState) -> list[View]:
        """Views that differ in their basis alone; no item is in two of them."""
        n_items, n_features = X.shape
        if not 1 <= n_views <= n_items:
            raise ValueError(
                f"views={n_views}; expected a number of views from 1 to {n_items}, the number of "
                "training items, or a list of View."
            )
        size = min(self.n_basis, n_items // n_views)
        if n_views > 1 and self.kernel == "linear" and size >= n_features:
            warn_user(
                f"{n_views} linear views of all {n_features} features with {size} basis items each "
                "are the same view: all of them learn what RankRLS learns. Use a kernel, fewer "
                "basis items than features, or a list of View with different columns.",
            )
        rows = rng.permutation(n_items)[: n_views * size].reshape(n_views, size)
        return [View(**self.kernel_arguments(), basis=np.sort(basis)) for basis in rows]

    def _fit_task(self, task: CoTask) -> Self:
        alphas, nus = check_alphas([self.alpha], "alpha"), check_alphas([self.nu], "nu")
        self.view_coef_ = [coef[:, 0, 0] for coef in self._solve(task, nus, alphas)]
        return self

    def _solve(self, task: CoTask, nus: Array, alphas: Array) -> list[Array]:
        """Coefficients of each view, shape (n, n_nus, n_alphas); sets all attributes but them."""
        task.warn_about_flat_views()
        coef, floor = task.coefficients(nus, alphas)
        if alphas.min() < floor:
            warn_user(
                f"alpha={alphas.min():g} is lost in rounding beside nu={nus.max():g}; {floor:.2g} "
                "is used instead. Use a larger alpha or a smaller nu.",
            )
        self.views_ = list(task.views)
        self.basis_indices_ = [view.basis for view in task.views]
        self.n_scored_, self.n_unscored_ = len(task.target.scored), len(task.target.unscored)
        self.n_pairs_ = task.loss.graph.n_pairs
        return coef

    def _scores(self, X: Any, coef: Sequence[Array]) -> list[NDArray[Any]]:
        """Scores of each view, for coefficients of shape (n,) or (n, k)."""
        X = check_rows(self, X, reset=False)
        return [view.scores(X, c) for view, c in zip(self.views_, coef, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
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
    template : CoRankRLS
        The estimator, without coefficients.
    squeeze : bool
        Whether predictions have no axis of nus.
    """

    alphas: Array
    nus: Array
    view_coef: list[Array]
    template: CoRankRLS
    squeeze: bool

    def __len__(self) -> int:
        return len(self.nus) * len(self.alphas)

    @calm
    def predict(self, X: Any) -> NDArray[Any]:
        """Scores of all models, shape (n_items, n_nus, n_alphas), or without nus if none given."""
        flat = [coef.reshape(len(coef), -1) for coef in self.view_coef]
        scores = np.mean(self.template._scores(X, flat), axis=0)
        grid = (len(self.alphas),) if self.squeeze else (len(self.nus), len(self.alphas))
        return np.asarray(scores.reshape(len(scores), *grid))

    def model(self, alpha: int, nu: int = 0) -> CoRankRLS:
        """The fitted estimator of ``alphas[alpha]`` and ``nus[nu]``."""
        model = copy.copy(self.template)
        model.alpha, model.nu = float(self.alphas[alpha]), float(self.nus[nu])
        model.view_coef_ = [coef[:, nu, alpha].copy() for coef in self.view_coef]
        return model


class CoSystem(NamedTuple):
    """The blocks of [CoRankRLS10] equation 18.

    In the coordinates of the features R_v, where ‖f_v‖² = ‖w_v‖², the equation reads

        (B + ν C + λ I) w = E

    with B and E from the scored items, block by block, and C from the unscored ones. The three do
    not depend on λ or ν: one reduction of ``B + ν C`` serves all λ (section 5), and the same B, C
    and E serve all ν.

    Attributes
    ----------
    scored : ndarray of shape (n, n)
        B, with one block ``R_vᵀ L R_v / W`` for each view on its diagonal.
    coupling : ndarray of shape (n, n)
        C for ν = 1.
    target : ndarray of shape (n,)
        E, the stacked ``R_vᵀ d / W``.
    """

    scored: Array
    coupling: Array
    target: Array


class CoTask(HoldOutTask):
    """What CoRankRLS minimizes, for every alpha and nu, and without some of the scored rows.

    Only scored rows are held out. One reduction for each fold and nu serves all alphas.

    Parameters
    ----------
    model : CoRankRLS
        The learner with its parameters.
    X : array or sparse matrix
        All items.
    views : list of FeatureMap
        Views with their bases.
    target : PartlyScored
        Which rows are scored.
    loss : SquaredLoss
        Loss of the scored rows.
    known_coupling : ndarray, optional
        C, if it is known already.
    """

    parameters = ("alpha", "nu")

    def __init__(
        self,
        model: CoRankRLS,
        X: Any,
        views: list[FeatureMap],
        target: PartlyScored,
        loss: SquaredLoss,
        known_coupling: Array | None = None,
    ) -> None:
        super().__init__(model, loss.graph, target.scored, X.shape[0])
        self._X, self._known_coupling = X, known_coupling
        self.views, self.target, self.loss = views, target, loss
        self._sizes = [view.n_features for view in views]
        self._starts = np.cumsum(self._sizes)[:-1]  # of the second and later views

    @cached_property
    def system(self) -> CoSystem:
        """B, C and E of [CoRankRLS10] equation 18."""
        n = sum(self._sizes)
        advice = "give the views fewer columns or a smaller n_basis, linear ones, too"
        check_matrix_fits(n, n, "the stacked system of all views", advice)
        X = self._X[self.target.scored]
        grams, moments = [], []
        for view in self.views:
            gram, moment = self.loss.system(view.features(X))
            grams.append(gram)
            moments.append(moment)
        C = self._coupling() if self._known_coupling is None else self._known_coupling
        return CoSystem(scipy.linalg.block_diag(*grams), C, np.concatenate(moments))

    def _coupling(self) -> Array:
        """C for ν = 1: the Hessian of the disagreement between all views, halved.

            Σ_{v,u} (1/W̄) Σ_{pairs} ((f_v − f_u)_i − (f_v − f_u)_j)² = wᵀ C w

        so ``C_vv = 2(M−1) R_vᵀ L̄ R_v / W̄`` and ``C_vu = −2 R_vᵀ L̄ R_u / W̄``; all blocks come from
        one Gram matrix of the stacked features, in time linear in the number of items.
        """
        rows, graph = self.target.agreement(self.loss.graph.group_weight)
        view = np.repeat(np.arange(len(self.views)), self._sizes)
        if len(self.views) == 1 or not graph.n_pairs:
            return np.zeros((len(view), len(view)))
        factor = np.where(view[:, None] == view, len(self.views) - 1.0, -1.0)
        gram = graph.gram(FeatureRows(self.views, self._X, rows))
        return factor * gram * (2.0 / graph.total_weight)

    def coefficients(self, nus: Array, alphas: Array) -> tuple[list[Array], float]:
        """Coefficients of each view, shape (n, n_nus, n_alphas), and the smallest usable alpha.

        [CoRankRLS10] section 5: one reduction for each nu serves all alphas. An alpha below the
        rounding error of B + ν C is raised to it, so that a huge ν cannot make the system
        indefinite.
        """
        B, C, E = self.system
        solutions, smallest = [], 0.0
        for nu in nus:
            A = B + nu * C
            floor = len(A) * np.finfo(float).eps * float(np.diag(A).max())
            w, _ = solve_shifted(A, E, np.maximum(alphas, floor))
            solutions.append(w[:, :, 0].T)
            smallest = max(smallest, floor)
        stacked = np.stack(solutions, axis=1)
        coef = []
        for view, w in zip(self.views, np.split(stacked, self._starts), strict=True):
            flat = view.coefficients(w.reshape(len(w), -1))
            coef.append(flat.reshape(-1, *w.shape[1:]))
        return coef, smallest

    def warn_about_flat_views(self) -> None:
        """Warn of views whose features are the same for all items of a group."""
        B, C, _ = self.system
        first = FeatureRows(self.views, self._X, np.arange(1))[:]
        scatter, size = np.diag(B) + np.diag(C), first[0] ** 2
        for k, view in enumerate(np.split(np.arange(len(scatter)), self._starts)):
            if scatter[view].sum() <= FLAT * size[view].sum():
                warn_user(
                    f"view {k} sees the same features in all items of every group: it cannot "
                    "order them, and agreement draws the other views to predicting ties, too. "
                    "Leave it out or give it other columns.",
                )

    def default_values(self, name: str) -> Array:
        """40 alphas as for RankRLS, averaged over the views, and seven nus."""
        if name == "nu":
            return np.array(NUS)
        return default_alphas(float(np.trace(self.system.scored)) / len(self.views))

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """The mean of the views, trained without some of the scored rows, counted among these.

        They are left out altogether, also of what views agree on. So where views agree on the
        unscored rows, C stays as it is and is not computed again.
        """
        kept = np.setdiff1d(np.arange(len(self.target.scored)), held)
        loss = SquaredLoss(self.loss.graph.subset(kept))
        check_rest(loss.graph.n_pairs > 0)
        C = self.system.coupling if self.target.agrees_on_unscored else None
        rest = CoTask(self.learner, self._X, self.views, self.target.without(held), loss, C)
        coef, _ = rest.coefficients(candidates.axes["nu"], candidates.axes["alpha"])
        X = self._X[self.target.scored[held]]
        views = zip(self.views, coef, strict=True)
        scores = [view.scores(X, c.reshape(len(c), -1)) for view, c in views]
        return np.asarray(np.mean(scores, axis=0))

    def train(self, **values: Any) -> CoRankRLS:
        """The learner trained on all data."""
        model: CoRankRLS = self.learner.set_params(**values)
        return model._fit_task(self)


@dataclass(eq=False, repr=False)
class CoRankRLSCV(CoParameters, RankerMixin, Search):
    """CoRankRLS that chooses alpha and nu by holding out scored groups.

    Use it in place of `CoRankRLS` if alpha and nu are not known.

    For each fold and each nu one reduction of the stacked system serves all alphas
    ([CoRankRLS10] section 5); what the unscored rows contribute is computed once for all folds.
    Rows held out are left out altogether, also of what the views agree on, so each fold is judged
    as new groups would be. The bases are chosen once, from all rows. The model is then trained on
    all data with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 40 values, two a decade, up to 1e4 times the mean squared distance
        between the items of a scored pair, averaged over the views.
    nus : array-like of shape (n_nus,), optional
        Candidates; by default 0 and powers of ten from 0.1 to 10,000.
    cv : "auto", None, int, splitter or iterable
        "auto" makes up to five folds of whole groups of the scored rows, or of the scored rows if
        they are one list; None holds out one group at a time. Splitters see the scored rows only,
        and an iterable counts them from 0.
    scoring : str, Metric or function
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    views, n_basis, kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, \
random_state
        As in `CoRankRLS`.

    Attributes
    ----------
    alpha_, nu_ : float
        Chosen parameters.
    best_score_ : float
        Their score, in the units of the metric.
    best_params_ : dict
        Both.
    cv_results_ : dict
        "alphas", "params" (a list with one dict for each nu), "mean_score" of shape (n_nus,
        n_alphas), "group_score" (a list with one array of shape (n_groups, n_alphas) for each nu),
        "groups" (their labels), "n_undefined", "cv" (which way was taken), and "predictions" of
        shape (n_items, n_alphas) for each nu if asked for, nan in rows without a score.
    best_estimator_ : CoRankRLS
        The model trained on all data.
    views_, view_coef_, basis_indices_, n_scored_, n_unscored_, n_pairs_
        As in `CoRankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import CoRankRLSCV, View
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=40, noise=0.5, random_state=0)[:3]
    >>> y = np.where(groups < 10, y, np.nan)
    >>> views = [View(slice(0, 5)), View(slice(5, None))]
    >>> model = CoRankRLSCV(views=views).fit(X, y, groups)
    >>> model.cv_results_["mean_score"].shape
    (7, 40)
    >>> model.n_unscored_
    600
    """

    model_class = CoRankRLS
    axes = {"alpha": "alphas", "nu": "nus"}  # noqa: RUF012
    lists = ()

    alphas: ArrayLike | None = None
    _: KW_ONLY
    nus: ArrayLike | None = None

    def predict_views(self, X: Any) -> NDArray[Any]:
        """Score items by each view; see ``CoRankRLS.predict_views``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def view_disagreement(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """How differently the views order items; see ``CoRankRLS.view_disagreement``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.view_disagreement(X, groups))
