"""Metrics by name: ``get_metric("ndcg@10")``, as in reports and on the command line."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from rankwise.inputs import suggestion
from rankwise.metrics.averaging import (
    GroupMetric,
    GroupValues,
    MetricValue,
    check_cutoff,
    half_width,
    mean,
    mean_over_groups,
)
from rankwise.metrics.pairwise import AUC, CONCORDANCE, DISAGREEMENT, SPEARMAN, TAU
from rankwise.metrics.ranking import Ranking
from rankwise.metrics.top_heavy import AP, ERR, HIT, NDCG, PRECISION, RECALL, RR


class _Kind(NamedTuple):
    """What there is to say of a metric that has a name; "{first}" stands for its places."""

    core: GroupMetric
    title: str
    meaning: str
    short_title: str = ""
    greater_is_better: bool = True
    lowest: float = 0.0


_KINDS = {
    "ndcg": _Kind(
        NDCG,
        "NDCG",
        "How much of what a perfect order has {first} hold; places further down count less. "
        "1 is a perfect order.",
    ),
    "map": _Kind(
        AP,
        "Mean average precision",
        "At each relevant item, the share of relevant items down to it; then the mean. "
        "1 if all of them come first.",
        "AP",
    ),
    "p": _Kind(PRECISION, "Precision", "Share of {first} that are relevant.", "P"),
    "recall": _Kind(RECALL, "Recall", "Share of the relevant items that are among {first}."),
    "mrr": _Kind(
        RR,
        "Mean reciprocal rank",
        "One over the place of the first relevant item: 1 if it is first, 1/2 if second.",
        "RR",
    ),
    "err": _Kind(
        ERR,
        "Expected reciprocal rank",
        "A reader goes down the list until satisfied: one over the place, on average.",
        "ERR",
    ),
    "auc": _Kind(AUC, "AUC", "Chance that a relevant item stands above one that is not."),
    "disagreement": _Kind(
        DISAGREEMENT,
        "Disagreement error",
        "Share of the pairs of a group that are in the wrong order. 0 is a perfect order, a coin "
        "has 0.5.",
        "Disagreement",
        greater_is_better=False,
    ),
    "concordance": _Kind(
        CONCORDANCE,
        "Concordance",
        "Share of the pairs of a group that are in the right order; a coin has 0.5.",
    ),
    "tau": _Kind(
        TAU,
        "Kendall τ",
        "Pairs in the right order less those in the wrong one, as a share: 1 is the same order, "
        "0 is chance, −1 is upside down.",
        lowest=-1.0,
    ),
    "spearman": _Kind(
        SPEARMAN,
        "Spearman ρ",
        "Correlation of predicted and true ranks: 1 is the same order, 0 is chance, −1 is upside "
        "down.",
        lowest=-1.0,
    ),
    "hit": _Kind(HIT, "Hit rate", "Share of the groups whose best item is among {first}."),
}

_ALIASES = {kind.core.name: word for word, kind in _KINDS.items()} | {"ap": "map", "rr": "mrr"}
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
    greater_is_better : bool
        False for errors.
    lowest : float
        Lower end of its scale, which ends at 1: correlations go down to −1.
    title, short_title : str
        What a person calls its mean ("Mean average precision"), and its value in one group ("AP").
    meaning : str
        What it says, for a reader who does not know it.
    core : GroupMetric
        The metric before its groups are averaged.

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
    core: GroupMetric = field(compare=False)
    greater_is_better: bool = field(compare=False)
    lowest: float = field(compare=False)
    title: str = field(compare=False)
    short_title: str = field(compare=False)
    meaning: str = field(compare=False)

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

        Student's interval, cut at the ends of the scale; NaN if fewer than two groups have a
        value, or all have the same.
        """
        average = mean(*by_group)
        half = half_width(*by_group, average, confidence)
        low, high = max(average - half, self.lowest), min(average + half, 1.0)
        return (average, low, high) if half >= 0 else (average, half, half)

    def __repr__(self) -> str:
        return self.name


def get_metric(name: str | Metric) -> Metric:
    """Look a metric up by its name.

    A name is a word of `metric_names`, in upper or lower case, with a cut-off after ``@`` and
    options of the metric's function in parentheses: ``"map"``, ``"nDCG@10"``,
    ``"ndcg(gain=linear)@10"``, ``"p(relevant=2)@5"``. Function names such as ``"precision@5"``
    are understood too.

    Parameters
    ----------
    name : str or Metric
        A metric is returned as it is.

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
    if not isinstance(name, str):
        raise ValueError(f"a metric is given by name, such as 'ndcg@10', got {name!r}.")
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
        kind.title + label,
        (kind.short_title or kind.title) + label,
        kind.meaning.format(first=first),
    )


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` knows, without cut-offs.

    Examples
    --------
    >>> metric_names()  # doctest: +NORMALIZE_WHITESPACE
    ('ndcg', 'map', 'p', 'recall', 'mrr', 'err', 'auc', 'disagreement', 'concordance', 'tau',
     'spearman', 'hit')
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
