"""The way to scikit-learn's callbacks."""

from __future__ import annotations

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
