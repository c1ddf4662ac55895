"""Metrics by name: ``get_metric("ndcg@10")``, as in reports and on the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from rankwise.metrics import binary, graded, pairwise, whole_order
from rankwise.metrics.arguments import check_cutoff
from rankwise.metrics.averaging import GroupMetric, GroupValues, MetricValue
from rankwise.metrics.ranking import Ranking
from rankwise.options import suggestion


class _Kind(NamedTuple):
    """A metric that has a name: the public function, and its value before averaging."""

    function: Callable[..., MetricValue]
    core: GroupMetric
    greater_is_better: bool = True

    def defaults(self) -> dict[str, Any]:
        """Options with their defaults, except for what happens to the values of the groups."""
        parameters = inspect.signature(self.function).parameters.values()
        named = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        general = ("undefined", "per_group", "sample_weight")
        return {name: named[name] for name in named if name not in general}


_KINDS = {
    "ndcg": _Kind(graded.ndcg, graded.NDCG),
    "map": _Kind(binary.average_precision, binary.AP),
    "p": _Kind(binary.precision, binary.PRECISION),
    "recall": _Kind(binary.recall, binary.RECALL),
    "mrr": _Kind(binary.reciprocal_rank, binary.RR),
    "err": _Kind(graded.expected_reciprocal_rank, graded.ERR),
    "auc": _Kind(pairwise.auc, pairwise.AUC),
    "disagreement": _Kind(pairwise.disagreement_error, pairwise.DISAGREEMENT, False),
    "concordance": _Kind(pairwise.concordance, pairwise.CONCORDANCE),
    "tau": _Kind(pairwise.kendall_tau, pairwise.TAU),
    "spearman": _Kind(whole_order.spearman, whole_order.SPEARMAN),
    "hit": _Kind(whole_order.hit_rate, whole_order.HIT),
}

_ALIASES = {
    "ap": "map",
    "average_precision": "map",
    "precision": "p",
    "rr": "mrr",
    "reciprocal_rank": "mrr",
    "expected_reciprocal_rank": "err",
    "disagreement_error": "disagreement",
    "kendall_tau": "tau",
    "hit_rate": "hit",
}

_NAME = re.compile(r"(?P<kind>[a-z_]+)(?:\((?P<options>[^()]*)\))?(?:@(?P<k>[^@]*))?")


@dataclass(frozen=True)
class Metric:
    """A metric with its options; prints as the name that `get_metric` reads.

    Attributes
    ----------
    name : str
        Such as ``"ndcg@10"``.
    greater_is_better : bool
        False for errors.
    options : tuple of (str, value)
        Options that are not the default, the cut-off among them.

    Examples
    --------
    >>> metric = get_metric("P@2")
    >>> metric
    p@2
    >>> metric([1, 0, 1], [0.9, 0.5, 0.1])
    0.5
    """

    name: str
    greater_is_better: bool = field(compare=False)
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(
        self, y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None = None, **options: Any
    ) -> MetricValue:
        """Evaluate; further options are those of the metric's function."""
        function = _KINDS[self._kind].function
        return function(y_true, y_score, groups, **{**dict(self.options), **options})

    def by_group(self, ranking: Ranking) -> GroupValues:
        """Value in each group of data that are sorted already, NaN where undefined."""
        kind = _KINDS[self._kind]
        return kind.core.by_group(ranking, **{**kind.defaults(), **dict(self.options)})

    @property
    def core(self) -> GroupMetric:
        """The metric before its groups are averaged."""
        return _KINDS[self._kind].core

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def _kind(self) -> str:
        return re.split(r"[(@]", self.name)[0]


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
    options = _read_options(name, parts["options"] or "", kind)
    written = f"({','.join(f'{key}={value}' for key, value in options)})" if options else ""
    k = _read_cutoff(name, parts["k"], kind)
    if k is None:
        return Metric(word + written, kind.greater_is_better, options)
    return Metric(f"{word}{written}@{k}", kind.greater_is_better, (*options, ("k", k)))


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` knows, without cut-offs.

    Examples
    --------
    >>> metric_names()  # doctest: +NORMALIZE_WHITESPACE
    ('ndcg', 'map', 'p', 'recall', 'mrr', 'err', 'auc', 'disagreement', 'concordance', 'tau',
     'spearman', 'hit')
    """
    return tuple(_KINDS)


def _read_cutoff(name: str, text: str | None, kind: _Kind) -> int | None:
    defaults = kind.defaults()
    if text is None:
        if defaults.get("k") is inspect.Parameter.empty:
            raise ValueError(f"metric {name!r} needs a cut-off, such as {name}@10.")
        return None
    if "k" not in defaults:
        raise ValueError(f"metric {name!r}: {kind.core.name} has no cut-off; leave out @{text}.")
    if not text.isdecimal():
        raise ValueError(f"metric {name!r}: the cut-off after @ must be a whole number.")
    return check_cutoff(int(text))


def _read_options(name: str, text: str, kind: _Kind) -> tuple[tuple[str, Any], ...]:
    known = [option for option in kind.defaults() if option != "k"]
    options: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        key, _, value = item.partition("=")
        if key not in known or not value:
            raise ValueError(
                f"metric {name!r}: {item!r} is not an option; {suggestion(key, known)}"
                f"{kind.core.name} has {', '.join(f'{option}=...' for option in known)}."
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
