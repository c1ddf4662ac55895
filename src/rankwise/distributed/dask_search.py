"""RankRLS with alpha selected by leave-group-out, on Dask collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.distributed.dask_rankers import RankRLS
from rankwise.kernels.kernel import KernelName
from rankwise.metrics.registry import MetricName
from rankwise.preprocessing.group_columns import refuse_other_keywords
from rankwise.rankers import rank_rls
from rankwise.rankers.group_sample import select_alpha
from rankwise.validation import check_int, restored_on_failure

if TYPE_CHECKING:
    from rankwise.arrays import Array


class RankRLSCV(BaseEstimator):
    """RankRLS on Dask collections, with alpha selected by exact leave-group-out.

    Use it instead of `rankwise.RankRLSCV` for data that are spread over a cluster. The workers add
    up their rows once. They also send the rows of `n_held_out` groups, drawn by the hash values of
    their labels; the client holds out each of these groups from the model of all other rows
    ([RankRLS09] section 3.3). If `n_held_out` is at least the number of groups, the result equals
    that of `rankwise.RankRLSCV`.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=None
        Candidates; None is the 40 values of `rankwise.RankRLSCV`.
    scoring : str, Metric or function, default="disagreement"
        Metric that selects alpha.
    n_held_out : int, default=1000
        Number of groups that are held out in turn.
    kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, beta, basis
        As in `rankwise.distributed.RankRLS`, with the same defaults.

    Attributes
    ----------
    alpha_ : float
        The selected alpha.
    best_score_ : float
        Its value of the metric on the held-out groups.
    cv_results_ : dict
        "alphas" and "mean_score" of shape (n_alphas,), "group_score" of shape (n_groups, n_alphas)
        and "groups", the labels of the held-out groups.
    best_estimator_ : RankRLS
        The model of all rows, of `rankwise.distributed`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import rankwise
    >>> from rankwise.distributed import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.random((90, 2)), np.repeat(np.arange(9), 10)
    >>> y = X[:, 0] + rng.random(90)
    >>> lazy = [da.from_array(values, chunks=25) for values in (X, y, groups)]
    >>> model = RankRLSCV().fit(*lazy)
    >>> bool(np.isclose(model.alpha_, rankwise.RankRLSCV().fit(X, y, groups).alpha_))
    True
    """

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        scoring: MetricName = "disagreement",
        n_held_out: int = 1000,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        beta: float = 0.0,
        basis: ArrayLike | None = None,
    ) -> None:
        self.alphas = alphas
        self.scoring = scoring
        self.n_held_out = n_held_out
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.beta = beta
        self.basis = basis

    @refuse_other_keywords
    @restored_on_failure
    def fit(self, X: Any, y: Any, groups: Any) -> Self:
        """Add up the rows on the workers, select alpha, and solve.

        Parameters
        ----------
        X : dask array or data frame of shape (n_items, n_features)
            Items. Blocks may have unknown lengths.
        y : dask array, series or data frame, or array-like
            Relevance, with the blocks of X; larger is better.
        groups : dask array or series, or array-like
            Group labels, with the blocks of X.

        Returns
        -------
        RankRLSCV
            The fitted estimator.
        """
        if groups is None:
            raise ValueError(
                "groups=None; leave-group-out needs group labels. Use RankRLS with a given alpha "
                "for one list."
            )
        check_int("n_held_out", self.n_held_out, "the number of groups to hold out", least=1)
        parameters = self.get_params(deep=False)
        for name in ("alphas", "scoring", "n_held_out"):
            del parameters[name]
        model = RankRLS(**parameters)
        totals, features = model.compute_totals(X, y, groups, self.n_held_out)
        selection = select_alpha(totals.statistics, totals.sample, self.alphas, self.scoring)
        model.set_params(alpha=selection.alpha)
        model.store_solution(totals, features, selection.weights)
        self.best_estimator_ = model
        self.alpha_ = selection.alpha
        self.best_score_ = selection.best_score
        self.cv_results_: dict[str, Array] = {
            "alphas": selection.alphas,
            "mean_score": selection.mean_score,
            "group_score": selection.group_score,
            "groups": selection.groups,
        }
        return self

    def predict(self, X: Any) -> Any:
        """Score items with the model of the selected alpha; see `RankRLS.predict`.

        Parameters
        ----------
        X : dask array or data frame, or X of the estimator of `rankwise`
            Items.

        Returns
        -------
        dask array, dask series or data frame, or ndarray
            Scores; larger is better.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def to_local(self) -> rank_rls.RankRLS:
        """Return the model of the selected alpha as an estimator of `rankwise`, without Dask.

        Returns
        -------
        RankRLS
            The model in memory.
        """
        check_is_fitted(self)
        model: rank_rls.RankRLS = self.best_estimator_.to_local()
        return model
