"""RankRLSCV: RankRLS with alpha and kernel parameters chosen by exact cross-validation."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.errors import UndefinedMetricError
from rankwise.estimators.base import RankerMixin, notice_lost_groups
from rankwise.estimators.checks import check_alphas
from rankwise.estimators.cross_validation import (
    CrossValidation,
    cross_validate_alphas,
    warn_at_edge,
)
from rankwise.estimators.rank_rls import RankRLS
from rankwise.metrics import get_metric

__all__ = ["RankRLSCV"]

Array = NDArray[np.float64]


class _Choice(NamedTuple):
    """Where the best score is: in which kernel, at which alpha of each output."""

    kernel: int
    alphas: NDArray[np.intp]
    score: float


class RankRLSCV(RankerMixin, BaseEstimator):
    """RankRLS that chooses alpha, and kernel parameters if lists are given, by exact hold-out.

    With groups every alpha is judged by leave-group-out, without by leave-pair-out: each at
    about the cost of one fit, and equal to training again for each fold ([RankRLS09] sections
    3.2 to 3.4). The model is then trained on all data with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 31 values from 1e-8 to 1e2 times the mean squared distance between
        the items of a pair, which suits any scale of features and any amount of data.
    cv : "auto", int, splitter or iterable
        "auto" leaves out one group at a time, or one connected component of explicit preferences;
        a single list is judged by leave-pair-out up to 1,500 items where that applies, else by ten
        folds of items. Anything else as in `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str or Metric
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    alpha_per_output : bool
        Choose an alpha for each output instead of one for all.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    kernel, kernel_params, cost, ties, group_weight, beta, n_basis, basis, solver, tol, max_iter, \
random_state
        As in `RankRLS`.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_outputs,)
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas)
        or (n_params, n_alphas, n_outputs), "group_score" (list of arrays of shape (n_groups,
        n_alphas)), "groups" (their labels), "n_undefined", "cv" (which way was taken), and
        "predictions" if asked for.
    best_estimator_ : RankRLS
        The model trained on all data.
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, solver_
        As in `RankRLS`.

    Examples
    --------
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = RankRLSCV(scoring="ndcg@10").fit(X, y, groups)
    >>> round(model.best_score_, 3), model.cv_results_["cv"]
    (0.932, 'leave-group-out')
    """

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        cv: Any = "auto",
        scoring: Any = "disagreement",
        kernel: str | Callable[..., float] = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        beta: float = 0.0,
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        random_state: Any = None,
        alpha_per_output: bool = False,
        store_predictions: bool = False,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.beta = beta
        self.n_basis = n_basis
        self.basis = basis
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.alpha_per_output = alpha_per_output
        self.store_predictions = store_predictions

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y, groups
            As in ``RankRLS.fit``.

        Returns
        -------
        RankRLSCV
            The fitted estimator.
        """
        notice_lost_groups(y, groups, "fit")
        metric = get_metric(self.scoring)
        alphas = None if self.alphas is None else check_alphas(self.alphas, "alphas")
        grid = self._kernel_grid()
        runs = [
            cross_validate_alphas(self._model(**params), X, y, groups, alphas, self.cv, metric)
            for params in grid
        ]
        choice = self._choose(runs, metric.greater_is_better)
        chosen, which = np.unique(runs[choice.kernel].alphas[choice.alphas], return_inverse=True)
        path = self._model(**grid[choice.kernel]).path(X, y, groups, alphas=chosen)
        self.best_estimator_ = path.model(which if len(chosen) > 1 else 0)
        self._report(runs, grid, choice)
        validate_data(self, X, skip_check_array=True)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items by the model of the best parameters; see ``RankRLS.predict``."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def __getattr__(self, name: str) -> Any:
        shared = {
            "coef_",
            "dual_coef_",
            "X_fit_",
            "basis_indices_",
            "n_pairs_",
            "solver_",
            "n_iter_",
        }
        if name in shared and "best_estimator_" in self.__dict__:
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _model(self, **kernel: Any) -> RankRLS:
        shared = set(RankRLS().get_params()) - {"alpha", *kernel}
        return RankRLS(**kernel, **{name: getattr(self, name) for name in shared})

    def _kernel_grid(self) -> list[dict[str, Any]]:
        """Every combination of the kernel parameters that are given as lists."""
        values = {
            name: list(value) if np.ndim(value) else [value]
            for name, value in (
                ("gamma", self.gamma),
                ("degree", self.degree),
                ("coef0", self.coef0),
            )
        }
        for name, choices in values.items():
            if not choices:
                raise ValueError(f"{name} is an empty list; give at least one value to try.")
        return [
            dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())
        ]

    def _choose(self, runs: list[CrossValidation], greater_is_better: bool) -> _Choice:
        sign = 1.0 if greater_is_better else -1.0
        choices = []
        for k, run in enumerate(runs):
            score = sign * run.mean_score  # (n_alphas, n_outputs)
            if np.isnan(score).all():
                continue
            if not self.alpha_per_output:
                score = score.mean(axis=1, keepdims=True)
            at = np.array([_largest(column, run.alphas) for column in score.T])
            choices.append(_Choice(k, at, sign * float(np.mean(score[at, np.arange(len(at))]))))
        if not choices:
            raise UndefinedMetricError(
                f"{get_metric(self.scoring)} is undefined in every held-out fold; use larger "
                "folds, another cv or another scoring."
            )
        best = max(choices, key=lambda choice: sign * choice.score)
        if self.alphas is not None:
            self._warn_at_edge(runs[best.kernel], best)
        return best

    def _warn_at_edge(self, run: CrossValidation, best: _Choice) -> None:
        """Warn if the grid of the user ends where the score still improves."""
        score = run.mean_score if self.alpha_per_output else run.mean_score.mean(1, keepdims=True)
        for j, at in enumerate(best.alphas):
            warn_at_edge("alpha", run.alphas, score[:, j], at, stacklevel=5)

    def _report(
        self, runs: list[CrossValidation], grid: list[dict[str, Any]], choice: _Choice
    ) -> None:
        alphas = runs[choice.kernel].alphas[choice.alphas]
        self.alpha_ = float(alphas[0]) if not self.alpha_per_output else alphas
        self.best_score_ = choice.score
        searched = {n for n in ("gamma", "degree", "coef0") if np.ndim(getattr(self, n))}
        self.best_params_ = {
            "alpha": self.alpha_,
            **{name: grid[choice.kernel][name] for name in searched},
        }
        single = runs[0].mean_score.shape[1] == 1
        self.cv_results_ = {
            "alphas": [run.alphas for run in runs],
            "params": grid,
            "mean_score": np.stack(
                [run.mean_score[:, 0] if single else run.mean_score for run in runs]
            ),
            "group_score": [run.group_score for run in runs],
            "groups": runs[0].groups,
            "n_undefined": runs[choice.kernel].n_undefined,
            "cv": runs[0].way,
        }
        if self.store_predictions:
            self.cv_results_["predictions"] = [run.predictions for run in runs]


def _largest(scores: Array, alphas: Array) -> int:
    """The best score; of equal ones that of the largest alpha, the simplest model."""
    best = np.flatnonzero(scores == np.nanmax(scores))
    return int(best[np.argmax(alphas[best])])
