"""Available memory, and a check that matrices fit into it."""

from __future__ import annotations

import os


def available_bytes() -> int | None:
    """Free memory without swapping; None if the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_matrix_fits(
    n_rows: int, n_columns: int, matrix_name: str, advice: str, *, n_matrices: float = 1.0
) -> None:
    """Raise a ValueError if float64 matrices exceed the available memory.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of a matrix.
    matrix_name : str
        Name of the matrix in the message.
    advice : str
        What to do instead.
    n_matrices : float, default=1.0
        Number of matrices of this shape that are in memory at the same time.
    """
    free = available_bytes()
    needed = 8 * n_rows * n_columns * n_matrices
    if free is None or needed <= free:
        return
    number = ""
    if n_matrices != 1:
        number = f" ({n_matrices:g} matrices of that size at a time)"
    raise ValueError(
        f"{matrix_name} of {n_rows:,} × {n_columns:,} would take {needed / 2**30:,.1f} "
        f"GiB{number} but only {free / 2**30:,.1f} GiB of memory are available; {advice}."
    )
