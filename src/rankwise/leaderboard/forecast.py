"""Predicted probabilities of win, draw and loss, and how accurate they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

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
from rankwise.leaderboard.inference.team_margins import component_means
from rankwise.leaderboard.models.base import RatingModel
from rankwise.leaderboard.models.dynamic import DynamicBradleyTerry

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

    def probabilities(self, margins: Array) -> Array:
        """Probabilities of win, draw and loss, of shape (n, 3)."""
        # Of win, tie and loss; without θ, the log of the parameter of the ties, there are no ties.
        log_odds = self.slope * margins + self.side
        if self.theta is None:
            return OutcomeLikelihood(has_tie_parameter=False).probabilities(log_odds, 0.0)
        return OutcomeLikelihood(has_tie_parameter=True).probabilities(log_odds, self.theta)


def fit_chances(
    margins: Array,
    outcome: Array,
    weight: Array,
    *,
    estimate_slope: bool = True,
    estimate_side: bool = False,
) -> Chances:
    """Return the curve of maximum likelihood.

    Parameters
    ----------
    margins, outcome, weight : ndarray of shape (n,)
        Predicted margins, outcomes (1, 0, −1) and weights of comparisons.
    estimate_slope : bool, default=True
        Whether the slope is estimated; it is 1 otherwise.
    estimate_side : bool, default=False
        Whether the advantage of the first side is estimated; it is 0 otherwise.
    """
    has_ties = bool((outcome == 0).any() and (outcome != 0).any())
    likelihood = OutcomeLikelihood(has_tie_parameter=has_ties)

    def chances_of(parameters: Array) -> Chances:
        """Curve for [log slope, side, θ]; parameters that are not estimated have no effect."""
        log_slope, side_advantage, theta = parameters.tolist()
        chances = Chances()
        if estimate_slope:
            # The search may try steps whose exponential overflows.
            log_slope = min(max(log_slope, -LARGEST_LOG_SLOPE), LARGEST_LOG_SLOPE)
            chances = chances._replace(slope=float(np.exp(log_slope)))
        if estimate_side:
            chances = chances._replace(side=side_advantage)
        if has_ties:
            chances = chances._replace(theta=theta)
        return chances

    def mean_log_loss(parameters: Array) -> float:
        chances = chances_of(parameters)
        log_odds = chances.slope * margins + chances.side
        theta = 0.0 if chances.theta is None else chances.theta  # without ties it has no effect
        losses = likelihood.derivatives(log_odds, outcome, theta).loss
        return float(weight @ losses / weight.sum())

    # Of [log slope, side, θ], starting at zeros.
    best_parameters = minimize(mean_log_loss, np.zeros(3), method="BFGS").x
    return chances_of(best_parameters)


def fit_board_chances(model: RatingModel) -> Chances:
    """Return the curve of a board: that of the model, or one fitted to held-out margins."""
    counts = model.counts
    outcome = np.sign(counts.target)
    margins = model.margins()[counts.pair_of_outcome]
    curve = model.outcome_curve
    if curve is not None and curve.likelihood.has_tie_parameter:  # it predicts ties itself
        return Chances(theta=curve.theta)
    if curve is not None:  # log odds; only the share of ties is missing
        return fit_chances(margins, outcome, counts.outcome_weight, estimate_slope=False)

    # Ratings that are not log odds: fitted to margins that are predicted without the comparison.
    leave_one_out = model.leave_one_out()
    if leave_one_out is not None and not leave_one_out.system.exceeds_covariance_limit:
        margins = counts.target - leave_one_out.held_out_residuals
    return fit_chances(margins, outcome, counts.outcome_weight)


def predict_margins(
    model: RatingModel,
    side_weights: sp.csr_array,
    times: AnyArray | None = None,
    context_codes: Indices | None = None,
) -> Array:
    """Expected margins of games without covariates.

    Parameters
    ----------
    model : RatingModel
        The model of a board.
    side_weights : sparse array of shape (n_games, n_items + 1)
        1 for the items on the first side, −1 on the second. The last column is an unknown item,
        with the mean rating.
    times : ndarray of shape (n_games,), optional
        Times, for a board with time.
    context_codes : ndarray of shape (n_contexts, n_games), optional
        Levels of the contexts, for a board with time or context.
    """
    if isinstance(model, DynamicBradleyTerry) and context_codes is not None:
        return model.margins_of(side_weights, times, context_codes)

    # Ratings have the mean 0 in each component; the sums of teams of different sizes need the mean.
    # The last column of the side weights is an unknown item, with the mean rating.
    means = component_means(model)
    mean_of_largest_component = means[model.components == 1][0]  # components are sorted by size
    ratings = np.append(model.ratings + means, mean_of_largest_component)
    return np.asarray(side_weights @ ratings)


def predict_games(
    model: RatingModel,
    contrasts: Array,
    time: Moment | ArrayLike | None,
    context: Contexts,
    *,
    is_one_game: bool,
) -> Array:
    """Expected margins of games without covariates, as in `Leaderboard.predict`.

    Parameters
    ----------
    model : RatingModel
        The model of a board.
    contrasts : ndarray of shape (n_games, n_items)
        Weight of each item in the margin of each game.
    time, context
        As in `Leaderboard.predict`.
    is_one_game : bool
        Whether `context` is that of a single game.
    """
    n_games, n_items = contrasts.shape
    side_weights = sp.csr_array(contrasts)
    side_weights.resize(n_games, n_items + 1)  # the last column is an unknown item
    if isinstance(model, DynamicBradleyTerry):
        times = _game_times(model, time, n_games)
        context_codes = _game_levels(model, context, n_games, is_one_game)
        return predict_margins(model, side_weights, times, context_codes)
    if time is not None or context is not None:
        raise ValueError("the board was made without time= and context=; leave them out.")
    return predict_margins(model, side_weights)


def pair_sides(home: object, away: object, *, is_one_game: bool) -> list[tuple[object, object]]:
    """Return the two sides of each game."""
    home_sides = _sides_of_games(home, is_one_game)
    away_sides = _sides_of_games(away, is_one_game)
    if len(home_sides) != len(away_sides):
        raise ValueError(
            f"got {len(home_sides)} first items and {len(away_sides)} second items; expected equal "
            "numbers."
        )
    return list(zip(home_sides, away_sides, strict=True))


def _sides_of_games(sides: object, is_one_game: bool) -> list[object]:
    """The side of the only game, or of each of several games."""
    if is_one_game or not isinstance(sides, Iterable):
        return [sides]
    return list(sides)


def is_one_side(side: object, *, are_teams: bool) -> bool:
    """Whether an argument of `Leaderboard.predict` is one side, not a list of several games."""
    if are_teams:
        is_team = isinstance(side, (str, tuple, set, frozenset, Mapping))
        return is_team or not isinstance(side, Iterable)
    return isinstance(side, str) or not isinstance(side, Iterable)


def _game_times(
    model: DynamicBradleyTerry, time: Moment | ArrayLike | None, n_games: int
) -> AnyArray | None:
    """Time of each game, the last one of the board by default; None for a board without time."""
    board_times = model.rating_terms.times
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
    terms = model.rating_terms
    if is_one_game or not isinstance(context, Mapping):
        levels_by_game = [terms.codes_of_levels(context)] * n_games
    else:
        labels_by_context = {name: np.asarray(labels).tolist() for name, labels in context.items()}
        levels_by_game = []
        for game in range(n_games):
            label_of = {name: labels[game] for name, labels in labels_by_context.items()}
            levels_by_game.append(terms.codes_of_levels(label_of))
    return np.array(levels_by_game, np.intp).reshape(n_games, -1).T  # (n_contexts, n_games)


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


def elo_margins(data: PairData, step: float, ratings: Array | None = None) -> tuple[Array, Array]:
    """Return the margins before each game, in the order of the rows, and the final ratings.

    After each game a rating changes by the step times the outcome (0, ½ or 1) minus the expected
    outcome. The rating of a team is the sum over its members, and all of them change.
    """
    if data.teams is not None:
        return _team_elo_margins(data, step, ratings)
    if ratings is None:
        ratings = np.zeros(data.n_items)
    current = ratings.tolist()  # ratings before each game
    margins = []
    points_of_first = ((np.sign(data.outcome) + 1) / 2).tolist()
    games = zip(data.first.tolist(), data.second.tolist(), points_of_first, strict=True)
    for first, second, points in games:
        margin = current[first] - current[second]
        margins.append(margin)
        expected_points = 1 / (1 + np.exp(-margin))
        change = step * (points - expected_points)  # Elo's rule
        current[first] += change
        current[second] -= change
    return np.array(margins), np.array(current)


def _team_elo_margins(data: PairData, step: float, ratings: Array | None) -> tuple[Array, Array]:
    """Return the same for teams."""
    if ratings is None:
        ratings = np.zeros(data.n_items)
    current = ratings.copy()  # ratings before each game
    margins = np.empty(data.n_pairs)
    points_of_first = (np.sign(data.outcome) + 1) / 2
    rows = side_rows(data)  # sparse: positive shares of the first team, negative of the second
    for game in range(data.n_pairs):
        entries = slice(rows.indptr[game], rows.indptr[game + 1])
        members = rows.indices[entries]
        signs = rows.data[entries]
        margins[game] = signs @ current[members]
        expected_points = 1 / (1 + np.exp(-margins[game]))
        current[members] += step * (points_of_first[game] - expected_points) * signs
    return margins, current


class _EloFit(NamedTuple):
    """Elo ratings with one step, and their log loss."""

    loss: float
    step: float
    chances: Chances
    ratings: Array


def _fit_elo(data: PairData, step: float) -> _EloFit:
    outcome = np.sign(data.outcome)
    margins, ratings = elo_margins(data, step)
    chances = fit_chances(margins, outcome, data.weight, estimate_side=data.has_sides)
    loss = float(log_losses(chances.probabilities(margins), outcome).mean())
    return _EloFit(loss, step, chances, ratings)


def elo_probabilities(before: PairData, later: PairData) -> dict[str, Array]:
    """Probabilities by Elo ratings, with the step and curve that predict `before` best.

    Both data are in the order of time and of the same items. Followed ratings are updated after
    every later game, frozen ones are not.
    """
    fits = [_fit_elo(before, step) for step in ELO_STEPS]
    best = min(fits, key=lambda fit: fit.loss)
    frozen_margins = side_rows(later) @ best.ratings
    followed_margins, _ = elo_margins(later, best.step, best.ratings)
    return {
        "Elo, followed": best.chances.probabilities(followed_margins),
        "Elo, frozen": best.chances.probabilities(frozen_margins),
    }


def log_losses(probabilities: Array, outcome: Array) -> Array:
    """Return −log of the probability of each outcome."""
    n = len(outcome)
    column = 1 - np.sign(outcome).astype(np.intp)  # 0 for a win, 1 for a draw, 2 for a loss
    probability_of_outcome = probabilities[np.arange(n), column]
    # In a model without ties a tie is half a win and half a loss: the mean of both log losses.
    is_impossible_tie = (outcome == 0) & (probabilities[:, 1] == 0)
    half_win = np.sqrt(probabilities[:, 0] * probabilities[:, 2])
    likelihood = np.where(is_impossible_tie, half_win, probability_of_outcome)
    return np.asarray(-np.log(np.maximum(likelihood, LEAST_PROBABILITY)))


def base_rates(before: PairData, n: int) -> Array:
    """Shares of win, draw and loss; win and loss have equal shares if sides have no meaning."""
    outcome = np.sign(before.outcome)
    win = np.mean(outcome == 1)
    draw = np.mean(outcome == 0)
    loss = np.mean(outcome == -1)
    have_sides_no_meaning = not (outcome < 0).any()  # the first item is always the winner
    if have_sides_no_meaning:
        win = (win + loss) / 2
        loss = win
    return np.tile([win, draw, loss], (n, 1))


def compare_forecasts(outcome: Array, probabilities: dict[str, Array]) -> tuple[ForecastScore, ...]:
    """Score each method; differences are relative to the first method."""
    n = len(outcome)
    outcome_column = 1 - outcome.astype(np.intp)  # 0 for a win, 1 for a draw, 2 for a loss
    losses_of_first = None
    scores = []
    for name, predicted in probabilities.items():
        losses = log_losses(predicted, outcome)
        if losses_of_first is None:  # the first method is the reference
            losses_of_first = losses
        behind = losses - losses_of_first

        # The most probable outcome; several count by their share if they are equally probable.
        largest = predicted.max(axis=1, keepdims=True)
        is_most_probable = predicted >= largest - LEAST_PROBABILITY  # up to rounding
        n_most_probable = is_most_probable.sum(axis=1)
        hits = is_most_probable[np.arange(n), outcome_column] / n_most_probable
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
