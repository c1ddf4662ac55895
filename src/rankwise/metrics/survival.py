"""Concordance of right-censored times: Harrell's and Uno's C, standard errors, paired tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from rankwise.arrays import Array, Indices
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.frames import as_array, check_same_index
from rankwise.graphs import SurvivalGraph
from rankwise.graphs.violated_pairs import PairCounts
from rankwise.validation import check_float_array, check_survival


class SurvivalTargets(NamedTuple):
    """Labels and sizes of the groups, as metrics need them."""

    labels: NDArray[np.generic]
    group_sizes: Indices

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class SurvivalRanking:
    """Predicted scores of items with right-censored times.

    Attributes
    ----------
    graph : SurvivalGraph
        Times, events, groups and weights.
    score : ndarray of shape (n_items,)
        Predicted scores; larger for longer survival.
    loser_factor : ndarray of shape (n_items,) or None
        Factor of the pairs in which the item has the earlier event; None if all are 1.
    """

    graph: SurvivalGraph
    score: Array
    loser_factor: Array | None = None

    @property
    def targets(self) -> SurvivalTargets:
        """Labels and sizes of the groups."""
        graph = self.graph
        return SurvivalTargets(graph.group_labels, np.bincount(graph.groups))

    def count_pairs(self) -> PairCounts:
        """Pairs of each group."""
        graph = self.graph
        # Each pair counts once, at its loser, with the factor of the loser
        as_loser, _ = graph.count_pairs(self.score, graph.groups, self.loser_factor)
        return as_loser.sum_by(graph.groups, graph.n_groups)

    def with_pair_weights(self, ipcw: ArrayLike | None, tau: float | None) -> SurvivalRanking:
        """The ranking with pairs weighted by the inverse probability of censoring.

        Parameters
        ----------
        ipcw : survival times
            Data from which the distribution of the censoring is estimated; None gives all pairs
            equal weight.
        tau : float or None
            Pairs whose earlier event is at this time or later are left out.
        """
        graph = self.graph
        # The loser of a pair is the item with the earlier event
        factor = np.ones(graph.n_items)
        is_counted = graph.event.copy()
        if tau is not None:  # only pairs whose earlier event is before tau
            is_counted &= graph.time < tau
        if ipcw is not None:  # weights by the inverse probability of censoring
            training_times = read_times_and_events(ipcw)
            if training_times is None:
                raise ValueError("ipcw: expected times and events, as y_true has them.")
            times_of_counted = graph.time[is_counted]
            probability = probability_not_censored(*training_times, times_of_counted)
            factor[is_counted] = 1 / probability**2  # both items of a pair are uncensored
        return replace(self, loser_factor=np.where(is_counted, factor, 0.0))


def read_times_and_events(y: object) -> tuple[Array, NDArray[np.bool_]] | None:
    """Times and events of a graph, a structured array or two columns; None for another target."""
    if isinstance(y, SurvivalGraph):
        return y.time, y.event

    # Two columns: time and event
    array = np.asarray(as_array(y))
    field_names = array.dtype.names
    if field_names is None:
        if array.ndim != 2 or array.shape[1] != 2:
            return None
        return check_survival(array[:, 0], array[:, 1])

    # A structured array with a boolean field, the event, and another one, the time
    event_fields = [name for name in field_names if array.dtype[name].kind == "b"]
    if len(field_names) == 3 and len(event_fields) == 1:
        raise ValueError(
            f"y has the fields {list(field_names)}: left truncation (delayed entry) is not "
            "supported; pass the time and the event only."
        )
    if len(field_names) != 2 or len(event_fields) != 1:
        return None
    (event_field,) = event_fields
    (time_field,) = (name for name in field_names if name != event_field)
    return check_survival(array[time_field], array[event_field])


def read_survival(
    y_true: object,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> SurvivalRanking | None:
    """Read survival times and scores; None if y_true has relevance of items.

    Two columns are times and events if there is one list of scores.
    """
    check_same_index(y_true=y_true, y_score=y_score, groups=groups, sample_weight=sample_weight)
    score = check_float_array("y_score", y_score)
    if score.ndim != 1:
        if isinstance(y_true, SurvivalGraph):
            raise ValueError(f"y_score has shape {score.shape}; pass one list of scores.")
        return None
    times = read_times_and_events(y_true)
    if times is None:
        return None
    if isinstance(y_true, SurvivalGraph):
        if groups is not None:
            raise ValueError("y_true is a SurvivalGraph with its own groups; omit groups.")
        graph = y_true
        if sample_weight is not None:
            graph = graph.weighted(sample_weight)
    else:
        graph = SurvivalGraph(*times, groups, sample_weight)
    if len(score) != graph.n_items:
        raise ValueError(
            f"y_true has {graph.n_items} items but y_score has {len(score)} entries; pass one "
            "score per item, in the same order."
        )
    if not np.isfinite(score).all():
        raise ValueError("y_score contains NaN or infinity.")
    return SurvivalRanking(graph, score)


def kaplan_meier(time: ArrayLike, event: ArrayLike) -> tuple[Array, Array]:
    """Estimate the share of items that survive each time, by Kaplan and Meier.

    Use it to summarize right-censored times, also without a model.

    Parameters
    ----------
    time : array-like of shape (n_items,)
        Time of the event or of the censoring.
    event : array-like of shape (n_items,)
        Whether the event was observed.

    Returns
    -------
    times : ndarray of shape (n_times + 1,)
        0 and the distinct times of events.
    survival : ndarray of shape (n_times + 1,)
        Estimated probability to survive each of these times; 1 at 0.

    Examples
    --------
    >>> from rankwise.metrics import kaplan_meier
    >>> kaplan_meier([5, 8, 12, 3], [1, 0, 1, 1])
    (array([ 0.,  3.,  5., 12.]), array([1.  , 0.75, 0.5 , 0.  ]))
    """
    check_same_index(time=time, event=event)
    times, events = check_survival(time, event)
    has_time = ~np.isnan(times)
    event_times, n_events = np.unique(times[events], return_counts=True)
    n_earlier = np.searchsorted(np.sort(times[has_time]), event_times)
    n_at_risk = has_time.sum() - n_earlier
    # Kaplan-Meier: product of the shares that survive each event time
    survival = np.cumprod(1 - n_events / n_at_risk)
    return np.append(0.0, event_times), np.append(1.0, survival)  # 1 from time 0 on


def probability_not_censored(time: Array, event: NDArray[np.bool_], at: Array) -> Array:
    """Kaplan-Meier estimate of the probability of not being censored up to the given times.

    At equal times events come before censored items.
    """
    has_time = ~np.isnan(time)
    time = time[has_time]
    event = event[has_time]

    # Items that leave at each distinct time, by an event or by censoring
    distinct_times, code = np.unique(time, return_inverse=True)
    n_leaving = np.bincount(code)
    n_events = np.bincount(code, event)
    n_censored = n_leaving - n_events

    # Kaplan-Meier estimate of the censoring; events precede censoring at the same time
    n_at_risk = np.cumsum(n_leaving[::-1])[::-1]
    n_at_risk_of_censoring = n_at_risk - n_events
    hazard = np.zeros(len(distinct_times))
    np.divide(n_censored, n_at_risk_of_censoring, out=hazard, where=n_at_risk_of_censoring > 0)
    probability_after = np.append(1.0, np.cumprod(1 - hazard))
    probability = probability_after[np.searchsorted(distinct_times, at, side="right")]
    if (probability == 0).any():
        raise ValueError(
            f"all items of ipcw are censored by time {distinct_times[-1]:g}, but y_true has later "
            "events, which would have infinite weight; pass a tau before that time."
        )
    return np.asarray(probability)


class Concordance(NamedTuple):
    """Concordance over all pairs, and its jackknife.

    Attributes
    ----------
    value : float
        Share of the pairs of all groups in the right order.
    deviations : ndarray of shape (n_units,)
        √((n − 1)/n) times the concordances without each of the n units, around their mean: the sum
        of the squares is the variance of the value.
    """

    value: float
    deviations: Array


def jackknife_concordance(ranking: SurvivalRanking) -> Concordance:
    """Concordance without each group, or without each item if there is one group.

    Units without pairs are left out.
    """
    # Pairs of each item in which its event is the earlier one (loser), or the later one (winner)
    graph = ranking.graph
    as_loser, as_winner = graph.count_pairs(ranking.score, graph.groups, ranking.loser_factor)
    n_pairs = as_loser.total.sum()
    n_errors = as_loser.errors.sum()

    # Pairs of each unit that is left out: a group, or an item of the only group
    if graph.n_groups > 1:
        by_group = as_loser.sum_by(graph.groups, graph.n_groups)
        pairs_of_unit = by_group.total
        errors_of_unit = by_group.errors
    else:
        pairs_of_unit = as_loser.total + as_winner.total
        errors_of_unit = as_loser.errors + as_winner.errors

    # Share of errors without each unit that has pairs
    has_pairs = pairs_of_unit > 0
    n_pairs_without = n_pairs - pairs_of_unit[has_pairs]
    n_errors_without = n_errors - errors_of_unit[has_pairs]
    share_without = np.full(len(n_pairs_without), np.nan)
    np.divide(n_errors_without, n_pairs_without, out=share_without, where=n_pairs_without > 0)

    # Squares of these deviations sum to the jackknife variance (n − 1) / n · Σ (mean − share)²
    n_units = max(len(share_without), 1)
    deviations = np.sqrt((n_units - 1) / n_units) * (share_without.mean() - share_without)
    concordance = np.nan
    if n_pairs > 0:
        concordance = 1 - n_errors / n_pairs
    return Concordance(float(concordance), deviations)


def concordance_error(ranking: SurvivalRanking) -> float | None:
    """Standard error of the concordance of one list; None if there are several groups."""
    if ranking.graph.n_groups > 1:  # the error follows from the values of the groups
        return None
    deviations = jackknife_concordance(ranking).deviations
    variance = deviations @ deviations
    return float(np.sqrt(variance))


class ConcordanceDifference(NamedTuple):
    """Difference of the concordances of two models on the same items.

    Attributes
    ----------
    first, second : float
        Concordance of each model, over the pairs of all groups.
    difference : float
        First minus second.
    standard_error : float
        Of the difference, by the jackknife.
    low, high : float
        Confidence interval of the difference.
    pvalue : float
        Two-sided p-value of no difference.
    n_units : int
        Number of groups, or of items in one list, that are left out in turn.
    """

    first: float
    second: float
    difference: float
    standard_error: float
    low: float
    high: float
    pvalue: float
    n_units: int


def concordance_difference(
    y_true: ArrayLike | SurvivalGraph,
    first_score: ArrayLike,
    second_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    ipcw: ArrayLike | None = None,
    tau: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> ConcordanceDifference:
    """Compare two models of survival times on the same items by a paired test.

    Use it to test whether one survival model ranks better than another.

    The standard error is that of the jackknife: groups (hospitals) are left out in turn, or items
    if there is one list. Items of one group may be dependent; different groups must be independent.

    Parameters
    ----------
    y_true : SurvivalGraph, structured array or array-like of shape (m, 2)
        Times and events, as in `concordance`.
    first_score, second_score : array-like of shape (m,)
        Predicted scores of the two models; larger for longer survival.
    groups : array-like of shape (m,), default=None
        Group label of each item.
    ipcw, tau : survival times and float, default=None
        As in `concordance`.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    ConcordanceDifference
        Difference, standard error, interval and p-value, by Student's t over the units.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import concordance_difference
    >>> rng = np.random.default_rng(0)
    >>> time = rng.exponential(size=200)
    >>> event = rng.random(200) < 0.5
    >>> good, poor = (np.log(time) + noise * rng.normal(size=200) for noise in (0.5, 2.0))
    >>> result = concordance_difference(np.column_stack([time, event]), good, poor)
    >>> round(result.difference, 2), result.pvalue < 0.001
    (0.22, True)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    concordances = []
    for score in (first_score, second_score):
        ranking = read_survival(y_true, score, groups, None)
        if ranking is None:
            raise ValueError(
                "y_true: expected survival times as a SurvivalGraph, as a structured array of a "
                "boolean and a number, or as the two columns time and event."
            )
        if ipcw is not None or tau is not None:
            ranking = ranking.with_pair_weights(ipcw, tau)
        concordances.append(jackknife_concordance(ranking))
    first, second = concordances
    difference = first.value - second.value

    # Student's interval and test with the paired jackknife's standard error
    deviations = first.deviations - second.deviations
    n_units = len(deviations)
    standard_error = float(np.sqrt(deviations @ deviations))
    student_quantile = float(stdtrit(n_units - 1, 0.5 + confidence / 2))
    half_width = student_quantile * standard_error
    pvalue = 1.0
    if standard_error > 0:
        pvalue = float(2 * stdtr(n_units - 1, -abs(difference) / standard_error))
    return ConcordanceDifference(
        first=first.value,
        second=second.value,
        difference=difference,
        standard_error=standard_error,
        low=difference - half_width,
        high=difference + half_width,
        pvalue=pvalue,
        n_units=n_units,
    )
