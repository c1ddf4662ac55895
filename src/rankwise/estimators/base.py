"""What every ranker has in common: ranks inside groups, a score, and how scikit-learn sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise.frames import check_same_index
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.inputs import split_weighted
from rankwise.metrics import disagreement_error
from rankwise.model_selection.scoring import predict_items


class RankerMixin:
    """Mixin with `rank` and `score`; not a regressor, whose score would be R².

    The class-level metadata requests let ``groups`` and ``sample_weight`` reach `fit` and `score`
    through GridSearchCV, Pipelines and the rest when scikit-learn's metadata routing is on.
    """

    allows_unscored = False  # whether a score may be NaN, "not scored"

    takes_nuisance = False  # whether `fit` takes out the effects of nuisance columns

    __metadata_request__fit = {"groups": True, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "sample_weight": True}  # noqa: RUF012

    def rank(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.intp]:
        """Rank the items inside their groups, 1 is best.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels; None ranks all items in one list.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Ranks; items with equal predicted scores share the smallest of their ranks.
        """
        return ranks_in_groups(predict_items(self, X, groups), groups)

    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean over groups of the fraction of pairs that are ordered rightly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like, target of `make_target`, or preference graph
            True scores or preferences. Pairs of equal score do not count. For a graph without
            scores the fraction is taken over all edges, by weight.
        groups : array-like of shape (n_items,), optional
            Group labels.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items; a pair weighs the product of its two. A graph may have some of
            its own, which count as well.

        Returns
        -------
        float
            1 minus the disagreement error, averaged over the outputs; tied predictions count one
            half.
        """
        check_is_fitted(self)
        check_same_index(X=X, y=y, groups=groups)
        if isinstance(y, PreferenceGraph):
            if y.scores is None:
                if groups is not None:
                    raise ValueError("explicit preferences take no groups.")
                y = y if sample_weight is None else y.weighted(sample_weight)
                return _concordance(y, predict_items(self, X, y.groups))
            if y.item_weights is not None:
                y = y if sample_weight is None else y.weighted(sample_weight)
                sample_weight = y.item_weights
            y, groups = y.scores, y.groups if groups is None else groups
        predicted = predict_items(self, X, split_weighted(y, groups)[1])
        error = disagreement_error(y, predicted, groups, sample_weight=sample_weight)
        return float(1.0 - np.mean(error))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


def ranks_in_groups(
    scores: NDArray[np.floating[Any]], groups: ArrayLike | None
) -> NDArray[np.intp]:
    """Competition ranks (1, 2, 2, 4) of the scores inside each group, largest first."""
    if scores.ndim == 2:
        return np.stack([ranks_in_groups(column, groups) for column in scores.T], axis=1)
    codes = encode_groups(groups, len(scores)).codes
    order = np.lexsort((-scores, codes))
    g, s = codes[order], scores[order]
    position = np.arange(len(scores))
    new_group = np.r_[True, g[1:] != g[:-1]]
    new_rank = new_group | np.r_[True, s[1:] != s[:-1]]
    first_of_group = np.maximum.accumulate(np.where(new_group, position, 0))
    first_of_tie = np.maximum.accumulate(np.where(new_rank, position, 0))
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[order] = first_of_tie - first_of_group + 1
    return ranks


def _concordance(graph: PreferenceGraph, scores: NDArray[np.floating[Any]]) -> float:
    wrong = graph.disagreement(scores, pooled=True)
    if np.isnan(wrong).any():
        raise ValueError(
            "score is undefined: the graph has no edge of positive magnitude to be right about."
        )
    return float(1.0 - np.mean(wrong))
