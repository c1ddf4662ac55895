"""LabelRankerCV: label ranking with alpha and kernel parameters chosen by exact hold-out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from rankwise.estimators.label_ranker import LabelMixin, LabelRanker
from rankwise.estimators.search import Search
from rankwise.frames import as_frame
from rankwise.machine import calm


@dataclass(eq=False, repr=False)
class LabelRankerCV(LabelMixin, Search):
    """LabelRanker that chooses alpha, and kernel parameters if lists are given.

    Every alpha is judged by leave-one-instance-out: exact, and without training again if all scores
    are known or the data are small ([RankRLS09] section 3.3); else by five folds of instances.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default 31 values from 1e-8 to 1e2 times the mean squared distance in a pair,
        widened as in `RankRLSCV`.
    cv : "auto", None, int, splitter or iterable
        As in `LabelRanker.leave_out`; splitters get the instances.
    scoring : str or Metric
        Any name of `rankwise.metrics`, such as "tau", "spearman", "hit@1" or "ndcg@5".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``: a list of arrays of shape
        (n_instances · n_labels, n_alphas).
    values, cost, ties, group_weight, intercept, kernel, kernel_params, n_basis, basis, solver, \
tol, max_iter, random_state
        As in `LabelRanker`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        As in `RankRLSCV`; each instance is a group.
    best_estimator_ : LabelRanker
        The model trained on all data; its attributes are those of the search, too.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import LabelRankerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3))
    >>> Y = X @ rng.standard_normal((3, 4)) + 0.1 * rng.standard_normal((60, 4))
    >>> model = LabelRankerCV().fit(X, Y)
    >>> model.cv_results_["cv"], round(model.best_score_, 2)
    ('leave-row-out', 0.96)
    """

    model_class = LabelRanker
    shown = (*Search.shown, "intercept_", "labels_")

    alphas: ArrayLike | None = None
    _: KW_ONLY
    cv: Any = "auto"
    scoring: Any = "tau"
    values: str = "scores"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    intercept: bool = True
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None
    random_state: Any = None
    store_predictions: bool = False

    @calm
    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y
            As in `LabelRanker.fit`.

        Returns
        -------
        LabelRankerCV
            The fitted estimator.
        """
        self._search(X, y)
        frame = as_frame(X)
        validate_data(self, X if frame is None else frame, skip_check_array=True)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
