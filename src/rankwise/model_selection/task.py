"""What is held out, and what a learner offers for it: folds, a plan, candidates, a task."""

from __future__ import annotations

import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold

from rankwise.arrays import Array, Indices
from rankwise.datasets.times import as_times, in_days
from rankwise.features.feature_map import Features
from rankwise.frames import as_array
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.groups import Groups, members_of
from rankwise.inputs import check_alphas
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.solvers.hold_out_list import Spectrum, pair_differences, pair_disagreement

Folds = list[NDArray[np.intp]]
GROUP, PAIR = "leave-group-out", "leave-pair-out"
GROUPS, ITEMS, EDGES = "folds of groups", "folds of items", "folds of edges"
LATER = "later groups"
PAIRWISE = ("disagreement", "concordance", "auc")  # metrics that a held-out pair has
FEWEST_FOR_PAIRS, MOST_FOR_PAIRS = 4, 1500  # items; leave-pair-out is cubic in their number
EXACT_FOLDS, REFIT_FOLDS = 10, 5
N_BLOCKS = 6  # in the order of time; all but the first are judged
SIMPLER = {"alpha": 1, "nu": -1, "n_basis": -1}  # the sign of the direction of simpler models
SAME = 1e-12  # scores that differ by less are equal but for rounding
DECADES = (-15.5, 4)  # where default alphas start and end: from rounding to nothing learned
COLUMNS = 64  # columns of a kernel matrix that are looked at together


def make_folds(cv: Any, graph: PreferenceGraph) -> Folds:
    """The test sets of a cross-validation; every item is in exactly one.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        None holds out one group at a time; a number makes so many folds of whole groups, or of
        items if there is one group only; anything else as in scikit-learn.
    graph : PreferenceGraph
        Its scores and groups go to the splitter. The groups of explicit preferences are those
        that the `PairGraph` was given, or else its connected components.
    """
    labels, n_groups = graph.groups, graph.n_groups
    if cv is None:
        folds = members_of(labels)
        if len(folds) < 2:
            how = (
                "build the PairGraph with the groups of the items, or hold out edges with "
                "RankRLSCV(cv=10)"
                if graph.scores is None
                else "pass groups, hold out items with cv=10, or use leave_pair_out"
            )
            raise ValueError(f"leave-group-out needs at least two groups, and there is one; {how}.")
        return folds
    if isinstance(cv, numbers.Integral):
        cv = int(cv)
        n_units = n_groups if n_groups > 1 else graph.n_items
        if not 2 <= cv <= n_units:
            unit = "groups" if n_groups > 1 else "items"
            raise ValueError(
                f"cv={cv}; expected 2 to {n_units} folds of the {n_units} {unit} "
                f"(n_samples = {graph.n_items})."
            )
        cv = GroupKFold(cv) if n_groups > 1 else KFold(cv, shuffle=True, random_state=0)
    if hasattr(cv, "split"):
        with warnings.catch_warnings():  # of splitters that say that they do not look at groups
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            cv = list(cv.split(np.empty((graph.n_items, 1)), graph.scores, graph.groups))
    return _check_splits(list(cv), graph.n_items)


def read_splits(cv: Any) -> Any:
    """The same with splits in a list, so that they can be read for each model and each output."""
    is_plain = hasattr(cv, "__iter__") and not hasattr(cv, "split")  # a text has both
    return list(cv) if is_plain else cv


def fold_numbers(folds: Folds, n_items: int) -> NDArray[np.intp]:
    """For each item the number of its fold, −1 for items of none."""
    numbers = np.full(n_items, -1, dtype=np.intp)
    if folds:
        numbers[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), list(map(len, folds)))
    return numbers


def _check_splits(splits: list[Any], n_items: int, what: str = "items") -> Folds:
    """The test sets; each item is in one of them, and all others are in its training set."""
    folds: Folds = []
    every = np.arange(n_items)
    for k, split in enumerate(splits):
        train, test = (np.asarray(part) for part in split)
        train, test = (np.flatnonzero(p) if p.dtype == bool else p for p in (train, test))
        if not np.array_equal(np.sort(np.concatenate([train, test])), every):
            raise ValueError(
                f"fold {k} of cv must train on all {what} that it does not hold out, and on no "
                f"others; it has {len(train)} for training and {len(test)} held out of {n_items}."
            )
        folds.append(np.sort(test).astype(np.intp))
    if not np.array_equal(np.sort(np.concatenate(folds)), every):
        raise ValueError(
            f"cv must hold out each of the {n_items} {what} once (as KFold and GroupKFold do, and "
            "ShuffleSplit does not)."
        )
    return folds


def edge_folds(cv: Any, n_edges: int) -> Folds:
    """Folds of the edges: so many of random ones, or what a splitter or splits say."""
    if hasattr(cv, "split"):
        cv = cv.split(np.empty((n_edges, 1)))
    if hasattr(cv, "__iter__"):
        return _check_splits(list(cv), n_edges, "edges")
    if not isinstance(cv, numbers.Integral) or not 2 <= int(cv) <= n_edges:
        raise ValueError(
            f"cv={cv!r}: the preferences are all connected, so edges are held out; give a "
            f"number of folds from 2 to the {n_edges} edges, or splits of them, or build the "
            "PairGraph with the groups of the items to hold these out."
        )
    fold = np.random.default_rng(0).permutation(n_edges) % int(cv)
    return [np.flatnonzero(fold == k) for k in range(int(cv))]


class HoldOutPlan(NamedTuple):
    """What is held out.

    Attributes
    ----------
    name : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items" (of one list, or
        if a splitter puts items of one group in different folds) or "folds of edges".
    folds : list of ndarray of int
        Items, or edges, that are held out together; none for leave-pair-out.
    """

    name: str
    folds: Folds


def choose_plan(task: Any, cv: Any, metrics: Sequence[Any]) -> HoldOutPlan:
    """What is held out, and the folds that say how.

    With "auto":

    ==========================  ==========================  ===============================
    data                        folds are exact shortcuts   every fold is trained again
    ==========================  ==========================  ===============================
    several groups              one group at a time         five folds of groups
    one list, up to 1,500       every pair in turn, if all  five folds of items
    items, all pairs are edges  metrics judge pairs
    any other list              ten folds of items          five folds of items
    connected preferences (in   ten folds of edges          five folds of edges
    one part more than half)
    ==========================  ==========================  ===============================

    Parameters
    ----------
    task : HoldOutTask
        The learner and its data.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable
        None holds out one group at a time; a number makes so many folds of groups, of items if
        there is one list, or of edges if there are connected preferences without groups.
    metrics : sequence of Metric
        How held-out data will be judged.
    """
    graph = task.graph
    for metric in metrics:
        if graph.item_weights is not None:
            metric.check_takes_weights()
        if graph.scores is None and metric.name not in PAIRWISE[:2]:
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
                "use scoring='disagreement' or 'concordance'."
            )
    if isinstance(cv, str) and cv not in ("auto", PAIR):
        raise ValueError(
            f"cv={cv!r} is unknown; use 'auto', '{PAIR}', None, a number of folds or a splitter."
        )
    if isinstance(cv, str):
        name, cv = _automatic(task, metrics) if cv == "auto" else (PAIR, None)
    elif cv is None:
        name = GROUP
    elif graph.n_units > 1:
        name = GROUPS
    else:
        name = EDGES if graph.scores is None else ITEMS
    if name == PAIR:
        return HoldOutPlan(name, [])
    if name == EDGES:
        return HoldOutPlan(name, edge_folds(cv, graph.n_pairs))
    folds = make_folds(cv, graph)
    if name == GROUPS and cuts_groups(folds, graph):
        name = ITEMS
    return HoldOutPlan(name, folds)


def cuts_groups(folds: Folds, graph: PreferenceGraph) -> bool:
    """Whether two items of one group are in different folds, as with a KFold of items."""
    fold = fold_numbers(folds, graph.n_items)
    fold_of_group = np.zeros(graph.n_groups, dtype=np.intp)
    fold_of_group[graph.groups] = fold
    return bool((fold_of_group[graph.groups] != fold).any())


def _automatic(task: Any, metrics: Sequence[Any]) -> tuple[str, int | None]:
    """What "auto" holds out, and in how many folds."""
    graph = task.graph
    n_folds = REFIT_FOLDS if task.refits else EXACT_FOLDS
    if graph.scores is None and _is_mostly_connected(graph):
        return EDGES, min(n_folds, max(2, graph.n_pairs))
    if graph.n_units > 1:
        return (GROUPS, min(n_folds, graph.n_units)) if task.refits else (GROUP, None)
    is_small = FEWEST_FOR_PAIRS <= graph.n_items <= MOST_FOR_PAIRS
    if is_small and all(metric.name in PAIRWISE for metric in metrics) and task.has_pairs:
        return PAIR, None
    return ITEMS, min(n_folds, max(2, graph.n_items // 2))  # a pair in each


def _is_mostly_connected(graph: PreferenceGraph) -> bool:
    """Whether preferences are one unit, or more than half of them are in one component."""
    if graph.n_units < 2 or not isinstance(graph, PairGraph) or graph.has_groups:
        return graph.n_units < 2
    return bool(2 * np.bincount(graph.groups[graph.winner]).max() > graph.n_pairs)


def later_blocks(time: Any, groups: Groups, n_blocks: int = N_BLOCKS) -> Folds:
    """Rows in blocks of whole groups, from the earliest to the latest.

    A group is as late as its last row, and groups of one time stay together. If there is one
    group only, its items are the units.

    Parameters
    ----------
    time : array-like of shape (n_items,)
        Dates or numbers.
    groups : Groups
        Groups of the items.
    n_blocks : int
        Number of blocks, of about as many groups; fewer if there are fewer times.
    """
    moments = in_days(as_times(as_array(time, "time"), len(groups.codes), "row"))
    unit = groups.codes if groups.n_groups > 1 else np.arange(len(groups.codes))
    last = np.full(unit.max() + 1, -np.inf)
    np.maximum.at(last, unit, moments)
    distinct, place = np.unique(last, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            "all rows are of one time, so nothing came later; pass the time of each row or group, "
            "or leave out time."
        )
    earlier = np.cumsum(np.bincount(place)) - 1  # the last unit of each time
    block = np.minimum(earlier * n_blocks // len(last), n_blocks - 1)[place]
    _, block = np.unique(block, return_inverse=True)
    if block.max() == 0:  # nearly all units are of the last time
        block = (place == place.max()).astype(np.intp)
    return [np.flatnonzero(block[unit] == k) for k in range(block.max() + 1)]


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
    sample_weight: ArrayLike | None = None,
) -> HoldOutTask:
    """The task of an estimator; a TypeError if it offers none."""
    if not hasattr(estimator, "hold_out_task"):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; expected RankRLS, RankSVM, "
            "RankLogistic or another learner that has hold_out_task. For others use cross_validate "
            "or cross_val_predict of scikit-learn."
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
