"""The methods that compete for the order of a user's items: [Pursuit13] section 6 and beyond.

Every method learns from the kernel values of one user's items and is judged along a path, of alphas
or of numbers of steps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankwise import RankingPursuit, RankRLS, RankSVM

__all__ = [
    "ALPHAS",
    "KERNEL",
    "NUS",
    "PURSUIT",
    "SEMI_SUPERVISED",
    "STEPS",
    "SUPERVISED",
    "TWO_VIEWS",
    "Method",
    "follow_path",
    "paper_beta",
    "pursue",
    "pursue_apart",
    "pursue_by_half_steps",
]

ALPHAS = 2.0 ** np.arange(-14, 7, 2)
SVM_ALPHAS = 2.0 ** np.arange(-11, 2, 3)
STEPS = np.array([1, 2, 3, 4, 6, 8, 11, 15, 20])
NUS = (0.0, 0.01, 0.1, 1.0, 10.0)


class Method(NamedTuple):
    """A row of a table: a model, and the numbers of its path (alphas or steps) to choose from.

    `settings` are searched as well, `adapt` gives parameters that depend on the number of scored
    items. `has_level` adds the mean residual of the training items to the scores. `views` is the
    number of parts of the columns that make the views; 0 leaves views to the model. `learn` takes
    (model, X, y, path) to the scores of all items, shape (n_items, n_path), and the number of
    items in the model; by default it is the way of the model.
    """

    name: str
    model: Any
    path: np.ndarray
    settings: tuple[dict, ...] = ({},)
    adapt: Callable[[int], dict] = lambda _: {}
    has_level: bool = False
    uses_unscored: bool = False
    views: int = 0
    learn: Callable | None = None


def paper_beta(n_items):
    """Our beta that weighs order and level as β = 1/2 does in [Pursuit13] equation 5.

    There L is a sum over pairs and grows with the number of items; ours is a mean.
    """
    return 2 / (n_items + 1)


def follow_path(model, X, y, alphas):
    """Scores for each alpha, and the number of items with a coefficient."""
    fitted = model.path(X[: len(y)], y, alphas=alphas)
    return fitted.predict(X), np.count_nonzero(fitted.model(0).dual_coef_)


def pursue(model, X, y, steps):
    """Scores after each of these numbers of steps, and the number of items in the last model."""
    model.set_params(n_basis=int(max(steps))).fit(X[: len(y)], y)
    staged = np.stack(list(model.staged_predict(X)), axis=1)
    used_items = model.basis_indices_
    if model.views is not None:  # a list over the views
        used_items = np.unique(np.concatenate(used_items))
    return _after_steps(staged, steps), len(used_items)


def pursue_apart(model, K, y, steps):
    """The mean of two models that know nothing of each other, each with half of the dictionary.

    Views with ν = 0 are not that: they share the residual ([Pursuit13] figure 2, step 8). Columns
    of K are the functions, so a half of them is a dictionary.
    """
    model.set_params(kernel="linear", dictionary="features")
    even_scores, even_size = pursue(model, K[:, ::2], y, steps)
    odd_scores, odd_size = pursue(model, K[:, 1::2], y, steps)
    return (even_scores + odd_scores) / 2, even_size + odd_size


def pursue_by_half_steps(_, K, y, steps):
    """One pursuit whose steps go half of the way, as each function of two views does."""
    scored = np.flatnonzero(~np.isnan(y))
    functions = K[scored] - K[scored].mean(axis=0)
    squared_norms = (functions**2).sum(axis=0)
    residual = y[scored] - y[scored].mean()
    scores = np.zeros(len(K))
    staged_scores = []
    used_functions = set()
    for _ in range(int(max(steps))):
        products = functions.T @ residual
        # decrease of the squared residual by a whole step along each function
        decreases = np.divide(
            products**2, squared_norms, out=np.zeros(len(squared_norms)), where=squared_norms > 0
        )
        best = int(np.argmax(decreases))
        half_step = products[best] / squared_norms[best] / 2
        residual = residual - half_step * functions[:, best]
        scores = scores + half_step * K[:, best]
        staged_scores.append(scores)
        used_functions.add(best)
    return _after_steps(np.stack(staged_scores, axis=1), steps), len(used_functions)


def _after_steps(staged, steps):
    """Of scores after every step those after these; a pursuit may end before the last."""
    return staged[:, np.minimum(steps, staged.shape[1]) - 1]


KERNEL = {"kernel": "precomputed"}
PURSUIT = RankingPursuit(backfit=None, **KERNEL)
MATCHING = RankingPursuit(backfit=None, beta=1, fit_intercept=False, **KERNEL)
TWO_VIEWS = RankingPursuit(backfit=None, views=2, random_state=0, **KERNEL)

SUPERVISED = (
    Method("RLS", RankRLS(beta=1, **KERNEL), ALPHAS),
    Method("Matching Pursuit", MATCHING, STEPS),
    Method("RankSVM", RankSVM(tol=0.01, **KERNEL), SVM_ALPHAS),
    Method("RankRLS", RankRLS(**KERNEL), ALPHAS),
    Method(
        "Sparse RankRLS",
        RankRLS(random_state=0, **KERNEL),
        ALPHAS,
        adapt=lambda n_scored: {"n_basis": max(1, n_scored // 2)},
    ),
    Method("Ranking Pursuit", PURSUIT, STEPS),
)
SEMI_SUPERVISED = (
    *SUPERVISED,
    Method(
        "SS Ranking Pursuit",
        TWO_VIEWS,
        STEPS,
        settings=tuple({"nu": nu} for nu in NUS),
        uses_unscored=True,
    ),
    Method("– the same, ν = 0", TWO_VIEWS, STEPS, ({"nu": 0.0},), uses_unscored=True),
    Method(
        "– two models apart, half of it each",
        PURSUIT,
        STEPS,
        uses_unscored=True,
        learn=pursue_apart,
    ),
    Method("– one view, same dictionary", PURSUIT, STEPS, uses_unscored=True),
    Method(
        "– one view, half steps",
        PURSUIT,
        2 * STEPS,  # a step of two views takes two functions
        uses_unscored=True,
        learn=pursue_by_half_steps,
    ),
)
