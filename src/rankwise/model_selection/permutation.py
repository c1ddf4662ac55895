"""Permutation test: is a ranker better than chance on these data?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from rankwise.arrays import Array, Indices
from rankwise.graphs.supervision import read_y
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import check_defined, nanmean
from rankwise.model_selection.folds import PAIR, PAIRWISE, resolve_cv
from rankwise.model_selection.grid_search import evaluate_candidates
from rankwise.model_selection.protocol import HoldOutTask, hold_out_task
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int

CHUNK_ENTRIES = 2**24  # of one array of items × permutations × alphas; about eight exist at a time


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
        The same for each permutation of the scores.
    n_permutations : int
        Number of permutations.
    metric : str
        The metric.
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
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    n_permutations: int = 1000,
    scoring: str | Metric = "disagreement",
    alphas: ArrayLike | None = None,
    cv: Any = "auto",
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
) -> PermutationTest:
    """How often scores that were shuffled are predicted as well as the real ones.

    Under the null hypothesis the features say nothing about the order of the items of a group, so
    the scores may be exchanged inside each group. Permuted scores are extra outputs of one model
    and are cross-validated in parallel ([RankRLS09] section 4.1): with ``cost="magnitude",
    ties="include"`` one decomposition serves all permutations. With other costs the pairs depend
    on the scores, so each permutation has a decomposition of its own and takes as long as a fit.

    Parameters
    ----------
    estimator : RankRLS
        Fitted or not; it is left as it is.
    X, y, groups
        As in ``RankRLS.fit``, but not a `PairGraph`. Several outputs are permuted together, and
        their scores averaged.
    n_permutations : int
        Number of permutations; the p-value cannot be below ``1 / (1 + n_permutations)``.
    scoring : str, Metric or function
        Any name of `rankwise.metrics`.
    alphas : array-like of shape (n_alphas,), optional
        Let the data and each permutation choose their best alpha, so that the p-value allows for
        the choice. The estimator's own alpha if not given.
    cv : "auto", int, splitter or iterable
        As in `RankRLSCV`: "auto" leaves out one group at a time; a single list is judged by
        leave-pair-out up to 1,500 items if the metric counts pairs, else by ten folds of items.
        The folds are those of the data for all permutations.
    random_state : int, RandomState or None
        Seed of the permutations.
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items, in training and judging. They stay with the items, and the scores are
        exchanged.

    Returns
    -------
    PermutationTest
        With ``pvalue``, ``score`` and ``null_scores``.

    Notes
    -----
    A permutation counts as at least as good up to rounding, or if its score is undefined in every
    fold. Memory: some arrays of n_items × n_permutations × n_alphas; beyond 2²⁴ entries the
    permutations are taken in chunks, and each chunk of a leave-group-out decomposes again.

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
    if target.groups is None:
        raise ValueError(f"y is a {type(y).__name__}; only scores can be permuted: pass them.")
    if target.groups.n_groups == 1 and metric.name in PAIRWISE:
        metric(target.y, target.y, undefined="raise", sample_weight=target.weight)

    def task_of(scores: Array) -> HoldOutTask:
        return hold_out_task(estimator, X, target._replace(y=scores), None)

    task = task_of(target.y)
    if task.refits:
        raise ValueError(
            f"permutation_test takes a RankRLS, got {type(estimator).__name__}; pass alphas to "
            "choose among several, or use sklearn.model_selection.permutation_test_score."
        )
    candidates = task.candidates(**({} if alphas is None else {"alpha": alphas}))
    plan = resolve_cv(task, cv, [metric])
    pairs = task.pairs() if plan.name == PAIR else None
    n_alphas, n_outputs = len(candidates), target.y[0].size
    best = np.max if metric.greater_is_better else np.min
    scores = []
    rng = check_random_state(random_state)
    for Y in _permuted(target.y, target.groups.codes, n_permutations, n_alphas, rng):
        if pairs is not None:
            error = pairs.disagreement(candidates.axes["alpha"], Y).T
            by_output = 1.0 - error if metric.greater_is_better else error
        else:
            each = [Y] if task.graph.ties == "include" else Y.T  # else pairs depend on the scores
            runs = [evaluate_candidates(task_of(one), candidates, plan, [metric]) for one in each]
            means = [nanmean(run.by_group[metric.name]) for run in runs]
            by_output = np.concatenate(means, axis=1)  # (n_alphas, permutations × outputs)
        by_permutation = by_output.reshape(n_alphas, -1, n_outputs).mean(axis=2)
        scores.append(best(by_permutation, axis=0))
    observed, null = np.split(np.concatenate(scores), [1])
    score = float(observed[0])
    check_defined(metric, observed)
    return PermutationTest(
        pvalue=_pvalue(score, null, metric.greater_is_better),
        score=score,
        null_scores=null,
        n_permutations=n_permutations,
        metric=metric.name,
    )


def _permuted(
    y: Array, codes: Indices, n_permutations: int, n_alphas: int, rng: np.random.RandomState
) -> Iterator[Array]:
    """The scores, then permutations of them inside the groups, as columns of chunks."""
    m = len(y)
    y = y.reshape(m, -1)
    by_group = np.argsort(codes, kind="stable")
    width = max(1, CHUNK_ENTRIES // (y.size * n_alphas))
    for start in range(0, n_permutations + 1, width):
        order = np.empty((m, min(width, n_permutations + 1 - start)), dtype=np.intp)
        for k in range(order.shape[1]):
            if start + k == 0:
                order[:, 0] = np.arange(m)
            else:  # by group, and at random inside
                order[by_group, k] = np.argsort(codes + rng.random_sample(m))
        yield y[order].reshape(m, -1)


def _pvalue(observed: float, null: Array, greater_is_better: bool) -> float:
    """Share of the permutations at least as good, the data among them; undefined ones count."""
    gain = null - observed if greater_is_better else observed - null
    as_good = np.isnan(null) | (gain >= -1e-12 * max(1.0, abs(observed)))
    return float((1 + as_good.sum()) / (1 + len(null)))
