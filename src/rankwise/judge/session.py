"""A judging session: chooses the questions, stores the answers, and rates the items."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter, deque
from typing import NamedTuple, TypedDict

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import count
from rankwise.graphs import PairGraph
from rankwise.judge.item_set import Item, ItemSet
from rankwise.judge.storage import Answer, AnswerStore, Question
from rankwise.leaderboard import LeaderboardRow, fit_posterior, next_pairs, rate
from rankwise.leaderboard.inference.pair_suggestions import answers_to_go
from rankwise.leaderboard.inference.posterior import check_number_of_items
from rankwise.runtime.threads import single_threaded

QUEUE_LENGTH = 20
"""Number of pairs that are chosen at a time."""
PRIOR = 1.0
"""Prior of the ratings that choose the pairs: one tie of each item with an average item."""
PAUSE_RATIO = 2.0
"""Pause after a rating, relative to its duration; requests need the processor, too."""
MAX_ITEMS_TO_FORECAST = 200
"""With more items it takes too long to estimate how many answers are still needed."""
RANDOM_PAIR_ATTEMPTS = 50


class BoardRow(TypedDict):
    """A row of the board on the page; an item without answers has no rating."""

    rank: int | None
    item: str
    rating: float | None
    low: float | None
    high: float | None
    best: int | None
    worst: int | None
    n: int


class Board(TypedDict):
    """The board on the page, and a note about it."""

    rows: list[BoardRow]
    note: str


class Progress(TypedDict):
    """Progress on the page.

    The number of answers of the judge, whether the board is hidden (it is before the first answer),
    the confidence that the goal is reached, and all of it as text.
    """

    nByJudge: int
    confidence: float
    text: str
    isHidden: bool


class Rated(NamedTuple):
    """Results of one rating of the items.

    Attributes
    ----------
    n_answers : int
        Number of answers that the items were rated by.
    rows : tuple of BoardRow
        Rows of the board.
    confidence : float
        Confidence that the goal is reached, as in `NextPairs`.
    answers_to_go : int or None
        Estimated number of answers until the goal is settled; None if not estimated.
    failure : str
        Why the items could not be rated; empty if they were.
    """

    n_answers: int = 0
    rows: tuple[BoardRow, ...] = ()
    confidence: float = 0.0
    answers_to_go: int | None = None
    failure: str = ""


class JudgingSession:
    """Questions and answers of all judges, and the ratings computed from them.

    A thread rates the items when there are new answers, and fills the queue of pairs to compare.
    A question never waits for the thread.

    Parameters
    ----------
    items : ItemSet
        Items to compare.
    store : AnswerStore
        Storage of the answers.
    goal : {"order", "top"}, default="top"
        Whether to find the order of all items or the best ones.
    top : int, default=3
        Number of best items to find, for ``goal="top"``.
    level : float, default=0.9
        Confidence from which on the page says that the goal is settled.
    is_blind : bool, default=False
        Whether names are hidden before an answer, and the board until the goal is settled.
    random_state : int or None, default=None
        Seed of the sides, and of the choice between equally useful pairs.

    Examples
    --------
    >>> import tempfile
    >>> from rankwise.judge.item_set import Item, ItemSet
    >>> from rankwise.judge.session import JudgingSession
    >>> from rankwise.judge.storage import AnswerStore
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
        self.goal = goal
        self.top = min(top, len(self.items) - 1)  # at least one item is not in the top
        self.level = level
        self.is_blind = is_blind
        self._rng = np.random.default_rng(random_state)
        self._seed = int(self._rng.integers(2**31))
        self._features = _add_item_effects(items.features)

        # The store numbers all items that it ever had: a code; here an item has a position.
        code_of_name = {name: code for code, name in enumerate(store.item_names())}
        self._codes = [code_of_name[item.name] for item in self.items]
        self._position_of_code = {code: position for position, code in enumerate(self._codes)}
        self._rated = Rated()
        self._queue: deque[tuple[int, int]] = deque(self._make_first_round())
        self._n_asked: Counter[tuple[str, int, int]] = Counter()  # by judge and sorted codes
        for answer in store.answers():
            low_code, high_code = sorted((answer.first, answer.second))
            self._n_asked[(answer.judge, low_code, high_code)] += 1

        # The ratings are computed in a thread of their own.
        self._lock = threading.Lock()  # of the queue and of what was asked
        self._rating_lock = threading.Lock()
        self._has_new_answers = threading.Event()
        self._is_closed = threading.Event()
        self._has_new_answers.set()
        self._worker = threading.Thread(target=self._keep_rating, daemon=True)
        self._worker.start()

    def close(self) -> None:
        """Stop the thread; the answers are on disk already."""
        self._is_closed.set()
        self._has_new_answers.set()
        self._worker.join()

    def question(self, judge: str) -> Question:
        """Return the open question of this judge, or a new one."""
        return self.store.ask(judge, lambda: self._choose_pair(judge))

    def answer(self, judge: str, question: int, outcome: str) -> Question:
        """Store the answer and return the next question."""
        self.store.answer(judge, question, outcome)
        self._has_new_answers.set()
        return self.question(judge)

    def undo(self, judge: str) -> Question:
        """Undo the last answer of the judge, and return its question if it can be asked again."""
        if not self.store.undo(judge):
            raise ValueError("there is no answer of yours to undo.")
        self._has_new_answers.set()
        return self.question(judge)

    def positions(self, question: Question) -> tuple[int, int]:
        """Return the positions of the two items in `items`, in the order of their sides."""
        return self._position_of_code[question.first], self._position_of_code[question.second]

    @property
    def is_hidden(self) -> bool:
        """Whether the board is hidden: judging is blind, and the goal is not settled."""
        return self.is_blind and self._rated.confidence < self.level

    def progress(self, judge: str) -> Progress:
        """Return the numbers of answers and the confidence, for the page."""
        n_by_judge = self.store.n_answers(judge)
        n_answers = self.store.n_answers()
        answers_text = count(n_by_judge, "answer") + " from you"
        if n_answers != n_by_judge:
            answers_text += f", {n_answers:,} in total"
        return {
            "nByJudge": n_by_judge,
            "confidence": self._rated.confidence,
            "text": f"{answers_text}; {self._describe_goal()}.",
            "isHidden": self.is_hidden or n_answers == 0,
        }

    def _describe_goal(self) -> str:
        rated = self._rated
        goal = "the order"
        if self.goal == "top":
            goal = f"the top {self.top}"
        if rated.confidence >= self.level:
            return f"{goal} is settled ({rated.confidence:.0%} sure); you may stop"
        text = f"{rated.confidence:.0%} sure of {goal}"
        if rated.answers_to_go is None:
            return text
        return f"{text}, about {count(rated.answers_to_go, 'answer')} to go"

    def board(self) -> Board:
        """Return the rows of the board, for the page; no rows while the board is hidden."""
        rated = self._rated
        if self.is_hidden:
            return {"rows": [], "note": "Judging is blind: the board is shown once it is settled."}
        if rated.failure:
            note = f"The items cannot be rated ({rated.failure}). Answers are still stored."
        elif rated.n_answers == 0:
            note = "No answers yet."
        else:
            note = (
                f"From {count(rated.n_answers, 'answer')}. A dot is a rating, a bar its "
                f"{DEFAULT_CONFIDENCE:.0%} interval, as in rankwise rank; arrows mark intervals "
                "that continue beyond the scale. With few answers the intervals are wide."
            )
        return {"rows": list(rated.rows), "note": note}

    @single_threaded
    def refresh(self) -> None:
        """Rate the items by all answers, and choose the next pairs.

        The thread calls this method. The result depends on the answers and the seed, not on
        earlier calls.
        """
        with self._rating_lock:
            all_answers = self.store.answers()
            answers = [answer for answer in all_answers if self._is_about_current_items(answer)]
            if answers:
                self._update_ratings(answers, seed=self._seed + len(all_answers))
            else:
                self._rated = Rated()

    def _update_ratings(self, answers: list[Answer], seed: int) -> None:
        posterior = fit_posterior(self._make_graph(answers), self._features, PRIOR)
        suggested_pairs = next_pairs(
            posterior,
            k=QUEUE_LENGTH,
            goal=self.goal,
            top=self.top,
            level=self.level,
            random_state=seed,
        )
        n_answers_to_go = None
        if len(self.items) <= MAX_ITEMS_TO_FORECAST:
            rng = np.random.default_rng(seed)
            n_answers_to_go = answers_to_go(posterior, self.goal, self.top, self.level, rng)
        rated = Rated(
            n_answers=len(answers),
            rows=tuple(self._make_rows_for_page(answers)),
            confidence=suggested_pairs.confidence,
            answers_to_go=n_answers_to_go,
        )
        with self._lock:
            self._rated = rated
            self._queue = deque((int(pair.first), int(pair.second)) for pair in suggested_pairs)

    def _make_rows_for_page(self, answers: list[Answer]) -> list[BoardRow]:
        """Rows of the board; items without answers are last and have no rating."""
        rows = [_row_for_page(row) for row in self._rate_answers(answers)]
        rated_names = {row["item"] for row in rows}
        for item in self.items:
            if item.name not in rated_names:
                rows.append(_row_without_answers(item.name))
        return rows

    def _rate_answers(self, answers: list[Answer]) -> tuple[LeaderboardRow, ...]:
        """Rate the answers as `rankwise rank` rates the exported file."""
        names = self.store.item_names()
        columns = {
            "first": [names[answer.first] for answer in answers],
            "second": [names[answer.second] for answer in answers],
            "outcome": [answer.outcome for answer in answers],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # items that are not connected yet
            return rate(columns, sides=("first", "second"), outcome="outcome").rows

    def _keep_rating(self) -> None:
        while self._has_new_answers.wait() and not self._is_closed.is_set():
            self._has_new_answers.clear()
            start = time.perf_counter()
            try:
                self.refresh()
            except Exception as error:  # whatever it is, the next answer must be rated again
                message = str(error).rstrip(".")
                if not message:
                    message = type(error).__name__
                self._rated = self._rated._replace(failure=message)
            duration = time.perf_counter() - start
            self._is_closed.wait(PAUSE_RATIO * duration)  # requests need the processor, too

    def _make_first_round(self) -> list[tuple[int, int]]:
        """Return the pairs of a random cycle: every item in two pairs, all of them connected."""
        # Each item and its neighbor in a random cycle
        cycle = self._rng.permutation(len(self.items))
        neighbors = np.roll(cycle, 1)
        pairs = list(zip(cycle.tolist(), neighbors.tolist(), strict=True))
        if len(pairs) == 2:  # the same pair twice
            return pairs[:1]
        return pairs

    def _choose_pair(self, judge: str) -> tuple[int, int]:
        """Return the codes of two items, sides at random; called inside a transaction."""
        # Pairs of codes, the lower first. New: no judge has it open, and this one never had it.
        pairs_asked_now = self.store.open_pairs()

        def is_new(pair: tuple[int, int]) -> bool:
            codes = self._sorted_codes(pair)
            was_asked_of_judge = self._n_asked[(judge, *codes)] > 0
            return codes not in pairs_asked_now and not was_asked_of_judge

        with self._lock:
            new_pairs = [pair for pair in self._queue if is_new(pair)]
            if new_pairs:
                pair = new_pairs[0]
                self._queue.remove(pair)
            else:  # a random pair, if possible a new one
                pair = self._draw_pair()
                for _ in range(RANDOM_PAIR_ATTEMPTS):
                    if is_new(pair):
                        break
                    pair = self._draw_pair()
            codes = self._sorted_codes(pair)
            self._n_asked[(judge, *codes)] += 1
            first, second = self._rng.permutation(codes).tolist()  # which one is on the left
        return first, second

    def _draw_pair(self) -> tuple[int, int]:
        first, second = self._rng.choice(len(self.items), 2, replace=False).tolist()
        return first, second

    def _sorted_codes(self, pair: tuple[int, int]) -> tuple[int, int]:
        first, second = pair
        low_code, high_code = sorted((self._codes[first], self._codes[second]))
        return low_code, high_code

    def _is_about_current_items(self, answer: Answer) -> bool:
        """Whether both items of an answer are still judged."""
        return {answer.first, answer.second} <= self._position_of_code.keys()

    def _make_graph(self, answers: list[Answer]) -> PairGraph:
        first_positions = [self._position_of_code[answer.first] for answer in answers]
        second_positions = [self._position_of_code[answer.second] for answer in answers]
        first = np.array(first_positions, dtype=np.intp)
        second = np.array(second_positions, dtype=np.intp)
        outcome = np.array([answer.outcome for answer in answers])
        winner: Indices = np.where(outcome == "second", second, first)
        loser: Indices = np.where(outcome == "second", first, second)
        magnitude = (outcome != "tie").astype(float)
        return PairGraph(winner, loser, magnitude=magnitude, n_items=len(self.items))


def _row_without_answers(name: str) -> BoardRow:
    return {
        "rank": None,
        "item": name,
        "rating": None,
        "low": None,
        "high": None,
        "best": None,
        "worst": None,
        "n": 0,
    }


def _row_for_page(row: LeaderboardRow) -> BoardRow:
    return {
        "rank": row.rank,
        "item": str(row.item),
        "rating": row.rating,
        "low": row.low,
        "high": row.high,
        "best": row.best_rank,
        "worst": row.worst_rank,
        "n": row.n,
    }


def _add_item_effects(X: Array | None) -> Array | None:
    """Append one indicator column per item, so that ratings may differ from the features' fit."""
    if X is None or not X.any():  # constant columns are all 0 after scaling: no information
        return None
    # Rows have mean squared length 1: half from the features, half from the indicators.
    root_mean_squared_length = np.sqrt(np.mean(np.sum(X**2, axis=1)))
    item_indicators = np.eye(len(X))
    return np.asarray(np.hstack([X / root_mean_squared_length, item_indicators]) / np.sqrt(2))
