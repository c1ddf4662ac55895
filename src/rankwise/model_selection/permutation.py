"""Permutation test of a ranker against chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from rankwise.arrays import Array, CrossValidation, Indices, MatrixLike, RandomState
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import Preferences, Relevance, TargetLike, TrainingTarget, read_y
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import check_defined, from_disagreement, nanmean_over_units
from rankwise.model_selection.candidate_evaluation import evaluate_candidates
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.folds import PAIR, PAIRWISE, CrossValidationPlan, resolve_cv
from rankwise.model_selection.protocol import HoldOutTask, hold_out_task
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int

EQUAL_SCORES = 1e-12  # relative difference of scores that count as equal

CHUNK_ENTRIES = 2**24  # of an array of items × permutations × alphas; about eight exist at once


@dataclass(frozen=True, repr=False, eq=False)
class PermutationTest:
    """Result of `permutation_test`.

    Attributes
    ----------
    pvalue : float
        ``(1 + number of permutations at least as good) / (1 + n_permutations)``.
    score : float
        Cross-validated score of the data, in the units of the metric.
    null_scores : ndarray of shape (n_permutations,)
        Cross-validated score of each permutation of y.
    n_permutations : int
        Number of permutations.
    metric : str
        Name of the metric.
    """

    pvalue: float
    score: float
    null_scores: Array
    n_permutations: int
    metric: str

    def __repr__(self) -> str:
        return (
            f"PermutationTest({self.metric}={self.score:.4g}, pvalue={self.pvalue:.4g}, "
            f"n_permutations={self.n_permutations})"
        )


@single_threaded
def permutation_test(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None = None,
    *,
    n_permutations: int = 1000,
    scoring: str | Metric = "disagreement",
    alphas: ArrayLike | None = None,
    cv: CrossValidation = "auto",
    random_state: RandomState = None,
    sample_weight: ArrayLike | None = None,
) -> PermutationTest:
    """Test whether a ranker predicts the order of the items better than chance.

    Use it to check whether a small data set contains any signal. Under the null hypothesis the
    features carry no information about the order inside a group, so the values of y are
    exchangeable inside each group. The permutations of y are extra outputs of one model and are
    cross-validated together ([RankRLS09] section 4.1): with ``cost="magnitude", ties="include"``
    one decomposition serves all permutations. With other costs the pairs depend on y, so each
    permutation needs its own decomposition and takes as long as a fit.

    Parameters
    ----------
    estimator : RankRLS
        Fitted or not; it is not modified.
    X, y, groups
        As in ``RankRLS.fit``, but y may not be a `PairGraph`. Several outputs are permuted together
        and their scores are averaged. Of a `SurvivalGraph` times and events are permuted together.
    n_permutations : int, default=1000
        Number of permutations; the p-value cannot be below ``1 / (1 + n_permutations)``.
    scoring : str, Metric or function, default="disagreement"
        Any name of `rankwise.metrics`.
    alphas : array-like of shape (n_alphas,), default=None
        Select the best alpha for the data and for each permutation, so that the p-value accounts
        for the selection. By default the alpha of the estimator is used.
    cv : "auto", int, splitter or iterable, default="auto"
        As in `RankRLSCV`: "auto" leaves out one group at a time; a single list of up to 1,500 items
        is evaluated by leave-pair-out if the metric counts pairs, else by ten folds of items. All
        permutations use the folds of the data.
    random_state : int, RandomState or None, default=None
        Seed of the permutations.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items, in training and evaluation. The weights stay with the items while y is
        permuted.

    Returns
    -------
    PermutationTest
        With ``pvalue``, ``score`` and ``null_scores``.

    Notes
    -----
    A permutation counts as at least as good if it is so up to rounding, or if its score is
    undefined in every fold. Memory: a few arrays of n_items × n_permutations × n_alphas. Beyond 2²⁴
    entries the permutations are processed in chunks, and leave-group-out computes one decomposition
    per chunk.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.model_selection import permutation_test
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> permutation_test(RankRLS(), X, y, groups, n_permutations=199, random_state=0)
    PermutationTest(disagreement=0.09211, pvalue=0.005, n_permutations=199)
    """
    metric = get_metric(scoring)
    n_permutations = check_int("n_permutations", n_permutations, least=1)
    target = read_y(y, groups, sample_weight, X=X)
    _check_that_scores_can_be_permuted(target, metric)
    task = hold_out_task(estimator, X, target, None)
    if task.refits:
        raise ValueError(
            f"permutation_test takes a RankRLS, got {type(estimator).__name__}; pass alphas to "
            "choose among several, or use sklearn.model_selection.permutation_test_score."
        )
    candidates = task.candidate_alphas(alphas)
    plan = resolve_cv(task, cv, [metric])
    if plan.scheme == PAIR:
        mean_scores_of = _make_mean_scores_of_pairs(task, candidates, metric)
    else:
        problem = PermutedProblem(estimator, X, candidates, plan, metric)
        mean_scores_of = _make_mean_scores_of_folds(problem, target, task.graph)

    # Score of the best alpha for each permutation; the first is the original order
    n_alphas = len(candidates)
    n_outputs = math.prod(task.output_shape)
    chunk_size = max(1, CHUNK_ENTRIES // (task.graph.n_items * n_outputs * n_alphas))
    rng = check_random_state(random_state)
    best_scores = []
    for orders in _permutations(task.graph.groups, n_permutations, chunk_size, rng):
        # (n_alphas, n_permutations · n_outputs)
        by_output = mean_scores_of(orders).reshape(n_alphas, -1, n_outputs)
        best_scores.append(_best_over_alphas(by_output.mean(axis=2), metric))
    all_scores = np.concatenate(best_scores)
    check_defined(metric, all_scores[:1])
    observed_score = float(all_scores[0])
    null_scores = all_scores[1:]
    return PermutationTest(
        pvalue=_pvalue(observed_score, null_scores, metric.greater_is_better),
        score=observed_score,
        null_scores=null_scores,
        n_permutations=n_permutations,
        metric=metric.name,
    )


def _check_that_scores_can_be_permuted(target: TrainingTarget, metric: Metric) -> None:
    """Raise an error for explicit edges, and for a single list whose scores are all equal."""
    if isinstance(target, Preferences):
        unchanged_order = np.arange(target.graph.n_items)
        target.graph.permuted(unchanged_order)  # explicit edges raise an error
    elif target.groups.n_groups == 1 and metric.name in PAIRWISE:
        # Raises an error if the metric is undefined for y, as if all y are equal
        metric(target.y, target.y, undefined="raise", sample_weight=target.weight)


def _best_over_alphas(scores: Array, metric: Metric) -> Array:
    """Best score of each permutation, from an array of shape (n_alphas, n_permutations)."""
    if metric.greater_is_better:
        return np.asarray(scores.max(axis=0))
    return np.asarray(scores.min(axis=0))


#: From permutations of the items, in columns, to mean scores, (n_alphas, permutations × outputs).
MeanScores = Callable[[Indices], Array]


def _make_mean_scores_of_pairs(
    task: HoldOutTask, candidates: CandidateGrid, metric: Metric
) -> MeanScores:
    """Mean scores of permutations of y by leave-pair-out, all from one decomposition."""
    pairs = task.pairs()

    def mean_scores(orders: Indices) -> Array:
        # Each permutation of y is an output of one problem
        permuted_y = pairs.y[orders].reshape(len(orders), -1)
        disagreement = pairs.disagreement(candidates.axes["alpha"], permuted_y)
        return from_disagreement(metric, disagreement.T)

    return mean_scores


class PermutedProblem(NamedTuple):
    """What does not change when y is permuted."""

    estimator: BaseEstimator
    X: MatrixLike
    candidates: CandidateGrid
    plan: CrossValidationPlan
    metric: Metric

    def mean_scores(self, target: TrainingTarget) -> Array:
        """Mean scores of the outputs of a target, (n_alphas, n_outputs)."""
        task = hold_out_task(self.estimator, self.X, target, None)
        result = evaluate_candidates(task, self.candidates, self.plan, [self.metric])
        return nanmean_over_units(result.by_group[self.metric.name])


def _make_mean_scores_of_folds(
    problem: PermutedProblem, target: TrainingTarget, graph: PreferenceGraph
) -> MeanScores:
    """Mean scores of permutations of y by the folds of a plan.

    If the pairs are the same for every y, all permutations are outputs of one model.
    """

    def permuted_target(order: Indices) -> TrainingTarget:
        if isinstance(target, Preferences):
            return replace(target, graph=target.graph.permuted(order))
        return replace(target, y=target.y[order])

    def mean_scores_together(orders: Indices) -> Array:
        # Each permutation is an output of one problem
        assert isinstance(target, Relevance)
        permuted_y = target.y[orders].reshape(len(orders), -1)
        return problem.mean_scores(replace(target, y=permuted_y))

    def mean_scores_one_by_one(orders: Indices) -> Array:
        mean_scores = [problem.mean_scores(permuted_target(order)) for order in orders.T]
        return np.concatenate(mean_scores, axis=1)

    # With ties="include" the pairs, and so the matrices, do not depend on y
    has_fixed_pairs = isinstance(target, Relevance) and graph.ties == "include"
    if has_fixed_pairs:
        return mean_scores_together
    return mean_scores_one_by_one


def _permutations(
    codes: Indices, n_permutations: int, chunk_size: int, rng: np.random.RandomState
) -> Iterator[Indices]:
    """The items in their order, then permutations inside groups, as columns of chunks."""
    n_items = len(codes)
    rows_by_group = np.argsort(codes, kind="stable")
    for start in range(0, n_permutations + 1, chunk_size):
        stop = min(start + chunk_size, n_permutations + 1)
        orders = np.empty((n_items, stop - start), dtype=np.intp)
        for column, permutation in enumerate(range(start, stop)):
            if permutation == 0:  # the original order
                orders[:, column] = np.arange(n_items)
            else:
                # Rows of each group in random order: sort by code plus a fraction below 1. Column k
                # holds for each row the row whose y it gets
                shuffled_by_group = np.argsort(codes + rng.random_sample(n_items))
                orders[rows_by_group, column] = shuffled_by_group
        yield orders


def _pvalue(observed: float, null_scores: Array, greater_is_better: bool) -> float:
    """Share of permutations at least as good as the data, including undefined ones and the data."""
    gain = null_scores - observed  # of the permuted over the original data
    if not greater_is_better:
        gain = -gain
    tolerance = EQUAL_SCORES * max(1.0, abs(observed))
    is_at_least_as_good = np.isnan(null_scores) | (gain >= -tolerance)
    return float((1 + is_at_least_as_good.sum()) / (1 + len(null_scores)))
