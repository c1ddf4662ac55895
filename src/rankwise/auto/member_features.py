"""Features of the entries of the menu of AutoRanker."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances

from rankwise.arrays import Array
from rankwise.auto.members import CandidateMember, n_knots
from rankwise.auto.training_data import TrainingData
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.runtime.memory import check_matrix_fits

N_BASIS = 300  # basis items of a kernel
RELATIVE_GAMMA = 0.3  # gamma times the median squared distance
DISTANCE_ITEMS = 500  # items between which distances are measured
FEATURE_COPIES = 3  # copies of the features that a hold-out has in memory at a time


class MemberFeatures(NamedTuple):
    """Fitted transformers of an entry, and the features that they give."""

    steps: list[Any]
    R: Any


def candidate_features(entry: CandidateMember, data: TrainingData, seed: int) -> MemberFeatures:
    """Fit the transformers of an entry, and transform the items."""
    is_sparse = sp.issparse(data.views[entry.view])
    if not is_sparse or entry.expansion == "rbf":
        n_rows, n_columns = feature_shape(entry, data)
        check_matrix_fits(
            n_rows,
            n_columns,
            f"the features of the member {entry.name!r}",
            "drop it from members=",
            n_matrices=FEATURE_COPIES,
        )
    scaler, scaled = data.scaled_view(entry.view, entry.scaling)
    if entry.expansion == "linear":
        return MemberFeatures([scaler], scaled)

    expansion: Any
    if entry.expansion == "rbf":
        # Nystroem inverts small eigenvalues, which are rounding noise in single precision
        scaled = scaled.astype(np.float64)
        expansion = Nystroem(
            gamma=RELATIVE_GAMMA / _median_squared_distance(scaled, seed),
            n_components=min(N_BASIS, scaled.shape[0]),
            random_state=seed,
        )
    elif entry.view == "wide":  # no hinges of the indicators of values and words
        n_dense = data.views["dense"].shape[1]
        expansion = HingeFeatures(n_knots(n_dense), n_columns=n_dense)
    else:
        expansion = HingeFeatures(n_knots(scaled.shape[1]))
    return MemberFeatures([scaler, expansion], expansion.fit_transform(scaled))


def feature_shape(entry: CandidateMember, data: TrainingData) -> tuple[int, int]:
    """Numbers of rows and columns of the features of an entry."""
    n_rows, n_columns = data.views[entry.view].shape
    n_dense = data.views["dense"].shape[1]
    if entry.scaling.with_standard:  # columns of two scalings
        n_columns *= 2
    if entry.expansion == "rbf":
        n_columns = min(N_BASIS, n_rows)
    elif entry.expansion == "hinges":
        n_columns += n_dense * n_knots(n_dense)
    return int(n_rows), int(n_columns)


def _median_squared_distance(scaled: Array, seed: int) -> float:
    """Median squared distance between random items; the mean if it is 0, and 1 if all are equal."""
    n_items = scaled.shape[0]
    sample = np.random.RandomState(seed).permutation(n_items)[:DISTANCE_ITEMS]
    distances = euclidean_distances(scaled[sample], squared=True)
    distance_of_pairs = distances[np.triu_indices(len(sample), 1)]  # each pair once
    median = float(np.median(distance_of_pairs))
    if median:
        return median
    mean = float(distance_of_pairs.mean())  # most items are equal
    if mean:
        return mean
    return 1.0
