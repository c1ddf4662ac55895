"""The class `Metric`, validation of its data, and the mean over groups."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from rankwise.arrays import Array, Numbers
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import UndefinedMetricError
from rankwise.frames import check_same_index
from rankwise.graphs.supervision import unpack_target
from rankwise.groups import Groups, encode_groups
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.metrics.survival import SurvivalRanking, SurvivalTargets, read_survival
from rankwise.validation import check_float_array, check_int, check_option, check_weights

UNDEFINED = ("skip", "zero", "one", "nan", "raise")

ROUNDING = 1e-12  # values that differ by less are equal
ADVICE = (
    "Check y_true and groups, or pass undefined='nan', 'zero' or 'one' to give such groups that "
    "value ('skip' leaves them out of the mean)."
)
PARAMETERS_HEADING = "Parameters\n----------\n"
RETURNS_HEADING = "Returns\n-------\n"

MetricValue = float | Array


class GroupValues(NamedTuple):
    """Value of a metric in each group.

    Attributes
    ----------
    values : ndarray of shape (n_groups,)
        NaN where the metric is undefined.
    weights : ndarray of shape (n_groups,) or None
        Weight of each group in the mean; None gives all groups equal weight.
    standard_error : float or None
        Standard error of the mean, if the metric computes its own. None estimates it from the
        spread of the values.
    degrees_of_freedom : float or None
        Degrees of freedom of Student's t for this error; None uses the normal distribution.
    """

    values: Array
    weights: Array | None = None
    standard_error: float | None = None
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric with its options; its repr is the name that `get_metric` reads.

    Attributes
    ----------
    name : str
        Name with options, such as ``"ndcg@10"``.
    function : callable
        Computes `GroupValues` from a `Ranking` and the options.
    needs : str
        What a group must contain for the metric to be defined, such as "at least one item with
        y > 0".
    title, short_title : str
        Display name of the mean ("Mean average precision") and of the value of one group ("AP").
    meaning : str
        One-sentence description: the first line of the docstring.
    greater_is_better : bool
        False for errors.
    lowest, highest : float
        Range of the values; for correlations −1 and 1.
    accepts_weights : bool
        Whether the metric uses sample weights (``targets.weights``).
    accepts_missing : bool
        Whether y may contain NaN (``targets.judged``).
    accepts_survival : bool
        Whether y may be right-censored survival times.
    is_pooled : bool
        Whether the metric compares items of different groups.
    is_custom : bool
        Whether `make_metric` made it from a user's function.
    options : tuple of (str, value)
        Options that differ from the defaults, including the cut-off.
    choices : mapping from str to tuple of str
        Allowed values of each option that is a word.

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
    accepts_weights: bool = False
    accepts_missing: bool = False
    accepts_survival: bool = False
    is_pooled: bool = False
    is_custom: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        self._check_options(dict(self.options))

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
        """Compute the metric.

        Parameters
        ----------
        y_true : array-like of shape (m,) or (m, v), or structured target
            Relevance; larger is better.
        y_score : array-like of shape (m,) or (m, v)
            Predicted scores.
        groups : array-like of shape (m,), default=None
            Group label of each row, in any order; None puts all rows in one group.
        undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
            Treatment of groups where the metric is undefined (`Metric.needs`): drop them from the
            mean, count them as 0 or as 1, return NaN, or raise an error.
        per_group : bool, default=False
            Return one value per group, in the order of the sorted labels, instead of the mean.
        sample_weight : array-like of shape (m,), default=None
            Weights of the items, 0 or larger. The weight of a pair is the product of the weights
            of its items.
        **options
            Options of the metric's function.

        Returns
        -------
        float or ndarray
            One value per column for (m, v) input.
        """
        check_option("undefined", undefined, UNDEFINED)
        self._check_options(options)
        survival = read_survival(y_true, y_score, groups, sample_weight)
        if survival is not None:
            return self._values_or_mean(survival, undefined, per_group, options)

        data = check_data(y_true, y_score, groups, sample_weight, [self])
        if data.score.ndim == 1:
            ranking = Ranking(make_targets(data.y, data.groups, data.weights), data.score)
            return self._values_or_mean(ranking, undefined, per_group, options)

        # Several columns of scores: one value per column
        shared_targets = None
        if data.y.ndim == 1:
            shared_targets = make_targets(data.y, data.groups, data.weights)
        values_by_column = []
        for j in range(data.score.shape[1]):
            targets = shared_targets
            if targets is None:
                y_of_column = np.ascontiguousarray(data.y[:, j])
                targets = make_targets(y_of_column, data.groups, data.weights)
            ranking = Ranking(targets, np.ascontiguousarray(data.score[:, j]))
            values_by_column.append(self._values_or_mean(ranking, undefined, per_group, options))
        return np.stack(values_by_column, axis=-1)

    def _values_or_mean(
        self,
        ranking: Ranking | SurvivalRanking,
        undefined: str,
        per_group: bool,
        options: dict[str, Any],
    ) -> MetricValue:
        """Values of the groups of one ranking if `per_group`, otherwise their mean."""
        by_group = self.by_group(ranking, **options)
        values = self.fill_undefined(by_group, undefined, ranking.targets)
        if per_group:
            return values
        mean = nanmean_by_group(values, by_group.weights, undefined)
        if np.isnan(mean) and undefined == "skip":
            n_groups = ranking.targets.n_groups
            where = f"each of the {n_groups} groups"
            if n_groups == 1:
                where = "the data"
            raise self.undefined_error(f"for {where}", ADVICE)
        return mean

    def by_group(self, ranking: Ranking | SurvivalRanking, **options: Any) -> GroupValues:
        """Return the value in each group of a ranking; NaN where the metric is undefined.

        Parameters
        ----------
        ranking : Ranking or SurvivalRanking
            Truth and scores, sorted inside the groups.
        **options
            Options of the metric.

        Returns
        -------
        GroupValues
            Values, with weights for the mean.
        """
        if isinstance(ranking, SurvivalRanking) and not self.accepts_survival:
            raise ValueError(
                f"{self.name} needs relevance of items, but y has survival times; use concordance "
                "or disagreement."
            )
        all_options = dict(self.options) | options
        return self.function(ranking, **all_options)

    def _check_options(self, options: dict[str, Any]) -> None:
        """Raise a ValueError for a cut-off below 1 and for words that are not allowed."""
        if options.get("k") is not None:
            check_int("k", options["k"], least=1)
        for name, allowed in self.choices.items():
            if name in options:
                check_option(name, options[name], allowed)

    def interval(
        self, by_group: GroupValues, confidence: float = DEFAULT_CONFIDENCE
    ) -> tuple[float, float, float]:
        """Return the mean over the groups that have a value, and its confidence interval.

        The interval is Student's over the groups (for weighted means by linearization). If the
        metric computes its own standard error, as the AUC of one list does (DeLong), it is normal,
        or Student's if that error has degrees of freedom. It is clipped to the range of the metric.
        Its ends are NaN if fewer than two groups have a value, or if all values are equal.

        Parameters
        ----------
        by_group : GroupValues
            Values of the groups.
        confidence : float, default=0.95
            Confidence level.

        Returns
        -------
        tuple of float
            The mean and the ends of the interval.
        """
        mean = nanmean_by_group(by_group.values, by_group.weights)
        half_width = _half_width_of_interval(by_group, mean, level=0.5 + confidence / 2)
        if np.isnan(half_width):
            return mean, np.nan, np.nan
        low = max(mean - half_width, self.lowest)
        high = min(mean + half_width, self.highest)
        return mean, low, high

    def fill_undefined(
        self, by_group: GroupValues, undefined: str, targets: GroupedTargets | SurvivalTargets
    ) -> Array:
        """Return the values with NaN replaced according to ``undefined``, or raise.

        Parameters
        ----------
        by_group : GroupValues
            Values of the groups.
        undefined : {"skip", "zero", "one", "nan", "raise"}
            How undefined groups are treated.
        targets : GroupedTargets or SurvivalTargets
            The truth, for messages.

        Returns
        -------
        ndarray of shape (n_groups,)
            Values.
        """
        is_undefined = np.isnan(by_group.values)
        if undefined == "raise" and is_undefined.any():
            first_undefined = int(np.argmax(is_undefined))
            label = targets.labels.tolist()[first_undefined]
            where = f"for group {label!r} ({targets.group_sizes[first_undefined]} items)"
            raise self.undefined_error(where, ADVICE)
        if undefined == "zero":
            return np.where(is_undefined, 0.0, by_group.values)
        if undefined == "one":
            return np.where(is_undefined, 1.0, by_group.values)
        return by_group.values  # "skip" and "nan" keep NaN

    def check_accepts_weights(self) -> None:
        """Raise a ValueError if the metric does not use sample weights."""
        if not self.accepts_weights:
            raise ValueError(
                f"{self.name} does not accept sample_weight; omit sample_weight, or use ndcg or a "
                "metric of pairs (disagreement, concordance, tau)."
            )

    def undefined_error(self, where: str, advice: str) -> UndefinedMetricError:
        """Return the error that the metric is undefined "for each of the 7 groups".

        Parameters
        ----------
        where : str
            Place in words.
        advice : str
            Remedy, a sentence.

        Returns
        -------
        UndefinedMetricError
            The error, to be raised.
        """
        message = f"{self.name} is undefined {where}: it needs {self.needs}. {advice}"
        return UndefinedMetricError(message)

    def __repr__(self) -> str:
        return self.name


class MetricFunction(Protocol):
    """A public function such as `ndcg`; its `metric` attribute is the `Metric` it computes."""

    metric: Metric

    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike | None = None,
        **options: Any,
    ) -> MetricValue:
        """Compute the metric; see `Metric.__call__`."""
        ...


def group_metric(
    name: str, title: str, *, needs: str = "nothing", short: str = "", **properties: Any
) -> Callable[[Callable[..., GroupValues]], MetricFunction]:
    """Turn a function of a `Ranking` into the public function of a metric.

    The public function has y_true, y_score and groups in place of the ranking, and the parameters
    `undefined` and `per_group` of all metrics, which are added to its docstring; if the metric
    uses weights, also `sample_weight`, which the docstring of the function must describe.

    Parameters
    ----------
    name : str
        Name for `get_metric`, after the function is listed in `rankwise.metrics.registry`.
    title : str
        Display name of the mean over groups.
    needs : str, default="nothing"
        What a group must contain for the metric to be defined.
    short : str, default=""
        Display name of the value of one group; the title if empty.
    **properties
        Other attributes of `Metric`.
    """

    def decorate(function: Callable[..., GroupValues]) -> MetricFunction:
        docstring = inspect.getdoc(function) or ""  # empty under python -OO
        metric = Metric(
            name=name,
            function=function,
            needs=needs,
            title=title,
            short_title=short or title,
            meaning=docstring.partition("\n")[0],
            **properties,
        )

        @functools.wraps(function)
        def public_function(
            y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None = None, **options: Any
        ) -> MetricValue:
            return metric(y_true, y_score, groups, **options)

        attributes = vars(public_function)
        attributes["metric"] = metric
        attributes["__signature__"] = _public_signature(metric)
        public_function.__doc__ = _public_docstring(metric, docstring)
        # pickle looks up the undecorated function, an attribute of the public one
        function.__qualname__ = f"{function.__qualname__}.metric.function"
        return cast(MetricFunction, public_function)

    return decorate


def _public_signature(metric: Metric) -> inspect.Signature:
    """Signature of the public function: data, options of the metric, shared options."""
    shared = inspect.signature(metric.__call__).parameters
    _ranking, *metric_options = inspect.signature(metric.function).parameters.values()
    parameters = [shared["y_true"], shared["y_score"], shared["groups"], *metric_options]
    if metric.accepts_weights:
        parameters.append(shared["sample_weight"])
    parameters += [shared["undefined"], shared["per_group"]]
    return inspect.Signature(parameters, return_annotation="float | Array")


def _public_docstring(metric: Metric, docstring: str) -> str:
    """Docstring of the public function, with the shared parameters and a Returns section."""
    # Insert a section Returns before the references or examples
    returns_section = (
        f"{RETURNS_HEADING}float or ndarray\n"
        f"    From {metric.lowest:g} to {metric.highest:g}; one value per column for (m, v) "
        "input.\n\n"
    )
    next_section = re.compile("^(?=References\n-|Examples\n-)", flags=re.MULTILINE)
    docstring = next_section.sub(lambda _: returns_section, docstring, count=1)
    if PARAMETERS_HEADING not in docstring:
        docstring = docstring.replace(returns_section, f"{PARAMETERS_HEADING}\n{returns_section}")

    # Insert the parameters that all metrics share, from the docstring of Metric.__call__
    call_docstring = inspect.getdoc(Metric.__call__) or ""
    call_parameters = call_docstring.partition(PARAMETERS_HEADING)[2]
    shared_parameters = call_parameters.partition("sample_weight :")[0]
    shared_parameters = shared_parameters.replace("`Metric.needs`", metric.needs)
    return docstring.replace(PARAMETERS_HEADING, PARAMETERS_HEADING + shared_parameters)


def _half_width_of_interval(by_group: GroupValues, mean: float, level: float) -> float:
    """Half the width of the interval of the mean; NaN if it cannot be estimated.

    `level` is the probability below the upper end.
    """
    # The metric computes its own standard error, such as DeLong's for one AUC
    if by_group.standard_error is not None:
        if by_group.standard_error <= ROUNDING:
            return np.nan
        if by_group.degrees_of_freedom is None:
            normal_quantile = ndtri(level)
            return float(normal_quantile * by_group.standard_error)
        student_quantile = stdtrit(by_group.degrees_of_freedom, level)
        return float(student_quantile * by_group.standard_error)

    # Otherwise the standard error of the (weighted) mean over the groups
    is_defined = ~np.isnan(by_group.values)
    values = by_group.values[is_defined]
    n_values = len(values)
    if n_values < 2 or np.ptp(values) < ROUNDING:  # no interval from equal values
        return np.nan
    weights = np.ones(n_values)
    if by_group.weights is not None and by_group.weights.sum() > 0:
        weights = by_group.weights[is_defined]
    # √(Σ w² (v − mean)² n / (n − 1)) / Σ w
    sum_of_squares = ((weights * (values - mean)) ** 2).sum()
    standard_error = np.sqrt(sum_of_squares * n_values / (n_values - 1)) / weights.sum()
    student_quantile = stdtrit(n_values - 1, level)
    return float(student_quantile * standard_error)


def nanmean_by_group(values: Array, weights: Array | None = None, undefined: str = "skip") -> float:
    """Mean over groups; with "skip" over the groups that have a value, NaN if there are none."""
    if undefined == "skip":
        is_defined = ~np.isnan(values)
        values = values[is_defined]
        if weights is not None:
            weights = weights[is_defined]
    if len(values) == 0:
        return float("nan")
    if weights is not None and weights.sum() == 0:
        weights = None  # equal weights
    return float(np.average(values, weights=weights))


def make_targets(y: Numbers, groups: Groups, weights: Array | None) -> GroupedTargets:
    """Return the targets of checked data; unjudged items (NaN) have relevance 0."""
    is_unjudged = np.isnan(y)
    if not is_unjudged.any():
        return GroupedTargets(y, groups, weights)
    relevance = np.where(is_unjudged, 0.0, y)
    return GroupedTargets(relevance, groups, weights, judged=~is_unjudged)


class MetricData(NamedTuple):
    """Checked arguments of a metric: relevance, scores, groups, and weights or None."""

    y: Numbers
    score: Numbers
    groups: Groups
    weights: Array | None


def check_data(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    metrics: Sequence[Metric] = (),
) -> MetricData:
    """Validate the arguments of metrics.

    y may contain NaN only if one of the metrics accepts it. Weights must be accepted by all
    metrics.
    """
    y_true, groups, weights = unpack_target(y_true, groups, sample_weight)
    check_same_index(y_true=y_true, y_score=y_score, groups=groups, sample_weight=weights)
    accepts_missing = any(metric.accepts_missing for metric in metrics)
    y = _check_numbers("y_true", y_true, accepts_missing)
    score = _check_numbers("y_score", y_score)
    has_same_columns = y.ndim == 1 or y.shape == score.shape
    if len(y) != len(score) or not has_same_columns:
        raise ValueError(
            f"y_true has shape {y.shape} but y_score has shape {score.shape}; pass one relevance "
            "and one score per item, in the same order, and as many score columns as y_true has."
        )
    if weights is not None:
        weights = check_weights(weights, len(y))
        for metric in metrics:
            metric.check_accepts_weights()
    return MetricData(y, score, encode_groups(groups, len(y)), weights)


def _check_numbers(name: str, values: ArrayLike, accepts_missing: bool = False) -> Array:
    from sklearn.utils import assert_all_finite

    array = check_float_array(name, values)
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(
            f"{name} has shape {array.shape}; pass shape (n_items,), or (n_items, n_outputs), of "
            "at least one item."
        )
    n_missing = int(np.isnan(array).sum())
    if name == "y_true" and n_missing and not accepts_missing:
        raise ValueError(
            f"y_true contains NaN in {n_missing} of {array.size} values. If NaN stands for items "
            'without a judgment, add a metric such as "judged@10": they then count as not '
            "relevant. Otherwise leave these items out."
        )
    assert_all_finite(array, allow_nan=accepts_missing, input_name=name)
    return array
