"""ConditionalRankRLSCV: ranks tables with alpha chosen by exact hold-out of rows or columns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.conditional_rank_rls import ConditionalRankRLS, TableMixin
from rankwise.estimators.search import BaseSearch
from rankwise.machine import calm


@dataclass(eq=False, repr=False)
class ConditionalRankRLSCV(TableMixin, BaseSearch):
    """ConditionalRankRLS that chooses alpha, and kernel widths if lists are given.

    Every alpha is judged on rows, columns or both that the model has not seen: choose what
    will be new when the model is used. Exact, and without training again if all cells are known.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default 31 values from 1e-8 to 1e2 times the mean squared distance in a pair,
        widened as in `RankRLSCV`.
    leave : {"rows", "columns", "both"}
        What is held out.
    cv : "auto", None, int, splitter or iterable
        As in `ConditionalRankRLS.leave_out`.
    scoring : str or Metric
        Any name of `rankwise.metrics`; each row is a group.
    row_gamma, column_gamma
        Kernel widths; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``: a list of arrays of shape
        (n_rows · n_columns, n_alphas).
    row_kernel, column_kernel, row_kernel_params, column_kernel_params, ranked, cost, ties, \
group_weight, intercept, tol, max_iter
        As in `ConditionalRankRLS`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel widths.
    cv_results_ : dict
        As in `RankRLSCV`; each row is a group.
    best_estimator_ : ConditionalRankRLS
        The model trained on all data; its attributes are those of the search, too.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ConditionalRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.standard_normal((20, 3)), rng.standard_normal((8, 2))
    >>> Y = drugs @ rng.standard_normal((3, 2)) @ targets.T + rng.standard_normal((20, 8))
    >>> model = ConditionalRankRLSCV(leave="columns").fit(drugs, targets, Y)
    >>> model.cv_results_["cv"], round(model.best_score_, 2)
    ('leave-column-out', 0.15)
    """

    model_class = ConditionalRankRLS
    lists = ("row_gamma", "column_gamma")
    shown = (
        *("coef_", "row_coef_", "column_coef_", "rows_fit_", "columns_fit_"),
        *(
            "feature_names_",
            "n_columns_",
            "n_column_features_",
            "n_pairs_",
            "n_iter_",
            "n_features_in_",
        ),
    )

    alphas: ArrayLike | None = None
    _: KW_ONLY
    leave: str = "rows"
    cv: Any = "auto"
    scoring: Any = "disagreement"
    row_kernel: Any = "linear"
    column_kernel: Any = "linear"
    row_gamma: Any = None
    column_gamma: Any = None
    row_kernel_params: dict[str, Any] | None = None
    column_kernel_params: dict[str, Any] | None = None
    ranked: str = "columns"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    intercept: bool | str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None
    store_predictions: bool = False

    @calm
    def fit(self, rows: Any, columns: Any, Y: Any) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        rows, columns, Y
            As in `ConditionalRankRLS.fit`.

        Returns
        -------
        ConditionalRankRLSCV
            The fitted estimator.
        """
        self._search(rows, columns, Y, self.leave)
        return self

    def predict(self, rows: Any, columns: Any = None) -> Array:
        """Scores of cells; see `ConditionalRankRLS.predict`."""
        check_is_fitted(self)
        scores: Array = self.best_estimator_.predict(rows, columns)
        return scores
