"""Adapters: rankwise, its rivals, the limits that no method can beat, and the floor."""

from benchmarks.libraries import (
    boosting,
    limits,
    linear_svc,
    programs,
    rankwise_rls,
    rankwise_svm,
    ridge,
    zeros,
)
from benchmarks.libraries.interface import Library, Model

__all__ = ["LIBRARIES", "Library", "Model"]

LIBRARIES: dict[str, Library] = {
    library.name: library
    for module in (rankwise_rls, rankwise_svm, ridge, linear_svc, boosting, programs, limits, zeros)
    for library in module.LIBRARIES
}
