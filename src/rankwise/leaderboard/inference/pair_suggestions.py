"""next_pairs: which pairs to compare next, and whether it is time to stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.graphs import PairGraph
from rankwise.leaderboard.inference.posterior import (
    RatingPosterior,
    check_number_of_items,
    fit_posterior,
)
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.calibrated_ranker import CalibratedRanker, ProbabilityMap
from rankwise.validation import check_int, check_option

GOALS = ("order", "top")
CANDIDATES = 4096  # pairs that are looked at again after each choice
N_DRAWS = 1000
CONTENDERS = 200  # items near the edge of the top; with more the top is anything but settled
OPEN = 1e-3  # probability of being on the other side of the edge, from which on an item matters
MANY_ANSWERS = 10  # for each item; more are too far off to foresee
N_FUTURES, N_ERRORS = 25, 200  # that are drawn to tell how many answers are still needed
JITTER = 1e-5  # relative: breaks ties at random


class SuggestedPair(NamedTuple):
    """A pair to compare.

    Attributes
    ----------
    first, second
        Labels of the items of a board, else row numbers. Which comes first is random.
    probability : float
        That the first will be preferred.
    error : float
        Standard error of the difference of the two ratings, as known before the answer.
    """

    first: Any
    second: Any
    probability: float
    error: float


@dataclass(frozen=True, eq=False)
class NextPairs:
    """What `next_pairs` returns: questions, the most useful first, and whether to go on.

    Attributes
    ----------
    questions : tuple of Question
        No pair is in it twice.
    goal : {"order", "top"}
        What they are for.
    confidence : float
        For "top" the probability that the present top is the right set of items. For "order" the
        least probability with which two neighbors of the present order are in the right order.
    settled : bool
        Whether the confidence is at least the level that was asked for.
    n_open : int
        For "top" the items that may be on the wrong side of the edge, for "order" the neighbors
        whose order is not known at the level.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import next_pairs
    >>> asked = next_pairs(PairGraph([0, 0], [1, 2], n_items=4), k=2, random_state=0)
    >>> len(asked), asked.settled
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
    model_or_board: Any,
    X: Any = None,
    k: int = 10,
    *,
    goal: str = "order",
    top: int = 10,
    level: float = DEFAULT_CONFIDENCE,
    prior: float = 1.0,
    random_state: Any = None,
) -> NextPairs:
    """Pairs whose comparison would teach most, and whether enough has been compared.

    Use it to ask as few comparisons as possible.

    A pair is worth the variance of the difference of its two ratings times p(1 − p), with p the
    probability that the first is preferred: what is neither known nor beyond doubt. After each
    choice the variances are updated as if the answer were in (rank one), so that the
    pairs of a batch do not ask the same thing twice. With ``goal="top"`` pairs
    count more the more likely their two items lie on different sides of the cutoff.

    Parameters
    ----------
    model_or_board : Leaderboard, PairData, PairGraph or CalibratedRanker
        What is known: comparisons (a PairGraph without edges if there are none yet), the
        board of them, or a fitted ranker.
    X : array-like of shape (n_items, n_features), optional
        Features of the items: those to choose from, for a ranker; for comparisons, ratings are
        then a linear function of them.
    k : int
        Number of pairs; fewer if there are no more.
    goal : {"order", "top"}
        Whether the order of all items matters, or only which are the `top` best.
    top : int
        Size of the top.
    level : float
        Confidence from which on the goal is settled; see `NextPairs`.
    prior : float
        For comparisons: what an item without any is taken to have, one tie with an average item
        for 1.
    random_state : int, Generator or None
        Seed: pairs of equal worth are chosen at random.

    Returns
    -------
    NextPairs
        Questions and `settled`.

    Notes
    -----
    All pairs are looked at, so that there may be at most 3,000 items: tens of milliseconds for
    1,000 of them.

    A ranker's errors come from the jackknife, which cannot see what no unit of its data has shown:
    a feature that never differed has no error.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import next_pairs
    >>> games = PairGraph([0, 0, 1], [1, 2, 2], n_items=4)
    >>> asked = next_pairs(games, k=2, random_state=0)
    >>> sorted([asked[0].first, asked[0].second])[1], asked.settled
    (3, False)
    """
    check_option("goal", goal, GOALS)
    rng = np.random.default_rng(random_state)
    belief, labels = _belief(model_or_board, X, prior)
    n = belief.n_items
    k = check_int("k", k, least=1)
    if n < 2:
        raise ValueError(f"there is {n} item; a question needs two.")
    if goal == "top" and not (isinstance(top, Integral) and 1 <= top < n):
        raise ValueError(f"top={top!r}; expected a number from 1 to {n - 1} for {n} items.")
    if not 0.5 < level < 1:
        raise ValueError(f"level={level!r}; expected a number between 0.5 and 1.")
    n_top = int(top) if goal == "top" else None
    confidence, n_open = _settled(belief, n_top, level, rng)
    planned = RatingPosterior(belief.mean, belief.covariance, belief.curve)
    chosen = _choose(planned, n_top, k, rng)
    return NextPairs(
        tuple(_question(belief, labels, i, j, rng) for i, j in chosen),
        goal,
        confidence,
        bool(confidence >= level),
        n_open,
    )


def _belief(known: Any, X: Any, prior: float) -> tuple[RatingPosterior, NDArray[Any]]:
    if isinstance(known, CalibratedRanker):
        if X is None:
            raise ValueError("pass X, the items to choose from: a ranker knows no items.")
        check_number_of_items(_num_samples(X))
        errors = known.jackknife()
        mean, root = errors.predict(X), errors.spread(X).root
        curve = ProbabilityMap(known.slope_, known.error_weight_)
        return RatingPosterior(mean, root @ root.T, curve), np.arange(len(mean))
    if isinstance(known, RatingPosterior):
        return known, np.arange(known.n_items)
    labels = getattr(known, "items", None)
    graph = getattr(known, "comparisons", known)  # of a board
    if isinstance(graph, PairData):
        graph = graph.graph()
    if not isinstance(graph, PairGraph):
        raise TypeError(
            f"model_or_board is of type {type(known).__name__}; expected a board of rate, "
            "PairData, a PairGraph or a CalibratedRanker. Wrap another ranker: "
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
    belief = fit_posterior(graph, features, float(prior))
    return belief, np.arange(graph.n_items) if labels is None else np.asarray(labels)


def _choose(
    belief: RatingPosterior, top: int | None, k: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """The best pair, the best after that, and so on.

    What a pair is worth only falls when others are chosen, so what it was worth before is a bound.
    The best of the candidates is the best of all if it is worth more than any other was.
    """
    i, j = np.triu_indices(belief.n_items, 1)
    worth = _worth(belief, i, j, top, rng)
    k, n_candidates = min(k, len(i)), min(max(CANDIDATES, 4 * k), len(i))
    chosen: list[tuple[int, int]] = []
    while len(chosen) < k:
        falling = np.argpartition(-worth, n_candidates - 1)
        few, others = falling[:n_candidates], falling[n_candidates:]
        few, bound = few[worth[few] >= 0], worth[others].max(initial=0.0)
        while len(chosen) < k:
            worth[few] = _worth(belief, i[few], j[few], top, rng)
            best = few[np.argmax(worth[few])]
            if worth[best] < bound * (1 - JITTER):
                break
            chosen.append((int(i[best]), int(j[best])))
            belief.observe(*chosen[-1])
            worth[best], few = -1.0, few[few != best]  # not again
    return chosen


def answers_to_go(
    belief: RatingPosterior, goal: str, top: int, level: float, rng: np.random.Generator
) -> int | None:
    """How many answers it may take until the goal is settled: in half of the cases no more.

    More and more pairs are taken as answered. What they would make of the ratings is drawn, and
    the goal counts as settled if it is for half of these futures. None if that takes more than
    ten answers for each item.
    """
    belief = RatingPosterior(belief.mean, belief.covariance, belief.curve)
    n_top, n_answers = top if goal == "top" else None, 0
    while n_answers <= MANY_ANSWERS * belief.n_items:
        futures, errors = belief.futures(N_FUTURES, N_ERRORS, rng)
        sure = [_share_settled(future, future + errors, n_top) for future in futures]
        if np.median(sure) >= level:
            return n_answers
        n_answers += len(_choose(belief, n_top, max(1, n_answers // 4), rng))
    return None


def _share_settled(mean: Array, samples: Array, top: int | None) -> float:
    """Share of the samples with this top; or the least share with two neighbors in this order."""
    falling = samples[:, np.argsort(-mean, kind="stable")]
    if top is None:
        return float((falling[:, :-1] > falling[:, 1:]).mean(axis=0).min())
    lowest = falling[:, :top].min(axis=1, initial=np.inf)
    return float(np.mean(lowest > falling[:, top:].max(axis=1, initial=-np.inf)))


def _worth(
    belief: RatingPosterior, i: Indices, j: Indices, top: int | None, rng: np.random.Generator
) -> Array:
    """``v p (1 − p)``, times the chance of the two to be on the other side of the edge.

    Equal values come out in random order.
    """
    v = belief.variances(i, j)
    margin = np.abs(belief.mean[i] - belief.mean[j]).astype(v.dtype)
    p = belief.curve.probability(-margin, np.sqrt(v))
    worth = v * p * (1 - p)
    if top is not None:
        q = _inside(belief, top)
        doubt = (q * (1 - q)).astype(v.dtype)
        worth *= doubt[i] + doubt[j]
    return np.asarray(worth * (1 + JITTER * rng.random(len(worth), dtype=np.float32)))


def _inside(belief: RatingPosterior, top: int) -> Array:
    """Probability of each item to be above the edge, between the last of the top and the next."""
    falling = -np.partition(-belief.mean, [top - 1, top])
    margin = belief.mean - (falling[top - 1] + falling[top]) / 2
    return _above(margin, np.sqrt(belief.item_variances()))


def _above(margin: Array, error: Array) -> Array:
    """Probability of a normal number of this mean and error to be above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(margin == 0, 0.5, ndtr(margin / error))


def _settled(
    belief: RatingPosterior, top: int | None, level: float, rng: np.random.Generator
) -> tuple[float, int]:
    """Confidence, and how much is open."""
    order = np.argsort(-belief.mean, kind="stable")
    if top is None:
        first, second = order[:-1], order[1:]
        error = np.sqrt(belief.variances(first, second).astype(np.float64))
        right = _above(belief.mean[first] - belief.mean[second], error)
        return float(right.min()), int((right < level).sum())
    inside = _inside(belief, top)
    doubt = np.minimum(inside, 1 - inside)
    contenders, n_open = np.flatnonzero(doubt > OPEN), int((doubt > 1 - level).sum())
    if len(contenders) > CONTENDERS:
        return 0.0, n_open
    samples = belief.draw(contenders, N_DRAWS, rng)
    n_inside = int(np.isin(contenders, order[:top]).sum())
    return _share_settled(belief.mean[contenders], samples, n_inside), n_open


def _question(
    belief: RatingPosterior, labels: NDArray[Any], i: int, j: int, rng: np.random.Generator
) -> SuggestedPair:
    if rng.random() < 0.5:
        i, j = j, i
    error = np.sqrt(belief.variances(np.array([i]), np.array([j])))
    p = belief.curve.probability(belief.mean[[i]] - belief.mean[[j]], error)
    first, second = labels[[i, j]].tolist()
    return SuggestedPair(first, second, float(p[0]), float(error[0]))
