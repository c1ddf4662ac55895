"""PreferenceGraphDisplay: who beats whom, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.plot.figure import BAD, GOOD, NEUTRAL, Display

LIMIT = 50  # items; a drawing of more would be unreadable
BEND = 0.08  # of arrows, so that two opposite ones do not cover each other
NEAR = 0.09  # of the range of scores: items of one side closer than this step inwards
OUTCOMES = {"agrees": GOOD, "disagrees": BAD, "equal scores": NEUTRAL, "tie": NEUTRAL}


class Edges(NamedTuple):
    """Edges of a graph, those of the same two items in the same direction made one.

    Attributes
    ----------
    winner, loser : ndarray of int
        Items; of a tie the smaller number first.
    magnitude : ndarray
        Mean magnitude by weight; 0 is a tie.
    weight : ndarray
        Sum of the weights.
    outcome : ndarray of str
        "agrees" or "disagrees" with the scores, "equal scores" where they decide nothing, or "tie"
        of the edge itself.
    """

    winner: Indices
    loser: Indices
    magnitude: Array
    weight: Array
    outcome: NDArray[np.str_]


class PreferenceGraphDisplay(Display):
    """Items as points, preferences as arrows from the winner to the loser.

    Make it by `from_graph`. Width is the weight of an edge, strength of the color its magnitude;
    the color says whether the scores agree with the edge: an arrow of the second color points at
    an item with a score at least as high as that of the winner. Ties are lines without heads.

    Parameters
    ----------
    edges : Edges
        What is known.
    scores : ndarray of shape (n_items,)
        Scores that place the items.
    labels : sequence of str
        Their names.

    Attributes
    ----------
    positions_ : ndarray of shape (n_items, 2)
        Where the items are.
    ax_, figure_
        Axes and figure.
    nodes_
        Points of the items.
    arrows_ : list of FancyArrowPatch
        One for each edge.
    texts_ : list of Text
        The names.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise import PairGraph
    >>> from rankwise.plot import PreferenceGraphDisplay
    >>> matches = PairGraph([0, 0, 1, 2], [1, 2, 2, 0], magnitude=[2, 3, 1, 1])
    >>> display = PreferenceGraphDisplay.from_graph(matches, labels=["Ada", "Bob", "Cy"])
    >>> display.edges.outcome.tolist()
    ['agrees', 'agrees', 'agrees', 'disagrees']
    >>> plt.close(display.figure_)
    """

    positions_: Array
    nodes_: Any
    arrows_: list[Any]
    texts_: list[Any]

    def __init__(self, *, edges: Edges, scores: ArrayLike, labels: Sequence[str]) -> None:
        self.edges = edges
        self.scores = np.asarray(scores, dtype=np.float64)
        self.labels = [str(label) for label in labels]

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the graph; the height of an item is its score.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Title.
        **kwargs
            Options of the points, as for ``ax.scatter``.

        Returns
        -------
        PreferenceGraphDisplay
            The display itself.
        """
        self._begin(ax)
        self.positions_ = _layers(self.scores)
        options = {"s": 260, "color": "white", "edgecolor": "black", "zorder": 3, **kwargs}
        self.nodes_ = self.ax_.scatter(*self.positions_.T, **options)
        is_short = all(len(label) <= 2 for label in self.labels)
        self.texts_ = []
        for label, place in zip(self.labels, self.positions_, strict=True):
            side = 0 if is_short else int(np.sign(place[0]))  # in the point, or beside it
            text = self.ax_.annotate(
                label,
                place,
                xytext=(13.0 * side, 0.0),
                textcoords="offset points",
                ha={0: "center", 1: "left", -1: "right"}[side],
                va="center",
                zorder=4,
            )
            self.texts_.append(text)
        self.arrows_ = self._draw_edges()
        self.ax_.margins(0.22 if is_short else 0.6, 0.1)
        self.ax_.set(xticks=[], ylabel="score", title=name or "")
        self.ax_.spines[["top", "right", "bottom"]].set_visible(False)
        return self

    @classmethod
    def from_graph(
        cls,
        graph: PreferenceGraph,
        scores: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the preferences among at most 50 items.

        Parameters
        ----------
        graph : PreferenceGraph
            A graph of explicit preferences, or of the scores of one group;
            ``graph.subset(rows)`` takes the items of one group out of a larger graph.
        scores : array-like of shape (n_items,), optional
            Predicted scores. By default the scores of the graph, or the least-squares ratings if
            it has none.
        labels : sequence of str, optional
            Names of the items; by default their numbers.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        PreferenceGraphDisplay
        """
        _check_graph(graph)
        if scores is None:
            placed = _ratings(graph) if graph.scores is None else graph.scores.ravel()
        else:
            placed = np.asarray(scores, dtype=np.float64)
        if placed.shape != (graph.n_items,) or not np.isfinite(placed).all():
            raise ValueError(
                f"scores has shape {placed.shape}; expected one finite score for each of the "
                f"{graph.n_items} items."
            )
        names = [str(i) for i in range(graph.n_items)] if labels is None else list(labels)
        if len(names) != graph.n_items:
            raise ValueError(f"there are {len(names)} labels for {graph.n_items} items.")
        edges = _merge_edges(graph.pairs(), placed)
        return cls(edges=edges, scores=placed, labels=names).plot(ax, **kwargs)

    def _draw_edges(self) -> list[Any]:
        from matplotlib.lines import Line2D
        from matplotlib.patches import FancyArrowPatch

        edges = self.edges
        width = np.full(len(edges.weight), 1.4)
        if len(set(edges.weight)) > 1:
            width = 0.8 + 2.2 * edges.weight / edges.weight.max()
        strength = 0.3 + 0.6 * edges.magnitude / (edges.magnitude.max(initial=0.0) or 1.0)
        strength[edges.magnitude == 0] = 0.5
        arrows = []
        for k, outcome in enumerate(edges.outcome):
            arrow = FancyArrowPatch(
                self.positions_[edges.winner[k]],
                self.positions_[edges.loser[k]],
                arrowstyle="-" if outcome == "tie" else "-|>,head_width=2.5,head_length=5",
                connectionstyle=f"arc3,rad={0.0 if outcome == 'tie' else BEND}",
                linestyle="--" if outcome == "tie" else "-",
                linewidth=width[k],
                color=OUTCOMES[str(outcome)],
                alpha=strength[k],
                shrinkA=9,
                shrinkB=9,
                zorder=2 if outcome == "disagrees" else 1,
            )
            arrows.append(self.ax_.add_patch(arrow))
        handles = [
            Line2D(
                *([], []),
                color=OUTCOMES[outcome],
                linestyle="--" if outcome == "tie" else "-",
                label=f"{outcome}: {(edges.outcome == outcome).sum()}",
            )
            for outcome in OUTCOMES
            if (edges.outcome == outcome).any()
        ]
        if handles:
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "frameon": False}
            self.ax_.legend(handles=handles, ncols=len(handles), **place)
        return arrows


def _check_graph(graph: Any) -> None:
    if not isinstance(graph, PreferenceGraph):
        raise TypeError(
            f"graph is a {type(graph).__name__}; expected a preference graph, such as a ScoreGraph "
            "of one group or a PairGraph."
        )
    advice = "take some of them: graph.subset(rows)."
    if graph.scores is not None and graph.n_groups > 1:
        raise ValueError(f"the graph has {graph.n_groups} groups; {advice}")
    if graph.n_items > LIMIT:
        raise ValueError(f"the graph has {graph.n_items} items, more than {LIMIT}; {advice}")
    if graph.scores is not None and graph.scores[0].size != 1:
        n_outputs = graph.scores.shape[1]
        raise ValueError(f"the graph has {n_outputs} outputs; make one of a single column.")


def _ratings(graph: PreferenceGraph) -> Array:
    """Scores whose differences fit the edges best, of mean zero in each connected component."""
    L = graph.laplacian(np.eye(graph.n_items))
    ratings = np.linalg.lstsq(L, graph.divergence, rcond=None)[0]
    unit = float(graph.pairs().magnitude.max(initial=0.0)) or 1.0
    return np.asarray(np.round(ratings / unit, 12) * unit)  # equal ones equal


def _merge_edges(graph: PairGraph, scores: Array) -> Edges:
    """Make one edge of those between the same two items, and compare it with the scores."""
    winner, loser = graph.winner.copy(), graph.loser.copy()
    tied = graph.magnitude == 0
    swap = tied & (winner > loser)
    winner[swap], loser[swap] = graph.loser[swap], graph.winner[swap]
    key = np.stack([winner, loser, tied], axis=1)
    distinct, which = np.unique(key, axis=0, return_inverse=True)
    which = which.ravel()
    weight, total = np.zeros((2, len(distinct)))
    np.add.at(weight, which, graph.weight)
    np.add.at(total, which, graph.weight * graph.magnitude)
    a, b, is_tie = distinct.astype(np.intp).T
    decided = np.where(scores[a] > scores[b], "agrees", "disagrees")
    against = np.where(scores[a] == scores[b], "equal scores", decided)
    outcome = np.where(is_tie == 1, "tie", against)
    return Edges(a, b, total / weight, weight, outcome)


def _layers(scores: Array) -> Array:
    """Height by score, on both sides of an oval, so that few arrows run through a third item."""
    order = np.argsort(-scores, kind="stable")
    extent = np.ptp(scores) or 1.0
    middle = (scores.min() + scores.max()) / 2
    x = np.zeros(len(scores))
    for side, items in ((1.0, order[::2]), (-1.0, order[1::2])):
        breaks = np.flatnonzero(-np.diff(scores[items]) > NEAR * extent) + 1
        for run in np.split(items, breaks):  # of items on nearly the same height
            height = 2 * (scores[run] - middle) / extent
            rim = 0.45 + 0.55 * np.sqrt(np.maximum(0.0, 1.0 - height**2))
            x[run] = side * rim * np.linspace(1.0, max(0.2, 1.3 - 0.3 * len(run)), len(run))
    return np.stack([x, scores], axis=1)
