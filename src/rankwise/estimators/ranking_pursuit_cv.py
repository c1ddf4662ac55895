"""RankingPursuitCV: the number of steps of a pursuit chosen by cross-validation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.errors import UndefinedMetricError
from rankwise.estimators.alpha_grid import edges_of, flat_note, warn_at_edge_of_gamma
from rankwise.estimators.best_model import BestModel
from rankwise.estimators.cross_validation import standard_error
from rankwise.estimators.held_out_stages import Judge, folds_of_scored, make_judge, scores_of
from rankwise.estimators.lost_groups import warn_if_groups_were_lost
from rankwise.estimators.ranking_pursuit import RankingPursuit
from rankwise.estimators.unscored import SemiSupervisedMixin
from rankwise.features import View
from rankwise.progress import track

__all__ = ["RankingPursuitCV"]

Array = NDArray[np.float64]
SEARCHED = ("gamma", "degree", "coef0", "nu")
PATIENCE = {"n_iter_no_change", "validation_fraction", "scoring", "tol"}


class _Run(NamedTuple):
    """Scores of one setting of the searched parameters, for each number of steps."""

    params: dict[str, Any]
    mean: Array
    by_group: Array


@dataclass(eq=False, repr=False)
class RankingPursuitCV(SemiSupervisedMixin, BestModel):
    """RankingPursuit that chooses its number of steps, and parameters given as lists, by folds.

    One pursuit for each fold serves all numbers of steps up to `n_basis`. The model is then trained
    on all data with the best one; of equally good ones it is the smallest. Only scored items are
    held out: unscored ones take part in every fold.

    Parameters
    ----------
    n_basis : int
        Largest number of steps to try.
    cv : "auto", None, int, splitter or iterable
        "auto" makes five folds of whole groups, or of items if there is one group; None leaves out
        one group at a time; anything else as in `RankRLSCV`.
    scoring : str or Metric
        A ranking metric such as "disagreement" or "ndcg@10", averaged over the held-out groups, or
        "loss", averaged over the folds.
    gamma, degree, coef0, nu
        As in `RankingPursuit`; a list of values is searched.
    kernel, kernel_params, dictionary, beta, fit_intercept, backfit, views, search, cost, ties, \
group_weight, random_state
        As in `RankingPursuit`.

    Attributes
    ----------
    n_basis_ : int
        Chosen number of steps.
    best_score_ : float
        Its score, in the units of `scoring`.
    best_params_ : dict
        "n_basis" and the chosen ones of the parameters given as lists.
    cv_results_ : dict
        "params" (list of dict), "mean_score" of shape (n_params, n_basis), and "group_score", a
        list of arrays of shape (n_groups, n_basis), nan where a group has no score, and "note".
    best_estimator_ : RankingPursuit
        The model trained on all data.
    basis_indices_, choice_path_, coef_, coef_path_, dual_coef_, intercept_, n_pairs_, search_, \
train_error_
        As in `RankingPursuit`.

    Examples
    --------
    >>> from rankwise import RankingPursuitCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> model = RankingPursuitCV(30, gamma=[0.001, 0.01]).fit(X, y, groups)
    >>> model.n_basis_ <= 30, model.best_params_["gamma"] in (0.001, 0.01)
    (True, True)
    """

    shown = (
        "basis_indices_",
        "choice_path_",
        "coef_",
        "coef_path_",
        "dual_coef_",
        "intercept_",
        "n_pairs_",
        "search_",
        "train_error_",
    )

    n_basis: int = 50
    _: KW_ONLY
    cv: Any = "auto"
    scoring: Any = "disagreement"
    kernel: str | Callable[..., float] = "rbf"
    dictionary: str | int | ArrayLike = "items"
    beta: float = 0.0
    fit_intercept: bool = True
    backfit: str | None = "final"
    views: int | Sequence[View] | None = None
    nu: Any = 1.0
    search: str = "auto"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    random_state: Any = None

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Choose the number of steps, then learn from all data.

        Parameters
        ----------
        X, y, groups
            As in ``RankingPursuit.fit``, but no preference graph.

        Returns
        -------
        RankingPursuitCV
            The fitted estimator.
        """
        warn_if_groups_were_lost(y, groups, "fit")
        model = self._model(self.n_basis, {})
        judge = make_judge(self.scoring, model._options())
        runs = [self._run(params, X, y, groups, judge) for params in self._grid()]
        run, at = self._choose(runs, judge)
        best = np.array([(max if judge.greater_is_better else min)(each.mean) for each in runs])
        warn_at_edge_of_gamma([each.params for each in runs], best, run.params, stacklevel=3)
        self.n_basis_ = at + 1
        self.best_score_ = float(run.mean[at])
        self.best_params_ = {"n_basis": self.n_basis_, **run.params}
        self.cv_results_ = {
            "params": [each.params for each in runs],
            "mean_score": np.stack([each.mean for each in runs]),
            "group_score": [each.by_group for each in runs],
            "note": _note(run, at),
        }
        self.best_estimator_ = self._model(self.n_basis_, run.params).fit(X, y, groups)
        validate_data(self, X, skip_check_array=True)
        return self

    def predict_views(self, X: Any) -> Array:
        """Scores by each view; see ``RankingPursuit.predict_views``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Scores after each step; see ``RankingPursuit.staged_predict``."""
        check_is_fitted(self)
        yield from self.best_estimator_.staged_predict(X)

    def _model(self, n_basis: int, params: dict[str, Any]) -> RankingPursuit:
        shared = set(RankingPursuit().get_params()) - PATIENCE - {"n_basis"}
        given = {name: getattr(self, name) for name in shared if name not in params}
        return RankingPursuit(n_basis, **given, **params)

    def _grid(self) -> list[dict[str, Any]]:
        """Every combination of the parameters that are given as lists."""
        lists = {n: list(getattr(self, n)) for n in SEARCHED if np.ndim(getattr(self, n))}
        for name, choices in lists.items():
            if not choices:
                raise ValueError(f"{name} is an empty list; give at least one value to try.")
        return [
            dict(zip(lists, point, strict=True)) for point in itertools.product(*lists.values())
        ]

    def _run(
        self, params: dict[str, Any], X: Any, y: Any, groups: ArrayLike | None, judge: Judge
    ) -> _Run:
        model = self._model(self.n_basis, params)
        X, target = model._check_training_data(X, y, groups)
        part = scores_of(target)
        scores = []
        for held in track(folds_of_scored(part, self.cv), "pursuit without a fold"):
            model._fit_rows(X, part, held, check_random_state(self.random_state))
            staged = _pad(model._staged(X[held]), int(self.n_basis))
            scores.append(judge.by_group(part, held, staged))
        by_group = np.concatenate(scores)
        try:
            mean = judge.mean(by_group)
        except UndefinedMetricError as error:
            raise UndefinedMetricError(f"{error} Or use fewer folds: cv={self.cv!r}.") from None
        return _Run(params, mean, by_group)

    def _choose(self, runs: list[_Run], judge: Judge) -> tuple[_Run, int]:
        """The best run and its best number of steps less one; the first of equal ones."""
        best, at = runs[0], 0
        for run in runs:
            for p, value in enumerate(run.mean):
                if judge.is_better(float(value), float(best.mean[at])):
                    best, at = run, p
        return best, at


def _note(run: _Run, at: int) -> str:
    """What is to be said of the choice; `n_basis` is a budget, so its end is no cause to warn."""
    steps = np.arange(1.0, len(run.mean) + 1)
    if edges_of(steps, run.mean, at).upper:
        return f"the best n_basis {at + 1} is the largest tried: more steps may be better"
    return flat_note("n_basis", steps, run.mean, standard_error(run.by_group), at)


def _pad(staged: Array, n_steps: int) -> Array:
    """A pursuit that ended early stays as it is for the rest of the steps."""
    if not staged.shape[1]:
        return np.zeros((len(staged), n_steps))
    missing = n_steps - staged.shape[1]
    return np.concatenate([staged, np.repeat(staged[:, -1:], missing, axis=1)], axis=1)
