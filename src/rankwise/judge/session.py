"""Who is asked what: questions chosen by what is known so far, and the board that comes of it."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Any

import numpy as np
from scipy.special import ndtri

from rankwise.arrays import Array, Indices
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import count
from rankwise.graphs import PairGraph
from rankwise.judge.item_set import Item, ItemSet
from rankwise.judge.storage import Answer, AnswerStore, Question
from rankwise.leaderboard import RatingPosterior, fit_posterior, next_pairs
from rankwise.leaderboard.inference.pair_suggestions import answers_to_go
from rankwise.leaderboard.inference.posterior import check_number_of_items
from rankwise.runtime.threads import single_threaded

QUEUE = 20  # pairs chosen at a time
PRIOR = 1.0  # every item begins as if it had tied with an average one
REST = 2.0  # of the time that a rating takes; many judges need the processor, too
FORESEEN = 200  # items; with more it takes too long to tell how many answers are still needed
N_DRAWS = 1000  # of the ratings, for the ranks of the live board


class JudgingSession:
    """Questions and answers of all judges, and the ratings behind them.

    A thread rates the items again whenever there are new answers, and fills the queue of pairs
    that are worth asking. A question never waits for it.

    Parameters
    ----------
    items : ItemSet
        What is judged.
    store : AnswerStore
        Where the answers are.
    goal : {"order", "top"}
        What is to be found out: the whole order, or which items are the best ones.
    top : int
        How many, for ``goal="top"``.
    level : float
        How sure that has to be before the page says that it is settled.
    is_blind : bool
        Whether judges see no name before their answer, and no board before it is settled.
    random_state : int or None
        Seed of the sides and of ties between questions.

    Examples
    --------
    >>> import tempfile
    >>> from rankwise.judge import Item, ItemSet, AnswerStore, JudgingSession
    >>> items = ItemSet([Item(name, ()) for name in ("tea", "coffee", "milk")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = AnswerStore(f"{folder}/answers.db", items.items)
    ...     session = JudgingSession(items, store, random_state=0)
    ...     question = session.question("Ann")
    ...     session.close()
    >>> question.judge
    'Ann'
    """

    def __init__(
        self,
        items: ItemSet,
        store: AnswerStore,
        *,
        goal: str = "top",
        top: int = 3,
        level: float = 0.9,
        is_blind: bool = False,
        random_state: int | None = None,
    ) -> None:
        check_number_of_items(len(items.items))
        self.items: list[Item] = items.items
        self.store = store
        self.goal, self.level, self.is_blind = goal, level, is_blind
        self.top = min(top, len(self.items) - 1)
        self._rng = np.random.default_rng(random_state)
        self._seed = int(self._rng.integers(2**31))
        self._features = _with_own_rating(items.features)
        codes = {name: code for code, name in enumerate(store.item_names())}
        self._codes = [codes[item.name] for item in self.items]
        self._place = {code: place for place, code in enumerate(self._codes)}
        self._lock, self._rating_lock = threading.Lock(), threading.Lock()
        self._queue: deque[tuple[int, int]] = deque(self._first_round())
        self._rows: list[dict[str, Any]] = []
        self._n_rated = 0
        self._settled = 0.0
        self._to_go: int | None = None
        self._trouble = ""
        self._asked: Counter[tuple[str, int, int]] = Counter()
        for answer in store.comparisons():
            low, high = sorted((answer.first, answer.second))
            self._asked[(answer.judge, low, high)] += 1
        self._is_new, self._is_over = threading.Event(), threading.Event()
        self._is_new.set()
        self._worker = threading.Thread(target=self._keep_rating, daemon=True)
        self._worker.start()

    def close(self) -> None:
        """Stop the thread; answers are on the disk already."""
        self._is_over.set()
        self._is_new.set()
        self._worker.join()

    def question(self, judge: str) -> Question:
        """Return the question that waits for this judge, or a new one."""
        return self.store.ask(judge, lambda: self._choose(judge))

    def answer(self, judge: str, question: int, outcome: str) -> Question:
        """Keep the answer and return the next question."""
        self.store.answer(judge, question, outcome)
        self._is_new.set()
        return self.question(judge)

    def undo(self, judge: str) -> Question:
        """Take back the last answer of the judge, and return that question if it can be asked."""
        if not self.store.undo(judge):
            raise ValueError("there is no answer of yours to take back.")
        self._is_new.set()
        return self.question(judge)

    def places(self, question: Question) -> tuple[int, int]:
        """Where the two items are in `items`, in the order of their sides."""
        return self._place[question.first], self._place[question.second]

    @property
    def is_hidden(self) -> bool:
        """Whether the board is not to be seen: judges are blind, and it is not settled."""
        return self.is_blind and self._settled < self.level

    def progress(self, judge: str) -> dict[str, Any]:
        """How far it is, for the page."""
        by_judge, n = self.store.n_answers(judge), self.store.n_answers()
        settled = self._settled
        others = "" if by_judge == n else f", {n:,} in all"
        goal = f"the top {self.top}" if self.goal == "top" else "the order"
        if settled >= self.level:
            state = f"{goal} is settled ({settled:.0%} sure); you may stop"
        elif self._to_go is None:
            state = f"{settled:.0%} sure of {goal}"
        else:
            state = f"{settled:.0%} sure of {goal}, about {count(self._to_go, 'answer')} to go"
        text = f"{count(by_judge, 'answer')} of yours{others}; {state}."
        numbers = {"own": by_judge, "all": n, "settled": settled}
        return {**numbers, "text": text, "isHidden": self.is_hidden}

    def standing(self) -> dict[str, Any]:
        """Rows of the board so far, for the page; none before it is settled if judges are blind."""
        with self._lock:
            n, rows, trouble = self._n_rated, self._rows, self._trouble
        if self.is_hidden:
            return {"rows": [], "note": "Judging is blind: the board is shown once it is settled."}
        if trouble:
            note = f"The items cannot be rated ({trouble}). Answers are kept all the same."
        elif not n:
            note = "No answers yet."
        else:
            note = (
                f"From {count(n, 'answer')}. A dot is a rating, a bar its {DEFAULT_CONFIDENCE:.0%} "
                "interval. Few answers leave all ratings near the middle and all intervals wide."
            )
        return {"rows": rows if n else [], "note": note}

    @single_threaded
    def refresh(self) -> None:
        """Rate the items by all answers, and choose the next pairs; the thread does it, too.

        The result depends on the answers and the seed, not on how often it was called before.
        """
        with self._rating_lock:
            answers = self.store.comparisons()
            here = [a for a in answers if a.first in self._place and a.second in self._place]
            graph, X = self._graph(here), self._features
            seed = self._seed + len(answers)
            asked = next_pairs(
                graph, X, QUEUE, goal=self.goal, top=self.top, level=self.level, prior=PRIOR,
                random_state=seed,
            )  # fmt: skip
            rng = np.random.default_rng(seed)
            belief = fit_posterior(graph, X, PRIOR)
            rows, to_go = self._board(belief, graph, rng), None
            if here and len(rows) <= FORESEEN:
                to_go = answers_to_go(belief, self.goal, self.top, self.level, rng)
            with self._lock:
                self._to_go = to_go
                self._trouble = ""
                self._settled = asked.confidence if here else 0.0
                self._n_rated, self._rows = len(here), rows
                if here:  # the first round goes on until there is something to choose by
                    self._queue = deque((question.first, question.second) for question in asked)

    def _keep_rating(self) -> None:
        while self._is_new.wait() and not self._is_over.is_set():
            self._is_new.clear()
            start = time.perf_counter()
            try:
                self.refresh()
            except Exception as error:  # whatever it is, the next answer must be rated again
                with self._lock:
                    self._trouble = str(error).rstrip(".") or type(error).__name__
            self._is_over.wait(REST * (time.perf_counter() - start))

    def _first_round(self) -> list[tuple[int, int]]:
        """A random circle: every item in two pairs, all of them connected."""
        circle = self._rng.permutation(len(self.items))
        pairs = list(zip(circle.tolist(), np.roll(circle, 1).tolist(), strict=True))
        return pairs[: len(pairs) if len(pairs) > 2 else 1]

    def _choose(self, judge: str) -> tuple[int, int]:
        """Codes of two items, sides at random; called inside the transaction that keeps them."""
        taken = self.store.open_pairs()

        def codes(pair: tuple[int, int]) -> tuple[int, int]:
            first, second = (self._codes[place] for place in pair)
            return (first, second) if first < second else (second, first)

        def is_free(pair: tuple[int, int]) -> bool:
            return codes(pair) not in taken and not self._asked[(judge, *codes(pair))]

        with self._lock:
            pair = next(filter(is_free, self._queue), None)
            if pair is not None:
                self._queue.remove(pair)
            else:  # a pair that this judge has not seen if chance finds one, or else any
                for _ in range(50):
                    first, second = self._rng.choice(len(self.items), 2, replace=False).tolist()
                    pair = (first, second)
                    if is_free(pair):
                        break
                assert pair is not None
            self._asked[(judge, *codes(pair))] += 1
            first, second = self._rng.permutation(codes(pair)).tolist()
        return first, second

    def _graph(self, answers: list[Answer]) -> PairGraph:
        first = np.array([self._place[a.first] for a in answers], dtype=np.intp)
        second = np.array([self._place[a.second] for a in answers], dtype=np.intp)
        outcome = np.array([a.outcome for a in answers])
        winner: Indices = np.where(outcome == "second", second, first)
        loser: Indices = np.where(outcome == "second", first, second)
        margin = (outcome != "tie").astype(float)
        return PairGraph(winner, loser, magnitude=margin, n_items=len(self.items))

    def _board(
        self, belief: RatingPosterior, graph: PairGraph, rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        n = len(self.items)
        half = float(ndtri((1 + DEFAULT_CONFIDENCE) / 2)) * np.sqrt(belief.item_variances())
        draws = np.argsort(np.argsort(-belief.draw(np.arange(n), N_DRAWS, rng))) + 1
        tails = [(1 - DEFAULT_CONFIDENCE) / 2, (1 + DEFAULT_CONFIDENCE) / 2]
        best, worst = np.quantile(draws, tails, axis=0, method="nearest").astype(int)
        asked = np.bincount(graph.winner, minlength=n) + np.bincount(graph.loser, minlength=n)
        return [
            {
                "rank": rank,
                "item": self.items[k].name,
                "rating": float(belief.mean[k]),
                "low": float(belief.mean[k] - half[k]),
                "high": float(belief.mean[k] + half[k]),
                "best": int(best[k]),
                "worst": int(worst[k]),
                "n": int(asked[k]),
            }
            for rank, k in enumerate(np.argsort(-belief.mean, kind="stable").tolist(), start=1)
        ]


def _with_own_rating(X: Array | None) -> Array | None:
    """Features of the items, and one for each item: what its features do not say of it."""
    if X is None or not X.any():
        return None
    scale = np.sqrt(np.mean(np.sum(X**2, axis=1)))
    return np.asarray(np.hstack([X / scale, np.eye(len(X))]) / np.sqrt(2))
