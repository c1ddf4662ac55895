"""Definition of grades of relevance, and the default metrics for given relevance."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Numbers

#: Largest grade: the exponential gain of NDCG and ERR is 2 ** y - 1.
LARGEST_GRADE = 32
#: Most distinct grades of which probabilities and prediction sets are computed.
MAX_DISTINCT_GRADES = 32


def are_grades(y: Numbers) -> bool:
    """Whether all values are whole numbers from 0 to `LARGEST_GRADE`; NaN is ignored."""
    values = y[~np.isnan(y)]
    is_grade = (values >= 0) & (values <= LARGEST_GRADE) & (values % 1 == 0)
    return bool(is_grade.all())


def default_metrics(y: Numbers, has_weights: bool = False) -> list[str]:
    """Return the names of the metrics to report by default for this relevance.

    Grades get NDCG of the first ten, and MAP unless items have weights or all items are relevant
    (MAP is then 1 for every order). The disagreement error and Kendall's tau are always reported.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Relevance; NaN for unjudged items.
    has_weights : bool, default=False
        Whether items have weights, which MAP does not accept.

    Returns
    -------
    list of str
        Names for `get_metric`.
    """
    values = y[~np.isnan(y)]
    if not are_grades(values):
        return ["disagreement", "tau"]
    has_irrelevant = bool((values == 0).any())
    if has_irrelevant and not has_weights:
        return ["ndcg@10", "map", "disagreement", "tau"]
    return ["ndcg@10", "disagreement", "tau"]
