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


def score_rows():
    """Scores of five models on eight tasks of three kinds, some missing, with two seeds."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[object]] = {"model": [], "task": [], "kind": [], "seed": [], "score": []}
    for model in range(5):
        for task in range(8):
            if model < 4 and (model + 3 * task) % 11 == 10:
                continue
            for seed in range(2):
                values = [f"m{model}", f"t{task}", "abc"[task % 3], seed, rng.normal() - model]
                for column, value in zip(rows.values(), values, strict=True):
                    column.append(value)
    return rows


SCORES = {"item": "model", "task": "task", "score": "score", "seed": "seed"}
SCORE_BOARDS = {
    "plain": {},
    "families": {"family": "kind", "balance": "family"},
    "fixed": {"tasks": "fixed", "baseline": "m2"},
    "options": {"lower_is_better": ["t1"], "task_scale": "sd", "missing": "m4", "confidence": 0.9},
    "weights": {"task_weight": {f"t{task}": task + 1.0 for task in range(8)}, "min_tasks": 0.2},
    "worst": {"missing": "worst", "lower_is_better": True},
}
