"""What AutoRanker tries: a fixed menu of scalings, expansions and costs.

All entries but the last are linear `RankRLS` models of some features, so they have the same exact
hold-out. They were written down from the prototype of the design before any run of this code: each
scaling, each expansion and each cost is there, and cheap entries come first. Boosted trees were
added for features that interact.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from rankwise.estimators.anatomy import fit_transform
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.hinge_features import HingeFeatures
from rankwise.estimators.rank_rls import RankRLS
from rankwise.machine import check_matrix_fits
from rankwise.options import check_option

N_BASIS = 300  # items of the basis of a kernel
WIDTH = 0.3  # gamma times the median squared distance
N_KNOTS = 4
MOST_HINGES = 1000  # columns of an expansion by hinges
SAMPLE = 500  # items between which distances are measured
WIDE = 2000  # columns of sparse items from which groups are held out in folds, by iterations
TOL = 1e-4  # of iterations, which only wide sparse items need: an order is settled long before 1e-8
COPIES = 3  # of its features that a hold-out has in memory at a time


class Recipe(NamedTuple):
    """One entry of the menu.

    Attributes
    ----------
    expansion : {"linear", "hinges", "rbf", "trees"}
        The scaled features as they are, with hinges, or kernel values to a basis of items; or
        boosted trees of the scaled features.
    scaling : {"standard", "group", "log+group", "standard+group", "log+standard"}
        How the features are scaled.
    cost, ties : str
        As in `RankRLS`.
    """

    expansion: str
    scaling: str
    cost: str = "magnitude"
    ties: str = "include"

    def ranker(self, X: Any, alpha: float = 1e-3) -> RankRLS:
        """The model on features X; sparse ones have the exact shortcut, wide ones iterations."""
        solver = "auto"
        if sp.issparse(X):
            solver = "primal" if X.shape[1] <= WIDE else "iterative"
        return RankRLS(alpha, cost=self.cost, ties=self.ties, solver=solver, tol=TOL)

    @property
    def name(self) -> str:
        """Such as "rbf, group, magnitude without ties"."""
        without = " without ties" if self.ties == "exclude" else ""
        return f"{self.expansion}, {self.scaling}, {self.cost}{without}"


MENU = (
    Recipe("linear", "standard"),
    Recipe("linear", "group", ties="exclude"),
    Recipe("linear", "log+group", "sign"),
    Recipe("linear", "standard+group", ties="exclude"),
    Recipe("hinges", "standard"),
    Recipe("hinges", "group", ties="exclude"),
    Recipe("hinges", "log+group", "sign"),
    Recipe("rbf", "standard"),
    Recipe("rbf", "group", ties="exclude"),
    Recipe("rbf", "log+group", "sign"),
)

TREES = Recipe("trees", "standard+group", "sign")
LEAST_FOR_TREES = 500  # items


def menu_for(X: Any, *, has_groups: bool, has_scores: bool) -> list[Recipe]:
    """The entries that differ on these data.

    Without groups scaling in groups is the same as standard scaling. Explicit preferences bring
    their own cost, and trees need scores and many items. Sparse features stay sparse, so they get
    neither hinges nor trees; and few features allow hinges.
    """
    found: list[Recipe] = []
    has_trees = has_scores and not sp.issparse(X) and X.shape[0] >= LEAST_FOR_TREES
    for recipe in (*MENU, TREES) if has_trees else MENU:
        scaling = recipe.scaling
        if not has_groups:
            scaling = "log+standard" if "log" in scaling else "standard"
        cost, ties = (recipe.cost, recipe.ties) if has_scores else ("magnitude", "include")
        fits = not sp.issparse(X) and 2 * X.shape[1] <= MOST_HINGES
        if recipe.expansion != "hinges" or fits:
            found.append(Recipe(recipe.expansion, scaling, cost, ties))
    return list(dict.fromkeys(found))


class Features:
    """What the members see of the items; members of one scaling share its columns.

    Parameters
    ----------
    X : ndarray or csr matrix
        Items.
    groups : ndarray or None
        Their groups.
    seed : int
        Seed of the choice of basis items.
    """

    def __init__(self, X: Any, groups: Any, seed: int) -> None:
        self._X, self._groups, self._seed = X, groups, seed
        self._made: dict[str, tuple[list[Any], Any]] = {}

    def make(self, recipe: Recipe) -> tuple[list[Any], Any]:
        """The fitted steps before the ranker of an entry, and the features that it gets."""
        if recipe.expansion == "trees":
            recipe = recipe._replace(expansion="linear")
        if recipe.expansion != "linear":
            self._check_memory(recipe)
            return self._expand(recipe)
        if recipe.scaling not in self._made:
            self._check_memory(recipe)
            self._made[recipe.scaling] = self._scale(recipe)
        return self._made[recipe.scaling]

    def n_columns(self, recipe: Recipe) -> int:
        """An upper bound of the number of columns."""
        m, p = map(int, self._X.shape)
        p *= 2 if recipe.scaling == "standard+group" else 1
        if recipe.expansion == "rbf":
            return min(N_BASIS, m)
        return p * (1 + self._n_knots(p)) if recipe.expansion == "hinges" else p

    def _n_knots(self, p: int) -> int:
        return max(1, min(N_KNOTS, MOST_HINGES // p - 1))

    def _check_memory(self, recipe: Recipe) -> None:
        if not (sp.issparse(self._X) and recipe.expansion == "linear"):
            check_matrix_fits(
                self._X.shape[0],
                self.n_columns(recipe),
                f"the features of the member {recipe.name!r}",
                "leave it out of members=",
                n_matrices=COPIES,
            )

    def _scale(self, recipe: Recipe) -> tuple[list[Any], Any]:
        with_mean, scaling = not sp.issparse(self._X), recipe.scaling
        scaler: Any = StandardScaler(with_mean=with_mean)
        if scaling != "standard":
            both = scaling == "standard+group"
            log = "log" in scaling
            scaler = GroupScaler(with_log=log, with_standard=both, with_mean=with_mean)
        return [scaler], fit_transform(scaler, self._X, self._groups)

    def _expand(self, recipe: Recipe) -> tuple[list[Any], Any]:
        steps, scaled = self.make(recipe._replace(expansion="linear"))
        expansion: Any = HingeFeatures(self._n_knots(scaled.shape[1]))
        if recipe.expansion == "rbf":
            n_basis = min(N_BASIS, scaled.shape[0])
            gamma = WIDTH / _median_distance(scaled, self._seed)
            expansion = Nystroem(gamma=gamma, n_components=n_basis, random_state=self._seed)
        return [*steps, expansion], expansion.fit_transform(scaled)


def check_seed(random_state: Any) -> int:
    """One seed for all members: the number that was given, or one that is drawn."""
    rng = check_random_state(random_state)
    is_number = isinstance(random_state, numbers.Integral)
    return int(random_state) if is_number else int(rng.randint(np.iinfo(np.int32).max))


def _median_distance(X: Any, seed: int) -> float:
    """The median squared distance between two of some items; the mean if half of them are equal."""
    rows = np.random.RandomState(seed).permutation(X.shape[0])[:SAMPLE]
    squares = euclidean_distances(X[rows], squared=True)[np.triu_indices(len(rows), 1)]
    return float(np.median(squares)) or float(squares.mean()) or 1.0


def check_recipe(name: str, menu: list[Recipe]) -> Recipe:
    """The entry of this name; a ValueError that lists them if there is none."""
    names = {recipe.name: recipe for recipe in menu}
    check_option("members", name, ("default", *names))
    return names[name]


def as_pipeline(steps: list[Any], ranker: Any) -> Pipeline:
    """Fitted steps and a fitted ranker as one model of the items."""
    names = ["scale", "expand"][: len(steps)]
    return Pipeline([*zip(names, steps, strict=True), ("rank", ranker)])
