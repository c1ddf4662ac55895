"""What the scores of a fitted ranker are made of: feature maps with coefficients, and a level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.co_rank_rls import CoRankRLS
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.ranking_pursuit import RankingPursuit
from rankwise.estimators.search import Search
from rankwise.features import FeatureMap


class ScoreFunctions(NamedTuple):
    """Scores as the mean of functions: ``f(x) = mean_v Σ_j coef_vj k_v(x, item_vj) + level``.

    Attributes
    ----------
    maps : list of FeatureMap
        One for each view; a linear ranker without views has its columns as they are.
    coefficients : list of ndarray of shape (n, n_outputs)
        Weights of the columns or of the items of each map.
    level : float
        What is added to all scores.
    output_shape : tuple of int
        Shape of the scores of one item: () or (n_outputs,).
    """

    maps: list[FeatureMap]
    coefficients: list[Array]
    level: float = 0.0
    output_shape: tuple[int, ...] = ()


def score_functions(model: Any) -> ScoreFunctions:
    """Take a fitted ranker apart.

    Raises
    ------
    ValueError
        If it is none of rankwise's linear and kernel rankers.
    """
    if isinstance(model, Search):
        return score_functions(model.best_estimator_)
    if isinstance(model, KernelModel):
        return _of_kernel_model(model)
    if isinstance(model, CoRankRLS):
        return ScoreFunctions(list(model.views_), [coef[:, None] for coef in model.view_coef_])
    if isinstance(model, RankingPursuit):
        functions = model.functions_
        maps = [function.basis for function in functions]
        return ScoreFunctions(maps, [f.coef[:, None] for f in functions], model.intercept_)
    raise ValueError(
        f"{type(model).__name__} is none of rankwise's rankers with weights or a kernel; expected "
        "a RankRLS, RankSVM, RankLogistic, CoRankRLS or RankingPursuit, or the search for one."
    )


def _of_kernel_model(model: Any) -> ScoreFunctions:
    if np.ndim(model.intercept_):
        raise ValueError(
            f"{type(model).__name__} scores all labels of an instance, and a ranker of items is "
            "needed here. Its weights are coef_ (dual_coef_ for kernels) and intercept_; a model "
            "file keeps all of it (rankwise.persistence.save)."
        )
    if hasattr(model, "coef_"):
        columns = np.asarray(np.atleast_2d(model.coef_).T, dtype=np.float64)
    else:
        columns = model.dual_coef_.reshape(len(model.dual_coef_), -1)
    basis, items = getattr(model, "basis_indices_", None), getattr(model, "X_fit_", None)
    only = FeatureMap(model.make_kernel(), None, len(columns), basis, items)
    return ScoreFunctions([only], [columns], float(model.intercept_), model.output_shape_)
