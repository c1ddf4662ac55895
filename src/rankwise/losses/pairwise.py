"""Losses of the differences of scores: the hinge, its square, and the logistic loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.pair_blocks import PairBlock, pair_blocks

SMALLEST_SAMPLE = 1250
KEPT_PAIRS = 2**21  # so many pairs are kept in memory between two looks at them


class LossValue(NamedTuple):
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


class PairwiseLoss(ABC):
    """The mean over pairs of a convex function of the difference of their scores.

    Parameters
    ----------
    graph : PreferenceGraph
        The pairs.

    Attributes
    ----------
    graph : PreferenceGraph
        The pairs that count: without ties, unless the loss has a use for them.
    total_weight : float
        W, the sum of their weights.
    """

    def __init__(self, graph: PreferenceGraph) -> None:
        self.graph, self.total_weight = graph, graph.total_weight

    @abstractmethod
    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives at the scores f."""

    def of_items(self, items: Indices, graph: PreferenceGraph) -> Self:
        """The loss of some of the items, with their graph."""
        return type(self)(graph)

    def sample(self, step: int) -> tuple[Indices, Self] | None:
        """About one of `step` items and the loss of the pairs among them; None if there are few.

        Every so many groups if there are enough of them, else every so many items of each in the
        order of their scores. Explicit edges have no sample: few would be left.
        """
        graph = self.graph
        if not isinstance(graph, ScoreGraph) or graph.n_items < SMALLEST_SAMPLE * step:
            return None
        if graph.n_groups >= 100 * step:
            rows = np.flatnonzero(graph.groups % step == 0)
        else:
            rows = np.sort(np.lexsort((graph.y.ravel(), graph.groups))[::step])
        loss = self.of_items(rows, graph.subset(rows))
        return (rows, loss) if loss.graph.n_pairs else None


class StrictPairLoss(PairwiseLoss):
    """A margin loss over strict preferences; ties are left out.

    Attributes
    ----------
    preferences : OrderedPairs or EdgePairs
        The pairs, known by which of them a vector of scores violates.
    """

    def __init__(self, graph: PreferenceGraph) -> None:
        self.preferences = graph.strict()
        super().__init__(self.preferences.graph)
        self.total_weight = self.preferences.total_weight


class HingeLoss(StrictPairLoss):
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))`` over strict preferences k = (i → j).

    [TreeRSVM11] equation 4. With the violated pairs as a graph of weight V and divergence d it is
    ``(V − fᵀ d)/W``, and ``−d/W`` is a subgradient (equations 5 and 6): d_i counts the violated
    pairs that item i should win less those that it should lose.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ScoreGraph
    >>> from rankwise.losses import HingeLoss
    >>> loss = HingeLoss(ScoreGraph([2, 1, 0]))
    >>> loss.at(np.zeros(3)).value, loss.at(np.array([2.0, 1.0, 0.0])).value
    (1.0, 0.0)
    """

    def at(self, f: NDArray[Any]) -> LossValue:
        """One sort and one sweep."""
        violated, total = self.preferences.violated(f), self.total_weight
        value = max(violated.slack / total, 0.0)
        gradient = violated.divergence / -total
        return LossValue(value, gradient, np.zeros_like, violated.weight / total)


class SquaredHingeLoss(StrictPairLoss):
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))²`` over strict preferences k = (i → j).

    This is the squared loss on the violated pairs: with their Laplacian L, divergence d and weight
    V it is ``(V − 2 fᵀ d + fᵀ L f)/W``, with gradient ``2 (L f − d)/W`` and Hessian ``2 L/W``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ScoreGraph
    >>> from rankwise.losses import SquaredHingeLoss
    >>> loss = SquaredHingeLoss(ScoreGraph([2, 1, 0]))
    >>> loss.at(np.zeros(3)).value, loss.at(np.array([2.0, 1.0, 0.0])).value
    (1.0, 0.0)
    """

    def at(self, f: NDArray[Any]) -> LossValue:
        """One sort and two sweeps; every product with the Hessian is one more."""
        violated, total = self.preferences.violated(f), self.total_weight
        value, flow, offset, size, pull = violated.squares()
        return LossValue(
            max(value / total, 0.0),
            flow * (-2 / total),
            lambda v: violated.laplacian(v) * (2 / total),
            offset / total,
            size / total,
            2 * pull / total,
        )


class LogisticLoss(PairwiseLoss):
    """``loss(f) = 1/W Σ_k ω_k log(1 + exp(−(f_i − f_j)))`` over the pairs k = (i → j).

    The loss is minus the mean log likelihood if i is preferred to j with the probability
    ``σ(f_i − f_j) = 1/(1 + exp(−(f_i − f_j)))`` (Bradley and Terry, Rank analysis of incomplete
    block designs, 1952). A tie counts as half a preference in each direction. Magnitudes do not
    count.

    With g = f_i − f_j the derivative of a pair is −σ(−g), and its second derivative is
    ``h = σ(g) σ(−g)``: the Hessian is the Laplacian of the graph with the weights ω h, over W.
    There is no shortcut over sorted scores. Every pair is looked at, a block of them at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ScoreGraph
    >>> from rankwise.losses import LogisticLoss
    >>> loss = LogisticLoss(ScoreGraph([2, 1, 0]))
    >>> [round(loss.at(np.array(f)).value, 3) for f in ([0, 0, 0], [2, 1, 0])]
    [0.693, 0.251]
    """

    def __init__(self, graph: PreferenceGraph) -> None:
        super().__init__(graph)
        self._kept = list(pair_blocks(graph)) if graph.n_pairs <= KEPT_PAIRS else None
        if graph.item_weights is not None:
            self.total_weight = float(sum(block.weight.sum() for block in self._blocks()))

    def at(self, f: NDArray[Any]) -> LossValue:
        """One pass over the pairs; so is every product with the Hessian."""
        f = np.asarray(f, dtype=np.float64)
        flow, sums = np.zeros_like(f), np.zeros(4)
        for block in self._blocks():
            # a pair of weight ω, of which the share b prefers the second item, costs ω ℓ(g) + b g
            g = block.differences(f)
            away = np.exp(-np.abs(g))  # never overflows
            loss = np.log1p(away) - np.minimum(g, 0.0)
            wrong = np.where(g >= 0, away, 1.0) / (1 + away)  # σ(−g)
            flows = block.weight * wrong
            along = flows * g
            cost = float(block.weight @ loss)
            block.add_flows(flows - block.lost, flow)
            sums += (
                cost + float(block.lost @ g),
                cost + float(along.sum()),
                cost + float(np.abs(along).sum()),
                2 * float(flows.sum() + block.lost.sum()),
            )
        value, offset, size, pull = (sums / self.total_weight).tolist()
        bends: list[Array] = []

        def curvature(v: Array) -> Array:
            out = np.zeros_like(v)
            for number, block in enumerate(self._blocks()):
                if number < len(bends):
                    bend = bends[number]
                else:
                    away = np.exp(-np.abs(block.differences(f)))
                    bend = block.weight * away / (1 + away) ** 2  # ω σ(g) σ(−g)
                    if self._kept is not None:
                        bends.append(bend)
                block.add_flows(bend * block.differences(v), out)
            return np.asarray(out / self.total_weight)

        return LossValue(value, flow / -self.total_weight, curvature, offset, size, pull)

    def is_separated_by(self, f: Array) -> bool:
        """Whether every pair has a preferred item, and it has the larger score."""
        return all(
            not block.lost.any() and bool((block.differences(f) > 0).all())
            for block in self._blocks()
        )

    def _blocks(self) -> Iterable[PairBlock]:
        return pair_blocks(self.graph) if self._kept is None else self._kept
