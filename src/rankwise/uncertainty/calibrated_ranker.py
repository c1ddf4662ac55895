"""CalibratedRanker: a ranker with standard errors, probabilities and prediction sets."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from rankwise.arrays import Array, Indices, MatrixLike, Numbers
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.fitted_schema import FittedSchema, Floats, ListOf, Model, Number, Values
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import TargetLike, pack_weights
from rankwise.groups import encode_groups, indices_by_group
from rankwise.metrics.grades import LARGEST_GRADE
from rankwise.model_selection.conformal import held_out_gaps, in_best_set, max_by_list
from rankwise.model_selection.folds import (
    EXACT_FOLDS,
    FEWEST_FOR_PAIRS,
    MOST_FOR_PAIRS,
    fold_of_item,
)
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.preprocessing.group_columns import refuse_other_keywords
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.rank_rls import RankRLSTask
from rankwise.rankers.rank_rls_cv import RankRLSCV
from rankwise.rankers.summary import Calibration, Summary
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.jackknife_errors import (
    Difference,
    Jackknife,
    LeftOut,
    LeftOutExactly,
    Units,
    leave_units_out,
    possible_ranks,
    ranks_within,
)
from rankwise.validation import check_int, restored_on_failure

MAX_SLOPE = 1e4
"""Largest slope per typical difference; with it all probabilities are 0 or 1."""
SMALLEST_PROBABILITY = 1e-300


class RankInterval(NamedTuple):
    """Ranks of items in their groups, with intervals.

    Attributes
    ----------
    rank : ndarray of int, shape (n_items,)
        1 is best.
    low, high : ndarray of int, shape (n_items,)
        The ends of the interval, the better rank first.
    """

    rank: Indices
    low: Indices
    high: Indices


class CalibratedRanker(RankerMixin, BaseEstimator):
    """A ranker with standard errors, probabilities, intervals of ranks and prediction sets.

    Use it to report how certain a ranking is, or how many items must be inspected.

    The scores are those of the estimator fitted to all data. Their standard errors come from
    leaving out each unit (`rankwise.uncertainty.jackknife`), without refits for RankRLS. The
    probability that item i is above item j is a logistic function of the difference d of their
    scores, flattened by its standard error e:

        P(i above j) = σ(s d / √(1 + c e²))

    s and c are fitted to held-out pairs, exactly where the estimator has a shortcut.

    Parameters
    ----------
    estimator : estimator, default=None
        `RankRLS`, `RankRLSCV` or a Pipeline that ends in one; or any other ranker, which is
        refitted without each of `n_folds` folds of units. None means ``RankRLSCV()``.
    units : {"auto", "groups", "items", "comparisons"} or array-like, default="auto"
        What is independent; see `rankwise.uncertainty.jackknife`.
    n_folds : int, default=10
        Number of folds for rankers that are refitted.
    max_pairs : int, default=20_000
        Number of held-out pairs to which the function is fitted; a random sample if there are more.
    random_state : int, Generator or None, default=0
        Seed of the sample.

    Attributes
    ----------
    estimator_ : estimator
        Estimator fitted to all data.
    units_, n_units_ : str, int
        Kind and number of the units that were left out.
    n_pairs_ : int
        Number of held-out pairs to which the function was fitted.
    log_loss_ : float
        Mean of −log P of these pairs; probabilities of ½ give log 2 = 0.693.
    slope_, error_weight_ : float
        s and c.
    reliability_ : tuple of ndarray
        `Reliability` of the held-out pairs: mean probability, share and number by bin.
    gaps_ : list of ndarray
        Conformity scores of `best_set`: for each held-out group the difference of the highest score
        to that of its best item, and to the highest score of the items of each grade.
    grades_ : ndarray
        Relevance levels that `grade` accepts: all but the lowest, if there are at most 32 of them.
    root_ : ndarray or None
        Root of the covariance of the coefficients.
    members_ : list of estimator or None
        Models without each fold, for rankers that are refitted.

    Notes
    -----
    The probability is conditional on one item being better: tied pairs are not used.

    Errors are due to sampling of units. They do not include the bias of regularization towards
    zero, the choice of alpha, or a change of the distribution of new data.

    Examples
    --------
    >>> from rankwise import CalibratedRanker
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = CalibratedRanker().fit(X, y, groups)
    >>> value, error = model.predict_difference(X, 0, [1, 2])
    >>> model.predict_above(X, 0, [1, 2]).round(2).tolist()
    [0.59, 1.0]
    >>> ranks = model.rank_interval(X[:3])
    >>> list(zip(ranks.low.tolist(), ranks.high.tolist()))
    [(1, 2), (1, 2), (3, 3)]
    >>> model.best_set(X[:6], level=0.9).tolist()  # the items to inspect
    [False, False, False, False, False, True]
    """

    _fitted: ClassVar[FittedSchema] = {
        "estimator_": Model(),
        "members_": ListOf(Model(), optional=True),
        "root_": Floats("terms units", optional=True),
        "gaps_": ListOf(Floats("gaps")),
        "grades_": Values(),
        "slope_": Number(),
        "error_weight_": Number(),
        "log_loss_": Values(),
        "n_pairs_": Values(),
        "n_units_": Values(),
        "units_": Values(),
        "reliability_": Values(),
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        units: Units = "auto",
        n_folds: int = 10,
        max_pairs: int = 20_000,
        random_state: int | np.random.Generator = 0,
    ) -> None:
        self.estimator = estimator
        self.units = units
        self.n_folds = n_folds
        self.max_pairs = max_pairs
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
    ) -> Self:
        """Fit the estimator, its standard errors, and the probabilities of held-out pairs.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the estimator; one output. Held-out pairs have equal weights.

        Returns
        -------
        CalibratedRanker
            The fitted ranker.
        """
        max_pairs = check_int("max_pairs", self.max_pairs, least=1)
        y, groups = pack_weights(y, groups, sample_weight, X)

        # The model of all data, and its standard errors from the models without each unit
        left_out = leave_units_out(
            self._wrapped_estimator(), X, y, groups, units=self.units, n_folds=self.n_folds
        )
        errors = left_out.jackknife()
        self.estimator_: BaseEstimator = errors.model
        self.units_: str = errors.units
        self.n_units_: int = errors.n_units
        self.root_: Array | None = errors.root
        self.members_: list[BaseEstimator] | None = errors.members

        # Probabilities, fitted to held-out pairs whose first item is the better one
        rng = np.random.default_rng(self.random_state)
        pairs = held_out_pairs(left_out, errors, max_pairs, rng)
        difference, error = pairs.difference
        probability_map = fit_probability_map(difference, error)
        self.slope_: float = probability_map.slope
        self.error_weight_: float = probability_map.error_weight
        probability = probability_map.probability(difference, error)
        log_probability = np.log(np.maximum(probability, SMALLEST_PROBABILITY))
        self.log_loss_: float = float(-log_probability.mean())
        self.n_pairs_: int = len(pairs.first)
        self.reliability_: tuple[Array, ...] = tuple(reliability(probability))

        # Conformity scores of prediction sets
        grades, gaps = gaps_of_grades(left_out)
        self.grades_: Array = grades
        self.gaps_: list[Array] = gaps
        validate_data(self, X, skip_check_array=True)
        return self

    def predict(self, X: MatrixLike, groups: ArrayLike | None = None) -> Numbers:
        """Predict scores by the estimator fitted to all data.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels, for estimators that compare an item with the other items of its group,
            such as `AutoRanker`.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores; a higher score means a better rank.
        """
        check_is_fitted(self)
        return np.asarray(predict_items(self.estimator_, X, groups))

    def predict_difference(
        self, X: MatrixLike, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Difference:
        """Predict the differences of the scores of items i and j, with standard errors.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X; a single number is repeated.
        groups : array-like of shape (n_items,), default=None
            As in `predict`; X must then consist of whole groups.

        Returns
        -------
        Difference
            `value` and `error`, each of shape (n_pairs,). ``value ± t · error`` is an interval,
            with a quantile t of Student's t distribution of ``n_units_ − 1`` degrees of freedom.
        """
        return self.jackknife().predict_difference(X, i, j, groups)

    def predict_above(
        self, X: MatrixLike, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Array:
        """Predict the probability that item i is above item j, given that they are not tied.

        Parameters
        ----------
        X, i, j, groups
            As in `predict_difference`.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Probabilities; ½ for equal items.
        """
        value, error = self.predict_difference(X, i, j, groups)
        return ProbabilityMap(self.slope_, self.error_weight_).probability(value, error)

    def rank_interval(
        self, X: MatrixLike, groups: ArrayLike | None = None, level: float = DEFAULT_CONFIDENCE
    ) -> RankInterval:
        """Predict the ranks of the items in their groups, with intervals.

        The best rank is 1 + the number of items significantly above, the worst rank excludes the
        items significantly below: those whose interval of the difference, by the jackknife and
        Student's t, does not contain 0.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels; None ranks all items in one list.
        level : float, default=0.95
            Confidence level of the intervals of the differences. On average over the items, the
            intervals contain the ranks by the true scores at least this often.

        Returns
        -------
        RankInterval
            `rank`, `low` and `high`.
        """
        if not 0 < level < 1:
            raise ValueError(f"level={level!r}; expected a number between 0 and 1.")
        errors = self.jackknife()
        scores = errors.predict(X, groups)
        lists = encode_groups(groups, len(scores)).codes
        best, worst = possible_ranks(scores, errors.spread(X, groups), lists, level)
        return RankInterval(ranks_within(scores, lists), best, worst)

    def best_set(
        self,
        X: MatrixLike,
        groups: ArrayLike | None = None,
        level: float = 0.9,
        grade: float | None = None,
    ) -> NDArray[np.bool_]:
        """Predict the top items of each list that contain its best item with a given probability.

        Use it to report how many results must be inspected: conformal prediction from exactly
        held-out groups (`rankwise.model_selection.conformal`).

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels; None makes all items one list.
        level : float, default=0.9
            Share of new lists whose set contains the requested item. G training groups allow at
            most G/(G + 1): .9 needs 9 groups, .95 needs 19, .99 needs 99.
        grade : float, default=None
            The requested item is any item with at least this relevance. None requests the best item
            of the list, or one of those tied for it.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            Whether an item is in the set of its list. The item with the highest score always is.

        Raises
        ------
        ValueError
            If there were too few groups for the level, or the model was not fitted to groups.

        Notes
        -----
        The level holds for lists from the distribution of the training lists that contain both
        requested and other items, on average over such lists. It does not hold for another kind of
        queries or items (covariate shift), nor for each kind of list separately.
        """
        check_is_fitted(self)
        lists = encode_groups(groups, _num_samples(X)).codes
        # gaps_ has the distances to the best item, then those to the items of each grade
        index = 0
        if grade is not None:
            index = 1 + int(np.searchsorted(self.grades_, grade))
        if index == len(self.gaps_):
            raise ValueError(
                f"grade={grade!r}; expected one of the relevance levels of the training data, "
                f"{self.grades_.tolist()} (empty if there are more than {LARGEST_GRADE})."
            )
        scores = np.asarray(self.predict(X, groups), dtype=np.float64)
        return in_best_set(scores, lists, self.gaps_[index], level)

    def predict_error(self, X: MatrixLike, groups: ArrayLike | None = None) -> Array:
        """Predict the standard error of each score relative to the mean score of its group.

        The level of the scores of a group is arbitrary; the difference from its mean is not.

        Parameters
        ----------
        X, groups
            As in `rank_interval`.

        Returns
        -------
        ndarray of shape (n_items,)
            Standard errors.
        """
        # Root F of the covariance F Fᵀ of the scores; below, of the scores minus the mean score of
        # their group
        root = self.jackknife().spread(X, groups).root
        codes = encode_groups(groups, len(root)).codes
        for rows in indices_by_group(codes):
            mean_of_group = root[rows].mean(axis=0)
            root[rows] -= mean_of_group
        standard_error = np.linalg.norm(root, axis=1)
        return np.asarray(standard_error)

    def jackknife(self) -> Jackknife:
        """Return the standard errors of the coefficients and scores.

        Returns
        -------
        Jackknife
            As returned by `rankwise.uncertainty.jackknife`.
        """
        check_is_fitted(self)
        return Jackknife(
            model=self.estimator_,
            units=self.units_,
            n_units=self.n_units_,
            root=self.root_,
            members=self.members_,
        )

    def reliability(self) -> Reliability:
        """Return the share of correctly ordered held-out pairs by predicted probability.

        Returns
        -------
        Reliability
            Bins of the held-out pairs.
        """
        check_is_fitted(self)
        return Reliability(*self.reliability_)

    def summary(self) -> Summary:
        """Summarize the calibrated ranker, and what its standard errors are computed from.

        Returns
        -------
        Summary
            A record; ``print`` shows it as text.
        """
        check_is_fitted(self)
        summary = Summary(type(self.estimator_).__name__)
        if isinstance(self.estimator_, RankerMixin):
            summary = self.estimator_.summary()
        calibration = Calibration(
            units=self.units_,
            n_units=self.n_units_,
            n_pairs=self.n_pairs_,
            log_loss=self.log_loss_,
            is_refitted=self.members_ is not None,
        )
        return replace(summary, calibration=calibration)

    def get_metadata_routing(self) -> MetadataRequest:
        """Request groups in `predict` if the estimator does, and ignore them otherwise.

        A Pipeline with a transformer that takes groups needs one of the two. `set_predict_request`
        has priority.

        Returns
        -------
        MetadataRequest
            The request, for scikit-learn.
        """
        request = super().get_metadata_routing()
        if request.predict.requests.get("groups") is None:
            takes_groups = self.estimator is not None and needs_groups(self.estimator)
            request.predict.add_request(param="groups", alias=takes_groups)
        return request

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._wrapped_estimator()).input_tags
        return tags

    def _wrapped_estimator(self) -> BaseEstimator:
        """The estimator, by default RankRLSCV."""
        if self.estimator is None:
            return RankRLSCV()
        return self.estimator


def gaps_of_grades(left_out: LeftOut) -> tuple[Array, list[Array]]:
    """Conformity scores of `CalibratedRanker.best_set`.

    Only groups that were held out as a whole are used; there are none for explicit preferences.

    Returns
    -------
    grades : ndarray
        Relevance levels that can be requested.
    gaps : list of ndarray
        Differences to the best item of each group, and to the items of each grade.
    """
    graph = left_out.graph
    if left_out.units.of_edges or not graph.has_relevance:
        return np.empty(0), [np.empty(0)]
    y = np.asarray(graph.y).reshape(graph.n_items)

    # Held-out scores; those of groups that no unit contains as a whole are NaN
    unit_of_item = fold_of_item(left_out.units.members, graph.n_items)
    last_unit_of_group = max_by_list(unit_of_item, graph.groups)
    first_unit_of_group = -max_by_list(-unit_of_item, graph.groups)
    is_split = (first_unit_of_group != last_unit_of_group)[graph.groups]
    is_in_no_unit = unit_of_item < 0
    scores = left_out.scores(np.arange(graph.n_items), unit_of_item)
    scores[is_split | is_in_no_unit] = np.nan

    grades = np.unique(y)[1:]  # any item has the lowest grade
    if len(grades) > LARGEST_GRADE:
        grades = np.empty(0)
    gaps_to_best = held_out_gaps(y, scores, graph.groups)
    gaps_to_grades = [held_out_gaps(y, scores, graph.groups, grade) for grade in grades.tolist()]
    return grades, [gaps_to_best, *gaps_to_grades]


class HeldOutDifferences(NamedTuple):
    """Held-out pairs of items, and the differences of their scores.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_pairs,)
        Rows of X, the better item first.
    difference : Difference
        By models without both items, or without their comparison; with the standard error of a new
        pair, which excludes the changes by the units of the pair itself.
    """

    first: Indices
    second: Indices
    difference: Difference


class _DrawnPairs(NamedTuple):
    """Rows of the better and the other item of each pair, and the number of the comparison."""

    first: Indices
    second: Indices
    edge: Indices | None = None


def held_out_pairs(
    left_out: LeftOut, errors: Jackknife, n_pairs: int, rng: np.random.Generator
) -> HeldOutDifferences:
    """Draw at most `n_pairs` pairs with different relevance from those held out together.

    These are the pairs inside both a group and a unit. If the units are the items of one list, each
    pair is held out in turn, or ten folds of the items for long lists.
    """
    graph = left_out.graph
    units = left_out.units
    n_rows = graph.n_items
    if units.of_edges:
        n_rows = graph.n_pairs
    unit_of_row = fold_of_item(units.members, n_rows)
    fold_of_row = unit_of_row
    list_task = _task_of_single_items(left_out)
    if list_task is not None:  # a unit of one item contains no pair
        fold_of_row = _folds_of_list(list_task, graph.n_items, rng)

    if graph.has_relevance:
        pairs = _draw_from_scores(graph, fold_of_row, n_pairs, rng)
    else:
        pairs = _draw_comparisons(left_out, fold_of_row, n_pairs, rng)
    if len(pairs.first) == 0:
        raise ValueError(
            "no pair of items with different scores is held out as a whole, so probabilities "
            f"cannot be fitted; leave out other units than {units.kind} (units=...), or "
            "pass more data."
        )

    # Differences by the models without the unit of each pair, or without those of both items
    differences_without_units = []
    for unit in _units_of_pairs(pairs, unit_of_row, has_single_items=list_task is not None):
        differences_without_units.append(_score_differences(left_out, pairs, unit))
    difference = differences_without_units[0]
    if list_task is not None:
        difference = _differences_within_list(list_task, pairs.first, pairs.second, fold_of_row)
    error = _standard_error_of_new_pairs(left_out, errors, pairs, differences_without_units)
    return HeldOutDifferences(pairs.first, pairs.second, Difference(difference, error))


def _units_of_pairs(
    pairs: _DrawnPairs, unit_of_row: Indices, *, has_single_items: bool
) -> list[Indices]:
    """Units that contain the pairs: one unit for each pair, or those of both items."""
    if pairs.edge is not None:
        return [unit_of_row[pairs.edge]]
    if has_single_items:
        return [unit_of_row[pairs.first], unit_of_row[pairs.second]]
    return [unit_of_row[pairs.first]]  # the second item is in the same unit


def _task_of_single_items(left_out: LeftOut) -> RankRLSTask | None:
    """The task of a RankRLS whose units are single items; None for other models and units."""
    if not isinstance(left_out, LeftOutExactly) or left_out.units.of_edges:
        return None
    largest_unit = max(len(rows) for rows in left_out.units.members)
    if largest_unit > 1:
        return None
    return left_out.task


def _draw_comparisons(
    left_out: LeftOut, fold_of_row: Indices, n_pairs: int, rng: np.random.Generator
) -> _DrawnPairs:
    """Draw from the explicit preferences that lie in one fold."""
    comparisons = left_out.graph.pairs()
    winner = comparisons.winner
    loser = comparisons.loser
    has_edge_folds = left_out.units.of_edges
    if has_edge_folds:
        is_held_out = fold_of_row >= 0
    else:
        is_held_out = (fold_of_row[winner] >= 0) & (fold_of_row[winner] == fold_of_row[loser])
    candidates = np.flatnonzero(is_held_out & (comparisons.magnitude > 0))
    edges = candidates[_draw_numbers(len(candidates), n_pairs, rng)]
    if has_edge_folds:
        return _DrawnPairs(winner[edges], loser[edges], edges)
    return _DrawnPairs(winner[edges], loser[edges])


def _draw_from_scores(
    graph: PreferenceGraph, fold_of_item: Indices, n_pairs: int, rng: np.random.Generator
) -> _DrawnPairs:
    """Draw pairs of items of one group and one fold with different relevance."""
    is_candidate = fold_of_item >= 0
    if graph.item_weights is not None:
        is_candidate &= graph.item_weights > 0
    items = np.flatnonzero(is_candidate)
    y = np.asarray(graph.y).reshape(graph.n_items)[items]
    n_folds = fold_of_item.max() + 1
    group_and_fold = graph.groups[items] * n_folds + fold_of_item[items]
    first, second = draw_pairs(y, group_and_fold, n_pairs, rng)
    return _DrawnPairs(items[first], items[second])


def _score_differences(left_out: LeftOut, pairs: _DrawnPairs, unit: Indices) -> Array:
    """Differences of the scores of pairs by the models without these units."""
    return left_out.scores(pairs.first, unit) - left_out.scores(pairs.second, unit)


def _standard_error_of_new_pairs(
    left_out: LeftOut,
    errors: Jackknife,
    pairs: _DrawnPairs,
    differences_without_units: list[Array],
) -> Array:
    """Standard error of the differences of the pairs, as if they were not training data.

    The changes of a difference by the units of the pair itself are excluded from the jackknife sum.
    """
    n_units = len(left_out.units.members)
    n_other_units = max(1, n_units - len(differences_without_units))

    # Squared changes of the difference without each unit of the pair
    model_of_all_data = np.full(len(pairs.first), -1)
    difference = _score_differences(left_out, pairs, model_of_all_data)
    squares_of_own_units = np.zeros(len(pairs.first))
    for difference_without_unit in differences_without_units:
        squares_of_own_units += (difference_without_unit - difference) ** 2

    # The jackknife error is √((U − 1) / U · sum of the squares of all units)
    jackknife_error = errors.predict_difference(
        left_out.X, pairs.first, pairs.second, left_out.groups
    ).error
    squares_of_all_units = n_units / (n_units - 1) * jackknife_error**2
    squares_of_other_units = np.maximum(squares_of_all_units - squares_of_own_units, 0.0)
    variance = (n_other_units - 1) / n_other_units * squares_of_other_units
    return np.asarray(np.sqrt(variance))


def _folds_of_list(task: RankRLSTask, n_items: int, rng: np.random.Generator) -> Indices:
    """Fold of each item: one fold if each pair can be held out in turn, else ten."""
    if n_items < FEWEST_FOR_PAIRS:
        raise ValueError(
            f"one list of {n_items} items has no pair that can be held out: at least "
            f"{FEWEST_FOR_PAIRS} items are needed."
        )
    if task.has_pairs and n_items <= MOST_FOR_PAIRS:
        return np.zeros(n_items, dtype=np.intp)
    n_folds = min(EXACT_FOLDS, n_items // 2)
    return np.asarray(rng.permutation(n_items) % n_folds, np.intp)


def _differences_within_list(
    task: RankRLSTask, first: Indices, second: Indices, fold_of_item: Indices
) -> Array:
    """Differences of pairs of one list, each by a model without the fold of both items.

    With a single fold, by models without the two items (leave-pair-out).
    """
    candidates = task.candidates()  # only the alpha of the learner
    n_folds = fold_of_item.max() + 1
    if n_folds > 1:
        scores = task.held_out(indices_by_group(fold_of_item), candidates)[:, 0, 0]
        return np.asarray(scores[first] - scores[second])
    alpha = float(candidates.axes["alpha"][0])
    n_items = len(fold_of_item)
    (single_block,) = task.pairs().differences(alpha, n_entries=n_items**2)
    _, differences = single_block  # (n_items, n_items, 1)
    return np.asarray(differences[first, second, 0])


def _draw_numbers(n_numbers: int, n_draws: int, rng: np.random.Generator) -> Indices:
    """Some of the numbers 0, …, n_numbers − 1 at random; all of them if that is not more."""
    if n_numbers <= n_draws:
        return np.arange(n_numbers)
    return rng.choice(n_numbers, n_draws, replace=False)


def draw_pairs(
    y: Array, cell: Indices, n: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Draw pairs with different y inside a cell, the better item first: all, or n at random.

    Sorted by cell and y, the items below an item are the first ones of its cell. Pairs are numbered
    by the cumulative sum of their counts, so a pair is found from its number by bisection.

    Parameters
    ----------
    y : ndarray of shape (n_items,)
        Relevance.
    cell : ndarray of int, shape (n_items,)
        Cell of each item.
    n : int
        Number of pairs to draw.
    rng : Generator
        Source of randomness.

    Returns
    -------
    first, second : ndarray of int
        Positions of the better and of the other item.
    """
    # Items by cell, lowest y first
    items = np.lexsort((y, cell))
    y = y[items]
    cell = cell[items]
    position = np.arange(len(items))

    # The items below an item go from the start of its cell to the start of its level of y
    cell_start = np.searchsorted(cell, cell)
    starts_level = np.ones(len(items), dtype=bool)
    starts_level[1:] = (np.diff(y) != 0) | (np.diff(cell) != 0)
    level_start = np.maximum.accumulate(np.where(starts_level, position, 0))
    n_items_below = level_start - cell_start

    # Pairs are numbered by their better item: item k has the numbers from first_pair[k] on
    n_pairs_up_to = np.cumsum(n_items_below)
    first_pair = n_pairs_up_to - n_items_below
    n_all_pairs = int(n_items_below.sum())
    pair_numbers = _draw_numbers(n_all_pairs, n, rng)
    better = np.searchsorted(n_pairs_up_to, pair_numbers, side="right")
    worse = cell_start[better] + (pair_numbers - first_pair[better])
    return items[better], items[worse]


class ProbabilityMap(NamedTuple):
    """``P(i above j) = σ(s d / √(1 + c e²))`` for a difference d with standard error e.

    A logistic function that is flatter for uncertain differences. MacKay's formula for a logistic
    function averaged over a normal distribution of d has this form with c = π s²/8. It is ½ for
    d = 0, rises with d, and P(i above j) + P(j above i) = 1.

    Attributes
    ----------
    slope : float
        s.
    error_weight : float
        c.
    """

    slope: float
    error_weight: float

    def probability(self, difference: Array, error: Array) -> Array:
        """Return P for each difference and its standard error."""
        width = np.sqrt(1 + self.error_weight * error**2)
        return np.asarray(expit(self.slope * difference / width))


def fit_probability_map(difference: Array, error: Array) -> ProbabilityMap:
    """Fit s and c by logarithmic loss to pairs whose first item is the better one.

    The target of n pairs is (n + 1)/(n + 2) instead of 1, as in Platt's scaling, so that the slope
    stays finite if all pairs are ordered correctly.
    """
    typical_difference = float(np.sqrt(np.mean(difference**2)))
    if typical_difference == 0:
        return ProbabilityMap(0.0, 0.0)
    d = difference / typical_difference
    e = error / typical_difference
    n_pairs = len(d)
    target = (n_pairs + 1) / (n_pairs + 2)  # Platt's scaling

    def loss_and_gradient(parameters: Array) -> tuple[float, Array]:
        # Cross entropy of P = σ(s d / √(1 + c e²)) with the target, and its gradient
        s, c = parameters
        squared_width = 1 + c * e**2
        width = np.sqrt(squared_width)
        z = s * d / width
        residual = expit(z) - target
        cross_entropy = np.mean(np.logaddexp(0, -z) + (1 - target) * z)
        derivative_by_s = np.mean(residual * d / width)
        derivative_by_c = np.mean(-0.5 * residual * z * e**2 / squared_width)
        return float(cross_entropy), np.array([derivative_by_s, derivative_by_c])

    starts = [(1.0, 0.0), (2.0, 1.0)]
    bounds = [(0.0, MAX_SLOPE), (0.0, MAX_SLOPE)]
    results = [minimize(loss_and_gradient, start, jac=True, bounds=bounds) for start in starts]
    best_result = min(results, key=lambda result: float(result.fun))
    slope, error_weight = best_result.x
    # Back to the units of the differences
    return ProbabilityMap(
        slope=float(slope / typical_difference),
        error_weight=float(error_weight / typical_difference**2),
    )


class Reliability(NamedTuple):
    """Share of pairs whose predicted item was the better one, by predicted probability.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean probability and share of each bin, for the item of each pair with a probability of at
        least one half.
    n_pairs : ndarray of shape (n_bins,)
        Number of pairs in each bin.
    """

    predicted: Array
    observed: Array
    n_pairs: Array


def reliability(probability: Array, n_bins: int = 10) -> Reliability:
    """Sort pairs whose first item is the better one into bins of about equal size.

    Parameters
    ----------
    probability : ndarray of shape (n_pairs,)
        Predicted probability that the first item is above.
    n_bins : int, default=10
        Largest number of bins.

    Returns
    -------
    Reliability
        The bins, by rising probability.
    """
    # The item with the larger probability is predicted to be the better one, which the first is
    probability_of_predicted = np.maximum(probability, 1 - probability)
    is_correct = np.where(probability == 0.5, 0.5, probability > 0.5)
    lowest_first = np.argsort(probability_of_predicted, kind="stable")
    bins = [pairs for pairs in np.array_split(lowest_first, n_bins) if len(pairs)]
    return Reliability(
        predicted=np.array([probability_of_predicted[pairs].mean() for pairs in bins]),
        observed=np.array([is_correct[pairs].mean() for pairs in bins]),
        n_pairs=np.array([float(len(pairs)) for pairs in bins]),
    )
