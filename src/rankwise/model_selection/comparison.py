"""Paired comparison of rankers over the same groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import require
from rankwise.formatting import (
    TABLE_FORMATS,
    TextTable,
    count,
    join_tables,
    to_json_values,
)
from rankwise.metrics import Bounds, NextJudgment, RunEvaluation
from rankwise.model_selection.comparison_input import PairedValues
from rankwise.model_selection.paired_tests import (
    MeanError,
    MeanTest,
    cluster_error,
    detectable_difference,
    groups_needed,
    groups_to_flip,
    holm,
    randomization_tests,
    seed_error,
    shared_item_error,
    signed_rank_p,
    student_test,
    sum_by_cluster,
)
from rankwise.validation import check_option

if TYPE_CHECKING:
    import pandas

TESTS = ("t", "randomization", "wilcoxon")
TEST_TITLES = {
    "t": "paired t test",
    "randomization": "paired randomization test",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
CORRECTIONS = ("holm", "none")
EQUAL_P_VALUES = 1e-12  # p-values that differ by less are equal
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
        Confidence interval of the difference, from the same procedure as `p`: 0 is outside exactly
        if ``p <= 1 − confidence``. NaN for a single group and for Wilcoxon's test, which has no
        interval of the mean; infinite if a randomization test has too few groups.
    wins, ties, losses : int
        Number of groups in which a is better than, equal to, and worse than b. If `compare` was
        not told whether greater values are better, smaller values count as better.
    groups_to_flip : int
        Smallest number of groups whose removal makes the difference of the means zero or reverses
        its sign. Exact. 0 if the means are equal.
    p : float
        Two-sided p-value of the test, not corrected.
    p_adjusted : float
        The p-value after the correction for all comparisons of the table.
    significant : bool
        Whether ``p_adjusted`` is at most 1 − confidence.
    detectable : float
        Smallest difference that 80% of such studies would find significant, without correction.
        NaN for a single group.
    groups_needed : float or None
        Number of groups with which 80% of the studies would detect the difference that was passed
        to `compare`; infinite if seeds hide it, None if no difference was passed.
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
    p_adjusted: float
    significant: bool
    detectable: float
    groups_needed: float | None


class ComparisonSettings(NamedTuple):
    """How rankers are compared; see `compare`.

    Attributes
    ----------
    greater_is_better, test, baseline, correction, confidence, difference
        The arguments of `compare`.
    """

    greater_is_better: bool | None = None
    test: str = "t"
    baseline: str | None = None
    correction: str = "holm"
    confidence: float = DEFAULT_CONFIDENCE
    difference: float | None = None

    def check(self) -> None:
        """Raise a ValueError for an argument that is not accepted."""
        check_option("test", self.test, TESTS)
        check_option("correction", self.correction, CORRECTIONS)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence={self.confidence!r}; expected a number between 0 and 1.")
        if self.difference is not None and not 0 < self.difference < np.inf:
            raise ValueError(f"difference={self.difference!r}; expected a number above 0.")


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
    settings : ComparisonSettings
        Test, correction, level and the other arguments of `compare`.
    n_clusters : int or None
        Number of clusters of groups.
    n_items : int or None
        Number of different items, if groups are comparisons of two items.
    n_seeds : dict from name to int
        Number of seeds of each ranker.
    evaluation : RunEvaluation or None
        The evaluation of retrieval runs that are compared.
    bounds : dict from (a, b) to Bounds
        With ``unjudged="bounds"``: each difference over all grades of the unjudged documents.

    Examples
    --------
    >>> from rankwise.model_selection import compare
    >>> new, old = [0.1, 0.2, 0.15, 0.1, 0.3, 0.2] * 2, [0.2, 0.3, 0.21, 0.3, 0.35, 0.4] * 2
    >>> (row,) = compare({"new": new, "old": old}, greater_is_better=False).rows
    >>> row.wins, row.losses
    (12, 0)
    """

    rows: tuple[ComparisonRow, ...]
    n_groups: int
    n_dropped: int
    settings: ComparisonSettings
    n_clusters: int | None = None
    n_items: int | None = None
    n_seeds: dict[str, int] = field(default_factory=dict)
    evaluation: RunEvaluation | None = None
    bounds: dict[tuple[str, str], Bounds] = field(default_factory=dict)

    @property
    def confidence(self) -> float:
        """Level of the intervals."""
        return self.settings.confidence

    @property
    def test(self) -> str:
        """Test that intervals and p-values come from."""
        return self.settings.test

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def next_judgments(self, n: int = 20) -> list[NextJudgment]:
        """Return the unjudged documents whose judgments matter most for the differences of runs.

        Parameters
        ----------
        n : int, default=20
            Number of documents.

        Returns
        -------
        list of NextJudgment
            Query, document and effect, the largest effect first.
        """
        if self.evaluation is None or not self.bounds:
            raise ValueError("next_judgments needs compare(runs, ..., unjudged='bounds').")
        return self.evaluation.next_judgments(n)

    def to_frame(self) -> pandas.DataFrame:
        """Return the comparisons as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row per pair, with the fields of `ComparisonRow` as columns.
        """
        pandas = require("pandas", "Comparison.to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(ComparisonRow._fields))

    def to_dict(self) -> dict[str, object]:
        """Return all numbers in types of JSON; NaN and infinity become None.

        Returns
        -------
        dict
            Settings, and one entry per pair.
        """
        document: dict[str, object] = {
            "groups": self.n_groups,
            "left_out": self.n_dropped,
            "clusters": self.n_clusters,
            "items": self.n_items,
            "seeds": self.n_seeds,
            "confidence": self.confidence,
            "test": self.test,
            "correction": self.settings.correction,
            "comparisons": [to_json_values(row._asdict()) for row in self.rows],
        }
        if self.bounds:
            document["unjudged"] = [
                {
                    "a": a,
                    "b": b,
                    "low": bounds.low,
                    "high": bounds.high,
                    "unjudged": bounds.n_unjudged,
                    "judgments_to_flip": bounds.judgments_to_flip,
                }
                for (a, b), bounds in self.bounds.items()
            ]
        return document

    def summary(self) -> str:
        """Return one sentence for each pair, for a paper or a message.

        Returns
        -------
        str
            Difference, interval, p-value and test; for runs with ``unjudged="bounds"`` also the
            possible effect of unjudged documents.
        """
        return "\n".join(self._sentence_of_row(row) for row in self.rows)

    def table(self) -> TextTable:
        """Return the printed table: one row for each pair of rankers.

        Returns
        -------
        TextTable
            The table with its notes.
        """
        header = ["a", "b", "mean a", "mean b", "a − b"]
        header += [f"{100 * self.confidence:g}% interval", "w/t/l", "groups to flip", "p"]
        if self.settings.correction == "holm":
            header += ["p Holm", "significant (Holm)"]
        else:
            header.append("significant")
        rows = [self._table_cells(row) for row in self.rows]
        return TextTable(header, rows, names=(0, 1), notes=self._notes())

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

    def _table_cells(self, row: ComparisonRow) -> list[str]:
        """Format one comparison for the printed table."""
        cells = [
            row.a,
            row.b,
            f"{row.mean_a:.4f}",
            f"{row.mean_b:.4f}",
            f"{row.difference:+.4f}",
            format_interval(row.low, row.high),
            f"{row.wins}/{row.ties}/{row.losses}",
            str(row.groups_to_flip),
            f"{row.p:.3g}",
        ]
        if self.settings.correction == "holm":
            cells.append(f"{row.p_adjusted:.3g}")
        cells.append("yes" if row.significant else "no")
        return cells

    def _notes(self) -> list[str]:
        notes = [self._note_on_test(), GROUPS_TO_FLIP]
        if self.settings.greater_is_better is None:
            notes.append("smaller values win; for scores pass greater_is_better=True or the metric")
        detectable = [row.detectable for row in self.rows]
        if not np.isnan(detectable).any():
            notes.append(
                f"80% of such studies would detect a difference of {_format_range(detectable)}"
            )
        n_needed = [row.groups_needed for row in self.rows if row.groups_needed is not None]
        if n_needed:
            needed = _format_range(n_needed, ",.0f")
            notes.append(f"groups to detect {self.settings.difference:g} in 80%: {needed}")
        if any(np.isinf(row.low) for row in self.rows):
            notes.append(
                "no interval: with so few groups or clusters no p-value is at most "
                f"{1 - self.confidence:.3g}"
            )
        for row in self.rows:
            if (row.a, row.b) in self.bounds:
                notes.append(self._unjudged_note(row))
        return notes

    def _note_on_test(self) -> str:
        sample = self._sample_size()
        if self.n_dropped:
            sample += f", {self.n_dropped} dropped as undefined"
        outcomes = "groups where the value of a is smaller, equal, larger"
        if self.settings.greater_is_better:
            outcomes = "groups where a won, tied, lost"
        alpha = f"{1 - self.confidence:.3g}"
        return f"{sample}; {TEST_TITLES[self.test]} at {alpha}; w/t/l: {outcomes}"

    def _sample_size(self) -> str:
        """Text with the numbers of groups, clusters, items and seeds."""
        text = count(self.n_groups, "group")
        if self.n_clusters is not None:
            text += f" in {count(self.n_clusters, 'cluster')}"
        if self.n_items is not None:
            text = f"{count(self.n_groups, 'comparison')} of {count(self.n_items, 'item')}"
        fewest_seeds = min(self.n_seeds.values(), default=1)
        most_seeds = max(self.n_seeds.values(), default=1)
        if most_seeds > fewest_seeds:
            text += f", {fewest_seeds} to {most_seeds} seeds"
        elif most_seeds > 1:
            text += f", {most_seeds} seeds"
        return text

    def _sentence_of_row(self, row: ComparisonRow) -> str:
        level = f"{100 * self.confidence:g}%"
        interval = ""
        if np.isfinite(row.low):
            interval = f"{level} interval {row.low:+.4f} to {row.high:+.4f}, "
        p = f"p = {row.p:.2g}"
        if self.settings.correction == "holm" and len(self.rows) > 1:
            p += f", {row.p_adjusted:.2g} after Holm's correction"
        sentence = (
            f"{row.a} − {row.b}: {row.difference:+.4f} ({interval}{p}; {TEST_TITLES[self.test]} "
            f"over {self._sample_size()})"
        )
        if not np.isnan(row.detectable):
            sentence += f"; 80% of such studies would detect {row.detectable:.4f}"
        if (row.a, row.b) in self.bounds:
            sentence += f"; {self._unjudged_text(row)}"
        return sentence + "."

    def _unjudged_note(self, row: ComparisonRow) -> str:
        level = f"{100 * self.confidence:g}%"
        interval = ""
        if np.isfinite(row.low):
            interval = f" ({level} interval {row.low:+.4f} to {row.high:+.4f})"
        return f"{row.a} − {row.b}: {row.difference:+.4f}{interval}; {self._unjudged_text(row)}"

    def _unjudged_text(self, row: ComparisonRow) -> str:
        bounds = self.bounds[row.a, row.b]
        loser = row.b
        if row.difference < 0.0:
            loser = row.a
        documents = count(bounds.n_unjudged, "unjudged document")
        text = f"over all grades of {documents}: {bounds.low:+.4f} to {bounds.high:+.4f}; "
        if bounds.judgments_to_flip is None:
            return text + "no grades reverse the order"
        return text + (
            f"{bounds.judgments_to_flip:,} of {loser}'s {bounds.n_unjudged_of_loser:,} must be "
            "relevant to reverse the order"
        )


def format_interval(low: float, high: float) -> str:
    """Return both ends with signs; a dash if there is no finite interval."""
    if not np.isfinite(low) or not np.isfinite(high):
        return "–"
    return f"{low:+.4f} … {high:+.4f}"


def _format_range(values: list[float], style: str = ".4f") -> str:
    """Return the smallest and the largest number; one number if they are equal."""
    lowest = _format_number(min(values), style)
    highest = _format_number(max(values), style)
    if lowest == highest:
        return lowest
    return f"{lowest} to {highest}"


def _format_number(value: float, style: str) -> str:
    if np.isinf(value):
        return "no number"
    return format(value, style)


def compare_values(paired: PairedValues, settings: ComparisonSettings) -> Comparison:
    """Compare rankers by complete values, without warnings.

    Parameters
    ----------
    paired : PairedValues
        Values without NaN (`PairedValues.complete`).
    settings : ComparisonSettings
        Test, correction and level.
    """
    pairs = pairs_of(list(paired.values), settings.baseline)
    means = {name: values.mean(axis=0) for name, values in paired.values.items()}
    largest_value = max(float(np.abs(values).max()) for values in paired.values.values())
    if largest_value == 0.0:  # all values are 0; differences are divided by it
        largest_value = 1.0
    differences = [difference_without_rounding(means[a], means[b], largest_value) for a, b in pairs]
    results = _test_pairs(paired, pairs, differences, settings)
    rows = [
        _comparison_row(pair, means, result, largest_value, settings)
        for pair, result in zip(pairs, results, strict=True)
    ]
    return Comparison(
        rows=tuple(rows),
        n_groups=len(differences[0]),
        n_dropped=paired.n_dropped,
        settings=settings,
        n_clusters=paired.n_clusters,
        n_items=paired.n_items,
        n_seeds={name: len(values) for name, values in paired.values.items()},
    )


class PairResult(NamedTuple):
    """Test of two rankers.

    Attributes
    ----------
    difference : ndarray of shape (n_groups,)
        Differences of their values, the means over seeds.
    error : MeanError
        Variance of the mean difference.
    test : MeanTest
        P-value and interval.
    p_adjusted : float
        The p-value after the correction.
    """

    difference: Array
    error: MeanError
    test: MeanTest
    p_adjusted: float


def _test_pairs(
    paired: PairedValues,
    pairs: list[tuple[str, str]],
    differences: list[Array],
    settings: ComparisonSettings,
) -> list[PairResult]:
    """Test the mean difference of each pair of rankers, and correct the p-values."""
    errors = [
        _mean_error(paired, pair, difference)
        for pair, difference in zip(pairs, differences, strict=True)
    ]
    tests = _run_tests(paired, differences, errors, settings)
    adjusted_p = [test.p for test in tests]
    if settings.correction == "holm":
        adjusted_p = holm(adjusted_p)
    return [
        PairResult(difference, error, test, p_adjusted)
        for difference, error, test, p_adjusted in zip(
            differences, errors, tests, adjusted_p, strict=True
        )
    ]


def _comparison_row(
    pair: tuple[str, str],
    means: dict[str, Array],
    result: PairResult,
    largest_value: float,
    settings: ComparisonSettings,
) -> ComparisonRow:
    """Describe the comparison of two rankers; `largest_value` is that of all rankers."""
    a, b = pair
    alpha = 1.0 - settings.confidence
    advantage_of_a = -result.difference
    if settings.greater_is_better:
        advantage_of_a = result.difference
    # Rounded, so that sums of differences that cancel are 0
    rounded_difference = np.round(result.difference / largest_value, 12)
    return ComparisonRow(
        a=a,
        b=b,
        mean_a=float(means[a].mean()),
        mean_b=float(means[b].mean()),
        difference=float((means[a] - means[b]).mean()),
        low=result.test.low,
        high=result.test.high,
        wins=int((advantage_of_a > 0).sum()),
        ties=int((advantage_of_a == 0).sum()),
        losses=int((advantage_of_a < 0).sum()),
        groups_to_flip=groups_to_flip(rounded_difference),
        p=result.test.p,
        p_adjusted=result.p_adjusted,
        significant=result.p_adjusted <= alpha + EQUAL_P_VALUES,
        detectable=detectable_difference(result.error, alpha),
        groups_needed=_groups_needed(result.error, len(means[a]), settings),
    )


def _groups_needed(error: MeanError, n_groups: int, settings: ComparisonSettings) -> float | None:
    """Groups that detect the difference of interest; None if there is none."""
    if settings.difference is None:
        return None
    return groups_needed(error, n_groups, settings.difference, 1.0 - settings.confidence)


def difference_without_rounding(values_a: Array, values_b: Array, largest_value: float) -> Array:
    """Return differences; differences caused by rounding errors become 0."""
    # Values that are equal in 12 digits of the largest value have the difference 0
    difference = values_a - values_b
    is_rounding = np.round(difference / largest_value, 12) == 0.0
    cleaned: Array = np.where(is_rounding, 0.0, difference)
    return cleaned


def _mean_error(paired: PairedValues, pair: tuple[str, str], difference: Array) -> MeanError:
    """Variance of the mean difference over groups, clusters or compared items, and seeds."""
    if paired.items is None:
        error = cluster_error(sum_by_cluster(difference, paired.clusters))
    else:
        error = shared_item_error(difference, paired.items)
    values_of_pair = [paired.values[name] for name in pair]
    has_seeds = any(len(values) > 1 for values in values_of_pair)
    if has_seeds:
        error = seed_error(error, values_of_pair)
    return error


def _run_tests(
    paired: PairedValues,
    differences: list[Array],
    errors: list[MeanError],
    settings: ComparisonSettings,
) -> list[MeanTest]:
    """P-value and interval of each pair."""
    if settings.test == "t":
        return [
            student_test(float(difference.mean()), error, settings.confidence)
            for difference, error in zip(differences, errors, strict=True)
        ]
    if paired.items is not None:
        raise ValueError(
            f"test={settings.test!r} assumes independent groups, but comparisons share items; use "
            "test='t'."
        )
    if paired.has_seeds:
        raise ValueError(
            f"test={settings.test!r} ignores the variance of seeds; use test='t', or average over "
            "the seeds to compare these trained models instead of the training procedures."
        )
    if settings.test == "randomization":
        clusters = [sum_by_cluster(difference, paired.clusters) for difference in differences]
        return randomization_tests(clusters, settings.confidence)
    if paired.clusters is not None:
        raise ValueError("test='wilcoxon' ignores clusters; use test='t' or test='randomization'.")
    return [MeanTest(signed_rank_p(difference), np.nan, np.nan) for difference in differences]


def pairs_of(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    """Pairs of rankers to compare: all of them, or every other ranker with the baseline."""
    if baseline is None:
        return list(itertools.combinations(names, 2))
    if baseline not in names:
        raise ValueError(f"baseline={baseline!r} is not among the rankers {', '.join(names)}.")
    return [(name, baseline) for name in names if name != baseline]
