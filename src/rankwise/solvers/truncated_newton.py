"""Newton's method with conjugate gradients, for the squared hinge."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from rankwise.arrays import Array
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.line_search import weak_wolfe
from rankwise.solvers.margin_objective import BoundedPoint, MarginObjective, Point
from rankwise.solvers.quasi_newton import bundle_steps

MAX_PRODUCTS = 50
ROUGH = 1e-4  # directions that need not be more accurate may be found in the precision of R


def truncated_newton(
    objective: MarginObjective,
    start: Point,
    bundle: Bundle,
    precondition: Callable[[Array], Array],
) -> Iterator[BoundedPoint]:
    """Yield ever lower points; where no Newton step leads further down, bundle steps take over.

    The Hessian is ``Rᵀ H R + 2 α I`` with H from the Laplacian of the violated pairs; its
    system is solved only as exactly as the gradient is small.

    Parameters
    ----------
    objective : MarginObjective
        With a loss that has a curvature.
    start : Point
        First point.
    bundle : Bundle
        Gets a plane for every point; close to the minimum one plane is a tight bound.
    precondition : callable
        Product of about the inverse of the Hessian with a vector.
    """
    point = start
    while True:
        bundle.touch(point)
        bound, _ = bundle.solve(objective.alpha, point.value)
        yield BoundedPoint(point, bound)
        line = objective.line(point, _newton_direction(objective, point, precondition))
        trial = weak_wolfe(line)
        if trial is None:
            break
        point = line.point(trial)
    yield from bundle_steps(objective, point, bundle)


def _newton_direction(
    objective: MarginObjective, point: Point, precondition: Callable[[Array], Array]
) -> Array:
    n, gradient = len(point.w), point.gradient
    accuracy = min(0.1, float(np.sqrt(gradient @ precondition(gradient))))
    rough = accuracy > ROUGH

    def hessian(v: Array) -> Array:
        curved = point.loss.curvature(objective.columns.times(v, rough))
        return objective.columns.pull_back(curved, rough) + 2 * objective.alpha * v

    direction, _ = cg(
        LinearOperator((n, n), matvec=hessian, dtype=np.float64),
        -gradient,
        rtol=accuracy,
        maxiter=MAX_PRODUCTS,
        M=LinearOperator((n, n), matvec=precondition, dtype=np.float64),
    )
    return np.asarray(direction)
