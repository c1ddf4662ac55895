"""Checks of the arguments of AutoRanker."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_time_limit(limit: Any) -> None:
    """Check that a time limit is None, or a number of seconds."""
    if limit is None:
        return
    is_number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
    if not is_number or not limit >= 0:
        raise ValueError(
            f"time_limit={limit!r}; expected a non-negative number of seconds, or None."
        )


def seed_from(random_state: Any) -> int:
    """An integer seed."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    generator = check_random_state(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))
