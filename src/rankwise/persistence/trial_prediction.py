"""A model that was read from a file must predict finite scores before it is returned."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankwise.arrays import AnyArray
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.model_selection.scorer import group_metadata, predict_items
from rankwise.persistence.serialize import MAX_SPARSE_COLUMNS
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import transform_step

N_ITEMS = 4
ONE_GROUP = [0] * N_ITEMS  # group labels of the trial items
MAX_DENSE_FEATURES = 10**5  # trial items with more features are sparse
TRIAL_TEXTS = ["", "a", "ab", "abc"]


@dataclass(frozen=True)
class FittedSteps:
    """The steps of a model that need items with a certain number of features.

    Attributes
    ----------
    transformers : list of estimator
        Steps before the ranker.
    ranker : estimator
        The last step.
    n_features : int
        Number of features of the items that the first step takes.
    """

    transformers: Sequence[BaseEstimator]
    ranker: BaseEstimator
    n_features: int

    @property
    def first(self) -> BaseEstimator:
        """The step that takes the items."""
        if self.transformers:
            return self.transformers[0]
        return self.ranker


def check_predictions(model: BaseEstimator, n_bytes: int) -> None:
    """Raise ValueError unless the model predicts finite scores for zeros and for other items.

    Parameters
    ----------
    model : estimator
        Fitted ranker or Pipeline.
    n_bytes : int
        Size of the arrays of the model, which limits the size of the trial items.
    """
    fitted_steps = _fitted_steps(model)
    ranker = fitted_steps[-1]
    if isinstance(ranker, AutoRanker) and ranker.table_ is not None:
        _check_finite(ranker.smoke_test())  # it takes a table of text and numbers
        return
    steps = _split_steps(fitted_steps)
    items = _make_trial_items(steps, n_bytes)
    with warnings.catch_warnings():
        # the trial items are a matrix also for models that were trained on a data frame
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        for step in steps.transformers:
            items = transform_step(step, items, ONE_GROUP)
        _check_scores(ranker, items)
        _check_probabilities(ranker, items)


def _check_probabilities(ranker: BaseEstimator, items: AnyArray | sp.csr_array) -> None:
    """Check the probability that one trial item is above another, if the ranker has any."""
    if isinstance(ranker, AutoRanker):
        ranker.check_comparisons(items)
    elif hasattr(ranker, "predict_above"):
        groups = group_metadata(ranker, "predict", ONE_GROUP)
        _check_finite(ranker.predict_above(items, 0, 1, **groups))


def _fitted_steps(model: BaseEstimator) -> list[BaseEstimator]:
    """The ranker, or the steps of a Pipeline without 'passthrough'."""
    if not isinstance(model, Pipeline):
        return [model]
    return [step for _, step in model.steps if hasattr(step, "n_features_in_")]


def _split_steps(fitted_steps: list[BaseEstimator]) -> FittedSteps:
    *transformers, ranker = fitted_steps
    first = fitted_steps[0]
    if isinstance(first, TableVectorizer):  # its state was checked completely when it was built
        return FittedSteps(transformers[1:], ranker, len(first.get_feature_names_out()))
    return FittedSteps(transformers, ranker, first.n_features_in_)


def _make_trial_items(steps: FittedSteps, n_bytes: int) -> AnyArray | sp.csr_array:
    """Zeros, ones and random numbers; texts for a kernel that compares texts."""
    n_features = steps.n_features
    n_stored_numbers = n_bytes // 8  # a model may have as many features as numbers in its file
    if n_features > max(MAX_SPARSE_COLUMNS, n_stored_numbers):
        raise ValueError(f"a model has {n_features:,} features, but the file has fewer numbers")
    if n_features > max(MAX_DENSE_FEATURES, n_stored_numbers):
        return sp.csr_array((N_ITEMS, n_features))  # without entries, so that it takes no memory
    if _has_text_kernel(steps.first):
        texts = np.array(TRIAL_TEXTS, dtype=object)
        return texts[:, None].repeat(n_features, axis=1)
    items = np.random.default_rng(0).uniform(size=(N_ITEMS, n_features))
    items[0] = 0.0
    items[1] = 1.0
    return items


def _check_scores(ranker: BaseEstimator, items: AnyArray | sp.csr_array) -> None:
    """Check the shapes and values of the scores of all items and of the first item alone."""
    best_estimator = getattr(ranker, "best_estimator_", ranker)
    training_columns = getattr(best_estimator, "columns_fit_", None)
    if training_columns is None:
        scores = predict_items(ranker, items, ONE_GROUP)
        score_of_one = predict_items(ranker, items[:1], [0])
    else:  # ConditionalRankRLS predicts a table of scores: two of its columns are enough
        two_columns = training_columns[:2]
        scores = ranker.predict(items, two_columns)
        score_of_one = ranker.predict(items[:1], two_columns)
    has_score_per_item = scores.shape[0] == N_ITEMS
    have_same_outputs = score_of_one.shape == (1, *scores.shape[1:])
    if not (has_score_per_item and have_same_outputs) or scores.dtype.kind != "f":
        raise ValueError(
            f"scores of 1 and {N_ITEMS} items have the shapes {score_of_one.shape}, {scores.shape}"
        )
    _check_finite(scores)


def _check_finite(numbers: ArrayLike) -> None:
    if not np.isfinite(numbers).all():
        raise ValueError("scores or probabilities of the model are not finite")


def _has_text_kernel(ranker: BaseEstimator) -> bool:
    """Whether the kernel of a ranker, or of one of its views, compares texts."""
    # The n-gram kernel takes texts instead of numbers.
    ranker = getattr(ranker, "estimator", ranker)  # of a CalibratedRanker
    estimators_with_kernel = [ranker]
    views = getattr(ranker, "views", None)
    if isinstance(views, list):  # of a CoRankRLS
        estimators_with_kernel += views
    for estimator in estimators_with_kernel:
        for parameter in ("kernel", "row_kernel"):
            kernel = getattr(estimator, parameter, None)
            if isinstance(kernel, str) and kernel == "ngram":
                return True
    return False
