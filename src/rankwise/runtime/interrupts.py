"""Whether an interrupted fit keeps its best model so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_keeps_interrupted_fits: ContextVar[bool] = ContextVar("keeps_interrupted_fits", default=True)


def keeps_interrupted_fits() -> bool:
    """Whether a fit that is interrupted by Ctrl-C may return the best model so far.

    True if the user called the fit. A fit inside a search, a jackknife or a command raises
    KeyboardInterrupt (`no_interrupted_fits`).
    """
    return _keeps_interrupted_fits.get()


@contextmanager
def no_interrupted_fits() -> Iterator[None]:
    """Context manager or decorator that makes an interrupted fit raise KeyboardInterrupt."""
    token = _keeps_interrupted_fits.set(False)
    try:
        yield
    finally:
        _keeps_interrupted_fits.reset(token)
