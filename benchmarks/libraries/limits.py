"""Limits: the one operation of BLAS, LAPACK or NumPy that an exact method cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.metrics.pairwise import pairwise_kernels

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem


def kernel_matrix(problem: Problem) -> np.ndarray:
    return pairwise_kernels(problem.X, metric=problem.kernel, gamma=problem.gamma)


def _on_kernel_matrix(
    work: Callable[[np.ndarray], Any],
) -> Callable[[Problem], Callable[[], Model]]:
    def prepare(problem: Problem) -> Callable[[], Model]:
        K = kernel_matrix(problem)
        K[np.diag_indices(len(K))] += 1.0

        def limit() -> Model:
            work(K)
            return Model()

        return limit

    return prepare


def _gram(problem: Problem) -> Callable[[], Model]:
    def limit() -> Model:
        problem.X.T @ problem.X
        return Model()

    return limit


def _sort(problem: Problem) -> Callable[[], Model]:
    groups = np.zeros(len(problem.y), np.intp) if problem.groups is None else problem.groups

    def limit() -> Model:
        np.lexsort((problem.y, groups))
        return Model()

    return limit


def _products_and_sort(problem: Problem) -> Callable[[], Model]:
    """What one look at the loss and its gradient needs."""
    w = np.ones(problem.X.shape[1])

    def limit() -> Model:
        scores = problem.X @ w
        problem.X.T @ scores
        np.argsort(scores)
        return Model()

    return limit


def _has_kernel(problem: Problem) -> bool:
    return not problem.is_linear and problem.n_basis is None


def _has_dense_features(problem: Problem) -> bool:
    is_dense = problem.is_linear and not problem.is_sparse
    return is_dense and problem.has_scores and not problem.has_margin_loss


LIBRARIES = [
    Library("limit: X.T @ X", _has_dense_features, _gram, "numpy"),
    Library(
        "limit: lexsort",
        lambda problem: (
            problem.has_scores and problem.n_outputs == 1 and not problem.has_margin_loss
        ),
        _sort,
        "numpy",
    ),
    Library(
        "limit: 2 products + argsort",
        lambda problem: problem.has_margin_loss,
        _products_and_sort,
        "numpy",
    ),
    Library("limit: Cholesky", _has_kernel, _on_kernel_matrix(scipy.linalg.cho_factor), "scipy"),
    Library("limit: eigh", _has_kernel, _on_kernel_matrix(scipy.linalg.eigh), "scipy"),
]
