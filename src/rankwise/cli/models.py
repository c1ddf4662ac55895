"""From options to an estimator; an option that would have no effect is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankwise.cli.metric_choice import DEFAULT_METRIC
from rankwise.cli.number_options import numbers_in
from rankwise.cli.options import ModelName, ModelOptions, Scale

if TYPE_CHECKING:
    from rankwise.cli.training_set import TrainingSet

CLASSES = {
    ModelName.rankrls: ("RankRLS", "RankRLSCV"),
    ModelName.ranksvm: ("RankSVM", "RankSVMCV"),
    ModelName.ranklogistic: ("RankLogistic", "RankLogisticCV"),
    ModelName.corankrls: ("CoRankRLS", "CoRankRLSCV"),
    ModelName.pursuit: ("RankingPursuit", "RankingPursuitCV"),
    ModelName.auto: ("AutoRanker", "AutoRanker"),
}
PASSED_ON = (
    "kernel",
    "degree",
    "coef0",
    "n_basis",
    "cost",
    "ties",
    "group_weight",
    "beta",
    "loss",
    "nu",
    "views",
)


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
    import rankwise.estimators as estimators
    from rankwise.metrics import get_metric

    plain, searching = (getattr(estimators, name) for name in CLASSES[options.model])
    _refuse_foreign(options, plain)
    if options.model is ModelName.auto:
        return plain(scoring=metric and get_metric(metric).name, random_state=options.random_state)
    _refuse_idle(options, plain)
    alphas = None if options.alpha == "auto" else numbers_in("--alpha", options.alpha)
    if search is None:
        search = options.model is ModelName.pursuit or alphas is None or len(alphas) > 1
        if not search and metric is not None:
            raise ValueError(
                f"--metric {metric} has no effect with --alpha {options.alpha}, which "
                "leaves nothing to choose; leave one of them out."
            )
    given = _given(options, search)
    if not search:
        return plain(**given, **({"alpha": alphas[0]} if alphas else {}))
    given["scoring"] = get_metric(metric or DEFAULT_METRIC).name
    if options.model is not ModelName.pursuit:
        given["alphas"] = alphas
    if options.model is ModelName.corankrls and "nu" in given:
        given["nus"] = [given.pop("nu")]
    return searching(**given)


def calibrated(estimator: Any) -> Any:
    """The same with standard errors and probabilities."""
    from rankwise.uncertainty import CalibratedRanker

    return CalibratedRanker(estimator)


def make_scaler(options: ModelOptions, model: Any, is_sparse: bool) -> Any:
    """What scales the features, or None; sparse features are not centered, to stay sparse."""
    from sklearn import preprocessing

    from rankwise.estimators import GroupScaler

    scale, kernel = options.scale, getattr(model, "kernel", "precomputed")
    if options.model is ModelName.auto and scale not in (Scale.auto, Scale.none):
        raise ValueError("the model auto tries several scalings itself; leave out --scale.")
    if scale is Scale.auto:  # kernel values are no features, and chi2 wants them non-negative
        raw = kernel in ("precomputed", "chi2", "additive_chi2")
        scale = Scale.none if raw else Scale.standard
    elif kernel == "precomputed" and scale is not Scale.none:
        raise ValueError(f"--scale {scale} has no meaning for --kernel precomputed; use none.")
    if "group" in scale:
        log, standard = "log" in scale, "standard" in scale
        return GroupScaler(with_log=log, with_standard=standard, with_mean=not is_sparse)
    if scale is Scale.minmax and is_sparse:
        raise ValueError("--scale minmax would make these sparse features dense; use maxabs.")
    return {
        Scale.none: lambda: None,
        Scale.standard: lambda: preprocessing.StandardScaler(with_mean=not is_sparse),
        Scale.minmax: preprocessing.MinMaxScaler,
        Scale.maxabs: preprocessing.MaxAbsScaler,
        Scale.robust: lambda: preprocessing.RobustScaler(with_centering=not is_sparse),
    }[scale]()


def fit_model(model: Any, preparation: Any, data: TrainingSet) -> Any:
    """The model, trained, in a Pipeline with what makes its features if there is something.

    The preparation is for the model alone to weigh: it sees all rows alike.
    """
    X, known = data.X, {"groups": data.groups, "sample_weight": data.weights}
    if preparation is None:
        return model.fit(X, data.y, **known)
    from sklearn.pipeline import Pipeline

    from rankwise.estimators.pipelines import fit_transform

    model.fit(fit_transform(preparation, X, data.groups, data.y), data.y, **known)
    return Pipeline([("features", preparation), ("rank", model)])


def _given(options: ModelOptions, search: bool) -> dict[str, Any]:
    """Parameters of estimators that were given, in plain types."""
    given: dict[str, Any] = {"random_state": options.random_state}
    for name in PASSED_ON:
        value = getattr(options, name)
        if value is not None:
            given[name] = str(value) if isinstance(value, str) else value
    if options.gamma is not None:
        gammas = numbers_in("--gamma", options.gamma)
        if len(gammas) > 1 and (options.model is ModelName.corankrls or not search):
            raise ValueError(
                f"--gamma {options.gamma}: one value is needed here; `train` with --alpha auto "
                "chooses among several, for all models but corankrls."
            )
        given["gamma"] = gammas if len(gammas) > 1 else gammas[0]
    return given


def _refuse_foreign(options: ModelOptions, plain: Any) -> None:
    """Refuse options that belong to other models."""
    import rankwise.estimators as estimators

    known = plain().get_params(deep=False)
    asked = [name for name in (*PASSED_ON, "gamma") if getattr(options, name) is not None]
    if options.alpha != "auto":
        asked.append("alpha")
    for name in asked:
        if name in known:
            continue
        owners = [
            str(model)
            for model, (owner, _) in CLASSES.items()
            if name in getattr(estimators, owner)().get_params(deep=False)
        ]
        raise ValueError(
            f"the model {options.model} has no option --{name.replace('_', '-')}; "
            f"{' and '.join(owners)} {'has' if len(owners) == 1 else 'have'} it."
        )


def _refuse_idle(options: ModelOptions, plain: Any) -> None:
    """Refuse options that the model has but would not look at."""
    from sklearn.metrics.pairwise import KERNEL_PARAMS

    kernel = options.kernel or plain().kernel
    for name in ("gamma", "degree", "coef0"):
        if getattr(options, name) is not None and name not in KERNEL_PARAMS.get(kernel, (name,)):
            having = [k for k, names in KERNEL_PARAMS.items() if name in names]
            raise ValueError(
                f"the kernel {kernel} of the model {options.model} has no --{name}; add --kernel "
                f"with one of {', '.join(having)}."
            )
    if options.model is ModelName.pursuit and options.nu is not None and not options.views:
        raise ValueError("the model pursuit looks at --nu only if it has several --views.")
