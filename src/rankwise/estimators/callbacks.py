"""The way to scikit-learn's callbacks and to our own line of progress."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class FitTask:
    """Tells the callbacks of an estimator about its fit and its iterations; silent without any.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted.
    max_iter : int
        Largest number of iterations.
    data : dict
        "X", "y" and "metadata", for callbacks that ask for them.
    """

    def __init__(self, estimator: Any, max_iter: int, **data: Any) -> None:
        self._estimator, self._data = estimator, data
        self._context = None
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=max_iter)
            self._context.call_on_fit_task_begin(estimator=estimator, **data)

    def iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report one iteration; `attributes` gives a fitted estimator's. True asks to stop."""
        if self._context is None:
            return False
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        )

    def end(self) -> None:
        """Report that the fit is over."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, **self._data)


class ProgressLine:
    """One line of progress on standard error, rewritten in place; a line each if verbose > 1."""

    def __init__(self, what: str, verbose: int) -> None:
        self._what, self._verbose, self._n = what, int(verbose), 0

    def show(self, objective: float, gap: float) -> None:
        """Draw the state after one more iteration."""
        self._n += 1
        if self._verbose:
            text = f"{self._what} iteration {self._n}: objective {objective:.6g}, gap {gap:.1e}"
            sys.stderr.write(f"{text}\n" if self._verbose > 1 else f"\r{text}   ")
            sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self._verbose == 1 and self._n:
            sys.stderr.write("\n")
