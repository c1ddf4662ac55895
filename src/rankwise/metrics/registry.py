"""Metrics by name: ``get_metric("ndcg@10")``, as in reports and on the command line."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from rankwise.arrays import Array
from rankwise.groups import indices_by_group
from rankwise.metrics.metric import GroupValues, Metric, MetricFunction
from rankwise.metrics.rank_correlation import (
    auc,
    concordance,
    disagreement_error,
    kendall_tau,
    mean_squared_error,
    pooled_auc,
    spearman,
)
from rankwise.metrics.ranking import Ranking
from rankwise.metrics.retrieval import (
    average_precision,
    expected_reciprocal_rank,
    hit_rate,
    judged,
    letor_ndcg,
    ndcg,
    precision,
    r_precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
    success,
)
from rankwise.validation import check_int, suggestion

FUNCTIONS: tuple[MetricFunction, ...] = (
    auc,
    average_precision,
    concordance,
    disagreement_error,
    expected_reciprocal_rank,
    hit_rate,
    judged,
    kendall_tau,
    letor_ndcg,
    mean_squared_error,
    ndcg,
    pooled_auc,
    precision,
    r_precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
    spearman,
    success,
)
"""The public function of each metric."""

METRICS: dict[str, Metric] = {function.metric.name: function.metric for function in FUNCTIONS}
"""Metrics by the names that `get_metric` reads."""

_FUNCTION_NAMES = {metric.function.__name__: name for name, metric in METRICS.items()}
_ALIASES = _FUNCTION_NAMES | {"ap": "map", "rr": "mrr", "recip_rank": "mrr", "r": "recall"}
_TREC_EVAL_NAME = re.compile(r"(?P<word>p|recall|success|map_cut|ndcg_cut)_(?P<k>\d+)")
_TREC_EVAL_WORDS = {"map_cut": "map", "ndcg_cut": "ndcg(gain=linear)"}
_OPTIONS_OF_IR_MEASURES = {"rel": "relevant", "dcg": "gain"}
_GAINS_OF_IR_MEASURES = {"log2": "linear", "exp-log2": "exponential"}
_UNSUPPORTED_PREFIX = re.compile(
    r"alpha_|bpm|compat|err_ia|gm_|inst|nerr|nrbp|num_|numq|numrel|numret|relative_p|sdcg|set_|"
    r"strec|utility"
)
"""Prefixes of measures of trec_eval and ir_measures that rankwise does not compute."""
_ONLY_OF_RUNS = re.compile(r"bpref|inf_?ap|iprec")
"""Prefixes of measures that need the judgments of documents that a run lacks."""
SHORTEST_TYPO = 3  # characters; shorter words resemble too many names
MetricName: TypeAlias = "str | Metric | Callable[..., Any]"
_NAME = re.compile(r"(?P<word>[a-z_]+)(?:\((?P<options>[^()]*)\))?(?:@(?P<k>[^@]*))?")


@dataclass(frozen=True)
class CallableMetric:
    """Apply a user's function of the y and the scores of one group to each group of a ranking."""

    function: Callable[[Array, Array], float]
    name: str

    def __call__(self, ranking: Ranking, **options: Any) -> GroupValues:
        """Return the values of the function; its errors name the group."""
        targets = ranking.targets
        values = np.empty(targets.n_groups)
        for group, rows in enumerate(indices_by_group(targets.codes)):
            try:
                values[group] = self.function(targets.y[rows], ranking.score[rows], **options)
                if np.isinf(values[group]):
                    raise ValueError("an infinite value")
            except Exception as error:
                problem = f"{type(error).__name__}: {str(error).rstrip('.')}"
                raise ValueError(
                    f"metric {self.name!r} failed for group {targets.labels[group]!s} ({len(rows)} "
                    f"items) with {problem}. The function takes the y and the scores of one group "
                    "and returns one number, or NaN if it is undefined."
                ) from error
        return GroupValues(values)


def make_metric(
    function: Callable[[Array, Array], float],
    *,
    title: str | None = None,
    greater_is_better: bool = True,
) -> Metric:
    """Turn a Python function into a metric that can be used wherever a metric name is accepted.

    A plain function is accepted in the same places; its larger values are better.

    Parameters
    ----------
    function : callable
        ``function(y, scores)`` gets two arrays of shape (n_items,) for one group, in the order of
        the rows, and returns a number. Where it returns NaN, the metric is undefined for the group.
    title : str, optional
        Display name; by default the name of the function.
    greater_is_better : bool, default=True
        False for errors.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import numpy as np
    >>> def regret(y, scores):
    ...     "How much worse than the best item the chosen one is."
    ...     return y.max() - y[np.argmax(scores)]
    >>> metric = make_metric(regret, title="Regret", greater_is_better=False)
    >>> metric([3, 1, 2, 5, 4], [0.1, 0.2, 0.9, 0.8, 0.3], ["a", "a", "a", "b", "b"])
    0.5
    """
    if not callable(function):
        raise ValueError(f"function={function!r}; expected a function of y and scores of a group.")
    name = getattr(function, "__name__", type(function).__name__)
    if title is None:
        title = name
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"title={title!r}; expected a display name for the metric.")
    if name == "<lambda>":
        name = title
    docstring = None
    if inspect.isroutine(function):
        docstring = inspect.getdoc(function)
    first_line = (docstring or "A custom metric.").partition("\n")[0]
    return Metric(
        name=name,
        function=CallableMetric(function, name),
        needs="a number from that function",
        title=title,
        short_title=title,
        meaning=first_line,
        greater_is_better=bool(greater_is_better),
        lowest=-np.inf,
        highest=np.inf,
        is_custom=True,
    )


def get_metric(name: MetricName) -> Metric:
    """Return a metric by its name, or make one from a function.

    A name is a word of `metric_names`, in upper or lower case, with options of the metric's
    function in parentheses and a cut-off after ``@``: ``"map"``, ``"nDCG@10"``,
    ``"ndcg(gain=linear)@10"``, ``"p(relevant=2)@5"``. Function names such as ``"precision@5"``
    and names of trec_eval and ir_measures are accepted as well: ``"R@100"``, ``"P_10"``,
    ``"P(rel=2)@5"``, ``"recip_rank"``, ``"map_cut_10"``. ``"ndcg_cut_10"`` and objects of
    ir_measures such as ``nDCG@10`` have the linear gain of trec_eval, which ``"ndcg@10"`` has not.

    Parameters
    ----------
    name : str, Metric, callable or object of ir_measures
        A metric is returned unchanged; a function is converted by `make_metric`.

    Returns
    -------
    Metric
        The metric with its options.

    Examples
    --------
    >>> get_metric("nDCG@10")
    ndcg@10
    >>> get_metric("disagreement").greater_is_better
    False
    """
    if isinstance(name, Metric):
        return name
    is_sklearn_scorer = hasattr(name, "_score_func")
    if is_sklearn_scorer:
        raise ValueError(
            f"{name!r} is a scorer of scikit-learn, which ignores groups; pass the name of a "
            "metric, such as 'ndcg(gain=linear)' for ndcg_score, or a function of the y and the "
            "scores of one group."
        )
    if type(name).__module__.partition(".")[0] == "ir_measures":
        return _parse_metric(_name_of_ir_measure(str(name)))
    if callable(name):
        metric = getattr(name, "metric", None)  # of a function of rankwise, such as ndcg
        if isinstance(metric, Metric):
            return _with_options(metric.name, metric, options_text="", k_text=None)
        return make_metric(name)
    if not isinstance(name, str):
        raise ValueError(
            f"a metric is given by name, such as 'ndcg@10', or as a function, got {name!r}."
        )
    return _parse_metric(name)


def _name_of_ir_measure(name: str) -> str:
    """Write the gain of trec_eval into a name such as "nDCG@10" of ir_measures."""
    if not name.startswith("nDCG") or "dcg=" in name:
        return name
    # "nDCG@10" gets the option dcg=log2, the linear gain
    measure, at, cutoff = name.partition("@")
    if measure.endswith(")"):
        measure = measure.removesuffix(")") + ",dcg=log2)"
    else:
        measure += "(dcg=log2)"
    return measure + at + cutoff


def _parse_metric(name: str) -> Metric:
    """Return the metric that a name such as "ndcg(gain=linear)@10" describes."""
    normalized = name.strip().lower().replace(" ", "").replace("-", "_")
    normalized = normalized.replace("exp_log2", "exp-log2")  # a value with a hyphen
    trec_eval_name = _TREC_EVAL_NAME.fullmatch(normalized)
    if trec_eval_name is not None:  # "ndcg_cut_10" for "ndcg(gain=linear)@10"
        word = trec_eval_name["word"]
        normalized = f"{_TREC_EVAL_WORDS.get(word, word)}@{trec_eval_name['k']}"
    parts = _NAME.fullmatch(normalized)  # word(options)@k
    if parts is None:
        raise _unknown_metric(name, name.strip().lower(), normalized)
    word = _ALIASES.get(parts["word"], parts["word"])
    if word not in METRICS:
        raise _unknown_metric(name, word, normalized)
    return _with_options(name, METRICS[word], parts["options"] or "", parts["k"])


def _with_options(name: str, metric: Metric, options_text: str, k_text: str | None) -> Metric:
    """Return the metric with its options and cut-off set; `name` is for error messages."""
    options = _parse_options(name, options_text, metric)
    label = ""
    if options:
        label = f"({','.join(f'{key}={value}' for key, value in options)})"
    k = _parse_cutoff(name, k_text, metric)
    if k_text is not None:
        options = (*options, ("k", k))
        label = f"{label}@{k}"
    return replace(
        metric,
        name=metric.name + label,
        options=options,
        title=metric.title + label,
        short_title=metric.short_title + label,
        meaning=metric.meaning.replace("the first k places", _describe_places(k)),
    )


def _describe_places(k: int | None) -> str:
    """Return the places down to the cut-off in words."""
    if k is None:
        return "all places"
    if k == 1:
        return "the first place"
    return f"the first {k} places"


def _unknown_metric(name: str, word: str, normalized: str) -> ValueError:
    """Return the error that no metric has this name."""
    hint = "."
    if _UNSUPPORTED_PREFIX.match(normalized):
        hint = "; it is a measure of trec_eval or ir_measures that rankwise does not compute."
    elif _ONLY_OF_RUNS.match(normalized):
        hint = "; rankwise.metrics.evaluate_runs computes it from a run and qrels."
    elif len(word) >= SHORTEST_TYPO:
        hint = suggestion(word, [*METRICS, *_ALIASES])
    return ValueError(
        f"metric {name!r} is not known{hint} The metrics are {', '.join(metric_names())}. A "
        "cut-off follows @ (ndcg@10), options go in parentheses (ndcg(gain=linear)@10)."
    )


def get_metrics(names: MetricName | Iterable[MetricName]) -> list[Metric]:
    """Return one or several metrics without duplicates; names must be unique."""
    if isinstance(names, str) or callable(names):
        names = [names]
    metrics: dict[str, Metric] = {}
    for metric in map(get_metric, names):
        if metrics.setdefault(metric.name, metric) != metric:
            raise ValueError(f"two metrics are called {metric.name!r}; rename one function.")
    return list(metrics.values())


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, without cut-offs.

    Returns
    -------
    tuple of str
        Sorted names for `get_metric`.

    Examples
    --------
    >>> metric_names()  # doctest: +NORMALIZE_WHITESPACE
    ('auc', 'concordance', 'disagreement', 'err', 'hit', 'judged', 'letor_ndcg', 'map', 'mrr',
     'mse', 'ndcg', 'p', 'pooled_auc', 'rbp', 'recall', 'rprec', 'spearman', 'success', 'tau')
    """
    return tuple(sorted(METRICS))


def _parse_cutoff(name: str, k_text: str | None, metric: Metric) -> int | None:
    """Return the cut-off after @, or the default cut-off of the metric's function."""
    k_parameter = inspect.signature(metric.function).parameters.get("k")
    if k_parameter is None:
        if k_text is not None:
            raise ValueError(f"metric {name!r}: {metric.name} has no cut-off; omit @{k_text}.")
        return None
    if k_text is None:
        is_required = k_parameter.default is k_parameter.empty
        if is_required:
            raise ValueError(f"metric {name!r} needs a cut-off, such as {name}@10.")
        default: int | None = k_parameter.default
        return default
    if not k_text.isdecimal():
        raise ValueError(f"metric {name!r}: the cut-off after @ must be a whole number.")
    return check_int("k", int(k_text), least=1)


def _parse_options(name: str, options_text: str, metric: Metric) -> tuple[tuple[str, Any], ...]:
    """Return the options in parentheses, sorted by name."""
    parameters = inspect.signature(metric.function).parameters
    option_names = sorted(parameters.keys() - {"ranking", "k"})
    options: dict[str, Any] = {}
    for option_text in options_text.split(","):
        if not option_text:
            continue
        key, _, value = option_text.partition("=")
        if key not in option_names:  # a name of ir_measures?
            key = _OPTIONS_OF_IR_MEASURES.get(key, key)
            value = _GAINS_OF_IR_MEASURES.get(value.strip("'\""), value)
        if key not in option_names or not value:
            raise ValueError(
                f"metric {name!r}: {option_text!r} is not an option{suggestion(key, option_names)} "
                f"The options of {metric.name} are {', '.join(option_names)}."
            )
        options[key] = _literal_or_text(value)
    return tuple(sorted(options.items()))


def _literal_or_text(text: str) -> Any:
    """Return the number or other literal that a text spells, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
