"""Predicted probabilities of win, draw and loss, and how accurate they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from rankwise.arrays import AnyArray, Array, Indices
from rankwise.datasets import PairData
from rankwise.datasets.times import as_times
from rankwise.leaderboard.algebra.outcome_likelihood import OutcomeLikelihood
from rankwise.leaderboard.algebra.team_rows import side_rows
from rankwise.leaderboard.board_types import Contexts, Moment
from rankwise.leaderboard.covariates import SIDE
from rankwise.leaderboard.inference.team_margins import component_means
from rankwise.leaderboard.models.base import RatingModel
from rankwise.leaderboard.models.dynamic import DynamicBradleyTerry

if TYPE_CHECKING:
    from rankwise.leaderboard.board import Leaderboard

ELO_STEPS = (0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.3, 0.5)  # in logits; K = 32 points is 0.18
LEAST_PROBABILITY = 1e-12
LARGEST_LOG_SLOPE = 20


class Forecast(NamedTuple):
    """Probabilities for the first item; floats, or arrays for several games.

    Attributes
    ----------
    win, draw, loss : float or ndarray
        They add up to 1.
    """

    win: float | Array
    draw: float | Array
    loss: float | Array


class Chances(NamedTuple):
    """Probabilities from margins: Davidson's formula for ``slope × margin + side``.

    Attributes
    ----------
    slope : float
        Logits per unit of the margin.
    side : float
        Advantage of the first side that is not part of the margin.
    theta : float or None
        Log of ν of the ties; None if there are none.
    """

    slope: float = 1.0
    side: float = 0.0
    theta: float | None = None

    def of(self, margins: Array) -> Array:
        """Probabilities of win, draw and loss, of shape (n, 3)."""
        likelihood = OutcomeLikelihood(self.theta is not None)
        return likelihood.probabilities(self.slope * margins + self.side, self.theta or 0.0)


def fit_chances(
    margins: Array, outcome: Array, weight: Array, *, slope: bool = True, side: bool = False
) -> Chances:
    """Return the curve of maximum likelihood.

    Parameters
    ----------
    margins, outcome, weight : ndarray of shape (n,)
        Predicted margins, outcomes (1, 0, −1) and weights of comparisons.
    slope : bool, default=True
        Whether the slope is estimated; it is 1 otherwise.
    side : bool, default=False
        Whether the advantage of the first side is estimated; it is 0 otherwise.
    """
    has_ties = bool((outcome == 0).any() and (outcome != 0).any())
    likelihood = OutcomeLikelihood(has_ties)

    def curve(parameters: Array) -> Chances:
        log_slope = np.clip(parameters[0], -LARGEST_LOG_SLOPE, LARGEST_LOG_SLOPE)
        chances = Chances()
        if slope:
            chances = chances._replace(slope=float(np.exp(log_slope)))
        if side:
            chances = chances._replace(side=float(parameters[1]))
        if has_ties:
            chances = chances._replace(theta=float(parameters[2]))
        return chances

    def loss(parameters: Array) -> float:
        trial = curve(parameters)
        logits = trial.slope * margins + trial.side
        losses = likelihood.derivatives(logits, outcome, trial.theta or 0.0).loss
        return float(weight @ losses / weight.sum())

    return curve(minimize(loss, np.zeros(3), method="BFGS").x)


def fit_board_chances(model: RatingModel) -> Chances:
    """Return the curve of a board: that of the model, or one fitted to held-out margins."""
    counts = model.counts
    outcome = np.sign(counts.target)
    curve = model.outcome_curve
    margins = model.margins()[counts.pair]
    if curve is not None:
        if curve.likelihood.has_parameter:
            return Chances(theta=curve.theta)
        return fit_chances(margins, outcome, counts.outcome_weight, slope=False)
    exact = model.leave_one_out()
    if exact is not None and not exact.system.is_huge:
        margins = counts.target - exact.held_out_residuals
    return fit_chances(margins, outcome, counts.outcome_weight)


def predict_margins(
    board: Leaderboard,
    rows: sp.csr_array,
    times: AnyArray | None,
    codes: Indices | None,
    neutral: bool = False,
) -> Array:
    """Expected margins of games, including the advantage of the first side.

    Parameters
    ----------
    board : Leaderboard
        The board.
    rows : sparse array of shape (n_games, n_items + 1)
        1 for the items on the first side, −1 on the second. The last column is an unknown item,
        with the mean rating.
    times : ndarray of shape (n_games,) or None
        Times, for a board with time.
    codes : ndarray of shape (n_contexts, n_games) or None
        Levels of the contexts, for a board with time or context.
    neutral : bool, default=False
        Whether to omit the advantage of the first side.
    """
    model = board.fitted
    if isinstance(model, DynamicBradleyTerry) and codes is not None:
        margins = model.margins_of(rows, times, codes)
    else:
        margins = rows @ _ratings_with_unknown(model)
    if neutral:
        return np.asarray(margins)
    advantage = sum(effect.value for effect in board.effects if effect.name == SIDE)
    return np.asarray(margins + advantage / board.scale.factor)


def _ratings_with_unknown(model: RatingModel) -> Array:
    """Ratings, and the mean rating of an unknown item.

    The ratings of a model are relative to a mean of 0. Teams of different sizes need ratings that
    are not.
    """
    mean = component_means(model)
    of_largest = mean[model.components == 1][0]
    return np.append(model.ratings + mean, of_largest)


def predict_games(
    board: Leaderboard,
    home: object,
    away: object,
    time: Moment | ArrayLike | None,
    context: Contexts,
    neutral: bool,
) -> Forecast:
    """See `Leaderboard.predict`."""
    is_one_game = is_one_side(board, home)
    home_sides = _sides_of_games(home, is_one_game)
    away_sides = _sides_of_games(away, is_one_game)
    if len(home_sides) != len(away_sides):
        raise ValueError(
            f"there are {len(home_sides)} first items and {len(away_sides)} second ones."
        )
    games = zip(home_sides, away_sides, strict=True)
    contrasts = [board.contrast(first, second) for first, second in games]
    n_games = len(contrasts)
    n_items = len(board.items)
    rows = sp.csr_array(np.array(contrasts).reshape(n_games, n_items))
    rows.resize(n_games, n_items + 1)
    model = board.fitted
    times = None
    codes = None
    if isinstance(model, DynamicBradleyTerry):
        times = _game_times(model, time, n_games)
        codes = _game_levels(model, context, n_games, is_one_game)
    elif time is not None or context is not None:
        raise ValueError("the board was made without time= and context=; leave them out.")
    margins = predict_margins(board, rows, times, codes, neutral)
    probabilities = board.chances.of(margins)
    if is_one_game:
        return Forecast(*probabilities[0].tolist())
    return Forecast(*probabilities.T)


def _sides_of_games(sides: object, is_one_game: bool) -> list[object]:
    """The side of the only game, or of each of several games."""
    if is_one_game or not isinstance(sides, Iterable):
        return [sides]
    return list(sides)


def is_one_side(board: Leaderboard, side: object) -> bool:
    """Whether an argument of `Leaderboard.predict` is one side, not a list of several games."""
    if board.comparisons.teams is not None:
        is_team = isinstance(side, (str, tuple, set, frozenset, Mapping))
        return is_team or not isinstance(side, Iterable)
    return isinstance(side, str) or not isinstance(side, Iterable)


def _game_times(
    model: DynamicBradleyTerry, time: Moment | ArrayLike | None, n_games: int
) -> AnyArray | None:
    """Time of each game, the last one of the board by default; None for a board without time."""
    board_times = model.rating_components.times
    if board_times is None:
        return None
    if time is None:
        time = board_times.max()
    times = np.asarray(time)
    if times.ndim == 0:
        times = np.repeat(times, n_games)
    return as_times(times, n_games)


def _game_levels(
    model: DynamicBradleyTerry, context: Contexts, n_games: int, is_one_game: bool
) -> Indices:
    """Level of each context in each game, of shape (n_contexts, n_games)."""
    components = model.rating_components
    if isinstance(context, Mapping) and not is_one_game:
        levels = {name: np.asarray(labels).tolist() for name, labels in context.items()}
        codes = [
            components.selected_levels({name: labels[k] for name, labels in levels.items()})
            for k in range(n_games)
        ]
    else:
        codes = [components.selected_levels(context)] * n_games
    return np.array(codes, np.intp).reshape(n_games, -1).T


class ForecastScore(NamedTuple):
    """Accuracy of the predictions of one method.

    Attributes
    ----------
    name : str
        Name of the method.
    log_loss, error : float
        Mean of −log(probability of the outcome), smaller is better, and its standard error.
    behind, behind_error : float
        Mean difference of the log loss to that of the board, and its standard error.
    accuracy : float
        Share of the games in which the most probable outcome occurred; if several outcomes are
        equally probable, each counts by its part.
    """

    name: str
    log_loss: float
    error: float
    behind: float
    behind_error: float
    accuracy: float


def board_probabilities(board: Leaderboard, later: PairData) -> Array:
    """Probabilities of later comparisons, each at its time and in its context.

    Items and levels of a context that the board does not have are average.
    """
    n_items = len(board.items)
    position = {label: k for k, label in enumerate(board.items.tolist())}
    columns = np.array([position.get(label, n_items) for label in later.items.tolist()], np.intp)
    entries = (np.ones(len(columns)), (np.arange(len(columns)), columns))
    item_of = sp.csr_array(entries, shape=(len(columns), n_items + 1))
    codes = None
    model = board.fitted
    if isinstance(model, DynamicBradleyTerry):
        codes = model.rating_components.level_codes_of(later)
    margins = predict_margins(board, side_rows(later) @ item_of, later.times, codes)
    return board.chances.of(margins)


def elo_margins(data: PairData, step: float, ratings: Array | None = None) -> tuple[Array, Array]:
    """Return the margins before each game, in the order of the rows, and the final ratings.

    After each game a rating changes by the step times the outcome (0, ½ or 1) minus the expected
    outcome. The rating of a team is the sum over its members, and all of them change.
    """
    if data.teams is not None:
        return _team_elo_margins(data, step, ratings)
    values = [0.0] * data.n_items if ratings is None else ratings.tolist()
    margins = []
    points = ((np.sign(data.outcome) + 1) / 2).tolist()
    for i, j, scored in zip(data.first.tolist(), data.second.tolist(), points, strict=True):
        margin = values[i] - values[j]
        margins.append(margin)
        change = step * (scored - 1 / (1 + np.exp(-margin)))
        values[i] += change
        values[j] -= change
    return np.array(margins), np.array(values)


def _team_elo_margins(data: PairData, step: float, ratings: Array | None) -> tuple[Array, Array]:
    """Return the same for teams."""
    rows = side_rows(data)
    values = np.zeros(data.n_items) if ratings is None else ratings.copy()
    points = (np.sign(data.outcome) + 1) / 2
    margins = np.empty(data.n_pairs)
    for k in range(data.n_pairs):
        entries = slice(rows.indptr[k], rows.indptr[k + 1])
        items = rows.indices[entries]
        signs = rows.data[entries]
        margins[k] = signs @ values[items]
        expected = 1 / (1 + np.exp(-margins[k]))
        values[items] += step * (points[k] - expected) * signs
    return margins, values


class _EloFit(NamedTuple):
    """Elo ratings with one step, and their log loss."""

    loss: float
    step: float
    chances: Chances
    ratings: Array


def _fit_elo(data: PairData, step: float) -> _EloFit:
    outcome = np.sign(data.outcome)
    has_sides = bool((data.outcome < 0).any())
    margins, ratings = elo_margins(data, step)
    chances = fit_chances(margins, outcome, data.weight, side=has_sides)
    loss = float(log_losses(chances.of(margins), outcome).mean())
    return _EloFit(loss, step, chances, ratings)


def elo_probabilities(before: PairData, later: PairData) -> dict[str, Array]:
    """Probabilities by Elo ratings, with the step and curve that predict `before` best.

    Both data are in the order of time and of the same items. Followed ratings are updated after
    every later game, frozen ones are not.
    """
    fits = [_fit_elo(before, step) for step in ELO_STEPS]
    best = min(fits, key=lambda fit: fit.loss)
    frozen = side_rows(later) @ best.ratings
    followed, _ = elo_margins(later, best.step, best.ratings)
    return {
        "Elo, followed": best.chances.of(followed),
        "Elo, frozen": best.chances.of(frozen),
    }


def log_losses(probabilities: Array, outcome: Array) -> Array:
    """Return −log of the probability of each outcome."""
    column = 1 - np.sign(outcome).astype(np.intp)
    of_outcome = np.take_along_axis(probabilities, column[:, None], 1)[:, 0]
    # In a model without ties, a tie is half a win of both items.
    is_impossible_tie = (outcome == 0) & (probabilities[:, 1] == 0)
    half_win = np.sqrt(probabilities[:, 0] * probabilities[:, 2])
    likelihood = np.where(is_impossible_tie, half_win, of_outcome)
    return np.asarray(-np.log(np.maximum(likelihood, LEAST_PROBABILITY)))


def base_rates(before: PairData, n: int) -> Array:
    """Shares of win, draw and loss; those of win and loss are equal if sides have no meaning."""
    outcome = np.sign(before.outcome)
    shares = np.array([(outcome == value).mean() for value in (1, 0, -1)])
    if not (outcome < 0).any():
        shares[[0, 2]] = (shares[0] + shares[2]) / 2
    return np.tile(shares, (n, 1))


def compare_forecasts(outcome: Array, probabilities: dict[str, Array]) -> tuple[ForecastScore, ...]:
    """Score each method; the differences are to the first one."""
    n = len(outcome)
    first_losses = log_losses(next(iter(probabilities.values())), outcome)
    scores = []
    for name, predicted in probabilities.items():
        losses = log_losses(predicted, outcome)
        behind = losses - first_losses
        is_best = predicted >= predicted.max(axis=1, keepdims=True) - LEAST_PROBABILITY
        column = 1 - outcome.astype(np.intp)
        hits = is_best[np.arange(n), column] / is_best.sum(axis=1)
        score = ForecastScore(
            name=name,
            log_loss=float(losses.mean()),
            error=float(losses.std() / n**0.5),
            behind=float(behind.mean()),
            behind_error=float(behind.std() / n**0.5),
            accuracy=float(hits.mean()),
        )
        scores.append(score)
    return tuple(scores)
