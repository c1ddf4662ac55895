"""CalibratedRanker: a ranker with standard errors, probabilities and prediction sets."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from rankwise.arrays import Array, Indices, MatrixLike, Numbers
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.fitted_schema import FittedSchema, Floats, ListOf, Model, Number, Values
from rankwise.graphs.supervision import TargetLike, pack_weights
from rankwise.groups import encode_groups, indices_by_group
from rankwise.metrics.grades import MAX_DISTINCT_GRADES
from rankwise.model_selection.conformal import in_best_set
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.preprocessing.group_columns import refuse_other_keywords
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.rank_rls_cv import RankRLSCV
from rankwise.rankers.summary import Calibration, Summary
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.held_out_pairs import gaps_of_grades, held_out_pairs
from rankwise.uncertainty.jackknife_errors import Difference, Jackknife, Units, leave_units_out
from rankwise.uncertainty.possible_ranks import possible_ranks, ranks_within
from rankwise.uncertainty.probability_map import (
    ProbabilityMap,
    Reliability,
    fit_probability_map,
    reliability,
)
from rankwise.validation import check_int, restored_on_failure

SMALLEST_PROBABILITY = 1e-300  # its logarithm is finite


class RankInterval(NamedTuple):
    """Ranks of items in their groups, with intervals.

    Attributes
    ----------
    rank : ndarray of int, shape (n_items,)
        1 is best.
    low, high : ndarray of int, shape (n_items,)
        The ends of the interval, the better rank first.
    """

    rank: Indices
    low: Indices
    high: Indices


class CalibratedRanker(RankerMixin, BaseEstimator):
    """A ranker with standard errors, probabilities, intervals of ranks and prediction sets.

    Use it to report how certain a ranking is, or how many items must be inspected.

    The scores are predicted by the estimator fitted to all data. Their standard errors are
    estimated by leaving out each unit (`rankwise.uncertainty.jackknife`), without refits for
    RankRLS. The probability that item i is above item j is a logistic function of the difference d
    of their scores, flattened by its standard error e:

        P(i above j) = σ(s d / √(1 + c e²))

    s and c are fitted to held-out pairs, exactly where the estimator has a shortcut.

    Parameters
    ----------
    estimator : estimator, default=None
        `RankRLS`, `RankRLSCV` or a Pipeline that ends in one; or any other ranker, which is
        refitted without each of `n_folds` folds of units. None means ``RankRLSCV()``.
    units : {"auto", "groups", "items", "comparisons"} or array-like, default="auto"
        Independent units; see `rankwise.uncertainty.jackknife`.
    n_folds : int, default=10
        Number of folds for rankers that are refitted.
    max_pairs : int, default=20_000
        Number of held-out pairs to which the function is fitted; a random sample if there are more.
    random_state : int, Generator or None, default=0
        Seed of the sample.

    Attributes
    ----------
    estimator_ : estimator
        Estimator fitted to all data.
    units_, n_units_ : str, int
        Kind and number of the units that were left out.
    n_pairs_ : int
        Number of held-out pairs to which the function was fitted.
    log_loss_ : float
        Mean of −log P of these pairs; probabilities of ½ give log 2 = 0.693.
    slope_, error_weight_ : float
        s and c.
    reliability_ : tuple of ndarray
        `Reliability` of the held-out pairs: mean probability, share and number by bin.
    gaps_ : list of ndarray
        Conformity scores of `best_set`: for each held-out group the difference of the highest score
        to that of its best item, and to the highest score of the items of each grade.
    grades_ : ndarray
        Relevance levels that `grade` accepts: all but the lowest, if there are at most 32 of them.
    root_ : ndarray or None
        Root of the covariance of the coefficients.
    members_ : list of estimator or None
        Models without each fold, for rankers that are refitted.

    Notes
    -----
    The probability is conditional on one item being better: tied pairs are not used.

    Errors are due to sampling of units. They do not include the bias of regularization towards
    zero, the choice of alpha, or a change of the distribution of new data.

    Examples
    --------
    >>> from rankwise import CalibratedRanker
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = CalibratedRanker().fit(X, y, groups)
    >>> value, error = model.predict_difference(X, 0, [1, 2])
    >>> model.predict_above(X, 0, [1, 2]).round(2).tolist()
    [0.59, 1.0]
    >>> ranks = model.rank_interval(X[:3])
    >>> list(zip(ranks.low.tolist(), ranks.high.tolist()))
    [(1, 2), (1, 2), (3, 3)]
    >>> model.best_set(X[:6], level=0.9).tolist()  # the items to inspect
    [False, False, False, False, False, True]
    """

    _fitted: ClassVar[FittedSchema] = {
        "estimator_": Model(),
        "members_": ListOf(Model(), optional=True),
        "root_": Floats("terms units", optional=True),
        "gaps_": ListOf(Floats("gaps")),
        "grades_": Values(),
        "slope_": Number(),
        "error_weight_": Number(),
        "log_loss_": Values(),
        "n_pairs_": Values(),
        "n_units_": Values(),
        "units_": Values(),
        "reliability_": Values(),
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        units: Units = "auto",
        n_folds: int = 10,
        max_pairs: int = 20_000,
        random_state: int | np.random.Generator = 0,
    ) -> None:
        self.estimator = estimator
        self.units = units
        self.n_folds = n_folds
        self.max_pairs = max_pairs
        self.random_state = random_state

    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
    def fit(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator, its standard errors, and the probabilities of held-out pairs.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the estimator; one output. Held-out pairs have equal weights.

        Returns
        -------
        CalibratedRanker
            The fitted ranker.
        """
        max_pairs = check_int("max_pairs", self.max_pairs, least=1)
        y, groups = pack_weights(y, groups, sample_weight, X)

        # The model of all data, and its standard errors from the models without each unit
        left_out = leave_units_out(
            self._wrapped_estimator(), X, y, groups, units=self.units, n_folds=self.n_folds
        )
        errors = left_out.jackknife()
        self.estimator_: BaseEstimator = errors.model
        self.units_: str = errors.units
        self.n_units_: int = errors.n_units
        self.root_: Array | None = errors.root  # of the covariance of the coefficients
        self.members_: list[BaseEstimator] | None = errors.members

        # Probabilities, fitted to held-out pairs whose first item is the better one
        rng = np.random.default_rng(self.random_state)
        pairs = held_out_pairs(left_out, errors, max_pairs, rng)
        difference, error = pairs.difference
        probability_map = fit_probability_map(difference, error)
        self.slope_: float = probability_map.slope
        self.error_weight_: float = probability_map.error_weight
        probability = probability_map.probability(difference, error)
        log_probability = np.log(np.maximum(probability, SMALLEST_PROBABILITY))
        self.log_loss_: float = float(-log_probability.mean())
        self.n_pairs_: int = len(pairs.better)
        self.reliability_: tuple[Array, ...] = tuple(reliability(probability))

        # Conformity scores of prediction sets
        grades, gaps = gaps_of_grades(left_out)
        self.grades_: Array = grades
        self.gaps_: list[Array] = gaps
        validate_data(self, X, skip_check_array=True)
        return self

    def predict(self, X: MatrixLike, groups: ArrayLike | None = None) -> Numbers:
        """Predict scores by the estimator fitted to all data.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels, for estimators that compare an item with the other items of its group,
            such as `AutoRanker`.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores; a higher score means a better rank.
        """
        check_is_fitted(self)
        return np.asarray(predict_items(self.estimator_, X, groups))

    def predict_difference(
        self, X: MatrixLike, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Difference:
        """Predict the differences of the scores of items i and j, with standard errors.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X; a single number is repeated.
        groups : array-like of shape (n_items,), default=None
            As in `predict`; X must then consist of whole groups.

        Returns
        -------
        Difference
            `value` and `error`, each of shape (n_pairs,). ``value ± t · error`` is an interval,
            with a quantile t of Student's t distribution of ``n_units_ − 1`` degrees of freedom.
        """
        return self.jackknife().predict_difference(X, i, j, groups)

    def predict_above(
        self, X: MatrixLike, i: ArrayLike, j: ArrayLike, groups: ArrayLike | None = None
    ) -> Array:
        """Predict the probability that item i is above item j, given that they are not tied.

        Parameters
        ----------
        X, i, j, groups
            As in `predict_difference`.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Probabilities; ½ for equal items.
        """
        value, error = self.predict_difference(X, i, j, groups)
        return ProbabilityMap(self.slope_, self.error_weight_).probability(value, error)

    def rank_interval(
        self, X: MatrixLike, groups: ArrayLike | None = None, level: float = DEFAULT_CONFIDENCE
    ) -> RankInterval:
        """Predict the ranks of the items in their groups, with intervals.

        The best rank is 1 + the number of items significantly above, the worst rank excludes the
        items significantly below: those whose interval of the difference, by the jackknife and
        Student's t, does not contain 0.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels; None ranks all items in one list.
        level : float, default=0.95
            Confidence level of the intervals of the differences. On average over the items, the
            intervals contain the ranks by the true scores at least this often.

        Returns
        -------
        RankInterval
            `rank`, `low` and `high`.
        """
        if not 0 < level < 1:
            raise ValueError(f"level={level!r}; expected a number between 0 and 1.")
        errors = self.jackknife()
        scores = errors.predict(X, groups)
        lists = encode_groups(groups, len(scores)).codes
        covariance_of_scores = errors.spread(X, groups)
        best, worst = possible_ranks(scores, covariance_of_scores, lists, level)
        return RankInterval(ranks_within(scores, lists), best, worst)

    def best_set(
        self,
        X: MatrixLike,
        groups: ArrayLike | None = None,
        level: float = 0.9,
        grade: float | None = None,
    ) -> NDArray[np.bool_]:
        """Predict the top items of each list that contain its best item with a given probability.

        Use it to report how many results must be inspected: conformal prediction from exactly
        held-out groups (`rankwise.model_selection.conformal`).

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels; None makes all items one list.
        level : float, default=0.9
            Share of new lists whose set contains the requested item. G training groups allow at
            most G/(G + 1): 0.9 requires 9 groups, 0.95 requires 19, 0.99 requires 99.
        grade : float, default=None
            The requested item is any item with at least this relevance. None requests the best item
            of the list, or one of those tied for it.

        Returns
        -------
        ndarray of bool, shape (n_items,)
            Whether an item is in the set of its list. The item with the highest score always is.

        Raises
        ------
        ValueError
            If there were too few groups for the level, or the model was not fitted to groups.

        Notes
        -----
        The level holds for lists from the distribution of the training lists that contain both
        requested and other items, on average over such lists. It does not hold for another kind of
        queries or items (covariate shift), nor for each kind of list separately.
        """
        check_is_fitted(self)
        lists = encode_groups(groups, _num_samples(X)).codes
        # gaps_ has the distances to the best item, then those to the items of each grade
        index = 0
        if grade is not None:
            index = 1 + int(np.searchsorted(self.grades_, grade))  # lowest grade from there on
        if index == len(self.gaps_):
            raise ValueError(
                f"grade={grade!r}; expected one of the relevance levels of the training data, "
                f"{self.grades_.tolist()} (empty if there are more than {MAX_DISTINCT_GRADES})."
            )
        scores = np.asarray(self.predict(X, groups), dtype=np.float64)
        return in_best_set(scores, lists, self.gaps_[index], level)

    def predict_error(self, X: MatrixLike, groups: ArrayLike | None = None) -> Array:
        """Predict the standard error of each score relative to the mean score of its group.

        The level of the scores of a group is arbitrary; the difference from its mean is not.

        Parameters
        ----------
        X, groups
            As in `rank_interval`.

        Returns
        -------
        ndarray of shape (n_items,)
            Standard errors.
        """
        # Root F of the covariance F Fᵀ of the scores, shape (n_items, n_columns); its rows are
        # centered to get the errors of the scores minus the mean score of their group
        root = self.jackknife().spread(X, groups).root
        codes = encode_groups(groups, len(root)).codes
        for rows in indices_by_group(codes):
            mean_of_group = root[rows].mean(axis=0)
            root[rows] -= mean_of_group
        standard_error = np.linalg.norm(root, axis=1)
        return np.asarray(standard_error)

    def jackknife(self) -> Jackknife:
        """Return the standard errors of the coefficients and scores.

        Returns
        -------
        Jackknife
            As returned by `rankwise.uncertainty.jackknife`.
        """
        check_is_fitted(self)
        return Jackknife(
            model=self.estimator_,
            units=self.units_,
            n_units=self.n_units_,
            root=self.root_,
            members=self.members_,
        )

    def reliability(self) -> Reliability:
        """Return the share of correctly ordered held-out pairs by predicted probability.

        Returns
        -------
        Reliability
            Bins of the held-out pairs.
        """
        check_is_fitted(self)
        return Reliability(*self.reliability_)

    def summary(self) -> Summary:
        """Summarize the calibrated ranker, and the data behind its standard errors.

        Returns
        -------
        Summary
            A record; ``print`` shows it as text.
        """
        check_is_fitted(self)
        summary = Summary(type(self.estimator_).__name__)
        if isinstance(self.estimator_, RankerMixin):
            summary = self.estimator_.summary()
        calibration = Calibration(
            units=self.units_,
            n_units=self.n_units_,
            n_pairs=self.n_pairs_,
            log_loss=self.log_loss_,
            is_refitted=self.members_ is not None,
        )
        return replace(summary, calibration=calibration)

    def get_metadata_routing(self) -> MetadataRequest:
        """Request groups in `predict` if the estimator does, and ignore them otherwise.

        A Pipeline with a transformer that takes groups needs one of the two. `set_predict_request`
        has priority.

        Returns
        -------
        MetadataRequest
            The request, for scikit-learn.
        """
        request = super().get_metadata_routing()
        if request.predict.requests.get("groups") is None:
            takes_groups = self.estimator is not None and needs_groups(self.estimator)
            request.predict.add_request(param="groups", alias=takes_groups)
        return request

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._wrapped_estimator()).input_tags
        return tags

    def _wrapped_estimator(self) -> BaseEstimator:
        """The estimator, by default RankRLSCV."""
        if self.estimator is None:
            return RankRLSCV()
        return self.estimator
