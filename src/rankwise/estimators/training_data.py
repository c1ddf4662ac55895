"""What a learner is trained on: checked items and target, the loss, rows without a score."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.validation import validate_data

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.frames import frame_matrix, narwhals_frame, with_names
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.groups import Groups, encode_groups
from rankwise.inputs import (
    Target,
    as_objects,
    check_alphas,
    check_items,
    some_positive,
)
from rankwise.losses import SquaredLoss, TableLoss
from rankwise.losses.nuisance import center_inside
from rankwise.machine import Progress
from rankwise.solvers import Solutions
from rankwise.solvers.tables import Table
from rankwise.text_tables import count

P = ParamSpec("P")
T = TypeVar("T")

DEFAULTS = {"cost": "magnitude", "ties": "include", "group_weight": "pairs"}


def check_beta(beta: float) -> None:
    """A number from 0 to 1."""
    if not isinstance(beta, numbers.Real) or not 0 <= beta <= 1:
        raise ValueError(f"beta={beta!r}; expected a number from 0 (ranking) to 1 (regression).")


def restored_on_failure(fit: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method that fits: if it raises, the estimator is what it was before.

    A fitted estimator still predicts after a refit that was refused or interrupted, and one that
    was not fitted is still not fitted.
    """

    @functools.wraps(fit)
    def fit_or_restore(*args: P.args, **kwargs: P.kwargs) -> T:
        estimator: Any = args[0]
        before = vars(estimator).copy()
        try:
            return fit(*args, **kwargs)
        except BaseException:  # KeyboardInterrupt, too
            estimator.__dict__ = before
            raise

    return fit_or_restore


def check_rows(estimator: Any, X: Any, *, reset: bool = True, **options: Any) -> Any:
    """The items as a matrix of floats, or of objects if the kernel compares objects.

    Names and number of the features are kept or compared.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`, or has them.
    X : array-like, sparse matrix, data frame or Arrow table
        Items.
    reset : bool
        Whether these are the items of a fit.
    **options
        Of scikit-learn's `check_array`. The tags of the estimator say whether X may be sparse.
    """
    check_items("X", X)
    views = getattr(estimator, "views", None)
    users = [estimator, *views] if isinstance(views, (list, tuple)) else [estimator]
    takes_objects = False
    for user in users:
        kernel = getattr(user, "kernel", None)
        takes_objects |= callable(kernel) or kernel == "ngram"
    objects = as_objects("X", X) if takes_objects else None
    if objects is None and getattr(estimator, "kernel", None) == "ngram":
        raise ValueError("kernel='ngram' compares texts, but X has numbers; pass a list of texts.")
    if objects is not None:
        validate_data(estimator, objects, reset=reset, skip_check_array=True)
        return objects
    is_sparse = get_tags(estimator).input_tags.sparse
    dtype = [np.float64, np.float32]
    options = {"dtype": dtype, "accept_sparse": "csr" if is_sparse else False, **options}
    frame = narwhals_frame(X)
    if frame is None:
        return validate_data(estimator, X, reset=reset, **options)
    validate_data(estimator, with_names(frame), reset=reset, skip_check_array=True)
    matrix = frame_matrix("X", X, gaps=False)
    return check_array(matrix, estimator=estimator, input_name="X", **options)


def warn_of_solutions(solutions: Solutions, kernel: Any, tol: float) -> None:
    """Warn of kernels that are not positive semidefinite, and of iterations that did not finish."""
    if not solutions.is_definite:
        warn_user(
            f"the kernel {kernel!r} is not positive semidefinite on these data: the "
            "model is a stationary point of the objective, not its minimum. A larger alpha or "
            "another kernel avoids this.",
        )
    if solutions.unfinished:
        warn_user(
            f"conjugate gradients stopped after {solutions.n_iter} iterations without reaching "
            f"tol={tol:g} at alpha={min(solutions.unfinished):g}; raise max_iter, tol or alpha, or "
            "scale the features.",
            ConvergenceWarning,
        )


def check_table(Y: Array, row: str, column: str) -> Array:
    """Two columns or more, no infinity, and in each row and column a known score."""
    if Y.ndim != 2:
        raise ValueError(f"Y has shape {Y.shape}; expected a table, a {row} in each row.")
    if Y.shape[1] < 2:
        raise ValueError(
            f"Y has the scores of one {column} only; expected at least two {column}s to rank for "
            f"each {row}. One score for each {row} is a list of items: RankRLS ranks those."
        )
    if np.isinf(Y).any():
        i, j = np.argwhere(np.isinf(Y))[0]
        raise ValueError(
            f"Y contains infinity, the first in row {i}, column {j}; give finite scores, and NaN "
            "where a score is unknown."
        )
    for axis, what in ((1, row), (0, column)):
        empty = np.flatnonzero(np.isnan(Y).all(axis=axis))
        if len(empty):
            raise ValueError(
                f"Y has no score for {count(len(empty), what)}, the first is number {empty[0]}; "
                "leave out what has none."
            )
    return Y


def table_loss(
    model: Any, Y: Array, ties: str, sample_weight: Any = None, *, one_list: bool = False
) -> TableLoss:
    """The loss of a checked table with the cost of a model, refused without pairs.

    A row of weight 2 counts as two equal ones.
    """
    options = {"cost": model.cost, "ties": ties, "group_weight": model.group_weight}
    weight = None if sample_weight is None else some_positive(sample_weight, len(Y))
    if weight is not None and model.group_weight == "groups":
        raise ValueError("sample_weight needs group_weight='pairs': groups count alike otherwise.")
    if weight is not None and (weight == weight[0]).all():
        weight = None
    loss = TableLoss(Y, **options, one_list=one_list, weight=weight)
    if not loss.n_pairs:
        raise ValueError(
            "there is nothing to rank: no two known scores can be compared (equal ones do not "
            "count if ties are left out)."
        )
    return loss


def solve_table(model: Any, table: Table, kernel: Any) -> Solutions:
    """The solution of the alpha of a model, with a progress line and warnings."""
    line = Progress(type(model).__name__)
    solution = table.solve(check_alphas([model.alpha], "alpha"), watch=line.iteration)
    line.close()
    warn_of_solutions(solution, kernel, model.tol)
    return solution


def ranking_loss(
    n_items: int, target: Target, cost: str, ties: str, group_weight: str, beta: float
) -> tuple[SquaredLoss, tuple[int, ...]]:
    """The loss of all outputs, and their shape: (), or (n_outputs,) for y of two dimensions."""
    options = {"cost": cost, "ties": ties, "group_weight": group_weight}
    if isinstance(target.y, PreferenceGraph):
        graph, scores = check_graph(target.y, n_items, options), target.y.scores
        if beta > 0 and scores is None:
            raise ValueError(
                f"beta={beta} mixes in regression on scores, but y is a {type(graph).__name__}, "
                "which has preferences only; use beta=0."
            )
        shape: tuple[int, ...] = () if scores is None else scores.shape[1:]
    else:
        scores, shape = target.y, target.y.shape[1:]
        scores = scores[:, 0] if shape == (1,) else scores
        graph = ScoreGraph(target._replace(y=scores), **options)
    columns = None if target.nuisance is None else nuisance_columns(target, graph)
    loss = SquaredLoss(graph, beta, scores, columns)
    check_something_to_rank(loss)
    if loss.nuisance is not None and (beta > 0 or loss.target.ndim > 1):
        raise ValueError(
            f"nuisance is for beta=0 and one output; got beta={beta} and targets of shape "
            f"{loss.target.shape}. Use beta=0 and fit a model for each column of y."
        )
    return loss, shape


def nuisance_columns(target: Target, graph: PreferenceGraph) -> Array | None:
    """The columns of the nuisance less their means inside groups; None if there are none."""
    if target.nuisance is None:
        return None
    values, names = target.nuisance
    if len(values) != graph.n_items:
        raise ValueError(
            f"nuisance has {len(values)} rows but X has {graph.n_items}; pass one row per item."
        )
    if len(names) >= graph.n_items:
        raise ValueError(
            f"nuisance has {len(names)} columns (text has one for each value) for {graph.n_items} "
            "items, so that it explains everything; pass fewer columns."
        )
    return center_inside(values, graph)


def warn_explained() -> None:
    """Warn of nuisance columns that leave nothing to learn."""
    warn_user(
        "the nuisance columns explain every column of X or all preferences: nothing is left to "
        "learn, and the scores of the model say nothing."
    )


def no_nuisance(learner: str, target: Target) -> None:
    """Refuse nuisance columns, which this learner does not take out."""
    if target.nuisance is not None:
        raise ValueError(
            f"{learner} takes no nuisance; use RankRLS, RankLogistic or their searches."
        )


def compared_graph(
    learner: str, n_items: int, target: Target, group_weight: str, ties: str = "exclude"
) -> PreferenceGraph:
    """The graph that a learner of one output is trained on; a given one has its own ties."""
    if isinstance(target.y, PreferenceGraph):
        one_output(learner, target.y.scores)
        return check_graph(target.y, n_items, {"group_weight": group_weight})
    target = target._replace(y=one_output(learner, target.y))
    cost = "magnitude" if ties == "include" else "sign"
    return ScoreGraph(target, cost=cost, ties=ties, group_weight=group_weight)


def one_output(learner: str, y: Any) -> Any:
    """Scores of one output as a flat array; several are refused."""
    shape = np.shape(y)
    if len(shape) != 2:
        return y
    if shape[1] > 1:
        raise ValueError(
            f"y has shape {shape}; {learner} learns one output, so fit a model for each "
            "column (RankRLS learns several at once)."
        )
    return np.asarray(column_or_1d(y, warn=True))


def check_graph(graph: PreferenceGraph, n_items: int, options: dict[str, str]) -> PreferenceGraph:
    """The graph given as y, which has an item for each row of X and brings its own options."""
    if graph.n_items != n_items:
        raise ValueError(
            f"the graph has {graph.n_items} items but X has {n_items} rows; build it of one item "
            "for each row (pass n_items to PairGraph)."
        )
    for name, value in options.items():
        if value != DEFAULTS[name] and value != getattr(graph, name):
            raise ValueError(
                f"the estimator has {name}={value!r} but the graph given as y was built with "
                f"{name}={getattr(graph, name)!r}; a graph brings its own, so set it there."
            )
    return graph


def check_something_to_rank(loss: SquaredLoss) -> None:
    """Refuse a loss without pairs or weights; warn if it prefers no item to any other."""
    if loss.beta == 1:
        return
    if loss.graph.n_pairs == 0:
        raise ValueError(f"there is nothing to rank: {why_no_pairs(loss.graph)}.")
    if loss.beta == 0 and not loss.graph.divergence.any():
        warn_user(
            "no item is preferred to any other (all scores of a group are equal, or preferences "
            "cancel): the model will predict the same score for every item.",
        )


def why_no_pairs(graph: PreferenceGraph) -> str:
    """What a graph without (strict) pairs has, and what to do."""
    return (
        f"{graph.n_items} items (n_samples = {graph.n_items}) in {graph.n_groups} groups make no "
        "pair of positive weight; give scores that differ, or use cost='magnitude' and "
        "ties='include', and group labels that are shared by the items to be compared"
    )


class PartlyScored(NamedTuple):
    """Rows with a score and rows without.

    Attributes
    ----------
    scored, unscored : ndarray of int
        Row numbers, in ascending order.
    y : ndarray of shape (n_scored,)
        Scores of the scored rows.
    groups : Groups
        Groups of all rows.
    weights : ndarray or None
        Weights of all rows, if they have any.
    """

    scored: Indices
    unscored: Indices
    y: Array
    groups: Groups
    weights: Array | None = None

    def weights_of(self, rows: Indices) -> Array | None:
        """Weights of some rows, None without weights."""
        return None if self.weights is None else self.weights[rows]

    def graph(self, cost: str, ties: str, group_weight: str) -> ScoreGraph:
        """The pairs of the scored rows."""
        codes, labels = self.groups
        present, of_row = np.unique(codes[self.scored], return_inverse=True)
        target = Target(self.y, Groups(of_row, labels[present]), self.weights_of(self.scored))
        return ScoreGraph(target, cost=cost, ties=ties, group_weight=group_weight)

    def loss(self, *options: str, beta: float = 0.0) -> SquaredLoss:
        """The loss of the scored rows; `options` are those of `graph`."""
        loss = SquaredLoss(self.graph(*options), beta, self.y)
        check_something_to_rank(loss)
        return loss

    @property
    def agrees_on_unscored(self) -> bool:
        """Whether two unscored rows share a group, so that there is something to agree on."""
        rows = self.unscored
        if self.weights is not None:
            rows = rows[self.weights[rows] > 0]
        return bool(np.bincount(self.groups.codes[rows]).max(initial=0) > 1)

    def agreement(self, group_weight: str = "pairs") -> tuple[Indices, ScoreGraph]:
        """Rows on whose order views are to agree, and all pairs of them inside groups.

        The unscored rows; the scored ones if there are none, or if no two of them share a group.
        """
        rows = self.unscored if self.agrees_on_unscored else self.scored
        groups = encode_groups(self.groups.codes[rows], len(rows))
        zeros = np.zeros(len(rows))  # all pairs of a group, whatever the scores
        target = Target(zeros, groups, self.weights_of(rows))
        return rows, ScoreGraph(target, group_weight=group_weight)

    def without(self, held: Indices) -> PartlyScored:
        """The same rows but for some of the scored ones, counted among the scored."""
        kept = np.setdiff1d(np.arange(len(self.scored)), held)
        return self._replace(scored=self.scored[kept], y=self.y[kept])


def split_unscored(target: Target, n_items: int) -> PartlyScored:
    """Tell scored from unscored rows of X, and refuse what is neither; a score may be NaN."""
    if isinstance(target.y, PreferenceGraph):
        raise ValueError(
            f"y is a {type(target.y).__name__}, which cannot hold unscored rows; pass scores with "
            "NaN for the rows that have none, and groups."
        )
    scores = one_output("a semi-supervised learner", target.y)
    is_scored = ~np.isnan(scores)
    if not is_scored.any():
        raise ValueError(
            f"none of the {n_items} rows has a score (y is all NaN); there is nothing to learn the "
            "order from. Score the rows of at least one group."
        )
    rows = PartlyScored(
        np.flatnonzero(is_scored),
        np.flatnonzero(~is_scored),
        scores[is_scored],
        target.groups or encode_groups(None, n_items),
        target.weight,
    )
    if len(rows.unscored) and not rows.agrees_on_unscored:
        warn_user(
            f"no two of the {len(rows.unscored)} unscored rows are in one group, so there is "
            "nothing to learn from them, and views agree on the scored rows instead. Give unscored "
            "rows group labels that they share with other unscored rows.",
        )
    return rows
