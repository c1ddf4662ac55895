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
from rankwise.metrics import rank_correlation, retrieval  # noqa: F401 (fill METRICS)
from rankwise.metrics.metric import METRICS, GroupValues, Metric
from rankwise.metrics.ranking import Ranking
from rankwise.validation import check_int, suggestion

_ALIASES = {kind.function.__name__: word for word, kind in METRICS.items()}
_ALIASES |= {"ap": "map", "rr": "mrr", "recip_rank": "mrr", "r": "recall"}
_OF_TREC_EVAL = re.compile(r"(?P<word>p|recall|success)_(?P<k>\d+)")  # P_10 for P@10
_ELSEWHERE = re.compile(
    r"alpha_|bpm|bpref|compat|err_ia|gm_|inf_?ap|inst|iprec|map_cut|ndcg_cut|nerr|nrbp|num_|"
    r"numq|numrel|numret|relative_p|sdcg|set_|strec|utility"
)
"""Beginnings of measures of trec_eval and ir_measures that do not exist here."""
SHORTEST_TYPO = 2  # characters; shorter words resemble too many names
MetricName: TypeAlias = "str | Metric | Callable[..., Any]"
_NAME = re.compile(r"(?P<kind>[a-z_]+)(?:\((?P<options>[^()]*)\))?(?:@(?P<k>[^@]*))?")


@dataclass(frozen=True)
class CallableMetric:
    """A user's function of the y and the scores of one group, as a function of a ranking."""

    function: Callable[[Array, Array], float]
    name: str

    def __call__(self, ranking: Ranking, **options: Any) -> GroupValues:
        """The values of the function; an error of it says in which group it was."""
        targets, rows = ranking.targets, np.argsort(ranking.targets.codes, kind="stable")
        values = np.empty(targets.n_groups)
        for group, start in enumerate(targets.starts):
            own = rows[start : start + targets.sizes[group]]
            try:
                values[group] = self.function(targets.y[own], ranking.score[own], **options)
                if np.isinf(values[group]):
                    raise ValueError("an infinite value")
            except Exception as error:
                problem = f"{type(error).__name__}: {str(error).rstrip('.')}"
                raise ValueError(
                    f"metric {self.name!r} failed for group {targets.labels[group]!s} ({len(own)} "
                    f"items) with {problem}. It gets y and the scores of one group, and returns "
                    "one number, NaN if it has no value there."
                ) from error
        return GroupValues(values)


def make_metric(
    function: Callable[[Array, Array], float],
    *,
    title: str | None = None,
    greater_is_better: bool = True,
) -> Metric:
    """Make a metric of a function of one's own, for use wherever the name of a metric is.

    A function alone is taken in these places, too: as a metric whose larger values are better.

    Parameters
    ----------
    function : callable
        ``function(y, scores)`` gets two arrays of shape (n_items,) for one group, in the order of
        the rows, and returns a number. Where it returns NaN, the metric is undefined for the group.
    title : str, optional
        What people call it; by default the name of the function.
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
    title = name if title is None else title
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"title={title!r}; expected what people call the metric.")
    name = title if name == "<lambda>" else name
    text = inspect.getdoc(function) if inspect.isroutine(function) else None
    meaning = (text or "A metric of one's own.").partition("\n")[0]
    own, needs = CallableMetric(function, name), "a number from that function"
    facts: dict[str, Any] = {"lowest": -np.inf, "highest": np.inf, "is_own": True}
    return Metric(name, own, needs, title, title, meaning, bool(greater_is_better), **facts)


def get_metric(name: MetricName) -> Metric:
    """Look a metric up by its name, or make one of a function.

    A name is a word of `metric_names`, in upper or lower case, with a cut-off after ``@`` and
    options of the metric's function in parentheses: ``"map"``, ``"nDCG@10"``,
    ``"ndcg(gain=linear)@10"``, ``"p(relevant=2)@5"``. Function names such as ``"precision@5"``
    are understood too, and so are ``"R@100"``, ``"P_10"``, ``"recall_100"``, ``"success_5"`` and
    ``"recip_rank"`` of trec_eval and ir_measures.

    Parameters
    ----------
    name : str, Metric or callable
        A metric is returned as it is; a function becomes one as by `make_metric`.

    Returns
    -------
    Metric

    Examples
    --------
    >>> get_metric("nDCG@10")
    ndcg@10
    >>> get_metric("disagreement").greater_is_better
    False
    """
    if isinstance(name, Metric):
        return name
    if hasattr(name, "_score_func"):
        raise ValueError(
            f"{name!r} is a scorer of scikit-learn, which does not know groups; give the name of a "
            "metric, such as 'ndcg(gain=linear)' for ndcg_score, or a function of the y and the "
            "scores of one group."
        )
    if callable(name):
        known: Metric | None = getattr(name, "metric", None)  # of a function of this library
        if known is None:
            return make_metric(name)
        name = known.name
    if not isinstance(name, str):
        raise ValueError(
            f"a metric is given by name, such as 'ndcg@10', or as a function, got {name!r}."
        )
    spelled = name.strip().lower().replace(" ", "").replace("-", "_")
    of_trec_eval = _OF_TREC_EVAL.fullmatch(spelled)
    if of_trec_eval is not None:
        spelled = f"{of_trec_eval['word']}@{of_trec_eval['k']}"
    parts = _NAME.fullmatch(spelled)
    word = parts["kind"] if parts else name.strip().lower()
    word = _ALIASES.get(word, word)
    if parts is None or word not in METRICS:
        guess = ""
        if _ELSEWHERE.match(spelled):
            guess = "it is a measure of trec_eval or ir_measures that rankwise does not compute; "
        elif len(word) > SHORTEST_TYPO:
            guess = suggestion(word, [*METRICS, *_ALIASES])
        raise ValueError(
            f"metric {name!r} is not known; {guess}known are {', '.join(metric_names())}; "
            "a cut-off follows @ (ndcg@10), options go in parentheses (ndcg(gain=linear)@10)."
        )
    kind = METRICS[word]
    options = _read_options(name, parts["options"] or "", kind)
    label = f"({','.join(f'{key}={value}' for key, value in options)})" if options else ""
    k = _read_cutoff(name, parts["k"], kind)
    if parts["k"] is not None:
        options, label = (*options, ("k", k)), f"{label}@{k}"
    places = {None: "all places", 1: "the first place"}.get(k, f"the first {k} places")
    return replace(
        kind,
        name=word + label,
        options=options,
        title=kind.title + label,
        short_title=kind.short_title + label,
        meaning=kind.meaning.replace("the first k places", places),
    )


def get_metrics(names: MetricName | Iterable[MetricName]) -> list[Metric]:
    """Look up one or several metrics, each one once; two may not have the same name."""
    several = [names] if isinstance(names, str) or callable(names) else list(names)
    metrics = {metric.name: metric for metric in map(get_metric, several)}
    for metric in map(get_metric, several):
        if metric != metrics[metric.name]:
            raise ValueError(f"two metrics are called {metric.name!r}; give functions other names.")
    return list(metrics.values())


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` knows, without cut-offs.

    Examples
    --------
    >>> metric_names()  # doctest: +NORMALIZE_WHITESPACE
    ('auc', 'concordance', 'disagreement', 'err', 'hit', 'judged', 'letor_ndcg', 'map', 'mrr',
     'mse', 'ndcg', 'p', 'pooled_auc', 'rbp', 'recall', 'rprec', 'spearman', 'success', 'tau')
    """
    return tuple(sorted(METRICS))


def _read_cutoff(name: str, text: str | None, metric: Metric) -> int | None:
    """The cut-off after @, else that of the metric's function."""
    k = inspect.signature(metric.function).parameters.get("k")
    if text is None:
        if k is not None and k.default is k.empty:
            raise ValueError(f"metric {name!r} needs a cut-off, such as {name}@10.")
        return None if k is None else k.default
    if k is None:
        raise ValueError(f"metric {name!r}: {metric.name} has no cut-off; leave out @{text}.")
    if not text.isdecimal():
        raise ValueError(f"metric {name!r}: the cut-off after @ must be a whole number.")
    return check_int("k", int(text), least=1)


def _read_options(name: str, text: str, metric: Metric) -> tuple[tuple[str, Any], ...]:
    known = sorted(inspect.signature(metric.function).parameters.keys() - {"ranking", "k"})
    options: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        key, _, value = item.partition("=")
        if key not in known or not value:
            raise ValueError(
                f"metric {name!r}: {item!r} is not an option; {suggestion(key, known)}"
                f"{metric.name} has {', '.join(f'{option}=...' for option in known)}."
            )
        try:
            options[key] = ast.literal_eval(value)
        except (SyntaxError, ValueError):  # a word
            options[key] = value
    return tuple(sorted(options.items()))
