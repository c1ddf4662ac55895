"""From options to an estimator; an option that would have no effect is refused."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sklearn.preprocessing import StandardScaler

from rankwise.cli.shared_options import ModelOptions
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.grades import default_metrics
from rankwise.metrics.registry import get_metrics
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.validation import check_option

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
UNSCALED_KERNELS = (  # kernel values are no features; chi2 needs non-negative features
    "precomputed",
    "chi2",
    "additive_chi2",
)


def settings(options: ModelOptions) -> dict[str, Any]:
    """Parameters of the estimator: --kernel and --set NAME=VALUE, as Python values."""
    values: dict[str, Any] = {"random_state": 0}
    if options.kernel is not None:
        values["kernel"] = options.kernel
    if options.time_limit is not None:
        values["time_limit"] = options.time_limit
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: expected NAME=VALUE, such as n_basis=300.")
        values[name.strip().replace("-", "_")] = _python_value(value.strip())
    return values


def _python_value(text: str) -> Any:
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
) -> Any:
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
    name = CLASSES[options.model]
    plain_class = getattr(package, name)
    values = settings(options)
    _check_parameters(options, values, plain_class().get_params(deep=False))
    scoring = None if metric is None else get_metric(read_metric(metric))
    if options.model == "auto":
        return plain_class(scoring=scoring, **values)
    alphas = None
    if options.alpha != "auto":
        alphas = numbers_in("--alpha", options.alpha)
    if search is None:
        search = options.model == "pursuit" or alphas is None or len(alphas) > 1
        if not search and metric is not None:
            raise ValueError(
                f"--metric {metric} has no effect with --alpha {options.alpha}, a single "
                "candidate; leave one of them out."
            )
    searches_gamma = search and options.model != "corankrls"
    if isinstance(values.get("gamma"), list) and not searches_gamma:
        raise ValueError(
            f"--set gamma={values['gamma']}: expected one value; several values are candidates "
            "with --alpha auto, for all models but corankrls."
        )
    if not search:
        if alphas:
            values["alpha"] = alphas[0]
        return plain_class(**values)
    values["scoring"] = scoring or DEFAULT_METRIC
    if options.model != "pursuit":
        values["alphas"] = alphas
    if options.model == "corankrls" and "nu" in values:
        values["nus"] = [values.pop("nu")]
    search_class = getattr(package, f"{name}CV")
    return search_class(**values)


def _check_parameters(
    options: ModelOptions, values: dict[str, Any], parameters: dict[str, Any]
) -> None:
    """Refuse values for parameters that the model does not have."""
    names = list(values)
    if options.alpha != "auto":
        names.append("alpha")
    for name in names:
        if name not in parameters:
            raise ValueError(
                f"the model {options.model} has no parameter {name}; it has "
                f"{', '.join(parameters)}."
            )


def make_scaler(options: ModelOptions, model: Any, is_sparse: bool) -> Any:
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
    kernel = getattr(model, "kernel", "precomputed")
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


def metrics_for(names: Sequence[str | Metric] | None, y: Any, weights: Any = None) -> list[Metric]:
    """The metrics of --metric, or the default metrics of `rankwise.metrics.evaluate`."""
    if names:
        return get_metrics([read_metric(name) for name in names])
    return get_metrics(default_metrics(y, weights is not None))


def read_metric(name: str | Metric) -> Any:
    """Return a metric, or a function as MODULE:FUNCTION; the working directory is searched."""
    if not isinstance(name, str) or ":" not in name:
        return name
    module, _, function = name.partition(":")
    sys.path.insert(0, "")
    try:
        return getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--metric {name}: {error}; expected MODULE:FUNCTION.") from error
    finally:
        sys.path.remove("")


def perfect_score_note(metric: str, score: float, n_items: int) -> str:
    """Ask for a leak if at least 20 items have a perfect score; else return an empty text."""
    perfect = 1.0 if get_metric(read_metric(metric)).greater_is_better else 0.0
    if n_items < 20 or abs(score - perfect) > 5e-5:
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
