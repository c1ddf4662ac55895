"""Scorers for scikit-learn's model selection, by the name of a ranking metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from rankwise.metrics import Metric, get_metric

__all__ = ["RankingScorer", "make_ranking_scorer"]


class RankingScorer:
    """Callable ``scorer(estimator, X, y, groups=None)``, as `make_ranking_scorer` makes it.

    Attributes
    ----------
    metric : Metric
        The metric.
    options : dict
        Options of the metric that are not part of its name.
    """

    def __init__(self, metric: Metric, options: dict[str, Any]) -> None:
        self.metric = metric
        self.options = options

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score the predictions of an estimator; larger is better.

        Parameters
        ----------
        estimator : estimator with `predict`
            Fitted; what it predicts is taken as the scores of the items.
        X : array-like of shape (n_items, n_features)
            Items.
        y : array-like, or target of `make_target`
            True scores.
        groups : array-like of shape (n_items,), optional
            Group labels, unless y carries them.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, for the metrics that take them: disagreement and concordance.

        Returns
        -------
        float
            The metric, its negative for errors; the mean over several outputs; nan if the metric
            is undefined in every group.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        options = {**self.options, **weights}
        skip = options.pop("undefined", "skip") == "skip"
        if not skip:
            options["undefined"] = self.options["undefined"]
        return self._signed_mean(y, estimator.predict(X), groups, options, skip)

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask scikit-learn for the groups (when metadata routing is on)."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        return request

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"make_ranking_scorer({self.metric.name!r}{options})"
