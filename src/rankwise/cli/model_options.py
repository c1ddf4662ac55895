"""From options to an estimator; an option that would have no effect is refused."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TypeAlias

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array
from rankwise.cli.shared_options import ModelOptions
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.grades import default_metrics
from rankwise.metrics.registry import MetricName, get_metrics
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.validation import check_option, suggestion

Parameters: TypeAlias = dict[str, object]

CLASSES = {  # of the package rankwise
    "rankrls": "RankRLS",
    "ranksvm": "RankSVM",
    "ranklogistic": "RankLogistic",
    "corankrls": "CoRankRLS",
    "pursuit": "RankingPursuit",
    "auto": "AutoRanker",
}
SCALES = ("auto", "standard", "group", "log+group", "standard+group", "none")
DEFAULT_METRIC = "disagreement"  # selects parameters
MIN_ITEMS_OF_LEAK = 20  # with fewer items a perfect score is no surprise
PERFECT_TOLERANCE = 5e-5  # scores are printed with four decimals
PARAMETERS_WITH_OPTION = {"alpha": "--alpha", "scoring": "--metric"}  # not accepted by --set
UNSCALED_KERNELS = (  # kernel values are no features; chi2 needs non-negative features
    "precomputed",
    "chi2",
    "additive_chi2",
)


def estimator_parameters(options: ModelOptions) -> Parameters:
    """Parameters of the estimator: --kernel and --set NAME=VALUE, as Python values."""
    parameters: Parameters = {"random_state": 0}
    if options.kernel is not None:
        parameters["kernel"] = options.kernel
    if options.time_limit is not None:
        parameters["time_limit"] = options.time_limit
    for text in options.set:
        name, equals_sign, value = text.partition("=")
        if not equals_sign:
            raise ValueError(f"--set {text}: expected NAME=VALUE, such as n_basis=300.")
        python_name = name.strip().replace("-", "_")
        if python_name in PARAMETERS_WITH_OPTION:
            option = PARAMETERS_WITH_OPTION[python_name]
            raise ValueError(f"--set {text}: pass {option} {value.strip()} instead.")
        parameters[python_name] = _python_value(value.strip())
    return parameters


def _python_value(text: str) -> object:
    """A number, a list of numbers, or the text itself."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    if isinstance(value, tuple):
        return list(value)
    return value


def make_model(
    options: ModelOptions, metric: str | None = None, *, search: bool | None = None
) -> BaseEstimator:
    """Make the unfitted estimator that the options describe.

    Parameters
    ----------
    options : ModelOptions
        Options of the command.
    metric : str, optional
        Metric that selects the parameters.
    search : bool, optional
        Whether the estimator selects its parameters by cross-validation; by default if there are
        several candidates.
    """
    check_option("--model", options.model, list(CLASSES))
    check_option("--feature-scaling", options.feature_scaling, SCALES)
    package = import_module("rankwise")
    class_name = CLASSES[options.model]
    ranker_class = getattr(package, class_name)
    parameters = estimator_parameters(options)
    _check_parameters(options, parameters, ranker_class().get_params(deep=False))
    scoring = None
    if metric is not None:
        scoring = _make_metric(metric)
    if options.model == "auto":
        return ranker_class(scoring=scoring, **parameters)

    alphas = None
    if options.alpha != "auto":
        alphas = numbers_in("--alpha", options.alpha)
    if search is None:  # search if there are several candidates; pursuit always has several
        search = options.model == "pursuit" or alphas is None or len(alphas) > 1
        if metric is not None and not search:
            raise ValueError(
                f"--metric {metric} has no effect with --alpha {options.alpha}, a single "
                "candidate; leave one of them out."
            )
    _refuse_several_gammas(options, parameters, search)
    if search:
        search_class = getattr(package, f"{class_name}CV")
        return search_class(**_search_parameters(options, parameters, alphas, scoring))
    if alphas:  # of several, the caller tries each in place of the first
        parameters["alpha"] = alphas[0]
    return ranker_class(**parameters)


def _refuse_several_gammas(options: ModelOptions, parameters: Parameters, search: bool) -> None:
    """Refuse several values of gamma for a model that does not select it."""
    selects_gamma = search and options.model != "corankrls"
    has_several_values = isinstance(parameters.get("gamma"), list)
    if has_several_values and not selects_gamma:
        raise ValueError(
            f"--set gamma={parameters['gamma']}: expected one value; several values are candidates "
            "with --alpha auto, for all models but corankrls."
        )


def _search_parameters(
    options: ModelOptions,
    parameters: Parameters,
    alphas: list[float] | None,
    scoring: Metric | None,
) -> Parameters:
    """The parameters of the class that searches."""
    search_parameters: Parameters = {**parameters, "scoring": scoring or DEFAULT_METRIC}
    if options.model != "pursuit":
        search_parameters["alphas"] = alphas
    if options.model == "corankrls" and "nu" in search_parameters:
        single_candidate = search_parameters.pop("nu")
        search_parameters["nus"] = [single_candidate]
    return search_parameters


def _check_parameters(
    options: ModelOptions, parameters: Parameters, parameters_of_model: Parameters
) -> None:
    """Refuse values for parameters that the model does not have."""
    names = list(parameters)
    if options.alpha != "auto":
        names.append("alpha")
    for name in names:
        if name not in parameters_of_model:
            raise ValueError(
                f"--model {options.model} has no parameter {name}"
                f"{suggestion(name, list(parameters_of_model))} It has "
                f"{', '.join(parameters_of_model)}."
            )


def make_scaler(
    options: ModelOptions, model: BaseEstimator, is_sparse: bool
) -> TransformerMixin | None:
    """Make the scaler of the features, or None; sparse features are not centered.

    Parameters
    ----------
    options : ModelOptions
        Options of the command.
    model : estimator
        The unfitted ranker.
    is_sparse : bool
        Whether the features are sparse.
    """
    scaling = options.feature_scaling
    kernel = getattr(model, "kernel", "precomputed")  # AutoRanker has none, and scales itself
    if options.model == "auto" and scaling not in ("auto", "none"):
        raise ValueError("the model auto tries several scalings; leave out --feature-scaling.")
    if scaling == "auto":
        scaling = "none" if kernel in UNSCALED_KERNELS else "standard"
    elif kernel == "precomputed" and scaling != "none":
        raise ValueError(
            f"--feature-scaling {scaling} has no meaning for --kernel precomputed; use none."
        )
    if "group" in scaling:
        return GroupScaler(
            with_log="log" in scaling,
            with_standard="standard" in scaling,
            with_mean=not is_sparse,
        )
    if scaling == "standard":
        return StandardScaler(with_mean=not is_sparse)
    return None


def metrics_for(
    names: Sequence[MetricName], y: Array | None, weights: Array | None = None
) -> list[Metric]:
    """The metrics of --metric, or the default metrics of `rankwise.metrics.evaluate`."""
    if names:
        return read_metrics(names)
    assert y is not None  # a command without true scores has no metrics
    if y.ndim == 2:  # survival times and events
        return get_metrics("concordance")
    return get_metrics(default_metrics(y, weights is not None))


def read_metrics(names: Sequence[MetricName]) -> list[Metric]:
    """The metrics of --metric."""
    return get_metrics([_make_metric(name) for name in names])


def _make_metric(name: MetricName) -> Metric:
    """The metric of --metric; errors about its options begin with the name."""
    try:
        return get_metric(read_metric(name))
    except ValueError as error:
        if str(name) in str(error):
            raise
        raise ValueError(f"--metric {name}: {error}") from None


def read_metric(name: MetricName) -> MetricName:
    """Import a function that is named as MODULE:FUNCTION; return other metrics unchanged.

    The working directory is searched for the module.
    """
    if not isinstance(name, str) or ":" not in name:
        return name
    module_name, _, function_name = name.partition(":")
    working_directory = ""
    sys.path.insert(0, working_directory)
    try:
        module = import_module(module_name)
        function: MetricName = getattr(module, function_name)
        return function
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--metric {name}: {error}; expected MODULE:FUNCTION.") from error
    finally:
        sys.path.remove(working_directory)


def perfect_score_note(metric: str, score: float, n_items: int) -> str:
    """Ask about a leak if a score of at least 20 items is perfect; else return an empty text."""
    perfect_score = 1.0 if get_metric(read_metric(metric)).greater_is_better else 0.0
    is_perfect = abs(score - perfect_score) <= PERFECT_TOLERANCE
    if n_items < MIN_ITEMS_OF_LEAK or not is_perfect:
        return ""
    return "perfect score: is the target, or something computed from it, among the features?"


def numbers_in(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        auto = "auto, " if option == "--alpha" else ""
        raise ValueError(
            f"{option} {text}: expected {auto}a number, or numbers separated by commas."
        ) from None
