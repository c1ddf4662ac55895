"""Ratings of items from comparisons, with intervals."""

from rankwise.leaderboard.board import HeadToHead, Leaderboard, LeaderboardRow, Margin
from rankwise.leaderboard.covariates import Effect
from rankwise.leaderboard.judges import Judge
from rankwise.leaderboard.overturn import Overturn
from rankwise.leaderboard.prior import Prior
from rankwise.leaderboard.rating import rate, rate_groups

__all__ = [
    "Effect",
    "HeadToHead",
    "Judge",
    "Leaderboard",
    "LeaderboardRow",
    "Margin",
    "Overturn",
    "Prior",
    "rate",
    "rate_groups",
]
