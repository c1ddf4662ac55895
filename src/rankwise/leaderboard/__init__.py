"""Ratings of items from comparisons, and of models from scores over tasks, with intervals."""

from rankwise.leaderboard.backtesting import Backtest, backtest
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.board_records import (
    HeadToHead,
    LeaderboardRow,
    RatingDifference,
    RatingHistory,
)
from rankwise.leaderboard.covariates import Effect
from rankwise.leaderboard.forecast import Forecast, ForecastScore
from rankwise.leaderboard.inference.pair_suggestions import NextPairs, SuggestedPair, next_pairs
from rankwise.leaderboard.inference.posterior import RatingPosterior, fit_posterior
from rankwise.leaderboard.inference.robustness import VotesToFlip
from rankwise.leaderboard.judges import Judge
from rankwise.leaderboard.models.rating_terms import PriorScales
from rankwise.leaderboard.prior import Prior
from rankwise.leaderboard.rating import rate, rate_groups
from rankwise.leaderboard.score_board import TaskLeaderboard
from rankwise.leaderboard.score_rating import rate_scores
from rankwise.leaderboard.score_records import (
    CellsToFlip,
    ScoreDifference,
    ScoreNoise,
    SuggestedCell,
    TaskInfluence,
    TasksNeeded,
)

__all__ = [
    "Backtest",
    "CellsToFlip",
    "Effect",
    "Forecast",
    "ForecastScore",
    "HeadToHead",
    "Judge",
    "Leaderboard",
    "LeaderboardRow",
    "NextPairs",
    "Prior",
    "PriorScales",
    "RatingDifference",
    "RatingHistory",
    "RatingPosterior",
    "ScoreDifference",
    "ScoreNoise",
    "SuggestedCell",
    "SuggestedPair",
    "TaskInfluence",
    "TaskLeaderboard",
    "TasksNeeded",
    "VotesToFlip",
    "backtest",
    "fit_posterior",
    "next_pairs",
    "rate",
    "rate_groups",
    "rate_scores",
]
