"""Which ranker is better: paired comparison over the same groups."""

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
from rankwise.formatting import TABLE_FORMATS, TextTable, count, join_tables, without_markup
from rankwise.frames import frame_columns
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_float_array, check_option

TESTS = ("wilcoxon", "randomization")
EXACT_LIMIT = 100  # groups of the signed-rank test; more are left to the normal approximation
FEWEST_FOR_TEST = 6  # groups; with fewer no signed-rank test is below 0.05
ALL_SIGNS = 20  # differences whose signs are all tried by the randomization test
HOLDS_BY = "holds by: leave out so many groups, the right ones, and neither is ahead"
N_DRAWS, BATCH = 100_000, 1000  # signs drawn for more of them


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
    holds_by : int
        The fewest groups without which a would not be ahead, or behind: the difference of the means
        is then 0 or has the other sign. Exact. 0 if the means are equal.
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
    holds_by: int
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
            "comparisons": [without_markup(row._asdict()) for row in self.rows],
        }

    def table(self) -> TextTable:
        """What is printed: one row for each two rankers."""
        interval = f"{100 * self.confidence:g}% interval"
        header = ["a", "b", "mean a", "mean b", "a − b", interval, "w/t/l", "holds by"]
        header += ["p", "p Holm", ""]
        rows = [
            [
                *(row.a, row.b, f"{row.mean_a:.4f}", f"{row.mean_b:.4f}"),
                f"{row.difference:+.4f}",
                "–" if np.isnan(row.low) else f"{row.low:+.4f} … {row.high:+.4f}",
                *(f"{row.wins}/{row.ties}/{row.losses}", str(row.holds_by)),
                *(f"{row.p:.3g}", f"{row.p_holm:.3g}", "*" if row.significant else ""),
            ]
            for row in self.rows
        ]
        dropped = f", {self.n_dropped} left out as undefined" if self.n_dropped else ""
        way = "" if self.test == "wilcoxon" else f"; {self.test} test"
        note = (
            f"{count(self.n_groups, 'group')}{dropped}; w/t/l: groups where a won, tied, lost{way}"
            f"; * significant at {1 - self.confidence:.3g}"
        )
        return TextTable(header, rows, names=(0, 1), notes=[note, HOLDS_BY])

    def to_text(self, format: str = "text") -> str:
        """Return the table in a format.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "html"}
            For a terminal, a README, a paper, a page.
        """
        check_option("format", format, TABLE_FORMATS)
        return join_tables([self.table()], format)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_text("html")


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

    Use it to see whether one ranker is better than another by more than luck.

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
    a       b    mean a  mean b    a − b       95% interval  w/t/l  holds by       p  p Holm
    linear  rbf  0.2500  0.0500  +0.2000  +0.1061 … +0.2939  0/0/6         6  0.0312  0.0312  *
    6 groups; w/t/l: groups where a won, tied, lost; * significant at 0.05
    holds by: leave out so many groups, the right ones, and neither is ahead
    """
    values, n_dropped = _check(errors)
    _warn_of_constant_values(values, best=1.0 if greater_is_better else 0.0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    check_option("test", test, TESTS)
    pairs = _pairs(list(values), baseline)
    largest = max(float(np.abs(array).max()) for array in values.values()) or 1.0
    p_of = _signed_rank_p if test == "wilcoxon" else _randomization_p
    # differences that only rounding errors tell apart become equal
    rounded = [np.round((values[a] - values[b]) / largest, 12) for a, b in pairs]
    p = [p_of(difference) for difference in rounded]
    rows = []
    for (a, b), units, p_value, p_holm in zip(pairs, rounded, p, _holm(p), strict=True):
        difference = values[a] - values[b]
        mean, n = float(difference.mean()), len(difference)
        half = np.nan  # of Student's interval of the mean
        if n > 1:
            reach = scipy.stats.t.ppf(0.5 + confidence / 2, n - 1)
            half = float(reach * difference.std(ddof=1) / np.sqrt(n))
        sign = units if greater_is_better else -units
        rows.append(
            ComparisonRow(
                a=a,
                b=b,
                mean_a=float(values[a].mean()),
                mean_b=float(values[b].mean()),
                difference=mean,
                low=mean - half,
                high=mean + half,
                wins=int((sign > 0).sum()),
                ties=int((sign == 0).sum()),
                losses=int((sign < 0).sum()),
                holds_by=_groups_that_hold(units),
                p=p_value,
                p_holm=p_holm,
                significant=p_holm <= 1 - confidence + 1e-12,
            )
        )
    n_groups = len(next(iter(values.values())))
    return Comparison(tuple(rows), n_groups, n_dropped, float(confidence), test)


def _check(errors: Any) -> tuple[dict[str, Array], int]:
    """The values in the groups where all rankers have one, and the number of other groups."""
    errors = errors if isinstance(errors, Mapping) else frame_columns(errors)
    if errors is None or len(errors) < 2:
        raise ValueError(
            "compare needs a mapping with at least two rankers, {name: value in each group}."
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
            f"no group is left: in each of the {n_groups} groups some ranker has no value."
        )
    return {name: array[defined] for name, array in arrays.items()}, n_groups - len(defined)


def _warn_of_constant_values(values: dict[str, Array], best: float) -> None:
    """Warn of a ranker whose value is the same in all groups, unless it is the best possible."""
    for name, array in values.items():
        is_constant = len(array) >= FEWEST_FOR_TEST and bool((array == array[0]).all())
        if is_constant and array[0] != best:
            warn_user(
                f"the value of {name!r} is {array[0]:g} in each of the {len(array)} groups, as if "
                "all its scores were equal; check the scores before you read the p-value."
            )


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(itertools.combinations(names, 2))
    if baseline not in names:
        raise ValueError(f"baseline={baseline!r} is not among the rankers {', '.join(names)}.")
    return [(name, baseline) for name in names if name != baseline]


def _signed_rank_p(difference: Array) -> float:
    """P-value of Wilcoxon's test; zeros are ranked and count for neither side (Pratt).

    Exact for few groups, which SciPy is not if there are ties: the distribution of the sum of the
    ranks with positive sign, one rank after the other. Ranks are doubled, so that those of tied
    differences are whole numbers.
    """
    nonzero = difference != 0
    if not nonzero.any():
        return 1.0
    if len(difference) > EXACT_LIMIT:
        return float(scipy.stats.wilcoxon(difference, zero_method="pratt").pvalue)
    ranks = np.rint(2 * scipy.stats.rankdata(np.abs(difference))).astype(int)[nonzero]
    observed, total = int(ranks[difference[nonzero] > 0].sum()), int(ranks.sum())
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for rank in ranks:
        chance[rank:] += chance[:-rank].copy()
        chance *= 0.5
    as_far = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * observed - total)
    return float(min(1.0, chance[as_far].sum()))


def _randomization_p(difference: Array) -> float:
    """Chance of a mean as far from zero if the sign of each difference were thrown by a coin."""
    size = np.abs(difference[difference != 0])
    observed = abs(float(difference.sum())) - 1e-9 * float(size.sum())  # equal up to rounding
    if len(size) <= ALL_SIGNS:
        sums = np.zeros(1)
        for each in size:
            sums = np.concatenate([sums + each, sums - each])
        return float((np.abs(sums) >= observed).mean())
    rng = np.random.default_rng(0)
    as_far = 1  # the signs that were observed are one of the draws, so that p is never 0
    for _ in range(N_DRAWS // BATCH):
        is_positive = rng.integers(2, size=(BATCH, len(size)), dtype=np.int8)
        sums = 2 * (is_positive @ size) - size.sum()
        as_far += int((np.abs(sums) >= observed).sum())
    return as_far / (N_DRAWS + 1)


def _groups_that_hold(difference: Array) -> int:
    """The fewest groups without which the sum is not of its sign: those that add most to it."""
    total = float(difference.sum())
    largest_first = np.sort(difference * np.sign(total))[::-1]
    left = abs(total) - np.cumsum(largest_first)
    return int(np.argmax(left <= 1e-12 * len(left)) + 1) if total else 0


def _holm(p: list[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of n times n − i, never falling."""
    order = np.argsort(p)
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]
