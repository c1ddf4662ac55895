"""The paper's solver: plain bundle optimization of the regularized risk (BMRM)."""

from __future__ import annotations

from collections.abc import Iterator

from rankwise.solvers.bundle import Bundle
from rankwise.solvers.margin_objective import BoundedPoint, MarginObjective, Point


def cutting_plane(
    objective: MarginObjective, start: Point, bundle: Bundle
) -> Iterator[BoundedPoint]:
    """Yield the lowest points of ever more planes: [TreeRSVM11] algorithm 1.

    Converges for every α > 0, but slowly for small ones; kept as the reference.
    """
    point = start
    while True:
        bundle.touch(point)
        bound, lowest = bundle.solve(objective.alpha)
        yield BoundedPoint(point, bound)
        point = objective.at(lowest)
