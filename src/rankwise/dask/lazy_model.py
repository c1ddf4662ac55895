"""What the estimators on Dask collections share: basis items, lazy scores, the way back."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Indices
from rankwise.dask.blocks import AlignedBlocks, Survey, is_lazy, take_rows, whole_rows
from rankwise.estimators.chunked import fixed_map, has_fixed_features
from rankwise.estimators.kernel_model import KernelModel
from rankwise.features import FeatureMap, basis_map, check_basis


class LazyModel(KernelModel):
    """A linear or basis model that learns from Dask collections and scores them."""

    n_basis: int | None
    basis: str | ArrayLike
    random_state: Any

    local_class: Any
    """The estimator of `rankwise` with the same parameters but `shuffle`."""

    def predict(self, X: Any) -> Any:
        """Score items; lazily if X is lazy.

        Parameters
        ----------
        X : dask array or data frame, or anything that the model of `rankwise` takes
            Items.

        Returns
        -------
        dask array (for an array), dask series or data frame (for a data frame), or ndarray
            Scores; larger is better.
        """
        if not is_lazy(X):
            return super().predict(X)
        check_is_fitted(self)
        model, shape = self.to_local(), self.output_shape_
        if isinstance(X, dd.DataFrame):
            self._check_columns(len(X.columns), list(X.columns))
            names = range(shape[0]) if shape else None
            meta = [(name, np.float64) for name in names] if names else ("score", np.float64)
            return X.map_partitions(_score_frame, model, meta=meta)
        self._check_columns(X.shape[1], None)
        X = whole_rows(X)
        layout: dict[str, Any] = {"drop_axis": 1}
        if shape:
            layout = {"chunks": (X.chunks[0], (shape[0],))}
        empty = np.empty((0,) * (1 + len(shape)))
        return da.map_blocks(_score_block, X, model=model, dtype=np.float64, meta=empty, **layout)

    def rank(self, X: Any, groups: Any = None) -> Indices:
        """Rank the items inside their groups, for data in memory; see `rankwise`."""
        self._refuse_lazy("rank", X, groups)
        return super().rank(X, groups)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Mean over groups of the pairs ordered rightly, for data in memory; see `rankwise`."""
        self._refuse_lazy("score", X, y, groups)
        return super().score(X, y, groups, sample_weight)

    def _refuse_weights(self, sample_weight: Any) -> None:
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is not taken on a cluster; use fit or partial_fit of "
                f"rankwise.{self.local_class.__name__}, which take it, or leave it out."
            )

    def to_local(self) -> Any:
        """The same model as an estimator of `rankwise`, without Dask."""
        check_is_fitted(self)
        own = self.get_params(deep=False)
        model = self.local_class(**{name: own[name] for name in own if name != "shuffle"})
        model.__dict__.update(
            {
                name: value
                for name, value in self.__dict__.items()
                if name.endswith("_") or name == "output_shape_"
            }
        )
        return model

    def _refuse_lazy(self, method: str, *collections: Any) -> None:
        if any(is_lazy(collection) for collection in collections):
            raise TypeError(
                f"{method} needs all rows of a group at once; compute predict(X), scores and "
                "groups first and use rankwise.metrics, or pass data in memory."
            )

    def _check_columns(self, n_columns: float, names: list[Any] | None) -> None:
        expected = list(getattr(self, "feature_names_in_", []))
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if names is not None and expected and names != expected:
            raise ValueError(
                f"the columns of X are {names}, but the model was trained on {expected}; give "
                "them in the same order."
            )

    def _learn_columns(self, X: Any) -> None:
        """Note the number of columns and, of a data frame, their names."""
        if not has_fixed_features(self):
            raise ValueError(
                f"kernel={self.kernel!r} with n_basis={self.n_basis!r} needs all items at once; on "
                "Dask collections use kernel='linear' without a basis, or any other kernel but "
                "'precomputed' with n_basis or basis."
            )
        if np.isnan(X.shape[1]):
            raise ValueError(
                "X has an unknown number of columns; call X.compute_chunk_sizes() first."
            )
        self._forget()
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = int(X.shape[1])
        if isinstance(X, dd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)

    def _fixed_map(self, aligned: AlignedBlocks, seen: Survey) -> FeatureMap:
        """The basis that the model of `rankwise` would have; its items come to the client."""
        kernel = self.make_kernel()
        if kernel.is_linear:
            return fixed_map(self, np.empty((0, self.n_features_in_)))
        points, n_basis = self.basis, self.n_basis
        if isinstance(self.basis, str) or np.ndim(self.basis) == 1:
            self.basis_indices_ = self._basis_rows(int(seen.n_rows.sum()))
            points, n_basis = take_rows(aligned, seen.n_rows, self.basis_indices_), None
        features = basis_map(kernel, np.empty((0, self.n_features_in_)), n_basis, points, None)
        self.X_fit_ = features.items
        return features

    def _basis_rows(self, n_rows: int) -> Indices:
        n_basis = check_basis(self.n_basis, self.basis, n_rows)
        if not isinstance(self.basis, str):
            return np.asarray(self.basis, dtype=np.intp)
        if self.basis != "random":
            raise ValueError(
                f"basis={self.basis!r} would look at all rows many times; use basis='random', or "
                "choose the points on a sample and pass them as basis."
            )
        rng = check_random_state(self.random_state)
        return np.sort(rng.choice(n_rows, size=n_basis, replace=False)).astype(np.intp)


def _score_block(block: Any, model: Any) -> NDArray[Any]:
    if block.shape[0] == 0:
        return np.zeros((0, *model.output_shape_))
    return np.asarray(model.predict(block))


def _score_frame(frame: Any, model: Any) -> Any:
    import pandas as pd

    scores = _score_block(frame, model)
    if scores.ndim == 2:
        return pd.DataFrame(scores, index=frame.index)
    return pd.Series(scores, index=frame.index, name="score", dtype=np.float64)
