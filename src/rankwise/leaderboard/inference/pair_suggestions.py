"""Which pairs to compare next, and whether to stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from rankwise.arrays import Array, Indices, Labels, MatrixLike, RandomState
from rankwise.datasets import PairData
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.graphs import PairGraph
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.board_types import Label
from rankwise.leaderboard.inference.posterior import (
    RatingPosterior,
    check_number_of_items,
    fit_posterior,
)
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.calibrated_ranker import CalibratedRanker, ProbabilityMap
from rankwise.validation import check_int, check_option

RatingSource: TypeAlias = Leaderboard | PairData | PairGraph | RatingPosterior | CalibratedRanker
GOALS = ("order", "top")
CANDIDATES = 4096  # pairs whose value is updated after each choice
N_DRAWS = 1000
MOST_CONTENDERS = 200  # items near the cutoff; with more, the top is far from settled
LEAST_DOUBT = 1e-3  # probability of being on the other side of the cutoff
MOST_ANSWERS = 10  # per item; more cannot be predicted
N_FUTURES = 25  # possible means that are drawn to estimate the number of answers
N_ERRORS = 200  # errors that are drawn for each of them
JITTER = 1e-5  # relative; breaks ties at random


class SuggestedPair(NamedTuple):
    """A pair to compare.

    Attributes
    ----------
    first, second
        Labels of the items of a board, or else row numbers. Their order is random.
    probability : float
        Predicted probability that the first is preferred.
    error : float
        Standard error of the difference of the two ratings, before the answer.
    """

    first: Label
    second: Label
    probability: float
    error: float


@dataclass(frozen=True, eq=False)
class NextPairs:
    """Result of `next_pairs`: pairs to compare, the most informative first, and whether to stop.

    Attributes
    ----------
    questions : tuple of SuggestedPair
        Distinct pairs.
    goal : {"order", "top"}
        The goal of `next_pairs`.
    confidence : float
        For "top" the probability that the current top is the true one. For "order" the smallest
        probability that two neighbors of the current order are in the true order.
    settled : bool
        Whether the confidence is at least the requested level.
    n_open : int
        For "top" the number of items that may be on the other side of the cutoff, for "order" the
        number of neighbors whose order is uncertain at the level.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import next_pairs
    >>> suggested = next_pairs(PairGraph([0, 0], [1, 2], n_items=4), k=2, random_state=0)
    >>> len(suggested), suggested.settled
    (2, False)
    """

    questions: tuple[SuggestedPair, ...]
    goal: str
    confidence: float
    settled: bool
    n_open: int

    def __iter__(self) -> Iterator[SuggestedPair]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, k: int) -> SuggestedPair:
        return self.questions[k]


@single_threaded
def next_pairs(
    model_or_board: RatingSource,
    X: MatrixLike | None = None,
    k: int = 10,
    *,
    goal: str = "order",
    top: int = 10,
    level: float = DEFAULT_CONFIDENCE,
    prior: float = 1.0,
    random_state: RandomState = None,
) -> NextPairs:
    """Return the pairs whose comparison is most informative, and whether to stop.

    Use it to reach a ranking with as few comparisons as possible.

    The value of a pair is the variance of the difference of its two ratings times p(1 − p), with p
    the probability that the first is preferred. After each choice the variances are updated as if
    the pair had been compared, so the pairs of a batch are not redundant. With ``goal="top"`` the
    value increases with the probability that the two items lie on different sides of the cutoff.

    Parameters
    ----------
    model_or_board : Leaderboard, PairData, PairGraph, RatingPosterior or CalibratedRanker
        Comparisons (a PairGraph without edges if there are none yet), a board of them, their
        posterior (`fit_posterior`), or a fitted ranker.
    X : array-like of shape (n_items, n_features), optional
        Features of the items: for a ranker the items to choose from; for comparisons, ratings are
        a linear function of X.
    k : int, default=10
        Number of pairs; fewer if there are fewer pairs.
    goal : {"order", "top"}, default="order"
        Whether the order of all items matters, or only the set of the `top` best.
    top : int, default=10
        Size of the top.
    level : float, default=0.95
        Confidence at which the goal is settled; see `NextPairs`.
    prior : float, default=1.0
        For comparisons: strength of the prior; 1 counts as one tie of every item with an average
        item.
    random_state : int, Generator or None, default=None
        Seed; pairs of equal value are chosen at random.

    Returns
    -------
    NextPairs
        The pairs, and `settled`.

    Notes
    -----
    All pairs are evaluated, so there may be at most 3,000 items; 1,000 items take tens of
    milliseconds.

    The errors of a ranker are those of the jackknife: a feature that is the same in all units of
    its training data has no error.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import next_pairs
    >>> games = PairGraph([0, 0, 1], [1, 2, 2], n_items=4)
    >>> suggested = next_pairs(games, k=2, random_state=0)
    >>> sorted([suggested[0].first, suggested[0].second])[1], suggested.settled
    (3, False)
    """
    check_option("goal", goal, GOALS)
    rng = np.random.default_rng(random_state)
    posterior, labels = _posterior_and_labels(model_or_board, X, prior)
    n = posterior.n_items
    k = check_int("k", k, least=1)
    if n < 2:
        raise ValueError(f"there is {n} item; a pair needs two.")
    if goal == "top" and not (isinstance(top, Integral) and 1 <= top < n):
        raise ValueError(f"top={top!r}; expected a number from 1 to {n - 1} for {n} items.")
    if not 0.5 < level < 1:
        raise ValueError(f"level={level!r}; expected a number between 0.5 and 1.")
    n_top = int(top) if goal == "top" else None
    confidence, n_open = _confidence(posterior, n_top, level, rng)
    pairs = _choose_pairs(posterior.copy(), n_top, k, rng)
    suggestions = tuple(_suggest(posterior, labels, i, j, rng) for i, j in pairs)
    return NextPairs(suggestions, goal, confidence, bool(confidence >= level), n_open)


def _posterior_and_labels(
    model_or_board: RatingSource, X: MatrixLike | None, prior: float
) -> tuple[RatingPosterior, Labels]:
    """Return the posterior of the ratings, and the labels of the items."""
    if isinstance(model_or_board, RatingPosterior):
        check_number_of_items(model_or_board.n_items)
        return model_or_board.copy(), np.arange(model_or_board.n_items)
    if isinstance(model_or_board, CalibratedRanker):
        posterior = _posterior_of_ranker(model_or_board, X)
        return posterior, np.arange(posterior.n_items)
    if isinstance(model_or_board, Leaderboard):
        data: Any = model_or_board.comparisons
    else:
        data = model_or_board
    if isinstance(data, PairData):
        graph = data.graph()
        labels = data.items
    elif isinstance(data, PairGraph):
        graph = data
        labels = np.arange(data.n_items) if data.items is None else np.asarray(data.items)
    else:
        raise TypeError(
            f"model_or_board is of type {type(data).__name__}; expected a board of rate, "
            "PairData, a PairGraph, a RatingPosterior or a CalibratedRanker. Wrap another ranker: "
            "CalibratedRanker(ranker).fit(X, y, groups)."
        )
    if not prior > 0:
        raise ValueError(f"prior={prior!r}; expected a positive number.")
    features = None
    if X is not None:
        features = check_array(X, dtype=np.float64, input_name="X")
        if len(features) != graph.n_items:
            raise ValueError(
                f"X has {len(features)} rows, but the comparisons are of {graph.n_items} items; "
                "pass one row for each item."
            )
    return fit_posterior(graph, features, float(prior)), labels


def _posterior_of_ranker(ranker: CalibratedRanker, X: MatrixLike) -> RatingPosterior:
    """Return the scores of the items X as ratings."""
    if X is None:
        raise ValueError("X is missing; pass the items to choose from.")
    check_number_of_items(_num_samples(X))
    errors = ranker.jackknife()
    root = errors.spread(X).root
    curve = ProbabilityMap(ranker.slope_, ranker.error_weight_)
    return RatingPosterior(errors.predict(X), root @ root.T, curve)


def _choose_pairs(
    posterior: RatingPosterior, top: int | None, k: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Choose the most valuable pair, then the next one as if it had been compared, and so on.

    The value of a pair only decreases when other pairs are chosen, so its previous value is an
    upper bound. The best of the candidates is the best of all pairs if its value exceeds the
    previous values of the other pairs. The posterior observes the chosen pairs.
    """
    i, j = np.triu_indices(posterior.n_items, 1)
    values = _pair_values(posterior, i, j, top, rng)
    k = min(k, len(i))
    n_candidates = min(max(CANDIDATES, 4 * k), len(i))
    chosen: list[tuple[int, int]] = []
    while len(chosen) < k:
        decreasing = np.argpartition(-values, n_candidates - 1)
        candidates = decreasing[:n_candidates]
        candidates = candidates[values[candidates] >= 0]
        bound = values[decreasing[n_candidates:]].max(initial=0.0)
        while len(chosen) < k:
            values[candidates] = _pair_values(posterior, i[candidates], j[candidates], top, rng)
            best = candidates[np.argmax(values[candidates])]
            if values[best] < bound * (1 - JITTER):
                break
            pair = (int(i[best]), int(j[best]))
            chosen.append(pair)
            posterior.observe(*pair)
            values[best] = -1.0  # not to be chosen again
            candidates = candidates[candidates != best]
    return chosen


def answers_to_go(
    posterior: RatingPosterior, goal: str, top: int, level: float, rng: np.random.Generator
) -> int | None:
    """Estimate the number of answers until the goal is settled: the median over futures.

    More and more pairs are treated as answered. Possible means and errors of the ratings are drawn,
    and the goal counts as settled if it is settled in half of them. None if that takes more than
    ten answers per item.

    Parameters
    ----------
    posterior : RatingPosterior
        Current ratings.
    goal, top, level
        As in `next_pairs`.
    rng : Generator
        Random numbers.
    """
    planned = posterior.copy()
    n_top = top if goal == "top" else None
    n_answers = 0
    while n_answers <= MOST_ANSWERS * planned.n_items:
        futures, errors = planned.futures(N_FUTURES, N_ERRORS, rng)
        confidences = [_draw_confidence(mean, mean + errors, n_top) for mean in futures]
        if np.median(confidences) >= level:
            return n_answers
        n_answers += len(_choose_pairs(planned, n_top, max(1, n_answers // 4), rng))
    return None


def _draw_confidence(mean: Array, samples: Array, top: int | None) -> float:
    """Share of the samples with the same top; or the smallest share with two neighbors in order."""
    ordered = samples[:, np.argsort(-mean, kind="stable")]
    if top is None:
        return float((ordered[:, :-1] > ordered[:, 1:]).mean(axis=0).min())
    lowest_of_top = ordered[:, :top].min(axis=1, initial=np.inf)
    highest_of_others = ordered[:, top:].max(axis=1, initial=-np.inf)
    return float(np.mean(lowest_of_top > highest_of_others))


def _pair_values(
    posterior: RatingPosterior, i: Indices, j: Indices, top: int | None, rng: np.random.Generator
) -> Array:
    """``v p (1 − p)``, for a top times the probability that either item is on the other side.

    Equal values differ by a random factor near 1.
    """
    v = posterior.variances(i, j)
    margin = np.abs(posterior.mean[i] - posterior.mean[j]).astype(v.dtype)
    p = posterior.curve.probability(-margin, np.sqrt(v))
    values = v * p * (1 - p)
    if top is not None:
        p_top = _top_probabilities(posterior, top)
        doubt = (p_top * (1 - p_top)).astype(v.dtype)
        values *= doubt[i] + doubt[j]
    return np.asarray(values * (1 + JITTER * rng.random(len(values), dtype=np.float32)))


def _top_probabilities(posterior: RatingPosterior, top: int) -> Array:
    """Probability that each item is above the cutoff, between the last of the top and the next."""
    decreasing = -np.partition(-posterior.mean, [top - 1, top])
    cutoff = (decreasing[top - 1] + decreasing[top]) / 2
    return _probability_positive(posterior.mean - cutoff, np.sqrt(posterior.item_variances()))


def _probability_positive(mean: Array, error: Array) -> Array:
    """Probability that normal variables with these means and standard errors are positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean == 0, 0.5, ndtr(mean / error))


def _confidence(
    posterior: RatingPosterior, top: int | None, level: float, rng: np.random.Generator
) -> tuple[float, int]:
    """Return the confidence and the number of open items or neighbors, as in `NextPairs`."""
    order = np.argsort(-posterior.mean, kind="stable")
    if top is None:
        first = order[:-1]
        second = order[1:]
        error = np.sqrt(posterior.variances(first, second).astype(np.float64))
        p_ordered = _probability_positive(posterior.mean[first] - posterior.mean[second], error)
        return float(p_ordered.min()), int((p_ordered < level).sum())
    p_top = _top_probabilities(posterior, top)
    doubt = np.minimum(p_top, 1 - p_top)
    contenders = np.flatnonzero(doubt > LEAST_DOUBT)
    n_open = int((doubt > 1 - level).sum())
    if len(contenders) > MOST_CONTENDERS:
        return 0.0, n_open
    samples = posterior.draw(contenders, N_DRAWS, rng)
    n_contenders_in_top = int(np.isin(contenders, order[:top]).sum())
    confidence = _draw_confidence(posterior.mean[contenders], samples, n_contenders_in_top)
    return confidence, n_open


def _suggest(
    posterior: RatingPosterior, labels: Labels, i: int, j: int, rng: np.random.Generator
) -> SuggestedPair:
    """Return a pair in random order."""
    if rng.random() < 0.5:
        i, j = j, i
    error = np.sqrt(posterior.variances(np.array([i]), np.array([j])))
    p = posterior.curve.probability(posterior.mean[[i]] - posterior.mean[[j]], error)
    first, second = labels[[i, j]].tolist()
    return SuggestedPair(first, second, float(p[0]), float(error[0]))
