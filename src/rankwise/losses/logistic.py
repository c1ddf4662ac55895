"""The logistic loss over pairs: the probability of a preference, as Bradley and Terry have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.compared import ComparedPairs, PairBlock, compare_pairs
from rankwise.losses.interface import LossAt

KEPT_PAIRS = 2**23  # 64 MiB of weights


class _Sums(NamedTuple):
    """Sums over pairs: of the loss, of the offset of its plane, and of the sizes of their terms."""

    value: float
    offset: float
    size: float
    pull: float


@dataclass(frozen=True)
class LogisticLoss:
    """``loss(f) = 1/W Σ_k ω_k log(1 + exp(−(f_i − f_j)))`` over the pairs k = (i → j).

    The loss is minus the mean log likelihood if i is preferred to j with the probability
    ``σ(f_i − f_j) = 1/(1 + exp(−(f_i − f_j)))`` (Bradley and Terry, Rank analysis of incomplete
    block designs, 1952). A tie counts as half a preference in each direction. Magnitudes do not
    count.

    With g = f_i − f_j the derivative of a pair is −σ(−g), and its second derivative is
    ``h = σ(g) σ(−g)``: the Hessian is the Laplacian of the graph with the weights ω h, over W.
    There is no shortcut over sorted scores. Every pair is looked at, a block of them at a time.

    Attributes
    ----------
    preferences : ComparedPairs
        The pairs.
    """

    preferences: ComparedPairs

    @classmethod
    def of(cls, graph: PreferenceGraph) -> Self:
        """The loss of the pairs of a graph, those that state ties included."""
        return cls(compare_pairs(graph))

    def at(self, f: NDArray[Any]) -> LossAt:
        """One pass over the pairs; so is every product with the Hessian."""
        pairs, total = self.preferences, self.preferences.total_weight
        arranged = pairs.arrange(f)
        flow = np.zeros_like(arranged)
        sums = [_add_block(block, arranged, flow) for block in pairs.blocks]
        value, offset, size, pull = np.sum(sums, axis=0).tolist() if sums else (0.0,) * 4
        gradient = pairs.place(flow) / -total
        return LossAt(
            value / total,
            gradient,
            _Curvature(pairs, arranged).times,
            offset / total,
            size / total,
            pull / total,
        )

    def sample(self, step: int) -> tuple[Indices, LogisticLoss] | None:
        """About one of `step` items and the loss of the pairs among them; None if there are few."""
        found = self.preferences.sample(step)
        return None if found is None else (found[0], LogisticLoss(found[1]))


class _Curvature:
    """The Hessian at one vector of scores; the weights of the pairs are kept if they fit."""

    def __init__(self, pairs: ComparedPairs, scores: Array) -> None:
        self._pairs, self._scores = pairs, scores
        self._kept: list[Array] = []

    def times(self, v: Array) -> Array:
        """The product with a vector."""
        pairs, direction = self._pairs, self._pairs.arrange(v)
        flow = np.zeros_like(direction)
        for number, block in enumerate(pairs.blocks):
            h = self._weights(number, block)
            block.add_flows(h * block.differences(direction), flow)
        return np.asarray(pairs.place(flow) / pairs.total_weight)

    def _weights(self, number: int, block: PairBlock) -> Array:
        """``ω σ(g) σ(−g)`` of the pairs of a block."""
        if number < len(self._kept):
            return self._kept[number]
        away = np.exp(-np.abs(block.differences(self._scores)))
        h = np.asarray(block.weight * away / (1 + away) ** 2)
        if self._pairs.n_pairs <= KEPT_PAIRS:
            self._kept.append(h)
        return h


def _add_block(block: PairBlock, f: Array, flow: Array) -> _Sums:
    """Add minus the gradient of a block to `flow`.

    A pair of weight ω, of which the part b prefers the second item, costs ``ω ℓ(g) + b g``.
    """
    g = block.differences(f)
    away = np.exp(-np.abs(g))  # never overflows
    loss = np.log1p(away) - np.minimum(g, 0.0)
    wrong = np.where(g >= 0, away, 1.0) / (1 + away)  # σ(−g)
    pull = block.weight * wrong
    along = pull * g
    cost = float(block.weight @ loss)
    block.add_flows(pull - block.lost, flow)
    return _Sums(
        cost + float(block.lost @ g),
        cost + float(along.sum()),
        cost + float(np.abs(along).sum()),
        2 * float(pull.sum() + block.lost.sum()),
    )
