"""The floor: a model that learns nothing. What is not better than this has not worked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem


def _zeros(problem: Problem) -> Callable[[], Model]:
    columns = problem.y.shape[1:] if problem.has_scores else ()

    def predict(X: Any) -> np.ndarray:
        return np.zeros((X.shape[0], *columns))

    return lambda: Model(predict, lambda: 0.0)


LIBRARIES = [Library("zeros", lambda problem: True, _zeros, "numpy")]
