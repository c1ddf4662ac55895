"""Margin losses over strict preferences: the hinge and its square."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.strict import StrictPreferences
from rankwise.losses.interface import Loss, LossAt


class Pairs(Protocol):
    """What the solvers ask about the pairs of a loss."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""

    @property
    def total_weight(self) -> float:
        """W, the sum of the weights of the pairs."""

    def second_moment(self, R: Any) -> Array:
        """Mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs, or over a part of them if many."""


class MarginLoss(Loss, Protocol):
    """What the solvers of losses of score differences need."""

    @property
    def preferences(self) -> Pairs:
        """The pairs."""

    def sample(self, step: int) -> tuple[NDArray[np.intp], MarginLoss] | None:
        """About one of `step` items and the loss of the pairs among them; None if there are few."""


@dataclass(frozen=True)
class PreferenceLoss(ABC):
    """A margin loss that is given by its pairs; a subclass says what the loss is.

    Attributes
    ----------
    preferences : StrictPreferences
        The pairs.
    """

    preferences: StrictPreferences

    @classmethod
    def of(cls, graph: PreferenceGraph) -> Self:
        """The loss of the strict preferences of a graph; ties are left out."""
        return cls(graph.strict())

    @abstractmethod
    def at(self, f: NDArray[Any]) -> LossAt:
        """Value and derivatives at the scores f."""

    def sample(self, step: int) -> tuple[NDArray[np.intp], MarginLoss] | None:
        """About one of `step` items and the loss of the pairs among them; None if there are few."""
        found = self.preferences.sample(step)
        return None if found is None else (found[0], replace(self, preferences=found[1]))


class HingeLoss(PreferenceLoss):
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))`` over strict preferences k = (i → j).

    [TreeRSVM11] equation 4. With the violated pairs as a graph of weight V and divergence d it is
    ``(V − fᵀ d)/W``, and ``−d/W`` is a subgradient (equations 5 and 6): d_i counts the violated
    pairs that item i should win less those that it should lose.
    """

    def at(self, f: NDArray[Any]) -> LossAt:
        """One sort and one sweep."""
        violated, total = self.preferences.violated(f), self.preferences.total_weight
        value = max(violated.slack / total, 0.0)
        gradient = violated.divergence / -total
        return LossAt(value, gradient, np.zeros_like, violated.weight / total)


class SquaredHingeLoss(PreferenceLoss):
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))²`` over strict preferences k = (i → j).

    This is the squared loss on the violated pairs: with their Laplacian L, divergence d and weight
    V it is ``(V − 2 fᵀ d + fᵀ L f)/W``, with gradient ``2 (L f − d)/W`` and Hessian ``2 L/W``.
    """

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
