"""What a metric is, the check of its data, and the mean of one value for each group."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import UndefinedMetricError
from rankwise.frames import check_same_index
from rankwise.graphs.supervision import unpack_target
from rankwise.groups import Groups, encode_groups
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.validation import check_float_array, check_int, check_option, check_weights

UNDEFINED = ("skip", "zero", "one", "nan", "raise")

ROUNDING = 1e-12  # a smaller spread is none
ADVICE = (
    "Check y_true and groups, or pass undefined='nan', 'zero' or 'one' to give such groups that "
    "value ('skip' leaves them out of the mean)."
)
PARAMETERS = "Parameters\n----------\n"  # of a docstring

MetricValue = float | Array


class GroupValues(NamedTuple):
    """Value of a metric in each group.

    Attributes
    ----------
    values : ndarray of shape (n_groups,)
        NaN where the metric is undefined.
    weights : ndarray of shape (n_groups,) or None
        What each group counts in the mean; None lets all count alike.
    error : float or None
        Standard error of the mean, if the metric knows more of it than how the groups differ.
    """

    values: Array
    weights: Array | None = None
    error: float | None = None


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric with its options; prints as the name that `get_metric` reads.

    Attributes
    ----------
    name : str
        Such as ``"ndcg@10"``.
    function : callable
        From a `Ranking` and options to `GroupValues`.
    needs : str
        What a group must have for the metric to be defined: "at least one item with y > 0".
    title, short_title : str
        What a person calls its mean ("Mean average precision"), and its value in one group ("AP").
    meaning : str
        What it says, for a reader who does not know it: the first line of its docstring.
    greater_is_better : bool
        False for errors.
    lowest, highest : float
        The ends of its scale: correlations go from −1 to 1.
    has_weights : bool
        Whether weights of items have a meaning, and the function looks at ``targets.weights``.
    has_gaps : bool
        Whether NaN in y has a meaning, and the function looks at ``targets.judged``.
    is_own : bool
        Whether it is of a user's function of the y and the scores of one group.
    options : tuple of (str, value)
        Options that are not the default, the cut-off among them.

    Examples
    --------
    >>> from rankwise.metrics import get_metric
    >>> metric = get_metric("P@2")
    >>> metric
    p@2
    >>> metric([1, 0, 1], [0.9, 0.5, 0.1])
    0.5
    """

    name: str
    function: Callable[..., GroupValues]
    needs: str
    title: str
    short_title: str
    meaning: str
    greater_is_better: bool = True
    lowest: float = 0.0
    highest: float = 1.0
    has_weights: bool = False
    has_gaps: bool = False
    is_own: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        undefined: str = "skip",
        per_group: bool = False,
        sample_weight: ArrayLike | None = None,
        **options: Any,
    ) -> MetricValue:
        """Evaluate; the functions of single metrics have these parameters, too.

        Parameters
        ----------
        y_true : array-like of shape (m,) or (m, v), or structured target
            Relevance; larger is better.
        y_score : array-like of shape (m,) or (m, v)
            Predicted scores.
        groups : array-like of shape (m,), optional
            Group label of each row, in any order; None puts all rows in one group.
        undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
            What to do with groups that lack what it needs (`Metric.needs`): leave them out of the
            mean, count them as 0 or as 1, let the mean be NaN, or raise an error.
        per_group : bool, default=False
            Return one value per group, in the order of the sorted labels, instead of the mean.
        sample_weight : array-like of shape (m,), optional
            Weights of the items, 0 or larger; a pair counts the product of its two.
        **options
            Those of the metric's function.

        Returns
        -------
        float or ndarray
            One value per column for (m, v) input.
        """
        check_option("undefined", undefined, UNDEFINED)
        y, score, encoded, weights = check_data(y_true, y_score, groups, sample_weight, [self])
        shared = make_targets(y, encoded, weights) if y.ndim == 1 else None
        columns: list[MetricValue] = []
        for j in range(score.size // len(score)):
            targets = shared or make_targets(np.ascontiguousarray(y[:, j]), encoded, weights)
            ranking = Ranking(targets, np.ascontiguousarray(score.reshape(len(score), -1)[:, j]))
            by_group = self.by_group(ranking, **options)
            values = self.fill_undefined(by_group, undefined, targets)
            if per_group:
                columns.append(values)
                continue
            average = nanmean_by_group(values, by_group.weights, undefined)
            if np.isnan(average) and undefined == "skip":
                n_groups = targets.n_groups
                where = "the data" if n_groups == 1 else f"each of the {n_groups} groups"
                raise self.undefined_error(f"for {where}", ADVICE)
            columns.append(average)
        return columns[0] if score.ndim == 1 else np.stack(columns, axis=-1)

    def by_group(self, ranking: Ranking, **options: Any) -> GroupValues:
        """Value in each group of data that are sorted already, NaN where undefined."""
        chosen = {**dict(self.options), **options}
        if chosen.get("k") is not None:
            check_int("k", chosen["k"], least=1)
        return self.function(ranking, **chosen)

    def interval(
        self, by_group: GroupValues, confidence: float = DEFAULT_CONFIDENCE
    ) -> tuple[float, float, float]:
        """Mean over the groups that have a value, and the two ends of its interval.

        Student's interval over the groups, for pooled metrics by linearization; for the AUC of one
        list DeLong's. It is cut at the ends of the scale; NaN if fewer than two groups have a
        value, or all have the same, which shows no spread.
        """
        values, weights, error = by_group
        defined, level = ~np.isnan(values), 0.5 + confidence / 2
        average, n = nanmean_by_group(values, weights), int(defined.sum())
        if error is not None:
            half = ndtri(level) * error if error > ROUNDING else np.nan
        elif n < 2 or np.ptp(values[defined]) < ROUNDING:
            half = np.nan
        else:
            weight = np.ones(n) if weights is None or not weights.sum() else weights[defined]
            spread = (weight * (values[defined] - average)) ** 2
            half = stdtrit(n - 1, level) * np.sqrt(spread.sum() * n / (n - 1)) / weight.sum()
        if np.isnan(half):
            return average, np.nan, np.nan
        return average, max(average - half, self.lowest), min(average + half, self.highest)

    def fill_undefined(
        self, by_group: GroupValues, undefined: str, targets: GroupedTargets
    ) -> Array:
        """Give groups without a value the one that ``undefined`` says, or raise."""
        missing = np.isnan(by_group.values)
        if undefined == "raise" and missing.any():
            first = int(np.argmax(missing))
            label = targets.labels.tolist()[first]
            where = f"for group {label!r} ({targets.sizes[first]} items)"
            raise self.undefined_error(where, ADVICE)
        if undefined in ("zero", "one"):
            return np.where(missing, float(undefined == "one"), by_group.values)
        return by_group.values

    def check_takes_weights(self) -> None:
        """Raise a ValueError if weights of items have no meaning for the metric."""
        if not self.has_weights:
            raise ValueError(
                f"{self.name} takes no weights of items; leave out sample_weight, or use ndcg or "
                "a metric of pairs (disagreement, concordance, tau)."
            )

    def undefined_error(self, where: str, advice: str) -> UndefinedMetricError:
        """The error that there is no value "for each of the 7 groups", and what to do."""
        message = f"{self.name} is undefined {where}: it needs {self.needs}. {advice}"
        return UndefinedMetricError(message)

    def __repr__(self) -> str:
        return self.name


METRICS: dict[str, Metric] = {}  # by the names that `get_metric` reads


def group_metric(
    name: str, title: str, *, needs: str = "nothing", short: str = "", **facts: Any
) -> Callable[[Callable[..., GroupValues]], Callable[..., MetricValue]]:
    """Give a metric a name, and make its public function from the one of sorted groups.

    In place of the ranking the public function takes y_true, y_score and groups; `undefined`,
    `per_group` and, if they have a meaning, weights are options of all metrics; all but weights
    are documented here, as by `Metric.__call__`. The first line of the docstring is the meaning of
    the metric, in which "the first k places" are those down to the cut-off. The facts are those of
    `Metric`.
    """

    def decorate(function: Callable[..., GroupValues]) -> Callable[..., MetricValue]:
        text = inspect.getdoc(function) or ""  # nothing, if Python leaves out docstrings
        known = Metric(
            name, function, needs, title, short or title, text.partition("\n")[0], **facts
        )
        METRICS[name] = known

        @functools.wraps(function)
        def public(
            y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None = None, **options: Any
        ) -> MetricValue:
            return known(y_true, y_score, groups, **options)

        *shared, weights, _ = inspect.signature(known.__call__).parameters.values()
        own = [*inspect.signature(function).parameters.values()][1:]
        own += [weights] if known.has_weights else []
        signature = inspect.Signature([*shared[:3], *own, *shared[3:]])
        vars(public).update(metric=known, __signature__=signature)
        public.__doc__ = _with_shared_entries(known, text)
        function.__qualname__ += ".metric.function"  # where pickle looks for it
        return public

    return decorate


def _with_shared_entries(metric: Metric, text: str) -> str:
    """A docstring with the parameters of all metrics before its own, and what comes back."""
    value = f"From {metric.lowest:g} to {metric.highest:g}; one value per column for (m, v) input."
    value = f"Returns\n-------\nfloat or ndarray\n    {value}\n\n"
    text = re.sub("^(?=References\n-|Examples\n-)", value, text, count=1, flags=re.MULTILINE)
    if PARAMETERS not in text:
        text = text.replace(value, f"{PARAMETERS}\n{value}")
    shared = (inspect.getdoc(Metric.__call__) or "").partition(PARAMETERS)[2]
    shared = shared.partition("sample_weight :")[0].replace("`Metric.needs`", metric.needs)
    return text.replace(PARAMETERS, PARAMETERS + shared)


def nanmean_by_group(values: Array, weights: Array | None = None, undefined: str = "skip") -> float:
    """Mean over groups; with "skip" over those that have a value, NaN if none has."""
    if undefined == "skip":
        present = ~np.isnan(values)
        values = values[present]
        weights = None if weights is None else weights[present]
    if len(values) == 0:
        return float("nan")
    if weights is not None and weights.sum() == 0:
        weights = None
    return float(np.average(values, weights=weights))


def make_targets(y: NDArray[Any], groups: Groups, weights: Array | None) -> GroupedTargets:
    """Targets of data that were checked; what is not judged counts as 0."""
    gaps = np.isnan(y)
    if not gaps.any():
        return GroupedTargets(y, groups, weights)
    return GroupedTargets(np.where(gaps, 0.0, y), groups, weights, ~gaps)


def check_data(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    metrics: Sequence[Metric] = (),
) -> tuple[NDArray[Any], NDArray[Any], Groups, Array | None]:
    """Relevance and scores as numbers of fitting shapes, groups and weights, None without weights.

    y is NaN only if one of the metrics takes that. If there are weights, all must take them.
    """
    y_true, groups, weights = unpack_target(y_true, groups, sample_weight)
    check_same_index(y_true=y_true, y_score=y_score, groups=groups, sample_weight=weights)
    y = _as_numbers("y_true", y_true, any(metric.has_gaps for metric in metrics))
    score = _as_numbers("y_score", y_score)
    if len(y) != len(score) or (y.shape != score.shape and y.ndim == 2):
        raise ValueError(
            f"y_true has shape {y.shape} but y_score has shape {score.shape}; pass one relevance "
            "and one score per item, in the same order, and as many score columns as y_true has."
        )
    if weights is not None:
        weights = check_weights(weights, len(y))
        for metric in metrics:
            metric.check_takes_weights()
    return y, score, encode_groups(groups, len(y)), weights


def _as_numbers(name: str, values: ArrayLike, has_gaps: bool = False) -> Array:
    from sklearn.utils import assert_all_finite

    array = check_float_array(name, values)
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(
            f"{name} has shape {array.shape}; pass shape (n_items,), or (n_items, n_outputs), of "
            "at least one item."
        )
    assert_all_finite(array, allow_nan=has_gaps, input_name=name)
    return array
