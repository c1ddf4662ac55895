"""What all linear and kernel rankers share: kernel, items, coefficients, predictions, paths."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.anatomy import ScoreFunctions
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.problem import check_rows
from rankwise.features.feature_map import FeatureMap
from rankwise.features.kernel import KernelParameters
from rankwise.losses.nuisance import Effects
from rankwise.machine import calm


class KernelModel(RankerMixin, KernelParameters):
    """A ranker whose scores are ``X coef_`` or ``k(X, X_fit_) dual_coef_``."""

    learned: ClassVar[tuple[str, ...]] = (
        *("coef_", "dual_coef_", "X_fit_", "basis_indices_"),
        *("nuisance_coef_", "nuisance_se_", "nuisance_names_"),
    )
    """Attributes that not every fit sets, so that a fit must forget those of an earlier one."""

    alpha: Any
    _nuisance_names: list[str] = []  # noqa: RUF012
    output_shape_: tuple[int, ...] = ()
    intercept_: Any = 0.0  # as of linear models of scikit-learn without one

    @calm
    def predict(self, X: Any) -> NDArray[Any]:
        """Score items; larger is better, and only differences (inside a group) have a meaning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items; kernel values to the training items if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Scores.
        """
        check_is_fitted(self)
        X = check_rows(self, X, accept_sparse="csr", reset=False)
        return self._scores(X, self._columns).reshape((X.shape[0], *self.output_shape_))

    @calm
    def predict_by(self, X: Any, coefficients: Array) -> NDArray[Any]:
        """Score items by other coefficients than those of the fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        coefficients : ndarray of shape (n_coefficients, k)
            Weights of what `regressors` gives, one model in each column.

        Returns
        -------
        ndarray of shape (n_items, k)
            Scores; equal items have equal ones, to the last bit.
        """
        check_is_fitted(self)
        return self._scores(check_rows(self, X, accept_sparse="csr", reset=False), coefficients)

    @calm
    def regressors(self, X: Any) -> Any:
        """What the coefficients are coefficients of: scores are ``regressors(X) @ coefficients``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        array or sparse matrix of shape (n_items, n_coefficients)
            The columns of X for a linear model (`coef_`), else kernel values to the training or
            basis items (`dual_coef_`).
        """
        check_is_fitted(self)
        X = check_rows(self, X, accept_sparse="csr", reset=False)
        return self._feature_map(len(self._columns)).features(X)

    def score_functions(self) -> ScoreFunctions:
        """What the scores are made of."""
        columns = np.asarray(self._columns, dtype=np.float64)
        features = self._feature_map(len(columns))
        return ScoreFunctions([features], [columns], self.intercept_, self.output_shape_)

    def _store_features(self, features: FeatureMap) -> None:
        """Forget an earlier fit with other parameters, keep the items of this one."""
        self._forget()
        if features.items is not None:
            self.X_fit_ = features.items
        if features.basis is not None:
            self.basis_indices_ = features.basis

    def _forget(self) -> None:
        for name in self.learned:
            self.__dict__.pop(name, None)

    def _keep_effects(self, effects: Effects) -> None:
        self.nuisance_coef_, self.nuisance_se_ = effects
        self.nuisance_names_ = list(self._nuisance_names)

    def _store(self, columns: Array) -> None:
        """Keep coefficients of shape (n, n_outputs) under their public names."""
        single = not self.output_shape_
        if self.make_kernel().is_linear:
            self.coef_ = columns[:, 0].copy() if single else np.ascontiguousarray(columns.T)
        else:
            self.dual_coef_ = columns[:, 0].copy() if single else np.ascontiguousarray(columns)

    @property
    def _columns(self) -> Array:
        if hasattr(self, "coef_"):
            return np.asarray(np.atleast_2d(self.coef_).T)
        return self.dual_coef_.reshape(len(self.dual_coef_), -1)

    def _scores(self, X: Any, columns: Array) -> NDArray[Any]:
        return self._feature_map(len(columns)).scores(X, columns)

    def _feature_map(self, n_coefficients: int) -> FeatureMap:
        basis, items = getattr(self, "basis_indices_", None), getattr(self, "X_fit_", None)
        return FeatureMap(self.make_kernel(), None, n_coefficients, basis, items)


Model = TypeVar("Model", bound=KernelModel)


class ModelPath(Generic[Model]):
    """Models along a list of alphas.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, n_outputs)
        Weights of the features (linear kernel) or of the training or basis items.
    """

    def __init__(self, template: Model, alphas: Array, coefficients: Array) -> None:
        self._template = template
        self.alphas = alphas
        self.coefficients = coefficients

    def __len__(self) -> int:
        return len(self.alphas)

    @calm
    def predict(self, X: Any) -> NDArray[Any]:
        """Scores of all models, shape (n_items, n_alphas) or (n_items, n_outputs, n_alphas)."""
        model = self._template
        n_alphas, n, _ = self.coefficients.shape
        columns = self.coefficients.transpose(1, 2, 0).reshape(n, -1)
        scores = model.predict_by(X, columns)
        return scores.reshape((len(scores), *model.output_shape_, n_alphas))

    def model(self, index: int) -> Model:
        """The fitted estimator of ``alphas[index]``."""
        model = copy.copy(self._template)
        model.alpha = float(self.alphas[index])
        model._store(self.coefficients[index])
        return model
