"""What would not fit is refused before it is allocated."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rankwise import RankRLS, RankRLSCV, RankSVM
from rankwise.graphs import laplacian_roots
from rankwise.kernels.solver_input import KERNEL_MATRICES, SEARCH_MATRICES
from rankwise.runtime import memory


def test_available_memory_is_a_plausible_number():
    assert 10**7 < memory.available_bytes() < 10**15


def test_a_matrix_that_fits_passes_and_a_larger_one_names_its_size(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 2**30)
    memory.check_matrix_fits(2**15, 2**15, "a kernel matrix", "pass n_basis")
    with pytest.raises(
        ValueError, match=r"65,536 × 65,536 would take 32\.0 GiB.*8\.0 GiB.*n_basis"
    ):
        memory.check_matrix_fits(2**16, 2**16, "a kernel matrix", "pass n_basis")


def test_systems_that_do_not_tell_are_not_checked(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    memory.check_matrix_fits(10**9, 10**9, "a kernel matrix", "")


def test_several_matrices_are_counted_and_said(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 2**30)
    memory.check_matrix_fits(2**14, 2**15, "a kernel matrix", "pass n_basis", n_matrices=2.0)
    with pytest.raises(ValueError, match=r"10\.0 GiB \(2\.5 matrices of that size at a time\)"):
        memory.check_matrix_fits(2**14, 2**15, "a kernel matrix", "pass n_basis", n_matrices=2.5)


@pytest.mark.filterwarnings("ignore:the best alpha")
@pytest.mark.parametrize(
    "model",
    [
        RankRLS(),
        RankRLSCV([0.1, 1.0]),
        RankRLSCV([0.1, 1.0], cost="sign"),
        RankRLSCV([0.1, 1.0], cv=3),
        RankSVM(1.0, tol=0.5),
    ],
    ids=["fit", "leave-group-out", "sign", "three folds", "svm"],
)
def test_the_peak_is_what_was_announced(monkeypatch, model):
    monkeypatch.setattr(
        laplacian_roots, "BLOCK_ENTRIES", 2**14
    )  # a fixed size, nothing for large m
    m = 1000 if isinstance(model, RankSVM) else 400  # its blocks are larger
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(m, 5)), rng.normal(size=m).round(1), np.arange(m) // 10
    model.set_params(kernel="rbf")
    announced = []
    check = memory.check_matrix_fits
    monkeypatch.setattr(
        "rankwise.kernels.solver_input.check_matrix_fits",
        lambda *args, n_matrices: announced.append(n_matrices) or check(*args),
    )
    small = slice(0, 60)
    model.fit(X[small], y[small], groups[small])  # what is loaded and kept once
    tracemalloc.start()
    model.fit(X, y, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(announced) <= {KERNEL_MATRICES, SEARCH_MATRICES}
    assert peak <= 8 * m * m * max(announced)
