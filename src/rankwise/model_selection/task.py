"""What a learner offers so that it can be cross-validated: a hold-out task and its candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.features.feature_map import Features
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.inputs import check_alphas
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.model_selection.folds import Folds
from rankwise.solvers.hold_out_list import Spectrum, pair_differences, pair_disagreement

SIMPLER = {"alpha": 1, "nu": -1, "n_basis": -1}  # the sign of the direction of simpler models
SAME = 1e-12  # scores that differ by less are equal but for rounding
DECADES = (-15.5, 4)  # where default alphas start and end: from rounding to nothing learned
COLUMNS = 64  # columns of a kernel matrix that are looked at together


class Candidates:
    """A table of all combinations of the values of some parameters, one candidate in each row.

    Parameters
    ----------
    axes : dict from str to ndarray
        Parameters and their values, such as {"alpha": ...}, {"alpha": ..., "nu": ...} or
        {"n_basis": ...}. In the table the first parameter changes fastest. Of candidates that score
        alike the one with the simplest value of the first is chosen, then of the second: large
        alpha, small nu, few basis functions.

    Attributes
    ----------
    table : ndarray of shape (n_candidates, n_parameters)
        The values.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.model_selection.task import Candidates
    >>> both = Candidates({"alpha": np.array([0.1, 1.0, 10.0]), "nu": np.array([0.0, 1.0])})
    >>> len(both), both[4]
    (6, {'alpha': 1.0, 'nu': 1.0})
    >>> both.best(np.array([1, 2, 3, 3, 3, 1]))
    2
    """

    def __init__(self, axes: dict[str, Array]) -> None:
        self.axes = axes
        grid = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        self.table = grid.reshape(-1, len(axes), order="F")

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, at: int) -> dict[str, Any]:
        """The parameters of one candidate."""
        return dict(zip(self.axes, self.table[at].tolist(), strict=True))

    def best(self, gain: Array) -> int:
        """Where the gain is largest; of equal ones the simplest model, of equal models the first.

        Parameters
        ----------
        gain : ndarray of shape (n_candidates,)
            Scores, larger being better; nan where there is none.
        """
        best = np.flatnonzero(gain >= np.nanmax(gain) - SAME)
        for name, column in zip(self.axes, self.table.T, strict=True):
            simple = SIMPLER[name] * column[best]
            best = best[simple == simple.max()]
        return int(best[0])

    def line(self, at: int, name: str) -> Indices:
        """The candidates that have every value of one parameter, all else as `at`."""
        others = np.delete(self.table, list(self.axes).index(name), axis=1)
        return np.flatnonzero((others == others[at]).all(axis=1))


def default_alphas(scale: float, decades: tuple[float, float] = DECADES) -> Array:
    """Two alphas a decade; the 40 of RankRLS run from rounding to 1e4 times the scale.

    Parameters
    ----------
    scale : float
        Sum of the eigenvalues of the system: the mean squared distance between items of a pair.
    decades : tuple of float
        Powers of ten where the alphas start and end, relative to the scale.
    """
    scale = scale if scale > 0 else 1.0  # constant features: every alpha gives the same model
    low, high = np.rint(2 * np.array(decades))
    return np.asarray(scale * 10.0 ** (np.arange(low, high + 1) / 2))


class HeldOutPairs(NamedTuple):
    """Every pair of one list held out in turn: [RankRLS09] section 3.4.

    Attributes
    ----------
    spectrum : Spectrum
        Eigenvalues and vectors of the kernel matrix.
    scores : ndarray of shape (n_items, n_outputs)
        Scores of the items.
    beta : float
        Between ranking (0) and regression (1).
    """

    spectrum: Spectrum
    scores: Array
    beta: float

    def disagreement(self, alphas: Array, scores: Array | None = None) -> Array:
        """Share of wrongly ordered pairs, (n_outputs, n_alphas); also for other scores."""
        y = self.scores if scores is None else scores
        return pair_disagreement(self.spectrum, y, alphas, self.beta)

    def differences(self, alpha: float, n_entries: int) -> Iterator[tuple[slice, Array]]:
        """``f_i − f_j`` for all i and j, in blocks of rows, shape (n_rows, n_items, n_outputs)."""
        return pair_differences(self.spectrum, self.scores, alpha, self.beta, n_entries)


class HoldOutTask(ABC):
    """A learner with its data: gives the scores of held-out items, for many candidates at once.

    Learners make it by ``hold_out_task(X, y, groups)``. `held_out_curves`, the searches and all
    functions of `rankwise.model_selection` ask for nothing else. A learner that takes weights of
    items has a fourth argument, ``sample_weight``; they are then those of the graph.

    Parameters
    ----------
    learner : estimator
        With the values of its parameters.
    graph : PreferenceGraph
        What is known about the items, in all outputs.
    rows : ndarray of int, optional
        Rows of X that are the items of the graph; all if not given. Rows without a score are never
        held out.
    n_rows : int, optional
        Number of rows of X; by default that of the items.

    Attributes
    ----------
    output_shape : tuple
        () for one output, (n_outputs,) for y of two dimensions.
    parameters : tuple of str
        What candidates may differ in.
    refits : bool
        Whether every fold is trained again. If not, "auto" may choose ways of many folds.
    """

    output_shape: tuple[int, ...] = ()
    parameters: tuple[str, ...] = ("alpha",)
    refits: bool = True

    def __init__(
        self,
        learner: Any,
        graph: PreferenceGraph,
        rows: Indices | None = None,
        n_rows: int | None = None,
    ) -> None:
        self.learner, self.graph, self.rows = learner, graph, rows
        self.n_rows = graph.n_items if n_rows is None else n_rows

    @abstractmethod
    def train(self, **values: Any) -> Any:
        """The learner trained on all data, with these values of its parameters."""

    @abstractmethod
    def default_values(self, name: str) -> Array:
        """Candidates for a parameter of which the user named none."""

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """Combinations of the values of parameters.

        None stands for default values; a parameter that is not named keeps the value that the
        learner has.
        """
        axes = {}
        for name in self.parameters:
            asked = values.get(name, [getattr(self.learner, name)])
            if asked is None:
                axes[name] = self.default_values(name)
            elif name == "n_basis":
                axes[name] = np.asarray(asked, dtype=np.intp)
            else:
                axes[name] = check_alphas(asked, f"{name}s")
        return Candidates(axes)

    def held_out(self, folds: Folds, candidates: Candidates) -> Array:
        """Scores of every item by models without its fold, (n_items, n_outputs, n_candidates).

        Parameters
        ----------
        folds : list of ndarray of int
            Items that are held out together; each item is in one of them.
        candidates : Candidates
            What `candidates` gave, or more of the kind.
        """
        out = np.empty((self.graph.n_items, 1, len(candidates)))
        for held in track(folds, "training again without a fold"):
            out[held, 0] = self.scores_without(held, candidates)
        return out

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """Scores of some items by models trained on the others, (n_held, n_candidates).

        For learners of one output; others have a `held_out` of their own.
        """
        raise NotImplementedError

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """Scores of all items, (n_items, n_candidates), by models of some of the edges."""
        raise NotImplementedError

    @property
    def has_pairs(self) -> bool:
        """Whether every pair of one list can be held out by a shortcut."""
        return False

    def pairs(self) -> HeldOutPairs:
        """Every pair of one list held out; may spend a kernel matrix."""
        raise ValueError(
            "leave-pair-out is for RankRLS on one list in which all pairs are edges, and without "
            f"weights or nuisance, but there are {self.graph.n_groups} groups, "
            f"cost={self.graph.cost!r} and ties={self.graph.ties!r}; hold out groups or folds."
        )


def hold_out_task(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    advice: str,
    sample_weight: ArrayLike | None = None,
) -> HoldOutTask:
    """The task of an estimator; a TypeError if it offers none."""
    if not hasattr(estimator, "hold_out_task"):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; expected RankRLS, RankSVM, "
            f"RankLogistic or another learner that has hold_out_task. {advice}"
        )
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    task: HoldOutTask = estimator.hold_out_task(X, y, groups, **weights)
    return task


def pair_distance(loss: SquaredLoss, features: Features) -> float:
    """Mean squared distance ``tr(L K)/W`` between the items of a pair, in feature space.

    The sum of the eigenvalues of the system that RankRLS solves.
    """
    if features.columns is not None:
        return float(np.maximum(loss.norms(features.columns), 0.0).sum())
    if features.method == "dual":
        K, size = features.matrix, COLUMNS
        starts = range(0, len(K), size)
        return float(sum(np.trace(loss.times_A(K[:, i : i + size])[i:]) for i in starts))
    return float(loss.norms(features.matrix).sum())
