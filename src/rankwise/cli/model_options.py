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

CLASSES = {  # names in the front door of the package
    "rankrls": "RankRLS",
    "ranksvm": "RankSVM",
    "ranklogistic": "RankLogistic",
    "corankrls": "CoRankRLS",
    "pursuit": "RankingPursuit",
    "auto": "AutoRanker",
}
SCALES = ("auto", "standard", "group", "log+group", "standard+group", "none")
DEFAULT_METRIC = "disagreement"  # chooses parameters


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
        try:
            number = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):  # a word
            number = value.strip()
        values[name.strip().replace("-", "_")] = (
            list(number) if isinstance(number, tuple) else number
        )
    return values


def make_model(
    options: ModelOptions, metric: str | None = None, *, search: bool | None = None
) -> Any:
    """The estimator that the options describe, unfitted.

    Parameters
    ----------
    options : ModelOptions
        As given on the command line.
    metric : str, optional
        Chooses the parameters.
    search : bool, optional
        Whether it chooses its parameters by cross-validation; by default if there is a choice.
    """
    check_option("--model", options.model, list(CLASSES))
    check_option("--feature-scaling", options.feature_scaling, SCALES)
    package, name = import_module("rankwise"), CLASSES[options.model]
    plain, values = getattr(package, name), settings(options)
    known = plain().get_params(deep=False)
    asked = [*values, *(["alpha"] if options.alpha != "auto" else [])]
    unknown = [parameter for parameter in asked if parameter not in known]
    if unknown:
        has = ", ".join(known)
        raise ValueError(f"the model {options.model} has no parameter {unknown[0]}; it has {has}.")
    scoring = None if metric is None else get_metric(read_metric(metric))
    if options.model == "auto":
        return plain(scoring=scoring, **values)
    alphas = None if options.alpha == "auto" else numbers_in("--alpha", options.alpha)
    if search is None:
        search = options.model == "pursuit" or alphas is None or len(alphas) > 1
        if not search and metric is not None:
            raise ValueError(
                f"--metric {metric} has no effect with --alpha {options.alpha}, which "
                "leaves nothing to choose; leave one of them out."
            )
    takes_one = not search or options.model == "corankrls"
    if takes_one and isinstance(values.get("gamma"), list):
        raise ValueError(
            f"--set gamma={values['gamma']}: one value is needed here; several are chosen among "
            "with --alpha auto, by all models but corankrls."
        )
    if not search:
        return plain(**values, **({"alpha": alphas[0]} if alphas else {}))
    values["scoring"] = scoring or DEFAULT_METRIC
    if options.model != "pursuit":
        values["alphas"] = alphas
    if options.model == "corankrls" and "nu" in values:
        values["nus"] = [values.pop("nu")]
    return getattr(package, f"{name}CV")(**values)


def make_scaler(options: ModelOptions, model: Any, is_sparse: bool) -> Any:
    """What scales the features, or None; sparse features are not centered, to stay sparse."""
    scale, kernel = options.feature_scaling, getattr(model, "kernel", "precomputed")
    if options.model == "auto" and scale not in ("auto", "none"):
        raise ValueError(
            "the model auto tries several scalings itself; leave out --feature-scaling."
        )
    if scale == "auto":  # kernel values are no features, and chi2 wants them non-negative
        scale = "none" if kernel in ("precomputed", "chi2", "additive_chi2") else "standard"
    elif kernel == "precomputed" and scale != "none":
        raise ValueError(
            f"--feature-scaling {scale} has no meaning for --kernel precomputed; use none."
        )
    if "group" in scale:
        log, standard = "log" in scale, "standard" in scale
        return GroupScaler(with_log=log, with_standard=standard, with_mean=not is_sparse)
    return StandardScaler(with_mean=not is_sparse) if scale == "standard" else None


def metrics_for(names: Sequence[str | Metric] | None, y: Any, weights: Any = None) -> list[Metric]:
    """The metrics of --metric, or the default metrics of `rankwise.metrics.evaluate`."""
    if names:
        return get_metrics([read_metric(name) for name in names])
    return get_metrics(default_metrics(y, weights is not None))


def read_metric(name: str | Metric) -> Any:
    """A metric by its name, or a function as MODULE:FUNCTION, from the folder one is in."""
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
        return [float(part) for part in text.split(",")]
    except ValueError:
        auto = "auto, " if option == "--alpha" else ""
        raise ValueError(
            f"{option} {text}: expected {auto}a number, or numbers separated by commas."
        ) from None
