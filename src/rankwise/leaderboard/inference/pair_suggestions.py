"""Which pairs to compare next, and whether to stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple, TypeAlias

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
from rankwise.uncertainty.calibrated_ranker import CalibratedRanker
from rankwise.uncertainty.probability_map import ProbabilityMap
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

    The errors of a ranker are estimated by the jackknife: a feature that is the same in all units
    of its training data has no error.

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
    n_items = posterior.n_items
    k = check_int("k", k, least=1)
    if n_items < 2:
        raise ValueError(f"there is {n_items} item; a pair needs two.")
    if not 0.5 < level < 1:
        raise ValueError(f"level={level!r}; expected a number between 0.5 and 1.")
    n_top = None
    if goal == "top":
        if not isinstance(top, Integral) or not 1 <= top < n_items:
            raise ValueError(
                f"top={top!r}; expected a number from 1 to {n_items - 1} for {n_items} items."
            )
        n_top = int(top)

    confidence, n_unsettled = _confidence_and_n_unsettled(posterior, n_top, level, rng)
    pairs = _choose_pairs(posterior.copy(), n_top, k, rng)  # the copy is changed by each choice
    suggestions = tuple(_suggest(posterior, labels, i, j, rng) for i, j in pairs)
    return NextPairs(
        questions=suggestions,
        goal=goal,
        confidence=confidence,
        settled=bool(confidence >= level),
        n_open=n_unsettled,
    )


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
    graph, labels = _graph_and_labels(model_or_board)
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


def _graph_and_labels(data: Leaderboard | PairData | PairGraph) -> tuple[PairGraph, Labels]:
    """Return the comparisons as a graph, and the labels of the items."""
    if isinstance(data, Leaderboard):
        data = data.comparisons
    if isinstance(data, PairData):
        return data.graph(), data.items
    if not isinstance(data, PairGraph):
        raise TypeError(
            f"model_or_board is of type {type(data).__name__}; expected a board of rate, "
            "PairData, a PairGraph, a RatingPosterior or a CalibratedRanker. Wrap another ranker: "
            "CalibratedRanker(ranker).fit(X, y, groups)."
        )
    if data.items is None:
        return data, np.arange(data.n_items)
    return data, np.asarray(data.items)


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
    posterior: RatingPosterior, n_top: int | None, k: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Choose the most valuable pair, then the next one as if it had been compared, and so on.

    The value of a pair only decreases when other pairs are chosen, so its previous value is an
    upper bound. The best of the candidates is the best of all pairs if its value exceeds the
    previous values of the other pairs. The posterior observes the chosen pairs.
    """
    first, second = np.triu_indices(posterior.n_items, 1)
    n_pairs = len(first)
    values = _pair_values(posterior, first, second, n_top, rng)
    k = min(k, n_pairs)
    n_candidates = min(max(CANDIDATES, 4 * k), n_pairs)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < k:
        # The pairs with the largest values are the candidates; all others are below the bound.
        by_value = np.argpartition(-values, n_candidates - 1)
        candidates = by_value[:n_candidates]
        candidates = candidates[values[candidates] >= 0]  # chosen pairs have the value −1
        bound_of_others = values[by_value[n_candidates:]].max(initial=0.0)
        while len(chosen) < k:
            values[candidates] = _pair_values(
                posterior, first[candidates], second[candidates], n_top, rng
            )
            best = candidates[np.argmax(values[candidates])]
            if values[best] < bound_of_others * (1 - JITTER):  # values differ by this at random
                break  # values have decreased below other pairs: choose new candidates
            pair = (int(first[best]), int(second[best]))
            chosen.append(pair)
            posterior.observe(*pair)  # variances as if the pair had been answered
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
    planned = posterior.copy()  # becomes the posterior after the planned answers
    n_top = top if goal == "top" else None
    n_answers = 0
    while n_answers <= MOST_ANSWERS * planned.n_items:
        possible_means, errors = planned.futures(N_FUTURES, N_ERRORS, rng)
        confidences = [_confidence_of_draws(mean, mean + errors, n_top) for mean in possible_means]
        if np.median(confidences) >= level:
            return n_answers
        n_next = max(1, n_answers // 4)  # a quarter more at a time: a rough estimate suffices
        n_answers += len(_choose_pairs(planned, n_top, n_next, rng))
    return None


def _confidence_of_draws(mean: Array, draws: Array, n_top: int | None) -> float:
    """Share of the samples with the same top; or the smallest share with two neighbors in order."""
    draws_by_rank = draws[:, np.argsort(-mean, kind="stable")]
    if n_top is None:
        is_in_order = draws_by_rank[:, :-1] > draws_by_rank[:, 1:]
        return float(is_in_order.mean(axis=0).min())
    lowest_of_top = draws_by_rank[:, :n_top].min(axis=1, initial=np.inf)
    highest_of_others = draws_by_rank[:, n_top:].max(axis=1, initial=-np.inf)
    return float(np.mean(lowest_of_top > highest_of_others))


def _pair_values(
    posterior: RatingPosterior,
    first: Indices,
    second: Indices,
    n_top: int | None,
    rng: np.random.Generator,
) -> Array:
    """``v p (1 − p)``, for a top times the probability that either item is on the other side.

    Equal values differ by a random factor near 1.
    """
    variance = posterior.variances(first, second)
    margin = np.abs(posterior.mean[first] - posterior.mean[second]).astype(variance.dtype)
    p_upset = posterior.curve.probability(-margin, np.sqrt(variance))
    values = variance * p_upset * (1 - p_upset)  # large if the difference and the winner are open
    if n_top is not None:  # prefer items that may be on either side of the cutoff
        p_top = _top_probabilities(posterior, n_top)
        doubt = (p_top * (1 - p_top)).astype(variance.dtype)
        values *= doubt[first] + doubt[second]
    jitter = JITTER * rng.random(len(values), dtype=np.float32)  # breaks ties at random
    return np.asarray(values * (1 + jitter))


def _top_probabilities(posterior: RatingPosterior, n_top: int) -> Array:
    """Probability that each item is above the cutoff, between the last of the top and the next."""
    # The cutoff is the middle between the last item of the top and the next one.
    decreasing_means = -np.partition(-posterior.mean, [n_top - 1, n_top])
    cutoff = (decreasing_means[n_top - 1] + decreasing_means[n_top]) / 2
    errors = np.sqrt(posterior.item_variances())
    return _probability_positive(posterior.mean - cutoff, errors)


def _probability_positive(mean: Array, error: Array) -> Array:
    """Probability that normal variables with these means and standard errors are positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean == 0, 0.5, ndtr(mean / error))


def _confidence_and_n_unsettled(
    posterior: RatingPosterior, n_top: int | None, level: float, rng: np.random.Generator
) -> tuple[float, int]:
    """Return the confidence and the number of open items or neighbors, as in `NextPairs`."""
    if n_top is None:  # the goal is the order
        return _confidence_of_order(posterior, level)
    return _confidence_of_top(posterior, n_top, level, rng)


def _confidence_of_order(posterior: RatingPosterior, level: float) -> tuple[float, int]:
    """Smallest probability that two neighbors are in order, and the number of unsettled ones."""
    by_mean = np.argsort(-posterior.mean, kind="stable")
    upper = by_mean[:-1]
    lower = by_mean[1:]
    errors = np.sqrt(posterior.variances(upper, lower).astype(np.float64))
    differences = posterior.mean[upper] - posterior.mean[lower]
    p_ordered = _probability_positive(differences, errors)
    n_unsettled = int((p_ordered < level).sum())
    return float(p_ordered.min()), n_unsettled


def _confidence_of_top(
    posterior: RatingPosterior, n_top: int, level: float, rng: np.random.Generator
) -> tuple[float, int]:
    """Probability that the top by the means is the true one, and the number of unsettled items."""
    by_mean = np.argsort(-posterior.mean, kind="stable")
    p_top = _top_probabilities(posterior, n_top)
    p_other_side = np.minimum(p_top, 1 - p_top)
    n_unsettled = int((p_other_side > 1 - level).sum())
    contenders = np.flatnonzero(p_other_side > LEAST_DOUBT)
    if len(contenders) > MOST_CONTENDERS:  # too many to draw, and far from settled
        return 0.0, n_unsettled
    draws = posterior.draw(contenders, N_DRAWS, rng)
    n_contenders_in_top = int(np.isin(contenders, by_mean[:n_top]).sum())
    confidence = _confidence_of_draws(posterior.mean[contenders], draws, n_contenders_in_top)
    return confidence, n_unsettled


def _suggest(
    posterior: RatingPosterior, labels: Labels, i: int, j: int, rng: np.random.Generator
) -> SuggestedPair:
    """Return a pair in random order."""
    if rng.random() < 0.5:  # a random one of the two is first
        i, j = j, i
    error = np.sqrt(posterior.variances(np.array([i]), np.array([j])))
    margin = posterior.mean[[i]] - posterior.mean[[j]]
    probability = posterior.curve.probability(margin, error)
    first, second = labels[[i, j]].tolist()
    return SuggestedPair(first, second, float(probability[0]), float(error[0]))
