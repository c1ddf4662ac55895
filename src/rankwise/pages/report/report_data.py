"""The subject of a report: a model, and items with predicted and true scores, groups and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise._compiled import count_violated
from rankwise.arrays import AnyArray, Array, Indices
from rankwise.caching import cached_property
from rankwise.frames import as_array, column_names
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import unpack_unweighted_target
from rankwise.groups import Groups, encode_groups
from rankwise.inspection.model_parts import ModelParts, unwrap
from rankwise.metrics.metric import check_data
from rankwise.metrics.rank_correlation import PairCounts, count_pairs
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.metrics.shared_items import ComparedItems, items_of_groups
from rankwise.model_selection.scorer import predict_items
from rankwise.pages.page_values import as_text
from rankwise.validation import check_y


class Swaps(NamedTuple):
    """Wrongly ordered pairs of each item; pairs with equal predicted scores are not counted.

    Attributes
    ----------
    better_below : ndarray of shape (m,)
        Number of truly better items with a lower predicted score.
    worse_above : ndarray of shape (m,)
        Number of truly worse items with a higher predicted score.
    """

    better_below: NDArray[np.int64]
    worse_above: NDArray[np.int64]


class AllRows(NamedTuple):
    """All rows that the user passed, with and without a true score.

    Attributes
    ----------
    scores, y : ndarray of shape (n_rows,)
        Predicted and true scores; NaN in y marks items without one.
    groups : Groups
        The group of each row.
    """

    scores: Array
    y: Array
    groups: Groups


@dataclass(frozen=True, eq=False)
class ScoredItems:
    """The items with a true score.

    Attributes
    ----------
    scores, y : ndarray of shape (m,)
        Predicted and true scores.
    groups : Groups
        The group of each item.
    rows : ndarray of shape (m,)
        Row numbers of the items in the data that the user passed.
    ids : sequence or None
        Names of all rows that the user passed.
    n_unscored : int
        Number of rows that are dropped because their y is NaN.
    is_one_list : bool
        Whether no groups were passed.
    all_rows : AllRows or None
        The rows with and without a true score; None if all rows have one.
    """

    scores: Array
    y: Array
    groups: Groups
    rows: Indices
    ids: Sequence[object] | None
    n_unscored: int
    is_one_list: bool
    all_rows: AllRows | None = None

    @cached_property
    def targets(self) -> GroupedTargets:
        """The true scores, sorted in groups."""
        return GroupedTargets(self.y, self.groups)

    @cached_property
    def ranking(self) -> Ranking:
        """The items sorted by predicted score in groups."""
        return Ranking(self.targets, self.scores)

    @cached_property
    def compared_items(self) -> ComparedItems | None:
        """The items of each group, if groups are comparisons of two items that share items."""
        are_groups_pairs = not self.is_one_list and (self.groups.sizes == 2).all()
        if self.ids is None or not are_groups_pairs:
            return None
        names = [str(self.ids[row]) for row in self.rows.tolist()]
        are_items_repeated = len(set(names)) < len(names)
        name_pairs = np.array(names)[self.groups.order].reshape(-1, 2)  # a row for each group
        has_item_against_itself = (name_pairs[:, 0] == name_pairs[:, 1]).any()
        if not are_items_repeated or has_item_against_itself:
            return None
        return items_of_groups(names, self.groups)

    @cached_property
    def order(self) -> Indices:
        """Items by group, the best predicted first; ties by true score, the best first."""
        # By group, then by descending score; ties by descending y
        order: Indices = np.lexsort((-self.y, -self.scores, self.groups.codes))
        return order

    @cached_property
    def counts(self) -> PairCounts:
        """Numbers of pairs of each group: with different y, wrongly ordered, tied."""
        return count_pairs(self.ranking)

    @cached_property
    def swaps(self) -> Swaps:
        """Wrongly ordered pairs of each item."""
        # Items by group, lowest score first; of equal scores the lower y, which is no swap.
        targets = self.targets
        lowest_first = np.lexsort((self.y, self.scores, self.groups.codes))
        # `levels` are 0 for the best items of a group; here higher is better.
        level = targets.levels.max(initial=0) - targets.levels[lowest_first]

        # `count_violated` counts a pair unless the score of the item of higher level is larger by 1
        # or more. With positions 0, 1, 2, … as scores these are exactly the swaps.
        position_in_group = targets.place_in_group - 1.0
        n_better_below, n_worse_above = count_violated(
            position_in_group, level.astype(np.int32), targets.group_starts
        )
        # from the order by score back to the order of the items
        swaps = Swaps(np.empty_like(n_better_below), np.empty_like(n_worse_above))
        swaps.better_below[lowest_first] = n_better_below
        swaps.worse_above[lowest_first] = n_worse_above
        return swaps

    @cached_property
    def centered_scores(self) -> Array:
        """Predicted scores minus the mean of their group."""
        return self.groups.center(self.scores)

    def first_groups(self, max_items: int) -> Indices:
        """Items of the first groups with at most `max_items` items together; one group at least."""
        n_items_up_to_group = np.cumsum(self.groups.sizes)
        n_fitting_groups = int(np.count_nonzero(n_items_up_to_group <= max_items))
        n_groups = max(n_fitting_groups, 1)  # one group even if it is larger
        return np.flatnonzero(self.groups.codes < n_groups)

    def name_of(self, item: int) -> str:
        """Name of an item, or its row number."""
        return self.name_of_row(int(self.rows[item]))

    def name_of_row(self, row: int) -> str:
        """Name of a row that the user passed, or its number."""
        if self.ids is None:
            return f"row {row}"
        return as_text(self.ids[row])

    def group_name(self, group: int) -> str:
        """Name of a group."""
        if self.is_one_list:
            return "all items"
        return as_text(self.groups.labels[group])


class ReportModel(NamedTuple):
    """A model, and the items of a page.

    Attributes
    ----------
    model : object
        The estimator or the scores that the user passed.
    model_parts : ModelParts
        Learner and steps of the model.
    X, groups : object
        All rows that the user passed.
    names : list of str or None
        Names of the columns of X.
    scored : ScoredItems
        The rows with a true score.
    """

    model: object
    model_parts: ModelParts
    X: object
    groups: ArrayLike | None
    names: list[str] | None
    scored: ScoredItems

    def features(self) -> AnyArray | sp.csr_array:
        """The learner's features of the scored items."""
        features = self.model_parts.features(self.X, self.groups)
        if self.scored.n_unscored:
            return features[self.scored.rows]
        return features


def make_report_model(
    model: object,
    X: object,
    y: object,
    groups: ArrayLike | None,
    ids: Sequence[object] | None,
    names: Sequence[object] | None,
) -> ReportModel:
    """Read the arguments of `rankwise.report.report`."""
    if isinstance(y, PreferenceGraph):
        if not y.has_relevance:
            raise ValueError(
                f"y is a {type(y).__name__}; the report compares orders of items and needs one "
                "true score for each item, such as a grade or an observed time."
            )
        if groups is None:
            groups = y.groups
        y = y.y
    y, groups = unpack_unweighted_target(y, groups)
    if ids is None:
        ids = _read_text_index(X)
    scored = make_scored_items(predict_scores(model, X, groups), y, groups, ids)
    feature_names = _read_feature_names(names, model, X)
    return ReportModel(model, unwrap(model), X, groups, feature_names, scored)


def _read_text_index(X: object) -> list[object] | None:
    """Labels of a pandas frame that is indexed by text; None for other data."""
    index = getattr(X, "index", None)
    if getattr(index, "inferred_type", "") != "string":
        return None
    assert index is not None
    return list(index)


def make_scored_items(
    scores: ArrayLike, y: object, groups: ArrayLike | None, ids: Sequence[object] | None = None
) -> ScoredItems:
    """Check true scores, groups and names against the predicted scores, and drop unscored rows."""
    all_y = check_y(y, allow_nan=True)
    all_scores = _drop_axis_of_one_output(scores)
    _check_one_output("y", all_y)
    _check_one_output("the predicted scores", all_scores)
    n_rows = len(all_y)
    if len(all_scores) != n_rows:
        raise ValueError(
            f"there are {len(all_scores)} scored items but y has {n_rows} entries; pass one y for "
            "each row of X, in the same order."
        )
    all_groups = encode_groups(groups, n_rows)
    names = None
    if ids is not None:
        if len(ids) != n_rows:
            raise ValueError(
                f"ids has {len(ids)} entries but there are {n_rows} rows; pass one for each row."
            )
        names = list(as_array(ids))

    # The page compares items with a true score; bounds for the others need all rows.
    rows = np.flatnonzero(~np.isnan(all_y))
    if not len(rows):
        raise ValueError("every y is NaN: there is no true score to compare with.")
    group_labels = None
    if groups is not None:
        group_labels = all_groups.item_labels[rows]
    data = check_data(all_y[rows], all_scores[rows], group_labels)
    all_rows = None
    if len(rows) < n_rows and np.isfinite(all_scores).all():
        all_rows = AllRows(all_scores.astype(np.float64), all_y.astype(np.float64), all_groups)
    return ScoredItems(
        scores=data.score.astype(np.float64),
        y=data.y,
        groups=data.groups,
        rows=rows,
        ids=names,
        n_unscored=n_rows - len(rows),
        is_one_list=groups is None,
        all_rows=all_rows,
    )


def _drop_axis_of_one_output(scores: ArrayLike) -> AnyArray:
    """Scores as an array; a matrix with a single column becomes a vector."""
    score_array: AnyArray = np.asarray(as_array(scores))
    if score_array.ndim == 2 and score_array.shape[1] == 1:
        return score_array[:, 0]
    return score_array


def _check_one_output(name: str, values: AnyArray) -> None:
    if values.ndim != 1:
        raise ValueError(
            f"{name}: the shape is {values.shape}, but a report shows one output; pass one "
            "column of y, and the scores of that column in place of the model."
        )


def predict_scores(model: object, X: object, groups: ArrayLike | None = None) -> AnyArray:
    """Scores predicted by a model, or the scores that were passed in its place."""
    is_estimator = hasattr(model, "predict") and not isinstance(model, type)
    if is_estimator:
        return np.asarray(predict_items(model, X, groups))
    scores = np.asarray(as_array(model))
    if scores.ndim == 0:
        raise ValueError(
            f"model is {as_text(repr(model))}; expected a fitted estimator with a method predict, "
            "or an array with one score for each row."
        )
    return scores


def _read_feature_names(
    names: Sequence[object] | None, model: object, X: object
) -> list[str] | None:
    """Names of the columns of X: those passed, of the data frame, or as the model saw them."""
    if names is not None:
        n_columns = count_columns(X)
        if n_columns is not None and len(names) != n_columns:
            raise ValueError(
                f"feature_names has {len(names)} entries but X has {n_columns} columns; "
                "pass one for each column."
            )
    else:
        names = column_names(X)
        if names is None:
            names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    return [as_text(name) for name in names]


def count_columns(X: object) -> int | None:
    """Number of columns of a matrix, data frame or list of rows; None for other shapes."""
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = np.shape(np.asarray(X))
    if len(shape) != 2:
        return None
    return int(shape[1])
