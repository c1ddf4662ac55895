"""CalibratedRanker: a ranker that says how sure it is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import Array, Indices
from rankwise.estimators import RankRLSCV
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.pipelines import last_step
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.leaderboard.standing import standing_of
from rankwise.model_selection.group_routing import needs_groups
from rankwise.targets import split_weighted, with_weights
from rankwise.uncertainty.calibration import ProbabilityMap, Reliability, fit_map, reliability
from rankwise.uncertainty.held_out_pairs import judged_pairs
from rankwise.uncertainty.left_out import in_groups, leave_units_out, scores_of
from rankwise.uncertainty.standard_errors import Difference, Jackknife, check_folds, spreads_of

SHOWN = ("coef_", "dual_coef_", "X_fit_", "basis_indices_", "alpha_", "cv_results_", "solver_")
"""Attributes of the ranker inside that this one has, too."""


class RankInterval(NamedTuple):
    """Ranks of items in their groups, and where they may be.

    Attributes
    ----------
    rank : ndarray of int, shape (n_items,)
        1 is best.
    low, high : ndarray of int, shape (n_items,)
        The ends of the interval, the better one first.
    """

    rank: Indices
    low: Indices
    high: Indices


@dataclass(eq=False, repr=False)
class CalibratedRanker(RankerMixin, BaseEstimator):
    """A ranker with standard errors, probabilities and intervals of ranks.

    The scores are those of the estimator, trained on all data. Their standard errors come from
    leaving out every unit (`rankwise.uncertainty.jackknife`), for RankRLS without training again.
    The probability that item i is above item j is a logistic curve of the difference of their
    scores, flatter where its standard error is large:

        P(i above j) = σ(s d / √(1 + c e²))

    s and c are fitted to pairs that were held out, exact where the estimator has a shortcut.

    Parameters
    ----------
    estimator : estimator, optional
        `RankRLS`, `RankRLSCV` (the default) or a Pipeline that ends in one; or any other ranker,
        which is trained again without each of `n_folds` folds of units.
    units : {"auto", "groups", "items", "comparisons"} or array-like
        What is independent; see `rankwise.uncertainty.jackknife`.
    n_folds : int
        Number of folds for rankers that are trained again.
    max_pairs : int
        Held-out pairs that the curve is fitted to; if there are more, so many drawn at random.
    random_state : int, Generator or None
        Seed of these draws.

    Attributes
    ----------
    estimator_ : estimator
        Trained on all data.
    units_, n_units_ : str, int
        What was left out, and how many of them there are.
    n_pairs_ : int
        Held-out pairs that the curve was fitted to.
    log_loss_ : float
        Mean of −log P of these pairs; log 2 = 0.693 is that of a coin.
    slope_, error_weight_ : float
        s and c.
    reliability_ : tuple of ndarray
        `Reliability` of the held-out pairs: mean probability, share and number by bin.
    root_, coefficients_ : ndarray or None
        Root of the covariance of the coefficients, and the coefficients themselves.
    members_ : list of estimator or None
        Models without each fold, for rankers that are trained again.

    Notes
    -----
    The probability is about a pair of which one item is better: tied pairs are not used.

    Errors are those of sampling other units. They do not know that regularization pulls differences
    towards zero, that a choice of alpha has errors of its own, or that new data may come
    from somewhere else.

    Examples
    --------
    >>> from rankwise import CalibratedRanker
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = CalibratedRanker().fit(X, y, groups)
    >>> value, error = model.predict_difference(X, 0, [1, 2])
    >>> model.predict_above(X, 0, [1, 2]).round(2)
    array([...])
    >>> model.rank_interval(X[:3]).low
    array([...])
    """

    estimator: Any = None
    _: KW_ONLY
    units: Any = "auto"
    n_folds: int = 10
    max_pairs: int = 20_000
    random_state: Any = 0

    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train the estimator, find its standard errors, and fit the curve to held-out pairs.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the estimator; one output. Held-out pairs count alike.

        Returns
        -------
        CalibratedRanker
            The fitted estimator.
        """
        check_folds(self.n_folds)
        if not isinstance(self.max_pairs, Integral) or self.max_pairs < 1:
            raise ValueError(
                f"max_pairs={self.max_pairs!r}; expected a whole number of at least 1."
            )
        _check_one_output(y)
        y, groups = with_weights(y, groups, sample_weight, X)
        estimator = RankRLSCV() if self.estimator is None else self.estimator
        left = leave_units_out(estimator, X, y, groups, units=self.units, n_folds=self.n_folds)
        found = spreads_of(left)[0][0]
        labels = None if isinstance(y, PreferenceGraph) else split_weighted(y, groups)[1]
        seen = in_groups(found.model, X, labels)
        pairs = judged_pairs(left, found, seen, int(self.max_pairs), self._rng())
        curve = fit_map(pairs.difference, pairs.error)
        probability = curve.probability(pairs.difference, pairs.error)
        self.estimator_: Any = found.model
        self.units_: str = found.units
        self.n_units_: int = found.n_units
        self.root_: Array | None = found.root
        self.coefficients_: Array | None = found.coefficients
        self.members_: list[Any] | None = found.members
        self.slope_: float = curve.slope
        self.error_weight_: float = curve.error_weight
        self.n_pairs_: int = len(pairs.first)
        self.log_loss_: float = float(-np.log(np.maximum(probability, 1e-300)).mean())
        self.reliability_: tuple[Array, ...] = tuple(reliability(probability))
        validate_data(self, X, skip_check_array=True)
        return self

    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Score items by the estimator that was trained on all data.

        `groups` are for estimators that compare an item with the others of its group, such as
        `AutoRanker`.
        """
        check_is_fitted(self)
        scores: NDArray[Any] = scores_of(self.estimator_, in_groups(self.estimator_, X, groups))
        return scores

    def predict_difference(
        self, X: Any, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Difference:
        """By how much items i are above items j, with the standard error of that.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X; one number stands for as many as there are of the other.
        groups : array-like of shape (n_items,), optional
            As in `predict`; X has whole groups then.

        Returns
        -------
        Difference
            `value` and `error`, each of shape (n_pairs,). ``value ± t · error`` is an interval,
            with a quantile t of Student's t distribution of ``n_units_ − 1`` degrees of freedom.
        """
        check_is_fitted(self)
        seen = in_groups(self.estimator_, X, groups)
        return self.jackknife().predict_difference(seen, i, j)

    def predict_above(
        self, X: Any, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Array:
        """Probability that item i is above item j, if one of them is above the other.

        X, i, j and groups are as in `predict_difference`. Equal items have ½.
        """
        difference = self.predict_difference(X, i, j, groups)
        return ProbabilityMap(self.slope_, self.error_weight_).probability(*difference)

    def rank_interval(
        self, X: Any, groups: ArrayLike | None = None, level: float = 0.95
    ) -> RankInterval:
        """Ranks of the items in their groups, with intervals.

        Another item is surely above if the interval of the difference, by the jackknife and
        Student's t, is above 0. The best rank is 1 + the number of items surely above; the worst
        rank leaves out those surely below.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels; None ranks all items in one list.
        level : float
            Of the intervals of the differences. The ranks by the true scores are inside at least as
            often on average over the items.

        Returns
        -------
        RankInterval
            `rank`, `low` and `high`.
        """
        if not 0 < level < 1:
            raise ValueError(f"level={level!r}; expected a number between 0 and 1.")
        found = self.jackknife()
        seen = in_groups(self.estimator_, X, groups)
        scores, spread = found.predict(seen), found.spread(seen)
        within = encode_groups(groups, len(scores)).codes + 1
        found_ranks = standing_of(scores, spread, np.empty((0, len(scores))), within, level)
        assert found_ranks.best_rank is not None
        assert found_ranks.worst_rank is not None
        return RankInterval(found_ranks.rank, found_ranks.best_rank, found_ranks.worst_rank)

    def predict_error(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """Standard error of each score about the mean score of its group.

        The level of the scores of a group means nothing, so it is the distance to the mean that has
        an error. X and groups are as in `rank_interval`.
        """
        root = self.jackknife().spread(in_groups(self.estimator_, X, groups)).root
        codes = encode_groups(groups, len(root)).codes
        sizes = np.bincount(codes)
        sums = np.zeros((len(sizes), root.shape[1]))
        np.add.at(sums, codes, root)
        return np.asarray(np.linalg.norm(root - (sums / sizes[:, None])[codes], axis=1))

    def jackknife(self) -> Jackknife:
        """The standard errors behind all this."""
        check_is_fitted(self)
        return Jackknife(
            self.estimator_,
            self.units_,
            self.n_units_,
            coefficients=self.coefficients_,
            root=self.root_,
            members=self.members_,
        )

    def reliability(self) -> Reliability:
        """How often held-out pairs came out as their probability said."""
        check_is_fitted(self)
        return Reliability(*self.reliability_)

    def __getattr__(self, name: str) -> Any:
        if name in SHOWN and "estimator_" in self.__dict__:
            return getattr(last_step(self.estimator_), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.random_state)

    def get_metadata_routing(self) -> Any:
        """Groups are asked for in `predict` if the estimator asks for them."""
        request = super().get_metadata_routing()
        if self.estimator is not None and needs_groups(self.estimator):
            request.predict.add_request(param="groups", alias=True)
        return request

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(RankRLSCV() if self.estimator is None else self.estimator)
        tags.input_tags = inner.input_tags
        return tags


def _check_one_output(y: Any) -> None:
    scores = getattr(y, "scores", y)
    shape: tuple[int, ...] = () if scores is None else np.shape(np.asarray(scores))
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has shape {shape}; CalibratedRanker has one output, so fit one for each column."
        )
