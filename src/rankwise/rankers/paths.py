"""Regularization paths."""

from __future__ import annotations

import copy
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone

from rankwise.arrays import Array, MatrixLike
from rankwise.graphs.supervision import TargetLike, read_y
from rankwise.rankers.base import HoldOutMixin, KernelModel
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_alphas


class PathModel(HoldOutMixin, KernelModel):
    """A kernel model of items in groups, with paths over alpha and a hold-out task."""

    allows_zero_alpha = False  # whether alpha may be 0, the limit for small alphas

    @single_threaded
    def path(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike,
        sample_weight: ArrayLike | None = None,
        nuisance: ArrayLike | None = None,
    ) -> Any:
        """Models for a list of alphas.

        The path costs little more than one fit: RankRLS computes all models from one reduction of
        the matrix ([RankRLS09] section 3.2), RankSVM and RankLogistic start each model at the
        previous one. `alpha` of the estimator is ignored, and the estimator is not modified.

        Parameters
        ----------
        X, y, groups, sample_weight, nuisance
            As in `fit`; the models of a path have no `nuisance_coef_`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankRLSPath or PairwisePath
            The models of all alphas.

        Examples
        --------
        >>> from rankwise import RankRLS, RankSVM
        >>> path = RankRLS().path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.1, 1.0, 10.0])
        >>> path.predict([[1.0]]).round(3)
        array([[0.629, 0.529, 0.205]])
        >>> path = RankSVM(tol=1e-6).path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.01, 1.0])
        >>> path.predict([[1.0]]).round(2)
        array([[1. , 0.5]])
        """
        checked_alphas = check_alphas(alphas, "alphas", allow_zero=self.allows_zero_alpha)
        target = read_y(y, groups, sample_weight, nuisance, X=X)
        learner = clone(self)
        return learner._prepare(X, target).path(checked_alphas)


class ModelPath:
    """Models along a list of alphas.

    Parameters
    ----------
    template : estimator
        The unfitted ranker.
    alphas, coefficients
        See the attributes.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, n_outputs)
        Weights of the features (linear kernel) or of the training or basis items.
    """

    def __init__(self, template: Any, alphas: Array, coefficients: Array) -> None:
        self._template = template
        self.alphas = alphas
        self.coefficients = coefficients

    def __len__(self) -> int:
        return len(self.alphas)

    @single_threaded
    def predict(self, X: MatrixLike) -> Array:
        """Scores of all models, shape (n_items, n_alphas) or (n_items, n_outputs, n_alphas).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray
            Scores; the last axis is that of `alphas`.
        """
        model = self._template
        n_alphas, n_coefficients, _ = self.coefficients.shape
        # a column for each output and alpha
        columns = self.coefficients.transpose(1, 2, 0).reshape(n_coefficients, -1)
        scores: Array = model.predict_by(X, columns)
        return scores.reshape((len(scores), *model.output_shape_, n_alphas))

    def model(self, index: int) -> Any:
        """The fitted estimator of ``alphas[index]``.

        Parameters
        ----------
        index : int
            Position in `alphas`.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        model = copy.copy(self._template)
        model.alpha = float(self.alphas[index])
        model._store_coefficients(self.coefficients[index])
        return model
