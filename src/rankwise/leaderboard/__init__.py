"""Ratings of items from comparisons, with intervals."""

from rankwise.leaderboard.board import Leaderboard, LeaderboardRow, Margin
from rankwise.leaderboard.effects import Effect
from rankwise.leaderboard.grouping import rate_groups
from rankwise.leaderboard.judges import Judge
from rankwise.leaderboard.meetings import HeadToHead
from rankwise.leaderboard.rating import rate

__all__ = [
    "Effect",
    "HeadToHead",
    "Judge",
    "Leaderboard",
    "LeaderboardRow",
    "Margin",
    "rate",
    "rate_groups",
]
