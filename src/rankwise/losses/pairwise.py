"""Losses of score differences: the hinge, its square, and the logistic loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.pair_blocks import PairBlock, pair_blocks
from rankwise.graphs.violated_pairs import strict_pairs

MIN_SAMPLE_ITEMS = 1250  # a sample has at least this many items
MIN_SAMPLE_GROUPS = 100  # with at least this many groups in the sample, whole groups are drawn
MAX_STORED_PAIRS = 2**21  # pairs that the logistic loss stores between two evaluations


class Plane(NamedTuple):
    """The tangent plane ``offset + gradientᵀ f`` of a loss, and the terms of its sums.

    The plane lies below the loss. The sizes of the terms bound the rounding errors of the plane:
    see `rankwise.solvers.bundle`.

    Attributes
    ----------
    offset : float
        ``value − gradientᵀ f``. A loss that can compute it without this difference does so, because
        the difference loses digits far from the minimum.
    offset_terms : float
        Sum of the absolute values of the terms of the offset.
    gradient_terms : float
        Sum of the absolute values of the terms of the gradient, over all its entries.
    """

    offset: float
    offset_terms: float
    gradient_terms: float

    @classmethod
    def from_difference(cls, value: float, gradient: Array, f: Array) -> Plane:
        """Plane of a loss from its value and its gradient at f.

        Parameters
        ----------
        value : float
            The loss at f.
        gradient : ndarray
            Its gradient at f.
        f : ndarray
            Scores of the items.

        Returns
        -------
        Plane
            With the offset ``value − gradientᵀ f``.
        """
        # the tangent plane at f; the sizes of its terms are estimates, they are not known here
        offset = value - float(np.vdot(gradient, f))
        offset_terms = abs(offset) + 2 * abs(value)
        gradient_terms = max(float(np.abs(gradient).sum()), 2 * abs(offset))
        return cls(offset, offset_terms, gradient_terms)


class LossValue(NamedTuple):
    """A loss and its derivatives at one vector of scores.

    Attributes
    ----------
    value : float
        The loss.
    gradient : ndarray, of the shape of the scores
        Gradient with respect to the scores; a subgradient at a kink.
    hessian_product : callable
        Product of the (generalized) Hessian with a vector; zero for the hinge.
    plane : Plane
        The tangent plane at these scores.
    """

    value: float
    gradient: Array
    hessian_product: Callable[[Array], Array]
    plane: Plane


class PairwiseLoss(ABC):
    """Weighted mean over pairs of a convex function of the difference of their scores.

    Parameters
    ----------
    graph : PreferenceGraph
        The pairs.

    Attributes
    ----------
    graph : PreferenceGraph
        The pairs that the loss sums over; without ties unless the loss uses them.
    total_weight : float
        W, the sum of their weights.
    is_smooth : bool
        Whether the loss has second derivatives, which Newton steps need.
    """

    is_smooth: bool = True

    def __init__(self, graph: PreferenceGraph) -> None:
        self.graph = graph
        self.total_weight = graph.total_weight

    @abstractmethod
    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives at the scores f.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        LossValue
            Value and derivatives.
        """

    def of_items(self, items: Indices, graph: PreferenceGraph) -> Self:
        """The loss of these items, with their graph.

        Parameters
        ----------
        items : ndarray of int
            Row numbers of the items.
        graph : PreferenceGraph
            Graph of these items.

        Returns
        -------
        PairwiseLoss
            A loss of the same class.
        """
        return type(self)(graph)

    def is_separated_by(self, f: Array) -> bool:
        """Whether every pair has a preferred item, and that item has the larger score.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        bool
            True if all pairs are in the right order.
        """
        for block in pair_blocks(self.graph):
            has_contradiction = block.weight_of_second.any()
            is_in_order = block.differences(f) > 0
            if has_contradiction or not is_in_order.all():
                return False
        return True

    def sample(self, step: int) -> tuple[Indices, Self] | None:
        """About one of `step` items, and the loss of the pairs among them.

        The sample contains every `step`-th group if there are many groups, else every `step`-th
        item of each group in the order of the graph (`PreferenceGraph.sampling_order`).

        Parameters
        ----------
        step : int
            Ratio of the number of items to that of the sample.

        Returns
        -------
        tuple of (ndarray of int, PairwiseLoss) or None
            Rows and loss of the sample. None for explicit edges, of which few would remain, for a
            small sample, and for a sample without pairs.
        """
        # every `step`-th group or item, or None if these are too few or have no pairs
        graph = self.graph
        if graph.n_items < MIN_SAMPLE_ITEMS * step:
            return None
        item_order = graph.sampling_order()
        if item_order is None:  # explicit edges
            return None
        if graph.n_groups >= MIN_SAMPLE_GROUPS * step:
            is_sampled = graph.groups % step == 0
            rows = np.flatnonzero(is_sampled)
        else:
            rows = np.sort(item_order[::step])
        sample_loss = self.of_items(rows, graph.subset(rows))
        if not sample_loss.graph.n_pairs:
            return None
        return rows, sample_loss


class StrictPairLoss(PairwiseLoss):
    """A margin loss over strict preferences; ties are dropped.

    Parameters
    ----------
    graph : PreferenceGraph
        The preferences.

    Attributes
    ----------
    preferences : OrderedPairs or EdgePairs
        The pairs. Their method `violated` selects those with a difference of scores below 1.
    """

    def __init__(self, graph: PreferenceGraph) -> None:
        self.preferences = strict_pairs(graph)
        super().__init__(self.preferences.graph)
        self.total_weight = self.preferences.total_weight


class PairFunction(ABC):
    """A convex function of ``g = f_i − f_j``, for a custom loss: ``RankSVM(loss=MyFunction())``.

    The loss is the weighted mean of the function over the strict preferences i → j. Every pair is
    visited, a block of pairs at a time. A loss with a faster sum is a subclass of `StrictPairLoss`,
    which is passed as a class: ``RankSVM(loss=MyLoss)``.

    Attributes
    ----------
    is_smooth : bool, default=True
        Whether the function has second derivatives; if not, the curvature may be 0.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVM
    >>> from rankwise.losses import PairFunction
    >>> class Logistic(PairFunction):
    ...     def at(self, g):
    ...         p = 1 / (1 + np.exp(g))
    ...         return np.logaddexp(0, -g), -p, p * (1 - p)
    >>> model = RankSVM(0.01, loss=Logistic()).fit([[0.0], [1.0], [3.0]], [0, 1, 2])
    >>> model.coef_.round(2), model.gap_ < 1e-3
    (array([2.18]), True)
    """

    is_smooth: bool = True

    @abstractmethod
    def at(self, g: Array) -> tuple[Array, Array, Array]:
        """Value, first and second derivative at each difference of scores.

        Parameters
        ----------
        g : ndarray of shape (n_pairs,)
            Score of the preferred item minus score of the other item.

        Returns
        -------
        tuple of ndarray
            Values, first and second derivatives.
        """

    def __call__(self, graph: PreferenceGraph) -> PairFunctionLoss:
        """Return the mean of the function over the strict preferences of a graph."""
        return PairFunctionLoss(graph, self)


class PairFunctionLoss(StrictPairLoss):
    """``loss(f) = 1/W Σ_k ω_k φ(f_i − f_j)`` over strict preferences, for a `PairFunction` φ.

    Parameters
    ----------
    graph : PreferenceGraph
        The pairs.
    function : PairFunction
        φ.
    """

    def __init__(self, graph: PreferenceGraph, function: PairFunction) -> None:
        super().__init__(graph)
        self.function = function
        self.is_smooth = function.is_smooth

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives, by one pass over the pairs; a Hessian product is one more."""
        f = np.asarray(f, dtype=np.float64)
        gradient = np.zeros_like(f)
        value = 0.0
        offset_terms = 0.0
        gradient_terms = 0.0
        curvatures_of_blocks = []
        for block in pair_blocks(self.graph):
            differences = block.differences(f)
            values, slopes, curvatures = self._evaluate_pairs(block, differences)
            value += float(values.sum())
            # a pair adds its slope to the gradient of the first item, and subtracts it of the other
            block.add_net_inflow(slopes, gradient)
            offset_terms += float(np.abs(values).sum() + np.abs(slopes * differences).sum())
            gradient_terms += 2 * float(np.abs(slopes).sum())
            curvatures_of_blocks.append(curvatures)  # for the Hessian

        def hessian_product(v: Array) -> Array:
            product = np.zeros_like(f)
            blocks = pair_blocks(self.graph)
            for block, curvatures in zip(blocks, curvatures_of_blocks, strict=True):
                block.add_net_inflow(curvatures * block.differences(v), product)
            return np.asarray(product / self.total_weight)

        # means over the pairs; the tangent plane at f is gradientᵀ · + offset
        value /= self.total_weight
        gradient /= self.total_weight
        offset = value - float(gradient @ f)
        plane = Plane(offset, offset_terms / self.total_weight, gradient_terms / self.total_weight)
        return LossValue(value, gradient, hessian_product, plane)

    def of_items(self, items: Indices, graph: PreferenceGraph) -> PairFunctionLoss:
        """The loss of these items, with their graph."""
        return PairFunctionLoss(graph, self.function)

    def _evaluate_pairs(self, block: PairBlock, differences: Array) -> tuple[Array, Array, Array]:
        """Weighted value, slope and curvature of each pair of a block.

        Explicit comparisons may contradict each other: a part of the weight then prefers the second
        item.
        """
        # a pair costs a ℓ(d) + b ℓ(−d), with the weights a and b of the preferences for its first
        # and its second item, and the difference d of their scores
        weight_of_second = block.weight_of_second
        weight_of_first = block.weight - block.weight_of_second
        value, slope, curvature = self.function.at(differences)
        values = weight_of_first * value
        slopes = weight_of_first * slope
        curvatures = weight_of_first * curvature
        if weight_of_second.any():
            value, slope, curvature = self.function.at(-differences)
            values += weight_of_second * value
            slopes -= weight_of_second * slope
            curvatures += weight_of_second * curvature
        return values, slopes, curvatures


LossFactory = PairFunction | type[PairwiseLoss]
"""Makes the loss of a graph; a function of differences, or the class of a loss."""


class HingeLoss(StrictPairLoss):
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))`` over strict preferences k = (i → j).

    [TreeRSVM11] equation 4. With the violated pairs as a graph of weight V and divergence d it is
    ``(V − fᵀ d)/W``, and ``−d/W`` is a subgradient (equations 5 and 6): d_i is the number of
    violated pairs in which item i is preferred, less the number in which it is not.

    Parameters
    ----------
    graph : PreferenceGraph
        The preferences.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ScoreGraph
    >>> from rankwise.losses import HingeLoss
    >>> loss = HingeLoss(ScoreGraph([2, 1, 0]))
    >>> loss.at(np.zeros(3)).value, loss.at(np.array([2.0, 1.0, 0.0])).value
    (1.0, 0.0)
    """

    is_smooth = False

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and subgradient, by one sort and one sweep.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        LossValue
            Value and subgradient.
        """
        violated = self.preferences.violated(f)
        value = max(violated.slack / self.total_weight, 0.0)
        gradient = violated.divergence / -self.total_weight
        # a violated pair adds its weight to the offset, and to two entries of the gradient, in
        # which weights of opposite signs may cancel
        offset = violated.weight / self.total_weight
        gradient_terms = max(float(np.abs(gradient).sum()), 2 * offset)
        plane = Plane(offset, offset_terms=offset, gradient_terms=gradient_terms)
        return LossValue(value, gradient, hessian_product=np.zeros_like, plane=plane)


class SquaredHingeLoss(StrictPairLoss):
    """``loss(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j))²`` over strict preferences k = (i → j).

    This is the squared loss on the violated pairs: with their Laplacian L, divergence d and weight
    V it is ``(V − 2 fᵀ d + fᵀ L f)/W``, with gradient ``2 (L f − d)/W`` and Hessian ``2 L/W``.

    Parameters
    ----------
    graph : PreferenceGraph
        The preferences.

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
        """Value and derivatives, by one sort and two sweeps; a Hessian product is one more.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        LossValue
            Value, gradient and Hessian products.
        """
        total_weight = self.total_weight
        violated = self.preferences.violated(f)
        sums = violated.squared_hinge_sums()
        value = max(sums.loss / total_weight, 0.0)
        gradient = sums.negative_half_gradient * (-2 / total_weight)

        def hessian_product(v: Array) -> Array:
            return violated.laplacian(v) * (2 / total_weight)

        plane = Plane(
            offset=sums.offset / total_weight,
            offset_terms=sums.offset_terms / total_weight,
            gradient_terms=2 * sums.half_gradient_terms / total_weight,
        )
        return LossValue(value, gradient, hessian_product, plane)


class LogisticLoss(PairwiseLoss):
    """``loss(f) = 1/W Σ_k ω_k log(1 + exp(−(f_i − f_j)))`` over the pairs k = (i → j).

    The loss is minus the mean log likelihood if i is preferred to j with probability
    ``σ(f_i − f_j) = 1/(1 + exp(−(f_i − f_j)))`` (Bradley and Terry, Rank analysis of incomplete
    block designs, 1952). A tie is half a preference in each direction. Magnitudes are not used.

    With g = f_i − f_j the derivative of a pair is −σ(−g), and its second derivative is
    ``h = σ(g) σ(−g)``: the Hessian is the Laplacian of the graph with the weights ω h, over W.
    There is no shortcut by sorting: every pair is evaluated, one block of pairs at a time.

    Parameters
    ----------
    graph : PreferenceGraph
        The preferences.

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
        self._stored_blocks: list[PairBlock] | None = None
        if graph.n_pairs <= MAX_STORED_PAIRS:
            self._stored_blocks = list(pair_blocks(graph))
        if graph.item_weights is not None:
            self.total_weight = float(sum(block.weight.sum() for block in self._blocks()))

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives, by one pass over the pairs; a Hessian product is one more.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        LossValue
            Value, gradient and Hessian products.
        """
        f = np.asarray(f, dtype=np.float64)
        negative_gradient = np.zeros_like(f)  # every block adds its pairs
        sums = np.zeros(4)  # of value, offset, offset terms and gradient terms
        for block in self._blocks():
            sums += _add_logistic_block(block, f, negative_gradient)
        value, offset, offset_terms, gradient_terms = (sums / self.total_weight).tolist()
        gradient = negative_gradient / -self.total_weight
        plane = Plane(offset, offset_terms, gradient_terms)
        return LossValue(value, gradient, self._hessian_product(f), plane)

    def _hessian_product(self, f: Array) -> Callable[[Array], Array]:
        """Product of the Hessian at f with a vector; the curvatures of stored pairs are kept."""
        stored_curvatures: list[Array] = []  # of each stored block, since the first product

        def product(v: Array) -> Array:
            # blocks that are stored keep their curvatures for the next products
            result = np.zeros_like(v)
            for number, block in enumerate(self._blocks()):
                if number < len(stored_curvatures):
                    curvatures = stored_curvatures[number]
                else:
                    curvatures = _logistic_curvatures(block, f)
                    if self._stored_blocks is not None:
                        stored_curvatures.append(curvatures)
                block.add_net_inflow(curvatures * block.differences(v), result)
            return np.asarray(result / self.total_weight)

        return product

    def _blocks(self) -> Iterable[PairBlock]:
        if self._stored_blocks is None:
            return pair_blocks(self.graph)
        return self._stored_blocks


def _add_logistic_block(block: PairBlock, f: Array, negative_gradient: Array) -> Array:
    """Add minus the gradient of the pairs of a block, times W, to `negative_gradient`.

    A pair of weight ω, of which the part b prefers the second item, has the loss ``ω ℓ(g) + b g``
    with ℓ(g) = log(1 + e^−g), and the derivative ``b − ω σ(−g)`` in g.

    Returns
    -------
    ndarray of shape (4,)
        Value, offset, offset terms and gradient terms, times W.
    """
    # a pair costs a ℓ(g) + b ℓ(−g) = (a + b) ℓ(g) + b g with the difference g of its scores and the
    # weight b of the opposite preference; its part of the gradient is added in place
    g = block.differences(f)
    exp_of_minus_abs = np.exp(-np.abs(g))  # never overflows
    log_loss = np.log1p(exp_of_minus_abs) - np.minimum(g, 0.0)  # ℓ(g) = log(1 + e^−g)
    probability_of_second = np.where(g >= 0, exp_of_minus_abs, 1.0) / (1 + exp_of_minus_abs)
    weighted_probability = block.weight * probability_of_second  # ω σ(−g)
    block.add_net_inflow(weighted_probability - block.weight_of_second, negative_gradient)

    weighted_loss = float(block.weight @ log_loss)
    value = weighted_loss + float(block.weight_of_second @ g)

    # value − gradientᵀ f, in which the terms b g cancel
    offset_terms_of_pairs = weighted_probability * g
    offset = weighted_loss + float(offset_terms_of_pairs.sum())
    offset_terms = weighted_loss + float(np.abs(offset_terms_of_pairs).sum())
    gradient_terms = 2 * float(weighted_probability.sum() + block.weight_of_second.sum())
    return np.array([value, offset, offset_terms, gradient_terms])


def _logistic_curvatures(block: PairBlock, f: Array) -> Array:
    """``ω σ(g) σ(−g)`` of each pair of a block."""
    exp_of_minus_abs = np.exp(-np.abs(block.differences(f)))
    weighted = block.weight * exp_of_minus_abs
    return np.asarray(weighted / (1 + exp_of_minus_abs) ** 2)  # σ(g) σ(−g) = e^−|g| / (1 + e^−|g|)²
