"""One BLAS thread for loops of small products, where more threads wait for each other.

NumPy and SciPy bring an OpenBLAS pool each. A loop that goes from one to the other finds the
threads of the first still spinning for work on the core that the second wants: 200 systems of 136
features take five to ten times as long with two threads as with one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]

_limited = threading.Lock()  # held by the thread that has set the limit


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit every BLAS of the process to one thread.

    The limit is one for the process. Who finds it set leaves it alone, so that only the thread that
    set it takes it back, to what it was before; calls may be nested. Costs some ten microseconds.

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
