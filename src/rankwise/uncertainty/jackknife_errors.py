"""Jackknife: standard errors of a ranker by leaving out each unit.

For RankRLS, also as the result of a `RankRLSCV` or at the end of a Pipeline, the algebra of exact
cross-validation gives the coefficients of the models without each unit. Any other ranker is
refitted without each of a few folds of units. The steps of a Pipeline before the ranker, and an
alpha selected by a search, are fitted to all data once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Indices, Matrix, MatrixLike, dense_rows
from rankwise.caching import cached_property
from rankwise.frames import take_rows
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.supervision import TargetLike, make_target, unpack_target
from rankwise.groups import encode_groups, indices_by_group
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.model_selection.shortcuts import HoldOutUnits
from rankwise.rankers.pipelines import final_estimator, fit_ranker, transform_items
from rankwise.rankers.rank_rls import RankRLS, RankRLSTask
from rankwise.runtime.progress import track
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.possible_ranks import CovarianceRoot
from rankwise.validation import check_alphas, check_int, check_option, check_y

BLOCK_ENTRIES = 2**22
"""Number of entries of a matrix that is processed at once."""
MIN_COMPONENTS = 10
"""Explicit preferences with fewer components are one list in parts, not groups."""
KINDS = ("auto", "groups", "items", "comparisons")

Units: TypeAlias = "str | ArrayLike"
"""Parameter ``units``: one of `KINDS`, or labels of clusters."""

MAX_REFITS = 200
"""If RankRLS has no shortcut, more units than this are joined to folds."""


class Difference(NamedTuple):
    """Differences of the scores of items i and items j, and their standard errors.

    Attributes
    ----------
    value : ndarray of shape (n_pairs,)
        Differences of the scores.
    error : ndarray of shape (n_pairs,)
        Their standard errors.
    """

    value: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Standard errors of a ranker, returned by `jackknife`.

    Attributes
    ----------
    model : estimator
        Model fitted to all data.
    units : {"groups", "items", "comparisons", "clusters"}
        Kind of the units that were left out.
    n_units : int
        Number of units; for rankers that are refitted the number of folds.
    root : ndarray of shape (n_coefficients, n_columns) or None
        F with F Fᵀ the covariance of the coefficients, `coef_` or `dual_coef_` of the model; None
        if the ranker was refitted. At most one column for each unit.
    members : list of estimator or None
        Models without each fold, for rankers that are refitted.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.uncertainty import jackknife
    >>> X, y, queries = make_ranking(n_queries=10, n_features=2, random_state=0)[:3]
    >>> errors = jackknife(RankRLS(), X, y, queries)
    >>> errors.units, errors.n_units
    ('groups', 10)
    """

    model: BaseEstimator
    units: str
    n_units: int
    root: Array | None = None
    members: list[BaseEstimator] | None = None

    @property
    def freedom(self) -> int:
        """Degrees of freedom of Student's t: the number of units minus 1."""
        return self.n_units - 1

    @property
    def coefficient_errors(self) -> Array:
        """Standard error of each coefficient."""
        if self.root is None:
            raise ValueError("the model was refitted without folds and has no coefficients.")
        # The covariance is F Fᵀ with the root F, so a variance is the squared norm of a row
        return np.asarray(np.linalg.norm(self.root, axis=1))

    @single_threaded
    def predict(self, X: MatrixLike, groups: ArrayLike | None = None) -> Array:
        """Predict scores by the model of all data.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels, for models that compare an item with the other items of its group.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores.
        """
        return np.asarray(predict_items(self.model, X, groups), dtype=np.float64)

    def spread(self, X: MatrixLike, groups: ArrayLike | None = None) -> CovarianceRoot:
        """Compute the root of the covariance of the scores of items.

        The level of the scores is arbitrary, so only errors of differences are meaningful.

        Parameters
        ----------
        X, groups
            As in `predict`.

        Returns
        -------
        CovarianceRoot
            Errors of scores and of differences.
        """
        # The covariance of the scores is F Fᵀ with a root F, shape (n_items, n_columns).
        # Exact models: a root of the covariance of the coefficients gives one of the scores
        if self.root is not None:
            items = transform_items(self.model, X, groups)
            ranker = exact_ranker(self.model)
            assert ranker is not None  # any other ranker was refitted and has no root
            root_of_scores = ranker.predict_by(items, self.root)
            return CovarianceRoot(np.asarray(root_of_scores, dtype=np.float64), self.freedom)

        # Refitted models: the changes of the scores without each fold are the columns of F
        member_scores = [predict_items(member, X, groups) for member in self.members or []]
        changes = np.stack(member_scores, axis=1) - self.predict(X, groups)[:, None]
        jackknife_factor = np.sqrt(self.freedom / self.n_units)
        return CovarianceRoot(changes * jackknife_factor, self.freedom)

    def predict_difference(
        self, X: MatrixLike, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Difference:
        """Compute the differences of the scores of items i and j, and their standard errors.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X, negative ones from the end; a single number is repeated.
        groups : array-like of shape (n_items,), default=None
            As in `predict`; X must then consist of whole groups.

        Returns
        -------
        Difference
            ``value ± t · error`` is an interval, with a quantile t of Student's t distribution of
            `freedom` degrees of freedom. Equal items: 0 and 0.
        """
        first, second = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
        if not (first.dtype.kind in "iu" and second.dtype.kind in "iu"):
            raise ValueError(f"i and j are row numbers of X; got {first.dtype} and {second.dtype}.")
        if groups is None or not needs_groups(self.model):
            # items are scored independently, so only the items of the pairs are scored
            rows_of_pairs, positions = np.unique(np.stack([first, second]), return_inverse=True)
            first, second = positions.reshape(2, -1)
            X = take_rows(X, rows_of_pairs)
            groups = None
        scores = self.predict(X, groups)
        root = self.spread(X, groups).root
        n_pairs = len(first)
        standard_error = np.empty(n_pairs)
        for block in row_blocks(n_pairs, root.shape[1]):
            # The variance of a difference is the squared norm of its row of the root
            root_of_differences = root[first[block]] - root[second[block]]
            standard_error[block] = np.linalg.norm(root_of_differences, axis=1)
        return Difference(scores[first] - scores[second], standard_error)


@single_threaded
def jackknife(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None = None,
    *,
    units: Units = "auto",
    n_folds: int = 10,
) -> Jackknife:
    """Standard errors of differences, scores and coefficients by leaving out each unit.

    Use it for standard errors of coefficients and of differences of scores.

    With w the model of all data and w^(−u) the model without unit u, of U units,

        V = (U − 1)/U Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ

    is a covariance of w that assumes only that units are independent; inside a unit, errors may be
    correlated and of any size (it is cluster-robust). RankRLS needs no refits: the models w^(−u)
    follow from the algebra of exact cross-validation ([RankRLS09] section 3.3). V is stored as its
    root.

    Parameters
    ----------
    estimator : RankRLS, RankRLSCV, a Pipeline that ends in one, or any other ranker
        Fitted or not; it is not modified. Other rankers are refitted without each of `n_folds`
        folds of units. The steps of a Pipeline and an alpha selected by a search are fitted to all
        data once.
    X, y, groups
        As in its ``fit``; y has one output.
    units : {"auto", "groups", "items", "comparisons"} or array-like, default="auto"
        Independent units. "auto": groups if there are several, else the items of a list; for a
        `PairGraph` its groups if there are at least ten and none has half of the comparisons, else
        the comparisons. An array has labels of clusters, one for each comparison if y is a
        `PairGraph`, else one for each item.
    n_folds : int, default=10
        Number of folds for rankers that are refitted.

    Returns
    -------
    Jackknife
        The standard errors.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.uncertainty import jackknife
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> errors = jackknife(RankRLS(), X, y, groups)
    >>> errors.units, errors.n_units
    ('groups', 30)
    >>> value, error = errors.predict_difference(X, [0, 0], [1, 0])
    >>> value.round(2).tolist(), error.round(2).tolist()
    ([0.52, 0.0], [0.15, 0.0])
    """
    return leave_units_out(estimator, X, y, groups, units=units, n_folds=n_folds).jackknife()


@dataclass(frozen=True, eq=False)
class LeftOut(ABC):
    """The models without each unit, and the model of all data; see `leave_units_out`.

    Attributes
    ----------
    model : estimator
        Model fitted to all data.
    X, groups
        The items, and their group labels or None.
    graph : PreferenceGraph
        Preferences between the items.
    units : HoldOutUnits
        Unit that is left out of each of the other models.
    """

    model: BaseEstimator
    X: MatrixLike
    groups: ArrayLike | None
    graph: PreferenceGraph
    units: HoldOutUnits

    @abstractmethod
    def jackknife(self) -> Jackknife:
        """Return the standard errors."""

    @abstractmethod
    def scores_without(self, rows: Indices, unit: Indices) -> Array:
        """Score each row of X by the model without a unit; unit −1 is the model of all data."""


@dataclass(frozen=True, eq=False)
class LeftOutExactly(LeftOut):
    """Models of RankRLS without each unit, by exact cross-validation.

    Attributes
    ----------
    coefficients : ndarray of shape (n_coefficients, n_units + 1)
        Of the models without each unit, and last of the model of all data.
    task : RankRLSTask
        The RankRLS and its data.
    """

    coefficients: Array
    task: RankRLSTask

    def jackknife(self) -> Jackknife:
        """Return the standard errors."""
        # Root F of the jackknife covariance F Fᵀ of the coefficients: (n_coefficients, n_units)
        n_units = len(self.units.members)
        coefficients_of_all_data = self.coefficients[:, [-1]]
        changes = self.coefficients[:, :-1] - coefficients_of_all_data
        root = changes * np.sqrt((n_units - 1) / n_units)
        n_coefficients, n_columns = root.shape
        if n_columns > n_coefficients:
            # Fᵀ = Q R, so Rᵀ is a root of the same covariance with no more columns than rows
            root = np.asarray(np.linalg.qr(root.T, mode="r")).T
        return Jackknife(self.model, self.units.kind, n_units, root=np.ascontiguousarray(root))

    def scores_without(self, rows: Indices, unit: Indices) -> Array:
        """Score each row of X by the model without a unit; unit −1 is the model of all data."""
        scores = np.empty(len(rows))
        coefficients_by_model = self._coefficients_by_model
        n_coefficients = coefficients_by_model.shape[1]
        for block in row_blocks(len(rows), n_coefficients):
            regressors = dense_rows(self._regressors[rows[block]])
            coefficients = coefficients_by_model[unit[block]]  # −1 is the model of all data
            # The inner product of each row with the coefficients of its model
            scores[block] = np.einsum("ij,ij->i", regressors, coefficients)
        return scores

    @cached_property
    def _coefficients_by_model(self) -> Array:
        return np.ascontiguousarray(self.coefficients.T)

    @cached_property
    def _regressors(self) -> Matrix:
        items = transform_items(self.model, self.X, self.groups)
        ranker = exact_ranker(self.model)
        assert ranker is not None
        return ranker.regressors(items)


@dataclass(frozen=True, eq=False)
class LeftOutByRefits(LeftOut):
    """Models refitted without each fold of units.

    Attributes
    ----------
    members : list of estimator
        The models without each fold.
    """

    members: list[BaseEstimator]

    def jackknife(self) -> Jackknife:
        """Return the standard errors."""
        n_units = len(self.units.members)
        return Jackknife(self.model, self.units.kind, n_units, members=self.members)

    def scores_without(self, rows: Indices, unit: Indices) -> Array:
        """Score each row of X by the model without a unit; unit −1 is the model of all data."""
        return np.asarray(self._scores_by_model[unit, rows])  # unit −1: the model of all data

    @cached_property
    def _scores_by_model(self) -> Array:
        models = [*self.members, self.model]  # index −1 is the model of all data
        return np.stack([predict_items(model, self.X, self.groups) for model in models])


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of rows with at most `BLOCK_ENTRIES` entries each."""
    block_size = max(1, BLOCK_ENTRIES // n_columns)
    return (slice(start, start + block_size) for start in range(0, n_rows, block_size))


def exact_ranker(model: BaseEstimator) -> RankRLS | None:
    """The RankRLS inside a fitted Pipeline or search; None for other rankers."""
    # Models of a RankRLS without a unit are exact without refits
    ranker = final_estimator(model)
    ranker = getattr(ranker, "best_estimator_", ranker)
    if isinstance(ranker, RankRLS):
        return ranker
    return None


def leave_units_out(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None,
    units: Units = "auto",
    n_folds: int = 10,
) -> LeftOut:
    """Fit a copy of the estimator, and compute the models without each unit.

    Parameters
    ----------
    estimator, X, y, groups, units, n_folds
        As in `jackknife`.

    Returns
    -------
    LeftOut
        `LeftOutExactly` for RankRLS, `LeftOutByRefits` for other rankers.
    """
    n_folds = check_int("n_folds", n_folds, least=2)
    model = fit_ranker(estimator, X, y, groups)
    ranker = exact_ranker(model)
    if ranker is None:
        return _leave_out_by_refits(estimator, model, X, y, groups, units, n_folds)
    return _leave_out_exactly(ranker, model, X, y, groups, units)


def _leave_out_exactly(
    ranker: RankRLS,
    model: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None,
    units: Units,
) -> LeftOutExactly:
    """The models of RankRLS without each unit, by exact cross-validation."""
    if ranker.output_shape_:
        raise ValueError(
            f"y has {ranker.output_shape_[0]} outputs; pass one output, as in y[:, 0]."
        )
    group_labels = groups
    if not isinstance(y, PreferenceGraph):
        _, group_labels, _ = unpack_target(y, groups)
    unfitted_ranker = clone(ranker)
    basis_items = getattr(ranker, "basis_indices_", None)
    if basis_items is not None:  # the basis items of the model, not a new selection
        unfitted_ranker.set_params(basis=basis_items, n_basis=None)
    task = unfitted_ranker.hold_out_task(transform_items(model, X, group_labels), y, groups)

    hold_out_units = make_units(task.graph, units, beta=ranker.beta)
    if task.needs_refits(hold_out_units) and len(hold_out_units.members) > MAX_REFITS:
        hold_out_units = folds_of_units(hold_out_units, MAX_REFITS)
    alphas = check_alphas(np.atleast_1d(ranker.alpha), "alpha")
    # (n_coefficients, n_units + 1, n_outputs, n_alphas): one output and one alpha
    coefficients = task.coefficients_without(hold_out_units, alphas)[:, :, 0, 0]
    return LeftOutExactly(model, X, group_labels, task.graph, hold_out_units, coefficients, task)


def _leave_out_by_refits(
    estimator: BaseEstimator,
    model: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None,
    units: Units,
    n_folds: int,
) -> LeftOutByRefits:
    """The models of any ranker, refitted without each fold of units."""
    graph: PreferenceGraph
    target: TargetLike
    if isinstance(y, PreferenceGraph):
        graph = y
        target = y
    else:
        scores, groups, weights = unpack_target(y, groups)
        # cost="sign": items with equal scores are no pairs
        graph = ScoreGraph(check_y(scores), groups, cost="sign", sample_weight=weights)
        target = scores
        if groups is not None:
            target = make_target(scores, groups, weights)
    folds = folds_of_units(make_units(graph, units), n_folds)
    estimator = _with_selected_parameters(estimator, model)
    members = []
    train_target: TargetLike
    for fold in track(folds.members, "refitting without a fold"):
        if folds.members_are_edges:
            pairs = graph.pairs()
            train_edges = np.setdiff1d(np.arange(pairs.n_pairs), fold)
            train_X = X
            train_target = pairs.with_edges(train_edges)
        else:
            train_rows = np.setdiff1d(np.arange(graph.n_items), fold)
            train_X = take_rows(X, train_rows)
            train_target = _take_target(target, train_rows)
        member = fit_ranker(estimator, train_X, train_target, groups=None)  # the target has them
        members.append(member)
    _rescale_members_to_model(members, model, X, groups)
    return LeftOutByRefits(model, X, groups, graph, folds, members)


def _take_target(target: TargetLike, rows: Indices) -> TargetLike:
    """Some rows of a graph, or of a target array."""
    if isinstance(target, PreferenceGraph):
        return target.subset(rows)
    rows_of_target: ArrayLike = take_rows(target, rows)
    return rows_of_target


def _with_selected_parameters(estimator: BaseEstimator, model: BaseEstimator) -> BaseEstimator:
    """The estimator with the parameters that its search has selected on all data.

    Another alpha has another scale of the scores, which would count as an error.
    """
    # Members have the parameters that a search selected on all data: they do not search again
    last_step = final_estimator(model)
    is_search = hasattr(last_step, "best_estimator_")
    if not is_search:
        return estimator
    selected = clone(last_step.best_estimator_)
    if isinstance(model, Pipeline):
        name_of_last_step, _ = model.steps[-1]
        return clone(model).set_params(**{name_of_last_step: selected})
    return selected


def _rescale_members_to_model(
    members: list[BaseEstimator], model: BaseEstimator, X: MatrixLike, groups: ArrayLike | None
) -> None:
    """Rescale members whose scale is arbitrary (AutoRanker) to that of the model of all data."""
    # Scores of members and of the model can be compared only on the same scale
    has_arbitrary_scale = hasattr(final_estimator(model), "rescale")
    if not has_arbitrary_scale:
        return
    scores = predict_items(model, X, groups)
    encoded_groups = encode_groups(groups, len(scores))
    centered_scores = encoded_groups.center(scores)
    for member in members:
        member_scores = encoded_groups.center(predict_items(member, X, groups))
        # Factor of least squares: <member, model> / <member, member>
        squared_norm = member_scores @ member_scores
        inner_product = member_scores @ centered_scores
        if inner_product > 0:  # a negative factor would reverse the order of the member
            final_estimator(member).rescale(inner_product / squared_norm)


def make_units(graph: PreferenceGraph, units: Units, *, beta: float = 0.0) -> HoldOutUnits:
    """The units of a graph, with the `units` of `jackknife`.

    Without regression (beta = 0) units without pairs have no effect and are ignored.
    """
    kind = _resolve_kind(graph, units)
    members_are_edges = _are_edges(kind, graph)
    n_rows = graph.n_items
    if members_are_edges:
        n_rows = graph.n_pairs
    if kind == "groups":
        unit_of_row = graph.groups
    elif kind == "clusters":
        unit_of_row = _cluster_codes(units, n_rows, members_are_edges=members_are_edges)
    else:  # "items" or "comparisons": each row is a unit
        unit_of_row = np.arange(n_rows)
    members = indices_by_group(unit_of_row)
    if not members_are_edges and beta == 0:
        # In pure ranking (beta = 0) items without pairs have no effect: drop units of such items
        has_pairs = graph.degrees != 0
        members = [rows for rows in members if has_pairs[rows].any()]
    if len(members) < 2:
        number_word = "none"
        if members:
            number_word = "one"
        raise ValueError(
            f"standard errors need at least two {kind} with pairs to leave out, and there is "
            f"{number_word}; use smaller units, such as units='items' for one list or "
            "units='comparisons' for a PairGraph."
        )
    return HoldOutUnits(kind, members, members_are_edges)


def _resolve_kind(graph: PreferenceGraph, units: Units) -> str:
    """One of "groups", "items", "comparisons", and "clusters" for labels."""
    if not isinstance(units, str):
        return "clusters"
    check_option("units", units, KINDS)
    if units == "auto":
        return _default_kind(graph)
    return units


def _are_edges(kind: str, graph: PreferenceGraph) -> bool:
    """Whether units of this kind consist of comparisons instead of items."""
    has_explicit_edges = graph.hold_out_unit == "edges"
    if kind == "comparisons" and not has_explicit_edges:
        raise ValueError(
            "units='comparisons' is for explicit preferences (y is a PairGraph), but y is given "
            "for items; use units='groups' or 'items'."
        )
    return kind == "comparisons" or (kind == "clusters" and has_explicit_edges)


def _cluster_codes(labels: ArrayLike, n_rows: int, *, members_are_edges: bool) -> Indices:
    """Number of the cluster of each comparison or item."""
    if np.shape(labels) != (n_rows,):
        row_kind = "items"
        if members_are_edges:
            row_kind = "comparisons"
        raise ValueError(
            f"units has shape {np.shape(labels)}, but there are {n_rows} {row_kind}; pass one "
            "label of a cluster for each."
        )
    return encode_groups(labels, n_rows).codes


def _default_kind(graph: PreferenceGraph) -> str:
    """The kind of units="auto"."""
    if graph.hold_out_unit == "items":
        if graph.n_units > 1:
            return "groups"
        return "items"
    # Comparisons: groups if there are enough of them, and none has half of the weight
    weight_of_group = np.bincount(graph.groups, graph.degrees)
    is_balanced = weight_of_group.max() < weight_of_group.sum() / 2
    if graph.n_units >= MIN_COMPONENTS and is_balanced:
        return "groups"
    return "comparisons"


def folds_of_units(units: HoldOutUnits, n_folds: int) -> HoldOutUnits:
    """Join the units to at most `n_folds` folds, shuffled because scores may be sorted."""
    # Folds of whole units; rows are items or edges
    n_units = len(units.members)
    unit_sizes = [len(rows) for rows in units.members]
    rows = np.concatenate(units.members)
    unit_of_row = np.repeat(np.arange(n_units), unit_sizes)
    splitter = GroupKFold(min(n_folds, n_units), shuffle=True, random_state=0)
    members = []
    for _, positions in splitter.split(rows, groups=unit_of_row):
        members.append(np.sort(rows[positions]))
    return units._replace(members=members)
