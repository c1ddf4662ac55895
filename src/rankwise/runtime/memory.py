"""Available memory, and a check that matrices fit into it."""

from __future__ import annotations

import os


def available_bytes() -> int | None:
    """Free memory without swapping, or None if the system does not tell."""
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
    n_rows: int, n_columns: int, what: str, advice: str, *, n_matrices: float = 1.0
) -> None:
    """Raise a ValueError that names the size if float64 matrices exceed the available memory.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of a matrix.
    what, advice : str
        What it is, and what to do instead.
    n_matrices : float
        How many of that size are in memory at a time.
    """
    free = available_bytes()
    needed = 8 * n_rows * n_columns * n_matrices
    if free is not None and needed > free:
        times = "" if n_matrices == 1 else f" ({n_matrices:g} matrices of that size at a time)"
        raise ValueError(
            f"{what} of {n_rows:,} × {n_columns:,} would take {needed / 2**30:,.1f} GiB{times} but "
            f"only {free / 2**30:,.1f} GiB of memory are available; {advice}."
        )
