"""Compiled loops, with fallbacks in NumPy or Python if no C compiler built them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from rankwise._compiled import group_sums_fallback as group_sums_fallback
from rankwise._compiled import letor_rows_fallback, pair_counts_fallback

try:
    from rankwise._compiled import pair_counts as _sweep  # type: ignore[attr-defined]
except ImportError:
    _sweep = None
try:
    from rankwise._compiled import letor_rows as _letor  # type: ignore[attr-defined]
except ImportError:
    _letor = None
try:
    from rankwise._compiled import group_sums as _rows  # type: ignore[attr-defined]
except ImportError:  # not worth a warning: slower by a third
    _rows = group_sums_fallback

__all__ = [
    "IS_COMPILED",
    "add_rows",
    "count_inversions",
    "count_violated",
    "read_rows",
    "scale_rows",
    "sort_by_group",
    "sort_in_groups",
    "sum_violated",
    "weigh_inversions",
]

IS_COMPILED = _sweep is not None


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "rankwise was installed without its compiled module (no C compiler was found): sweeps over "
        "pairs run in NumPy and LETOR files are read by Python, several times slower. Install a C "
        "compiler and reinstall rankwise.",
        RuntimeWarning,
        stacklevel=3,
    )


def _best(
    name: str, compiled: Any = _sweep, fallback: Any = pair_counts_fallback
) -> Callable[..., Any]:
    if compiled is not None:
        return getattr(compiled, name)  # type: ignore[no-any-return]
    slow: Callable[..., Any] = getattr(fallback, name)

    @functools.wraps(slow)
    def noted(*arguments: Any) -> Any:
        _warn_once()
        return slow(*arguments)

    return noted


count_inversions = _best("count_inversions")
count_violated = _best("count_violated")
sort_by_group = _best("sort_by_group")
sort_in_groups = _best("sort_in_groups")
sum_violated = _best("sum_violated")
weigh_inversions = _best("weigh_inversions")
read_rows = _best("read_rows", _letor, letor_rows_fallback)
add_rows = _rows.add_rows
scale_rows = _rows.scale_rows
