"""One leaderboard of each kind that is saved differently."""

import numpy as np

from rankwise.leaderboard import PriorScales, rate
from tests.leaderboard.data import COLUMNS, IN_CONTEXT, games, random_lists

PRIOR = {"a": 1.0, "b": 0.0, "c": 0.5, "d": 2.0}
BOARDS = {
    "plain": lambda: rate(games(), side=True, scale="elo", anchor="b", alpha="auto", **COLUMNS),
    "in context": lambda: rate(games(), scales=PriorScales(1.0, 0.5, 2.0, 0.3), **IN_CONTEXT),
    "dates": lambda: rate(
        {**games(), "when": ["2001-01-01"] * 60 + ["2002-01-01"] * 60},
        time="when",
        half_life=99.0,
        **COLUMNS,
    ),
    "rankings": lambda: rate(random_lists(), confidence=0.9),
    "features": lambda: rate(games(), features=np.eye(4)[:, :2] + 1, alpha=0.1, **COLUMNS),
    "prior": lambda: rate(games(), prior=[PRIOR, {"d": 1.0, "a": 2.0, "e": 0.0}], **COLUMNS),
}
