"""Ratings of items from comparisons, with intervals."""

from rankwise.leaderboard.board import HeadToHead, Leaderboard, LeaderboardRow, Margin, Path
from rankwise.leaderboard.border import Effect
from rankwise.leaderboard.context import Scales
from rankwise.leaderboard.forecast import Forecast, ForecastScore
from rankwise.leaderboard.jackknife import Overturn
from rankwise.leaderboard.judges import Judge
from rankwise.leaderboard.prior import Prior
from rankwise.leaderboard.rating import Backtest, backtest, rate, rate_groups

__all__ = [
    "Backtest",
    "Effect",
    "Forecast",
    "ForecastScore",
    "HeadToHead",
    "Judge",
    "Leaderboard",
    "LeaderboardRow",
    "Margin",
    "Overturn",
    "Path",
    "Prior",
    "Scales",
    "backtest",
    "rate",
    "rate_groups",
]
