"""Evaluation of AutoRanker on the latest groups, by a model of earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from rankwise.arrays import Array
from rankwise.frames import take_rows
from rankwise.graphs.supervision import Preferences, TrainingTarget
from rankwise.metrics import get_metric
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.model_selection.time_blocks import time_series_blocks


def evaluate_later_groups(ranker: Any, X: Any, target: TrainingTarget, time: ArrayLike) -> Array:
    """The metric in each of the latest groups, by a model of all earlier ones.

    Parameters
    ----------
    ranker : AutoRanker
        The unfitted ranker. The model of earlier groups gets half of its time limit.
    X : array-like, sparse matrix or data frame of shape (n_items, n_features)
        Items.
    target : TrainingTarget
        Relevance and groups.
    time : array-like of shape (n_items,)
        Dates or numbers.
    """
    if isinstance(target, Preferences):
        raise ValueError(
            "time needs scores and groups, but y is a preference graph; omit time, or pass scores."
        )
    *earlier_blocks, later_rows = time_series_blocks(time, target.groups)
    earlier_rows = np.sort(np.concatenate(earlier_blocks))
    earlier = target.take(earlier_rows)
    later = target.take(later_rows)
    time_limit = ranker.time_limit
    if time_limit is not None:  # the other half is for the model of all groups
        time_limit = time_limit / 2
    model = clone(ranker).set_params(n_resamples=0, time_limit=time_limit)
    model.fit(take_rows(X, earlier_rows), earlier.y, earlier.item_labels, earlier.weight)
    scores = model.predict(take_rows(X, later_rows), groups=later.item_labels)
    targets = GroupedTargets(later.y, later.groups, later.weight)
    scoring = ranker.scoring
    if scoring is None:
        scoring = model.scoring_  # the default for these data
    by_group: Array = get_metric(scoring).by_group(Ranking(targets, scores)).values
    return by_group
