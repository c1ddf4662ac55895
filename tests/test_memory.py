"""What would not fit is refused before it is allocated."""

from __future__ import annotations

import pytest

from rankwise import memory


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
