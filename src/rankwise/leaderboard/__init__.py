"""Ratings of items from comparisons, with intervals."""

from rankwise.leaderboard.board import Leaderboard, LeaderboardRow, Margin
from rankwise.leaderboard.effects import Effect
from rankwise.leaderboard.rating import rate, rate_groups

__all__ = ["Effect", "Leaderboard", "LeaderboardRow", "Margin", "rate", "rate_groups"]
