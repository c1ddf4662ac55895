"""Models without each unit, with the model of all data: what standard errors are made of.

RankRLS, also as the choice of a `RankRLSCV` or at the end of a Pipeline, gives the coefficients of
all of them by the algebra of `rankwise.solvers.leave_out`; a linear RankLogistic by one Newton step
each (`rankwise.solvers.one_step`), for groups and comparisons. Any other ranker is trained again
without each of a few folds of units. The steps of a Pipeline before the ranker, and an alpha
that a search chose, stay as they are for all data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from rankwise.arrays import Array, Indices
from rankwise.estimators import RankLogistic, RankRLS
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.pipelines import fit_ranker, last_step, transform_items
from rankwise.frames import as_array
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.roots import items_of_components
from rankwise.machine import track
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.group_routing import needs_groups, predict_items
from rankwise.model_selection.least_squares_task import LeastSquaresTask
from rankwise.model_selection.leave_out import Units
from rankwise.solvers.one_step import without_edges, without_groups
from rankwise.targets import as_scores, split_weighted, with_weights
from rankwise.uncertainty.units import folds_of_units, make_units

BLOCK = 2**22  # numbers
MAX_REFITS = 200  # of RankRLS, where there is no shortcut; more units are joined to folds


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What `leave_units_out` found.

    Attributes
    ----------
    model : estimator
        Trained on all data.
    graph : PreferenceGraph
        What is known about the items.
    units : Units
        What each of the other models lacks.
    coefficients : ndarray of shape (n_coefficients, n_units + 1, n_outputs, n_alphas) or None
        Of the models without each unit, and last of the model of all data.
    members : list of estimator or None
        The models without each unit, where they were trained again.
    task : LeastSquaresTask or None
        The RankRLS and its data.
    """

    model: Any
    graph: PreferenceGraph
    units: Units
    coefficients: Array | None = None
    members: list[Any] | None = None
    task: LeastSquaresTask | None = None

    def own_scores(self, X: Any) -> Array:
        """Score of each item by the model without its own unit; nan for items of no unit."""
        out = np.full(self.graph.n_items, np.nan)
        if self.members is not None:
            for U, member in zip(self.units.members, self.members, strict=True):
                out[U] = scores_of(member, take_rows(X, U))
            return out
        rows = np.concatenate(self.units.members)
        owner = np.repeat(np.arange(len(self.units.members)), list(map(len, self.units.members)))
        out[rows] = self._by_owner(regressors(self.model, X), rows, owner)
        return out

    def own_margins(self, X: Any) -> Array:
        """Margin of each edge, winner less loser, by the model without the unit of the edge."""
        pairs = self.graph.pairs()
        owner = np.empty(pairs.n_pairs, dtype=np.intp)
        for k, some in enumerate(self.units.members):
            owner[some] = k
        if self.members is not None:
            scores = np.stack([scores_of(member, X) for member in self.members])
            return np.asarray(scores[owner, pairs.winner] - scores[owner, pairs.loser])
        Z = regressors(self.model, X)
        margins = (self._by_owner(Z, end, owner) for end in (pairs.winner, pairs.loser))
        return np.asarray(next(margins) - next(margins))

    @property
    def has_pairs(self) -> bool:
        """Whether all is one list of which any two items can be held out at no cost."""
        return self.task is not None and self.task.has_pairs

    def list_differences(self, first: Indices, second: Indices, fold: Indices) -> Array:
        """Differences of pairs of one list, each by a model without the fold of both items.

        If there is one fold only, without these two items: leave-pair-out.
        """
        assert self.task is not None
        candidates = self.task.candidates()
        pairs = None if fold.max() else self.task.pairs()
        if pairs is not None:
            out = np.empty(len(first))
            if pairs.items is not None:  # those of weight 0 are left out
                first, second = (np.searchsorted(pairs.items, end) for end in (first, second))
            for rows, block in pairs.differences(float(candidates.axes["alpha"][0]), BLOCK):
                at = np.flatnonzero((first >= rows.start) & (first < rows.stop))
                out[at] = block[first[at] - rows.start, second[at], 0]
            return out
        folds = items_of_components(fold)
        scores = self.task.held_out(0, folds, candidates)[:, 0, 0]
        return np.asarray(scores[first] - scores[second])

    def changes(self, X: Any, first: Indices, second: Indices, owner: Indices) -> Array:
        """By how much the difference of each pair changes without the unit `owner`."""
        seen, a, b = rows_of_pairs(X, first, second)
        if self.members is not None:
            scores = np.stack([scores_of(model, seen) for model in (*self.members, self.model)])
            return np.asarray(
                (scores[owner, a] - scores[-1, a]) - (scores[owner, b] - scores[-1, b])
            )
        Z = regressors(self.model, seen)
        last = np.full(len(owner), len(self.units.members))
        parts = [self._by_owner(Z, end, who) for end in (a, b) for who in (owner, last)]
        return np.asarray((parts[0] - parts[1]) - (parts[2] - parts[3]))

    def _by_owner(self, Z: Any, rows: Indices, owner: Indices) -> Array:
        """``z_r · w_owner`` of each row r."""
        assert self.coefficients is not None
        w = np.ascontiguousarray(self.coefficients[:, :, 0, 0].T)
        out = np.empty(len(rows))
        size = max(1, BLOCK // w.shape[1])
        for start in range(0, len(rows), size):
            at = slice(start, start + size)
            z = Z[rows[at]]
            z = z.toarray() if sp.issparse(z) else z
            out[at] = np.einsum("ij,ij->i", z, w[owner[at]])
        return out


class InGroups(NamedTuple):
    """Items whose scores depend on the others of their groups, and the labels of these."""

    X: Any
    groups: NDArray[Any]


def in_groups(model: Any, X: Any, groups: ArrayLike | None) -> Any:
    """X, with the groups if the model needs them to predict."""
    if groups is None or not needs_groups(model):
        return X
    return InGroups(X, np.asarray(as_array(groups)))


def scores_of(model: Any, X: Any) -> Any:
    """Scores of items, which may be `InGroups`."""
    return predict_items(model, *X) if isinstance(X, InGroups) else model.predict(X)


def transformed(model: Any, X: Any) -> Any:
    """Items, which may be `InGroups`, as the last step of a Pipeline gets them."""
    return transform_items(model, *X) if isinstance(X, InGroups) else transform_items(model, X)


def take_rows(X: Any, rows: Indices) -> Any:
    """Some rows of an array, a sparse matrix, a data frame, a list or of `InGroups`."""
    if isinstance(X, InGroups):
        return InGroups(take_rows(X.X, rows), X.groups[rows])
    if sp.issparse(X):
        return X.tocsr()[rows]
    return _safe_indexing(X if hasattr(X, "__getitem__") else np.asarray(X), rows)


def rows_of_pairs(X: Any, first: Indices, second: Indices) -> tuple[Any, Indices, Indices]:
    """The items that occur in pairs, and where in them; all items if groups have to be whole."""
    if isinstance(X, InGroups):
        return X, first, second
    rows, ends = np.unique(np.stack([first, second]), return_inverse=True)
    a, b = ends.reshape(2, -1)
    return take_rows(X, rows), a, b


def inner_ranker(model: Any) -> KernelModel | None:
    """The RankRLS or linear RankLogistic inside a fitted Pipeline or search; None for others."""
    ranker = last_step(model)
    ranker = getattr(ranker, "best_estimator_", ranker)
    is_logistic = isinstance(ranker, RankLogistic) and ranker.make_kernel().is_linear
    return ranker if isinstance(ranker, RankRLS) or is_logistic else None


def regressors(model: Any, X: Any) -> Any:
    """What the coefficients of the ranker inside a fitted model are coefficients of."""
    ranker = inner_ranker(model)
    assert ranker is not None
    return ranker.regressors(transformed(model, X))


def leave_units_out(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    *,
    units: Any = "auto",
    n_folds: int = 10,
    alphas: Array | None = None,
    progress: bool | None = None,
) -> LeftOut:
    """Fit a copy of the estimator, and find the models without each unit."""
    model = fit_ranker(estimator, X, y, groups)
    ranker = inner_ranker(model)
    if isinstance(ranker, RankRLS):
        return _by_algebra(model, ranker, X, y, groups, units, alphas)
    if alphas is not None:
        raise ValueError(
            f"alphas are for RankRLS; {type(last_step(model)).__name__} has the one that it was "
            "trained with."
        )
    found = None if ranker is None else _by_one_step(model, ranker, X, y, groups, units)
    if found is None:
        return _train_again(estimator, model, X, y, groups, units, n_folds, progress)
    return found


def _by_algebra(
    model: Any,
    ranker: RankRLS,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    units: Any,
    alphas: Array | None,
) -> LeftOut:
    task = _same_basis(ranker).hold_out_task(_transformed_for(model, X, y, groups), y, groups)
    made = make_units(task.graphs, units, beta=ranker.beta)
    if task.way_without(made) == "refit" and len(made.members) > MAX_REFITS:
        made = folds_of_units(made, MAX_REFITS)
    chosen = np.atleast_1d(ranker.alpha) if alphas is None else alphas
    coefficients = task.coefficients_without(made, Candidates({"alpha": np.asarray(chosen)}))
    return LeftOut(model, task.graphs[0], made, coefficients, task=task)


def _by_one_step(
    model: Any, ranker: KernelModel, X: Any, y: Any, groups: ArrayLike | None, units: Any
) -> LeftOut | None:
    """RankLogistic without groups or comparisons; None for other units."""
    items = _transformed_for(model, X, y, groups)
    (graph,) = ranker.hold_out_task(items, y, groups).graphs
    made, R = make_units([graph], units), ranker.regressors(items)
    w = np.asarray(ranker.coef_, dtype=np.float64)
    if made.kind == "groups":
        without = without_groups(graph, R, w, alpha=ranker.alpha)
        without = without[[graph.groups[U[0]] for U in made.members]]
    elif made.kind == "comparisons":
        without = without_edges(graph.pairs(), R, w, alpha=ranker.alpha)
    else:
        return None
    coefficients = np.vstack([without, w]).T[:, :, None, None]
    return LeftOut(model, graph, made, coefficients)


def _transformed_for(model: Any, X: Any, y: Any, groups: ArrayLike | None) -> Any:
    if not isinstance(y, PreferenceGraph):
        groups = split_weighted(y, groups)[1]
    return transform_items(model, X, groups)


def _same_basis(ranker: RankRLS) -> RankRLS:
    """A copy that takes the basis items which were chosen, not others."""
    basis = getattr(ranker, "basis_indices_", None)
    copied: RankRLS = clone(ranker)
    return copied if basis is None else copied.set_params(basis=basis, n_basis=None)


def _train_again(
    estimator: Any,
    model: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    units: Any,
    n_folds: int,
    progress: bool | None,
) -> LeftOut:
    graph = _graph_of(y, groups)
    folds = folds_of_units(make_units([graph], units), n_folds)
    members = []
    for U in track(folds.members, "training again without a fold", progress):
        if folds.of_edges:
            pairs = graph.pairs()
            rest = np.setdiff1d(np.arange(pairs.n_pairs), U)
            members.append(fit_ranker(estimator, X, pairs.with_edges(rest), None))
            continue
        rest = np.setdiff1d(np.arange(graph.n_items), U)
        seen = graph.subset(rest)
        if graph.scores is None:
            members.append(fit_ranker(estimator, take_rows(X, rest), seen, None))
        else:
            labels = None if graph.n_groups == 1 else seen.group_labels[seen.groups]
            own = getattr(graph, "sample_weight", None)
            weights = None if own is None else own[rest]
            y_rest, own_groups = with_weights(np.asarray(graph.scores)[rest], labels, weights)
            members.append(fit_ranker(estimator, take_rows(X, rest), y_rest, own_groups))
    return LeftOut(model, graph, folds, members=members)


def _graph_of(y: Any, groups: ArrayLike | None) -> PreferenceGraph:
    if isinstance(y, PreferenceGraph):
        return y
    y, groups, weights = split_weighted(y, groups)
    return ScoreGraph(as_scores(y), groups, cost="sign", sample_weight=weights)
