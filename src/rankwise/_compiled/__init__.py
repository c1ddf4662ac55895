"""Sweeps over sorted scores and passes over rows: compiled if a C compiler was there, or NumPy."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from rankwise._compiled import order_sweep_twin, row_pass_twin

try:
    from rankwise._compiled import order_sweep as _sweep  # type: ignore[attr-defined]
except ImportError:
    _sweep = None
try:
    from rankwise._compiled import row_pass as _rows  # type: ignore[attr-defined]
except ImportError:  # not worth a warning: slower by a third
    _rows = row_pass_twin

__all__ = [
    "IS_COMPILED",
    "add_rows",
    "count_inversions",
    "count_violated",
    "scale_rows",
    "sort_by_group",
    "sort_in_groups",
    "sum_violated",
    "weigh_inversions",
]

IS_COMPILED = _sweep is not None


@functools.cache
def _say_once() -> None:
    warnings.warn(
        "rankwise was installed without its compiled module (no C compiler was found): sweeps over "
        "pairs run in NumPy, several times slower. Install a C compiler and reinstall rankwise.",
        RuntimeWarning,
        stacklevel=3,
    )


def _best(name: str) -> Callable[..., Any]:
    if IS_COMPILED:
        return getattr(_sweep, name)  # type: ignore[no-any-return]
    slow: Callable[..., Any] = getattr(order_sweep_twin, name)

    @functools.wraps(slow)
    def noted(*arguments: Any) -> Any:
        _say_once()
        return slow(*arguments)

    return noted


count_inversions = _best("count_inversions")
count_violated = _best("count_violated")
sort_by_group = _best("sort_by_group")
sort_in_groups = _best("sort_in_groups")
sum_violated = _best("sum_violated")
weigh_inversions = _best("weigh_inversions")
add_rows = _rows.add_rows
scale_rows = _rows.scale_rows
