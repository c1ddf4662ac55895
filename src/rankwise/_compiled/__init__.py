"""Compiled loops, with fallbacks in NumPy or Python if no C compiler built them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankwise._compiled import group_sums_fallback as group_sums_fallback
from rankwise._compiled import letor_rows_fallback, pair_counts_fallback

try:
    from rankwise._compiled import pair_counts  # type: ignore[attr-defined]
except ImportError:
    pair_counts = None
try:
    from rankwise._compiled import letor_rows  # type: ignore[attr-defined]
except ImportError:
    letor_rows = None
try:
    from rankwise._compiled import group_sums  # type: ignore[attr-defined]
except ImportError:  # no warning, because the fallback is slower by a third only
    group_sums = group_sums_fallback

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

IS_COMPILED = pair_counts is not None


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "rankwise was installed without its compiled modules (no C compiler was found): pairs are "
        "counted in NumPy and LETOR files are read in Python, several times slower. Install a C "
        "compiler and reinstall rankwise.",
        RuntimeWarning,
        stacklevel=3,
    )


def _select(name: str, compiled: ModuleType | None, fallback: ModuleType) -> Callable[..., Any]:
    """The compiled function of this name; without it, the fallback, which warns once."""
    if compiled is not None:
        function: Callable[..., Any] = getattr(compiled, name)
        return function
    slow_function: Callable[..., Any] = getattr(fallback, name)

    @functools.wraps(slow_function)
    def warn_and_call(*arguments: object) -> object:
        _warn_once()
        return slow_function(*arguments)

    return warn_and_call


count_inversions = _select("count_inversions", pair_counts, pair_counts_fallback)
count_violated = _select("count_violated", pair_counts, pair_counts_fallback)
sort_by_group = _select("sort_by_group", pair_counts, pair_counts_fallback)
sort_in_groups = _select("sort_in_groups", pair_counts, pair_counts_fallback)
sum_violated = _select("sum_violated", pair_counts, pair_counts_fallback)
weigh_inversions = _select("weigh_inversions", pair_counts, pair_counts_fallback)
read_rows = _select("read_rows", letor_rows, letor_rows_fallback)
add_rows = group_sums.add_rows
scale_rows = group_sums.scale_rows
