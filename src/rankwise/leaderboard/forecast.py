"""What a board says of games to come: chances of win, draw and loss, and how good they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData
from rankwise.datasets.times import as_times
from rankwise.leaderboard.covariates import SIDE
from rankwise.leaderboard.models.base import OutcomeLikelihood

ELO_STEPS = (0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.3, 0.5)  # of a logit: K = 32 points is 0.18
LEAST = 1e-12  # a chance


class Forecast(NamedTuple):
    """Chances of the first item; floats, or arrays for several games.

    Attributes
    ----------
    win, draw, loss : float or ndarray
        They add up to 1.
    """

    win: Any
    draw: Any
    loss: Any


class Chances(NamedTuple):
    """From margins to chances: Davidson's formula for ``slope × margin + side``.

    Attributes
    ----------
    slope : float
        Logits in a margin.
    side : float
        Advantage of the first side, where the margin has none.
    theta : float or None
        Log of ν of the ties; None if there are none.
    """

    slope: float = 1.0
    side: float = 0.0
    theta: float | None = None

    def of(self, margins: Array) -> Array:
        """Probabilities of win, draw and loss, of shape (n, 3)."""
        verdicts = OutcomeLikelihood(self.theta is not None)
        return verdicts.probabilities(self.slope * margins + self.side, self.theta or 0.0)


def fit_chances(
    margins: Array, said: Array, weight: Array, *, slope: bool = True, side: bool = False
) -> Chances:
    """The curve of greatest likelihood; what is not asked for stays as it is."""
    has_ties = bool((said == 0).any() and (said != 0).any())
    verdicts = OutcomeLikelihood(has_ties)

    def unpacked(v: Array) -> Chances:
        return Chances(
            float(np.exp(np.clip(v[0], -20, 20))) if slope else 1.0,
            float(v[1]) if side else 0.0,
            float(v[2]) if has_ties else None,
        )

    def loss(v: Array) -> float:
        now = unpacked(v)
        m = now.slope * margins + now.side
        return float(weight @ verdicts.at(m, said, now.theta or 0.0).value / weight.sum())

    return unpacked(minimize(loss, np.zeros(3), method="BFGS").x)


def chances_of(model: Any) -> Chances:
    """The curve of a board: the model's own, or fitted to margins of comparisons left out."""
    tally = model.tally
    if model.logits == 1 and model.verdicts.has_parameter:
        return Chances(theta=model.theta)
    said, weight = np.sign(tally.target), tally.count * tally.weight
    margins = model.margins()[tally.pair]
    if model.logits == 1:
        return fit_chances(margins, said, weight, slope=False)
    if not model.system.is_huge:
        margins = tally.target - model.left_out().held_out
    return fit_chances(margins, said, weight)


def margins_of(
    board: Any,
    first: Indices,
    second: Indices,
    times: Any,
    codes: Indices | None,
    neutral: bool = False,
) -> Array:
    """What the model expects of games, the advantage of the first side in it.

    An item of number n_items is one that the board does not have: it is average.
    """
    model, parts = board.fitted, board.parts
    if parts is None:
        ratings = np.append(model.ratings, 0.0)
        margins = ratings[first] - ratings[second]
    else:
        values = np.vstack([model.system.parts_of(model.unknowns), np.zeros(parts.size)])
        margins = parts.margins(values, first, second, times, codes)
    sides = [effect.value for effect in board.effects if effect.name == SIDE and not neutral]
    return np.asarray(margins + sum(sides) / board.scale.factor)


def forecast(board: Any, home: Any, away: Any, time: Any, context: Any, neutral: bool) -> Forecast:
    """As `Leaderboard.predict`."""
    is_one = isinstance(home, str) or np.ndim(home) == 0
    ends = [[side] if is_one else list(side) for side in (home, away)]
    if len(ends[0]) != len(ends[1]):
        raise ValueError(f"there are {len(ends[0])} first items and {len(ends[1])} second ones.")
    pairs = [board.comparable(a, b) for a, b in zip(*ends, strict=True)]
    first, second = np.array(pairs, np.intp).reshape(-1, 2).T
    parts, times, codes, n = board.parts, None, None, len(first)
    if parts is None and (time is not None or context is not None):
        raise ValueError("the board was made without time= and context=; leave them out.")
    if parts is not None:
        if parts.times is not None:
            asked = np.asarray(parts.times.max() if time is None else time)
            times = as_times(np.repeat(asked, n) if asked.ndim == 0 else asked, n)
        rows = [context] * n
        if context is not None and not is_one:
            rows = [{name: labels[k] for name, labels in context.items()} for k in range(n)]
        codes = np.array([parts.level_codes(row) for row in rows], np.intp).reshape(n, -1).T
    chances = board.chances.of(margins_of(board, first, second, times, codes, neutral))
    return Forecast(*(chances[0].tolist() if is_one else chances.T))


class ForecastScore(NamedTuple):
    """How well one method foresaw games.

    Attributes
    ----------
    name : str
        Of the method.
    log_loss, error : float
        Mean of −log(chance of what happened), less is better, and its standard error.
    behind, behind_error : float
        By how much the log loss is above that of the board, game by game, and its standard error.
    accuracy : float
        Share of the games whose likeliest outcome came; of several that are as likely, a part.
    """

    name: str
    log_loss: float
    error: float
    behind: float
    behind_error: float
    accuracy: float


def board_chances(board: Any, later: PairData) -> Array:
    """Chances of later comparisons, each at its time and in its context.

    Items that the board does not have are average, levels of a context likewise.
    """
    place = {label: k for k, label in enumerate(board.items.tolist())}
    number = np.array([place.get(label, len(place)) for label in later.items.tolist()], np.intp)
    codes = None if board.parts is None else board.parts.codes_of(later)
    ends = number[later.first], number[later.second]
    return np.asarray(board.chances.of(margins_of(board, *ends, later.times, codes)))


def elo_margins(data: PairData, step: float, ratings: Array | None = None) -> tuple[Array, Array]:
    """Margins before each game, in the order of the rows, and the ratings after the last one.

    A rating moves by the step times the outcome (0, ½ or 1) less what was expected.
    """
    ratings = np.zeros(data.n_items) if ratings is None else ratings.copy()
    values, margins = ratings.tolist(), []
    score = ((np.sign(data.outcome) + 1) / 2).tolist()
    for i, j, won in zip(data.first.tolist(), data.second.tolist(), score, strict=True):
        margin = values[i] - values[j]
        margins.append(margin)
        change = step * (won - 1 / (1 + np.exp(-margin)))
        values[i] += change
        values[j] -= change
    return np.array(margins), np.array(values)


def elo_chances(before: PairData, later: PairData) -> dict[str, Array]:
    """Chances by Elo ratings, whose step and curve are those that foresaw `before` best.

    Both are in the order of time, of the same items. Followed ratings move on with every later
    game, frozen ones do not.
    """
    said, side = np.sign(before.outcome), bool((before.outcome < 0).any())
    tried = []
    for step in ELO_STEPS:
        margins, ratings = elo_margins(before, step)
        chances = fit_chances(margins, said, before.weight, side=side)
        tried.append((log_losses(chances.of(margins), said).mean(), step, chances, ratings))
    _, step, chances, ratings = min(tried, key=lambda each: each[0])
    frozen = ratings[later.first] - ratings[later.second]
    followed, _ = elo_margins(later, step, ratings)
    return {"Elo, followed": chances.of(followed), "Elo, frozen": chances.of(frozen)}


def log_losses(chances: Array, said: Array) -> Array:
    """−log of the chance of what happened."""
    column = 1 - np.sign(said).astype(np.intp)
    picked = np.take_along_axis(chances, column[:, None], 1)[:, 0]
    tied = (said == 0) & (chances[:, 1] == 0)  # a model without ties: half a win of both
    half = np.sqrt(chances[:, 0] * chances[:, 2])
    return np.asarray(-np.log(np.maximum(np.where(tied, half, picked), LEAST)))


def base_chances(before: PairData, n: int) -> Array:
    """The shares of win, draw and loss; wins and losses alike if the sides mean nothing."""
    said = np.sign(before.outcome)
    shares = np.array([(said == verdict).mean() for verdict in (1, 0, -1)])
    if not (said < 0).any():
        shares[[0, 2]] = (shares[0] + shares[2]) / 2
    return np.tile(shares, (n, 1))


def compare_forecasts(said: Array, chances: dict[str, Array]) -> tuple[ForecastScore, ...]:
    """One row for each method; the first one is what the others are compared with."""
    rows, first, n = [], None, len(said)
    for name, each in chances.items():
        losses = log_losses(each, said)
        first = losses if first is None else first
        behind = losses - first
        is_best = each >= each.max(axis=1, keepdims=True) - LEAST
        hits = is_best[np.arange(n), 1 - said.astype(np.intp)] / is_best.sum(axis=1)
        means = [losses.mean(), losses.std() / n**0.5, behind.mean(), behind.std() / n**0.5]
        rows.append(ForecastScore._make([name, *map(float, [*means, hits.mean()])]))
    return tuple(rows)
