"""One BLAS thread for loops of small products, where more threads wait for each other.

NumPy and SciPy each have a pool of OpenBLAS threads. In a loop that uses both, the threads of one
pool still wait for work on the cores that the other pool needs. 200 systems of 136 features take
five to ten times as long with two threads as with one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_limited = threading.Lock()  # held by the thread that has set the limit


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit every BLAS of the process to one thread.

    The limit holds for the whole process. Only the thread that has set it removes it and restores
    the old number of threads; other calls, nested ones too, do nothing. It costs about ten
    microseconds.

    Examples
    --------
    >>> from rankwise.threads import one_blas_thread
    >>> with one_blas_thread():
    ...     pass  # many small products and systems
    """
    if not _limited.acquire(blocking=False):
        yield
        return
    try:
        with _pools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.release()


@cache
def _pools() -> Any:
    """The pools of all libraries that are loaded now; to find them takes milliseconds."""
    import scipy.linalg  # noqa: F401  # its pool comes with it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
