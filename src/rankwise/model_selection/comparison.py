"""Which ranker is better: paired comparison over the same groups."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.frames import frame_columns
from rankwise.machine import calm
from rankwise.model_selection.paired_tests import (
    TESTS,
    holm,
    mean_interval,
    randomization_test,
    signed_rank_test,
)
from rankwise.options import check_option
from rankwise.real_numbers import as_real
from rankwise.text_tables import TABLE_FORMATS

FORMATS = ("text", "markdown", "latex", "html", "csv", "json")


class ComparisonRow(NamedTuple):
    """Two rankers compared, one line of a `Comparison`.

    Attributes
    ----------
    a, b : str
        Their names.
    mean_a, mean_b : float
        Means over the groups.
    difference : float
        ``mean_a − mean_b``.
    low, high : float
        Confidence interval of the difference; nan if there is only one group.
    wins, ties, losses : int
        Number of groups where a is better than, as good as, worse than b.
    p : float
        Two-sided p-value of the test.
    p_holm : float
        The same corrected for all comparisons of the table.
    significant : bool
        Whether ``p_holm`` is at most 1 − confidence.
    """

    a: str
    b: str
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p: float
    p_holm: float
    significant: bool


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Result of `compare`: a table with one row for each two rankers.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        The comparisons.
    n_groups : int
        Number of groups in use.
    n_dropped : int
        Number of groups left out because some ranker has no value there.
    confidence : float
        Level of the intervals.
    test : str
        Which test the p-values come from.
    """

    rows: tuple[ComparisonRow, ...]
    n_groups: int
    n_dropped: int
    confidence: float
    test: str = "wilcoxon"

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the fields of `ComparisonRow` as columns."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "Comparison.to_frame needs pandas: pip install pandas, or use rows."
            ) from error
        return pandas.DataFrame(list(self.rows), columns=list(ComparisonRow._fields))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers in types of JSON; NaN becomes None."""
        rows = [
            {name: None if value != value else value for name, value in row._asdict().items()}
            for row in self.rows
        ]
        return {
            "groups": self.n_groups,
            "left_out": self.n_dropped,
            "confidence": self.confidence,
            "test": self.test,
            "comparisons": rows,
        }

    def to_text(self, format: str = "text") -> str:
        """Return the table in a format.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "html", "csv", "json"}
            For a terminal, a README, a paper, a page, a spreadsheet, another program.
        """
        check_option("format", format, FORMATS)
        if format in TABLE_FORMATS:
            rows = [list(self._header), *(list(_cells(row)) for row in self.rows)]
            return TABLE_FORMATS[format]([("", rows, 2)], [self._footer])
        if format == "json":
            return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        if format == "csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerows([ComparisonRow._fields, *self.rows])
            return text.getvalue()
        return repr(self) + "\n"

    def __repr__(self) -> str:
        table = [self._header, *(_cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(cells, widths, strict=True)).rstrip()
            for cells in table
        ]
        return "\n".join([*lines, self._footer])

    def _repr_html_(self) -> str:
        return self.to_text("html")

    @property
    def _header(self) -> tuple[str, ...]:
        interval = f"{100 * self.confidence:g}% interval"
        return ("a", "b", "mean a", "mean b", "a − b", interval, "w/t/l", "p", "p Holm", "")

    @property
    def _footer(self) -> str:
        dropped = f", {self.n_dropped} left out as undefined" if self.n_dropped else ""
        groups = "1 group" if self.n_groups == 1 else f"{self.n_groups:,} groups"
        way = "" if self.test == "wilcoxon" else f"; {self.test} test"
        return f"{groups}{dropped}{way}; * significant at {1 - self.confidence:.3g}"


@calm
def compare(
    errors: Mapping[str, ArrayLike] | Any,
    *,
    confidence: float = 0.95,
    greater_is_better: bool = False,
    baseline: str | None = None,
    test: str = "wilcoxon",
) -> Comparison:
    """Compare rankers by their errors (or scores) in the same groups.

    Every two rankers are compared by a test on the differences of their values that asks nothing
    of their distribution but symmetry under the null hypothesis; the p-values are corrected by
    Holm's method, which keeps the chance of any false finding in the table below 1 − confidence.

    Parameters
    ----------
    errors : mapping from name to array-like of shape (n_groups,), or data frame
        Value of one metric in each group, the groups in the same order for all rankers: what a
        metric gives with ``per_group=True``, or ``Evaluation.per_group["ndcg@10"]``; in a frame one
        column for each ranker. Groups where any ranker has nan are left out for all and counted.
    confidence : float
        Level of the intervals; 1 − confidence is the level of significance.
    greater_is_better : bool
        True if the values are scores such as NDCG; only wins and losses depend on it.
    baseline : str, optional
        Compare each of the others with this one only, as b: fewer comparisons, milder correction.
    test : {"wilcoxon", "randomization"}
        Wilcoxon's signed-rank test looks at the ranks of the differences, so a few groups with
        huge ones do not decide it. The randomization test looks at the mean itself, the number
        that papers report [1]_: the share of all signs of the differences that give a mean as far
        from zero. Choose before you look at the p-values.

    Returns
    -------
    Comparison
        Prints as a table; ``rows`` and ``to_frame()`` give its numbers, ``to_text("latex")`` a
        table for a paper.

    Notes
    -----
    In Wilcoxon's test equal values take part in the ranking of the differences and count for
    neither side (Pratt's way, ``zero_method="pratt"`` of `scipy.stats.wilcoxon`): dropping them
    would hide that two rankers mostly agree. Up to 100 groups the p-value is exact, with ties too;
    beyond, it is the normal approximation of SciPy. The randomization test tries all signs of up
    to 20 differences other than zero; for more it draws 100,000 with a fixed seed, and its p-value
    has a standard error of 0.0007 at 0.05. Differences that are equal up to rounding are taken as
    equal. If all are zero, p is 1.

    The interval is Student's for the mean difference. It needs no seed, and the mean over tens of
    groups is close to normal whatever the distribution of the metric; a bootstrap would say the
    same with random digits. It is not corrected for the number of comparisons.

    References
    ----------
    .. [1] Smucker, Allan, Carterette: A comparison of statistical significance tests for
       information retrieval evaluation. CIKM 2007.

    Examples
    --------
    >>> from rankwise.model_selection import compare
    >>> print(compare({"linear": [0.1, 0.3, 0.2, 0.4, 0.2, 0.3], "rbf": [0, 0.1, 0.1, 0.1, 0, 0]}))
    a       b    mean a  mean b  a − b   95% interval     w/t/l  p       p Holm
    linear  rbf  0.2500  0.0500  0.2000  0.1061 … 0.2939  0/0/6  0.0312  0.0312  *
    6 groups; * significant at 0.05
    """
    values, n_dropped = _check(errors)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    check_option("test", test, TESTS)
    pairs = _pairs(list(values), baseline)
    p_of = signed_rank_test if test == "wilcoxon" else randomization_test
    p = [p_of(_rounded(values[a] - values[b], _scale(values))) for a, b in pairs]
    rows = tuple(
        _row(a, b, values, confidence, greater_is_better, p_value, corrected)
        for (a, b), p_value, corrected in zip(pairs, p, holm(p), strict=True)
    )
    return Comparison(rows, len(next(iter(values.values()))), n_dropped, float(confidence), test)


def _check(errors: Any) -> tuple[dict[str, Array], int]:
    """The values in the groups where all rankers have one, and the number of other groups."""
    errors = errors if isinstance(errors, Mapping) else frame_columns(errors)
    if errors is None or len(errors) < 2:
        raise ValueError(
            "compare needs a mapping with at least two rankers, {name: value in each group}."
        )
    arrays = {str(name): as_real(str(name), values) for name, values in errors.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or np.isinf(array).any():
            raise ValueError(
                f"the values of {name!r} have shape {array.shape}; expected a flat list of "
                "finite numbers (or nan), one for each group: metric(..., per_group=True)."
            )
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the rankers have different numbers of groups: {sizes}.")
    n_groups = len(next(iter(arrays.values())))
    defined = np.flatnonzero(np.isfinite(list(arrays.values())).all(axis=0))
    if not len(defined):
        raise ValueError(
            f"no group is left: in each of the {n_groups} groups some ranker has no value."
        )
    return {name: array[defined] for name, array in arrays.items()}, n_groups - len(defined)


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(itertools.combinations(names, 2))
    if baseline not in names:
        raise ValueError(f"baseline={baseline!r} is not among the rankers {', '.join(names)}.")
    return [(name, baseline) for name in names if name != baseline]


def _scale(values: dict[str, Array]) -> float:
    """Largest value of all: differences are told apart down to 1e-12 of it."""
    return max(float(np.abs(array).max()) for array in values.values()) or 1.0


def _row(
    a: str,
    b: str,
    values: dict[str, Array],
    confidence: float,
    greater_is_better: bool,
    p: float,
    p_holm: float,
) -> ComparisonRow:
    difference = values[a] - values[b]
    low, high = mean_interval(difference, confidence)
    sign = np.sign(_rounded(difference, _scale(values))) * (1 if greater_is_better else -1)
    return ComparisonRow(
        a=a,
        b=b,
        mean_a=float(values[a].mean()),
        mean_b=float(values[b].mean()),
        difference=float(difference.mean()),
        low=low,
        high=high,
        wins=int((sign > 0).sum()),
        ties=int((sign == 0).sum()),
        losses=int((sign < 0).sum()),
        p=p,
        p_holm=p_holm,
        significant=p_holm <= 1 - confidence + 1e-12,
    )


def _rounded(difference: Array, scale: float) -> Array:
    """Differences in units of the scale; those that rounding errors tell apart become equal."""
    return np.round(difference / scale, 12)


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    return (
        row.a,
        row.b,
        f"{row.mean_a:.4f}",
        f"{row.mean_b:.4f}",
        f"{row.difference:.4f}",
        f"{row.low:.4f} … {row.high:.4f}",
        f"{row.wins}/{row.ties}/{row.losses}",
        f"{row.p:.3g}",
        f"{row.p_holm:.3g}",
        "*" if row.significant else "",
    )
