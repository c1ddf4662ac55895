"""Scorers for scikit-learn's model selection, and groups on their way to what asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from rankwise.errors import UndefinedMetricError
from rankwise.graphs.supervision import unpack_target
from rankwise.metrics import Metric, get_metric


def group_metadata(estimator: Any, method: str, groups: Any) -> dict[str, Any]:
    """The groups as keyword of a method that asks for them; nothing otherwise."""
    if groups is None or not hasattr(estimator, "get_metadata_routing"):
        return {}
    with sklearn.config_context(enable_metadata_routing=True):
        asked = get_routing_for_object(estimator).consumes(method, ["groups"])
    return {"groups": groups} if asked else {}


def needs_groups(estimator: Any, method: str = "predict") -> bool:
    """Whether a method asks for the groups of the items, itself or in a step before it."""
    return bool(group_metadata(estimator, method, True))


def predict_items(estimator: Any, X: Any, groups: ArrayLike | None) -> Any:
    """Scores by an estimator of any kind; groups go to where they are asked for."""
    metadata = group_metadata(estimator, "predict", groups)
    if not metadata:
        return estimator.predict(X)
    with sklearn.config_context(enable_metadata_routing=True):
        return estimator.predict(X, **metadata)


@dataclass(frozen=True, repr=False)
class RankingScorer:
    """Callable ``scorer(estimator, X, y, groups=None)``, as `make_ranking_scorer` makes it.

    It takes ``sample_weight``, too.

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
            Group labels, unless y carries them; None makes all items one list.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, for a metric that takes them.

        Returns
        -------
        float
            The metric, its negative for errors; the mean over several outputs; nan if the metric
            is undefined in every group.
        """
        options = dict(self.options)
        y, groups, weights = unpack_target(y, groups, sample_weight)
        if weights is not None:
            options["sample_weight"] = weights
        predicted = predict_items(estimator, X, groups)
        try:
            value = float(np.mean(self.metric(y, predicted, groups, **options)))
        except UndefinedMetricError:
            if options.get("undefined") == "raise":
                raise
            return float("nan")
        return value if self.metric.greater_is_better else -value

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask scikit-learn for groups and weights; it gives them when metadata routing is on."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        if self.metric.has_weights:
            request.score.add_request(param="sample_weight", alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        """What scikit-learn >= 1.9 asks if an estimator is fitted with sample_weight."""
        return self.metric.has_weights

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        return f"make_ranking_scorer({self.metric.name!r}{options})"


def make_ranking_scorer(metric: str | Metric, **options: Any) -> RankingScorer:
    """Make a scorer for GridSearchCV, cross_validate and the like from a ranking metric.

    The scorer knows the groups and weights of the items if they come with y (`make_target`), or,
    with metadata routing on, by itself: it requests them without ``set_score_request``. Errors are
    negated, so that larger is better.

    Parameters
    ----------
    metric : str or Metric
        As `rankwise.metrics.get_metric` reads it: "ndcg@10", "disagreement", "p(relevant=2)@5".
    **options
        Further options of the metric, such as ``gain="linear"`` or ``undefined="zero"``.

    Returns
    -------
    RankingScorer
        Can be pickled, cloned and used with any estimator whose `predict` gives scores.

    Notes
    -----
    A fold where the metric is undefined in every group (no relevant item, no two items of
    different y) gets nan, and scikit-learn ranks a candidate with such a fold last and warns.
    Folds of several groups avoid this; `RankRLSCV` leaves undefined groups out of its mean and
    counts them. ``undefined="zero"`` (or "one") gives every undefined group that value instead,
    and ``undefined="raise"`` an error.

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
    known = get_metric(metric)
    if options.get("per_group"):
        raise ValueError("a scorer gives one number, so per_group=True cannot be used here.")
    if options:  # complain about them now, not in the middle of a search
        try:
            known([1, 0], [1, 0], **{**options, "undefined": "nan"})
        except TypeError as error:
            raise ValueError(f"{known.name} has no such option: {error}.") from None
        known([1, 0], [1, 0], undefined=options.get("undefined", "nan"))
    return RankingScorer(known, tuple(sorted(options.items())))
