"""What counts as a grade of relevance, and the metrics that suit the true scores by default."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Largest grade: the exponential gain of NDCG and ERR is 2 ** y - 1.
LARGEST_GRADE = 32


def are_grades(y: NDArray[Any]) -> bool:
    """Whether all scores are whole numbers from 0 to `LARGEST_GRADE`; NaN is not looked at."""
    scores = y[~np.isnan(y)]
    return bool(((scores >= 0) & (scores <= LARGEST_GRADE) & (scores % 1 == 0)).all())


def default_metrics(y: NDArray[Any], has_weights: bool = False) -> list[str]:
    """Names of the metrics to report for these true scores.

    Grades have NDCG of the first ten, and MAP if it takes the weights and some item is not
    relevant (else MAP is 1 for every order). The disagreement error and Kendall's tau suit all
    scores.

    Parameters
    ----------
    y : ndarray of shape (m,)
        True scores; NaN for items without one.
    has_weights : bool, default=False
        Whether items have weights, which MAP does not take.
    """
    scores = y[~np.isnan(y)]
    top_heavy = []
    if are_grades(scores):
        top_heavy.append("ndcg@10")
        has_irrelevant = bool((scores == 0).any())
        if has_irrelevant and not has_weights:
            top_heavy.append("map")
    return [*top_heavy, "disagreement", "tau"]
