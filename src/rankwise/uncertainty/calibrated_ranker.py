"""CalibratedRanker: a ranker that says how sure it is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from rankwise.arrays import Array, Indices
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.fitted_schema import FittedSchema, Floats, ListOf, Model, Number, Values
from rankwise.graphs.supervision import pack_weights
from rankwise.groups import encode_groups, indices_by_group
from rankwise.metrics.grades import LARGEST_GRADE
from rankwise.model_selection.conformal import group_max, held_out_gaps, in_best_set
from rankwise.model_selection.folds import (
    EXACT_FOLDS,
    FEWEST_FOR_PAIRS,
    MOST_FOR_PAIRS,
    fold_of_item,
)
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.preprocessing.group_columns import refuse_other_keywords
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.rank_rls import RankRLSCV
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.jackknife_errors import (
    Difference,
    Jackknife,
    LeftOut,
    leave_units_out,
    possible_ranks,
    ranks_within,
)
from rankwise.validation import check_int, restored_on_failure

SURE = 1e4  # slope per typical difference from which on every probability is 0 or 1


class RankInterval(NamedTuple):
    """Ranks of items in their groups, and where they may be.

    Attributes
    ----------
    rank : ndarray of int, shape (n_items,)
        1 is best.
    low, high : ndarray of int, shape (n_items,)
        The ends of the interval, the better one first.
    """

    rank: Indices
    low: Indices
    high: Indices


@dataclass(eq=False, repr=False)
class CalibratedRanker(RankerMixin, BaseEstimator):
    """A ranker with standard errors, probabilities, intervals of ranks and best sets.

    Use it if you must know how sure an order is, or how many items to look at.

    The scores are those of the estimator, trained on all data. Their standard errors come from
    leaving out every unit (`rankwise.uncertainty.jackknife_errors`), for RankRLS without training
    again.
    The probability that item i is above item j is a logistic curve of the difference of their
    scores, flatter where its standard error is large:

        P(i above j) = σ(s d / √(1 + c e²))

    s and c are fitted to pairs that were held out, exact where the estimator has a shortcut.

    Parameters
    ----------
    estimator : estimator, optional
        `RankRLS`, `RankRLSCV` (the default) or a Pipeline that ends in one; or any other ranker,
        which is trained again without each of `n_folds` folds of units.
    units : {"auto", "groups", "items", "comparisons"} or array-like
        What is independent; see `rankwise.uncertainty.jackknife_errors`.
    n_folds : int
        Number of folds for rankers that are trained again.
    max_pairs : int
        Held-out pairs that the curve is fitted to; if there are more, so many drawn at random.
    random_state : int, Generator or None
        Seed of these draws.

    Attributes
    ----------
    estimator_ : estimator
        Trained on all data.
    units_, n_units_ : str, int
        What was left out, and how many of them there are.
    n_pairs_ : int
        Held-out pairs that the curve was fitted to.
    log_loss_ : float
        Mean of −log P of these pairs; log 2 = 0.693 is that of a coin.
    slope_, error_weight_ : float
        s and c.
    reliability_ : tuple of ndarray
        `Reliability` of the held-out pairs: mean probability, share and number by bin.
    gaps_ : list of ndarray
        Held-out gaps behind `best_set`, from the top of each group to its best item, and to its
        highest item of each grade.
    grades_ : ndarray
        The true scores that may be asked for as `grade`: all but the lowest, if there are at most
        20 of them.
    root_ : ndarray or None
        Root of the covariance of the coefficients.
    members_ : list of estimator or None
        Models without each fold, for rankers that are trained again.

    Notes
    -----
    The probability is about a pair of which one item is better: tied pairs are not used.

    Errors are those of sampling other units. They do not know that regularization pulls differences
    towards zero, that a choice of alpha has errors of its own, or that new data may come
    from somewhere else.

    Examples
    --------
    >>> from rankwise import CalibratedRanker
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = CalibratedRanker().fit(X, y, groups)
    >>> value, error = model.predict_difference(X, 0, [1, 2])
    >>> model.predict_above(X, 0, [1, 2]).round(2)
    array([...])
    >>> model.rank_interval(X[:3]).low
    array([...])
    >>> model.best_set(X[:6], level=0.9)  # the items to look at
    array([...])
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

    estimator: Any = None
    _: KW_ONLY
    units: Any = "auto"
    n_folds: int = 10
    max_pairs: int = 20_000
    random_state: Any = 0

    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train the estimator, find its standard errors, and fit the curve to held-out pairs.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the estimator; one output. Held-out pairs count alike.

        Returns
        -------
        CalibratedRanker
            The fitted estimator.
        """
        max_pairs = check_int("max_pairs", self.max_pairs, least=1)
        y, groups = pack_weights(y, groups, sample_weight, X)
        estimator = RankRLSCV() if self.estimator is None else self.estimator
        left_out = leave_units_out(estimator, X, y, groups, units=self.units, n_folds=self.n_folds)
        errors = left_out.jackknife()
        rng = np.random.default_rng(self.random_state)
        first, _, difference = held_out_pairs(left_out, errors, max_pairs, rng)
        curve = fit_map(*difference)
        probability = curve.probability(*difference)
        grades, gaps = gaps_of_grades(left_out)
        self.grades_: Array = grades
        self.gaps_: list[Array] = gaps
        self.estimator_: Any = errors.model
        self.units_: str = errors.units
        self.n_units_: int = errors.n_units
        self.root_: Array | None = errors.root
        self.members_: list[Any] | None = errors.members
        self.slope_: float = curve.slope
        self.error_weight_: float = curve.error_weight
        self.n_pairs_: int = len(first)
        self.log_loss_: float = float(-np.log(np.maximum(probability, 1e-300)).mean())
        self.reliability_: tuple[Array, ...] = tuple(reliability(probability))
        validate_data(self, X, skip_check_array=True)
        return self

    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Score items by the estimator that was trained on all data.

        `groups` are for estimators that compare an item with the others of its group, such as
        `AutoRanker`.
        """
        check_is_fitted(self)
        return np.asarray(predict_items(self.estimator_, X, groups))

    def predict_difference(
        self, X: Any, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Difference:
        """By how much items i are above items j, with the standard error of that.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X; one number stands for as many as there are of the other.
        groups : array-like of shape (n_items,), optional
            As in `predict`; X has whole groups then.

        Returns
        -------
        Difference
            `value` and `error`, each of shape (n_pairs,). ``value ± t · error`` is an interval,
            with a quantile t of Student's t distribution of ``n_units_ − 1`` degrees of freedom.
        """
        return self.jackknife().predict_difference(X, i, j, groups)

    def predict_above(
        self, X: Any, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Array:
        """Probability that item i is above item j, if one of them is above the other.

        X, i, j and groups are as in `predict_difference`. Equal items have ½.
        """
        difference = self.predict_difference(X, i, j, groups)
        return ProbabilityMap(self.slope_, self.error_weight_).probability(*difference)

    def rank_interval(
        self, X: Any, groups: ArrayLike | None = None, level: float = DEFAULT_CONFIDENCE
    ) -> RankInterval:
        """Ranks of the items in their groups, with intervals.

        Another item is surely above if the interval of the difference, by the jackknife and
        Student's t, is above 0. The best rank is 1 + the number of items surely above; the worst
        rank leaves out those surely below.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels; None ranks all items in one list.
        level : float
            Of the intervals of the differences. The ranks by the true scores are inside at least as
            often on average over the items.

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
        X: Any,
        groups: ArrayLike | None = None,
        level: float = 0.9,
        grade: float | None = None,
    ) -> NDArray[np.bool_]:
        """The head of each list that holds its best item with the asked probability.

        Use it to say how many results must be looked at: conformal prediction from exact held-out
        groups (`rankwise.model_selection.conformal`).

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels; None makes all items one list.
        level : float
            Share of new lists whose set holds what is looked for. G training groups promise at most
            G/(G + 1): .9 needs 9 of them, .95 needs 19, .99 needs 99.
        grade : float, optional
            Looked for is one item of at least this true score. None: the best item of the list, or
            one of those that are tied for it.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            Whether an item is in the set of its list. The highest scored item always is.

        Raises
        ------
        ValueError
            If there were too few groups for the level, or the model was not trained on groups.

        Notes
        -----
        The level is that of lists like those of the training: drawn from the same source, and with
        something to find (groups in which all items, or none, are looked for were left out). It is
        an average over such lists. It does not hold for another kind of queries or items (covariate
        shift), and not for each kind of list by itself.
        """
        check_is_fitted(self)
        numbers = encode_groups(groups, _num_samples(X)).codes
        at = 0 if grade is None else 1 + int(np.searchsorted(self.grades_, grade))
        if at == len(self.gaps_):
            raise ValueError(
                f"grade={grade!r} cannot be looked for; expected one of the true scores "
                f"{self.grades_.tolist()} (none are kept if there are more than {LARGEST_GRADE})."
            )
        scores = np.asarray(self.predict(X, groups), dtype=np.float64)
        return in_best_set(scores, numbers, self.gaps_[at], level)

    def predict_error(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """Standard error of each score about the mean score of its group.

        The level of the scores of a group means nothing, so it is the distance to the mean that has
        an error. X and groups are as in `rank_interval`.
        """
        root = self.jackknife().spread(X, groups).root
        codes = encode_groups(groups, len(root)).codes
        for rows in indices_by_group(codes):
            root[rows] -= root[rows].mean(axis=0)
        return np.asarray(np.linalg.norm(root, axis=1))

    def jackknife(self) -> Jackknife:
        """The standard errors behind all this."""
        check_is_fitted(self)
        known = self.estimator_, self.units_, self.n_units_, self.root_, self.members_
        return Jackknife(*known)

    def reliability(self) -> Reliability:
        """How often held-out pairs came out as their probability said."""
        check_is_fitted(self)
        return Reliability(*self.reliability_)

    def get_metadata_routing(self) -> Any:
        """Request groups in `predict` if the estimator does, and ignore them otherwise.

        A Pipeline whose transformer takes groups needs either. `set_predict_request` has priority.
        """
        request = super().get_metadata_routing()
        if request.predict.requests.get("groups") is None:
            takes_groups = self.estimator is not None and needs_groups(self.estimator)
            request.predict.add_request(param="groups", alias=takes_groups)
        return request

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(RankRLSCV() if self.estimator is None else self.estimator)
        tags.input_tags = inner.input_tags
        return tags


def gaps_of_grades(left_out: LeftOut) -> tuple[Array, list[Array]]:
    """The grades that may be looked for, and the gaps of all groups: to the best, to each grade.

    A group counts if it was held out as a whole; where none was, there are no gaps.
    """
    graph = left_out.graph
    if left_out.units.of_edges or graph.scores is None:
        return np.empty(0), [np.empty(0)]
    y = np.asarray(graph.scores).reshape(graph.n_items)
    unit_of = fold_of_item(left_out.units.members, graph.n_items)
    is_cut = (group_max(unit_of, graph.groups) != -group_max(-unit_of, graph.groups))[graph.groups]
    scores = left_out.scores(np.arange(graph.n_items), unit_of)
    scores[is_cut | (unit_of < 0)] = np.nan
    grades = np.unique(y)[1:]
    grades = grades if len(grades) <= LARGEST_GRADE else grades[:0]
    wanted = [None, *grades.tolist()]
    return grades, [held_out_gaps(y, scores, graph.groups, grade) for grade in wanted]


def held_out_pairs(
    left_out: LeftOut, errors: Jackknife, n_pairs: int, rng: np.random.Generator
) -> tuple[Indices, Indices, Difference]:
    """At most `n_pairs` pairs of different score, drawn at random from those held out together.

    Those are the pairs inside a group that are inside a unit, too. Where the units are the items of
    one list, every pair is held out in turn, or ten folds of the items for long lists.

    Returns
    -------
    first, second : ndarray of int, shape (n_pairs,)
        Rows of X, the better item first.
    difference : Difference
        By models trained without both items, or without their comparison; with the standard error
        that a new pair would have: the changes by the units of the pair itself are not in the sum.
    """
    graph, members, of_edges = left_out.graph, left_out.units.members, left_out.units.of_edges
    is_list = not of_edges and left_out.task is not None and max(map(len, members)) == 1
    unit_of = fold_of_item(members, graph.n_pairs if of_edges else graph.n_items)
    fold = _folds_of_list(left_out.task, graph.n_items, rng) if is_list else unit_of
    if graph.scores is None:
        pairs = graph.pairs()
        first, second = pairs.winner, pairs.loser
        together = fold >= 0 if of_edges else (fold[first] >= 0) & (fold[first] == fold[second])
        strict = np.flatnonzero(together & (pairs.magnitude > 0))
        chosen = strict[_drawn(len(strict), n_pairs, rng)]
        first, second = first[chosen], second[chosen]
    else:
        weight = graph.item_weights
        rows = np.flatnonzero((fold >= 0) if weight is None else (fold >= 0) & (weight > 0))
        y = np.asarray(graph.scores).reshape(graph.n_items)[rows]
        cell = graph.groups[rows] * (fold.max() + 1) + fold[rows]
        first, second = (rows[ends] for ends in draw_pairs(y, cell, n_pairs, rng))
    if not len(first):
        raise ValueError(
            "no pair of items with different scores is held out as a whole, so probabilities "
            f"cannot be fitted; leave out other units than {left_out.units.kind} (units=...), or "
            "give more data."
        )
    units = [unit_of[chosen]] if of_edges else [unit_of[first]]
    if is_list:
        units.append(unit_of[second])
    without = [left_out.scores(first, unit) - left_out.scores(second, unit) for unit in units]
    difference = _list_differences(left_out.task, first, second, fold) if is_list else without[0]
    all_data = np.full(len(first), -1)
    of_all = left_out.scores(first, all_data) - left_out.scores(second, all_data)
    own = sum((one - of_all) ** 2 for one in without)
    n, kept = len(members), max(1, len(members) - len(units))
    error = errors.predict_difference(left_out.X, first, second, left_out.groups).error
    others = np.maximum(n / (n - 1) * error**2 - own, 0.0)
    return first, second, Difference(difference, np.sqrt((kept - 1) / kept * others))


def _folds_of_list(task: Any, n_items: int, rng: np.random.Generator) -> Indices:
    """One fold if every pair can be held out in turn, else ten."""
    if n_items < FEWEST_FOR_PAIRS:
        raise ValueError(
            f"one list of {n_items} items has no pair that can be held out: at least "
            f"{FEWEST_FOR_PAIRS} items are needed."
        )
    if task.has_pairs and n_items <= MOST_FOR_PAIRS:
        return np.zeros(n_items, dtype=np.intp)
    return np.asarray(rng.permutation(n_items) % min(EXACT_FOLDS, n_items // 2), np.intp)


def _list_differences(task: Any, first: Indices, second: Indices, fold: Indices) -> Array:
    """Differences of pairs of one list, each by a model without the fold of both items.

    If there is one fold only, without these two items: leave-pair-out.
    """
    candidates = task.candidates()
    if fold.max():
        scores = task.held_out(indices_by_group(fold), candidates)[:, 0, 0]
        return np.asarray(scores[first] - scores[second])
    alpha, n_entries = float(candidates.axes["alpha"][0]), len(fold) ** 2
    ((_, differences),) = task.pairs().differences(alpha, n_entries)  # all in one block
    return np.asarray(differences[first, second, 0])


def _drawn(total: int, n: int, rng: np.random.Generator) -> Indices:
    """All numbers below the total, or n of them."""
    return np.arange(total) if total <= n else rng.choice(total, n, replace=False)


def draw_pairs(
    y: Array, cell: Indices, n: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Pairs of different y inside a cell, the better item first: all, or n drawn at random.

    In rising order, the items below an item are a stretch at the start of its cell; so the pair of
    a number is found in the cumulative sum of their lengths.
    """
    items = np.lexsort((y, cell))
    y, cell = y[items], cell[items]
    starts = np.searchsorted(cell, cell)
    is_higher = np.r_[True, (np.diff(y) != 0) | (np.diff(cell) != 0)]
    lower = np.maximum.accumulate(np.where(is_higher, np.arange(len(y)), 0)) - starts
    ends = np.cumsum(lower)
    numbers = _drawn(int(ends[-1]), n, rng)
    upper = np.searchsorted(ends, numbers, side="right")
    return items[upper], items[starts[upper] + numbers - (ends - lower)[upper]]


class ProbabilityMap(NamedTuple):
    """``P(i above j) = σ(s d / √(1 + c e²))`` for a difference d with standard error e.

    A logistic curve, flatter where the difference is not known well; MacKay's formula for a
    logistic curve averaged over a normal distribution of d is this with c = π s²/8. It is
    ½ for d = 0, rises with d, and P(i above j) + P(j above i) = 1.

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
        """P for each difference and its standard error."""
        return np.asarray(
            expit(self.slope * difference / np.sqrt(1 + self.error_weight * error**2))
        )


def fit_map(difference: Array, error: Array) -> ProbabilityMap:
    """The map of least logarithmic loss on pairs whose first item is the better one.

    The targets are (n + 1)/(n + 2) instead of 1 for n pairs, as in Platt's scaling, so that pairs
    without a mistake do not make the slope infinite.
    """
    scale = float(np.sqrt(np.mean(difference**2)))
    if scale == 0:
        return ProbabilityMap(0.0, 0.0)
    d, e = difference / scale, error / scale
    target = (len(d) + 1) / (len(d) + 2)

    def loss(parameters: Array) -> tuple[float, Array]:
        s, c = parameters
        width = 1 + c * e**2
        z = s * d / np.sqrt(width)
        pull = expit(z) - target
        value = np.mean(np.logaddexp(0, -z) + (1 - target) * z)
        by_s, by_c = pull * d / np.sqrt(width), -0.5 * pull * z * e**2 / width
        return float(value), np.array([np.mean(by_s), np.mean(by_c)])

    starts, bounds = [(1.0, 0.0), (2.0, 1.0)], [(0.0, SURE)] * 2
    results = [minimize(loss, start, jac=True, bounds=bounds) for start in starts]
    s, c = min(results, key=lambda result: float(result.fun)).x
    return ProbabilityMap(float(s / scale), float(c / scale**2))


class Reliability(NamedTuple):
    """How often the better item was the one of which a probability said so, by probability.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean probability and share of a bin. Of each pair that item is looked at which has a
        probability of at least one half.
    n_pairs : ndarray of shape (n_bins,)
        Pairs in the bin.
    """

    predicted: Array
    observed: Array
    n_pairs: Array


def reliability(probability: Array, n_bins: int = 10) -> Reliability:
    """Bins of about equal size of pairs whose first item is the better one.

    Parameters
    ----------
    probability : ndarray of shape (n_pairs,)
        That the first item is above.
    n_bins : int
        At most so many.
    """
    sure = np.maximum(probability, 1 - probability)
    right = np.where(probability == 0.5, 0.5, probability > 0.5)
    order = np.argsort(sure, kind="stable")
    bins = [pairs for pairs in np.array_split(order, n_bins) if len(pairs)]
    return Reliability(
        np.array([sure[pairs].mean() for pairs in bins]),
        np.array([right[pairs].mean() for pairs in bins]),
        np.array([float(len(pairs)) for pairs in bins]),
    )
