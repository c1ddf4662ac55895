"""The solution method of a squared loss, from the kernel and the shape of the data."""

from __future__ import annotations

import scipy.sparse as sp

from rankwise.arrays import Matrix
from rankwise.kernels.kernel import Kernel
from rankwise.runtime.memory import available_bytes
from rankwise.validation import check_option

SOLVERS = ("auto", "primal", "dual", "iterative")
SPARSE_DIRECT_LIMIT = 5000  # sparse X with more rows and more columns is solved by iterations


def choose_method(kernel: Kernel, X: Matrix, solver: str, *, has_basis: bool = False) -> str:
    """Choose how to solve.

    ==============================================  ===========
    data                                            method
    ==============================================  ===========
    linear, at most as many features as items       "primal"
    linear, more features than items                "dual"
    linear, the smaller matrix exceeds the memory,  "iterative"
    or sparse with large dimensions
    kernel                                          "dual"
    kernel with a basis                             "primal"
    ==============================================  ===========

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array or sparse matrix of shape (n_items, n_features)
        The training items.
    solver : {"auto", "primal", "dual", "iterative"}
        The user's choice.
    has_basis : bool, default=False
        Whether the kernel has a basis.

    Returns
    -------
    {"primal", "dual", "iterative"}
        The method.
    """
    check_option("solver", solver, SOLVERS)
    if has_basis:
        if solver not in ("auto", "primal"):
            raise ValueError(f"a basis needs solver='primal' or 'auto'; got solver={solver!r}.")
        return "primal"
    if not kernel.is_linear:
        if solver not in ("auto", "dual"):
            raise ValueError(
                f"solver={solver!r} needs explicit features; with kernel={kernel.function!r} use "
                "solver='auto', or n_basis for a primal solution on basis items."
            )
        return "dual"
    if solver != "auto":
        return solver
    if _is_large(X):
        return "iterative"
    n_items, n_features = X.shape
    if n_features <= n_items:
        return "primal"
    return "dual"


def _is_large(X: Matrix) -> bool:
    """Whether a direct method would take too much memory, or too much time for sparse X."""
    n_rows_of_system = min(X.shape)
    if sp.issparse(X) and n_rows_of_system > SPARSE_DIRECT_LIMIT:
        return True
    system_bytes = 8 * n_rows_of_system**2
    available = available_bytes()
    return available is not None and system_bytes > available
