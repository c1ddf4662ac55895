"""The two sides of a table: labels, features of the items, or kernel values between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from rankwise.arrays import Array, Indices, Matrix, dense_rows
from rankwise.caching import cached_property
from rankwise.kernels.kernel import center_kernel
from rankwise.runtime.threads import allow_threads
from rankwise.solvers.leave_items_out import Spectrum, decompose_columns, find_spectrum

OVERFLOW = (
    "the squares of some features or kernel values overflow; scale the features, for example with "
    "sklearn.preprocessing.StandardScaler."
)
EPSILON = float(np.finfo(np.float64).eps)
ROUNDING_OF_SQUARES = 1e-14  # relative error of a variance that is a difference of mean squares
ROUNDING_OF_DEVIATIONS = 1e-28  # relative error of a mean square of deviations from the mean


class PreconditionedSide(NamedTuple):
    """Features R of one side for which ``Rᵀ H R`` is diagonal, for given weights H of its items.

    Attributes
    ----------
    features : array, sparse matrix or None
        R, shape (n, r); None for the identity.
    squared_norms : ndarray of shape (r,)
        Diagonal of ``Rᵀ H R``.
    to_basis_weights : ndarray of shape (n_basis_functions, r) or None
        Matrix from weights of R to weights of the basis functions of the side; None for the
        identity.
    """

    features: Matrix
    squared_norms: Array
    to_basis_weights: Array | None = None


class Side(ABC):
    """The items of one side of a table and the basis functions that score them.

    Basis functions are the features of an item, or its kernel values to the items of the side.

    Attributes
    ----------
    is_centered : bool
        Whether scores are determined up to a constant on this side, so that the mean of the items
        has no effect.
    is_decomposed : bool
        Whether `spectrum` may be used; False for features that are too large to decompose.
    """

    is_centered: bool = False
    is_decomposed: bool = True

    @abstractmethod
    def subset(self, items: Indices) -> Side:
        """The side with the selected items only."""

    @abstractmethod
    def basis_values_at(self, new_items: Indices, items: Indices) -> Matrix:
        """Basis functions of the side with these `items`, evaluated at `new_items`."""

    @abstractmethod
    def precondition(self, weight: Array) -> PreconditionedSide:
        """Features with diagonal ``Rᵀ H R``, for H = diag(weight)."""

    @abstractmethod
    def spread(self) -> float:
        """Mean squared distance of the items from their mean; twice that if the side is centered.

        Twice the distance is the mean squared distance in a pair. If all items are equal, it is
        their mean squared length.
        """


@dataclass(frozen=True, eq=False)
class LabelSide(Side):
    """Labels: items without features, whose kernel is the identity."""

    def subset(self, items: Indices) -> LabelSide:
        """The side itself: labels are not held out."""
        return self  # only rows are selected; all labels stay

    def basis_values_at(self, new_items: Indices, items: Indices) -> Matrix:
        """Return the identity: the basis functions of labels are the labels themselves."""
        raise NotImplementedError("labels cannot be held out")

    def precondition(self, weight: Array) -> PreconditionedSide:
        """The identity."""
        # The features R are the identity, so that the diagonal of Rᵀ H R is the weights.
        return PreconditionedSide(features=None, squared_norms=weight)

    def spread(self) -> float:
        """Squared distance of two unit vectors."""
        return 2.0  # squared distance of two labels, which are unit vectors


class DecomposedSide(Side):
    """A side that is a matrix of features or of kernel values.

    Attributes
    ----------
    matrix : array or sparse matrix
        Features of the items, shape (n, p), or kernel values between them, (n, n).
    constant : float
        Constant that was added to the kernel; 0 if there is none.
    """

    matrix: Matrix
    constant: float

    @abstractmethod
    def subset(self, items: Indices) -> DecomposedSide:
        """The side with the selected items only."""

    @property
    @abstractmethod
    def spectrum(self) -> Spectrum:
        """Eigenvalues and vectors of the kernel matrix, centered if the side is, without zeros."""

    @property
    @abstractmethod
    def vectors_to_basis_weights(self) -> Array:
        """Matrix from weights of the vectors of the spectrum to weights of the basis functions."""

    @abstractmethod
    def split_constant(self, basis_weights: Array) -> tuple[Array, Array]:
        """Weights of the basis functions, and the scores that the constant adds."""

    @abstractmethod
    def normal_equations(self, target: Array) -> tuple[Array, Array]:
        """A and T of the ridge regression ``(A + ρI) B = T`` on this side, as new arrays."""


@dataclass(frozen=True, eq=False)
class FeatureSide(DecomposedSide):
    """A side with features; see `feature_side`.

    Attributes
    ----------
    matrix : array or sparse matrix of shape (n, n_features)
        Features of the items, after a reflection if there is one.
    constant : float
        Square of the constant feature, which is then the first one; 0 if there is none.
    householder_vector : ndarray of shape (n_features,) or None
        Unit vector u of the reflection ``I − 2 u uᵀ`` that was applied to the features.
    """

    matrix: Matrix
    is_centered: bool = False
    is_decomposed: bool = True
    constant: float = 0.0
    householder_vector: Array | None = None

    def subset(self, items: Indices) -> FeatureSide:
        """The side with the selected items only, or itself if these are all."""
        has_all_items = len(items) == self.matrix.shape[0]
        if has_all_items:
            return self
        return replace(self, matrix=self.matrix[items])

    def basis_values_at(self, new_items: Indices, items: Indices) -> Matrix:
        """Features of the new items."""
        return self.matrix[new_items]

    def precondition(self, weight: Array) -> PreconditionedSide:
        """Features with diagonal ``Rᵀ H R``; features that are too large are returned unchanged."""
        # Transform the features X to R, with the same kernel X Xᵀ = R Rᵀ, for which Rᵀ H R is
        # diagonal: features that are orthogonal with the weights H = diag(weight) of the items.
        if not self.is_decomposed:  # too large: keep the features, and only this diagonal
            if sp.issparse(self.matrix):
                squared_features = self.matrix.power(2)
            else:
                squared_features = np.square(self.matrix)
            return PreconditionedSide(self.matrix, np.asarray(squared_features.T @ weight))

        # With the singular values H^½ X = U Σ Vᵀ, R = H^(−½) U Σ = X V has Rᵀ H R = Σ².
        root_weight = np.sqrt(weight)[:, None]
        weighted_features = root_weight * self.centered_features
        left, singular_values, right = decompose_features(weighted_features)
        features = np.ascontiguousarray(left * singular_values / root_weight)
        return PreconditionedSide(
            features, squared_norms=singular_values**2, to_basis_weights=right
        )

    def spread(self) -> float:
        """Sum of the variances of the features."""
        # variances of the features, as accurate as the storage allows
        features = self.matrix
        if sp.issparse(features):
            means = np.asarray(features.mean(axis=0)).ravel()
            mean_squares = np.asarray(features.multiply(features).mean(axis=0)).ravel()
            variances = mean_squares - means**2
            relative_rounding = ROUNDING_OF_SQUARES
        else:
            mean_squares = np.square(features).mean(axis=0)
            variances = np.square(features - features.mean(axis=0)).mean(axis=0)
            relative_rounding = ROUNDING_OF_DEVIATIONS
        return _total_spread(
            variances,
            mean_squares,
            relative_rounding,
            features.shape[0],
            is_centered=self.is_centered,
        )

    @cached_property
    def centered_features(self) -> Array:
        """Dense features, less their means if the side is centered."""
        features = dense_rows(self.matrix)
        if self.is_centered:
            return np.asarray(features - features.mean(axis=0))
        return features

    @cached_property
    def _singular_value_decomposition(self) -> tuple[Array, Array, Array]:
        return decompose_features(self.centered_features)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and vectors of ``R Rᵀ``, without zeros."""
        left, singular_values, right = self._singular_value_decomposition
        n_items = len(left)
        return Spectrum(
            eigenvalues=singular_values**2,
            vectors=left,
            weight=np.ones(n_items),
            right_vectors=right,
        )

    @property
    def vectors_to_basis_weights(self) -> Array:
        """``Rᵀ U``, from the singular vectors: products of R and U would cancel."""
        # The features are R = U Σ Vᵀ, and U the eigenvectors of the kernel R Rᵀ. Weights of the
        # eigenvectors become weights of the features by Rᵀ U = V Σ.
        _, singular_values, right = self._singular_value_decomposition
        return right * singular_values

    def split_constant(self, basis_weights: Array) -> tuple[Array, Array]:
        """Weights of the features before the reflection, and the scores that the constant adds."""
        # Undo the reflection of the features, which is its own inverse: (I − 2 u uᵀ) times weights.
        u = self.householder_vector
        if u is not None:
            basis_weights = basis_weights - 2.0 * np.outer(u, u @ basis_weights)
        if not self.constant:
            n_outputs = basis_weights.shape[1]
            return basis_weights, np.zeros(n_outputs)
        # The first feature is √constant in every item.
        feature_weights = basis_weights[1:]
        scores_of_constant = np.sqrt(self.constant) * basis_weights[0]
        return feature_weights, scores_of_constant

    def normal_equations(self, target: Array) -> tuple[Array, Array]:
        """``Rᵀ R`` and ``Rᵀ Y``."""
        features = self.matrix.astype(np.float64)
        gram = features.T @ features
        if sp.issparse(gram):
            gram = gram.toarray()
        return gram, np.asarray(features.T @ target)


@dataclass(frozen=True, eq=False)
class KernelSide(DecomposedSide):
    """A side with kernel values between its items; see `kernel_side`.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        Kernel values, with the constant.
    constant : float
        Constant that was added to the kernel values; 0 if there is none.
    """

    matrix: Array
    is_centered: bool = False
    is_decomposed: bool = True
    constant: float = 0.0

    def subset(self, items: Indices) -> KernelSide:
        """The side with the selected items only, or itself if these are all."""
        has_all_items = len(items) == len(self.matrix)
        if has_all_items:
            return self
        return replace(self, matrix=self.matrix[np.ix_(items, items)])

    def basis_values_at(self, new_items: Indices, items: Indices) -> Array:
        """Kernel values of the new items to the items."""
        return self.matrix[np.ix_(new_items, items)]

    def precondition(self, weight: Array) -> PreconditionedSide:
        """With ``H^½ K H^½ = V Σ Vᵀ``: ``R = H^(−½) V Σ^½``; negative eigenvalues are dropped."""
        # Find features R of the kernel, R Rᵀ = K, for which Rᵀ H R is diagonal, for the weights of
        # the items H = diag(weight): with the eigenvectors V and eigenvalues Σ of H^½ K H^½,
        # R = H^(−½) V Σ^½ has Rᵀ H R = Σ.
        K = self.matrix
        if self.is_centered:
            K = center_kernel(K.copy())
        n_items = len(K)
        root_weight = np.sqrt(weight)[:, None]
        weighted_kernel = root_weight * K * root_weight.T
        with allow_threads(n_items**3):
            eigenvalues, vectors = scipy.linalg.eigh(
                weighted_kernel, check_finite=False, overwrite_a=True
            )
        rounding = n_items * EPSILON * eigenvalues.max(initial=0.0)
        is_positive = eigenvalues > rounding
        eigenvalues = eigenvalues[is_positive]
        vectors = vectors[:, is_positive]

        features = np.ascontiguousarray(vectors / root_weight * np.sqrt(eigenvalues))
        # R = K to_basis_weights: from weights of R to weights of the columns of the kernel matrix
        to_basis_weights = vectors * root_weight / np.sqrt(eigenvalues)
        if self.is_centered:  # R = C K C W is written as C K (C W), with the centering matrix C
            to_basis_weights -= to_basis_weights.mean(axis=0)
        return PreconditionedSide(features, eigenvalues, to_basis_weights)

    def spread(self) -> float:
        """Mean squared distance of the items from their mean, in feature space."""
        n_items = len(self.matrix)
        mean_square = np.trace(self.matrix) / n_items  # mean of k(x, x)
        squared_length_of_mean = self.matrix.mean()
        variance = mean_square - squared_length_of_mean
        return _total_spread(
            np.array([variance]),
            np.array([mean_square]),
            ROUNDING_OF_SQUARES,
            n_items,
            is_centered=self.is_centered,
        )

    @cached_property
    def spectrum(self) -> Spectrum:
        """Nonzero eigenvalues of the kernel matrix, and their vectors."""
        spectrum = find_spectrum(self.matrix, is_kernel=True, centered=self.is_centered)
        n_items = len(spectrum.vectors)
        # drop directions whose eigenvalue is zero, up to rounding
        magnitudes = np.abs(spectrum.eigenvalues)
        rounding = n_items * EPSILON * magnitudes.max(initial=0.0)
        is_nonzero = magnitudes > rounding
        return Spectrum(
            spectrum.eigenvalues[is_nonzero],
            np.ascontiguousarray(spectrum.vectors[:, is_nonzero]),
            spectrum.weight,
        )

    @property
    def vectors_to_basis_weights(self) -> Array:
        """The vectors: basis functions are kernel values to the items."""
        return self.spectrum.vectors

    def split_constant(self, basis_weights: Array) -> tuple[Array, Array]:
        """Weights of the kernel values, and the scores that the constant of the kernel adds."""
        # The constant is added to every kernel value, so each weight adds it to every score.
        scores_of_constant = self.constant * basis_weights.sum(axis=0)
        return basis_weights, scores_of_constant

    def normal_equations(self, target: Array) -> tuple[Array, Array]:
        """K and Y."""
        # the dual coefficients B of ridge regression solve (K + ρI) B = Y
        return self.matrix.astype(np.float64), target


def feature_side(
    matrix: Matrix,
    *,
    has_constant: bool = False,
    weight: Array | None = None,
    is_centered: bool = False,
    is_decomposed: bool = True,
) -> FeatureSide:
    """A side with these features.

    The constant feature is as long as the root mean square of the rows. A large mean would cost the
    digits of the differences between items, so dense features that are neither centered nor large
    are reflected: the mean of all rows becomes a multiple of the first unit vector. The kernel is
    the same.
    """
    constant = 0.0
    if has_constant:
        constant = _mean_squared_length(matrix, weight)
    is_sparse = sp.issparse(matrix)
    # a reflection keeps the digits of dense features, unless their mean has no effect
    if not is_sparse and not is_centered and is_decomposed:
        features = np.asarray(matrix, dtype=np.float64)
        reflected, householder_vector = _reflect_mean(features, constant)
        return FeatureSide(reflected, constant=constant, householder_vector=householder_vector)

    if has_constant:
        n_items = matrix.shape[0]
        constant_column = np.full((n_items, 1), np.sqrt(constant))
        if is_sparse:
            matrix = sp.hstack([constant_column, matrix], format="csr")
        else:
            matrix = np.hstack([constant_column, matrix])
    return FeatureSide(matrix, is_centered, is_decomposed, constant)


def kernel_side(
    K: Array,
    *,
    has_constant: bool = False,
    weight: Array | None = None,
    is_centered: bool = False,
) -> KernelSide:
    """A side with these kernel values; the constant is the mean of k(x, x)."""
    if not has_constant:
        return KernelSide(K, is_centered)
    squared_lengths = np.diagonal(K)
    constant = _mean_or_one(squared_lengths, weight)
    return KernelSide(K + constant, is_centered, constant=constant)


def decompose_features(features: Array) -> tuple[Array, Array, Array]:
    """U, σ and V with ``features = U diag(σ) Vᵀ``, without singular values of zero.

    Rows of zeros give wide features as many rows as columns, which `decompose_columns` requires.
    """
    n_rows, n_columns = features.shape
    if n_rows < n_columns:  # `decompose_columns` needs at least as many rows as columns
        rows_of_zeros = np.zeros((n_columns - n_rows, n_columns))
        features = np.vstack([features, rows_of_zeros])
    left, singular_values, right = decompose_columns(features)
    is_positive = singular_values > 0
    left_of_rows = np.ascontiguousarray(left[:n_rows, is_positive])  # without the rows of zeros
    return left_of_rows, singular_values[is_positive], right[:, is_positive]


def _reflect_mean(features: Array, constant: float) -> tuple[Array, Array | None]:
    """Features ``[√constant, features]`` reflected, and the unit vector of the reflection."""
    # Reflect the features so that their mean has one nonzero entry. Deviations from the mean are
    # reflected apart from it, so that they keep their digits.
    mean = features.mean(axis=0)
    deviations = features - mean
    if constant:  # the constant feature comes first; it does not deviate from its mean
        mean = np.concatenate([[np.sqrt(constant)], mean])
        deviations = np.hstack([np.zeros((len(features), 1)), deviations])
    if not mean.any():
        return deviations, None

    # Householder reflection I − 2 u uᵀ that maps the mean to (−signed_length, 0, …, 0)
    with np.errstate(over="ignore"):  # an overflow is reported below
        signed_length = np.copysign(np.linalg.norm(mean), mean[0])
    if not np.isfinite(signed_length):
        raise ValueError(OVERFLOW)
    householder_vector = mean.copy()
    householder_vector[0] += signed_length
    householder_vector /= np.linalg.norm(householder_vector)
    reflected = deviations - 2.0 * np.outer(deviations @ householder_vector, householder_vector)
    reflected[:, 0] -= signed_length  # add the reflected mean
    return reflected, householder_vector


def _mean_squared_length(matrix: Matrix, weight: Array | None) -> float:
    """Mean squared length of the rows; 1 if all are zero."""
    if sp.issparse(matrix):
        squared_lengths = np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    else:  # sum of squares of each row, in double precision
        squared_lengths = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    return _mean_or_one(squared_lengths, weight)


def _mean_or_one(squared_lengths: Array, weight: Array | None) -> float:
    """Weighted mean, or 1 if it is zero."""
    mean = float(np.average(squared_lengths, weights=weight))
    if mean == 0.0:  # all features are zero: any constant will do
        return 1.0
    return mean


def _total_spread(
    variances: Array,
    mean_squares: Array,
    relative_rounding: float,
    n_items: int,
    *,
    is_centered: bool,
) -> float:
    """Sum of the variances above rounding, or of the mean squares if there is none."""
    is_constant_up_to_rounding = variances <= relative_rounding * mean_squares
    variances = np.where(is_constant_up_to_rounding, 0.0, variances)
    total = variances.sum()  # mean squared distance of the items from their mean
    if not variances.any():  # all items are equal
        total = mean_squares.sum()
    if is_centered:  # the mean squared distance in a pair is twice the unbiased variance
        total *= 2 * n_items / max(n_items - 1, 1)
    return float(total)
