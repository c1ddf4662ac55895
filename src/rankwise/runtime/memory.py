"""Available memory, and a check that matrices fit into it."""

from __future__ import annotations

import os


def available_bytes() -> int | None:
    """Free memory without swapping; None if the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:  # "MemAvailable:   12345678 kB"
                if line.startswith("MemAvailable:"):
                    n_kilobytes = int(line.split()[1])
                    return n_kilobytes * 1024
    except OSError:  # not Linux
        pass
    try:  # the whole memory
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
    n_available_bytes = available_bytes()
    n_needed_bytes = 8 * n_rows * n_columns * n_matrices  # of double precision
    if n_available_bytes is None or n_needed_bytes <= n_available_bytes:
        return
    needed_gib = f"{n_needed_bytes / 2**30:,.1f} GiB"
    available_gib = f"{n_available_bytes / 2**30:,.1f} GiB"
    if n_matrices != 1:
        needed_gib += f" ({n_matrices:g} matrices of that size at a time)"
    raise ValueError(
        f"{matrix_name} of {n_rows:,} × {n_columns:,} would take {needed_gib} but only "
        f"{available_gib} of memory are available; {advice}."
    )
