"""Margin losses over strict preferences: the hinge and its square."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.graphs.strict import StrictPreferences

__all__ = ["HingeLoss", "LossAt", "MarginLoss", "SquaredHingeLoss"]

Array = NDArray[np.float64]


class LossAt(NamedTuple):
    """A loss at one vector of scores.

    Attributes
    ----------
    value : float
        The loss.
    gradient : ndarray of shape (n_items,)
        A subgradient with respect to the scores; it sums to zero in each group.
    curvature : callable
        Product of the (generalised) Hessian with a vector; zero for the hinge.
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


class MarginLoss(Protocol):
    """What the solvers need of a loss."""

    @property
    def preferences(self) -> StrictPreferences:
        """The pairs."""

    def at(self, f: NDArray[Any]) -> LossAt:
        """Value and derivatives at the scores f."""


@dataclass(frozen=True)
class HingeLoss:
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))`` over strict preferences k = (i → j).

    [TreeRSVM11] equation 4. With the violated pairs as a graph of weight V and divergence d it is
    ``(V − fᵀ d)/W``, and ``−d/W`` is a subgradient (equations 5 and 6): d_i counts the violated
    pairs that item i should win less those that it should lose.

    Attributes
    ----------
    preferences : StrictPreferences
        The pairs.
    """

    preferences: StrictPreferences

    def at(self, f: NDArray[Any]) -> LossAt:
        """One sort and one sweep."""
        violated, total = self.preferences.violated(f), self.preferences.total_weight
        value = max(violated.slack / total, 0.0)
        gradient = violated.divergence / -total
        return LossAt(value, gradient, np.zeros_like, violated.weight / total)


@dataclass(frozen=True)
class SquaredHingeLoss:
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))²`` over strict preferences k = (i → j).

    This is the squared loss on the violated pairs: with their Laplacian L, divergence d and weight
    V it is ``(V − 2 fᵀ d + fᵀ L f)/W``, with gradient ``2 (L f − d)/W`` and Hessian ``2 L/W``.

    Attributes
    ----------
    preferences : StrictPreferences
        The pairs.
    """

    preferences: StrictPreferences

    def at(self, f: NDArray[Any]) -> LossAt:
        """One sort and two sweeps; every product with the Hessian is one more."""
        violated, total = self.preferences.violated(f), self.preferences.total_weight
        squares = violated.squares()
        return LossAt(
            max(squares.value / total, 0.0),
            squares.flow * (-2 / total),
            lambda v: violated.laplacian(v) * (2 / total),
            squares.offset / total,
            squares.size / total,
            2 * squares.pull / total,
        )
