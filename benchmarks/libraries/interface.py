"""What an adapter offers: a library is a named function from a problem to a model."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from typing import Any, NamedTuple

from benchmarks.problems import Problem


class Model(NamedTuple):
    """What came out of the timed part.

    Attributes
    ----------
    predict : callable or None
        Scores of items; None for a limit, which computes something that every method needs.
    squared_norm : callable or None
        Gives ‖f‖² summed over the outputs, where the objective of RankRLS is meant for the model.
    """

    predict: Callable[[Any], Any] | None = None
    squared_norm: Callable[[], float] | None = None


class Library(NamedTuple):
    """One row of the table for each problem that the library solves.

    Attributes
    ----------
    name : str
        Name in the table.
    solves : callable
        Whether the library can be asked for this problem.
    prepare : callable
        Untimed; takes the problem to the timed function, which takes nothing and gives a `Model`.
    package : str
        Distribution whose version is reported, and which must be installed.
    """

    name: str
    solves: Callable[[Problem], bool]
    prepare: Callable[[Problem], Callable[[], Model]]
    package: str

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package.replace("scikit-learn", "sklearn")) is not None

    @property
    def version(self) -> str:
        return metadata.version(self.package)
