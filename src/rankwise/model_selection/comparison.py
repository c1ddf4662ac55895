"""Paired comparison of rankers over the same groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import require
from rankwise.errors import warn_user
from rankwise.formatting import TABLE_FORMATS, TextTable, count, join_tables, to_json_values
from rankwise.frames import frame_columns
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_float_array, check_option

TESTS = ("wilcoxon", "randomization")
EXACT_LIMIT = 100  # groups up to which the signed-rank test is exact
FEWEST_FOR_TEST = 6  # groups; with fewer no signed-rank p-value is below 0.05
ALL_SIGNS = 20  # differences up to which the randomization test enumerates all signs
N_DRAWS = 100_000  # random sign vectors for more differences
BATCH = 1000  # sign vectors drawn at once
ROUNDING = 1e-12  # relative difference that counts as equal
GROUPS_TO_FLIP = "groups to flip: the fewest groups whose removal leaves neither ranker ahead"


class ComparisonRow(NamedTuple):
    """Comparison of two rankers, one row of a `Comparison`.

    Attributes
    ----------
    a, b : str
        Their names.
    mean_a, mean_b : float
        Means over the groups.
    difference : float
        ``mean_a − mean_b``.
    low, high : float
        Confidence interval of the difference; nan for a single group.
    wins, ties, losses : int
        Number of groups in which a is better than, equal to, and worse than b.
    groups_to_flip : int
        Smallest number of groups whose removal makes the difference of the means zero or reverses
        its sign. Exact. 0 if the means are equal.
    p : float
        Two-sided p-value of the test.
    p_holm : float
        The p-value after Holm's correction for all comparisons of the table.
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
    groups_to_flip: int
    p: float
    p_holm: float
    significant: bool


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Result of `compare`: a table with one row for each pair of rankers.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        The comparisons.
    n_groups : int
        Number of groups used.
    n_dropped : int
        Number of groups dropped because a ranker has no value in them.
    confidence : float
        Level of the intervals.
    test : str
        Test that the p-values come from.

    Examples
    --------
    >>> from rankwise.model_selection import compare
    >>> new, old = [0.1, 0.2, 0.15, 0.1, 0.3, 0.2], [0.2, 0.3, 0.21, 0.3, 0.35, 0.4]
    >>> (row,) = compare({"new": new, "old": old}).rows
    >>> row.wins, row.losses
    (6, 0)
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
        pandas = require("pandas", "Comparison.to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(ComparisonRow._fields))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers in types of JSON; NaN becomes None."""
        return {
            "groups": self.n_groups,
            "left_out": self.n_dropped,
            "confidence": self.confidence,
            "test": self.test,
            "comparisons": [to_json_values(row._asdict()) for row in self.rows],
        }

    def table(self) -> TextTable:
        """Return the printed table: one row for each pair of rankers."""
        header = [
            "a",
            "b",
            "mean a",
            "mean b",
            "a − b",
            f"{100 * self.confidence:g}% interval",
            "w/t/l",
            "groups to flip",
            "p",
            "p Holm",
            "",
        ]
        rows = [_table_cells(row) for row in self.rows]
        notes = [count(self.n_groups, "group")]
        if self.n_dropped:
            notes[0] += f", {self.n_dropped} dropped as undefined"
        notes.append("w/t/l: groups where a won, tied, lost")
        if self.test != "wilcoxon":
            notes.append(f"{self.test} test")
        notes.append(f"* significant at {1 - self.confidence:.3g}")
        return TextTable(header, rows, names=(0, 1), notes=["; ".join(notes), GROUPS_TO_FLIP])

    def to_text(self, format: str = "text") -> str:
        """Return the table in a format.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "html"}, default="text"
            Format for a terminal, a README, a paper or a web page.

        Returns
        -------
        str
            The table.
        """
        check_option("format", format, TABLE_FORMATS)
        return join_tables([self.table()], format)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_text("html")


def _table_cells(row: ComparisonRow) -> list[str]:
    """Format one comparison for the printed table."""
    interval = "–"
    if not np.isnan(row.low):
        interval = f"{row.low:+.4f} … {row.high:+.4f}"
    return [
        row.a,
        row.b,
        f"{row.mean_a:.4f}",
        f"{row.mean_b:.4f}",
        f"{row.difference:+.4f}",
        interval,
        f"{row.wins}/{row.ties}/{row.losses}",
        str(row.groups_to_flip),
        f"{row.p:.3g}",
        f"{row.p_holm:.3g}",
        "*" if row.significant else "",
    ]


@single_threaded
def compare(
    errors: Mapping[str, ArrayLike] | Any,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    greater_is_better: bool = False,
    baseline: str | None = None,
    test: str = "wilcoxon",
) -> Comparison:
    """Compare rankers by their errors (or scores) in the same groups.

    Use it to check whether one ranker is better than another by more than chance.

    Each pair of rankers is compared by a test on the differences of their values. The test assumes
    only that the differences are symmetric under the null hypothesis. Holm's method corrects the
    p-values and keeps the probability of any false finding in the table below 1 − confidence.

    Parameters
    ----------
    errors : mapping from name to array-like of shape (n_groups,), or data frame
        Value of one metric in each group, with the groups in the same order for all rankers: the
        result of a metric with ``per_group=True``, or ``Evaluation.per_group["ndcg@10"]``. A frame
        has one column per ranker. Groups in which any ranker has nan are dropped and counted.
    confidence : float, default=0.95
        Level of the intervals; 1 − confidence is the level of significance.
    greater_is_better : bool, default=False
        True if the values are scores such as NDCG; only wins and losses depend on it.
    baseline : str, default=None
        Compare every other ranker with this one only, as b. Fewer comparisons need a milder
        correction.
    test : {"wilcoxon", "randomization"}, default="wilcoxon"
        Wilcoxon's signed-rank test uses the ranks of the differences, so a few groups with large
        differences do not dominate it. The randomization test uses the mean itself, which is what
        papers report [1]_: the p-value is the share of all sign patterns of the differences whose
        mean is at least as far from zero. Choose the test before you look at the p-values.

    Returns
    -------
    Comparison
        Prints as a table; ``rows`` and ``to_frame()`` contain its numbers, ``to_text("latex")``
        formats a table for a paper.

    Notes
    -----
    In Wilcoxon's test zero differences take part in the ranking and count for neither side (Pratt's
    method, ``zero_method="pratt"`` of `scipy.stats.wilcoxon`). Dropping them would hide that two
    rankers mostly agree. The p-value is exact for up to 100 groups, also with ties; for more groups
    it is SciPy's normal approximation. The randomization test enumerates all signs of up to 20
    nonzero differences. For more differences it draws 100,000 sign vectors with a fixed seed; its
    p-value then has a standard error of 0.0007 at 0.05. Differences that agree up to rounding count
    as equal. If all differences are zero, p is 1.

    The interval is Student's t interval for the mean difference. It needs no seed, and the mean
    over tens of groups is close to normal whatever the distribution of the metric. The interval is
    not corrected for the number of comparisons.

    References
    ----------
    .. [1] Smucker, Allan, Carterette: A comparison of statistical significance tests for
       information retrieval evaluation. CIKM 2007.

    Examples
    --------
    >>> from rankwise.model_selection import compare
    >>> print(compare({"linear": [0.1, 0.3, 0.2, 0.4, 0.2, 0.3], "rbf": [0, 0.1, 0.1, 0.1, 0, 0]}))
    a       b    mean a  mean b    a − b       95% interval  w/t/l  groups to flip       p  p Holm
    linear  rbf  0.2500  0.0500  +0.2000  +0.1061 … +0.2939  0/0/6               6  0.0312  0.0312  *
    6 groups; w/t/l: groups where a won, tied, lost; * significant at 0.05
    groups to flip: the fewest groups whose removal leaves neither ranker ahead
    """  # noqa: E501
    values, n_dropped = _defined_values(errors)
    _warn_about_constant_values(values, best=1.0 if greater_is_better else 0.0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    check_option("test", test, TESTS)
    pairs = _pairs(list(values), baseline)
    largest = max(float(np.abs(array).max()) for array in values.values()) or 1.0
    test_p_value = _signed_rank_p if test == "wilcoxon" else _randomization_p
    # differences that only rounding errors distinguish become equal
    rounded = [np.round((values[a] - values[b]) / largest, 12) for a, b in pairs]
    p_values = [test_p_value(difference) for difference in rounded]
    corrected = _holm(p_values)
    rows = []
    for k, (a, b) in enumerate(pairs):
        difference = values[a] - values[b]
        mean = float(difference.mean())
        half_width = _half_width(difference, confidence)
        advantage_of_a = rounded[k] if greater_is_better else -rounded[k]
        rows.append(
            ComparisonRow(
                a=a,
                b=b,
                mean_a=float(values[a].mean()),
                mean_b=float(values[b].mean()),
                difference=mean,
                low=mean - half_width,
                high=mean + half_width,
                wins=int((advantage_of_a > 0).sum()),
                ties=int((advantage_of_a == 0).sum()),
                losses=int((advantage_of_a < 0).sum()),
                groups_to_flip=_groups_to_flip(rounded[k]),
                p=p_values[k],
                p_holm=corrected[k],
                significant=corrected[k] <= 1 - confidence + ROUNDING,
            )
        )
    n_groups = len(next(iter(values.values())))
    return Comparison(tuple(rows), n_groups, n_dropped, float(confidence), test)


def _half_width(difference: Array, confidence: float) -> float:
    """Half the width of Student's interval of the mean; nan for a single group."""
    n_groups = len(difference)
    if n_groups == 1:
        return float("nan")
    quantile = scipy.stats.t.ppf(0.5 + confidence / 2, n_groups - 1)
    return float(quantile * difference.std(ddof=1) / np.sqrt(n_groups))


def _defined_values(errors: Any) -> tuple[dict[str, Array], int]:
    """Values in the groups where all rankers have one, and the number of dropped groups."""
    if not isinstance(errors, Mapping):
        errors = frame_columns(errors)
    if errors is None or len(errors) < 2:
        raise ValueError(
            "compare needs a mapping with at least two rankers, {name: values by group}."
        )
    arrays = {str(name): check_float_array(str(name), values) for name, values in errors.items()}
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
            f"no group can be compared: in each of the {n_groups} groups a ranker has nan."
        )
    return {name: array[defined] for name, array in arrays.items()}, n_groups - len(defined)


def _warn_about_constant_values(values: dict[str, Array], best: float) -> None:
    """Warn about a ranker with the same value in all groups, unless it is the best possible."""
    for name, array in values.items():
        is_constant = len(array) >= FEWEST_FOR_TEST and bool((array == array[0]).all())
        if is_constant and array[0] != best:
            warn_user(
                f"the value of {name!r} is {array[0]:g} in each of the {len(array)} groups, as if "
                "all its scores were equal; check the scores before you read the p-value."
            )


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    """Pairs of rankers to compare: all of them, or every other ranker with the baseline."""
    if baseline is None:
        return list(itertools.combinations(names, 2))
    if baseline not in names:
        raise ValueError(f"baseline={baseline!r} is not among the rankers {', '.join(names)}.")
    return [(name, baseline) for name in names if name != baseline]


def _signed_rank_p(difference: Array) -> float:
    """P-value of Wilcoxon's test; zeros are ranked and count for neither side (Pratt).

    For few groups it is exact, also with ties, where SciPy's is not: the distribution of the sum of
    the ranks with positive sign is computed by adding one rank after the other. Ranks are doubled,
    so that the mean ranks of ties are integers.
    """
    nonzero = difference != 0
    if not nonzero.any():
        return 1.0
    if len(difference) > EXACT_LIMIT:
        return float(scipy.stats.wilcoxon(difference, zero_method="pratt").pvalue)
    doubled_ranks = np.rint(2 * scipy.stats.rankdata(np.abs(difference))).astype(int)[nonzero]
    observed = int(doubled_ranks[difference[nonzero] > 0].sum())
    total = int(doubled_ranks.sum())
    probability = np.zeros(total + 1)  # of each sum of positive ranks
    probability[0] = 1.0
    for rank in doubled_ranks:
        probability[rank:] += probability[:-rank].copy()
        probability *= 0.5
    distance = np.abs(2 * np.arange(total + 1) - total)
    is_extreme = distance >= abs(2 * observed - total)
    return float(min(1.0, probability[is_extreme].sum()))


def _randomization_p(difference: Array) -> float:
    """Probability of a mean at least as far from zero if all signs are random."""
    magnitudes = np.abs(difference[difference != 0])
    tolerance = 1e-9 * float(magnitudes.sum())  # sums that are equal up to rounding
    observed = abs(float(difference.sum())) - tolerance
    if len(magnitudes) <= ALL_SIGNS:
        sums = np.zeros(1)
        for magnitude in magnitudes:
            sums = np.concatenate([sums + magnitude, sums - magnitude])
        return float((np.abs(sums) >= observed).mean())
    rng = np.random.default_rng(0)
    n_extreme = 1  # the observed signs count as one of the draws, so that p is never 0
    for _ in range(N_DRAWS // BATCH):
        is_positive = rng.integers(2, size=(BATCH, len(magnitudes)), dtype=np.int8)
        sums = 2 * (is_positive @ magnitudes) - magnitudes.sum()
        n_extreme += int((np.abs(sums) >= observed).sum())
    return n_extreme / (N_DRAWS + 1)


def _groups_to_flip(difference: Array) -> int:
    """Smallest number of groups whose removal reverses the sign of the sum, or makes it zero.

    They are the groups with the largest contributions to the sum.
    """
    total = float(difference.sum())
    if total == 0:
        return 0
    largest_first = np.sort(difference * np.sign(total))[::-1]
    remaining = abs(total) - np.cumsum(largest_first)
    return int(np.argmax(remaining <= ROUNDING * len(remaining)) + 1)


def _holm(p: list[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of n times n − i, made nondecreasing."""
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    steps = np.asarray(p)[order] * factors
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]
