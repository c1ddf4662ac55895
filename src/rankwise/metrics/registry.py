"""Metrics by name: ``get_metric("ndcg@10")``, as in reports and on the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from rankwise.arrays import Array
from rankwise.inputs import suggestion
from rankwise.metrics.averaging import (
    ROUNDING,
    GroupMetric,
    GroupValues,
    MetricValue,
    check_cutoff,
    half_width,
    mean,
    mean_over_groups,
)
from rankwise.metrics.pairwise import (
    auc,
    concordance,
    disagreement_error,
    kendall_tau,
    mean_squared_error,
    pooled_auc,
    spearman,
)
from rankwise.metrics.ranking import Ranking
from rankwise.metrics.top_heavy import (
    average_precision,
    expected_reciprocal_rank,
    hit_rate,
    judged,
    letor_ndcg,
    ndcg,
    precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
)


class _Kind(NamedTuple):
    """What there is to say of a metric that has a name; "{first}" stands for its places."""

    core: GroupMetric
    title: str
    meaning: str
    short_title: str = ""
    greater_is_better: bool = True
    lowest: float = 0.0
    highest: float = 1.0


_KINDS = {
    "ndcg": _Kind(
        ndcg,
        "NDCG",
        "How much of what a perfect order has {first} hold; places further down count less. "
        "1 is a perfect order.",
    ),
    "map": _Kind(
        average_precision,
        "Mean average precision",
        "At each relevant item, the share of relevant items down to it; then the mean. "
        "1 if all of them come first.",
        "AP",
    ),
    "p": _Kind(precision, "Precision", "Share of {first} that are relevant.", "P"),
    "recall": _Kind(recall, "Recall", "Share of the relevant items that are among {first}."),
    "mrr": _Kind(
        reciprocal_rank,
        "Mean reciprocal rank",
        "One over the place of the first relevant item: 1 if it is first, 1/2 if second.",
        "RR",
    ),
    "err": _Kind(
        expected_reciprocal_rank,
        "Expected reciprocal rank",
        "A reader goes down the list until satisfied: one over the place, on average.",
        "ERR",
    ),
    "auc": _Kind(auc, "AUC", "Chance that a relevant item stands above one that is not."),
    "disagreement": _Kind(
        disagreement_error,
        "Disagreement error",
        "Share of the pairs of a group that are in the wrong order. 0 is a perfect order, a coin "
        "has 0.5.",
        "Disagreement",
        greater_is_better=False,
    ),
    "concordance": _Kind(
        concordance,
        "Concordance",
        "Share of the pairs of a group that are in the right order; a coin has 0.5.",
    ),
    "tau": _Kind(
        kendall_tau,
        "Kendall τ",
        "Pairs in the right order less those in the wrong one, as a share: 1 is the same order, "
        "0 is chance, −1 is upside down.",
        lowest=-1.0,
    ),
    "spearman": _Kind(
        spearman,
        "Spearman ρ",
        "Correlation of predicted and true ranks: 1 is the same order, 0 is chance, −1 is upside "
        "down.",
        lowest=-1.0,
    ),
    "hit": _Kind(hit_rate, "Hit rate", "Share of the groups whose best item is among {first}."),
    "pooled_auc": _Kind(
        pooled_auc,
        "AUC of all items",
        "Chance that a relevant item has a higher score than one that is not, groups aside.",
    ),
    "mse": _Kind(
        mean_squared_error,
        "Mean squared error",
        "Square of the difference between score and true value, on average.",
        "Squared error",
        greater_is_better=False,
        highest=np.inf,
    ),
    "letor_ndcg": _Kind(
        letor_ndcg,
        "NDCG of LETOR",
        "How much of what a perfect order has {first} hold, counted as the tools of LETOR do.",
    ),
    "rbp": _Kind(
        rank_biased_precision,
        "Rank-biased precision",
        "Share of relevant items among those seen by a reader who goes down the list and may stop "
        "after each item.",
        "RBP",
    ),
    "judged": _Kind(judged, "Judged", "Share of the items at {first} whose relevance is known."),
}

_ALIASES = {kind.core.name: word for word, kind in _KINDS.items()} | {"ap": "map", "rr": "mrr"}
MetricName: TypeAlias = "str | Metric | Callable[..., Any]"
_NAME = re.compile(r"(?P<kind>[a-z_]+)(?:\((?P<options>[^()]*)\))?(?:@(?P<k>[^@]*))?")


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric with its options; prints as the name that `get_metric` reads.

    Attributes
    ----------
    name : str
        Such as ``"ndcg@10"``.
    options : tuple of (str, value)
        Options that are not the default, the cut-off among them.
    core : GroupMetric
        The function of the metric, which knows its value in each group.
    greater_is_better : bool
        False for errors.
    lowest, highest : float
        The ends of its scale: correlations go from −1 to 1.
    title, short_title : str
        What a person calls its mean ("Mean average precision"), and its value in one group ("AP").
    meaning : str
        What it says, for a reader who does not know it.

    Examples
    --------
    >>> metric = get_metric("P@2")
    >>> metric
    p@2
    >>> metric([1, 0, 1], [0.9, 0.5, 0.1])
    0.5
    """

    name: str
    options: tuple[tuple[str, Any], ...]
    core: GroupMetric
    greater_is_better: bool
    lowest: float
    highest: float
    title: str
    short_title: str
    meaning: str

    def __call__(
        self, y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None = None, **options: Any
    ) -> MetricValue:
        """Evaluate; further options are those of the metric's function."""
        return mean_over_groups(
            self.core, y_true, y_score, groups, **{**dict(self.options), **options}
        )

    def by_group(self, ranking: Ranking) -> GroupValues:
        """Value in each group of data that are sorted already, NaN where undefined."""
        return self.core.by_group(ranking, **dict(self.options))

    def interval(
        self, by_group: GroupValues, confidence: float = 0.95
    ) -> tuple[float, float, float]:
        """Mean over the groups that have a value, and the two ends of its interval.

        Student's interval over the groups, for pooled metrics by linearization; for the AUC of one
        list DeLong's. It is cut at the ends of the scale; NaN if fewer than two groups have a
        value, or all have the same.
        """
        values, weights, error = by_group
        average = mean(values, weights)
        if error is None:
            half = half_width(values, weights, average, confidence)
        else:
            half = float(ndtri(0.5 + confidence / 2) * error) if error > ROUNDING else np.nan
        low, high = max(average - half, self.lowest), min(average + half, self.highest)
        return (average, low, high) if half >= 0 else (average, half, half)

    def __repr__(self) -> str:
        return self.name


@dataclass(unsafe_hash=True)
class OwnMetric(GroupMetric):
    """A function of the y and the scores of one group, in the place of a metric's function."""

    function: Callable[[Array, Array], float]
    name: str
    needs: str = "a number from that function"
    has_weights: bool = False
    has_gaps: bool = False

    def by_group(self, ranking: Ranking, **options: Any) -> GroupValues:
        """The values of the function; an error of it says in which group it was."""
        targets, rows = ranking.targets, np.argsort(ranking.targets.codes, kind="stable")
        values = np.empty(targets.n_groups)
        for group, start in enumerate(targets.starts):
            own = rows[start : start + targets.sizes[group]]
            try:
                values[group] = self.function(targets.y[own], ranking.score[own], **options)
            except Exception as error:
                problem = f"{type(error).__name__}: {str(error).rstrip('.')}"
                raise ValueError(
                    f"metric {self.name!r} failed for group {targets.labels[group]!s} ({len(own)} "
                    f"items) with {problem}. It gets y and the scores of one group, and returns "
                    "one number, NaN if it has no value there."
                ) from error
        if np.isinf(values).any():
            label = targets.labels[np.argmax(np.isinf(values))]
            raise ValueError(
                f"metric {self.name!r} is infinite for group {label!s}; return NaN there."
            )
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
    meaning = inspect.getdoc(function) if inspect.isroutine(function) else None
    meaning = (meaning or "A metric of one's own.").splitlines()[0]
    return Metric(
        name,
        (),
        OwnMetric(function, name),
        bool(greater_is_better),
        -np.inf,
        np.inf,
        title,
        title,
        meaning,
    )


def get_metric(name: MetricName) -> Metric:
    """Look a metric up by its name, or make one of a function.

    A name is a word of `metric_names`, in upper or lower case, with a cut-off after ``@`` and
    options of the metric's function in parentheses: ``"map"``, ``"nDCG@10"``,
    ``"ndcg(gain=linear)@10"``, ``"p(relevant=2)@5"``. Function names such as ``"precision@5"``
    are understood too.

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
    if callable(name):
        known: str | None = getattr(name, "name", None)  # of a function of this library
        if known not in _ALIASES:
            return make_metric(name)
        name = known
    if not isinstance(name, str):
        raise ValueError(
            f"a metric is given by name, such as 'ndcg@10', or as a function, got {name!r}."
        )
    parts = _NAME.fullmatch(name.strip().lower().replace(" ", "").replace("-", "_"))
    word = parts["kind"] if parts else name.strip().lower()
    word = _ALIASES.get(word, word)
    if parts is None or word not in _KINDS:
        guess = suggestion(word, [*_KINDS, *_ALIASES])
        raise ValueError(
            f"metric {name!r} is not known; {guess}known are {', '.join(_KINDS)}; "
            "a cut-off follows @ (ndcg@10), options go in parentheses (ndcg(gain=linear)@10)."
        )
    kind = _KINDS[word]
    options = _read_options(name, parts["options"] or "", kind.core)
    label = f"({','.join(f'{key}={value}' for key, value in options)})" if options else ""
    k = _read_cutoff(name, parts["k"], kind.core)
    first = "all places"
    if k is not None:
        options, label = (*options, ("k", k)), f"{label}@{k}"
        first = "the first place" if k == 1 else f"the first {k} places"
    return Metric(
        word + label,
        options,
        kind.core,
        kind.greater_is_better,
        kind.lowest,
        kind.highest,
        kind.title + label,
        (kind.short_title or kind.title) + label,
        kind.meaning.format(first=first),
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
    ('ndcg', 'map', 'p', 'recall', 'mrr', 'err', 'auc', 'disagreement', 'concordance', 'tau',
     'spearman', 'hit', 'pooled_auc', 'mse', 'letor_ndcg', 'rbp', 'judged')
    """
    return tuple(_KINDS)


def _read_cutoff(name: str, text: str | None, core: GroupMetric) -> int | None:
    k = inspect.signature(core.by_group).parameters.get("k")
    if text is None:
        if k is not None and k.default is k.empty:
            raise ValueError(f"metric {name!r} needs a cut-off, such as {name}@10.")
        return None
    if k is None:
        raise ValueError(f"metric {name!r}: {core.name} has no cut-off; leave out @{text}.")
    if not text.isdecimal():
        raise ValueError(f"metric {name!r}: the cut-off after @ must be a whole number.")
    return check_cutoff(int(text))


def _read_options(name: str, text: str, core: GroupMetric) -> tuple[tuple[str, Any], ...]:
    known = sorted(inspect.signature(core.by_group).parameters.keys() - {"ranking", "k"})
    options: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        key, _, value = item.partition("=")
        if key not in known or not value:
            raise ValueError(
                f"metric {name!r}: {item!r} is not an option; {suggestion(key, known)}"
                f"{core.name} has {', '.join(f'{option}=...' for option in known)}."
            )
        options[key] = _read_value(value)
    return tuple(sorted(options.items()))


def _read_value(text: str) -> float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
