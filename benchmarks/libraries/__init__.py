"""Adapters: rankwise, its rivals, the limits that no method can beat, and the floor."""

from benchmarks.libraries import boosting, limits, rankwise_rls, ridge, zeros
from benchmarks.libraries.interface import Library, Model

__all__ = ["LIBRARIES", "Library", "Model"]

LIBRARIES: dict[str, Library] = {
    library.name: library
    for module in (rankwise_rls, ridge, boosting, limits, zeros)
    for library in module.LIBRARIES
}
