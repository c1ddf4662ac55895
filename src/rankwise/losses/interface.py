"""What every loss tells at one vector of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from rankwise.arrays import Array


class LossAt(NamedTuple):
    """A loss at one vector of scores.

    Attributes
    ----------
    value : float
        The loss.
    gradient : ndarray, of the shape of the scores
        The gradient with respect to the scores, all of it; a subgradient at a kink.
    curvature : callable
        Product of the (generalized) Hessian with a vector; zero for the hinge.
    offset : float, optional
        ``value − gradientᵀ f``, of the plane that touches the loss here. A loss that knows it
        without this difference says it, since far from the minimum the difference loses digits.
    size, pull : float, optional
        Sizes of the terms that were added up for the offset and for the gradient, from which
        rounding is judged; ``|offset|`` and ``Σ |gradient|`` if not given.
    """

    value: float
    gradient: Array
    curvature: Callable[[Array], Array]
    offset: float | None = None
    size: float | None = None
    pull: float | None = None


class Loss(Protocol):
    """A function of the scores that a model gives to the items of a graph."""

    def at(self, f: NDArray[Any]) -> LossAt:
        """Value and derivatives at the scores f."""
