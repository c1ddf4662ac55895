"""Scorers for scikit-learn's model selection, and the routing of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from rankwise.arrays import MatrixLike, Numbers
from rankwise.errors import UndefinedMetricError
from rankwise.frames import check_same_index
from rankwise.graphs.supervision import unpack_target
from rankwise.metrics import Metric, get_metric


def group_metadata(
    estimator: BaseEstimator, method: str, groups: ArrayLike | None
) -> dict[str, ArrayLike]:
    """Groups as a keyword argument if the method requests them, else an empty dictionary."""
    if groups is None or not hasattr(estimator, "get_metadata_routing"):
        return {}
    with sklearn.config_context(enable_metadata_routing=True):
        consumed = get_routing_for_object(estimator).consumes(method, ["groups"])
    if not consumed:
        return {}
    return {"groups": groups}


def needs_groups(estimator: BaseEstimator, method: str = "predict") -> bool:
    """Whether a method, or a pipeline step before it, requests the groups of the items."""
    any_groups = True  # any value: the question is only whether groups are requested
    return bool(group_metadata(estimator, method, any_groups))


def predict_items(estimator: BaseEstimator, X: MatrixLike, groups: ArrayLike | None) -> Numbers:
    """Predict scores by any estimator; groups are routed to the steps that request them."""
    check_same_index(X=X, groups=groups)
    metadata = group_metadata(estimator, "predict", groups)
    if not metadata:
        return np.asarray(estimator.predict(X))
    with sklearn.config_context(enable_metadata_routing=True):
        return np.asarray(estimator.predict(X, **metadata))


@dataclass(frozen=True, repr=False)
class RankingScorer:
    """Callable ``scorer(estimator, X, y, groups=None, sample_weight=None)``.

    Created by `make_ranking_scorer`.

    Attributes
    ----------
    metric : Metric
        The metric.
    options : tuple of (str, value)
        Options of the metric that are not part of its name.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import make_ranking_scorer
    >>> X, y, groups = [[0.0], [1.0], [2.0], [1.0]], [0, 1, 2, 0], [0, 0, 1, 1]
    >>> scorer = make_ranking_scorer("ndcg@10")
    >>> float(scorer(RankRLS().fit(X, y, groups), X, y, groups))
    1.0
    """

    metric: Metric
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(
        self,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score the predictions of an estimator; larger is better.

        Parameters
        ----------
        estimator : estimator with `predict`
            Fitted; its predictions are the scores of the items.
        X : array-like of shape (n_items, n_features)
            Items.
        y : array-like, or target of `make_target`
            True scores.
        groups : array-like of shape (n_items,), default=None
            Group labels, unless y contains them. Without groups all items are one list.
        sample_weight : array-like of shape (n_items,), default=None
            Weights of the items, for a metric that accepts them.

        Returns
        -------
        float
            The metric, negated for errors and averaged over outputs; nan if the metric is undefined
            in every group.
        """
        options = dict(self.options)
        y, groups, weights = unpack_target(y, groups, sample_weight)
        if weights is not None:
            options["sample_weight"] = weights
        scores = predict_items(estimator, X, groups)
        try:
            value = float(np.mean(self.metric(y, scores, groups, **options)))
        except UndefinedMetricError:
            if options.get("undefined") == "raise":
                raise
            return float("nan")
        if self.metric.greater_is_better:
            return value
        return -value

    def get_metadata_routing(self) -> MetadataRequest:
        """Request groups and weights; scikit-learn passes them if metadata routing is enabled.

        Returns
        -------
        MetadataRequest
            The request.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        if self.metric.accepts_weights:
            request.score.add_request(param="sample_weight", alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        """Whether the scorer accepts weights; scikit-learn >= 1.9 calls this."""
        return self.metric.accepts_weights

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"make_ranking_scorer({self.metric.name!r}{options})"


def make_ranking_scorer(metric: str | Metric, **options: Any) -> RankingScorer:
    """Make a scorer for GridSearchCV, cross_validate and similar functions from a ranking metric.

    Use it to evaluate rankers of any library with scikit-learn's model selection.

    The scorer receives the groups and weights of the items inside y (`make_target`), or by
    metadata routing, where it requests them without ``set_score_request``. Errors are negated, so
    that larger is better.

    Parameters
    ----------
    metric : str or Metric
        As for `rankwise.metrics.get_metric`: "ndcg@10", "disagreement", "p(relevant=2)@5".
    **options
        Further options of the metric, such as ``gain="linear"`` or ``undefined="zero"``.

    Returns
    -------
    RankingScorer
        Can be pickled, cloned and used with any estimator whose `predict` returns scores.

    Notes
    -----
    A fold in which the metric is undefined in every group (no relevant item, or equal y) has the
    score nan. scikit-learn ranks a candidate with such a fold last and warns. Folds of several
    groups avoid this; `RankRLSCV` drops undefined groups from its mean and counts them.
    ``undefined="zero"`` (or "one") assigns that value to undefined groups, and
    ``undefined="raise"`` raises an error.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from rankwise import RankRLS, make_target
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.model_selection import make_ranking_scorer
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> scorer = make_ranking_scorer("ndcg@10", gain="linear")
    >>> scorer
    make_ranking_scorer('ndcg@10', gain='linear')
    >>> search = GridSearchCV(RankRLS(), {"alpha": [1e-3, 1e3]}, scoring=scorer, cv=GroupKFold(5))
    >>> search.fit(X, make_target(y, groups), groups=groups).best_params_
    {'alpha': 0.001}
    """
    metric = get_metric(metric)
    if options.get("per_group"):
        raise ValueError("a scorer returns one number; per_group=True is not supported.")
    if options:
        _check_options(metric, options)
    return RankingScorer(metric, tuple(sorted(options.items())))


def _check_options(metric: Metric, options: dict[str, Any]) -> None:
    """Raise an error for options that the metric does not accept, before a search begins."""
    # Evaluate two items, so that a wrong option raises its error now
    y = [1, 0]
    try:
        metric(y, y, **options | {"undefined": "nan"})
    except TypeError as error:
        raise ValueError(f"{metric.name} has no such option: {error}.") from None
    metric(y, y, undefined=options.get("undefined", "nan"))
