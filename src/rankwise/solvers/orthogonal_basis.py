"""A basis that grows one vector at a time: least squares by an updated QR factorization."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from rankwise.arrays import Array

DEPENDENT = 1e-10  # what is left of a vector that the others span, relative to its norm
FIRST_ROOM = 16


class OrthogonalBasis:
    """Minimize ``fᵀ A f − 2 fᵀ t`` over the span of the vectors added so far.

    Keeps ``X = V R`` with ``Vᵀ A V = I`` and R upper triangular (the Cholesky factor of
    ``Xᵀ A X``, which is never formed: twice iterated Gram-Schmidt keeps the digits that squaring
    would lose). One more vector costs one product with A and O(n k) for k vectors of length n.

    Parameters
    ----------
    product : callable
        ``A v`` for a vector v; A is symmetric and positive semidefinite.
    target : ndarray of shape (n,)
        t.

    Attributes
    ----------
    fitted : ndarray of shape (n,)
        The minimizer f.
    """

    def __init__(self, product: Callable[[Array], Array], target: Array) -> None:
        self._product = product
        self._target = target
        self._size = 0
        self._vectors = np.empty((FIRST_ROOM, len(target)))  # the rows are V and A V
        self._images = np.empty((FIRST_ROOM, len(target)))
        self._triangle = np.zeros((FIRST_ROOM, FIRST_ROOM))
        self._moments = np.empty(FIRST_ROOM)
        self.fitted = np.zeros(len(target))

    def __len__(self) -> int:
        return self._size

    def add(self, x: Array) -> bool:
        """Add a vector unless the others span it (in the seminorm of A); tell whether it was."""
        k = self._size
        V, AV = self._vectors[:k], self._images[:k]
        overlap = np.zeros(k)
        for _ in range(2):
            correction = AV @ x
            x = x - correction @ V
            overlap += correction
        image = self._product(x)
        rest = max(0.0, float(x @ image))
        if rest <= DEPENDENT**2 * (rest + float(overlap @ overlap)):
            return False
        if k == len(self._vectors):
            self._make_room()
        norm = np.sqrt(rest)
        self._vectors[k], self._images[k] = x / norm, image / norm
        self._triangle[:k, k], self._triangle[k, k] = overlap, norm
        self._moments[k] = self._vectors[k] @ self._target
        self.fitted += self._moments[k] * self._vectors[k]
        self._size = k + 1
        return True

    def coefficients(self) -> Array:
        """Coefficients of the added vectors in the minimizer, ``R⁻¹ Vᵀ t``."""
        k = self._size
        return np.asarray(solve_triangular(self._triangle[:k, :k], self._moments[:k]))

    def _make_room(self) -> None:
        room = len(self._vectors)
        self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)])
        self._images = np.concatenate([self._images, np.empty_like(self._images)])
        self._triangle = np.pad(self._triangle, (0, room))
        self._moments = np.pad(self._moments, (0, room))
