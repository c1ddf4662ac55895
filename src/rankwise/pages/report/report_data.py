"""What a page is about: a model, and items with a predicted and a true score, a group, a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._compiled import count_violated
from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.frames import as_array, column_names
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import unpack_unweighted_target
from rankwise.groups import Groups, encode_groups
from rankwise.inspection.model_parts import ModelParts, unwrap
from rankwise.metrics.metric import check_data
from rankwise.metrics.rank_correlation import PairCounts, count_pairs
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.model_selection.scorer import predict_items
from rankwise.pages.page_values import as_text
from rankwise.validation import check_y


@dataclass(frozen=True, eq=False)
class ScoredItems:
    """The items that have a true score, row by row.

    Attributes
    ----------
    scores, y : ndarray of shape (m,)
        Predicted and true.
    groups : Groups
        The group of each item.
    rows : ndarray of shape (m,)
        Row numbers in what the user gave.
    ids : sequence of str or None
        Names of all rows that the user gave.
    n_unscored : int
        Rows left out because their y is NaN.
    is_one_list : bool
        True if no groups were given.
    """

    scores: Array
    y: Array
    groups: Groups
    rows: Indices
    ids: Sequence[Any] | None
    n_unscored: int
    is_one_list: bool

    @cached_property
    def targets(self) -> GroupedTargets:
        """The true scores, sorted inside groups."""
        return GroupedTargets(self.y, self.groups)

    @cached_property
    def ranking(self) -> Ranking:
        """The items sorted by predicted score inside groups."""
        return Ranking(self.targets, self.scores)

    @cached_property
    def order(self) -> Indices:
        """Items by group, best predicted first; of equally predicted ones the truly best first."""
        order: Indices = np.lexsort((-self.y, -self.scores, self.groups.codes))
        return order

    @cached_property
    def counts(self) -> PairCounts:
        """Pairs of each group, those of different y among them."""
        return count_pairs(self.ranking)

    @cached_property
    def swaps(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each item the truly better ones ranked below it, and the truly worse ones above it.

        Items of equal predicted score are on neither side.
        """
        targets = self.targets
        rising = np.lexsort((self.y, self.scores, self.groups.codes))
        level = (targets.levels.max(initial=0) - targets.levels[rising]).astype(np.int32)
        lost, won = count_violated(targets.position - 1.0, level, targets.starts)
        too_high, too_low = np.empty_like(lost), np.empty_like(won)
        too_high[rising], too_low[rising] = lost, won
        return too_high, too_low

    @cached_property
    def centered_scores(self) -> Array:
        """Predicted scores less the mean of their group."""
        means = np.bincount(self.groups.codes, self.scores) / self.groups.sizes
        return self.scores - means[self.groups.codes]

    def name_of(self, item: int) -> str:
        """Name of an item, or its row number."""
        row = int(self.rows[item])
        return f"row {row}" if self.ids is None else as_text(self.ids[row])

    def group_name(self, group: int) -> str:
        """Name of a group."""
        return "all items" if self.is_one_list else as_text(self.groups.labels[group])


class ReportModel(NamedTuple):
    """A model, and the items of a page.

    Attributes
    ----------
    model : Any
        As it came: an estimator, or scores.
    parts : ModelParts
        The model taken apart.
    X, groups : Any
        All rows as they came.
    names : list of str or None
        Of the columns of X, if they have any.
    scored : ScoredItems
        The rows with a true score.
    """

    model: Any
    parts: ModelParts
    X: Any
    groups: Any
    names: list[str] | None
    scored: ScoredItems

    def features(self) -> Any:
        """What the learner sees of the scored items."""
        features = self.parts.features(self.X, self.groups)
        return features[self.scored.rows] if self.scored.n_unscored else features


def make_report_model(
    model: Any, X: Any, y: Any, groups: Any, ids: Sequence[Any] | None, names: Sequence[Any] | None
) -> ReportModel:
    """Read what the user passed for a page."""
    if isinstance(y, PreferenceGraph):
        if not y.has_relevance:
            raise ValueError(
                "y is a graph of explicit preferences; the report compares orders of items and "
                "needs one true score for each item."
            )
        y, groups = y.y, y.groups if groups is None else groups
    y, groups = unpack_unweighted_target(y, groups)
    scored = make_scored_items(predict_scores(model, X, groups), y, groups, ids)
    return ReportModel(model, unwrap(model), X, groups, _input_names(names, model, X), scored)


def make_scored_items(
    scores: Any, y: Any, groups: ArrayLike | None, ids: Sequence[Any] | None = None
) -> ScoredItems:
    """Check true scores, groups and names against the predicted scores."""
    truth, predicted = check_y(y, allow_nan=True), np.asarray(as_array(scores))
    if predicted.ndim == 2 and predicted.shape[1] == 1:
        predicted = predicted[:, 0]
    for name, values in (("y", truth), ("the predicted scores", predicted)):
        if values.ndim != 1:
            raise ValueError(
                f"{name}: the shape is {values.shape}, but a report shows one output; pass one "
                "column of y, and the scores of that column in place of the model."
            )
    n_rows = len(truth)
    if len(predicted) != n_rows:
        raise ValueError(
            f"there are {len(predicted)} scored items but y has {n_rows} entries; pass one y for "
            "each row of X, in the same order."
        )
    encoded = encode_groups(groups, n_rows)
    if ids is not None and len(ids) != n_rows:
        raise ValueError(f"ids has {len(ids)} entries but there are {n_rows} rows; name each row.")
    rows = np.flatnonzero(~np.isnan(truth))
    if not len(rows):
        raise ValueError("every y is NaN: there is no true score to compare with.")
    kept = None if groups is None else encoded.item_labels[rows]
    y, predicted, encoded, _ = check_data(truth[rows], predicted[rows], kept)
    names = None if ids is None else list(as_array(ids))
    scores = predicted.astype(np.float64)
    return ScoredItems(scores, y, encoded, rows, names, n_rows - len(rows), groups is None)


def predict_scores(model: Any, X: Any, groups: Any = None) -> NDArray[Any]:
    """Scores by a model, or the scores that came in its place."""
    if hasattr(model, "predict") and not isinstance(model, type):
        return np.asarray(predict_items(model, X, groups))
    scores = np.asarray(as_array(model))
    if scores.ndim == 0:
        raise ValueError(
            f"model is {as_text(repr(model))}; expected a fitted estimator with a method predict, "
            "or an array with one score for each row."
        )
    return scores


def _input_names(names: Sequence[Any] | None, model: Any, X: Any) -> list[str] | None:
    """Names of the columns of X: those passed, of the data frame, or as the model saw them."""
    if names is not None:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if len(shape) == 2 and len(names) != shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} entries but X has {shape[1]} columns; "
                "name each column."
            )
    else:
        names = column_names(X)
        names = getattr(model, "feature_names_in_", None) if names is None else names
    return None if names is None else [as_text(name) for name in names]
