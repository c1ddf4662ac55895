"""jackknife: standard errors of whatever a ranker says, from leaving out every unit.

RankRLS, also as the choice of a `RankRLSCV` or at the end of a Pipeline, gives the coefficients of
the models without each unit by the algebra of exact cross-validation. Any other ranker is trained
again without each of a few folds of units. The steps of a Pipeline before the ranker, and an alpha
that a search chose, stay as they are for all data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.frames import take_rows
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.supervision import make_target, unpack_target
from rankwise.groups import encode_groups, indices_by_group
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.model_selection.shortcuts import HoldOutUnits, dense_rows
from rankwise.rankers.base import ranks_of
from rankwise.rankers.pipelines import final_estimator, fit_ranker, transform_items
from rankwise.rankers.rank_rls import RankRLS, RankRLSTask
from rankwise.runtime.progress import track
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int, check_option, check_y

BLOCK = 2**22  # numbers
COVARIANCE_LIMIT = 2000  # items of which all differences are looked at
JOINT_LIMIT = 300  # items of which the largest of all errors is drawn
JOINT_DRAWS = 1000
EQUAL = 1e-7  # of the largest score; a smaller difference is rounding, or the work of alpha
FEW_COMPONENTS = 10  # of explicit preferences: fewer are parts of one list, not groups
KINDS = ("auto", "groups", "items", "comparisons")
MAX_REFITS = 200  # of RankRLS, where there is no shortcut; more units are joined to folds


@dataclass(frozen=True)
class CovarianceRoot:
    """Covariance V = F Fᵀ of scores or ratings, kept as its root.

    Attributes
    ----------
    root : ndarray of shape (n_items, n_columns)
        F of the ratings.
    freedom : int
        Degrees of freedom of Student's t for the intervals.
    effects : ndarray of shape (n_covariates, n_columns)
        F of the effects of the covariates of a board; None for a ranker.
    is_exact : bool
        Whether V is that of the jackknife, or an estimate of it from draws.
    """

    root: Array
    freedom: int
    effects: Any = None
    is_exact: bool = True

    @property
    def errors(self) -> Array:
        """Standard error of each rating."""
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.root, self.root)))

    def error_of_difference(self, i: int, j: int) -> float:
        """Standard error of r_i − r_j."""
        return float(np.linalg.norm(self.root[i] - self.root[j]))

    def quantile(self, probability: float) -> float:
        """Of Student's t."""
        return float(student.ppf(probability, self.freedom))

    def probability(self, ratio: float) -> float:
        """Distribution function of Student's t."""
        return float(student.cdf(ratio, self.freedom))


def ranks_within(scores: Array, lists: Indices) -> Indices:
    """Rank of each item in its list, 1 for the highest score; equal ones share the best."""
    return ranks_of(scores, lists, EQUAL * float(np.abs(scores).max(initial=0.0)))


def possible_ranks(
    scores: Array,
    spread: CovarianceRoot,
    lists: Indices,
    confidence: float,
    quantile: float | None = None,
) -> tuple[Indices, Indices]:
    """Best and worst rank of each item in its list.

    Item j is surely above i if the interval of ``f_j − f_i`` is above 0. The best rank is 1 + the
    number of items surely above, the worst rank leaves out those surely below. To miss the true
    rank k, more items must be wrongly above than are rightly above but not surely so. So the true
    ranks are inside for at least the confidence on average over the items (98–99 % for 95 % in
    simulations); not for all items at once, and not for the true winner of a field of equals:
    that needs the `quantile` of `joint_quantile`. In lists of more than 2,000 items s_i + s_j
    stands for the error of a difference, which is wider.
    """
    best, worst = np.empty((2, len(scores)), np.intp)
    quantile = spread.quantile((1 + confidence) / 2) if quantile is None else quantile
    for items in indices_by_group(lists):
        f, root, n = scores[items], spread.root[items], len(items)
        least = EQUAL * np.abs(f).max(initial=0.0)
        if n > COVARIANCE_LIMIT:
            width = quantile * np.linalg.norm(root, axis=1)
            low, high = f - width, f + width + least
            best[items] = 1 + n - np.searchsorted(np.sort(low), high, side="right")
            worst[items] = n - np.searchsorted(np.sort(high), low, side="left")
            continue
        G = root @ root.T
        variance = G.diagonal()[:, None] + G.diagonal() - 2 * G
        bound = quantile * np.sqrt(np.maximum(variance, 0.0)) + least
        is_above = f - f[:, None] > bound  # [i, j]: j above i
        best[items], worst[items] = 1 + is_above.sum(axis=1), n - is_above.sum(axis=0)
    return best, worst


def joint_quantile(spread: CovarianceRoot, lists: Indices, confidence: float) -> float:
    """Quantile of the largest |d_ij − δ_ij| / s_ij over all pairs of a list: the max-t of V = F Fᵀ.

    All intervals of differences that are so many standard errors wide hold the truth together. From
    draws of the errors; above 300 items by Bonferroni's inequality, which is a little wider.
    """
    n_pairs = sum(len(items) * (len(items) - 1) // 2 for items in indices_by_group(lists))
    if len(lists) > JOINT_LIMIT or not n_pairs:
        return spread.quantile(1 - (1 - confidence) / 2 / max(1, n_pairs))
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((spread.root.shape[1], JOINT_DRAWS))
    scale = np.sqrt(rng.chisquare(spread.freedom, JOINT_DRAWS) / spread.freedom)
    unit = float(np.abs(spread.root).max(initial=0.0))
    root = spread.root / unit if unit > 0 else spread.root  # single precision overflows at 3e38
    errors = (root @ (normal / scale)).astype(np.float32)
    largest = np.zeros(JOINT_DRAWS)
    for items in indices_by_group(lists):
        for k, i in enumerate(items[:-1]):
            others = items[k + 1 :]
            s = np.linalg.norm(root[others] - root[i], axis=1)
            apart = s > 0
            ratios = np.abs(errors[others[apart]] - errors[i]) / s[apart, None]
            largest = np.maximum(largest, ratios.max(axis=0, initial=0.0))
    return float(np.quantile(largest, confidence))


class Difference(NamedTuple):
    """By how much items i are above items j, and the standard error of that.

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
    """Standard errors of a ranker; what `jackknife` returns.

    Attributes
    ----------
    model : estimator
        Trained on all data.
    units : {"groups", "items", "comparisons", "clusters"}
        What was left out.
    n_units : int
        How many of them; for rankers that are trained again the number of folds.
    root : ndarray of shape (n_coefficients, n_columns) or None
        F with F Fᵀ the covariance of the coefficients, `coef_` or `dual_coef_` of the model; None
        if it was trained again. At most one column for each unit.
    members : list of estimator or None
        Models without each fold, for rankers that are trained again.

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

    model: Any
    units: str
    n_units: int
    root: Array | None = None
    members: list[Any] | None = None

    @property
    def freedom(self) -> int:
        """Degrees of freedom of Student's t: one less than there are units."""
        return self.n_units - 1

    @property
    def coefficient_errors(self) -> Array:
        """Standard error of each of the coefficients."""
        if self.root is None:
            raise ValueError("the model was trained again without folds and has no coefficients.")
        return np.asarray(np.linalg.norm(self.root, axis=1))

    @single_threaded
    def predict(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """Scores of items by the model of all data.

        `groups` are for models that compare an item with the others of its group.
        """
        return np.asarray(predict_items(self.model, X, groups), dtype=np.float64)

    def spread(self, X: Any, groups: ArrayLike | None = None) -> CovarianceRoot:
        """Covariance of the scores of items, as its root: errors of scores, and of differences.

        The level of the scores means nothing, so it is the differences that matter.
        """
        if self.root is not None:
            items = transform_items(self.model, X, groups)
            by_column = exact_ranker(self.model).predict_by(items, self.root)
            return CovarianceRoot(np.asarray(by_column, dtype=np.float64), self.freedom)
        scores = [predict_items(member, X, groups) for member in self.members or []]
        changes = np.stack(scores, axis=1) - self.predict(X, groups)[:, None]
        return CovarianceRoot(changes * np.sqrt(self.freedom / self.n_units), self.freedom)

    def predict_difference(
        self, X: Any, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Difference:
        """By how much items i are above items j, with the standard error.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X, negative ones from the end; one number stands for as many as there are of
            the other.
        groups : array-like of shape (n_items,), optional
            As in `predict`; X has whole groups then.

        Returns
        -------
        Difference
            ``value ± t · error`` is an interval, with a quantile t of Student's t distribution of
            `freedom` degrees of freedom. Equal items: 0 and 0.
        """
        first, second = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
        if not (first.dtype.kind in "iu" and second.dtype.kind in "iu"):
            raise ValueError(f"i and j are row numbers of X; got {first.dtype} and {second.dtype}.")
        if groups is None or not needs_groups(self.model):  # else it looks at whole groups
            rows, ends = np.unique(np.stack([first, second]), return_inverse=True)
            X, groups, (first, second) = take_rows(X, rows), None, ends.reshape(2, -1)
        scores, root = self.predict(X, groups), self.spread(X, groups).root
        error = np.empty(len(first))
        for at in blocks(len(first), root.shape[1]):
            error[at] = np.linalg.norm(root[first[at]] - root[second[at]], axis=1)
        return Difference(scores[first] - scores[second], error)


@single_threaded
def jackknife(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    units: Any = "auto",
    n_folds: int = 10,
) -> Jackknife:
    """Standard errors of differences, scores and coefficients by leaving out every unit.

    With w the model of all data and w^(−u) the one without unit u, of U units,

        V = (U − 1)/U Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ

    is a covariance of w that assumes nothing but independent units: inside a unit, errors may be
    correlated and of any size (it is cluster-robust). RankRLS needs no refit for it: the models
    w^(−u) come from the algebra of exact cross-validation ([RankRLS09] section 3.3). V is kept as
    its root.

    Parameters
    ----------
    estimator : RankRLS, RankRLSCV, a Pipeline that ends in one, or any other ranker
        Fitted or not; it is left as it is. Other rankers are trained again without each of
        `n_folds` folds of units. The steps of a Pipeline and an alpha that a search chose stay as
        they are for all data.
    X, y, groups
        As in its ``fit``.
    units : {"auto", "groups", "items", "comparisons"} or array-like
        What is independent. "auto": groups if there are several, else the items of a list; for a
        `PairGraph` its groups if there are at least ten and none has half of the comparisons, else
        the comparisons. Labels name clusters, one for each comparison if y is a `PairGraph`, else
        one for each item.
    n_folds : int
        Number of folds for rankers that are trained again.

    Returns
    -------
    Jackknife
        The standard errors; y has one output.

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
    >>> value.round(2), error.round(2)
    (array([...]), array([..., 0.  ]))
    """
    return leave_units_out(estimator, X, y, groups, units=units, n_folds=n_folds).jackknife()


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The models without each unit, and the model of all data; made by `leave_units_out`.

    Attributes
    ----------
    model : estimator
        Trained on all data.
    X, groups
        The items, and their group labels or None.
    graph : PreferenceGraph
        What is known about the items.
    units : Units
        What each of the other models lacks.
    coefficients : ndarray of shape (n_coefficients, n_units + 1) or None
        Of the models without each unit, and last of the model of all data.
    members : list of estimator or None
        The models without each unit, where they were trained again.
    task : RankRLSTask or None
        The RankRLS and its data.
    """

    model: Any
    X: Any
    groups: Any
    graph: PreferenceGraph
    units: HoldOutUnits
    coefficients: Array | None = None
    members: list[Any] | None = None
    task: RankRLSTask | None = None

    def jackknife(self) -> Jackknife:
        """The standard errors."""
        n_units, kind = len(self.units.members), self.units.kind
        if self.coefficients is None:
            return Jackknife(self.model, kind, n_units, members=self.members)
        changes = self.coefficients[:, :-1] - self.coefficients[:, [-1]]
        root = changes * np.sqrt((n_units - 1) / n_units)
        if root.shape[1] > root.shape[0]:  # a root with no more columns than rows
            root = np.asarray(np.linalg.qr(root.T, mode="r")).T
        return Jackknife(self.model, kind, n_units, np.ascontiguousarray(root))

    def scores(self, rows: Indices, unit: Indices) -> Array:
        """Score of each row of X by the model without a unit; by that of all data for unit −1."""
        if self.coefficients is None:
            return np.asarray(self._table[unit, rows])
        out, w = np.empty(len(rows)), self._table
        for at in blocks(len(rows), w.shape[1]):
            out[at] = np.einsum("ij,ij->i", dense_rows(self._regressors[rows[at]]), w[unit[at]])
        return out

    @cached_property
    def _table(self) -> Array:
        """A row for each model: its coefficients, or the scores of all items."""
        if self.coefficients is not None:
            return np.ascontiguousarray(self.coefficients.T)
        models = [*(self.members or []), self.model]
        return np.stack([predict_items(model, self.X, self.groups) for model in models])

    @cached_property
    def _regressors(self) -> Any:
        items = transform_items(self.model, self.X, self.groups)
        return exact_ranker(self.model).regressors(items)


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Stretches of rows that together have few numbers."""
    size = max(1, BLOCK // n_columns)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def exact_ranker(model: Any) -> Any:
    """The RankRLS inside a fitted Pipeline or search; None for other rankers."""
    ranker = final_estimator(model)
    ranker = getattr(ranker, "best_estimator_", ranker)
    return ranker if isinstance(ranker, RankRLS) else None


def leave_units_out(
    estimator: Any, X: Any, y: Any, groups: Any, units: Any = "auto", n_folds: int = 10
) -> LeftOut:
    """Fit a copy of the estimator, and find the models without each unit."""
    n_folds = check_int("n_folds", n_folds, least=2)
    model = fit_ranker(estimator, X, y, groups)
    ranker = exact_ranker(model)
    if ranker is None:
        graph = y
        if not isinstance(y, PreferenceGraph):
            scores, groups, weights = unpack_target(y, groups)
            graph = ScoreGraph(check_y(scores), groups, cost="sign", sample_weight=weights)
            y = scores if groups is None else make_target(scores, groups, weights)
        folds = folds_of_units(make_units(graph, units), n_folds)
        members = _train_again(estimator, X, y, graph, folds)
        return LeftOut(model, X, groups, graph, folds, members=members)
    if ranker.output_shape_:
        raise ValueError(f"y has {ranker.output_shape_[0]} outputs; take each by itself.")
    labels = groups if isinstance(y, PreferenceGraph) else unpack_target(y, groups)[1]
    copied = clone(ranker)
    if hasattr(ranker, "basis_indices_"):  # the same basis items, not others
        copied.set_params(basis=ranker.basis_indices_, n_basis=None)
    task = copied.hold_out_task(transform_items(model, X, labels), y, groups)
    chosen = make_units(task.graph, units, beta=ranker.beta)
    if task.shortcut_for(chosen) == "refit" and len(chosen.members) > MAX_REFITS:
        chosen = folds_of_units(chosen, MAX_REFITS)
    coefficients = task.coefficients_without(chosen, np.array([float(ranker.alpha)]))[:, :, 0, 0]
    return LeftOut(model, X, labels, task.graph, chosen, coefficients, task=task)


def _train_again(
    estimator: Any, X: Any, y: Any, graph: PreferenceGraph, folds: HoldOutUnits
) -> list[Any]:
    """The models without each fold."""
    models = []
    for U in track(folds.members, "training again without a fold"):
        if folds.of_edges:
            pairs = graph.pairs()
            kept = np.setdiff1d(np.arange(pairs.n_pairs), U)
            models.append(fit_ranker(estimator, X, pairs.with_edges(kept), None))
        else:
            kept = np.setdiff1d(np.arange(graph.n_items), U)
            target = y.subset(kept) if y is graph else take_rows(y, kept)
            models.append(fit_ranker(estimator, take_rows(X, kept), target, None))
    return models


def make_units(graph: PreferenceGraph, units: Any, *, beta: float = 0.0) -> HoldOutUnits:
    """The units of a graph, as `jackknife` has them.

    Without regression (beta = 0) a unit without a pair has no effect and is no unit.
    """
    kind = "clusters"
    if isinstance(units, str):
        check_option("units", units, KINDS)
        kind = _automatic(graph) if units == "auto" else units
    of_edges = kind == "comparisons" or (kind == "clusters" and graph.scores is None)
    if of_edges and graph.scores is not None:
        raise ValueError(
            "units='comparisons' is for explicit preferences (y is a PairGraph), but y has scores; "
            "use units='groups' or 'items'."
        )
    size = graph.n_pairs if of_edges else graph.n_items
    if kind == "groups":
        labels = graph.groups
    elif kind != "clusters":
        labels = np.arange(size)
    elif np.shape(units) == (size,):
        labels = encode_groups(units, size).codes
    else:
        raise ValueError(
            f"units has shape {np.shape(units)}, but there are {size} "
            f"{'comparisons' if of_edges else 'items'}; pass one label of a cluster for each."
        )
    members = indices_by_group(labels)
    if not of_edges and beta == 0:
        degree = graph.degrees
        members = [U for U in members if degree[U].any()]
    if len(members) < 2:
        raise ValueError(
            f"standard errors need at least two {kind} with pairs to leave out, and there is "
            f"{'one' if members else 'none'}; use smaller units, such as units='items' for one "
            "list or units='comparisons' for a PairGraph."
        )
    return HoldOutUnits(kind, members, of_edges)


def _automatic(graph: PreferenceGraph) -> str:
    if graph.scores is not None:
        return "groups" if graph.n_units > 1 else "items"
    weight = np.bincount(graph.groups, graph.degrees)
    is_even = weight.max() < weight.sum() / 2
    return "groups" if graph.n_units >= FEW_COMPONENTS and is_even else "comparisons"


def folds_of_units(units: HoldOutUnits, n_folds: int) -> HoldOutUnits:
    """The units in at most `n_folds` folds; shuffled, as scores may come in turns."""
    rows, sizes = np.concatenate(units.members), [len(U) for U in units.members]
    folds = GroupKFold(min(n_folds, len(sizes)), shuffle=True, random_state=0)
    unit_of = np.repeat(np.arange(len(sizes)), sizes)
    members = [np.sort(rows[held]) for _, held in folds.split(rows, groups=unit_of)]
    return units._replace(members=members)
