"""What an adapter offers: a library is a named function from a problem to a model."""

from __future__ import annotations

import os
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
        Gives ‖f‖² summed over the outputs, where the objective of the problem is meant for the
        model.
    peak_mib : float or None
        Peak memory where the work was done in a process of its own.
    """

    predict: Callable[[Any], Any] | None = None
    squared_norm: Callable[[], float] | None = None
    peak_mib: float | None = None


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
        Distribution whose version is reported, and which must be installed; for a program its
        name.
    option : str
        For a program: the option of `benchmarks.run` that tells its path. The path is in the
        environment (`variable`), so that the process of each row knows it.
    """

    name: str
    solves: Callable[[Problem], bool]
    prepare: Callable[[Problem], Callable[[], Model]]
    package: str
    option: str = ""

    @property
    def variable(self) -> str:
        return "RANKWISE_BENCH_" + self.option.upper().replace("-", "_")

    @property
    def is_installed(self) -> bool:
        if self.option:
            return bool(os.environ.get(self.variable))
        return find_spec(self.package.replace("scikit-learn", "sklearn")) is not None

    @property
    def version(self) -> str:
        return "" if self.option else metadata.version(self.package)
