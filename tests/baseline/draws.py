"""Random ranking problems: graded lists, comparisons, and the options of learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.baseline.names import find

TARGETS = ("grades", "binary", "continuous", "rounded")
COSTS = ("magnitude", "sign", "relative")
TIES = ("include", "exclude")
GROUP_WEIGHTS = ("pairs", "groups")


@dataclass
class RankingDraw:
    """Items in lists, with a training target, and new items of the same kind."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    sample_weight: np.ndarray | None
    X_new: Any
    groups_new: np.ndarray

    @property
    def target(self) -> dict[str, Any]:
        """The arguments of `fit` after X."""
        return {"y": self.y, "groups": self.groups, "sample_weight": self.sample_weight}

    @property
    def summary(self) -> str:
        """The sizes and kinds of the data."""
        n_items, n_features = self.X.shape
        kinds = [f"{n_items} items", f"{n_features} features of {self.X.dtype}"]
        kinds.append(f"y {self.y.dtype} of {len(np.unique(self.y))} values")
        if self.groups is not None:
            kinds.append(f"{len(np.unique(self.groups))} groups")
        if self.sample_weight is not None:
            kinds.append("weighted")
        if sp.issparse(self.X):
            kinds.append("sparse")
        return ", ".join(kinds)


def chance(rng: np.random.Generator, probability: float) -> bool:
    """Return True with this probability."""
    return bool(rng.random() < probability)


def pick(rng: np.random.Generator, options: Any) -> Any:
    """Return one of the options, all with equal probability."""
    return options[int(rng.integers(len(options)))]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform between those of the bounds."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw_alpha(rng: np.random.Generator) -> float:
    """Return a regularization between next to none and a strong one."""
    return log_uniform(rng, 1e-5, 1e2)


def draw_alphas(rng: np.random.Generator) -> np.ndarray:
    """Return three to six increasing regularizations."""
    return np.logspace(-3.0, 2.0, int(rng.integers(3, 7))) * rng.uniform(0.5, 2.0)


def draw_y(rng: np.random.Generator, utility: np.ndarray) -> np.ndarray:
    """Return a target of a random kind that increases with the utility, with noise."""
    noisy = utility + 0.7 * rng.normal(size=utility.shape)
    kind = pick(rng, TARGETS)
    if kind == "grades":
        return np.clip(np.round(noisy + 1.5), 0, 4)
    if kind == "binary":
        return (noisy > 0.4).astype(float)
    if kind == "rounded":
        return np.round(noisy, 1)
    return noisy


def draw_groups(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Return labels of lists of unequal sizes, some with one item, in any order of rows."""
    n_groups = int(rng.integers(2, max(3, n_items // 4)))
    groups = rng.integers(0, n_groups, n_items)
    groups[: n_groups * 2] = np.tile(np.arange(n_groups), 2)[:n_items]
    if chance(rng, 0.3):
        groups[-1] = n_groups  # a list of one item
    if chance(rng, 0.7):
        groups = np.sort(groups)
    if chance(rng, 0.2):
        return np.array([f"query {code}" for code in groups])
    return groups * 3 + 5


def draw_ranking(
    rng: np.random.Generator,
    *,
    n_items: tuple[int, int] = (24, 70),
    n_features: tuple[int, int] = (2, 7),
    grouped: bool | None = None,
    weighted: bool | None = None,
    sparse: bool | None = None,
    n_outputs: int | None = None,
) -> RankingDraw:
    """Draw items with features, groups, weights and targets; None leaves a choice to chance."""
    m = int(rng.integers(*n_items))
    p = int(rng.integers(*n_features))
    n_new = 12
    X = rng.normal(size=(m + n_new, p)) * rng.uniform(0.3, 3.0, p) + rng.normal(size=p)
    w = rng.normal(size=p) / np.sqrt(p)
    utility = X @ w
    is_sparse = chance(rng, 0.12) if sparse is None else sparse
    if is_sparse:
        X = np.where(rng.random(X.shape) < 0.5, X, 0.0)
        utility = X @ w
    if n_outputs is None:
        y = draw_y(rng, utility[:m])
    else:
        outputs = [draw_y(rng, utility[:m] + rng.normal(size=m)) for _ in range(n_outputs)]
        y = np.column_stack(outputs)
    is_grouped = chance(rng, 0.8) if grouped is None else grouped
    groups = draw_groups(rng, m) if is_grouped else None
    is_weighted = chance(rng, 0.35) if weighted is None else weighted
    sample_weight = None
    if is_weighted:
        sample_weight = rng.uniform(0.2, 3.0, m)
        if chance(rng, 0.3):
            sample_weight[rng.integers(0, m, 3)] = 0.0
    X_train = sp.csr_array(X[:m]) if is_sparse else X[:m]
    if not is_sparse and chance(rng, 0.05):
        X_train = X_train.astype(np.float32)
    return RankingDraw(X_train, y, groups, sample_weight, X[m:], np.repeat([1, 2, 3], 4))


def draw_edges(
    rng: np.random.Generator, n_items: int, *, cost: str | None = None, grouped: bool | None = None
) -> Any:
    """Draw a PairGraph of random comparisons, possibly with magnitudes, weights and groups."""
    n_edges = int(rng.integers(2 * n_items, 4 * n_items))
    is_grouped = chance(rng, 0.3) if grouped is None else grouped
    groups = None
    if is_grouped:
        groups = np.sort(rng.integers(0, 5, n_items))
        winner = rng.integers(0, n_items, n_edges)
        loser = rng.integers(0, n_items, n_edges)
        is_inside = (groups[winner] == groups[loser]) & (winner != loser)
        winner = winner[is_inside]
        loser = loser[is_inside]
    else:
        winner = rng.integers(0, n_items, n_edges)
        loser = (winner + rng.integers(1, n_items, n_edges)) % n_items
    n_edges = len(winner)
    magnitude = np.round(rng.uniform(0.0, 2.0, n_edges), 1) if chance(rng, 0.5) else None
    weight = rng.uniform(0.1, 2.0, n_edges) if chance(rng, 0.4) else None
    options = {"cost": pick(rng, COSTS[:2]) if cost is None else cost}
    if groups is not None:
        options["group_weight"] = pick(rng, GROUP_WEIGHTS)
    return find("PairGraph")(
        winner, loser, magnitude, weight, n_items=n_items, groups=groups, **options
    )


def draw_kernel(rng: np.random.Generator, probability: float = 0.5) -> dict[str, Any]:
    """Return parameters of a kernel: linear, or with this probability another one."""
    if not chance(rng, probability):
        return {}
    kernel = pick(rng, ("rbf", "rbf", "poly", "laplacian", "cosine"))
    parameters: dict[str, Any] = {"kernel": kernel}
    if kernel in ("rbf", "laplacian") and chance(rng, 0.7):
        parameters["gamma"] = log_uniform(rng, 0.03, 1.0)
    if kernel == "poly":
        parameters["degree"] = 2
        parameters["gamma"] = 0.2
    return parameters


def draw_basis(rng: np.random.Generator, n_items: int) -> dict[str, Any]:
    """Return parameters of a basis of a kernel: none, a random one, k-means++ or row numbers."""
    kind = pick(rng, ("none", "random", "kmeans++", "rows"))
    if kind == "none":
        return {}
    n_basis = int(rng.integers(5, 12))
    if kind == "rows":
        return {"basis": rng.choice(n_items, n_basis, replace=False)}
    return {"n_basis": n_basis, "basis": kind, "random_state": int(rng.integers(1000))}


def draw_least_squares(rng: np.random.Generator) -> dict[str, Any]:
    """Return the parameters of the pairwise least-squares cost."""
    return {
        "cost": pick(rng, ("magnitude", "magnitude", "sign", "relative")),
        "ties": pick(rng, TIES),
        "group_weight": pick(rng, GROUP_WEIGHTS),
    }


def draw_nuisance(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Return columns that affect the target but are no features: positions, or numbers."""
    if chance(rng, 0.5):
        return np.eye(4)[rng.integers(0, 4, n_items)]
    return rng.normal(size=(n_items, int(rng.integers(1, 3))))


def row_pairs(rng: np.random.Generator, n_items: int, n_pairs: int = 10) -> tuple[Any, Any]:
    """Return the row numbers of random pairs of different items."""
    i = rng.integers(0, n_items, n_pairs)
    j = (i + rng.integers(1, n_items, n_pairs)) % n_items
    return i, j
